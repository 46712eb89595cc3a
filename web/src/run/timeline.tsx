/* The phases of a run as one bar, each as wide as its duration. */
import type { JSX } from "preact";
import { duration } from "../lib/format";
import { useNow } from "../lib/hooks";
import { isOver, PHASES } from "../lib/model";
import type { Run } from "../lib/types";
import { Icon } from "../lib/ui";

const ICONS: Record<string, string> = {
	accepted: "file",
	provisioning: "wait",
	gathering: "wait",
	running: "run",
	collecting: "pack",
	cleaning: "pack",
};
/* A phase of a millisecond beside one of an hour must still be seen. */
const LEAST_SHARE = 0.012;

/* `live`: the connection is up. Without it the clock stands still, because the phase may have changed meanwhile. */
export function Timeline({ run, receivedAt, live: linked }: { run: Run; receivedAt: number; live: boolean }): JSX.Element | null {
	const live = linked && !isOver(run.state);
	const now = useNow(live, 500);
	const since = live ? Math.max(0, now - receivedAt) : 0;
	if (!run.phases) return null;
	const parts = PHASES.map((name) => {
		const ms = run.phases?.[name];
		const here = name === run.state;
		return { name, here, ms: ms === null || ms === undefined ? null : ms + (here ? since : 0) };
	});
	const total = parts.reduce((sum, p) => sum + (p.ms ?? 0), 0) || 1;
	return (
		<section class="timeline" aria-label="Timeline of phases">
			<div class="lane" aria-hidden="true">
				{parts.map(
					(p) =>
						p.ms !== null && (
							<span
								key={p.name}
								class={`part p-${p.name}${p.here ? " now" : ""}`}
								style={{ flexGrow: Math.max(p.ms / total, LEAST_SHARE) }}
								title={`${p.name} ${duration(p.ms)}`}
							/>
						),
				)}
			</div>
			<ol>
				{parts.map((p) => (
					<li key={p.name} class={p.ms === null ? "later" : p.here ? "now" : ""}>
						<span class={`mark p-${p.name}`}>
							<Icon name={ICONS[p.name] ?? "wait"} />
						</span>
						{p.name} <span class="num">{p.ms === null ? "–" : duration(p.ms)}</span>
						{p.here && <span class="hidden">(now)</span>}
					</li>
				))}
			</ol>
		</section>
	);
}
