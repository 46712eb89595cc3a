/* The grid of a suite: a square for each run, coloured by its state and linked to it, and the figure of each variant. */
import { createContext, type JSX } from "preact";
import { useContext, useRef, useState } from "preact/hooks";
import { moveByArrows } from "../lib/arrows";
import { count, signed, value } from "../lib/format";
import { runHref } from "../lib/router";
import type { Suite, SuiteEntry, SuiteFigure, Variant } from "../lib/types";
import { NodeSign } from "../run/nodes";
import { VerdictBadge } from "../compare/verdicts";
import { entryLook, type Matrix } from "./model";

const MOST_ROWS = 200; /* shown at once; a button shows as many more */

/* Of all squares one can be reached by Tab: the one that had the focus last, else the first. */
const TabStop = createContext("");

function indexOf(v: Variant, e: SuiteEntry): string {
	return `${e.repeat} ${v.name}`;
}

type Figures = Map<string, SuiteFigure>;

function Square({ v, e }: { v: Variant; e: SuiteEntry }): JSX.Element {
	const stop = useContext(TabStop);
	const index = indexOf(v, e);
	const text = `${v.name} #${e.repeat} ${e.state}${e.attempt > 1 ? `, attempt ${e.attempt}` : ""}${e.cause ? `: ${e.cause}` : ""}`;
	const sign = <NodeSign look={entryLook(e.state)} />;
	if (!e.run) {
		return (
			<span class="cell" title={text} data-state={e.state} role="img" aria-label={text}>
				{sign}
			</span>
		);
	}
	return (
		<a
			class="cell"
			href={runHref(e.run)}
			title={`${text} (${e.run})`}
			aria-label={text}
			data-state={e.state}
			data-index={index}
			tabIndex={index === stop ? 0 : -1}
		>
			{sign}
		</a>
	);
}

function Squares({ v }: { v: Variant }): JSX.Element {
	return (
		<div class="squares">
			{v.runs.map((e) => (
				<Square key={e.repeat} v={v} e={e} />
			))}
		</div>
	);
}

function MatrixCell({ v, f }: { v: Variant | undefined; f: SuiteFigure | undefined }): JSX.Element {
	if (!v) return <td class="dim excluded">excluded</td>;
	return (
		<td>
			<Squares v={v} />
			<div class="figure num">
				{f && f.n > 0 ? value(f.median) : <span class="dim">–</span>}
				{f && f.diff_pct !== null && <span class="dim"> {signed(f.diff_pct)} %</span>}
			</div>
		</td>
	);
}

/* A matrix of two axes. */
function MatrixTable({ s, m, figures }: { s: Suite; m: Matrix; figures: Figures }): JSX.Element {
	const [down, across] = s.axes ?? [];
	return (
		<table class="matrix">
			<thead>
				<tr>
					<th scope="col" class="mono">
						{down} <span class="dim">↓</span> {across} <span class="dim">→</span>
					</th>
					{m.columns.map((c) => (
						<th scope="col" key={c} class="mono">
							{c}
						</th>
					))}
				</tr>
			</thead>
			<tbody>
				{m.rows.map((row, r) => (
					<tr key={row}>
						<th scope="row" class="mono">
							{row}
						</th>
						{m.columns.map((c, i) => {
							const v = m.at(r, i);
							return <MatrixCell key={c} v={v} f={v && figures.get(v.name)} />;
						})}
					</tr>
				))}
			</tbody>
		</table>
	);
}

/* Any other suite: a row for each variant. */
function VariantTable({ variants, figures }: { variants: Variant[]; figures: Figures }): JSX.Element {
	const [most, setMost] = useState(MOST_ROWS);
	const compared = [...figures.values()].some((f) => f.baseline !== null);
	const scaled = [...figures.values()].some((f) => f.speedup !== null);
	return (
		<>
			<table class="variants">
				<thead>
					<tr>
						<th scope="col">Variant</th>
						<th scope="col">Runs</th>
						<th scope="col" class="r">
							Median
						</th>
						{compared && (
							<>
								<th scope="col" class="r">
									%
								</th>
								<th scope="col">Verdict</th>
							</>
						)}
						{scaled && (
							<th scope="col" class="r">
								Speed-up
							</th>
						)}
					</tr>
				</thead>
				<tbody>
					{variants.slice(0, most).map((v) => {
						const f = figures.get(v.name);
						return (
							<tr key={v.name} data-variant={v.name}>
								<th scope="row" class="mono">
									{v.name}
								</th>
								<td>
									<Squares v={v} />
								</td>
								<td class="r num">{f && f.n > 0 ? value(f.median) : "–"}</td>
								{compared && (
									<>
										<td class="r num">{f && f.diff_pct !== null ? `${signed(f.diff_pct)} %` : "–"}</td>
										<td>
											<VerdictBadge verdict={f?.verdict} />
										</td>
									</>
								)}
								{scaled && <td class="r num">{value(f?.speedup)}</td>}
							</tr>
						);
					})}
				</tbody>
			</table>
			{variants.length > most && (
				<button type="button" onClick={() => setMost(most + MOST_ROWS)}>
					Show more: {count(variants.length - most)} are left
				</button>
			)}
		</>
	);
}

/* The square that Tab comes to. */
function tabStop(variants: Variant[], focus: string): string {
	let first = "";
	for (const v of variants)
		for (const e of v.runs) {
			const index = indexOf(v, e);
			if (index === focus) return focus;
			if (e.run && !first) first = index;
		}
	return first;
}

interface GridProps {
	s: Suite;
	matrix: Matrix | null;
	variants: Variant[]; /* that are shown */
	figures: Figures;
}

export function Grid({ s, matrix, variants, figures }: GridProps): JSX.Element {
	const box = useRef<HTMLDivElement>(null);
	const [focus, setFocus] = useState("");
	const rest = matrix ? matrix.rest : variants;
	return (
		<TabStop.Provider value={tabStop(variants, focus)}>
			<div
				class="tablebox suitegrid"
				ref={box}
				role="region"
				aria-label="Runs of the suite"
				tabIndex={0}
				onKeyDown={(e) => moveByArrows(box.current, e)}
				onFocusIn={(e) => setFocus((e.target as HTMLElement).dataset.index ?? focus)}
			>
				{matrix && <MatrixTable s={s} m={matrix} figures={figures} />}
				{rest.length > 0 && <VariantTable variants={rest} figures={figures} />}
			</div>
		</TabStop.Provider>
	);
}
