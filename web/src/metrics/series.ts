/*
 * From the points of the service to the data of a chart: one common x for all lines, no more points than the
 * screen has columns, and no lost spike.
 */
import type { Point } from "../lib/types";

export interface Track {
	label: string;
	xs: number[]; /* ascending */
	ys: number[];
}

/* What uPlot takes: x, then one row per line; null where a line has no point. */
export type Aligned = [number[], ...(number | null)[][]];

export type XAxis = "step" | "time";

/*
 * Points of one node as x and y. Time is in seconds since `originMs`. Steps that go back (a restart from a checkpoint)
 * replace the earlier points of these steps.
 */
export function toTrack(label: string, points: readonly Point[], axis: XAxis, originMs: number): Track {
	const xs: number[] = [];
	const ys: number[] = [];
	for (const [time, step, v] of points) {
		const x = axis === "step" ? step : (time - originMs) / 1000;
		if (x === null || !Number.isFinite(v)) continue;
		while (xs.length && (xs[xs.length - 1] as number) >= x) {
			xs.pop();
			ys.pop();
		}
		xs.push(x);
		ys.push(v);
	}
	return { label, xs, ys };
}

export function hasSteps(points: readonly Point[]): boolean {
	return points.some((p) => p[1] !== null);
}

/* First index with xs[i] >= x. */
export function lowerBound(xs: readonly number[], x: number): number {
	let lo = 0;
	let hi = xs.length;
	while (lo < hi) {
		const mid = (lo + hi) >> 1;
		if ((xs[mid] as number) < x) lo = mid + 1;
		else hi = mid;
	}
	return lo;
}

export function extent(tracks: readonly Track[]): [number, number] | null {
	let lo = Infinity;
	let hi = -Infinity;
	for (const t of tracks) {
		if (!t.xs.length) continue;
		lo = Math.min(lo, t.xs[0] as number);
		hi = Math.max(hi, t.xs[t.xs.length - 1] as number);
	}
	return lo <= hi ? [lo, hi] : null;
}

/* The part in [lo, hi] and one point on each side, so that lines reach the edges. */
function clip(t: Track, lo: number, hi: number): Track {
	const from = Math.max(0, lowerBound(t.xs, lo) - 1);
	let to = lowerBound(t.xs, hi);
	while (to < t.xs.length && (t.xs[to] as number) <= hi) to++;
	to = Math.min(t.xs.length, to + 1);
	return { label: t.label, xs: t.xs.slice(from, to), ys: t.ys.slice(from, to) };
}

/* Every x of every line: exact, for few points. */
function join(tracks: readonly Track[]): Aligned {
	const set = new Set<number>();
	for (const t of tracks) for (const x of t.xs) set.add(x);
	const xs = [...set].sort((a, b) => a - b);
	const index = new Map(xs.map((x, i) => [x, i]));
	const rows = tracks.map((t) => {
		const row = new Array<number | null>(xs.length).fill(null);
		t.xs.forEach((x, i) => {
			row[index.get(x) as number] = t.ys[i] as number;
		});
		return row;
	});
	return [xs, ...rows];
}

/* Each column of the screen keeps the least and the greatest value of each line, in the order they came. */
function columns(tracks: readonly Track[], lo: number, hi: number, n: number): Aligned {
	const width = (hi - lo) / n || 1;
	const xs = new Array<number>(2 * n);
	for (let i = 0; i < n; i++) {
		xs[2 * i] = lo + (i + 0.25) * width;
		xs[2 * i + 1] = lo + (i + 0.75) * width;
	}
	const rows = tracks.map((t) => {
		const row = new Array<number | null>(2 * n).fill(null);
		let i = 0;
		while (i < t.xs.length) {
			const bin = Math.max(0, Math.min(n - 1, Math.floor(((t.xs[i] as number) - lo) / width)));
			let min = i;
			let max = i;
			let k = i;
			for (; k < t.xs.length; k++) {
				const b = Math.max(0, Math.min(n - 1, Math.floor(((t.xs[k] as number) - lo) / width)));
				if (b !== bin) break;
				if ((t.ys[k] as number) < (t.ys[min] as number)) min = k;
				if ((t.ys[k] as number) > (t.ys[max] as number)) max = k;
			}
			row[2 * bin] = t.ys[Math.min(min, max)] as number;
			row[2 * bin + 1] = t.ys[Math.max(min, max)] as number;
			i = k;
		}
		return row;
	});
	return [xs, ...rows];
}

/* The data to draw for [lo, hi], with at most about `budget` points per line. */
export function align(tracks: readonly Track[], lo: number, hi: number, budget: number): Aligned {
	const parts = tracks.map((t) => clip(t, lo, hi));
	let most = 0;
	let all = 0;
	for (const t of parts) {
		most = Math.max(most, t.xs.length);
		all += t.xs.length;
	}
	if (all <= 4 * budget || (most <= budget && sameX(parts))) return join(parts);
	return columns(parts, lo, hi, Math.max(1, budget >> 1));
}

function sameX(tracks: readonly Track[]): boolean {
	const first = tracks[0];
	return tracks.every((t) => t.xs.length === first?.xs.length && t.xs[0] === first.xs[0]);
}

/*
 * All lines as one: mean, least and greatest over the lines at each x. By step each x is a step; times never
 * coincide, so they are put into equal slices first, and a line counts in a slice with its mean.
 */
export function aggregate(tracks: readonly Track[], axis: XAxis, slices = 600): [Track, Track, Track] {
	const range = extent(tracks);
	const mean: Track = { label: "mean", xs: [], ys: [] };
	const least: Track = { label: "min", xs: [], ys: [] };
	const most: Track = { label: "max", xs: [], ys: [] };
	if (!range) return [mean, least, most];
	const [lo, hi] = range;
	const width = axis === "time" && hi > lo ? (hi - lo) / slices : 0;
	const at = new Map<number, { sum: number; n: number; min: number; max: number }>();
	for (const t of tracks) {
		let i = 0;
		while (i < t.xs.length) {
			const key = width ? Math.min(slices - 1, Math.floor(((t.xs[i] as number) - lo) / width)) : (t.xs[i] as number);
			let sum = 0;
			let n = 0;
			do {
				sum += t.ys[i++] as number;
				n++;
			} while (
				width &&
				i < t.xs.length &&
				Math.min(slices - 1, Math.floor(((t.xs[i] as number) - lo) / width)) === key
			);
			const v = sum / n;
			const cell = at.get(key);
			if (cell) {
				cell.sum += v;
				cell.n++;
				cell.min = Math.min(cell.min, v);
				cell.max = Math.max(cell.max, v);
			} else {
				at.set(key, { sum: v, n: 1, min: v, max: v });
			}
		}
	}
	for (const key of [...at.keys()].sort((a, b) => a - b)) {
		const cell = at.get(key) as { sum: number; n: number; min: number; max: number };
		const x = width ? lo + (key + 0.5) * width : key;
		mean.xs.push(x);
		mean.ys.push(cell.sum / cell.n);
		least.xs.push(x);
		least.ys.push(cell.min);
		most.xs.push(x);
		most.ys.push(cell.max);
	}
	return [mean, least, most];
}

/* Without values that a logarithmic scale cannot show. */
export function positive(data: Aligned): Aligned {
	const [xs, ...rows] = data;
	return [xs, ...rows.map((r) => r.map((v) => (v !== null && v > 0 ? v : null)))];
}
