/*
 * schema_value - one function per type of field.
 *
 * Each function reports its own problem and returns whether the member was set,
 * so that one bad value never hides another.
 */
#include "fmt/schema_load.h"

#include <math.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/cleanup.h"
#include "base/suggest.h"
#include "fmt/argv.h"
#include "fmt/number.h"
#include "fmt/quote.h"
#include "fmt/schema_words.h"

#define NAME_MAX_BYTES 40
#define METRIC_MAX_BYTES 64

void place_text(const struct place *at, struct buf *out)
{
	char shown[QUOTE_MAX];

	if (!at->up)
		return;
	place_text(at->up, out);
	if (at->key.p)
		buf_printf(out, "%s%s", at->up->up ? "." : "", str_quote(at->key, shown));
	else
		buf_printf(out, "[%zu]", at->index);
}

/* "roles.trainer.count: expected ..., got ..." */
static bool bad_value(struct load *l, const struct place *at, const struct doc *d,
		      const char *expected)
{
	CLEANUP(buf_release) struct buf where = {0};
	CLEANUP(buf_release) struct buf got = {0};

	buf_init(&where, PROBLEM_MAX);
	buf_init(&got, PROBLEM_MAX);
	place_text(at, &where);
	words_value(d, &got);
	problems_add(l->ps, l->a, d->pos, "%s%sexpected %s, got %s", buf_str(&where).p,
		     where.n ? ": " : "", expected, buf_str(&got).p);
	return false;
}

static bool bad_type(struct load *l, const struct field *f, const struct place *at,
		     const struct doc *d)
{
	CLEANUP(buf_release) struct buf expected = {0};

	buf_init(&expected, PROBLEM_MAX);
	if (f->type == FIELD_CHOICE) {
		buf_addz(&expected, "one of ");
		words_choices(f->choices, &expected);
	} else {
		buf_addz(&expected, words_expected(f->type));
		if (f->type == FIELD_MAP)
			buf_printf(&expected, ", as in [%s.NAME]", f->name);
		if (f->choices) {
			buf_addz(&expected, ", or ");
			words_choices(f->choices, &expected);
		}
	}
	return bad_value(l, at, d, buf_str(&expected).p);
}

/* "roles.trainer.count: expected a whole number from 1 to 10, got the whole number 11" */
static bool bad_range(struct load *l, const struct field *f, const struct place *at,
		      const struct doc *d)
{
	CLEANUP(buf_release) struct buf expected = {0};

	buf_init(&expected, PROBLEM_MAX);
	buf_addz(&expected, words_expected(f->type));
	words_range(f, &expected);
	return bad_value(l, at, d, buf_str(&expected).p);
}

static bool bad_text(struct load *l, const struct place *at, struct doc_pos pos, const char *why)
{
	CLEANUP(buf_release) struct buf where = {0};

	buf_init(&where, PROBLEM_MAX);
	place_text(at, &where);
	problems_add(l->ps, l->a, pos, "%s: %s", buf_str(&where).p, why);
	return false;
}

/* A string that is safe as a C string. */
static bool load_text(struct load *l, const struct place *at, const struct doc *d,
		      const char **ret_text)
{
	if (d->type != DOC_STRING)
		return bad_value(l, at, d, "a string");
	if (memchr(d->s.p, '\0', d->s.n))
		return bad_text(l, at, d->pos, "expected text, found a NUL byte in it");
	*ret_text = d->s.p;
	return true;
}

static bool load_str(struct load *l, const struct field *f, const struct place *at,
		     const struct doc *d, void *out)
{
	const char *text = NULL;

	if (!load_text(l, at, d, &text))
		return false;
	if (!field_allows(f, (int64_t)d->s.n))
		return bad_range(l, f, at, d);
	*(const char **)out = text;
	return true;
}

