/*
 * suite - load a suite file, check what the rows of the schema cannot express, and expand it.
 *
 * Every check runs even when an earlier one found something, so that a file shows all its problems
 * at once; only a suite without problems is expanded.
 */
#include "spec/suite.h"

#include "base/arena.h"
#include "base/buf.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "base/map.h"
#include "base/suggest.h"
#include "spec/secret.h"

#define MAX_NAME 100 /* bytes of a variant's name: it is a directory too */
#define EXPLAIN_BYTES (64 * 1024)

struct suite_check {
	const struct doc *doc;
	const struct schema *job;
	struct suite *s;
	struct arena *a;
	struct problems *ps;
};

#define problem(c, pos, ...) problems_add((c)->ps, (c)->a, (pos), __VA_ARGS__)

static struct suite_experiment *experiment_at(const struct suite *s, size_t i)
{
	return &((struct suite_experiment *)s->experiments.v)[i];
}

const char *suite_value_text(const struct doc *value, struct arena *a)
{
	CLEANUP(buf_release) struct buf text = {0};

	if (value->type == DOC_STRING)
		return arena_strndup(a, value->s.p, value->s.n);
	buf_init(&text, DOC_MAX_BYTES);
	doc_value_to_toml(value, &text);
	struct str t = buf_str(&text);
	return arena_strndup(a, t.p, t.n);
}

static bool same_value(const struct doc *x, const struct doc *y, struct arena *a)
{
	return x->type == y->type && strcmp(doc_json_text(a, x), doc_json_text(a, y)) == 0;
}

/* ---- checks ---- */

/* The last part of a path of keys. */
static struct str last_part(struct str key)
{
	for (size_t i = key.n; i > 0; i--)
		if (key.p[i - 1] == '.')
			return (struct str){key.p + i, key.n - i};
	return key;
}

static bool env_has_secret(const struct job *job, const struct doc *d, bool is_env)
{
	bool found = false;

	for (size_t i = 0; d->type == DOC_ARRAY && i < d->array.n; i++)
		found = found || env_has_secret(job, d->array.v[i], is_env);
	for (size_t i = 0; d->type == DOC_TABLE && i < d->table.n; i++) {
		const struct doc_entry *e = &d->table.v[i];

		found = found || (is_env && secret_name(job, e->key)) ||
			env_has_secret(job, e->value, str_is(e->key, "env"));
	}
	return found;
}

const char *suite_secret_word(const struct job *job, struct str key, const struct doc *value)
{
	struct str last = last_part(key);

	if (secret_name(job, last))
		return "is a secret";
	return env_has_secret(job, value, str_is(last, "env")) ? "has a secret" : NULL;
}

static bool has_null(const struct doc *d)
{
	bool found = d->type == DOC_NULL;

	for (size_t i = 0; d->type == DOC_ARRAY && i < d->array.n; i++)
		found = found || has_null(d->array.v[i]);
	for (size_t i = 0; d->type == DOC_TABLE && i < d->table.n; i++)
		found = found || has_null(d->table.v[i].value);
	return found;
}

/* Is it a key of a job file whose value a variant may have?  What `secrets` of the job names is found later. */
static void check_key(struct suite_check *c, const struct doc_entry *e, const char *where)
{
	CLEANUP(buf_release) struct buf text = {0};
	const struct job none = {0};
	const char *secret;
	struct err err;

	buf_init(&text, EXPLAIN_BYTES);
	if (e->key.n == 0)
		problem(c, e->key_pos, "%s: a key is empty", where);
	else if (schema_explain(c->job, e->key, &text, &err) < 0)
		problem(c, e->key_pos, "%s: %s", where, err.msg);
	else if (str_is(e->key, "name"))
		problem(c, e->key_pos,
			"%s: 'name' is that of the runs: the variants have names of their own",
			where);
	else if ((secret = suite_secret_word(&none, e->key, e->value)))
		problem(c, e->key_pos,
			"%s: '%.*s' %s, and values of variants are shown: leave it in the job file",
			where, STR_ARG(e->key), secret);
	else if (has_null(e->value)) /* nor could it be written as a setting, which is TOML */
		problem(c, e->value->pos, "%s: '%.*s' has a null: a key of a job has a value",
			where, STR_ARG(e->key));
}

