/*
 * A suite as it fills: the object is asked for again when events of runs come, and now and then without. A suite has up to
 * 50 000 runs, so that the pauses grow with what an answer takes.
 */
import { ApiError, getJson, suitePath } from "../lib/api";
import { isOver } from "../lib/model";
import type { Suite, SuiteMetric } from "../lib/types";
import { ended } from "./model";

const REFRESH_MS = 400;
const REFRESH_PER_MS = 4; /* pause for each millisecond that the last answer took */
const POLL_MS = 3000;
const FIGURES_MS = 3000;
const FIGURES_PER_MS = 20;

export class SuiteWatch {
	suite: Suite | null = null;
	metrics: SuiteMetric[] = [];
	error: ApiError | null = null;
	receivedAt = 0;
	private took = 0;
	private timer = 0;
	private poll = 0;
	private gone = false;
	private figuresFor = ""; /* what the figures were asked for last */
	private figuresAfter = 0;

	constructor(
		private readonly id: string,
		private readonly changed: () => void,
	) {}

	start(): void {
		void this.load();
		this.poll = window.setInterval(() => {
			if (!document.hidden && this.active) this.refreshSoon();
		}, POLL_MS);
	}

	stop(): void {
		this.gone = true;
		clearTimeout(this.timer);
		clearInterval(this.poll);
	}

	/* One that has ended may be resumed: its page stays as it is until somebody asks again. */
	get active(): boolean {
		return !this.suite || !isOver(this.suite.state);
	}

	onEvent(): void {
		if (this.active) this.refreshSoon();
	}

	refreshSoon(): void {
		if (this.timer || this.gone) return;
		this.timer = window.setTimeout(() => void this.load(), Math.max(REFRESH_MS, this.took * REFRESH_PER_MS));
	}

	async load(): Promise<void> {
		const began = Date.now();
		try {
			this.suite = await getJson<Suite>(suitePath(this.id));
			this.error = null;
			this.receivedAt = Date.now();
			this.took = this.receivedAt - began;
			void this.figures(this.suite);
		} catch (e) {
			this.error = e instanceof ApiError ? e : new ApiError(0, "unavailable", String(e));
		}
		this.timer = 0;
		if (!this.gone) this.changed();
	}

	/* Asked for when another run has succeeded, and once more when the suite has ended. */
	private async figures(s: Suite): Promise<void> {
		const what = `${s.counts.succeeded ?? 0} ${ended(s.counts)} ${s.ended_ms}`;
		const now = Date.now();
		if (what === this.figuresFor || (now < this.figuresAfter && !isOver(s.state))) return;
		this.figuresFor = what;
		this.figuresAfter = Infinity;
		try {
			this.metrics = (await getJson<{ metrics?: SuiteMetric[] }>(suitePath(this.id, "/report?files=0"))).metrics ?? [];
			if (!this.gone) this.changed();
		} catch {
			this.figuresFor = ""; /* the figures before stay */
		}
		this.figuresAfter = Date.now() + Math.max(FIGURES_MS, (Date.now() - now) * FIGURES_PER_MS);
	}
}
