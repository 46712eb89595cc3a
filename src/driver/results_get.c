#include "driver/results.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/arena.h"
#include "base/buf.h"
#include "base/cleanup.h"
#include "base/deadline.h"
#include "base/err.h"
#include "base/file.h"
#include "base/path.h"
#include "driver/object_store.h"
#include "fmt/doc.h"
#include "fmt/url.h"
#include "net/digest.h"
#include "net/http_client.h"

#define INDEX_MAX ((size_t)256 * 1024 * 1024)
#define INDEX_VERSION 1
#define CALL_MS 60000
#define PATH_TEXT 16384

struct results_download {
	const char *dir;
	struct object_store *st;  /* from a store, */
	struct http_client *http; /* or from the master that has the run, */
	const char *run;
	/* or, without either, from index.json of the directory */
	const struct deadline *d;
	struct results_sum sum;
	struct str index; /* as it came from the master */
};

/* Does the file have this sum?  A file that is not there does not. */
static bool has_sum(const char *path, struct str sha256)
{
	CLEANUP(close_fdp) int fd = open(path, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
	char hex[SHA256_TEXT];

	return fd >= 0 && sha256_fd_hex(fd, hex, NULL, NULL) == 0 && str_is(sha256, hex);
}

static int make_parent(const char *path, struct err *err)
{
	CLEANUP(freep) char *dir = xstrdup(path);

	*strrchr(dir, '/') = '\0';
	return file_mkdir_p(dir, 0700, err);
}

/* ---- from the master that has the run ---- */

static char *path_at_master(const struct results_download *g, const char *name)
{
	CLEANUP(buf_release) struct buf path = {0};

	buf_init(&path, PATH_TEXT);
	buf_addz(&path, "/api/v1/runs/");
	url_encode(&path, str_from(g->run));
	buf_addz(&path, "/results?path=");
	url_encode(&path, str_from(name));
	return xstrdup(path.overflow ? "" : path.p);
}

/* Another status than 200 and 206, as an error. */
static int refused(const struct http_answer *ans, const char *name, struct err *err)
{
	return err_set(err,
		       ans->status == 404   ? ERR_NOT_FOUND
		       : ans->status == 416 ? ERR_INVALID
					    : ERR_UNAVAILABLE,
		       "'%.100s': the run's master answers %d", name, ans->status);
}

static int text_from_master(struct results_download *g, const char *name, struct buf *out,
			    struct err *err)
{
	CLEANUP(freep) char *path = path_at_master(g, name);
	struct http_answer ans;
	int rc;

	http_answer_init(&ans, INDEX_MAX);
	rc = http_call(g->http, "GET", path, STR(""), NULL, CALL_MS, &ans, err);
	if (rc == 0 && ans.status != 200)
		rc = refused(&ans, name, err);
	if (rc == 0)
		buf_addstr(out, buf_str(&ans.body));
	http_answer_release(&ans);
	return rc;
}

/* Behind what an earlier try has fetched. */
static int fetch_from_master(struct results_download *g, const char *name, int fd, uint64_t from,
			     uint64_t size, struct err *err)
{
	CLEANUP(freep) char *path = path_at_master(g, name);
	int64_t left = deadline_left_ms(g->d);
	struct http_download get = {
		.get = {.method = "GET",
			.path = path,
			.timeout_ms = left > INT_MAX ? -1 : (int)left},
		.fd = fd,
		.offset = from,
		.max_bytes = size,
		.stall_ms = CALL_MS,
	};
	struct http_answer ans;
	int rc;

	if (from == size)
		return 0;
	http_answer_init(&ans, 65536);
	rc = http_download(g->http, &get, &ans, err);
	if (rc == 0 && ans.status != 200 && ans.status != 206)
		rc = refused(&ans, name, err);
	http_answer_release(&ans);
	return rc;
}

static int fetch(struct results_download *g, const char *name, const char *part, uint64_t size,
		 struct err *err)
{
	CLEANUP(close_fdp)
	int fd = open(part, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
	struct stat st;

	if (fd < 0 || fstat(fd, &st) < 0)
		return err_errno(err, errno, "create '%s'", part);
	if ((uint64_t)st.st_size > size && ftruncate(fd, 0) < 0)
		return err_errno(err, errno, "empty '%s'", part);
	if (g->http)
		return fetch_from_master(g, name, fd,
					 (uint64_t)st.st_size <= size ? (uint64_t)st.st_size : 0,
					 size, err);
	return object_get_file(g->st, name, fd, size, g->d, err);
}

static int get_one(struct results_download *g, const struct doc *file, struct err *err)
{
	struct str name = doc_str(file, "path", STR("")), sum = doc_str(file, "sha256", STR(""));
	int64_t size = doc_int(file, "size", -1);

	if (!path_is_below(name) || size < 0)
		return err_set(err, ERR_INVALID, RESULTS_INDEX " names a file '%.*s'",
			       STR_ARG(name));
	CLEANUP(freep) char *path = path_join(g->dir, name.p);
	CLEANUP(freep) char *part = xasprintf("%s.part", path);

	g->sum.files++;
	g->sum.bytes += (uint64_t)size;
	if (has_sum(path, sum))
		return 0;
	if (make_parent(path, err) < 0 || fetch(g, name.p, part, (uint64_t)size, err) < 0)
		return -1;
	if (!has_sum(part, sum)) {
		unlink(part);
		return err_set(err, ERR_INVALID, "'%.100s' is not what " RESULTS_INDEX " says",
			       name.p);
	}
	if (doc_bool(file, "executable", false) && chmod(part, 0700) < 0)
		return err_errno(err, errno, "chmod '%s'", part);
	g->sum.sent++;
	return rename(part, path) < 0 ? err_errno(err, errno, "create '%s'", path) : 0;
}

/* How many bytes of a file an earlier try has fetched. */
static uint64_t bytes_here(const struct results_download *g, struct str name)
{
	CLEANUP(freep) char *path = path_join(g->dir, name.p);
	CLEANUP(freep) char *part = xasprintf("%s.part", path);
	struct stat st;

	return lstat(path, &st) == 0 || lstat(part, &st) == 0 ? (uint64_t)st.st_size : 0;
}

/* Before the first byte: a disk that fills up half-way helps nobody. */
static int check_room(const struct results_download *g, const struct doc *files, struct err *err)
{
	uint64_t need = 0;
	struct statvfs fs;

	for (size_t i = 0; i < files->array.n; i++) {
		struct str name = doc_str(files->array.v[i], "path", STR(""));
		int64_t size = doc_int(files->array.v[i], "size", -1);
		uint64_t here = path_is_below(name) ? bytes_here(g, name) : 0;

		if (size > 0 && (uint64_t)size > here && need < INT64_MAX)
			need += (uint64_t)size - here;
	}
	if (statvfs(g->dir, &fs) < 0 || need <= (uint64_t)fs.f_bavail * fs.f_frsize)
		return 0;
	return err_set(err, ERR_CAPACITY,
		       "they need %" PRIu64 " MB, and %" PRIu64
		       " MB are free: make room; the next start of the master takes them in",
		       need >> 20, ((uint64_t)fs.f_bavail * fs.f_frsize) >> 20);
}

static int read_index(struct results_download *g, const char *run, struct arena *a,
		      const struct doc **ret, struct err *err)
{
	CLEANUP(buf_release) struct buf text = {0};
	struct doc *index;

	buf_init(&text, INDEX_MAX);
	CLEANUP(freep) char *here = path_join(g->dir, RESULTS_INDEX);

	if ((g->st     ? object_get_text(g->st, RESULTS_INDEX, &text, g->d, err)
	     : g->http ? text_from_master(g, RESULTS_INDEX, &text, err)
		       : file_read(here, &text, err)) < 0)
		return -1;
	if (json_parse_limited(buf_str(&text), INDEX_MAX, 8 * RESULTS_MAX_FILES, a, &index, err) <
	    0)
		return err_wrap(err, RESULTS_INDEX);
	if (doc_int(index, "version", 0) != INDEX_VERSION)
		return err_set(err, ERR_INVALID,
			       RESULTS_INDEX " is of version %lld: use a newer regatta",
			       (long long)doc_int(index, "version", 0));
	if (!str_is(doc_str(index, "run", STR("")), run) || !doc_array(index, "files"))
		return err_set(err, ERR_INVALID, RESULTS_INDEX " is not that of the run '%s'", run);
	*ret = doc_array(index, "files");
	/* Where it is, the copy is complete: so it is written last. */
	if (g->http)
		g->index = arena_str(a, buf_str(&text));
	return 0;
}

int results_get(const char *dir, const struct results_place *at, const struct deadline *d,
		struct results_sum *ret, struct err *err)
{
	CLEANUP(freep) char *url = xasprintf("%s%s/", at->url, at->run);
	CLEANUP(object_store_freep) struct object_store *st = NULL;
	CLEANUP(arena_freep) struct arena *a = arena_new();
	const struct object_access who = {.credentials = at->credentials, .own = true};
	struct results_download g = {.dir = dir, .d = d};
	const struct doc *files;

	if (object_store_open(url, &who, d, &st, err) < 0)
		return -1;
	g.st = st;
	if (read_index(&g, at->run, a, &files, err) < 0 || check_room(&g, files, err) < 0)
		return err_wrap(err, "results in %.100s", url);
	for (size_t i = 0; i < files->array.n; i++)
		if (get_one(&g, files->array.v[i], err) < 0)
			return err_wrap(err, "results in %.100s", url);
	*ret = g.sum;
	return 0;
}

int results_fetch(struct http_client *from, const char *run, const char *dir,
		  const struct deadline *d, struct results_sum *ret, struct err *err)
{
	CLEANUP(arena_freep) struct arena *a = arena_new();
	CLEANUP(freep) char *index = path_join(dir, RESULTS_INDEX);
	struct results_download g = {.dir = dir, .d = d, .http = from, .run = run};
	const struct doc *files;

	if (file_mkdir_p(dir, 0700, err) < 0 || read_index(&g, run, a, &files, err) < 0 ||
	    check_room(&g, files, err) < 0)
		return -1;
	for (size_t i = 0; i < files->array.n; i++)
		if (get_one(&g, files->array.v[i], err) < 0)
			return -1;
	*ret = g.sum;
	return file_write_atomic(index, g.index, 0600, true, err);
}

static int move_one(struct results_download *g, const struct doc *file, const char *to,
		    struct err *err)
{
	struct str name = doc_str(file, "path", STR(""));

	if (!path_is_below(name))
		return err_set(err, ERR_INVALID, RESULTS_INDEX " names a file '%.*s'",
			       STR_ARG(name));
	CLEANUP(freep) char *source = path_join(g->dir, name.p);
	CLEANUP(freep) char *path = path_join(to, name.p);

	g->sum.files++;
	g->sum.bytes += (uint64_t)doc_int(file, "size", 0);
	if (make_parent(path, err) < 0)
		return -1;
	/* One that is not there was moved by an earlier try. */
	if (rename(source, path) < 0 && (errno != ENOENT || !file_exists(path)))
		return err_errno(err, errno, "move '%s'", source);
	return 0;
}

int results_move(const char *from, const char *dir, const char *run, struct results_sum *ret,
		 struct err *err)
{
	CLEANUP(arena_freep) struct arena *a = arena_new();
	struct results_download g = {.dir = from};
	const struct doc *files;

	if (read_index(&g, run, a, &files, err) < 0)
		return -1;
	for (size_t i = 0; i < files->array.n; i++)
		if (move_one(&g, files->array.v[i], dir, err) < 0)
			return -1;
	*ret = g.sum;
	return 0;
}
