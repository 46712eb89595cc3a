/* The suite file: its problems, and the variants that it is expanded to. */
#include "unit.h"

#include <string.h>

#include "base/alloc.h"
#include "base/arena.h"
#include "base/buf.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "plan/plan.h"
#include "spec/suite.h"

struct file {
	struct arena *a;
	struct suite s;
	struct problems ps;
	bool ok;
};

static struct file load(const char *text)
{
	struct file f = {.a = arena_new()};
	struct doc *doc;
	struct err err;

	assert_int_equal((*text == '{' ? json_parse : toml_parse)(str_from(text), f.a, &doc, &err),
			 0);
	f.ok = suite_load(doc, plan_job_schema(f.a), f.a, &f.s, &f.ps);
	return f;
}

static void done(struct file *f)
{
	arena_free(f->a);
}

static void loads(struct file *f, const char *text)
{
	*f = load(text);
	if (!f->ok)
		print_message("%s\n", f->ps.v[0].text);
	assert_true(f->ok);
}

static void has_problem(const char *text, const char *want, int line)
{
	struct file f = load(text);
	bool found = false;

	assert_false(f.ok);
	for (size_t i = 0; i < f.ps.n; i++)
		found = found || (strstr(f.ps.v[i].text, want) && f.ps.v[i].pos.line == line);
	if (!found)
		print_message("%d: %s\n", f.ps.v[0].pos.line, f.ps.v[0].text);
	assert_true(found);
	done(&f);
}

static void a_matrix_is_every_combination_without_what_is_excluded(void **state)
{
	static const char *const names[] = {"count=1,BATCH=128", "count=1,BATCH=256",
					    "count=8,BATCH=128"};
	struct file f;

	(void)state;
	loads(&f, "[suite]\njob = 'train.toml'\n[matrix]\n'roles.trainer.count' = [1, 8]\n"
		  "'env.BATCH' = ['128', '256']\n[[exclude]]\n'roles.trainer.count' = 8\n"
		  "'env.BATCH' = '256'\n");
	assert_int_equal(f.s.n, 3);
	assert_int_equal(f.s.nkeys, 2);
	for (int i = 0; i < 3; i++)
		assert_string_equal(f.s.variants[i].name, names[i]);
	assert_string_equal(suite_value_text(f.s.variants[2].values[0], f.a), "8");
	done(&f);
}

static void experiments_stand_beside_the_matrix(void **state)
{
	struct file f;

	(void)state;
	loads(&f, "[suite]\njob = 'train.toml'\nrepeats = 3\n[matrix]\ncount = [1, 2]\n"
		  "[[experiments]]\nname = 'old'\njob = 'old.toml'\nafter = 'warm'\n"
		  "[[experiments]]\nname = 'warm'\nset = { 'env.X' = 'y', count = 7 }\n");
	assert_int_equal(f.s.n, 4);
	assert_int_equal(suite_runs(&f.s), 12);
	assert_int_equal(f.s.nkeys, 2);
	assert_int_equal(f.s.naxes, 1);
	assert_string_equal(f.s.variants[2].name, "old");
	assert_string_equal(f.s.variants[2].job, "old.toml");
	assert_int_equal(f.s.variants[2].nafter, 1);
	assert_int_equal(f.s.variants[2].after[0], 3);
	assert_string_equal(f.s.variants[3].job, "train.toml");
	assert_int_equal(f.s.variants[3].values[0]->i, 7);
	assert_null(f.s.variants[2].values[0]);
	done(&f);
}

static void repeats_are_interleaved_or_as_written(void **state)
{
	static const char *const orders[] = {"interleaved", "as written"};
	static const int variants[2][4] = {{0, 1, 0, 1}, {0, 0, 1, 1}},
			 repeats[2][4] = {{0, 0, 1, 1}, {0, 1, 0, 1}};

	(void)state;
	for (int k = 0; k < 2; k++) {
		CLEANUP(freep)
		char *text = xasprintf("[suite]\njob = 'j.toml'\nrepeats = 2\norder = '%s'\n"
				       "[matrix]\ncount = [1, 2]\n",
				       orders[k]);
		struct file f;

		loads(&f, text);
		for (int i = 0; i < 4; i++) {
			int variant, repeat;

			suite_run_at(&f.s, i, &variant, &repeat);
			assert_int_equal(variant, variants[k][i]);
			assert_int_equal(repeat, repeats[k][i]);
		}
		done(&f);
	}
}

static void a_job_alone_is_a_suite_of_one_variant(void **state)
{
	struct file f;

	(void)state;
	loads(&f, "[suite]\njob = 'train.toml'\nparallel = 'auto'\n");
	assert_int_equal(f.s.n, 1);
	assert_string_equal(f.s.variants[0].name, "job");
	assert_int_equal(f.s.parallel, 0);
	done(&f);
}

