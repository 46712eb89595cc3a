#pragma once
/*
 * slices - long answers made piece by piece, so that short ones do not wait for them.
 *
 * Everything runs on the loop thread.  A job that would block it for many milliseconds (a long
 * list, the past of an event stream) is a function that does one small piece and is called
 * again.  In one turn of the loop all jobs together get SLICES_TURN_MS.  Clients take turns,
 * however many jobs each has; the jobs of one client run one after the other.
 */
#include <stdbool.h>
#include <stdint.h>
#include "base/list.h"

struct loop;
struct slices;

#define SLICES_TURN_MS 4

struct slice_job {
	struct list in_queue; /* belongs to slices.c */
	/* Does one piece.  True: there is more.  False: the job is done, and may have been
	 * freed. */
	bool (*piece)(void *ctx);
	/* Called instead of the next piece when the slices are freed; may be NULL. */
	void (*drop)(void *ctx);
	void *ctx;
};
void slice_job_init(struct slice_job *j, bool (*piece)(void *ctx), void (*drop)(void *ctx),
		    void *ctx);

struct slices *slices_new(struct loop *l);
/* Drops all queued jobs.  NULL is allowed. */
struct slices *slices_free(struct slices *s);
/* Queues the job after the others of this client; the caller keeps the job. */
void slices_add(struct slices *s, uint32_t client, struct slice_job *j);
/* Does nothing if the job is not queued. */
void slice_job_remove(struct slice_job *j);
