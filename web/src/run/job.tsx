/* The job file, and the environment of each node. */
import type { JSX } from "preact";
import { useState } from "preact/hooks";
import { getText, runPath } from "../lib/api";
import { useLoad } from "../lib/hooks";
import type { Plan, Run } from "../lib/types";
import { Empty, ErrorBox, NodeSelect, SearchField } from "../lib/ui";

export function JobPanel({ run }: { run: Run }): JSX.Element {
	const job = useLoad<string>(runPath(run.id, "/job"), getText);
	const plan = useLoad<Plan>(runPath(run.id, "/plan"));
	const [node, setNode] = useState("");
	const [text, setText] = useState("");
	const nodes = plan.value?.nodes ?? [];
	const mine = nodes.find((n) => n.name === node) ?? nodes[0];
	const want = text.toLowerCase();
	const env = Object.entries(mine?.env ?? {}).filter(([k, v]) => !want || `${k}=${v}`.toLowerCase().includes(want));
	const role = plan.value?.roles?.find((r) => r.name === mine?.role);
	return (
		<div class="jobpanel">
			<section aria-label="Job file">
				<div class="head small">
					<h2>Job file</h2>
					<span class="spring" />
					<a class="button" href={runPath(run.id, "/job")} download={`${run.id}.toml`}>
						Download
					</a>
				</div>
				{job.error && <ErrorBox error={job.error} again={job.again} />}
				{job.value !== null && (
					<pre class="code" tabIndex={0}>
						{job.value}
					</pre>
				)}
			</section>
			<section aria-label="Environment">
				<div class="head small">
					<h2>Environment</h2>
					<span class="spring" />
					<a class="button" href={runPath(run.id, "/plan")} download={`${run.id}-plan.json`}>
						Plan
					</a>
				</div>
				<div class="tools">
					<NodeSelect names={nodes.map((n) => n.name)} now={mine?.name} pick={setNode} />
					<SearchField label="Filter variables" hint="Filter variables" text={text} set={setText} />
				</div>
				{plan.error && <ErrorBox error={plan.error} again={plan.again} />}
				{role && <pre class="code command">{role.command.map(shellWord).join(" ")}</pre>}
				{mine && !mine.env && <Empty>The plan of a run this big has the environment of the first node of each role.</Empty>}
				{env.length > 0 && (
					<table class="env">
						<caption class="hidden">Variables that {mine?.name} was given</caption>
						<tbody>
							{env.map(([k, v]) => (
								<tr key={k}>
									<th scope="row">{k}</th>
									<td>{v}</td>
								</tr>
							))}
						</tbody>
					</table>
				)}
			</section>
		</div>
	);
}

function shellWord(word: string): string {
	return /^[\w@%+=:,./-]+$/.test(word) ? word : `'${word.replace(/'/g, `'\\''`)}'`;
}
