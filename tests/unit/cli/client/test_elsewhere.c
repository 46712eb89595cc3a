/* Runs that the own master does not know, but whose results are elsewhere. */
#include "unit.h"

#include <stdlib.h>

#include "cli/drive.h"
#include "cli/fake_master.h"

#define ENDED                                                                                      \
	"{\"id\":\"afar-abcd\",\"state\":\"succeeded\",\"exit_code\":0,\"nodes\":[],"              \
	"\"metrics\":{}}"
#define TAKEN "afar-abcd: taken from s3://there/runs/afar-abcd/\n"

static void every_command_that_shows_a_run_takes_it_in(void **state)
{
	static const char *const commands[] = {"status", "events", "metrics", "report", "logs"};

	for (size_t i = 0; i < COUNT(commands); i++) {
		unlink(unit_path(state, "imported"));
		home_put(state, "run.json", ENDED "\n");
		home_put(state, "events.jsonl", "");
		home_put(state, "metrics.json", "{\"metrics\":{}}");
		struct ran r = DRIVE(state, commands[i], "afar-abcd");

		if (r.code != 0)
			fail_msg("%s: %.*s", commands[i], STR_ARG(buf_str(&r.err)));
		assert_has(&r.err, TAKEN);
		ran_release(&r);
		r = DRIVE(state, commands[i], "afar-abcd");
		assert_int_equal(r.code, 0);
		assert_has_not(&r.err, "taken");
		ran_release(&r);
	}
	assert_int_equal(home_count(state, "requests.log",
				    "POST /api/v1/imports {\"run\":\"afar-abcd\",\"url\":\"s3://"
				    "there/runs/\",\"credentials\":{\"access_key\":\"k\"}}"),
			 COUNT(commands));
}

static void a_comparison_takes_its_runs_in(void **state)
{
	home_put(state, "run.json", ENDED "\n");
	struct ran r = DRIVE(state, "compare", "afar-abcd", "afar-efgh", "--output", "json");

	assert_int_equal(r.code, 0);
	assert_has(&r.err, TAKEN);
	ran_release(&r);
}

static void a_run_that_is_nowhere_is_said_with_where_it_was_looked_for(void **state)
{
	REFUSED(state, 3, "no run of that name; it is not in s3://there/runs/ either", "status",
		"gone");
	REFUSED(state, 3, "regatta: no run 'nothing'\n", "status", "nothing");
	REFUSED(state, 3, "no run of that name; s3://there/runs/: AccessDenied: no (request id R1)",
		"logs", "refused");
	assert_int_equal(home_count(state, "requests.log", "/api/v1/imports"), 0);
}

static void a_copy_that_cannot_be_taken_in_is_said(void **state)
{
	home_put(state, "fault-import", "x");
	REFUSED(state, 2, "run 'afar' cannot be taken in: its copy is damaged", "status", "afar");
}

/* What ends or removes a run is for the master that has it. */
static void commands_that_change_a_run_take_nothing_in(void **state)
{
	REFUSED(state, 3, "no run of that name", "kill", "afar-abcd");
	assert_int_equal(home_count(state, "requests.log", "/api/v1/imports"), 0);
}

static void completion_takes_nothing_in(void **state)
{
	struct ran r = DRIVE(state, "ps");

	ran_release(&r);
	r = DRIVE(state, "words", "nodes", "afar-abcd");
	assert_int_equal(r.out.n, 0);
	ran_release(&r);
	assert_int_equal(home_count(state, "requests.log", "/api/v1/imports"), 0);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(every_command_that_shows_a_run_takes_it_in,
						drive_setup, drive_teardown),
		cmocka_unit_test_setup_teardown(a_comparison_takes_its_runs_in, drive_setup,
						drive_teardown),
		cmocka_unit_test_setup_teardown(
			a_run_that_is_nowhere_is_said_with_where_it_was_looked_for, drive_setup,
			drive_teardown),
		cmocka_unit_test_setup_teardown(a_copy_that_cannot_be_taken_in_is_said, drive_setup,
						drive_teardown),
		cmocka_unit_test_setup_teardown(commands_that_change_a_run_take_nothing_in,
						drive_setup, drive_teardown),
		cmocka_unit_test_setup_teardown(completion_takes_nothing_in, drive_setup,
						drive_teardown),
	};
	int code;

	if (fake_role(argc, argv, &code))
		return code;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