static void check_keys(struct suite_check *c, const struct doc *table, const char *where)
{
	for (size_t i = 0; i < table->table.n; i++)
		check_key(c, &table->table.v[i], where);
}

static void check_axis(struct suite_check *c, const struct doc_entry *e)
{
	const struct doc *v = e->value;

	if (v->type != DOC_ARRAY || v->array.n == 0) {
		problem(c, v->pos, "matrix: '%.*s' must be a list of values", STR_ARG(e->key));
		return;
	}
	CLEANUP(map_freep) struct map *seen = map_new();
	for (size_t i = 0; i < v->array.n && v->array.n <= SUITE_MAX_VARIANTS; i++)
		if (map_put(seen, str_from(doc_json_text(c->a, v->array.v[i])), v->array.v[i]))
			problem(c, v->array.v[i]->pos, "matrix: '%.*s' has the value %s twice",
				STR_ARG(e->key), suite_value_text(v->array.v[i], c->a));
}

int64_t suite_product(const struct doc *matrix)
{
	int64_t n = 1;

	for (size_t i = 0; matrix && matrix->type == DOC_TABLE && i < matrix->table.n; i++) {
		const struct doc *v = matrix->table.v[i].value;
		int64_t k = v->type == DOC_ARRAY ? (int64_t)v->array.n : 1;

		if (k > 0 && n > INT64_MAX / k)
			return INT64_MAX;
		n *= k;
	}
	return matrix ? n : 0;
}

static void check_matrix(struct suite_check *c)
{
	const struct doc *m = c->s->matrix;

	if (!m)
		return;
	if (m->type != DOC_TABLE || m->table.n == 0) {
		problem(c, m->pos,
			"matrix must be a table of keys of the job, each with a list of values");
		return;
	}
	check_keys(c, m, "matrix");
	for (size_t i = 0; i < m->table.n; i++)
		check_axis(c, &m->table.v[i]);
	int64_t n = suite_product(m);
	if (n > SUITE_MAX_VARIANTS)
		problem(c, m->pos, "the matrix has %s%lld variants: at most %d in one suite",
			n == INT64_MAX ? "more than " : "", (long long)n, SUITE_MAX_VARIANTS);
	if (!c->s->runs.job)
		problem(c, m->pos, "a matrix needs suite.job, the job whose keys it changes");
}

/* A table of one value for some keys of the matrix: an entry of exclude, or the baseline. */
static void check_choice(struct suite_check *c, const struct doc *t, const char *where)
{
	for (size_t i = 0; i < t->table.n; i++) {
		const struct doc_entry *e = &t->table.v[i];
		const struct doc *axis = NULL;
		bool found = false;

		for (size_t k = 0;
		     c->s->matrix && c->s->matrix->type == DOC_TABLE && k < c->s->matrix->table.n;
		     k++)
			if (str_eq(c->s->matrix->table.v[k].key, e->key))
				axis = c->s->matrix->table.v[k].value;
		for (size_t k = 0; axis && axis->type == DOC_ARRAY && k < axis->array.n; k++)
			found = found || same_value(axis->array.v[k], e->value, c->a);
		if (!axis)
			problem(c, e->key_pos, "%s: the matrix has no '%.*s'", where,
				STR_ARG(e->key));
		else if (!found)
			problem(c, e->value->pos,
				"%s: '%.*s' of the matrix does not have the value %s", where,
				STR_ARG(e->key), suite_value_text(e->value, c->a));
	}
}

