#include "core/queue.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/cleanup.h"

#define MOST_TRIES 20000  /* nodes that are moved while a place for all is looked for */
#define TRY_MACHINES 1000 /* among more machines, a try counts as several */
#define CPUS_ROUNDED 1e-6 /* 2 - 1.8 is a little less than 0.2 */

/* ---- what fits ---- */

static bool fits(const struct resources_spec *free, const struct resources_spec *want)
{
	return want->cpus <= free->cpus + CPUS_ROUNDED && want->gpus <= free->gpus &&
	       want->memory <= free->memory;
}

static void take(struct resources_spec *free, const struct resources_spec *want)
{
	free->cpus -= want->cpus < free->cpus ? want->cpus : free->cpus;
	free->gpus -= want->gpus < free->gpus ? want->gpus : free->gpus;
	free->memory -= want->memory < free->memory ? want->memory : free->memory;
}

/* A node, in the order in which nodes are placed. */
struct seat {
	const struct resources_spec *want;
	size_t node;
	size_t kind;	/* the first of those that want the same, which stand together */
	size_t machine; /* where it is, or the first that may be tried */
	struct resources_spec before; /* what the machine had without it */
};

/* The most demanding come first, and of equal ones the order stays. */
static int by_demand(const void *x, const void *y)
{
	const struct seat *a = x, *b = y;

	if (a->want->gpus != b->want->gpus)
		return a->want->gpus > b->want->gpus ? -1 : 1;
	if (a->want->memory != b->want->memory)
		return a->want->memory > b->want->memory ? -1 : 1;
	if (a->want->cpus != b->want->cpus)
		return a->want->cpus > b->want->cpus ? -1 : 1;
	return a->node < b->node ? -1 : 1;
}

static bool is_equal(const struct resources_spec *a, const struct resources_spec *b)
{
	return fits(a, b) && fits(b, a);
}

/* The first machine from seat->machine on that has room.  again: the one before was tried, and machines like it would
 * not do either. */
static size_t find_room(const struct queue_machines *m, const int64_t *used,
			const struct seat *seat, bool again)
{
	for (size_t k = seat->machine; k < m->n; k++) {
		const struct queue_machine *v = &m->v[k];

		again = again && used[k] == used[k - 1] && v->slots == v[-1].slots &&
			is_equal(&v->has, &v[-1].has);
		if (!again && (!v->slots || used[k] < v->slots) && fits(&v->has, seat->want))
			return k;
	}
	return m->n;
}

/*
 * Each node goes to the first machine that has room.  Where one finds none, the last that was placed goes on to the
 * next machine, and so on: all ways are tried, up to a limit for cases that nobody could wait for.  Equal nodes are
 * on machines in their order, because to exchange them would change nothing.
 */
static bool seat_all(struct queue_machines *m, struct seat *seats, size_t n)
{
	CLEANUP(freep) int64_t *used = xcalloc(m->n + 1, sizeof(*used));
	int64_t tries = MOST_TRIES;
	bool again = false;
	size_t i = 0;

	while (i < n) {
		struct seat *s = &seats[i];
		size_t k = find_room(m, used, s, again);

		again = k == m->n;
		if (!again) {
			s->machine = k;
			s->before = m->v[k].has;
			take(&m->v[k].has, s->want);
			used[k]++;
			if (++i < n)
				seats[i].machine = seats[i].kind == s->kind ? k : 0;
			continue;
		}
		tries -= 1 + (int64_t)(m->n / TRY_MACHINES);
		if (i == 0 || tries < 0)
			return false;
		s = &seats[--i];
		m->v[s->machine].has = s->before;
		used[s->machine]--;
		s->machine++;
	}
	return true;
}

/* ---- machines that take one node each ---- */

struct match {
	struct queue_machines *m;
	struct seat *seats;
	size_t n;
	size_t *holder; /* of each machine: the seat that has it; n: none */
	size_t *mover;	/* of each machine: the seat that would move there; n: none */
	size_t *line;	/* seats that would move */
	bool *met;	/* of each kind: is a seat of it in the line? */
};

static bool takes_one_each(const struct queue_machines *m)
{
	size_t k = 0;

	while (k < m->n && m->v[k].slots == 1)
		k++;
	return k == m->n;
}

/* Machine k is free: its mover goes there, and that one's machine is free for its own mover, up to the last seat. */
static void move_all(const struct match *c, size_t k, size_t last)
{
	for (;;) {
		size_t seat = c->mover[k], left = c->seats[seat].machine;

		c->holder[k] = seat;
		c->seats[seat].machine = k;
		if (seat == last)
			return;
		k = left;
	}
}

