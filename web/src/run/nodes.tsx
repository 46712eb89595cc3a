/*
 * The nodes as a grid: outlines first, solid when they are connected. Few nodes are tiles with their figures,
 * many are small squares; a sign in each shows the state besides its colour.
 */
import type { JSX } from "preact";
import { useRef, useState } from "preact/hooks";
import { moveByArrows } from "../lib/arrows";
import { bytes, count, value } from "../lib/format";
import { LOOKS, nodeLook, nodeText, type NodeLook } from "../lib/model";
import type { Node, Run } from "../lib/types";

const MOST_TILES = 60;
const TILE_METRICS = 2;

const SIGNS: Record<NodeLook, string> = {
	dormant: "",
	wanted: "",
	launching: "M8 5v3l2 1.4",
	here: "M8 8h.01",
	ready: "M5 8h6",
	running: "M6 4.6v6.8l5.4-3.4z",
	done: "M4.6 8.3l2.3 2.3 4.5-5",
	failed: "M5 5l6 6M11 5l-6 6",
	stopped: "M5.4 5.4h5.2v5.2H5.4z",
	lost: "M8 4.4v4.4M8 11.4v.2",
	released: "M5 11l6-6",
};

export function NodeSign({ look }: { look: NodeLook }): JSX.Element {
	return (
		<svg class={`sign n-${look}`} viewBox="0 0 16 16" aria-hidden="true">
			<rect x="1" y="1" width="14" height="14" rx="3" />
			<path d={SIGNS[look]} />
		</svg>
	);
}

function describe(n: Node, look: NodeLook): string {
	const text = nodeText(n, look);
	return `${n.name}, ${text}${n.attempt > 1 ? `, attempt ${n.attempt}` : ""}, ${bytes(n.log_bytes + n.err_bytes)} of log`;
}

interface GridProps {
	run: Run;
	brief: boolean; /* squares for any number of nodes */
	now?: string; /* the selected node */
	open: (node: Node) => void;
}

export function NodesGrid({ run, brief, now, open }: GridProps): JSX.Element {
	const nodes = run.nodes ?? [];
	const small = brief || nodes.length > MOST_TILES;
	const grid = useRef<HTMLDivElement>(null);
	const [focus, setFocus] = useState(0);
	const looks = nodes.map((n) => nodeLook(n, run));

	const tally = new Map<NodeLook, number>();
	for (const l of looks) tally.set(l, (tally.get(l) ?? 0) + 1);
	const roles = [...new Set(nodes.map((n) => n.role))];
	return (
		<section class={brief ? "nodes brief" : "nodes"} aria-label="Nodes">
			<div class="head small">
				<h2>Nodes</h2>
				<ul class="tally">
					{LOOKS.filter((l) => tally.has(l)).map((l) => (
						<li key={l}>
							<NodeSign look={l} />
							{count(tally.get(l) ?? 0)} {l}
						</li>
					))}
				</ul>
			</div>
			<div class="roles" ref={grid} onKeyDown={(e) => moveByArrows(grid.current, e)}>
				{roles.map((role) => (
					<div key={role} class="role">
						{roles.length > 1 && <h3>{role}</h3>}
						<div class={small ? "cells" : "tiles"} role="group" aria-label={role}>
							{nodes.map((n, i) =>
								n.role !== role ? null : (
									<button
										type="button"
										key={n.name}
										class={small ? "cell" : "tile"}
										data-index={i}
										data-node={n.name}
										aria-current={n.name === now ? "true" : undefined}
										tabIndex={i === Math.min(focus, nodes.length - 1) ? 0 : -1}
										title={describe(n, looks[i] as NodeLook)}
										aria-label={`${describe(n, looks[i] as NodeLook)}. Open its log`}
										onFocus={() => setFocus(i)}
										onClick={() => open(n)}
									>
										<NodeSign look={looks[i] as NodeLook} />
										{!small && <Tile node={n} look={looks[i] as NodeLook} />}
									</button>
								),
							)}
						</div>
					</div>
				))}
			</div>
		</section>
	);
}

function Tile({ node, look }: { node: Node; look: NodeLook }): JSX.Element {
	const metrics = Object.entries(node.metrics).slice(0, TILE_METRICS);
	return (
		<>
			<span class="name">{node.name}</span>
			<span class="what">
				{nodeText(node, look)}
				{node.attempt > 1 && ` · attempt ${node.attempt}`}
			</span>
			<span class="figures num">
				{metrics.length ? metrics.map(([k, v]) => `${k} ${value(v)}`).join("  ") : (node.address ?? "")}
			</span>
		</>
	);
}