static void check_exclude(struct suite_check *c)
{
	const struct doc *x = c->s->exclude;

	if (!x)
		return;
	if (x->type != DOC_ARRAY) {
		problem(c, x->pos, "exclude must be a list of tables: write [[exclude]]");
		return;
	}
	for (size_t i = 0; i < x->array.n; i++) {
		if (x->array.v[i]->type == DOC_TABLE && x->array.v[i]->table.n > 0)
			check_choice(c, x->array.v[i], "exclude");
		else
			problem(c, x->array.v[i]->pos,
				"exclude: an entry must be a table of keys and values");
	}
}

static int find_experiment(const struct suite *s, const char *name)
{
	for (size_t i = 0; i < s->experiments.n; i++)
		if (experiment_at(s, i)->name && strcmp(experiment_at(s, i)->name, name) == 0)
			return (int)i;
	return -1;
}

static void unknown_experiment(struct suite_check *c, struct doc_pos pos, const char *where,
			       const char *name)
{
	const char **names = arena_array(c->a, const char *, c->s->experiments.n + 1);
	size_t n = 0;

	for (size_t i = 0; i < c->s->experiments.n; i++)
		if (experiment_at(c->s, i)->name)
			names[n++] = experiment_at(c->s, i)->name;
	const char *near = suggest_word(names, n, str_from(name));

	if (near)
		problem(c, pos, "%s: there is no experiment '%s': did you mean '%s'?", where, name,
			near);
	else
		problem(c, pos, "%s: there is no experiment '%s'", where, name);
}

static void check_experiment(struct suite_check *c, size_t i)
{
	const struct suite_experiment *e = experiment_at(c->s, i);

	if (!e->name)
		return;
	if (find_experiment(c->s, e->name) != (int)i)
		problem(c, e->pos, "experiments: the name '%s' is taken", e->name);
	if (!e->job && !c->s->runs.job)
		problem(c, e->pos, "experiment '%s' has no job, and there is no suite.job",
			e->name);
	if (e->set && e->set->type != DOC_TABLE)
		problem(c, e->set->pos, "experiment '%s': set must be a table of keys of the job",
			e->name);
	else if (e->set)
		check_keys(c, e->set, "set");
	for (size_t k = 0; k < e->after.n; k++)
		if (find_experiment(c->s, e->after.v[k]) < 0)
			unknown_experiment(c, e->pos,
					   arena_printf(c->a, "experiment '%s': after", e->name),
					   e->after.v[k]);
}

/* Colours of a search in depth: 0 new, 1 on the way, 2 done. */
static bool find_cycle(const struct suite *s, int i, char *colour, struct buf *way)
{
	const struct suite_experiment *e = experiment_at(s, (size_t)i);
	size_t n = way->n;

	buf_printf(way, "%s%s", n ? " -> " : "", e->name);
	if (colour[i] == 1)
		return true;
	if (colour[i] == 0) {
		colour[i] = 1;
		for (size_t k = 0; k < e->after.n; k++) {
			int next = find_experiment(s, e->after.v[k]);

			if (next >= 0 && find_cycle(s, next, colour, way))
				return true;
		}
		colour[i] = 2;
	}
	way->n = n;
	return false;
}

static void check_cycles(struct suite_check *c)
{
	CLEANUP(buf_release) struct buf way = {0};
	char *colour = arena_alloc(c->a, c->s->experiments.n + 1);

	buf_init(&way, 64 * 1024);
	for (size_t i = 0; i < c->s->experiments.n; i++) {
		if (!experiment_at(c->s, i)->name || !find_cycle(c->s, (int)i, colour, &way))
			continue;
		problem(c, experiment_at(c->s, i)->pos, "experiments wait for each other: %.*s",
			STR_ARG(buf_str(&way)));
		return;
	}
}

