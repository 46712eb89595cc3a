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

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_second_word_is_replaced_and_the_rest_moves_up),
	};
	return cmocka_run_group_tests_name("title", tests, NULL, NULL);
}
