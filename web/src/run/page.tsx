/* The page of one run. */
import type { JSX } from "preact";
import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";
import { Actions } from "./actions";
import { ApiError, getJson, runPath } from "../lib/api";
import { ChartsPanel } from "../metrics/panel";
import { EventsPanel } from "./events";
import { age, bytes, dateTime, duration, money, plural } from "../lib/format";
import { useNow } from "../lib/hooks";
import { JobPanel } from "./job";
import { RunStream, type LinkState } from "../lib/live";
import { logNode, LogsPanel } from "../log/panel";
import { cost, elapsed, isOver, logBytes, progress } from "../lib/model";
import { NodesGrid } from "./nodes";
import { OutputsPanel } from "./outputs";
import { runHref, setQuery } from "../lib/router";
import { Timeline } from "./timeline";
import type { Me, Run, Source } from "../lib/types";
import { Empty, ErrorBox, Fact, Icon, LinkBadge, LostBox, ProgressBar, StateBadge, Tabs } from "../lib/ui";
import { plainLine } from "../log/ansi";

/* The service may send twenty objects a second: the page is drawn less often. */
const DRAW_MS = 200;
/* The stream sends no object when only a log has grown: while the log tab is open the sizes are polled. */
const SIZES_MS = 2000;

interface Watched {
	run: Run | null;
	receivedAt: number;
	version: number;
	link: LinkState;
	refused: ApiError | null;
	retry: () => void;
	leave: () => void;
	refresh: () => void;
}

function useRun(id: string): Watched {
	const [state, setState] = useState<{ run: Run | null; at: number; version: number }>({ run: null, at: 0, version: 0 });
	const [link, setLink] = useState<LinkState>({ kind: "connecting" });
	const [refused, setRefused] = useState<ApiError | null>(null);
	const stream = useRef<RunStream | null>(null);
	const pending = useRef<{ run: Run; at: number } | null>(null);
	const timer = useRef(0);
	const drawn = useRef(0);

	const accept = (run: Run): void => {
		pending.current = { run, at: Date.now() };
		const draw = (): void => {
			timer.current = 0;
			drawn.current = Date.now();
			const p = pending.current;
			if (p) setState((s) => ({ run: p.run, at: p.at, version: s.version + 1 }));
		};
		const wait = drawn.current + DRAW_MS - Date.now();
		if (wait <= 0 || isOver(run.state)) draw();
		else if (!timer.current) timer.current = window.setTimeout(draw, wait);
	};
	useEffect(() => {
		const s = new RunStream(id, accept, setRefused, setLink);
		stream.current = s;
		s.start();
		return () => {
			clearTimeout(timer.current);
			s.stop();
		};
	}, [id]);
	return {
		run: state.run,
		receivedAt: state.at,
		version: state.version,
		link,
		refused,
		retry: () => stream.current?.retry(),
		leave: () => stream.current?.stop(),
		refresh: () => {
			if (pending.current && Date.now() - pending.current.at < SIZES_MS) return;
			getJson<Run>(runPath(id)).then(accept, () => {});
		},
	};
}

const TABS = ["metrics", "logs", "outputs", "events", "job"] as const;
type TabId = (typeof TABS)[number];

