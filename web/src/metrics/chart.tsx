/*
 * One chart: lines over a common x, a band behind them, zoom by dragging or by keys. uPlot draws; the data is
 * thinned to the width of the screen (series.ts), again for each zoom, so that zooming in shows more points.
 */
import type { JSX } from "preact";
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import uPlot from "uplot";
import { duration, value } from "../lib/format";
import { useSize } from "../lib/hooks";
import { align, extent, positive, type Aligned, type Track, type XAxis } from "./series";
import { COLOURS, Icon, Swatch } from "../lib/ui";
import type { Zoom } from "./view";

export type Show = (v: number | null | undefined) => string;

export interface ChartProps {
	title: string;
	note?: JSX.Element | string;
	tracks: Track[];
	band?: [Track, Track];
	axis: XAxis;
	log: boolean;
	show?: Show; /* formats a value with its unit; default: the plain number */
	zoom: Zoom;
	setZoom: (z: Zoom) => void;
	loading?: boolean;
	empty?: string;
}

const HEIGHT = 210;
const DASHES: number[][] = [[], [6, 3], [2, 3], [10, 3, 2, 3]];
const LONE_SIZE = 9;
const MIN_DRAG = 5;
const FEW = 4; /* lines that may be thick */
const AXIS_FONT = "11px system-ui, sans-serif";

let palette: Record<string, string> | null = null;
const charts = new Set<uPlot>();

function repaint(): void {
	palette = null;
	for (const u of charts) u.redraw(false, true);
}
window.addEventListener("regatta-theme", repaint);

function colour(name: string): string {
	if (!palette) {
		const css = getComputedStyle(document.documentElement);
		palette = {};
		for (const k of ["--dim", "--line", "--faint", "--bg"]) palette[k] = css.getPropertyValue(k).trim();
		for (let i = 0; i < COLOURS; i++) palette[`--s${i}`] = css.getPropertyValue(`--s${i}`).trim();
	}
	return palette[name] ?? "";
}

function lineColour(i: number): string {
	return colour(`--s${i % COLOURS}`);
}

function dash(i: number): number[] {
	return DASHES[Math.floor(i / COLOURS) % DASHES.length] as number[];
}

function tick(axis: XAxis, v: number): string {
	if (axis === "step") return value(v);
	if (v < 0) return `−${tick(axis, -v)}`;
	if (v < 120) return `${Number(v.toFixed(2))} s`;
	if (v < 7200) return `${Math.floor(v / 60)}:${String(Math.round(v % 60)).padStart(2, "0")}`;
	return duration(v * 1000);
}

function isLone(t: Track): boolean {
	return t.xs.length === 1;
}

function seriesOptions(tracks: Track[], banded: boolean): uPlot.Series[] {
	const lines = tracks.map((t, i): uPlot.Series => ({
		label: t.label,
		stroke: () => lineColour(i),
		width: tracks.length > FEW ? 1 : 1.5,
		dash: dash(i),
		spanGaps: true,
		/* A line of one point is drawn as a dot. */
		points: isLone(t) ? { show: true, size: LONE_SIZE, fill: () => lineColour(i) } : { size: 4 },
	}));
	if (!banded) return lines;
	const edge = (label: string): uPlot.Series => ({
		label,
		stroke: "transparent",
		width: 0,
		spanGaps: true,
		points: { show: false },
	});
	return [...lines, edge("min"), edge("max")];
}

