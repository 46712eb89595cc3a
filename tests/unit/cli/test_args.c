/* A command line means one thing, or one line says what is wrong with it. */
#include "unit.h"

#include <string.h>

#include "base/err.h"
#include "cli/cli.h"

#define PARSE(cmd, ...) parse((cmd), (const char *const[]){__VA_ARGS__, NULL})

static struct cli_call call;
static struct err err;

static int parse(const char *cmd, const char *const *argv)
{
	const struct command *c = cli_find_command(str_from(cmd));
	int n = 0;

	assert_non_null(c);
	while (argv[n])
		n++;
	err = (struct err){0};
	call_release(&call);
	call = (struct cli_call){0};
	return call_parse(c, n, (char *const *)(uintptr_t)argv, &call, &err);
}

static void refused(const char *message)
{
	assert_int_equal(err.kind, ERR_INVALID);
	assert_string_equal(err.msg, message);
}

static void options_may_stand_anywhere_before_two_dashes(void **state)
{
	(void)state;
	assert_int_equal(PARSE("run", "-n", "4", "job.toml", "--set", "a=1", "--set=b=2", "-d"), 0);
	assert_string_equal(call_arg(&call, 0), "job.toml");
	assert_int_equal(call_number(&call, "count", 0), 4);
	assert_true(call_flag(&call, "detach"));
	const char *sets[4];
	assert_int_equal(call_texts(&call, "set", sets, 4), 2);
	assert_string_equal(sets[0], "a=1");
	assert_string_equal(sets[1], "b=2");
	assert_int_equal(call_texts(&call, "set", sets, 1), 1);
	assert_false(call.has_rest);
	assert_null(call_arg(&call, 1));
}

static void what_follows_two_dashes_is_the_command_whatever_it_looks_like(void **state)
{
	(void)state;
	assert_int_equal(PARSE("run", "-n4", "--", "python3", "--output", "json", "-d"), 0);
	assert_true(call.has_rest);
	assert_int_equal(call.nrest, 4);
	assert_string_equal(call.rest[1], "--output");
	assert_int_equal(call.output, OUTPUT_TABLE);
	assert_int_equal(call_number(&call, "count", 1), 4);
	assert_false(call_flag(&call, "detach"));
	assert_int_equal(PARSE("run", "--"), 0);
	assert_true(call.has_rest);
	assert_int_equal(call.nrest, 0);
}

static void two_dashes_end_the_options_of_other_commands(void **state)
{
	(void)state;
	assert_int_equal(PARSE("status", "--", "-odd-"), 0);
	assert_string_equal(call_arg(&call, 0), "-odd-");
}

static void flags_of_one_letter_may_be_bundled(void **state)
{
	(void)state;
	assert_int_equal(PARSE("run", "-dfn", "3"), 0);
	assert_true(call_flag(&call, "detach"));
	assert_true(call_flag(&call, "follow"));
	assert_int_equal(call_number(&call, "count", 0), 3);
	assert_int_equal(PARSE("sim", "-vv"), 0);
	assert_int_equal(call.nvalues, 2);
}

static void words_with_a_sign_are_arguments_where_a_command_takes_them(void **state)
{
	(void)state;
	assert_int_equal(PARSE("tag", "run-1", "+a", "-b", "-h", "--output", "json"), 0);
	assert_int_equal(call.nargs, 4);
	assert_string_equal(call_arg(&call, 2), "-b");
	assert_int_equal(call.output, OUTPUT_JSON);
	assert_false(call.help);
	assert_int_equal(PARSE("tag", "-h"), 0);
	assert_true(call.help);
	assert_int_equal(PARSE("tag", "-b", "run-1"), -1);
}

static void the_last_value_counts(void **state)
{
	(void)state;
	assert_int_equal(PARSE("ps", "--limit", "3", "--limit", "5", "--output", "json", "--output",
			       "table"),
			 0);
	assert_int_equal(call_number(&call, "limit", 0), 5);
	assert_int_equal(call.output, OUTPUT_TABLE);
	assert_null(call_text(&call, "all"));
}

static void an_unknown_option_is_refused_with_the_nearest_one(void **state)
{
	(void)state;
	assert_int_equal(PARSE("ps", "--al"), -1);
	refused("unknown option '--al': did you mean '--all'?");
	assert_int_equal(PARSE("ps", "--outptu=json"), -1);
	refused("unknown option '--outptu': did you mean '--output'?");
	assert_int_equal(PARSE("ps", "--zzzzzz"), -1);
	refused("unknown option '--zzzzzz': see 'regatta ps --help'");
	assert_int_equal(PARSE("ps", "-x"), -1);
	refused("unknown option '-x': see 'regatta ps --help'");
}

