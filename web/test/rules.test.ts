import assert from "node:assert/strict";
import { readdirSync, readFileSync } from "node:fs";
import { describe, it } from "node:test";

/* What would let a log or a name become code, or break the content security policy. */
const FORBIDDEN: [RegExp, string][] = [
	[/\binnerHTML\b|\bouterHTML\b|insertAdjacentHTML|dangerouslySetInnerHTML|createContextualFragment|DOMParser/, "markup from text"],
	[/\beval\s*\(|new Function\b|document\.write|javascript:/, "code from text"],
	[/setAttribute\(\s*["'](?:style|on\w+)/, "inline style or handler"],
	[/\bhttps?:\/\/(?!www\.w3\.org)/, "something from elsewhere"],
];

describe("the sources keep what comes from outside as text", () => {
	for (const file of readdirSync("src", { recursive: true, encoding: "utf8" }).filter((f) => /\.tsx?$/.test(f))) {
		const text = readFileSync(`src/${file}`, "utf8");
		for (const [pattern, what] of FORBIDDEN) it(`${file}: no ${what}`, () => assert.doesNotMatch(text, pattern));
	}
});

describe("the page itself is strict", () => {
	const html = readFileSync("site/index.html", "utf8");
	it("no inline script, style or handler", () => {
		assert.doesNotMatch(html, /<script(?![^>]*\bsrc=)|<style|\sstyle=|\son\w+=/i);
	});
	it("everything it loads is its own", () => {
		const links = [...html.matchAll(/(?:src|href)="([^"]*)"/g)].map((m) => m[1] ?? "");
		assert.deepEqual(links, ["/assets/icon.svg", "/assets/app.css", "/assets/app.js"]);
	});
	it("the style sheet loads nothing", () => {
		assert.doesNotMatch(readFileSync("site/app.css", "utf8"), /@import|url\(/);
	});
});
