#include "agent/fetch.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "agent/config.h"
#include "agent/transfer.h"
#include "base/alloc.h"
#include "base/buf.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "base/file.h"
#include "base/hex.h"
#include "base/log.h"
#include "base/path.h"
#include "base/vec.h"
#include "link/message.h"
#include "net/digest.h"
#include "fmt/http_url.h"

#define OWN_CACHE "cache" /* in the node's directory, if agent.json names no cache */
#define PART ".part"
#define REF ".ref"
#define MAX_TRIES 3 /* for downloads with a wrong digest */
#define MAX_URLS 3  /* that are refused, before the object counts as denied */

/* ---- digests ---- */

/* 0: the digest is right, and the offset of fd is 0.  1: it is wrong. */
static int check_digest(int fd, const char *sha256, struct err *err)
{
	char hex[SHA256_TEXT];

	if (sha256_fd_hex(fd, hex, NULL, err) < 0)
		return -1;
	if (strcmp(hex, sha256) != 0)
		return 1;
	return lseek(fd, 0, SEEK_SET) < 0 ? err_errno(err, errno, "rewind") : 0;
}

static int other_bytes(const char *what, const char *sha256, struct err *err)
{
	return err_set(err, ERR_INVALID, "wrong content: %s does not have the sha256 %s", what,
		       sha256);
}

/* ---- the master's own store ---- */

static int open_here(const char *blobs, const char *sha256, struct err *err)
{
	CLEANUP(freep) char *path = path_join(blobs, sha256);
	CLEANUP(close_fdp) int fd = open(path, O_RDONLY | O_CLOEXEC);

	if (fd < 0)
		return err_errno(err, errno, "open '%s'", path);
	int rc = check_digest(fd, sha256, err);

	if (rc > 0)
		return other_bytes(path, sha256, err);
	return rc < 0 ? err_wrap(err, "read '%s'", path) : TAKE_FD(fd);
}

/* ---- downloads ---- */

/* What is to be fetched: an object of another server, or a path of the node's part of the master's API. */
struct wanted {
	const struct fetch_object *object;
	const char *rest;   /* without an object */
	const char *sha256; /* NULL: not known */
	/* In the cache the download has this name; without a digest, this name plus REF is a file that says
	 * the digest. */
	const char *key;
};

static int download_from(const struct agent_config *cfg, const struct fetch_object *o,
			 const char *url, int fd, struct err *err)
{
	CLEANUP(transfer_release) struct transfer t;
	struct http_url u;

	transfer_init(&t, cfg, url);
	if (http_url_parse(&u, str_from(url), false, err) < 0)
		return -1;
	CLEANUP(freep) char *path = u.path.n > 0 ? xstrndup(u.path.p, u.path.n) : xstrdup("/");

	return transfer_download(&t, path, o->etag, fd, err);
}

static int check_size(const struct fetch_object *o, int fd, struct err *err)
{
	struct stat st;

	if (fstat(fd, &st) < 0)
		return err_errno(err, errno, "read the size of the download");
	if (o->size < 0 || st.st_size == o->size)
		return 0;
	return err_set(err, ERR_CONFLICT,
		       "it has %" PRId64 " bytes, and had %" PRId64 " when the job was submitted",
		       (int64_t)st.st_size, o->size);
}

static int download_object(const struct agent_config *cfg, const struct fetch_object *o, int fd,
			   struct err *err)
{
	CLEANUP(buf_release) struct buf url = {0};
	int rc;

	buf_init(&url, HTTP_URL_MAX);
	for (int i = 0; i < MAX_URLS; i++) {
		buf_reset(&url);
		if (o->url(o->ctx, i > 0, &url, err) < 0)
			return -1;
		rc = url.overflow ? err_set(err, ERR_INVALID, "its URL is too long")
				  : download_from(cfg, o, buf_str(&url).p, fd, err);
		if (rc == 0)
			return check_size(o, fd, err);
		if (err->kind != ERR_DENIED)
			return -1;
	}
	return -1;
}

static int download(const struct agent_config *cfg, const struct wanted *b, int fd, struct err *err)
{
	CLEANUP(transfer_release) struct transfer t;

	if (b->object)
		return download_object(cfg, b->object, fd, err);
	transfer_init(&t, cfg, NULL);
	CLEANUP(freep) char *path = transfer_path(&t, b->rest);

	return transfer_download(&t, path, NULL, fd, err);
}

static int open_unnamed(const struct agent_config *cfg, const char *node_dir,
			const struct wanted *b, struct err *err)
{
	CLEANUP(freep) char *path = path_join(node_dir, "fetched" PART);
	CLEANUP(close_fdp)
	int fd = open(path, O_RDWR | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0600);

	if (fd < 0)
		return err_errno(err, errno, "create '%s'", path);
	unlink(path);
	if (download(cfg, b, fd, err) < 0)
		return -1;
	return lseek(fd, 0, SEEK_SET) < 0 ? err_errno(err, errno, "rewind") : TAKE_FD(fd);
}

