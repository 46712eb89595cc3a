/*
 * hosts.node - a node on a host that has joined.  The host's daemon makes it with the local driver.
 *
 * The host is chosen and recorded before it is asked (host_table.h).  The state of a node whose host
 * is not connected is unknown until the node is fenced: host and node were silent for fence_ms, the
 * node's lease plus the time to stop its job.  Then the job has ended by itself, and the node counts
 * as gone; the host removes its remains when it joins again.  A host that died without a word stays
 * connected for a while: there, an observation without an answer tells the same.
 *
 * Id: the host's name, a slash, and the host's own id of the node.
 * Spec: names and labels of the allowed hosts, slots (nodes of a run per host), fence_ms, and
 * cpus, gpus, memory: what the node takes of its host.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/arena.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/deadline.h"
#include "driver/driver.h"
#include "driver/hosts/host_table.h"
#include "fmt/doc.h"

#define ASK_MS 30000	/* for all answers of one call */
#define OBSERVE_MS 1000 /* at least, for the answers to an observation */

struct node_spec {
	struct host_want want;
	struct host_share share;
	int64_t fence_ms;
};

static struct host_node node_of(const struct driver_row *row)
{
	return (struct host_node){row->run, row->name, row->incarnation};
}

static int read_spec(const struct driver_row *row, struct arena *a, struct node_spec *ret)
{
	struct doc *d = NULL;

	if (json_parse(str_from(row->spec), a, &d, NULL) < 0)
		return -1;
	*ret = (struct node_spec){.want = {.names = doc_array(d, "names"),
					   .labels = doc_table(d, "labels"),
					   .slots = doc_int(d, "slots", 1)},
				  .share = {doc_num(d, "cpus", 0), doc_int(d, "gpus", 0),
					    (uint64_t)doc_int(d, "memory", 0)},
				  .fence_ms = doc_int(d, "fence_ms", INT64_MAX)};
	return 0;
}

static void answer_all(struct driver_row *rows, size_t n, enum outcome outcome,
		       const struct err *err)
{
	for (size_t i = 0; i < n; i++) {
		rows[i].outcome = outcome;
		rows[i].err = *err;
	}
}

/* The host's own id of the node, the part of row->id after the slash. */
static const char *id_on_host(const struct driver_row *row)
{
	const char *slash = strchr(row->id, '/');

	return slash ? slash + 1 : "";
}

static void set_id(struct driver_row *row, const char *host, const char *id)
{
	snprintf(row->id, sizeof(row->id), "%s/%s", host, id);
}

/* How long host and node must go on to be silent until the job has ended by itself. */
static int64_t until_fenced_ms(const struct driver_row *row, int64_t host_heard_ms)
{
	CLEANUP(arena_freep) struct arena *a = arena_new();
	int64_t heard = row->heard_ms > host_heard_ms ? row->heard_ms : host_heard_ms;
	struct node_spec spec;

	if (read_spec(row, a, &spec) < 0)
		return INT64_MAX;
	return spec.fence_ms - (clock_boot_ms() - heard);
}

static bool is_fenced(const struct driver_row *row, int64_t host_heard_ms)
{
	return until_fenced_ms(row, host_heard_ms) <= 0;
}

static void set_absent(struct driver_row *row)
{
	row->outcome = OUTCOME_ABSENT;
	row->identity_checked = true;
	err_set(&row->err, ERR_UNAVAILABLE, "no host has node '%s'", row->name);
}

/*
 * Answer for a node that has no host, or whose host is not connected.  True: row->outcome is set.
 * ABSENT is certain, because the table knows every host that was asked for the node.
 */
static bool answer_without_host(struct driver_row *row, struct host_table *t)
{
	struct host_node node = node_of(row);
	char name[HOST_NAME_MAX_LEN], span[32], left[32];
	int64_t heard_ms, left_ms;

	switch (host_table_place(t, &node, name, &heard_ms)) {
	case HOST_CONNECTED:
		return false;
	case HOST_NONE:
		break;
	case HOST_SILENT:
		left_ms = until_fenced_ms(row, heard_ms);
		if (left_ms > 0) {
			clock_format_span(clock_boot_ms() - heard_ms, span);
			clock_format_span(left_ms, left);
			row->outcome = OUTCOME_UNSURE;
			err_set(&row->err, ERR_UNAVAILABLE,
				"host '%s' has been silent for %s: its job must have ended in %s",
				name, span, left);
			return true;
		}
		host_table_release(t, &node, 1);
		break;
	}
	set_absent(row);
	return true;
}

/* An observation waits for its answer until it can be told without one. */
static int64_t observe_ms(const struct driver_row *rows, size_t n, struct host_table *t)
{
	int64_t least = ASK_MS;

	for (size_t i = 0; i < n; i++) {
		struct host_node node = node_of(&rows[i]);
		char name[HOST_NAME_MAX_LEN];
		int64_t heard_ms, left;

		if (!rows[i].heard_ms ||
		    host_table_place(t, &node, name, &heard_ms) != HOST_CONNECTED)
			continue;
		left = until_fenced_ms(&rows[i], heard_ms);
		least = left < least ? left : least;
	}
	return least > OBSERVE_MS ? least : OBSERVE_MS;
}

