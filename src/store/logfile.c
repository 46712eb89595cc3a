/*
 * One open log file, used by the loop thread.
 *
 * The file grows by whole appends: an append that fails is cut off again.  If even that fails,
 * nothing more may be appended through this handle, because the known size is not that of the
 * file.  The bytes beyond it are correct, so opening the file again is enough.
 */
#include "store/logfile.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "base/file.h"
#include "base/list.h"

#define TAIL_BLOCK ((size_t)64 * 1024)

struct logfile_pool {
	int open, max;
	struct list idle; /* open files that may be closed; the one that was used last is last */
};

struct logfile {
	int fd; /* -1: another file of its pool has it */
	const char *dir;
	struct logfile_pool *pool;
	struct list idle;
	uint64_t size, synced;	/* bytes that came */
	uint64_t stored, limit; /* the first of them, in the file; at most `limit` */
	bool torn;		/* a failed append could not be cut off */
	char name[];		/* for messages */
};

/* The name is one part of a path, so it cannot lead out of the directory. */
static bool name_is_plain(const char *name)
{
	return *name && !strchr(name, '/') && strcmp(name, ".") != 0 && strcmp(name, "..") != 0;
}

/* O_NONBLOCK: the open must not block on a FIFO in place of the log. */
int logfile_open_below(const char *logs_dir, const char *name, int flags)
{
	CLEANUP(close_fdp)
	int dir = open(logs_dir, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

	if (dir < 0)
		return -1;
	return openat(dir, name, flags | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0600);
}

int logfile_open(const char *logs_dir, const char *name, struct logfile **ret, struct err *err)
{
	CLEANUP(close_fdp) int fd = -1;
	struct stat sb;

	if (!name_is_plain(name))
		return err_set(err, ERR_INVALID, "'%s' cannot name a log", name);
	fd = logfile_open_below(logs_dir, name, O_RDWR | O_CREAT);
	if (fd < 0)
		return err_errno(err, errno, "open log '%s/%s'", logs_dir, name);
	if (fstat(fd, &sb) < 0)
		return err_errno(err, errno, "stat log '%s/%s'", logs_dir, name);
	if (!S_ISREG(sb.st_mode))
		return err_set(err, ERR_INVALID, "log '%s/%s' is not a regular file", logs_dir,
			       name);
	/* Bytes that an earlier process wrote may not be on disk yet. */
	if (sb.st_size && logfile_sync_fd(fd, err) < 0)
		return err_wrap(err, "log '%s/%s'", logs_dir, name);

	size_t len = strlen(name) + 1;
	struct logfile *lf = xcalloc(1, sizeof(*lf) + len);
	lf->fd = TAKE_FD(fd);
	lf->size = lf->synced = lf->stored = (uint64_t)sb.st_size;
	lf->limit = UINT64_MAX;
	lf->dir = logs_dir;
	list_init(&lf->idle);
	memcpy(lf->name, name, len);
	*ret = lf;
	return 0;
}

static void close_file(struct logfile *lf)
{
	if (lf->fd < 0)
		return;
	close(lf->fd);
	lf->fd = -1;
	list_remove(&lf->idle);
	if (lf->pool)
		lf->pool->open--;
}

struct logfile *logfile_close(struct logfile *lf)
{
	if (!lf)
		return NULL;
	close_file(lf);
	free(lf);
	return NULL;
}

struct logfile_pool *logfile_pool_new(int max)
{
	struct logfile_pool *p = xcalloc(1, sizeof(*p));

	p->max = max;
	list_init(&p->idle);
	return p;
}

struct logfile_pool *logfile_pool_free(struct logfile_pool *p)
{
	free(p);
	return NULL;
}

/* While bytes are not synced a worker may have the descriptor, and only this descriptor is sure
 * to tell that they could not be written. */
static void note_use(struct logfile *lf)
{
	list_remove(&lf->idle);
	if (lf->pool && lf->fd >= 0 && lf->synced == lf->size && !lf->torn)
		list_append(&lf->pool->idle, &lf->idle);
}

static void add_open(struct logfile *lf)
{
	struct logfile_pool *p = lf->pool;

	p->open++;
	note_use(lf);
	while (p->open > p->max && !list_empty(&p->idle))
		close_file(list_item(p->idle.next, struct logfile, idle));
}

void logfile_share(struct logfile *lf, struct logfile_pool *p)
{
	lf->pool = p;
	if (p)
		add_open(lf);
}

static int open_again(struct logfile *lf, struct err *err)
{
	CLEANUP(close_fdp) int fd = -1;
	struct stat sb;

	if (lf->fd >= 0)
		return 0;
	if (lf->pool->open >= lf->pool->max && list_empty(&lf->pool->idle))
		return err_set(
			err, ERR_CAPACITY,
			"log '%s' has to wait: the disk is slow, and all %d logs that may be "
			"open are being synced",
			lf->name, lf->pool->max);
	fd = logfile_open_below(lf->dir, lf->name, O_RDWR);
	if (fd < 0 || fstat(fd, &sb) < 0)
		return err_errno(err, errno, "open log '%s/%s' again", lf->dir, lf->name);
	if (!S_ISREG(sb.st_mode) || (uint64_t)sb.st_size != lf->stored)
		return err_set(err, ERR_IO,
			       "log '%s/%s' was changed: it has %lld bytes, and %" PRIu64
			       " were stored",
			       lf->dir, lf->name, (long long)sb.st_size, lf->stored);
	lf->fd = TAKE_FD(fd);
	add_open(lf);
	return 0;
}

int logfile_pread(const struct logfile *lf, void *p, size_t n, uint64_t offset, size_t *ret_n,
		  struct err *err)
{
	CLEANUP(close_fdp) int again = -1;

	if (lf->fd < 0 && (again = logfile_open_below(lf->dir, lf->name, O_RDONLY)) < 0)
		return err_errno(err, errno, "open log '%s/%s' again", lf->dir, lf->name);
	return file_pread_full(lf->fd < 0 ? again : lf->fd, p, n, (int64_t)offset, ret_n, err);
}

uint64_t logfile_size(const struct logfile *lf)
{
	return lf->size;
}

/* A file that is longer than its limit ends with the line of log_cut.h. */
void logfile_limit(struct logfile *lf, uint64_t limit, uint64_t received)
{
	lf->limit = limit;
	lf->stored = lf->stored < limit ? lf->stored : limit;
	lf->size = lf->synced = lf->stored == limit && received > limit ? received : lf->stored;
}

bool logfile_is_full(const struct logfile *lf)
{
	return lf->stored >= lf->limit;
}

uint64_t logfile_stored(const struct logfile *lf)
{
	return lf->stored;
}

uint64_t logfile_synced(const struct logfile *lf)
{
	return lf->synced;
}

int logfile_fd(const struct logfile *lf)
{
	return lf->fd;
}

static int write_at(int fd, struct str bytes, uint64_t offset)
{
	while (bytes.n) {
		ssize_t done = pwrite(fd, bytes.p, bytes.n, (off_t)offset);

		if (done < 0) {
			if (errno == EINTR)
				continue;
			return -1;
		}
		bytes.p += done;
		bytes.n -= (size_t)done;
		offset += (uint64_t)done;
	}
	return 0;
}

int logfile_append(struct logfile *lf, uint64_t offset, struct str bytes, struct err *err)
{
	if (lf->torn)
		return err_set(err, ERR_IO, "log '%s' is torn: open it again", lf->name);
	if (offset > lf->size)
		return err_set(err, ERR_PROTOCOL,
			       "log '%s': bytes for offset %" PRIu64 ", but %" PRIu64 " are stored",
			       lf->name, offset, lf->size);
	uint64_t known = lf->size - offset;
	if (bytes.n <= known)
		return 0;
	bytes.p += known;
	bytes.n -= known;
	uint64_t room = lf->limit - lf->stored;
	struct str kept = {bytes.p, bytes.n < room ? bytes.n : (size_t)room};
	if (kept.n && open_again(lf, err) < 0)
		return -1;
	if (kept.n && write_at(lf->fd, kept, lf->stored) < 0) {
		int errnum = errno;

		lf->torn = ftruncate(lf->fd, (off_t)lf->stored) < 0;
		note_use(lf);
		return err_errno(err, errnum, "append to log '%s'", lf->name);
	}
	if (!kept.n && lf->synced == lf->size)
		lf->synced += bytes.n;
	lf->stored += kept.n;
	lf->size += bytes.n;
	note_use(lf);
	return 0;
}

int logfile_sync_fd(int fd, struct err *err)
{
	if (fdatasync(fd) < 0)
		return err_errno(err, errno, "sync log");
	return 0;
}

void logfile_mark_synced(struct logfile *lf, uint64_t size)
{
	if (size > lf->size)
		size = lf->size;
	if (size > lf->synced)
		lf->synced = size;
	note_use(lf);
}

/*
 * The lines begin after the (lines)th newline from the end, not counting one that is the last
 * byte of the file: it ends the last line.
 */
int logfile_tail_offset(int fd, uint64_t lines, uint64_t *ret_offset, struct err *err)
{
	struct stat sb;

	if (fstat(fd, &sb) < 0)
		return err_errno(err, errno, "stat log");
	uint64_t size = (uint64_t)sb.st_size, end = size;
	if (lines == 0 || size == 0) {
		*ret_offset = size;
		return 0;
	}
	CLEANUP(freep) char *block = xmalloc(TAIL_BLOCK);
	while (end > 0) {
		/* Blocks begin at multiples of their size, to match the pages of the cache. */
		uint64_t start = (end - 1) / TAIL_BLOCK * TAIL_BLOCK;
		size_t n;

		if (file_pread_full(fd, block, (size_t)(end - start), (int64_t)start, &n, err) < 0)
			return err_wrap(err, "log");
		if (n && start + n == size)
			n--; /* no line begins after the last byte */
		for (const char *nl; (nl = memrchr(block, '\n', n)); n = (size_t)(nl - block))
			if (--lines == 0) {
				*ret_offset = start + (uint64_t)(nl - block) + 1;
				return 0;
			}
		end = start;
	}
	*ret_offset = 0;
	return 0;
}

uint64_t logfile_line_start(int fd, uint64_t offset)
{
	CLEANUP(freep) char *block = xmalloc(TAIL_BLOCK);
	uint64_t start = offset > TAIL_BLOCK ? offset - TAIL_BLOCK : 0;
	size_t n;

	if (file_pread_full(fd, block, (size_t)(offset - start), (int64_t)start, &n, NULL) < 0 ||
	    n != offset - start)
		return offset;
	while (n && block[n - 1] != '\n' && block[n - 1] != '\r')
		n--;
	return n || start == 0 ? start + n : offset;
}

bool logfile_exists(const char *logs_dir, const char *name, uint64_t *ret_size)
{
	CLEANUP(freep) char *path = xasprintf("%s/%s", logs_dir, name);
	struct stat sb;

	if (!name_is_plain(name) || lstat(path, &sb) < 0 || !S_ISREG(sb.st_mode))
		return false;
	*ret_size = (uint64_t)sb.st_size;
	return true;
}

int logfile_open_read(const char *logs_dir, const char *name, int *ret_fd, uint64_t *ret_size,
		      struct err *err)
{
	CLEANUP(close_fdp) int fd = -1;
	struct stat sb;

	if (name_is_plain(name))
		fd = logfile_open_below(logs_dir, name, O_RDONLY);
	else
		errno = ENOENT;
	if (fd < 0 && (errno == EACCES || errno == EMFILE || errno == ENFILE || errno == ENOMEM))
		return err_errno(err, errno, "open log '%s'", name);
	/* A link, a FIFO without a writer, a socket or a missing directory counts as a missing
	 * log. */
	if (fd < 0 || fstat(fd, &sb) < 0 || !S_ISREG(sb.st_mode))
		return err_set(err, ERR_NOT_FOUND, "no log '%s'", name);
	*ret_size = (uint64_t)sb.st_size;
	*ret_fd = TAKE_FD(fd);
	return 0;
}
