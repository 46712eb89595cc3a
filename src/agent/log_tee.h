#pragma once
/*
 * log_tee - bytes for the log of the node that the job itself does not write: what the start of a daemon
 * says for mpirun.
 *
 * They go into the pipe of the job's own output, and so through its spool.  The pipe is open only while
 * bytes are written, so that it does not seem to be held when the job ends.
 */
#include <stdbool.h>
#include "base/buf.h"
#include "link/frame.h"

struct loop;
struct loop_io;

struct log_tee {
	struct loop *loop;
	int fd; /* of the pipe, while bytes wait; else -1 */
	struct loop_io *io;
	struct buf waiting;
	void (*drained)(void *ctx);
	void *ctx;
};

/* drained: called when bytes that had to wait are written. */
void log_tee_init(struct log_tee *t, struct loop *l, size_t max, void (*drained)(void *ctx),
		  void *ctx);
void log_tee_release(struct log_tee *t);
/* The stream of the attempt in dirfd.  Bytes are dropped only if the job's output is closed. */
void log_tee_write(struct log_tee *t, int dirfd, enum stream s, struct str bytes);
/* Do bytes wait?  Then no more may be written. */
bool log_tee_waits(const struct log_tee *t);
