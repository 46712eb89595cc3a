/* When the bytes of a log arrived is known as well as its file tells, and never in the way. */
#include "store_fixture.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "store/log_times.h"
#include "store/logfile.h"

#define RECORD 36
#define T0 INT64_C(1731859200000)

static void grow(struct log_times *t, void **state, uint64_t size, int64_t ms)
{
	log_times_grow(t, *state, "n.log", size, ms);
}

static int64_t file_size(void **state)
{
	struct stat sb;

	return stat(unit_path(state, "n.log.times"), &sb) == 0 ? sb.st_size : -1;
}

static void assert_time(void **state, uint64_t pos, int64_t ms, uint64_t end)
{
	struct log_times_reader r;
	uint64_t until;

	log_times_reader_init(&r, *state, "n.log", pos);
	assert_int_equal(log_times_at(&r, *state, "n.log", pos, &until), ms);
	assert_int_equal(until, end);
	log_times_reader_release(&r);
}

static uint64_t since(void **state, uint64_t size, int64_t ms)
{
	return log_times_find(*state, "n.log", size, ms);
}

/* 100 bytes each at 0, 1000 and 2000 ms. */
static void three(struct log_times *t, void **state)
{
	for (int i = 0; i < 3; i++)
		grow(t, state, (uint64_t)i * 100, T0 + (int64_t)i * 1000);
}

static void every_byte_has_the_time_of_its_record(void **state)
{
	struct log_times t = {0};

	three(&t, state);
	assert_time(state, 0, T0, 100);
	assert_time(state, 99, T0, 100);
	assert_time(state, 100, T0 + 1000, 200);
	assert_time(state, 250, T0 + 2000, UINT64_MAX);
	struct stat sb;
	assert_int_equal(stat(unit_path(state, "n.log.times"), &sb), 0);
	assert_int_equal(sb.st_mode & 0777, 0600);
}

static void since_is_the_first_byte_that_is_new_enough(void **state)
{
	struct log_times t = {0};

	three(&t, state);
	assert_int_equal(since(state, 300, T0), 0);
	assert_int_equal(since(state, 300, T0 + 1), 100);
	assert_int_equal(since(state, 300, T0 + 1000), 100);
	assert_int_equal(since(state, 300, T0 + 2000), 200);
	assert_int_equal(since(state, 300, T0 + 2001), 300);
}

static void bytes_of_unknown_time_are_new_enough(void **state)
{
	struct log_times t = {0};

	assert_int_equal(since(state, 300, T0), 0);
	assert_time(state, 7, LOG_TIME_UNKNOWN, UINT64_MAX);
	/* Output that an older version stored. */
	grow(&t, state, 50, T0);
	assert_time(state, 7, LOG_TIME_UNKNOWN, 50);
	assert_int_equal(since(state, 300, T0), 0);
	assert_int_equal(since(state, 300, T0 + 1), 300);
}

static void records_are_not_closer_than_ten_milliseconds(void **state)
{
	struct log_times t = {0};

	for (uint64_t i = 0; i < 1000; i++)
		grow(&t, state, i, T0 + (int64_t)i);
	assert_int_equal(file_size(state), 100 * RECORD);
	assert_time(state, 519, T0 + 510, 520);
}

static void the_pause_grows_with_the_file(void **state)
{
	struct log_times t = {0};

	for (uint64_t i = 0; i < 65536; i++)
		grow(&t, state, i, T0 + (int64_t)i * 10);
	int64_t full = file_size(state), now = T0 + INT64_C(65535) * 10;
	assert_int_equal(full, INT64_C(65536) * RECORD);
	grow(&t, state, 70000, now + 19);
	assert_int_equal(file_size(state), full);
	grow(&t, state, 70000, now + 20);
	assert_int_equal(file_size(state), full + RECORD);
}

static void times_do_not_go_back(void **state)
{
	struct log_times t = {0};

	three(&t, state);
	grow(&t, state, 300, T0 + 500);
	assert_int_equal(file_size(state), 3 * RECORD);
	assert_time(state, 310, T0 + 2000, UINT64_MAX);
}

