/* What this machine has: the name that it has for good. */
#include "sys/machine.h"

#include <string.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/file.h"
#include "unit.h"

/* Rule: the name is the first 32 characters of the file; without that file there is none. */
static void the_name_of_the_machine_is_that_of_the_file(void **state)
{
	CLEANUP(buf_release) struct buf text = {0};
	char id[MACHINE_ID_LEN + 1] = "unchanged";

	(void)state;
	buf_init(&text, 256);
	if (file_read("/etc/machine-id", &text, NULL) < 0 || text.n < MACHINE_ID_LEN) {
		assert_false(machine_id(id));
		assert_string_equal(id, "unchanged");
		return;
	}
	assert_true(machine_id(id));
	assert_int_equal(strlen(id), MACHINE_ID_LEN);
	assert_memory_equal(id, buf_str(&text).p, MACHINE_ID_LEN);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_name_of_the_machine_is_that_of_the_file),
	};

	return cmocka_run_group_tests_name("machine", tests, NULL, NULL);
}
