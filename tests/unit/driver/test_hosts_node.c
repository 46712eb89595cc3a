/* hosts.node with hosts that the test plays: who gets which, what silence means, what survives a restart. */
#include "unit.h"

#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/arena.h"
#include "base/clock.h"
#include "base/deadline.h"
#include "base/err.h"
#include "core/queue.h"
#include "driver/driver.h"
#include "driver/hosts/host_table.h"
#include "driver/hosts/internal.h"
#include "fmt/doc.h"

#define ANSWER_MS 5000
#define FENCE "\"fence_ms\":1000"
#define SPEC "{" FENCE "}"
#define FENCED_LONG_AGO "{\"fence_ms\":0}"

/* A host whose answers are one outcome; it counts the questions. */
struct played_host {
	const char *name, *labels;
	enum outcome outcome;
	bool mute;
	uint64_t memory; /* 0: 1000 */
	int asked[HOST_OPS];
	char last_node[64];
	_Atomic int64_t heard_ms;
};

struct world {
	char *dir;
	struct host_table *t;
	struct driver_services services;
};

static bool all_active = true;

struct reply {
	struct played_host *host;
	int64_t no;
	char node[64];
};
static struct reply replies[64];
static size_t nreplies;
static bool last_first; /* answers come in this order, and the id is the node's name */
static int at_once = 64,
	   sendings; /* questions that are sent at once, and how often that was done */
static struct played_host *successor; /* joins after the next question was sent */

/* The time of the table while a test has stopped it. */
static int64_t stopped_ms;
int64_t __real_clock_boot_ms(void);
int64_t __wrap_clock_boot_ms(void);

int64_t __wrap_clock_boot_ms(void)
{
	return stopped_ms ? stopped_ms : __real_clock_boot_ms();
}

static void play(void *conn, const struct host_ask *ask)
{
	struct played_host *h = conn;

	h->asked[ask->op]++;
	snprintf(h->last_node, sizeof(h->last_node), "%s", ask->node.node);
	if (h->mute)
		return;
	replies[nreplies] = (struct reply){h, ask->no, ""};
	snprintf(replies[nreplies++].node, sizeof(replies[0].node), "%s", ask->node.node);
}

static void join(struct world *w, struct played_host *h);

/* On whichever thread asks: sends, and answers at once. */
static void wake(void *ctx)
{
	struct world *w = ctx;
	struct err none = {0}, why = {0};

	err_set(&why, ERR_IO, "the disk is on fire");
	nreplies = 0;
	sendings++;
	bool more = host_table_send(w->t, at_once, play);

	if (successor) {
		struct played_host *h = successor;

		successor = NULL;
		join(w, h);
	}
	for (size_t i = 0; i < nreplies; i++) {
		const struct reply *r = &replies[last_first ? nreplies - 1 - i : i];

		host_table_answer(w->t, r->host, r->no, r->host->outcome,
				  r->host->outcome == OUTCOME_DONE ? &none : &why,
				  last_first ? r->node : "77");
	}
	if (more)
		wake(ctx);
}

static bool is_active(void *ctx, const char *run)
{
	(void)ctx;
	(void)run;
	return all_active;
}

static void open_table(struct world *w)
{
	w->t = host_table_new(w->dir, wake, w);
	w->services.hosts = w->t;
	assert_int_equal(host_table_load(w->t, is_active, NULL, NULL), 0);
}

static int make(void **state)
{
	struct world *w = xcalloc(1, sizeof(*w));
	void *dir;

	if (unit_make_dir(&dir) < 0)
		return -1;
	w->dir = dir;
	all_active = true;
	last_first = false;
	stopped_ms = 0;
	open_table(w);
	*state = w;
	return 0;
}

static int drop(void **state)
{
	struct world *w = *state;
	void *dir = w->dir;

	host_table_free(w->t);
	free(w);
	return unit_remove_dir(&dir);
}

static int try_join(struct world *w, struct played_host *h, const char *id, struct err *err)
{
	struct arena *a = arena_new();
	struct doc *labels = NULL;
	void *old;

	if (h->labels)
		assert_int_equal(json_parse(str_from(h->labels), a, &labels, NULL), 0);
	struct host_facts f = {.name = h->name,
			       .id = id,
			       .address = "10.0.0.1",
			       .version = "1",
			       .cpus = 4,
			       .gpus = 2,
			       .memory = h->memory ? h->memory : 1000,
			       .labels = labels};

	h->heard_ms = clock_boot_ms();
	int rc = host_table_join(w->t, &f, h, &h->heard_ms, &old, err);

	if (rc == 0)
		host_table_has(w->t, h, NULL, 0);
	arena_free(a);
	return rc;
}

static void join(struct world *w, struct played_host *h)
{
	assert_int_equal(try_join(w, h, h->name, NULL), 0);
}

static struct driver_row row_of(struct world *w, const char *run, const char *node,
				const struct deadline *d, const char *spec)
{
	return (struct driver_row){.kind = "hosts.node",
				   .name = node,
				   .run = run,
				   .incarnation = 1,
				   .token = "t",
				   .spec = spec,
				   .deadline = d,
				   .services = &w->services};
}

#define ROW(w, run, node)                                                                          \
	row_of(w, run, node, &(struct deadline){clock_boot_ms() + ANSWER_MS, NULL}, SPEC)
#define ROW_SPEC(w, run, node, spec)                                                               \
	row_of(w, run, node, &(struct deadline){clock_boot_ms() + ANSWER_MS, NULL}, spec)

