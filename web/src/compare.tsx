/* Two or more runs beside each other: which metric got better or worse, how surely, and the curves over each other. */
import type { JSX } from "preact";
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { API, ApiError, getJson, isAbort, query, runPath } from "./api";
import { Chart, type Zoom } from "./chart";
import { count, percent, pvalue, signed, value } from "./format";
import { useKept, useLoad, useVisible } from "./hooks";
import { matches, words } from "./model";
import { compareHref, navigate, runHref } from "./router";
import { aggregate, hasSteps, toTrack, type Track, type XAxis } from "./series";
import type { CompareArm, CompareMetric, CompareRow, Comparison, Metrics, Run } from "./types";
import { Choice, Empty, ErrorBox, Icon, StateBadge, Toggle } from "./ui";

const MOST_RUNS = 10;
const PICK_LIMIT = 1000;
const PICK_SHOWN = 12;
const RETRY_MS = 3000;
const MOST_REPEATS = 8; /* of a group, whose curves are drawn as one */

export function ComparePage({ url }: { url: URL }): JSX.Element {
	const ids = [...new Set(url.searchParams.getAll("run"))].slice(0, MOST_RUNS);
	const enough = ids.length >= 2;
	const result = useLoad<Comparison>(enough ? `${API}/compare?${ids.map((i) => `run=${encodeURIComponent(i)}`).join("&")}` : null);
	useEffect(() => {
		document.title = "Compare · Regatta";
	}, []);
	const set = (next: string[]): void => navigate(next.length ? compareHref(next) : "/compare");
	return (
		<main id="main" tabIndex={-1} class="page">
			<div class="head">
				<h1>Compare</h1>
				<span class="dim">{enough && `${ids.length} runs, the first is the baseline`}</span>
			</div>
			<ul class="picked" aria-label="Runs compared">
				{ids.map((id, i) => (
					<li key={id}>
						<svg class={`swatch s${i % 10}`} viewBox="0 0 16 4" aria-hidden="true">
							<path d="M0 2h16" />
						</svg>
						<a class="mono" href={runHref(id)}>
							{id}
						</a>
						{i === 0 ? (
							<span class="dim">baseline</span>
						) : (
							<button type="button" class="quiet" onClick={() => set([id, ...ids.filter((x) => x !== id)])}>
								make baseline
							</button>
						)}
						<button
							type="button"
							class="quiet"
							aria-label={`Remove ${id}`}
							onClick={() => set(ids.filter((x) => x !== id))}
						>
							<Icon name="close" />
						</button>
					</li>
				))}
			</ul>
			{ids.length < MOST_RUNS && <Picker ids={ids} add={(id) => set([...ids, id])} />}
			{!enough && <Empty>Pick two or more runs. Here, or by ticking them in the list of runs.</Empty>}
			{result.error && <ErrorBox error={result.error} again={result.again} />}
			{result.value && <Verdicts c={result.value} />}
			{enough && (result.value || result.error) && (
				<Overlays
					key={ids.join(" ")}
					arms={result.value?.arms ?? ids.map((id) => ({ label: id, runs: [id] }))}
					names={result.value?.metrics.map((m) => m.name) ?? []}
				/>
			)}
		</main>
	);
}