static void the_next_master_drops_records_of_lost_bytes(void **state)
{
	struct log_times before = {0}, t = {0};

	three(&before, state);
	/* Of the log only 150 bytes were on disk. */
	grow(&t, state, 150, T0 + 5000);
	assert_int_equal(file_size(state), 3 * RECORD);
	assert_time(state, 149, T0 + 1000, 150);
	assert_time(state, 150, T0 + 5000, UINT64_MAX);
}

static void of_two_records_at_one_offset_the_later_counts(void **state)
{
	struct log_times t = {0};

	grow(&t, state, 0, T0);
	grow(&t, state, 0, T0 + 1000); /* the first bytes could not be stored */
	assert_time(state, 0, T0 + 1000, UINT64_MAX);
}

static void a_torn_record_is_overwritten(void **state)
{
	struct log_times before = {0}, t = {0};

	three(&before, state);
	assert_int_equal(truncate(unit_path(state, "n.log.times"), 3 * RECORD - 5), 0);
	assert_time(state, 250, T0 + 1000, UINT64_MAX);
	assert_int_equal(since(state, 300, T0 + 1500), 300);
	grow(&t, state, 300, T0 + 9000);
	assert_int_equal(file_size(state), 3 * RECORD);
	assert_time(state, 300, T0 + 9000, UINT64_MAX);
}

static void a_file_that_cannot_be_used_is_no_error(void **state)
{
	struct log_times t = {0};

	assert_int_equal(mkdir(unit_path(state, "n.log.times"), 0700), 0);
	grow(&t, state, 0, T0);
	assert_time(state, 0, LOG_TIME_UNKNOWN, UINT64_MAX);
	assert_int_equal(since(state, 10, T0), 0);
}

static void a_reader_that_stays_sees_what_comes(void **state)
{
	struct log_times t = {0};
	struct log_times_reader r;
	uint64_t end;

	log_times_reader_init(&r, *state, "n.log", 0);
	assert_int_equal(log_times_at(&r, *state, "n.log", 0, &end), LOG_TIME_UNKNOWN);
	grow(&t, state, 0, T0);
	assert_int_equal(log_times_at(&r, *state, "n.log", 0, &end), T0);
	grow(&t, state, 100, T0 + 1000);
	assert_int_equal(log_times_at(&r, *state, "n.log", 50, &end), T0);
	assert_int_equal(end, 100);
	assert_int_equal(log_times_at(&r, *state, "n.log", 100, &end), T0 + 1000);
	log_times_reader_release(&r);
}

static void a_line_starts_after_the_end_of_the_last(void **state)
{
	static const char text[] = "one\ntwo\r50%\r60%";
	CLEANUP(close_fdp)
	int fd = open(unit_path(state, "n.log"), O_RDWR | O_CREAT | O_CLOEXEC, 0600);

	assert_int_equal(write(fd, text, sizeof(text) - 1), sizeof(text) - 1);
	assert_int_equal(logfile_line_start(fd, 0), 0);
	assert_int_equal(logfile_line_start(fd, 2), 0);
	assert_int_equal(logfile_line_start(fd, 4), 4);
	assert_int_equal(logfile_line_start(fd, 6), 4);
	assert_int_equal(logfile_line_start(fd, 15), 12);
	/* A line of more than a block is not searched for its start. */
	assert_int_equal(pwrite(fd, "x", 1, 1 << 20), 1);
	assert_int_equal(logfile_line_start(fd, 1 << 20), 1 << 20);
}

int main(void)
{
#define T(fn) cmocka_unit_test_setup_teardown(fn, unit_make_dir, unit_remove_dir)
	const struct CMUnitTest tests[] = {
		T(every_byte_has_the_time_of_its_record),
		T(since_is_the_first_byte_that_is_new_enough),
		T(bytes_of_unknown_time_are_new_enough),
		T(records_are_not_closer_than_ten_milliseconds),
		T(the_pause_grows_with_the_file),
		T(times_do_not_go_back),
		T(the_next_master_drops_records_of_lost_bytes),
		T(of_two_records_at_one_offset_the_later_counts),
		T(a_torn_record_is_overwritten),
		T(a_file_that_cannot_be_used_is_no_error),
		T(a_reader_that_stays_sees_what_comes),
		T(a_line_starts_after_the_end_of_the_last),
	};

	return cmocka_run_group_tests_name("log_times", tests, NULL, NULL);
}