export function RunPage({ id, url, me }: { id: string; url: URL; me: Me | null }): JSX.Element {
	const w = useRun(id);
	const asked = url.searchParams.get("tab") as TabId | null;
	const tab: TabId = asked && TABS.includes(asked) ? asked : "metrics";
	const run = w.run;

	useEffect(() => {
		document.title = run ? `${isOver(run.state) ? "" : "▶ "}${run.id} ${run.state} · Regatta` : `${id} · Regatta`;
	}, [run?.state]);
	useEffect(() => {
		if (tab !== "logs" || !run || isOver(run.state)) return;
		const timer = setInterval(() => !document.hidden && w.refresh(), SIZES_MS);
		return () => clearInterval(timer);
	}, [tab, run?.state]);

	if (w.refused) return <Refused id={id} error={w.refused} />;
	if (!run) {
		return (
			<main id="main" tabIndex={-1} class="page">
				<div class="head">
					<h1 class="mono">{id}</h1>
					<span class="spring" />
					<LinkBadge state={w.link} retry={w.retry} />
				</div>
				<LostBox state={w.link} />
			</main>
		);
	}
	const pick = (t: string): void => setQuery({ tab: t === "metrics" ? undefined : t, node: undefined, stream: undefined }, false);
	/*
	 * Logs and events have their own scroll bar: the parts above become small, so that the last line is visible.
	 */
	const tall = tab === "logs" || tab === "events";
	return (
		<main id="main" tabIndex={-1} class={tall ? "page run tall" : "page run"}>
			<Head run={run} w={w} me={me} />
			<LostBox state={w.link} />
			<Verdict run={run} brief={tall} />
			<Timeline run={run} receivedAt={w.receivedAt} live={w.link.kind === "live"} />
			<NodesGrid
				run={run}
				brief={tall}
				now={tab === "logs" ? logNode(run, url) : undefined}
				open={(n) => setQuery({ tab: "logs", node: n.name, stream: undefined }, false)}
			/>
			<Tabs
				label="About this run"
				now={tab}
				pick={pick}
				tabs={[
					{ id: "metrics", label: "Metrics", note: note(Object.keys(run.metrics ?? {}).length) },
					{ id: "logs", label: "Logs", note: bytes(logBytes(run)) },
					{ id: "outputs", label: "Outputs" },
					{ id: "events", label: "Events" },
					{ id: "job", label: "Job & environment" },
				]}
			/>
			<div id="panel" role="tabpanel" aria-labelledby={`tab-${tab}`} class="panel">
				{tab === "metrics" && <ChartsPanel run={run} />}
				{tab === "logs" && <LogsPanel run={run} url={url} />}
				{tab === "outputs" && <OutputsPanel run={run} />}
				{tab === "events" && <EventsPanel run={run} version={w.version} />}
				{tab === "job" && <JobPanel run={run} />}
			</div>
		</main>
	);
}

function note(n: number): string | undefined {
	return n ? String(n) : undefined;
}

function Head({ run, w, me }: { run: Run; w: Watched; me: Me | null }): JSX.Element {
	const over = isOver(run.state);
	const clock = useNow(true);
	const now = w.link.kind === "lost" ? w.receivedAt : clock;
	/* A run that succeeded needs no progress bar. */
	const p = run.state === "succeeded" ? null : progress(run);
	const deadline = run.deadline_ms && !over ? run.deadline_ms - (now - w.receivedAt) : null;
	return (
		<>
			<div class="head">
				<h1 class="mono">{run.id}</h1>
				<StateBadge state={run.state} cancelling={run.cancel_asked && !over} />
				{p && <ProgressBar p={p} />}
				<span class="spring" />
				<LinkBadge state={w.link} retry={w.retry} />
				{over && (
					<a class="button" href={runPath(run.id, "/report")} target="_blank" rel="noopener">
						<Icon name="file" />
						Report
					</a>
				)}
				<Actions run={run} me={me} leave={w.leave} />
			</div>
			{(run.notes ?? []).map((n) => (
				<p key={n.time_ms} class="words" title={dateTime(n.time_ms)}>
					{n.text} <span class="dim">{age(now - n.time_ms) === "now" ? "now" : `${age(now - n.time_ms)} ago`}</span>
				</p>
			))}
			<dl class="facts">
				<Fact name="engine">{run.engine}</Fact>
				<Fact name="strategy">{run.strategy}</Fact>
				<Fact name="nodes">{run.counts.nodes}</Fact>
				<Fact name="started" title={dateTime(run.created_ms)}>
					{age(now - run.created_ms) === "now" ? "now" : `${age(now - run.created_ms)} ago`}
				</Fact>
				<Fact name="duration">{duration(elapsed(run, w.receivedAt, now))}</Fact>
				{deadline !== null && <Fact name={`${run.state} must end in`}>{duration(deadline)}</Fact>}
				<Fact name="cost">{money(cost(run))}</Fact>
				<Fact name="logs">{bytes(logBytes(run))}</Fact>
				{!!run.tags?.length && <Fact name="tags">{run.tags.join(", ")}</Fact>}
				{Object.entries(run.params ?? {}).map(([name, value]) => (
					<Fact key={name} name={name} title={`params.${name}`}>
						{String(value)}
					</Fact>
				))}
				{run.source && (
					<Fact name="commit" title={revision(run.source)}>
						{run.source.revision.slice(0, 12)}
						{run.source.dirty && " with changes"}
					</Fact>
				)}
				{run.dir && (
					<Fact name="directory" wide>
						{run.dir}
					</Fact>
				)}
			</dl>
		</>
	);
}

