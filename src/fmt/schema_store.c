/*
 * schema_store - a struct back into a table, by the rows of its schema.
 *
 * schema_load() of the result gives the same struct, also when a default has changed meanwhile:
 * a member with a default is always written.  A zero member without a default is left out, so
 * that a program that does not know the key can still read the table.
 */
#include "fmt/schema.h"

#include <string.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/cleanup.h"
#include "fmt/jsonw.h"

static struct doc *store_table(const struct schema *sc, const char *from, struct arena *a);

static struct doc *store_str(const struct field *f, const char *member, struct arena *a)
{
	const char *text = *(const char *const *)member;

	(void)f;
	return text ? doc_new_str(a, str_from(text)) : NULL;
}

static struct doc *store_bool(const struct field *f, const char *member, struct arena *a)
{
	(void)f;
	return *(const bool *)member ? doc_new_bool(a, true) : NULL;
}

static struct doc *store_int(const struct field *f, const char *member, struct arena *a)
{
	int64_t n = *(const int64_t *)member;

	if (f->choices && n < 0)
		return doc_new_str(a, str_from(f->choices[-1 - n]));
	return n ? doc_new_int(a, n) : NULL;
}

static struct doc *store_float(const struct field *f, const char *member, struct arena *a)
{
	double n;

	(void)f;
	memcpy(&n, member, sizeof(n));
	return n < 0 || n > 0 ? doc_new_float(a, n) : NULL;
}

static struct doc *store_duration(const struct field *f, const char *member, struct arena *a)
{
	int64_t ms = *(const int64_t *)member;

	(void)f;
	return ms ? doc_new_str(a, str_from(arena_printf(a, "%lldms", (long long)ms))) : NULL;
}

static struct doc *store_size(const struct field *f, const char *member, struct arena *a)
{
	uint64_t bytes = *(const uint64_t *)member;

	(void)f;
	return bytes ? doc_new_int(a, (int64_t)bytes) : NULL;
}

static struct doc *store_choice(const struct field *f, const char *member, struct arena *a)
{
	return doc_new_str(a, str_from(f->choices[*(const int *)member]));
}

static struct doc *store_strs(const struct field *f, const char *member, struct arena *a)
{
	const struct strs *s = (const struct strs *)member;
	struct doc *list = doc_new(a, DOC_ARRAY);

	(void)f;
	for (size_t i = 0; i < s->n; i++)
		doc_append(a, list, doc_new_str(a, str_from(s->v[i])));
	return s->n ? list : NULL;
}

static struct doc *store_ints(const struct field *f, const char *member, struct arena *a)
{
	const struct ints *list = (const struct ints *)member;
	struct doc *array = doc_new(a, DOC_ARRAY);

	(void)f;
	for (size_t i = 0; i < list->n; i++)
		doc_append(a, array, doc_new_int(a, list->v[i]));
	return list->n ? array : NULL;
}

static struct doc *store_env(const struct field *f, const char *member, struct arena *a)
{
	const struct env_list *env = (const struct env_list *)member;
	struct doc *table = doc_new(a, DOC_TABLE);

	(void)f;
	for (size_t i = 0; i < env->n; i++)
		doc_set(a, table, str_from(env->v[i].name),
			doc_new_str(a, str_from(env->v[i].value)));
	return env->n ? table : NULL;
}

static struct doc *store_sub(const struct field *f, const char *member, struct arena *a)
{
	return store_table(f->sub, member, a);
}

static struct doc *store_box(const struct field *f, const char *member, struct arena *a)
{
	const char *box = *(const char *const *)member;

	return box ? store_table(f->sub, box, a) : NULL;
}

static struct doc *store_doc(const struct field *f, const char *member, struct arena *a)
{
	const struct doc *table = *(const struct doc *const *)member;

	(void)f;
	return table ? doc_copy(a, table) : NULL;
}

static struct doc *store_map(const struct field *f, const char *member, struct arena *a)
{
	const struct table_list *list = (const struct table_list *)member;
	struct doc *table = doc_new(a, DOC_TABLE);

	for (size_t i = 0; i < list->n; i++) {
		const char *item = (const char *)list->v + i * f->sub->size;
		const char *name = *(const char *const *)(item + f->sub->name_offset);

		doc_set(a, table, str_from(name), store_table(f->sub, item, a));
	}
	return list->n ? table : NULL;
}

