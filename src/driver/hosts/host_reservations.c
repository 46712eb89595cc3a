/*
 * Which host a node has: the nodes that a host holds, and the choice of hosts for new ones.
 */
#include "driver/hosts/host_table.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/arena.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "core/queue.h"
#include "driver/hosts/internal.h"
#include "fmt/doc.h"

#define REFUSED_MS (5 * 60 * 1000)

/* ---- nodes of a host ---- */

static bool same_name(const struct held_node *held, const struct host_node *n)
{
	return strcmp(held->run, n->run) == 0 && strcmp(held->node, n->node) == 0;
}

static bool is_node(const struct held_node *held, const struct host_node *n)
{
	return held->incarnation == n->incarnation && same_name(held, n);
}

struct held_node *held_find(const struct known_host *h, const struct host_node *n)
{
	for (size_t i = 0; i < h->held.n; i++)
		if (is_node(&h->held.v[i], n))
			return &h->held.v[i];
	return NULL;
}

/* The key of a node that a host is reserved for. */
#define PLACE_KEY 320
static struct str place_key(const struct host_node *n, char out[static PLACE_KEY])
{
	int len = snprintf(out, PLACE_KEY, "%d %s %s", n->incarnation, n->run, n->node);

	return (struct str){out, len < PLACE_KEY ? (size_t)len : PLACE_KEY - 1};
}

struct held_node *held_add(struct known_host *h, const struct host_node *n, bool stray)
{
	struct held_node *held = vec_push(&h->held);
	char key[PLACE_KEY];

	*held = (struct held_node){.run = xstrdup(n->run),
				   .node = xstrdup(n->node),
				   .incarnation = n->incarnation,
				   .share = n->share,
				   .stray = stray};
	if (!stray)
		map_put(h->table->places, place_key(n, key), h);
	return held;
}

static void held_give_up(struct known_host *h, struct held_node *held)
{
	struct host_node n = {
		.run = held->run, .node = held->node, .incarnation = held->incarnation};
	char key[PLACE_KEY];

	if (!held->stray)
		map_del(h->table->places, place_key(&n, key));
	held->stray = true;
}

void held_remove(struct known_host *h, struct held_node *held)
{
	held_give_up(h, held);
	free(held->run);
	free(held->node);
	*held = h->held.v[--h->held.n];
}

struct known_host *held_holder(const struct host_table *t, const struct host_node *n,
			       struct held_node **ret_held)
{
	char key[PLACE_KEY];
	struct known_host *h = map_get(t->places, place_key(n, key));

	if (h && ret_held)
		*ret_held = held_find(h, n);
	return h;
}

/* ---- reservations ---- */

static bool has_labels(const struct known_host *h, const struct doc *labels)
{
	for (size_t i = 0; labels && i < labels->table.n; i++) {
		const struct doc_entry *e = &labels->table.v[i];

		if (!str_eq(doc_str(h->facts.labels, e->key.p, (struct str){0}), e->value->s))
			return false;
	}
	return true;
}

static bool is_wanted(const struct known_host *h, const struct host_want *want)
{
	size_t n = want->names ? want->names->array.n : 0;
	bool named = n == 0;

	for (size_t i = 0; i < n && !named; i++)
		named = str_is(want->names->array.v[i]->s, h->facts.name);
	return named && has_labels(h, want->labels);
}

/* What a host has for more nodes of a run; false: nothing.  Nodes of one run may share a host; nodes of different runs
 * never do. */
static bool has_room(const struct known_host *h, const char *run, int64_t slots,
		     struct queue_machine *ret)
{
	if (!host_is_here(h) || (int64_t)h->held.n >= slots)
		return false;
	*ret = (struct queue_machine){.has = {.cpus = (double)h->facts.cpus,
					      .gpus = h->facts.gpus,
					      .memory = h->facts.memory},
				      .slots = slots - (int64_t)h->held.n};
	for (size_t i = 0; i < h->held.n; i++) {
		const struct held_node *held = &h->held.v[i];

		/* It may have come back with less memory than it has given. */
		if (held->stray || strcmp(held->run, run) != 0 ||
		    held->share.memory > ret->has.memory)
			return false;
		ret->has.cpus -= held->share.cpus;
		ret->has.gpus -= held->share.gpus;
		ret->has.memory -= held->share.memory;
	}
	return true;
}

static struct host_count count(const struct host_table *t, const struct host_want *want)
{
	struct host_count c = {0};
	struct str name;
	void *value;