static bool is_name(struct str s)
{
	for (size_t i = 0; i < s.n; i++) {
		char c = s.p[i];
		bool inner = i > 0 && i + 1 < s.n;

		if (!(c >= 'a' && c <= 'z') && !(c >= '0' && c <= '9') && !(c == '-' && inner))
			return false;
	}
	return s.n > 0 && s.n <= NAME_MAX_BYTES;
}

static bool load_name(struct load *l, const struct field *f, const struct place *at,
		      const struct doc *d, void *out)
{
	if (d->type != DOC_STRING || !is_name(d->s))
		return bad_type(l, f, at, d);
	if (!field_allows(f, (int64_t)d->s.n))
		return bad_range(l, f, at, d);
	*(const char **)out = d->s.p;
	return true;
}

static bool load_bool(struct load *l, const struct field *f, const struct place *at,
		      const struct doc *d, void *out)
{
	if (d->type != DOC_BOOL)
		return bad_type(l, f, at, d);
	*(bool *)out = d->b;
	return true;
}

/* The number that a word stands for; 0: none. */
static int64_t number_word(const struct field *f, const struct doc *d)
{
	for (int i = 0; f->choices && d->type == DOC_STRING && f->choices[i]; i++)
		if (str_is(d->s, f->choices[i]))
			return -1 - i;
	return 0;
}

static bool load_int(struct load *l, const struct field *f, const struct place *at,
		     const struct doc *d, void *out)
{
	int64_t word = number_word(f, d);

	if (word) {
		*(int64_t *)out = word;
		return true;
	}
	if (d->type != DOC_INT)
		return bad_type(l, f, at, d);
	if (!field_allows(f, d->i))
		return bad_range(l, f, at, d);
	*(int64_t *)out = d->i;
	return true;
}

static bool load_float(struct load *l, const struct field *f, const struct place *at,
		       const struct doc *d, void *out)
{
	if (d->type != DOC_INT && (d->type != DOC_FLOAT || !isfinite(d->f)))
		return bad_type(l, f, at, d);
	double n = d->type == DOC_INT ? (double)d->i : d->f;

	if (!field_allows_float(f, n))
		return bad_range(l, f, at, d);
	*(double *)out = n;
	return true;
}

static bool load_duration(struct load *l, const struct field *f, const struct place *at,
			  const struct doc *d, void *out)
{
	int64_t ms = 0;
	/* 0 needs no unit. */
	bool zero =
		(d->type == DOC_INT && d->i == 0) || (d->type == DOC_STRING && str_is(d->s, "0"));

	if (!zero && (d->type != DOC_STRING || !str_to_duration_ms(d->s, &ms)))
		return bad_type(l, f, at, d);
	if (!field_allows(f, ms))
		return bad_range(l, f, at, d);
	*(int64_t *)out = ms;
	return true;
}

static bool load_size(struct load *l, const struct field *f, const struct place *at,
		      const struct doc *d, void *out)
{
	uint64_t bytes;

	if (d->type == DOC_INT && d->i >= 0)
		bytes = (uint64_t)d->i;
	else if (d->type != DOC_STRING || !str_to_size(d->s, &bytes))
		return bad_type(l, f, at, d);
	if (!field_allows(f, bytes > INT64_MAX ? INT64_MAX : (int64_t)bytes))
		return bad_range(l, f, at, d);
	*(uint64_t *)out = bytes;
	return true;
}

static bool load_choice(struct load *l, const struct field *f, const struct place *at,
			const struct doc *d, void *out)
{
	if (d->type != DOC_STRING)
		return bad_type(l, f, at, d);
	size_t n = 0;

	for (; f->choices[n]; n++) {
		if (str_is(d->s, f->choices[n])) {
			*(int *)out = (int)n;
			return true;
		}
	}
	const char *near = suggest_word(f->choices, n, d->s);

	if (!near)
		return bad_type(l, f, at, d);
	CLEANUP(buf_release) struct buf expected = {0};
	CLEANUP(buf_release) struct buf where = {0};
	char shown[QUOTE_MAX];

	buf_init(&expected, PROBLEM_MAX);
	buf_init(&where, PROBLEM_MAX);
	words_choices(f->choices, &expected);
	place_text(at, &where);
	problems_add(l->ps, l->a, d->pos,
		     "%s: expected one of %s, got the string \"%s\": did you mean '%s'?",
		     buf_str(&where).p, buf_str(&expected).p, str_quote(d->s, shown), near);
	return false;
}

