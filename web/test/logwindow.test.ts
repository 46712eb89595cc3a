import assert from "node:assert/strict";
import { describe, it } from "node:test";
import {
	CHUNK, firstLineStart, KEEP_BYTES, KEEP_LINES, lineOfRow, LogWindow, MAX_LINE, rowStarts, splitLines, wrapPoints,
} from "../src/log/window";
import { MergedReader } from "../src/log/reader";
import { parsePieces, timeAt } from "../src/log/times";
import type { Node } from "../src/lib/types";

const encode = (s: string): Uint8Array => new TextEncoder().encode(s);

/* A log that answers as the service does. */
class Server {
	constructor(public data: Uint8Array) {}
	read(offset: number, limit: number): Uint8Array {
		return this.data.subarray(Math.min(offset, this.data.length), Math.min(offset + limit, this.data.length));
	}
	grow(s: string): void {
		const more = encode(s);
		const next = new Uint8Array(this.data.length + more.length);
		next.set(this.data);
		next.set(more, this.data.length);
		this.data = next;
	}
}

function open(server: Server, offset: number): LogWindow {
	const w = new LogWindow();
	w.reset(server.data.length);
	const r = LogWindow.around(offset, w.size);
	w.place(r.offset, server.read(r.offset, r.limit));
	return w;
}

function texts(w: LogWindow): string[] {
	return w.lines.map((l) => l.text);
}

/* Lines lie side by side, each at its own place. */
function check(w: LogWindow, server: Server): void {
	let at = w.start;
	for (const l of w.lines) {
		assert.equal(l.at, at);
		const bytes = server.data.subarray(l.at, l.at + l.size);
		assert.equal(new TextDecoder().decode(bytes).replace(/\r?\n$/, ""), l.text);
		at += l.size;
	}
	assert.equal(at, w.end);
}

describe("bytes become lines", () => {
	it("with their offsets, the last one open", () => {
		assert.deepEqual(
			splitLines(encode("ab\n\ncdé\r\nx"), 100).map((l) => [l.at, l.size, l.text, l.open]),
			[
				[100, 3, "ab", false],
				[103, 1, "", false],
				[104, 6, "cdé", false],
				[110, 1, "x", true],
			],
		);
	});
	it("a line that is too long comes in pieces, never inside a character", () => {
		const lines = splitLines(encode(`${"a".repeat(MAX_LINE - 1)}éz\nnext\n`), 0);
		assert.deepEqual(lines.map((l) => l.size), [MAX_LINE - 1, 4, 5]);
		assert.equal(lines[1]?.text, "éz");
	});
	it("bytes that are no text are shown as such", () => {
		assert.equal(splitLines(new Uint8Array([0x61, 0xff, 0x0a]), 0)[0]?.text, "a\ufffd");
	});
	it("a window that begins inside a line begins at the next", () => {
		assert.equal(firstLineStart(encode("rest\nnext\n")), 5);
	});
	it("or at a character if no line is near", () => {
		assert.equal(firstLineStart(new Uint8Array([0x82, 0xac, 0x61, 0x62])), 2);
		assert.equal(firstLineStart(encode("x".repeat(2 * MAX_LINE))), 0);
	});
});

