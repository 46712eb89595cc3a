/*
 * Archives of source and data, named by their SHA-256.  An upload goes to a temporary file named
 * after its exchange, and gets its final name after its digest was checked: several clients may
 * upload the same archive at once.
 */
#include "master/api/api.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/file.h"
#include "base/path.h"
#include "link/layout.h"
#include "master/data_blobs.h"
#include "net/digest.h"
#include "sys/worker.h"

bool blob_name_ok(struct str s)
{
	return s.n == 64 && strspn(s.p, "0123456789abcdef") == 64;
}

static char *blob_path(const struct master *m, struct str sha256)
{
	return xasprintf("%s/" LAYOUT_BLOBS "/%.*s", m->home, STR_ARG(sha256));
}

static char *part_path(const struct master *m, const struct http_exchange *x, struct str sha256)
{
	return xasprintf("%s/" LAYOUT_BLOBS "/%.*s.%p.part", m->home, STR_ARG(sha256),
			 (const void *)x);
}

/* Removes partial uploads that an earlier master left when it was killed. */
static void remove_old_parts(const struct master *m, const char *dir_path)
{
	DIR *dir = opendir(dir_path);
	const struct dirent *e;
	struct stat st;

	while (dir && (e = readdir(dir)))
		if (str_ends(str_from(e->d_name), STR(".part")) &&
		    fstatat(dirfd(dir), e->d_name, &st, AT_SYMLINK_NOFOLLOW) == 0 &&
		    st.st_mtime < m->started_ms / 1000)
			unlinkat(dirfd(dir), e->d_name, 0);
	if (dir)
		closedir(dir);
}

int api_blob_head(struct api_call *c, struct err *err)
{
	if (!blob_name_ok(c->params[0]))
		return err_set(err, ERR_INVALID, "a blob's name is 64 hex digits");
	CLEANUP(freep) char *path = blob_path(c->m, c->params[0]);
	if (!file_exists(path))
		return err_set(err, ERR_NOT_FOUND, "no such blob");
	http_reply(c->x, 200, "application/octet-stream", STR(""));
	return 0;
}

int api_blob_open(struct api_call *c, struct err *err)
{
	struct master *m = c->m;
	struct str sha256 = c->params[0];

	if (!blob_name_ok(sha256))
		return err_set(err, ERR_INVALID, "a blob's name is 64 hex digits");
	CLEANUP(freep) char *dir = path_join(m->home, LAYOUT_BLOBS);
	CLEANUP(freep) char *path = part_path(m, c->x, sha256);
	if (file_mkdir_p(dir, 0700, err) < 0)
		return -1;
	remove_old_parts(m, dir);
	int fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	return fd >= 0 ? fd : err_errno(err, errno, "create '%s'", path);
}

void api_blob_abort(struct api_call *c)
{
	CLEANUP(freep) char *path = part_path(c->m, c->x, c->params[0]);

	unlink(path);
}

/* An archive may have gigabytes: a worker computes its digest. */
struct blob_check {
	struct http_exchange *x;
	char *dir, *part, *path;
	char sha256[65];
	struct err err;
};

static void check_work(void *arg, const struct deadline *d)
{
	struct blob_check *b = arg;
	CLEANUP(close_fdp) int fd = open(b->part, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
	char hex[SHA256_TEXT];

	(void)d; /* no time limit: the archive may be large */
	if (fd < 0) {
		err_errno(&b->err, errno, "open '%s'", b->part);
		return;
	}
	if (sha256_fd_hex(fd, hex, NULL, &b->err) < 0)
		return;
	if (strcmp(b->sha256, hex) != 0)
		err_set(&b->err, ERR_INVALID,
			"the bytes have another SHA-256 than their name says");
	/* The bytes are synced before the name exists, because a name promises the whole
	 * archive.  The directory is synced before the answer, because the client will not
	 * upload the archive again. */
	else if (fsync(fd) < 0 || rename(b->part, b->path) < 0)
		err_errno(&b->err, errno, "store '%s'", b->path);
	else
		file_sync_dir(b->dir, &b->err);
}

static void check_done(void *arg, enum err_kind how)
{
	struct blob_check *b = arg;

	if (how != ERR_NONE)
		err_set(&b->err, ERR_UNAVAILABLE, "the master is about to stop");
	if (b->err.kind == ERR_NONE) {
		http_reply(b->x, 201, "application/json", STR("{}\n"));
	} else {
		unlink(b->part);
		api_reply_error(b->x, &b->err);
	}
	free(b->dir);
	free(b->part);
	free(b->path);
	free(b);
}

int api_blob_put(struct api_call *c, struct err *err)
{
	struct blob_check *b = xcalloc(1, sizeof(*b));

	(void)err;
	b->x = c->x;
	b->dir = path_join(c->m->home, LAYOUT_BLOBS);
	b->part = part_path(c->m, c->x, c->params[0]);
	b->path = blob_path(c->m, c->params[0]);
	snprintf(b->sha256, sizeof(b->sha256), "%.*s", STR_ARG(c->params[0]));
	workers_submit(master_disk(c->m), check_work, check_done, b, -1);
	return 0;
}

/* Parses "bytes=N-"; any other form of Range is ignored. */
static bool range_from(struct str range, uint64_t *ret_from)
{
	struct str prefix = STR("bytes=");

	if (!range.p || !str_starts(range, prefix) || range.p[range.n - 1] != '-')
		return false;
	return str_to_u64((struct str){range.p + prefix.n, range.n - prefix.n - 1}, ret_from);
}

int api_reply_part(struct api_call *c, int file, struct err *err)
{
	CLEANUP(close_fdp) int fd = file;
	uint64_t from = 0;
	struct stat st;
	char range[80];

	if (fstat(fd, &st) < 0)
		return err_errno(err, errno, "stat a file");
	bool part = range_from(http_header(c->x, "range"), &from);

	http_add_header(c->x, "Accept-Ranges", "bytes");
	if (part && from >= (uint64_t)st.st_size) {
		snprintf(range, sizeof(range), "bytes */%lld", (long long)st.st_size);
		http_add_header(c->x, "Content-Range", range);
		http_reply(c->x, 416, "application/octet-stream", STR(""));
		return 0;
	}
	if (part) {
		snprintf(range, sizeof(range), "bytes %llu-%lld/%lld", (unsigned long long)from,
			 (long long)st.st_size - 1, (long long)st.st_size);
		http_add_header(c->x, "Content-Range", range);
	}
	http_reply_file(c->x, part ? 206 : 200, "application/octet-stream", TAKE_FD(fd),
			(int64_t)from, (int64_t)st.st_size - (int64_t)from);
	return 0;
}

int api_node_blob(struct api_call *c, struct err *err)
{
	const struct live_run *lr = map_get(c->m->runs, c->params[0]);
	struct str sha256 = c->params[2];

	if (!lr || !blob_name_ok(sha256) || !run_has_blob(lr, sha256))
		return err_set(err, ERR_NOT_FOUND, "no such blob of this run");
	CLEANUP(freep) char *path = blob_path(c->m, sha256);
	int fd = open(path, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);

	if (fd < 0)
		return err_errno(err, errno, "open blob '%.*s'", STR_ARG(sha256));
	return api_reply_part(c, fd, err);
}
