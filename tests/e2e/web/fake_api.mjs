/*
 * A service that never was: what docs/api.md promises, in sizes that would take a real one hours to produce. Ten
 * thousand runs, a log of a gigabyte, a thousand nodes, a server that goes away.
 *
 *	node tests/e2e/web/fake_api.mjs --site DIR [--port N] [--runs N]
 *
 * Prints its address. POST /fake/{down,up} cuts every connection and refuses new ones, and takes it back.
 */
import { createServer } from "node:http";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { parseArgs } from "node:util";

const { values: args } = parseArgs({
	options: {
		site: { type: "string" },
		port: { type: "string", default: "0" },
		runs: { type: "string", default: "10000" },
	},
});
const CSP =
	"default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";
const BEGAN = Date.now();
const LINE = 128; /* every line of the big log is as long, so that any place of it can be made */
const BIG = 1024 ** 3;
const ERROR_LINE = Math.floor((BIG / LINE) * 0.6);
const PHASES = ["accepted", "provisioning", "gathering", "running", "collecting", "cleaning"];

/* The same numbers each time. */
function noise(seed) {
	const x = Math.sin(seed * 12.9898) * 43758.5453;
	return x - Math.floor(x);
}

function node(name, role, rank, index, more = {}) {
	return {
		name, role, rank, index, address: `10.0.${rank >> 8}.${rank & 255}`, state: "running", attempt: 1, exit_code: null,
		signal: null, oom: false, reason: null, log_bytes: 0, err_bytes: 0, bad_values: 0, metrics: {}, ...more,
	};
}

function crew(pservers, trainers, more) {
	const all = [];
	for (let i = 0; i < pservers; i++) all.push(node(`pserver-${i}`, "pserver", all.length, i, more));
	for (let i = 0; i < trainers; i++) all.push(node(`trainer-${i}`, "trainer", all.length, i, more));
	return all;
}

function counts(nodes) {
	const c = { nodes: nodes.length };
	for (const s of ["wanted", "launching", "here", "ready", "running", "exited", "released", "lost"]) {
		c[s] = nodes.filter((n) => n.state === s).length;
	}
	return c;
}

function base(id, state, more = {}) {
	const over = ["succeeded", "failed", "cancelled"].includes(state);
	return {
		id, name: id.replace(/-[a-z]{4}$/, ""), state, engine: "local", strategy: "pserver", verdict: over ? state : null, cause: null,
		cause_kind: null, cause_node: null, exit_code: over ? (state === "succeeded" ? 0 : 1) : null, dir: `/home/user/.local/state/regatta/runs/${id}`,
		created_ms: BEGAN - 60_000, ended_ms: over ? BEGAN : null, elapsed_ms: 60_000,
		phases: Object.fromEntries(PHASES.map((p) => [p, null])), deadline_ms: null, cancel_asked: false, metrics: {}, nodes: [], waiting: [],
		tail: null, ...more,
	};
}

const STEPS = 4000;
function loss(step, rank, run = 0) {
	return 0.69 * Math.exp(-step / (900 + 80 * run)) + 0.05 + 0.04 * noise(step * 7 + rank * 131 + run) + (step % 997 === 0 ? 0.3 : 0);
}
function rate(step, rank, run = 0) {
	return 5200 + 300 * Math.sin(step / 120 + rank) + 200 * noise(step * 3 + rank) + 140 * run;
}

function liveStep() {
	return Math.min(STEPS, 800 + Math.floor((Date.now() - BEGAN) / 20));
}

const cancelled = new Set();
const removed = new Set();

