#include "cli/command/suite_history.h"

#include <math.h>
#include <string.h>

#include "base/arena.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "base/map.h"
#include "cli/client/api.h"
#include "fmt/doc.h"

#define RUNS "/api/v1/runs?full=1&limit=200"
#define SUITES "/api/v1/suites?limit=10"
#define FEWEST_RUNS 3 /* of which a scatter is taken */

struct past_run {
	const struct doc *run;
	const char *variant; /* of its suite; NULL: it is of none */
	const char *params;  /* as text */
};

struct suite_history {
	const struct history_variant *v;
	const char **params; /* of each variant, as text */
	size_t n;
	struct past_run *past; /* that have succeeded */
	size_t npast;
};

static const char *params_text(const struct doc *params, struct arena *a)
{
	return params && params->table.n ? doc_json_text(a, params) : "{}";
}

/* ---- reading ---- */

/* The variant of each run of a suite. */
static void take_variants(struct map *of, const struct doc *suite, struct arena *a)
{
	const struct doc *variants = doc_array(suite, "variants");

	for (size_t i = 0; variants && i < variants->array.n; i++) {
		const struct doc *v = variants->array.v[i], *runs = doc_array(v, "runs");
		char *name = arena_strndup(a, doc_str(v, "name", STR("")).p,
					   doc_str(v, "name", STR("")).n);

		for (size_t k = 0; runs && k < runs->array.n; k++)
			map_put(of, doc_str(runs->array.v[k], "run", STR("")), name);
	}
}

static void read_suites(struct api *api, struct map *of, struct arena *a)
{
	struct doc *list, *suite;
	struct err ignored;

	if (api_get_doc(api, SUITES, a, &list, &ignored) < 0)
		return;
	const struct doc *suites = doc_array(list, "suites");

	for (size_t i = 0; suites && i < suites->array.n; i++) {
		struct str id = doc_str(suites->array.v[i], "id", STR(""));

		if (api_get_doc(api, api_suite_path(a, id, ""), a, &suite, &ignored) == 0)
			take_variants(of, suite, a);
	}
}

static void take_runs(struct suite_history *h, const struct doc *runs, const struct map *of,
		      struct arena *a)
{
	h->past = arena_array(a, struct past_run, runs->array.n + 1);
	for (size_t i = 0; i < runs->array.n; i++) {
		const struct doc *run = runs->array.v[i];

		if (!str_is(doc_str(run, "state", STR("")), "succeeded"))
			continue;
		h->past[h->npast++] = (struct past_run){
			.run = run,
			.variant = map_get(of, doc_str(run, "id", STR(""))),
			.params = params_text(doc_table(run, "params"), a),
		};
	}
}

struct suite_history *suite_history_read(const struct cli_call *c, const struct history_variant *v,
					 size_t n, struct arena *a)
{
	struct suite_history *h = arena_new_of(a, struct suite_history);
	CLEANUP(api_release) struct api api = {0};
	CLEANUP(map_freep) struct map *of = map_new();
	struct doc *d;
	struct err ignored;

	*h = (struct suite_history){.v = v, .n = n, .params = arena_array(a, const char *, n + 1)};
	for (size_t i = 0; i < n; i++)
		h->params[i] = params_text(v[i].params, a);
	if (api_open_named(&api, c, false, &ignored) < 0 ||
	    api_get_doc(&api, RUNS, a, &d, &ignored) < 0 || !doc_array(d, "runs"))
		return h;
	read_suites(&api, of, a);
	take_runs(h, doc_array(d, "runs"), of, a);
	return h;
}

/* ---- asking ---- */

static bool is_of_job(const struct past_run *p, const struct history_variant *v)
{
	return str_is(doc_str(p->run, "name", STR("")), v->job_name);
}

static bool is_like(const struct suite_history *h, const struct past_run *p, size_t i)
{
	const struct history_variant *v = &h->v[i];

	if (!is_of_job(p, v))
		return false;
	if (p->variant)
		return strcmp(p->variant, v->name) == 0;
	return doc_int(doc_table(p->run, "counts"), "nodes", 0) == v->nodes &&
	       strcmp(p->params, h->params[i]) == 0;
}

double suite_history_usual_ms(const struct suite_history *h, size_t variant)
{
	double alike = 0, all = 0;
	int nalike = 0, nall = 0;

	for (size_t k = 0; k < h->npast; k++) {
		const struct past_run *p = &h->past[k];
		double ms = (double)doc_int(p->run, "elapsed_ms", 0);

		if (!is_of_job(p, &h->v[variant]))
			continue;
		all += ms;
		nall++;
		if (!is_like(h, p, variant))
			continue;
		alike += ms;
		nalike++;
	}
	return nalike ? alike / nalike : nall ? all / nall : 0;
}

size_t suite_history_metrics(const struct suite_history *h, const char **ret_first)
{
	*ret_first = NULL;
	for (size_t k = 0; k < h->npast; k++) {
		const struct doc *m = doc_table(h->past[k].run, "metrics");

		if (!m || m->table.n == 0 || !is_of_job(&h->past[k], &h->v[0]))
			continue;
		*ret_first = m->table.v[0].key.p;
		return m->table.n;
	}
	return 0;
}

/* Of the runs of one variant: sum of the squares of their relative distances from their mean. */
static double squares_of(const struct suite_history *h, const char *metric, size_t variant,
			 const size_t *of, int *ret_free)
{
	double sum = 0, squares = 0;
	int n = 0;

	*ret_free = 0;
	for (size_t k = 0; k < h->npast; k++) {
		const struct doc *m = doc_table(doc_table(h->past[k].run, "metrics"), metric);

		if (of[k] != variant || !m)
			continue;
		double x = doc_num(m, "mean", 0);

		sum += x;
		squares += x * x;
		n++;
	}
	if (n < 2 || sum == 0)
		return 0;
	double mean = sum / n, around = squares - sum * mean;

	*ret_free = n - 1;
	return around > 0 ? around / (mean * mean) : 0;
}

double suite_history_scatter(const struct suite_history *h, const char *metric)
{
	CLEANUP(arena_freep) struct arena *a = arena_new();
	size_t *of = arena_array(a, size_t, h->npast + 1);
	double squares = 0;
	int all = 0;

	if (!metric)
		return 0;
	for (size_t k = 0; k < h->npast; k++)
		for (of[k] = 0; of[k] < h->n && !is_like(h, &h->past[k], of[k]);)
			of[k]++;
	for (size_t i = 0; i < h->n; i++) {
		int one;

		squares += squares_of(h, metric, i, of, &one);
		all += one;
	}
	return all >= FEWEST_RUNS - 1 ? sqrt(squares / all) : 0;
}
