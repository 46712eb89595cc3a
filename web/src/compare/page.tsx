/* Compares two or more runs: a verdict for each metric, and the curves of all runs in one chart. */
import type { JSX } from "preact";
import { useEffect } from "preact/hooks";
import { API } from "../lib/api";
import { useLoad } from "../lib/hooks";
import { compareHref, navigate, runHref } from "../lib/router";
import type { Comparison } from "../lib/types";
import { Empty, ErrorBox, Icon, Swatch } from "../lib/ui";
import { Curves } from "./curves";
import { Picker } from "./picker";
import { Verdicts } from "./verdicts";

const MOST_RUNS = 10;

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
						<Swatch i={i} />
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
				<Curves
					key={ids.join(" ")}
					arms={result.value?.arms ?? ids.map((id) => ({ label: id, runs: [id] }))}
					names={result.value?.metrics.map((m) => m.name) ?? []}
				/>
			)}
		</main>
	);
}
