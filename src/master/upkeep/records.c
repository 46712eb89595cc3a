#include "master/upkeep/records.h"

#include <stdlib.h>

#include "base/alloc.h"
#include "base/arena.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "base/file.h"
#include "base/log.h"
#include "base/path.h"
#include "link/layout.h"
#include "master/internal.h"
#include "master/live_run.h"
#include "master/runs.h"
#include "master/upkeep/finish.h"
#include "master/upkeep/hooks.h"
#include "master/upkeep/reports.h"
#include "sys/loop.h"

#define NEWEST 100

struct records {
	struct master *m;
	VEC(int64_t) missing; /* ended runs without their records */
};

struct records *records_new(struct master *m)
{
	struct records *r = xcalloc(1, sizeof(*r));

	r->m = m;
	return r;
}

struct records *records_free(struct records *r)
{
	if (!r)
		return NULL;
	vec_release(&r->missing);
	free(r);
	return NULL;
}

static bool check_row(void *ctx, const struct run_row *row)
{
	struct records *r = ctx;
	CLEANUP(freep) char *runs = path_join(r->m->home, LAYOUT_RUNS);
	CLEANUP(freep) char *dir = path_join(runs, row->id);
	CLEANUP(freep) char *summary = path_join(dir, "summary.json");
	CLEANUP(freep) char *report = path_join(dir, "report.html");

	if (!row->ended_ms || (file_exists(report) && file_exists(summary)) || !file_exists(dir))
		return true;
	if (!file_exists(summary))
		*vec_push(&r->missing) = row->no;
	if (!file_exists(report))
		reports_add(r->m->reports, row->no);
	return true;
}

static void write_next(void *ctx)
{
	struct records *r = ctx;
	struct err err = {0};

	if (!r->missing.n)
		return;
	struct live_run *lr = live_run_load(r->m, r->missing.v[--r->missing.n], &err);
	if (lr && file_exists(lr->dir)) {
		run_write_records(lr);
		hooks_run_ended(r->m->hooks, lr);
		log_info("run %s: its records were missing and were written now", lr->row.id);
	} else if (!lr && err.kind != ERR_NOT_FOUND) {
		log_warn("cannot write the missing records of a run: %s", err.msg);
	}
	if (lr)
		live_run_done(lr);
	loop_soon(r->m->loop, write_next, r);
}

static void check(void *ctx)
{
	CLEANUP(arena_freep) struct arena *a = arena_new();
	struct records *r = ctx;
	struct err err = {0};

	if (store_runs_each(r->m->store, false, 0, NEWEST, a, check_row, r, &err) < 0)
		log_warn("%s", err.msg);
	loop_soon(r->m->loop, write_next, r);
}

void records_check(struct records *r)
{
	loop_soon(r->m->loop, check, r);
}
