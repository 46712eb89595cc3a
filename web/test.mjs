/*
 * Check the dashboard's sources: types by tsc, rules by node's test runner, whose summary is the last thing printed.
 *
 *	node web/test.mjs [--work DIR]      (DIR: build/web-test)
 */
import { spawnSync } from "node:child_process";
import { cpSync, readdirSync, rmSync } from "node:fs";
import { createRequire } from "node:module";
import { dirname, join, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";

const WEB = dirname(fileURLToPath(import.meta.url));
const { values: args } = parseArgs({ options: { work: { type: "string", default: join(WEB, "../build/web-test") } } });
const work = resolve(args.work);

function run(command, argv, options = {}) {
	const done = spawnSync(command, argv, { stdio: "inherit", ...options });
	if (done.status !== 0) process.exit(done.status ?? 1);
}

run(process.execPath, [join(WEB, "build.mjs"), "--work", work, "--dev"]);
/* Beside the packages, so that every tool finds them in the usual way. */
for (const part of ["src", "test", "tsconfig.json"]) {
	rmSync(join(work, part), { recursive: true, force: true });
	cpSync(join(WEB, part), join(work, part), { recursive: true });
}
run(process.execPath, [join(work, "node_modules/typescript/bin/tsc"), "-p", join(work, "tsconfig.json")]);

const tests = readdirSync(join(work, "test")).filter((f) => f.endsWith(".test.ts"));
rmSync(join(work, "tests"), { recursive: true, force: true });
await createRequire(join(work, "package.json"))("esbuild").build({
	absWorkingDir: work,
	entryPoints: tests.map((f) => `test/${f}`),
	outdir: "tests",
	outExtension: { ".js": ".mjs" },
	bundle: true,
	platform: "node",
	format: "esm",
	target: "node18",
	sourcemap: "inline",
	logLevel: "warning",
});
run(process.execPath, ["--enable-source-maps", "--test", "--test-reporter=tap", ...tests.map((f) => join("tests", f.replace(/ts$/, "mjs")))], {
	cwd: work,
});
