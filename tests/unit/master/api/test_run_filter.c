/* Which runs a query asks for. */
#include "unit.h"

#include <string.h>

#include "base/arena.h"
#include "base/err.h"
#include "core/core.h"
#include "fmt/url.h"
#include "master/api/run_filter.h"
#include "store/store.h"

static struct arena *arena;

static int setup(void **state)
{
	(void)state;
	arena = arena_new();
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	arena = arena_free(arena);
	return 0;
}

static int reads(const char *query, struct run_filter *f, struct err *err)
{
	struct url_query q;

	assert_true(query_parse(str_from(query), arena, &q));
	return run_filter_read(&q, arena, f, err);
}

static bool fits(const char *query)
{
	const struct run_row row = {.id = "net-abcd",
				    .name = "net",
				    .engine = "aws.ec2",
				    .tags = "[\"a\",\"b:1\"]",
				    .phase = RUN_FAILED,
				    .created_ms = 1000};
	struct run_filter f;

	assert_int_equal(reads(query, &f, NULL), 0);
	return run_filter_fits(&f, &row);
}

static void every_part_of_a_query_must_fit(void **state)
{
	(void)state;
	assert_true(fits(""));
	assert_true(fits("state=failed"));
	assert_true(fits("state=ended"));
	assert_true(fits("state=succeeded,failed"));
	assert_false(fits("state=active"));
	assert_false(fits("state=succeeded"));
	assert_true(fits("name=n*"));
	assert_true(fits("name=net-abcd"));
	assert_false(fits("name=ne"));
	assert_true(fits("engine=aws.*"));
	assert_false(fits("engine=local"));
	assert_true(fits("tag=a&tag=b%3A1"));
	assert_false(fits("tag=a&tag=c"));
	assert_false(fits("tag=b"));
	assert_true(fits("since=1000"));
	assert_false(fits("since=1001"));
	assert_false(fits("state=failed&name=net&tag=c"));
}

/* Rule: only what asks for nothing but active or all runs may count rows for runs. */
static void a_filter_says_whether_it_leaves_out_rows(void **state)
{
	struct run_filter f;

	(void)state;
	assert_int_equal(reads("", &f, NULL), 0);
	assert_true(!f.any && !f.active);
	assert_int_equal(reads("state=active", &f, NULL), 0);
	assert_true(!f.any && f.active);
	assert_int_equal(reads("state=running", &f, NULL), 0);
	assert_true(f.any && f.active);
	assert_int_equal(reads("state=running,failed", &f, NULL), 0);
	assert_true(f.any && !f.active);
	assert_int_equal(reads("state=active&tag=a", &f, NULL), 0);
	assert_true(f.any && f.active);
}

static void a_wrong_word_is_named(void **state)
{
	struct run_filter f;
	struct err err;

	(void)state;
	assert_int_equal(reads("state=failed,", &f, &err), -1);
	assert_int_equal(reads("state=dead", &f, &err), -1);
	assert_non_null(strstr(err.msg, "there is no state 'dead': all, active, ended"));
	assert_int_equal(reads("since=2d", &f, &err), -1);
	assert_string_equal(err.msg, "'since' must be a Unix time in milliseconds");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_part_of_a_query_must_fit),
		cmocka_unit_test(a_filter_says_whether_it_leaves_out_rows),
		cmocka_unit_test(a_wrong_word_is_named),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
