/* The disk space that is reserved for a full disk. */
#include "store_fixture.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "small_disk.h"

#define DISK ((size_t)64 << 20)
#define OLD_NAME "ballast" /* the old name of the file */

static int64_t blocks_of(const char *home, const char *name)
{
	CLEANUP(freep) char *path = xasprintf("%s/%s", home, name);
	struct stat sb;

	return lstat(path, &sb) < 0 ? -1 : sb.st_blocks * 512;
}

/* To the last byte; what is there already stays. */
static void fill(const char *home)
{
	static char zeros[65536];
	CLEANUP(freep) char *path = xasprintf("%s/fill", home);
	CLEANUP(close_fdp) int fd = open(path, O_WRONLY | O_CREAT | O_APPEND, 0600);

	assert_true(fd >= 0);
	for (size_t n = sizeof(zeros); n; n /= 2)
		while (write(fd, zeros, n) > 0)
			;
	assert_int_equal(errno, ENOSPC);
}

static void make_room(const char *home)
{
	CLEANUP(freep) char *path = xasprintf("%s/fill", home);

	assert_int_equal(unlink(path), 0);
}

static void commit_events(struct store *st, int64_t no, int n, bool hungry)
{
	char text[600];
	struct err err = {0};
	int64_t seq;

	memset(text, 'x', sizeof(text));
	text[sizeof(text) - 1] = '\0';
	for (int i = 0; i < n; i++) {
		store_begin(st);
		assert_ok(store_event_add(st, no, i, "k", -1, text, &seq, &err), &err);
		fixture_commit(st);
		if (hungry)
			fill(fixture_home(st));
	}
}

static struct store *with_run(const char *home, int64_t *ret_no)
{
	struct store *st = fixture_open(home);

	store_disk_reserve_make(st);
	store_begin(st);
	*ret_no = fixture_add(st, "first");
	fixture_commit(st);
	return st;
}

static bool count(void *ctx, const struct event_row *row)
{
	*(int64_t *)ctx = row->seq;
	return true;
}

/* Rule: the database goes on when the disk is full, and what was used is made again. */

static void full_and_free_again(void *ctx, const char *home)
{
	int64_t no;
	struct store *st = with_run(home, &no);

	(void)ctx;
	assert_int_equal(blocks_of(home, "disk_reserve"), DISK_RESERVE_BYTES);
	assert_false(store_disk_reserve_is_out(st));
	assert_false(store_disk_full(st));
	fill(home);
	assert_true(store_disk_full(st)); /* before anything had to be given up */
	assert_false(store_disk_reserve_is_out(st));
	commit_events(st, no, 400, false);
	assert_true(store_disk_reserve_is_out(st));
	assert_true(blocks_of(home, "disk_reserve") < DISK_RESERVE_BYTES);
	store_close(st);
	st = fixture_open(home);
	assert_true(store_disk_reserve_is_out(st)); /* remembered */
	make_room(home);
	assert_false(store_disk_reserve_is_out(st));
	assert_false(store_disk_full(st));
	assert_int_equal(blocks_of(home, "disk_reserve"), DISK_RESERVE_BYTES);
	store_close(st);
}

static void a_full_disk_does_not_stop_the_database(void **state)
{
	small_disk_run(*state, DISK, full_and_free_again, NULL);
}

/* The log is moved into the database on the way, which grows, too. */
static void somebody_eats_all(void *ctx, const char *home)
{
	int64_t no;
	struct store *st = with_run(home, &no);

	(void)ctx;
	fill(home);
	commit_events(st, no, 1500, true);
	store_close(st);
}

static void whoever_filled_the_disk_does_not_get_what_the_database_needs(void **state)
{
	small_disk_run(*state, DISK, somebody_eats_all, NULL);
}

/* Rule: a master that was killed on a full disk can be started again. */

static void killed(void *ctx, const char *home)
{
	int64_t no, last = 0;
	struct err err = {0};
	int status;

	(void)ctx;
	fflush(stdout);
	pid_t pid = fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		struct store *mine = with_run(home, &no);
		commit_events(mine, no, 200, false);
		_exit(0);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	fill(home);
	struct store *st = fixture_open(home);
	fill(home);
	commit_events(st, 1, 200, false);
	assert_ok(store_events_each(st, 1, 0, 0, count, &last, &err), &err);
	assert_int_equal(last, 400);
	store_close(st);
}

