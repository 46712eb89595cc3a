/* The events of the run, in order. New ones are requested when the run has changed. */
import type { JSX } from "preact";
import { useEffect, useLayoutEffect, useMemo, useRef, useState } from "preact/hooks";
import { ApiError, isAbort, query, readLines, request, runPath } from "../lib/api";
import { clock, dateTime, plural } from "../lib/format";
import { useSize } from "../lib/hooks";
import { isOver } from "../lib/model";
import { runHref } from "../lib/router";
import type { Run, RunEvent } from "../lib/types";
import { Empty, ErrorBox, SearchField } from "../lib/ui";
import { slice } from "../lib/virtual";

const ROW = 28;
const LEAST_MS = 1000;

function useEvents(run: Run, version: number): [RunEvent[], ApiError | null] {
	const [events, setEvents] = useState<RunEvent[]>([]);
	const [error, setError] = useState<ApiError | null>(null);
	const state = useRef({ last: 0, version: -1 });
	const newest = useRef(version);
	newest.current = version;
	useEffect(() => {
		const abort = new AbortController();
		let timer = 0;
		const round = async (): Promise<void> => {
			if (state.current.version !== newest.current && !document.hidden) {
				const asking = newest.current;
				const fresh: RunEvent[] = [];
				try {
					const r = await request(runPath(run.id, "/events") + query({ after: state.current.last }), {
						signal: abort.signal,
					});
					await readLines(r, false, (e) => fresh.push(e as RunEvent));
					state.current = { last: fresh[fresh.length - 1]?.seq ?? state.current.last, version: asking };
					if (fresh.length) setEvents((old) => old.concat(fresh));
					setError(null);
				} catch (e) {
					if (isAbort(e)) return;
					setError(e instanceof ApiError ? e : new ApiError(0, "unavailable", String(e)));
				}
			}
			if (!abort.signal.aborted) timer = window.setTimeout(() => void round(), LEAST_MS);
		};
		void round();
		return () => {
			clearTimeout(timer);
			abort.abort();
		};
	}, [run.id]);
	return [events, error];
}

const BAD = new Set(["failed", "refused", "unfit", "dropped", "broken", "held", "unsure"]);

export function EventsPanel({ run, version }: { run: Run; version: number }): JSX.Element {
	const [events, error] = useEvents(run, version);
	const [text, setText] = useState("");
	const [box, size] = useSize<HTMLDivElement>();
	const [top, setTop] = useState(0);
	const shown = useMemo(() => {
		const want = text.toLowerCase();
		return want
			? events.filter((e) => `${e.kind} ${e.node ?? ""} ${e.text ?? ""}`.toLowerCase().includes(want))
			: events;
	}, [events, text]);
	/* A list that is scrolled to its end stays there. */
	const atEnd = useRef(!isOver(run.state));
	useLayoutEffect(() => {
		if (atEnd.current && box.current) box.current.scrollTop = box.current.scrollHeight;
	}, [shown.length, size.height]);
	const { from, to } = slice(top, size.height || 600, ROW, shown.length);
	return (
		<section class="events" aria-label="Events">
			<div class="tools">
				<SearchField label="Filter events" hint="Filter kind, node, text" text={text} set={setText} />
				<span class="dim">{plural(shown.length, "event")}</span>
			</div>
			{error && <ErrorBox error={error} />}
			<div class="scroll" ref={box} tabIndex={0} onScroll={(e) => {
				const el = e.currentTarget;
				setTop(el.scrollTop);
				atEnd.current = el.scrollTop + el.clientHeight >= el.scrollHeight - 4;
			}}>
				<ol class="space" style={{ height: `${shown.length * ROW}px` }}>
					{shown.slice(from, to).map((e, i) => (
						<li
							key={e.seq}
							class={BAD.has(e.kind) ? "event bad" : "event"}
							style={{ transform: `translateY(${(from + i) * ROW}px)` }}
						>
							<time class="num dim" dateTime={new Date(e.time_ms).toISOString()} title={dateTime(e.time_ms)}>
								{clock(e.time_ms, true)}
							</time>
							<b>{e.kind}</b>
							{e.node ? (
								<a href={runHref(run.id, { tab: "logs", node: e.node })}>{e.node}</a>
							) : (
								<span class="dim">run</span>
							)}
							<span class="text" title={e.text}>
								{e.text}
							</span>
						</li>
					))}
				</ol>
			</div>
			{!shown.length && !error && <Empty>{events.length ? "No event matches." : isOver(run.state) ? "No events." : "No events yet."}</Empty>}
		</section>
	);
}
