/* The curves of each metric, those of all runs in one chart. */
import type { JSX } from "preact";
import { useEffect, useMemo, useState } from "preact/hooks";
import { ApiError, getJson, isAbort, query, runPath } from "../lib/api";
import { percent } from "../lib/format";
import { useVisible } from "../lib/hooks";
import type { CompareArm, Metrics, Run } from "../lib/types";
import { Chart } from "../metrics/chart";
import { aggregate, hasSteps, toTrack, type Track, type XAxis } from "../metrics/series";
import { AxisChoice, ResetZoom, useChartView, type ChartView } from "../metrics/view";

const RETRY_MS = 3000;
const MOST_REPEATS = 8; /* runs of a group that are drawn, as one curve */

/* Curves do not need the statistics: every metric that any of the runs has is drawn. */
export function Curves({ arms, names }: { arms: CompareArm[]; names: string[] }): JSX.Element {
	const view = useChartView();
	const [own, setOwn] = useState<string[]>([]);
	useEffect(() => {
		let here = true;
		const first = arms.map((a) => a.runs[0]).filter((id): id is string => id !== undefined);
		void Promise.all(first.map((id) => getJson<Run>(runPath(id)).catch(() => null))).then((runs) => {
			if (here) setOwn([...new Set(runs.flatMap((r) => Object.keys(r?.metrics ?? {})))]);
		});
		return () => {
			here = false;
		};
	}, []);
	const all = [...new Set([...names, ...own])];
	if (!all.length) return <></>;
	return (
		<section class="stack" aria-label="Curves">
			<div class="tools">
				<AxisChoice view={view} />
				<ResetZoom view={view} />
				<span class="dim">mean of each run's nodes</span>
			</div>
			<div class="charts">
				{all.map((name) => (
					<Curve key={name} arms={arms} name={name} view={view} />
				))}
			</div>
		</section>
	);
}

interface CurveProps {
	arms: CompareArm[];
	name: string;
	view: ChartView;
}

function Curve({ arms, name, view }: CurveProps): JSX.Element {
	const [ref, visible] = useVisible<HTMLDivElement>();
	const [all, setAll] = useState<(Metrics | null)[][] | null>(null);
	useEffect(() => {
		if (!visible || all) return;
		const abort = new AbortController();
		let timer = 0;
		const load = (): void => {
			const one = (id: string): Promise<Metrics> => getJson(runPath(id, "/metrics") + query({ name }), abort.signal);
			/* A run that was removed has no curve; a service that does not answer is asked again. */
			const gone = (e: unknown): null => {
				if (e instanceof ApiError && e.status >= 400 && e.status < 500) return null;
				throw e;
			};
			const ofArm = (a: CompareArm): Promise<(Metrics | null)[]> =>
				Promise.all(a.runs.slice(-MOST_REPEATS).map((id) => one(id).catch(gone)));
			Promise.all(arms.map(ofArm)).then(setAll, (e) => {
				if (!isAbort(e)) timer = window.setTimeout(load, RETRY_MS);
			});
		};
		load();
		return () => {
			clearTimeout(timer);
			abort.abort();
		};
	}, [visible]);

	const stepped = all?.every((arm) => arm.every((m) => m?.series.every((s) => hasSteps(s.points)) ?? true)) ?? true;
	const axis: XAxis = view.axis === "step" && stepped ? "step" : "time";
	const tracks = useMemo(() => (all ?? []).map((m, i) => oneTrack(arms[i]?.label ?? "", m, axis)), [all, axis]);
	return (
		<div ref={ref}>
			<Chart
				title={name}
				tracks={tracks}
				axis={axis}
				log={view.log}
				zoom={axis === view.axis ? view.zoom : null}
				setZoom={view.setZoom}
				loading={!all}
				empty="none of these runs has it"
				note={ends(tracks)}
			/>
		</div>
	);
}

/* Time starts at the first point of each run, so that runs of different days overlap. */
function oneTrack(label: string, runs: (Metrics | null)[], axis: XAxis): Track {
	const tracks = runs.flatMap((m) => {
		const series = m?.series ?? [];
		const origin = Math.min(...series.map((s) => s.points[0]?.[0] ?? Infinity));
		return series.map((s) => toTrack(s.node, s.points, axis, origin)).filter((t) => t.xs.length);
	});
	return { ...aggregate(tracks, axis)[0], label };
}

function ends(tracks: Track[]): string {
	const last = tracks.map((t) => t.ys[t.ys.length - 1]).filter((v): v is number => v !== undefined);
	const [a, b] = last;
	if (last.length !== 2 || !a || b === undefined) return "";
	const change = (b - a) / Math.abs(a);
	return `${change > 0 ? "+" : ""}${percent(change)} at the end`;
}
