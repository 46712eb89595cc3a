/* The list of suites. */
import type { JSX } from "preact";
import { useEffect, useState } from "preact/hooks";
import { API, query } from "../lib/api";
import { age, count, dateTime, duration, plural } from "../lib/format";
import { useLoad, useNow } from "../lib/hooks";
import { isOver } from "../lib/model";
import { compareHref, navigate, suiteHref, suiteWord } from "../lib/router";
import type { Suite } from "../lib/types";
import { Empty, ErrorBox, Icon, ProgressBar, StateBadge } from "../lib/ui";
import { ended, suiteElapsed } from "./model";

const MOST = 500;
const POLL_MS = 2000;

export function SuitesPage(): JSX.Element {
	const got = useLoad<{ suites: Suite[] }>(`${API}/suites${query({ limit: MOST })}`);
	const [at, setAt] = useState(Date.now());
	const list = got.value?.suites ?? [];
	const [chosen, setChosen] = useState<ReadonlySet<string>>(new Set());
	const choose = (id: string, on: boolean): void => {
		const next = new Set(chosen);
		if (on) next.add(id);
		else next.delete(id);
		setChosen(next);
	};
	const active = list.filter((s) => !isOver(s.state)).length;
	const now = useNow(active > 0);
	useEffect(() => {
		document.title = "Suites · Regatta";
		/* Suites have no stream of their own. */
		const timer = setInterval(() => !document.hidden && got.again(), POLL_MS);
		return () => clearInterval(timer);
	}, []);
	useEffect(() => setAt(Date.now()), [got.value]);
	return (
		<main id="main" tabIndex={-1} class="page">
			<div class="head">
				<h1>Suites</h1>
				<span class="dim">
					{got.value && `${count(active)} active, ${count(list.length)}${list.length === MOST ? "+" : ""} in all`}
				</span>
				<span class="spring" />
				<button
					type="button"
					disabled={chosen.size < 2}
					title="Tick two or more suites to compare them"
					onClick={() => navigate(compareHref([...chosen].map(suiteWord)))}
				>
					<Icon name="compare" />
					Compare{chosen.size > 0 && ` ${chosen.size}`}
				</button>
			</div>
			{got.error && <ErrorBox error={got.error} again={got.again} />}
			{list.length > 0 && (
				<div class="tablebox" tabIndex={0} role="region" aria-label="Suites">
					<table class="variants">
						<thead>
							<tr>
								<td>
									<span class="hidden">Compare</span>
								</td>
								<th scope="col">State</th>
								<th scope="col">Suite</th>
								<th scope="col">Runs</th>
								<th scope="col" class="r">
									Not succeeded
								</th>
								<th scope="col" class="r">
									Age
								</th>
								<th scope="col" class="r">
									Duration
								</th>
							</tr>
						</thead>
						<tbody>
							{list.map((s) => (
								<Row key={s.id} s={s} at={at} now={Math.max(now, at)} chosen={chosen.has(s.id)} choose={choose} />
							))}
						</tbody>
					</table>
				</div>
			)}
			{got.value && !list.length && (
				<Empty>
					<p>No suites yet. Start one:</p>
					<pre class="command">regatta suite run FILE</pre>
				</Empty>
			)}
		</main>
	);
}

interface RowProps {
	s: Suite;
	at: number; /* when the object arrived */
	now: number;
	chosen: boolean;
	choose: (id: string, on: boolean) => void;
}

function Row({ s, at, now, chosen, choose }: RowProps): JSX.Element {
	const total = s.counts.runs ?? 0;
	const bad = ended(s.counts) - (s.counts.succeeded ?? 0);
	return (
		<tr data-suite={s.id}>
			<td>
				<input
					type="checkbox"
					checked={chosen}
					aria-label={`Compare ${s.id}`}
					onChange={(e) => choose(s.id, e.currentTarget.checked)}
				/>
			</td>
			<td>
				<StateBadge state={s.state} />
			</td>
			<th scope="row" class="mono">
				<a href={suiteHref(s.id)} title={s.cause ?? undefined}>
					{s.id}
				</a>
			</th>
			<td>{isOver(s.state) ? plural(total, "run") : <ProgressBar p={{ done: ended(s.counts), total, what: "runs" }} />}</td>
			<td class={bad ? "r num t-bad" : "r num"}>{count(bad)}</td>
			<td class="r num" title={dateTime(s.created_ms)}>
				{age(now - s.created_ms)}
			</td>
			<td class="r num">{duration(suiteElapsed(s, at, now))}</td>
		</tr>
	);
}
