/* The timer of a machine that was made for a run; `shutdown` is a script that writes down how it was called. */
#include "unit.h"

#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/file.h"
#include "base/path.h"
#include "sys/off_timer.h"

#define HOUR_MS (60LL * 60 * 1000)
#define CALLED_MS 10000

static char dir[] = "/tmp/regatta-test-XXXXXX";

static int setup(void **state)
{
	CLEANUP(freep) char *script = NULL;
	char path[256];

	(void)state;
	assert_non_null(mkdtemp(dir));
	script = path_join(dir, "shutdown");
	static const char text[] =
		"#!/bin/sh\necho \"$@\" >${0%/*}/new && mv ${0%/*}/new ${0%/*}/called\n";

	assert_int_equal(file_write_atomic(script, STR(text), 0755, false, NULL), 0);
	snprintf(path, sizeof(path), "%s:/usr/bin:/bin", dir);
	return setenv("PATH", path, 1);
}

static int teardown(void **state)
{
	static const char *const files[] = {"shutdown", "called", "expires"};

	(void)state;
	for (size_t i = 0; i < 3; i++) {
		CLEANUP(freep) char *path = path_join(dir, files[i]);

		unlink(path);
	}
	return rmdir(dir);
}

/* What `shutdown` was called with. */
static void called(struct buf *out)
{
	CLEANUP(freep) char *path = path_join(dir, "called");
	int64_t until = clock_boot_ms() + CALLED_MS;

	while (!file_exists(path) && clock_boot_ms() < until)
		usleep(2000);
	buf_init(out, 256);
	assert_int_equal(file_read(path, out, NULL), 0);
	unlink(path);
}

static void the_time_is_in_the_file_and_the_timer_is_armed_for_it(void **state)
{
	CLEANUP(freep) char *file = path_join(dir, "expires");
	CLEANUP(buf_release) struct buf text = {0}, args = {0};
	int64_t at_ms = clock_wall_ms() + 2 * HOUR_MS + 30000, at = 0;

	(void)state;
	assert_int_equal(off_timer_set(file, at_ms, NULL), 0);
	called(&args);
	assert_string_equal(buf_str(&args).p, "-h +120\n");
	buf_init(&text, 64);
	assert_int_equal(file_read(file, &text, NULL), 0);
	assert_true(str_to_i64(str_trim(buf_str(&text)), &at));
	assert_int_equal(at, at_ms / 1000);
}

static void a_time_that_is_past_is_a_minute_from_now(void **state)
{
	CLEANUP(freep) char *file = path_join(dir, "expires");
	CLEANUP(buf_release) struct buf args = {0};

	(void)state;
	assert_int_equal(off_timer_set(file, 1000, NULL), 0);
	called(&args);
	assert_string_equal(buf_str(&args).p, "-h +1\n");
}

/* Otherwise a machine that boots again would switch itself off. */
static void without_the_file_the_timer_stays(void **state)
{
	CLEANUP(freep) char *file = path_join(dir, "missing/expires");
	CLEANUP(freep) char *flag = path_join(dir, "called");
	struct err err = {0};

	(void)state;
	assert_int_equal(off_timer_set(file, clock_wall_ms() + HOUR_MS, &err), -1);
	assert_non_null(strstr(err.msg, "missing/expires"));
	assert_false(file_exists(flag));
}

static void now_is_now(void **state)
{
	CLEANUP(buf_release) struct buf args = {0};

	(void)state;
	assert_int_equal(off_now(NULL), 0);
	called(&args);
	assert_string_equal(buf_str(&args).p, "-h now\n");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_time_is_in_the_file_and_the_timer_is_armed_for_it),
		cmocka_unit_test(a_time_that_is_past_is_a_minute_from_now),
		cmocka_unit_test(without_the_file_the_timer_stays),
		cmocka_unit_test(now_is_now),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
