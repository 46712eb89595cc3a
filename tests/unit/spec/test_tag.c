/* Which words may be tags, and which texts notes. */
#include "unit.h"

#include <string.h>

#include "base/arena.h"
#include "base/err.h"
#include "fmt/doc.h"
#include "spec/tag.h"

static void refused(struct str tag, const char *want)
{
	struct err err = {0};

	assert_int_equal(tag_check(tag, &err), -1);
	assert_int_equal(err.kind, ERR_INVALID);
	if (!strstr(err.msg, want))
		fail_msg("'%s' has no '%s'", err.msg, want);
}

static void a_tag_is_one_printable_word(void **state)
{
	static const char *const good[] = {"a",	       "baseline", "lr:0.1",
					   "team/ctr", "größe=3",  "a-b+c"};
	static char text[TAG_MAX + 2];

	(void)state;
	for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++)
		assert_int_equal(tag_check(str_from(good[i]), NULL), 0);
	refused(STR(""), "empty");
	refused(STR("a\nb"), "line break or control character");
	refused(STR("a\x1b[31m"), "line break or control character");
	refused(STR("a\x7f"), "line break or control character");
	refused(STR("a\xc2\x9b"), "line break or control character");
	refused(STR("a b"), "blank or comma");
	refused(STR("a,b"), "blank or comma");
	refused(STR("-a"), "starts with + or -");
	refused(STR("+a"), "starts with + or -");
	refused(STR("a\xff"), "not UTF-8");
	memset(text, 'x', TAG_MAX);
	assert_int_equal(tag_check(str_from(text), NULL), 0);
	text[TAG_MAX] = 'x';
	refused(str_from(text), "has 65 bytes: at most 64");
}

static void a_note_is_text_of_lines(void **state)
{
	static char text[NOTE_MAX + 2];
	struct err err;

	(void)state;
	assert_int_equal(note_check(STR("two\n\tlines, für alle"), &err), 0);
	assert_int_equal(note_check(STR(" \n"), &err), -1);
	assert_int_equal(note_check(STR("a\x1b[2J"), &err), -1);
	assert_int_equal(note_check(STR("a\rb"), &err), -1);
	assert_int_equal(note_check(STR("a\xff"), &err), -1);
	memset(text, 'x', NOTE_MAX);
	assert_int_equal(note_check(str_from(text), &err), 0);
	text[NOTE_MAX] = 'x';
	assert_int_equal(note_check(str_from(text), &err), -1);
	assert_string_equal(err.msg, "the note has 4097 bytes: at most 4096");
}

static void a_list_has_each_tag_once_and_not_too_many(void **state)
{
	struct arena *a = arena_new();
	struct doc *list = doc_new(a, DOC_ARRAY);
	const char *json = NULL;
	struct err err;

	(void)state;
	assert_int_equal(tags_read(NULL, a, &json, &err), 0);
	assert_string_equal(json, "[]");
	assert_int_equal(json_parse(STR("[\"b\",\"a\",\"b\"]"), a, &list, &err), 0);
	assert_int_equal(tags_read(list, a, &json, &err), 0);
	assert_string_equal(json, "[\"b\",\"a\"]");
	doc_append(a, list, doc_new_int(a, 3));
	assert_int_equal(tags_read(list, a, &json, &err), -1);
	list = doc_new(a, DOC_ARRAY);
	for (int i = 0; i <= TAGS_MAX; i++)
		doc_append(a, list, doc_new_str(a, STR("a")));
	assert_int_equal(tags_read(list, a, &json, &err), -1);
	assert_string_equal(err.msg, "65 tags: a run has at most 64");
	arena_free(a);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_tag_is_one_printable_word),
		cmocka_unit_test(a_note_is_text_of_lines),
		cmocka_unit_test(a_list_has_each_tag_once_and_not_too_many),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