/* Living runs are made anew each time they are asked for. */
const special = {
	"ctr-ps-live": (id) => {
		const step = liveStep();
		const done = step >= STEPS || cancelled.has(id);
		const nodes = crew(2, 6);
		for (const n of nodes) {
			const last = n.role === "trainer" ? { loss: loss(step, n.rank), "examples/s": rate(step, n.rank) } : {};
			Object.assign(n, { metrics: last, log_bytes: logSize(id, n.name, "out"), err_bytes: logSize(id, n.name, "err") });
			if (done) Object.assign(n, { state: "exited", exit_code: n.role === "trainer" ? 0 : null, signal: n.role === "trainer" ? null : 15 });
		}
		const state = cancelled.has(id) ? "cancelled" : done ? "succeeded" : "running";
		const ms = 42_000 + (done ? 0 : Date.now() - BEGAN);
		const sum = (f, best) => ({ first: f(1, 2), last: f(step, 2), best, mean: (f(1, 2) + f(step, 2)) / 2, count: 6 * step });
		return base(id, state, {
			nodes, elapsed_ms: ms, progress: { step, total: STEPS },
			phases: { accepted: 4, provisioning: 1800, gathering: 5200, running: ms - 7004, collecting: done ? 310 : null, cleaning: done ? 90 : null },
			metrics: { loss: { ...sum(loss, 0.0512), better: "lower" }, "examples/s": { ...sum(rate, 5718), better: "higher" } },
			cause: cancelled.has(id) ? "cancelled by the user" : null,
		});
	},
	"resnet-gath": (id) => {
		const arrived = Math.floor((Date.now() - BEGAN) / 150) % 40;
		const nodes = Array.from({ length: 32 }, (_, i) =>
			node(`worker-${i}`, "worker", i, i, { state: i < arrived - 6 ? "ready" : i < arrived ? "here" : i < arrived + 4 ? "launching" : "wanted" }),
		);
		return base(id, "gathering", {
			nodes, engine: "aws.ec2", strategy: "torch", elapsed_ms: 21_000, deadline_ms: 99_000, cost_usd: 1.37,
			phases: { accepted: 3, provisioning: 14_000, gathering: 7000, running: null, collecting: null, cleaning: null },
			waiting: [{ kind: "ec2.instance", name: "worker-31", state: "sent", why: "capacity: InsufficientInstanceCapacity in us-east-1a, next zone in 8 s" }],
		});
	},
	"mnist-fail": (id) => {
		const nodes = crew(1, 3, { state: "released", exit_code: 0, log_bytes: 18_240, err_bytes: 0 });
		Object.assign(nodes[0], { exit_code: null, signal: 15 });
		Object.assign(nodes[2], { exit_code: 1, err_bytes: 912 });
		return base(id, "failed", {
			nodes, cause: "trainer-1: exit code 1", cause_node: "trainer-1", elapsed_ms: 8400, created_ms: BEGAN - 4_000_000,
			phases: { accepted: 2, provisioning: 40, gathering: 60, running: 8100, collecting: 120, cleaning: 78 },
			tail: { node: "trainer-1", stream: "err", lines: TRACE.split("\n") },
		});
	},
	"gpt-wide": (id) => {
		const nodes = Array.from({ length: 1000 }, (_, i) => {
			const s = noise(i);
			if (i === 404) return node(`rank-${i}`, "rank", i, i, { state: "lost", log_bytes: 4000 });
			if (s > 0.995) return node(`rank-${i}`, "rank", i, i, { state: "exited", exit_code: 137, oom: true, log_bytes: 4000 });
			return node(`rank-${i}`, "rank", i, i, { state: i > 930 ? "ready" : "running", log_bytes: 4000, attempt: s > 0.98 ? 2 : 1 });
		});
		return base(id, "running", {
			nodes, engine: "aws.asg", strategy: "elastic", elapsed_ms: 7_400_000 + Date.now() - BEGAN, created_ms: BEGAN - 7_400_000, cost_usd: 812.4,
			phases: { accepted: 9, provisioning: 180_000, gathering: 92_000, running: 7_128_000, collecting: null, cleaning: null },
			metrics: { step: { last: 12_400, count: 9 }, total_steps: { last: 50_000, count: 9 }, loss: { first: 9, last: 3.1, best: 3.05, mean: 4, count: 9, better: "lower" } },
		});
	},
	"etl-biglog": (id) =>
		base(id, "succeeded", {
			strategy: "single", created_ms: BEGAN - 90_000_000, elapsed_ms: 5_400_000,
			phases: { accepted: 3, provisioning: 12, gathering: 9, running: 5_399_000, collecting: 900, cleaning: 76 },
			nodes: [node("worker-0", "worker", 0, 0, { state: "released", exit_code: 0, log_bytes: BIG })],
		}),
};

const TRACE = `Traceback (most recent call last):
  File "train.py", line 88, in <module>
    main()
  File "train.py", line 61, in main
    loss = step(batch)
RuntimeError: \u001b[31mCUDA error: device-side assert triggered\u001b[0m
<img src=x onerror="window.pwned=1"> </pre><script>window.pwned=1</script>
`;

const ENGINES = ["local", "aws.ec2", "aws.asg", "kubernetes", "aws.eks"];
const STRATEGIES = ["pserver", "torch", "elastic", "mpi", "tf", "single"];
const NAMES = ["ctr-ps", "resnet50", "bert-base", "gpt2-124m", "wide-deep", "quickstart", "allreduce-bw"];

