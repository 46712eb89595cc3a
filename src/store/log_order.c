#include "store/log_order.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "base/file.h"
#include "store/logfile.h"

#define RECORD 42 /* "%020u %020u\n" */
#define DIGITS 20
#define BLOCK ((size_t)64 * 1024)
#define NAME_MAX_BYTES 128

static bool get_number(const char *p, uint64_t *ret)
{
	uint64_t v = 0;

	for (int i = 0; i < DIGITS; i++) {
		if (p[i] < '0' || p[i] > '9')
			return false;
		v = v * 10 + (uint64_t)(p[i] - '0');
	}
	*ret = v;
	return true;
}

/* False if the record does not exist or is damaged. */
static bool get_record(int fd, uint64_t i, uint64_t ret[static ORDER_LOGS])
{
	char text[RECORD];
	size_t n;

	return fd >= 0 && file_pread_full(fd, text, RECORD, (int64_t)(i * RECORD), &n, NULL) == 0 &&
	       n == RECORD && text[DIGITS] == ' ' && text[RECORD - 1] == '\n' &&
	       get_number(text, &ret[ORDER_OUT]) && get_number(text + DIGITS + 1, &ret[ORDER_ERR]);
}

static int open_order(const char *logs_dir, const char *node, int flags)
{
	char name[NAME_MAX_BYTES];

	snprintf(name, sizeof(name), "%s.order", node);
	return logfile_open_below(logs_dir, name, flags);
}

static uint64_t count_records(int fd)
{
	off_t size = fd >= 0 ? lseek(fd, 0, SEEK_END) : 0;

	return size > 0 ? (uint64_t)size / RECORD : 0;
}

/* Records with sizes beyond those of the logs are about bytes that were lost in a power failure
 * and are sent again: they are dropped. */
static int load(struct log_order *o, int fd, const uint64_t sizes[static ORDER_LOGS])
{
	for (o->records = count_records(fd); o->records; o->records--)
		if (get_record(fd, o->records - 1, o->last) &&
		    o->last[ORDER_OUT] <= sizes[ORDER_OUT] &&
		    o->last[ORDER_ERR] <= sizes[ORDER_ERR])
			break;
	if (o->records == 0)
		o->last[ORDER_OUT] = o->last[ORDER_ERR] = 0;
	o->loaded = ftruncate(fd, (off_t)(o->records * RECORD)) == 0;
	return o->loaded ? 0 : -1;
}

int log_order_grow(struct log_order *o, const char *logs_dir, const char *node, int log,
		   const uint64_t sizes[static ORDER_LOGS], struct err *err)
{
	int other = ORDER_LOGS - 1 - log;
	char text[RECORD + 1];

	if (sizes[other] <= o->last[other])
		return 0; /* the same log as before grows */
	CLEANUP(close_fdp) int fd = open_order(logs_dir, node, O_RDWR | O_CREAT);
	if (fd < 0)
		return err_errno(err, errno, "open the order of the logs of '%s'", node);
	if (!o->loaded && load(o, fd, sizes) < 0)
		return err_errno(err, errno, "cut the order of the logs of '%s'", node);
	if (sizes[other] <= o->last[other])
		return 0;
	snprintf(text, sizeof(text), "%020" PRIu64 " %020" PRIu64 "\n", sizes[ORDER_OUT],
		 sizes[ORDER_ERR]);
	/* An incomplete record is overwritten by the next one. */
	ssize_t n = pwrite(fd, text, RECORD, (off_t)(o->records * RECORD));
	if (n != RECORD)
		return err_errno(err, n < 0 ? errno : ENOSPC, "write the order of the logs of '%s'",
				 node);
	o->records++;
	memcpy(o->last, sizes, sizeof(o->last));
	return 0;
}

