/*
 * A line as a terminal would show it: colours as class names, every other escape dropped, a carriage return goes
 * back to the start. Only text reaches the page.
 */

export interface Span {
	from: number; /* in the plain text, up to the next span */
	cls: string;
}

export interface Plain {
	text: string;
	spans: Span[] | null; /* null: no colours */
}

const ESC = "\x1b";
/* CSI, OSC (ended by BEL or ST), other strings, and two-character escapes; also those cut off by the end of the line. */
const ESCAPE =
	/\x1b\[[0-?]*[ -/]*[@-~]?|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)?|\x1b[PX^_][^\x1b]*(?:\x1b\\)?|\x1b[ -/]*[0-~]?|\x9b[0-?]*[ -/]*[@-~]?/g;
/* Control characters, and marks that reorder text: a log must be shown as it is. */
const UNSAFE = /[\x00-\x08\x0a-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069\ufeff]/g;
const TAB = 8;

interface Style {
	bold: boolean;
	dim: boolean;
	italic: boolean;
	underline: boolean;
	inverse: boolean;
	fg: number; /* -1: the default */
	bg: number;
}

function fresh(): Style {
	return { bold: false, dim: false, italic: false, underline: false, inverse: false, fg: -1, bg: -1 };
}

function classes(s: Style): string {
	const fg = s.inverse ? s.bg : s.fg;
	const bg = s.inverse ? s.fg : s.bg;
	let out = "";
	if (s.bold) out += " a-b";
	if (s.dim) out += " a-d";
	if (s.italic) out += " a-i";
	if (s.underline) out += " a-u";
	if (s.inverse && fg < 0 && bg < 0) out += " a-inv";
	if (fg >= 0) out += ` a-f${fg}`;
	if (bg >= 0) out += ` a-g${bg}`;
	return out.slice(1);
}

/* The nearest of the sixteen colours of the style sheet. */
function nearest(r: number, g: number, b: number): number {
	const top = Math.max(r, g, b);
	if (top < 64) return 0;
	if (top - Math.min(r, g, b) < 32) return top > 200 ? 15 : top > 128 ? 7 : 8;
	const half = top / 2;
	return (r > half ? 1 : 0) + (g > half ? 2 : 0) + (b > half ? 4 : 0) + (top > 200 ? 8 : 0);
}

function from256(n: number): number {
	if (n < 16) return n;
	if (n >= 232) return nearest((n - 232) * 10 + 8, (n - 232) * 10 + 8, (n - 232) * 10 + 8);
	const c = n - 16;
	return nearest(Math.floor(c / 36) * 51, (Math.floor(c / 6) % 6) * 51, (c % 6) * 51);
}

/* Codes 38 and 48 take more numbers; returns how many were used. */
function extended(codes: number[], i: number, set: (colour: number) => void): number {
	const mode = codes[i + 1];
	const at = (k: number): number => Math.min(255, codes[i + k] ?? 0);
	if (mode === 5) {
		set(from256(at(2)));
		return 2;
	}
	if (mode === 2) {
		set(nearest(at(2), at(3), at(4)));
		return 4;
	}
	return 0;
}

function applySgr(s: Style, params: string): void {
	const codes = params === "" ? [0] : params.split(/[;:]/).map((p) => Number(p) || 0);
	for (let i = 0; i < codes.length; i++) {
		const c = codes[i] ?? 0;
		if (c === 0) Object.assign(s, fresh());
		else if (c === 1) s.bold = true;
		else if (c === 2) s.dim = true;
		else if (c === 3) s.italic = true;
		else if (c === 4) s.underline = true;
		else if (c === 7) s.inverse = true;
		else if (c === 22) s.bold = s.dim = false;
		else if (c === 23) s.italic = false;
		else if (c === 24) s.underline = false;
		else if (c === 27) s.inverse = false;
		else if (c >= 30 && c <= 37) s.fg = c - 30;
		else if (c === 38) i += extended(codes, i, (n) => (s.fg = n));
		else if (c === 39) s.fg = -1;
		else if (c >= 40 && c <= 47) s.bg = c - 40;
		else if (c === 48) i += extended(codes, i, (n) => (s.bg = n));
		else if (c === 49) s.bg = -1;
		else if (c >= 90 && c <= 97) s.fg = c - 82;
		else if (c >= 100 && c <= 107) s.bg = c - 92;
	}
}

