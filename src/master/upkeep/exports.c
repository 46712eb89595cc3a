#include "master/upkeep/exports.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/arena.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/file.h"
#include "base/log.h"
#include "base/path.h"
#include "base/vec.h"
#include "driver/results.h"
#include "fmt/doc.h"
#include "fmt/jsonw.h"
#include "link/layout.h"
#include "master/internal.h"
#include "master/live_run.h"
#include "master/round.h"
#include "master/runs.h"
#include "master/secrets.h"
#include "master/upkeep/output_list.h"
#include "master/upkeep/reports.h"
#include "plan/plan.h"
#include "sys/loop.h"
#include "sys/pools.h"
#include "sys/worker.h"

#define NEWEST 100
#define FIRST_PAUSE_MS 1000
#define LONGEST_PAUSE_MS 60000
#define GIVE_UP_MS (60LL * 60 * 1000)
#define OWED_MS (7LL * 24 * 60 * 60 * 1000)
/* Of the newest that are remembered.  A master on a machine of its own is asked about every run that it has: one whose
 * failure it had forgotten would count as being copied, for ever. */
#define MOST_FAILURES 16

struct owed_copy {
	int64_t no;
	int64_t since_ms; /* of clock_boot_ms(): when this master learnt of it */
	bool has_report;  /* the last that this master makes */
	bool changed;	  /* files were made again after the copy was begun */
	export_done_fn done;
	void *ctx;
};

/* The last try to copy the results of a run has failed. */
struct failed_copy {
	int64_t no;
	bool given_up;
	struct err err;
};

struct exports {
	struct master *m;
	VEC(struct owed_copy) owed; /* the first one is being made, if busy */
	struct loop_timer *timer;
	VEC(struct failed_copy) failed;
	int64_t pause_ms;
	bool busy;
};

/* One try.  The worker uses only this. */
struct export_task {
	struct exports *e;
	struct arena *a;
	const char *dir;
	struct results_place at;
	bool kept; /* what cannot be copied can be fetched from here */
	struct results_sum sum;
	struct err err;
};

static bool results_exist(const char *dir)
{
	CLEANUP(freep) char *path = path_join(dir, LAYOUT_RESULTS);

	return file_exists(path);
}

bool export_is_owed(const struct live_run *lr)
{
	CLEANUP(arena_freep) struct arena *a = arena_new();

	if (lr->unreadable || lr->plan.hands_over)
		return false;
	struct plan_results to = plan_results(&lr->plan, a);

	if (!to.url && !to.there_ms)
		return false;
	if (lr->row.ended_ms && clock_wall_ms() - lr->row.ended_ms > OWED_MS)
		return false;
	return file_exists(lr->dir) && !results_exist(lr->dir);
}

/* ---- the end of a try ---- */

static bool may_pass(enum err_kind kind)
{
	return kind == ERR_UNAVAILABLE || kind == ERR_TIMEOUT || kind == ERR_THROTTLED ||
	       kind == ERR_CANCELLED || kind == ERR_IO;
}

int results_note_write(const char *dir, const struct results_place *at,
		       const struct results_sum *sum, struct err *err)
{
	CLEANUP(freep) char *path = path_join(dir, LAYOUT_RESULTS);
	CLEANUP(freep) char *url = xasprintf("%s%s/", at->url ? at->url : "", at->run);
	CLEANUP(buf_release) struct buf text = {0};
	struct jsonw w;

	buf_init(&text, 8192);
	jsonw_init(&w, &text);
	jsonw_open(&w, '{');
	jsonw_kz(&w, "url", at->url ? url : "");
	jsonw_kint(&w, "files", (int64_t)sum->files);
	jsonw_kint(&w, "bytes", (int64_t)sum->bytes);
	jsonw_kint(&w, "keep_days", at->keep_days);
	jsonw_kint(&w, "at_ms", clock_wall_ms());
	jsonw_close(&w);
	buf_addc(&text, '\n');
	return file_write_atomic(path, buf_str(&text), 0600, true, err);
}

static void record_end(struct exports *e, const struct export_task *t, int64_t no)
{
	struct live_run *lr = live_run_load(e->m, no, NULL);

	if (!lr)
		return; /* removed meanwhile */
	if (t->err.kind == ERR_NONE && !t->at.url)
		run_note(lr, "results", -1, "%llu files, %llu bytes wait to be fetched",
			 (unsigned long long)t->sum.files, (unsigned long long)t->sum.bytes);
	else if (t->err.kind == ERR_NONE)
		run_note(lr, "results", -1, "%s%s/ has %llu files, %llu bytes", t->at.url,
			 t->at.run, (unsigned long long)t->sum.files,
			 (unsigned long long)t->sum.bytes);
	else
		run_note(lr, "results", -1, "not copied: %s", t->err.msg);
	run_secrets_finish(lr);
	live_run_done(lr);
}

