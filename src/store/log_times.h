#pragma once
/*
 * log_times - when the bytes of a log reached the master.
 *
 * A text file beside the log, "<log>.times": the log itself has only what the job wrote.  Each
 * record is a line of fixed length with an offset and a Unix time in ms: the bytes from there on,
 * up to the offset of the next record, arrived at that time or a moment later.  Times never go
 * back.  A record is written at most every 10 ms; the pause doubles with every 65,536 records, so
 * that the file stays small whatever the job prints.
 *
 * Records are written before the bytes that they are about, and are not synced.  A record that
 * cannot be written, is damaged or was lost in a power failure is no error: then the time of some
 * bytes is less exact, or not known.
 */
#include <stdbool.h>
#include <stdint.h>

#define LOG_TIME_UNKNOWN (-1)

/* State of the writer for one log.  Zero is a valid start: the file is read when the log grows. */
struct log_times {
	uint64_t records; /* complete records in the file */
	int64_t last_ms;  /* time of the last one */
	bool loaded;
};

/* To be called before the log grows, with its size before it does. */
void log_times_grow(struct log_times *t, const char *logs_dir, const char *log, uint64_t size,
		    int64_t now_ms);

/* The offset of the first byte that arrived at `since_ms` or later; `size` if there is none.
 * Bytes whose time is not known count as new enough. */
uint64_t log_times_find(const char *logs_dir, const char *log, uint64_t size, int64_t since_ms);

/* A reader that goes forward. */
struct log_times_reader {
	int fd;		/* -1: the file does not exist (yet) */
	uint64_t next;	/* the first record beyond the position asked for last */
	int64_t now_ms; /* time of the record before it, LOG_TIME_UNKNOWN if there is none */
};

void log_times_reader_init(struct log_times_reader *r, const char *logs_dir, const char *log,
			   uint64_t pos);
void log_times_reader_release(struct log_times_reader *r);
/* When the byte at pos arrived; *ret_end is the offset from which on the time is another one,
 * UINT64_MAX if no such offset is known.  pos must not go back. */
int64_t log_times_at(struct log_times_reader *r, const char *logs_dir, const char *log,
		     uint64_t pos, uint64_t *ret_end);
