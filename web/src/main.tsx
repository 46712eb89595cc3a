/* The shell around the pages: routing, the bar, the theme, the session. */
import { render, type JSX } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import { API, getJson, whenSignedOut } from "./lib/api";
import { ComparePage } from "./compare/page";
import { keep, read, useLocation } from "./lib/hooks";
import { startRouter } from "./lib/router";
import { RunPage } from "./run/page";
import { RunsPage } from "./runs/page";
import { SuitesPage } from "./suites/list";
import { SuitePage } from "./suites/page";
import type { Me } from "./lib/types";
import { Empty, Icon, Toaster } from "./lib/ui";
import "uplot/dist/uPlot.min.css";
import "./lib/theme.css";
import "./lib/base.css";
import "./lib/ui.css";
import "./runs/runs.css";
import "./run/run.css";
import "./metrics/metrics.css";
import "./log/log.css";
import "./compare/compare.css";
import "./suites/suites.css";

type Theme = "auto" | "light" | "dark";
const THEMES: Theme[] = ["auto", "light", "dark"];
const THEME_ICON = { auto: "auto", light: "sun", dark: "moon" };

const systemDark = matchMedia("(prefers-color-scheme: dark)");

function applyTheme(t: Theme): void {
	const shown = t === "auto" ? (systemDark.matches ? "dark" : "light") : t;
	document.documentElement.setAttribute("data-theme", shown);
	window.dispatchEvent(new Event("regatta-theme"));
}

function keptTheme(): Theme {
	const kept = read("theme") as Theme | null;
	return kept && THEMES.includes(kept) ? kept : "auto";
}

function ThemeButton(): JSX.Element {
	const [theme, setTheme] = useState<Theme>(keptTheme);
	const next = THEMES[(THEMES.indexOf(theme) + 1) % THEMES.length] as Theme;
	return (
		<button
			type="button"
			class="quiet"
			title={`Theme: ${theme}`}
			aria-label={`Theme: ${theme}. Change to ${next}`}
			onClick={() => {
				setTheme(next);
				keep("theme", next);
				applyTheme(next);
			}}
		>
			<Icon name={THEME_ICON[theme]} />
		</button>
	);
}

function SignIn({ message }: { message: string }): JSX.Element {
	return (
		<main class="signin" id="main" tabIndex={-1}>
			<h1>You are not signed in</h1>
			<p>
				Run this on the machine where regatta runs; it prints a link that opens this page, once, for two minutes:
			</p>
			<pre class="command">regatta ui</pre>
			<p class="dim">The service said: {message}</p>
		</main>
	);
}

function App(): JSX.Element {
	const url = useLocation();
	const [signedOut, setSignedOut] = useState<string | null>(null);
	const [me, setMe] = useState<Me | null>(null);

	useEffect(() => {
		whenSignedOut(setSignedOut);
		getJson<Me>(`${API}/me`).then(setMe, () => {});
	}, []);

	/* The focus moves to a new page, so that screen readers announce it. */
	const shown = useRef(url.pathname);
	useEffect(() => {
		if (shown.current === url.pathname) return;
		shown.current = url.pathname;
		document.getElementById("main")?.focus({ preventScroll: true });
	}, [url.pathname]);

	let page: JSX.Element;
	let at = "";
	if (url.pathname === "/") {
		at = "runs";
		page = <RunsPage />;
	} else if (url.pathname === "/compare") {
		at = "compare";
		page = <ComparePage url={url} />;
	} else if (url.pathname.startsWith("/run/")) {
		const id = decodeId(url.pathname.slice(5));
		page = <RunPage key={id} id={id} url={url} me={me} />;
	} else if (url.pathname === "/suites") {
		at = "suites";
		page = <SuitesPage />;
	} else if (url.pathname.startsWith("/suite/")) {
		const id = decodeId(url.pathname.slice(7));
		page = <SuitePage key={id} id={id} url={url} />;
	} else {
		page = (
			<main id="main" tabIndex={-1}>
				<Empty>There is no such page.</Empty>
			</main>
		);
	}
	return (
		<>
			<a class="skip" href="#main">
				Skip to content
			</a>
			<header class="bar">
				<a class="brand" href="/">
					<svg class="logo" viewBox="0 0 16 16" aria-hidden="true">
						<path d="M7.4 1v9.2H2zM9 4v6.2h4.6zM1.4 11.8h13.2l-1.8 2.8H3.6z" />
					</svg>
					regatta
				</a>
				<nav aria-label="Pages">
					<a href="/" aria-current={at === "runs" ? "page" : undefined}>
						Runs
					</a>
					<a href="/suites" aria-current={at === "suites" ? "page" : undefined}>
						Suites
					</a>
					<a href="/compare" aria-current={at === "compare" ? "page" : undefined}>
						Compare
					</a>
				</nav>
				<span class="spring" />
				{me && <span class="dim version">{me.version}</span>}
				<ThemeButton />
			</header>
			{signedOut !== null ? <SignIn message={signedOut} /> : page}
			<Toaster />
		</>
	);
}

function decodeId(text: string): string {
	try {
		return decodeURIComponent(text);
	} catch {
		return text;
	}
}

/* The script is in the head, so that the theme is set before the first paint. */
applyTheme(keptTheme());
systemDark.addEventListener("change", () => applyTheme(keptTheme()));
function mount(): void {
	startRouter();
	render(<App />, document.getElementById("app") as HTMLElement);
}
if (document.readyState === "loading") document.addEventListener("DOMContentLoaded", mount);
else mount();
