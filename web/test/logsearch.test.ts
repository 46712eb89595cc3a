import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { ERROR_PATTERN, isErrorLine, PIECE, search, textPattern, type Find } from "../src/log/search";

function find(data: Uint8Array, pattern: RegExp, from: number, backwards = false, errors = false): Promise<Find | null> {
	let reads = 0;
	return search({
		read: async (offset, limit) => {
			assert.ok(limit <= PIECE && ++reads < 100);
			return data.subarray(offset, offset + limit);
		},
		size: data.length,
		from,
		backwards,
		pattern,
		errors,
		stopped: () => false,
		seen: (n) => assert.ok(n <= data.length),
	});
}

const encode = (s: string): Uint8Array => new TextEncoder().encode(s);

describe("a text is found in a log", () => {
	const data = encode("alpha\nBéta\nalpha beta\n");
	it("forwards, without regard to case", async () => {
		assert.deepEqual(await find(data, textPattern("ALPHA"), 1), { offset: 12, length: 5, wrapped: false });
	});
	it("backwards", async () => {
		assert.deepEqual(await find(data, textPattern("alpha"), 12, true), { offset: 0, length: 5, wrapped: false });
	});
	it("around the end and the beginning", async () => {
		assert.deepEqual(await find(data, textPattern("alpha"), 13), { offset: 0, length: 5, wrapped: true });
		assert.deepEqual(await find(data, textPattern("alpha"), 0, true), { offset: 12, length: 5, wrapped: true });
	});
	it("in UTF-8, at its byte", async () => {
		assert.deepEqual(await find(data, textPattern("éta"), 0), { offset: 7, length: 4, wrapped: false });
	});
	it("signs of patterns are plain signs", async () => {
		const d = encode("a.b a+b (x) [y]");
		for (const q of ["a+b", "(x)", "[y]", "."]) assert.equal((await find(d, textPattern(q), 0))?.offset, d.indexOf(q.charCodeAt(0), q === "a+b" ? 1 : 0));
	});
	it("what is not there is not found", async () => {
		assert.equal(await find(data, textPattern("gamma"), 5), null);
		assert.equal(await find(encode(""), textPattern("x"), 0), null);
	});
});

describe("a log of several pieces", () => {
	const size = 3 * PIECE;
	const at = (offset: number): Uint8Array => {
		const data = new Uint8Array(size).fill(0x2e);
		data.set(encode("needle"), offset);
		return data;
	};
	for (const offset of [0, PIECE - 3, PIECE, 2 * PIECE - 6, size - 6]) {
		it(`a match at ${offset} is found both ways`, async () => {
			const data = at(offset);
			assert.equal((await find(data, textPattern("needle"), 0))?.offset, offset);
			assert.equal((await find(data, textPattern("needle"), size, true))?.offset, offset);
		});
	}
	it("a search that is stopped says nothing", async () => {
		const found = await search({
			read: async () => encode("...."), size, from: 0, backwards: false, pattern: /x/g, errors: false, stopped: () => true, seen: () => {},
		});
		assert.equal(found, null);
	});
});

describe("a line that speaks of an error is told from one that does not", () => {
	for (const bad of [
		"RuntimeError: CUDA out of memory", "Traceback (most recent call last):", "FATAL: cannot bind", "Segmentation fault (core dumped)",
		"[rank3] NCCL failure", "E0101 connection refused", "java.lang.IllegalStateException", "ERROR worker died", "Failed to open",
	]) it(`bad: ${bad}`, () => assert.ok(isErrorLine(bad)));
	for (const good of ["step 3 loss=0.31", "validation error: 0.031", "error=0.5", "0 errors, 3 warnings", "no errors found", "failed: 0", "terror and mirror"])
		it(`good: ${good}`, () => assert.ok(!isErrorLine(good)));
	it("the search skips the harmless ones", async () => {
		const data = encode("error=0.5\n0 errors\nValueError: no\nok\n");
		assert.equal((await find(data, ERROR_PATTERN, 0, false, true))?.offset, 23);
	});
});
