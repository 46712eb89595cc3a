/*
 * A disk that fails at every place in turn: what was committed is there afterwards,
 * what was not is not, and the store says so from the first failure on.
 */
#include "store_fixture.h"

#include "faulty_vfs.h"
#include "store/internal.h"

#define COMMITS 7
#define WAL_SHORT 24 /* pages: the log moves into the database several times in a story */

/* What one transaction of the story writes; 0, or -1 at the first failure. */
static int chapter(struct store *st, int i, struct core_run *r, struct err *err)
{
	char id[16], text[3000];
	struct run_row row = {.id = id,
			      .name = "job",
			      .job_json = text,
			      .engine = "local",
			      .strategy = "roles",
			      .nodes = FIXTURE_NODES,
			      .created_ms = 1000};
	struct series_row series;
	int64_t no = i / 3 + 1;

	memset(text, 'a' + i, sizeof(text) - 1);
	text[sizeof(text) - 1] = '\0';
	snprintf(id, sizeof(id), "run-%d", i);
	r->phase = (enum run_phase)(i % 6);
	r->rng.s[0] = (uint64_t)i;
	r->nodes[i % 3].state = (enum node_state)(i % 8);
	r->nodes[i % 3].attempt = i;
	r->resources[i % 2].state = (enum res_state)(i % 5);
	if (i % 3 == 0 && store_run_add(st, &row, err) < 0)
		return -1;
	if (store_event_add(st, no, i, "chapter", i, text, NULL, err) < 0 ||
	    store_run_save(st, no, r, 100 + i, err) < 0 ||
	    store_node_save(st, no, i % 3, &r->nodes[i % 3], err) < 0 ||
	    store_resource_save(st, no, i % 2,
				&(struct plan_resource){.kind = "local.node",
							.name = i % 2 ? "beta" : "alpha",
							.node = -1},
				&r->resources[i % 2], err) < 0 ||
	    store_series_open(st, no, 0, "loss", &series, err) < 0 ||
	    store_scan_save(st, no, 0, 0, (uint64_t)i, 1, err) < 0)
		return -1;
	for (int k = 0; k < 5; k++)
		if (store_sample_add(st, series.series, k, i, i + k, err) < 0)
			return -1;
	series.count += 5;
	if (store_series_save(st, &series, err) < 0)
		return -1;
	/* The first run goes at the end. */
	if (i == COMMITS - 1 &&
	    (store_run_ended(st, 1, 9, err) < 0 || store_run_remove(st, 1, err) < 0))
		return -1;
	return 0;
}

/* From now on every call must tell the same. */
static void assert_poisoned(struct store *st, const struct err *why)
{
	CLEANUP(arena_freep) struct arena *a = arena_new();
	struct run_row row;
	struct err again;
	int64_t n[RUN_PHASES];

	assert_false(fixture_dirty(st));
	store_begin(st);
	assert_fails(store_event_add(st, 1, 1, "k", 0, "", NULL, &again), &again, why->kind,
		     why->msg);
	assert_fails(store_run_get(st, 1, a, &row, &again), &again, why->kind, why->msg);
	assert_fails(store_run_phases(st, n, &again), &again, why->kind, why->msg);
	assert_fails(store_commit(st, &again), &again, why->kind, why->msg);
	assert_false(fixture_dirty(st));
}

/* Tells the story from the start; the number of commits that were confirmed.
 * *ret_in_doubt: the next one was tried and failed. */
static int tell(const char *home, char **dumps, bool *ret_in_doubt)
{
	struct store *st = NULL;
	struct err err = {0};
	int done = 0;

	*ret_in_doubt = false;
	if (store_open(home, &st, &err) < 0) {
		assert_int_not_equal(err.kind, ERR_NONE);
		assert_int_not_equal(err.msg[0], '\0');
		return 0;
	}
	struct core_run *r = fixture_run();
	st->wal_limit = WAL_SHORT;
	if (dumps)
		dumps[0] = fixture_dump(st);
	while (done < COMMITS) {
		store_begin(st);
		bool written = chapter(st, done, r, &err) == 0;
		if (!written || store_commit(st, &err) < 0) {
			*ret_in_doubt = written;
			assert_poisoned(st, &err);
			break;
		}
		done++;
		if (dumps)
			dumps[done] = fixture_dump(st);
	}
	fixture_run_free(r);
	store_close(st);
	return done;
}

struct story {
	char *dir;
	char *dumps[COMMITS + 1];
	uint64_t ops;
};

static char *story_home(struct story *s)
{
	return xasprintf("%s/home", s->dir);
}