/* The first record beyond a position. */
static uint64_t find_record(int fd, const uint64_t pos[static ORDER_LOGS])
{
	uint64_t low = 0, high = count_records(fd), at[ORDER_LOGS];

	while (low < high) {
		uint64_t middle = low + (high - low) / 2;
		if (get_record(fd, middle, at) && at[ORDER_OUT] <= pos[ORDER_OUT] &&
		    at[ORDER_ERR] <= pos[ORDER_ERR])
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

void log_order_reader_init(struct log_order_reader *r, const char *logs_dir, const char *node,
			   const uint64_t pos[static ORDER_LOGS])
{
	r->fd = open_order(logs_dir, node, O_RDONLY);
	r->next = find_record(r->fd, pos);
	memcpy(r->pos, pos, sizeof(r->pos));
}

void log_order_reader_release(struct log_order_reader *r)
{
	if (r->fd >= 0)
		close(r->fd);
	r->fd = -1;
}

int log_order_next(struct log_order_reader *r, const char *logs_dir, const char *node,
		   const uint64_t sizes[static ORDER_LOGS], uint64_t *ret_end)
{
	uint64_t end[ORDER_LOGS];
	bool bounded;

	if (r->fd < 0 && sizes[ORDER_OUT] && sizes[ORDER_ERR])
		r->fd = open_order(logs_dir, node, O_RDONLY);
	do {
		bounded = get_record(r->fd, r->next, end);
		for (int log = 0; log < ORDER_LOGS; log++) {
			if (!bounded || end[log] > sizes[log])
				end[log] = sizes[log];
			if (r->pos[log] < end[log]) {
				*ret_end = end[log];
				return log;
			}
		}
		r->next += bounded;
	} while (bounded);
	return -1;
}

/* Counts newlines in a part of a log, backwards from its end, at most *left of them. */
static int count_lines(int fd, uint64_t begin, uint64_t end, uint64_t *left, uint64_t *ret_lines,
		       struct err *err)
{
	CLEANUP(freep) char *block = xmalloc(BLOCK);

	while (end > begin && *left) {
		uint64_t start = end - begin > BLOCK ? end - BLOCK : begin;
		size_t n;
		if (file_pread_full(fd, block, (size_t)(end - start), (int64_t)start, &n, err) < 0)
			return err_wrap(err, "log");
		for (const char *nl; *left && (nl = memrchr(block, '\n', n));
		     n = (size_t)(nl - block)) {
			(*left)--;
			(*ret_lines)++;
		}
		end = start;
	}
	return 0;
}

/* Counts last lines that have no newline; that of standard error counts as later than that of
 * standard output. */
static void count_open_lines(const int fds[static ORDER_LOGS],
			     const uint64_t sizes[static ORDER_LOGS], uint64_t *left,
			     uint64_t lines[static ORDER_LOGS])
{
	for (int log = ORDER_LOGS - 1; log >= 0; log--) {
		char last = '\n';
		size_t n;
		if (sizes[log] && *left &&
		    file_pread_full(fds[log], &last, 1, (int64_t)sizes[log] - 1, &n, NULL) == 0 &&
		    last != '\n') {
			lines[log]++;
			(*left)--;
		}
	}
}

int log_order_tail(const char *logs_dir, const char *node, const int fds[static ORDER_LOGS],
		   const uint64_t sizes[static ORDER_LOGS], uint64_t lines,
		   uint64_t ret_pos[static ORDER_LOGS], struct err *err)
{
	CLEANUP(close_fdp) int fd = open_order(logs_dir, node, O_RDONLY);
	uint64_t end[ORDER_LOGS] = {sizes[ORDER_OUT], sizes[ORDER_ERR]};
	uint64_t mine[ORDER_LOGS] = {0}; /* last lines per log */
	uint64_t i = count_records(fd), left = lines;

	/* Counts, backwards from the end, how many of the last lines are in each log; then finds
	 * the tail of each. */
	count_open_lines(fds, sizes, &left, mine);
	while (left && (end[ORDER_OUT] || end[ORDER_ERR])) {
		uint64_t begin[ORDER_LOGS] = {0};
		if (i && !get_record(fd, --i, begin))
			continue;
		for (int log = ORDER_LOGS - 1; log >= 0; log--) {
			if (begin[log] > end[log])
				begin[log] = end[log];
			if (count_lines(fds[log], begin[log], end[log], &left, &mine[log], err) < 0)
				return -1;
			end[log] = begin[log];
		}
	}
	for (int log = 0; log < ORDER_LOGS; log++) {
		ret_pos[log] = 0;
		if (fds[log] >= 0 &&
		    logfile_tail_offset(fds[log], mine[log], &ret_pos[log], err) < 0)
			return -1;
	}
	return 0;
}
