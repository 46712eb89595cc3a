#include "store/log_cut.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/alloc.h"
#include "base/buf.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "base/file.h"
#include "store/logfile.h"

#define CUT_MAX 64 /* bytes of the file */

static bool read_cut(const char *logs_dir, const char *log, uint64_t *ret_limit,
		     uint64_t *ret_received)
{
	CLEANUP(freep) char *name = xasprintf("%s.cut", log);
	CLEANUP(close_fdp) int fd = logfile_open_below(logs_dir, name, O_RDONLY);
	char text[CUT_MAX];
	size_t n;

	if (fd < 0 || file_pread_full(fd, text, sizeof(text), 0, &n, NULL) < 0)
		return false;
	struct str received = str_trim((struct str){text, n}), limit = str_cut(&received, ' ');
	return str_to_u64(limit, ret_limit) && str_to_u64(received, ret_received) &&
	       *ret_received >= *ret_limit;
}

static int write_cut(const char *logs_dir, const char *log, uint64_t limit, uint64_t received,
		     bool durable, struct err *err)
{
	CLEANUP(freep) char *path = xasprintf("%s/%s.cut", logs_dir, log);
	char text[CUT_MAX];

	snprintf(text, sizeof(text), "%" PRIu64 " %" PRIu64 "\n", limit, received);
	return file_write_atomic(path, str_from(text), 0600, durable, err);
}

int log_cut_note(const char *logs_dir, const char *log, uint64_t limit, uint64_t received,
		 struct err *err)
{
	return write_cut(logs_dir, log, limit, received, false, err);
}

/* The line begins a new one, because the limit may be in the middle of one.  A log that is longer
 * than the limit has it already. */
static int add_line(const char *logs_dir, const char *log, uint64_t limit, uint64_t received,
		    struct err *err)
{
	CLEANUP(close_fdp) int fd = logfile_open_below(logs_dir, log, O_RDWR | O_APPEND);
	struct stat sb;
	char text[128], last = '\n';
	size_t n;

	if (fd < 0 || fstat(fd, &sb) < 0)
		return err_errno(err, errno, "open log '%s'", log);
	if ((uint64_t)sb.st_size != limit)
		return 0;
	if (limit && file_pread_full(fd, &last, 1, (int64_t)limit - 1, &n, err) < 0)
		return -1;
	snprintf(text, sizeof(text),
		 "%s[regatta: %" PRIu64 " bytes not stored: limit %" PRIu64
		 " bytes of output.max_log]\n",
		 last == '\n' ? "" : "\n", received - limit, limit);
	return file_write_all(fd, text, strlen(text), err);
}

int log_cut_end(const char *logs_dir, const char *log, uint64_t limit, uint64_t received,
		struct err *err)
{
	if (write_cut(logs_dir, log, limit, received, true, err) < 0)
		return -1;
	return add_line(logs_dir, log, limit, received, err);
}

uint64_t log_cut_missing(const char *logs_dir, const char *log)
{
	uint64_t limit, received;

	return read_cut(logs_dir, log, &limit, &received) ? received - limit : 0;
}

uint64_t log_cut_received(const char *logs_dir, const char *log, uint64_t stored)
{
	uint64_t limit, received;

	return read_cut(logs_dir, log, &limit, &received) ? received : stored;
}