static void check_parallel(struct suite_check *c)
{
	const struct doc *p = c->s->runs.parallel;

	c->s->parallel = 1;
	if (!p)
		return;
	if (p->type == DOC_STRING && str_is(p->s, "auto"))
		c->s->parallel = 0;
	else if (p->type == DOC_INT && p->i >= 1 && p->i <= SUITE_MAX_PARALLEL)
		c->s->parallel = p->i;
	else
		problem(c, p->pos,
			"suite.parallel must be a whole number from 1 to %d, or \"auto\"",
			SUITE_MAX_PARALLEL);
}

static void check_baseline(struct suite_check *c)
{
	const struct doc *b = c->s->report.baseline;

	if (!b)
		return;
	if (b->type == DOC_TABLE && b->table.n > 0)
		check_choice(c, b, "report.baseline");
	else if (b->type != DOC_STRING)
		problem(c, b->pos,
			"report.baseline must be a table of keys and values, or the name of an experiment");
	else if (find_experiment(c->s, b->s.p) < 0)
		unknown_experiment(c, b->pos, "report.baseline", b->s.p);
}

static void check_suite(struct suite_check *c)
{
	check_parallel(c);
	check_matrix(c);
	check_exclude(c);
	for (size_t i = 0; i < c->s->experiments.n; i++)
		check_experiment(c, i);
	check_cycles(c);
	check_baseline(c);
	if (!c->s->matrix && c->s->experiments.n == 0 && !c->s->runs.job)
		problem(c, c->doc->pos,
			"the suite has nothing to run: give suite.job or experiments");
}

/* ---- expansion ---- */

static int key_index(const struct suite *s, struct str key)
{
	for (int i = 0; i < s->nkeys; i++)
		if (str_is(key, s->keys[i]))
			return i;
	return -1;
}

static void add_key(struct suite_check *c, struct str key, struct doc_pos pos)
{
	struct suite *s = c->s;

	if (key_index(s, key) >= 0)
		return;
	if (s->nkeys == SUITE_MAX_KEYS)
		problem(c, pos, "the variants change more than %d keys", SUITE_MAX_KEYS);
	else
		s->keys[s->nkeys++] = arena_str(c->a, key).p;
}

static void collect_keys(struct suite_check *c)
{
	struct suite *s = c->s;

	s->keys = arena_array(c->a, const char *, SUITE_MAX_KEYS);
	for (size_t i = 0; s->matrix && i < s->matrix->table.n; i++)
		add_key(c, s->matrix->table.v[i].key, s->matrix->table.v[i].key_pos);
	s->naxes = s->nkeys;
	for (size_t i = 0; i < s->experiments.n; i++) {
		const struct doc *set = experiment_at(s, i)->set;

		for (size_t k = 0; set && k < set->table.n; k++)
			add_key(c, set->table.v[k].key, set->table.v[k].key_pos);
	}
}

static bool has_values(const struct suite_check *c, const struct suite_variant *v,
		       const struct doc *t)
{
	for (size_t i = 0; i < t->table.n; i++) {
		int k = key_index(c->s, t->table.v[i].key);

		if (k < 0 || !v->values[k] || !same_value(v->values[k], t->table.v[i].value, c->a))
			return false;
	}
	return true;
}

static bool is_excluded(const struct suite_check *c, const struct suite_variant *v)
{
	const struct doc *x = c->s->exclude;

	for (size_t i = 0; x && i < x->array.n; i++)
		if (has_values(c, v, x->array.v[i]))
			return true;
	return false;
}

/* The last part of a key, if no other axis has the same; else the whole key. */
static struct str short_key(const struct suite *s, int k)
{
	struct str mine = last_part(str_from(s->keys[k]));

	for (int i = 0; i < s->naxes; i++)
		if (i != k && str_eq(last_part(str_from(s->keys[i])), mine))
			return str_from(s->keys[k]);
	return mine;
}

