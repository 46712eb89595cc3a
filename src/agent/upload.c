#include "agent/upload.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "agent/collect.h"
#include "agent/transfer.h"
#include "base/alloc.h"
#include "base/arena.h"
#include "base/below.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "base/file.h"
#include "base/path.h"
#include "fmt/doc.h"
#include "fmt/url.h"
#include "net/digest.h"

#define PIECE (16u << 20)
#define ASK_FIRST (256u << 10) /* a smaller file is sent without asking how much the master has */
#define CALL_MS 120000
#define MAX_ANSWER (64 * 1024)
#define MAX_TRIES 3 /* for a file that arrives damaged */

struct upload {
	struct transfer *t;
	struct http_answer answer;
	int fd;
	uint64_t size;
	char *query; /* names the file */
	bool done;
	uint64_t have; /* bytes that the master has */
};

static char *make_query(const char *name, int attempt, const struct stat *st, const char *sha256)
{
	CLEANUP(buf_release) struct buf b = {0};

	buf_init(&b, HTTP_URL_MAX);
	buf_addz(&b, "outputs?path=");
	url_encode(&b, str_from(name));
	buf_printf(&b, "&size=%lld&sha256=%s&mode=%u&attempt=%d", (long long)st->st_size, sha256,
		   (unsigned)(st->st_mode & 0777), attempt);
	return b.overflow ? NULL : xstrdup(buf_str(&b).p);
}

static int read_answer(struct upload *u, struct err *err)
{
	CLEANUP(arena_freep) struct arena *a = arena_new();
	struct doc *d = NULL;

	if (json_parse(buf_str(&u->answer.body), a, &d, err) < 0)
		return err_wrap(err, "the master's answer");
	int64_t have = doc_int(d, "have", -1);

	u->done = doc_bool(d, "done", false);
	if (!u->done && (have < 0 || (uint64_t)have > u->size))
		return err_set(err, ERR_PROTOCOL, "the master's answer has an invalid key 'have'");
	u->have = (uint64_t)have;
	return 0;
}

/* Returns as transfer_call(). */
static int call(struct upload *u, const struct http_outgoing *r, struct err *err)
{
	int rc = transfer_call(u->t, r, &u->answer, err);

	return rc == 0 ? read_answer(u, err) : rc;
}

static int ask(struct upload *u, struct err *err)
{
	CLEANUP(freep) char *path = transfer_path(u->t, u->query);

	return call(u,
		    &(struct http_outgoing){.method = "GET", .path = path, .timeout_ms = CALL_MS},
		    err);
}

static int send_piece(struct upload *u, struct err *err)
{
	CLEANUP(freep) char *rest = xasprintf("%s&offset=%" PRIu64, u->query, u->have);
	CLEANUP(freep) char *path = transfer_path(u->t, rest);
	uint64_t left = u->size - u->have;
	struct http_outgoing r = {
		.method = "PUT",
		.path = path,
		.type = "application/octet-stream",
		.timeout_ms = CALL_MS,
		.from_fd = true,
		.fd = u->fd,
		.offset = (int64_t)u->have,
		.size = left < PIECE ? left : PIECE,
		.expect_continue = left > ASK_FIRST,
	};

	return call(u, &r, err);
}

static int send_file(struct upload *u, struct err *err)
{
	bool sure = u->size <= ASK_FIRST; /* u->have is known */
	int tries = 0;

	while (!u->done) {
		int rc = sure ? send_piece(u, err) : ask(u, err);

		/* 400: the bytes were damaged in transit or by a crash of the master; send the file again. */
		if (rc < 0 && (!sure || u->answer.status != 400 || ++tries >= MAX_TRIES))
			return -1;
		sure = rc == 0;
	}
	return 0;
}

static int upload_fd(struct transfer *t, const char *name, int attempt, int fd,
		     struct collected *ret, struct err *err)
{
	char hex[SHA256_TEXT];
	struct stat st;

	if (fstat(fd, &st) < 0 || sha256_fd_hex(fd, hex, NULL, err) < 0)
		return err_wrap(err, "read '%s'", name);
	struct upload u = {.t = t,
			   .fd = fd,
			   .size = (uint64_t)st.st_size,
			   .query = make_query(name, attempt, &st, hex)};

	if (!u.query)
		return err_set(err, ERR_INVALID, "the name '%.60s...' is too long", name);
	http_answer_init(&u.answer, MAX_ANSWER);
	int rc = send_file(&u, err);

	http_answer_release(&u.answer);
	free(u.query);
	if (rc < 0)
		return err_wrap(err, "upload '%.100s'", name);
	ret->files++;
	ret->bytes += u.size;
	return 0;
}

/* Open the target of a link, if it is below the directory too. */
static int open_link(const char *dir, const char *name)
{
	CLEANUP(freep) char *path = path_join(dir, name);
	CLEANUP(freep) char *top = realpath(dir, NULL);
	CLEANUP(freep) char *to = realpath(path, NULL);
	size_t n = top ? strlen(top) : 0;

	if (!top || !to || strncmp(to, top, n) != 0 || to[n] != '/')
		return -1;
	return open(to, O_RDONLY | O_NONBLOCK | O_NOFOLLOW | O_CLOEXEC);
}

static void note(struct collected *ret, const char *name)
{
	size_t n = strlen(ret->note);

	snprintf(ret->note + n, sizeof(ret->note) - n, "%s%s", n ? ", " : "not kept: ", name);
}

static int upload_one(struct transfer *t, const char *dir, int top, const char *name, int attempt,
		      struct collected *ret, struct err *err)
{
	CLEANUP(close_fdp) int fd = below_open(top, name);
	struct stat st;

	if (fd < 0 && errno == ELOOP)
		fd = open_link(dir, name);
	if (fd < 0 || fstat(fd, &st) < 0 || !S_ISREG(st.st_mode)) {
		note(ret, name);
		return 0;
	}
	return upload_fd(t, name, attempt, fd, ret, err);
}

int upload_files(const struct agent_config *cfg, const char *dir, int attempt,
		 struct collected *ret, struct err *err)
{
	CLEANUP(close_fdp) int top = open(dir, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	CLEANUP(transfer_release) struct transfer t;
	char **names = NULL;
	size_t n = 0;
	int rc = 0;

	ret->files = ret->bytes = 0;
	transfer_init(&t, cfg, NULL);
	if (top < 0)
		return errno == ENOENT ? 0 : err_errno(err, errno, "open the output directory");
	if (file_list_tree_and_links(fcntl(top, F_DUPFD_CLOEXEC, 3), COLLECT_MAX_FILES, &names, &n,
				     err) < 0)
		return err_wrap(err, "list the output directory");
	for (size_t i = 0; rc == 0 && i < n; i++)
		rc = upload_one(&t, dir, top, names[i], attempt, ret, err);
	file_list_free(names, n);
	return rc;
}