function ordinary(i) {
	const s = noise(i + 1);
	const letters = Array.from({ length: 4 }, (_, k) => String.fromCharCode(97 + Math.floor(noise(i * 5 + k + 3) * 26))).join("");
	const name = NAMES[i % NAMES.length];
	const state = s < 0.78 ? "succeeded" : s < 0.93 ? "failed" : "cancelled";
	const engine = ENGINES[Math.floor(noise(i * 3) * ENGINES.length)];
	const created = BEGAN - (i + 2) * 1_900_000;
	const elapsed = Math.floor(4000 + noise(i * 11) ** 4 * 9_000_000);
	const n = 1 << Math.floor(noise(i * 17) * 7);
	return {
		id: `${name}-${letters}`, name, state, engine, strategy: STRATEGIES[Math.floor(noise(i * 7) * STRATEGIES.length)], verdict: state,
		created_ms: created, ended_ms: created + elapsed, elapsed_ms: elapsed, counts: { nodes: n }, cost_usd: engine === "local" ? undefined : (elapsed / 3.6e6) * n * 0.34,
	};
}

const old = Array.from({ length: Math.max(0, Number(args.runs) - Object.keys(special).length) }, (_, i) => ordinary(i));

function find(id) {
	if (removed.has(id)) return null;
	if (special[id]) {
		const r = special[id](id);
		r.counts = counts(r.nodes);
		return r;
	}
	const o = old.find((r) => r.id === id);
	if (!o) return null;
	const nodes = Array.from({ length: o.counts.nodes }, (_, i) => node(`worker-${i}`, "worker", i, i, { state: "released", exit_code: o.state === "succeeded" ? 0 : 1, log_bytes: 5200 }));
	const metrics = { loss: { first: 0.7, last: loss(STEPS, 0, 1), best: 0.05, mean: 0.2, count: 500, better: "lower" }, "examples/s": { first: 5000, last: 5400, best: 5700, mean: 5300, count: 500, better: "higher" } };
	return { ...base(o.id, o.state), ...o, nodes, metrics, counts: counts(nodes), cause: o.state === "failed" ? "worker-0: exit code 1" : null,
		phases: { accepted: 2, provisioning: 900, gathering: 400, running: o.elapsed_ms - 2000, collecting: 600, cleaning: 98 } };
}

function logLine(i) {
	const text = i === ERROR_LINE ? `${i} RuntimeError: the needle in the haystack` : `${i} \u001b[32mINFO\u001b[0m shard ${i % 512} read ${i * 37} rows, checksum ${(i * 2654435761) % 4294967296}`;
	return text.padEnd(LINE - 1, i === ERROR_LINE ? "!" : ".").slice(0, LINE - 1) + "\n";
}

function logSize(id, name, stream) {
	if (id === "etl-biglog") return stream === "out" ? BIG : 0;
	if (id === "ctr-ps-live") return stream === "err" ? 260 : liveStep() * 62;
	if (id === "mnist-fail") return stream === "err" ? (name === "trainer-1" ? Buffer.byteLength(TRACE) : 0) : 64 * 285;
	return stream === "out" ? 64 * 80 : 0;
}

function logBytes(id, name, stream, offset, limit) {
	const size = logSize(id, name, stream);
	const end = Math.min(size, offset + limit);
	if (offset >= end) return Buffer.alloc(0);
	if (id === "mnist-fail" && stream === "err") return Buffer.from(TRACE).subarray(offset, end);
	const width = id === "etl-biglog" ? LINE : id === "ctr-ps-live" ? 62 : 64;
	const line = id === "etl-biglog" ? logLine : (i) => `step ${i}/${STEPS} loss=${loss(i, name.length).toFixed(4)} lr=0.001 ${name}`.padEnd(width - 1).slice(0, width - 1) + "\n";
	const first = Math.floor(offset / width);
	let text = "";
	for (let i = first; i * width < end; i++) text += line(i);
	return Buffer.from(text, "latin1").subarray(offset - first * width, end - first * width);
}