function options(p: ChartProps, width: number, on: { cursor: (u: uPlot) => void; select: (u: uPlot) => void }): uPlot.Options {
	const n = p.tracks.length;
	const show = p.show ?? value;
	const axisLook = {
		stroke: () => colour("--dim"),
		font: AXIS_FONT,
		grid: { stroke: () => colour("--faint"), width: 1 },
		ticks: { show: false },
	};
	return {
		width,
		height: HEIGHT,
		padding: [10, 12, 0, 0],
		legend: { show: false },
		cursor: {
			sync: { key: `regatta-${p.axis}`, setSeries: false },
			drag: { x: true, y: false, setScale: false },
			points: { size: 6 },
			bind: { dblclick: () => null },
		},
		scales: { x: { time: false }, y: { distr: p.log ? 3 : 1 } },
		axes: [
			{ ...axisLook, size: 28, values: (_u, vs) => vs.map((v) => tick(p.axis, v)) },
			{ ...axisLook, size: p.show ? 72 : 58, values: (_u, vs) => vs.map((v) => (v === null ? "" : show(v))) },
		],
		series: [{}, ...seriesOptions(p.tracks, p.band !== undefined)],
		bands: p.band ? [{ series: [n + 2, n + 1], fill: () => `${lineColour(0)}26` }] : undefined,
		hooks: { setCursor: [on.cursor], setSelect: [on.select] },
	};
}

export function Chart(p: ChartProps): JSX.Element {
	const [box, size] = useSize<HTMLDivElement>();
	const plot = useRef<uPlot | null>(null);
	const [hover, setHover] = useState<number | null>(null);
	const [off, setOff] = useState<ReadonlySet<string>>(new Set());
	const latest = useRef(p);
	latest.current = p;

	const all = p.band ? [...p.tracks, ...p.band] : p.tracks;
	const range = useMemo(() => extent(all), [p.tracks, p.band]);
	const view = p.zoom ?? range;
	const data = useMemo((): Aligned => {
		if (!view) return [[]];
		const aligned = align(all, view[0], view[1], Math.max(200, size.width * 2));
		return p.log ? positive(aligned) : aligned;
	}, [p.tracks, p.band, p.log, view?.[0], view?.[1], size.width]);

	/* A new plot only when its lines change; otherwise the old one gets new data. */
	const shape = `${p.axis} ${p.log} ${p.band ? "band" : ""} ${p.tracks.map((t) => (isLone(t) ? "• " : "") + t.label).join("\n")}`;
	const ready = size.width > 0 && range !== null;
	useEffect(() => {
		if (!box.current || !ready) return;
		const u = new uPlot(
			options(latest.current, size.width, {
				cursor: (c) => setHover(c.cursor.idx ?? null),
				select: (c) => {
					if (c.select.width < MIN_DRAG) return;
					const from = c.posToVal(c.select.left, "x");
					const to = c.posToVal(c.select.left + c.select.width, "x");
					c.setSelect({ left: 0, top: 0, width: 0, height: 0 }, false);
					latest.current.setZoom([from, to]);
				},
			}),
			[[]] as unknown as uPlot.AlignedData,
			box.current,
		);
		u.over.addEventListener("dblclick", () => latest.current.setZoom(null));
		plot.current = u;
		charts.add(u);
		return () => {
			charts.delete(u);
			u.destroy();
			plot.current = null;
		};
	}, [shape, ready]);
	useEffect(() => {
		const u = plot.current;
		if (!u || !view) return;
		const [lo, hi] = view[0] === view[1] ? [view[0] - 0.5, view[1] + 0.5] : view;
		u.batch(() => {
			u.setData(data as uPlot.AlignedData, false);
			u.setScale("x", { min: lo, max: hi });
		});
	}, [data, shape, ready]);
	useEffect(() => plot.current?.setSize({ width: size.width, height: HEIGHT }), [size.width]);
	useEffect(() => {
		p.tracks.forEach((t, i) => plot.current?.setSeries(i + 1, { show: !off.has(t.label) }));
	}, [off, shape, ready]);

	const zoomBy = (factor: number, shift = 0): void => {
		if (!view || !range) return;
		const middle = (view[0] + view[1]) / 2 + shift * (view[1] - view[0]);
		const half = ((view[1] - view[0]) * factor) / 2;
		const next: [number, number] = [Math.max(range[0], middle - half), Math.min(range[1], middle + half)];
		p.setZoom(next[0] <= range[0] && next[1] >= range[1] ? null : next);
	};
	const onKey = (e: KeyboardEvent): void => {
		const acts: Record<string, () => void> = {
			"+": () => zoomBy(0.5),
			"=": () => zoomBy(0.5),
			"-": () => zoomBy(2),
			ArrowLeft: () => zoomBy(1, -0.25),
			ArrowRight: () => zoomBy(1, 0.25),
			"0": () => p.setZoom(null),
			Escape: () => p.setZoom(null),
		};
		const act = acts[e.key];
		if (!act || e.ctrlKey || e.metaKey || e.altKey) return;
		e.preventDefault();
		act();
	};

	return (
		<figure class="chart" data-chart={p.title} data-zoomed={p.zoom !== null}>
			<figcaption>
				<h3>{p.title}</h3>
				<span class="dim">{p.note}</span>
				<span class="spring" />
				<button type="button" class="quiet" aria-label={`${p.title}: zoom in`} onClick={() => zoomBy(0.5)}>
					<Icon name="plus" />
				</button>
				<button type="button" class="quiet" aria-label={`${p.title}: zoom out`} onClick={() => zoomBy(2)}>
					<Icon name="minus" />
				</button>
				<button
					type="button"
					class="quiet"
					aria-label={`${p.title}: whole range`}
					disabled={p.zoom === null}
					onClick={() => p.setZoom(null)}
				>
					<Icon name="reset" />
				</button>
			</figcaption>
			<div
				class="plot"
				ref={box}
				tabIndex={0}
				role="img"
				aria-label={`${p.title}, ${summary(p.tracks, p.show ?? value)}. Plus and minus zoom, arrows move, 0 shows all.`}
				onKeyDown={onKey}
			>
				{!range && <p class="dim">{p.loading ? "loading…" : (p.empty ?? "no points yet")}</p>}
			</div>
			<Legend tracks={p.tracks} band={p.band} data={data} hover={hover} axis={p.axis} show={p.show ?? value} off={off} setOff={setOff} />
		</figure>
	);
}

