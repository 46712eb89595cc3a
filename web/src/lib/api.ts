/* Calls to the service. Every failure is an ApiError; the end of the session is also reported to the shell. */

export class ApiError extends Error {
	constructor(
		readonly status: number, /* 0: no answer */
		readonly kind: string,
		message: string,
		readonly details: string[] = [],
	) {
		super(message);
	}
}

export const API = "/api/v1";

export function runPath(id: string, rest = ""): string {
	return `${API}/runs/${encodeURIComponent(id)}${rest}`;
}

export function suitePath(id: string, rest = ""): string {
	return `${API}/suites/${encodeURIComponent(id)}${rest}`;
}

export function query(params: Record<string, string | number | undefined>): string {
	const parts = Object.entries(params)
		.filter(([, v]) => v !== undefined && v !== "")
		.map(([k, v]) => `${k}=${encodeURIComponent(String(v))}`);
	return parts.length ? `?${parts.join("&")}` : "";
}

let onSignedOut: (message: string) => void = () => {};

/* Called when the session has ended: the shell shows the sign-in page. */
export function whenSignedOut(fn: (message: string) => void): void {
	onSignedOut = fn;
}

async function failure(r: Response): Promise<ApiError> {
	let kind = "unavailable";
	let message = `the service answered ${r.status}`;
	let details: string[] = [];
	try {
		const body = (await r.json()) as { error?: { kind?: string; message?: string; details?: string[] } };
		kind = body.error?.kind ?? kind;
		message = body.error?.message ?? message;
		details = body.error?.details ?? details;
	} catch {
		/* not the service's JSON: a page of a proxy, or a cut-off answer */
	}
	return new ApiError(r.status, kind, message, details);
}

/* 401 or 403 for a GET means that the session is over; a POST may be refused for its scope. */
export async function request(path: string, init: RequestInit = {}): Promise<Response> {
	let r: Response;
	try {
		r = await fetch(path, { credentials: "same-origin", cache: "no-store", ...init });
	} catch (e) {
		if ((e as Error).name === "AbortError") throw e;
		throw new ApiError(0, "unavailable", "the service does not answer");
	}
	if (r.ok) return r;
	const e = await failure(r);
	const reading = !init.method || init.method === "GET";
	if (r.status === 401 || (r.status === 403 && reading)) onSignedOut(e.message);
	throw e;
}

export async function getJson<T>(path: string, signal?: AbortSignal): Promise<T> {
	return (await (await request(path, { signal })).json()) as T;
}

export async function getText(path: string, signal?: AbortSignal): Promise<string> {
	return (await request(path, { signal })).text();
}

export async function post<T>(path: string, body: unknown): Promise<T> {
	const r = await request(path, {
		method: "POST",
		headers: { "Content-Type": "application/json", "Regatta-Request": "1" },
		body: JSON.stringify(body),
	});
	return (await r.json()) as T;
}

export interface LogAnswer {
	offset: number;
	bytes: Uint8Array;
}

export async function getLog(
	run: string,
	node: string,
	stream: string,
	params: { offset?: number; limit?: number; tail?: number; times?: 1 },
	signal?: AbortSignal,
): Promise<LogAnswer> {
	const path = runPath(run, `/logs/${encodeURIComponent(node)}`) + query({ stream, ...params });
	const r = await request(path, { signal });
	const bytes = new Uint8Array(await r.arrayBuffer());
	return { offset: Number(r.headers.get("Regatta-Offset") ?? params.offset ?? 0), bytes };
}

/* Calls fn for each JSON line; with `lastOnly` only for the last of those that arrived together. */
export async function readLines(r: Response, lastOnly: boolean, fn: (value: unknown) => void): Promise<void> {
	const reader = r.body?.getReader();
	if (!reader) return;
	const decoder = new TextDecoder();
	let rest = "";
	for (;;) {
		const { done, value } = await reader.read();
		rest += decoder.decode(value, { stream: !done });
		const end = rest.lastIndexOf("\n");
		if (end >= 0) {
			let lines = rest.slice(0, end).split("\n").filter(Boolean);
			rest = rest.slice(end + 1);
			if (lastOnly) lines = lines.slice(-1);
			for (const line of lines) fn(JSON.parse(line));
		}
		if (done) return;
	}
}

export function isAbort(e: unknown): boolean {
	return e instanceof Error && e.name === "AbortError";
}

export function messageOf(e: unknown): string {
	return e instanceof Error ? e.message : String(e);
}
