/* A grid of squares has one stop for Tab; the arrows move by position on the screen. */

/* What the arrows need to know of a square. */
export interface Place {
	top: number;
	left: number;
}

const ROW_SLACK = 4; /* squares of one row may stand a little higher or lower */

/* The index of the square that the key leads to from `at`; -1: there is none. */
export function neighbour(places: Place[], at: number, key: string): number {
	const here = places[at];
	const to = { ArrowRight: at + 1, ArrowLeft: at - 1, Home: 0, End: places.length - 1 }[key];
	if (to !== undefined) return to >= 0 && to < places.length ? to : -1;
	if (!here || (key !== "ArrowDown" && key !== "ArrowUp")) return -1;
	const way = key === "ArrowDown" ? 1 : -1;
	let best = -1;
	let least = Infinity;
	places.forEach((p, i) => {
		const down = (p.top - here.top) * way;
		if (down <= ROW_SLACK) return;
		/* The next row first, in it the nearest column. */
		const far = down * 10_000 + Math.abs(p.left - here.left);
		if (far < least) {
			least = far;
			best = i;
		}
	});
	return best;
}

/* Moves the focus among the elements with `data-index` in the box. */
export function moveByArrows(box: HTMLElement | null, e: KeyboardEvent): void {
	const all = [...(box?.querySelectorAll<HTMLElement>("[data-index]") ?? [])];
	const at = all.findIndex((b) => b === document.activeElement);
	if (at < 0) return;
	const to = neighbour(
		all.map((b) => b.getBoundingClientRect()),
		at,
		e.key,
	);
	if (to < 0) return;
	e.preventDefault();
	all[to]?.focus();
}
