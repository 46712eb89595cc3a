/* Small parts that every page uses. */
import type { ComponentChildren, JSX } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import type { ApiError } from "./api";
import { percent, value } from "./format";
import { useNow } from "./hooks";
import type { LinkState } from "./live";
import type { Progress } from "./model";

export const COLOURS = 10; /* --s0 to --s9 of theme.css */

const PATHS: Record<string, string> = {
	ok: "M3 8.5l3.2 3.2L13 4.8",
	bad: "M4 4l8 8M12 4l-8 8",
	stop: "M8 1.8a6.2 6.2 0 100 12.4A6.2 6.2 0 008 1.8zM3.8 12.2l8.4-8.4",
	run: "M5 3.2v9.6l7.6-4.8z",
	wait: "M8 1.8a6.2 6.2 0 100 12.4A6.2 6.2 0 008 1.8zM8 4.6V8l2.4 1.6",
	pack: "M2.5 5.2L8 2.2l5.5 3v5.6L8 13.8l-5.5-3zM2.5 5.2L8 8.2l5.5-3M8 8.2v5.6",
	search: "M7 2.5a4.5 4.5 0 100 9 4.5 4.5 0 000-9zM10.4 10.4l3.4 3.4",
	down: "M8 2.5v10M4 8.8l4 4 4-4",
	up: "M8 13.5v-10M4 7.2l4-4 4 4",
	close: "M4 4l8 8M12 4l-8 8",
	sun: "M8 5a3 3 0 100 6 3 3 0 000-6zM8 1v1.6M8 13.4V15M1 8h1.6M13.4 8H15M3 3l1.2 1.2M11.8 11.8L13 13M3 13l1.2-1.2M11.8 4.2L13 3",
	moon: "M13.2 9.6A5.6 5.6 0 016.4 2.8a5.6 5.6 0 106.8 6.8z",
	auto: "M8 1.8a6.2 6.2 0 100 12.4zM8 1.8a6.2 6.2 0 010 12.4",
	warn: "M8 2.2l6.4 11.4H1.6zM8 6.4v3.4M8 11.4v.4",
	compare: "M3 13V7M6.4 13V3M9.8 13V9M13.2 13V5",
	file: "M4 1.8h5.2L12.4 5v9.2H4zM9 2v3.2h3.2",
	reset: "M3 8a5 5 0 101.6-3.7M4.4 1.8v2.8h2.8",
	plus: "M8 3v10M3 8h10",
	minus: "M3 8h10",
};

export function Icon({ name }: { name: string }): JSX.Element {
	return (
		<svg class="icon" viewBox="0 0 16 16" aria-hidden="true" focusable="false">
			<path d={PATHS[name] ?? ""} />
		</svg>
	);
}

/* One shape for each kind of state, so that colour is never the only sign. */
const STATE_LOOK: Record<string, [icon: string, tone: string]> = {
	accepted: ["wait", "wait"],
	provisioning: ["wait", "wait"],
	gathering: ["wait", "wait"],
	running: ["run", "run"],
	collecting: ["pack", "pack"],
	cleaning: ["pack", "pack"],
	stopping: ["stop", "wait"],
	closing: ["pack", "pack"],
	succeeded: ["ok", "ok"],
	failed: ["bad", "bad"],
	cancelled: ["stop", "off"],
};

export function tone(state: string): string {
	return STATE_LOOK[state]?.[1] ?? "off";
}

export function StateBadge({ state, cancelling }: { state: string; cancelling?: boolean }): JSX.Element {
	const [icon, t] = STATE_LOOK[state] ?? ["wait", "off"];
	return (
		<span class={`state t-${t}`}>
			<Icon name={icon} />
			{cancelling ? "cancelling" : state}
		</span>
	);
}

export function ProgressBar({ p, label }: { p: Progress; label?: boolean }): JSX.Element {
	const share = p.total > 0 ? p.done / p.total : 0;
	const text = p.what === "share" ? percent(share, 0) : `${value(p.done)}/${value(p.total)}`;
	return (
		<span class="progress">
			<progress max={1} value={share} aria-label={`${p.what}: ${text}`} />
			{label !== false && <span class="num">{text}</span>}
		</span>
	);
}