static const struct driver *d = &hosts_node_driver;

static const char *state_of(struct world *w, const char *host, struct arena *a,
			    const char **ret_run)
{
	const struct doc *l = host_table_list(w->t, a);

	for (size_t i = 0; i < l->array.n; i++)
		if (str_is(doc_str(l->array.v[i], "name", STR("")), host)) {
			if (ret_run)
				*ret_run = doc_str(l->array.v[i], "run", STR("-")).p;
			return doc_str(l->array.v[i], "state", STR("")).p;
		}
	return "unknown";
}

static void assert_state(struct world *w, const char *host, const char *state, const char *run)
{
	struct arena *a = arena_new();
	const char *got = "-";

	assert_string_equal(state_of(w, host, a, &got), state);
	assert_string_equal(got, run);
	arena_free(a);
}

static enum outcome ask_one(void (*many)(struct driver_row *rows, size_t n), struct driver_row *row)
{
	many(row, 1);
	return row->outcome;
}

/* ---- who gets which ---- */

static void a_node_takes_a_free_host_and_gives_it_back(void **state)
{
	struct played_host h = {.name = "a"};
	struct driver_row row = ROW(*state, "r", "n");

	join(*state, &h);
	assert_state(*state, "a", "free", "-");
	assert_int_equal(ask_one(d->create_many, &row), OUTCOME_DONE);
	assert_string_equal(row.id, "a/77");
	assert_state(*state, "a", "busy", "r");
	assert_int_equal(ask_one(d->observe_many, &row), OUTCOME_DONE);
	assert_int_equal(ask_one(d->destroy_many, &row), OUTCOME_DONE);
	assert_state(*state, "a", "free", "-");
}

static void whoever_waits_for_a_host_is_told_when_one_is_given_back(void **state)
{
	struct world *w = *state;
	struct played_host h = {.name = "a"};
	struct driver_row row = ROW(w, "r", "n");

	join(w, &h);
	assert_true(host_table_freed(w->t));
	assert_int_equal(ask_one(d->create_many, &row), OUTCOME_DONE);
	assert_false(host_table_freed(w->t));
	assert_int_equal(ask_one(d->destroy_many, &row), OUTCOME_DONE);
	assert_true(host_table_freed(w->t));
	assert_false(host_table_freed(w->t));
}

static void a_reservation_that_cannot_be_stored_is_none(void **state)
{
	struct world *w = *state;
	struct played_host h = {.name = "a"};
	struct driver_row row = ROW(w, "r", "n");
	char away[512];

	join(w, &h);
	snprintf(away, sizeof(away), "%s.away", w->dir);
	assert_int_equal(rename(w->dir, away), 0);
	assert_int_equal(close(creat(w->dir, 0600)), 0); /* a file where the directory was */
	assert_int_not_equal(ask_one(d->create_many, &row), OUTCOME_DONE);
	assert_int_equal(h.asked[HOST_CREATE], 0);
	assert_int_equal(unlink(w->dir), 0);
	assert_int_equal(rename(away, w->dir), 0);
	assert_state(w, "a", "free", "-");
	assert_int_equal(ask_one(d->create_many, &row), OUTCOME_DONE);
}

static void one_host_is_not_given_twice(void **state)
{
	struct played_host h = {.name = "a"};
	struct driver_row first = ROW(*state, "r", "n"), second = ROW(*state, "q", "n"),
			  same_run = ROW(*state, "r", "m");

	join(*state, &h);
	assert_int_equal(ask_one(d->create_many, &first), OUTCOME_DONE);
	assert_int_equal(ask_one(d->create_many, &second), OUTCOME_REFUSED);
	assert_int_equal(second.err.kind, ERR_CAPACITY);
	assert_non_null(strstr(second.err.msg, "1 fits, of which 0 free, 1 busy, 0 gone"));
	assert_int_equal(ask_one(d->create_many, &same_run), OUTCOME_REFUSED);
	assert_int_equal(h.asked[HOST_CREATE], 1);
}

/* It may still have the node of a run that is over. */
static void a_host_that_has_not_said_what_it_has_is_not_taken(void **state)
{
	struct world *w = *state;
	struct played_host h = {.name = "a"};
	struct host_facts f = {.name = "a", .id = "a", .address = "10.0.0.1", .version = "1"};
	struct driver_row row = ROW(w, "r", "n");
	void *old;

	assert_int_equal(host_table_join(w->t, &f, &h, &h.heard_ms, &old, NULL), 0);
	assert_int_equal(ask_one(d->create_many, &row), OUTCOME_REFUSED);
	assert_int_equal(row.err.kind, ERR_CAPACITY);
	host_table_has(w->t, &h, NULL, 0);
	assert_int_equal(ask_one(d->create_many, &row), OUTCOME_DONE);
}

static void slots_let_nodes_of_one_run_share_a_host(void **state)
{
	struct played_host h = {.name = "a"};
	const char *spec = "{\"slots\":2," FENCE "}";
	struct driver_row one = ROW_SPEC(*state, "r", "n", spec),
			  two = ROW_SPEC(*state, "r", "m", spec),
			  three = ROW_SPEC(*state, "r", "l", spec),
			  other = ROW_SPEC(*state, "q", "n", spec);

	join(*state, &h);
	assert_int_equal(ask_one(d->create_many, &one), OUTCOME_DONE);
	assert_int_equal(ask_one(d->create_many, &other), OUTCOME_REFUSED);
	assert_int_equal(ask_one(d->create_many, &two), OUTCOME_DONE);
	assert_int_equal(ask_one(d->create_many, &three), OUTCOME_REFUSED);
}