/* Bytes that a file name may have everywhere, and that a shell leaves alone. */
static void add_plain(struct buf *out, struct str text)
{
	for (size_t i = 0; i < text.n; i++) {
		char ch = text.p[i];
		bool plain = (ch >= 'a' && ch <= 'z') || (ch >= 'A' && ch <= 'Z') ||
			     (ch >= '0' && ch <= '9') || ch == '_' || ch == '-' || ch == '+' ||
			     (ch == '.' && out->n > 0);

		buf_addc(out, plain ? ch : '_');
	}
}

static const char *matrix_name(const struct suite_check *c, const struct suite_variant *v)
{
	CLEANUP(buf_release) struct buf name = {0};

	buf_init(&name, 64 * 1024);
	for (int k = 0; k < c->s->naxes; k++) {
		if (k)
			buf_addc(&name, ',');
		add_plain(&name, short_key(c->s, k));
		buf_addc(&name, '=');
		add_plain(&name, str_from(suite_value_text(v->values[k], c->a)));
	}
	return arena_strndup(c->a, name.p, name.n);
}

/* variant-N, or variant-N_ where an experiment has this name. */
static const char *numbered_name(const struct map *taken, int number, struct arena *a)
{
	const char *name = arena_printf(a, "variant-%d", number);

	while (map_get(taken, str_from(name)))
		name = arena_printf(a, "%s_", name);
	return name;
}

/* A name that is too long, or taken, is replaced by the variant's number. */
static void name_variants(struct suite_check *c)
{
	CLEANUP(map_freep) struct map *taken = map_new();
	struct suite *s = c->s;

	for (int i = 0; i < s->n; i++)
		if (s->variants[i].experiment >= 0)
			map_put(taken, str_from(s->variants[i].name), &s->variants[i]);
	for (int i = 0; i < s->n; i++) {
		struct suite_variant *v = &s->variants[i];

		if (v->experiment >= 0)
			continue;
		v->name = s->naxes ? matrix_name(c, v) : "job";
		if (strlen(v->name) > MAX_NAME || map_get(taken, str_from(v->name)))
			v->name = numbered_name(taken, i + 1, c->a);
		map_put(taken, str_from(v->name), v);
	}
}

static struct suite_variant *add_variant(struct suite_check *c, const char *job, int experiment)
{
	struct suite_variant *v = &c->s->variants[c->s->n++];

	*v = (struct suite_variant){.job = job, .experiment = experiment, .baseline = -1};
	v->values = arena_array(c->a, const struct doc *, (size_t)c->s->nkeys + 1);
	return v;
}

/* Every combination: the last key changes fastest. */
static void expand_matrix(struct suite_check *c)
{
	struct suite *s = c->s;
	int64_t all = s->matrix ? suite_product(s->matrix) : s->experiments.n == 0;

	for (int64_t i = 0; i < all; i++) {
		struct suite_variant *v = add_variant(c, s->runs.job, -1);
		int64_t rest = i;

		for (int k = s->naxes - 1; k >= 0; k--) {
			const struct doc *axis = s->matrix->table.v[k].value;

			v->values[k] = axis->array.v[rest % (int64_t)axis->array.n];
			rest /= (int64_t)axis->array.n;
		}
		if (is_excluded(c, v))
			s->n--;
	}
}

static void expand_experiments(struct suite_check *c)
{
	struct suite *s = c->s;
	int first = s->n;

	for (size_t i = 0; i < s->experiments.n; i++) {
		const struct suite_experiment *e = experiment_at(s, i);
		struct suite_variant *v = add_variant(c, e->job ? e->job : s->runs.job, (int)i);

		v->name = e->name;
		for (size_t k = 0; e->set && k < e->set->table.n; k++)
			v->values[key_index(s, e->set->table.v[k].key)] = e->set->table.v[k].value;
		v->after = arena_array(c->a, int, e->after.n + 1);
		for (size_t k = 0; k < e->after.n; k++)
			v->after[v->nafter++] = first + find_experiment(s, e->after.v[k]);
	}
}

