/* The job's environment. */
#include "unit.h"

#include <string.h>

#include "agent/environ.h"

static void the_masters_values_win_and_gaps_are_filled(void **state)
{
	struct env_pair sent[] = {{"A", "1"},
				  {"PATH", "/sent"},
				  {"REGATTA_NODE_TOKEN", "forged"},
				  {"REGATTA_METRICS", "/forged"}};
	struct message_start m = {.env = sent, .nenv = 4};

	(void)state;
	setenv("HOME", "/home/me", 1);
	setenv("SECRET", "not for jobs", 1);
	const char **env = environ_make(&m, "mark.1", "/fifo", ENVIRON_FEW);

	assert_string_equal(environ_get(env, "A"), "1");
	assert_string_equal(environ_get(env, "PATH"), "/sent");
	assert_string_equal(environ_get(env, "HOME"), "/home/me");
	assert_string_equal(environ_get(env, "REGATTA_NODE_TOKEN"), "mark.1");
	assert_string_equal(environ_get(env, "REGATTA_METRICS"), "/fifo");
	assert_string_equal(environ_get(env, "SECRET"), "");
	environ_freep(&env);
}

static void in_the_container_of_the_agent_the_job_gets_its_variables_but_not_ours(void **state)
{
	struct env_pair sent[] = {{"A", "1"}, {"PATH", "/sent"}};
	struct message_start m = {.env = sent, .nenv = 2};

	(void)state;
	setenv("A", "of the image", 1);
	setenv("LD_LIBRARY_PATH", "/usr/local/cuda", 1);
	setenv("REGATTA_POD_UID", "1-2-3", 1);
	const char **env = environ_make(&m, "", "/fifo", ENVIRON_OWN);

	assert_string_equal(environ_get(env, "A"), "1");
	assert_string_equal(environ_get(env, "PATH"), "/sent");
	assert_string_equal(environ_get(env, "LD_LIBRARY_PATH"), "/usr/local/cuda");
	assert_string_equal(environ_get(env, "REGATTA_POD_UID"), "");
	environ_freep(&env);
	unsetenv("LD_LIBRARY_PATH");
	unsetenv("REGATTA_POD_UID");
}

static void without_an_environment_of_our_own_there_are_defaults(void **state)
{
	struct message_start m = {0};

	(void)state;
	unsetenv("HOME");
	unsetenv("PATH");
	const char **env = environ_make(&m, "", "/fifo", ENVIRON_FEW);

	assert_non_null(strstr(environ_get(env, "PATH"), "/usr/bin"));
	assert_string_equal(environ_get(env, "HOME"), "/");
	assert_string_equal(environ_get(env, "REGATTA_NODE_TOKEN"), "");
	environ_freep(&env);
}

static void python_shows_its_output_at_once_unless_the_job_says_otherwise(void **state)
{
	struct env_pair sent[] = {{"PYTHONUNBUFFERED", ""}};
	struct message_start m = {0};
	const char **env = environ_make(&m, "", "/fifo", ENVIRON_FEW);

	(void)state;
	assert_string_equal(environ_get(env, "PYTHONUNBUFFERED"), "1");
	environ_freep(&env);
	m = (struct message_start){.env = sent, .nenv = 1};
	env = environ_make(&m, "", "/fifo", ENVIRON_FEW);
	assert_string_equal(environ_get(env, "PYTHONUNBUFFERED"), "");
	environ_freep(&env);
}

static void a_terminal_has_a_type(void **state)
{
	struct env_pair sent[] = {{"TERM", "vt100"}};
	struct message_start m = {0};

	(void)state;
	unsetenv("TERM");
	const char **env = environ_make(&m, "", "/fifo", ENVIRON_FEW);

	assert_string_equal(environ_get(env, "TERM"), "");
	environ_freep(&env);
	m.pty = true;
	env = environ_make(&m, "", "/fifo", ENVIRON_FEW);
	assert_string_equal(environ_get(env, "TERM"), "xterm");
	environ_freep(&env);
	m = (struct message_start){.env = sent, .nenv = 1, .pty = true};
	env = environ_make(&m, "", "/fifo", ENVIRON_FEW);
	assert_string_equal(environ_get(env, "TERM"), "vt100");
	environ_freep(&env);
}

static void the_mark_is_the_first_entry(void **state)
{
	struct env_pair sent[] = {{"A", "1"}, {"B", "2"}};
	struct message_start m = {.env = sent, .nenv = 2};

	(void)state;
	const char **env = environ_make(&m, "mark.1", "/fifo", ENVIRON_FEW);

	assert_string_equal(env[0], "REGATTA_NODE_TOKEN=mark.1");
	environ_freep(&env);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_masters_values_win_and_gaps_are_filled),
		cmocka_unit_test(
			in_the_container_of_the_agent_the_job_gets_its_variables_but_not_ours),
		cmocka_unit_test(without_an_environment_of_our_own_there_are_defaults),
		cmocka_unit_test(python_shows_its_output_at_once_unless_the_job_says_otherwise),
		cmocka_unit_test(a_terminal_has_a_type),
		cmocka_unit_test(the_mark_is_the_first_entry),
	};

	return cmocka_run_group_tests_name("agent: environ", tests, NULL, NULL);
}