	for (size_t i = 0; map_at(t->hosts, &i, &name, &value);) {
		const struct known_host *h = value;

		if (!is_wanted(h, want))
			continue;
		c.known++;
		c.gone += !host_is_here(h);
		c.free += host_is_here(h) && h->held.n == 0;
	}
	return c;
}

struct host_count host_table_count(struct host_table *t, const struct host_want *want)
{
	pthread_mutex_lock(&t->lock);
	struct host_count c = count(t, want);

	pthread_mutex_unlock(&t->lock);
	return c;
}

/* A host without room for one more node often has none for the next either. */
static bool refused_lately(const struct known_host *h)
{
	return h->refused_ms && clock_boot_ms() - h->refused_ms < REFUSED_MS;
}

static bool comes_before(const struct known_host *a, const struct known_host *b)
{
	bool late_a = refused_lately(a), late_b = refused_lately(b);

	if (late_a != late_b)
		return late_b;
	if (late_a && a->refused_ms != b->refused_ms)
		return a->refused_ms < b->refused_ms;
	return strcmp(a->facts.name, b->facts.name) < 0;
}

static int by_turn(const void *x, const void *y)
{
	const struct known_host *a = *(struct known_host *const *)x;
	const struct known_host *b = *(struct known_host *const *)y;

	return comes_before(a, b) ? -1 : comes_before(b, a) ? 1 : 0;
}

/* The hosts that may be taken, in the order in which they are. */
struct choice {
	struct known_host **v;
	size_t n;
};

/* By name, so that the same job gets the same hosts; those that refused lately come last. */
static void choice_init(struct choice *c, const struct host_table *t, const struct host_want *want)
{
	struct str name;
	void *value;

	*c = (struct choice){.v = xcalloc(map_count(t->hosts) + 1, sizeof(struct known_host *))};
	for (size_t i = 0; map_at(t->hosts, &i, &name, &value);)
		if (is_wanted(value, want))
			c->v[c->n++] = value;
	qsort(c->v, c->n, sizeof(struct known_host *), by_turn);
}

static void choice_release(struct choice *c)
{
	free(c->v);
}

void host_table_machines(struct host_table *t, const struct host_want *want, bool all,
			 struct arena *a, struct queue_machines *ret)
{
	CLEANUP(choice_release) struct choice c;

	pthread_mutex_lock(&t->lock);
	choice_init(&c, t, want);
	*ret = (struct queue_machines){.v = arena_array(a, struct queue_machine, c.n + 1),
				       .whole = true};
	for (size_t i = 0; i < c.n; i++) {
		const struct known_host *h = c.v[i];

		if (host_is_here(h) && (all || h->held.n == 0))
			ret->v[ret->n++] =
				(struct queue_machine){.name = arena_strdup(a, h->facts.name),
						       .has = {.cpus = (double)h->facts.cpus,
							       .gpus = h->facts.gpus,
							       .memory = h->facts.memory},
						       .slots = want->slots};
	}
	pthread_mutex_unlock(&t->lock);
}

static void unreserve(struct host_table *t, const struct host_node *nodes, size_t n,
		      const bool *which)
{
	for (size_t i = 0; i < n; i++) {
		struct held_node *held = NULL;
		struct known_host *h = !which || which[i] ? held_holder(t, &nodes[i], &held) : NULL;

		if (h) {
			held_remove(h, held);
			host_note_free(t, h);
		}
	}
}

/* A new incarnation replaces the node: what an earlier one left on a host is a stray. */
static void give_up_earlier(struct host_table *t, const struct host_node *n)
{
	struct host_node earlier = *n;

	while (earlier.incarnation-- > 0) {
		struct held_node *held = NULL;
		struct known_host *h = held_holder(t, &earlier, &held);

		if (h)
			held_give_up(h, held);
	}
}

/* The hosts of c that have room, with what they have. */
static struct queue_machines room_of(struct choice *c, const char *run, int64_t slots,
				     struct arena *a)
{
	struct queue_machines m = {.v = arena_array(a, struct queue_machine, c->n + 1)};

	for (size_t i = 0; i < c->n; i++)
		if (has_room(c->v[i], run, slots, &m.v[m.n]))
			c->v[m.n++] = c->v[i];
	c->n = m.n;
	return m;
}

static int no_host(const struct host_table *t, size_t n, const struct host_want *want,
		   struct err *err)
{
	struct host_count c = count(t, want);