/* Has x, which has the values of the baseline, otherwise those of v? */
static bool is_baseline_of(const struct suite_check *c, const struct suite_variant *x,
			   const struct suite_variant *v)
{
	const struct doc *b = c->s->report.baseline;

	for (int k = 0; k < c->s->naxes; k++) {
		bool named = false;

		if (v->values[k] && v->values[k] == x->values[k])
			continue;
		for (size_t i = 0; i < b->table.n; i++)
			named = named || str_is(b->table.v[i].key, c->s->keys[k]);
		if (!named)
			return false;
	}
	return true;
}

static void find_baselines(struct suite_check *c)
{
	struct suite *s = c->s;
	const struct doc *b = s->report.baseline;
	int *bases = arena_array(c->a, int, (size_t)s->n + 1), n = 0;

	for (int i = 0; b && i < s->n; i++) {
		const struct suite_variant *v = &s->variants[i];

		if (b->type == DOC_STRING ? v->experiment >= 0 && str_is(b->s, v->name)
					  : v->experiment < 0 && has_values(c, v, b))
			bases[n++] = i;
	}
	for (int i = 0; i < s->n; i++)
		for (int k = 0; k < n && s->variants[i].baseline < 0; k++)
			if (b->type == DOC_STRING ||
			    is_baseline_of(c, &s->variants[bases[k]], &s->variants[i]))
				s->variants[i].baseline = bases[k];
	for (int k = 0; k < n; k++)
		s->variants[bases[k]].baseline = -1;
}

static void expand(struct suite_check *c)
{
	struct suite *s = c->s;

	collect_keys(c);
	if (c->ps->n > 0)
		return;
	s->variants = arena_array(c->a, struct suite_variant,
				  (size_t)suite_product(s->matrix) + s->experiments.n + 1);
	expand_matrix(c);
	expand_experiments(c);
	if (s->n == 0)
		problem(c, s->exclude ? s->exclude->pos : c->doc->pos,
			"exclude leaves nothing of the matrix");
	else if (s->n * s->runs.repeats > SUITE_MAX_RUNS)
		problem(c, c->doc->pos,
			"%d variants, %lld times each, are %lld runs: at most %d in one suite",
			s->n, (long long)s->runs.repeats, (long long)s->n * s->runs.repeats,
			SUITE_MAX_RUNS);
	name_variants(c);
	find_baselines(c);
}

bool suite_load(const struct doc *doc, const struct schema *job, struct arena *a, struct suite *ret,
		struct problems *ps)
{
	struct suite_check c = {.doc = doc, .job = job, .s = ret, .a = a, .ps = ps};

	schema_load(&suite_schema, doc, ret, a, ps);
	if (doc->type != DOC_TABLE)
		return false;
	check_suite(&c);
	if (ps->n == 0)
		expand(&c);
	return ps->n == 0;
}

int suite_apply(const struct suite *s, const struct suite_variant *v, const struct doc *job,
		struct arena *a, struct doc **ret, struct err *err)
{
	struct doc *copy = doc_copy(a, job);

	for (int k = 0; k < s->nkeys; k++)
		if (v->values[k] &&
		    doc_set_path(a, copy, str_from(s->keys[k]), doc_copy(a, v->values[k]), err) < 0)
			return err_wrap(err, "variant %s", v->name);
	*ret = copy;
	return 0;
}

int suite_runs(const struct suite *s)
{
	return s->n * (int)s->runs.repeats;
}

void suite_run_at(const struct suite *s, int index, int *ret_variant, int *ret_repeat)
{
	int repeats = (int)s->runs.repeats;
	bool mixed = s->runs.order == ORDER_INTERLEAVED;

	*ret_variant = mixed ? index % s->n : index / repeats;
	*ret_repeat = mixed ? index / s->n : index % repeats;
}
