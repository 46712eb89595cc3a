/* The files that a run has kept, as a tree; each can be downloaded. */
import type { JSX } from "preact";
import { useEffect, useState } from "preact/hooks";
import { ApiError, getJson, isAbort, query, runPath } from "../lib/api";
import { bytes, plural } from "../lib/format";
import { isOver } from "../lib/model";
import { type Folder, type OutputFile, outputTree } from "./output_tree";
import type { Run } from "../lib/types";
import { Empty, ErrorBox } from "../lib/ui";

/* A larger list is shortened: the command line has all of it. */
const MOST_SHOWN = 5000;

interface Outputs {
	files: OutputFile[];
	bytes: number;
}

export function OutputsPanel({ run }: { run: Run }): JSX.Element | null {
	const [list, setList] = useState<Outputs | null>(null);
	const [error, setError] = useState<ApiError | null>(null);
	const over = isOver(run.state);

	useEffect(() => {
		const stop = new AbortController();
		getJson<Outputs>(runPath(run.id, "/outputs"), stop.signal).then(
			(l) => {
				setList(l);
				setError(null);
			},
			(e: ApiError) => !isAbort(e) && setError(e),
		);
		return () => stop.abort();
	}, [run.id, over]);
	if (error) return <ErrorBox error={error} />;
	if (!list) return null;
	if (!list.files.length) return <Empty>{over ? "This run kept no files." : "Nothing is kept yet."}</Empty>;
	const shown = list.files.slice(0, MOST_SHOWN);
	return (
		<section class="outputs" aria-label="Outputs">
			<p class="dim">
				{plural(list.files.length, "file")}, {bytes(list.bytes)}
				{shown.length < list.files.length && `; the first ${shown.length} are shown, regatta outputs ${run.id} lists all`}
			</p>
			<FolderView run={run.id} folder={outputTree(shown)} open />
		</section>
	);
}

function FolderView({ run, folder, open }: { run: string; folder: Folder; open: boolean }): JSX.Element {
	return (
		<ul>
			{folder.folders.map((f) => (
				<li key={f.name}>
					<details open={open}>
						<summary class="mono">
							{f.name}/ <span class="dim">{bytes(f.bytes)}</span>
						</summary>
						<FolderView run={run} folder={f} open={false} />
					</details>
				</li>
			))}
			{folder.files.map((f) => (
				<li key={f.path} class="mono">
					{f.link ? (
						<span>
							{name(f)} → {f.link}
						</span>
					) : (
						<a href={runPath(run, "/outputs/file") + query({ path: f.path })} download title={f.sha256 ? `SHA-256 ${f.sha256}` : undefined}>
							{name(f)}
						</a>
					)}{" "}
					<span class="dim">{bytes(f.size)}</span>
				</li>
			))}
		</ul>
	);
}

function name(f: OutputFile): string {
	return f.path.slice(f.path.lastIndexOf("/") + 1);
}
