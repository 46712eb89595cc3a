/* Which rows of a long list are to be drawn. All rows are of one height. */

export interface Slice {
	from: number;
	to: number; /* exclusive */
}

const OVERSCAN = 8;

export function slice(scrollTop: number, viewHeight: number, rowHeight: number, rows: number): Slice {
	const first = Math.floor(scrollTop / rowHeight) - OVERSCAN;
	const last = Math.ceil((scrollTop + viewHeight) / rowHeight) + OVERSCAN;
	const from = Math.max(0, Math.min(first, rows - 1));
	return { from, to: Math.max(from, Math.min(rows, last)) };
}

/* Where to scroll so that the row is seen; null: it is seen already. */
export function reveal(row: number, scrollTop: number, viewHeight: number, rowHeight: number): number | null {
	const top = row * rowHeight;
	if (top < scrollTop) return top;
	if (top + rowHeight > scrollTop + viewHeight) return Math.max(0, top + rowHeight - viewHeight);
	return null;
}