static void a_home_on_a_full_disk_opens_after_a_kill(void **state)
{
	small_disk_run(*state, DISK, killed, NULL);
}

/* Rule: others get the first half only, and only when the disk is full. */

static void ease(void *ctx, const char *home)
{
	int64_t no;
	struct store *st = with_run(home, &no);

	(void)ctx;
	store_disk_reserve_ease(st);
	assert_int_equal(blocks_of(home, "disk_reserve"), DISK_RESERVE_BYTES);
	assert_false(store_disk_tight(st));
	for (int i = 0; i < 10; i++) {
		fill(home);
		store_disk_reserve_ease(st);
	}
	assert_true(store_disk_tight(st));
	assert_int_equal(blocks_of(home, "disk_reserve"), DISK_RESERVE_BYTES / 2);
	fill(home);
	commit_events(st, no, 400, false);
	store_close(st);
}

static void others_get_half_of_it(void **state)
{
	small_disk_run(*state, DISK, ease, NULL);
}

/* Rule: where there is no room for it, there is none, and nothing is refused for that. */

static void tiny(void *ctx, const char *home)
{
	int64_t no;
	struct store *st = with_run(home, &no);

	(void)ctx;
	assert_int_equal(blocks_of(home, "disk_reserve"), -1);
	assert_false(store_disk_full(st));
	commit_events(st, no, 10, false);
	store_close(st);
	st = fixture_open(home);
	assert_false(store_disk_reserve_is_out(st));
	store_close(st);
}

static void a_tiny_disk_has_none(void **state)
{
	small_disk_run(*state, 20 << 20, tiny, NULL);
}

static void a_copy_with_holes_is_made_whole(void **state)
{
	struct store *st = fixture_open(*state);

	assert_int_equal(blocks_of(*state, "disk_reserve"), -1); /* nobody waits for it */
	store_disk_reserve_make(st);
	store_close(st);
	if (blocks_of(*state, "disk_reserve") < 0)
		skip(); /* this file system cannot, or is full */
	assert_int_equal(truncate(unit_path(state, "disk_reserve"), 0), 0);
	assert_int_equal(truncate(unit_path(state, "disk_reserve"), DISK_RESERVE_BYTES), 0);
	st = fixture_open(*state);
	assert_false(store_disk_reserve_is_out(st));
	assert_true(blocks_of(*state, "disk_reserve") >= DISK_RESERVE_BYTES);
	store_close(st);
}

static void the_file_of_an_older_home_is_taken_over(void **state)
{
	struct store *st = fixture_open(*state);

	store_disk_reserve_make(st);
	store_close(st);
	if (blocks_of(*state, "disk_reserve") < 0)
		skip(); /* this file system cannot, or is full */
	CLEANUP(freep) char *now = xstrdup(unit_path(state, "disk_reserve"));
	assert_int_equal(rename(now, unit_path(state, OLD_NAME)), 0);
	st = fixture_open(*state);
	assert_int_equal(blocks_of(*state, OLD_NAME), -1);
	assert_true(blocks_of(*state, "disk_reserve") >= DISK_RESERVE_BYTES);
	store_close(st);
}

static void a_link_is_not_followed(void **state)
{
	assert_int_equal(symlink("other", unit_path(state, "disk_reserve")), 0);
	struct store *st = fixture_open(*state);
	store_disk_reserve_make(st);
	store_close(st);
	assert_false(file_exists(unit_path(state, "other")));
}

int main(void)
{
#define on_dir(t) cmocka_unit_test_setup_teardown(t, unit_make_dir, unit_remove_dir)
	const struct CMUnitTest tests[] = {
		on_dir(a_full_disk_does_not_stop_the_database),
		on_dir(whoever_filled_the_disk_does_not_get_what_the_database_needs),
		on_dir(a_home_on_a_full_disk_opens_after_a_kill),
		on_dir(others_get_half_of_it),
		on_dir(a_tiny_disk_has_none),
		on_dir(a_copy_with_holes_is_made_whole),
		on_dir(the_file_of_an_older_home_is_taken_over),
		on_dir(a_link_is_not_followed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
