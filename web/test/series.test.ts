import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { aggregate, align, extent, hasSteps, lowerBound, positive, toTrack, type Track } from "../src/metrics/series";
import type { Point } from "../src/lib/types";

function track(label: string, n: number, f: (i: number) => number): Track {
	return { label, xs: Array.from({ length: n }, (_, i) => i), ys: Array.from({ length: n }, (_, i) => f(i)) };
}

describe("points become a line", () => {
	const points: Point[] = [
		[1000, 1, 5],
		[2000, 2, 4],
		[3000, null, 9],
		[4000, 3, NaN],
		[5000, 2, 3],
		[6000, 3, 2],
	];
	it("by step; a restart overwrites what it repeats", () => {
		assert.deepEqual(toTrack("a", points, "step", 0), { label: "a", xs: [1, 2, 3], ys: [5, 3, 2] });
	});
	it("by time, in seconds from the origin", () => {
		assert.deepEqual(toTrack("a", points, "time", 1000).xs, [0, 1, 2, 4, 5]);
	});
	it("knows whether there are steps", () => {
		assert.ok(hasSteps(points));
		assert.ok(!hasSteps([[1, null, 2]]));
	});
});

describe("what is drawn fits the screen", () => {
	it("few points are all there, at their own x", () => {
		const a = track("a", 3, (i) => i);
		const b: Track = { label: "b", xs: [1, 5], ys: [10, 50] };
		assert.deepEqual(align([a, b], 0, 5, 1000), [[0, 1, 2, 5], [0, 1, 2, null], [null, 10, null, 50]]);
	});
	it("many points become no more than the budget, and no spike is lost", () => {
		const spike = track("a", 100_000, (i) => (i === 77_777 ? 1000 : i === 12_345 ? -1000 : Math.sin(i)));
		const [xs, ys] = align([spike, track("b", 100_000, () => 0)], 0, 99_999, 800);
		assert.ok(xs.length <= 800);
		assert.equal(Math.max(...(ys as number[])), 1000);
		assert.equal(Math.min(...(ys as number[])), -1000);
		assert.ok(xs.every((x, i) => i === 0 || x > (xs[i - 1] as number)));
	});
	it("a closer look shows the points themselves", () => {
		const [xs] = align([track("a", 100_000, (i) => i)], 500, 510, 800);
		assert.deepEqual(xs, [499, 500, 501, 502, 503, 504, 505, 506, 507, 508, 509, 510, 511]);
	});
	it("an empty line stays a line", () => {
		assert.deepEqual(align([{ label: "a", xs: [], ys: [] }], 0, 1, 100), [[], []]);
	});
	it("a logarithmic scale has only what is above zero", () => {
		assert.deepEqual(positive([[1, 2, 3], [0, -1, 5]]), [[1, 2, 3], [null, null, 5]]);
	});
});

describe("all nodes as one", () => {
	it("by step: mean, least and greatest at each", () => {
		const [mean, least, most] = aggregate([track("a", 3, (i) => i), track("b", 2, (i) => i + 10)], "step");
		assert.deepEqual(mean, { label: "mean", xs: [0, 1, 2], ys: [5, 6, 2] });
		assert.deepEqual(least.ys, [0, 1, 2]);
		assert.deepEqual(most.ys, [10, 11, 2]);
	});
	it("by time: in slices, each node with its own mean", () => {
		const a: Track = { label: "a", xs: [0, 0.1, 9.9], ys: [0, 2, 4] };
		const b: Track = { label: "b", xs: [0.2, 10], ys: [11, 8] };
		const [mean] = aggregate([a, b], "time", 2);
		assert.deepEqual(mean.xs, [2.5, 7.5]);
		assert.deepEqual(mean.ys, [6, 6]);
	});
	it("none is nothing", () => {
		assert.deepEqual(aggregate([], "step").map((t) => t.xs), [[], [], []]);
		assert.equal(extent([{ label: "a", xs: [], ys: [] }]), null);
	});
});

describe("looking up an x", () => {
	it("gives the first that is not below", () => {
		assert.deepEqual([-1, 0, 1, 2.5, 9].map((x) => lowerBound([0, 1, 2, 3], x)), [0, 0, 1, 3, 4]);
	});
});
