/* Derived from a suite object: how each entry looks, what fits a filter, and the table of a matrix of two axes. */
import { isOver, type NodeLook } from "../lib/model";
import type { Suite, SuiteFigure, SuiteMetric, Variant } from "../lib/types";

const ENTRY_LOOKS: Record<string, NodeLook> = {
	waiting: "wanted",
	starting: "launching",
	running: "running",
	succeeded: "done",
	failed: "failed",
	cancelled: "stopped",
	skipped: "released",
};
export const ENTRY_STATES = Object.keys(ENTRY_LOOKS);

/* Entries have the signs of nodes. */
export function entryLook(state: string): NodeLook {
	return ENTRY_LOOKS[state] ?? "wanted";
}

/* How many of its runs have ended, whichever way. */
export function ended(counts: Record<string, number>): number {
	return ["succeeded", "failed", "cancelled", "skipped"].reduce((n, s) => n + (counts[s] ?? 0), 0);
}

/* How long it has gone on: elapsed_ms of the object, and the time since it arrived. */
export function suiteElapsed(s: Suite, receivedMs: number, nowMs: number): number {
	return isOver(s.state) ? s.elapsed_ms : s.elapsed_ms + Math.max(0, nowMs - receivedMs);
}

export type VariantFilter = "all" | "active" | "failed" | "done";

export function variantFits(v: Variant, filter: VariantFilter, words: string[]): boolean {
	const states = v.runs.map((r) => r.state);
	if (filter === "active" && !states.some((s) => s === "running" || s === "starting")) return false;
	if (filter === "failed" && !states.some((s) => s === "failed" || s === "cancelled" || s === "skipped")) return false;
	if (filter === "done" && !states.every((s) => s === "succeeded")) return false;
	const text = `${v.name} ${v.runs.map((r) => `${r.run ?? ""} ${r.cause ?? ""}`).join(" ")}`.toLowerCase();
	return words.every((w) => text.includes(w));
}

export function valueText(v: unknown): string {
	return typeof v === "string" ? v : JSON.stringify(v);
}

export interface Matrix {
	rows: string[];
	columns: string[];
	at: (row: number, column: number) => Variant | undefined;
	rest: Variant[]; /* experiments, which are not in it */
}

const MOST_COLUMNS = 16;

/* The variants of a matrix of two axes as a table; null: a list says more. */
export function matrixOf(s: Suite): Matrix | null {
	const [down, across, more] = s.axes ?? [];
	if (down === undefined || across === undefined || more !== undefined) return null;
	const inside = (s.variants ?? []).filter((v) => !v.experiment && down in v.params && across in v.params);
	const rows = [...new Set(inside.map((v) => valueText(v.params[down])))];
	const columns = [...new Set(inside.map((v) => valueText(v.params[across])))];
	if (!inside.length || columns.length > MOST_COLUMNS) return null;
	const places = new Map(inside.map((v) => [JSON.stringify([valueText(v.params[down]), valueText(v.params[across])]), v]));
	return {
		rows,
		columns,
		at: (r, c) => places.get(JSON.stringify([rows[r], columns[c]])),
		rest: (s.variants ?? []).filter((v) => !inside.includes(v)),
	};
}

export function figuresOf(metric: SuiteMetric | undefined): Map<string, SuiteFigure> {
	return new Map((metric?.rows ?? []).map((f) => [f.variant, f]));
}
