/*
 * Our JSON reader against jansson's: whatever the text, both accept it with
 * the same tree or both refuse it.
 */
#include "fmt_test.h"

#ifdef HAVE_JANSSON
#include <jansson.h>
#include <math.h>

#define TEXTS 20000

static bool same(const struct doc *d, const json_t *j)
{
	switch (json_typeof(j)) {
	case JSON_NULL:
		return d->type == DOC_NULL;
	case JSON_TRUE:
	case JSON_FALSE:
		return d->type == DOC_BOOL && d->b == json_is_true(j);
	case JSON_INTEGER:
		return d->type == DOC_INT && d->i == json_integer_value(j);
	case JSON_REAL:
		return d->type == DOC_FLOAT && d->f == json_real_value(j) &&
		       signbit(d->f) == signbit(json_real_value(j));
	case JSON_STRING:
		return d->type == DOC_STRING &&
		       str_eq(d->s, (struct str){json_string_value(j), json_string_length(j)});
	case JSON_ARRAY:
		if (d->type != DOC_ARRAY || d->array.n != json_array_size(j))
			return false;
		for (size_t i = 0; i < d->array.n; i++) {
			if (!same(d->array.v[i], json_array_get(j, i)))
				return false;
		}
		return true;
	case JSON_OBJECT:
		if (d->type != DOC_TABLE || d->table.n != json_object_size(j))
			return false;
		for (size_t i = 0; i < d->table.n; i++) {
			const json_t *v = json_object_get(j, d->table.v[i].key.p);

			if (!v || !same(d->table.v[i].value, v))
				return false;
		}
		return true;
	}
	return false;
}

/* jansson has no room for a NUL in a name; that is a limit of its own. */
static bool is_jansson_limit(const json_error_t *e)
{
	return json_error_code(e) == json_error_null_byte_in_key;
}

struct tally {
	size_t accepted, refused, passed_over;
};

static void compare(struct str text, struct tally *t)
{
	CLEANUP(arena_freep) struct arena *a = arena_new();
	struct err err = {0};
	json_error_t jerr;
	struct doc *d = NULL;
	json_t *j = json_loadb(text.p, text.n,
			       JSON_REJECT_DUPLICATES | JSON_DECODE_ANY | JSON_ALLOW_NUL, &jerr);
	int ret = json_parse(text, a, &d, &err);

	if (!j && is_jansson_limit(&jerr)) {
		t->passed_over++;
		return;
	}
	if ((j != NULL) != (ret == 0))
		fail_msg("jansson says '%s', we say '%s':\n%.*s", j ? "good" : jerr.text,
			 ret == 0 ? "good" : err.msg, STR_ARG(text));
	if (j && !same(d, j))
		fail_msg("another tree:\n%.*s", STR_ARG(text));
	t->accepted += j ? 1 : 0;
	t->refused += j ? 0 : 1;
	json_decref(j);
}

/* The same tree as our writer and as jansson's writes it, compact or spread over lines. */
static void write_text(struct rng *r, const struct doc *d, struct buf *out)
{
	doc_to_json(d, out);
	json_t *j = json_loadb(out->p, out->n, JSON_DECODE_ANY | JSON_ALLOW_NUL, NULL);

	if (j && rng_below(r, 2)) {
		char *text = json_dumps(j, JSON_ENCODE_ANY | JSON_INDENT(rng_below(r, 4)) |
						   (rng_below(r, 2) ? JSON_ENSURE_ASCII : 0) |
						   (rng_below(r, 2) ? JSON_ESCAPE_SLASH : 0));

		buf_reset(out);
		buf_addz(out, text);
		free(text);
	}
	json_decref(j);
}

static void jansson_and_we_agree_on_every_text(void **state)
{
	struct tally t = {0};
	struct rng r;
	(void)state;

	seed_rng(&r);
	for (int i = 0; i < TEXTS; i++) {
		CLEANUP(arena_freep) struct arena *a = arena_new();
		CLEANUP(buf_release) struct buf text;

		buf_init(&text, 1 << 20);
		write_text(&r, doc_generate(&r, a, (struct doc_kinds){.nulls = true}, 4), &text);
		compare(buf_str(&text), &t);
		text_mutate(&r, &text);
		compare(buf_str(&text), &t);
	}
	print_message(
		"# %zu texts accepted, %zu refused by both, %zu passed over (NUL in a name)\n",
		t.accepted, t.refused, t.passed_over);
	assert_true(t.accepted > TEXTS / 2 && t.refused > TEXTS / 4);
}

static void jansson_and_we_agree_at_the_edges(void **state)
{
	static const char *const texts[] = {
		"",
		" ",
		"-",
		"-0",
		"-0.0",
		"0.0",
		"00",
		"0e0",
		"1E+2",
		"1E-2",
		"1e308",
		"1e309",
		"-1e309",
		"1e-400",
		"9223372036854775807",
		"9223372036854775808",
		"-9223372036854775808",
		"-9223372036854775809",
		"\"\\u0000\"",
		"\"\\uD800\\uDC00\"",
		"\"\\uDBFF\\uDFFF\"",
		"\"\\uDC00\\uD800\"",
		"\"\\uD800\\u0000\"",
		"\"\\u00G0\"",
		"\"\x7f\"",
		"\"\xc2\x80\"",
		"\"\xf4\x8f\xbf\xbf\"",
		"\"\xf4\x90\x80\x80\"",
		"\"\xef\xbf\xbf\"",
		"\xef\xbf\xbe",
		"[1,2",
		"{\"a\":1}}",
		"{\"\":0}",
		"{\"a\":1,\"a\":1}",
		"{\"a\":1,\"\\u0061\":1}",
		"{1:2}",
		"[,]",
		"[1,,2]",
		"tru",
		"truee",
		"True",
		"true false",
		"\v1",
		"\f1",
		"[1]\n\r\t ",
		"\"a\"\"b\"",
		"{\"a\"}",
		"{\"a\":}",
		"'a'",
		"/**/1",
		"[1]//",
		"Infinity",
		"-Infinity",
		"1.7976931348623159e308",
		"\"\\'\"",
		"2.2250738585072011e-308",
		"4.9e-324",
		"0.1e1",
		"1.5e",
		"[\"\t\"]",
		"-a",
		"1a",
		"\"\\u12345\"",
	};
	struct tally t = {0};
	(void)state;

	for (size_t i = 0; i < COUNT(texts); i++)
		compare(str_from(texts[i]), &t);
	assert_int_equal(t.accepted + t.refused, COUNT(texts));
}

#else

static void jansson_and_we_agree_on_every_text(void **state)
{
	(void)state;
	print_message("# skipped: built without jansson (apt install libjansson-dev)\n");
	skip();
}

static void jansson_and_we_agree_at_the_edges(void **state)
{
	jansson_and_we_agree_on_every_text(state);
}
#endif

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(jansson_and_we_agree_at_the_edges),
		cmocka_unit_test(jansson_and_we_agree_on_every_text),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
