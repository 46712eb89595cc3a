/*
 * Strict TOML 1.0 is what the toml-test suite says it is.  Debian ships the
 * suite in golang-github-burntsushi-toml-dev; REGATTA_TOML_TEST names another
 * directory with valid/ and invalid/.
 */
#include "fmt_test.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/path.h"

#define DEBIAN_VECTORS "/usr/share/gocode/src/github.com/BurntSushi/toml/internal/toml-test/tests"
#define MAX_FILES 10000

/* Valid in TOML 1.1 only, so refused here. */
static const struct {
	const char *name, *why;
} newer[] = {
	{"string/escape-esc.toml", "\\e for the escape character came with TOML 1.1"},
};

static const char *vector_dir(void)
{
	const char *given = getenv("REGATTA_TOML_TEST");

	return given ? given : DEBIAN_VECTORS;
}

static bool vectors_missing(void)
{
	if (file_exists(vector_dir()))
		return false;
	print_message(
		"# skipped: no toml-test vectors in %s (apt install golang-github-burntsushi-toml-dev)\n",
		vector_dir());
	return true;
}

/* The two ways to write one moment that the vectors mix: ' ' or 't' for 'T', zeros at the
 * fraction's end. */
static void normalise_time(struct str s, struct buf *out)
{
	for (size_t i = 0; i < s.n; i++) {
		char c = s.p[i];

		if (c == ' ' || c == 't')
			c = 'T';
		if (c == 'z')
			c = 'Z';
		bool fraction_ends = i > 0 && s.p[i - 1] >= '0' && s.p[i - 1] <= '9' &&
				     (c < '0' || c > '9') && memchr(s.p, '.', i);

		while (fraction_ends && out->n > 0 &&
		       (out->p[out->n - 1] == '0' || out->p[out->n - 1] == '.')) {
			out->n--;
			if (out->p[out->n] == '.')
				break;
		}
		buf_addc(out, c);
	}
	while (memchr(s.p, '.', s.n) && out->n > 0 && out->p[out->n - 1] == '0')
		out->n--;
}

static const char *time_type(struct str s)
{
	if (s.n < 10 || s.p[4] != '-')
		return "time-local";
	if (s.n == 10)
		return "date-local";
	char last = s.p[s.n - 1];

	return last == 'Z' || last == 'z' || s.p[s.n - 6] == '+' || s.p[s.n - 6] == '-'
		       ? "datetime"
		       : "datetime-local";
}

static bool time_same(struct str x, struct str y)
{
	CLEANUP(buf_release) struct buf a;
	CLEANUP(buf_release) struct buf b;

	buf_init(&a, 100);
	buf_init(&b, 100);
	normalise_time(x, &a);
	normalise_time(y, &b);
	return str_eq(buf_str(&a), buf_str(&b));
}

static bool float_same(double f, struct str text)
{
	double want;

	if (str_ends(text, STR("nan")))
		return isnan(f);
	if (str_ends(text, STR("inf")))
		return isinf(f) && (f < 0) == str_starts(text, STR("-"));
	return str_to_double(text, &want) && f == want;
}

/* {"type": "integer", "value": "1"} */
static bool leaf_matches(const struct doc *got, struct str type, struct str value)
{
	int64_t i;

	switch (got->type) {
	case DOC_BOOL:
		return str_is(type, "bool") && str_is(value, got->b ? "true" : "false");
	case DOC_INT:
		return str_is(type, "integer") && str_to_i64(value, &i) && i == got->i;
	case DOC_FLOAT:
		return str_is(type, "float") && float_same(got->f, value);
	case DOC_STRING:
		return str_is(type, "string") && str_eq(value, got->s);
	case DOC_TIME:
		return str_is(type, time_type(got->s)) && time_same(value, got->s);
	case DOC_NULL:
	case DOC_ARRAY:
	case DOC_TABLE:
		return false;
	}
	return false;
}

static bool matches(const struct doc *got, const struct doc *want)
{
	const struct doc *type = doc_get(want, "type"), *value = doc_get(want, "value");

	if (want->type == DOC_ARRAY) {
		if (got->type != DOC_ARRAY || got->array.n != want->array.n)
			return false;
		for (size_t i = 0; i < want->array.n; i++) {
			if (!matches(got->array.v[i], want->array.v[i]))
				return false;
		}
		return true;
	}
	if (type && value && type->type == DOC_STRING && value->type == DOC_STRING)
		return leaf_matches(got, type->s, value->s);
	if (got->type != DOC_TABLE || got->table.n != want->table.n)
		return false;
	for (size_t i = 0; i < want->table.n; i++) {
		const struct doc *item = doc_get(got, want->table.v[i].key.p);

		if (!item || !matches(item, want->table.v[i].value))
			return false;
	}
	return true;
}

