/* The actions on a run, each after a dialog that says exactly what will happen. */
import type { JSX } from "preact";
import { useState } from "preact/hooks";
import { ApiError, messageOf, post, runPath } from "../lib/api";
import { bytes, plural } from "../lib/format";
import { isOver, logBytes } from "../lib/model";
import { navigate } from "../lib/router";
import type { Me, Run } from "../lib/types";
import { Dialog, FormEnd, toast } from "../lib/ui";

const RETRY_MS = 300;
const RETRIES = 20;

function may(me: Me | null, need: "submit" | "admin"): boolean {
	return me === null || me.scope === "admin" || me.scope === need;
}

interface Props {
	run: Run;
	me: Me | null;
	leave: () => void; /* a run that is watched cannot be removed */
}

export function Actions({ run, me, leave }: Props): JSX.Element {
	const [asking, setAsking] = useState<"cancel" | "cleanup" | null>(null);
	const over = isOver(run.state);
	const close = (): void => setAsking(null);
	return (
		<>
			{!over && (
				<button
					type="button"
					class="danger"
					disabled={!may(me, "submit")}
					title={may(me, "submit") ? undefined : "Your link is read-only: cancelling needs the scope submit"}
					onClick={() => setAsking("cancel")}
				>
					{run.cancel_asked ? "Cancel again…" : "Cancel…"}
				</button>
			)}
			<button
				type="button"
				class={over ? "danger" : ""}
				disabled={!over || !may(me, "admin")}
				title={
					!over
						? "A run can be removed when it has ended: cancel it first"
						: may(me, "admin")
							? undefined
							: "Removing a run needs the scope admin"
				}
				onClick={() => setAsking("cleanup")}
			>
				Clean up…
			</button>
			{asking === "cancel" && <CancelDialog run={run} close={close} />}
			{asking === "cleanup" && <CleanupDialog run={run} close={close} leave={leave} />}
		</>
	);
}

function CancelDialog({ run, close }: { run: Run; close: () => void }): JSX.Element {
	const [hurry, setHurry] = useState(false);
	const [busy, setBusy] = useState(false);
	const [error, setError] = useState("");
	const left = (run.nodes ?? []).filter((n) => !["exited", "released", "lost"].includes(n.state)).length;
	const go = async (e: Event): Promise<void> => {
		e.preventDefault();
		setBusy(true);
		try {
			await post(runPath(run.id, "/cancel"), { hurry });
			toast(`Cancelling ${run.id}`);
			close();
		} catch (x) {
			setError(messageOf(x));
			setBusy(false);
		}
	};
	return (
		<Dialog title={`Cancel ${run.id}?`} close={close}>
			<form onSubmit={go}>
				<p>
					{plural(left, "node is", "nodes are")} still working. Each process is asked to stop, then its output is
					collected and the nodes are released. Logs and metrics stay.
				</p>
				<label class="check">
					<input type="checkbox" checked={hurry} onChange={(e) => setHurry(e.currentTarget.checked)} />
					Kill at once, without the time to save a checkpoint
				</label>
				<FormEnd
					error={error}
					back="Keep it running"
					close={close}
					deed={hurry ? "Kill the run" : "Cancel the run"}
					disabled={busy}
				/>
			</form>
		</Dialog>
	);
}

function CleanupDialog({ run, close, leave }: { run: Run; close: () => void; leave: () => void }): JSX.Element {
	const [typed, setTyped] = useState("");
	const [busy, setBusy] = useState(false);
	const [error, setError] = useState("");
	const nodes = run.nodes ?? [];
	const go = async (e: Event): Promise<void> => {
		e.preventDefault();
		if (typed !== run.name || busy) return;
		setBusy(true);
		leave();
		try {
			await remove(run.id);
			toast(`Removed ${run.id} and ${run.dir ?? "its files"}`);
			close();
			navigate("/");
		} catch (x) {
			setError(messageOf(x));
			setBusy(false);
		}
	};
	return (
		<Dialog title={`Clean up ${run.id}?`} close={close}>
			<form onSubmit={go}>
				<p>This deletes for good:</p>
				<ul class="losses">
					<li>
						the logs of {plural(nodes.length, "node")}: <b>{bytes(logBytes(run))}</b>
						<span class="dim"> {names(nodes.map((n) => n.name))}</span>
					</li>
					<li>its metrics, events, report and outputs</li>
					<li>
						the directory <code>{run.dir ?? "of the run"}</code>
					</li>
				</ul>
				<label class="confirm">
					<span>
						Type <code>{run.name}</code> to confirm
					</span>
					<input
						type="text"
						autocomplete="off"
						autocapitalize="off"
						spellcheck={false}
						value={typed}
						onInput={(e) => setTyped(e.currentTarget.value)}
					/>
				</label>
				<FormEnd error={error} back="Keep it" close={close} deed="Delete" disabled={typed !== run.name || busy} />
			</form>
		</Dialog>
	);
}

/* The service may still count this page's connection, which was closed a moment ago. */
async function remove(id: string): Promise<void> {
	for (let left = RETRIES; ; left--) {
		try {
			await post(runPath(id, "/cleanup"), {});
			return;
		} catch (e) {
			if (!(e instanceof ApiError) || e.status !== 409 || !e.message.includes("watched") || left === 0) throw e;
			await new Promise((done) => setTimeout(done, RETRY_MS));
		}
	}
}

function names(all: string[]): string {
	const most = 8;
	return all.length > most ? `${all.slice(0, most).join(", ")} and ${all.length - most} more` : all.join(", ");
}
