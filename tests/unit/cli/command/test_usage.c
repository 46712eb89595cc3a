/* Words on the command line: help, hints, completion, and what is refused before a master is asked. */
#include "unit.h"

#include <stdio.h>

#include "base/cleanup.h"
#include "cli/drive.h"
#include "cli/fake_master.h"

#define RUN                                                                                        \
	"{\"id\":\"job-abcd\",\"state\":\"running\",\"exit_code\":null,\"elapsed_ms\":5,"          \
	"\"counts\":{\"nodes\":1,"                                                                 \
	"\"running\":1},\"nodes\":[{\"name\":\"job-0\",\"state\":\"running\",\"log_bytes\":3}],"   \
	"\"metrics\":{}}"
#define ENDED                                                                                      \
	"{\"id\":\"job-abcd\",\"state\":\"succeeded\",\"exit_code\":0,\"nodes\":[],\"metrics\":{}" \
	"}"

static void no_arguments_print_the_usage_on_stderr(void **state)
{
	struct ran r = drive(state, (const char *const[]){NULL});

	assert_int_equal(r.code, 2);
	assert_has(&r.err, "usage: regatta COMMAND");
	assert_int_equal(r.out.n, 0);
	ran_release(&r);
}

static void an_unknown_command_is_refused_with_the_nearest_one(void **state)
{
	REFUSED(state, 2, "regatta: unknown command 'statsu': did you mean 'status'?\n", "statsu");
	REFUSED(state, 2, "regatta: unknown command 'zzzzzzz': 'regatta --help' lists them\n",
		"zzzzzzz");
	REFUSED(state, 2, "regatta: unknown command '\\x1b[2J': 'regatta --help' lists them\n",
		"\x1b[2J");
	REFUSED(state, 2, "regatta: unknown option '--frob' before the command", "--frob", "ps");
	REFUSED(state, 2, "regatta: ps: unknown option '--al': did you mean '--all'?\n", "ps",
		"--al");
}

static void words_of_other_tools_get_a_hint(void **state)
{
	static const char *const cases[][2] = {{"cancel", "kill"}, {"stop", "kill"},
					       {"list", "ps"},	   {"rm", "cleanup"},
					       {"start", "run"},   {"show", "status"}};
	char want[128];

	for (size_t i = 0; i < COUNT(cases); i++) {
		snprintf(want, sizeof(want), "unknown command '%s': did you mean '%s'?\n",
			 cases[i][0], cases[i][1]);
		REFUSED(state, 2, want, cases[i][0]);
	}
	REFUSED(state, 2, "no command 'cancel' to help with: did you mean 'kill'?", "help",
		"cancel");
}

static void help_and_version_need_nothing(void **state)
{
	static const char *const ways[][3] = {{"--help"}, {"-h"}, {"help"}};

	for (size_t i = 0; i < COUNT(ways); i++) {
		struct ran r = drive(state, ways[i]);
		assert_int_equal(r.code, 0);
		assert_has(&r.out, "usage: regatta COMMAND");
		ran_release(&r);
	}
	struct ran r = DRIVE(state, "help", "run");
	assert_has(&r.out, "usage: regatta run [FILE]");
	ran_release(&r);
	r = DRIVE(state, "run", "--help");
	assert_has(&r.out, "usage: regatta run [FILE]");
	ran_release(&r);
	r = DRIVE(state, "help", "--man");
	assert_has(&r.out, ".TH REGATTA 1");
	ran_release(&r);
	r = DRIVE(state, "help", "--output", "json");
	assert_has(&r.out, "{\"help\":\"Regatta ");
	ran_release(&r);
	r = DRIVE(state, "run", "--help", "--output", "json");
	assert_has(&r.out, "{\"help\":\"usage: regatta run ");
	ran_release(&r);
	r = DRIVE(state, "--version");
	assert_string_equal(r.out.p, "regatta " REGATTA_VERSION "\n");
	ran_release(&r);
	r = DRIVE(state, "version", "--output", "json");
	assert_string_equal(r.out.p, "{\"version\":\"" REGATTA_VERSION "\"}\n");
	ran_release(&r);
	REFUSED(state, 2, "no command 'rnu' to help with: did you mean 'run'?", "help", "rnu");
	REFUSED(state, 2, "no command 'qqqqqqq' to help with", "help", "qqqqqqq");
	assert_false(file_exists(unit_path(state, "master.log")));
}

static void completion_is_printed_for_the_three_shells(void **state)
{
	struct ran r = DRIVE(state, "completion", "bash");
	assert_has(&r.out, "complete -F _regatta regatta");
	ran_release(&r);
	r = DRIVE(state, "completion", "fish", "--output", "json");
	assert_has(&r.out, "{\"script\":\"# fish");
	ran_release(&r);
}

