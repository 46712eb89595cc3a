/*
 * Whole directory trees.  A tree may belong to a job and hold anything:
 * links, directories without permissions, depth without end.  Every step is
 * by descriptor and name, links are never followed, and descriptors are bounded.
 */
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
#include "base/dir.h"
#include "base/err.h"
#include "base/path.h"
#include "base/rand.h"
#include "base/vec.h"

/* Directories open at once; deeper ones are first moved to the top of the tree. */
#define REMOVE_DEPTH_MAX 48
/* A process of the job that has not ended yet may add files while we remove them. */
#define REMOVE_PASSES_MAX 8
#define LIST_DEPTH_MAX 128
#define MOST_SIZED 1000000 /* files whose sizes are added up */

static bool is_dots(const char *name)
{
	return name[0] == '.' && (!name[1] || (name[1] == '.' && !name[2]));
}

struct removal {
	int top_fd;
	bool moved; /* a deep directory was moved to the top: another pass is needed */
};

/* A directory of ours without permissions gets them, so that it can be emptied. */
static int open_dir_to_empty(int parent, const char *name)
{
	int flags = O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC;
	char self[64];

	int fd = openat(parent, name, O_RDONLY | flags);
	if (fd < 0 && errno == EACCES) {
		CLEANUP(close_fdp) int handle = openat(parent, name, O_PATH | flags);
		if (handle < 0)
			return -1;
		snprintf(self, sizeof(self), "/proc/self/fd/%d", handle);
		if (chmod(self, 0700) < 0) {
			errno = EACCES;
			return -1;
		}
		fd = openat(parent, name, O_RDONLY | flags);
	}
	struct stat st;
	if (fd >= 0 && fstat(fd, &st) == 0 && (st.st_mode & 0700) != 0700)
		(void)fchmod(fd,
			     0700); /* a failure shows in the unlink that needs the permission */
	return fd;
}

static int empty_dir(int fd, int depth, struct removal *r, struct err *err);

static int remove_entry(int parent, const char *name, int depth, struct removal *r, struct err *err)
{
	if (unlinkat(parent, name, 0) == 0 || errno == ENOENT)
		return 0;
	if (errno != EISDIR && errno != EPERM)
		return err_errno(err, errno, "remove '%s'", name);
	int unlink_errno = errno;

	if (unlinkat(parent, name, AT_REMOVEDIR) == 0 || errno == ENOENT)
		return 0;
	/* Not a directory: EPERM of the first unlink was a real refusal. */
	if (errno == ENOTDIR)
		return err_errno(err, unlink_errno, "remove '%s'", name);
	/* Opened, and so made writable, before the move: rename() refuses a directory that we may not write. */
	int fd = open_dir_to_empty(parent, name);
	if (fd < 0)
		return err_errno(err, errno, "open directory '%s' to remove it", name);
	if (depth >= REMOVE_DEPTH_MAX) {
		char at_top[40];

		snprintf(at_top, sizeof(at_top), ".removing-%016" PRIx64, rand_u64());
		if (renameat(parent, name, r->top_fd, at_top) == 0) {
			close(fd);
			r->moved = true;
			return 0;
		}
	}
	if (empty_dir(fd, depth + 1, r, err) < 0)
		return err_wrap(err, "'%s'", name);
	if (unlinkat(parent, name, AT_REMOVEDIR) < 0 && errno != ENOENT)
		return err_errno(err, errno, "remove directory '%s'", name);
	return 0;
}

/* Closes fd.  Goes on after an entry that cannot be removed; the first error is reported. */
static int empty_dir(int fd, int depth, struct removal *r, struct err *err)
{
	CLEANUP(closedirp) DIR *dir = fdopendir(fd);
	struct err first = {0};
	const struct dirent *e;

	if (!dir) {
		int errnum = errno;
		close(fd);
		return err_errno(err, errnum, "read directory");
	}
	if (depth == 0)
		r->top_fd = fd;
	while ((errno = 0, e = readdir(dir))) {
		struct err here = {0};

		if (is_dots(e->d_name))
			continue;
		if (remove_entry(fd, e->d_name, depth, r, &here) < 0 && first.kind == ERR_NONE)
			first = here;
	}
	if (errno && first.kind == ERR_NONE)
		err_errno(&first, errno, "read directory");
	if (first.kind == ERR_NONE)
		return 0;
	if (err)
		*err = first;
	return -1;
}

static int remove_dir(const char *path, struct err *err)
{
	struct err last = {0};
	int passes = 0;

	while (passes < REMOVE_PASSES_MAX) {
		struct removal r = {.top_fd = -1};

		int fd = open_dir_to_empty(AT_FDCWD, path);
		if (fd < 0)
			return errno == ENOENT ? 0 : err_errno(err, errno, "open '%s'", path);
		int failed = empty_dir(fd, 0, &r, &last);
		if (rmdir(path) == 0 || errno == ENOENT)
			return 0;
		if (!failed)
			err_errno(&last, errno, "remove directory '%s'", path);
		/* Each move takes the tree apart a little more, so those passes end by themselves. */
		if (!r.moved)
			passes++;
		if (!r.moved && last.code != ENOTEMPTY)
			break;
	}
	if (err)
		*err = last;
	return err_wrap(err, "remove '%s'", path);
}

