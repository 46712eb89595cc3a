import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { cost, elapsed, matches, mergeRuns, nodeLook, nodeText, progress, updateRuns, withDelta, words } from "../src/lib/model";
import type { Node, Run } from "../src/lib/types";
import { reveal, slice } from "../src/lib/virtual";

function run(id: string, more: Partial<Run> = {}): Run {
	return {
		id, name: id, state: "running", engine: "local", strategy: "single", verdict: null, created_ms: 0, ended_ms: null, elapsed_ms: 100,
		counts: { nodes: 4 }, ...more,
	};
}

function node(more: Partial<Node>): Node {
	return {
		name: "a-0", role: "a", rank: 0, index: 0, address: null, state: "running", attempt: 1, exit_code: null, signal: null, oom: false,
		reason: null, log_bytes: 0, err_bytes: 0, metrics: {}, ...more,
	};
}

function last(v: number) {
	return { first: 0, last: v, best: v, mean: v, count: 1 };
}

describe("a watched run", () => {
	const whole = run("a", { nodes: [node({ rank: 0 }), node({ rank: 1, name: "a-1" })] });

	it("takes what changed and keeps the rest", () => {
		const now = withDelta(whole, run("a", { delta: true, state: "collecting", nodes: [node({ rank: 1, name: "a-1", state: "exited" })] }));
		assert.equal(now?.state, "collecting");
		assert.deepEqual(now?.nodes?.map((n) => n.state), ["running", "exited"]);
		assert.equal(now?.delta, undefined);
		assert.equal(whole.nodes?.[1]?.state, "running");
	});
	it("is replaced by a whole one", () => {
		assert.equal(withDelta(run("b"), whole), whole);
	});
	it("is not known by its changes alone", () => {
		assert.equal(withDelta(null, run("a", { delta: true })), null);
	});
	it("has no node more than it had", () => {
		assert.equal(withDelta(whole, run("a", { delta: true, nodes: [node({ rank: 7 })] }))?.nodes?.length, 2);
	});
});

describe("how far a run is", () => {
	it("as it says itself", () => {
		assert.deepEqual(progress(run("a", { progress: { step: 12, total: 10 } })), { done: 10, total: 10, what: "step" });
	});
	it("from a counter and its end", () => {
		assert.deepEqual(progress(run("a", { metrics: { step: last(3), total: last(10) } })), { done: 3, total: 10, what: "step" });
		assert.deepEqual(progress(run("a", { metrics: { epoch: last(3), epochs: last(4) } })), { done: 3, total: 4, what: "epoch" });
	});
	it("of several nodes, in whole steps of their mean", () => {
		assert.deepEqual(progress(run("a", { metrics: { step: last(37.75), total: last(100) } })), { done: 37, total: 100, what: "step" });
	});
	it("from a share or a percentage", () => {
		assert.equal(progress(run("a", { metrics: { progress: last(0.5) } }))?.total, 1);
		assert.equal(progress(run("a", { metrics: { progress: last(50) } }))?.total, 100);
	});
	it("before it runs, the nodes that have come", () => {
		const r = run("a", { state: "gathering", counts: { nodes: 4, wanted: 1, launching: 1 } });
		assert.deepEqual(progress(r), { done: 2, total: 4, what: "nodes" });
		const elastic = run("a", { state: "gathering", counts: { nodes: 8, wanted: 1, launching: 1, dormant: 4 } });
		assert.deepEqual(progress(elastic), { done: 2, total: 4, what: "nodes" });
	});
	it("otherwise unknown", () => {
		assert.equal(progress(run("a", { metrics: { loss: last(1), step: last(3) } })), null);
	});
});

