/* The page of one suite: how far it is, and the grid of its runs. */
import type { JSX } from "preact";
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { age, count, dateTime, duration, money } from "../lib/format";
import { useNow } from "../lib/hooks";
import { WorldStream, type LinkState } from "../lib/live";
import { isOver, words } from "../lib/model";
import { setQuery } from "../lib/router";
import type { Suite } from "../lib/types";
import { Choice, Empty, ErrorBox, Fact, Icon, LinkBadge, ProgressBar, SearchField, StateBadge } from "../lib/ui";
import { NodeSign } from "../run/nodes";
import { Grid } from "./grid";
import { ended, ENTRY_STATES, entryLook, figuresOf, matrixOf, suiteElapsed, variantFits, type VariantFilter } from "./model";
import { SuiteWatch } from "./watch";

const FILTERS: [VariantFilter, string][] = [
	["all", "All"],
	["active", "Running"],
	["done", "Succeeded"],
	["failed", "Not succeeded"],
];

function useSuite(id: string): [SuiteWatch, LinkState, () => void] {
	const [, redraw] = useState(0);
	const [link, setLink] = useState<LinkState>({ kind: "connecting" });
	const watch = useMemo(() => new SuiteWatch(id, () => redraw((n) => n + 1)), [id]);
	const stream = useRef<WorldStream | null>(null);
	useEffect(() => {
		let wasLost = false;
		const s = new WorldStream(
			() => watch.onEvent(),
			(state) => {
				setLink(state);
				if (state.kind === "live" && wasLost) watch.refreshSoon();
				wasLost = state.kind !== "live" && state.kind !== "connecting";
			},
		);
		stream.current = s;
		watch.start();
		s.start();
		return () => {
			s.stop();
			watch.stop();
		};
	}, [id]);
	return [watch, link, () => stream.current?.retry()];
}

export function SuitePage({ id, url }: { id: string; url: URL }): JSX.Element {
	const [watch, link, retry] = useSuite(id);
	const s = watch.suite;
	useEffect(() => {
		document.title = `${s && !isOver(s.state) ? "▶ " : ""}${id} · Regatta`;
	}, [s?.state]);
	return (
		<main id="main" tabIndex={-1} class="page suite">
			<div class="head">
				<h1 class="mono">{s?.id ?? id}</h1>
				{s && <StateBadge state={s.state} />}
				{s && !isOver(s.state) && <ProgressBar p={{ done: ended(s.counts), total: s.counts.runs ?? 0, what: "runs" }} />}
				<span class="spring" />
				<LinkBadge state={link} retry={retry} />
			</div>
			{watch.error && <ErrorBox error={watch.error} again={() => void watch.load()} />}
			{s && <Facts s={s} watch={watch} live={link.kind === "live"} />}
			{s && <Troubles s={s} />}
			{s && <Filled s={s} watch={watch} url={url} />}
		</main>
	);
}

function Facts({ s, watch, live }: { s: Suite; watch: SuiteWatch; live: boolean }): JSX.Element {
	const clock = useNow(live && !isOver(s.state));
	const now = live ? Math.max(clock, watch.receivedAt) : watch.receivedAt;
	const left = s.left_ms === null || s.left_ms === undefined ? null : Math.max(0, s.left_ms - (now - watch.receivedAt));
	const ago = age(now - s.created_ms);
	return (
		<dl class="facts">
			<Fact name="variants">{count(s.variants?.length ?? 0)}</Fact>
			<Fact name="repeats">{count(s.repeats ?? 1)}</Fact>
			<Fact name="at a time">{count(s.parallel ?? 1)}</Fact>
			<Fact name="started" title={dateTime(s.created_ms)}>
				{ago === "now" ? ago : `${ago} ago`}
			</Fact>
			<Fact name="duration">{duration(suiteElapsed(s, watch.receivedAt, now))}</Fact>
			{left !== null && <Fact name="left, about">{duration(left)}</Fact>}
			<Fact name="cost">{money(s.cost_usd)}</Fact>
			{s.dir && (
				<Fact name="directory" wide>
					{s.dir}
				</Fact>
			)}
		</dl>
	);
}

function Troubles({ s }: { s: Suite }): JSX.Element | null {
	const lines = [
		s.cause,
		s.waits_for && `The next run waits: ${s.waits_for}`,
		s.on_exit && `on_exit: ${s.on_exit}`,
	].filter(Boolean);
	if (!lines.length) return null;
	return (
		<div class="box warn" role="status">
			<Icon name="warn" />
			<div>
				{lines.map((l) => (
					<p key={l}>{l}</p>
				))}
			</div>
		</div>
	);
}

function Filled({ s, watch, url }: { s: Suite; watch: SuiteWatch; url: URL }): JSX.Element {
	const text = url.searchParams.get("q") ?? "";
	const filter = (url.searchParams.get("state") ?? "all") as VariantFilter;
	const metric = watch.metrics.find((m) => m.name === url.searchParams.get("metric")) ?? watch.metrics[0];
	const narrowed = filter !== "all" || text !== "";
	const wanted = words(text);
	const variants = (s.variants ?? []).filter((v) => !narrowed || variantFits(v, filter, wanted));
	return (
		<>
			<ul class="tally" aria-label="Runs">
				{ENTRY_STATES.filter((state) => s.counts[state]).map((state) => (
					<li key={state}>
						<NodeSign look={entryLook(state)} />
						{count(s.counts[state] ?? 0)} {state}
					</li>
				))}
			</ul>
			<div class="tools" role="search">
				<SearchField label="Search variants" hint="Search variant, run, cause" text={text} set={(q) => setQuery({ q })} />
				<Choice label="State" now={filter} options={FILTERS} pick={(f) => setQuery({ state: f === "all" ? undefined : f })} />
				{metric && (
					<label class="field select">
						<span class="hidden">Metric</span>
						<select value={metric.name} onChange={(e) => setQuery({ metric: e.currentTarget.value })}>
							{watch.metrics.map((m) => (
								<option key={m.name} value={m.name}>
									{m.name}
								</option>
							))}
						</select>
					</label>
				)}
				{metric && <span class="dim">median of the runs, {metric.better} is better</span>}
			</div>
			<Grid s={s} matrix={narrowed ? null : matrixOf(s)} variants={variants} figures={figuresOf(metric)} />
			{narrowed && !variants.length && <Empty>No variant matches.</Empty>}
		</>
	);
}
