/* Parameters of a job, and the texts in which they stand. */
#include "../spec/golden.h"

#include "spec/params.h"
#include "spec/secret.h"

static struct arena *arena;

static int setup(void **state)
{
	(void)state;
	arena = arena_new();
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	arena = arena_free(arena);
	return 0;
}

static void values_are_put_into_command_env_data_and_output(void **state)
{
	struct job j =
		good_job(arena, "command = ['x', '--lr=${params.lr}', '${params.m}${params.on}']\n"
				"source = '${params.m}'\n"
				"env = { A = 'a-${params.n}' }\n"
				"data = [{ src = 'd/${params.m}', path = 'in/${params.n}' }]\n"
				"output = { keep = ['${params.m}/**'] }\n"
				"params = { lr = 1e-3, n = 12, m = 'net', on = true }\n");
	const struct data_spec *d = j.data.v;

	(void)state;
	assert_string_equal(j.command.v[1], "--lr=1e-3");
	assert_string_equal(j.command.v[2], "nettrue");
	assert_string_equal(j.env.v[0].value, "a-12");
	assert_string_equal(d->src, "d/net");
	assert_string_equal(d->path, "in/12");
	assert_string_equal(j.output.keep.v[0], "net/**");
	assert_string_equal(j.source, "${params.m}");
	assert_string_equal(doc_json_text(arena, j.params),
			    "{\"lr\":1e-3,\"n\":12,\"m\":\"net\",\"on\":true}");
}

static void roles_have_them_in_command_and_env(void **state)
{
	struct job j = good_job(arena, "params = { n = 3 }\n"
				       "[roles.a]\n"
				       "command = 'run ${params.n}'\n"
				       "env = { N = '${params.n}' }\n");

	(void)state;
	assert_string_equal(job_role(&j, 0)->command.v[1], "3");
	assert_string_equal(job_role(&j, 0)->env.v[0].value, "3");
}

static void other_dollar_signs_and_the_doubled_one_are_left_alone(void **state)
{
	struct job j = good_job(arena, "command = ['sh', '${HOME} $$ ${param} $params.n', "
				       "'$${params.n} $$${params.n}', '${params.n}$${params.x}']\n"
				       "params = { n = 3 }\n");

	(void)state;
	assert_string_equal(j.command.v[1], "${HOME} $$ ${param} $params.n");
	assert_string_equal(j.command.v[2], "${params.n} $${params.n}");
	assert_string_equal(j.command.v[3], "3${params.x}");
	/* A value is not looked through again. */
	j = good_job(arena, "command = '${params.a}'\nparams = { a = '${params.b}', b = 'x' }\n");
	assert_string_equal(j.command.v[0], "${params.b}");
}

static void the_document_keeps_what_was_written(void **state)
{
	struct problems ps = {0};
	struct doc *doc;
	struct job job;

	(void)state;
	assert_int_equal(
		toml_parse(STR("command = '${params.n}'\nparams = { n = 3 }\n"), arena, &doc, NULL),
		0);
	assert_true(job_load(doc, NULL, arena, &job, &ps));
	assert_string_equal(doc_json_text(arena, doc),
			    "{\"command\":\"${params.n}\",\"params\":{\"n\":3}}");
}

static void an_unknown_parameter_is_a_problem_of_its_line(void **state)
{
	(void)state;
	one_problem("command = ['x',\n '${params.rl}']\nparams = { lr = 1 }\n", 2, 2,
		    "${params.rl}: there is no such parameter: did you mean 'lr'?");
	one_problem(
		"command = 'x'\nenv = { A = '${params.}' }\n", 2, 13,
		"${params.}: there is no such parameter: write it into [params], or $${params.} for "
		"the text itself");
	one_problem("command = 'x ${params.lr'\nparams = { lr = 1 }\n", 1, 11,
		    "there is a ${params. without its closing brace");
}

static void names_and_values_are_checked(void **state)
{
	(void)state;
	one_problem(
		"command = 'x'\nparams = { 'a b' = 1 }\n", 2, 12,
		"params: 'a b' cannot be the name of a parameter: use letters, digits, _ and -, "
		"at most 64");
	one_problem("command = 'x'\nparams = { l = [1] }\n", 2, 16,
		    "params.l: expected a string, a number, true or false, not a list");
	one_problem("command = 'x'\nparams = { l = nan }\n", 2, 16,
		    "params.l: expected a finite number, not nan");
	one_problem("command = 'x'\nparams = { l = -inf }\n", 2, 16,
		    "params.l: expected a finite number, not -inf");
	one_problem(
		"command = 'x'\nparams = { hub_token = 'x' }\n", 2, 12,
		"params.hub_token: this is the name of a secret, and parameters are shown: use env");
}

static void a_value_has_a_longest_text(void **state)
{
	const char *most = arena_printf(arena, "%0*d", PARAMS_MAX_TEXT, 0);

	(void)state;
	(void)good_job(arena, arena_printf(arena, "command = 'x'\nparams = { a = '%s' }\n", most));
	one_problem(arena_printf(arena, "command = 'x'\nparams = { a = '%s0' }\n", most), 2, 16,
		    "params.a is longer than 4096 bytes: put it in a file");
}

static void inputs_and_outputs_depend_on_parameters_that_they_name(void **state)
{
	static const struct {
		const char *text;
		bool depends;
	} cases[] = {
		{"command = '${params.n}'\ndata = [{ src = 'a' }]\noutput = { keep = ['b'] }\n",
		 false},
		{"data = [{ src = 'a-${params.n}' }]\n", true},
		{"output = { s3 = 's3://b/${params.n}' }\n", true},
		{"output = { keep = ['a', '${params.n}'] }\n", true},
	};
	struct doc *doc;

	(void)state;
	for (size_t i = 0; i < COUNT(cases); i++) {
		assert_int_equal(toml_parse(str_from(cases[i].text), arena, &doc, NULL), 0);
		assert_int_equal(params_in_inputs(doc), cases[i].depends);
	}
}

static void a_secret_is_kept_with_its_parameters_put_in(void **state)
{
	struct problems ps = {0};
	struct doc *doc;
	struct job job;

	(void)state;
	assert_int_equal(toml_parse(STR("command = 'x'\nenv = { A_KEY = 'k-${params.n}' }\n"
					"params = { n = 3 }\n"),
				    arena, &doc, NULL),
			 0);
	assert_true(job_load(doc, NULL, arena, &job, &ps));
	const struct doc *taken = secrets_take(&job, doc, NULL, arena);

	assert_string_equal(doc_json_text(arena, taken), "{\"env\":{\"A_KEY\":\"k-3\"}}");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(values_are_put_into_command_env_data_and_output),
		cmocka_unit_test(roles_have_them_in_command_and_env),
		cmocka_unit_test(other_dollar_signs_and_the_doubled_one_are_left_alone),
		cmocka_unit_test(the_document_keeps_what_was_written),
		cmocka_unit_test(an_unknown_parameter_is_a_problem_of_its_line),
		cmocka_unit_test(names_and_values_are_checked),
		cmocka_unit_test(a_value_has_a_longest_text),
		cmocka_unit_test(inputs_and_outputs_depend_on_parameters_that_they_name),
		cmocka_unit_test(a_secret_is_kept_with_its_parameters_put_in),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
