/* The list of runs. Only the visible rows are in the document, so that ten thousand are as fast as ten. */
import type { JSX } from "preact";
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { age, dateTime, duration, money, plural, count } from "../lib/format";
import { useLocation, useNow, useSize } from "../lib/hooks";
import { WorldStream, type LinkState } from "../lib/live";
import { cost, elapsed, isOver, matches, progress, words } from "../lib/model";
import { compareHref, navigate, runHref, setQuery } from "../lib/router";
import { RunsList } from "./list";
import type { Run } from "../lib/types";
import { Choice, Empty, ErrorBox, Icon, LinkBadge, ProgressBar, SearchField, StateBadge } from "../lib/ui";
import { reveal, slice } from "../lib/virtual";

const ROW = 36;
const CARD = 76; /* on a phone */
const NEAR_END = 30; /* rows from the end at which older runs are requested */

type Filter = "all" | "active" | "succeeded" | "failed" | "cancelled";
const FILTERS: [Filter, string][] = [
	["all", "All"],
	["active", "Active"],
	["succeeded", "Succeeded"],
	["failed", "Failed"],
	["cancelled", "Cancelled"],
];

function fits(run: Run, filter: Filter): boolean {
	if (filter === "all") return true;
	return filter === "active" ? !isOver(run.state) : run.state === filter;
}

/* An older master tells no total: then there are more than those that are loaded. */
function inAll(list: RunsList): string {
	if (list.total !== null) return count(list.total);
	return `${count(list.runs.length)}${list.complete ? "" : "+"}`;
}

function useRuns(): [RunsList, LinkState, () => void] {
	const [, redraw] = useState(0);
	const [link, setLink] = useState<LinkState>({ kind: "connecting" });
	const list = useMemo(() => new RunsList(() => redraw((n) => n + 1)), []);
	const stream = useRef<WorldStream | null>(null);
	useEffect(() => {
		let wasLost = false;
		const s = new WorldStream(
			(e) => list.onEvent(e),
			(state) => {
				setLink(state);
				if (state.kind === "live" && wasLost) list.refreshSoon();
				wasLost = state.kind === "lost" || state.kind === "paused" || (wasLost && state.kind !== "live");
			},
		);
		stream.current = s;
		list.start();
		s.start();
		return () => {
			s.stop();
			list.stop();
		};
	}, []);
	return [list, link, () => stream.current?.retry()];
}

