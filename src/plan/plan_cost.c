/* plan_cost - what a plan costs: per role and in all, for people and for programs; the disks of its machines. */
#include "plan/internal.h"

#include <inttypes.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/clock.h"
#include "base/err.h"
#include "fmt/doc.h"

#define MICRO 1000000
#define HOUR_MS (60LL * 60 * 1000)

/* One line of the cost table: the nodes of a role, or one resource without a node. */
struct line {
	const char *name;
	const struct plan_resource *first;
	int count;
};

struct lines {
	struct line *v;
	int n;
	int64_t per_hour,
		most; /* sums with the first choice of each resource, and with its most expensive choice */
};

static int64_t dearest(const struct plan_resource *r)
{
	int64_t most = 0;

	for (size_t i = 0; i < r->prices.n; i++)
		if (r->prices.v[i] > most)
			most = r->prices.v[i];
	return most;
}

static const char *line_name(const struct plan *p, const struct plan_resource *r)
{
	return r->node >= 0 ? p->crew.roles[p->crew.members[r->node].role].name : r->name;
}

/* A node beyond the count of its role is only made by `regatta resize`. */
static bool is_dormant(const struct plan *p, const struct plan_resource *r)
{
	const struct member *m = r->node >= 0 ? &p->crew.members[r->node] : NULL;

	return m && m->index >= p->crew.roles[m->role].count;
}

static struct lines lines_of(const struct plan *p, struct arena *a)
{
	struct lines l = {.v = arena_array(a, struct line, (size_t)p->nresources)};

	for (int i = 0; i < p->nresources; i++) {
		const struct plan_resource *r = &p->resources[i];
		int at = 0;

		if (!r->prices.n || is_dormant(p, r))
			continue;
		while (at < l.n && strcmp(l.v[at].name, line_name(p, r)) != 0)
			at++;
		if (at == l.n)
			l.v[l.n++] = (struct line){line_name(p, r), r, 0};
		l.v[at].count++;
		l.per_hour += r->prices.v[0];
		l.most += dearest(r);
	}
	return l;
}

/* USD for max_runtime with the most expensive choices. */
static double upper_bound(const struct plan *p, const struct lines *l)
{
	return (double)l->most / MICRO * (double)p->job->max_runtime_ms / HOUR_MS;
}

/* The name of a choice for people: its key "type". */
static struct str type_of(const struct plan_resource *r, int choice, struct arena *a)
{
	struct doc *doc = NULL;
	struct err err;

	if (choice < r->nchoices)
		json_parse(str_from(r->choices[choice]), a, &doc, &err);
	return doc_str(doc, "type", str_from(r->kind));
}

/* 3.06, as price lists have it: no zeros at the end. */
static const char *dollars(int64_t micro, struct arena *a)
{
	char *text = arena_printf(a, "%" PRId64 ".%06" PRId64, micro / MICRO, micro % MICRO);
	size_t n = strlen(text);

	while (text[n - 1] == '0' && text[n - 3] != '.')
		text[--n] = '\0';
	return text;
}

/* Is the type of choice i another than that of the choice before?  (Choices may differ in the zone only.) */
static bool is_new_type(const struct plan_resource *r, int i, struct arena *a)
{
	return i == 0 || !str_eq(type_of(r, i, a), type_of(r, i - 1, a));
}

static struct doc *types_doc(const struct plan_resource *r, struct arena *a)
{
	struct doc *list = doc_new(a, DOC_ARRAY);

	for (int i = 0; i < (int)r->prices.n; i++) {
		struct doc *type = doc_new(a, DOC_TABLE);

		if (!is_new_type(r, i, a))
			continue;
		doc_set(a, type, STR("type"), doc_new_str(a, type_of(r, i, a)));
		doc_set(a, type, STR("per_hour"), doc_new_float(a, (double)r->prices.v[i] / MICRO));
		doc_append(a, list, type);
	}
	return list;
}

struct doc *plan_cost_doc(const struct plan *p, struct arena *a)
{
	struct lines l = lines_of(p, a);
	struct doc *cost = doc_new(a, DOC_TABLE), *roles = doc_new(a, DOC_ARRAY);