/* Ten thousand at once would hold up the loop. */
static void questions_go_out_some_at_a_time(void **state)
{
	struct played_host h = {.name = "a"};
	const char *spec = "{\"slots\":3," FENCE "}";
	struct driver_row rows[] = {ROW_SPEC(*state, "r", "n", spec),
				    ROW_SPEC(*state, "r", "m", spec),
				    ROW_SPEC(*state, "r", "l", spec)};

	join(*state, &h);
	at_once = 1;
	sendings = 0;
	d->create_many(rows, 3);
	at_once = 64;
	for (int i = 0; i < 3; i++)
		assert_int_equal(rows[i].outcome, OUTCOME_DONE);
	assert_int_equal(sendings, 3);
}

/* A host has 4 CPUs, 2 GPUs and 1000 bytes. */
static void nodes_share_a_host_only_while_it_has_what_they_take(void **state)
{
	struct played_host a = {.name = "a"}, b = {.name = "b"};
	const char *gpu = "{\"slots\":9,\"gpus\":1," FENCE "}";
	const char *big = "{\"slots\":9,\"cpus\":3.5,\"memory\":900," FENCE "}";
	const char *never = "{\"slots\":9,\"gpus\":3," FENCE "}";
	struct driver_row rows[] = {
		ROW_SPEC(*state, "r", "0", big), ROW_SPEC(*state, "r", "1", big),
		ROW_SPEC(*state, "r", "2", gpu), ROW_SPEC(*state, "r", "3", gpu),
		ROW_SPEC(*state, "r", "4", gpu)};
	struct driver_row more = ROW_SPEC(*state, "r", "5", big),
			  last = ROW_SPEC(*state, "r", "6", gpu),
			  none = ROW_SPEC(*state, "r", "7", gpu),
			  most = ROW_SPEC(*state, "q", "0", never);

	join(*state, &a);
	join(*state, &b);
	assert_int_equal(ask_one(d->create_many, &most), OUTCOME_REFUSED);
	assert_int_equal(most.err.kind, ERR_CAPACITY);
	d->create_many(rows, 5);
	for (int i = 0; i < 5; i++)
		assert_int_equal(rows[i].outcome, OUTCOME_DONE);
	assert_string_equal(rows[0].id, "a/77");
	assert_string_equal(rows[1].id, "b/77");
	assert_string_equal(rows[2].id, "a/77"); /* there is room beside the first */
	assert_string_equal(rows[3].id, "a/77");
	assert_string_equal(rows[4].id, "b/77");
	assert_int_equal(ask_one(d->create_many, &more), OUTCOME_REFUSED);
	assert_int_equal(ask_one(d->create_many, &last), OUTCOME_DONE);
	assert_string_equal(last.id, "b/77");
	assert_int_equal(ask_one(d->create_many, &none), OUTCOME_REFUSED); /* all GPUs are given */
}

/* Rule: a host that has come back with less than it gives has no room for more. */
static void a_host_with_less_memory_than_before_takes_no_more(void **state)
{
	const char *most = "{\"slots\":9,\"memory\":900," FENCE "}";
	const char *some = "{\"slots\":9,\"memory\":100," FENCE "}";
	struct played_host a = {.name = "a"}, less = {.name = "a", .memory = 500};
	struct driver_row first = ROW_SPEC(*state, "r", "0", most),
			  second = ROW_SPEC(*state, "r", "1", some);

	join(*state, &a);
	assert_int_equal(ask_one(d->create_many, &first), OUTCOME_DONE);
	join(*state, &less);
	assert_int_equal(ask_one(d->create_many, &second), OUTCOME_REFUSED);
	assert_int_equal(second.err.kind, ERR_CAPACITY);
}

/* Rule: hosts are given as the queue has found that they do (core/queue.h), not in the order of the nodes. */
static void nodes_of_different_sizes_fill_their_hosts(void **state)
{
	static const int sizes[] = {300, 600, 400, 700};
	static const char *const names[] = {"0", "1", "2", "3"}, *const where[] = {"a/77", "b/77",
										   "b/77", "a/77"};
	struct played_host a = {.name = "a"}, b = {.name = "b"};
	struct driver_row rows[4];
	char specs[4][80];

	join(*state, &a);
	join(*state, &b);
	for (int i = 0; i < 4; i++) {
		snprintf(specs[i], sizeof(specs[i]), "{\"slots\":9,\"memory\":%d," FENCE "}",
			 sizes[i]);
		rows[i] = ROW_SPEC(*state, "r", names[i], specs[i]);
	}
	d->create_many(rows, 4);
	for (int i = 0; i < 4; i++) {
		assert_int_equal(rows[i].outcome, OUTCOME_DONE);
		assert_string_equal(rows[i].id, where[i]);
	}
}

static void the_queue_sees_hosts_that_no_run_has(void **state)
{
	struct world *w = *state;
	struct played_host a = {.name = "a"}, b = {.name = "b"};
	struct arena *mem = arena_new();
	struct driver_row row = ROW(*state, "r", "0");
	struct queue_machines m;

	join(w, &a);
	join(w, &b);
	assert_int_equal(ask_one(d->create_many, &row), OUTCOME_DONE);
	resolver_for("hosts")->machines(doc_new(mem, DOC_TABLE), &w->services, false, mem, &m);
	assert_true(m.whole);
	assert_int_equal(m.n, 1);
	assert_string_equal(m.v[0].name, "b");
	assert_int_equal(m.v[0].slots, 1);
	assert_int_equal(m.v[0].has.gpus, 2);
	resolver_for("hosts")->machines(doc_new(mem, DOC_TABLE), &w->services, true, mem, &m);
	assert_int_equal(m.n, 2);
	host_table_left(w->t, &b);
	resolver_for("hosts")->machines(doc_new(mem, DOC_TABLE), &w->services, true, mem, &m);
	assert_int_equal(m.n, 1);
	arena_free(mem);
}

