/*
 * The points of one metric, updated while the run is active. The interval depends on the time of a request: about a twentieth
 * of the time is spent on requests, for any number of points.
 */
import { useEffect, useRef, useState } from "preact/hooks";
import { ApiError, getJson, isAbort, query, runPath } from "../lib/api";
import type { Metrics } from "../lib/types";

const LEAST_MS = 1000;
const MOST_MS = 30_000;
const COST_FACTOR = 20;

export type Series = Metrics["series"];

const TOO_MANY = 507;

/* A new `version` means new points; it may change at any rate. The text says why there are no points. */
export function useSeries(run: string, name: string, version: number, wanted: boolean): [Series | null, string] {
	const [series, setSeries] = useState<Series | null>(null);
	const [why, setWhy] = useState("");
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
					setWhy("");
					have.current = asking;
				} catch (e) {
					if (isAbort(e)) return;
					const tooMany = e instanceof ApiError && e.status === TOO_MANY;
					if (tooMany) have.current = asking;
					setWhy(tooMany ? "too many points for one picture; the CSV has them all" : (e as Error).message);
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
	return [series, why];
}