int file_remove_tree(const char *path, struct err *err)
{
	CLEANUP(freep) char *clean = xstrdup(path);
	size_t n = strlen(clean);

	/* Without trailing slashes: "link/" would be the directory that the link points to. */
	while (n > 1 && clean[n - 1] == '/')
		clean[--n] = '\0';
	const char *base = path_base(clean);
	if (n == 0 || *base == '\0' || is_dots(base))
		return err_set(err, ERR_INVALID, "refused to remove '%s'", path);

	if (unlink(clean) == 0 || errno == ENOENT)
		return 0;
	int errnum = errno;
	struct stat st;
	if (lstat(clean, &st) == 0 && S_ISDIR(st.st_mode))
		return remove_dir(clean, err);
	return err_errno(err, errnum, "remove '%s'", path);
}

struct listing {
	VEC(char *) names;
	size_t max;
	bool links;	   /* symbolic links too */
	struct buf prefix; /* "a/b/" of the directory being read */
};

static int list_dir(int fd, int depth, struct listing *l, struct err *err);

static int list_entry(int parent, const char *name, int depth, struct listing *l, struct err *err)
{
	size_t before = l->prefix.n;
	struct stat st;

	if (fstatat(parent, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return errno == ENOENT ? 0 : err_errno(err, errno, "stat '%s'", name);
	if (S_ISREG(st.st_mode) || (l->links && S_ISLNK(st.st_mode))) {
		if (l->names.n == l->max)
			return err_set(err, ERR_CAPACITY, "more than %zu files", l->max);
		*vec_push(&l->names) = xasprintf("%s%s", buf_str(&l->prefix).p, name);
		return 0;
	}
	if (!S_ISDIR(st.st_mode))
		return 0;
	if (depth == LIST_DEPTH_MAX)
		return err_set(err, ERR_CAPACITY, "more than %d directories deep", LIST_DEPTH_MAX);
	int fd = openat(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0)
		return errno == ENOENT ? 0 : err_errno(err, errno, "open '%s'", name);
	buf_printf(&l->prefix, "%s/", name);
	int rc = list_dir(fd, depth + 1, l, err);
	l->prefix.n = before;
	l->prefix.p[before] = '\0';
	return rc;
}

/* Takes fd. */
static int list_dir(int fd, int depth, struct listing *l, struct err *err)
{
	CLEANUP(closedirp) DIR *dir = fdopendir(fd);
	const struct dirent *e;

	if (!dir) {
		int errnum = errno;
		close(fd);
		return err_errno(err, errnum, "read directory");
	}
	while ((errno = 0, e = readdir(dir)))
		if (!is_dots(e->d_name) && list_entry(fd, e->d_name, depth, l, err) < 0)
			return -1;
	return errno ? err_errno(err, errno, "read directory") : 0;
}

static int by_name(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

/* Takes fd. */
static int list_tree(int fd, size_t max, bool links, char ***ret_names, size_t *ret_n,
		     struct err *err)
{
	struct listing l = {.max = max, .links = links};

	/* Names of 255 bytes and a slash on each level. */
	buf_init(&l.prefix, (LIST_DEPTH_MAX + 1) * 256);
	int rc = list_dir(fd, 0, &l, err);
	buf_release(&l.prefix);
	if (rc < 0) {
		file_list_free(l.names.v, l.names.n);
		return -1;
	}
	if (l.names.n)
		qsort(l.names.v, l.names.n, sizeof(l.names.v[0]), by_name);
	*ret_names = l.names.v;
	*ret_n = l.names.n;
	return 0;
}

int file_list_tree(const char *dir, size_t max, char ***ret_names, size_t *ret_n, struct err *err)
{
	int fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	if (fd < 0)
		return err_errno(err, errno, "open directory '%s'", dir);
	if (list_tree(fd, max, false, ret_names, ret_n, err) < 0)
		return err_wrap(err, "list '%s'", dir);
	return 0;
}

int file_list_tree_and_links(int dir, size_t max, char ***ret_names, size_t *ret_n, struct err *err)
{
	return list_tree(dir, max, true, ret_names, ret_n, err);
}

void file_list_free(char **names, size_t n)
{
	for (size_t i = 0; i < n; i++)
		free(names[i]);
	free(names);
}

static int64_t size_of_file(const char *path)
{
	struct stat st;

	return lstat(path, &st) == 0 && S_ISREG(st.st_mode) ? st.st_size : 0;
}

int64_t file_tree_bytes(const char *path)
{
	char **names = NULL;
	int64_t sum = 0;
	size_t n = 0;

	if (file_list_tree(path, MOST_SIZED, &names, &n, NULL) < 0)
		return size_of_file(path);
	for (size_t i = 0; i < n; i++) {
		CLEANUP(freep) char *file = path_join(path, names[i]);

		sum += size_of_file(file);
	}
	file_list_free(names, n);
	return sum;
}