/* ---- the cache ---- */

struct cached {
	char *path;
	struct timespec used;
	uint64_t bytes;
};

static int compare_use(const void *a, const void *b)
{
	const struct cached *x = a, *y = b;

	if (x->used.tv_sec != y->used.tv_sec)
		return x->used.tv_sec < y->used.tv_sec ? -1 : 1;
	return (x->used.tv_nsec > y->used.tv_nsec) - (x->used.tv_nsec < y->used.tv_nsec);
}

/* Is a download to this file in progress (then it is locked)? */
static bool in_use(const char *path)
{
	CLEANUP(close_fdp) int fd = open(path, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);

	return fd >= 0 && flock(fd, LOCK_EX | LOCK_NB) < 0;
}

/* Remove the least recently used files until the rest fits.  A process that has one open can go on reading. */
static void make_room(const char *cache, uint64_t limit, const char *keep)
{
	VEC(struct cached) all = {0};
	DIR *dir = opendir(cache);
	const struct dirent *e;
	uint64_t sum = 0;
	struct stat st;

	while (dir && (e = readdir(dir))) {
		if (fstatat(dirfd(dir), e->d_name, &st, AT_SYMLINK_NOFOLLOW) < 0 ||
		    !S_ISREG(st.st_mode))
			continue;
		*vec_push(&all) = (struct cached){path_join(cache, e->d_name), st.st_mtim,
						  (uint64_t)st.st_size};
		sum += (uint64_t)st.st_size;
	}
	if (dir)
		closedir(dir);
	if (all.n > 0)
		qsort(all.v, all.n, sizeof(all.v[0]), compare_use);
	for (size_t i = 0; i < all.n; i++) {
		if (sum > limit && strcmp(path_base(all.v[i].path), keep) != 0 &&
		    !in_use(all.v[i].path) && unlink(all.v[i].path) == 0)
			sum -= all.v[i].bytes;
		free(all.v[i].path);
	}
	vec_release(&all);
}

