/*
 * The lines on the screen. All rows have one height: a wrapped line is several rows. Only visible rows are in the
 * document. When lines are added or dropped above, the visible text does not move.
 */
import type { JSX } from "preact";
import { useEffect, useLayoutEffect, useMemo, useRef, useState } from "preact/hooks";
import { marked, pieces } from "./ansi";
import { clock, dateTime } from "../lib/format";
import { useSize } from "../lib/hooks";
import { isErrorLine } from "./search";
import { lineOfRow, rowStarts, wrapPoints } from "./window";
import type { LogLine, LogModel } from "./reader";
import { slice } from "../lib/virtual";

const ROW = 18;
const PAD = 12; /* left, and right together with the bar */
const LEAST_COLUMNS = 20;
const TIME = 14; /* columns of a time */
const NEAR = 60; /* rows from either end at which more lines are requested */

export interface LogViewProps {
	model: LogModel;
	names: string[] | null; /* names of nodes, if each line shows its node */
	wrap: boolean;
	times: boolean; /* each line shows when it came */
	follow: boolean;
	setFollow: (on: boolean) => void;
	find: RegExp | null;
	target: { at: number; turn: number } | null; /* turn changes when the same place is requested again */
	nearStart: () => void;
	nearEnd: () => void;
	topAt: { current: number };
	onKey: (e: KeyboardEvent) => void;
}

export function LogView(p: LogViewProps): JSX.Element {
	const { model, wrap, follow } = p;
	const [box, size] = useSize<HTMLDivElement>();
	const probe = useRef<HTMLSpanElement>(null);
	const [cell, setCell] = useState(7.2);
	const [top, setTop] = useState(0);
	const anchor = useRef<{ at: number; dy: number } | null>(null);
	const own = useRef(0); /* the last position set by the program, not by the user */

	useLayoutEffect(() => {
		const width = probe.current?.getBoundingClientRect().width ?? 0;
		if (width > 0) setCell(width / 100);
	}, [size.width]);

	const gutter = p.names ? Math.min(18, Math.max(...p.names.map((n) => n.length), 4)) + 2 : 0;
	const columns = Math.max(LEAST_COLUMNS, Math.floor((size.width - 2 * PAD) / cell) - gutter - (p.times ? TIME : 0));
	const lines = model.lines;
	const rows = useMemo(() => (wrap ? rowStarts(lines, columns) : null), [model, model.version, wrap, columns]);
	const total = rows ? (rows[lines.length] as number) : lines.length;
	const rowOf = (line: number): number => (rows ? (rows[line] as number) : line);
	const lineAtRow = (row: number): number => (rows ? lineOfRow(rows, row) : Math.min(row, lines.length - 1));

	const scrollTo = (y: number): void => {
		const el = box.current;
		if (!el) return;
		el.scrollTop = y;
		own.current = el.scrollTop;
		setTop(el.scrollTop);
	};
	const remember = (y: number): void => {
		const row = Math.floor(y / ROW);
		const line = lines[lineAtRow(row)];
		if (!line) return;
		anchor.current = { at: line.at, dy: y - rowOf(lineAtRow(row)) * ROW };
		p.topAt.current = line.at;
	};

	useLayoutEffect(() => {
		const el = box.current;
		if (!el) return;
		if (follow) scrollTo(el.scrollHeight);
		else if (anchor.current) scrollTo(rowOf(model.lineAt(anchor.current.at)) * ROW + anchor.current.dy);
		remember(el.scrollTop);
	}, [model, model.version, wrap, columns, follow, size.height]);
	useLayoutEffect(() => {
		const el = box.current;
		if (!el || !p.target) return;
		scrollTo(Math.max(0, rowOf(model.lineAt(p.target.at)) * ROW - el.clientHeight / 3));
		remember(el.scrollTop);
	}, [p.target]);
	useEffect(() => {
		const first = top / ROW;
		if (first < NEAR) p.nearStart();
		if (first + size.height / ROW > total - NEAR) p.nearEnd();
	}, [top, total, size.height, model.version]);

	const onScroll = (): void => {
		const el = box.current as HTMLDivElement;
		const y = el.scrollTop;
		setTop(y);
		remember(y);
		if (Math.abs(y - own.current) < 2) return;
		const atBottom = y + el.clientHeight >= el.scrollHeight - 4;
		if (follow && !atBottom && y < own.current) p.setFollow(false);
		own.current = y;
	};

	const { from, to } = slice(top, size.height || 600, ROW, total);
	return (
		<div
			class={wrap ? "log wrapped" : "log"}
			ref={box}
			tabIndex={0}
			role="log"
			aria-live="off"
			aria-label="Log lines"
			onScroll={onScroll}
			onKeyDown={p.onKey}
			onCopy={onCopy}
		>
			<span class="probe" ref={probe} aria-hidden="true">
				{"0".repeat(100)}
			</span>
			<div class="space" style={{ height: `${total * ROW}px` }}>
				<div class="rows" style={{ transform: `translateY(${from * ROW}px)` }}>
					{total > 0 && drawRows(p, rows, from, to, columns, gutter)}
				</div>
			</div>
			{model.loaded && !lines.length && <p class="dim nothing">{model.error?.message ?? "nothing written yet"}</p>}
			{!model.loaded && <p class="dim nothing">loading…</p>}
		</div>
	);
}