static void processes_are_counted_on_the_smallest_host(void **state)
{
	struct world *w = *state;
	struct played_host a = {.name = "a"};
	struct arena *mem = arena_new();
	struct doc *facts, *options = doc_new(mem, DOC_TABLE);
	struct resolve_input in = {.nodes = 1,
				   .least = 1,
				   .by_gpus = true,
				   .options = options,
				   .services = &w->services};
	struct err err = {0};

	join(w, &a);
	assert_int_equal(driver_resolve("hosts", &in, mem, &facts, &err), 0);
	assert_int_equal(doc_int(facts, "node_gpus", 0), 2);
	doc_set(mem, options, STR("slots"), doc_new_int(mem, 3));
	assert_int_equal(driver_resolve("hosts", &in, mem, &facts, &err), -1);
	assert_int_equal(err.kind, ERR_CAPACITY);
	assert_non_null(strstr(err.msg, "fewer than it has slots"));
	arena_free(mem);
}

static void a_gang_that_cannot_be_complete_holds_nothing(void **state)
{
	struct played_host a = {.name = "a"}, b = {.name = "b"};
	struct driver_row rows[] = {ROW(*state, "r", "0"), ROW(*state, "r", "1"),
				    ROW(*state, "r", "2")};

	join(*state, &a);
	join(*state, &b);
	d->create_many(rows, 3);
	for (int i = 0; i < 3; i++) {
		assert_int_equal(rows[i].outcome, OUTCOME_REFUSED);
		assert_int_equal(rows[i].err.kind, ERR_CAPACITY);
	}
	assert_state(*state, "a", "free", "-");
	assert_state(*state, "b", "free", "-");
	assert_int_equal(a.asked[HOST_CREATE] + b.asked[HOST_CREATE], 0);
	d->create_many(rows, 2);
	assert_int_equal(rows[0].outcome, OUTCOME_DONE);
	assert_int_equal(rows[1].outcome, OUTCOME_DONE);
	assert_string_not_equal(rows[0].id, rows[1].id);
}

static void names_and_labels_choose(void **state)
{
	struct played_host a = {.name = "a", .labels = "{\"gpu\":\"a100\",\"room\":\"1\"}"},
			   b = {.name = "b", .labels = "{\"gpu\":\"h100\"}"}, c = {.name = "c"};
	struct driver_row named = ROW_SPEC(*state, "r", "0", "{\"names\":[\"x\",\"c\"]," FENCE "}"),
			  labelled = ROW_SPEC(*state, "s", "0",
					      "{\"labels\":{\"gpu\":\"h100\"}," FENCE "}"),
			  nobody = ROW_SPEC(*state, "q", "0",
					    "{\"labels\":{\"gpu\":\"a100\",\"room\":\"2\"}," FENCE
					    "}");

	join(*state, &a);
	join(*state, &b);
	join(*state, &c);
	assert_int_equal(ask_one(d->create_many, &named), OUTCOME_DONE);
	assert_string_equal(named.id, "c/77");
	assert_int_equal(ask_one(d->create_many, &labelled), OUTCOME_DONE);
	assert_string_equal(labelled.id, "b/77");
	assert_int_equal(ask_one(d->create_many, &nobody), OUTCOME_REFUSED);
	assert_non_null(strstr(nobody.err.msg, "0 fit"));
}

static void a_host_that_refuses_gets_its_place_back(void **state)
{
	struct played_host h = {.name = "a", .outcome = OUTCOME_REFUSED};
	struct driver_row row = ROW(*state, "r", "n");

	join(*state, &h);
	assert_int_equal(ask_one(d->create_many, &row), OUTCOME_REFUSED);
	assert_string_equal(row.err.msg, "host 'a': the disk is on fire");
	assert_state(*state, "a", "free", "-");
}

static void a_host_that_refused_is_the_last_to_be_asked_again(void **state)
{
	struct played_host a = {.name = "a", .outcome = OUTCOME_REFUSED}, b = {.name = "b"};
	struct driver_row first = ROW(*state, "r", "n"), again = ROW(*state, "r", "n"),
			  next = ROW(*state, "s", "n"), last = ROW(*state, "t", "n");

	join(*state, &a);
	join(*state, &b);
	assert_int_equal(ask_one(d->create_many, &first), OUTCOME_REFUSED);
	assert_int_equal(ask_one(d->create_many, &again), OUTCOME_DONE);
	assert_string_equal(again.id, "b/77");
	assert_int_equal(a.asked[HOST_CREATE], 1);
	/* When there is no other it is asked again. */
	assert_int_equal(ask_one(d->create_many, &next), OUTCOME_REFUSED);
	a.outcome = OUTCOME_DONE;
	assert_int_equal(ask_one(d->create_many, &last), OUTCOME_DONE);
	assert_string_equal(last.id, "a/77");
}

/* As if it had refused so long ago. */
static void refused_ago(struct world *w, const char *host, int64_t ago_ms)
{
	struct known_host *h = map_get(w->t->hosts, str_from(host));

	assert_non_null(h);
	h->refused_ms = clock_boot_ms() - ago_ms;
}

