/*
 * Streaming connections: one per page, because a browser allows six per site. They are closed while the page is hidden, and
 * opened again by themselves; their state is shown, so that old figures are not taken for new ones.
 */
import { API, ApiError, getJson, isAbort, readLines, request, runPath } from "./api";
import { isOver, withDelta } from "./model";
import type { Me, Run, WorldEvent } from "./types";

export type LinkState =
	| { kind: "connecting" }
	| { kind: "live" }
	| { kind: "paused" } /* hidden, or nothing more to come */
	| { kind: "ended" }
	| { kind: "lost"; retryAt: number };

const HIDDEN_GRACE_MS = 15_000;
const RETRY_MS = [500, 1000, 2000, 4000, 8000];
/* A broken tunnel gives no error: connect again after so long without data. */
const SILENCE_MS = 45_000;

/* What both kinds of stream share: when to open, when to close, when to try again. */
abstract class Stream {
	private timer = 0;
	private hidden = 0;
	private tries = 0;
	private open = false;
	private over = false;

	constructor(private readonly onState: (s: LinkState) => void) {
		document.addEventListener("visibilitychange", this.onVisibility);
		window.addEventListener("online", this.retry);
	}

	protected abstract connect(): void;
	protected abstract disconnect(): void;

	start(): void {
		if (this.open || this.over) return;
		clearTimeout(this.timer);
		this.open = true;
		this.onState({ kind: "connecting" });
		this.connect();
	}

	retry = (): void => {
		if (!this.open && !document.hidden) this.start();
	};

	stop(): void {
		this.over = true;
		this.pause();
		clearTimeout(this.hidden);
		document.removeEventListener("visibilitychange", this.onVisibility);
		window.removeEventListener("online", this.retry);
	}

	protected live(): void {
		this.tries = 0;
		this.onState({ kind: "live" });
	}

	protected ended(): void {
		this.open = false;
		this.over = true;
		this.onState({ kind: "ended" });
	}

	protected lost(): void {
		if (!this.open) return;
		this.open = false;
		this.disconnect();
		const wait = RETRY_MS[Math.min(this.tries++, RETRY_MS.length - 1)] as number;
		this.onState({ kind: "lost", retryAt: Date.now() + wait });
		clearTimeout(this.timer);
		this.timer = window.setTimeout(this.retry, wait);
	}

	private pause(): void {
		clearTimeout(this.timer);
		if (!this.open) return;
		this.open = false;
		this.disconnect();
		this.onState({ kind: "paused" });
	}

	private onVisibility = (): void => {
		clearTimeout(this.hidden);
		if (document.hidden) this.hidden = window.setTimeout(() => this.pause(), HIDDEN_GRACE_MS);
		else this.retry();
	};
}

/* The object of one run at each change, until it has ended. */
export class RunStream extends Stream {
	private abort: AbortController | null = null;
	private silence = 0;

	constructor(
		private readonly id: string,
		private readonly onRun: (run: Run) => void,
		private readonly onRefused: (e: ApiError) => void,
		onState: (s: LinkState) => void,
	) {
		super(onState);
	}

	protected connect(): void {
		const abort = new AbortController();
		this.abort = abort;
		void this.read(abort);
	}

	protected disconnect(): void {
		clearTimeout(this.silence);
		this.abort?.abort();
		this.abort = null;
	}

	private async read(abort: AbortController): Promise<void> {
		let last: Run | null = null;
		const heard = (): void => {
			clearTimeout(this.silence);
			this.silence = window.setTimeout(() => this.lost(), SILENCE_MS);
		};
		try {
			const r = await request(runPath(this.id, "/watch?deltas=1"), { signal: abort.signal });
			heard();
			await readLines(r, false, (value) => {
				if (abort.signal.aborted) return;
				if (!last) this.live();
				heard();
				last = withDelta(last, value as Run);
				if (last) this.onRun(last);
			});
		} catch (e) {
			if (isAbort(e)) return;
			if (e instanceof ApiError && e.status >= 400 && e.status < 500 && e.status !== 429) {
				clearTimeout(this.silence);
				this.ended();
				this.onRefused(e);
				return;
			}
		}
		if (abort.signal.aborted) return;
		clearTimeout(this.silence);
		if (last && isOver((last as Run).state)) this.ended();
		else this.lost();
	}
}

/* Events of all runs. Reconnects here, because the browser's own reconnection is invisible; no event is lost. */
export class WorldStream extends Stream {
	private source: EventSource | null = null;
	private after = "";

	constructor(
		private readonly onEvent: (e: WorldEvent) => void,
		onState: (s: LinkState) => void,
	) {
		super(onState);
	}

	protected connect(): void {
		const source = new EventSource(`${API}/events${this.after ? `?after=${this.after}` : ""}`);
		this.source = source;
		source.onopen = () => this.live();
		source.onmessage = (m) => {
			if (m.lastEventId) this.after = encodeURIComponent(m.lastEventId);
			try {
				this.onEvent(JSON.parse(m.data as string) as WorldEvent);
			} catch {
				/* an event that was cut off when the server exited */
			}
		};
		source.onerror = () => {
			/* An EventSource does not say why it failed; this request finds out if the session has ended. */
			void getJson<Me>(`${API}/me`).catch(() => {});
			this.lost();
		};
	}

	protected disconnect(): void {
		if (this.source) {
			this.source.onopen = this.source.onmessage = this.source.onerror = null;
			this.source.close();
		}
		this.source = null;
	}
}
