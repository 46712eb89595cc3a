/* The table of figures and verdicts, a row for each metric and run. */
import type { JSX } from "preact";
import { count, pvalue, signed, value } from "../lib/format";
import type { CompareArm, CompareMetric, CompareRow, Comparison, Difference } from "../lib/types";
import { Empty, Icon, Swatch } from "../lib/ui";

const VERDICTS: Record<string, [icon: string, tone: string]> = {
	better: ["ok", "ok"],
	worse: ["warn", "bad"],
	same: ["minus", "off"],
	unclear: ["wait", "wait"],
};

export function VerdictBadge({ verdict }: { verdict: string | null | undefined }): JSX.Element {
	if (!verdict) return <span class="dim">–</span>;
	const [icon, t] = VERDICTS[verdict] ?? ["wait", "off"];
	return (
		<span class={`state t-${t}`}>
			<Icon name={icon} />
			{verdict}
		</span>
	);
}

function PValue({ d }: { d: Difference }): JSX.Element {
	const why = d.too_few ? "too few runs to test" : `uncorrected ${pvalue(d.p)}`;
	return (
		<td class="r num" title={why}>
			{d.too_few ? "–" : pvalue(d.p_holm ?? d.p)}
		</td>
	);
}

/* The interval of the difference, in the unit of the cell to its left: percent, unless the baseline is 0. */
function Interval({ d }: { d: Difference }): JSX.Element {
	const text = ([a, b]: [number, number]): string => `${signed(a)} … ${signed(b)}`;
	return (
		<td class="r num" title={d.ci ? `in figures: ${text(d.ci)}` : undefined}>
			{d.ci_pct ? `${text(d.ci_pct)} %` : d.ci ? `${text(d.ci)} in figures` : "–"}
		</td>
	);
}

/* With two runs the figures are in the row of the metric, with more in the row of each run. */
function figures(m: CompareMetric, row: CompareRow): Difference {
	return row.verdict !== undefined || row.diff !== undefined ? row : m;
}

/* What a run of each side costs, where machines have a price. */
function Costs({ arms }: { arms: CompareArm[] }): JSX.Element {
	return (
		<ul class="notes" aria-label="Costs">
			{arms.map((a) => {
				if (!a.cost) return null;
				const { runs, usd, usd_per_step: step, usd_per_1k_samples: samples } = a.cost;
				return (
					<li key={a.label}>
						<span class="mono">{a.label}</span>: {value(usd)} USD{runs > 1 && " a run"}
						{step !== null && `, ${value(step)} USD per step`}
						{samples !== null && `, ${value(samples)} USD per 1,000 samples`}
					</li>
				);
			})}
		</ul>
	);
}

/* "0.1", or "0.1 0.2" where the runs of one side differ, too. */
function sideText(values: unknown[]): string {
	return values.map((v) => (v === null ? "–" : typeof v === "string" ? v : JSON.stringify(v))).join(" ");
}

function Params({ params }: { params: NonNullable<Comparison["params"]> }): JSX.Element {
	return (
		<ul class="notes" aria-label="Parameters that differ">
			{params.map((p) => (
				<li key={p.name}>
					<span class="mono">{p.name}</span>: {p.values.map(sideText).join(" → ")}
				</li>
			))}
		</ul>
	);
}

export function Verdicts({ c }: { c: Comparison }): JSX.Element {
	return (
		<>
			{c.params && c.params.length > 0 && <Params params={c.params} />}
			{c.arms?.some((a) => a.cost) && <Costs arms={c.arms} />}
			{c.metrics.length > 0 ? <VerdictTable c={c} /> : <Empty>These runs have no metric in common.</Empty>}
			{c.notes && c.notes.length > 0 && (
				<ul class="notes dim">
					{c.notes.map((n) => (
						<li key={n}>{n}</li>
					))}
				</ul>
			)}
		</>
	);
}

function VerdictTable({ c }: { c: Comparison }): JSX.Element {
	return (
		<div class="tablebox" tabIndex={0} role="region" aria-label="Comparison">
			<table class="compare">
				<thead>
					<tr>
						<th scope="col">{c.variants ? "Variant, metric" : "Metric"}</th>
						<th scope="col">{c.variants ? "Suite" : "Run"}</th>
						<th scope="col" class="r" title="Figures compared: one of each run">
							n
						</th>
						<th scope="col" class="r">
							Median
						</th>
						<th scope="col" class="r">
							Mean
						</th>
						<th scope="col" class="r">
							Difference
						</th>
						<th scope="col" class="r">
							%
						</th>
						<th scope="col" class="r" title="Of the difference, in percent of the baseline">
							95 % interval
						</th>
						<th scope="col" class="r" title="By the rank test, corrected for the number of metrics (Holm)">
							p
						</th>
						<th scope="col">Verdict</th>
						<th scope="col" class="r" title="The smallest difference that this many runs can show">
							Detectable
						</th>
					</tr>
				</thead>
				{c.metrics.map((m) => (
					<tbody key={`${m.variant ?? ""} ${m.name}`}>
						{m.rows.map((row, i) => {
							const base = row.run === m.baseline;
							const f = figures(m, row);
							return (
								<tr key={row.run} class={i === 0 ? "first" : ""}>
									{i === 0 && (
										<th scope="rowgroup" rowSpan={m.rows.length}>
											{m.variant && <span class="variant mono">{m.variant}</span>}
											{m.name}
											<span class="dim"> {m.better} is better</span>
										</th>
									)}
									<td class="mono">
										<Swatch i={Math.max(0, c.runs.indexOf(row.run))} />
										{row.run}
									</td>
									<td class="r num" title={row.samples === undefined ? undefined : `${count(row.samples)} samples, ${count(row.warm_up ?? 0)} of warm-up left out`}>
										{count(row.n)}
									</td>
									<td class="r num">{value(row.median)}</td>
									<td class="r num">{value(row.mean)}</td>
									{base ? (
										<td class="dim" colSpan={6}>
											baseline
										</td>
									) : (
										<>
											<td class="r num">{signed(f.diff)}</td>
											<td class="r num">{typeof f.diff_pct === "number" ? `${signed(f.diff_pct)} %` : "–"}</td>
											<Interval d={f} />
											<PValue d={f} />
											<td>
												<VerdictBadge verdict={f.verdict} />
											</td>
											<td class="r num">{typeof f.mde_pct === "number" ? `${value(f.mde_pct)} %` : "–"}</td>
										</>
									)}
								</tr>
							);
						})}
					</tbody>
				))}
			</table>
		</div>
	);
}
