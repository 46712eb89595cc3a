#include "unit.h"

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/exit_text.h"

static void the_end_of_a_process_has_one_wording(void **state)
{
	static const struct {
		int code, signal;
		bool oom;
		const char *reason, *text;
	} cases[] = {
		{0, 0, false, "", "exit code 0"},
		{3, 0, false, "command failed", "exit code 3: command failed"},
		{-1, 9, false, "", "killed by SIGKILL"},
		{137, 9, true, "", "killed by SIGKILL, out of memory"},
		{-1, 15, false, "lease", "killed by SIGTERM: lease"},
		{-1, 34, false, "", "killed by signal 34"},
		{-1, 1000, false, "", "killed by signal 1000"},
		{-1, 9, true, "out of memory: the memory limit was reached",
		 "killed by SIGKILL: out of memory: the memory limit was reached"},
		{-1, 9, true, "stopped: too late; out of memory: the memory limit was reached",
		 "killed by SIGKILL: stopped: too late; out of memory: the memory limit was reached"},
		{-1, 0, true, "", "out of memory"},
		{-1, 0, false, "not started", "not started"},
		{-1, 0, false, "", ""},
	};

	(void)state;
	for (size_t i = 0; i < COUNT(cases); i++) {
		CLEANUP(buf_release) struct buf b = {0};

		buf_init(&b, 256);
		exit_describe(&b, cases[i].code, cases[i].signal, cases[i].oom,
			      str_from(cases[i].reason));
		assert_string_equal(buf_str(&b).p, cases[i].text);
	}
}

static void it_is_appended_to_what_is_there(void **state)
{
	CLEANUP(buf_release) struct buf b = {0};

	(void)state;
	buf_init(&b, 256);
	buf_addz(&b, "a-0 ");
	exit_describe(&b, -1, 0, true, STR("why"));
	assert_string_equal(buf_str(&b).p, "a-0 out of memory: why");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_end_of_a_process_has_one_wording),
		cmocka_unit_test(it_is_appended_to_what_is_there),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