/* Open and lock the partial download; waits for another node's download.  0: that one completed the file. */
static int lock_part(const char *part, const char *path, int *ret_fd, struct err *err)
{
	for (;;) {
		CLEANUP(close_fdp)
		int fd = open(part, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
		struct stat st;

		if (fd < 0)
			return err_errno(err, errno, "create '%s'", part);
		while (flock(fd, LOCK_EX) < 0)
			if (errno != EINTR)
				return err_errno(err, errno, "lock '%s'", part);
		if (file_exists(path))
			return 0;
		if (fstat(fd, &st) == 0 &&
		    st.st_nlink > 0) { /* else make_room removed it while we waited */
			*ret_fd = TAKE_FD(fd);
			return 1;
		}
	}
}

/* The digest of a file whose key is not its digest.  0: not known. */
static int read_ref(const char *cache, const struct wanted *b, char sha256[static SHA256_TEXT])
{
	CLEANUP(freep) char *path = xasprintf("%s/%s" REF, cache, b->key);
	CLEANUP(buf_release) struct buf text = {0};

	buf_init(&text, SHA256_TEXT);
	if (file_read(path, &text, NULL) < 0 || text.n != SHA256_TEXT - 1 ||
	    strspn(buf_str(&text).p, "0123456789abcdef") != SHA256_TEXT - 1)
		return 0;
	memcpy(sha256, text.p, SHA256_TEXT - 1);
	sha256[SHA256_TEXT - 1] = '\0';
	return 1;
}

/* The complete download gets the name of its digest. */
static int name_file(const char *cache, const struct wanted *b, const char *part, int fd,
		     struct err *err)
{
	CLEANUP(freep) char *ref = xasprintf("%s/%s" REF, cache, b->key);
	char hex[SHA256_TEXT];

	if (sha256_fd_hex(fd, hex, NULL, err) < 0)
		return -1;
	if (b->sha256 && strcmp(hex, b->sha256) != 0) {
		unlink(part);
		return other_bytes("the download", b->sha256, err);
	}
	CLEANUP(freep) char *path = path_join(cache, hex);

	if (!b->sha256 && file_write_atomic(ref, str_from(hex), 0600, false, err) < 0)
		return -1;
	return rename(part, path) < 0 ? err_errno(err, errno, "create '%s'", path) : 0;
}

static int fill_cache(const struct agent_config *cfg, const char *cache, const struct wanted *b,
		      struct err *err)
{
	CLEANUP(freep) char *done = xasprintf("%s/%s%s", cache, b->key, b->sha256 ? "" : REF);
	CLEANUP(freep) char *part = xasprintf("%s/%s" PART, cache, b->key);
	CLEANUP(close_fdp) int fd = -1;
	int rc = lock_part(part, done, &fd, err);

	if (rc <= 0)
		return rc;
	if (download(cfg, b, fd, err) < 0) {
		/* a disk that is full must not stay so for the jobs to come */
		if (err->kind == ERR_CAPACITY || err->kind == ERR_CONFLICT)
			unlink(part);
		return -1;
	}
	if (name_file(cache, b, part, fd, err) < 0)
		return -1;
	if (cfg->cache)
		make_room(cache, cfg->cache_bytes, b->sha256 ? b->sha256 : "");
	return 0;
}

/* As check_digest(); 1 also if the file does not exist. */
static int open_cached(const char *path, const char *sha256, int *ret_fd, struct err *err)
{
	CLEANUP(close_fdp) int fd = open(path, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);

	if (fd < 0)
		return errno == ENOENT ? 1 : err_errno(err, errno, "open '%s'", path);
	int rc = check_digest(fd, sha256, err);

	if (rc > 0) {
		log_warn("cached file '%s' is damaged: downloading it again", path);
		unlink(path);
	}
	if (rc == 0) {
		futimens(fd, NULL); /* for make_room */
		*ret_fd = TAKE_FD(fd);
	}
	return rc;
}

/* 1: it is not in the cache. */
static int open_known(const char *cache, const struct wanted *b, int *ret_fd, struct err *err)
{
	CLEANUP(freep) char *ref = xasprintf("%s/%s" REF, cache, b->key);
	char sha256[SHA256_TEXT];

	if (!b->sha256 && !read_ref(cache, b, sha256))
		return 1;
	CLEANUP(freep) char *path = path_join(cache, b->sha256 ? b->sha256 : sha256);
	int rc = open_cached(path, b->sha256 ? b->sha256 : sha256, ret_fd, err);

	if (rc > 0 && !b->sha256)
		unlink(ref);
	return rc;
}

static int open_by_cache(const struct agent_config *cfg, const char *node_dir,
			 const struct wanted *b, struct err *err)
{
	CLEANUP(freep)
	char *cache = cfg->cache ? xstrdup(cfg->cache) : path_join(node_dir, OWN_CACHE);
	int fd = -1;

	if (file_mkdir_p(cache, 0700, err) < 0)
		return -1;
	for (int i = 0; i < MAX_TRIES; i++) {
		int rc = open_known(cache, b, &fd, err);

		if (rc <= 0)
			return rc < 0 ? -1 : fd;
		*err = (struct err){0};
		if (fill_cache(cfg, cache, b, err) < 0 && err->kind != ERR_INVALID)
			return -1;
	}
	return err->kind == ERR_NONE ? other_bytes("the download", b->key, err) : -1;
}

int fetch_open(const struct agent_config *cfg, const char *node_dir, const struct message_blob *b,
	       struct err *err)
{
	if (cfg->blobs)
		return open_here(cfg->blobs, b->sha256, err);
	CLEANUP(freep) char *rest = xasprintf("blobs/%s", b->sha256);

	return fetch_open_path(cfg, node_dir, rest, b->sha256, err);
}

int fetch_open_path(const struct agent_config *cfg, const char *node_dir, const char *rest,
		    const char *sha256, struct err *err)
{
	const struct wanted w = {.rest = rest, .sha256 = sha256, .key = sha256};

	return open_by_cache(cfg, node_dir, &w, err);
}

/* What the content of an object depends on, as a name of a file. */
static void object_key(const struct fetch_object *o, char out[static SHA256_TEXT])
{
	CLEANUP(freep)
	char *text = xasprintf("%s\n%s\n%" PRId64, o->what, o->etag, o->size);
	uint8_t digest[SHA256_BYTES];

	sha256_of(text, strlen(text), digest);
	hex_encode(digest, sizeof(digest), out);
}

int fetch_object(const struct agent_config *cfg, const char *node_dir, const struct fetch_object *o,
		 struct err *err)
{
	struct wanted w = {.object = o, .sha256 = o->sha256, .key = o->sha256};
	char key[SHA256_TEXT];
	int fd;

	if (!o->sha256 && o->etag) {
		object_key(o, key);
		w.key = key;
	}
	fd = w.key ? open_by_cache(cfg, node_dir, &w, err) : open_unnamed(cfg, node_dir, &w, err);
	return fd < 0 ? err_wrap(err, "%.100s", o->what) : fd;
}

void fetch_empty_cache(const struct agent_config *cfg)
{
	const char *shared = cfg->cache;

	if (shared)
		make_room(shared, 0, "");
}

void fetch_drop_own_cache(const struct agent_config *cfg, const char *node_dir)
{
	CLEANUP(freep) char *cache = path_join(node_dir, OWN_CACHE);

	if (!cfg->cache)
		(void)file_remove_tree(cache, NULL);
}
