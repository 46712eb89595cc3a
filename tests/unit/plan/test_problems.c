/* What a bad job file says, from reading it to planning it: all its problems in one go. */
#include "../spec/golden.h"

#include "plan/plan.h"

static void add_plan_problems(const struct job *job, const char *file, struct arena *a,
			      struct buf *out)
{
	struct problems ps = {0};
	struct plan p;

	if (plan_make(job, NULL, a, &p, &ps))
		fail_msg("%s is a good job", file);
	problems_print(&ps, file, out);
}

static void say_what_is_wrong(const char *file, struct arena *a, struct buf *out)
{
	struct err err = {0};
	const char *text;
	struct job job;
	struct doc *doc;

	const struct job_rules rules = plan_job_rules();

	if (job_read(file, &(struct job_options){.rules = &rules}, a, &job, &doc, &text, &err) < 0)
		buf_printf(out, "%s%s\n", text, err.msg);
	else
		add_plan_problems(&job, file, a, out);
}

static void every_bad_file_says_all_that_is_wrong(void **state)
{
	CLEANUP(arena_freep) struct arena *a = arena_new();
	const char *dir = golden_path(a, "golden/errors");
	char before[4096], **names;
	size_t n, bad = 0;
	(void)state;

	/* Messages name the file as it was given: from within its directory they are short. */
	assert_non_null(getcwd(before, sizeof(before)));
	assert_int_equal(file_list_tree(dir, 1000, &names, &n, NULL), 0);
	assert_int_equal(chdir(dir), 0);
	for (size_t i = 0; i < n; i++) {
		CLEANUP(buf_release) struct buf out;

		if (str_ends(str_from(names[i]), STR(".txt")))
			continue;
		bad++;
		buf_init(&out, GOLDEN_MAX);
		say_what_is_wrong(names[i], a, &out);
		golden_check(arena_printf(a, "%s/%s.txt", dir, names[i]), buf_str(&out));
	}
	assert_int_equal(chdir(before), 0);
	file_list_free(names, n);
	assert_true(bad >= 12);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_bad_file_says_all_that_is_wrong),
	};

	golden_args(argc, argv);
	return cmocka_run_group_tests_name("problems", tests, NULL, NULL);
}