	return err_set(err, ERR_CAPACITY,
		       "no host for %zu node%s: %zu fit%s, of which %zu free, %zu busy, %zu gone",
		       n, n == 1 ? "" : "s", c.known, c.known == 1 ? "s" : "", c.free,
		       c.known - c.free - c.gone, c.gone);
}

/* All nodes are of one run.  added[i] is set if node i had no host before. */
static int reserve_all(struct host_table *t, const struct host_node *nodes, size_t n,
		       const struct host_want *want, bool *added, struct err *err)
{
	CLEANUP(arena_freep) struct arena *a = arena_new();
	CLEANUP(choice_release) struct choice choice;
	struct resources_spec *shares = arena_array(a, struct resources_spec, n);
	size_t *which = arena_array(a, size_t, n), *where = arena_array(a, size_t, n), m = 0;

	choice_init(&choice, t, want);
	for (size_t i = 0; i < n; i++) {
		if (held_holder(t, &nodes[i], NULL))
			continue;
		give_up_earlier(t, &nodes[i]);
		shares[m] = (struct resources_spec){.cpus = nodes[i].share.cpus,
						    .gpus = nodes[i].share.gpus,
						    .memory = nodes[i].share.memory};
		which[m++] = i;
	}
	struct queue_machines machines = room_of(&choice, nodes[0].run, want->slots, a);

	if (!queue_assign(&machines, shares, m, where))
		return no_host(t, n, want, err);
	for (size_t i = 0; i < m; i++) {
		held_add(choice.v[where[i]], &nodes[which[i]], false);
		added[which[i]] = true;
	}
	return 0;
}

int host_table_reserve(struct host_table *t, const struct host_node *nodes, size_t n,
		       const struct host_want *want, struct err *err)
{
	bool *added = xcalloc(n, sizeof(*added));
	bool any = false;

	pthread_mutex_lock(&t->disk);
	pthread_mutex_lock(&t->lock);
	int rc = reserve_all(t, nodes, n, want, added, err);

	pthread_mutex_unlock(&t->lock);
	for (size_t i = 0; i < n; i++)
		any = any || added[i];
	if (rc == 0 && any && host_store_held(t, true, err) < 0) {
		pthread_mutex_lock(&t->lock);
		unreserve(t, nodes, n, added);
		pthread_mutex_unlock(&t->lock);
		rc = -1;
	}
	pthread_mutex_unlock(&t->disk);
	free(added);
	return rc;
}

void host_table_refused(struct host_table *t, const struct host_node *node)
{
	pthread_mutex_lock(&t->lock);
	struct known_host *h = held_holder(t, node, NULL);

	if (h)
		h->refused_ms = clock_boot_ms();
	pthread_mutex_unlock(&t->lock);
}

/* Not synced: if a crash restores a reservation, its run is over or its host is asked again. */
void host_table_release(struct host_table *t, const struct host_node *nodes, size_t n)
{
	if (n == 0)
		return;
	pthread_mutex_lock(&t->disk);
	pthread_mutex_lock(&t->lock);
	unreserve(t, nodes, n, NULL);
	pthread_mutex_unlock(&t->lock);
	host_store_held(t, false, NULL);
	pthread_mutex_unlock(&t->disk);
	t->wake(t->ctx);
}

void host_table_give_up(struct host_table *t, const struct host_node *node)
{
	struct held_node *held = NULL;

	pthread_mutex_lock(&t->disk);
	pthread_mutex_lock(&t->lock);
	struct known_host *h = held_holder(t, node, &held);

	if (h)
		held_give_up(h, held);
	pthread_mutex_unlock(&t->lock);
	host_store_held(t, false, NULL);
	pthread_mutex_unlock(&t->disk);
}

enum host_place host_table_place(struct host_table *t, const struct host_node *node,
				 char name[static HOST_NAME_MAX_LEN], int64_t *ret_heard_ms)
{
	enum host_place place = HOST_NONE;

	pthread_mutex_lock(&t->lock);
	const struct known_host *h = held_holder(t, node, NULL);

	if (h) {
		place = host_is_here(h) ? HOST_CONNECTED : HOST_SILENT;
		snprintf(name, HOST_NAME_MAX_LEN, "%s", h->facts.name);
		*ret_heard_ms = host_heard_ms(h);
	}
	pthread_mutex_unlock(&t->lock);
	return place;
}
