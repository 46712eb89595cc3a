#include "agent/objects.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "agent/config.h"
#include "agent/fetch.h"
#include "agent/transfer.h"
#include "base/alloc.h"
#include "base/arena.h"
#include "base/buf.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "base/file.h"
#include "base/path.h"
#include "fmt/doc.h"
#include "fmt/jsonw.h"
#include "fmt/object_list.h"
#include "link/message.h"

#define BATCH 64 /* objects whose URLs are asked for at once */
#define ASK_MS 60000
#define ASK_MAX (BATCH * 8192)
#define ANSWER_MAX (BATCH * 16384)

struct objects {
	const struct agent_config *cfg;
	const char *node_dir;
	const struct message_data *d;
	const char *dest; /* NULL: the one file is opened */
	int opened;	  /* without dest */
	struct transfer master;
	/* of this batch */
	struct arena *a;
	struct object_entry entries[BATCH];
	size_t n;
	const char *urls[BATCH];
};

/* ---- URLs ---- */

static void write_question(const struct objects *o, size_t from, size_t n, struct buf *out)
{
	bool versions = false;
	struct jsonw w;

	jsonw_init(&w, out);
	jsonw_open(&w, '{');
	jsonw_kint(&w, "input", o->d->input);
	jsonw_key(&w, "names");
	jsonw_open(&w, '[');
	for (size_t i = 0; i < n; i++) {
		jsonw_z(&w, o->entries[from + i].name);
		versions |= o->entries[from + i].version != NULL;
	}
	jsonw_close(&w);
	if (versions) {
		jsonw_key(&w, "versions");
		jsonw_open(&w, '[');
		for (size_t i = 0; i < n; i++)
			jsonw_z(&w,
				o->entries[from + i].version ? o->entries[from + i].version : "");
		jsonw_close(&w);
	}
	jsonw_close(&w);
}

static int read_urls(struct objects *o, size_t from, size_t n, const struct buf *text,
		     struct err *err)
{
	struct doc *d;

	if (json_parse(arena_str(o->a, buf_str(text)), o->a, &d, err) < 0)
		return err_wrap(err, "the master's answer");
	const struct doc *urls = doc_array(d, "urls");

	if (!urls || urls->array.n != n)
		return err_set(err, ERR_PROTOCOL, "the master's answer has no %zu URLs", n);
	for (size_t i = 0; i < n; i++) {
		if (urls->array.v[i]->type != DOC_STRING)
			return err_set(err, ERR_PROTOCOL, "the master's answer: a URL is text");
		o->urls[from + i] = urls->array.v[i]->s.p;
	}
	return 0;
}

/* Sets n URLs of the batch, from one entry on. */
static int ask_urls(struct objects *o, size_t from, size_t n, struct err *err)
{
	CLEANUP(freep) char *path = transfer_path(&o->master, "urls");
	CLEANUP(buf_release) struct buf body = {0};
	struct http_answer answer;
	int rc;

	buf_init(&body, ASK_MAX);
	write_question(o, from, n, &body);
	if (body.overflow)
		return err_set(err, ERR_INVALID, "the names of the objects are too long");
	const struct http_outgoing r = {
		.method = "POST",
		.path = path,
		.type = "application/json",
		.timeout_ms = ASK_MS,
		.body = buf_str(&body),
	};

	http_answer_init(&answer, ANSWER_MAX);
	while ((rc = transfer_call(&o->master, &r, &answer, err)) > 0)
		;
	if (rc == 0)
		rc = read_urls(o, from, n, &answer.body, err);
	http_answer_release(&answer);
	return rc < 0 ? err_wrap(err, "ask the master for URLs") : 0;
}

/* ---- files ---- */

struct object_at {
	struct objects *o;
	size_t i;
};

static int object_url(void *ctx, bool again, struct buf *out, struct err *err)
{
	const struct object_at *at = ctx;

	if (again && ask_urls(at->o, at->i, 1, err) < 0)
		return -1;
	buf_addz(out, at->o->urls[at->i]);
	return 0;
}

static int open_object(struct objects *o, size_t i, struct err *err)
{
	const struct object_entry *e = &o->entries[i];
	struct object_at at = {o, i};
	bool below = str_ends(str_from(o->d->from), STR("/"));
	const struct fetch_object f = {
		.what = below ? arena_printf(o->a, "%s%s", o->d->from, e->name) : o->d->from,
		.etag = e->etag,
		.size = e->size,
		.sha256 = o->d->sha256,
		.url = object_url,
		.ctx = &at,
	};

	return fetch_object(o->cfg, o->node_dir, &f, err);
}

