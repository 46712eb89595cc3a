/*
 * The sources of the log view: one stream of one node, at any offset, or all nodes while they write.
 * Both give lines in order, each with an `at` that only grows; memory is bounded.
 */
import { ApiError, getLog, isAbort } from "../lib/api";
import { plainLine } from "./ansi";
import { search, type Find } from "./search";
import { parsePieces, type TimeMark } from "./times";
import { CHUNK, KEEP_LINES, LogWindow, MAX_LINE, splitLines, type Line } from "./window";
import type { Node } from "../lib/types";
import { bytes as showBytes } from "../lib/format";

export type StreamName = "out" | "err";

export interface LogLine extends Line {
	node?: string;
	stream?: StreamName;
}

/* The interface of the view. */
export interface LogModel {
	readonly lines: readonly LogLine[];
	readonly version: number; /* changes with the lines */
	readonly loaded: boolean;
	readonly error: ApiError | null;
	lineAt(at: number): number;
}

function asError(e: unknown): ApiError {
	return e instanceof ApiError ? e : new ApiError(0, "unavailable", String(e));
}

/* A range of a log; with `times` also when its bytes came. */
async function readRange(
	at: { run: string; node: string; stream: StreamName; times: boolean },
	range: { offset: number; limit: number },
	signal: AbortSignal,
): Promise<{ offset: number; bytes: Uint8Array; marks?: TimeMark[] }> {
	const a = await getLog(at.run, at.node, at.stream, { ...range, times: at.times ? 1 : undefined }, signal);
	return at.times ? { offset: a.offset, ...parsePieces(a.bytes, a.offset) } : a;
}

export class LogReader implements LogModel {
	readonly window = new LogWindow();
	version = 0;
	loaded = false;
	error: ApiError | null = null;
	private busy = false;
	private turn = 0; /* counts jumps: an answer to a request that was sent before a jump is dropped */
	private readonly abort = new AbortController();

	constructor(
		private readonly run: string,
		private readonly node: string,
		readonly stream: StreamName,
		private times: boolean,
		private readonly changed: () => void,
	) {}

	get lines(): readonly Line[] {
		return this.window.lines;
	}

	lineAt(at: number): number {
		return this.window.lineAt(at);
	}

	close(): void {
		this.abort.abort();
	}

	/* The log now has this size on the server. */
	grow(size: number): void {
		this.window.size = Math.max(this.window.size, size);
	}

	/* From now on lines have times, or none; those at `offset` are read again if that is new. */
	showTimes(on: boolean, offset: number): void {
		if (on === this.times) return;
		this.times = on;
		void this.jump(offset);
	}

	async jump(offset: number): Promise<void> {
		const turn = ++this.turn;
		const range = LogWindow.around(offset, this.window.size);
		this.busy = true;
		try {
			const a = await this.ask(range.offset, range.limit);
			if (turn !== this.turn) return;
			this.window.reset(this.window.size);
			this.window.place(a.offset, a.bytes, a.marks);
			this.done(null);
		} catch (e) {
			if (turn === this.turn && !isAbort(e)) this.done(asError(e));
		}
	}

	/* Reads new output; of a log that grows faster than it can be read only the end is followed. */
	async next(following: boolean): Promise<void> {
		if (following && this.window.size - this.window.end > 2 * CHUNK) return this.jump(this.window.size);
		await this.once(async () => {
			const range = this.window.next();
			const a = await this.ask(range.offset, range.limit);
			return () => {
				if (!this.window.append(a.offset, a.bytes, a.marks)) return false;
				this.window.trimHead();
				return true;
			};
		});
	}

	async before(): Promise<void> {
		const range = this.window.before();
		if (!range) return;
		await this.once(async () => {
			const a = await this.ask(range.offset, range.limit);
			return () => {
				if (!this.window.prepend(a.offset, a.bytes, a.marks)) return false;
				this.window.trimTail();
				return true;
			};
		});
	}

	find(from: number, backwards: boolean, pattern: RegExp, errors: boolean, stopped: () => boolean, seen: (n: number) => void): Promise<Find | null> {
		const read = async (offset: number, limit: number): Promise<Uint8Array> =>
			(await getLog(this.run, this.node, this.stream, { offset, limit }, this.abort.signal)).bytes;
		return search({ read, size: this.window.size, from, backwards, pattern, errors, stopped, seen });
	}

	private ask(offset: number, limit: number): ReturnType<typeof readRange> {
		return readRange({ run: this.run, node: this.node, stream: this.stream, times: this.times }, { offset, limit }, this.abort.signal);
	}

	/* One request at a time; the answer is used only if there was no jump in the meantime. */
	private async once(work: () => Promise<() => boolean>): Promise<void> {
		if (this.busy) return;
		const turn = this.turn;
		this.busy = true;
		try {
			const apply = await work();
			if (turn !== this.turn) return;
			if (apply() || this.error || !this.loaded) this.done(null);
			else this.busy = false;
		} catch (e) {
			if (turn === this.turn && !isAbort(e)) this.done(asError(e));
		}
	}

	private done(error: ApiError | null): void {
		this.busy = false;
		this.loaded = true;
		this.error = error;
		this.version++;
		this.changed();
	}
}

interface Place {
	node: string;
	stream: StreamName;
	end: number; /* read up to here, which is a line's start */
	asked: number; /* the size of the log at the last read */
}

const AT_ONCE = 4;
const START_BYTES = 1024 * 1024; /* of all nodes together */
const LEAST_START = 4096;
const SKIP_OVER = 256 * 1024; /* more new bytes than this: only the end is read */