function metrics(id, name) {
	const run = find(id);
	const series = [];
	const n = id === "ctr-ps-live" ? liveStep() : 1500;
	const shift = id.charCodeAt(0) % 3;
	if (name) {
		for (const w of run.nodes.filter((x) => x.role !== "pserver").slice(0, id === "gpt-wide" ? 200 : 16)) {
			const points = [];
			for (let s = 1; s <= n; s += id === "gpt-wide" ? 10 : 1) {
				const v = name === "loss" ? loss(s, w.rank, shift) : name.startsWith("host.") ? 50 + 40 * Math.sin(s / 60 + w.rank) : rate(s, w.rank, shift);
				points.push([run.created_ms + s * 20 + w.rank, name.startsWith("host.") ? null : s, v]);
			}
			series.push({ name, node: w.name, points });
		}
	}
	const of = { ...run.metrics, "host.cpu": { first: 1, last: 50, best: 90, mean: 50, count: 10 }, "host.memory": { first: 1, last: 50, best: 90, mean: 50, count: 10 } };
	return { metrics: Object.fromEntries(Object.entries(of).map(([k, all]) => [k, { better: "lower", all, nodes: {} }])), bad_values: 0, series };
}

function compare(ids) {
	const row = (run, k) => ({ run, n: 1500, median: 0.21 + 0.013 * k, mean: 0.24 + 0.011 * k, ...(k && ids.length > 2 ? { diff: 0.013 * k, diff_pct: 6.2 * k, ci: [0.004 * k, 0.02 * k], p: 0.0004, p_holm: 0.0008, verdict: "worse" } : {}) });
	return {
		runs: ids,
		metrics: [
			{ name: "loss", better: "lower", rows: ids.map(row), baseline: ids[0], diff: 0.013, diff_pct: 6.2, ci: [0.004, 0.02], p: 0.0004, p_holm: 0.0008, verdict: "worse", mde_pct: 1.4 },
			{ name: "examples/s", better: "higher", rows: ids.map((run, k) => ({ run, n: 1500, median: 5300 + 140 * k, mean: 5310 + 140 * k })), baseline: ids[0], diff: 140, diff_pct: 2.64, ci: [90, 181], p: 0.012, p_holm: 0.012, verdict: "better", mde_pct: 0.9 },
		],
	};
}

const JOB = `name        = "ctr-ps"\nstrategy    = "pserver"\nmax_runtime = "2h"\nenv         = { BATCH = "512" }\n\n[roles.pserver]\ncount = 2\ncommand = ["python3", "ps.py"]\nport = 5436\n\n[roles.trainer]\ncount = 6\ncommand = ["python3", "train.py", "--lr", "0.001"]\n\n[metrics.loss]\npattern = 'step (?<step>\\d+)/(?<total>\\d+) loss=(?<value>[-+.0-9eE]+)'\nbetter  = "lower"\n`;

function plan(id) {
	const nodes = find(id).nodes.map((n) => ({
		name: n.name, role: n.role, index: n.index, rank: n.rank, address: n.address, counted: true, resource: n.name,
		env: { MASTER_ADDR: "10.0.0.0", MASTER_PORT: "29500", RANK: String(n.rank), REGATTA_NODE: n.name, REGATTA_RUN: id, REGATTA_MEMBERS: find(id).nodes.slice(0, 8).map((m) => `${m.name}=${m.address}`).join(","), WORLD_SIZE: String(find(id).nodes.length) },
	}));
	return { run: id, roles: [{ name: "trainer", count: 6, command: ["python3", "train.py", "--lr", "0.001", "--note", "it's fine"] }], nodes };
}

function events(id) {
	const out = [];
	const add = (kind, node, text) => out.push({ seq: out.length + 1, time_ms: BEGAN - 60_000 + out.length * 37, kind, ...(node && { node }), ...(text && { text }) });
	add("accepted");
	add("provisioning");
	for (const n of find(id).nodes) add("created", n.name, `id ${n.name}-0a1b`);
	add("gathering");
	for (const n of find(id).nodes) add("hello", n.name), add("ready", n.name);
	add("running");
	for (const n of find(id).nodes) add("started", n.name);
	return out;
}

let down = false;
const open = new Set();

function summary(r) {
	const { nodes, waiting, tail, ...rest } = r;
	return rest;
}

function list(q) {
	let all = [...Object.keys(special).map(find).filter(Boolean).map(summary), ...old];
	const total = all.length;
	if (q.get("state") === "active") all = all.filter((r) => !["succeeded", "failed", "cancelled"].includes(r.state));
	if (q.get("before")) all = all.slice(all.findIndex((r) => r.id === q.get("before")) + 1);
	return { runs: all.slice(0, Number(q.get("limit") ?? 100)), total };
}