describe("what a node looks like", () => {
	const r = run("a", { cause_node: "a-0" });
	const cases: [Partial<Node>, string, string][] = [
		[{ state: "wanted" }, "wanted", "wanted"],
		[{ state: "wanted", dormant: true }, "dormant", "dormant"],
		[{ state: "running" }, "running", "running"],
		[{ state: "exited", exit_code: 0, end: "exit code 0" }, "done", "exit code 0"],
		[{ state: "released", exit_code: 3, end: "exit code 3" }, "failed", "exit code 3"],
		[{ state: "exited", signal: 15, name: "b-0", end: "killed by SIGTERM" }, "stopped", "killed by SIGTERM"],
		[{ state: "exited", signal: 15, end: "killed by SIGTERM" }, "failed", "killed by SIGTERM"],
		[{ state: "exited", signal: 11, name: "b-0" }, "failed", "failed"],
		[{ state: "exited", signal: 9, oom: true, name: "b-0", end: "killed by SIGKILL, out of memory" }, "failed", "killed by SIGKILL, out of memory"],
		[{ state: "released", reason: "port 80 is taken", end: "port 80 is taken" }, "failed", "port 80 is taken"],
		[{ state: "released" }, "released", "released"],
		[{ state: "lost", end: "lost: no word for 15 s" }, "lost", "lost: no word for 15 s"],
		[{ state: "lost" }, "lost", "lost"],
		[{ state: "of tomorrow" }, "wanted", "wanted"],
	];
	for (const [n, look, text] of cases) {
		it(`${JSON.stringify(n)} is ${look}`, () => {
			assert.equal(nodeLook(node(n), r), look);
			assert.equal(nodeText(node(n), nodeLook(node(n), r)), text);
		});
	}
});

describe("a page of the list is laid over what is known", () => {
	const known = [5, 4, 3, 2, 1].map((i) => run(`r${i}`, { created_ms: i }));
	const page = (ids: number[]) => ids.map((i) => run(`r${i}`, { created_ms: i, state: "failed" }));
	const show = (runs: Run[]) => runs.map((r) => `${r.id}${r.state === "failed" ? "!" : ""}`).join(" ");
	it("new ones come on top", () => assert.equal(show(mergeRuns(known, page([6, 5, 4]), false)), "r6! r5! r4! r3 r2 r1"));
	it("removed ones go", () => assert.equal(show(mergeRuns(known, page([5, 3]), false)), "r5! r3! r2 r1"));
	it("if the last of the page is new too, age decides", () => {
		assert.equal(show(mergeRuns(known, page([8, 7, 6]), false)), "r8! r7! r6! r5 r4 r3 r2 r1");
	});
	it("a page of all runs is all runs", () => {
		assert.equal(show(mergeRuns(known, page([5]), true)), "r5!");
		assert.equal(show(mergeRuns(known, [], true)), "");
	});
	it("an update keeps the order", () => assert.equal(show(updateRuns(known, page([1, 9, 4]))), "r5 r4! r3 r2 r1!"));
});

describe("a search", () => {
	const r = run("gpt2-abcd", {
		state: "failed",
		engine: "aws.ec2",
		cause: "trainer-1 exited",
		tags: ["baseline"],
		params: { lr: 0.1, model: "net" },
	});
	it("wants every word, anywhere", () => {
		assert.ok(matches(r, words("GPT failed")));
		assert.ok(matches(r, words(" ec2  trainer-1 ")));
		assert.ok(!matches(r, words("gpt succeeded")));
		assert.ok(matches(r, words("")));
		assert.ok(matches(r, words("baseline lr=0.1 model=net")));
		assert.ok(!matches(r, words("lr=0.2")));
	});
});

describe("figures of a run", () => {
	it("the duration of a living run grows, of a dead one not", () => {
		assert.equal(elapsed(run("a"), 1000, 1500), 600);
		assert.equal(elapsed(run("a", { state: "failed" }), 1000, 1500), 100);
	});
	it("this machine costs nothing, another an unknown sum", () => {
		assert.deepEqual([cost(run("a")), cost(run("a", { engine: "aws.ec2" })), cost(run("a", { cost_usd: 2 }))], [0, null, 2]);
	});
});

describe("only rows in sight are drawn", () => {
	it("with some on each side", () => assert.deepEqual(slice(1000, 100, 10, 1000), { from: 92, to: 118 }));
	it("never outside the list", () => {
		assert.deepEqual(slice(0, 100, 10, 5), { from: 0, to: 5 });
		assert.deepEqual(slice(99_999, 100, 10, 5), { from: 4, to: 5 });
		assert.deepEqual(slice(0, 100, 10, 0), { from: 0, to: 0 });
	});
	it("a row is brought into sight by the shortest way", () => {
		assert.deepEqual([reveal(5, 0, 100, 10), reveal(20, 0, 100, 10), reveal(0, 50, 100, 10)], [null, 110, 0]);
	});
});
