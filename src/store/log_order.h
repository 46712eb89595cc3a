#pragma once
/*
 * log_order - the order in which the bytes of a node's two logs arrived.
 *
 * A text file beside the logs, "<node>.order".  Each record is a line of fixed length with the
 * sizes of the two logs, standard output first, at the time when one of them was about to grow
 * after the other one had grown.  So between two records one log has grown, and a job that uses
 * only one of the logs has no such file.  If the order is not known (a run of an older version,
 * records lost in a power failure) standard output comes first: a reader always gets every byte.
 *
 * Records are written before the bytes that they are about, and are not synced.
 */
#include <stdbool.h>
#include <stdint.h>

struct err;

/* The two logs, numbered as the streams of a node. */
enum { ORDER_OUT, ORDER_ERR, ORDER_LOGS };

/* State of the writer for one node.  Zero is a valid start: the file is read when both logs have
 * bytes. */
struct log_order {
	uint64_t records;	   /* complete records in the file */
	uint64_t last[ORDER_LOGS]; /* sizes in the last record */
	bool loaded;
};

/* To be called before one log of the node grows, with the sizes before it does.  ENOSPC is
 * ERR_CAPACITY, and the call may be repeated. */
int log_order_grow(struct log_order *o, const char *logs_dir, const char *node, int log,
		   const uint64_t sizes[static ORDER_LOGS], struct err *err);

/* A reader of both logs in the order of arrival. */
struct log_order_reader {
	int fd;			  /* the order file; -1 = it does not exist (yet) */
	uint64_t next;		  /* the next record */
	uint64_t pos[ORDER_LOGS]; /* bytes of each log that were read */
};

/* pos: where to begin in each log. */
void log_order_reader_init(struct log_order_reader *r, const char *logs_dir, const char *node,
			   const uint64_t pos[static ORDER_LOGS]);
void log_order_reader_release(struct log_order_reader *r);
/* Which log comes next, and up to which offset; -1 when both are read to their end.  The caller
 * advances r->pos. */
int log_order_next(struct log_order_reader *r, const char *logs_dir, const char *node,
		   const uint64_t sizes[static ORDER_LOGS], uint64_t *ret_end);
/* Where the last `lines` lines of both logs together begin in each log.  fds may be -1 for an
 * empty log. */
int log_order_tail(const char *logs_dir, const char *node, const int fds[static ORDER_LOGS],
		   const uint64_t sizes[static ORDER_LOGS], uint64_t lines,
		   uint64_t ret_pos[static ORDER_LOGS], struct err *err);