function json(res, body, status = 200) {
	res.writeHead(status, { "Content-Type": "application/json" });
	res.end(`${JSON.stringify(body)}\n`);
}

function refuse(res, status, kind, message, details) {
	json(res, { error: { kind, message, ...(details && { details }) } }, status);
}

function watch(res, id) {
	res.writeHead(200, { "Content-Type": "application/x-ndjson" });
	const send = () => {
		const r = find(id);
		if (!r) return res.end();
		res.write(`${JSON.stringify(r)}\n`);
		if (r.verdict) res.end();
	};
	send();
	const timer = setInterval(send, 250);
	res.on("close", () => clearInterval(timer));
}

let eventNo = 0;
function stream(res) {
	res.writeHead(200, { "Content-Type": "text/event-stream" });
	res.write(": hello\n\n");
	const timer = setInterval(() => {
		const r = find("ctr-ps-live");
		if (r) res.write(`id: ${++eventNo}\ndata: ${JSON.stringify({ run: r.id, seq: eventNo, time_ms: Date.now(), kind: "tick", state: r.state })}\n\n`);
	}, 1000);
	res.on("close", () => clearInterval(timer));
}

const FILES = { "/assets/app.js": ["app.js", "text/javascript"], "/assets/app.css": ["app.css", "text/css"], "/assets/icon.svg": ["icon.svg", "image/svg+xml"] };

function page(res, path) {
	const [file, type] = FILES[path] ?? ["index.html", "text/html; charset=utf-8"];
	res.writeHead(200, { "Content-Type": type, "Content-Encoding": "gzip", "Content-Security-Policy": CSP, "X-Content-Type-Options": "nosniff" });
	res.end(readFileSync(join(args.site, `${file}.gz`)));
}

function runRoute(req, res, parts, q) {
	const id = decodeURIComponent(parts[0]);
	const r = find(id);
	if (!r) return refuse(res, 404, "not_found", `no run '${id}'`);
	const n = (k, d) => Number(q.get(k) ?? d);
	if (req.method === "POST") {
		if (req.headers["regatta-request"] !== "1") return refuse(res, 403, "denied", "the header Regatta-Request is missing");
		if (parts[1] === "cancel") cancelled.add(id);
		if (parts[1] === "cleanup") {
			if (!r.verdict) return refuse(res, 409, "conflict", `run '${id}' has not ended: cancel it first`);
			removed.add(id);
			return json(res, { removed: true, id, dir: r.dir });
		}
		return json(res, find(id));
	}
	switch (parts[1]) {
		case undefined: return json(res, r);
		case "watch": return watch(res, id);
		case "metrics": return json(res, metrics(id, q.get("name")));
		case "job": return res.end(JOB);
		case "plan": return json(res, plan(id));
		case "events": return res.end(events(id).filter((e) => e.seq > n("after", 0)).map((e) => `${JSON.stringify(e)}\n`).join(""));
		case "logs": {
			const stream = q.get("stream") ?? "out";
			const offset = Math.min(n("offset", 0), logSize(id, parts[2], stream));
			res.writeHead(200, { "Content-Type": "application/octet-stream", "Regatta-Offset": String(offset) });
			return res.end(logBytes(id, parts[2], stream, offset, n("limit", 1 << 26)));
		}
	}
	return refuse(res, 404, "not_found", "no such path");
}

const server = createServer((req, res) => {
	const url = new URL(req.url, "http://localhost");
	const parts = url.pathname.split("/").filter(Boolean);
	if (url.pathname === "/fake/down" || url.pathname === "/fake/up") {
		down = url.pathname.endsWith("down");
		res.end();
		if (down) for (const s of open) if (s !== req.socket) s.destroy();
		return;
	}
	if (down) return req.socket.destroy();
	if (parts[0] !== "api") return page(res, url.pathname);
	if (parts[2] === "runs" && parts.length === 3) return json(res, list(url.searchParams));
	if (parts[2] === "runs") return runRoute(req, res, parts.slice(3), url.searchParams);
	if (parts[2] === "events") return stream(res);
	if (parts[2] === "compare") return json(res, compare(url.searchParams.getAll("run")));
	if (parts[2] === "me") return json(res, { scope: "admin", version: "0.1.0" });
	return refuse(res, 404, "not_found", "no such path");
});
server.on("connection", (s) => {
	open.add(s);
	s.on("close", () => open.delete(s));
});
server.listen(Number(args.port), "127.0.0.1", () => console.log(`http://127.0.0.1:${server.address().port}`));
