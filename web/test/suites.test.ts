import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { repeats } from "../src/compare/picker";
import { neighbour } from "../src/lib/arrows";
import { wordHref } from "../src/lib/router";
import type { Run, Suite, Variant } from "../src/lib/types";
import { ended, entryLook, matrixOf, suiteElapsed, variantFits } from "../src/suites/model";

function variant(params: Record<string, unknown>, states: string[] = ["waiting"], more: Partial<Variant> = {}): Variant {
	const name = Object.values(params).join(",");
	const runs = states.map((state, i) => ({ repeat: i + 1, state, attempt: 1, run: state === "waiting" ? null : `r-${name}-${i}`, cause: null }));
	return { name, job: "j.toml", params, runs, ...more };
}

function suite(axes: string[], variants: Variant[], more: Partial<Suite> = {}): Suite {
	return {
		id: "s-abcd", name: "s", state: "running", cause: null, created_ms: 0, ended_ms: null, elapsed_ms: 100, counts: { runs: 1 }, axes, variants, ...more,
	};
}

describe("a matrix of two axes", () => {
	const base = variant({}, ["waiting"], { name: "base", experiment: true });
	const s = suite(["count", "env.B"], [
		variant({ count: 1, "env.B": "x" }), variant({ count: 1, "env.B": "y" }), variant({ count: 2, "env.B": "x" }), base,
	]);
	const m = matrixOf(s);
	it("has the first down and the second across, as written", () => {
		assert.deepEqual([m?.rows, m?.columns], [["1", "2"], ["x", "y"]]);
		assert.equal(m?.at(0, 1)?.name, "1,y");
	});
	it("has a gap where a combination is excluded", () => assert.equal(m?.at(1, 1), undefined));
	it("leaves experiments beside it", () => assert.deepEqual(m?.rest.map((v) => v.name), ["base"]));
	it("tells lists from words", () => {
		const t = matrixOf(suite(["a", "b"], [variant({ a: ["x", "y"], b: 1 }), variant({ a: "x", b: 1 })]));
		assert.deepEqual(t?.rows, ['["x","y"]', "x"]);
	});
	it("an experiment that sets both keys is none of it", () => {
		const odd = variant({ count: 9, "env.B": "z" }, ["waiting"], { experiment: true });
		assert.deepEqual(matrixOf({ ...s, variants: [...(s.variants ?? []), odd] })?.rows, ["1", "2"]);
	});
	it("one axis, three axes, none, or too many columns are a list", () => {
		for (const axes of [[], ["count"], ["count", "env.B", "c"]]) assert.equal(matrixOf({ ...s, axes }), null);
		assert.equal(matrixOf(suite(["a", "b"], Array.from({ length: 17 }, (_, i) => variant({ a: 1, b: i })))), null);
	});
});

describe("the variants that are shown", () => {
	const v = variant({ lr: 0.1 }, ["succeeded", "failed"]);
	it("by what their runs are", () => {
		assert.ok(variantFits(v, "failed", []));
		assert.ok(!variantFits(v, "done", []));
		assert.ok(!variantFits(v, "active", []));
		assert.ok(variantFits(variant({}, ["succeeded", "starting"]), "active", []));
		assert.ok(variantFits(variant({}, ["succeeded", "succeeded"]), "done", []));
		assert.ok(variantFits(variant({}, ["skipped"]), "failed", []));
	});
	it("by every word, in name, run and cause", () => {
		assert.ok(variantFits(v, "all", ["0.1", "r-0.1-1"]));
		assert.ok(!variantFits(v, "all", ["0.1", "0.2"]));
	});
});

describe("a suite", () => {
	it("has ended runs of four kinds", () => assert.equal(ended({ runs: 9, succeeded: 1, failed: 2, cancelled: 3, skipped: 1, running: 2 }), 7));
	it("has a clock until it has ended", () => {
		assert.equal(suiteElapsed(suite([], []), 1000, 1500), 600);
		assert.equal(suiteElapsed(suite([], [], { state: "failed" }), 1000, 1500), 100);
	});
	it("of tomorrow has states that are shown as waiting", () => assert.equal(entryLook("levitating"), "wanted"));
});

describe("arrows in a grid", () => {
	/* Two rows of three squares, and one of two further right. */
	const places = [0, 10, 20, 0, 10, 20, 10, 20].map((left, i) => ({ left, top: Math.floor(i / 3) * 20 }));
	for (const [key, from, to] of [
		["ArrowRight", 2, 3], ["ArrowLeft", 0, -1], ["ArrowRight", 7, -1], ["ArrowDown", 1, 4], ["ArrowDown", 3, 6], ["ArrowDown", 5, 7],
		["ArrowUp", 6, 4], ["ArrowUp", 1, -1], ["ArrowDown", 7, -1], ["Home", 5, 0], ["End", 1, 7], ["a", 1, -1],
	] as [string, number, number][]) {
		it(`${key} from ${from} leads to ${to}`, () => assert.equal(neighbour(places, from, key), to));
	}
});

describe("what is compared", () => {
	it("has a page, if it is one run or a suite", () => {
		assert.equal(wordHref("suite:a-abcd", ["x", "y"]), "/suite/a-abcd");
		assert.equal(wordHref("a-abcd", ["a-abcd"]), "/run/a-abcd");
		assert.equal(wordHref("a-abcd", undefined), "/run/a-abcd");
		assert.equal(wordHref("a", ["a-abcd", "a-efgh"]), null);
		assert.equal(wordHref("a@last5", undefined), null);
		assert.equal(wordHref("a-abcd,a-efgh", undefined), null);
	});
	it("may be the repeats of a name, of which two have succeeded", () => {
		const run = (name: string, state: string, i: number): Run =>
			({ id: `${name}-${i}`, name, state, engine: "local", strategy: "single", verdict: null, created_ms: 0, ended_ms: null, elapsed_ms: 0, counts: { nodes: 1 } });
		const runs = [run("a", "succeeded", 1), run("b", "succeeded", 2), run("a", "succeeded", 3), run("b", "failed", 4), run("a", "running", 5)];
		assert.deepEqual(repeats(runs), [{ word: "a", runs: 2 }]);
	});
});