	if (!l.n)
		return NULL;
	for (int i = 0; i < l.n; i++) {
		const struct line *line = &l.v[i];
		struct doc *role = doc_new(a, DOC_TABLE);
		double each = (double)line->first->prices.v[0] / MICRO;

		doc_set(a, role, STR("name"), doc_new_str(a, str_from(line->name)));
		doc_set(a, role, STR("count"), doc_new_int(a, line->count));
		doc_set(a, role, STR("types"), types_doc(line->first, a));
		doc_set(a, role, STR("per_hour"), doc_new_float(a, each * line->count));
		doc_append(a, roles, role);
	}
	doc_set(a, cost, STR("per_hour"), doc_new_float(a, (double)l.per_hour / MICRO));
	doc_set(a, cost, STR("upper_bound"),
		p->job->max_runtime_ms ? doc_new_float(a, upper_bound(p, &l))
				       : doc_new(a, DOC_NULL));
	doc_set(a, cost, STR("currency"), doc_new_str(a, STR("USD")));
	doc_set(a, cost, STR("as_of"), doc_new_str(a, str_from(p->prices_as_of)));
	doc_set(a, cost, STR("roles"), roles);
	return cost;
}

static void add_others(const struct plan_resource *r, struct arena *a, struct buf *out)
{
	for (int i = 1; i < (int)r->prices.n; i++)
		if (is_new_type(r, i, a))
			buf_printf(out, ", or %.*s at %s", STR_ARG(type_of(r, i, a)),
				   dollars(r->prices.v[i], a));
}

void plan_cost_text(const struct plan *p, struct arena *a, struct buf *out)
{
	struct lines l = lines_of(p, a);
	char span[32];

	if (!l.n)
		return;
	buf_printf(out, "\ncost, in USD per hour (prices of %s)\n", p->prices_as_of);
	for (int i = 0; i < l.n; i++) {
		const struct line *line = &l.v[i];
		int64_t each = line->first->prices.v[0];

		buf_printf(out, "  %-12s  %s: %d x %.*s at %s", line->name,
			   dollars(each * line->count, a), line->count,
			   STR_ARG(type_of(line->first, 0, a)), dollars(each, a));
		add_others(line->first, a, out);
		buf_addc(out, '\n');
	}
	buf_printf(out, "  %-12s  %s\n", "total", dollars(l.per_hour, a));
	if (!p->job->max_runtime_ms)
		return;
	clock_format_span(p->job->max_runtime_ms, span);
	buf_printf(out, "  %-12s  %.2f USD, for max_runtime %s\n", "at most", upper_bound(p, &l),
		   span);
}

struct doc *plan_volumes_doc(const struct plan *p, struct arena *a)
{
	struct lines l = lines_of(p, a);
	struct doc *list = doc_new(a, DOC_ARRAY);

	for (int i = 0; i < l.n; i++) {
		struct plan_volume v = plan_volume(p, l.v[i].first, a);
		struct doc *d = doc_new(a, DOC_TABLE);

		if (!v.gb)
			continue;
		doc_set(a, d, STR("name"), doc_new_str(a, str_from(l.v[i].name)));
		doc_set(a, d, STR("count"), doc_new_int(a, l.v[i].count));
		doc_set(a, d, STR("gb"), doc_new_int(a, v.gb));
		doc_set(a, d, STR("type"), doc_new_str(a, str_from(v.type)));
		doc_set(a, d, STR("at_least"), doc_new_bool(a, v.least));
		doc_append(a, list, d);
	}
	return list->array.n ? list : NULL;
}

void plan_volumes_text(const struct plan *p, struct arena *a, struct buf *out)
{
	struct lines l = lines_of(p, a);
	bool any = false;

	for (int i = 0; i < l.n; i++) {
		struct plan_volume v = plan_volume(p, l.v[i].first, a);

		if (!v.gb)
			continue;
		if (!any)
			buf_addz(out, "\nvolumes\n");
		any = true;
		buf_printf(out, "  %-12s  %d x %" PRId64 " GB %s%s\n", l.v[i].name, l.v[i].count,
			   v.gb, v.type, v.least ? ", more if the image is larger" : "");
	}
}
