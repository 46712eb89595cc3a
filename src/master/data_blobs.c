#include "master/data_blobs.h"

#include <string.h>

#include "base/alloc.h"
#include "base/arena.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "base/file.h"
#include "fmt/doc.h"
#include "link/layout.h"
#include "link/message.h"
#include "master/internal.h"
#include "master/live_run.h"
#include "plan/plan.h"

/* ---- at the submit ---- */

static int check_blob(const struct live_run *lr, const struct doc *sha, struct err *err)
{
	if (!sha || sha->type != DOC_STRING || sha->s.n != 64 ||
	    strspn(sha->s.p, "0123456789abcdef") != 64)
		return err_set(err, ERR_INVALID, "'data': a digest is 64 hex digits");
	CLEANUP(freep) char *path = xasprintf("%s/" LAYOUT_BLOBS "/%s", lr->m->home, sha->s.p);

	return file_exists(path)
		       ? 0
		       : err_set(err, ERR_NOT_FOUND,
				 "an archive of the data is missing on the master: submit the job again");
}

static int check_entry(const struct live_run *lr, const struct data_spec *d,
		       const struct doc *entry, struct err *err)
{
	const struct doc *list = entry ? doc_array(entry, "sha256") : NULL;
	size_t want = d->shard ? (size_t)lr->plan.crew.ncounted : 1;

	if (input_is_fetched(d->src)) {
		if (!doc_str(entry, "from", STR("")).n)
			return err_set(
				err, ERR_INVALID,
				"'%.80s': its list of objects is needed: submit the job with "
				"a regatta of this version",
				d->src);
		return check_blob(lr, doc_get(entry, "list"), err);
	}
	if (plan_shares_files(lr->job))
		return 0;
	/* The nodes are with the master that the run is handed to. */
	if (list && !plan_has_nodes(&lr->plan))
		want = list->array.n;
	if (!list || list->array.n != want)
		return err_set(
			err, ERR_INVALID,
			"data '%.80s': %zu archives are needed: submit the job with a regatta "
			"of this version",
			d->src, want);
	for (size_t k = 0; k < want; k++)
		if (check_blob(lr, list->array.v[k], err) < 0)
			return -1;
	return 0;
}

int data_blobs_take(struct live_run *lr, const struct doc *list, struct err *err)
{
	size_t n = list && list->type == DOC_ARRAY ? list->array.n : 0;
	const struct data_spec *inputs;
	size_t ninputs = job_data(lr->job, lr->arena, &inputs);

	for (size_t i = 0; i < ninputs; i++)
		if (check_entry(lr, &inputs[i], i < n ? list->array.v[i] : NULL, err) < 0)
			return -1;
	lr->row.data = n > 0 ? doc_json_text(lr->arena, list) : NULL;
	return 0;
}

/* ---- after the submit ---- */

static const struct doc *parse(const struct live_run *lr, struct arena *a)
{
	struct doc *d = NULL;

	if (!lr->row.data || !lr->row.data[0] ||
	    json_parse_limited(str_from(lr->row.data), PLAN_MAX_BYTES, PLAN_MAX_VALUES, a, &d,
			       NULL) < 0 ||
	    d->type != DOC_ARRAY)
		return NULL;
	return d;
}

/* NULL if it has none. */
static const struct doc *entry_of(const struct live_run *lr, size_t i, struct arena *a)
{
	const struct doc *all = parse(lr, a);

	return all && i < all->array.n ? all->array.v[i] : NULL;
}

/* Every step-th from the first on. */
static void put_shas(const struct doc *list, size_t first, size_t step, struct arena *a,
		     struct message_data *m)
{
	m->blobs = arena_array(a, struct message_blob, list->array.n + 1);
	for (size_t k = first; k < list->array.n; k += step)
		m->blobs[m->nblobs++] =
			(struct message_blob){.sha256 = arena_str(a, list->array.v[k]->s).p};
}

void data_blobs_put(const struct live_run *lr, size_t i, int place, struct arena *a,
		    struct message_data *m)
{
	const struct doc *entry = entry_of(lr, i, a);
	const struct doc *list = entry ? doc_array(entry, "sha256") : NULL;
	bool own = place >= 0;

	if (doc_get(entry, "list")) {
		m->list = doc_str(entry, "list", STR("")).p;
		m->from = doc_str(entry, "from", STR("")).p;
		m->input = (int64_t)i;
		m->shard_index = own ? place : 0;
		m->shard_count = own ? lr->core->counted : 1;
		return;
	}
	if (!list || (own && ((size_t)place >= list->array.n || lr->core->counted < 1)))
		return; /* without blobs: the agent refuses the entry */
	m->tar = doc_bool(entry, "tar", false);
	put_shas(list, own ? (size_t)place : 0, own ? (size_t)lr->core->counted : 1, a, m);
}

const char *data_blobs_from(const struct live_run *lr, int64_t i, struct arena *a)
{
	return i < 0 ? NULL : doc_str(entry_of(lr, (size_t)i, a), "from", (struct str){0}).p;
}

int run_each_blob(const struct live_run *lr, int (*fn)(void *ctx, const char *sha256), void *ctx)
{
	CLEANUP(arena_freep) struct arena *a = arena_new();
	const struct doc *all = parse(lr, a);

	if (lr->row.source_sha256 && lr->row.source_sha256[0] && fn(ctx, lr->row.source_sha256) < 0)
		return -1;
	for (size_t i = 0; all && i < all->array.n; i++) {
		const struct doc *list = doc_array(all->array.v[i], "sha256");
		struct str objects = doc_str(all->array.v[i], "list", (struct str){0});

		if (objects.n && fn(ctx, objects.p) < 0)
			return -1;
		for (size_t k = 0; list && k < list->array.n; k++)
			if (fn(ctx, list->array.v[k]->s.p) < 0)
				return -1;
	}
	return 0;
}

static int is_this(void *ctx, const char *sha256)
{
	return str_is(*(struct str *)ctx, sha256) ? -1 : 0;
}

bool run_has_blob(const struct live_run *lr, struct str sha256)
{
	return run_each_blob(lr, is_this, &sha256) < 0;
}
