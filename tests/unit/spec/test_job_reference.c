/* What is printed from the schema, and the files that `regatta init` writes. */
#include "../spec/golden.h"

#include "plan/plan.h"

static void check_explain(const char *key, const char *file)
{
	CLEANUP(arena_freep) struct arena *a = arena_new();
	CLEANUP(buf_release) struct buf out;
	struct err err = {0};

	buf_init(&out, GOLDEN_MAX);
	if (schema_explain(plan_job_schema(a), str_from(key), &out, &err) < 0)
		fail_msg("explain %s: %s", key, err.msg);
	golden_check(golden_path(a, arena_printf(a, "golden/explain/%s.txt", file)), buf_str(&out));
}

static void explain_prints_what_the_golden_files_say(void **state)
{
	static const struct {
		const char *key, *file;
	} cases[] = {
		{"", "job"},
		{"command", "command"},
		{"engine", "engine"},
		{"roles", "roles"},
		{"roles.trainer.spot", "roles.spot"},
		{"roles.trainer.ready_when", "roles.ready_when"},
		{"roles.trainer.port", "roles.port"},
		{"metrics", "metrics"},
		{"metrics.loss.better", "metrics.better"},
		{"data.shard", "data.shard"},
		{"output", "output"},
		{"timeouts", "timeouts"},
		{"timeouts.lease", "timeouts.lease"},
	};
	(void)state;

	for (size_t i = 0; i < COUNT(cases); i++)
		check_explain(cases[i].key, cases[i].file);
}

static void explain_of_an_unknown_key_names_the_nearest(void **state)
{
	CLEANUP(buf_release) struct buf out;
	struct err err = {0};
	(void)state;

	buf_init(&out, GOLDEN_MAX);
	assert_int_equal(schema_explain(&job_schema, STR("roles.trainer.cuont"), &out, &err), -1);
	assert_int_equal(err.kind, ERR_NOT_FOUND);
	assert_non_null(strstr(err.msg, "count"));
}

static void the_reference_page_is_what_the_schema_prints(void **state)
{
	CLEANUP(arena_freep) struct arena *a = arena_new();
	CLEANUP(buf_release) struct buf out;
	(void)state;

	buf_init(&out, GOLDEN_MAX);
	schema_reference(plan_job_schema(a), &out);
	assert_false(out.overflow);
	golden_check(arena_printf(a, "%s/docs/job-file.md", golden_env("REGATTA_SOURCE_ROOT")),
		     buf_str(&out));
}

/* Every row: a name, help that is a sentence, an example that loads. */

static void example_loads(const struct schema *sc, const char *where, const struct field *f)
{
	CLEANUP(arena_freep) struct arena *a = arena_new();
	struct problems ps = {0};
	struct err err = {0};
	const char *text = f->example;
	struct doc *doc;

	/* The examples of sub-tables are whole tables. */
	if (toml_parse(str_from(text), a, &doc, &err) < 0)
		fail_msg("example of %s%s: %s", where, f->name, err.msg);
	if (!doc_get(doc, f->name))
		fail_msg("example of %s%s does not have the key", where, f->name);
	void *room = arena_alloc(a, sc->size);
	schema_load(sc, doc, room, a, &ps);
	for (size_t i = 0; i < ps.n; i++)
		if (!strstr(ps.v[i].text, "missing key"))
			fail_msg("example of %s%s: %s", where, f->name, ps.v[i].text);
}

static size_t check_rows(const struct schema *sc, const char *where)
{
	size_t n = 0;

	for (const struct field *f = sc->fields; f->name; f++, n++) {
		size_t len = f->help ? strlen(f->help) : 0;
		if (len < 20 || f->help[len - 1] != '.')
			fail_msg("help of %s%s is no sentence", where, f->name);
		if (!f->example)
			fail_msg("%s%s has no example", where, f->name);
		example_loads(sc, where, f);
		if (f->sub) {
			CLEANUP(arena_freep) struct arena *a = arena_new();
			n += check_rows(f->sub, arena_printf(a, "%s%s.", where, f->name));
		}
	}
	return n;
}

static void every_key_has_help_and_an_example_that_loads(void **state)
{
	CLEANUP(arena_freep) struct arena *a = arena_new();
	(void)state;

	assert_int_equal(check_rows(plan_job_schema(a), ""),
			 50 + 25 + 6 + 2 + 4 + 3 + 2 + 9 + 3 + 22 + 17 + 9 + 2 * 3);
}

static void every_key_can_be_explained(void **state)
{
	CLEANUP(arena_freep) struct arena *keep = arena_new();
	const struct schema *job = plan_job_schema(keep);
	(void)state;

	for (const struct field *f = job->fields; f->name; f++) {
		assert_ptr_equal(schema_find(job, str_from(f->name)), f);
		for (const struct field *g = f->sub ? f->sub->fields : NULL; g && g->name; g++) {
			CLEANUP(arena_freep) struct arena *a = arena_new();
			const char *key = f->type == FIELD_MAP
						  ? arena_printf(a, "%s.x.%s", f->name, g->name)
						  : arena_printf(a, "%s.%s", f->name, g->name);
			assert_ptr_equal(schema_find(job, str_from(key)), g);
		}
	}
}

static void every_template_is_a_good_job_of_its_strategy(void **state)
{
	static const char *const names[] = {"single",  "roles", "pserver", "torch", "mpi",
					    "elastic", "tf",	"jax",	   "paddle"};
	(void)state;

	for (size_t i = 0; i < COUNT(names); i++) {
		CLEANUP(arena_freep) struct arena *a = arena_new();
		const char *text = job_template(names[i]);

		assert_non_null(text);
		struct job j = good_job(a, text);
		assert_string_equal(j.strategy, i == 0 ? "" : names[i]);
		assert_memory_equal(text, "# ", 2);
	}
}

static void there_is_no_template_of_another_name(void **state)
{
	(void)state;
	assert_null(job_template("nonsense"));
	assert_null(job_template(""));
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(explain_prints_what_the_golden_files_say),
		cmocka_unit_test(explain_of_an_unknown_key_names_the_nearest),
		cmocka_unit_test(the_reference_page_is_what_the_schema_prints),
		cmocka_unit_test(every_key_has_help_and_an_example_that_loads),
		cmocka_unit_test(every_key_can_be_explained),
		cmocka_unit_test(every_template_is_a_good_job_of_its_strategy),
		cmocka_unit_test(there_is_no_template_of_another_name),
	};

	golden_args(argc, argv);
	return cmocka_run_group_tests_name("job_reference", tests, NULL, NULL);
}
