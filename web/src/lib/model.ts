/* Derived from a run object: whether it has ended, its progress, the state of each node. */
import type { Node, Run } from "./types";

export const PHASES = ["accepted", "provisioning", "gathering", "running", "collecting", "cleaning"] as const;
const FINAL = new Set(["succeeded", "failed", "cancelled"]);

export function isOver(state: string): boolean {
	return FINAL.has(state);
}

/* Applies a delta to the run; a line that is no delta is the whole run. A delta before the first whole run is dropped. */
export function withDelta(known: Run | null, next: Run): Run | null {
	if (!next.delta) return next;
	if (!known) return null;
	const nodes = (known.nodes ?? []).slice();
	for (const n of next.nodes ?? []) if (n.rank < nodes.length) nodes[n.rank] = n;
	return { ...known, ...next, delta: undefined, nodes };
}

/* The duration of an active run now: elapsed_ms of the object, and the time since it arrived. */
export function elapsed(run: Run, receivedMs: number, nowMs: number): number {
	return isOver(run.state) ? run.elapsed_ms : run.elapsed_ms + Math.max(0, nowMs - receivedMs);
}

export interface Progress {
	done: number;
	total: number;
	what: string;
}

const COUNTERS: [string, string[]][] = [
	["step", ["total", "total_steps", "max_steps", "steps"]],
	["iteration", ["iterations", "total", "max_iterations"]],
	["epoch", ["epochs", "total_epochs", "max_epochs"]],
];

/*
 * The progress of the job: its own figure, else a metric that counts steps or epochs with the metric
 * that is their total (COUNTERS). Before the job runs, the number of nodes that are connected.
 */
export function progress(run: Run): Progress | null {
	if (run.progress && run.progress.total > 0) {
		return { done: Math.min(run.progress.step, run.progress.total), total: run.progress.total, what: "step" };
	}
	const m = run.metrics ?? {};
	for (const [name, ends] of COUNTERS) {
		const at = m[name];
		const end = ends.map((e) => m[e]).find((e) => e && e.last > 0);
		/* `last` is the mean over the nodes. */
		if (at && end) return { done: Math.floor(Math.min(at.last, end.last)), total: end.last, what: name };
	}
	const share = m.progress;
	if (share && share.last >= 0) {
		const top = share.last <= 1 ? 1 : 100;
		return { done: Math.min(share.last, top), total: top, what: "share" };
	}
	if (run.state === "provisioning" || run.state === "gathering") {
		const c = run.counts;
		const waiting = (c.wanted ?? 0) + (c.launching ?? 0);
		const total = c.nodes - (c.dormant ?? 0);
		return { done: Math.max(0, total - waiting), total, what: "nodes" };
	}
	return null;
}

export function cost(run: Run): number | null {
	return run.cost_usd ?? (run.engine === "local" ? 0 : null);
}

/* How a node is shown: by its state, or by how it ended. */
export type NodeLook =
	| "dormant"
	| "wanted"
	| "launching"
	| "here"
	| "ready"
	| "running"
	| "done"
	| "failed"
	| "stopped"
	| "lost"
	| "released";

export const LOOKS: NodeLook[] = [
	"dormant",
	"wanted",
	"launching",
	"here",
	"ready",
	"running",
	"done",
	"failed",
	"stopped",
	"lost",
	"released",
];

const SIGTERM = 15;
const SIGKILL = 9;

export function nodeLook(n: Node, run: Run): NodeLook {
	if (n.dormant) return "dormant";
	if (n.state === "lost") return "lost";
	if (n.state === "exited" || n.state === "released") {
		if (n.exit_code === 0) return "done";
		if (n.oom || (n.exit_code !== null && n.exit_code > 0)) return "failed";
		if (n.signal !== null) {
			/* A node that Regatta itself stopped has not failed. */
			const told = n.signal === SIGTERM || n.signal === SIGKILL;
			return told && run.cause_node !== n.name ? "stopped" : "failed";
		}
		if (n.reason) return "failed";
		return n.state === "released" ? "released" : "done";
	}
	return (LOOKS as string[]).includes(n.state) ? (n.state as NodeLook) : "wanted";
}

export function nodeText(n: Node, look: NodeLook): string {
	/* The service words how a node ended, so that all front ends agree. */
	const ended = look === "done" || look === "failed" || look === "stopped" || look === "lost";
	return (ended && n.end) || look;
}

export function logBytes(run: Run): number {
	return (run.nodes ?? []).reduce((sum, n) => sum + n.log_bytes + n.err_bytes, 0);
}

/*
 * Merges a page of the list (newest first) into the known runs. Known rows in the range of the page that it no longer has
 * were removed; `complete`: the page reaches the oldest run.
 */
export function mergeRuns(known: Run[], page: Run[], complete: boolean): Run[] {
	const last = page[page.length - 1];
	if (!last) return complete ? [] : known;
	const ids = new Set(page.map((r) => r.id));
	const cut = known.findIndex((r) => r.id === last.id);
	let older: Run[];
	if (complete) older = [];
	else if (cut >= 0) older = known.slice(cut + 1);
	else older = known.filter((r) => r.created_ms < last.created_ms);
	return [...page, ...older.filter((r) => !ids.has(r.id))];
}

/* Replaces the rows of known runs; the order and the other rows stay. */
export function updateRuns(known: Run[], fresh: Run[]): Run[] {
	const by = new Map(fresh.map((r) => [r.id, r]));
	return known.map((r) => by.get(r.id) ?? r);
}

/* "lr=0.1 model=resnet50" */
export function params(run: Run): string {
	return Object.entries(run.params ?? {})
		.map(([name, value]) => `${name}=${value}`)
		.join(" ");
}

/* Does every word occur somewhere in the row? */
export function matches(run: Run, words: string[]): boolean {
	if (!words.length) return true;
	const text =
		`${run.id} ${run.name} ${run.state} ${run.engine} ${run.strategy} ${run.cause ?? ""} ${(run.tags ?? []).join(" ")} ${params(run)}`.toLowerCase();
	return words.every((w) => text.includes(w));
}

export function words(query: string): string[] {
	return query.toLowerCase().split(/\s+/).filter(Boolean);
}