/* err->kind ERR_NONE: it has not failed. */
static void note_failure(struct exports *e, int64_t no, bool given_up, const struct err *err)
{
	size_t n = 0;

	for (size_t i = 0; i < e->failed.n; i++)
		if (e->failed.v[i].no != no)
			e->failed.v[n++] = e->failed.v[i];
	e->failed.n = n;
	if (err->kind == ERR_NONE)
		return;
	if (n == MOST_FAILURES && !e->m->own_machine)
		memmove(e->failed.v, e->failed.v + 1, --e->failed.n * sizeof(e->failed.v[0]));
	*vec_push(&e->failed) = (struct failed_copy){no, given_up, *err};
}

const struct err *exports_failure(const struct exports *e, int64_t no, bool *ret_given_up)
{
	for (size_t i = 0; i < e->failed.n; i++)
		if (e->failed.v[i].no == no) {
			*ret_given_up = e->failed.v[i].given_up;
			return &e->failed.v[i].err;
		}
	return NULL;
}

bool exports_failed(const struct exports *e)
{
	return e->failed.n > 0;
}

/* The first of the list has been tried. */
static void settle(struct exports *e, struct export_task *t)
{
	struct owed_copy o = e->owed.v[0];
	bool late = clock_boot_ms() - o.since_ms > GIVE_UP_MS;

	e->busy = false;
	if (t->err.kind == ERR_NONE && !o.changed)
		(void)results_note_write(t->dir, &t->at, &t->sum, &t->err);
	if (!e->m->pools)
		return;	 /* the next master goes on */
	if (o.changed) { /* the index may say what the files were */
		e->owed.v[0].changed = e->owed.v[0].has_report = false;
		loop_timer_set(e->timer, 0);
		return;
	}
	memmove(e->owed.v, e->owed.v + 1, --e->owed.n * sizeof(o));
	if (t->err.kind != ERR_NONE && may_pass(t->err.kind) && !late) {
		log_warn("run %s: %s; tried again", t->at.run, t->err.msg);
		note_failure(e, o.no, false, &t->err);
		*vec_push(&e->owed) = o;
		loop_timer_set(e->timer, e->pause_ms);
		e->pause_ms =
			e->pause_ms * 2 < LONGEST_PAUSE_MS ? e->pause_ms * 2 : LONGEST_PAUSE_MS;
		return;
	}
	e->pause_ms = FIRST_PAUSE_MS;
	note_failure(e, o.no, true, &t->err);
	if (t->err.kind != ERR_NONE)
		log_warn("run %s: %s", t->at.run, t->err.msg);
	record_end(e, t, o.no);
	if (o.done)
		o.done(o.ctx, &t->err);
	loop_timer_set(e->timer, 0);
}

static void work(void *arg, const struct deadline *d)
{
	struct export_task *t = arg;

	CLEANUP(buf_release) struct buf list = {0};

	/* The list of outputs goes with them, if it can be made. */
	buf_init(&list, OUTPUT_LIST_MAX_BYTES);
	(void)output_list_read(t->dir, d, &list, NULL);
	if (!t->at.url)
		(void)results_index(t->dir, &t->at, &t->sum, &t->err);
	else if (results_put(t->dir, &t->at, d, &t->sum, &t->err) < 0 && t->kept)
		(void)results_index(t->dir, &t->at, &t->sum, NULL);
}

static void work_done(void *arg, enum err_kind how)
{
	struct export_task *t = arg;

	if (how != ERR_NONE)
		err_set(&t->err, ERR_CANCELLED, "the master leaves");
	settle(t->e, t);
	arena_free(t->a);
	free(t);
}

/* ---- the beginning of a try ---- */

static void give_up_on_first(struct exports *e, const struct err *why)
{
	struct owed_copy o = e->owed.v[0];

	e->busy = false;
	memmove(e->owed.v, e->owed.v + 1, --e->owed.n * sizeof(o));
	if (why->kind != ERR_NONE && why->kind != ERR_NOT_FOUND)
		log_warn("results of an ended run: %s", why->msg);
	if (o.done)
		o.done(o.ctx, why);
	loop_timer_set(e->timer, 0);
}

static struct export_task *task_of(struct exports *e, const struct live_run *lr)
{
	struct export_task *t = xcalloc(1, sizeof(*t));
	struct plan_results to;

	t->e = e;
	t->a = arena_new();
	to = plan_results(&lr->plan, t->a);
	t->dir = arena_strdup(t->a, lr->dir);
	t->kept = to.there_ms > 0;
	t->at = (struct results_place){
		.url = to.url ? arena_strdup(t->a, to.url) : NULL,
		.run = arena_strdup(t->a, lr->row.id),
		.install = arena_strdup(t->a, store_install(e->m->store)),
		.credentials = run_credentials_read(lr, t->a),
		.keep_days = to.keep_days,
	};
	return t;
}

static void send_copy(struct exports *e, struct live_run *lr)
{
	CLEANUP(freep) char *record = path_join(lr->dir, RESULTS_RECORD);
	struct export_task *t = task_of(e, lr);

	round_end(e->m);
	if (store_record_write(e->m->store, lr->row.no, record, &t->err) < 0) {
		settle(e, t);
		arena_free(t->a);
		free(t);
		return;
	}
	workers_submit(pools_get(e->m->pools, "results", 1), work, work_done, t, -1);
}

