#include "driver/input_find.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

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
#include "fmt/object_list.h"
#include "net/http_client.h"
#include "fmt/http_url.h"

#define WRITE_AT ((size_t)256 * 1024) /* lines are written when there are so many bytes */
#define HEAD_MS 20000
#define MAX_REDIRECTS 5

/* A list that is being made. */
struct finding {
	const struct input_question *q;
	int fd;
	struct buf lines;
	uint64_t *shards; /* bytes of each */
	size_t nshards;
	struct input_found found;
};

static int write_lines(struct finding *f, struct err *err)
{
	int rc = f->fd < 0 ? 0 : file_write_all(f->fd, buf_str(&f->lines).p, f->lines.n, err);

	buf_reset(&f->lines);
	return rc;
}

static int add_object(struct finding *f, const struct object_entry *e, struct err *err)
{
	uint64_t bytes = e->size > 0 ? (uint64_t)e->size : 0;

	if (f->found.objects >= OBJECT_LIST_MAX)
		return err_set(err, ERR_INVALID, "it has more than %d objects", OBJECT_LIST_MAX);
	f->shards[f->found.objects % f->nshards] += bytes;
	f->found.objects++;
	f->found.bytes += bytes;
	f->found.sized = f->found.sized && e->size >= 0;
	object_entry_put(e, &f->lines);
	return f->lines.n < WRITE_AT ? 0 : write_lines(f, err);
}

/* ---- a store of objects ---- */

static const char *etag_of(const struct object *o)
{
	return o->etag[0] ? o->etag : NULL;
}

static const char *version_of(const struct object *o)
{
	return o->version[0] ? o->version : NULL;
}

static int add_listed(void *ctx, const struct object *o, struct err *err)
{
	struct str name = str_from(o->name);

	/* Names that end with a slash are how consoles show an empty directory. */
	if (name.n == 0 || name.p[name.n - 1] == '/')
		return 0;
	if (!path_is_below(name))
		return err_set(err, ERR_INVALID, "the object '%.120s' cannot be a file on a node",
			       o->name);
	return add_object(ctx,
			  &(struct object_entry){.name = o->name,
						 .size = (int64_t)o->size,
						 .etag = etag_of(o),
						 .version = version_of(o)},
			  err);
}

static int list_below(struct finding *f, const char *url, const struct object_access *who,
		      const struct deadline *d, struct arena *a, struct err *err)
{
	CLEANUP(object_store_freep) struct object_store *st = NULL;

	f->found.from = arena_printf(a, "%s%s", url, url[strlen(url) - 1] == '/' ? "" : "/");
	if (object_store_open(f->found.from, who, d, &st, err) < 0 ||
	    object_list_versions(st, "", d, add_listed, f, err) < 0)
		return -1;
	return f->found.objects ? 0 : err_set(err, ERR_NOT_FOUND, "there is no such object");
}

static int head_object(const char *url, const struct object_access *who, const struct deadline *d,
		       struct object *ret, struct err *err)
{
	CLEANUP(object_store_freep) struct object_store *st = NULL;

	return object_store_open(url, who, d, &st, err) < 0 ? -1 : object_head(st, "", d, ret, err);
}

/* Has the URL a key behind its bucket that can be that of an object? */
static bool may_be_object(const char *url)
{
	const char *key = strchr(strstr(url, "://") + 3, '/');

	return key && key[1] && url[strlen(url) - 1] != '/';
}

static int find_objects(struct finding *f, const struct deadline *d, struct arena *a,
			struct err *err)
{
	const char *url = f->q->url, *name = f->q->in_dir ? path_base(url) : "";
	struct doc *credentials = NULL;
	struct object o;

	if (object_credentials(url, f->q->options, a, &credentials, err) < 0)
		return -1;
	const struct object_access who = {.credentials = doc_json_text(a, credentials)};

