#pragma once
/*
 * spool - one pipe of the job, written to one file.
 *
 * The bytes go from the FIFO to the file by splice(2): the kernel takes exactly as much out of the
 * pipe as it puts into the file.  So a kill at any moment neither loses nor repeats a byte, and the
 * next process continues at the file's size.
 *
 * When the file cannot be written (full disk) the pipe is not read, which blocks the job.  After
 * full_ms the bytes are dropped and counted as a gap, because logging must not stop a job for ever.
 * They are dropped at once if the directory was removed before the file was made.  The caller
 * records gaps.
 */
#include <stdbool.h>
#include <stdint.h>
#include "link/message.h"

struct err;

#define SPOOL_RETRY_MS 100
#define SPOOL_FULL_MS (30 * 1000)

struct spool {
	enum stream stream;
	int dirfd;	/* of the attempt; borrowed */
	int fifo, file; /* file: made at the first byte, -1 before */
	uint64_t size;
	bool eof;
	int64_t full_since_ms;	 /* since when writing fails; 0: it works */
	int64_t full_ms;	 /* how long to wait before dropping */
	int why;		 /* errno of the last failed write */
	struct gap open, closed; /* bytes dropped since the last stored byte; an earlier gap */
};

enum spool_state {
	SPOOL_IDLE, /* the pipe is empty */
	SPOOL_MORE, /* the pipe may have more bytes */
	SPOOL_FULL, /* cannot write; try again in SPOOL_RETRY_MS */
	SPOOL_EOF,
};

/* Names of the files of a stream in an attempt's directory: "out", "out.fifo"; of process 1 "out.p1",
 * "out.p1.fifo". */
void spool_names(enum stream s, char file[static 16], char fifo[static 16]);
/* Make the directory's FIFOs for n streams, except those that exist. */
int spool_make(int dirfd, int n, struct err *err);
/* Free the disk space of the directory's n spools: nobody writes to them any more. */
void spool_empty(int dirfd, int n);
/* Open FIFO and file; dirfd must outlive the spool.  The metrics FIFO is opened for writing too, so that
 * a job's writer may close it and open it again without an end of file. */
int spool_open(struct spool *sp, int dirfd, enum stream s, struct err *err);
void spool_close(struct spool *sp);
/* Set eof if the last writer closed the FIFO before spool_open: poll() does not report that. */
void spool_check_left(struct spool *sp);
/* Move bytes from the FIFO to the file.  *ret_moved: bytes added to the file. */
enum spool_state spool_pump(struct spool *sp, int64_t now_ms, uint64_t *ret_moved);
/* Take a finished gap: one after which bytes were stored again, or, with at_end, any.  Call after each pump. */
bool spool_take_gap(struct spool *sp, bool at_end, struct gap *ret);
