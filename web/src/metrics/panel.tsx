/* The metrics of a run: one chart each, all on the same x and zoomed together. */
import type { JSX } from "preact";
import { useMemo, useState } from "preact/hooks";
import { query, runPath } from "../lib/api";
import { Chart } from "./chart";
import { machineValue, value } from "../lib/format";
import { useLoad, useVisible } from "../lib/hooks";
import { useSeries, type Series } from "./points";
import { isOver } from "../lib/model";
import { aggregate, hasSteps, toTrack, type Track, type XAxis } from "./series";
import type { Metrics, Run, Summary } from "../lib/types";
import { Choice, Empty, Toggle } from "../lib/ui";
import { AxisChoice, ResetZoom, useChartView, type ChartView } from "./view";

const MOST_LINES = 64;
const MANY_NODES = 12;

type View = "nodes" | "all";

interface Look extends ChartView {
	view: View;
}

export function ChartsPanel({ run }: { run: Run }): JSX.Element {
	const names = Object.keys(run.metrics ?? {});
	const [view, setView] = useState<View>(run.counts.nodes > MANY_NODES ? "all" : "nodes");
	const [machine, setMachine] = useState(false);
	const charts = useChartView();
	const look: Look = { ...charts, view };

	return (
		<section aria-label="Metrics">
			<div class="tools">
				<Choice
					label="Lines"
					now={view}
					options={[
						["nodes", "Per node"],
						["all", "Aggregate"],
					]}
					pick={setView}
				/>
				<AxisChoice view={charts} />
				<Toggle on={machine} set={setMachine} title="Processor, memory, network, disk and GPU of the nodes">
					Machine
				</Toggle>
				<ResetZoom view={charts} />
				<span class="spring" />
				<a class="button" href={runPath(run.id, "/metrics.csv")} download={`${run.id}.csv`}>
					CSV
				</a>
			</div>
			{!names.length && !machine && (
				<Empty>
					{isOver(run.state) ? "This run has no metrics." : "No metrics yet."} A pattern in the job file picks
					them from the output:
					<pre class="command">{`[metrics.loss]\npattern = 'step (?<step>\\d+).* loss=(?<value>[-+.0-9eE]+)'`}</pre>
				</Empty>
			)}
			<div class="charts">
				{names.map((name) => (
					<MetricChart key={name} run={run} name={name} sum={run.metrics?.[name]} look={look} />
				))}
			</div>
			{machine && <MachineCharts run={run} look={look} />}
		</section>
	);
}

function MachineCharts({ run, look }: { run: Run; look: Look }): JSX.Element {
	const { value: m, error } = useLoad<Metrics>(runPath(run.id, "/metrics") + query({ host: 1 }));
	const own = new Set(Object.keys(run.metrics ?? {}));
	const names = Object.keys(m?.metrics ?? {}).filter((n) => !own.has(n));
	if (error) return <Empty>{error.message}</Empty>;
	if (m && !names.length) return <Empty>There are no samples of the machines yet.</Empty>;
	/* Samples of machines have no steps. */
	const timed: Look = { ...look, axis: "time", zoom: look.axis === "time" ? look.zoom : null };
	return (
		<>
			<h2 class="sub">Machine</h2>
			<div class="charts">
				{names.map((name) => (
					<MetricChart key={name} run={run} name={name} sum={m?.metrics[name]?.all} look={timed} machine />
				))}
			</div>
		</>
	);
}

interface MetricProps {
	run: Run;
	name: string;
	sum?: Summary;
	look: Look;
	machine?: boolean; /* a sample of the node, not of the job: it has a unit, and no count that shows new points */
}

function MetricChart({ run, name, sum, look, machine }: MetricProps): JSX.Element {
	const [ref, visible] = useVisible<HTMLDivElement>();
	const version = machine ? (isOver(run.state) ? -2 : Math.floor(run.elapsed_ms / 2000)) : (sum?.count ?? 0);
	const [series, why] = useSeries(run.id, name, version, visible);
	const axis: XAxis = useMemo(() => chooseAxis(series, look.axis), [series, look.axis]);
	const [tracks, band] = useMemo(() => drawn(series, axis, look.view, run.created_ms), [series, axis, look.view]);
	const note = (
		<>
			{sum && !machine && sum.best !== undefined && (
				<>
					best <b class="num">{value(sum.best)}</b> · mean <b class="num">{value(sum.mean)}</b>
				</>
			)}
			{look.view === "nodes" && series && series.length > MOST_LINES && ` · ${MOST_LINES} of ${series.length} nodes`}
		</>
	);
	return (
		<div ref={ref}>
			<Chart
				title={name}
				note={note}
				tracks={tracks}
				band={band}
				axis={axis}
				log={look.log}
				show={machine ? (v) => machineValue(name, v) : undefined}
				zoom={axis === look.axis ? look.zoom : null}
				setZoom={look.setZoom}
				loading={series === null && !why}
				empty={why || undefined}
			/>
		</div>
	);
}

/* A metric without steps is always drawn over time. */
function chooseAxis(series: Series | null, wanted: XAxis): XAxis {
	if (wanted === "time" || !series) return wanted;
	return series.some((s) => hasSteps(s.points)) ? "step" : "time";
}

function drawn(series: Series | null, axis: XAxis, view: View, origin: number): [Track[], [Track, Track] | undefined] {
	const tracks = (series ?? []).map((s) => toTrack(s.node, s.points, axis, origin)).filter((t) => t.xs.length);
	if (view === "nodes") return [tracks.slice(0, MOST_LINES), undefined];
	if (!tracks.length) return [[], undefined];
	const [mean, least, most] = aggregate(tracks, axis);
	mean.label = `mean of ${tracks.length}`;
	return [[mean], tracks.length > 1 ? [least, most] : undefined];
}