/* A file in the node's own cache is not shared and needs no second copy on the disk. */
static bool link_file(int from, const char *dest)
{
	char path[64];

	snprintf(path, sizeof(path), "/proc/self/fd/%d", from);
	return linkat(AT_FDCWD, path, AT_FDCWD, dest, AT_SYMLINK_FOLLOW) == 0;
}

/* again: outside of the work directory an earlier try may have left the file. */
static int place_file(const struct agent_config *cfg, int from, const char *dest, bool again,
		      struct err *err)
{
	mode_t mask = umask(0);

	umask(mask);
	if (file_make_parent(dest, err) < 0)
		return -1;
	if (again)
		unlink(dest);
	if (!cfg->cache && link_file(from, dest))
		return fchmod(from, 0666 & ~mask) < 0 ? err_errno(err, errno, "chmod '%s'", dest)
						      : 0;
	CLEANUP(close_fdp)
	int to = open(dest, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0666);

	if (to < 0)
		return err_errno(err, errno, "create '%s'", dest);
	return file_copy_content(from, to, err);
}

static int put_object(struct objects *o, size_t i, struct err *err)
{
	const char *name = o->entries[i].name;
	CLEANUP(freep) char *path = *name ? path_join(o->dest, name) : xstrdup(o->dest);
	CLEANUP(close_fdp) int from = open_object(o, i, err);

	return from < 0 ? -1 : place_file(o->cfg, from, path, o->d->path[0] == '/', err);
}

/* ---- the list ---- */

static int fetch_batch(struct objects *o, struct err *err)
{
	if (o->n == 0)
		return 0;
	if (ask_urls(o, 0, o->n, err) < 0)
		return -1;
	if (!o->dest) {
		o->opened = open_object(o, 0, err);
		return o->opened < 0 ? -1 : 0;
	}
	for (size_t i = 0; i < o->n; i++)
		if (put_object(o, i, err) < 0)
			return -1;
	o->n = 0;
	o->a = arena_free(o->a);
	o->a = arena_new();
	return 0;
}

static int take_line(struct objects *o, struct str line, int64_t number, struct err *err)
{
	if (number % o->d->shard_count != o->d->shard_index)
		return 0;
	if (!o->dest && o->n == 1)
		return err_set(err, ERR_INVALID, "unpack: it is more than one object");
	if (object_entry_get(arena_str(o->a, line), o->a, &o->entries[o->n], err) < 0)
		return -1;
	o->n++;
	return o->n == BATCH ? fetch_batch(o, err) : 0;
}

static int read_list(struct objects *o, int fd, struct err *err)
{
	FILE *f = fdopen(fd, "r");
	char *line = NULL;
	size_t room = 0;
	int64_t number = 0;
	ssize_t n;
	int rc = 0;

	if (!f) {
		close(fd);
		return err_errno(err, errno, "read the list of objects");
	}
	while (rc == 0 && (n = getline(&line, &room, f)) > 0)
		rc = take_line(o, (struct str){line, (size_t)n}, number++, err);
	if (rc == 0 && ferror(f))
		rc = err_set(err, ERR_IO, "read the list of objects");
	free(line);
	fclose(f);
	return rc == 0 ? fetch_batch(o, err) : -1;
}

static int fetch_all(struct objects *o, struct err *err)
{
	const struct message_blob list = {.sha256 = o->d->list};
	int fd = fetch_open(o->cfg, o->node_dir, &list, err), rc;

	if (fd < 0)
		return err_wrap(err, "list of objects");
	transfer_init(&o->master, o->cfg, NULL);
	o->a = arena_new();
	rc = read_list(o, fd, err);
	arena_free(o->a);
	transfer_release(&o->master);
	return rc;
}

int objects_open_one(const struct agent_config *cfg, const char *node_dir,
		     const struct message_data *d, struct err *err)
{
	struct objects o = {.cfg = cfg, .node_dir = node_dir, .d = d, .opened = -1};

	if (fetch_all(&o, err) < 0)
		return -1;
	return o.opened >= 0 ? o.opened : err_set(err, ERR_INVALID, "unpack: there is no object");
}

int objects_put(const struct agent_config *cfg, const char *node_dir, const struct message_data *d,
		const char *dest, struct err *err)
{
	struct objects o = {.cfg = cfg, .node_dir = node_dir, .d = d, .dest = dest, .opened = -1};

	return fetch_all(&o, err);
}