function summary(tracks: Track[], show: Show): string {
	return tracks
		.slice(0, 4)
		.map((t) => `${t.label} ${show(t.ys[t.ys.length - 1])}`)
		.join(", ");
}

/* The value at the cursor, else the last one; a line without a point there shows its previous value. */
function valueAt(row: (number | null)[] | undefined, idx: number): number | null {
	for (let i = idx; row && i >= 0 && i > idx - 50; i--) {
		const v = row[i];
		if (v !== null && v !== undefined) return v;
	}
	return null;
}

function Legend(props: {
	tracks: Track[];
	band?: [Track, Track];
	data: Aligned;
	hover: number | null;
	axis: XAxis;
	show: Show;
	off: ReadonlySet<string>;
	setOff: (s: ReadonlySet<string>) => void;
}): JSX.Element {
	const { tracks, band, data, hover, off } = props;
	const x = hover === null ? null : data[0][hover];
	const show = (t: Track, row: number): string =>
		props.show(hover === null ? t.ys[t.ys.length - 1] : valueAt(data[row] as (number | null)[], hover));
	return (
		<div class="legend">
			<span class="at num">{x === null || x === undefined ? "last" : tick(props.axis, x)}</span>
			{tracks.map((t, i) => (
				<button
					type="button"
					key={t.label}
					class="key"
					aria-pressed={!off.has(t.label)}
					title={`Show or hide ${t.label}`}
					onClick={() => {
						const next = new Set(off);
						if (!next.delete(t.label)) next.add(t.label);
						props.setOff(next);
					}}
				>
					<Swatch i={i} dash={dash(i).join(" ") || undefined} />
					<span class="who">{t.label}</span>
					<span class="num">{show(t, i + 1)}</span>
				</button>
			))}
			{band && (
				<span class="key range">
					<span class="who">min–max</span>
					<span class="num">
						{show(band[0], tracks.length + 1)} – {show(band[1], tracks.length + 2)}
					</span>
				</span>
			)}
		</div>
	);
}