static void send_with_report(void *ctx, const struct report_result *r)
{
	struct exports *e = ctx;
	struct err err = {0};

	if (r->err->kind != ERR_NONE)
		log_warn("run %s: report: %s", r->run_id, r->err->msg);
	if (!e->m->pools)
		return;
	struct live_run *lr = live_run_load(e->m, e->owed.v[0].no, &err);

	if (!lr) {
		give_up_on_first(e, &err);
		return;
	}
	e->owed.v[0].has_report = true;
	send_copy(e, lr);
	live_run_done(lr);
}

/* The copy of a carrier says that those of its suite's runs are complete: it comes last. */
static struct live_run *load_first(struct exports *e, struct err *err)
{
	struct live_run *lr = live_run_load(e->m, e->owed.v[0].no, err);
	struct owed_copy first = e->owed.v[0];

	if (!lr || !lr->plan.carries || e->owed.n == 1)
		return lr;
	live_run_done(lr);
	memmove(e->owed.v, e->owed.v + 1, (e->owed.n - 1) * sizeof(first));
	e->owed.v[e->owed.n - 1] = first;
	return live_run_load(e->m, e->owed.v[0].no, err);
}

static void next_owed(void *ctx)
{
	struct exports *e = ctx;
	struct err err = {0};

	if (!e->m->pools || e->busy || !e->owed.n)
		return;
	struct live_run *lr = load_first(e, &err);

	e->busy = true;
	if (!lr || !export_is_owed(lr)) {
		give_up_on_first(e, &err);
	} else if (e->owed.v[0].has_report) {
		send_copy(e, lr);
	} else if (reports_start_due(e->m->reports, lr, send_with_report, e, &err) < 0) {
		log_warn("run %s: report: %s", lr->row.id, err.msg);
		send_copy(e, lr); /* without it */
	}
	if (lr)
		live_run_done(lr);
}

static void add_owed(struct exports *e, int64_t no, export_done_fn done, void *ctx)
{
	*vec_push(&e->owed) =
		(struct owed_copy){.no = no, .since_ms = clock_boot_ms(), .done = done, .ctx = ctx};
	if (!e->busy)
		loop_timer_set(e->timer, 0);
}

void exports_run_ended(struct exports *e, struct live_run *lr, export_done_fn done, void *ctx)
{
	if (export_is_owed(lr)) {
		add_owed(e, lr->row.no, done, ctx);
		return;
	}
	if (done)
		done(ctx, &(struct err){0});
}

void exports_run_changed(struct exports *e, const struct live_run *lr)
{
	CLEANUP(freep) char *index = path_join(lr->dir, RESULTS_INDEX);
	CLEANUP(freep) char *note = path_join(lr->dir, LAYOUT_RESULTS);

	if (!e->m->own_machine || !lr->ended)
		return;
	if (e->busy && e->owed.v[0].no == lr->row.no) {
		e->owed.v[0].changed = true;
		return;
	}
	if (!file_exists(index))
		return;
	/* The note first: where it is not, the next master makes the index. */
	unlink(note);
	unlink(index);
	add_owed(e, lr->row.no, NULL, NULL);
}

/* ---- at the start ---- */

struct owed_list {
	VEC(int64_t) nos;
	const char *home;
};

static bool collect(void *ctx, const struct run_row *row)
{
	struct owed_list *l = ctx;
	CLEANUP(freep) char *runs = path_join(l->home, LAYOUT_RUNS);
	CLEANUP(freep) char *dir = path_join(runs, row->id);

	if (row->ended_ms && clock_wall_ms() - row->ended_ms <= OWED_MS && file_exists(dir) &&
	    !results_exist(dir))
		*vec_push(&l->nos) = row->no;
	return true;
}

void exports_check(struct exports *e)
{
	CLEANUP(arena_freep) struct arena *a = arena_new();
	struct owed_list l = {.home = e->m->home};
	struct err err = {0};

	/* What is not copied from a machine that ends is lost: there all runs are looked at. */
	if (store_runs_each(e->m->store, false, 0, e->m->own_machine ? 0 : NEWEST, a, collect, &l,
			    &err) < 0)
		log_warn("%s", err.msg);
	for (size_t i = 0; i < l.nos.n; i++)
		add_owed(e, l.nos.v[i], NULL, NULL);
	vec_release(&l.nos);
}

bool exports_waiting(const struct exports *e)
{
	return e->owed.n > 0;
}

struct exports *exports_new(struct master *m)
{
	struct exports *e = xcalloc(1, sizeof(*e));

	e->m = m;
	e->pause_ms = FIRST_PAUSE_MS;
	e->timer = loop_timer_new(m->loop, next_owed, e);
	return e;
}

struct exports *exports_free(struct exports *e)
{
	if (!e)
		return NULL;
	loop_timer_free(e->timer);
	vec_release(&e->owed);
	vec_release(&e->failed);
	free(e);
	return NULL;
}