/* A field with a list below it, as the ARIA combobox pattern has it. */
function Picker({ ids, add }: { ids: string[]; add: (id: string) => void }): JSX.Element {
	const [open, setOpen] = useState(false);
	const [text, setText] = useState("");
	const [at, setAt] = useState(0);
	const field = useRef<HTMLInputElement>(null);
	const all = useLoad<{ runs: Run[] }>(open ? `${API}/runs${query({ limit: PICK_LIMIT })}` : null);
	const want = words(text);
	const fit = (all.value?.runs ?? []).filter((r) => !ids.includes(r.id) && matches(r, want)).slice(0, PICK_SHOWN);
	/* What fits no run may still name a group: name, name@last5. */
	const choose = (r: Run | undefined): void => {
		const id = r?.id ?? text.trim();
		if (!id) return;
		add(id);
		setText("");
		setAt(0);
		field.current?.focus();
	};
	const onKey = (e: KeyboardEvent): void => {
		if (e.key === "ArrowDown" || e.key === "ArrowUp") {
			e.preventDefault();
			setOpen(true);
			setAt((n) => Math.max(0, Math.min(fit.length - 1, n + (e.key === "ArrowDown" ? 1 : -1))));
		} else if (e.key === "Enter") {
			e.preventDefault();
			choose(fit[at]);
		} else if (e.key === "Escape") {
			setOpen(false);
		}
	};
	return (
		<div class="picker" onFocusOut={(e) => !e.currentTarget.contains(e.relatedTarget as Element | null) && setOpen(false)}>
			<label class="field">
				<Icon name="plus" />
				<span class="hidden">Add a run</span>
				<input
					ref={field}
					type="text"
					role="combobox"
					aria-expanded={open}
					aria-controls="pick-list"
					aria-autocomplete="list"
					aria-activedescendant={open && fit[at] ? `pick-${at}` : undefined}
					placeholder="Add a run: type a part of its name"
					autocomplete="off"
					value={text}
					onFocus={() => setOpen(true)}
					onInput={(e) => {
						setText(e.currentTarget.value);
						setOpen(true);
						setAt(0);
					}}
					onKeyDown={onKey}
				/>
			</label>
			{open && (
				<ul id="pick-list" role="listbox" aria-label="Runs">
					{fit.map((r, i) => (
						<li
							key={r.id}
							id={`pick-${i}`}
							role="option"
							aria-selected={i === at}
							onPointerDown={(e) => {
								e.preventDefault();
								choose(r);
							}}
						>
							<span class="mono">{r.id}</span>
							<StateBadge state={r.state} />
						</li>
					))}
					{all.value && !fit.length && <li class="dim">no run fits; Enter takes it as the name of a group</li>}
					{all.error && <li class="t-bad">{all.error.message}</li>}
				</ul>
			)}
		</div>
	);
}

const VERDICTS: Record<string, [icon: string, tone: string]> = {
	better: ["ok", "ok"],
	worse: ["warn", "bad"],
	same: ["minus", "off"],
	unclear: ["wait", "wait"],
};

function VerdictBadge({ verdict }: { verdict: string | null | undefined }): JSX.Element {
	if (!verdict) return <span class="dim">–</span>;
	const [icon, t] = VERDICTS[verdict] ?? ["wait", "off"];
	return (
		<span class={`state t-${t}`}>
			<Icon name={icon} />
			{verdict}
		</span>
	);
}

/* With two runs the figures stand beside the metric, with more beside each row. */
function figures(m: CompareMetric, row: CompareRow): CompareRow | CompareMetric {
	return row.verdict !== undefined || row.diff !== undefined ? row : m;
}

