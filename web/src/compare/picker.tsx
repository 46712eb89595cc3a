/* The field that adds a run to the comparison. */
import type { JSX } from "preact";
import { useRef, useState } from "preact/hooks";
import { API, query } from "../lib/api";
import { useLoad } from "../lib/hooks";
import { plural } from "../lib/format";
import { matches, words } from "../lib/model";
import type { Run } from "../lib/types";
import { Icon, StateBadge } from "../lib/ui";

const PICK_LIMIT = 1000;
const PICK_SHOWN = 12;

interface Offer {
	word: string;
	run?: Run;
	runs?: number; /* of a group of repeats */
}

/* Runs of one name are repeats, if two or more of them have succeeded. */
export function repeats(runs: Run[]): Offer[] {
	const by = new Map<string, number>();
	for (const r of runs) if (r.state === "succeeded") by.set(r.name, (by.get(r.name) ?? 0) + 1);
	const ids = new Set(runs.map((r) => r.id));
	return [...by].filter(([name, n]) => n > 1 && !ids.has(name)).map(([word, n]) => ({ word, runs: n }));
}

/* A field with a list below it, by the ARIA combobox pattern. */
export function Picker({ ids, add }: { ids: string[]; add: (id: string) => void }): JSX.Element {
	const [open, setOpen] = useState(false);
	const [text, setText] = useState("");
	const [at, setAt] = useState(0);
	const field = useRef<HTMLInputElement>(null);
	const all = useLoad<{ runs: Run[] }>(open ? `${API}/runs${query({ limit: PICK_LIMIT })}` : null);
	const want = words(text);
	const known = all.value?.runs ?? [];
	const fit: Offer[] = [
		...repeats(known).filter((g) => !ids.includes(g.word) && want.every((w) => g.word.toLowerCase().includes(w))),
		...known.filter((r) => !ids.includes(r.id) && matches(r, want)).map((r) => ({ word: r.id, run: r })),
	].slice(0, PICK_SHOWN);
	/* A text that matches nothing may be a group that is not offered: name@last5, suite:ID. */
	const choose = (o: Offer | undefined): void => {
		const id = o?.word ?? text.trim();
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
					placeholder="Add a run or a group of repeats: type a part of its name"
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
					{fit.map((o, i) => (
						<li
							key={o.word}
							id={`pick-${i}`}
							role="option"
							aria-selected={i === at}
							onPointerDown={(e) => {
								e.preventDefault();
								choose(o);
							}}
						>
							<span class="mono">{o.word}</span>
							{o.run ? <StateBadge state={o.run.state} /> : <span class="dim">{plural(o.runs ?? 0, "repeat")}</span>}
						</li>
					))}
					{all.value && !fit.length && <li class="dim">no run matches; Enter takes it as the name of a group</li>}
					{all.error && <li class="t-bad">{all.error.message}</li>}
				</ul>
			)}
		</div>
	);
}
