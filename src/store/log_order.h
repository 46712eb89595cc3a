#pragma once
/*
 * log_order - in which order the bytes of a node's two logs came.
 *
 * A text file beside the logs, "<node>.order".  Each record is one line of fixed
 * length with the sizes of the two logs, standard output first, at a moment when
 * one of them was about to grow after the other one had.  So between two records
 * one log has grown, and a job that uses only one of the two has no such file.
 * Where nothing is known (a run of an older version, records that were lost with
 * the power) standard output comes first: a reader always gets every byte.
 *
 * Records are written before the bytes that they are about, and are not synced.
 */
#include <stdbool.h>
#include <stdint.h>

struct err;

/* The two logs, as the streams of a node are numbered. */
enum { ORDER_OUT, ORDER_ERR, ORDER_LOGS };

/* The writer's knowledge of one node.  Zero is a good start: the file is looked at when both logs
 * have bytes. */
struct log_order {
	uint64_t records;	   /* complete ones in the file */
	uint64_t last[ORDER_LOGS]; /* the sizes that the last one says */
	bool loaded;
};

/* One log of the node is about to grow; sizes are those before it does.  ENOSPC is ERR_CAPACITY, and
 * the call may be made again. */
int log_order_grow(struct log_order *o, const char *logs_dir, const char *node, int log,
		   const uint64_t sizes[static ORDER_LOGS], struct err *err);

/* A reader of both logs in the order of arrival. */
struct log_order_reader {
	int fd;			  /* of the order file; -1 = there is none (yet) */
	uint64_t next;		  /* record */
	uint64_t pos[ORDER_LOGS]; /* bytes of each log that were taken */
};

/* pos: where to begin in each log. */
void log_order_reader_init(struct log_order_reader *r, const char *logs_dir, const char *node,
			   const uint64_t pos[static ORDER_LOGS]);
void log_order_reader_release(struct log_order_reader *r);
/* Which log goes on now, and up to which offset; -1 when all of both is taken.  The caller
 * advances r->pos. */
int log_order_next(struct log_order_reader *r, const char *logs_dir, const char *node,
		   const uint64_t sizes[static ORDER_LOGS], uint64_t *ret_end);
/* Where the last `lines` lines of both logs together begin in each of them.  fds may be -1 for an
 * empty log. */
int log_order_tail(const char *logs_dir, const char *node, const int fds[static ORDER_LOGS],
		   const uint64_t sizes[static ORDER_LOGS], uint64_t lines,
		   uint64_t ret_pos[static ORDER_LOGS], struct err *err);
