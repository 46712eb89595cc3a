/* The field that adds a run to the comparison. */
import type { JSX } from "preact";
import { useRef, useState } from "preact/hooks";
import { API, query } from "../lib/api";
import { useLoad } from "../lib/hooks";
import { matches, words } from "../lib/model";
import type { Run } from "../lib/types";
import { Icon, StateBadge } from "../lib/ui";

const PICK_LIMIT = 1000;
const PICK_SHOWN = 12;

/* A field with a list below it, by the ARIA combobox pattern. */
export function Picker({ ids, add }: { ids: string[]; add: (id: string) => void }): JSX.Element {
	const [open, setOpen] = useState(false);
	const [text, setText] = useState("");
	const [at, setAt] = useState(0);
	const field = useRef<HTMLInputElement>(null);
	const all = useLoad<{ runs: Run[] }>(open ? `${API}/runs${query({ limit: PICK_LIMIT })}` : null);
	const want = words(text);
	const fit = (all.value?.runs ?? []).filter((r) => !ids.includes(r.id) && matches(r, want)).slice(0, PICK_SHOWN);
	/* A text that matches no run may be the name of a group: name, name@last5. */
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
					{all.value && !fit.length && <li class="dim">no run matches; Enter takes it as the name of a group</li>}
					{all.error && <li class="t-bad">{all.error.message}</li>}
				</ul>
			)}
		</div>
	);
}
