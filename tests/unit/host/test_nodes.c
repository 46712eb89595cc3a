/* What a host does for its master: names that come from there are parts of paths here. */
#include "unit.h"

#include <string.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "base/file.h"
#include "base/path.h"
#include "driver/driver.h"
#include "host/internal.h"
#include "link/frame.h"
#include "link/layout.h"
#include "sys/worker.h"

#define HALF "a234567890123456789012345678901234567890123456789012345678901234"

static int begun, answers;
static struct message_host_answer last;
static char said[64];

void __wrap_workers_submit(struct workers *w, work_fn work, work_done_fn done, void *arg,
			   int limit_ms);
void __wrap_host_link_send(struct host_daemon *h, enum frame_type type, const struct buf *payload);

/* The work that waits in the test, if `holds`. */
static bool holds;
static struct {
	work_fn work;
	work_done_fn done;
	void *arg;
} held;

/* Instead of driver/local. */
static enum outcome observed;
static int created, destroyed;
const struct driver *__wrap_driver_for(const char *kind);

static enum outcome create(struct driver_row *row)
{
	(void)row;
	created++;
	return OUTCOME_DONE;
}

static enum outcome observe(struct driver_row *row)
{
	(void)row;
	return observed;
}

static enum outcome destroy(struct driver_row *row)
{
	(void)row;
	destroyed++;
	return OUTCOME_DONE;
}

const struct driver *__wrap_driver_for(const char *kind)
{
	static const struct driver played = {
		.create = create, .observe = observe, .destroy = destroy};

	assert_string_equal(kind, "local.node");
	return &played;
}

/* Counted, and dropped as if the daemon left.  Without `done` it is about the trash. */
void __wrap_workers_submit(struct workers *w, work_fn work, work_done_fn done, void *arg,
			   int limit_ms)
{
	(void)w, (void)limit_ms;
	if (!done)
		return;
	begun++;
	held.work = work;
	held.done = done;
	held.arg = arg;
	if (!holds)
		done(arg, ERR_CANCELLED);
}

void __wrap_host_link_send(struct host_daemon *h, enum frame_type type, const struct buf *payload)
{
	CLEANUP(arena_freep) struct arena *a = arena_new();
	struct err err = {0};

	(void)h;
	assert_int_equal(type, FRAME_HOST_ANSWER);
	assert_int_equal(message_host_answer_get(buf_str(payload), a, &last, &err), 0);
	snprintf(said, sizeof(said), "%s", last.text);
	answers++;
}

static void ask(void **state, const char *run, const char *node)
{
	const struct host_options o = {.url = "https://10.0.0.5:5436", .pin = "sha256//x"};
	struct host_daemon h = {.o = &o, .dir = *state};

	begun = answers = 0;
	list_init(&h.asks);
	host_nodes_ask(&h, &(struct message_host_ask){.no = 7,
						      .op = HOST_DESTROY,
						      .run = run,
						      .node = node,
						      .incarnation = 1,
						      .token = "",
						      .id = "",
						      .limit_ms = 1000});
	assert_true(list_empty(&h.asks));
}

static void a_name_that_leads_elsewhere_is_refused_and_nothing_is_done(void **state)
{
	static const char *const bad[] = {"",	"..",  "../x", "/etc", "a/b",
					  ".a", "a b", "a\n",  "é",    HALF HALF "5"};

	for (size_t i = 0; i < 2 * sizeof(bad) / sizeof(bad[0]); i++) {
		const char *name = bad[i / 2];

		ask(state, i % 2 ? name : "ctr-abcd", i % 2 ? "worker-0" : name);
		assert_int_equal(begun, 0);
		assert_int_equal(answers, 1);
		assert_int_equal(last.no, 7);
		assert_int_equal(last.outcome, OUTCOME_REFUSED);
		assert_int_equal(last.kind, ERR_INVALID);
		assert_string_equal(said, "the name of the run or node is not valid");
	}
}

static void names_of_runs_and_nodes_are_taken(void **state)
{
	ask(state, "ctr-abcd", "worker-0");
	assert_int_equal(begun, 1);
	assert_int_equal(answers, 0); /* the work has not been done */
	ask(state, "A.b_c-9", HALF HALF);
	assert_int_equal(begun, 1);
}

/* Rule: the number of a question means another one on the next connection, perhaps of another master. */
static void what_a_lost_connection_asked_is_neither_done_nor_answered(void **state)
{
	const struct host_options o = {.url = "https://10.0.0.5:5436", .pin = "sha256//x"};
	struct host_daemon h = {.o = &o, .dir = *state};

	begun = answers = created = 0;
	list_init(&h.asks);
	holds = true;
	host_nodes_ask(&h, &(struct message_host_ask){.no = 1,
						      .op = HOST_CREATE,
						      .run = "r",
						      .node = "n",
						      .token = "t",
						      .id = "",
						      .limit_ms = 1000});
	holds = false;
	assert_int_equal(begun, 1);
	host_nodes_drop(&h);
	held.work(held.arg, NULL);
	assert_int_equal(created, 0);
	held.done(held.arg, ERR_NONE);
	assert_int_equal(answers, 0);
	assert_true(list_empty(&h.asks));
}

/* Rule: a node whose agent lives has a lease of its own, however long its master has been away. */
static void only_nodes_without_an_agent_expire(void **state)
{
	const struct host_options o = {.url = "https://10.0.0.5:5436", .pin = "sha256//x"};
	CLEANUP(freep)
	char *node = xasprintf("%s/" LAYOUT_RUNS "/r/0/n" LAYOUT_NODE_SUFFIX, (char *)*state);
	struct host_daemon h = {.o = &o, .dir = *state};

	assert_int_equal(file_mkdir_p(node, 0700, NULL), 0);
	for (int i = 0; i < 2; i++) {
		begun = destroyed = 0;
		observed = i ? OUTCOME_BROKEN : OUTCOME_DONE;
		list_init(&h.asks);
		holds = true;
		host_nodes_expire(&h);
		holds = false;
		assert_int_equal(begun, 1);
		held.work(held.arg, NULL);
		assert_int_equal(destroyed, i);
		held.done(held.arg, ERR_NONE);
	}
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, unit_make_dir, unit_remove_dir)
	const struct CMUnitTest tests[] = {
		TEST(a_name_that_leads_elsewhere_is_refused_and_nothing_is_done),
		TEST(names_of_runs_and_nodes_are_taken),
		TEST(what_a_lost_connection_asked_is_neither_done_nor_answered),
		TEST(only_nodes_without_an_agent_expire),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