function Verdicts({ c }: { c: Comparison }): JSX.Element {
	return (
		<>
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
						<th scope="col">Metric</th>
						<th scope="col">Run</th>
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
						<th scope="col" class="r">
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
					<tbody key={m.name}>
						{m.rows.map((row, i) => {
							const base = row.run === m.baseline;
							const f = figures(m, row);
							return (
								<tr key={row.run} class={i === 0 ? "first" : ""}>
									{i === 0 && (
										<th scope="rowgroup" rowSpan={m.rows.length}>
											{m.name}
											<span class="dim"> {m.better} is better</span>
										</th>
									)}
									<td class="mono">
										<svg class={`swatch s${Math.max(0, c.runs.indexOf(row.run)) % 10}`} viewBox="0 0 16 4" aria-hidden="true">
											<path d="M0 2h16" />
										</svg>
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
											<td class="r num">{f.ci ? `${signed(f.ci[0])} … ${signed(f.ci[1])}` : "–"}</td>
											<td class="r num" title={`uncorrected ${pvalue(f.p)}`}>
												{pvalue(f.p_holm ?? f.p)}
											</td>
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

/* Curves do not need the statistics: they are drawn for what any of the runs has. */
function Overlays({ arms, names }: { arms: CompareArm[]; names: string[] }): JSX.Element {
	const [axis, setAxis] = useKept<XAxis>("axis", "step");
	const [log, setLog] = useState(false);
	const [zoom, setZoom] = useState<Zoom>(null);
	const [own, setOwn] = useState<string[]>([]);
	useEffect(() => {
		let here = true;
		const first = arms.map((a) => a.runs[0]).filter((id): id is string => id !== undefined);
		void Promise.all(first.map((id) => getJson<Run>(runPath(id)).catch(() => null))).then((runs) => {
			if (here) setOwn([...new Set(runs.flatMap((r) => Object.keys(r?.metrics ?? {})))]);
		});
		return () => {
			here = false;
		};
	}, []);
	const all = [...new Set([...names, ...own])];
	if (!all.length) return <></>;
	return (
		<section class="stack" aria-label="Curves">
			<div class="tools">
				<Choice
					label="Horizontal axis"
					now={axis}
					options={[
						["step", "Step"],
						["time", "Time"],
					]}
					pick={(a) => {
						setAxis(a);
						setZoom(null);
					}}
				/>
				<Toggle on={log} set={setLog}>
					Log scale
				</Toggle>
				<button type="button" disabled={zoom === null} onClick={() => setZoom(null)}>
					<Icon name="reset" />
					Reset zoom
				</button>
				<span class="dim">mean of each run's nodes</span>
			</div>
			<div class="charts">
				{all.map((name) => (
					<Overlay key={name} arms={arms} name={name} axis={axis} log={log} zoom={zoom} setZoom={setZoom} />
				))}
			</div>
		</section>
	);
}

interface OverlayProps {
	arms: CompareArm[];
	name: string;
	axis: XAxis;
	log: boolean;
	zoom: Zoom;
	setZoom: (z: Zoom) => void;
}

function Overlay({ arms, name, axis, log, zoom, setZoom }: OverlayProps): JSX.Element {
	const [ref, visible] = useVisible<HTMLDivElement>();
	const [all, setAll] = useState<(Metrics | null)[][] | null>(null);
	useEffect(() => {
		if (!visible || all) return;
		const abort = new AbortController();
		let timer = 0;
		const load = (): void => {
			const one = (id: string): Promise<Metrics> => getJson(runPath(id, "/metrics") + query({ name }), abort.signal);
			/* A run that is gone has no curve; a service that is gone may come back. */
			const gone = (e: unknown): null => {
				if (e instanceof ApiError && e.status >= 400 && e.status < 500) return null;
				throw e;
			};
			const ofArm = (a: CompareArm): Promise<(Metrics | null)[]> =>
				Promise.all(a.runs.slice(-MOST_REPEATS).map((id) => one(id).catch(gone)));
			Promise.all(arms.map(ofArm)).then(setAll, (e) => {
				if (!isAbort(e)) timer = window.setTimeout(load, RETRY_MS);
			});
		};
		load();
		return () => {
			clearTimeout(timer);
			abort.abort();
		};
	}, [visible]);

	const stepped = all?.every((arm) => arm.every((m) => m?.series.every((s) => hasSteps(s.points)) ?? true)) ?? true;
	const shownAxis: XAxis = axis === "step" && stepped ? "step" : "time";
	const tracks = useMemo(() => (all ?? []).map((m, i) => oneTrack(arms[i]?.label ?? "", m, shownAxis)), [all, shownAxis]);
	return (
		<div ref={ref}>
			<Chart
				title={name}
				tracks={tracks}
				axis={shownAxis}
				log={log}
				zoom={axis === shownAxis ? zoom : null}
				setZoom={setZoom}
				loading={!all}
				empty="none of these runs told it"
				note={ends(tracks)}
			/>
		</div>
	);
}

/* Time starts at the first point of each run, so that runs of different days lie over each other. */
function oneTrack(label: string, runs: (Metrics | null)[], axis: XAxis): Track {
	const tracks = runs.flatMap((m) => {
		const series = m?.series ?? [];
		const origin = Math.min(...series.map((s) => s.points[0]?.[0] ?? Infinity));
		return series.map((s) => toTrack(s.node, s.points, axis, origin)).filter((t) => t.xs.length);
	});
	return { ...aggregate(tracks, axis)[0], label };
}

function ends(tracks: Track[]): string {
	const last = tracks.map((t) => t.ys[t.ys.length - 1]).filter((v): v is number => v !== undefined);
	const [a, b] = last;
	if (last.length !== 2 || !a || b === undefined) return "";
	const change = (b - a) / Math.abs(a);
	return `${change > 0 ? "+" : ""}${percent(change)} at the end`;
}