describe("a window moves over a log that is bigger than it", () => {
	const line = (i: number): string => `${String(i).padStart(7, "0")} ${"é".repeat(i % 50)}\n`;
	const count = 200_000;
	const server = new Server(encode(Array.from({ length: count }, (_, i) => line(i)).join("")));

	it("opened at the end it has the last line", () => {
		const w = open(server, Infinity);
		check(w, server);
		assert.equal(texts(w).pop(), line(count - 1).slice(0, -1));
		assert.ok(w.atEnd);
	});
	it("going back meets every line once, and never holds more than it may", () => {
		const w = open(server, Infinity);
		let expect = w.lines[0]?.text ?? "";
		for (let r = w.before(); r; r = w.before()) {
			const n = w.prepend(r.offset, server.read(r.offset, r.limit));
			assert.ok(n > 0);
			assert.equal(w.lines[n]?.text, expect);
			expect = w.lines[0]?.text ?? "";
			w.trimTail();
			assert.ok(w.end - w.start <= KEEP_BYTES);
		}
		check(w, server);
		assert.equal(w.start, 0);
		assert.equal(texts(w)[0], line(0).slice(0, -1));
	});
	it("going forward does the same", () => {
		const w = open(server, 0);
		let last = Number(texts(w).pop()?.slice(0, 7));
		while (!w.atEnd) {
			const r = w.next();
			assert.ok(w.append(r.offset, server.read(r.offset, r.limit)));
			w.trimHead();
			assert.ok(w.end - w.start <= KEEP_BYTES);
			const first = w.lines.findIndex((l) => Number(l.text.slice(0, 7)) > last);
			assert.ok(first >= 0);
			last = Number(texts(w).pop()?.slice(0, 7));
		}
		check(w, server);
		assert.equal(texts(w).pop(), line(count - 1).slice(0, -1));
	});
	it("opened anywhere it has whole lines, and finds the one at an offset", () => {
		for (const share of [0.1, 0.37, 0.5, 0.999]) {
			const at = Math.floor(server.data.length * share);
			const w = open(server, at);
			const l = w.lines[w.lineAt(at)];
			assert.ok(l && l.at <= at && at < l.at + l.size);
			assert.match(l.text, /^\d{7} é*$/);
		}
	});
	it("an answer to another question is refused", () => {
		const w = open(server, 0);
		assert.equal(w.append(w.end + 1, encode("x\n")), false);
		assert.equal(w.append(w.next().offset, new Uint8Array(0)), false);
		assert.equal(w.prepend(5, encode("x\n")), 0);
	});
	it("a log of empty lines is bounded by their number", () => {
		const blank = new Server(new Uint8Array(4 * CHUNK).fill(10));
		const w = open(blank, 0);
		for (let k = 0; k < 3; k++) {
			const r = w.next();
			w.append(r.offset, blank.read(r.offset, r.limit));
			w.trimHead();
			assert.ok(w.lines.length <= KEEP_LINES);
		}
		check(w, blank);
	});
});

describe("a log that grows", () => {
	it("an open line is replaced by its whole", () => {
		const s = new Server(encode("one\ntw"));
		const w = open(s, Infinity);
		assert.deepEqual(texts(w), ["one", "tw"]);
		s.grow("o\nthree\n");
		const r = w.next();
		assert.equal(r.offset, 4);
		assert.ok(w.append(r.offset, s.read(r.offset, r.limit)));
		assert.deepEqual(texts(w), ["one", "two", "three"]);
		check(w, s);
	});
	it("nothing new is nothing new", () => {
		const s = new Server(encode("one\ntw"));
		const w = open(s, Infinity);
		const r = w.next();
		assert.equal(w.append(r.offset, s.read(r.offset, r.limit)), false);
	});
	it("a log that was empty begins", () => {
		const s = new Server(encode(""));
		const w = open(s, Infinity);
		assert.deepEqual(texts(w), []);
		s.grow("first\n");
		const r = w.next();
		assert.ok(w.append(r.offset, s.read(r.offset, r.limit)));
		assert.deepEqual(texts(w), ["first"]);
		check(w, s);
	});
	it("character by character it is the same as at once", () => {
		const text = "añb\r\n\u001b[31mred\u001b[0m\nlong " + "y".repeat(300) + "\nend";
		const s = new Server(encode(""));
		const w = open(s, 0);
		for (const ch of text) {
			s.grow(ch);
			const r = w.next();
			w.append(r.offset, s.read(r.offset, r.limit));
		}
		assert.deepEqual(texts(w), ["añb", "red", `long ${"y".repeat(300)}`, "end"]);
	});
});

