/* Addresses: /, /run/<id>, /suites, /suite/<id>, /compare. Choices on a page are kept in the query, so that a link shows the same. */

type Listener = () => void;
const listeners = new Set<Listener>();

export function location(): URL {
	return new URL(window.location.href);
}

export function onNavigate(fn: Listener): () => void {
	listeners.add(fn);
	return () => listeners.delete(fn);
}

function tell(): void {
	for (const fn of [...listeners]) fn();
}

export function navigate(href: string, replace = false): void {
	const url = new URL(href, window.location.href);
	if (url.href === window.location.href) return;
	const samePage = url.pathname === window.location.pathname;
	history[replace ? "replaceState" : "pushState"](null, "", url.href);
	if (!samePage) window.scrollTo(0, 0);
	tell();
}

/* Change some keys of the query; undefined removes one. */
export function setQuery(changes: Record<string, string | undefined>, replace = true): void {
	const url = location();
	for (const [k, v] of Object.entries(changes)) {
		if (v === undefined || v === "") url.searchParams.delete(k);
		else url.searchParams.set(k, v);
	}
	navigate(url.href, replace);
}

/* Handles plain clicks on links to pages; all other clicks are left to the browser. */
export function startRouter(): void {
	window.addEventListener("popstate", tell);
	document.addEventListener("click", (e) => {
		if (e.defaultPrevented || e.button !== 0 || e.metaKey || e.ctrlKey || e.shiftKey || e.altKey) return;
		const a = (e.target as Element | null)?.closest?.("a");
		if (!a || a.target || a.hasAttribute("download") || a.origin !== window.location.origin) return;
		if (!isPage(a.pathname) || a.getAttribute("href")?.startsWith("#")) return;
		e.preventDefault();
		navigate(a.href);
	});
}

function isPage(path: string): boolean {
	return path === "/" || path === "/compare" || path === "/suites" || path.startsWith("/run/") || path.startsWith("/suite/");
}

export function runHref(id: string, params: Record<string, string> = {}): string {
	const q = new URLSearchParams(params).toString();
	return `/run/${encodeURIComponent(id)}${q ? `?${q}` : ""}`;
}

export function suiteHref(id: string): string {
	return `/suite/${encodeURIComponent(id)}`;
}

const SUITE_WORD = "suite:";

/* A word of a comparison: "suite:ID", the id of a run, or a group of repeats. */
export function suiteWord(id: string): string {
	return SUITE_WORD + id;
}

export function isSuiteWord(word: string): boolean {
	return word.startsWith(SUITE_WORD);
}

/* The page of what a word of a comparison means; null: a group of repeats has none. */
export function wordHref(word: string, runs: string[] | undefined): string | null {
	if (isSuiteWord(word)) return suiteHref(word.slice(SUITE_WORD.length));
	if (/[,@]/.test(word) || (runs && (runs.length !== 1 || runs[0] !== word))) return null;
	return runHref(word);
}

export function compareHref(ids: string[]): string {
	return `/compare?${ids.map((id) => `run=${encodeURIComponent(id)}`).join("&")}`;
}
