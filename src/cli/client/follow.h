#pragma once
/*
 * follow - logs of several nodes at once, each on a connection of its own.
 *
 * Every stream knows its offset, so after a restart of the master
 * it goes on where it was, without a lost or repeated byte.
 */
#include <poll.h>
#include <stdbool.h>
#include <stdint.h>
#include "base/str.h"

struct api;
struct arena;
struct doc;
struct err;
struct follow;

#define FOLLOW_MAX_LINE (64 * 1024) /* a longer line is handed over in pieces */

/* Which of a node's two logs; FOLLOW_BOTH gives both in the order of arrival. */
enum follow_logs { FOLLOW_OUT, FOLLOW_ERR, FOLLOW_BOTH };

/* A line without its newline. */
struct follow_line {
	struct str node, text;
	bool is_err;
	int64_t ms; /* Unix time at which its first byte reached the master; -1: not known or not asked for */
};

struct follow_sink { /* exactly one of the two is set */
	void (*line)(void *ctx, const struct follow_line *line);
	void (*bytes)(void *ctx, struct str bytes); /* with FOLLOW_BOTH: whole lines */
};

/* The names by which the logs of a node of the API are asked for: its own, or "<node>.p<p>" for each of several
 * processes. */
size_t follow_names(const struct doc *node, struct arena *a, struct str **ret);
/* The node of such a name. */
struct str follow_node(struct str name);

struct follow *follow_new(const struct api *api, const char *run, const struct follow_sink *sink,
			  void *ctx);
struct follow *follow_free(struct follow *f);
/* Only this attempt of each node that is added from now on; 0: all, one after the other. */
void follow_attempt(struct follow *f, int64_t attempt);
/* Of each node that is added from now on: only what reached the master since then, a duration
 * ("5m") or a time (RFC 3339); NULL: everything. */
void follow_since(struct follow *f, const char *since);
/* Lines of each node that is added from now on have their times. */
void follow_times(struct follow *f, bool times);
/* From the offset on or, with tail >= 0, the last lines.  go_on: wait for more at the end of the
 * log until the node has ended. */
void follow_add(struct follow *f, struct str node, enum follow_logs logs, int64_t offset,
		int64_t tail, bool go_on);
/* Streams that have not ended. */
size_t follow_open(const struct follow *f);
/* What to wait for: fills at most max, returns their number.  *timeout_ms is lowered where a
 * stream is to be tried again or has more to give at once. */
size_t follow_fds(const struct follow *f, struct pollfd *fds, size_t max, int *timeout_ms);
/* Read what has arrived, a limited amount from each stream.  -1 when the master refuses a stream. */
int follow_step(struct follow *f, struct err *err);