/*
 * The seat could have machines that others have, who could have machines of others, and so on, until one is free.  If
 * none is, there is no way to place them all.  Seats of a kind could have the same machines: one stands for all.
 */
static bool make_room(const struct match *c, size_t seat)
{
	size_t n = 0;

	for (size_t k = 0; k < c->m->n; k++)
		c->mover[k] = c->n;
	memset(c->met, 0, c->n * sizeof(*c->met));
	c->met[c->seats[seat].kind] = true;
	c->line[n++] = seat;
	for (size_t i = 0; i < n; i++)
		for (size_t k = 0; k < c->m->n; k++) {
			size_t holder = c->holder[k];

			if (c->mover[k] != c->n ||
			    !fits(&c->m->v[k].has, c->seats[c->line[i]].want))
				continue;
			c->mover[k] = c->line[i];
			if (holder == c->n) {
				move_all(c, k, seat);
				return true;
			}
			if (!c->met[c->seats[holder].kind])
				c->line[n++] = holder;
			c->met[c->seats[holder].kind] = true;
		}
	return false;
}

/* Seats of a kind get the machines of the kind in their order. */
static void take_matched(const struct match *c)
{
	for (size_t i = 0; i < c->n; i++)
		c->line[i] = i; /* of a kind: its next seat */
	for (size_t k = 0; k < c->m->n; k++) {
		if (c->holder[k] == c->n)
			continue;
		struct seat *s = &c->seats[c->line[c->seats[c->holder[k]].kind]++];

		s->machine = k;
		take(&c->m->v[k].has, s->want);
	}
}

/* Each node goes to the first free machine that has room, or others make room for it: exact, however different the
 * machines are. */
static bool match_all(struct queue_machines *m, struct seat *seats, size_t n)
{
	CLEANUP(freep) size_t *holder = xcalloc(m->n + 1, sizeof(*holder));
	CLEANUP(freep) size_t *mover = xcalloc(m->n + 1, sizeof(*mover));
	CLEANUP(freep) size_t *line = xcalloc(n + 1, sizeof(*line));
	CLEANUP(freep) bool *met = xcalloc(n + 1, sizeof(*met));
	const struct match c = {m, seats, n, holder, mover, line, met};
	size_t k = 0;

	for (size_t i = 0; i < m->n; i++)
		holder[i] = n;
	for (size_t i = 0; i < n; i++) {
		k = seats[i].kind == i ? 0 : k; /* those before are of no use to its kind */
		while (k < m->n && (holder[k] != n || !fits(&m->v[k].has, seats[i].want)))
			k++;
		if (k == m->n && !make_room(&c, i))
			return false;
		if (k < m->n) {
			holder[k] = i;
			seats[i].machine = k;
		}
	}
	take_matched(&c);
	return true;
}

bool queue_assign(struct queue_machines *machines, const struct resources_spec *nodes, size_t n,
		  size_t *ret_where)
{
	CLEANUP(freep) struct seat *seats = xcalloc(n + 1, sizeof(*seats));

	for (size_t i = 0; i < n; i++)
		seats[i] = (struct seat){.want = &nodes[i], .node = i};
	qsort(seats, n, sizeof(*seats), by_demand);
	for (size_t i = 0; i < n; i++)
		seats[i].kind =
			i > 0 && is_equal(seats[i].want, seats[i - 1].want) ? seats[i - 1].kind : i;
	if (takes_one_each(machines) ? !match_all(machines, seats, n)
				     : !seat_all(machines, seats, n))
		return false;
	for (size_t i = 0; i < n && ret_where; i++)
		ret_where[seats[i].node] = seats[i].machine;
	return true;
}

static struct queue_machine *copy_of(const struct queue_machines *machines)
{
	struct queue_machine *v = xcalloc(machines->n + 1, sizeof(*v));

	if (machines->n > 0)
		memcpy(v, machines->v, machines->n * sizeof(*v));
	return v;
}

/* A copy of the machines with what is free of them. */
static struct queue_machine *free_machines(const struct queue_run *runs, size_t n,
					   const struct queue_machines *machines)
{
	struct queue_machine *v = copy_of(machines);

	for (size_t i = 0; i < n && !machines->whole && machines->n > 0; i++)
		for (size_t k = 0; !runs[i].waits && k < runs[i].n; k++)
			take(&v[0].has, &runs[i].nodes[k]);
	return v;
}