export class MergedReader implements LogModel {
	lines: LogLine[] = [];
	version = 0;
	loaded = false;
	error: ApiError | null = null;
	private seq = 0;
	private busy = false;
	private places = new Map<string, Place>();
	private readonly abort = new AbortController();

	constructor(
		private readonly run: string,
		private readonly streams: StreamName[],
		readonly times: boolean,
		private readonly changed: () => void,
	) {}

	close(): void {
		this.abort.abort();
	}

	lineAt(at: number): number {
		const first = this.lines[0]?.at ?? 0;
		return Math.max(0, Math.min(this.lines.length - 1, at - first));
	}

	/* Read what the nodes have written since the last time. */
	async update(nodes: readonly Node[]): Promise<void> {
		if (this.busy) return;
		this.busy = true;
		const before = this.seq;
		const work = this.grown(nodes);
		const worker = async (): Promise<void> => {
			for (let w = work.shift(); w; w = work.shift()) await this.read(w.place, w.size, w.over);
		};
		try {
			await Promise.all(Array.from({ length: AT_ONCE }, worker));
			if (this.times) this.sortByTime(this.seq - before);
			else if (!this.loaded) this.alignEnds();
			this.error = null;
		} catch (e) {
			if (isAbort(e)) return;
			this.error = asError(e);
		}
		this.busy = false;
		if (this.seq === before && this.loaded && !this.error) return;
		this.loaded = true;
		if (this.lines.length > KEEP_LINES) this.lines = this.lines.slice(-KEEP_LINES);
		this.version++;
		this.changed();
	}

	find(from: number, backwards: boolean, test: (line: string) => boolean): Find | null {
		const n = this.lines.length;
		const start = this.lineAt(from);
		for (let k = 0; k < n; k++) {
			const i = backwards ? (start - k - 1 + 2 * n) % n : (start + k) % n;
			const line = this.lines[i] as LogLine;
			if (test(line.text)) return { offset: line.at, length: 1, wrapped: backwards ? i >= start : i < start };
		}
		return null;
	}

	private grown(nodes: readonly Node[]): { place: Place; size: number; over: boolean }[] {
		const budget = Math.max(LEAST_START, START_BYTES / Math.max(1, nodes.length * this.streams.length));
		const out: { place: Place; size: number; over: boolean }[] = [];
		for (const n of nodes) {
			for (const stream of this.streams) {
				const size = stream === "out" ? n.log_bytes : n.err_bytes;
				const key = `${stream} ${n.name}`;
				let place = this.places.get(key);
				if (!place) {
					place = { node: n.name, stream, end: Math.max(0, Math.floor(size - budget)), asked: -1 };
					this.places.set(key, place);
				}
				const over = n.state === "exited" || n.state === "released" || n.state === "lost";
				if (size > place.end && (size !== place.asked || over)) out.push({ place, size, over });
			}
		}
		return out;
	}

	/* The last n lines, those of all nodes together; the lines of one node keep their order, for their times never go back. */
	private sortByTime(n: number): void {
		const first = this.lines.length - n;
		const base = this.seq - this.lines.length;
		const sorted = this.lines.splice(first).sort((a, b) => (a.time ?? 0) - (b.time ?? 0) || a.at - b.at);
		for (const l of sorted) this.lines.push({ ...l, at: base + this.lines.length });
	}

	/*
	 * Without times it is not known when lines were written before the page was opened. They are ordered so that the last lines of
	 * all nodes are next to each other.
	 */
	private alignEnds(): void {
		const left = new Map<string, number>();
		const key = (l: LogLine): string => `${l.stream} ${l.node}`;
		for (const l of this.lines) left.set(key(l), (left.get(key(l)) ?? 0) + 1);
		const fromEnd = new Map<LogLine, number>();
		for (const l of this.lines) {
			const n = left.get(key(l)) as number;
			fromEnd.set(l, n);
			left.set(key(l), n - 1);
		}
		this.lines.sort((a, b) => (fromEnd.get(b) as number) - (fromEnd.get(a) as number) || a.at - b.at);
		this.lines.forEach((l, i) => {
			l.at = i;
		});
	}

	private async read(p: Place, size: number, over: boolean): Promise<void> {
		let from = p.end;
		const first = p.asked < 0;
		if (!first && size - from > SKIP_OVER) from = size - LEAST_START;
		const cut = from > 0 && (first || from !== p.end);
		const at = { run: this.run, node: p.node, stream: p.stream, times: this.times };
		const { offset, bytes, marks } = await readRange(at, { offset: from, limit: SKIP_OVER }, this.abort.signal);
		let lines = splitLines(bytes, offset, marks);
		if (cut && lines.length > 1) lines = lines.slice(1);
		if (!first && from !== p.end) {
			const gap = plainLine(`… ${showBytes(from - p.end)} not shown: open this node's own log to read them`);
			this.put(p, { ...gap, time: lines[0]?.time });
		}
		for (const line of lines) {
			/* An unfinished line waits for its end, but not for ever. */
			if (line.open && !over && line.size < MAX_LINE) {
				p.end = line.at;
				p.asked = size;
				return;
			}
			this.put(p, line);
		}
		p.end = offset + bytes.length;
		p.asked = size;
	}

	private put(p: Place, line: Pick<Line, "text" | "spans" | "time">): void {
		const at = this.seq++;
		this.lines.push({ text: line.text, spans: line.spans, time: line.time, at, size: 1, open: false, node: p.node, stream: p.stream });
	}
}
