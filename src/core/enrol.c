/*
 * Enrolment: a machine that comes without a name is bound to a node.
 *
 * All machines of a role may boot with one configuration: a token of (run, role, batch), and what tells
 * one machine from another, the provider's own id.  Which node a machine gets:
 *
 *	known already			the same node again: its answer was lost
 *	a row of the ledger has its id	the node of that row
 *	no row has it yet		of the rows of its batch that have no id, the one of its place in
 *					the create, or if it does not know its place the first
 *	a resource that carries many	the first node that has no machine; one that sleeps because its
 *					machine was lost is woken
 *
 * A machine is bound to (rank, incarnation) for good: a node that is taken back forgets it and counts
 * its next incarnation, and another machine never gets the same pair.
 */
#include "core/internal.h"

#include <stdio.h>
#include <string.h>

#include "base/map.h"

/* A group or a Job makes its machines anew for as long as it lives, and all come with one token. */
#define CARRIER_USES 100 /* per node */

static const struct {
	const char *text;
	enum err_kind kind;
} answers[ENROLLED_ANSWERS] = {
	[ENROLLED_BOUND] = {"carries the node", ERR_NONE},
	[ENROLLED_AGAIN] = {"carries the node already", ERR_NONE},
	[ENROLLED_LATER] =
		{"every node of the role has a machine, but one of them is silent: come again "
		 "later",
		 ERR_UNAVAILABLE},
	[ENROLLED_SURPLUS] = {"every node of the role has its machine: this one is not needed",
			      ERR_DENIED},
	[ENROLLED_USED_UP] = {"the enrol token is used up: as many machines as it is for have come",
			      ERR_DENIED},
	[ENROLLED_PAST] = {"the machine is not, or no longer, one that the run waits for",
			   ERR_DENIED},
	[ENROLLED_OVER] = {"the run is over, or about to be: it needs no more machines",
			   ERR_DENIED},
};

const char *enrolled_text(enum enrolled e)
{
	return answers[e].text;
}

enum err_kind enrolled_kind(enum enrolled e)
{
	return answers[e].kind;
}

static struct core_resource *row_of(const struct core_run *r, int rank)
{
	return &r->resources[r->plan->resource_of[rank]];
}

static bool has_own_row(const struct core_run *r, int rank)
{
	return r->plan->resources[r->plan->resource_of[rank]].node == rank;
}

int core_enrol_uses(const struct core_run *r, int index)
{
	int n = 0;

	for (int rank = res_next_node(r, index, -1); rank >= 0;
	     rank = res_next_node(r, index, rank))
		n++;
	return r->plan->resources[index].carries_many ? n * CARRIER_USES : n;
}

void enrol_restored(struct core_run *r)
{
	r->machines = map_free(r->machines);
	r->enrolments = 0;
	for (int i = 0; i < r->plan->nresources; i++)
		r->enrolments += r->resources[i].enrolled;
	memset(r->role_free, 0, sizeof(*r->role_free) * (size_t)r->plan->crew.nroles);
}

static void index_machine(struct core_run *r, const char *id, int rank)
{
	if (r->machines && id[0])
		map_put(r->machines, str_from(id), &r->nodes[rank]);
}

/* From the rows, when it is needed for the first time. */
static void index_machines(struct core_run *r)
{
	if (r->machines)
		return;
	r->machines = map_new();
	for (int i = 0; i < r->plan->crew.n; i++) {
		index_machine(r, r->nodes[i].identity, i);
		if (has_own_row(r, i))
			index_machine(r, row_of(r, i)->id, i);
	}
}

/* The node that the machine carries, or whose row in the ledger has its id; -1: none. */
static int node_of_machine(struct core_run *r, const char *id)
{
	index_machines(r);
	const struct core_node *n = map_get(r->machines, str_from(id));
	int rank = n ? (int)(n - r->nodes) : -1;

	if (n && !strcmp(n->identity, id))
		return rank;
	return n && has_own_row(r, rank) && !strcmp(row_of(r, rank)->id, id) ? rank : -1;
}

static bool waits_for_machine(const struct core_node *n)
{
	return n->state == NODE_LAUNCHING && !n->asleep && !n->identity[0];
}

