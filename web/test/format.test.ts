import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { age, bytes, count, duration, machineValue, money, percent, plural, pvalue, signed, value } from "../src/lib/format";

describe("a duration is short at every size", () => {
	const cases: [number | null | undefined, string][] = [
		[0, "0 ms"],
		[7.4, "7 ms"],
		[999, "999 ms"],
		[1240, "1.24 s"],
		[59_990, "59.9 s"],
		[60_000, "1 min 00 s"],
		[185_000, "3 min 05 s"],
		[7_800_000, "2 h 10 min"],
		[273_600_000, "3 d 4 h"],
		[-5, "0 ms"],
		[null, "–"],
		[undefined, "–"],
		[NaN, "–"],
	];
	for (const [ms, text] of cases) it(`${ms} is ${text}`, () => assert.equal(duration(ms), text));
});

describe("bytes are in powers of 1000", () => {
	const cases: [number, string][] = [
		[0, "0 B"],
		[999, "999 B"],
		[1000, "1.00 KB"],
		[18_240, "18.2 KB"],
		[999_499, "999 KB"],
		[999_500, "1.00 MB"],
		[1_073_741_824, "1.07 GB"],
		[5e18, "5000 PB"],
	];
	for (const [n, text] of cases) it(`${n} is ${text}`, () => assert.equal(bytes(n), text));
});

describe("a value has four digits and no noise", () => {
	const cases: [number | null | undefined, string][] = [
		[0, "0"],
		[0.31, "0.31"],
		[0.123456, "0.1235"],
		[0.1 + 0.2, "0.3"],
		[12.3456, "12.35"],
		[5218.37, "5\u2009218"],
		[4000, "4\u2009000"],
		[-1234567, "−1\u2009234\u2009567"],
		[1.5e9, "1.50e9"],
		[0.00000123, "1.23e−6"],
		[-0.5, "−0.5"],
		[Infinity, "∞"],
		[-Infinity, "−∞"],
		[NaN, "–"],
		[null, "–"],
		[undefined, "–"],
	];
	for (const [v, text] of cases) it(`${v} is ${text}`, () => assert.equal(value(v), text));
});

describe("a figure of a machine has its unit", () => {
	const cases: [string, number | null, string][] = [
		["host.cpu", 42.5, "42.5 %"],
		["job.cpu", 150, "150 %"],
		["gpu0.util", 7, "7 %"],
		["host.memory", 7_425_300_000, "7.4253 GB"],
		["gpu12.memory", 999, "999 B"],
		["host.net_rx", 20e6, "20 MB/s"],
		["host.disk_write", 1000, "1 KB/s"],
		["host.memory", null, "–"],
		["host.something_new", 3.25, "3.25"],
	];
	for (const [name, v, text] of cases) it(`${name} ${v} is ${text}`, () => assert.equal(machineValue(name, v), text));
});

describe("the rest of the figures", () => {
	it("an age is coarse", () => {
		assert.deepEqual([0, 30_000, 90_000, 5_400_000, 90_000_000, 400_000_000].map(age), ["now", "30 s", "1 min", "1 h", "25 h", "4 d"]);
	});
	it("a p-value is never zero", () => {
		assert.deepEqual([0.00001, 0.0314, 1, null].map(pvalue), ["< 0.001", "0.031", "1.000", "–"]);
	});
	it("a difference has its sign", () => {
		assert.deepEqual([0.5, -0.5, 0, null].map(signed), ["+0.5", "−0.5", "0", "–"]);
	});
	it("money is not rounded to nothing", () => {
		assert.deepEqual([0, 0.001, 1.5, null].map(money), ["$0", "< $0.01", "$1.50", "–"]);
	});
	it("one is not many", () => {
		assert.deepEqual([plural(1, "run"), plural(0, "run"), plural(2000, "node is", "nodes are")], ["1 run", "0 runs", "2\u2009000 nodes are"]);
	});
	it("a share is in percent", () => {
		assert.deepEqual([percent(0.123), percent(-0.5, 0), percent(null)], ["12.3 %", "−50 %", "–"]);
	});
	it("thousands are apart, decimals are not", () => {
		assert.deepEqual([999, 1000, 1234567.5, -1234].map(count), ["999", "1\u2009000", "1\u2009234\u2009567.5", "-1\u2009234"]);
	});
});
