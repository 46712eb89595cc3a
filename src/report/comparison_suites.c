/*
 * Which variants of several suites are held against each other.
 *
 * An experiment is paired with those of its name, a variant of the matrix with those of the same
 * parameters.  A parameter that has one value in all variants of each suite is no part of that: it is
 * what the suites differ in, and is named in a note.  A variant that the baseline or all others lack is
 * named, too.
 */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/arena.h"
#include "base/buf.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "base/map.h"
#include "report/comparison_internal.h"
#include "report/suite_report.h"
#include "store/store.h"

#define MOST_NAMES 8 /* of variants in a note */
#define KEY_BYTES (64 * 1024)
#define NOTE_BYTES 2000

/* A parameter, in all suites. */
struct param {
	const char *key;
	int at[COMPARISON_MAX_ARMS]; /* its place among the keys of each suite; -1: nobody sets it there */
	const char *value
		[COMPARISON_MAX_ARMS]; /* of all variants of the matrix; NULL: none or several */
	bool varies[COMPARISON_MAX_ARMS];
	bool tells; /* variants differ by it in one of the suites */
};
struct params {
	VEC(struct param) v;
};

static void say(struct comparison *c, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

static void say(struct comparison *c, const char *fmt, ...)
{
	char text[NOTE_BYTES];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	*vec_push(&c->notes) = arena_strdup(c->a, text);
}

static struct param *param_of(struct params *ps, const char *key)
{
	for (size_t i = 0; i < ps->v.n; i++)
		if (strcmp(ps->v.v[i].key, key) == 0)
			return &ps->v.v[i];
	struct param *p = vec_push(&ps->v);
	*p = (struct param){.key = key};
	for (size_t i = 0; i < COMPARISON_MAX_ARMS; i++)
		p->at[i] = -1;
	return p;
}

/* How the variants of a matrix have a key: one value, several, or not at all. */
static void look_at_key(struct param *p, const struct suite_report_facts *s, size_t suite, int key)
{
	const char *first = NULL;
	bool any = false;

	for (int v = 0; v < s->nvariants; v++) {
		const char *value = s->variants[v].params[key];

		if (s->variants[v].experiment)
			continue;
		if (any && (!first != !value || (value && strcmp(first, value) != 0)))
			p->varies[suite] = true;
		if (!any)
			first = value;
		any = true;
	}
	p->at[suite] = key;
	p->value[suite] = p->varies[suite] ? NULL : first;
	p->tells = p->tells || p->varies[suite];
}

static void find_params(const struct comparison *c, struct params *ps)
{
	for (size_t i = 0; i < c->o.narms; i++)
		for (int k = 0; k < c->o.suites[i].nkeys; k++)
			look_at_key(param_of(ps, c->o.suites[i].keys[k]), &c->o.suites[i], i, k);
}

/* What a variant has in common with those that it is paired with. */
static void pair_key(const struct params *ps, const struct suite_report_facts *s, size_t suite,
		     int variant, struct buf *out)
{
	const struct suite_report_variant *v = &s->variants[variant];

	buf_reset(out);
	if (v->experiment) {
		buf_addc(out, 'x');
		buf_addz(out, v->name);
		return;
	}
	for (size_t i = 0; i < ps->v.n; i++) {
		const struct param *p = &ps->v.v[i];
		const char *value = p->at[suite] >= 0 ? v->params[p->at[suite]] : NULL;

		if (p->tells && value)
			buf_printf(out, "%s=%zu:%s\n", p->key, strlen(value), value);
	}
}

static int make_pairs(struct comparison *c, const struct params *ps, struct err *err)
{
	CLEANUP(map_freep) struct map *known = map_new(); /* key -> index + 1 */
	CLEANUP(buf_release) struct buf key = {0};

	buf_init(&key, KEY_BYTES);
	for (size_t i = 0; i < c->o.narms; i++) {
		const struct suite_report_facts *s = &c->o.suites[i];

		for (int v = 0; v < s->nvariants; v++) {
			pair_key(ps, s, i, v, &key);
			size_t at = (size_t)(uintptr_t)map_get(known, buf_str(&key));

			if (!at && c->pairs.n == COMPARISON_MAX_PAIRED)
				return err_set(err, ERR_INVALID,
					       "at most %d variants can be compared",
					       COMPARISON_MAX_PAIRED);
			if (!at) {
				struct compare_pair *new = vec_push(&c->pairs);

				new->name = s->variants[v].name;
				for (size_t k = 0; k < COMPARISON_MAX_ARMS; k++)
					new->variant[k] = -1;
				at = c->pairs.n;
				map_put(known, buf_str(&key), (void *)(uintptr_t)at);
			}
			c->pairs.v[at - 1].variant[i] = v;
		}
	}
	return 0;
}

/* ---- notes ---- */

/* The baseline has it, and one of the others. */
static bool is_shared(const struct comparison *c, const struct compare_pair *p)
{
	for (size_t k = 1; k < c->o.narms && p->variant[0] >= 0; k++)
		if (p->variant[k] >= 0)
			return true;
	return false;
}

/* "env.LR is 1 in a-abcd, 2 in b-abcd" */
static void note_params(struct comparison *c, const struct params *ps)
{
	for (size_t i = 0; i < ps->v.n; i++) {
		const struct param *p = &ps->v.v[i];
		CLEANUP(buf_release) struct buf text = {0};
		bool same = true;

		for (size_t k = 1; k < c->o.narms; k++) {
			const char *a = p->value[0], *b = p->value[k];

			same = same && p->varies[k] == p->varies[0] && !a == !b &&
			       (!a || strcmp(a, b) == 0);
		}
		if (same)
			continue;
		buf_init(&text, NOTE_BYTES);
		for (size_t k = 0; k < c->o.narms; k++) {
			buf_addz(&text, k ? ", " : " ");
			if (p->varies[k])
				buf_addz(&text, "varies");
			else if (p->value[k])
				buf_printf(&text, "is %s", p->value[k]);
			else
				buf_addz(&text, "is not set");
			buf_printf(&text, " in %s", c->arms[k].label);
		}
		say(c, "parameter '%s'%.*s", p->key, STR_ARG(buf_str(&text)));
	}
}

static const char *value_in(const struct comparison *c, const struct param *p,
			    const struct compare_pair *pair, size_t suite)
{
	int v = pair->variant[suite];

	return v >= 0 && p->at[suite] >= 0 ? c->o.suites[suite].variants[v].params[p->at[suite]]
					   : NULL;
}

/* Experiments have the same name, but may set other values. */
static void note_experiments(struct comparison *c, const struct params *ps)
{
	for (size_t i = 0; i < c->pairs.n; i++) {
		const struct compare_pair *pair = &c->pairs.v[i];

		if (pair->variant[0] < 0 || !c->o.suites[0].variants[pair->variant[0]].experiment)
			continue;
		for (size_t n = 0; n < ps->v.n; n++)
			for (size_t k = 1; k < c->o.narms; k++) {
				const struct param *p = &ps->v.v[n];
				const char *a = value_in(c, p, pair, 0),
					   *b = value_in(c, p, pair, k);

				if (pair->variant[k] < 0 || (!a && !b) ||
				    (a && b && strcmp(a, b) == 0))
					continue;
				say(c, "experiment '%s': parameter '%s' is %s in %s, %s in %s",
				    pair->name, p->key, a ? a : "not set", c->arms[0].label,
				    b ? b : "not set", c->arms[k].label);
			}
	}
}

/* Variants of a suite that are not compared. */
static void note_unpaired(struct comparison *c, size_t suite)
{
	CLEANUP(buf_release) struct buf text = {0};
	size_t n = 0;

	buf_init(&text, NOTE_BYTES);
	for (size_t i = 0; i < c->pairs.n; i++) {
		const struct compare_pair *p = &c->pairs.v[i];

		if (p->variant[suite] < 0 || is_shared(c, p) || n++ >= MOST_NAMES)
			continue;
		buf_printf(&text, "%s%s", n > 1 ? "; " : "", p->name);
	}
	if (n > MOST_NAMES)
		buf_printf(&text, " and %zu more", n - MOST_NAMES);
	if (n)
		say(c, "only in %s: %.*s", c->arms[suite].label, STR_ARG(buf_str(&text)));
}

/* ---- runs ---- */

struct placed_run {
	int pair, index;
};

static int by_pair(const void *x, const void *y)
{
	const struct placed_run *a = x, *b = y;

	if (a->pair != b->pair)
		return a->pair < b->pair ? -1 : 1;
	return a->index < b->index ? -1 : a->index > b->index;
}

/* In the order of the pairs, so that the metrics come in it. */
static struct placed_run *place_runs(const struct comparison *c, size_t suite)
{
	const struct suite_report_facts *s = &c->o.suites[suite];
	struct placed_run *runs = arena_array(c->a, struct placed_run, (size_t)s->nruns + 1);
	int *pair_of = arena_array(c->a, int, (size_t)s->nvariants + 1);

	for (size_t i = 0; i < c->pairs.n; i++)
		if (c->pairs.v[i].variant[suite] >= 0)
			pair_of[c->pairs.v[i].variant[suite]] = (int)i;
	for (int i = 0; i < s->nruns; i++)
		runs[i] = (struct placed_run){pair_of[s->runs[i].variant], i};
	qsort(runs, (size_t)s->nruns, sizeof(runs[0]), by_pair);
	return runs;
}

/* A run that was removed is left out, and one that has not succeeded. */
static int take_run(struct store *st, struct compare_arm *arm, const struct suite_report_run *run,
		    int pair, struct err *err)
{
	CLEANUP(arena_freep) struct arena *a = arena_new();
	struct err why = {0};
	const char **ids;
	int64_t no;
	size_t n;

	if (run->succeeded && run->run &&
	    store_run_find(st, str_from(run->run), a, &no, &ids, &n, &why) == 0) {
		*vec_push(&arm->runs) = (struct compare_run){
			.no = no, .id = run->run, .succeeded = true, .pair = pair};
		return 0;
	}
	if (why.kind != ERR_NONE && why.kind != ERR_NOT_FOUND && why.kind != ERR_CONFLICT) {
		*err = why;
		return -1;
	}
	if (why.kind != ERR_NONE)
		arm->removed++;
	else
		arm->left_out++;
	return 0;
}

static bool any_shared(const struct comparison *c)
{
	for (size_t i = 0; i < c->pairs.n; i++)
		if (is_shared(c, &c->pairs.v[i]))
			return true;
	return false;
}

int compare_pair_suites(struct comparison *c, struct store *st, struct err *err)
{
	struct params ps = {0};

	for (size_t i = 0; i < c->o.narms; i++) {
		c->arms[i].suite = true;
		c->arms[i].label = c->o.suites[i].id;
	}
	find_params(c, &ps);
	int rc = make_pairs(c, &ps, err);
	note_params(c, &ps);
	note_experiments(c, &ps);
	vec_release(&ps.v);
	if (rc < 0)
		return -1;
	if (!any_shared(c))
		return err_set(err, ERR_INVALID, "suite %s has no variant in common with %s%s%s",
			       c->arms[0].label, c->o.narms > 2 ? "the others" : c->arms[1].label,
			       c->notes.n ? ": " : "", c->notes.n ? c->notes.v[0] : "");
	for (size_t i = 0; i < c->o.narms; i++) {
		const struct placed_run *runs = place_runs(c, i);

		note_unpaired(c, i);
		for (int k = 0; k < c->o.suites[i].nruns; k++)
			if (is_shared(c, &c->pairs.v[runs[k].pair]) &&
			    take_run(st, &c->arms[i], &c->o.suites[i].runs[runs[k].index],
				     runs[k].pair, err) < 0)
				return -1;
	}
	return 0;
}
