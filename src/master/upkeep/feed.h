#pragma once
/*
 * feed - reads the samples of many series on the loop, in small pieces, and hands them to the
 * reporter's thread.
 *
 * Only the loop may use the store, and a million samples take longer than agents may wait: a
 * piece has at most FEED_POINTS samples, and the loop serves others between two pieces.  The
 * reporter is one thread, so pieces arrive in order.
 */
#include <stdint.h>
#include "base/err.h"
#include "report/report.h"

struct feeder;
struct loop;
struct store;

#define FEED_POINTS 16384
#define FEED_AHEAD 2 /* pieces that may be read before the reporter has used up the first */

struct feed_job {
	const int64_t *series; /* keys in the store; must outlive the feed */
	size_t nseries;
	/* Called on the reporter's thread. */
	void (*points)(void *ctx, size_t series, const struct report_point *p, size_t n);
	void (*end)(void *ctx);
	/* Called on the loop, last; err is set if the store could not be read. */
	void (*done)(void *ctx, const struct err *err);
	void *ctx;
};
/* The reporter's thread is started at first use. */
struct feeder *feeder_new(struct loop *l, struct store *st);
/* Finishes all feeds, and calls their done(), before it returns.  NULL is allowed. */
struct feeder *feeder_free(struct feeder *f);
void feed_start(struct feeder *f, const struct feed_job *job);
