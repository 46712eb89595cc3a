/*
 * The points of one metric, kept fresh while the run lives. How often depends on what an answer costs: about a twentieth
 * of the time is spent asking, whatever the number of points.
 */
import { useEffect, useRef, useState } from "preact/hooks";
import { getJson, isAbort, query, runPath } from "./api";
import type { Metrics } from "./types";

const LEAST_MS = 1000;
const MOST_MS = 30_000;
const COST_FACTOR = 20;

export type Series = Metrics["series"];

/* `version` says that there is something new; it may change at any rate. */
export function useSeries(run: string, name: string, version: number, wanted: boolean): Series | null {
	const [series, setSeries] = useState<Series | null>(null);
	const newest = useRef(version);
	newest.current = version;
	const have = useRef(-1);

	useEffect(() => {
		have.current = -1;
		setSeries(null);
	}, [run, name]);
	useEffect(() => {
		if (!wanted) return;
		const abort = new AbortController();
		let timer = 0;
		const round = async (): Promise<void> => {
			let pause = LEAST_MS;
			if (have.current !== newest.current && !document.hidden) {
				const asking = newest.current;
				const began = performance.now();
				try {
					const m = await getJson<Metrics>(runPath(run, "/metrics") + query({ name }), abort.signal);
					setSeries(m.series);
					have.current = asking;
				} catch (e) {
					if (isAbort(e)) return;
				}
				pause = Math.min(MOST_MS, Math.max(LEAST_MS, (performance.now() - began) * COST_FACTOR));
			}
			if (!abort.signal.aborted) timer = window.setTimeout(() => void round(), pause);
		};
		void round();
		return () => {
			clearTimeout(timer);
			abort.abort();
		};
	}, [run, name, wanted]);
	return series;
}