static void describe(const struct resources_spec *r, char *out, size_t size)
{
	int n = 0;

	out[0] = '\0';
	if (r->cpus > 0)
		n += snprintf(out, size, "%g cpu%s", r->cpus, r->cpus == 1 ? "" : "s");
	if (r->gpus && (size_t)n < size)
		n += snprintf(out + n, size - (size_t)n, "%s%" PRId64 " gpu%s", n ? ", " : "",
			      r->gpus, r->gpus == 1 ? "" : "s");
	if (r->memory && (size_t)n < size)
		snprintf(out + n, size - (size_t)n, "%s%.1f GiB", n ? ", " : "",
			 (double)r->memory / (double)(1 << 30));
}

static struct resources_spec sum_of(const struct queue_machine *v, size_t n)
{
	struct resources_spec all = {0};

	for (size_t i = 0; i < n; i++) {
		all.cpus += v[i].has.cpus;
		all.gpus += v[i].has.gpus;
		all.memory += v[i].has.memory;
	}
	return all;
}

/* Tries to place the nodes on a copy of the machines; if they do not fit, `out` says what they want and what is
 * there. */
static bool place_all(struct queue_machine *v, size_t n, const struct resources_spec *nodes,
		      size_t nnodes, const char *there, char out[static QUEUE_WHY])
{
	struct resources_spec before = sum_of(v, n), asked = {0};
	char want[48], has[48];

	if (queue_assign(&(struct queue_machines){.v = v, .n = n}, nodes, nnodes, NULL))
		return true;
	for (size_t i = 0; i < nnodes; i++) {
		asked.cpus += nodes[i].cpus;
		asked.gpus += nodes[i].gpus;
		asked.memory += nodes[i].memory;
	}
	/* What it does not ask for is not shown. */
	before.cpus = asked.cpus > 0 ? before.cpus : 0;
	before.gpus = asked.gpus ? before.gpus : 0;
	before.memory = asked.memory ? before.memory : 0;
	describe(&asked, want, sizeof(want));
	describe(&before, has, sizeof(has));
	if (n > 0 && asked.gpus && !before.gpus)
		snprintf(has + strlen(has), sizeof(has) - strlen(has), "%sno gpus",
			 has[0] ? ", " : "");
	snprintf(out, QUEUE_WHY, "%zu node%s with %s in all: %s %s on %zu machine%s", nnodes,
		 nnodes == 1 ? "" : "s", want, has[0] ? has : "nothing", there, n,
		 n == 1 ? "" : "s");
	return false;
}

bool queue_possible(const struct resources_spec *nodes, size_t n,
		    const struct queue_machines *machines, char out[static QUEUE_WHY])
{
	CLEANUP(freep) struct queue_machine *v = copy_of(machines);

	return place_all(v, machines->n, nodes, n, "there", out);
}

/* ---- the order ---- */

static bool precedes(const struct queue_run *a, const struct queue_run *b)
{
	return a->priority != b->priority ? a->priority > b->priority : a->no < b->no;
}

static int first_of(const struct queue_run *runs, size_t n)
{
	int first = -1;

	for (size_t i = 0; i < n; i++)
		if (runs[i].waits && (first < 0 || precedes(&runs[i], &runs[first])))
			first = (int)i;
	return first;
}

/* Where machines are taken whole, those that an admitted run will take are still in the list. */
static bool somebody_places(const struct queue_run *runs, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (!runs[i].waits && runs[i].placing)
			return true;
	return false;
}

int queue_admit(const struct queue_run *runs, size_t n, const struct queue_machines *machines)
{
	int first = first_of(runs, n);
	char why[QUEUE_WHY];

	if (first < 0 || (machines->whole && somebody_places(runs, n)))
		return -1;
	CLEANUP(freep) struct queue_machine *v = free_machines(runs, n, machines);

	return place_all(v, machines->n, runs[first].nodes, runs[first].n, "free", why) ? first
											: -1;
}

int queue_place(const struct queue_run *runs, size_t n, size_t which)
{
	int at = 1;

	for (size_t i = 0; i < n; i++)
		at += runs[i].waits && precedes(&runs[i], &runs[which]);
	return at;
}

void queue_why(const struct queue_run *runs, size_t n, size_t which,
	       const struct queue_machines *machines, char out[static QUEUE_WHY])
{
	int at = queue_place(runs, n, which);

	if (at > 1) {
		snprintf(out, QUEUE_WHY, "%d run%s before it", at - 1, at == 2 ? "" : "s");
		return;
	}
	CLEANUP(freep) struct queue_machine *v = free_machines(runs, n, machines);

	if (place_all(v, machines->n, runs[which].nodes, runs[which].n, "free", out))
		snprintf(out, QUEUE_WHY, "it is the next");
}
