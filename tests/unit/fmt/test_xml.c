#include "unit.h"

#include <string.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/err.h"
#include "fmt/xml.h"

static struct xml *parsed(struct arena *a, const char *text)
{
	struct xml *root = NULL;
	struct err err = {0};

	if (xml_parse(str_from(text), a, &root, &err) < 0)
		fail_msg("%s", err.msg);
	return root;
}

static void a_tree_is_read_by_paths(void **state)
{
	struct arena *a = arena_new();
	const struct xml *root =
		parsed(a, "<?xml version='1.0'?><r xmlns='http://x/'>\n <!-- c -->"
			  "<set><item><id>i-1</id><n:t a='1'> x &amp; &#228; </n:t></item>"
			  "<other/><item><id>i-2</id></item></set><empty/></r>");
	const struct xml *item = xml_at(root, "set/item");

	(void)state;
	assert_string_equal(root->name, "r");
	assert_string_equal(root->text, "");
	assert_string_equal(xml_text(item, "id"), "i-1");
	assert_string_equal(xml_text(item, "t"), " x & \xc3\xa4 ");
	assert_string_equal(xml_text(xml_next(item), "id"), "i-2");
	assert_null(xml_next(xml_next(item)));
	assert_int_equal(xml_count(root, "set/item"), 2);
	assert_int_equal(xml_count(root, "set/none"), 0);
	assert_string_equal(xml_text(xml_at(item, "id"), ""), "i-1");
	assert_null(xml_at(root, "set/none/item"));
	assert_null(xml_at(NULL, "a"));
	assert_string_equal(xml_text(NULL, "a"), "");
	assert_string_equal(xml_text(root, "empty"), "");
	assert_ptr_equal(xml_at(root, "set")->parent, root);
	assert_null(root->next);
	arena_free(a);
}

static void refused(const char *text, size_t n, const char *why)
{
	struct arena *a = arena_new();
	struct xml *root = NULL;
	struct err err = {0};

	assert_int_equal(xml_parse((struct str){text, n}, a, &root, &err), -1);
	assert_int_equal(err.kind, ERR_PROTOCOL);
	if (!strstr(err.msg, why))
		fail_msg("%s", err.msg);
	assert_null(root);
	arena_free(a);
}

static void what_is_no_xml_or_too_much_is_refused(void **state)
{
	struct buf text;

	(void)state;
	refused("", 0, "not XML");
	refused("<html><p>Sign in</html>", 23, "not XML: line 1");
	refused("<a>", 3, "not XML");
	refused("<a/><b/>", 8, "not XML");
	refused("<!DOCTYPE a [<!ENTITY e 'x'>]><a>&e;</a>", 40, "document type");
	buf_init(&text, 64 * 1024 * 1024);
	for (int i = 0; i <= XML_MAX_DEPTH; i++)
		buf_addz(&text, "<a>");
	refused(text.p, text.n, "nested too deeply");
	buf_reset(&text);
	buf_addz(&text, "<a>");
	for (int i = 0; i <= XML_MAX_NODES; i++)
		buf_addz(&text, "<b/>");
	refused(text.p, text.n, "too many elements");
	refused(text.p, XML_MAX_BYTES + 1, "bytes");
	buf_release(&text);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_tree_is_read_by_paths),
		cmocka_unit_test(what_is_no_xml_or_too_much_is_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
