#pragma once
/*
 * log_cut - how much of a log was not stored, because it reached the limit that its job set.
 *
 * A text file beside the log, "<log>.cut": the limit and the number of bytes that came.  The log
 * has the bytes below the limit and, once the stream has ended, a line that says how many are
 * missing.
 */
#include <stdint.h>

struct err;

/* Records what has come until now; the stream may go on. */
int log_cut_note(const char *logs_dir, const char *log, uint64_t limit, uint64_t received,
		 struct err *err);
/* The stream has ended: records it durably and adds the line to the log.  May be repeated. */
int log_cut_end(const char *logs_dir, const char *log, uint64_t limit, uint64_t received,
		struct err *err);
/* Bytes that came and are not in the log; 0 if it was not cut. */
uint64_t log_cut_missing(const char *logs_dir, const char *log);
/* Bytes that came.  `stored`: the size of the log, for one that was not cut. */
uint64_t log_cut_received(const char *logs_dir, const char *log, uint64_t stored);
