/* The log panel: choice of node and stream, follow, wrap, search, next error, position in the log. */
import type { JSX } from "preact";
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { query, runPath } from "../lib/api";
import { bytes, percent, plural } from "../lib/format";
import { useKept } from "../lib/hooks";
import { LogReader, MergedReader, type StreamName } from "./reader";
import { ERROR_PATTERN, escapeRegExp, isErrorLine, textPattern, type Find } from "./search";
import { LogView } from "./view";
import { isOver } from "../lib/model";
import { setQuery } from "../lib/router";
import type { Node, Run } from "../lib/types";
import { Choice, Icon, NodeSelect, Toggle } from "../lib/ui";

const ALL = "*";
const POLL_MS = 1000;

type StreamChoice = StreamName | "both";

function sizeOf(n: Node | undefined, stream: StreamName): number {
	return n ? (stream === "out" ? n.log_bytes : n.err_bytes) : 0;
}

function isWriting(n: Node | undefined): boolean {
	return n !== undefined && n.state !== "exited" && n.state !== "released" && n.state !== "lost";
}

/* One reader for each choice of node and stream; it reads on by itself while the page is open. */
function useReader(run: Run, node: string, stream: StreamChoice, times: boolean, follow: boolean): LogReader | MergedReader {
	const [, redraw] = useState(0);
	const merges = node === ALL;
	const latest = useRef({ run, follow });
	latest.current = { run, follow };

	const reader = useMemo(() => {
		const changed = (): void => redraw((n) => n + 1);
		if (!merges) return new LogReader(run.id, node, stream === "err" ? "err" : "out", times, changed);
		return new MergedReader(run.id, stream === "both" ? ["out", "err"] : [stream], times, changed);
	}, [run.id, node, stream, merges && times]);

	useEffect(() => {
		const mine = (): Node | undefined => latest.current.run.nodes?.find((n) => n.name === node);
		if (reader instanceof LogReader) {
			reader.grow(sizeOf(mine(), reader.stream));
			void reader.jump(reader.window.size);
		} else {
			void reader.update(latest.current.run.nodes ?? []);
		}
		const timer = setInterval(() => {
			if (document.hidden) return;
			const { run: now, follow: following } = latest.current;
			if (reader instanceof MergedReader) {
				void reader.update(now.nodes ?? []);
				return;
			}
			reader.grow(sizeOf(mine(), reader.stream));
			const behind = !reader.window.atEnd || (isWriting(mine()) && !isOver(now.state));
			if (reader.loaded && (following || reader.error) && behind) void reader.next(following);
		}, POLL_MS);
		return () => {
			clearInterval(timer);
			reader.close();
		};
	}, [reader]);
	return reader;
}

type Searching = { kind: "none" } | { kind: "busy"; seen: number } | { kind: "said"; text: string };

/* The node whose log is shown: from the address, else the node that failed, else the first. */
export function logNode(run: Run, url: URL): string {
	const nodes = run.nodes ?? [];
	const asked = url.searchParams.get("node") ?? run.cause_node ?? "";
	return asked === ALL || nodes.some((n) => n.name === asked) ? asked : (nodes[0]?.name ?? ALL);
}

/* The stream of the tail if the run failed, else the stream that has bytes. */
function likelyStream(run: Run, node: Node | undefined): StreamChoice {
	if (!node) return "both";
	if (run.tail?.node === node.name && run.tail.stream === "err") return "err";
	return node.log_bytes === 0 && node.err_bytes > 0 ? "err" : "out";
}

