#pragma once
/*
 * slices - long answers made piece by piece, so that a short one never waits long.
 *
 * Everything runs on one thread.  A job that would hold it for many milliseconds (a long list, the
 * past of an event stream) is a function that does one small piece and is called again.  In one
 * turn of the loop all jobs together get SLICES_TURN_MS.  Clients take turns, whatever number of
 * jobs each has; the jobs of one client follow each other.
 */
#include <stdbool.h>
#include <stdint.h>
#include "base/list.h"

struct loop;
struct slices;

#define SLICES_TURN_MS 4

struct slice_job {
	struct list in_queue; /* of slices.c */
	/* One piece.  True: there is more.  With false the job is over, and may have been freed. */
	bool (*piece)(void *ctx);
	/* Instead of the next piece when the slices are freed; may be NULL. */
	void (*drop)(void *ctx);
	void *ctx;
};
void slice_job_init(struct slice_job *j, bool (*piece)(void *ctx), void (*drop)(void *ctx),
		    void *ctx);

struct slices *slices_new(struct loop *l);
/* Drops what is queued.  NULL is allowed. */
struct slices *slices_free(struct slices *s);
/* Queues the job behind the others of this client; the job stays the caller's. */
void slices_add(struct slices *s, uint32_t client, struct slice_job *j);
/* A job that is not queued is fine. */
void slice_job_remove(struct slice_job *j);
