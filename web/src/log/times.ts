/*
 * When the bytes of a log reached the service. With times it sends a log in pieces, each a line "out 12 1731859200123"
 * (or "out 12 -" where the time is not known) and then so many bytes.
 */
export interface TimeMark {
	at: number; /* offset of the first byte that came then */
	ms: number | null;
}

export interface TimedBytes {
	bytes: Uint8Array;
	marks: TimeMark[];
}

const NEWLINE = 10;
const decoder = new TextDecoder();

/* The bytes of the log that begin at `offset`, without the lines between them. An answer that was cut off is taken as far as it goes. */
export function parsePieces(b: Uint8Array, offset: number): TimedBytes {
	const bytes = new Uint8Array(b.length);
	const marks: TimeMark[] = [];
	let size = 0;
	for (let from = 0; from < b.length; ) {
		const nl = b.indexOf(NEWLINE, from);
		const head = nl < 0 ? null : /^(?:out|err) (\d+) (\d+|-)$/.exec(decoder.decode(b.subarray(from, nl)));
		if (!head) break;
		const piece = b.subarray(nl + 1, nl + 1 + Number(head[1]));
		const ms = head[2] === "-" ? null : Number(head[2]);
		if (!marks.length || marks[marks.length - 1]?.ms !== ms) marks.push({ at: offset + size, ms });
		bytes.set(piece, size);
		size += piece.length;
		from = nl + 1 + Number(head[1]);
	}
	return { bytes: bytes.subarray(0, size), marks };
}

/* When the byte came; null: nobody knows. */
export function timeAt(marks: readonly TimeMark[], at: number): number | null {
	let lo = 0;
	let hi = marks.length;
	while (lo < hi) {
		const mid = (lo + hi) >> 1;
		if ((marks[mid] as TimeMark).at <= at) lo = mid + 1;
		else hi = mid;
	}
	return marks[lo - 1]?.ms ?? null;
}
