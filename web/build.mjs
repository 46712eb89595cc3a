/*
 * Build the dashboard: packages, bundle, compressed assets, and the C source that holds them.
 *
 *	node web/build.mjs --work DIR [--c FILE [--depfile FILE]] [--verbose]
 *
 * Nothing is written outside DIR and the named files: the packages are installed in DIR (anew when the lock file has
 * changed), the page is left in DIR/site.
 */
import { spawnSync } from "node:child_process";
import { createHash } from "node:crypto";
import { copyFileSync, existsSync, mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { dirname, join, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { gzipSync } from "node:zlib";

const MAX_BYTES = 100_000; /* of all assets, compressed */
const WEB = dirname(fileURLToPath(import.meta.url));
const MANIFEST = ["package.json", "package-lock.json", ".npmrc"];

const { values: args } = parseArgs({
	options: {
		work: { type: "string" },
		c: { type: "string" },
		depfile: { type: "string" },
		dev: { type: "boolean", default: false }, /* also what only the tests need */
		verbose: { type: "boolean", default: false },
	},
});
if (!args.work) fail("usage: node web/build.mjs --work DIR [--c FILE [--depfile FILE]] [--dev] [--verbose]");
const work = resolve(args.work);

function fail(text) {
	console.error(text);
	process.exit(1);
}

function sha256(...parts) {
	const h = createHash("sha256");
	for (const p of parts) h.update(p);
	return h.digest("hex");
}

/* npm ci, only when the lock file has changed since the last one. */
function installPackages() {
	const want = sha256(...MANIFEST.map((f) => readFileSync(join(WEB, f))), process.version, String(args.dev));
	const stamp = join(work, "packages.stamp");
	if (existsSync(stamp) && readFileSync(stamp, "utf8") === want) return;
	mkdirSync(work, { recursive: true });
	rmSync(stamp, { force: true });
	for (const f of MANIFEST) copyFileSync(join(WEB, f), join(work, f));
	const options = ["ci", "--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error"];
	if (!args.dev) options.push("--omit=dev");
	const done = spawnSync("npm", options, { cwd: work, encoding: "utf8" });
	if (done.error) fail(`npm cannot be run (${done.error.message}); tools/setup installs it`);
	if (done.status !== 0) fail(`npm ci failed in ${work}; are the packages within reach?\n${done.stdout}${done.stderr}`);
	writeFileSync(stamp, want);
}

async function bundle() {
	const { build } = createRequire(join(work, "package.json"))("esbuild");
	const result = await build({
		absWorkingDir: WEB,
		entryPoints: { app: "src/main.tsx" },
		outdir: join(work, "site"),
		bundle: true,
		minify: true,
		write: false,
		metafile: true,
		target: "es2020",
		format: "iife",
		jsx: "automatic",
		jsxImportSource: "preact",
		nodePaths: [join(work, "node_modules")],
		legalComments: "none",
		logLevel: "warning",
	});
	const inputs = Object.keys(result.metafile.inputs).map((p) => resolve(WEB, p));
	const output = (name) => Buffer.from(result.outputFiles.find((f) => f.path.endsWith(name)).contents);
	if (args.verbose) console.log(sizes(result.metafile));
	return { js: output("app.js"), css: output("app.css"), inputs };
}

/* What takes the room, biggest first. */
function sizes(metafile) {
	const of = Object.values(metafile.outputs).flatMap((o) => Object.entries(o.inputs));
	of.sort((a, b) => b[1].bytesInOutput - a[1].bytesInOutput);
	return of.slice(0, 30).map(([p, i]) => `${String(i.bytesInOutput).padStart(8)}  ${p}`).join("\n");
}

function cSource(assets) {
	const rows = [];
	const arrays = assets.map((a, i) => {
		const lines = [];
		for (let at = 0; at < a.gzip.length; at += 32) lines.push(`\t${[...a.gzip.subarray(at, at + 32)].join(",")},`);
		rows.push(`\t{"${a.path}", "${a.type}", "\\"${a.etag}\\"", asset_${i}, sizeof(asset_${i})},`);
		return `static const unsigned char asset_${i}[] = {\n${lines.join("\n")}\n};\n`;
	});
	return `/* Made by web/build.mjs from web/. */
#include "web/assets.h"

${arrays.join("\n")}
const struct page_asset page_assets[] = {
${rows.join("\n")}
};
const size_t page_nassets = sizeof(page_assets) / sizeof(page_assets[0]);
`;
}

/* Written to a temporary file and renamed, so that no reader sees half of it. */
function writeWhole(path, data) {
	mkdirSync(dirname(path), { recursive: true });
	writeFileSync(`${path}.new`, data);
	renameSync(`${path}.new`, path);
}

installPackages();
const { js, css, inputs } = await bundle();
const assets = [
	{ path: "/", file: "index.html", type: "text/html; charset=utf-8", body: readFileSync(join(WEB, "index.html")) },
	{ path: "/assets/app.js", file: "app.js", type: "text/javascript; charset=utf-8", body: js },
	{ path: "/assets/app.css", file: "app.css", type: "text/css; charset=utf-8", body: css },
	{ path: "/assets/icon.svg", file: "icon.svg", type: "image/svg+xml", body: readFileSync(join(WEB, "icon.svg")) },
];
let total = 0;
for (const a of assets) {
	a.gzip = gzipSync(a.body, { level: 9 });
	a.etag = sha256(a.body).slice(0, 16);
	total += a.gzip.length;
	writeWhole(join(work, "site", a.file), a.body);
	writeWhole(join(work, "site", `${a.file}.gz`), a.gzip);
	if (args.verbose) console.log(`${a.file}: ${a.body.length} bytes, ${a.gzip.length} compressed`);
}
if (args.verbose) console.log(`in all ${total} bytes compressed, ${MAX_BYTES} allowed`);
if (total > MAX_BYTES) fail(`the page has grown to ${total} bytes compressed; ${MAX_BYTES} are allowed`);

if (args.c) {
	writeWhole(args.c, cSource(assets));
	if (args.depfile) {
		const all = [...inputs, ...["index.html", "icon.svg", "build.mjs", ...MANIFEST].map((f) => join(WEB, f))];
		writeWhole(args.depfile, `${args.c}: ${all.map((p) => p.replace(/ /g, "\\ ")).join(" \\\n  ")}\n`);
	}
}