static bool load_list_of_text(struct load *l, const struct field *f, const struct place *at,
			      const struct doc *d, struct strs *ret_strs)
{
	struct strs s = {.v = arena_array(l->a, const char *, d->array.n + 1), .n = d->array.n};
	bool good = true;

	for (size_t i = 0; i < d->array.n; i++) {
		struct place item = {.up = at, .index = i};

		good = load_text(l, &item, d->array.v[i], &s.v[i]) && good;
	}
	if (good && !field_allows(f, (int64_t)s.n))
		return bad_range(l, f, at, d);
	if (good)
		*ret_strs = s;
	return good;
}

static bool load_strs(struct load *l, const struct field *f, const struct place *at,
		      const struct doc *d, void *out)
{
	struct strs s;

	if (d->type == DOC_ARRAY)
		return load_list_of_text(l, f, at, d, out);
	if (d->type != DOC_STRING)
		return bad_type(l, f, at, d);
	s = (struct strs){.v = arena_array(l->a, const char *, 2), .n = 1};
	if (!load_text(l, at, d, &s.v[0]))
		return false;
	if (!field_allows(f, 1))
		return bad_range(l, f, at, d);
	*(struct strs *)out = s;
	return true;
}

static bool load_ints(struct load *l, const struct field *f, const struct place *at,
		      const struct doc *d, void *out)
{
	struct doc *const *items = d->type == DOC_ARRAY ? d->array.v : NULL;
	size_t n = items ? d->array.n : 1;
	struct ints list = {.v = arena_array(l->a, int64_t, n + 1), .n = n};

	for (size_t i = 0; i < n; i++) {
		const struct doc *item = items ? items[i] : d;
		struct place in_list = {.up = at, .index = i};
		const struct place *where = items ? &in_list : at;

		if (item->type != DOC_INT)
			return bad_value(l, where, item, "a whole number");
		if (!field_allows(f, item->i))
			return bad_range(l, f, where, item);
		list.v[i] = item->i;
	}
	*(struct ints *)out = list;
	return true;
}

static bool load_argv(struct load *l, const struct field *f, const struct place *at,
		      const struct doc *d, void *out)
{
	const char *text = NULL, *why = NULL;
	char shown[QUOTE_MAX];
	struct strs s;

	if (d->type == DOC_ARRAY)
		return load_list_of_text(l, f, at, d, out);
	if (d->type != DOC_STRING)
		return bad_type(l, f, at, d);
	if (!load_text(l, at, d, &text))
		return false;
	if (!argv_split(d->s, l->a, &s, &why))
		return bad_text(l, at, d->pos, why);
	const char *word = argv_shell_word(d->s, l->a);

	if (word)
		return bad_text(
			l, at, d->pos,
			arena_printf(
				l->a,
				"'%s' is for a shell, and none runs here: write [\"sh\", \"-c\", "
				"\"...\"], or put it in '...' if it is a plain word",
				str_quote(str_from(word), shown)));
	if (!field_allows(f, (int64_t)s.n))
		return bad_range(l, f, at, d);
	*(struct strs *)out = s;
	return true;
}

