import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { marked, pieces, plainLine } from "../src/log/ansi";

const E = "\x1b";

function spans(line: string): string[] {
	const p = plainLine(line);
	return pieces(p, 0, p.text.length).map((x) => `${x.cls}|${x.text}`);
}

describe("colours become class names", () => {
	const cases: [string, string[]][] = [
		["plain", ["|plain"]],
		[`${E}[31mred${E}[0m off`, ["a-f1|red", "| off"]],
		[`${E}[1;32mb${E}[22mg${E}[39mn`, ["a-b a-f2|b", "a-f2|g", "|n"]],
		[`${E}[91mbright${E}[m.`, ["a-f9|bright", "|."]],
		[`${E}[38;5;196mx${E}[38;2;0;200;0my`, ["a-f9|x", "a-f2|y"]],
		[`${E}[7minverse${E}[27m.`, ["a-inv|inverse", "|."]],
		[`${E}[41mback`, ["a-g1|back"]],
		[`${E}[38mcut short`, ["|cut short"]],
	];
	for (const [line, want] of cases) it(JSON.stringify(line), () => assert.deepEqual(spans(line), want));
});

describe("every other escape is dropped", () => {
	const cases: [string, string][] = [
		[`a${E}[2Kb${E}[1;1Hc`, "abc"],
		[`${E}]0;title\x07text`, "text"],
		[`${E}]8;;http://x${E}\\link${E}]8;;${E}\\`, "link"],
		[`${E}Psixel${E}\\after`, "after"],
		[`${E}(Bline`, "line"],
		[`cut${E}[`, "cut"],
		[`cut${E}`, "cut"],
		["\x9b31mred", "red"],
	];
	for (const [line, want] of cases) it(JSON.stringify(line), () => assert.equal(plainLine(line).text, want));
});

describe("what is shown is what was meant", () => {
	it("a bar that is drawn again is its last state", () => {
		assert.equal(plainLine("10 %\r50 %\r100 %\r").text, "100 %");
	});
	it("a line of returns alone is what came before them", () => {
		assert.equal(plainLine("done\r\r").text, "done");
	});
	it("tabs go to the next multiple of eight", () => {
		assert.equal(plainLine("a\tbcd\te").text, "a       bcd     e");
	});
	it("a tab after an escape counts from the line's start", () => {
		assert.equal(plainLine(`abc${E}[31m\tx`).text, "abc     x");
	});
	it("controls and marks that turn text around are shown as foreign", () => {
		assert.equal(plainLine("a\x00b\x07c\u202ed\u2066e\u200ff").text, "a\ufffdb\ufffdc\ufffdd\ufffde\ufffdf");
	});
	it("markup is text like any other", () => {
		assert.equal(plainLine("<script>alert(1)</script>").text, "<script>alert(1)</script>");
	});
});

describe("a part of a line keeps its colours", () => {
	const p = plainLine(`ab${E}[31mcdef${E}[0mgh`);
	it("inside one span", () => assert.deepEqual(pieces(p, 3, 5), [{ text: "de", cls: "a-f1" }]));
	it("over several", () => {
		assert.deepEqual(pieces(p, 1, 7), [
			{ text: "b", cls: "" },
			{ text: "cdef", cls: "a-f1" },
			{ text: "g", cls: "" },
		]);
	});
});

describe("a match is marked", () => {
	it("over a change of colour", () => {
		const p = plainLine(`ab${E}[31mcd`);
		assert.deepEqual(
			marked(pieces(p, 0, 4), /bc/g).map((x) => [x.text, x.cls, x.hit]),
			[
				["a", "", false],
				["b", "", true],
				["c", "a-f1", true],
				["d", "a-f1", false],
			],
		);
	});
	it("as often as it is there, and an empty one not at all", () => {
		assert.equal(marked([{ text: "xaxax", cls: "" }], /a/g).filter((x) => x.hit).length, 2);
		assert.equal(marked([{ text: "xaxax", cls: "" }], /q*/g).filter((x) => x.hit).length, 0);
	});
});
