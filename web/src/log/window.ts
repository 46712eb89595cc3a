/*
 * A window onto a log of any size: the lines between two byte offsets, and what to ask for next.
 *
 * The server stores bytes, so everything is addressed by byte offset. The window grows at either end by one answer and
 * is cut at the other, so that memory is bounded whatever the log's size. The last line may be open (no newline
 * yet); it is asked for again from its start when the log has grown.
 */
import { plainLine, type Plain } from "./ansi";
import { timeAt, type TimeMark } from "./times";

export const CHUNK = 128 * 1024; /* bytes of one request */
export const KEEP_BYTES = 1024 * 1024;
export const KEEP_LINES = 40_000;
export const MAX_LINE = 16 * 1024; /* a longer line is shown in pieces */

export interface Line extends Plain {
	at: number; /* offset of its first byte */
	size: number; /* bytes, with the newline */
	open: boolean; /* its newline has not come yet */
	time?: number | null; /* when its first byte reached the service; missing: not asked for, null: not known */
}

export interface Range {
	offset: number;
	limit: number;
}

const NEWLINE = 10;
const decoder = new TextDecoder("utf-8", { ignoreBOM: true });

/* The start of the UTF-8 character at `at`: at most three bytes back. */
function charStart(b: Uint8Array, at: number): number {
	for (let i = at; i > Math.max(0, at - 4); i--) if (((b[i] ?? 0) & 0xc0) !== 0x80) return i;
	return at;
}

function makeLine(b: Uint8Array, from: number, to: number, base: number, open: boolean): Line {
	const end = to > from && b[to - 1] === NEWLINE ? to - 1 : to;
	const text = end > from && b[end - 1] === 13 && end < to ? end - 1 : end;
	return { ...plainLine(decoder.decode(b.subarray(from, text))), at: base + from, size: to - from, open };
}

/* Splits bytes that begin at the start of a line. A last line without a newline is open. */
export function splitLines(b: Uint8Array, base: number, marks?: readonly TimeMark[]): Line[] {
	const out: Line[] = [];
	let from = 0;
	while (from < b.length) {
		let nl = b.indexOf(NEWLINE, from);
		const whole = nl >= 0;
		let to = whole ? nl + 1 : b.length;
		if (to - from > MAX_LINE) {
			to = charStart(b, from + MAX_LINE);
			nl = -1;
		}
		const line = makeLine(b, from, to, base, !whole && to === b.length);
		if (marks) line.time = timeAt(marks, line.at);
		out.push(line);
		from = to;
	}
	return out;
}

/* Where the first line starts in bytes that may begin in the middle of one. */
export function firstLineStart(b: Uint8Array): number {
	const nl = b.indexOf(NEWLINE);
	if (nl >= 0 && nl < Math.min(b.length - 1, MAX_LINE)) return nl + 1;
	let i = 0;
	while (i < Math.min(4, b.length) && ((b[i] ?? 0) & 0xc0) === 0x80) i++;
	return i;
}

export class LogWindow {
	lines: Line[] = [];
	size = 0; /* of the whole log, as far as known */
	start = 0;
	end = 0; /* covered: [start, end) */
	private anchor = 0; /* offset of an empty window */

	/* The range to request so that the byte at `offset` is in the middle. */
	static around(offset: number, size: number): Range {
		const from = Math.max(0, Math.min(offset - CHUNK / 2, size - CHUNK));
		return { offset: from, limit: CHUNK };
	}

	/* Drops all lines; place() takes the next answer. */
	reset(size: number): void {
		this.lines = [];
		this.size = size;
		this.start = this.end = this.anchor = 0;
	}

	/* The first answer after a reset. */
	place(offset: number, b: Uint8Array, marks?: readonly TimeMark[]): void {
		const skip = offset > 0 ? firstLineStart(b) : 0;
		this.lines = splitLines(b.subarray(skip), offset + skip, marks);
		this.start = this.anchor = offset + skip;
		this.end = offset + b.length;
		this.size = Math.max(this.size, this.end);
	}

	next(): Range {
		const last = this.lines[this.lines.length - 1];
		return { offset: last?.open ? last.at : this.lines.length ? this.end : this.anchor, limit: CHUNK };
	}

	before(): Range | null {
		if (this.start <= 0) return null;
		const from = Math.max(0, this.start - CHUNK);
		return { offset: from, limit: this.start - from };
	}

	get atEnd(): boolean {
		return this.end >= this.size;
	}

