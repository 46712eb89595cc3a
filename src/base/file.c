#include "base/file.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/buf.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "base/path.h"
#include "base/rand.h"

#define READ_STEP ((size_t)64 * 1024)
#define COPY_STEP (16 << 20) /* bytes per system call, so that a killed process ends soon */

/* Retries EINTR; -1 with errno otherwise. */
static ssize_t read_some(int fd, void *p, size_t n)
{
	ssize_t got;

	do {
		got = read(fd, p, n);
	} while (got < 0 && errno == EINTR);
	return got;
}

static int read_to_end(int fd, const char *name, struct buf *out, struct err *err)
{
	for (;;) {
		size_t left = out->max - out->n, step = left < READ_STEP ? left : READ_STEP;
		char one = 0;

		/* The buffer is at its maximum: the next read must find the end of the file. */
		char *room = step ? buf_reserve(out, step) : &one;
		ssize_t got = read_some(fd, room, step ? step : 1);
		if (got < 0)
			return err_errno(err, errno, "read '%s'", name);
		if (got == 0)
			return 0;
		if (!step)
			return err_set(err, ERR_CAPACITY, "'%s' is larger than %zu bytes", name,
				       out->max);
		buf_commit(out, (size_t)got);
	}
}

/* All or nothing: on failure the buffer is unchanged. */
static int read_open_file(int fd, const char *name, struct buf *out, struct err *err)
{
	size_t before = out->n;

	if (read_to_end(fd, name, out, err) == 0)
		return 0;
	out->n = before;
	if (out->p)
		out->p[before] = '\0';
	return -1;
}

int file_read(const char *path, struct buf *out, struct err *err)
{
	CLEANUP(close_fdp) int fd = open(path, O_RDONLY | O_CLOEXEC);

	if (fd < 0)
		return err_errno(err, errno, "open '%s'", path);
	return read_open_file(fd, path, out, err);
}