static void five_minutes_after_it_refused_a_host_is_asked_in_its_turn(void **state)
{
	struct world *w = *state;
	struct played_host a = {.name = "a"}, b = {.name = "b"};
	struct driver_row before = ROW(w, "r", "n"), after = ROW(w, "s", "n");

	join(w, &a);
	join(w, &b);
	refused_ago(w, "a", 4 * 60 * 1000);
	assert_int_equal(ask_one(d->create_many, &before), OUTCOME_DONE);
	assert_string_equal(before.id, "b/77");
	assert_int_equal(ask_one(d->destroy_many, &before), OUTCOME_DONE);
	refused_ago(w, "a", 5 * 60 * 1000 + 1);
	assert_int_equal(ask_one(d->create_many, &after), OUTCOME_DONE);
	assert_string_equal(after.id, "a/77");
}

static void assert_forget(struct world *w, const char *name, enum err_kind kind, const char *says)
{
	struct err err = {0};

	assert_int_equal(host_table_forget(w->t, name, &err), -1);
	assert_int_equal(err.kind, kind);
	assert_non_null(strstr(err.msg, says));
}

static void a_host_that_is_gone_can_be_forgotten(void **state)
{
	struct world *w = *state;
	struct played_host h = {.name = "a"};
	struct driver_row row = ROW(*state, "r", "n");
	struct err err = {0};

	join(w, &h);
	assert_forget(w, "b", ERR_NOT_FOUND, "no host 'b'");
	assert_forget(w, "a", ERR_CONFLICT, "is connected");
	assert_int_equal(ask_one(d->create_many, &row), OUTCOME_DONE);
	host_table_left(w->t, &h);
	assert_forget(w, "a", ERR_CONFLICT, "may still have node 'n' of run 'r'");
	assert_state(w, "a", "gone", "r");
	host_table_release(w->t, &(struct host_node){"r", "n", row.incarnation}, 1);
	assert_int_equal(host_table_forget(w->t, "a", &err), 0);
	assert_int_equal(host_table_count(w->t, &(struct host_want){0}).known, 0);
	/* No later master knows it, and it may come back as a new one. */
	host_table_free(w->t);
	open_table(w);
	assert_int_equal(host_table_count(w->t, &(struct host_want){0}).known, 0);
	join(w, &h);
	assert_state(w, "a", "free", "-");
}

/* ---- silence ---- */

static void a_create_without_an_answer_asks_the_same_host_again(void **state)
{
	/* The other one comes first by name. */
	struct played_host a = {.name = "x", .mute = true}, b = {.name = "b"};
	struct driver_row row = row_of(*state, "r", "n",
				       &(struct deadline){clock_boot_ms() + 50, NULL}, SPEC),
			  again = ROW(*state, "r", "n");

	join(*state, &a);
	assert_int_equal(ask_one(d->create_many, &row), OUTCOME_UNSURE);
	assert_string_equal(row.err.msg, "host 'x' did not answer in time");
	join(*state, &b);
	a.mute = false;
	assert_int_equal(ask_one(d->create_many, &again), OUTCOME_DONE);
	assert_string_equal(again.id, "x/77");
	assert_int_equal(b.asked[HOST_CREATE], 0);
}

static void a_silent_host_is_not_gone_until_it_is_fenced(void **state)
{
	struct world *w = *state;
	struct played_host h = {.name = "a"};
	struct driver_row row = ROW(w, "r", "n"), fenced = ROW_SPEC(w, "r", "n", FENCED_LONG_AGO);

	join(w, &h);
	assert_int_equal(ask_one(d->create_many, &row), OUTCOME_DONE);
	assert_true(host_table_left(w->t, &h));
	assert_state(w, "a", "gone", "r");
	assert_int_equal(ask_one(d->observe_many, &row), OUTCOME_UNSURE);
	assert_int_equal(ask_one(d->find_many, &row), OUTCOME_UNSURE);
	assert_int_equal(ask_one(d->destroy_many, &row), OUTCOME_UNSURE);
	assert_false(row.identity_checked);
	assert_non_null(strstr(row.err.msg, "host 'a' has been silent"));
	assert_non_null(strstr(row.err.msg, "its job must have ended in"));
	assert_int_equal(ask_one(d->destroy_many, &fenced), OUTCOME_ABSENT);
	assert_true(fenced.identity_checked);
	assert_state(w, "a", "gone", "-");
}

static void a_silent_host_is_waited_for_to_the_last_millisecond(void **state)
{
	struct world *w = *state;
	struct played_host h = {.name = "a"};
	struct driver_row row = row_of(w, "r", "n", NULL, SPEC);

	stopped_ms = 1000000;
	join(w, &h);
	assert_int_equal(ask_one(d->create_many, &row), OUTCOME_DONE);
	host_table_left(w->t, &h);
	stopped_ms += 999;
	assert_int_equal(ask_one(d->observe_many, &row), OUTCOME_UNSURE);
	stopped_ms += 1;
	assert_int_equal(ask_one(d->observe_many, &row), OUTCOME_ABSENT);
}

/* Rule: only its agent is gone; the job may run there, and is found there by the next agent. */
static void a_broken_node_keeps_its_host(void **state)
{
	struct world *w = *state;
	struct played_host h = {.name = "a"};
	struct driver_row row = ROW(w, "r", "n");

	join(w, &h);
	assert_int_equal(ask_one(d->create_many, &row), OUTCOME_DONE);
	h.outcome = OUTCOME_BROKEN;
	assert_int_equal(ask_one(d->observe_many, &row), OUTCOME_BROKEN);
	assert_state(w, "a", "busy", "r");
}