	/* The answer to next(). False: it is not at the end of the window, or has nothing new. */
	append(offset: number, b: Uint8Array, marks?: readonly TimeMark[]): boolean {
		if (offset !== this.next().offset || offset + b.length <= this.end) return false;
		if (this.lines[this.lines.length - 1]?.open) this.lines.pop();
		if (!this.lines.length) this.start = offset;
		for (const line of splitLines(b, offset, marks)) this.lines.push(line);
		this.end = offset + b.length;
		this.size = Math.max(this.size, this.end);
		return true;
	}

	/* The answer to before(). Returns how many lines were added. */
	prepend(offset: number, b: Uint8Array, marks?: readonly TimeMark[]): number {
		if (offset + b.length !== this.start || !b.length) return 0;
		const skip = offset > 0 ? firstLineStart(b) : 0;
		const more = splitLines(b.subarray(skip), offset + skip, marks);
		for (const line of more) line.open = false;
		this.lines = more.concat(this.lines);
		this.start = offset + skip;
		return more.length;
	}

	/* Drops lines at the head until the window fits; returns how many. */
	trimHead(): number {
		let n = 0;
		while (this.tooMuch(n)) n++;
		if (n) {
			this.lines.splice(0, n);
			this.start = this.lines[0]?.at ?? this.end;
		}
		return n;
	}

	trimTail(): void {
		let n = this.lines.length;
		const start = this.start;
		while (n > 1) {
			const last = this.lines[n - 1] as Line;
			if (n <= KEEP_LINES && last.at + last.size - start <= KEEP_BYTES) break;
			n--;
		}
		if (n === this.lines.length) return;
		this.lines.length = n;
		const last = this.lines[n - 1] as Line;
		this.end = last.at + last.size;
	}

	private tooMuch(gone: number): boolean {
		const first = this.lines[gone];
		if (!first || gone === this.lines.length - 1) return false;
		return this.lines.length - gone > KEEP_LINES || this.end - first.at > KEEP_BYTES;
	}

	/* The index of the line that has the byte; the nearest if it is outside. */
	lineAt(offset: number): number {
		let lo = 0;
		let hi = this.lines.length - 1;
		while (lo < hi) {
			const mid = (lo + hi + 1) >> 1;
			if ((this.lines[mid] as Line).at <= offset) lo = mid;
			else hi = mid - 1;
		}
		return Math.max(0, lo);
	}
}

/* East Asian wide characters and emoji take two cells of a monospaced line. */
const WIDE =
	/[\u1100-\u115f\u2e80-\u303e\u3041-\ua4cf\uac00-\ud7a3\uf900-\ufaff\ufe30-\ufe6f\uff00-\uff60\uffe0-\uffe6]|[\ud83c-\ud83e][\udc00-\udfff]/;
const ASCII = /^[\x20-\x7e]*$/;

/* Where a line is cut to fit `columns`: indexes into the text, the first is 0. */
export function wrapPoints(text: string, columns: number): number[] {
	const out = [0];
	/* Trailing blanks get no row. */
	const shown = text.trimEnd();
	if (ASCII.test(shown)) {
		for (let at = columns; at < shown.length; at += columns) out.push(at);
		return out;
	}
	let used = 0;
	let i = 0;
	for (const ch of shown) {
		const cells = WIDE.test(ch) ? 2 : 1;
		if (used + cells > columns && used > 0) {
			out.push(i);
			used = 0;
		}
		used += cells;
		i += ch.length;
	}
	return out;
}

/* Rows before each line when wrapped: rows[i] is the first row of line i, rows[n] the total. */
export function rowStarts(lines: readonly Plain[], columns: number): Uint32Array {
	const rows = new Uint32Array(lines.length + 1);
	let n = 0;
	for (let i = 0; i < lines.length; i++) {
		rows[i] = n;
		const text = (lines[i] as Plain).text;
		n += text.length <= columns && ASCII.test(text) ? 1 : wrapPoints(text, columns).length;
	}
	rows[lines.length] = n;
	return rows;
}

/* The line that has the row. */
export function lineOfRow(rows: Uint32Array, row: number): number {
	let lo = 0;
	let hi = Math.max(0, rows.length - 2);
	while (lo < hi) {
		const mid = (lo + hi + 1) >> 1;
		if ((rows[mid] as number) <= row) lo = mid;
		else hi = mid - 1;
	}
	return lo;
}
