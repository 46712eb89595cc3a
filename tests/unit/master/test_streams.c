/* Bytes, figures and files of a run: a live run made by hand, with a store and a loop. */
#include "unit.h"

#include <string.h>
#include <sys/syscall.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/path.h"
#include "base/vec.h"
#include "link/frame.h"
#include "link/message.h"
#include "master/internal.h"
#include "master/live_run.h"
#include "master/runs.h"
#include "master/streams.h"
#include "master/suites.h"
#include "master/upkeep/space.h"
#include "master/upkeep/trash.h"
#include "sys/loop.h"
#include "sys/pools.h"

#define WAIT_ROUNDS 2000 /* of 10 ms */

static VEC(char *) synced; /* paths, in the order in which they were synced */

/* Instead of libc's. */
int fsync(int fd)
{
	char link[64], path[512];

	snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
	ssize_t n = readlink(link, path, sizeof(path) - 1);
	path[n > 0 ? n : 0] = '\0';
	*vec_push(&synced) = xstrdup(path);
	return (int)syscall(SYS_fsync, fd);
}

static int times_synced(const char *path)
{
	int n = 0;

	for (size_t i = 0; i < synced.n; i++)
		n += !strcmp(synced.v[i], path);
	return n;
}

static void forget_syncs(void)
{
	for (size_t i = 0; i < synced.n; i++)
		free(synced.v[i]);
	vec_release(&synced);
}

struct rig {
	char *home;
	struct master m;
	struct live_run *lr;
};

static struct member members[] = {{.name = "worker-0"}, {.name = "worker-1"}};

/* As live_run_load() leaves it, but without a job. */
static struct live_run *make_run(struct master *m, const char *id, const char *source)
{
	struct live_run *lr = xcalloc(1, sizeof(*lr));
	struct err err = {0};

	lr->m = m;
	lr->arena = arena_new();
	lr->plan.crew.members = members;
	lr->plan.crew.n = 2;
	lr->nodes = xcalloc(2, sizeof(*lr->nodes));
	lr->streams = xcalloc(2 * STREAMS, sizeof(*lr->streams));
	lr->orders = xcalloc(2, sizeof(*lr->orders));
	for (int i = 0; i < 2; i++) {
		lr->nodes[i].processes = 1;
		lr->nodes[i].streams = lr->streams + i * STREAMS;
		lr->nodes[i].orders = lr->orders + i;
	}
	lr->core = xcalloc(1, sizeof(*lr->core));
	lr->core->nodes = xcalloc(2, sizeof(*lr->core->nodes));
	lr->series = map_new();
	list_init(&lr->in_round);
	lr->dir = xasprintf("%s/runs/%s", m->home, id);
	lr->logs_dir = path_join(lr->dir, "logs");
	lr->row = (struct run_row){.id = arena_strdup(lr->arena, id),
				   .name = "n",
				   .job_json = "{}",
				   .source_sha256 = source,
				   .engine = "local",
				   .strategy = "single",
				   .nodes = 2};
	assert_int_equal(file_mkdir_p(lr->logs_dir, 0700, &err), 0);
	store_begin(m->store);
	assert_int_equal(store_run_add(m->store, &lr->row, &err), 0);
	assert_int_equal(store_commit(m->store, &err), 0);
	return lr;
}

static int make(void **state)
{
	struct rig *r = xcalloc(1, sizeof(*r));
	struct err err = {0};

	if (unit_make_dir((void **)&r->home) < 0)
		return -1;
	r->m.home = r->home;
	r->m.runs = map_new();
	list_init(&r->m.rounds);
	r->m.loop = loop_new();
	r->m.space = space_new(&r->m);
	r->m.trash = trash_new(&r->m);
	r->m.suites = suites_new(&r->m);
	if (store_open(r->home, &r->m.store, &err) < 0)
		return -1;
	r->lr = make_run(&r->m, "run-a", "");
	*state = r;
	forget_syncs();
	return 0;
}

static int drop(void **state)
{
	struct rig *r = *state;

	r->m.pools = pools_free(r->m.pools);
	trash_free(r->m.trash);
	suites_free(r->m.suites);
	space_free(r->m.space);
	live_run_free(r->lr);
	map_free(r->m.runs);
	store_close(r->m.store);
	loop_free(r->m.loop);
	int rc = unit_remove_dir((void **)&r->home);
	free(r);
	forget_syncs();
	return rc;
}

