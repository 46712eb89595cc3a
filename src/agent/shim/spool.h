#pragma once
/*
 * spool - one pipe of the job, written to one file.
 *
 * The bytes go from the FIFO to the file by splice(2): the kernel takes exactly
 * as much out of the pipe as it has put into the file, so killing the process that
 * pumps at any moment neither loses nor repeats a byte, and the next one goes on
 * at the file's size.
 *
 * When the file cannot take them (full disk) the pipe is left alone, which blocks
 * the job; after full_ms the bytes are dropped and counted as a gap, because
 * logging must not stop a job for ever.  The same at once when the directory was
 * removed before the file was made.  The gap is the caller's to record.
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
	int fifo, file; /* the file is made by the first byte: -1 before */
	uint64_t size;
	bool eof;
	int64_t full_since_ms;	 /* 0: the file takes bytes */
	int64_t full_ms;	 /* how long to wait before dropping */
	int why;		 /* errno of the last failed write */
	struct gap open, closed; /* bytes dropped since the last kept one; before it */
};

enum spool_state {
	SPOOL_IDLE, /* the pipe is empty */
	SPOOL_MORE, /* took much; there may be more */
	SPOOL_FULL, /* cannot write; try again in SPOOL_RETRY_MS */
	SPOOL_EOF,
};

/* Names of the files of a stream in an attempt's directory: "out", "out.fifo". */
void spool_names(enum stream s, char file[static 16], char fifo[static 16]);
/* The directory's FIFOs; what is there stays. */
int spool_make(int dirfd, struct err *err);
/* Open both ends; dirfd must outlive the spool.  The metrics FIFO is held for writing too: its writers come and go without an end of file. */
int spool_open(struct spool *sp, int dirfd, enum stream s, struct err *err);
void spool_close(struct spool *sp);
/* Set eof if the last writer closed the FIFO before it was opened here: poll() does not report that. */
void spool_check_left(struct spool *sp);
/* Move what is there.  *ret_moved: bytes added to the file. */
enum spool_state spool_pump(struct spool *sp, int64_t now_ms, uint64_t *ret_moved);
/* A gap that was closed by bytes that could be kept again, or, at the end of the stream, by that end.  Ask after each pump. */
bool spool_take_gap(struct spool *sp, bool at_end, struct gap *ret);
