#include "master/upkeep/metric_push.h"

#include <math.h>
#include <stdlib.h>

#include "base/alloc.h"
#include "base/arena.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/file.h"
#include "base/log.h"
#include "base/map.h"
#include "base/path.h"
#include "driver/metric_sink.h"
#include "fmt/doc.h"
#include "fmt/jsonw.h"
#include "link/layout.h"
#include "master/internal.h"
#include "master/live_run.h"
#include "master/round.h"
#include "master/runs.h"
#include "sys/loop.h"
#include "sys/pools.h"
#include "sys/worker.h"

#define PERIOD_MS 60000
#define SPAN_MS 60000 /* of a point */
#define CALL_MS 30000
#define LAST_TRIES 3	   /* when the run has ended */
#define MOST_SAMPLES 20000 /* of one series, read at a time */
#define MOST_SENT_BYTES (4u << 20)

struct metric_push {
	struct master *m;
	struct loop_timer *timer;
	int sending;
};

/* A series of which samples are in the batch, and how many of it are sent when that has arrived. */
struct sent_series {
	struct live_series *series;
	int64_t sent;
};

struct push_task {
	struct metric_push *p;
	struct live_run *lr;
	struct arena *a;
	struct metric_batch batch;
	struct metric_point points[METRIC_BATCH];
	VEC(struct sent_series) sent;
	bool more; /* there are points for another call */
	struct err err;
};

/* ---- what was sent ---- */

static char *sent_path(const struct live_run *lr)
{
	return path_join(lr->dir, LAYOUT_METRICS_SENT);
}

static void read_sent(struct live_run *lr)
{
	CLEANUP(arena_freep) struct arena *a = arena_new();
	CLEANUP(freep) char *path = sent_path(lr);
	CLEANUP(buf_release) struct buf text = {0};
	struct doc *sent = NULL;
	struct str key;
	void *value;

	lr->push.is_read = true;
	buf_init(&text, MOST_SENT_BYTES);
	if (file_read(path, &text, NULL) < 0 || json_parse(buf_str(&text), a, &sent, NULL) < 0)
		return;
	for (size_t i = 0; map_at(lr->series, &i, &key, &value);) {
		struct live_series *ls = value;

		ls->sent = doc_int(sent, arena_strndup(a, key.p, key.n), 0);
	}
}

static void write_sent(struct live_run *lr)
{
	CLEANUP(arena_freep) struct arena *a = arena_new();
	CLEANUP(freep) char *path = sent_path(lr);
	CLEANUP(buf_release) struct buf text = {0};
	struct err err = {0};
	struct jsonw w;
	struct str key;
	void *value;

	buf_init(&text, MOST_SENT_BYTES);
	jsonw_init(&w, &text);
	jsonw_open(&w, '{');
	for (size_t i = 0; map_at(lr->series, &i, &key, &value);) {
		const struct live_series *ls = value;

		if (ls->sent)
			jsonw_kint(&w, arena_strndup(a, key.p, key.n), ls->sent);
	}
	jsonw_close(&w);
	if (file_write_atomic(path, buf_str(&text), 0600, false, &err) < 0)
		log_warn("run %s: %s", lr->row.id, err.msg);
}

/* ---- what is to be sent ---- */

struct series_reading {
	struct push_task *t;
	struct live_series *series;
	int64_t taken;	   /* samples that are in complete points */
	int64_t seen;	   /* and in the open one */
	int64_t before_ms; /* samples from then on wait for the end of their minute */
	struct metric_point open;
};

static bool close_point(struct series_reading *r)
{
	struct push_task *t = r->t;

	r->taken += r->seen;
	r->seen = 0;
	if (!r->open.count)
		return true;
	t->points[t->batch.n++] = r->open;
	r->open.count = 0;
	return t->batch.n < METRIC_BATCH;
}

static bool take_sample(void *ctx, int64_t wall_ms, int64_t step, double value)
{
	struct series_reading *r = ctx;
	int64_t at_ms = wall_ms - wall_ms % SPAN_MS;

	(void)step;
	if (r->seen && r->open.at_ms != at_ms && !close_point(r)) {
		r->t->more = true;
		return false;
	}
	if (at_ms >= r->before_ms)
		return false;
	if (!r->seen++)
		r->open = (struct metric_point){
			.name = r->series->row.name,
			.node = r->t->lr->plan.crew.members[r->series->row.rank].name,
			.at_ms = at_ms,
		};
	r->open.min = r->open.count ? fmin(r->open.min, value) : value;
	r->open.max = r->open.count ? fmax(r->open.max, value) : value;
	r->open.sum += value;
	r->open.count++;
	return true;
}

