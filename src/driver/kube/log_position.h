#pragma once
/*
 * log_position - the log of a container without its timestamps, each byte once, over any number of answers.
 *
 * The cluster puts the time before each line (timestamps=true), and can begin an answer with the lines of
 * a second (sinceTime).  Lines of standard output and standard error may be in another order than their
 * times, but an answer has them in the order in which they are stored.  So the position is a second, and
 * how many of the lines of that second and the one before it were taken: the next answer begins with the
 * second before, and as many lines of it are skipped.
 *
 * Pure.  A line that is not complete when an answer ends is counted in bytes.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "base/str.h"

struct buf;

#define LOG_TIME_MAX 40
#define LOG_SAID_MAX 120

struct log_position {
	int64_t second;		 /* the newest of the lines taken; 0: none was taken */
	uint64_t before, within; /* lines taken of the second before it, and of it */
	uint64_t part;		 /* bytes taken of the line that comes next; 0: it is not begun */
	char last[LOG_TIME_MAX]; /* time of the last line that was begun */
};

struct log_reader {
	struct log_position at;
	/* of the current answer */
	uint64_t skip, skip_part;
	bool newer_only; /* the place was lost: lines up to `last` are skipped */
	bool found;	 /* the line of `last` is there: nothing is missing after it */
	bool gap;	 /* it was not: lines are missing, until somebody has noted it */
	bool skips;	 /* the current line is */
	bool foreign; /* the current line has no time: it is the cluster's, not the container's */
	bool says;    /* it is the first such line */
	char said[LOG_SAID_MAX]; /* the beginning of the first such line of the answer; "": none */
	bool in_line;
	char time[LOG_TIME_MAX];
	size_t ntime;
	int64_t line_second;
};

/* The beginning of an answer.  newer_only: of the next answers only lines after `last` are taken. */
void log_reader_begin(struct log_reader *r);
/* The time for sinceTime, in out; "": from the first line. */
void log_reader_since(const struct log_reader *r, char out[static 32]);
/* Takes bytes of the answer, and appends those of the log.  False: the lines that were taken before are not
 * there any more (they were rotated away): what follows is taken by another answer, from `last` on. */
bool log_reader_take(struct log_reader *r, struct str bytes, struct buf *out);

/* The position as text, and from it; false: it is none. */
void log_position_put(const struct log_position *p, char *out, size_t size);
bool log_position_get(const char *text, struct log_position *ret);
