/* kill -9 at any moment, and a disk that is really full. */
#include "store_fixture.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "base/clock.h"
#include "small_disk.h"

#define KILLS 50

/* Transaction n of the child: the event and the state both carry the number. */
static void write_numbered(struct store *st, int64_t no, struct core_run *r, int64_t n)
{
	char text[600];
	struct err err;
	int64_t seq;

	/* Of changing length, so that pages split at changing places. */
	memset(text, 'x', sizeof(text));
	text[(size_t)(n * 37) % sizeof(text)] = '\0';
	store_begin(st);
	assert_ok(store_event_add(st, no, n, "numbered", (int)n, text, &seq, &err), &err);
	assert_int_equal(seq, n);
	r->rng.s[0] = (uint64_t)n;
	assert_ok(store_run_save(st, no, r, n, &err), &err);
	assert_ok(store_node_save(st, no, 0, &r->nodes[0], &err), &err);
	fixture_commit(st);
}

static bool check_numbered(void *ctx, const struct event_row *row)
{
	int64_t *last = ctx;

	assert_int_equal(row->seq, *last + 1);
	assert_int_equal(row->node, row->seq);
	*last = row->seq;
	return true;
}

/* How many transactions the database has; both tables must tell the same. */
static int64_t count_numbered(struct store *st, int64_t no)
{
	struct core_run *r = fixture_run();
	int64_t last = 0;
	struct err err;

	assert_ok(store_events_each(st, no, 0, 0, check_numbered, &last, &err), &err);
	assert_ok(store_run_restore(st, no, r, &err), &err);
	assert_true(r->rng.s[0] == (uint64_t)last);
	fixture_run_free(r);
	return last;
}

__attribute__((noreturn)) static void commit_for_ever(const char *home, int64_t no, int64_t n,
						      int report)
{
	struct store *st = fixture_open(home);
	struct core_run *r = fixture_run();

	setenv("CMOCKA_TEST_ABORT", "1", 1);
	for (;;) {
		n++;
		write_numbered(st, no, r, n);
		if (write(report, &n, sizeof(n)) != sizeof(n))
			_exit(1);
	}
}

/* Lets the child do some transactions and a bit; what it reported last. */
static int64_t kill_at_random(pid_t pid, int report, int64_t last, struct rng *rng)
{
	uint64_t reports = rng_below(rng, 40);
	int64_t n;

	for (uint64_t i = 0; i < reports; i++) {
		assert_int_equal(read(report, &n, sizeof(n)), sizeof(n));
		last = n;
	}
	for (int64_t until = clock_boot_us() + (int64_t)rng_below(rng, 600);
	     clock_boot_us() < until;)
		;
	assert_int_equal(kill(pid, SIGKILL), 0);
	int status;
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFSIGNALED(status));
	while (read(report, &n, sizeof(n)) == sizeof(n))
		last = n;
	return last;
}

static void after_kill_9_every_reported_commit_is_there(void **state)
{
	const char *home = *state;
	CLEANUP(freep) char *wal = xasprintf("%s/regatta.db-wal", home);
	struct store *st = fixture_open(home);
	struct stat sb;
	struct rng rng;
	int64_t have = 0;
	int unreported = 0;

	rng_seed(&rng, fixture_seed("kill -9"));
	store_begin(st);
	int64_t no = fixture_add(st, "a");
	fixture_commit(st);
	store_close(st);
	for (int i = 0; i < KILLS; i++) {
		int report[2];

		assert_int_equal(pipe2(report, O_CLOEXEC), 0);
		fflush(stdout);
		pid_t pid = fork();
		assert_true(pid >= 0);
		if (pid == 0)
			commit_for_ever(home, no, have, report[1]);
		close(report[1]);
		int64_t reported = kill_at_random(pid, report[0], have, &rng);
		close(report[0]);

		st = fixture_open(home);
		/* What the dead one left in the log is in the database before it is used. */
		assert_int_equal(stat(wal, &sb), 0);
		assert_int_equal(sb.st_size, 0);
		have = count_numbered(st, no);
		assert_in_range(have, reported, reported + 1);
		unreported += have > reported;
		store_close(st);
	}
	printf("# %d kills, %" PRId64 " commits, %d of them not yet reported\n", KILLS, have,
	       unreported);
}

/* A home made by somebody who was killed while making it can be made again. */
static void after_kill_9_while_opening_the_home_opens(void **state)
{
	struct rng rng;

	rng_seed(&rng, fixture_seed("kill -9 while opening"));
	for (int i = 0; i < 30; i++) {
		char name[16];
		snprintf(name, sizeof(name), "home-%d", i);
		const char *home = unit_path(state, name);
		int64_t until = clock_boot_us() + (int64_t)rng_below(&rng, 4000);

		fflush(stdout);
		pid_t pid = fork();
		assert_true(pid >= 0);
		if (pid == 0) {
			store_close(fixture_open(home));
			_exit(0);
		}
		while (clock_boot_us() < until)
			;
		kill(pid, SIGKILL);
		assert_int_equal(waitpid(pid, NULL, 0), pid);
		store_close(fixture_open(home));
	}
}

