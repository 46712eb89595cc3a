#include "spec/params.h"

#include <math.h>
#include <string.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/cleanup.h"
#include "base/suggest.h"
#include "fmt/doc.h"
#include "spec/secret.h"

#define OPENING "${params."
#define MAX_TEXT (1024 * 1024) /* of a text with all values in it; what a job may have is less */

struct expansion {
	const struct doc *params; /* NULL: the job has none */
	struct arena *a;
	struct problems *ps; /* NULL: they were reported before */
};

static bool is_scalar(const struct doc *d)
{
	return d->type == DOC_STRING || d->type == DOC_INT || d->type == DOC_FLOAT ||
	       d->type == DOC_BOOL;
}

static bool is_name(struct str s)
{
	if (s.n == 0 || s.n > PARAMS_MAX_NAME)
		return false;
	for (size_t i = 0; i < s.n; i++) {
		char c = s.p[i];

		if (!((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
		      c == '_' || c == '-'))
			return false;
	}
	return true;
}

/* ---- the table ---- */

static void check_entry(const struct job *job, const struct doc_entry *e, struct arena *a,
			struct problems *ps)
{
	if (!is_name(e->key))
		problems_add(
			ps, a, e->key_pos,
			"params: '%.*s' cannot be the name of a parameter: use letters, digits, "
			"_ and -, at most %d",
			STR_ARG(e->key), PARAMS_MAX_NAME);
	else if (secret_name(job, e->key))
		problems_add(ps, a, e->key_pos,
			     "params.%.*s: this is the name of a secret, and parameters are shown: "
			     "use env",
			     STR_ARG(e->key));
	else if (!is_scalar(e->value))
		problems_add(ps, a, e->value->pos,
			     "params.%.*s: expected a string, a number, true or false, not a %s",
			     STR_ARG(e->key), doc_type_name(e->value->type));
	else if (e->value->type == DOC_FLOAT && !isfinite(e->value->f))
		/* The job goes to the master as JSON, which has only finite numbers. */
		problems_add(ps, a, e->value->pos, "params.%.*s: expected a finite number, not %g",
			     STR_ARG(e->key), e->value->f);
	else if (e->value->type == DOC_STRING && e->value->s.n > PARAMS_MAX_TEXT)
		problems_add(ps, a, e->value->pos,
			     "params.%.*s is longer than %d bytes: put it in a file",
			     STR_ARG(e->key), PARAMS_MAX_TEXT);
}

void params_check(const struct job *job, const struct doc *params, struct arena *a,
		  struct problems *ps)
{
	if (!params)
		return;
	if (params->table.n > PARAMS_MAX)
		problems_add(ps, a, params->pos, "params: %zu parameters, at most %d",
			     params->table.n, PARAMS_MAX);
	for (size_t i = 0; i < params->table.n && i < PARAMS_MAX; i++)
		check_entry(job, &params->table.v[i], a, ps);
}

/* ---- texts ---- */

struct str params_text(const struct doc *value, struct arena *a)
{
	return value->type == DOC_STRING ? value->s : str_from(doc_json_text(a, value));
}

static void unknown(const struct expansion *x, const struct doc *at, struct str name)
{
	size_t n = x->params ? x->params->table.n : 0;
	const char **names = arena_array(x->a, const char *, n + 1);

	if (!x->ps)
		return;
	for (size_t i = 0; i < n; i++)
		names[i] = arena_str(x->a, x->params->table.v[i].key).p;
	const char *near = suggest_word(names, n, name);

	if (name.n > PARAMS_MAX_NAME)
		name.n = PARAMS_MAX_NAME;
	if (near)
		problems_add(x->ps, x->a, at->pos,
			     "${params.%.*s}: there is no such parameter: did you mean '%s'?",
			     STR_ARG(name), near);
	else
		problems_add(
			x->ps, x->a, at->pos,
			"${params.%.*s}: there is no such parameter: write it into [params], or "
			"$${params.%.*s} for the text itself",
			STR_ARG(name), STR_ARG(name));
}

/* The rest of a text after OPENING: adds the value and returns what follows it. */
static struct str add_value(const struct expansion *x, const struct doc *at, struct str rest,
			    struct buf *out)
{
	const char *end = memchr(rest.p, '}', rest.n);
	struct str name = {rest.p, end ? (size_t)(end - rest.p) : 0};
	const struct doc *value =
		end && is_name(name) ? doc_get(x->params, arena_str(x->a, name).p) : NULL;

	if (value && is_scalar(value)) {
		buf_addstr(out, params_text(value, x->a));
		return (struct str){end + 1, rest.n - name.n - 1};
	}
	/* A value of another type is a problem of its own. */
	if (!end && x->ps)
		problems_add(x->ps, x->a, at->pos,
			     "there is a " OPENING " without its closing brace");
	else if (!value)
		unknown(x, at, name);
	buf_addz(out, OPENING);
	return rest;
}

static struct doc *expand_text(const struct expansion *x, const struct doc *d)
{
	CLEANUP(buf_release) struct buf out = {0};
	const struct str opening = STR(OPENING);
	struct str rest = d->s;
	const char *found;

	buf_init(&out, MAX_TEXT);
	while ((found = memmem(rest.p, rest.n, opening.p, opening.n)) != NULL) {
		size_t before = (size_t)(found - rest.p);
		bool literal = before > 0 && found[-1] == '$';

		buf_add(&out, rest.p, literal ? before - 1 : before);
		rest = (struct str){found + opening.n, rest.n - before - opening.n};
		if (literal)
			buf_addstr(&out, opening);
		else
			rest = add_value(x, d, rest, &out);
	}
	buf_addstr(&out, rest);
	if (out.overflow && x->ps)
		problems_add(x->ps, x->a, d->pos,
			     "the text is too long when its parameters are put in");
	struct doc *to = doc_new_str(x->a, buf_str(&out));

	to->pos = d->pos;
	return to;
}

static bool has_opening(const struct doc *d)
{
	return d->type == DOC_STRING && memmem(d->s.p, d->s.n, OPENING, strlen(OPENING));
}

/* Changes the tree in place. */
static void expand_all(const struct expansion *x, struct doc **d)
{
	if (has_opening(*d))
		*d = expand_text(x, *d);
	for (size_t i = 0; (*d)->type == DOC_ARRAY && i < (*d)->array.n; i++)
		expand_all(x, &(*d)->array.v[i]);
	for (size_t i = 0; (*d)->type == DOC_TABLE && i < (*d)->table.n; i++)
		expand_all(x, &(*d)->table.v[i].value);
}

static void expand_keys(const struct expansion *x, struct doc *table, const char *const *keys)
{
	for (size_t i = 0; table->type == DOC_TABLE && i < table->table.n; i++)
		for (size_t k = 0; keys[k]; k++)
			if (str_is(table->table.v[i].key, keys[k]))
				expand_all(x, &table->table.v[i].value);
}

static bool is_used(const struct doc *d)
{
	bool used = has_opening(d);

	for (size_t i = 0; !used && d->type == DOC_ARRAY && i < d->array.n; i++)
		used = is_used(d->array.v[i]);
	for (size_t i = 0; !used && d->type == DOC_TABLE && i < d->table.n; i++)
		used = is_used(d->table.v[i].value);
	return used;
}

const struct doc *params_expand(const struct doc *job, struct arena *a, struct problems *ps)
{
	static const char *const of_job[] = {"command", "env", "data", "output", NULL};
	static const char *const of_role[] = {"command", "env", NULL};
	const struct expansion x = {.params = doc_table(job, "params"), .a = a, .ps = ps};

	if (!is_used(job))
		return job;
	struct doc *to = doc_copy(a, job);
	const struct doc *roles = doc_table(to, "roles");

	expand_keys(&x, to, of_job);
	for (size_t i = 0; roles && i < roles->table.n; i++)
		expand_keys(&x, roles->table.v[i].value, of_role);
	return to;
}

const struct doc *params_expand_value(const struct doc *params, const struct doc *value,
				      struct arena *a)
{
	const struct expansion x = {.params = params, .a = a};

	return has_opening(value) ? expand_text(&x, value) : value;
}

bool params_in_inputs(const struct doc *job)
{
	const struct doc *data = doc_get(job, "data"), *output = doc_get(job, "output");

	return (data && is_used(data)) || (output && is_used(output));
}