static int set_up(void **state)
{
	static bool installed;
	struct story *s = xcalloc(1, sizeof(*s));
	void *dir;

	if (!installed)
		faulty_install();
	installed = true;
	if (unit_make_dir(&dir) < 0)
		return -1;
	s->dir = dir;
	CLEANUP(freep) char *home = story_home(s);
	faulty_arm(FAULT_IO_ONCE, 0);
	bool in_doubt;
	assert_int_equal(tell(home, s->dumps, &in_doubt), COMMITS);
	s->ops = faulty_ops();
	assert_int_equal(file_remove_tree(home, NULL), 0);
	*state = s;
	return 0;
}

static int tear_down(void **state)
{
	struct story *s = *state;
	void *dir = s->dir;

	for (int i = 0; i <= COMMITS; i++)
		free(s->dumps[i]);
	free(s);
	return unit_remove_dir(&dir);
}

/* The state on disk is that after `done` commits; with `or_next`, maybe one more. */
static void assert_on_disk(struct story *s, int done, bool or_next, uint64_t n)
{
	CLEANUP(freep) char *home = story_home(s);
	struct store *st = fixture_open(home);
	CLEANUP(freep) char *dump = fixture_dump(st);

	store_close(st);
	if (strcmp(dump, s->dumps[done]) == 0)
		return;
	if (or_next && done < COMMITS && strcmp(dump, s->dumps[done + 1]) == 0)
		return;
	fail_msg("fault at call %" PRIu64 ": after %d commits the disk has\n%s", n, done, dump);
}

/* Every call in turn, until the story is told without a fault. */
static void sweep(struct story *s, enum fault fault)
{
	CLEANUP(freep) char *home = story_home(s);
	bool forever = fault == FAULT_IO_FOREVER || fault == FAULT_FULL_FOREVER, hit = true,
	     in_doubt;
	uint64_t n;

	for (n = 1; hit; n++) {
		faulty_arm(fault, n);
		int done = tell(home, NULL, &in_doubt);
		hit = faulty_disarm();
		/* Perhaps written whole, not synced, and then no chance to take it back. */
		assert_on_disk(s, done, forever && in_doubt, n);
		if (!hit)
			assert_int_equal(done, COMMITS);
		assert_int_equal(file_remove_tree(home, NULL), 0);
	}
	/* The sweep went through the whole story, not only its beginning. */
	assert_true(n > 200);
}

static void after_one_failed_call_the_disk_has_exactly_what_was_committed(void **state)
{
	sweep(*state, FAULT_IO_ONCE);
}

static void after_the_disk_broke_it_has_what_was_committed(void **state)
{
	sweep(*state, FAULT_IO_FOREVER);
}

static void after_a_moment_without_space_the_disk_has_exactly_what_was_committed(void **state)
{
	sweep(*state, FAULT_FULL_ONCE);
}

static void after_the_disk_was_full_it_has_what_was_committed(void **state)
{
	sweep(*state, FAULT_FULL_FOREVER);
}

static void after_a_power_cut_every_confirmed_commit_is_there(void **state)
{
	struct story *s = *state;
	CLEANUP(freep) char *home = story_home(s);
	uint64_t seed = fixture_seed("power cut");
	bool hit = true, in_doubt;

	for (uint64_t n = 1; hit; n++) {
		faulty_arm(FAULT_POWER_CUT, n);
		int done = tell(home, NULL, &in_doubt);
		hit = faulty_disarm();
		faulty_power_on(seed + n);
		assert_on_disk(s, done, in_doubt, n);
		assert_int_equal(file_remove_tree(home, NULL), 0);
	}
}

/* A fault while recovering from a fault. */
static void recovery_can_fail_too_and_be_done_again(void **state)
{
	struct story *s = *state;
	CLEANUP(freep) char *home = story_home(s);
	uint64_t seed = fixture_seed("recovery");
	struct rng rng;

	rng_seed(&rng, seed);
	for (int i = 0; i < 50; i++) {
		uint64_t first = 1 + rng_below(&rng, s->ops);
		bool hit = true, in_doubt;

		faulty_arm(FAULT_POWER_CUT, first);
		int done = tell(home, NULL, &in_doubt);
		faulty_disarm();
		faulty_power_on(rng_next(&rng));
		for (uint64_t n = 1; hit; n += 1 + rng_below(&rng, 4)) {
			struct store *st;
			struct err err = {0};

			faulty_arm(FAULT_POWER_CUT, n);
			if (store_open(home, &st, &err) == 0)
				store_close(st);
			hit = faulty_disarm();
			faulty_power_on(rng_next(&rng));
		}
		assert_on_disk(s, done, in_doubt, first);
		assert_int_equal(file_remove_tree(home, NULL), 0);
	}
}

/* Rule: a confirmed commit was synced; the log stays short. */