/* A host that is connected does not answer, and was silent for as long as a node that was here. */
static void tell_without_answer(struct driver_row *row, struct host_table *t)
{
	struct host_node node = node_of(row);
	char name[HOST_NAME_MAX_LEN];
	int64_t heard_ms;

	if (row->outcome != OUTCOME_UNSURE || row->err.kind != ERR_TIMEOUT || !row->heard_ms ||
	    host_table_place(t, &node, name, &heard_ms) != HOST_CONNECTED ||
	    !is_fenced(row, heard_ms))
		return;
	host_table_give_up(t, &node);
	set_absent(row);
}

/* Store the host's answer.  If the host does not have the node, its reservation is removed. */
static void take_answer(struct driver_row *row, struct host_table *t, const struct host_ask *ask)
{
	struct host_node node = node_of(row);
	char name[HOST_NAME_MAX_LEN] = "";
	int64_t heard_ms;

	host_table_place(t, &node, name, &heard_ms);
	row->outcome = ask->outcome;
	row->err = ask->err;
	if (row->err.kind != ERR_NONE && ask->outcome != OUTCOME_UNSURE)
		err_wrap(&row->err, "host '%s'", name);
	row->identity_checked = ask->outcome == OUTCOME_ABSENT;
	if (ask->ret_id[0])
		set_id(row, name, ask->ret_id);
}

static bool place_is_free(enum host_op op, enum outcome outcome)
{
	switch (op) {
	case HOST_CREATE:
		return outcome == OUTCOME_REFUSED;
	case HOST_FIND:
	case HOST_OBSERVE:
		return outcome == OUTCOME_ABSENT;
	case HOST_DESTROY:
		return outcome == OUTCOME_DONE || outcome == OUTCOME_ABSENT;
	}
	return false;
}

/* Ask the hosts of all rows, in parallel. */
static void ask_hosts(struct driver_row *rows, size_t n, enum host_op op)
{
	struct host_table *t = rows[0].services->hosts;
	CLEANUP(freep) struct host_ask *asks = xcalloc(n, sizeof(*asks));
	CLEANUP(freep) struct host_node *leave = xcalloc(n, sizeof(*leave));
	CLEANUP(freep) size_t *of = xcalloc(n, sizeof(*of));
	int64_t most_ms = op == HOST_OBSERVE ? observe_ms(rows, n, t) : ASK_MS;
	struct deadline none = deadline_in((int)most_ms, NULL);
	struct deadline d = rows[0].deadline ? deadline_within(rows[0].deadline, most_ms) : none;
	size_t asked = 0, left = 0;

	for (size_t i = 0; i < n; i++) {
		if (answer_without_host(&rows[i], t))
			continue;
		asks[asked] = (struct host_ask){.op = op,
						.node = node_of(&rows[i]),
						.token = rows[i].token,
						.id = id_on_host(&rows[i]),
						.limit_ms = deadline_left_ms(&d)};
		of[asked++] = i;
	}
	host_table_ask(t, asks, asked, &d);
	for (size_t i = 0; i < asked; i++) {
		struct driver_row *row = &rows[of[i]];

		take_answer(row, t, &asks[i]);
		if (op == HOST_CREATE && row->outcome == OUTCOME_REFUSED)
			host_table_refused(t, &asks[i].node);
		if (place_is_free(op, row->outcome))
			leave[left++] = node_of(row);
		if (op == HOST_OBSERVE)
			tell_without_answer(row, t);
	}
	host_table_release(t, leave, left);
}

static bool has_table(struct driver_row *rows, size_t n)
{
	struct err err = {0};

	if (rows[0].services && rows[0].services->hosts)
		return true;
	err_set(&err, ERR_UNAVAILABLE, "this master accepts no hosts");
	answer_all(rows, n, OUTCOME_UNSURE, &err);
	return false;
}

/* Reserve a host for all rows or for none, so that an incomplete run blocks no hosts. */
static int reserve(struct driver_row *rows, size_t n, struct err *err)
{
	CLEANUP(arena_freep) struct arena *a = arena_new();
	CLEANUP(freep) struct host_node *nodes = xcalloc(n, sizeof(*nodes));
	struct node_spec spec;

	/* The last one is that of the first row: names, labels and slots are the same in all. */
	for (size_t i = n; i-- > 0;) {
		if (read_spec(&rows[i], a, &spec) < 0)
			return err_set(err, ERR_INVALID, "the spec of node '%s' cannot be read",
				       rows[i].name);
		nodes[i] = node_of(&rows[i]);
		nodes[i].share = spec.share;
	}
	return host_table_reserve(rows[0].services->hosts, nodes, n, &spec.want, err);
}

static void create_many(struct driver_row *rows, size_t n)
{
	struct err err = {0};

	if (!has_table(rows, n))
		return;
	if (reserve(rows, n, &err) < 0) {
		answer_all(rows, n, OUTCOME_REFUSED, &err);
		return;
	}
	ask_hosts(rows, n, HOST_CREATE);
}

static void find_many(struct driver_row *rows, size_t n)
{
	if (has_table(rows, n))
		ask_hosts(rows, n, HOST_FIND);
}

static void observe_many(struct driver_row *rows, size_t n)
{
	if (has_table(rows, n))
		ask_hosts(rows, n, HOST_OBSERVE);
}

static void destroy_many(struct driver_row *rows, size_t n)
{
	if (has_table(rows, n))
		ask_hosts(rows, n, HOST_DESTROY);
}

const struct driver hosts_node_driver = {
	.kind = "hosts.node",
	.pool = "hosts",
	.create_many = create_many,
	.find_many = find_many,
	.observe_many = observe_many,
	.destroy_many = destroy_many,
};