static void names_of_variants_are_names_of_directories(void **state)
{
	struct file f;

	(void)state;
	loads(&f, "[suite]\njob = 'j.toml'\n[matrix]\n'env.P' = ['../x y', '.', '..', '_x_y']\n");
	assert_string_equal(f.s.variants[0].name, "P=.._x_y");
	assert_string_equal(f.s.variants[1].name, "P=.");
	done(&f);
	loads(&f, "[suite]\njob = 'j.toml'\n[matrix]\n'env.P' = ['a b', 'a_b']\n");
	assert_string_equal(f.s.variants[0].name, "P=a_b");
	assert_string_equal(f.s.variants[1].name, "variant-2");
	done(&f);
	loads(&f, "[suite]\njob = 'j.toml'\n[matrix]\n'env.P' = ['a b', 'a_b']\n"
		  "[[experiments]]\nname = 'variant-2'\n");
	assert_string_equal(f.s.variants[1].name, "variant-2_");
	assert_string_equal(f.s.variants[2].name, "variant-2");
	done(&f);
	CLEANUP(freep) char *words = xasprintf("%0300d", 0);
	CLEANUP(freep)
	char *text = xasprintf("[suite]\njob = 'j.toml'\n[matrix]\n'env.P' = ['%s']\n", words);
	loads(&f, text);
	assert_string_equal(f.s.variants[0].name, "variant-1");
	done(&f);
	loads(&f,
	      "[suite]\njob = 'j.toml'\n[matrix]\n'roles.a.count' = [1]\n'roles.b.count' = [2]\n");
	assert_string_equal(f.s.variants[0].name, "roles.a.count=1,roles.b.count=2");
	done(&f);
}

static void a_variant_is_compared_with_the_one_that_differs_in_the_baseline_only(void **state)
{
	struct file f;

	(void)state;
	loads(&f, "[suite]\njob = 'j.toml'\n[matrix]\ncount = [1, 2]\n'env.B' = ['x', 'y']\n"
		  "[report]\nbaseline = { count = 1 }\n");
	assert_int_equal(f.s.variants[0].baseline, -1);
	assert_int_equal(f.s.variants[1].baseline, -1);
	assert_int_equal(f.s.variants[2].baseline, 0);
	assert_int_equal(f.s.variants[3].baseline, 1);
	done(&f);
	loads(&f,
	      "[suite]\njob = 'j.toml'\n[matrix]\ncount = [1, 2]\n[[experiments]]\nname = 'old'\n"
	      "[report]\nbaseline = 'old'\n");
	assert_int_equal(f.s.variants[0].baseline, 2);
	assert_int_equal(f.s.variants[1].baseline, 2);
	assert_int_equal(f.s.variants[2].baseline, -1);
	done(&f);
}

static void the_values_of_a_variant_are_put_into_its_job(void **state)
{
	struct doc *job, *out;
	struct file f;
	struct err err;

	(void)state;
	loads(&f,
	      "[suite]\njob = 'j.toml'\n[matrix]\n'roles.trainer.count' = [4]\n'env.B' = ['x']\n");
	assert_int_equal(
		toml_parse(STR("[roles.trainer]\ncount = 1\ncommand = ['x']\n"), f.a, &job, &err),
		0);
	assert_int_equal(suite_apply(&f.s, &f.s.variants[0], job, f.a, &out, &err), 0);
	assert_string_equal(
		doc_json_text(f.a, out),
		"{\"roles\":{\"trainer\":{\"count\":4,\"command\":[\"x\"]}},\"env\":{\"B\":\"x\"}}");
	assert_string_equal(doc_json_text(f.a, job),
			    "{\"roles\":{\"trainer\":{\"count\":1,\"command\":[\"x\"]}}}");
	/* The job's values are its own: secrets are taken out of them in place. */
	assert_ptr_not_equal(doc_get(doc_get(out, "env"), "B"), f.s.variants[0].values[1]);
	done(&f);
	loads(&f, "[suite]\njob = 'j.toml'\n[matrix]\n'roles.trainer.count' = [4]\n");
	assert_int_equal(toml_parse(STR("roles = 3\n"), f.a, &job, &err), 0);
	assert_int_equal(suite_apply(&f.s, &f.s.variants[0], job, f.a, &out, &err), -1);
	assert_non_null(strstr(err.msg, "variant count=4"));
	done(&f);
}