function drawRows(p: LogViewProps, rows: Uint32Array | null, from: number, to: number, columns: number, gutter: number) {
	const out: JSX.Element[] = [];
	const lines = p.model.lines;
	let at = rows ? lineOfRow(rows, from) : from;
	let row = from;
	while (row < to && at < lines.length) {
		const line = lines[at] as LogLine;
		const points = rows ? wrapPoints(line.text, columns) : [0];
		const first = rows ? (rows[at] as number) : at;
		const target = p.target?.at === line.at || (p.target !== null && p.model.lineAt(p.target.at) === at);
		const bad = isErrorLine(line.text);
		for (let k = row - first; k < points.length && row < to; k++, row++) {
			out.push(
				<Row
					key={`${line.at}.${k}`}
					line={line}
					from={points[k] as number}
					to={points[k + 1] ?? line.text.length}
					part={k}
					look={`${bad ? " bad" : ""}${target ? " target" : ""}${line.stream === "err" ? " stderr" : ""}`}
					find={p.find}
					gutter={gutter}
					times={p.times}
					hue={p.names ? p.names.indexOf(line.node ?? "") % 10 : 0}
				/>,
			);
		}
		at++;
	}
	return out;
}

interface RowProps {
	line: LogLine;
	from: number;
	to: number;
	part: number;
	look: string;
	find: RegExp | null;
	gutter: number;
	times: boolean;
	hue: number;
}

function Row({ line, from, to, part, look, find, gutter, times, hue }: RowProps): JSX.Element {
	const parts = pieces(line, from, to);
	const shown = find ? marked(parts, find) : parts.map((x) => ({ ...x, hit: false }));
	return (
		<div class={`row${look}`} data-part={part}>
			{times && (
				<span class="when" style={{ width: `${TIME}ch` }} title={line.time ? dateTime(line.time) : undefined}>
					{part > 0 || line.time === undefined ? "" : line.time === null ? "–" : clock(line.time, true)}
				</span>
			)}
			{gutter > 0 && (
				<span class={`who s${hue}`} style={{ width: `${gutter}ch` }} title={line.node}>
					{part === 0 ? line.node : ""}
				</span>
			)}
			{shown.map((x, i) =>
				x.hit ? (
					<mark key={i} class={x.cls}>
						{x.text}
					</mark>
				) : x.cls ? (
					<span key={i} class={x.cls}>
						{x.text}
					</span>
				) : (
					x.text
				),
			)}
		</div>
	);
}

/* Copies without the breaks of wrapped lines, the names of nodes and the times. */
function onCopy(e: ClipboardEvent): void {
	const selection = document.getSelection();
	if (!selection || selection.rangeCount !== 1) return;
	const copy = selection.getRangeAt(0).cloneContents();
	const rows = [...copy.querySelectorAll<HTMLElement>(".row")];
	if (rows.length < 2) return;
	let text = "";
	rows.forEach((row, i) => {
		row.querySelectorAll(".who, .when").forEach((w) => w.remove());
		if (i > 0 && row.dataset.part === "0") text += "\n";
		text += row.textContent ?? "";
	});
	e.clipboardData?.setData("text/plain", text);
	e.preventDefault();
}
