#include "link/wire.h"

#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "base/arena.h"
#include "base/err.h"
#include "fmt/doc.h"
#include "fmt/jsonw.h"
#include "fmt/schema.h"
#include "link/frame.h"

/* ---- access to the members of a message ---- */

static void *at(void *msg, size_t offset)
{
	return (char *)msg + offset;
}

static const void *at_const(const void *msg, size_t offset)
{
	return (const char *)msg + offset;
}

static void set_int(const struct wire_key *k, void *msg, int64_t v)
{
	int narrow = (int)v;

	memcpy(at(msg, k->offset), k->size == sizeof(int) ? (void *)&narrow : (void *)&v, k->size);
}

static int64_t int_of(const struct wire_key *k, const void *msg)
{
	int64_t wide;
	int narrow;

	if (k->size == sizeof(int)) {
		memcpy(&narrow, at_const(msg, k->offset), sizeof(narrow));
		return narrow;
	}
	memcpy(&wide, at_const(msg, k->offset), sizeof(wide));
	return wide;
}

static void set_pointer(const struct wire_key *k, void *msg, const void *p)
{
	memcpy(at(msg, k->offset), &p, sizeof(p));
}

static const void *pointer_of(const struct wire_key *k, const void *msg)
{
	const void *p;

	memcpy(&p, at_const(msg, k->offset), sizeof(p));
	return p;
}

static void set_count(const struct wire_key *k, void *msg, size_t n)
{
	*(size_t *)at(msg, k->count_offset) = n;
}

static size_t count_of(const struct wire_key *k, const void *msg)
{
	return *(const size_t *)at_const(msg, k->count_offset);
}

/* ---- reading ---- */

static int wrong(struct err *err, const struct wire_key *k, const char *want)
{
	return err_set(err, ERR_PROTOCOL, "key '%s' must be %s", k->key, want);
}

static const char *text_of(const struct doc *d)
{
	return d->type == DOC_STRING && !memchr(d->s.p, '\0', d->s.n) ? d->s.p : NULL;
}

static int read_text(const struct wire_key *k, const struct doc *v, struct arena *a, void *msg,
		     struct err *err)
{
	const char *text = text_of(v);

	(void)a;
	if (!text)
		return wrong(err, k, "a text");
	set_pointer(k, msg, text);
	return 0;
}

static int read_chars(const struct wire_key *k, const struct doc *v, struct arena *a, void *msg,
		      struct err *err)
{
	const char *text = text_of(v);

	(void)a;
	if (!text)
		return wrong(err, k, "a text");
	snprintf(at(msg, k->offset), k->size, "%s", text);
	return 0;
}

static int64_t most(const struct wire_key *k)
{
	return k->max ? k->max : k->size == sizeof(int) ? INT_MAX : INT64_MAX;
}

static int read_int(const struct wire_key *k, const struct doc *v, struct arena *a, void *msg,
		    struct err *err)
{
	(void)a;
	if (v->type != DOC_INT || v->i < k->min || v->i > most(k))
		return err_set(err, ERR_PROTOCOL,
			       "key '%s' must be a whole number from %" PRId64 " to %" PRId64,
			       k->key, k->min, most(k));
	set_int(k, msg, v->i);
	return 0;
}

static int read_bool(const struct wire_key *k, const struct doc *v, struct arena *a, void *msg,
		     struct err *err)
{
	(void)a;
	if (v->type != DOC_BOOL)
		return wrong(err, k, "true or false");
	*(bool *)at(msg, k->offset) = v->b;
	return 0;
}

static int read_kind(const struct wire_key *k, const struct doc *v, struct arena *a, void *msg,
		     struct err *err)
{
	const char *name = text_of(v);

	(void)a;
	if (!name)
		return wrong(err, k, "the name of a kind of error");
	enum err_kind kind = err_kind_from_name(name);

	if (k->type == WIRE_KIND && kind == ERR_NONE && strcmp(name, err_kind_name(ERR_NONE)) != 0)
		return wrong(err, k, "the name of a kind of error");
	set_int(k, msg, kind);
	return 0;
}