static void every_commit_is_synced_before_it_is_confirmed(void **state)
{
	struct story *s = *state;
	CLEANUP(freep) char *home = story_home(s);
	struct store *st = fixture_open(home);
	struct err err;

	store_begin(st);
	int64_t no = fixture_add(st, "a");
	fixture_commit(st);
	for (int i = 0; i < 20; i++) {
		faulty_arm(FAULT_IO_ONCE, 0);
		store_begin(st);
		assert_ok(store_event_add(st, no, i, "k", 0, "x", NULL, &err), &err);
		assert_int_equal(faulty_syncs(), 0);
		fixture_commit(st);
		assert_true(faulty_syncs() >= 1);
	}
	faulty_arm(FAULT_IO_ONCE, 0);
	store_begin(st);
	fixture_commit(st);
	assert_int_equal(faulty_ops(), 0); /* nothing to write, nothing written */
	store_close(st);
}

static void a_new_database_is_synced_before_it_takes_its_place(void **state)
{
	struct story *s = *state;
	CLEANUP(freep) char *home = story_home(s);

	faulty_arm(FAULT_IO_ONCE, 0);
	struct store *st = fixture_open(home);
	assert_int_equal(faulty_syncs(), 1);
	store_close(st);
}

static void the_log_does_not_grow_without_bound(void **state)
{
	struct story *s = *state;
	CLEANUP(freep) char *home = story_home(s);
	CLEANUP(freep) char *wal = xasprintf("%s/regatta.db-wal", home);
	struct store *st = fixture_open(home);
	struct err err;
	char text[2000];

	memset(text, 'x', sizeof(text) - 1);
	text[sizeof(text) - 1] = '\0';
	store_begin(st);
	int64_t no = fixture_add(st, "a");
	fixture_commit(st);
	for (int i = 0; i < 3000; i++) {
		store_begin(st);
		assert_ok(store_event_add(st, no, i, "k", 0, text, NULL, &err), &err);
		fixture_commit(st);
	}
	struct buf b;
	buf_init(&b, (size_t)64 << 20);
	assert_int_equal(file_read(wal, &b, NULL), 0);
	assert_in_range(b.n, 1, 6 << 20);
	buf_release(&b);
	store_close(st);
}

/* A commit whose nth call and all after it fail; true if it was confirmed all the same. */
static bool commit_then_break(const char *home, uint64_t n, bool *ret_hit)
{
	struct store *st = fixture_open(home);
	struct err err, again;
	int64_t count[RUN_PHASES];

	st->wal_limit = 1;
	store_begin(st);
	fixture_add(st, "a");
	faulty_arm(FAULT_IO_FOREVER, n);
	bool confirmed = store_commit(st, &err) == 0;
	*ret_hit = faulty_disarm();
	if (confirmed && *ret_hit)
		assert_fails(store_run_phases(st, count, &again), &again, ERR_IO, "move the log");
	store_close(st);
	return confirmed;
}

static void a_log_that_cannot_be_moved_does_not_undo_its_commit(void **state)
{
	struct story *s = *state;
	CLEANUP(freep) char *home = story_home(s);
	int cases = 0;
	bool hit = true;

	for (uint64_t n = 1; hit; n++) {
		if (commit_then_break(home, n, &hit)) {
			struct store *st = fixture_open(home);
			CLEANUP(freep) char *dump = fixture_dump(st);

			assert_non_null(strstr(dump, "run 1 a job"));
			store_close(st);
			cases += hit;
		}
		assert_int_equal(file_remove_tree(home, NULL), 0);
	}
	assert_true(cases >= 3); /* the syncs and writes of the move */
}

#define on_story(t) cmocka_unit_test_setup_teardown(t, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		on_story(after_one_failed_call_the_disk_has_exactly_what_was_committed),
		on_story(after_the_disk_broke_it_has_what_was_committed),
		on_story(after_a_moment_without_space_the_disk_has_exactly_what_was_committed),
		on_story(after_the_disk_was_full_it_has_what_was_committed),
		on_story(after_a_power_cut_every_confirmed_commit_is_there),
		on_story(recovery_can_fail_too_and_be_done_again),
		on_story(every_commit_is_synced_before_it_is_confirmed),
		on_story(a_new_database_is_synced_before_it_takes_its_place),
		on_story(the_log_does_not_grow_without_bound),
		on_story(a_log_that_cannot_be_moved_does_not_undo_its_commit),
	};

	/* Thousands of homes: the disk is simulated, so memory will do. */
	if (access("/dev/shm", W_OK) == 0)
		setenv("TMPDIR", "/dev/shm", 0);
	return cmocka_run_group_tests_name("store_fault", tests, NULL, NULL);
}
