/*
 * Search in a log that does not fit into memory: piece by piece, forwards or backwards, from an offset, once
 * around. The bytes are decoded as Latin-1, so that an index in the text is an offset in the log.
 */
export type ReadLog = (offset: number, limit: number) => Promise<Uint8Array>;

export const PIECE = 4 * 1024 * 1024;
export const OVERLAP = 4096; /* longer matches at the edge of two pieces may be missed */
/* Words of error messages in lower, title or upper case, and names of exception classes. */
const TROUBLE =
	"errors? exception traceback fatal panic assert(?:ion)? abort(?:ed)? segfault segmentation.fault core.dumped killed oom cannot failed failure refused".split(" ");
const SPELT = TROUBLE.flatMap((w) => [w, w.replace(/^[a-z]/, (c) => c.toUpperCase()), w.toUpperCase()]);
export const ERROR_PATTERN = new RegExp(`\\b(?:${SPELT.join("|")}|[oO]ut of memory)\\b|[A-Za-z](?:Error|Exception)\\b`, "g");
/* "0 errors", "error=0.01": a figure, not an error. */
const HARMLESS = /\b(?:0|no) (?:errors?|failures?|failed)\b|\berrors?\s*[:=]\s*[-+.\d]|\b(?:failed|failures)\s*[:=]\s*0\b/i;

export interface Find {
	offset: number;
	length: number;
	wrapped: boolean;
}

/* Text as the log holds it: UTF-8 bytes, one character each; without regard to the case of ASCII letters. */
export function textPattern(query: string): RegExp {
	const utf8 = new TextEncoder().encode(query);
	let s = "";
	for (const byte of utf8) s += String.fromCharCode(byte);
	return new RegExp(escapeRegExp(s), "gi");
}

export function escapeRegExp(s: string): string {
	return s.replace(/[.*+?^${}()|[\]\\/]/g, "\\$&");
}

export function isErrorLine(line: string): boolean {
	ERROR_PATTERN.lastIndex = 0;
	return ERROR_PATTERN.test(line) && !HARMLESS.test(line);
}

const latin1 = new TextDecoder("latin1");

type Hit = { at: number; length: number };

function hits(text: string, pattern: RegExp, errors: boolean): Hit[] {
	const out: Hit[] = [];
	pattern.lastIndex = 0;
	for (let m = pattern.exec(text); m; m = pattern.exec(text)) {
		if (!m[0]) {
			pattern.lastIndex++;
			continue;
		}
		if (errors) {
			const from = text.lastIndexOf("\n", m.index) + 1;
			let to = text.indexOf("\n", m.index);
			if (to < 0) to = text.length;
			pattern.lastIndex = to; /* one match per line is enough */
			if (HARMLESS.test(text.slice(Math.max(from, m.index - 200), Math.min(to, m.index + 200)))) continue;
		}
		out.push({ at: m.index, length: m[0].length });
	}
	return out;
}

export interface SearchOptions {
	read: ReadLog;
	size: number;
	from: number; /* forwards: at or after; backwards: before */
	backwards: boolean;
	pattern: RegExp;
	errors: boolean;
	stopped: () => boolean;
	seen: (bytes: number) => void;
}

/* Searches from `from` to the end of the log in the given direction, then the rest. */
export async function search(o: SearchOptions): Promise<Find | null> {
	const parts: [number, number, boolean][] = o.backwards
		? [
				[0, o.from, false],
				[o.from, o.size, true],
			]
		: [
				[o.from, o.size, false],
				[0, Math.min(o.size, o.from + OVERLAP), true],
			];
	let seen = 0;
	for (const [from, to, wrapped] of parts) {
		const found = await (o.backwards ? scanBack(o, from, to, report) : scan(o, from, to, report));
		if (found) return { offset: found.at, length: found.length, wrapped };
		if (o.stopped()) return null;
	}
	return null;

	function report(bytes: number): void {
		seen += bytes;
		o.seen(Math.min(seen, o.size));
	}
}

async function scan(o: SearchOptions, from: number, to: number, seen: (n: number) => void): Promise<Hit | null> {
	let at = from;
	while (at < to && !o.stopped()) {
		const b = await o.read(at, Math.min(PIECE, to - at));
		if (!b.length) return null;
		const hit = hits(latin1.decode(b), o.pattern, o.errors)[0];
		if (hit) return { at: at + hit.at, length: hit.length };
		seen(b.length);
		if (at + b.length >= to) return null;
		at += Math.max(1, b.length - OVERLAP);
	}
	return null;
}

async function scanBack(o: SearchOptions, from: number, to: number, seen: (n: number) => void): Promise<Hit | null> {
	let end = to;
	while (end > from && !o.stopped()) {
		const at = Math.max(from, end - PIECE);
		const b = await o.read(at, end - at);
		if (!b.length) return null;
		const all = hits(latin1.decode(b), o.pattern, o.errors).filter((h) => at + h.at < to);
		const hit = all[all.length - 1];
		if (hit) return { at: at + hit.at, length: hit.length };
		seen(b.length);
		if (at <= from) return null;
		end = at + Math.min(OVERLAP, end - at - 1);
	}
	return null;
}