/* The git commit that the source was at, in words. */
function revision(s: Source): string {
	const changes = { true: ", with changes that were not committed", false: "", null: ", perhaps with changes" }[`${s.dirty ?? null}`];
	return `${s.revision}${s.branch ? ` on ${s.branch}` : ""}${changes}`;
}

/* The cause of the end, with the last lines of the failed node; for an active run, what it waits for. */
function Verdict({ run, brief }: { run: Run; brief: boolean }): JSX.Element | null {
	if (run.waiting?.length && !isOver(run.state)) {
		return (
			<div class="box warn" role="status">
				<Icon name="wait" />
				<div>
					<p>Waiting for {plural(run.waiting.length, "resource")}</p>
					<ul>
						{run.waiting.slice(0, 5).map((r) => (
							<li key={`${r.kind} ${r.name}`}>
								{r.kind} {r.name} ({r.state}): {r.why}
							</li>
						))}
					</ul>
				</div>
			</div>
		);
	}
	if (!run.verdict || run.verdict === "succeeded" || run.verdict === "none") return null;
	const bad = run.verdict === "failed";
	return (
		<div class={bad ? "box bad" : "box"} role="status">
			<Icon name={bad ? "bad" : "stop"} />
			<div class="grow">
				<p>
					<b>{run.cause ?? run.verdict}</b>
					{run.cause_kind && <span class="dim"> ({run.cause_kind})</span>}
					{typeof run.exit_code === "number" && <span class="dim"> · regatta exits with {run.exit_code}</span>}
				</p>
				{run.tail && !brief && (
					<>
						<Tail node={run.tail.node} text={run.tail.lines.map((l) => plainLine(l).text).join("\n")} />
						<a href={runHref(run.id, { tab: "logs", node: run.tail.node, stream: run.tail.stream ?? "out" })}>
							Open the log of {run.tail.node}
						</a>
					</>
				)}
			</div>
		</div>
	);
}

/* The last lines usually say why a program failed: the box is scrolled to its end. */
function Tail({ node, text }: { node: string; text: string }): JSX.Element {
	const box = useRef<HTMLPreElement>(null);
	useLayoutEffect(() => {
		if (box.current) box.current.scrollTop = box.current.scrollHeight;
	}, [text]);
	return (
		<pre class="tail" ref={box} tabIndex={0} aria-label={`Last lines of ${node}`}>
			{text}
		</pre>
	);
}

function Refused({ id, error }: { id: string; error: ApiError }): JSX.Element {
	return (
		<main id="main" tabIndex={-1} class="page">
			<div class="head">
				<h1 class="mono">{id}</h1>
			</div>
			{error.status === 409 && error.details.length ? (
				<Empty>
					<p>Several runs begin with “{id}”:</p>
					<ul class="plain">
						{error.details.map((d) => (
							<li key={d}>
								<a href={runHref(d)}>{d}</a>
							</li>
						))}
					</ul>
				</Empty>
			) : (
				<ErrorBox error={error} />
			)}
			<p>
				<a href="/">All runs</a>
			</p>
		</main>
	);
}