int file_read_at(int dirfd, const char *name, struct buf *out, struct err *err)
{
	/* O_NONBLOCK: opening a fifo that a job left there must not block. */
	CLEANUP(close_fdp)
	int fd = openat(dirfd, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
	struct stat st;

	if (fd < 0)
		return err_errno(err, errno, "open '%s'", name);
	if (fstat(fd, &st) < 0)
		return err_errno(err, errno, "stat '%s'", name);
	if (!S_ISREG(st.st_mode))
		return err_set(err, ERR_INVALID, "'%s' is not a regular file", name);
	return read_open_file(fd, name, out, err);
}

int file_write_all(int fd, const void *p, size_t n, struct err *err)
{
	const char *at = p;

	while (n) {
		ssize_t done = write(fd, at, n);

		if (done < 0) {
			if (errno == EINTR)
				continue;
			return err_errno(err, errno, "write");
		}
		at += done;
		n -= (size_t)done;
	}
	return 0;
}

int file_pread_full(int fd, void *p, size_t n, int64_t off, size_t *ret_n, struct err *err)
{
	char *at = p;
	size_t done = 0;

	while (done < n) {
		ssize_t got = pread(fd, at + done, n - done, off + (int64_t)done);

		if (got < 0) {
			if (errno == EINTR)
				continue;
			return err_errno(err, errno, "read at %" PRId64, off + (int64_t)done);
		}
		if (got == 0)
			break;
		done += (size_t)got;
	}
	*ret_n = done;
	return 0;
}

static char *parent_of(const char *path)
{
	const char *slash = strrchr(path, '/');

	if (!slash)
		return xstrdup(".");
	return xstrndup(path, slash == path ? 1 : (size_t)(slash - path));
}

/* A new file beside path: beside_commit() renames it to path, otherwise it is removed. */
struct beside {
	const char *path;
	char *tmp; /* NULL once committed */
	int fd;
};

static void beside_release(struct beside *b)
{
	if (b->fd >= 0)
		close(b->fd);
	if (b->tmp)
		unlink(b->tmp);
	free(b->tmp);
}

static int beside_open(struct beside *b, const char *path, struct err *err)
{
	/* A short random name, not the name plus an ending: the name may already have the longest
	 * length that the filesystem takes. */
	int dir_n = (int)(path_base(path) - path);

	b->path = path;
	b->tmp = xasprintf("%.*s.%016" PRIx64 ".tmp", dir_n, path, rand_u64());
	b->fd = open(b->tmp, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (b->fd < 0) {
		int errnum = errno;
		free(TAKE_PTR(b->tmp));
		return err_errno(err, errnum, "create '%s'", path);
	}
	return 0;
}

static int beside_commit(struct beside *b, mode_t mode, bool durable, struct err *err)
{
	if (fchmod(b->fd, mode) < 0)
		return err_errno(err, errno, "set the mode of '%s'", b->path);
	if (durable && fsync(b->fd) < 0)
		return err_errno(err, errno, "sync '%s'", b->path);
	/* Some filesystems report a failed write only here. */
	if (close(TAKE_FD(b->fd)) < 0 && errno != EINTR)
		return err_errno(err, errno, "close '%s'", b->path);
	if (rename(b->tmp, b->path) < 0)
		return err_errno(err, errno, "replace '%s'", b->path);
	free(TAKE_PTR(b->tmp));
	if (!durable)
		return 0;
	CLEANUP(freep) char *parent = parent_of(b->path);
	return file_sync_dir(parent, err);
}

int file_write_atomic(const char *path, struct str content, mode_t mode, bool durable,
		      struct err *err)
{
	CLEANUP(beside_release) struct beside b = {.fd = -1};

	if (beside_open(&b, path, err) < 0)
		return -1;
	if (file_write_all(b.fd, content.p, content.n, err) < 0)
		return err_wrap(err, "'%s'", path);
	return beside_commit(&b, mode, durable, err);
}

int file_write(const char *path, struct str content, mode_t mode, struct err *err)
{
	CLEANUP(close_fdp)
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, mode);

	if (fd < 0)
		return err_errno(err, errno, "create '%s'", path);
	if (file_write_all(fd, content.p, content.n, err) < 0)
		return err_wrap(err, "'%s'", path);
	/* Some filesystems report a failed write only here. */
	if (close(TAKE_FD(fd)) < 0 && errno != EINTR)
		return err_errno(err, errno, "close '%s'", path);
	return 0;
}

static int copy_by_hand(int from, int to, struct err *err)
{
	CLEANUP(freep) char *step = xmalloc(READ_STEP);

	for (;;) {
		ssize_t got = read_some(from, step, READ_STEP);

		if (got < 0)
			return err_errno(err, errno, "read");
		if (got == 0)
			return 0;
		if (file_write_all(to, step, (size_t)got, err) < 0)
			return -1;
	}
}

/* Copies [*at, end) as far as copy_file_range() can; *at is where it stopped. */
static void copy_range(int from, int to, off_t *at, off_t end)
{
	off_t to_at = *at;
	ssize_t done;

	do {
		size_t n = end - *at < COPY_STEP ? (size_t)(end - *at) : COPY_STEP;

		done = copy_file_range(from, at, to, &to_at, n, 0);
	} while (*at < end && (done > 0 || (done < 0 && errno == EINTR)));
}

/* Extent by extent, so that holes stay holes.  Where copy_file_range() stops, the rest is read and written. */
int file_copy_content(int from, int to, struct err *err)
{
	off_t size = lseek(from, 0, SEEK_END), at = 0;

	while (at < size) {
		off_t data = lseek(from, at, SEEK_DATA);

		if (data < 0 && errno == ENXIO)
			at = size; /* the rest is a hole */
		if (data < 0)
			break;
		off_t hole = lseek(from, data, SEEK_HOLE), end = hole < 0 ? size : hole;

		at = data;
		copy_range(from, to, &at, end);
		if (at < end)
			break;
	}
	if (size > 0 && ftruncate(to, at) < 0)
		return err_errno(err, errno, "set the size");
	if (size >= 0 && (lseek(from, at, SEEK_SET) < 0 || lseek(to, at, SEEK_SET) < 0))
		return err_errno(err, errno, "seek");
	return copy_by_hand(from, to, err);
}

int file_copy(const char *from, const char *to, struct err *err)
{
	CLEANUP(close_fdp) int fd = open(from, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	CLEANUP(beside_release) struct beside b = {.fd = -1};
	struct stat st;

	if (fd < 0)
		return err_errno(err, errno, "open '%s'", from);
	if (fstat(fd, &st) < 0)
		return err_errno(err, errno, "stat '%s'", from);
	if (!S_ISREG(st.st_mode))
		return err_set(err, ERR_INVALID, "'%s' is not a regular file", from);
	if (beside_open(&b, to, err) < 0)
		return -1;
	if (file_copy_content(fd, b.fd, err) < 0)
		return err_wrap(err, "copy '%s' to '%s'", from, to);
	/* The copy is ours: a set-id bit would now lend our rights, not those of its owner. */
	return beside_commit(&b, st.st_mode & 0777, false, err);
}

static int make_one_dir(const char *path, mode_t mode, struct err *err)
{
	struct stat st;

	if (mkdir(path, mode) == 0)
		return 0;
	if (errno != EEXIST)
		return err_errno(err, errno, "create directory '%s'", path);
	if (stat(path, &st) < 0)
		return err_errno(err, errno, "stat '%s'", path);
	if (!S_ISDIR(st.st_mode))
		return err_errno(err, ENOTDIR, "create directory '%s'", path);
	return 0;
}

/* `path` is cut to its parents and restored.  Usually only the last parts are missing, so it begins
 * there: each part above that exists would cost the lock of its directory. */
static int make_dirs(char *path, mode_t mode, struct err *err)
{
	if (mkdir(path, mode) == 0)
		return 0;
	char *slash = strrchr(path, '/');
	while (slash && slash > path && slash[-1] == '/')
		slash--;
	if ((errno == ENOENT || errno == ENOTDIR) && slash && slash > path) {
		*slash = '\0';
		/* The owner must be able to create the next part in it. */
		int rc = make_dirs(path, mode | 0300, err);
		*slash = '/';
		if (rc < 0)
			return -1;
	}
	return make_one_dir(path, mode, err);
}

int file_mkdir_p(const char *path, mode_t mode, struct err *err)
{
	CLEANUP(freep) char *parts = xstrdup(path);

	if (!*parts)
		return err_set(err, ERR_INVALID, "create directory: the name is empty");
	for (size_t n = strlen(parts); n > 1 && parts[n - 1] == '/'; n--)
		parts[n - 1] = '\0';
	return make_dirs(parts, mode, err);
}

int file_temporary(const char *dir, struct err *err)
{
	int fd = open(dir, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);

	if (fd >= 0)
		return fd;
	CLEANUP(freep) char *name = path_join(dir, "temporary-XXXXXX");

	fd = mkostemp(name, O_CLOEXEC);
	if (fd < 0)
		return err_errno(err, errno, "make a temporary file in '%s'", dir);
	unlink(name);
	return fd;
}

int file_make_parent(const char *path, struct err *err)
{
	CLEANUP(freep) char *dir = xstrdup(path);
	char *slash = strrchr(dir, '/');

	if (!slash || slash == dir)
		return 0;
	*slash = '\0';
	return file_mkdir_p(dir, 0777, err);
}

int file_sync_dir(const char *path, struct err *err)
{
	CLEANUP(close_fdp) int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	if (fd < 0)
		return err_errno(err, errno, "open directory '%s'", path);
	/* EINVAL: a filesystem without directory sync has nothing to flush. */
	if (fsync(fd) < 0 && errno != EINVAL)
		return err_errno(err, errno, "sync directory '%s'", path);
	return 0;
}

bool file_exists(const char *path)
{
	struct stat st;

	return lstat(path, &st) == 0;
}