static int read_choice(const struct wire_key *k, const struct doc *v, struct arena *a, void *msg,
		       struct err *err)
{
	const char *name = text_of(v);

	(void)a;
	for (int i = 0; name && k->choices[i]; i++)
		if (strcmp(name, k->choices[i]) == 0) {
			set_int(k, msg, i);
			return 0;
		}
	return wrong(err, k, "one of the known words");
}

static int read_offsets(const struct wire_key *k, const struct doc *v, struct arena *a, void *msg,
			struct err *err)
{
	uint64_t *ret = at(msg, k->offset);

	(void)a;
	if (v->type != DOC_ARRAY || v->array.n < STREAMS || v->array.n > STREAMS_MAX)
		return wrong(err, k, "a list of 3 or more offsets");
	memset(ret, 0, STREAMS_MAX * sizeof(*ret));
	for (size_t i = 0; i < v->array.n; i++) {
		const struct doc *o = v->array.v[i];

		if (o->type != DOC_INT || o->i < 0)
			return wrong(err, k, "a list of 3 or more offsets");
		ret[i] = (uint64_t)o->i;
	}
	return 0;
}

static bool too_many(const struct wire_key *k, size_t n)
{
	return n < (size_t)k->min || (k->max && n > (size_t)k->max);
}

static int read_texts(const struct wire_key *k, const struct doc *v, struct arena *a, void *msg,
		      struct err *err)
{
	if (v->type != DOC_ARRAY || too_many(k, v->array.n))
		return wrong(err, k,
			     k->min ? "a list of texts that is not empty" : "a list of texts");
	const char **ret = arena_array(a, const char *, v->array.n + 1);

	for (size_t i = 0; i < v->array.n; i++) {
		ret[i] = text_of(v->array.v[i]);
		if (!ret[i])
			return wrong(err, k, "a list of texts");
	}
	set_pointer(k, msg, ret);
	set_count(k, msg, v->array.n);
	return 0;
}

static int read_env(const struct wire_key *k, const struct doc *v, struct arena *a, void *msg,
		    struct err *err)
{
	if (v->type != DOC_TABLE)
		return wrong(err, k, "an object of texts");
	struct env_pair *ret = arena_array(a, struct env_pair, v->table.n + 1);

	for (size_t i = 0; i < v->table.n; i++) {
		struct str name = v->table.v[i].key;

		if (name.n == 0 || memchr(name.p, '\0', name.n) || memchr(name.p, '=', name.n))
			return wrong(err, k, "an object with names that a variable can have");
		ret[i].name = arena_strndup(a, name.p, name.n);
		ret[i].value = text_of(v->table.v[i].value);
		if (!ret[i].value)
			return wrong(err, k, "an object of texts");
	}
	set_pointer(k, msg, ret);
	set_count(k, msg, v->table.n);
	return 0;
}

static int read_keys(const struct wire_table *t, const struct doc *d, struct arena *a, void *ret,
		     struct err *err);

static int read_table(const struct wire_key *k, const struct doc *v, struct arena *a, void *msg,
		      struct err *err)
{
	void *ret = arena_alloc(a, k->sub->size);

	if (v->type != DOC_TABLE)
		return wrong(err, k, "an object");
	if (read_keys(k->sub, v, a, ret, err) < 0)
		return err_wrap(err, "%s", k->key);
	set_pointer(k, msg, ret);
	return 0;
}

/* Read the items of a list into the array at `items`. */
static int read_items(const struct wire_key *k, const struct doc *v, struct arena *a, char *items,
		      struct err *err)
{
	for (size_t i = 0; i < v->array.n; i++) {
		if (v->array.v[i]->type != DOC_TABLE)
			return wrong(err, k, "a list of objects");
		if (read_keys(k->sub, v->array.v[i], a, items + i * k->sub->size, err) < 0)
			return err_wrap(err, "%s[%zu]", k->key, i);
	}
	return 0;
}