function clean(text: string, column: number): string {
	if (text.includes("\t")) {
		text = text.replace(/[^\t]*\t/g, (part) => {
			column += part.length - 1;
			const fill = TAB - (column % TAB);
			column += fill;
			return part.slice(0, -1) + " ".repeat(fill);
		});
	}
	return text.replace(UNSAFE, "\ufffd");
}

/* The text that is visible after carriage returns: a progress bar that is redrawn is one line. */
function afterReturns(line: string): string {
	if (!line.includes("\r")) return line;
	const parts = line.split("\r");
	for (let i = parts.length - 1; i > 0; i--) if (parts[i]) return parts[i] as string;
	return parts[0] ?? "";
}

export function plainLine(line: string): Plain {
	const raw = afterReturns(line);
	if (!raw.includes(ESC) && !raw.includes("\x9b")) return { text: clean(raw, 0), spans: null };

	const style = fresh();
	const spans: Span[] = [];
	let text = "";
	let last = 0;
	let cls = "";
	const put = (part: string): void => {
		if (!part) return;
		if (cls !== (spans[spans.length - 1]?.cls ?? "")) spans.push({ from: text.length, cls });
		text += clean(part, text.length);
	};
	for (const m of raw.matchAll(ESCAPE)) {
		put(raw.slice(last, m.index));
		last = (m.index ?? 0) + m[0].length;
		const sgr = /^(?:\x1b\[|\x9b)([0-9;:]*)m$/.exec(m[0]);
		if (sgr) {
			applySgr(style, sgr[1] ?? "");
			cls = classes(style);
		}
	}
	put(raw.slice(last));
	return { text, spans: spans.length ? spans : null };
}

export interface Piece {
	text: string;
	cls: string;
}

/* The part [from, to) of a line, cut where its colours change. */
export function pieces(line: Plain, from: number, to: number): Piece[] {
	if (!line.spans) return [{ text: line.text.slice(from, to), cls: "" }];
	const out: Piece[] = [];
	let at = 0;
	let cls = "";
	const put = (end: number): void => {
		const a = Math.max(at, from);
		const b = Math.min(end, to);
		if (b > a) out.push({ text: line.text.slice(a, b), cls });
		at = end;
	};
	for (const s of line.spans) {
		put(s.from);
		cls = s.cls;
	}
	put(line.text.length);
	return out;
}

/* Marks matches; one that spans a change of colour is marked in each piece. */
export function marked(parts: Piece[], find: RegExp): (Piece & { hit: boolean })[] {
	const whole = parts.map((p) => p.text).join("");
	const edges: [number, number][] = [];
	for (const m of whole.matchAll(find)) if (m[0]) edges.push([m.index ?? 0, (m.index ?? 0) + m[0].length]);
	if (!edges.length) return parts.map((p) => ({ ...p, hit: false }));
	const out: (Piece & { hit: boolean })[] = [];
	let at = 0;
	for (const p of parts) {
		let done = 0;
		while (done < p.text.length) {
			const here = at + done;
			const edge = edges.find(([, end]) => end > here);
			const hit = edge !== undefined && edge[0] <= here;
			const stop = edge === undefined ? whole.length : hit ? edge[1] : edge[0];
			const n = Math.min(p.text.length - done, stop - here);
			out.push({ text: p.text.slice(done, done + n), cls: p.cls, hit });
			done += n;
		}
		at += p.text.length;
	}
	return out;
}