static void words_for_completion_never_start_a_master(void **state)
{
	struct ran r = DRIVE(state, "words", "runs");
	assert_int_equal(r.code, 0);
	assert_int_equal(r.out.n, 0);
	assert_int_equal(r.err.n, 0);
	ran_release(&r);
	assert_false(file_exists(unit_path(state, "master.log")));
	r = DRIVE(state, "words", "keys");
	assert_has(&r.out, "command\n");
	assert_has(&r.out, "timeouts.");
	ran_release(&r);
	r = DRIVE(state, "words", "strategies");
	assert_has(&r.out, "pserver\n");
	ran_release(&r);
	home_put(state, "runs.json", "{\"runs\":[" ENDED ",{}]}");
	home_put(state, "run.json", RUN);
	r = DRIVE(state, "ps");
	ran_release(&r);
	r = DRIVE(state, "words", "runs");
	assert_string_equal(r.out.p, "job-abcd\n");
	ran_release(&r);
	r = DRIVE(state, "words", "nodes", "job");
	assert_string_equal(r.out.p, "job-0\n");
	ran_release(&r);
	r = DRIVE(state, "words", "nodes");
	assert_int_equal(r.out.n, 0);
	ran_release(&r);
}

static void roles_get_their_options(void **state)
{
	struct ran r = DRIVE(state, "sim", "--seeds", "5", "--nodes", "2", "--seed", "9", "-vv",
			     "--output", "json");
	assert_string_equal(r.out.p, "sim first=9 seeds=5 nodes=2 verbose=2 json=1\n");
	ran_release(&r);
	r = DRIVE(state, "sim");
	assert_string_equal(r.out.p, "sim first=1 seeds=100 nodes=3 verbose=0 json=0\n");
	ran_release(&r);
	r = DRIVE(state, "node-agent", "/node/dir");
	assert_string_equal(r.out.p, "agent /node/dir\n");
	ran_release(&r);
}

static void a_host_joins_with_the_options_it_is_given(void **state)
{
	struct ran r = DRIVE(state, "agent", "--join", "https://h:1", "--pin", "p", "--token", "t",
			     "--name", "n1", "--dir", "/d", "--labels", "gpu=a100,room=2",
			     "--labels", "x=");
	assert_string_equal(r.out.p, "host https://h:1 pin=p token=t name=n1 dir=/d gpu=a100 "
				     "room=2 x=\n");
	ran_release(&r);
	r = DRIVE(state, "agent", "--join", "https://h:1", "--pin", "p", "--token", "t", "--name",
		  "n1", "--install");
	assert_non_null(strstr(r.out.p, "install n1 in "));
	ran_release(&r);
	REFUSED(state, 2, "agent: --join URL and --pin PIN are needed; ", "agent", "--join",
		"https://h:1");
	REFUSED(state, 2, "--labels: 'gpu' is not NAME=VALUE", "agent", "--join", "https://h:1",
		"--pin", "p", "--token", "t", "--labels", "gpu");
	assert_false(file_exists(unit_path(state, "master.log")));
}

static void options_of_new_tokens_are_refused_elsewhere(void **state)
{
	REFUSED(state, 2, "token list: --scope goes with new\n", "token", "list", "--scope",
		"read");
	REFUSED(state, 2, "token revoke: --name goes with new\n", "token", "revoke", "abc",
		"--name", "x");
	assert_false(file_exists(unit_path(state, "master.log")));
}

static void more_runs_than_a_request_holds_are_refused(void **state)
{
	CLEANUP(freep) char *long_name = xasprintf("%020000d", 1);

	REFUSED(state, 2, "compare: too many names for one request", "compare", "job", long_name);
	assert_false(file_exists(unit_path(state, "master.log")));
}

static void output_that_cannot_be_written_is_an_error(void **state)
{
	setenv("TEST_STDOUT", "/dev/full", 1);
	struct ran r = DRIVE(state, "help");
	unsetenv("TEST_STDOUT");
	assert_int_equal(r.code, 5);
	assert_has(&r.err, "write the result");
	ran_release(&r);
}

int main(int argc, char **argv)
{
#define T(fn) cmocka_unit_test_setup_teardown(fn, drive_setup, drive_teardown)
	const struct CMUnitTest tests[] = {
		T(no_arguments_print_the_usage_on_stderr),
		T(an_unknown_command_is_refused_with_the_nearest_one),
		T(words_of_other_tools_get_a_hint),
		T(help_and_version_need_nothing),
		T(completion_is_printed_for_the_three_shells),
		T(words_for_completion_never_start_a_master),
		T(roles_get_their_options),
		T(a_host_joins_with_the_options_it_is_given),
		T(options_of_new_tokens_are_refused_elsewhere),
		T(more_runs_than_a_request_holds_are_refused),
		T(output_that_cannot_be_written_is_an_error),
	};
	int code;

	if (fake_role(argc, argv, &code))
		return code;
	return cmocka_run_group_tests_name("usage", tests, NULL, NULL);
}