static struct doc *store_list(const struct field *f, const char *member, struct arena *a)
{
	const struct table_list *list = (const struct table_list *)member;
	struct doc *array = doc_new(a, DOC_ARRAY);

	for (size_t i = 0; i < list->n; i++)
		doc_append(a, array,
			   store_table(f->sub, (const char *)list->v + i * f->sub->size, a));
	return list->n ? array : NULL;
}

/* One function per type of field.  It returns NULL for a member that is zero, which is not stored. */
static struct doc *(*const storers[])(const struct field *f, const char *member,
				      struct arena *a) = {
	[FIELD_STR] = store_str,   [FIELD_NAME] = store_str,	  [FIELD_BOOL] = store_bool,
	[FIELD_INT] = store_int,   [FIELD_FLOAT] = store_float,	  [FIELD_DURATION] = store_duration,
	[FIELD_SIZE] = store_size, [FIELD_CHOICE] = store_choice, [FIELD_STRS] = store_strs,
	[FIELD_ARGV] = store_strs, [FIELD_ENV] = store_env,	  [FIELD_TABLE] = store_sub,
	[FIELD_MAP] = store_map,   [FIELD_LIST] = store_list,	  [FIELD_BOX] = store_box,
	[FIELD_INTS] = store_ints, [FIELD_DOC] = store_doc,	  [FIELD_ANY] = store_doc,
};

/* The value of a zero member that must be written because it has a default. */
static struct doc *zero_of(const struct field *f, struct arena *a)
{
	switch (f->type) {
	case FIELD_BOOL:
		return doc_new_bool(a, false);
	case FIELD_INT:
	case FIELD_DURATION:
	case FIELD_SIZE:
		return doc_new_int(a, 0);
	case FIELD_FLOAT:
		return doc_new_float(a, 0);
	case FIELD_STRS:
	case FIELD_INTS:
	case FIELD_ARGV:
	case FIELD_LIST:
		return doc_new(a, DOC_ARRAY);
	case FIELD_ENV:
	case FIELD_TABLE:
	case FIELD_MAP:
	case FIELD_BOX:
	case FIELD_DOC:
		return doc_new(a, DOC_TABLE);
	case FIELD_STR:
	case FIELD_NAME:
	case FIELD_CHOICE:
	case FIELD_ANY:
		return NULL; /* a NULL string cannot be written */
	}
	return NULL;
}

/* NULL if the member is not stored. */
static struct doc *store_member(const struct field *f, const char *from, struct arena *a)
{
	bool given = f->set_offset && *(const bool *)(from + f->set_offset);
	struct doc *value = storers[f->type](f, from + f->offset, a);

	return value || !(given || f->fallback || f->required) ? value : zero_of(f, a);
}

static struct doc *store_table(const struct schema *sc, const char *from, struct arena *a)
{
	struct doc *table = doc_new(a, DOC_TABLE);

	for (const struct field *f = sc->fields; f->name; f++) {
		struct doc *value = store_member(f, from, a);

		if (value)
			doc_set(a, table, str_from(f->name), value);
	}
	return table;
}

struct doc *schema_to_doc(const struct schema *sc, const void *from, struct arena *a)
{
	return store_table(sc, from, a);
}

static void list_to_json(const struct field *f, const struct table_list *list, struct jsonw *w)
{
	jsonw_open(w, '[');
	for (size_t i = 0; i < list->n; i++) {
		CLEANUP(arena_freep) struct arena *a = arena_new();

		doc_put_json(store_table(f->sub, (const char *)list->v + i * f->sub->size, a), w);
	}
	jsonw_close(w);
}

void schema_to_json(const struct schema *sc, const void *from, struct buf *out)
{
	struct jsonw w;

	jsonw_init(&w, out);
	jsonw_open(&w, '{');
	for (const struct field *f = sc->fields; f->name; f++) {
		CLEANUP(arena_freep) struct arena *a = arena_new();
		const struct table_list *list = (const void *)((const char *)from + f->offset);
		bool whole = f->type != FIELD_LIST || list->n == 0;
		const struct doc *value = whole ? store_member(f, from, a) : NULL;

		if (whole && !value)
			continue;
		jsonw_key(&w, f->name);
		if (whole)
			doc_put_json(value, &w);
		else
			list_to_json(f, list, &w);
	}
	jsonw_close(&w);
}
