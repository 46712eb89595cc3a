#include "driver/results.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/arena.h"
#include "base/buf.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "base/file.h"
#include "base/path.h"
#include "driver/object_store.h"
#include "fmt/doc.h"
#include "net/digest.h"

#define INDEX_MAX ((size_t)256 * 1024 * 1024)
#define INDEX_VERSION 1

struct results_download {
	const char *dir;
	struct object_store *st;
	const struct deadline *d;
	struct results_sum sum;
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

static int read_index(struct results_download *g, const char *run, struct arena *a,
		      const struct doc **ret, struct err *err)
{
	CLEANUP(buf_release) struct buf text = {0};
	struct doc *index;

	buf_init(&text, INDEX_MAX);
	if (object_get_text(g->st, RESULTS_INDEX, &text, g->d, err) < 0)
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
	if (read_index(&g, at->run, a, &files, err) < 0)
		return err_wrap(err, "results in %.100s", url);
	for (size_t i = 0; i < files->array.n; i++)
		if (get_one(&g, files->array.v[i], err) < 0)
			return err_wrap(err, "results in %.100s", url);
	*ret = g.sum;
	return 0;
}