/* Rule: a full disk is told as such, and loses nothing that was confirmed. */

/* Commits until it fails; the number that were confirmed. */
static int64_t fill(struct store *st, int64_t no, struct err *err)
{
	static char text[20000];
	int64_t done = 0;

	memset(text, 'x', sizeof(text) - 1);
	for (;;) {
		store_begin(st);
		if (store_event_add(st, no, done, "k", 0, text, NULL, err) < 0 ||
		    store_commit(st, err) < 0)
			return done;
		done++;
	}
}

static bool count_event(void *ctx, const struct event_row *row)
{
	(void)row;
	++*(int64_t *)ctx;
	return true;
}

static int64_t events_in(const char *home, int64_t no)
{
	struct store *st = fixture_open(home);
	int64_t n = 0;
	struct err err;

	assert_ok(store_events_each(st, no, 0, 0, count_event, &n, &err), &err);
	store_close(st);
	return n;
}

static void fill_the_disk(void *ctx, const char *dir)
{
	CLEANUP(freep) char *home = xasprintf("%s/home", dir);
	struct store *st = fixture_open(home);
	struct err err, again;

	(void)ctx;
	store_begin(st);
	int64_t no = fixture_add(st, "a");
	fixture_commit(st);
	int64_t done = fill(st, no, &err);
	assert_int_equal(err.kind, ERR_CAPACITY);
	assert_non_null(strstr(err.msg, "disk is full"));
	assert_true(done > 5);
	assert_fails(store_commit(st, &again), &again, ERR_CAPACITY, err.msg);
	store_close(st);
	small_disk_grow(dir, 16 << 20);
	assert_int_equal(events_in(home, no), done);
}

static void a_full_disk_is_told_and_loses_nothing(void **state)
{
	small_disk_run(*state, 1 << 20, fill_the_disk, NULL);
}

static void a_disk_too_small_for_a_database(void *ctx, const char *dir)
{
	struct store *st;
	struct err err;

	(void)ctx;
	assert_fails(store_open(dir, &st, &err), &err, ERR_CAPACITY, "");
	small_disk_grow(dir, 16 << 20);
	store_close(fixture_open(dir));
}

/* Not even the number of the process finds room. */
static void a_disk_without_a_free_byte(void *ctx, const char *dir)
{
	CLEANUP(freep) char *filler = xasprintf("%s/filler", dir);
	int fd = open(filler, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
	static const char block[4096];
	struct store *st;
	struct err err;

	(void)ctx;
	while (write(fd, block, sizeof(block)) > 0)
		;
	close(fd);
	assert_fails(store_open(dir, &st, &err), &err, ERR_CAPACITY, "lock");
	assert_int_equal(unlink(filler), 0);
	small_disk_grow(dir, 16 << 20);
	store_close(fixture_open(dir));
}

static void a_home_on_a_full_disk_is_told_and_opens_later(void **state)
{
	small_disk_run(*state, 40 << 10, a_disk_without_a_free_byte, NULL);
}

static void a_home_that_did_not_fit_is_made_when_there_is_room(void **state)
{
	small_disk_run(*state, 40 << 10, a_disk_too_small_for_a_database, NULL);
}

/* The same where mounting is not permitted. */
static void a_limit_on_the_size_of_files_is_told_and_loses_nothing(void **state)
{
	struct store *st = fixture_open(*state);
	struct rlimit was, low;
	struct err err;

	store_begin(st);
	int64_t no = fixture_add(st, "a");
	fixture_commit(st);
	signal(SIGXFSZ, SIG_IGN);
	assert_int_equal(getrlimit(RLIMIT_FSIZE, &was), 0);
	low = (struct rlimit){300000, was.rlim_max};
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &low), 0);
	int64_t done = fill(st, no, &err);
	assert_int_equal(err.kind, ERR_CAPACITY);
	assert_true(done > 5);
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &was), 0);
	store_close(st);
	assert_int_equal(events_in(*state, no), done);
}

#define on_dir(t) cmocka_unit_test_setup_teardown(t, unit_make_dir, unit_remove_dir)

int main(void)
{
	const struct CMUnitTest tests[] = {
		on_dir(after_kill_9_every_reported_commit_is_there),
		on_dir(after_kill_9_while_opening_the_home_opens),
		on_dir(a_full_disk_is_told_and_loses_nothing),
		on_dir(a_home_on_a_full_disk_is_told_and_opens_later),
		on_dir(a_home_that_did_not_fit_is_made_when_there_is_room),
		on_dir(a_limit_on_the_size_of_files_is_told_and_loses_nothing),
	};

	return cmocka_run_group_tests_name("store_crash", tests, NULL, NULL);
}