describe("long lines are broken into rows", () => {
	const plain = (text: string) => ({ text, spans: null });
	it("at the width", () => assert.deepEqual(wrapPoints("abcdefgh", 3), [0, 3, 6]));
	it("an exact fit has no empty row, and blanks at the end none either", () => {
		assert.deepEqual(wrapPoints("abcdef", 3), [0, 3]);
		assert.deepEqual(wrapPoints(`abc${" ".repeat(40)}`, 3), [0]);
	});
	it("wide characters take two cells and are not cut", () => {
		assert.deepEqual(wrapPoints("漢字漢字", 5), [0, 2]);
		assert.deepEqual(wrapPoints("a😀😀", 3), [0, 3]);
	});
	it("each row knows its line", () => {
		const lines = ["abcdefgh", "", "ab"].map(plain);
		const rows = rowStarts(lines, 3);
		assert.deepEqual([...rows], [0, 3, 4, 5]);
		assert.deepEqual([0, 1, 2, 3, 4].map((r) => lineOfRow(rows, r)), [0, 0, 0, 1, 2]);
	});
	it("no lines are no rows", () => {
		const rows = rowStarts([], 80);
		assert.equal(rows[0], 0);
		assert.equal(lineOfRow(rows, 0), 0);
	});
});

describe("a log that comes with times", () => {
	const pieces = encode("out 4 -\nold\nout 6 1000\none\ntwout 2 2000\no\nout 5 2000\nthree");

	it("gives the bytes of the log alone, and where the time changes", () => {
		const t = parsePieces(pieces, 50);
		assert.equal(new TextDecoder().decode(t.bytes), "old\none\ntwo\nthree");
		assert.deepEqual(t.marks, [{ at: 50, ms: null }, { at: 54, ms: 1000 }, { at: 60, ms: 2000 }]);
		assert.deepEqual([49, 50, 53, 54, 59, 60, 99].map((at) => timeAt(t.marks, at)), [null, null, null, 1000, 1000, 2000, 2000]);
	});
	it("is taken as far as it goes if the answer was cut off", () => {
		for (let n = 0; n < pieces.length; n++) {
			const { bytes } = parsePieces(pieces.subarray(0, n), 0);
			assert.ok("old\none\ntwo\nthree".startsWith(new TextDecoder().decode(bytes)), String(n));
		}
	});
	it("has lines with the time of their first byte, at both ends of the window", () => {
		const w = new LogWindow();
		const all = parsePieces(pieces, 0);
		const part = (from: number, to: number): [number, Uint8Array, typeof all.marks] => [from, all.bytes.subarray(from, to), all.marks];
		w.reset(17);
		w.place(...part(3, 8));
		w.append(...part(8, 17));
		w.prepend(...part(0, 4));
		assert.deepEqual(w.lines.map((l) => [l.text, l.time]), [["old", null], ["one", 1000], ["two", 1000], ["three", 2000]]);
	});
	it("and none where nobody asked for them", () => {
		assert.equal("time" in (splitLines(encode("a\n"), 0)[0] as object), false);
	});
	it("is merged with those of other nodes in the order of arrival", async () => {
		const logs: Record<string, string> = {
			a: "out 6 1000\na1\na2\nout 3 3000\na3\n",
			b: "out 3 -\nb0\nout 3 2000\nb1\n",
		};
		const before = globalThis.fetch;
		globalThis.fetch = async (path) => new Response(logs[/logs\/(\w+)\?.*times=1/.exec(String(path))?.[1] ?? ""]);
		try {
			const merged = new MergedReader("r", ["out"], true, () => {});
			const node = (name: string, size: number): Node => ({ name, log_bytes: size, state: "running" }) as Node;
			await merged.update([node("a", 9), node("b", 6)]);
			assert.deepEqual(merged.lines.map((l) => [l.text, l.at]), [["b0", 0], ["a1", 1], ["a2", 2], ["b1", 3], ["a3", 4]]);
		} finally {
			globalThis.fetch = before;
		}
	});
});
