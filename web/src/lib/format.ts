/* Numbers as text: short, of one width in a column, never "NaN" or "undefined". */

const MS = 1;
const S = 1000 * MS;
const MIN = 60 * S;
const H = 60 * MIN;
const DAY = 24 * H;

/* 7 ms · 1.24 s · 3 min 05 s · 2 h 10 min · 3 d 4 h */
export function duration(ms: number | null | undefined): string {
	if (ms === null || ms === undefined || !Number.isFinite(ms)) return "–";
	if (ms < 0) ms = 0;
	if (ms < S) return `${Math.round(ms)} ms`;
	if (ms < 10 * S) return `${(ms / S).toFixed(2)} s`;
	if (ms < MIN) return `${(Math.floor(ms / 100) / 10).toFixed(1)} s`;
	if (ms < H) return `${Math.floor(ms / MIN)} min ${pad(Math.floor((ms % MIN) / S))} s`;
	if (ms < DAY) return `${Math.floor(ms / H)} h ${pad(Math.floor((ms % H) / MIN))} min`;
	return `${Math.floor(ms / DAY)} d ${Math.floor((ms % DAY) / H)} h`;
}

/* How long ago, rounded, for lists. */
export function age(ms: number): string {
	if (!Number.isFinite(ms)) return "–";
	if (ms < 5 * S) return "now";
	if (ms < MIN) return `${Math.floor(ms / S)} s`;
	if (ms < H) return `${Math.floor(ms / MIN)} min`;
	if (ms < 2 * DAY) return `${Math.floor(ms / H)} h`;
	return `${Math.floor(ms / DAY)} d`;
}

const BYTE_UNITS = ["B", "KB", "MB", "GB", "TB", "PB"];

/* Powers of 1000, as `ls --si` prints. */
export function bytes(n: number | null | undefined): string {
	if (n === null || n === undefined || !Number.isFinite(n)) return "–";
	let unit = 0;
	while (n >= 999.5 && unit < BYTE_UNITS.length - 1) {
		n /= 1000;
		unit++;
	}
	return `${unit === 0 || n >= 99.95 ? Math.round(n) : n.toFixed(n >= 9.995 ? 1 : 2)} ${BYTE_UNITS[unit]}`;
}

/* A measured value: four significant digits, no trailing zeros, an exponent only for very large or small values. */
export function value(v: number | null | undefined): string {
	if (v === null || v === undefined || Number.isNaN(v)) return "–";
	if (!Number.isFinite(v)) return v > 0 ? "∞" : "−∞";
	const size = Math.abs(v);
	if (size !== 0 && (size < 1e-4 || size >= 1e7)) return minus(v.toExponential(2).replace("e+", "e"));
	if (Number.isInteger(v)) return minus(count(v));
	if (size >= 1000) return minus(count(Math.round(v)));
	return minus(String(Number(v.toPrecision(4))));
}

/* A sample of a machine (host.*, job.*, gpuN.*) with its unit. */
export function machineValue(name: string, v: number | null | undefined): string {
	if (v === null || v === undefined || !Number.isFinite(v)) return value(v);
	const what = name.slice(name.indexOf(".") + 1);
	if (what === "cpu" || what === "util") return `${value(v)} %`;
	if (what === "memory") return fineBytes(v);
	if (/^(?:net|disk)_/.test(what)) return `${fineBytes(v)}/s`;
	return value(v);
}

/* With five digits: ticks of an axis that are close to each other still differ. */
function fineBytes(n: number): string {
	let unit = 0;
	for (; Math.abs(n) >= 1000 && unit < BYTE_UNITS.length - 1; unit++) n /= 1000;
	return `${minus(String(Number(n.toPrecision(5))))} ${BYTE_UNITS[unit]}`;
}

/* 12 345 with thin spaces, the same in every locale. */
export function count(n: number): string {
	const [whole, rest] = String(n).split(".");
	const grouped = (whole ?? "").replace(/\B(?=(\d{3})+(?!\d))/g, "\u2009");
	return rest ? `${grouped}.${rest}` : grouped;
}

export function percent(fraction: number | null | undefined, digits = 1): string {
	if (fraction === null || fraction === undefined || !Number.isFinite(fraction)) return "–";
	return `${minus((fraction * 100).toFixed(digits))} %`;
}

export function signed(v: number | null | undefined): string {
	if (v === null || v === undefined || Number.isNaN(v)) return "–";
	return v > 0 ? `+${value(v)}` : value(v);
}

export function pvalue(p: number | null | undefined): string {
	if (p === null || p === undefined || Number.isNaN(p)) return "–";
	return p < 0.001 ? "< 0.001" : p.toFixed(3);
}

export function money(usd: number | null | undefined): string {
	if (usd === null || usd === undefined || !Number.isFinite(usd)) return "–";
	if (usd === 0) return "$0";
	return usd < 0.01 ? "< $0.01" : `$${usd.toFixed(2)}`;
}

/* 2025-03-01 14:05:09, in the reader's zone. */
export function dateTime(ms: number): string {
	const d = new Date(ms);
	return `${d.getFullYear()}-${pad(d.getMonth() + 1)}-${pad(d.getDate())} ${clock(ms)}`;
}

export function clock(ms: number, withMs = false): string {
	const d = new Date(ms);
	const text = `${pad(d.getHours())}:${pad(d.getMinutes())}:${pad(d.getSeconds())}`;
	return withMs ? `${text}.${String(d.getMilliseconds()).padStart(3, "0")}` : text;
}

export function plural(n: number, one: string, many = `${one}s`): string {
	return `${count(n)} ${n === 1 ? one : many}`;
}

function pad(n: number): string {
	return n < 10 ? `0${n}` : String(n);
}

/* A hyphen beside figures is too short to be seen. */
function minus(text: string): string {
	return text.replace(/-/g, "−");
}