static int metrics(struct rig *r, const char *json)
{
	struct arena *a = arena_new();
	struct err err = {0};
	struct message_metrics m;
	int rc = message_metrics_get(str_from(json), a, &m, &err);

	assert_int_equal(err.kind, rc < 0 ? ERR_PROTOCOL : ERR_NONE);
	if (rc == 0)
		streams_metrics(r->lr, 0, STREAM_OUT, &m);
	arena_free(a);
	return rc;
}

static bool count_sample(void *ctx, int64_t wall_ms, int64_t step, double value)
{
	(void)wall_ms, (void)step, (void)value;
	++*(int *)ctx;
	return true;
}

static bool count_series(void *ctx, const struct series_row *row)
{
	(void)row;
	++*(int *)ctx;
	return true;
}

static int stored_series(struct rig *r)
{
	int n = 0;

	assert_int_equal(store_series_each(r->m.store, r->lr->row.no, count_series, &n, NULL), 0);
	return n;
}

/* Rule: of a frame of samples all count, or none. */
static void a_bad_sample_at_the_end_leaves_nothing_of_its_frame(void **state)
{
	static const char *const bad[] = {"[\"loss\",3,2]", "[\"loss\",3,2,1,1,1]", "[7,3,2,1]",
					  "{}", "null"};
	struct rig *r = *state;
	char text[256];

	for (size_t i = 0; i < COUNT(bad); i++) {
		snprintf(
			text, sizeof(text),
			"{\"from\":0,\"to\":50,\"bad\":0,\"samples\":[[\"loss\",1,0,1],[\"loss\",2,1,1],%s]}",
			bad[i]);
		assert_int_equal(metrics(r, text), -1);
	}
	assert_null(map_get(r->lr->series, STR("0 loss")));
	assert_true(r->m.samples == 0 && r->lr->nodes[0].streams[STREAM_OUT].scanned == 0);
	assert_true(list_empty(&r->m.rounds));
	assert_int_equal(stored_series(r), 0);

	/* The agent comes back with a frame that is right. */
	assert_int_equal(
		metrics(r,
			"{\"from\":0,\"to\":40,\"bad\":0,\"samples\":[[\"loss\",1,0,1],[\"loss\",2,1,1]]}"),
		0);
	const struct live_series *ls = map_get(r->lr->series, STR("0 loss"));
	int n = 0;
	assert_non_null(ls);
	assert_int_equal(ls->row.count, 2);
	assert_int_equal(store_samples_each(r->m.store, ls->row.series, 0, count_sample, &n, NULL),
			 0);
	assert_int_equal(n, 2);
	assert_true(r->lr->nodes[0].streams[STREAM_OUT].scanned == 40);
}

/* Rule: machines and jobs have series of their own, so that a dozen samples a node leave room for a loss. */
static void samples_of_machines_do_not_crowd_out_a_loss(void **state)
{
	struct message_value value = {STR("host.cpu"), 1};
	struct message_sample sample = {.time_ms = 1, .values = &value, .nvalues = 1};
	struct rig *r = *state;

	r->lr->nseries[1] = STREAMS_MAX_SERIES;
	for (int i = 0; i < 3; i++)
		streams_sample(r->lr, 0, &sample);
	assert_null(map_get(r->lr->series, STR("0 host.cpu")));
	assert_int_equal(
		metrics(r, "{\"from\":0,\"to\":10,\"bad\":0,\"samples\":[[\"loss\",1,0,1]]}"), 0);
	assert_non_null(map_get(r->lr->series, STR("0 loss")));
	assert_int_equal(r->lr->last_seq, 1); /* said once */

	r->lr->nseries[0] = STREAMS_MAX_SERIES;
	assert_int_equal(
		metrics(r, "{\"from\":10,\"to\":20,\"bad\":0,\"samples\":[[\"acc\",1,0,1]]}"), 0);
	assert_null(map_get(r->lr->series, STR("0 acc")));
	r->lr->nseries[1] = 0;
	r->lr->series_full[1] = false;
	streams_sample(r->lr, 0, &sample);
	assert_non_null(map_get(r->lr->series, STR("0 host.cpu")));
}

static void send_bytes(struct rig *r, int rank, enum stream s, const char *text)
{
	struct live_stream *st = &r->lr->nodes[rank].streams[s];
	char payload[256];
	size_t n = strlen(text);
	uint64_t from = st->acked;
	struct err err = {0};

	data_offset_put((uint8_t *)payload, from);
	memcpy(payload + 8, text, n);
	assert_int_equal(streams_data(r->lr, rank, s, (struct str){payload, n + 8}, &err), 0);
	for (int i = 0; i < WAIT_ROUNDS && st->acked < from + n; i++)
		loop_round(r->m.loop, 10);
	assert_true(st->acked == from + n);
}