static void every_problem_has_its_line(void **state)
{
	(void)state;
	has_problem("[suite]\njob = 'j.toml'\n[matrix]\n'roles.trainer.cuont' = [1]\n", "count", 4);
	has_problem("[suite]\njob = 'j.toml'\n[matrix]\ncount = 1\n", "must be a list of values",
		    4);
	has_problem("[suite]\njob = 'j.toml'\n[matrix]\ncount = []\n", "must be a list of values",
		    4);
	has_problem("[suite]\njob = 'j.toml'\n[matrix]\ncount = [1,\n1]\n", "the value 1 twice", 5);
	has_problem("[suite]\njob = 'j.toml'\n[matrix]\nname = ['a']\n", "names of their own", 4);
	has_problem("[suite]\njob = 'j.toml'\n[matrix]\n'env.MY_TOKEN' = ['a']\n", "is a secret",
		    4);
	has_problem("[suite]\njob = 'j.toml'\n[matrix]\nenv = [{A = 'b'}, {MY_TOKEN = 'a'}]\n",
		    "'env' has a secret", 4);
	has_problem("[suite]\njob = 'j.toml'\n[[experiments]]\nname = 'a'\n"
		    "set = {roles = {w = {env = {A_KEY = 'a'}}}}\n",
		    "'roles' has a secret", 5);
	has_problem(
		"{\"suite\":{\"job\":\"j\"},\n\"matrix\":{\"params\":[{\"a\":1},{\"a\":null}]}}",
		"'params' has a null", 2);
	has_problem("matrix = 3\n", "must be a table of keys", 1);
	has_problem("[matrix]\ncount = [1]\n", "needs suite.job", 1);
	has_problem("name = 'x'\n", "nothing to run", 1);
	has_problem("[suite]\njob = 'j.toml'\nexclude = 1\n", "unknown key 'exclude'", 3);
	has_problem("exclude = 1\n[suite]\njob = 'j.toml'\n", "must be a list of tables", 1);
	has_problem("exclude = [1]\n[suite]\njob = 'j.toml'\n", "an entry must be a table", 1);
	has_problem("[suite]\njob = 'j.toml'\n[matrix]\ncount = [1]\n[[exclude]]\ncount = 2\n",
		    "does not have the value 2", 6);
	has_problem("[suite]\njob = 'j.toml'\n[matrix]\ncount = [1]\n[[exclude]]\nenv = 2\n",
		    "the matrix has no 'env'", 6);
	has_problem("[suite]\njob = 'j.toml'\n[matrix]\ncount = [1]\n[[exclude]]\ncount = 1\n",
		    "leaves nothing", 5);
	has_problem("[[experiments]]\nname = 'a'\n", "has no job", 1);
	has_problem(
		"[suite]\njob = 'j.toml'\n[[experiments]]\nname = 'a'\n[[experiments]]\nname = 'a'\n",
		"the name 'a' is taken", 5);
	has_problem("[suite]\njob = 'j.toml'\n[[experiments]]\nname = 'a'\nset = 3\n",
		    "set must be a table", 5);
	has_problem("[suite]\njob = 'j.toml'\n[[experiments]]\nname = 'first'\n[[experiments]]\n"
		    "name = 'b'\nafter = 'frist'\n",
		    "did you mean 'first'?", 5);
	has_problem(
		"[suite]\njob = 'j.toml'\n[[experiments]]\nname = 'a'\nafter = 'quite-different'\n",
		"there is no experiment 'quite-different'", 3);
	has_problem("[suite]\njob = 'j.toml'\nparallel = 0\n", "suite.parallel must be", 3);
	has_problem("[suite]\njob = 'j.toml'\n[report]\nbaseline = 3\n", "report.baseline must be",
		    4);
	has_problem("[suite]\njob = 'j.toml'\n[report]\nbaseline = 'x'\n",
		    "there is no experiment 'x'", 4);
}

static void experiments_that_wait_for_each_other_are_named(void **state)
{
	(void)state;
	has_problem("[suite]\njob = 'j.toml'\n[[experiments]]\nname = 'a'\nafter = 'b'\n"
		    "[[experiments]]\nname = 'b'\nafter = 'c'\n"
		    "[[experiments]]\nname = 'c'\nafter = 'a'\n",
		    "wait for each other: a -> b -> c -> a", 3);
}

/* A matrix of so many axes, each with ten values, has this problem. */
static void ten_values_each(int axes, const char *problem)
{
	struct buf text;

	buf_init(&text, 1 << 20);
	buf_addz(&text, "[suite]\njob = 'j.toml'\n[matrix]\n");
	for (int axis = 0; axis < axes; axis++) {
		buf_printf(&text, "'env.A%d' = [", axis);
		for (int i = 0; i < 10; i++)
			buf_printf(&text, "%d,", i);
		buf_addz(&text, "]\n");
	}
	buf_addc(&text, '\0');
	has_problem(text.p, problem, 3);
	buf_release(&text);
}

static void a_sweep_that_is_too_large_is_refused_with_its_number(void **state)
{
	(void)state;
	ten_values_each(5, "the matrix has 100000 variants: at most 10000 in one suite");
	ten_values_each(20, "the matrix has more than 9223372036854775807 variants: at most");
	has_problem("[suite]\njob = 'j.toml'\nrepeats = 10000\n[matrix]\ncount = [1,2,3,4,5,6]\n",
		    "6 variants, 10000 times each, are 60000 runs: at most 50000", 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_matrix_is_every_combination_without_what_is_excluded),
		cmocka_unit_test(experiments_stand_beside_the_matrix),
		cmocka_unit_test(repeats_are_interleaved_or_as_written),
		cmocka_unit_test(a_job_alone_is_a_suite_of_one_variant),
		cmocka_unit_test(names_of_variants_are_names_of_directories),
		cmocka_unit_test(
			a_variant_is_compared_with_the_one_that_differs_in_the_baseline_only),
		cmocka_unit_test(the_values_of_a_variant_are_put_into_its_job),
		cmocka_unit_test(every_problem_has_its_line),
		cmocka_unit_test(experiments_that_wait_for_each_other_are_named),
		cmocka_unit_test(a_sweep_that_is_too_large_is_refused_with_its_number),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
