/*
 * URLs of the objects that a node fetches from other servers.  Those of a store of objects are signed
 * with the credentials of the run, for an hour; a node that is refused asks again.
 */
#include "base/arena.h"
#include "base/buf.h"
#include "base/cleanup.h"
#include "driver/object_store.h"
#include "fmt/doc.h"
#include "fmt/jsonw.h"
#include "master/api/api.h"
#include "master/api/node_task.h"
#include "master/data_blobs.h"
#include "master/live_run.h"

#define VALID_S 3600
#define MOST_NAMES 1000
#define URL_MAX 8192

struct url_question {
	const char *from, *credentials;
	const struct doc *names, *versions; /* versions: NULL, or one for each name */
};

static int sign_all(const struct url_question *q, const struct deadline *d, struct jsonw *w,
		    struct err *err)
{
	CLEANUP(object_store_freep) struct object_store *st = NULL;
	const struct object_access who = {.credentials = q->credentials};
	CLEANUP(buf_release) struct buf url = {0};

	buf_init(&url, URL_MAX);
	if (object_store_open(q->from, &who, d, &st, err) < 0)
		return -1;
	for (size_t i = 0; i < q->names->array.n; i++) {
		const char *version = q->versions ? q->versions->array.v[i]->s.p : NULL;

		buf_reset(&url);
		if (object_presign(st, q->names->array.v[i]->s.p, version, "GET", VALID_S, d, &url,
				   err) < 0)
			return -1;
		jsonw_str(w, buf_str(&url));
	}
	return 0;
}

static void work(struct node_task *t, const struct deadline *d)
{
	const struct url_question *q = t->with;
	struct jsonw w;

	jsonw_init(&w, &t->answer);
	jsonw_open(&w, '{');
	jsonw_key(&w, "urls");
	jsonw_open(&w, '[');
	if (object_url_is(q->from))
		(void)sign_all(q, d, &w, &t->err);
	else /* https:// is one object: the URL itself, whatever its name on the node is */
		for (size_t i = 0; i < q->names->array.n; i++)
			jsonw_z(&w, q->from);
	jsonw_close(&w);
	jsonw_close(&w);
	buf_addc(&t->answer, '\n');
}

static bool are_names(const struct doc *names)
{
	if (!names || names->array.n < 1 || names->array.n > MOST_NAMES)
		return false;
	for (size_t i = 0; i < names->array.n; i++)
		if (names->array.v[i]->type != DOC_STRING)
			return false;
	return true;
}

int api_node_urls(struct api_call *c, struct err *err)
{
	const struct live_run *lr = map_get(c->m->runs, c->params[0]);
	struct doc *body;

	if (api_read_body(c, &body, err) < 0)
		return -1;
	const struct doc *names = doc_array(body, "names");

	if (!are_names(names))
		return err_set(err, ERR_INVALID, "'names' must be a list of 1 to %d names",
			       MOST_NAMES);
	const struct doc *versions = doc_array(body, "versions");

	if (versions && (!are_names(versions) || versions->array.n != names->array.n))
		return err_set(err, ERR_INVALID, "'versions' must have one for each name");
	const char *from = lr ? data_blobs_from(lr, doc_int(body, "input", -1), c->arena) : NULL;

	if (!from)
		return err_set(err, ERR_NOT_FOUND, "no such input of this run");
	struct node_task *t = node_task_new((size_t)MOST_NAMES * URL_MAX);
	struct url_question *q = arena_new_of(t->a, struct url_question);

	q->from = arena_strdup(t->a, from);
	q->credentials = lr->credentials ? arena_strdup(t->a, lr->credentials) : NULL;
	q->names = doc_copy(t->a, names);
	q->versions = versions ? doc_copy(t->a, versions) : NULL;
	t->with = q;
	t->work = work;
	node_task_start(c, t);
	return 0;
}