static void each_question_gets_its_own_answer(void **state)
{
	static const char two[] = "{" FENCE ",\"slots\":2}";
	struct world *w = *state;
	struct played_host h = {.name = "a"};
	struct driver_row rows[] = {ROW_SPEC(w, "r", "n", two), ROW_SPEC(w, "r", "m", two)};

	last_first = true;
	join(w, &h);
	d->create_many(rows, 2);
	assert_string_equal(rows[0].id, "a/n");
	assert_string_equal(rows[1].id, "a/m");
}

static void a_node_that_was_heard_later_than_its_host_counts_from_there(void **state)
{
	struct world *w = *state;
	struct played_host h = {.name = "a"};
	struct driver_row row = ROW_SPEC(w, "r", "n", "{\"fence_ms\":40}");

	join(w, &h);
	assert_int_equal(ask_one(d->create_many, &row), OUTCOME_DONE);
	host_table_left(w->t, &h);
	poll(NULL, 0, 60);
	row.heard_ms = clock_boot_ms();
	assert_int_equal(ask_one(d->observe_many, &row), OUTCOME_UNSURE);
	row.heard_ms = 1;
	assert_int_equal(ask_one(d->observe_many, &row), OUTCOME_ABSENT);
}

/* The table is not told of each frame: it reads when the connection was heard, up to its end. */
static void the_last_word_of_a_host_outlives_its_connection(void **state)
{
	const struct host_node node = {"r", "n", 1};
	char name[HOST_NAME_MAX_LEN];
	struct world *w = *state;
	struct played_host h = {.name = "a"};
	struct driver_row row = ROW(w, "r", "n");
	int64_t heard_ms;

	stopped_ms = 1000000;
	join(w, &h);
	assert_int_equal(ask_one(d->create_many, &row), OUTCOME_DONE);
	h.heard_ms = 1000400;
	assert_int_equal(host_table_place(w->t, &node, name, &heard_ms), HOST_CONNECTED);
	assert_int_equal(heard_ms, 1000400);
	h.heard_ms = 1000500;
	assert_true(host_table_left(w->t, &h));
	h.heard_ms = 0;
	assert_int_equal(host_table_place(w->t, &node, name, &heard_ms), HOST_SILENT);
	assert_int_equal(heard_ms, 1000500);
}

/* A machine that died without a word: its connection is not known to be dead yet. */
static void a_host_that_does_not_answer_is_not_waited_for_when_its_node_is_fenced(void **state)
{
	struct world *w = *state;
	struct played_host a = {.name = "a"}, b = {.name = "b"};
	struct driver_row row = ROW(w, "r", "n"), next = ROW(w, "r", "n");

	join(w, &a);
	join(w, &b);
	assert_int_equal(ask_one(d->create_many, &row), OUTCOME_DONE);
	assert_string_equal(row.id, "a/77");
	a.mute = true;
	row.heard_ms = clock_boot_ms();
	assert_int_equal(ask_one(d->observe_many, &row), OUTCOME_ABSENT);
	assert_true(row.identity_checked);
	assert_true(clock_boot_ms() - row.heard_ms >= 1000);
	/* What may be left there is a stray, and the host is not free. */
	assert_state(w, "a", "busy", "r");
	next.incarnation = 2;
	assert_int_equal(ask_one(d->create_many, &next), OUTCOME_DONE);
	assert_string_equal(next.id, "b/77");
	a.mute = false;
	host_table_sweep(w->t);
	assert_int_equal(a.asked[HOST_DESTROY], 1);
	assert_state(w, "a", "free", "-");
}

static void a_node_that_was_never_heard_is_waited_for(void **state)
{
	struct world *w = *state;
	struct played_host a = {.name = "a"};
	struct driver_row row =
		row_of(w, "r", "n", &(struct deadline){clock_boot_ms() + 1500, NULL}, SPEC);

	join(w, &a);
	assert_int_equal(ask_one(d->create_many, &row), OUTCOME_DONE);
	a.mute = true;
	assert_int_equal(ask_one(d->observe_many, &row), OUTCOME_UNSURE);
	assert_string_equal(row.err.msg, "host 'a' did not answer in time");
	assert_state(w, "a", "busy", "r");
}

static void what_a_host_was_told_in_vain_is_unsure_when_it_leaves(void **state)
{
	struct world *w = *state;
	struct played_host h = {.name = "a"};
	struct driver_row row = ROW(w, "r", "n");

	join(w, &h);
	assert_int_equal(ask_one(d->create_many, &row), OUTCOME_DONE);
	h.outcome = OUTCOME_HELD;
	assert_int_equal(ask_one(d->destroy_many, &row), OUTCOME_HELD);
	assert_state(w, "a", "busy", "r");
	h.outcome = OUTCOME_ABSENT;
	assert_int_equal(ask_one(d->find_many, &row), OUTCOME_ABSENT);
	assert_true(row.identity_checked);
	assert_state(w, "a", "free", "-");
}

static void a_node_that_was_never_reserved_is_absent(void **state)
{
	struct driver_row row = ROW(*state, "r", "n");

	assert_int_equal(ask_one(d->find_many, &row), OUTCOME_ABSENT);
	assert_true(row.identity_checked);
}

/* ---- joining ---- */