/* A number or boolean as the text one would give in a shell: 3.10 stays 3.10. */
static bool env_value(struct load *l, const struct place *at, const struct doc *d,
		      const char **ret_value)
{
	char number[NUM_TEXT_MAX];

	switch (d->type) {
	case DOC_BOOL:
		*ret_value = d->b ? "true" : "false";
		return true;
	case DOC_INT:
		*ret_value = arena_printf(l->a, "%lld", (long long)d->i);
		return true;
	case DOC_FLOAT:
		/* The job goes to the master as JSON, which has only finite numbers. */
		if (!isfinite(d->f))
			return bad_value(l, at, d, "a string, a finite number or true or false");
		*ret_value = d->f_text.p ? d->f_text.p : arena_strdup(l->a, num_text(d->f, number));
		return true;
	case DOC_TIME:
		*ret_value = d->s.p;
		return true;
	case DOC_STRING:
		return load_text(l, at, d, ret_value);
	case DOC_NULL:
	case DOC_ARRAY:
	case DOC_TABLE:
		return bad_value(l, at, d, "a string, a number or true or false");
	}
	return false;
}

static bool is_env_name(struct str s)
{
	for (size_t i = 0; i < s.n; i++) {
		unsigned char c = (unsigned char)s.p[i];

		if (c <= 0x20 || c == 0x7F || c == '=')
			return false;
	}
	return s.n > 0;
}

static bool load_env(struct load *l, const struct field *f, const struct place *at,
		     const struct doc *d, void *out)
{
	struct env_list env = {0};
	bool good = true;

	if (d->type != DOC_TABLE)
		return bad_type(l, f, at, d);
	env.v = arena_array(l->a, struct env_pair, d->table.n + 1);
	for (size_t i = 0; i < d->table.n; i++) {
		const struct doc_entry *e = &d->table.v[i];
		struct place item = {.up = at, .key = e->key};
		struct env_pair pair = {.name = e->key.p};

		if (!is_env_name(e->key)) {
			bad_text(l, &item, e->key_pos,
				 "expected the name of a variable (no blanks, no '=')");
			good = false;
		} else if (env_value(l, &item, e->value, &pair.value)) {
			env.v[env.n++] = pair;
		} else {
			good = false;
		}
	}
	if (good && !field_allows(f, (int64_t)env.n))
		return bad_range(l, f, at, d);
	if (good)
		*(struct env_list *)out = env;
	return good;
}

static bool load_sub(struct load *l, const struct field *f, const struct place *at,
		     const struct doc *d, void *out)
{
	if (d->type == DOC_STRING && f->word) {
		struct doc *table = doc_new(l->a, DOC_TABLE);

		doc_set(l->a, table, str_from(f->word), doc_copy(l->a, d));
		table->pos = d->pos;
		d = table;
	}
	if (d->type != DOC_TABLE)
		return bad_type(l, f, at, d);
	if (!field_allows(f, (int64_t)d->table.n))
		return bad_range(l, f, at, d);
	schema_load_table(l, f->sub, at, d, out);
	return true;
}

static bool load_box(struct load *l, const struct field *f, const struct place *at,
		     const struct doc *d, void *out)
{
	void *box = arena_alloc(l->a, f->sub->size);

	if (!load_sub(l, f, at, d, box))
		return false;
	*(void **)out = box;
	return true;
}

static bool load_doc(struct load *l, const struct field *f, const struct place *at,
		     const struct doc *d, void *out)
{
	if (d->type != DOC_TABLE)
		return bad_type(l, f, at, d);
	*(const struct doc **)out = d;
	return true;
}

static bool load_any(struct load *l, const struct field *f, const struct place *at,
		     const struct doc *d, void *out)
{
	(void)l;
	(void)f;
	(void)at;
	*(const struct doc **)out = d;
	return true;
}

static bool check_count(struct load *l, const struct field *f, const struct place *at,
			const struct doc *d, size_t n)
{
	struct field limited = *f;

	if (f->min == 0 && f->max == 0)
		limited.max = SCHEMA_MAX_ITEMS;
	return field_allows(&limited, (int64_t)n) || bad_range(l, &limited, at, d);
}

static bool is_metric(struct str s)
{
	for (size_t i = 0; i < s.n; i++) {
		char c = s.p[i];

		if (!(c >= 'a' && c <= 'z') && !(c >= 'A' && c <= 'Z') && !(c >= '0' && c <= '9') &&
		    c != '_' && c != '.' && c != '-')
			return false;
	}
	return s.n > 0 && s.n <= METRIC_MAX_BYTES;
}