	if (!may_be_object(url))
		return list_below(f, url, &who, d, a, err);
	if (head_object(url, &who, d, &o, err) < 0) {
		if (err->kind != ERR_NOT_FOUND)
			return -1;
		*err = (struct err){0};
		return list_below(f, url, &who, d, a, err);
	}
	f->found.from = arena_strndup(a, url, strlen(url) - strlen(name));
	return add_object(f,
			  &(struct object_entry){.name = name,
						 .size = (int64_t)o.size,
						 .etag = etag_of(&o),
						 .version = version_of(&o)},
			  err);
}

/* ---- https ---- */

static const char *variable(const char *lower, const char *upper)
{
	const char *value = getenv(lower);

	return value ? value : getenv(upper);
}

/* 1: the server has told about the file.  0: it has not. */
static int ask_server(const char *url, const struct deadline *d, struct arena *a,
		      struct object_entry *ret, struct err *err)
{
	struct http_client *client = NULL;
	struct http_answer answer;
	struct http_url u;
	int64_t left = deadline_left_ms(d);
	int timeout_ms = left < HEAD_MS ? (int)left : HEAD_MS;

	if (http_url_parse(&u, str_from(url), false, err) < 0)
		return -1;
	struct http_target there = {
		.host = u.host,
		.port = u.port,
		.tls = {.mode = TLS_CA},
		.proxy = {.https_proxy = variable("https_proxy", "HTTPS_PROXY"),
			  .no_proxy = variable("no_proxy", "NO_PROXY")},
	};
	CLEANUP(freep) char *path = u.path.n > 0 ? xstrndup(u.path.p, u.path.n) : xstrdup("/");
	const struct http_outgoing r = {.method = "HEAD",
					.path = path,
					.timeout_ms = timeout_ms,
					.max_redirects = MAX_REDIRECTS};

	if (http_client_open(&there, timeout_ms, &client, NULL) < 0)
		return 0;
	http_answer_init(&answer, WRITE_AT);
	int rc = http_send(client, &r, &answer, NULL) == 0 ? answer.status : 0;

	http_answer_release(&answer);
	if (rc == 200) {
		struct str etag = http_client_header(client, "ETag");

		uint64_t size;

		if (str_to_u64(http_client_header(client, "Content-Length"), &size) &&
		    size <= INT64_MAX)
			ret->size = (int64_t)size;
		/* A weak one does not promise the same bytes. */
		if (etag.n > 1 && etag.p[0] == '"')
			ret->etag = arena_str(a, etag).p;
	}
	http_client_free(client);
	if (rc == 404 || rc == 410)
		return err_set(err, ERR_NOT_FOUND, "the server answers %d", rc);
	return rc == 200;
}

/* The last part of the path of a URL, without a query. */
static const char *name_in(const char *url, struct arena *a)
{
	struct str rest = str_from(url), path = str_cut(&rest, '?');

	return path_base(arena_str(a, path).p);
}

static int find_file(struct finding *f, const struct deadline *d, struct arena *a, struct err *err)
{
	struct object_entry e = {.name = f->q->in_dir ? name_in(f->q->url, a) : "", .size = -1};

	if (f->q->in_dir && !path_is_below(str_from(e.name)))
		return err_set(err, ERR_INVALID, "the URL has no name of a file at its end");
	if (ask_server(f->q->url, d, a, &e, err) < 0)
		return -1;
	f->found.from = arena_strdup(a, f->q->url);
	return add_object(f, &e, err);
}

int input_find(const struct input_question *q, int fd, const struct deadline *d, struct arena *a,
	       struct input_found *ret, struct err *err)
{
	struct finding f = {.q = q, .fd = fd, .nshards = q->shards ? q->shards : 1};

	buf_init(&f.lines, WRITE_AT + OBJECT_LIST_LINE);
	f.shards = xcalloc(f.nshards, sizeof(*f.shards));
	f.found.sized = true;
	int rc = object_url_is(q->url) ? find_objects(&f, d, a, err) : find_file(&f, d, a, err);

	if (rc == 0)
		rc = write_lines(&f, err);
	for (size_t i = 0; i < f.nshards; i++)
		if (f.shards[i] > f.found.largest_shard)
			f.found.largest_shard = f.shards[i];
	buf_release(&f.lines);
	free(f.shards);
	if (rc == 0)
		*ret = f.found;
	return rc;
}
