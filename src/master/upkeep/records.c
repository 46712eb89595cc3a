/*
 * Records that are missing: the end of a run is committed first, its files are written
 * afterwards, and a master may be killed in between.
 *
 * Only the newest runs are looked at, and one is written in each turn of the loop, so
 * that a start costs little whatever is missing.
 */
#include "master/internal.h"

#include <stdlib.h>

#include "base/arena.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "base/file.h"
#include "base/log.h"
#include "base/path.h"
#include "sys/loop.h"

#define NEWEST 100

static bool look_at_row(void *ctx, const struct run_row *row)
{
	struct master *m = ctx;
	CLEANUP(freep) char *runs = path_join(m->home, "runs");
	CLEANUP(freep) char *dir = path_join(runs, row->id);
	CLEANUP(freep) char *summary = path_join(dir, "summary.json");
	CLEANUP(freep) char *report = path_join(dir, "report.html");

	if (!row->ended_ms || (file_exists(report) && file_exists(summary)) || !file_exists(dir))
		return true;
	if (!file_exists(summary))
		*vec_push(&m->unwritten) = row->no;
	if (!file_exists(report))
		report_later(m, row->no);
	return true;
}

static void write_next(void *ctx)
{
	struct master *m = ctx;
	struct err err = {0};

	if (!m->unwritten.n)
		return;
	struct live_run *lr = live_run_load(m, m->unwritten.v[--m->unwritten.n], &err);
	if (lr && file_exists(lr->dir)) {
		run_write_records(lr);
		log_info("run %s: its records were missing and are written", lr->row.id);
	} else if (!lr && err.kind != ERR_NOT_FOUND) {
		log_warn("records of a run: %s", err.msg);
	}
	if (lr)
		live_run_done(lr);
	loop_soon(m->loop, write_next, m);
}

void records_look(void *ctx)
{
	CLEANUP(arena_freep) struct arena *a = arena_new();
	struct master *m = ctx;
	struct err err = {0};

	if (store_runs_each(m->store, false, 0, NEWEST, a, look_at_row, m, &err) < 0)
		log_warn("%s", err.msg);
	loop_soon(m->loop, write_next, m);
}
