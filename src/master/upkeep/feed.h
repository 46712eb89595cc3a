#pragma once
/*
 * feed - the samples of many series, read on the loop in small pieces and handed to the
 * reporter's thread.
 *
 * The store belongs to the loop, and a million samples take longer than the agents may wait: a
 * piece is at most FEED_POINTS samples, and others are served between two of them.  The reporter
 * is one thread, so pieces arrive in order.
 */
#include <stdint.h>
#include "base/err.h"
#include "report/report.h"

struct feeder;
struct loop;
struct store;

#define FEED_POINTS 16384
#define FEED_AHEAD 2 /* pieces read before the first is used up */

struct feed_job {
	const int64_t *series; /* keys in the store; outlive the feed */
	size_t nseries;
	/* On the reporter's thread: */
	void (*points)(void *ctx, size_t series, const struct report_point *p, size_t n);
	void (*end)(void *ctx);
	/* On the loop, last of all; err is set if the store could not be read. */
	void (*done)(void *ctx, const struct err *err);
	void *ctx;
};
/* The reporter's thread is made at first use. */
struct feeder *feeder_new(struct loop *l, struct store *st);
/* Finishes all feeds, and calls their done(), before it returns.  NULL is allowed. */
struct feeder *feeder_free(struct feeder *f);
void feed_start(struct feeder *f, const struct feed_job *job);