static void a_hidden_option_is_never_suggested(void **state)
{
	(void)state;
	assert_int_equal(PARSE("master", "--backgroun"), -1);
	refused("unknown option '--backgroun': see 'regatta master --help'");
}

static void a_value_that_does_not_fit_is_refused(void **state)
{
	(void)state;
	assert_int_equal(PARSE("run", "-n", "four"), -1);
	refused("--count needs a whole number, not 'four'");
	assert_int_equal(PARSE("run", "-n", "0"), -1);
	refused("--count must be between 1 and 10000, not 0");
	assert_int_equal(PARSE("run", "-n"), -1);
	refused("--count needs a value: --count N");
	assert_int_equal(PARSE("run", "--name"), -1);
	refused("--name needs a value: --name NAME");
	assert_int_equal(PARSE("run", "--detach=yes"), -1);
	refused("--detach takes no value");
	assert_int_equal(PARSE("ps", "--output", "jsn"), -1);
	refused("--output cannot be 'jsn': did you mean 'json'?");
	assert_int_equal(PARSE("ps", "--output", "xml"), -1);
	refused("--output cannot be 'xml': choose from table, json");
}

static void arguments_are_counted(void **state)
{
	(void)state;
	assert_int_equal(PARSE("rerun", "--follow"), -1);
	refused("RUN is missing: see 'regatta rerun --help'");
	assert_int_equal(PARSE("kill", "a", "b", "c"), 0);
	assert_int_equal(call.nargs, 3);
	assert_int_equal(PARSE("status", "a", "b"), -1);
	refused("unexpected argument 'b': see 'regatta status --help'");
	assert_int_equal(PARSE("run", "python3", "train.py"), -1);
	refused("unexpected argument 'train.py': a command goes after '--'");
	assert_int_equal(PARSE("completion", "powershell"), -1);
	refused("SHELL cannot be 'powershell': choose from bash, zsh, fish");
	assert_int_equal(PARSE("completion", "bsh"), -1);
	refused("SHELL cannot be 'bsh': did you mean 'bash'?");
}

static void asking_for_help_needs_no_arguments(void **state)
{
	(void)state;
	assert_int_equal(PARSE("kill", "-h"), 0);
	assert_true(call.help);
	assert_int_equal(PARSE("kill", "--help", "--now"), 0);
	assert_true(call.help);
}

static void a_single_dash_is_an_argument(void **state)
{
	(void)state;
	assert_int_equal(PARSE("init", "-o", "-"), 0);
	assert_string_equal(call_text(&call, "to"), "-");
	assert_int_equal(PARSE("status", "-"), 0);
	assert_string_equal(call_arg(&call, 0), "-");
}

/* Every row can be parsed, helped with and completed. */
static void the_table_is_whole(void **state)
{
	(void)state;
	for (const struct command *c = cli_commands; c->name; c++) {
		assert_non_null(c->help);
		assert_non_null(c->run);
		assert_true(!c->group || c->example);
		assert_ptr_equal(cli_find_command(str_from(c->name)), c);
		bool optional = false;
		for (const struct cli_argument *a = c->arguments; a && a->name; a++) {
			assert_false(optional && a->required);
			assert_false(a->many && a[1].name);
			optional = optional || !a->required;
		}
		for (const struct cli_option *o = c->options; o && o->name; o++) {
			assert_non_null(o->help);
			assert_true(!o->number || (o->value && o->min < o->max));
			for (const struct cli_option *p = o + 1; p->name; p++) {
				assert_string_not_equal(o->name, p->name);
				assert_true(!o->letter || o->letter != p->letter);
			}
			for (const struct cli_option *p = cli_common_options; p->name; p++)
				assert_string_not_equal(o->name, p->name);
		}
	}
	assert_null(cli_find_command(STR("nosuch")));
}

static int forget(void **state)
{
	(void)state;
	call_release(&call);
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(options_may_stand_anywhere_before_two_dashes),
		cmocka_unit_test(what_follows_two_dashes_is_the_command_whatever_it_looks_like),
		cmocka_unit_test(two_dashes_end_the_options_of_other_commands),
		cmocka_unit_test(flags_of_one_letter_may_be_bundled),
		cmocka_unit_test(words_with_a_sign_are_arguments_where_a_command_takes_them),
		cmocka_unit_test(the_last_value_counts),
		cmocka_unit_test(an_unknown_option_is_refused_with_the_nearest_one),
		cmocka_unit_test(a_hidden_option_is_never_suggested),
		cmocka_unit_test(a_value_that_does_not_fit_is_refused),
		cmocka_unit_test(arguments_are_counted),
		cmocka_unit_test(asking_for_help_needs_no_arguments),
		cmocka_unit_test(a_single_dash_is_an_argument),
		cmocka_unit_test(the_table_is_whole),
	};

	return cmocka_run_group_tests_name("arguments", tests, NULL, forget);
}
