#include "master/log_scan.h"

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/arena.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/err.h"
#include "link/message.h"
#include "master/live_run.h"
#include "master/streams.h"
#include "metrics/extract.h"
#include "spec/job.h"
#include "store/logfile.h"

#define BLOCK (256u << 10) /* a longer line is scanned in pieces */

struct log_scan {
	struct live_run *lr;
	int rank;
	struct extract *ex;
	/* of the current block */
	struct arena *a;
	VEC(struct message_point) points;
	int64_t time_ms;
	char block[BLOCK];
};

struct log_scan *log_scan_new(struct live_run *lr, int rank)
{
	const struct job *job = lr->job;
	struct log_scan *sc = xcalloc(1, sizeof(*sc));
	struct metric_pattern *pats = xcalloc(job->metrics.n + 1, sizeof(*pats));
	struct err ignored; /* the patterns were checked with the job */
	size_t n = 0;

	for (size_t i = 0; i < job->metrics.n; i++) {
		const struct metric_spec *m = &((struct metric_spec *)job->metrics.v)[i];

		if (m->pattern)
			pats[n++] = (struct metric_pattern){m->name, m->pattern};
	}
	sc->lr = lr;
	sc->rank = rank;
	if (extract_new(pats, n, job->data_prefix, &sc->ex, &ignored) < 0 &&
	    extract_new(NULL, 0, job->data_prefix, &sc->ex, &ignored) < 0)
		abort(); /* compiling without patterns cannot fail */
	free(pats);
	return sc;
}

struct log_scan *log_scan_free(struct log_scan *sc)
{
	if (!sc)
		return NULL;
	extract_free(sc->ex);
	vec_release(&sc->points);
	free(sc);
	return NULL;
}

static void add_point(void *ctx, const struct sample *s)
{
	struct log_scan *sc = ctx;

	*vec_push(&sc->points) = (struct message_point){
		.name = arena_str(sc->a, s->name),
		.value = s->value,
		.step = s->step,
		.time_ms = sc->time_ms,
		.total = s->total,
	};
}

/* Bytes beyond the limit of the log are not there to be scanned. */
static void skip_to(struct log_scan *sc, uint64_t to)
{
	const struct message_metrics m = {
		.from = sc->lr->nodes[sc->rank].streams[STREAM_OUT].scanned,
		.to = to,
	};

	streams_metrics(sc->lr, sc->rank, STREAM_OUT, &m);
}

static void take_block(struct log_scan *sc, struct str block)
{
	CLEANUP(arena_freep) struct arena *a = arena_new();
	uint64_t bad = extract_bad(sc->ex),
		 from = sc->lr->nodes[sc->rank].streams[STREAM_OUT].scanned;

	sc->a = a;
	sc->points.n = 0;
	sc->time_ms = clock_wall_ms();
	extract_block(sc->ex, block, add_point, sc);
	const struct message_metrics m = {
		.from = from,
		.to = from + block.n,
		.bad = extract_bad(sc->ex) - bad,
		.samples = sc->points.v,
		.nsamples = sc->points.n,
	};

	streams_metrics(sc->lr, sc->rank, STREAM_OUT, &m);
}

void log_scan_run(struct log_scan *sc, bool at_end)
{
	const struct live_stream *st = &sc->lr->nodes[sc->rank].streams[STREAM_OUT];
	struct err ignored;
	size_t n = 0;

	if (!st->file)
		return;
	uint64_t end = logfile_stored(st->file);
	bool full = logfile_is_full(st->file);

	while (st->scanned < end) {
		size_t want = end - st->scanned < BLOCK ? (size_t)(end - st->scanned) : BLOCK;

		if (logfile_pread(st->file, sc->block, want, st->scanned, &n, &ignored) < 0 ||
		    n == 0)
			return;
		const char *nl = memrchr(sc->block, '\n', n);
		bool whole = st->scanned + n >= end;
		size_t use = nl ? (size_t)(nl - sc->block) + 1 : n == BLOCK ? n : 0;

		if ((at_end || full) && whole)
			use = n;
		if (use == 0)
			return;
		take_block(sc, (struct str){sc->block, use});
	}
	if (st->scanned < logfile_size(st->file))
		skip_to(sc, logfile_size(st->file));
}