static void check_key(struct load *l, const struct field *f, const struct place *at,
		      const struct doc_entry *e)
{
	const char *expected = NULL;
	char shown[QUOTE_MAX];

	switch (f->keys) {
	case KEYS_NAME:
		expected = is_name(e->key) ? NULL : words_expected(FIELD_NAME);
		break;
	case KEYS_METRIC:
		expected = is_metric(e->key) ? NULL
					     : "a name of letters, digits and _ . - (at most 64)";
		break;
	case KEYS_ANY:
		expected = memchr(e->key.p, '\0', e->key.n) ? "a name without a NUL byte" : NULL;
		break;
	}
	if (!expected)
		return;
	CLEANUP(buf_release) struct buf where = {0};

	buf_init(&where, PROBLEM_MAX);
	place_text(at, &where);
	problems_add(l->ps, l->a, e->key_pos, "%s: expected %s, got '%s'", buf_str(&where).p,
		     expected, str_quote(e->key, shown));
}

static bool load_map(struct load *l, const struct field *f, const struct place *at,
		     const struct doc *d, void *out)
{
	const struct schema *sub = f->sub;
	struct table_list list = {0};

	if (d->type != DOC_TABLE)
		return bad_type(l, f, at, d);
	if (!check_count(l, f, at, d, d->table.n))
		return false;
	list.v = arena_alloc(l->a, d->table.n * sub->size + 1);
	for (size_t i = 0; i < d->table.n; i++) {
		const struct doc_entry *e = &d->table.v[i];
		struct place item = {.up = at, .key = e->key};
		char *member = (char *)list.v + list.n * sub->size;

		check_key(l, f, at, e);
		if (e->value->type != DOC_TABLE) {
			bad_value(l, &item, e->value, "a table");
			continue;
		}
		schema_load_table(l, sub, &item, e->value, member);
		*(const char **)(member + sub->name_offset) = e->key.p;
		list.n++;
	}
	*(struct table_list *)out = list;
	return true;
}

static bool load_list(struct load *l, const struct field *f, const struct place *at,
		      const struct doc *d, void *out)
{
	struct table_list list = {0};

	if (d->type != DOC_ARRAY)
		return bad_type(l, f, at, d);
	if (!check_count(l, f, at, d, d->array.n))
		return false;
	list.v = arena_alloc(l->a, d->array.n * f->sub->size + 1);
	for (size_t i = 0; i < d->array.n; i++) {
		struct place item = {.up = at, .index = i};

		if (d->array.v[i]->type != DOC_TABLE) {
			bad_value(l, &item, d->array.v[i], "a table");
			continue;
		}
		schema_load_table(l, f->sub, &item, d->array.v[i],
				  (char *)list.v + list.n++ * f->sub->size);
	}
	*(struct table_list *)out = list;
	return true;
}

static bool (*const loaders[])(struct load *l, const struct field *f, const struct place *at,
			       const struct doc *d, void *out) = {
	[FIELD_STR] = load_str,	  [FIELD_NAME] = load_name,	[FIELD_BOOL] = load_bool,
	[FIELD_INT] = load_int,	  [FIELD_FLOAT] = load_float,	[FIELD_DURATION] = load_duration,
	[FIELD_SIZE] = load_size, [FIELD_CHOICE] = load_choice, [FIELD_STRS] = load_strs,
	[FIELD_ARGV] = load_argv, [FIELD_ENV] = load_env,	[FIELD_TABLE] = load_sub,
	[FIELD_MAP] = load_map,	  [FIELD_LIST] = load_list,	[FIELD_BOX] = load_box,
	[FIELD_INTS] = load_ints, [FIELD_DOC] = load_doc,	[FIELD_ANY] = load_any,
};

bool schema_load_value(struct load *l, const struct field *f, const struct place *at,
		       const struct doc *d, void *out)
{
	return loaders[f->type](l, f, at, d, out);
}