export function RunsPage(): JSX.Element {
	const url = useLocation();
	const [list, link, retry] = useRuns();
	const text = url.searchParams.get("q") ?? "";
	const filter = (url.searchParams.get("state") ?? "all") as Filter;
	const [chosen, setChosen] = useState<ReadonlySet<string>>(new Set());

	const wanted = words(text);
	const narrowed = wanted.length > 0 || filter !== "all";
	const shown = useMemo(
		() => (narrowed ? list.runs.filter((r) => fits(r, filter) && matches(r, wanted)) : list.runs),
		[list.runs, text, filter],
	);
	/* A search is over all runs, not only over those loaded. */
	useEffect(() => {
		let here = true;
		if (narrowed) void list.all(() => here);
		return () => {
			here = false;
		};
	}, [text, filter, list.loaded]);
	useEffect(() => {
		document.title = "Runs · Regatta";
	}, []);

	const active = list.runs.filter((r) => !isOver(r.state)).length;
	return (
		<main id="main" tabIndex={-1} class="page fill">
			<div class="head">
				<h1>Runs</h1>
				<span class="dim">
					{list.loaded && `${count(active)} active, ${inAll(list)} in all`}
				</span>
				<span class="spring" />
				<LinkBadge state={link} retry={retry} />
			</div>
			<div class="tools" role="search">
				<SearchField
					label="Search runs"
					hint="Search name, state, engine, strategy, tags, parameters"
					text={text}
					set={(q) => setQuery({ q })}
				/>
				<Choice
					label="State"
					now={filter}
					options={FILTERS}
					pick={(f) => setQuery({ state: f === "all" ? undefined : f })}
				/>
				<span class="spring" />
				{chosen.size > 0 && (
					<button type="button" class="quiet" onClick={() => setChosen(new Set())}>
						Clear {chosen.size}
					</button>
				)}
				<button
					type="button"
					disabled={chosen.size < 2}
					title="Tick two or more runs to compare them"
					onClick={() => navigate(compareHref([...chosen]))}
				>
					<Icon name="compare" />
					Compare{chosen.size > 0 && ` ${chosen.size}`}
				</button>
			</div>
			{list.error && <ErrorBox error={list.error} again={() => void list.first()} />}
			<Table
				runs={shown}
				list={list}
				live={link.kind === "live"}
				chosen={chosen}
				choose={(id, on) => {
					const next = new Set(chosen);
					if (on) next.add(id);
					else next.delete(id);
					setChosen(next);
				}}
			/>
			{list.loaded && !shown.length && (
				<Empty>
					{narrowed ? (
						list.full ? (
							"No run matches."
						) : (
							"Looking through older runs…"
						)
					) : (
						<>
							<p>No runs yet. Start one:</p>
							<pre class="command">regatta run -- echo hello</pre>
						</>
					)}
				</Empty>
			)}
			{narrowed && shown.length > 0 && (
				<p class="foot dim" role="status">
					{plural(shown.length, "run")} of {count(list.total ?? list.runs.length)}
					{!list.full && ", still looking…"}
				</p>
			)}
		</main>
	);
}

interface TableProps {
	runs: Run[];
	list: RunsList;
	live: boolean; /* without a connection the clock stands still */
	chosen: ReadonlySet<string>;
	choose: (id: string, on: boolean) => void;
}

function usePhone(): boolean {
	const media = useMemo(() => matchMedia("(max-width: 760px)"), []);
	const [phone, setPhone] = useState(media.matches);
	useEffect(() => {
		const on = (): void => setPhone(media.matches);
		media.addEventListener("change", on);
		return () => media.removeEventListener("change", on);
	}, []);
	return phone;
}

function Table({ runs, list, live, chosen, choose }: TableProps): JSX.Element {
	const [box, size] = useSize<HTMLDivElement>();
	const [top, setTop] = useState(0);
	const rowHeight = usePhone() ? CARD : ROW;
	const focus = useRef(-1); /* the row to focus, -1: none */
	const now = useNow(live && runs.length > 0);
	const { from, to } = slice(top, size.height || 800, rowHeight, runs.length);

	useEffect(() => {
		if (to > runs.length - NEAR_END) void list.older();
	}, [to, runs.length]);

	/* Focuses the row now if it is drawn, else after the draw that brings it. */
	const takeFocus = (): void => {
		const link = box.current?.querySelector<HTMLElement>(`[data-row="${focus.current}"] a`);
		if (!link) return;
		focus.current = -1;
		link.focus({ preventScroll: true });
	};
	useEffect(() => {
		if (focus.current >= 0) takeFocus();
	});

	const onKey = (e: KeyboardEvent): void => {
		const step = { ArrowDown: 1, ArrowUp: -1, PageDown: 10, PageUp: -10 }[e.key];
		const at = (e.target as HTMLElement).closest<HTMLElement>("[data-row]")?.dataset.row;
		if (!step || at === undefined || !box.current) return;
		e.preventDefault();
		/* Keys may come faster than rows are drawn. */
		const here = focus.current >= 0 ? focus.current : Number(at);
		const row = Math.max(0, Math.min(runs.length - 1, here + step));
		focus.current = row;
		const scroll = reveal(row, box.current.scrollTop, size.height, rowHeight);
		if (scroll !== null) box.current.scrollTop = scroll;
		setTop(box.current.scrollTop);
		takeFocus();
	};

	return (
		<div class="runs" role="table" aria-label="Runs" aria-rowcount={runs.length + 1}>
			<div class="run-row run-head" role="row" aria-rowindex={1}>
				<span role="columnheader" class="c-pick">
					<span class="hidden">Compare</span>
				</span>
				<span role="columnheader" class="c-state">
					State
				</span>
				<span role="columnheader" class="c-name">
					Run
				</span>
				<span role="columnheader" class="c-engine">
					Engine
				</span>
				<span role="columnheader" class="c-strategy">
					Strategy
				</span>
				<span role="columnheader" class="c-nodes">
					Nodes
				</span>
				<span role="columnheader" class="c-progress">
					Progress
				</span>
				<span role="columnheader" class="c-age">
					Age
				</span>
				<span role="columnheader" class="c-time">
					Duration
				</span>
				<span role="columnheader" class="c-cost">
					Cost
				</span>
			</div>
			<div
				class="scroll"
				ref={box}
				role="rowgroup"
				onScroll={(e) => setTop(e.currentTarget.scrollTop)}
				onKeyDown={onKey}
			>
				<div class="space" style={{ height: `${runs.length * rowHeight}px` }}>
					{runs.slice(from, to).map((run, i) => (
						<Row
							key={run.id}
							run={run}
							row={from + i}
							top={(from + i) * rowHeight}
							now={now}
							at={list.receivedAt.get(run) ?? now}
							chosen={chosen.has(run.id)}
							choose={choose}
						/>
					))}
				</div>
			</div>
		</div>
	);
}

