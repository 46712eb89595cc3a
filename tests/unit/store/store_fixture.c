#include "store_fixture.h"

#include "base/str.h"
#include "store/internal.h"

struct store *fixture_open(const char *home)
{
	struct store *st = NULL;
	struct err err = {0};

	assert_ok(store_open(home, &st, &err), &err);
	return st;
}

void fixture_commit(struct store *st)
{
	struct err err = {0};

	assert_ok(store_commit(st, &err), &err);
}

const char *fixture_home(const struct store *st)
{
	return st->home;
}

bool fixture_dirty(const struct store *st)
{
	return st->dirty;
}

static bool count_run(void *ctx, const struct run_row *row)
{
	(void)row;
	++*(int *)ctx;
	return true;
}

int fixture_count(struct store *st, bool active)
{
	CLEANUP(arena_freep) struct arena *a = arena_new();
	struct err err = {0};
	int n = 0;

	assert_ok(store_runs_each(st, active, 0, 0, a, count_run, &n, &err), &err);
	return n;
}

int64_t fixture_add(struct store *st, const char *id)
{
	struct run_row row = {.id = id,
			      .name = "job",
			      .job_json = "{}",
			      .engine = "local",
			      .strategy = "roles",
			      .secret = "00",
			      .nodes = FIXTURE_NODES,
			      .created_ms = 1000};
	struct err err = {0};

	assert_ok(store_run_add(st, &row, &err), &err);
	return row.no;
}

struct core_run *fixture_run(void)
{
	static struct plan_resource resources[FIXTURE_RESOURCES] = {
		{.kind = "local.node", .name = "alpha"}, {.kind = "local.node", .name = "beta"}};
	struct plan *plan = xcalloc(1, sizeof(*plan));
	struct core_run *r = xcalloc(1, sizeof(*r));

	plan->crew.n = FIXTURE_NODES;
	plan->resources = resources;
	plan->nresources = FIXTURE_RESOURCES;
	r->plan = plan;
	r->nodes = xcalloc(FIXTURE_NODES, sizeof(*r->nodes));
	r->resources = xcalloc(FIXTURE_RESOURCES, sizeof(*r->resources));
	return r;
}

void fixture_run_free(struct core_run *r)
{
	free((void *)r->plan);
	free(r->nodes);
	free(r->resources);
	free(r);
}

static bool dump_event(void *ctx, const struct event_row *row)
{
	buf_printf(ctx, " event %" PRId64 " %" PRId64 " %s %d %s\n", row->seq, row->time_ms,
		   row->kind, row->node, row->text);
	return true;
}

static bool dump_sample(void *ctx, int64_t wall_ms, int64_t step, double value)
{
	buf_printf(ctx, "  sample %" PRId64 " %" PRId64 " %g\n", wall_ms, step, value);
	return true;
}

struct keys {
	struct buf *out;
	VEC(int64_t) keys;
};

static bool dump_series(void *ctx, const struct series_row *row)
{
	struct keys *k = ctx;

	buf_printf(k->out, " series %d %s %" PRIu64 " %g\n", row->rank, row->name, row->count,
		   row->mean);
	*vec_push(&k->keys) = row->series;
	return true;
}

static void dump_state(struct store *st, int64_t no, struct buf *out)
{
	struct core_run *r = fixture_run();
	struct err err = {0};

	assert_ok(store_run_restore(st, no, r, &err), &err);
	buf_printf(out, " phase %d verdict %d cause '%s' rng %" PRIx64 "\n", (int)r->phase,
		   (int)r->verdict, r->cause.text, r->rng.s[0]);
	for (int i = 0; i < FIXTURE_NODES; i++)
		buf_printf(out, " node %d %d %d '%s'\n", i, (int)r->nodes[i].state,
			   r->nodes[i].attempt, r->nodes[i].address);
	for (int i = 0; i < FIXTURE_RESOURCES; i++)
		buf_printf(out, " resource %d %d %d '%s'\n", i, (int)r->resources[i].state,
			   r->resources[i].attempt, r->resources[i].id);
	fixture_run_free(r);
}

struct dumping {
	struct store *st;
	struct buf *out;
};

static bool dump_run(void *ctx, const struct run_row *row)
{
	struct dumping *d = ctx;
	struct keys k = {.out = d->out};
	uint64_t offsets[3], bad;
	struct err err = {0};

	buf_printf(d->out, "run %" PRId64 " %s %s ended %" PRId64 "\n", row->no, row->id, row->name,
		   row->ended_ms);
	dump_state(d->st, row->no, d->out);
	assert_ok(store_events_each(d->st, row->no, 0, 0, dump_event, d->out, &err), &err);
	assert_ok(store_series_each(d->st, row->no, dump_series, &k, &err), &err);
	for (size_t i = 0; i < k.keys.n; i++)
		assert_ok(store_samples_each(d->st, k.keys.v[i], 0, dump_sample, d->out, &err),
			  &err);
	vec_release(&k.keys);
	assert_ok(store_scan_get(d->st, row->no, 0, offsets, 3, &bad, &err), &err);
	buf_printf(d->out, " scan %" PRIu64 " %" PRIu64 " %" PRIu64 " bad %" PRIu64 "\n",
		   offsets[0], offsets[1], offsets[2], bad);
	return true;
}

char *fixture_dump(struct store *st)
{
	CLEANUP(arena_freep) struct arena *a = arena_new();
	struct err err = {0};
	struct buf out;

	buf_init(&out, 1 << 24);
	buf_printf(&out, "last %" PRId64 "\n", store_last_ms(st));
	struct dumping d = {st, &out};
	assert_ok(store_runs_each(st, false, 0, 0, a, dump_run, &d, &err), &err);
	assert_false(out.overflow);
	return buf_take(&out);
}

uint64_t fixture_seed(const char *test)
{
	const char *given = getenv("REGATTA_TEST_SEED");
	uint64_t seed;

	if (!given || !str_to_u64(str_from(given), &seed))
		seed = rand_u64() % 1000000000;
	printf("# %s: REGATTA_TEST_SEED=%" PRIu64 "\n", test, seed);
	return seed;
}