static void two_hosts_of_one_name_are_told_apart(void **state)
{
	struct world *w = *state;
	struct played_host h = {.name = "a"}, impostor = {.name = "a"}, again = {.name = "a"};
	struct driver_row row = ROW(w, "r", "n");
	struct err err = {0};

	join(w, &h);
	assert_int_equal(try_join(w, &impostor, "another", &err), -1);
	assert_int_equal(err.kind, ERR_CONFLICT);
	assert_non_null(strstr(err.msg, "another host named 'a' has joined from 10.0.0.1"));
	/* The same one may dial again before its old connection is known to be dead. */
	join(w, &again);
	assert_false(host_table_left(w->t, &h));
	assert_int_equal(ask_one(d->create_many, &row), OUTCOME_DONE);
	assert_int_equal(again.asked[HOST_CREATE], 1);
	/* Gone, with a node of a run: nobody else takes its name. */
	host_table_left(w->t, &again);
	assert_int_equal(try_join(w, &impostor, "another", &err), -1);
	assert_non_null(strstr(err.msg, "has node 'n' of run 'r'"));
}

static void what_nobody_reserved_is_swept(void **state)
{
	struct world *w = *state;
	struct played_host h = {.name = "a"};
	struct host_node had[] = {{"old", "n", 1}, {"r", "n", 1}};
	struct driver_row row = ROW(w, "r", "n"),
			  other = ROW_SPEC(w, "old", "m", "{\"slots\":2," FENCE "}");

	join(w, &h);
	assert_int_equal(ask_one(d->create_many, &row), OUTCOME_DONE);
	h.outcome = OUTCOME_HELD;
	host_table_has(w->t, &h, had, 2);
	assert_int_equal(h.asked[HOST_DESTROY], 1);
	h.outcome = OUTCOME_DONE;
	assert_int_equal(ask_one(d->destroy_many, &row), OUTCOME_DONE);
	/* The stray is still there: the host is not free. */
	assert_state(w, "a", "busy", "old");
	assert_int_equal(ask_one(d->create_many, &other), OUTCOME_REFUSED);
	host_table_has(w->t, &h, had, 1);
	assert_string_equal(h.last_node, "n");
	assert_state(w, "a", "free", "-");
}

static void a_stray_that_stays_is_deleted_again_but_not_at_once(void **state)
{
	struct world *w = *state;
	struct played_host h = {.name = "a"};
	struct host_node had[] = {{"old", "n", 1}};

	stopped_ms = 1000000;
	join(w, &h);
	h.outcome = OUTCOME_HELD;
	host_table_has(w->t, &h, had, 1);
	assert_int_equal(h.asked[HOST_DESTROY], 1);
	stopped_ms += 1999;
	host_table_sweep(w->t);
	assert_int_equal(h.asked[HOST_DESTROY], 1);
	h.outcome = OUTCOME_DONE;
	stopped_ms++;
	host_table_sweep(w->t);
	assert_int_equal(h.asked[HOST_DESTROY], 2);
	assert_state(w, "a", "free", "-");
}

/* Its daemon dialled again: nobody will answer on the connection before. */
static void a_question_on_a_connection_that_was_replaced_is_over(void **state)
{
	struct world *w = *state;
	struct played_host h = {.name = "a"}, again = {.name = "a"};
	struct driver_row row = ROW(w, "r", "n");

	join(w, &h);
	assert_int_equal(ask_one(d->create_many, &row), OUTCOME_DONE);
	h.mute = true;
	successor = &again;
	assert_int_equal(ask_one(d->observe_many, &row), OUTCOME_UNSURE);
	assert_string_equal(row.err.msg, "host 'a' left before it answered");
	assert_int_equal(ask_one(d->observe_many, &row), OUTCOME_DONE);
	assert_int_equal(again.asked[HOST_OBSERVE], 1);
}

static void an_older_incarnation_is_a_stray(void **state)
{
	struct world *w = *state;
	struct played_host h = {.name = "a"};
	struct host_node had[] = {{"r", "n", 1}};
	struct driver_row row = ROW(w, "r", "n");

	row.incarnation = 2;
	join(w, &h);
	assert_int_equal(ask_one(d->create_many, &row), OUTCOME_DONE);
	host_table_has(w->t, &h, had, 1);
	assert_int_equal(h.asked[HOST_DESTROY], 1);
	assert_state(w, "a", "busy", "r");
}

static void a_place_that_nobody_gave_back_is_swept_when_the_next_is_asked_for(void **state)
{
	struct world *w = *state;
	struct played_host a = {.name = "a"}, b = {.name = "b"};
	struct driver_row row = ROW(w, "r", "n");

	join(w, &a);
	assert_int_equal(ask_one(d->create_many, &row), OUTCOME_DONE);
	join(w, &b);
	row.incarnation = 2;
	assert_int_equal(ask_one(d->create_many, &row), OUTCOME_DONE);
	assert_string_equal(row.id, "b/77");
	host_table_sweep(w->t);
	assert_state(w, "a", "free", "-");
}

/* ---- a restart of the master ---- */