interface RowProps {
	run: Run;
	row: number;
	top: number;
	now: number;
	at: number;
	chosen: boolean;
	choose: (id: string, on: boolean) => void;
}

function Row({ run, row, top, now, at, chosen, choose }: RowProps): JSX.Element {
	const p = progress(run);
	const running = run.counts.running ?? 0;
	const exact = dateTime(run.created_ms);
	const ago = age(now - run.created_ms);
	return (
		<div
			class="run-row"
			role="row"
			aria-rowindex={row + 2}
			data-row={row}
			data-run={run.id}
			style={{ transform: `translateY(${top}px)` }}
		>
			<span role="cell" class="c-pick">
				<label>
					<input
						type="checkbox"
						checked={chosen}
						aria-label={`Compare ${run.id}`}
						onChange={(e) => choose(run.id, e.currentTarget.checked)}
					/>
				</label>
			</span>
			<span role="cell" class="c-state">
				<StateBadge state={run.state} cancelling={run.cancel_asked && !isOver(run.state)} />
			</span>
			<span role="cell" class="c-name">
				<a href={runHref(run.id)} title={run.cause ?? run.id}>
					{run.id}
				</a>
				{!run.id.startsWith(run.name) && <span class="dim"> {run.name}</span>}
				{run.tags?.map((t) => (
					<span key={t} class="tag">
						{t}
					</span>
				))}
				{run.cause && <span class="dim cause"> {run.cause}</span>}
			</span>
			<span role="cell" class="c-engine">
				{run.engine}
			</span>
			<span role="cell" class="c-strategy">
				{run.strategy}
			</span>
			<span role="cell" class="c-nodes num">
				{running > 0 && running < run.counts.nodes ? `${count(running)}/` : ""}
				{count(run.counts.nodes)}
				<span class="unit">{run.counts.nodes === 1 ? " node" : " nodes"}</span>
			</span>
			<span role="cell" class="c-progress">
				{p ? <ProgressBar p={p} /> : <span class="dim">–</span>}
			</span>
			<span role="cell" class="c-age num" title={exact}>
				{ago}
				{ago !== "now" && <span class="unit"> ago</span>}
			</span>
			<span role="cell" class="c-time num">
				{duration(Math.floor(elapsed(run, at, now) / 100) * 100 || run.elapsed_ms)}
			</span>
			<span role="cell" class="c-cost num">
				{money(cost(run))}
			</span>
		</div>
	);
}
