/* What the service answers; docs/api.md is the contract.  Every shape may grow, so unknown keys are ignored. */

export interface Counts {
	nodes: number;
	[state: string]: number;
}

export interface Summary {
	first: number;
	last: number;
	best: number;
	mean: number;
	count: number;
	better?: Better;
}

export type Better = "lower" | "higher";

export interface Node {
	name: string;
	role: string;
	rank: number;
	index: number;
	address: string | null;
	state: string;
	dormant?: boolean; /* not asked for now: its role has fewer nodes than max */
	attempt: number;
	exit_code: number | null;
	signal: number | null;
	oom: boolean;
	reason: string | null;
	end?: string | null; /* how it ended, in words; older services have none */
	log_bytes: number;
	err_bytes: number;
	metrics: Record<string, number>;
}

export interface Waiting {
	kind: string;
	name: string;
	state: string;
	why: string;
	why_kind?: string | null;
}

/* The git commit that the source of a run was at. */
export interface Source {
	revision: string;
	branch?: string | null;
	dirty?: boolean | null; /* null: not known */
}

/* A run in a list has no nodes; one that ended long ago has little more than its name. */
export interface Run {
	delta?: boolean; /* of a watched run: `nodes` has only those that changed */
	id: string;
	name: string;
	state: string;
	engine: string;
	strategy: string;
	params?: Record<string, string | number | boolean>; /* older services have none */
	tags?: string[];
	source?: Source | null;
	notes?: { time_ms: number; text: string }[];
	verdict: string | null;
	cause?: string | null;
	cause_kind?: string | null;
	cause_node?: string | null;
	exit_code?: number | null;
	dir?: string;
	created_ms: number;
	ended_ms: number | null;
	elapsed_ms: number;
	phases?: Record<string, number | null>;
	deadline_ms?: number | null;
	cancel_asked?: boolean;
	counts: Counts;
	nodes?: Node[];
	metrics?: Record<string, Summary>;
	waiting?: Waiting[];
	tail?: { node: string; stream?: string; lines: string[] } | null;
	progress?: { step: number; total: number } | null;
	cost_usd?: number | null;
}

export interface RunEvent {
	seq: number;
	time_ms: number;
	kind: string;
	node?: string;
	text?: string;
}

/* One of all runs, as the event stream sends it. */
export interface WorldEvent extends RunEvent {
	run: string;
	state?: string;
}

export type Point = [time: number, step: number | null, value: number];

export interface Metrics {
	metrics: Record<string, { better: Better; all: Summary; nodes: Record<string, Summary> }>;
	series: { name: string; node: string; points: Point[] }[];
	bad_values?: number;
}

/* How a run differs from the baseline. */
export interface Difference {
	diff?: number | null;
	diff_pct?: number | null;
	ci?: [number, number] | null;
	ci_pct?: [number, number] | null; /* of the baseline; null if that is 0 */
	p?: number | null;
	p_holm?: number | null;
	verdict?: string | null;
	mde_pct?: number | null;
	too_few?: boolean; /* runs for a test */
}

export interface CompareRow extends Difference {
	run: string;
	n: number;
	median: number | null;
	mean: number | null;
	samples?: number;
	warm_up?: number;
	missing?: boolean;
}

/* A run, or a group of repeats of one. */
export interface CompareArm {
	label: string;
	runs: string[];
	/* Of the runs that have a price, the mean of one. */
	cost?: { runs: number; usd: number; usd_per_step: number | null; usd_per_1k_samples: number | null } | null;
}

export interface CompareMetric extends Difference {
	name: string;
	variant?: string; /* where suites are compared */
	better: Better;
	rows: CompareRow[];
	baseline: string;
}

export interface Comparison {
	runs: string[];
	arms?: CompareArm[];
	variants?: { name: string; of: (string | null)[] }[]; /* suites are compared */
	params?: { name: string; values: unknown[][] }[]; /* those that differ; the values of each side */
	metrics: CompareMetric[];
	notes?: string[];
}

export interface PlanNode {
	name: string;
	role: string;
	address: string | null;
	resource?: string;
	env?: Record<string, string>;
}

export interface Plan {
	nodes?: PlanNode[];
	roles?: { name: string; count: number; command: string[] }[];
}

export interface Me {
	scope: "read" | "submit" | "admin";
	version: string;
}

/* One repeat of a variant of a suite. */
export interface SuiteEntry {
	repeat: number;
	state: string;
	attempt: number;
	run: string | null;
	cause: string | null;
}

export interface Variant {
	name: string;
	job: string;
	experiment?: boolean; /* it is not one of the matrix */
	params: Record<string, unknown>;
	runs: SuiteEntry[];
}

/* In a list it has little more than name, state, times and counts. */
export interface Suite {
	id: string;
	name: string;
	state: string;
	cause: string | null;
	on_exit?: string | null;
	waits_for?: string | null;
	dir?: string;
	created_ms: number;
	ended_ms: number | null;
	elapsed_ms: number;
	left_ms?: number | null;
	repeats?: number;
	parallel?: number;
	cost_usd?: number;
	counts: Record<string, number>;
	axes?: string[];
	variants?: Variant[];
}

export interface SuiteFigure {
	variant: string;
	n: number;
	median: number | null;
	baseline: string | null;
	diff_pct: number | null;
	p_holm: number | null;
	verdict: string | null;
	speedup: number | null;
	efficiency: number | null;
}

export interface SuiteMetric {
	name: string;
	better: Better;
	rows: SuiteFigure[];
}
