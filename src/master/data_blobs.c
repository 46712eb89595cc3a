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

static const struct data_spec *spec_of(const struct live_run *lr, size_t i)
{
	return &((const struct data_spec *)lr->job->data.v)[i];
}

/* ---- at the submit ---- */

static int check_blob(const struct live_run *lr, const struct doc *sha, struct err *err)
{
	if (sha->type != DOC_STRING || sha->s.n != 64 || strspn(sha->s.p, "0123456789abcdef") != 64)
		return err_set(err, ERR_INVALID, "'data': a digest is 64 hex digits");
	CLEANUP(freep) char *path = xasprintf("%s/" LAYOUT_BLOBS "/%s", lr->m->home, sha->s.p);

	return file_exists(path)
		       ? 0
		       : err_set(err, ERR_NOT_FOUND,
				 "an archive of the data is missing on the master: submit the job again");
}

static int check_entry(const struct live_run *lr, size_t i, const struct doc *entry,
		       struct err *err)
{
	const struct data_spec *d = spec_of(lr, i);
	const struct doc *list = entry ? doc_array(entry, "sha256") : NULL;
	size_t want = d->shard ? (size_t)lr->plan.crew.ncounted : 1;

	if (data_is_url(d))
		return 0;
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

	if (lr->job->data.n == 0 || plan_shares_files(lr->job))
		return 0;
	for (size_t i = 0; i < lr->job->data.n; i++)
		if (check_entry(lr, i, i < n ? list->array.v[i] : NULL, err) < 0)
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
	const struct data_spec *d = spec_of(lr, i);
	const struct doc *all = parse(lr, a);
	const struct doc *entry = all && i < all->array.n ? all->array.v[i] : NULL;
	const struct doc *list = entry ? doc_array(entry, "sha256") : NULL;
	bool own = place >= 0;

	if (data_is_url(d)) {
		m->blobs = arena_array(a, struct message_blob, 1);
		m->blobs[m->nblobs++] = (struct message_blob){.url = d->src, .sha256 = d->sha256};
		return;
	}
	if (!list || (own && ((size_t)place >= list->array.n || lr->core->counted < 1)))
		return; /* without blobs: the agent refuses the entry */
	m->tar = doc_bool(entry, "tar", false);
	put_shas(list, own ? (size_t)place : 0, own ? (size_t)lr->core->counted : 1, a, m);
}

int run_each_blob(const struct live_run *lr, int (*fn)(void *ctx, const char *sha256), void *ctx)
{
	CLEANUP(arena_freep) struct arena *a = arena_new();
	const struct doc *all = parse(lr, a);

	if (lr->row.source_sha256 && lr->row.source_sha256[0] && fn(ctx, lr->row.source_sha256) < 0)
		return -1;
	for (size_t i = 0; all && i < all->array.n; i++) {
		const struct doc *list = doc_array(all->array.v[i], "sha256");

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
