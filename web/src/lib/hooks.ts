import { useEffect, useRef, useState } from "preact/hooks";
import { ApiError, getJson, isAbort } from "./api";
import { location, onNavigate } from "./router";

/* The current time, updated every `everyMs` while active. */
export function useNow(active: boolean, everyMs = 1000): number {
	const [now, setNow] = useState(Date.now());
	useEffect(() => {
		if (!active) return;
		const timer = setInterval(() => {
			if (!document.hidden) setNow(Date.now());
		}, everyMs);
		return () => clearInterval(timer);
	}, [active, everyMs]);
	return now;
}

export function useLocation(): URL {
	const [url, setUrl] = useState(location());
	useEffect(() => onNavigate(() => setUrl(location())), []);
	return url;
}

export interface Loaded<T> {
	value: T | null;
	error: ApiError | null;
	again: () => void;
}

/* The answer to a GET, repeated when `path` changes; null: no request. */
export function useLoad<T>(path: string | null, get: (p: string, s: AbortSignal) => Promise<T> = getJson): Loaded<T> {
	const [state, setState] = useState<{ path: string | null; value: T | null; error: ApiError | null }>({
		path: null,
		value: null,
		error: null,
	});
	const [turn, setTurn] = useState(0);
	useEffect(() => {
		if (path === null) return;
		const abort = new AbortController();
		get(path, abort.signal).then(
			(value) => setState({ path, value, error: null }),
			(e) => {
				if (isAbort(e)) return;
				const error = e instanceof ApiError ? e : new ApiError(0, "unavailable", String(e));
				setState({ path, value: null, error });
			},
		);
		return () => abort.abort();
	}, [path, turn]);
	const mine = state.path === path;
	return {
		value: mine ? state.value : null,
		error: mine ? state.error : null,
		again: () => setTurn((t) => t + 1),
	};
}

/* The size of an element as it changes. */
export function useSize<E extends HTMLElement>(): [{ current: E | null }, { width: number; height: number }] {
	const ref = useRef<E>(null);
	const [size, setSize] = useState({ width: 0, height: 0 });
	useEffect(() => {
		const el = ref.current;
		if (!el) return;
		const watch = new ResizeObserver(() => {
			const width = el.clientWidth;
			const height = el.clientHeight;
			setSize((s) => (s.width === width && s.height === height ? s : { width, height }));
		});
		watch.observe(el);
		return () => watch.disconnect();
	}, []);
	return [ref, size];
}

/* Whether the element is on the screen or near it. */
export function useVisible<E extends HTMLElement>(): [{ current: E | null }, boolean] {
	const ref = useRef<E>(null);
	const [visible, setVisible] = useState(false);
	useEffect(() => {
		if (!ref.current) return;
		const watch = new IntersectionObserver((all) => setVisible(all[all.length - 1]?.isIntersecting ?? false), {
			rootMargin: "200px",
		});
		watch.observe(ref.current);
		return () => watch.disconnect();
	}, []);
	return [ref, visible];
}

/* A choice that is kept in the browser's storage. */
export function useKept<T extends string>(key: string, first: T): [T, (v: T) => void] {
	const [value, setValue] = useState<T>(() => (read(key) as T | null) ?? first);
	return [
		value,
		(v: T) => {
			setValue(v);
			keep(key, v);
		},
	];
}

export function read(key: string): string | null {
	try {
		return localStorage.getItem(`regatta.${key}`);
	} catch {
		return null; /* storage may be forbidden: nothing is kept */
	}
}

export function keep(key: string, value: string): void {
	try {
		localStorage.setItem(`regatta.${key}`, value);
	} catch {
		/* storage may be forbidden */
	}
}