/* Rule: acknowledged bytes are found after a power cut: their file, its name, and every
 * directory above it that came with the run. */
static void before_the_first_acknowledgement_the_way_to_the_log_is_on_disk(void **state)
{
	struct rig *r = *state;
	char *runs = path_join(r->home, "runs");

	r->m.pools = pools_new(r->m.loop);
	send_bytes(r, 0, STREAM_OUT, "hello\n");
	assert_int_equal(times_synced(r->lr->logs_dir), 1);
	assert_int_equal(times_synced(r->lr->dir), 1);
	assert_int_equal(times_synced(runs), 1);

	/* Once is enough. */
	r->lr->nodes[1].agent = NULL;
	assert_int_equal(streams_open(r->lr, 1, 1, NULL), 0);
	send_bytes(r, 1, STREAM_OUT, "later\n"); /* a new name */
	assert_int_equal(times_synced(r->lr->logs_dir), 2);
	assert_int_equal(times_synced(r->lr->dir), 1);
	assert_int_equal(times_synced(runs), 1);
	free(runs);
}

/* Rule: removing a run moves it aside; its files are not the loop's business. */

static void put_file(const char *dir, const char *name)
{
	char *path = path_join(dir, name);

	assert_int_equal(file_mkdir_p(dir, 0700, NULL), 0);
	assert_int_equal(file_write(path, STR("x"), 0600, NULL), 0);
	free(path);
}

static void end_run(struct live_run *lr)
{
	lr->ended = true;
	store_begin(lr->m->store);
	assert_int_equal(store_run_ended(lr->m->store, lr->row.no, 1, NULL), 0);
	assert_int_equal(store_commit(lr->m->store, NULL), 0);
}

static void a_removed_run_is_moved_into_the_trash(void **state)
{
	struct rig *r = *state;
	struct err err = {0};
	char *kept = xasprintf("%s/trash/run-a.%lld/job.toml", r->home, (long long)r->lr->row.no);

	put_file(r->lr->dir, "job.toml");
	end_run(r->lr);
	assert_int_equal(runs_remove(r->lr, &err), 0);
	assert_false(file_exists(r->lr->dir));
	assert_true(file_exists(kept)); /* there are no workers yet */

	r->m.pools = pools_new(r->m.loop);
	trash_sweep(r->m.trash, false);
	for (int i = 0; i < WAIT_ROUNDS && file_exists(kept); i++)
		loop_round(r->m.loop, 10);
	assert_false(file_exists(kept));
	free(kept);
}

static void a_run_that_cannot_be_moved_is_removed(void **state)
{
	struct rig *r = *state;
	struct err err = {0};
	char *trash = path_join(r->home, "trash");

	assert_int_equal(file_write(trash, STR("not a directory"), 0600, NULL), 0);
	put_file(r->lr->dir, "job.toml");
	end_run(r->lr);
	assert_int_equal(runs_remove(r->lr, &err), 0);
	assert_false(file_exists(r->lr->dir));
	free(trash);
}

static void an_archive_goes_with_the_last_run_that_used_it(void **state)
{
	struct rig *r = *state;
	struct err err = {0};
	char *blobs = path_join(r->home, "blobs"), *blob = path_join(blobs, "abc");
	struct live_run *first = make_run(&r->m, "first", "abc");
	struct live_run *second = make_run(&r->m, "second", "abc");

	put_file(blobs, "abc");
	end_run(first);
	end_run(second);
	assert_int_equal(runs_remove(second, &err), 0);
	assert_true(file_exists(blob));
	assert_int_equal(runs_remove(first, &err), 0);
	assert_false(file_exists(blob));
	live_run_free(first);
	live_run_free(second);
	free(blob);
	free(blobs);
}

int main(void)
{
#define test(t) cmocka_unit_test_setup_teardown(t, make, drop)
	const struct CMUnitTest tests[] = {
		test(a_bad_sample_at_the_end_leaves_nothing_of_its_frame),
		test(samples_of_machines_do_not_crowd_out_a_loss),
		test(before_the_first_acknowledgement_the_way_to_the_log_is_on_disk),
		test(a_removed_run_is_moved_into_the_trash),
		test(a_run_that_cannot_be_moved_is_removed),
		test(an_archive_goes_with_the_last_run_that_used_it),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