/* ... and one of this batch can be it. */
static bool can_be_bound(const struct core_run *r, int rank, const struct event *ev)
{
	const struct core_resource *res = row_of(r, rank);

	if (!waits_for_machine(&r->nodes[rank]) || res->batch != ev->batch ||
	    res->enrolled >= (has_own_row(r, rank) ? 1 : ev->want))
		return false;
	return !has_own_row(r, rank) || !res->id[0] || !strcmp(res->id, ev->text);
}

/* Ranks of a batch are in the order of its places, so in a role that was asked for at once it is the first look. */
static int node_at_place(const struct core_run *r, const struct event *ev)
{
	int first = r->role_first[ev->index], n = r->plan->crew.roles[ev->index].max;

	for (int i = 0; i < n; i++) {
		int rank = first + (ev->place % n + i) % n;

		if (has_own_row(r, rank) && row_of(r, rank)->batch_place == ev->place &&
		    can_be_bound(r, rank, ev))
			return rank;
	}
	return -1;
}

static int first_node(struct core_run *r, const struct event *ev)
{
	int first = r->role_first[ev->index], end = first + r->plan->crew.roles[ev->index].max;
	bool waits = false; /* some below, for another batch */

	for (int rank = first > r->role_free[ev->index] ? first : r->role_free[ev->index];
	     rank < end; rank++) {
		if (can_be_bound(r, rank, ev))
			return rank;
		waits |= waits_for_machine(&r->nodes[rank]);
		if (!waits)
			r->role_free[ev->index] = rank + 1;
	}
	return -1;
}

/* Of those that sleep because their machine was lost, the first that a machine of this batch can wake. */
static int first_shrunk(const struct core_run *r, const struct event *ev)
{
	int first = r->role_first[ev->index];

	for (int rank = first; rank < first + r->plan->crew.roles[ev->index].max; rank++)
		if (r->nodes[rank].shrunk && r->nodes[rank].state == NODE_WANTED &&
		    !has_own_row(r, rank) && row_of(r, rank)->batch == ev->batch &&
		    row_of(r, rank)->enrolled < ev->want)
			return rank;
	return -1;
}

/* No node is to be had. */
static enum enrolled why_none(const struct core_run *r, const struct event *ev)
{
	int first = r->role_first[ev->index];
	bool asked_for = false, waits = false, silent = false;

	for (int rank = first; rank < first + r->plan->crew.roles[ev->index].max; rank++) {
		const struct core_node *n = &r->nodes[rank];
		const struct core_resource *res = row_of(r, rank);

		asked_for |= res->batch == ev->batch && res_may_exist(res->state);
		waits |= waits_for_machine(n);
		silent |= n->identity[0] && !n->connected && !has_own_row(r, rank);
	}
	if (!asked_for)
		return ENROLLED_PAST;
	if (waits)
		return ENROLLED_USED_UP;
	return silent ? ENROLLED_LATER : ENROLLED_SURPLUS;
}

static void bind_machine(struct step *s, int rank, const struct event *ev)
{
	struct core_run *r = s->r;
	struct core_node *n = &r->nodes[rank];
	struct core_resource *res = row_of(r, rank);

	snprintf(n->identity, sizeof(n->identity), "%.64s", ev->text);
	if (has_own_row(r, rank))
		snprintf(res->id, sizeof(res->id), "%s", n->identity);
	res->enrolled++;
	r->enrolments++;
	index_machine(r, n->identity, rank);
	res_known(s, r->plan->resource_of[rank]);
	res_touch(s, r->plan->resource_of[rank]);
	node_touch(s, rank);
}

static enum enrolled known_machine(struct step *s, const struct event *ev, int rank)
{
	const struct core_run *r = s->r;

	if (r->plan->crew.members[rank].role != ev->index)
		return ENROLLED_PAST;
	if (!strcmp(r->nodes[rank].identity, ev->text))
		return ENROLLED_AGAIN;
	if (!can_be_bound(r, rank, ev))
		return ENROLLED_PAST;
	bind_machine(s, rank, ev);
	return ENROLLED_BOUND;
}