export function LinkBadge({ state, retry }: { state: LinkState; retry?: () => void }): JSX.Element {
	const now = useNow(state.kind === "lost", 250);
	const text: Record<LinkState["kind"], string> = {
		connecting: "connecting…",
		live: "live",
		paused: "paused",
		ended: "complete",
		lost: "reconnecting",
	};
	const left = state.kind === "lost" ? Math.max(0, Math.ceil((state.retryAt - now) / 1000)) : 0;
	return (
		<span class={`link l-${state.kind}`} role="status">
			<span class="dot" />
			{text[state.kind]}
			{state.kind === "lost" && (left > 0 ? ` in ${left} s` : "…")}
			{state.kind === "lost" && retry && (
				<button type="button" class="quiet" onClick={retry}>
					now
				</button>
			)}
		</span>
	);
}

const LONG_MS = 3000;

/* The master keeps the sessions: after its exit the user must sign in again. */
function NewLink(): JSX.Element {
	return (
		<p>
			If its master has left, <code>regatta ui</code> starts one and prints a new link.
		</p>
	);
}

/* Says that the page shows old figures, once the connection has been lost for some seconds. */
export function LostBox({ state }: { state: LinkState }): JSX.Element | null {
	const away = state.kind === "lost" || state.kind === "connecting";
	const [long, setLong] = useState(false);
	useEffect(() => {
		setLong(false);
		if (!away) return;
		const timer = setTimeout(() => setLong(true), LONG_MS);
		return () => clearTimeout(timer);
	}, [away]);
	if (!away || !long) return null;
	return (
		<div class="box bad" role="status">
			<Icon name="warn" />
			<div>
				<p>the service does not answer</p>
				<NewLink />
			</div>
		</div>
	);
}

export function ErrorBox({ error, again }: { error: ApiError; again?: () => void }): JSX.Element {
	return (
		<div class="box bad" role="alert">
			<Icon name="warn" />
			<div>
				<p>{error.message}</p>
				{error.status === 0 && <NewLink />}
				{error.details.length > 0 && (
					<ul>
						{error.details.map((d) => (
							<li key={d}>{d}</li>
						))}
					</ul>
				)}
			</div>
			{again && (
				<button type="button" onClick={again}>
					Try again
				</button>
			)}
		</div>
	);
}

export interface Tab {
	id: string;
	label: string;
	note?: string;
}

/* By the ARIA pattern: one stop for Tab, arrows between the tabs. */
export function Tabs(props: { tabs: Tab[]; now: string; label: string; pick: (id: string) => void }): JSX.Element {
	const list = useRef<HTMLDivElement>(null);
	const onKey = (e: KeyboardEvent): void => {
		const at = props.tabs.findIndex((t) => t.id === props.now);
		const to = { ArrowRight: at + 1, ArrowLeft: at - 1, Home: 0, End: props.tabs.length - 1 }[e.key];
		if (to === undefined) return;
		e.preventDefault();
		const next = props.tabs[(to + props.tabs.length) % props.tabs.length] as Tab;
		props.pick(next.id);
		list.current?.querySelector<HTMLElement>(`#tab-${next.id}`)?.focus();
	};
	return (
		<div class="tabs" role="tablist" aria-label={props.label} ref={list} onKeyDown={onKey}>
			{props.tabs.map((t) => (
				<button
					type="button"
					role="tab"
					key={t.id}
					id={`tab-${t.id}`}
					aria-selected={t.id === props.now}
					aria-controls="panel"
					tabIndex={t.id === props.now ? 0 : -1}
					onClick={() => props.pick(t.id)}
				>
					{t.label}
					{t.note && <span class="note">{t.note}</span>}
				</button>
			))}
		</div>
	);
}

/*
 * The browser's modal dialog keeps the focus inside. The element is removed before it could restore the focus, so that is done
 * here.
 */
export function Dialog(props: { title: string; close: () => void; children: ComponentChildren }): JSX.Element {
	const ref = useRef<HTMLDialogElement>(null);
	useEffect(() => {
		const el = ref.current;
		const before = document.activeElement as HTMLElement | null;
		el?.showModal();
		return () => {
			el?.close();
			before?.focus();
		};
	}, []);
	return (
		<dialog
			ref={ref}
			aria-labelledby="dialog-title"
			onCancel={(e) => {
				e.preventDefault();
				props.close();
			}}
			onClick={(e) => e.target === ref.current && props.close()}
		>
			<div class="dialog">
				<h2 id="dialog-title">{props.title}</h2>
				{props.children}
			</div>
		</dialog>
	);
}