static int read_list(const struct wire_key *k, const struct doc *v, struct arena *a, void *msg,
		     struct err *err)
{
	if (v->type != DOC_ARRAY || too_many(k, v->array.n))
		return wrong(err, k, "a list of objects");
	char *items = arena_alloc(a, k->sub->size * (v->array.n + 1));

	if (read_items(k, v, a, items, err) < 0)
		return -1;
	set_pointer(k, msg, items);
	set_count(k, msg, v->array.n);
	return 0;
}

static int read_array(const struct wire_key *k, const struct doc *v, struct arena *a, void *msg,
		      struct err *err)
{
	if (v->type != DOC_ARRAY || too_many(k, v->array.n))
		return err_set(err, ERR_PROTOCOL,
			       "key '%s' must be a list of at most %" PRId64 " objects", k->key,
			       k->max);
	if (read_items(k, v, a, at(msg, k->offset), err) < 0)
		return -1;
	set_count(k, msg, v->array.n);
	return 0;
}

/* ---- writing ---- */

static void write_text(const struct wire_key *k, const void *msg, struct jsonw *w)
{
	const char *text = pointer_of(k, msg);

	if (text || !k->optional)
		jsonw_kz(w, k->key, text);
}

static void write_chars(const struct wire_key *k, const void *msg, struct jsonw *w)
{
	jsonw_kz(w, k->key, at_const(msg, k->offset));
}

static void write_int(const struct wire_key *k, const void *msg, struct jsonw *w)
{
	int64_t v = int_of(k, msg);

	if (!k->optional || v != k->fallback)
		jsonw_kint(w, k->key, v);
}

static void write_bool(const struct wire_key *k, const void *msg, struct jsonw *w)
{
	bool v = *(const bool *)at_const(msg, k->offset);

	if (!k->optional || v)
		jsonw_kbool(w, k->key, v);
}

static void write_kind(const struct wire_key *k, const void *msg, struct jsonw *w)
{
	enum err_kind kind = (enum err_kind)int_of(k, msg);

	if (!k->optional || kind != ERR_NONE)
		jsonw_kz(w, k->key, err_kind_name(kind));
}

static void write_choice(const struct wire_key *k, const void *msg, struct jsonw *w)
{
	jsonw_kz(w, k->key, k->choices[int_of(k, msg)]);
}

static void write_offsets(const struct wire_key *k, const void *msg, struct jsonw *w)
{
	const uint64_t *v = at_const(msg, k->offset);
	int n = STREAMS_MAX;

	while (n > STREAMS && v[n - 1] == 0)
		n--;
	jsonw_key(w, k->key);
	jsonw_open(w, '[');
	for (int i = 0; i < n; i++)
		jsonw_int(w, (int64_t)v[i]);
	jsonw_close(w);
}

static void write_texts(const struct wire_key *k, const void *msg, struct jsonw *w)
{
	const char *const *v = pointer_of(k, msg);
	size_t n = count_of(k, msg);

	if (n == 0 && k->optional)
		return;
	jsonw_key(w, k->key);
	jsonw_open(w, '[');
	for (size_t i = 0; i < n; i++)
		jsonw_z(w, v[i]);
	jsonw_close(w);
}

static void write_env(const struct wire_key *k, const void *msg, struct jsonw *w)
{
	const struct env_pair *v = pointer_of(k, msg);
	size_t n = count_of(k, msg);

	jsonw_key(w, k->key);
	jsonw_open(w, '{');
	for (size_t i = 0; i < n; i++)
		jsonw_kz(w, v[i].name, v[i].value);
	jsonw_close(w);
}

static void write_object(const struct wire_table *t, const void *msg, struct jsonw *w)
{
	jsonw_open(w, '{');
	wire_write(t, msg, w);
	jsonw_close(w);
}

static void write_table(const struct wire_key *k, const void *msg, struct jsonw *w)
{
	const void *sub = pointer_of(k, msg);

	if (!sub)
		return;
	jsonw_key(w, k->key);
	write_object(k->sub, sub, w);
}

