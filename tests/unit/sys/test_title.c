#include "unit.h"

#include <string.h>

#include "sys/title.h"

static void the_second_word_is_replaced_and_the_rest_moves_up(void **state)
{
	char area[] = "regatta\0agent\0/some/dir";
	char *argv[] = {area, area + 8, area + 14};

	(void)state;
	title_role("early"); /* before it knows where: nothing happens */
	title_init(3, argv);
	title_role("too long a role");
	assert_memory_equal(area, "regatta\0agent\0/some/dir", sizeof(area));
	title_role("shim");
	assert_memory_equal(area, "regatta\0shim\0/some/dir\0", sizeof(area));
	title_role("keep");
	assert_memory_equal(area, "regatta\0keep\0/some/dir\0", sizeof(area));
}

static void all_words_are_replaced_as_far_as_there_is_room(void **state)
{
	char area[] = "regatta\0nest\0........";
	char *argv[] = {area, area + 8, area + 13};

	(void)state;
	title_init(3, argv);
	title_words("agent", "/dir");
	assert_memory_equal(area, "regatta\0agent\0/dir\0\0\0", sizeof(area));
	title_role("shim");
	assert_memory_equal(area, "regatta\0shim\0/dir\0\0\0\0", sizeof(area));
	title_words("agent", "/a/long/dir");
	assert_memory_equal(area, "regatta\0agent\0/a/lon\0", sizeof(area));
	title_words("a role without any room", "/dir");
	assert_memory_equal(area, "regatta\0agent\0/a/lon\0", sizeof(area));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_second_word_is_replaced_and_the_rest_moves_up),
		cmocka_unit_test(all_words_are_replaced_as_far_as_there_is_room),
	};
	return cmocka_run_group_tests_name("title", tests, NULL, NULL);
}