static void read_vector(const char *dir, const char *name, struct buf *out)
{
	CLEANUP(freep) char *path = path_join(dir, name);
	struct err err = {0};

	buf_reset(out);
	if (file_read(path, out, &err) < 0)
		fail_msg("%s", err.msg);
}

/* Nothing if the vector passes, else why not. */
static const char *check_valid(const char *dir, const char *name, struct buf *toml,
			       struct buf *json)
{
	CLEANUP(arena_freep) struct arena *a = arena_new();
	CLEANUP(freep) char *json_name = xasprintf("%.*s.json", (int)strlen(name) - 5, name);
	static struct err err;
	struct doc *got, *want;

	read_vector(dir, name, toml);
	read_vector(dir, json_name, json);
	if (json_parse(buf_str(json), a, &want, &err) < 0)
		return err.msg;
	if (toml_parse(buf_str(toml), a, &got, &err) < 0)
		return err.msg;
	return matches(got, want) ? NULL : "the tree is not what the .json says";
}

static const char *check_invalid(const char *dir, const char *name, struct buf *toml)
{
	CLEANUP(arena_freep) struct arena *a = arena_new();
	struct err err = {0};
	struct doc *got;
	int line, col;

	read_vector(dir, name, toml);
	if (toml_parse(buf_str(toml), a, &got, &err) == 0)
		return "was accepted";
	if (err.kind != ERR_INVALID || sscanf(err.msg, "%d:%d: ", &line, &col) != 2 || line < 1 ||
	    col < 1)
		return "was refused without a position";
	return NULL;
}

static bool is_newer(const char *name)
{
	for (size_t i = 0; i < sizeof(newer) / sizeof(newer[0]); i++) {
		if (strcmp(name, newer[i].name) == 0) {
			print_message("# valid/%s must be refused: %s\n", name, newer[i].why);
			return true;
		}
	}
	return false;
}

static void run_vectors(const char *sub, bool valid)
{
	CLEANUP(freep) char *dir = path_join(vector_dir(), sub);
	CLEANUP(buf_release) struct buf toml;
	CLEANUP(buf_release) struct buf json;
	struct err err = {0};
	char **names;
	size_t n, passed = 0, failed = 0;

	buf_init(&toml, DOC_MAX_BYTES);
	buf_init(&json, DOC_MAX_BYTES);
	if (file_list_tree(dir, MAX_FILES, &names, &n, &err) < 0)
		fail_msg("%s", err.msg);
	for (size_t i = 0; i < n; i++) {
		if (!str_ends(str_from(names[i]), STR(".toml")))
			continue;
		bool accept = valid && !is_newer(names[i]);
		const char *why = accept ? check_valid(dir, names[i], &toml, &json)
					 : check_invalid(dir, names[i], &toml);

		if (why)
			print_message("# %s/%s: %s\n", sub, names[i], why);
		failed += why ? 1 : 0;
		passed += why ? 0 : 1;
	}
	file_list_free(names, n);
	print_message("# toml-test %s: %zu passed, %zu failed\n", sub, passed, failed);
	assert_int_equal(failed, 0);
	assert_true(passed > 0);
}

static void every_valid_vector_parses_to_its_tagged_json(void **state)
{
	(void)state;
	if (vectors_missing())
		skip();
	run_vectors("valid", true);
}

static void every_invalid_vector_is_refused_with_a_position(void **state)
{
	(void)state;
	if (vectors_missing())
		skip();
	run_vectors("invalid", false);
}

static void moments_are_compared_as_moments(void **state)
{
	(void)state;
	assert_true(time_same(STR("1987-07-05 17:45:00z"), STR("1987-07-05T17:45:00Z")));
	assert_true(time_same(STR("10:32:00.5"), STR("10:32:00.5000")));
	assert_true(time_same(STR("1987-07-05T17:45:56.6+08:00"),
			      STR("1987-07-05T17:45:56.6000+08:00")));
	assert_false(time_same(STR("10:32:00.5"), STR("10:32:00.6")));
	assert_false(time_same(STR("10:30:00"), STR("10:30:01")));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(moments_are_compared_as_moments),
		cmocka_unit_test(every_valid_vector_parses_to_its_tagged_json),
		cmocka_unit_test(every_invalid_vector_is_refused_with_a_position),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
