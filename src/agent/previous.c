#include "agent/previous.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "agent/fetch.h"
#include "agent/transfer.h"
#include "base/alloc.h"
#include "base/arena.h"
#include "base/below.h"
#include "base/buf.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "base/file.h"
#include "base/path.h"
#include "fmt/doc.h"
#include "fmt/url.h"
#include "fmt/http_url.h"

#define PREVIOUS_DIR "previous"
#define NEW_DIR "previous.new"
#define LIST_FILE "previous.list"

/* One fetch. */
struct previous {
	const struct agent_config *cfg;
	const char *node_dir;
	int attempt;
	int top; /* the directory that is being filled */
};

char *place_previous(const char *node_dir)
{
	return path_join(node_dir, PREVIOUS_DIR);
}

static bool is_sha256(struct str s)
{
	return s.n == 64 && strspn(s.p, "0123456789abcdef") == 64;
}

static int fetch_file(const struct previous *p, const char *path, const char *sha256,
		      struct err *err)
{
	CLEANUP(buf_release) struct buf rest = {0};

	buf_init(&rest, HTTP_URL_MAX);
	buf_printf(&rest, "previous?attempt=%d&path=", p->attempt);
	url_encode(&rest, str_from(path));
	if (rest.overflow)
		return err_set(err, ERR_INVALID, "the name is too long");
	return fetch_open_path(p->cfg, p->node_dir, rest.p, sha256, err);
}

/* The cache is not the job's own: it gets a copy. */
static int put_file(const struct previous *p, const char *path, const char *sha256, mode_t mode,
		    struct err *err)
{
	CLEANUP(close_fdp) int dir = below_enter_parent(p->top, path, err);
	CLEANUP(close_fdp) int from = -1;
	CLEANUP(close_fdp) int to = -1;

	if (dir < 0)
		return -1;
	if (faccessat(dir, path_base(path), F_OK, AT_SYMLINK_NOFOLLOW) == 0)
		return 0; /* it is in the list twice */
	from = fetch_file(p, path, sha256, err);
	if (from < 0)
		return -1;
	to = openat(dir, path_base(path), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC,
		    0600);
	if (to < 0)
		return err_errno(err, errno, "create it");
	if (file_copy_content(from, to, err) < 0)
		return -1;
	return fchmod(to, mode) < 0 ? err_errno(err, errno, "set its mode") : 0;
}

static int put_line(const struct previous *p, struct str line, struct err *err)
{
	CLEANUP(arena_freep) struct arena *a = arena_new();
	struct doc *d;

	if (json_parse(line, a, &d, err) < 0)
		return -1;
	struct str path = doc_str(d, "path", STR("")), sha256 = doc_str(d, "sha256", STR(""));

	if (!path_is_below(path) || !is_sha256(sha256))
		return err_set(err, ERR_PROTOCOL, "a line of the list cannot be used");
	if (put_file(p, path.p, sha256.p, (mode_t)(doc_int(d, "mode", 0600) & 0777), err) < 0)
		return err_wrap(err, "'%.100s'", path.p);
	return 0;
}

static int download_list(const struct previous *p, int fd, struct err *err)
{
	CLEANUP(transfer_release) struct transfer t;
	CLEANUP(freep) char *rest = xasprintf("previous?attempt=%d", p->attempt);

	transfer_init(&t, p->cfg, NULL);
	CLEANUP(freep) char *path = transfer_path(&t, rest);

	return transfer_download(&t, path, NULL, fd, err);
}

static int put_all(const struct previous *p, FILE *list, struct err *err)
{
	CLEANUP(freep) char *line = NULL;
	size_t size = 0;
	ssize_t n;

	while ((n = getline(&line, &size, list)) > 0)
		if (put_line(p, str_trim((struct str){line, (size_t)n}), err) < 0)
			return -1;
	return ferror(list) ? err_errno(err, errno, "read the list") : 0;
}

static int fill(const struct previous *p, struct err *err)
{
	CLEANUP(freep) char *path = path_join(p->node_dir, LIST_FILE);
	CLEANUP(close_fdp)
	int fd = open(path, O_RDWR | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0600);

	if (fd < 0)
		return err_errno(err, errno, "create '%s'", path);
	unlink(path);
	if (download_list(p, fd, err) < 0)
		return -1;
	if (lseek(fd, 0, SEEK_SET) < 0)
		return err_errno(err, errno, "rewind the list");
	FILE *list = fdopen(fd, "r");

	if (!list)
		return err_errno(err, errno, "read the list");
	(void)TAKE_FD(fd); /* it is the list's now */
	int rc = put_all(p, list, err);

	fclose(list);
	return rc;
}

int previous_fetch(const struct agent_config *cfg, const char *node_dir, int attempt,
		   struct err *err)
{
	CLEANUP(freep) char *dir = place_previous(node_dir);
	CLEANUP(freep) char *fresh = path_join(node_dir, NEW_DIR);
	struct previous p = {cfg, node_dir, attempt, -1};

	if (file_exists(dir))
		return 0;
	if (file_remove_tree(fresh, err) < 0)
		return -1;
	if (mkdir(fresh, 0700) < 0)
		return err_errno(err, errno, "make '%s'", fresh);
	p.top = open(fresh, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (p.top < 0)
		return err_errno(err, errno, "open '%s'", fresh);
	int rc = fill(&p, err);

	close(p.top);
	if (rc < 0)
		return err_wrap(err, "outputs of attempt %d", attempt);
	return rename(fresh, dir) < 0 ? err_errno(err, errno, "make '%s'", dir) : 0;
}