static enum enrolled new_machine(struct step *s, const struct event *ev, int *ret_rank)
{
	struct core_run *r = s->r;
	bool has_place = ev->place >= 0 && has_own_row(r, r->role_first[ev->index]);
	int rank = has_place ? node_at_place(r, ev) : first_node(r, ev);

	if (rank < 0 && (rank = first_shrunk(r, ev)) >= 0)
		policy_wake(s, rank);
	if (rank < 0)
		return why_none(r, ev);
	bind_machine(s, rank, ev);
	*ret_rank = rank;
	return ENROLLED_BOUND;
}

void enrol_event(struct step *s, const struct event *ev)
{
	struct core_run *r = s->r;
	int rank = -1;
	enum enrolled answer = ENROLLED_OVER;

	if (!run_stopping(r) && r->phase > RUN_ACCEPTED && r->phase < RUN_COLLECTING) {
		rank = node_of_machine(r, ev->text);
		answer = rank >= 0 ? known_machine(s, ev, rank) : new_machine(s, ev, &rank);
	}
	bool bound = answer == ENROLLED_BOUND || answer == ENROLLED_AGAIN;

	effect_add(s, FX_ENROLLED, bound ? rank : -1);
	struct effect *fx = &s->out->v[s->out->n - 1];

	fx->enrolled = answer;
	fx->conn = ev->conn;
	fx->incarnation = bound ? r->nodes[rank].incarnation : 0;
}

/* ---- what the provider says of a batch whose machines have enrolled before ---- */

static void set_id(struct step *s, int index, const char *id)
{
	struct core_run *r = s->r;

	snprintf(r->resources[index].id, sizeof(r->resources[index].id), "%.255s", id);
	if (r->plan->resources[index].node >= 0)
		index_machine(r, id, r->plan->resources[index].node);
	res_touch(s, index);
}

/* A row of the same batch whose machine is not known. */
static int row_without_id(const struct core_run *r, int index)
{
	for (int i = 0; i < r->plan->nresources; i++)
		if (i != index && r->resources[i].batch == r->resources[index].batch &&
		    !r->resources[i].id[0] && res_may_exist(r->resources[i].state))
			return i;
	return -1;
}

/*
 * A machine that did not know its place got the first row that was free.  When the provider says later
 * that it belongs to another, it keeps its row, and the two rows exchange their machines: all of a batch
 * are alike.
 */
void enrol_take_id(struct step *s, int index, const char *id)
{
	struct core_run *r = s->r;
	struct core_resource *res = &r->resources[index];
	int rank =
		r->enrolments && r->plan->resources[index].node >= 0 ? node_of_machine(r, id) : -1;
	int owner = rank >= 0 ? r->plan->resource_of[rank] : -1;
	int other;

	if (owner >= 0 && owner != index && r->resources[owner].enrolled)
		return; /* its row is the one that it enrolled for */
	if (!res->enrolled || !strcmp(res->id, id) || r->plan->resources[index].node < 0) {
		set_id(s, index, id);
	} else if ((other = row_without_id(r, index)) >= 0) {
		set_id(s, other, id);
	} else {
		run_end_running(s, VERDICT_FAILED, ERR_PROTOCOL, r->plan->resources[index].node,
				"%s '%s' is %.60s, but %.60s has enrolled in its place",
				r->plan->resources[index].kind, r->plan->resources[index].name, id,
				res->id);
		set_id(s, index, id); /* that is what must be deleted */
	}
}

/* A machine may speak, and get a start, before the answer to its create comes. */
static bool has_machine(const struct core_node *n)
{
	return n->identity[0] || (n->state > NODE_LAUNCHING && n->state <= NODE_EXITED);
}

void enrol_machine_gone(struct step *s, int index)
{
	struct core_run *r = s->r;
	int rank = r->plan->resources[index].node;

	if (rank < 0 || !has_machine(&r->nodes[rank]))
		return;
	r->resources[index].id[0] = '\0';
	if (!r->nodes[rank].start_sent && !run_stopping(r)) /* else nobody waits for another */
		node_unbind(s, rank);
	if (has_machine(&r->nodes[rank]) && !r->nodes[rank].settled)
		node_machine_gone(s, rank, ERR_UNAVAILABLE, "");
	run_check_collected(s);
}