static int read_series(struct push_task *t, struct live_series *ls, int64_t before_ms)
{
	struct series_reading r = {.t = t, .series = ls, .before_ms = before_ms};

	if (store_samples_after(t->lr->m->store, ls->row.series, ls->sent, MOST_SAMPLES,
				take_sample, &r, &t->err) < 0)
		return -1;
	(void)close_point(&r); /* there is room: otherwise take_sample() has closed it */
	t->more = t->more || r.taken == MOST_SAMPLES;
	if (r.taken)
		*vec_push(&t->sent) = (struct sent_series){ls, ls->sent + r.taken};
	return 0;
}

static int read_all(struct push_task *t, bool is_last)
{
	int64_t now = clock_wall_ms();
	int64_t before_ms = is_last ? INT64_MAX : now - now % SPAN_MS;
	struct str key;
	void *value;

	for (size_t i = 0; map_at(t->lr->series, &i, &key, &value);) {
		struct live_series *ls = value;

		if (ls->host || (int64_t)ls->row.count <= ls->sent)
			continue;
		if (t->batch.n == METRIC_BATCH) {
			t->more = true;
			return 0;
		}
		if (read_series(t, ls, before_ms) < 0)
			return -1;
	}
	return 0;
}

/* ---- one call ---- */

static void push(struct metric_push *p, struct live_run *lr);

static void give_up(struct live_run *lr, const struct err *err)
{
	lr->push.is_off = true;
	log_warn("run %s: metrics are not sent: %s", lr->row.id, err->msg);
	run_note(lr, "metrics", -1, "not sent: %s", err->msg);
}

static void take_result(struct push_task *t)
{
	struct live_run *lr = t->lr;
	bool passes = t->err.kind != ERR_DENIED && t->err.kind != ERR_INVALID;

	if (t->err.kind == ERR_NONE) {
		for (size_t i = 0; i < t->sent.n; i++)
			t->sent.v[i].series->sent = t->sent.v[i].sent;
		lr->push.tries = 0;
		write_sent(lr);
	} else if (!passes || (lr->ended && ++lr->push.tries == LAST_TRIES)) {
		give_up(lr, &t->err);
	} else if (!lr->ended) {
		log_warn("run %s: metrics are sent later: %s", lr->row.id, t->err.msg);
		return;
	}
	if (t->more || lr->ended)
		push(t->p, lr);
}

static void task_free(struct push_task *t)
{
	arena_free(t->a);
	vec_release(&t->sent);
	free(t);
}

static void work(void *arg, const struct deadline *d)
{
	struct push_task *t = arg;

	(void)metric_sink_put(&t->batch, d, &t->err);
}

static void work_done(void *arg, enum err_kind how)
{
	struct push_task *t = arg;
	struct live_run *lr = t->lr;

	t->p->sending--;
	lr->push.is_busy = false;
	if (how == ERR_NONE && lr->m->pools)
		take_result(t);
	lr->busy--;
	live_run_done(lr);
	task_free(t);
}

static void push(struct metric_push *p, struct live_run *lr)
{
	struct push_task *t;

	if (lr->push.is_busy || lr->push.is_off || lr->unreadable || lr->plan.hands_over)
		return;
	t = xcalloc(1, sizeof(*t));
	t->p = p;
	t->lr = lr;
	t->a = arena_new();
	t->batch = (struct metric_batch){
		.url = plan_metrics(&lr->plan, t->a),
		.credentials = lr->credentials ? arena_strdup(t->a, lr->credentials) : NULL,
		.job = lr->plan.job->name,
		.run = lr->row.id,
		.v = t->points,
	};
	if (!t->batch.url)
		lr->push.is_off = true;
	else if (!lr->push.is_read)
		read_sent(lr);
	if (!t->batch.url || read_all(t, lr->ended) < 0 || !t->batch.n) {
		if (t->err.kind != ERR_NONE)
			give_up(lr, &t->err);
		task_free(t);
		return;
	}
	p->sending++;
	lr->push.is_busy = true;
	lr->busy++;
	workers_submit(pools_get(p->m->pools, "metrics", 1), work, work_done, t, CALL_MS);
}

void metric_push_check(struct metric_push *p)
{
	struct str id;
	void *value;

	for (size_t i = 0; map_at(p->m->runs, &i, &id, &value);)
		if (!((struct live_run *)value)->ended)
			push(p, value);
}

static void on_timer(void *ctx)
{
	struct metric_push *p = ctx;

	metric_push_check(p);
	loop_timer_set(p->timer, PERIOD_MS);
}

void metric_push_run_ended(struct metric_push *p, struct live_run *lr)
{
	push(p, lr); /* or, if a call is under way, take_result() does it */
}

bool metric_push_waiting(const struct metric_push *p)
{
	return p->sending > 0;
}

struct metric_push *metric_push_new(struct master *m)
{
	struct metric_push *p = xcalloc(1, sizeof(*p));

	p->m = m;
	p->timer = loop_timer_new(m->loop, on_timer, p);
	loop_timer_set(p->timer, PERIOD_MS);
	return p;
}

struct metric_push *metric_push_free(struct metric_push *p)
{
	if (!p)
		return NULL;
	loop_timer_free(p->timer);
	free(p);
	return NULL;
}
