/* Answers of the master are read whatever their size, and refused when they are not JSON. */
#include "unit.h"

#include <string.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "cli/client/api.h"
#include "fmt/doc.h"

static void a_large_answer_reads_as_a_small_one(void **state)
{
	CLEANUP(arena_freep) struct arena *a = arena_new();
	CLEANUP(buf_release) struct buf b;
	struct err err;
	struct doc *d;

	(void)state;
	buf_init(&b, 64u << 20);
	buf_addz(&b, " { \"id\" : \"x\\\"}],\", \"nodes\" : [ ");
	for (int i = 0; i < 60000; i++)
		buf_printf(&b, "%s{\"name\":\"n-%d\",\"v\":[%d,{\"k\":\"]}\"}]}", i ? " ,\n" : "",
			   i, i);
	buf_addz(&b, " ] , \"last\" : null } \n");
	assert_true(b.n > DOC_MAX_BYTES);
	if (reply_parse(buf_str(&b), a, &d, &err) < 0)
		fail_msg("%s", err.msg);
	assert_true(str_is(doc_str(d, "id", STR("")), "x\"}],"));
	const struct doc *nodes = doc_array(d, "nodes");
	assert_int_equal(nodes->array.n, 60000);
	assert_true(str_is(doc_str(nodes->array.v[59999], "name", STR("")), "n-59999"));
	const struct doc *v = doc_array(nodes->array.v[7], "v");
	assert_int_equal(v->array.v[0]->i, 7);
	assert_true(str_is(doc_str(v->array.v[1], "k", STR("")), "]}"));
	assert_int_equal(doc_get(d, "last")->type, DOC_NULL);
}

/* The same text with so much white space in it that it is split. */
static struct err parse_padded(const char *text, bool *ret_ok)
{
	CLEANUP(arena_freep) struct arena *a = arena_new();
	CLEANUP(buf_release) struct buf b;
	struct err err = {0};
	struct doc *d;

	buf_init(&b, 1 << 20);
	for (const char *p = text; *p; p++) {
		if (*p != '@') {
			buf_addc(&b, *p);
			continue;
		}
		for (int i = 0; i < 70000; i++)
			buf_addc(&b, ' ');
	}
	*ret_ok = reply_parse(buf_str(&b), a, &d, &err) == 0;
	return err;
}

static void what_is_not_json_is_a_protocol_error(void **state)
{
	static const char *const bad[] = {
		"",	   "{",	     "[1,",	   "{\"a\":1",	"@",	 "[@1 2]",
		"[@1,,2]", "{@a:1}", "{@\"a\" 1}", "{@1:1}",	"[@1",	 "[@1]]",
		"[@1] x",  "[@tru]", "[@{]}",	   "{@\"a\":}", "[@1,2", "{@\"a\":1}}",
	};
	static const char *const good[] = {
		"[@]", "{@}", "[1,@2]", "{\"a\"@:@1@,@\"b\":[]@}", "@[[],{}]@", "[@\"]\\\"\"]"};
	bool ok;

	(void)state;
	for (size_t i = 0; i < COUNT(bad); i++) {
		struct err err = parse_padded(bad[i], &ok);
		if (ok || err.kind != ERR_PROTOCOL)
			fail_msg("accepted: %s", bad[i]);
	}
	for (size_t i = 0; i < COUNT(good); i++) {
		struct err err = parse_padded(good[i], &ok);
		if (!ok)
			fail_msg("refused: %s: %s", good[i], err.msg);
	}
}

static void nesting_has_a_limit(void **state)
{
	CLEANUP(buf_release) struct buf b;
	CLEANUP(arena_freep) struct arena *a = arena_new();
	struct err err;
	struct doc *d;

	(void)state;
	buf_init(&b, 1 << 20);
	for (int i = 0; i < 100000; i++)
		buf_addc(&b, '[');
	for (int i = 0; i < 100000; i++)
		buf_addc(&b, ']');
	assert_int_equal(reply_parse(buf_str(&b), a, &d, &err), -1);
	assert_int_equal(err.kind, ERR_PROTOCOL);
}

static void the_path_of_a_run_is_coded(void **state)
{
	CLEANUP(freep) char *path = api_run_path("a/../b c", "/watch");

	(void)state;
	assert_string_equal(path, "/api/v1/runs/a%2F..%2Fb%20c/watch");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_large_answer_reads_as_a_small_one),
		cmocka_unit_test(what_is_not_json_is_a_protocol_error),
		cmocka_unit_test(nesting_has_a_limit),
		cmocka_unit_test(the_path_of_a_run_is_coded),
	};

	return cmocka_run_group_tests_name("replies", tests, NULL, NULL);
}