static void a_reservation_survives_a_restart(void **state)
{
	struct world *w = *state;
	struct played_host a = {.name = "a", .labels = "{\"gpu\":\"x\"}"}, b = {.name = "b"};
	struct driver_row row = ROW(w, "r", "n"), other = ROW(w, "q", "n");
	struct host_node had[] = {{"r", "n", 1}};

	join(w, &a);
	assert_int_equal(ask_one(d->create_many, &row), OUTCOME_DONE);
	host_table_free(w->t);
	open_table(w);
	assert_state(w, "a", "gone", "r");
	assert_int_equal(ask_one(d->find_many, &row), OUTCOME_UNSURE);
	join(w, &b);
	join(w, &a);
	host_table_has(w->t, &a, had, 1);
	assert_int_equal(a.asked[HOST_DESTROY], 0);
	assert_int_equal(ask_one(d->find_many, &row), OUTCOME_DONE);
	assert_int_equal(ask_one(d->create_many, &other), OUTCOME_DONE);
	assert_string_equal(other.id, "b/77");
}

static void the_reservation_of_a_run_that_is_over_does_not(void **state)
{
	struct world *w = *state;
	struct played_host a = {.name = "a"};
	struct driver_row row = ROW(w, "r", "n");

	join(w, &a);
	assert_int_equal(ask_one(d->create_many, &row), OUTCOME_DONE);
	host_table_free(w->t);
	all_active = false;
	open_table(w);
	assert_state(w, "a", "gone", "-");
}

/* ---- before a run is planned ---- */

static int resolve(struct world *w, int nodes, const char *options, struct err *err)
{
	struct arena *a = arena_new();
	struct doc *o = NULL, *facts;

	assert_int_equal(json_parse(str_from(options), a, &o, NULL), 0);
	struct resolve_input in = {
		.nodes = nodes + 5, .least = nodes, .options = o, .services = &w->services};
	int rc = driver_resolve("hosts", &in, a, &facts, err);

	arena_free(a);
	return rc;
}

static void a_job_that_can_never_run_is_refused_when_it_is_submitted(void **state)
{
	struct world *w = *state;
	struct played_host h = {.name = "a", .labels = "{\"gpu\":\"x\"}"};
	struct err err = {0};

	assert_int_equal(resolve(w, 1, "{}", &err), -1);
	assert_non_null(strstr(err.msg, "no host has joined"));
	join(w, &h);
	assert_int_equal(resolve(w, 1, "{}", &err), 0);
	assert_int_equal(resolve(w, 1, "{\"labels\":{\"gpu\":\"y\"}}", &err), -1);
	assert_int_equal(err.kind, ERR_INVALID);
	assert_non_null(strstr(err.msg, "'regatta hosts' lists theirs"));
	assert_int_equal(resolve(w, 1, "{\"names\":[\"b\"]}", &err), -1);
	assert_int_equal(resolve(w, 2, "{}", &err), -1);
	assert_int_equal(err.kind, ERR_CAPACITY);
	assert_non_null(strstr(err.msg, "2 nodes do not fit on 1 host with 1 node each"));
	assert_int_equal(resolve(w, 2, "{\"slots\":2}", &err), 0);
	host_table_left(w->t, &h); /* it may come back: the run waits */
	assert_int_equal(resolve(w, 1, "{}", &err), 0);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, make, drop)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_node_takes_a_free_host_and_gives_it_back),
		TEST(whoever_waits_for_a_host_is_told_when_one_is_given_back),
		TEST(a_reservation_that_cannot_be_stored_is_none),
		TEST(one_host_is_not_given_twice),
		TEST(a_host_that_has_not_said_what_it_has_is_not_taken),
		TEST(slots_let_nodes_of_one_run_share_a_host),
		TEST(questions_go_out_some_at_a_time),
		TEST(nodes_share_a_host_only_while_it_has_what_they_take),
		TEST(a_host_with_less_memory_than_before_takes_no_more),
		TEST(nodes_of_different_sizes_fill_their_hosts),
		TEST(the_queue_sees_hosts_that_no_run_has),
		TEST(processes_are_counted_on_the_smallest_host),
		TEST(a_gang_that_cannot_be_complete_holds_nothing),
		TEST(names_and_labels_choose),
		TEST(a_host_that_refuses_gets_its_place_back),
		TEST(a_host_that_refused_is_the_last_to_be_asked_again),
		TEST(five_minutes_after_it_refused_a_host_is_asked_in_its_turn),
		TEST(a_host_that_is_gone_can_be_forgotten),
		TEST(a_create_without_an_answer_asks_the_same_host_again),
		TEST(a_silent_host_is_not_gone_until_it_is_fenced),
		TEST(a_silent_host_is_waited_for_to_the_last_millisecond),
		TEST(a_broken_node_keeps_its_host),
		TEST(each_question_gets_its_own_answer),
		TEST(a_node_that_was_heard_later_than_its_host_counts_from_there),
		TEST(the_last_word_of_a_host_outlives_its_connection),
		TEST(a_host_that_does_not_answer_is_not_waited_for_when_its_node_is_fenced),
		TEST(a_node_that_was_never_heard_is_waited_for),
		TEST(what_a_host_was_told_in_vain_is_unsure_when_it_leaves),
		TEST(a_node_that_was_never_reserved_is_absent),
		TEST(two_hosts_of_one_name_are_told_apart),
		TEST(what_nobody_reserved_is_swept),
		TEST(a_stray_that_stays_is_deleted_again_but_not_at_once),
		TEST(a_question_on_a_connection_that_was_replaced_is_over),
		TEST(an_older_incarnation_is_a_stray),
		TEST(a_place_that_nobody_gave_back_is_swept_when_the_next_is_asked_for),
		TEST(a_reservation_survives_a_restart),
		TEST(the_reservation_of_a_run_that_is_over_does_not),
		TEST(a_job_that_can_never_run_is_refused_when_it_is_submitted),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
