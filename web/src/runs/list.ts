/*
 * All runs, newest first, as far as they are loaded. The first page is loaded at once; older ones when the user scrolls
 * to them or searches; changes come by the event stream.
 */
import { API, ApiError, getJson, query, runPath } from "../lib/api";
import { isOver, mergeRuns, updateRuns } from "../lib/model";
import type { Run, WorldEvent } from "../lib/types";

const FIRST_PAGE = 100;
const TOP_PAGE = 50;
const OLDER_PAGE = 1000;
const MOST_RUNS = 50_000;
const MOST_SINGLES = 20;
const ACTIVE_PAGE = 200;
const REFRESH_MS = 400;
const POLL_MS = 3000;

interface Answer {
	runs: Run[];
	total?: number; /* of all that there are; an older master does not say it */
}

export class RunsList {
	runs: Run[] = [];
	total: number | null = null;
	complete = false;
	loaded = false;
	error: ApiError | null = null;
	/* When each object arrived, for the durations of active runs. */
	readonly receivedAt = new WeakMap<Run, number>();
	private loading: Promise<void> | null = null;
	private dirty = new Set<string>();
	private refreshTimer = 0;
	private pollTimer = 0;
	private gone = false;

	constructor(private readonly changed: () => void) {}

	start(): void {
		void this.first();
		this.pollTimer = window.setInterval(() => void this.poll(), POLL_MS);
	}

	stop(): void {
		this.gone = true;
		clearTimeout(this.refreshTimer);
		clearInterval(this.pollTimer);
	}

	async first(): Promise<void> {
		this.error = null;
		await this.guard(async () => {
			const page = await this.ask({ limit: FIRST_PAGE });
			this.complete = page.length < FIRST_PAGE;
			this.runs = page;
			this.loaded = true;
		});
	}

	get full(): boolean {
		return this.complete || this.runs.length >= MOST_RUNS;
	}

	/* One more page; several callers share one request. */
	older(): Promise<void> {
		const last = this.runs[this.runs.length - 1];
		if (this.full || !last) return Promise.resolve();
		this.loading ??= this.guard(async () => {
			const page = await this.ask({ limit: OLDER_PAGE, before: last.id });
			const known = new Set(this.runs.map((r) => r.id));
			this.runs = this.runs.concat(page.filter((r) => !known.has(r.id)));
			this.complete = page.length < OLDER_PAGE;
		}).finally(() => {
			this.loading = null;
		});
		return this.loading;
	}

	/*
	 * For a search: load pages until there are no more, or until `wanted` is false. Without a first page there is
	 * none to follow.
	 */
	async all(wanted: () => boolean): Promise<void> {
		while (wanted() && this.runs.length && !this.full && !this.gone && !this.error) await this.older();
	}

	onEvent(e: WorldEvent): void {
		this.dirty.add(e.run);
		const state = e.state;
		if (state && this.runs.some((r) => r.id === e.run && r.state !== state)) {
			this.runs = this.runs.map((r) => (r.id === e.run ? this.stamp({ ...r, state }, this.receivedAt.get(r)) : r));
			this.changed();
		}
		if (!this.refreshTimer) this.refreshTimer = window.setTimeout(() => void this.refresh(), REFRESH_MS);
	}

	/* After a lost connection events may be missing: ask again for every run that was not over. */
	refreshSoon(): void {
		for (const r of this.runs) if (!isOver(r.state) && this.dirty.size < MOST_SINGLES) this.dirty.add(r.id);
		if (!this.refreshTimer) this.refreshTimer = window.setTimeout(() => void this.refresh(), REFRESH_MS);
	}

	private async refresh(): Promise<void> {
		this.refreshTimer = 0;
		const dirty = this.dirty;
		this.dirty = new Set();
		await this.guard(async () => {
			const page = await this.ask({ limit: TOP_PAGE });
			this.runs = mergeRuns(this.runs, page, page.length < TOP_PAGE);
			const there = new Set(page.map((r) => r.id));
			const rest = [...dirty].filter((id) => !there.has(id) && this.runs.some((r) => r.id === id));
			await Promise.all(rest.slice(0, MOST_SINGLES).map((id) => this.single(id)));
		});
	}

	private async single(id: string): Promise<void> {
		try {
			const run = await getJson<Run>(runPath(id));
			delete run.nodes;
			this.runs = updateRuns(this.runs, [this.stamp(run)]);
		} catch (e) {
			if (!(e instanceof ApiError) || e.status !== 404) throw e;
			this.runs = this.runs.filter((r) => r.id !== id);
		}
	}

	/* Figures of active runs change without an event. */
	private async poll(): Promise<void> {
		if (document.hidden || !this.runs.some((r) => !isOver(r.state))) return;
		await this.guard(async () => {
			this.runs = updateRuns(this.runs, await this.ask({ state: "active", limit: ACTIVE_PAGE }));
		});
	}

	private async ask(params: Record<string, string | number>): Promise<Run[]> {
		const answer = await getJson<Answer>(`${API}/runs${query(params)}`);
		const page = answer.runs;
		this.total = answer.total ?? null;
		for (const r of page) this.stamp(r);
		return page;
	}

	private stamp(run: Run, at = Date.now()): Run {
		this.receivedAt.set(run, at);
		return run;
	}

	private async guard(work: () => Promise<void>): Promise<void> {
		try {
			await work();
			this.error = null;
		} catch (e) {
			this.error = e instanceof ApiError ? e : new ApiError(0, "unavailable", String(e));
		}
		if (!this.gone) this.changed();
	}
}
