/* What a host does for its master: names that come from there are parts of paths here. */
#include "unit.h"

#include <string.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "driver/driver.h"
#include "host/internal.h"
#include "link/frame.h"
#include "sys/worker.h"

#define HALF "a234567890123456789012345678901234567890123456789012345678901234"

static int begun, answers;
static struct message_host_answer last;
static char said[64];

void __wrap_workers_submit(struct workers *w, work_fn work, work_done_fn done, void *arg,
			   int limit_ms);
void __wrap_host_link_send(struct host_daemon *h, enum frame_type type, const struct buf *payload);

/* Counted, and dropped as if the daemon left.  Without `done` it is about the trash. */
void __wrap_workers_submit(struct workers *w, work_fn work, work_done_fn done, void *arg,
			   int limit_ms)
{
	(void)w, (void)work, (void)limit_ms;
	if (!done)
		return;
	begun++;
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

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, unit_make_dir, unit_remove_dir)
	const struct CMUnitTest tests[] = {
		TEST(a_name_that_leads_elsewhere_is_refused_and_nothing_is_done),
		TEST(names_of_runs_and_nodes_are_taken),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