export function LogsPanel({ run, url }: { run: Run; url: URL }): JSX.Element {
	const nodes = run.nodes ?? [];
	const node = logNode(run, url);
	const mine = nodes.find((n) => n.name === node);
	const stream = (url.searchParams.get("stream") ?? likelyStream(run, mine)) as StreamChoice;

	const [follow, setFollow] = useState(true);
	const [wrapKept, setWrap] = useKept<"on" | "off">("wrap", "on");
	const [timesKept, setTimes] = useKept<"on" | "off">("times", "off");
	const times = timesKept === "on";
	const [text, setText] = useState("");
	const [target, setTarget] = useState<{ at: number; turn: number } | null>(null);
	const [searching, setSearching] = useState<Searching>({ kind: "none" });
	const stop = useRef<() => void>(() => {});
	const topAt = useRef(0);
	const field = useRef<HTMLInputElement>(null);
	const reader = useReader(run, node, stream, times, follow);
	const find = useMemo(() => (text ? new RegExp(escapeRegExp(text), "gi") : null), [text]);

	useEffect(() => {
		stop.current();
		setFollow(true);
		setTarget(null);
		setSearching({ kind: "none" });
	}, [reader]);

	useEffect(() => {
		/* The log of one node stays where it is; the merged one is read anew. */
		if (reader instanceof LogReader) reader.showTimes(times, follow ? reader.window.size : topAt.current);
	}, [times]);

	const show = (found: Find | null, what: string): void => {
		if (!found) {
			setSearching({ kind: "said", text: `no ${what}` });
			return;
		}
		setSearching(found.wrapped ? { kind: "said", text: "started again from the other end" } : { kind: "none" });
		setFollow(false);
		setTarget((t) => ({ at: found.offset, turn: (t?.turn ?? 0) + 1 }));
	};
	const look = async (errors: boolean, backwards: boolean): Promise<void> => {
		stop.current();
		if (!errors && !text) {
			field.current?.focus();
			return;
		}
		const what = errors ? "error found" : "match";
		if (reader instanceof MergedReader) {
			const from = target ? target.at + (backwards ? 0 : 1) : topAt.current;
			const low = text.toLowerCase();
			show(reader.find(from, backwards, errors ? isErrorLine : (l) => l.toLowerCase().includes(low)), what);
			return;
		}
		let stopped = false;
		stop.current = () => {
			stopped = true;
		};
		const line = target && reader.lines[reader.lineAt(target.at)];
		/* The next error is on another line, the next match may be on this one. */
		const from = !target ? topAt.current : backwards ? target.at : errors && line ? line.at + line.size : target.at + 1;
		setSearching({ kind: "busy", seen: 0 });
		try {
			const found = await reader.find(
				from,
				backwards,
				errors ? ERROR_PATTERN : textPattern(text),
				errors,
				() => stopped,
				(seen) => !stopped && setSearching({ kind: "busy", seen }),
			);
			if (stopped) return;
			const w = reader.window;
			if (found && (found.offset < w.start || found.offset >= w.end)) await reader.jump(found.offset);
			show(found, what);
		} catch {
			if (!stopped) setSearching({ kind: "said", text: "the service does not answer" });
		}
	};
	const goTo = async (offset: number, following: boolean): Promise<void> => {
		setTarget(null);
		setFollow(following);
		if (!(reader instanceof LogReader)) {
			if (!following) setTarget((t) => ({ at: reader.lines[0]?.at ?? 0, turn: (t?.turn ?? 0) + 1 }));
			return;
		}
		const w = reader.window;
		if (following ? !w.atEnd : offset < w.start || offset >= w.end) await reader.jump(offset);
		if (!following) setTarget((t) => ({ at: offset, turn: (t?.turn ?? 0) + 1 }));
	};
	const onKey = (e: KeyboardEvent): void => {
		if (e.ctrlKey || e.metaKey || e.altKey) return;
		const acts: Record<string, () => void> = {
			"/": () => field.current?.focus(),
			n: () => void look(false, false),
			N: () => void look(false, true),
			e: () => void look(true, false),
			E: () => void look(true, true),
			f: () => void (follow ? setFollow(false) : goTo(Infinity, true)),
			w: () => setWrap(wrapKept === "on" ? "off" : "on"),
			t: () => setTimes(times ? "off" : "on"),
			Home: () => void goTo(0, false),
			End: () => void goTo(Infinity, true),
		};
		const act = acts[e.key];
		if (!act) return;
		e.preventDefault();
		act();
	};

	return (
		<section class="logs" aria-label="Logs">
			<div class="tools">
				<NodeSelect
					names={nodes.map((n) => n.name)}
					now={node}
					pick={(name) => setQuery({ node: name, stream: undefined }, false)}
				>
					<option value={ALL}>All nodes, merged</option>
				</NodeSelect>
				<Choice<StreamChoice>
					label="Stream"
					now={stream}
					options={[
						["out", `stdout${mine ? ` ${bytes(mine.log_bytes)}` : ""}`],
						["err", `stderr${mine ? ` ${bytes(mine.err_bytes)}` : ""}`],
						...(node === ALL ? ([["both", "both"]] as [StreamChoice, string][]) : []),
					]}
					pick={(s) => setQuery({ stream: s })}
				/>
				<Toggle on={follow} set={(on) => (on ? void goTo(Infinity, true) : setFollow(false))} title="Stay at the end (f)">
					Follow
				</Toggle>
				<Toggle on={wrapKept === "on"} set={(on) => setWrap(on ? "on" : "off")} title="Break long lines (w)">
					Wrap
				</Toggle>
				<Toggle on={times} set={(on) => setTimes(on ? "on" : "off")} title="When each line reached the service (t)">
					Times
				</Toggle>
				<form
					class="find"
					role="search"
					onSubmit={(e) => {
						e.preventDefault();
						void look(false, false);
					}}
				>
					<label class="field">
						<Icon name="search" />
						<span class="hidden">Search the log</span>
						<input
							ref={field}
							type="search"
							placeholder="Search (/)"
							value={text}
							onInput={(e) => {
								stop.current();
								setText(e.currentTarget.value);
								setSearching({ kind: "none" });
							}}
							onKeyDown={(e) => {
								if (e.key !== "Enter" || !e.shiftKey) return;
								e.preventDefault();
								void look(false, true);
							}}
						/>
					</label>
					<button type="button" aria-label="Previous match" title="Previous match (N)" onClick={() => void look(false, true)}>
						<Icon name="up" />
					</button>
					<button type="submit" aria-label="Next match" title="Next match (n)">
						<Icon name="down" />
					</button>
				</form>
				<button type="button" title="Next line with an error (e); E: the previous one" onClick={() => void look(true, false)}>
					<Icon name="warn" />
					Next error
				</button>
				<span class="spring" />
				{mine && stream !== "both" && (
					<a
						class="button"
						href={runPath(run.id, `/logs/${encodeURIComponent(mine.name)}`) + query({ stream })}
						download={`${run.id}-${mine.name}.${stream}.log`}
					>
						Download
					</a>
				)}
			</div>
			<div class="logbox">
				<LogView
					model={reader}
					names={reader instanceof MergedReader ? nodes.map((n) => n.name) : null}
					wrap={wrapKept === "on"}
					times={times}
					follow={follow}
					setFollow={setFollow}
					find={find}
					target={target}
					nearStart={() => reader instanceof LogReader && reader.loaded && !follow && void reader.before()}
					nearEnd={() =>
						reader instanceof LogReader && reader.loaded && !follow && !reader.window.atEnd && void reader.next(false)
					}
					topAt={topAt}
					onKey={onKey}
				/>
				{reader instanceof LogReader && <Place reader={reader} go={(o) => void goTo(o, false)} />}
			</div>
			<Status reader={reader} searching={searching} nodes={nodes.length} stop={() => {
				stop.current();
				setSearching({ kind: "said", text: "search stopped" });
			}} />
		</section>
	);
}

