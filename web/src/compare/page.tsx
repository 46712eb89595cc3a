/* Compares two or more runs: a verdict for each metric, and the curves of all runs in one chart. */
import type { JSX } from "preact";
import { useEffect } from "preact/hooks";
import { API } from "../lib/api";
import { useLoad } from "../lib/hooks";
import { plural } from "../lib/format";
import { compareHref, isSuiteWord, navigate, wordHref } from "../lib/router";
import type { Comparison } from "../lib/types";
import { Empty, ErrorBox, Icon, Swatch } from "../lib/ui";
import { Curves } from "./curves";
import { Picker } from "./picker";
import { Verdicts } from "./verdicts";

const MOST_RUNS = 10;

function Word({ id, runs }: { id: string; runs: string[] | undefined }): JSX.Element {
	const href = wordHref(id, runs);
	return (
		<>
			{href ? (
				<a class="mono" href={href}>
					{id}
				</a>
			) : (
				<span class="mono">{id}</span>
			)}
			{runs && runs.length > 1 && <span class="dim num">{plural(runs.length, "run")}</span>}
		</>
	);
}

export function ComparePage({ url }: { url: URL }): JSX.Element {
	const ids = [...new Set(url.searchParams.getAll("run"))].slice(0, MOST_RUNS);
	const enough = ids.length >= 2;
	const result = useLoad<Comparison>(enough ? `${API}/compare?${ids.map((i) => `run=${encodeURIComponent(i)}`).join("&")}` : null);
	useEffect(() => {
		document.title = "Compare · Regatta";
	}, []);
	const suites = ids.some(isSuiteWord) || result.value?.variants !== undefined;
	const set = (next: string[]): void => navigate(next.length ? compareHref(next) : "/compare");
	return (
		<main id="main" tabIndex={-1} class="page">
			<div class="head">
				<h1>Compare</h1>
				<span class="dim">{enough && `${ids.length} ${suites ? "suites" : "sides"}, the first is the baseline`}</span>
			</div>
			<ul class="picked" aria-label="What is compared">
				{ids.map((id, i) => (
					<li key={id}>
						<Swatch i={i} />
						<Word id={id} runs={result.value?.arms?.[i]?.runs} />
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
			{!enough && <Empty>Pick two or more runs, groups of repeats or suites. Here, or by ticking them in the list of runs or suites.</Empty>}
			{result.error && <ErrorBox error={result.error} again={result.again} />}
			{result.value && <Verdicts c={result.value} />}
			{/* The runs of a suite are of many kinds: their mean would be nobody's curve. */}
			{enough && !suites && (result.value || result.error) && (
				<Curves
					key={ids.join(" ")}
					arms={result.value?.arms ?? ids.map((id) => ({ label: id, runs: [id] }))}
					names={result.value?.metrics.map((m) => m.name) ?? []}
				/>
			)}
		</main>
	);
}
