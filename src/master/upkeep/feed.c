#include "master/upkeep/feed.h"

#include <stdlib.h>

#include "base/alloc.h"
#include "base/vec.h"
#include "store/store.h"
#include "sys/worker.h"

struct feeder {
	struct loop *loop;
	struct store *store;
	struct workers *reporter; /* one thread, so that pieces stay in order */
};

struct feed {
	struct feeder *feeder;
	struct feed_job job;
	size_t at;     /* index of the series that is being read */
	int64_t after; /* how many samples of it were read */
	int ahead;
	bool ended; /* the last piece was submitted */
	struct err err;
};

/* Samples of one series; a piece has several such parts. */
struct feed_part {
	size_t series, n;
};
struct feed_piece {
	struct feed *f;
	VEC(struct feed_part) parts;
	size_t n;
	struct report_point points[FEED_POINTS];
};

static bool take(void *ctx, int64_t wall_ms, int64_t step, double value)
{
	struct feed_piece *p = ctx;

	p->points[p->n++] = (struct report_point){wall_ms, step, value};
	return true;
}

static void work_piece(void *arg, const struct deadline *d)
{
	struct feed_piece *p = arg;
	const struct report_point *at = p->points;

	(void)d;
	for (size_t i = 0; i < p->parts.n; i++) {
		p->f->job.points(p->f->job.ctx, p->parts.v[i].series, at, p->parts.v[i].n);
		at += p->parts.v[i].n;
	}
}

static void work_end(void *arg, const struct deadline *d)
{
	struct feed *f = arg;

	(void)d;
	f->job.end(f->job.ctx);
}

/* `how` is always ERR_NONE: the reporter finishes all its work before it is freed. */
static void end_done(void *arg, enum err_kind how)
{
	struct feed *f = arg;

	(void)how;
	f->job.done(f->job.ctx, &f->err);
	free(f);
}

static void fill(struct feed *f, struct feed_piece *p)
{
	while (f->at < f->job.nseries && p->n < FEED_POINTS) {
		size_t had = p->n, room = FEED_POINTS - had;

		if (store_samples_after(f->feeder->store, f->job.series[f->at], f->after,
					(int64_t)room, take, p, &f->err) < 0) {
			f->at = f->job.nseries;
			return;
		}
		size_t got = p->n - had;
		if (got)
			*vec_push(&p->parts) = (struct feed_part){f->at, got};
		f->after += (int64_t)got;
		if (got < room) {
			f->at++;
			f->after = 0;
		}
	}
}

static void pump(struct feed *f);

static void piece_done(void *arg, enum err_kind how)
{
	struct feed_piece *p = arg;
	struct feed *f = p->f;

	(void)how;
	vec_release(&p->parts);
	free(p);
	f->ahead--;
	pump(f);
}

static void pump(struct feed *f)
{
	while (!f->ended && f->ahead < FEED_AHEAD) {
		if (f->at == f->job.nseries) {
			f->ended = true;
			workers_submit(f->feeder->reporter, work_end, end_done, f, -1);
			return;
		}
		struct feed_piece *p = xmalloc(sizeof(*p));
		p->f = f;
		p->parts.v = NULL;
		p->parts.n = p->parts.cap = 0;
		p->n = 0;
		fill(f, p);
		f->ahead++;
		workers_submit(f->feeder->reporter, work_piece, piece_done, p, -1);
	}
}

void feed_start(struct feeder *feeder, const struct feed_job *job)
{
	struct feed *f = xcalloc(1, sizeof(*f));

	if (!feeder->reporter)
		feeder->reporter = workers_new(feeder->loop, "reports", 1);
	f->feeder = feeder;
	f->job = *job;
	pump(f);
}

struct feeder *feeder_new(struct loop *l, struct store *st)
{
	struct feeder *f = xcalloc(1, sizeof(*f));

	f->loop = l;
	f->store = st;
	return f;
}

struct feeder *feeder_free(struct feeder *f)
{
	if (!f)
		return NULL;
	workers_free(f->reporter);
	free(f);
	return NULL;
}
