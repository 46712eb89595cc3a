/*
 * Nodes without an agent: their machines start the job by themselves, and what the provider shows of a
 * machine stands for the words of an agent.
 *
 *	seen first	the machine is bound to the node, which counts as ready and started: its output is stored
 *			from now on (FX_START), and does not wait for the machines of others
 *	seen ended	the exit of the node
 *	not seen	its resource says that the machine is gone (EV_RES_MEMBER): the node is lost
 *
 * The run is `running` when a machine of every node was seen.  Such a node is never `connected`, so its
 * resource is observed for as long as it is expected, and at once when its log ends (EV_NODE_DROPPED).
 * Everything is in the rows: an observation says the same again after a restart.
 */
#include "core/agentless.h"

#include <stdio.h>

#include "core/internal.h"

bool agentless_all_seen(const struct core_run *r)
{
	for (int i = 0; i < r->plan->crew.n; i++)
		if (!r->nodes[i].asleep && r->nodes[i].state < NODE_READY)
			return false;
	return true;
}

static void take_machine(struct step *s, int rank, struct str identity, struct str address)
{
	struct core_node *n = &s->r->nodes[rank];

	snprintf(n->identity, sizeof(n->identity), "%.*s", STR_ARG(identity));
	if (!n->address[0])
		snprintf(n->address, sizeof(n->address), "%.*s", STR_ARG(address));
	node_set_state(s, rank, NODE_HERE);
	node_set_state(s, rank, NODE_READY);
	run_heard(s);
	node_start(s, rank);
	run_maybe_advance(s);
}

void agentless_seen(struct step *s, const struct event *ev)
{
	struct core_node *n = &s->r->nodes[ev->index];
	struct str address = str_from(ev->text), identity = str_cut(&address, ' ');

	if (!s->r->plan->agentless || n->settled || identity.n == 0 ||
	    identity.n >= sizeof(n->identity))
		return;
	if (n->state == NODE_LAUNCHING && !run_stopping(s->r))
		take_machine(s, ev->index, identity, address.p ? address : STR(""));
	/* Another machine than the node's is one too many. */
	if (str_is(identity, n->identity) && ev->ended)
		node_exited(s, ev->index, &ev->exit);
}

void agentless_resume(struct step *s, int rank)
{
	const struct core_node *n = &s->r->nodes[rank];

	if (n->settled || !n->start_sent || s->r->phase >= RUN_CLEANING)
		return;
	effect_add(s, FX_START, rank);
	if (n->stop_sent && n->state != NODE_EXITED)
		effect_add(s, FX_STOP, rank);
	node_observe_soon(s, rank);
}

bool agentless_stop_needed(const struct core_run *r, int resource)
{
	for (int i = 0; i < r->plan->crew.n; i++)
		if (r->plan->resource_of[i] == resource && !r->nodes[i].settled)
			return true;
	return false;
}

bool agentless_output_stored(const struct core_run *r, int resource)
{
	for (int i = 0; i < r->plan->crew.n; i++)
		if (r->plan->resource_of[i] == resource && r->nodes[i].state == NODE_EXITED &&
		    !r->nodes[i].settled)
			return false;
	return true;
}
