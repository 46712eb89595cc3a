#include "master/suite_submission.h"

#include <string.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "base/file.h"
#include "base/path.h"
#include "driver/object_store.h"
#include "fmt/doc.h"
#include "fmt/jsonw.h"
#include "fmt/schema.h"
#include "master/suites.h"
#include "plan/plan.h"
#include "spec/job.h"

/* Of the file: fresh credentials may be longer than those that came. */
#define MAX_BYTES (4 * DOC_MAX_BYTES)

int suite_submission_check(const struct live_suite *ls, struct err *err)
{
	const struct doc *list = doc_array(ls->request, "submissions");
	const struct doc *of = doc_array(ls->request, "of");

	for (size_t i = 0; list && i < list->array.n; i++)
		if (!doc_table(list->array.v[i], "job"))
			return err_set(err, ERR_INVALID, "'submissions': entry %zu has no job", i);
	if (!list || !of || of->array.n != (size_t)ls->plan.n)
		return err_set(err, ERR_INVALID,
			       "'of' must say which of 'submissions' each of the %d variants has",
			       ls->plan.n);
	for (size_t i = 0; i < of->array.n; i++)
		if (of->array.v[i]->type != DOC_INT || of->array.v[i]->i < 0 ||
		    of->array.v[i]->i >= (int64_t)list->array.n)
			return err_set(err, ERR_INVALID, "'of': entry %zu is no submission", i);
	return 0;
}

int suite_submission_load(struct live_suite *ls, struct err *err)
{
	CLEANUP(freep) char *path = path_join(ls->dir, SUITE_REQUEST_FILE);
	CLEANUP(buf_release) struct buf text = {0};

	buf_init(&text, MAX_BYTES);
	if (file_read(path, &text, err) < 0)
		return -1;
	if (json_parse_limited(buf_str(&text), MAX_BYTES, DOC_MAX_NODES, ls->arena, &ls->request,
			       err) == 0 &&
	    suite_submission_check(ls, err) == 0)
		return 0;
	ls->request = NULL;
	return err_wrap(err, "'%s'", path);
}

int suite_submission_save(const struct live_suite *ls, struct err *err)
{
	CLEANUP(freep) char *path = path_join(ls->dir, SUITE_REQUEST_FILE);
	CLEANUP(buf_release) struct buf text = {0};

	buf_init(&text, MAX_BYTES);
	doc_to_json(ls->request, &text);
	return file_write_atomic(path, buf_str(&text), 0600, true, err);
}

/* ---- credentials ---- */

static struct doc *submission_of(const struct live_suite *ls, int variant)
{
	const struct doc *of = doc_array(ls->request, "of");

	return doc_array(ls->request, "submissions")->array.v[of->array.v[variant]->i];
}

/* The job of a variant that has credentials; NULL: it has none. */
static struct job *job_with_credentials(const struct live_suite *ls, int variant, struct arena *a)
{
	const struct doc *given = submission_of(ls, variant);
	const struct job_rules rules = plan_job_rules();
	struct problems *ps = arena_new_of(a, struct problems);
	struct job *job = arena_new_of(a, struct job);
	struct doc *doc;

	return doc_table(given, "credentials") &&
			       suite_apply(&ls->plan, &ls->plan.variants[variant],
					   doc_table(given, "job"), a, &doc,
					   &(struct err){0}) == 0 &&
			       job_load(doc, &rules, a, job, ps)
		       ? job
		       : NULL;
}

void suite_engines_to_json(const struct live_suite *ls, struct buf *out)
{
	CLEANUP(arena_freep) struct arena *a = arena_new();
	struct doc *seen = doc_new(a, DOC_TABLE);
	struct jsonw w;

	jsonw_init(&w, out);
	jsonw_open(&w, '{');
	jsonw_key(&w, "engines");
	jsonw_open(&w, '[');
	for (int v = 0; ls->request && v < ls->plan.n; v++) {
		const struct job *job = job_with_credentials(ls, v, a);

		if (!job || doc_get(seen, job->engine))
			continue;
		doc_set(a, seen, str_from(job->engine), doc_new_bool(a, true));
		const struct doc *options = plan_engine_options(job, a);

		jsonw_open(&w, '{');
		jsonw_kz(&w, "name", job->engine);
		jsonw_key(&w, "options");
		jsonw_raw(&w, str_from(options ? doc_json_text(a, options) : "null"));
		jsonw_close(&w);
	}
	jsonw_close(&w);
	jsonw_close(&w);
}

/* Those for stores are not the engine's. */
static void renew(struct live_suite *ls, int variant, const struct doc *by_engine)
{
	CLEANUP(arena_freep) struct arena *a = arena_new();
	const struct job *job = job_with_credentials(ls, variant, a);
	const struct doc *came = job ? doc_table(by_engine, job->engine) : NULL;

	if (!came)
		return;
	struct doc *given = submission_of(ls, variant), *fresh = doc_copy(ls->arena, came);
	const struct doc *stores = doc_get(doc_table(given, "credentials"), OBJECT_CREDENTIALS);

	if (stores)
		doc_set(ls->arena, fresh, STR(OBJECT_CREDENTIALS), doc_copy(ls->arena, stores));
	doc_set(ls->arena, given, STR("credentials"), fresh);
}

int suite_credentials_renew(struct live_suite *ls, const struct doc *by_engine, struct err *err)
{
	if (!by_engine || by_engine->table.n == 0)
		return 0;
	for (int v = 0; v < ls->plan.n; v++)
		renew(ls, v, by_engine);
	return suite_submission_save(ls, err);
}