/* The position of the window in the whole log; drag or press to move it. Hidden when the whole log is loaded. */
function Place({ reader, go }: { reader: LogReader; go: (offset: number) => void }): JSX.Element | null {
	const { start, end, size } = reader.window;
	const track = useRef<HTMLDivElement>(null);
	if (start === 0 && end >= size) return null;
	const jump = (e: PointerEvent): void => {
		const r = (track.current as HTMLDivElement).getBoundingClientRect();
		go(Math.max(0, Math.min(size - 1, Math.floor(((e.clientY - r.top) / r.height) * size))));
	};
	const onKey = (e: KeyboardEvent): void => {
		const step = { ArrowUp: -0.01, ArrowDown: 0.01, PageUp: -0.1, PageDown: 0.1, Home: -1, End: 1 }[e.key];
		if (!step) return;
		e.preventDefault();
		go(Math.max(0, Math.min(size - 1, Math.floor(start + step * size))));
	};
	return (
		<div
			class="place"
			ref={track}
			role="slider"
			tabIndex={0}
			aria-label="Place in the log"
			aria-orientation="vertical"
			aria-valuemin={0}
			aria-valuemax={100}
			aria-valuenow={Math.round((start / size) * 100)}
			aria-valuetext={`${bytes(start)} of ${bytes(size)}`}
			onKeyDown={onKey}
			onPointerUp={jump}
		>
			<span
				style={{ top: `${Math.min(98.5, (start / size) * 100)}%`, height: `${Math.max(1.5, ((end - start) / size) * 100)}%` }}
			/>
		</div>
	);
}

function Status(props: { reader: LogReader | MergedReader; searching: Searching; nodes: number; stop: () => void }): JSX.Element {
	const { reader, searching } = props;
	let where: string;
	if (reader instanceof MergedReader) {
		const order = reader.times ? "in the order of arrival" : "then in the order of arrival";
		where = `${plural(reader.lines.length, "line")} of ${plural(props.nodes, "node")}: the last lines of each, ${order}`;
	} else {
		const { start, end, size } = reader.window;
		where =
			start === 0 && end >= size
				? `${plural(reader.lines.length, "line")}, ${bytes(size)}`
				: `at ${bytes(start)} of ${bytes(size)} (${percent(start / Math.max(1, size), 0)})`;
	}
	return (
		<p class="foot dim" role="status">
			<span>{where}</span>
			{searching.kind === "busy" && (
				<span>
					searching… {bytes(searching.seen)}{" "}
					<button type="button" class="quiet" onClick={props.stop}>
						Stop
					</button>
				</span>
			)}
			{searching.kind === "said" && <b>{searching.text}</b>}
			{reader.error && <b class="t-bad">{reader.error.message}</b>}
		</p>
	);
}