static void write_items(const struct wire_key *k, const void *msg, const char *items,
			struct jsonw *w)
{
	size_t n = count_of(k, msg);

	if (n == 0 && k->optional)
		return;
	jsonw_key(w, k->key);
	jsonw_open(w, '[');
	for (size_t i = 0; i < n; i++)
		write_object(k->sub, items + i * k->sub->size, w);
	jsonw_close(w);
}

static void write_list(const struct wire_key *k, const void *msg, struct jsonw *w)
{
	write_items(k, msg, pointer_of(k, msg), w);
}

static void write_array(const struct wire_key *k, const void *msg, struct jsonw *w)
{
	write_items(k, msg, at_const(msg, k->offset), w);
}

/* ---- the tables ---- */

static const struct {
	int (*read)(const struct wire_key *k, const struct doc *v, struct arena *a, void *msg,
		    struct err *err);
	void (*write)(const struct wire_key *k, const void *msg, struct jsonw *w);
} types[] = {
	[WIRE_TEXT] = {read_text, write_text},	     [WIRE_CHARS] = {read_chars, write_chars},
	[WIRE_INT] = {read_int, write_int},	     [WIRE_BOOL] = {read_bool, write_bool},
	[WIRE_KIND] = {read_kind, write_kind},	     [WIRE_KIND_OPEN] = {read_kind, write_kind},
	[WIRE_CHOICE] = {read_choice, write_choice}, [WIRE_OFFSETS] = {read_offsets, write_offsets},
	[WIRE_TEXTS] = {read_texts, write_texts},    [WIRE_ENV] = {read_env, write_env},
	[WIRE_TABLE] = {read_table, write_table},    [WIRE_LIST] = {read_list, write_list},
	[WIRE_ARRAY] = {read_array, write_array},
};

/* The value of a missing key.  The struct was zeroed before. */
static void set_default(const struct wire_key *k, void *msg)
{
	if (k->type == WIRE_INT)
		set_int(k, msg, k->fallback);
	else if (k->type == WIRE_TEXT)
		set_pointer(k, msg, k->default_text);
}

static int read_keys(const struct wire_table *t, const struct doc *d, struct arena *a, void *ret,
		     struct err *err)
{
	memset(ret, 0, t->size);
	for (const struct wire_key *k = t->keys; k->key; k++) {
		const struct doc *v = doc_get(d, k->key);

		if (v && v->type != DOC_NULL) {
			if (types[k->type].read(k, v, a, ret, err) < 0)
				return -1;
		} else if (k->optional) {
			set_default(k, ret);
		} else {
			return err_set(err, ERR_PROTOCOL, "key '%s' is missing", k->key);
		}
	}
	return 0;
}

int wire_parse(const struct wire_table *t, struct str json, struct arena *a, const struct doc **ret,
	       struct err *err)
{
	struct err why = {0};
	struct doc *d;

	if (json_parse(json, a, &d, &why) < 0)
		return err_set(err, ERR_PROTOCOL, "%s: not JSON: %s", t->name, why.msg);
	if (d->type != DOC_TABLE)
		return err_set(err, ERR_PROTOCOL, "%s: not a JSON object", t->name);
	*ret = d;
	return 0;
}

int wire_read(const struct wire_table *t, const struct doc *d, struct arena *a, void *ret,
	      struct err *err)
{
	return read_keys(t, d, a, ret, err) < 0 ? err_wrap(err, "%s", t->name) : 0;
}

int wire_get(const struct wire_table *t, struct str json, struct arena *a, void *ret,
	     struct err *err)
{
	const struct doc *d;

	return wire_parse(t, json, a, &d, err) < 0 ? -1 : wire_read(t, d, a, ret, err);
}

void wire_write(const struct wire_table *t, const void *msg, struct jsonw *w)
{
	for (const struct wire_key *k = t->keys; k->key; k++)
		types[k->type].write(k, msg, w);
}

void wire_put(const struct wire_table *t, const void *msg, struct buf *out)
{
	struct jsonw w;

	jsonw_init(&w, out);
	write_object(t, msg, &w);
}
