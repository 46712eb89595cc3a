/* A log that was cut says so, once. */
#include "store_fixture.h"

#include <unistd.h>

#include "base/file.h"
#include "store/log_cut.h"

static void write_log(void **state, const char *text)
{
	struct err err;

	assert_ok(file_write(unit_path(state, "n.log"), str_from(text), 0600, &err), &err);
}

static void assert_log(void **state, const char *text)
{
	CLEANUP(buf_release) struct buf b = {0};
	struct err err;

	buf_init(&b, 1 << 12);
	assert_ok(file_read(unit_path(state, "n.log"), &b, &err), &err);
	assert_true(str_is(buf_str(&b), text));
}

#define LINE "[regatta: 7 bytes not stored: limit 4 bytes of output.max_log]\n"

static void the_log_ends_with_what_is_missing(void **state)
{
	struct err err;

	write_log(state, "abc\n");
	assert_ok(log_cut_end(*state, "n.log", 4, 11, &err), &err);
	assert_log(state, "abc\n" LINE);
	/* Again, after a crash. */
	assert_ok(log_cut_end(*state, "n.log", 4, 11, &err), &err);
	assert_log(state, "abc\n" LINE);
	assert_int_equal(log_cut_missing(*state, "n.log"), 7);
	assert_int_equal(log_cut_received(*state, "n.log", 99), 11);
}

static void the_line_is_one_of_its_own(void **state)
{
	struct err err;

	write_log(state, "abcd");
	assert_ok(log_cut_end(*state, "n.log", 4, 11, &err), &err);
	assert_log(state, "abcd\n" LINE);
}

static void a_note_leaves_the_log_alone(void **state)
{
	struct err err;

	write_log(state, "abcd");
	assert_ok(log_cut_note(*state, "n.log", 4, 6, &err), &err);
	assert_log(state, "abcd");
	assert_int_equal(log_cut_missing(*state, "n.log"), 2);
	assert_ok(log_cut_end(*state, "n.log", 4, 11, &err), &err);
	assert_int_equal(log_cut_missing(*state, "n.log"), 7);
}

static void a_log_without_a_cut_is_whole(void **state)
{
	struct err err;

	write_log(state, "abcd");
	assert_int_equal(log_cut_missing(*state, "n.log"), 0);
	assert_int_equal(log_cut_received(*state, "n.log", 4), 4);
	/* A file that nobody can read counts as none. */
	assert_ok(file_write(unit_path(state, "n.log.cut"), STR("9 3\n"), 0600, &err), &err);
	assert_int_equal(log_cut_missing(*state, "n.log"), 0);
	assert_ok(file_write(unit_path(state, "n.log.cut"), STR("nine"), 0600, &err), &err);
	assert_int_equal(log_cut_received(*state, "n.log", 4), 4);
}

int main(void)
{
#define T(fn) cmocka_unit_test_setup_teardown(fn, unit_make_dir, unit_remove_dir)
	const struct CMUnitTest tests[] = {
		T(the_log_ends_with_what_is_missing),
		T(the_line_is_one_of_its_own),
		T(a_note_leaves_the_log_alone),
		T(a_log_without_a_cut_is_whole),
	};

	return cmocka_run_group_tests_name("log_cut", tests, NULL, NULL);
}
