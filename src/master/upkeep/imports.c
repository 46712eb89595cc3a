#include "master/upkeep/imports.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/arena.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "base/file.h"
#include "base/path.h"
#include "driver/results.h"
#include "link/layout.h"
#include "master/internal.h"
#include "master/live_run.h"
#include "master/round.h"
#include "master/runs.h"
#include "master/upkeep/exports.h"
#include "master/upkeep/finish.h"
#include "master/upkeep/space.h"
#include "plan/plan.h"
#include "sys/pools.h"
#include "sys/worker.h"

/* One import.  The worker uses only dir, at, sum and err. */
struct import_task {
	struct master *m;
	struct arena *a;
	const char *dir;
	struct results_place at;
	struct results_sum sum;
	struct err err;
	bool here; /* nothing is to be done */
	import_done_fn done;
	void *ctx;
};

/* *ret_replaced: the number of the run that the copy replaces, or 0. */
static int check_here(struct import_task *t, int64_t *ret_replaced, struct err *err)
{
	struct master *m = t->m;
	struct err why = {0};
	struct live_run *lr = live_run_exact(m, t->at.run, t->a, &why);

	*ret_replaced = 0;
	if (!lr && why.kind == ERR_NOT_FOUND)
		return 0;
	if (!lr) {
		*err = why;
		return -1;
	}
	if (!lr->ended)
		err_set(err, ERR_CONFLICT, "the run '%s' has not ended here", t->at.run);
	else if (lr->plan.hands_over)
		*ret_replaced = lr->row.no;
	else
		t->here = true;
	live_run_done(lr);
	return err->kind == ERR_NONE ? 0 : -1;
}

/* Whoever still reads the run as it was keeps it; everybody else loads the new rows. */
static void forget_loaded(struct import_task *t)
{
	struct live_run *lr = map_get(t->m->runs, str_from(t->at.run));

	if (!lr)
		return;
	map_del(t->m->runs, str_from(t->at.run));
	live_run_done(lr);
}

static int take_rows(struct import_task *t, int64_t replaced, int64_t *ret_no, struct err *err)
{
	CLEANUP(freep) char *record = path_join(t->dir, RESULTS_RECORD);

	round_end(t->m);
	if (t->m->exit_code)
		return err_set(err, ERR_IO, "the master cannot go on");
	*ret_no = replaced;
	return replaced ? store_record_replace(t->m->store, record, t->at.run, replaced, err)
			: store_record_read(t->m->store, record, t->at.run, ret_no, err);
}

/* The texts of a run that had events here are made again, with them. */
static int write_texts(const struct import_task *t, int64_t no, bool replaced, struct err *err)
{
	struct live_run *lr = live_run_load(t->m, no, err);

	if (!lr)
		return -1;
	run_note(lr, "results", -1, "taken from %s%s%s: %llu files, %llu bytes",
		 t->at.url ? t->at.url : "its master", t->at.url ? t->at.run : "",
		 t->at.url ? "/" : "", (unsigned long long)t->sum.files,
		 (unsigned long long)t->sum.bytes);
	if (replaced)
		run_write_records(lr);
	live_run_done(lr);
	return 0;
}

static int settle(struct import_task *t, struct err *err)
{
	int64_t replaced, no;

	if (check_here(t, &replaced, err) < 0)
		return -1;
	if (t->here)
		return 0;
	/* Before the rows: they make the run one whose copy this master would have to make. */
	if (results_note_write(t->dir, &t->at, &t->sum, err) < 0 ||
	    take_rows(t, replaced, &no, err) < 0)
		return -1;
	if (replaced)
		forget_loaded(t);
	CLEANUP(freep) char *fetched = path_join(t->dir, LAYOUT_FETCHED);

	(void)file_remove_tree(fetched, NULL); /* only its index is left in it */
	return write_texts(t, no, replaced > 0, err);
}

static void move_fetched(struct import_task *t)
{
	CLEANUP(freep) char *from = path_join(t->dir, LAYOUT_FETCHED);

	(void)results_move(from, t->dir, t->at.run, &t->sum, &t->err);
}

/* Nobody goes on with what was not fetched to its end: its run is gone, or was given up. */
static void drop_rest(const struct import_task *t)
{
	CLEANUP(freep) char *from = path_join(t->dir, LAYOUT_FETCHED);
	CLEANUP(freep) char *index = path_join(from, RESULTS_INDEX);

	if (!file_exists(index))
		(void)file_remove_tree(from, NULL);
	rmdir(t->dir); /* if not one file came */
}

static void work(void *arg, const struct deadline *d)
{
	struct import_task *t = arg;

	if (t->err.kind != ERR_NONE || t->here || file_mkdir_p(t->dir, 0700, &t->err) < 0)
		return;
	if (!t->at.url)
		move_fetched(t);
	else
		(void)results_get(t->dir, &t->at, d, &t->sum, &t->err);
	if (t->err.kind != ERR_NONE)
		drop_rest(t);
}

/* In the events of a run that this home handed over: whoever misses its logs looks there. */
static void note_failure(struct import_task *t)
{
	struct live_run *lr = live_run_exact(t->m, t->at.run, t->a, &(struct err){0});

	if (!lr)
		return;
	if (lr->ended && lr->plan.hands_over)
		run_note(lr, "results", -1, "not taken in: %s", t->err.msg);
	live_run_done(lr);
}

static void work_done(void *arg, enum err_kind how)
{
	struct import_task *t = arg;

	if (map_get(t->m->imports, str_from(t->at.run)) == t)
		map_del(t->m->imports, str_from(t->at.run));
	if (how != ERR_NONE || !t->m->pools)
		err_set(&t->err, ERR_CANCELLED, "the master leaves");
	else if (t->err.kind == ERR_NONE && !t->here)
		(void)settle(t, &t->err);
	if (t->err.kind != ERR_NONE && t->err.kind != ERR_CANCELLED)
		note_failure(t);
	t->done(t->ctx, &t->err);
	arena_free(t->a);
	free(t);
}

bool import_goes_on(const struct master *m, const char *run)
{
	return map_get(m->imports, str_from(run)) != NULL;
}

void import_start(struct master *m, const struct import_source *from, import_done_fn done,
		  void *ctx)
{
	CLEANUP(freep) char *runs = path_join(m->home, LAYOUT_RUNS);
	CLEANUP(freep) char *dir = path_join(runs, from->run);
	struct import_task *t = xcalloc(1, sizeof(*t));
	int64_t replaced;

	*t = (struct import_task){.m = m, .a = arena_new(), .done = done, .ctx = ctx};
	t->dir = arena_strdup(t->a, dir);
	t->at = (struct results_place){
		.url = from->url ? arena_strdup(t->a, from->url) : NULL,
		.run = arena_strdup(t->a, from->run),
		.install = store_install(m->store),
		.credentials = from->credentials ? arena_strdup(t->a, from->credentials) : NULL,
	};
	if (!path_is_below(str_from(from->run)) || strchr(from->run, '/') || from->run[0] == '.')
		err_set(&t->err, ERR_INVALID, "'%.100s' is not the id of a run", from->run);
	else if (check_here(t, &replaced, &t->err) == 0 && !t->here)
		(void)space_for_run(m->space, &t->err);
	map_put(m->imports, str_from(t->at.run), t);
	/* One thread: two imports of one run come one after the other. */
	workers_submit(pools_get(m->pools, "imports", 1), work, work_done, t, -1);
}