export function SearchField(props: { label: string; hint: string; text: string; set: (text: string) => void }): JSX.Element {
	return (
		<label class="field">
			<Icon name="search" />
			<span class="hidden">{props.label}</span>
			<input
				type="search"
				placeholder={props.hint}
				value={props.text}
				onInput={(e) => props.set(e.currentTarget.value)}
			/>
		</label>
	);
}

/* Selects a node of the run; `children`: options before the nodes. */
export function NodeSelect(props: {
	names: string[];
	now: string | undefined;
	pick: (name: string) => void;
	children?: ComponentChildren;
}): JSX.Element {
	return (
		<label class="field select">
			<span class="hidden">Node</span>
			<select value={props.now} onChange={(e) => props.pick(e.currentTarget.value)}>
				{props.children}
				{props.names.map((n) => (
					<option key={n} value={n}>
						{n}
					</option>
				))}
			</select>
		</label>
	);
}

/* The end of a dialog's form: the error, the button that cancels, and the one that acts. */
export function FormEnd(props: {
	error: string;
	back: string;
	close: () => void;
	deed: string;
	disabled: boolean;
}): JSX.Element {
	return (
		<>
			{props.error && (
				<p class="t-bad" role="alert">
					{props.error}
				</p>
			)}
			<div class="buttons">
				<button type="button" onClick={props.close}>
					{props.back}
				</button>
				<button type="submit" class="danger solid" disabled={props.disabled}>
					{props.deed}
				</button>
			</div>
		</>
	);
}

/* The coloured mark in front of a name: the i-th colour of a chart. */
export function Swatch({ i, dash }: { i: number; dash?: string }): JSX.Element {
	return (
		<svg class={`swatch s${i % COLOURS}`} viewBox="0 0 16 4" aria-hidden="true">
			<path d="M0 2h16" stroke-dasharray={dash} />
		</svg>
	);
}

/* Two or more choices, of which one is on. */
export function Choice<T extends string>(props: {
	label: string;
	now: T;
	options: [T, string][];
	pick: (v: T) => void;
}): JSX.Element {
	return (
		<div class="choice" role="group" aria-label={props.label}>
			{props.options.map(([id, text]) => (
				<button type="button" key={id} aria-pressed={id === props.now} onClick={() => props.pick(id)}>
					{text}
				</button>
			))}
		</div>
	);
}

export function Toggle(props: { on: boolean; set: (on: boolean) => void; children: ComponentChildren; title?: string }) {
	return (
		<button
			type="button"
			class="toggle"
			aria-pressed={props.on}
			title={props.title}
			onClick={() => props.set(!props.on)}
		>
			{props.children}
		</button>
	);
}

let say: (text: string, bad: boolean) => void = () => {};

/* A message about an action that was done or failed; it disappears by itself. */
export function toast(text: string, bad = false): void {
	say(text, bad);
}

export function Toaster(): JSX.Element {
	const [list, setList] = useState<{ id: number; text: string; bad: boolean }[]>([]);
	const next = useRef(0);
	useEffect(() => {
		say = (text, bad) => {
			const id = next.current++;
			setList((l) => [...l.slice(-2), { id, text, bad }]);
			setTimeout(() => setList((l) => l.filter((t) => t.id !== id)), bad ? 10_000 : 5000);
		};
	}, []);
	return (
		<div class="toasts" role="status" aria-live="polite">
			{list.map((t) => (
				<div key={t.id} class={t.bad ? "toast bad" : "toast"}>
					<Icon name={t.bad ? "warn" : "ok"} />
					<span>{t.text}</span>
					<button
						type="button"
						class="quiet"
						aria-label="dismiss"
						onClick={() => setList((l) => l.filter((x) => x.id !== t.id))}
					>
						<Icon name="close" />
					</button>
				</div>
			))}
		</div>
	);
}

/* One of the figures below a page's heading. */
export function Fact(props: { name: string; title?: string; wide?: boolean; children: ComponentChildren }): JSX.Element {
	return (
		<div title={props.title} class={props.wide ? "wide" : undefined}>
			<dt>{props.name}</dt>
			<dd class="num">{props.children}</dd>
		</div>
	);
}

export function Empty({ children }: { children: ComponentChildren }): JSX.Element {
	return <div class="empty">{children}</div>;
}
