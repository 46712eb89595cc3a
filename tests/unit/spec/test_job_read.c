#include "../spec/golden.h"

#include <sys/stat.h>
#include <sys/wait.h>

struct result {
	struct job job;
	struct doc *doc;
	const char *text;
	struct err err;
	int rc;
};

static struct arena *arena;

static int setup(void **state)
{
	arena = arena_new();
	return unit_make_dir(state);
}

static int teardown(void **state)
{
	arena = arena_free(arena);
	return unit_remove_dir(state);
}

static const char *write_file(void **state, const char *name, const char *text)
{
	const char *path = unit_path(state, name);

	assert_int_equal(file_write_atomic(path, str_from(text), 0644, false, NULL), 0);
	return path;
}

static struct result read_with(const char *path, const char *const *sets, size_t nsets)
{
	struct result r = {0};
	const struct job_options opts = {.sets = sets, .nsets = nsets};

	r.rc = job_read(path, &opts, arena, &r.job, &r.doc, &r.text, &r.err);
	assert_non_null(r.text);
	return r;
}

static struct result read_one_set(void **state, const char *text, const char *set)
{
	return read_with(write_file(state, "job.toml", text), &set, 1);
}

static struct result from_argv(const char *name, int64_t count, const char *const *argv,
			       size_t argc, const char *const *sets, size_t nsets)
{
	struct result r = {0};
	const struct job_options opts = {.sets = sets, .nsets = nsets};

	r.rc = job_from_argv(name, count, argv, argc, &opts, arena, &r.job, &r.doc, &r.text,
			     &r.err);
	return r;
}

/* Files. */

static void a_good_file_gives_job_tree_and_directory(void **state)
{
	char *dir = realpath(*state, NULL);
	struct result r = read_with(write_file(state, "job.toml", "command = 'echo a'\n"), NULL, 0);

	assert_int_equal(r.rc, 0);
	assert_string_equal(r.text, "");
	assert_string_equal(r.job.command.v[1], "a");
	assert_non_null(doc_get(r.doc, "command"));
	assert_string_equal(r.job.base_dir, dir);
	free(dir);
}

static void the_directory_is_absolute_however_the_file_is_named(void **state)
{
	char *dir = realpath(*state, NULL), before[4096];

	write_file(state, "job.toml", "command = 'x'\n");
	assert_int_equal(mkdir(unit_path(state, "sub"), 0755), 0);
	assert_non_null(getcwd(before, sizeof(before)));
	assert_int_equal(chdir(*state), 0);
	static const char *const names[] = {"job.toml", "./job.toml", "sub/../job.toml",
					    ".//job.toml"};
	for (size_t i = 0; i < COUNT(names); i++) {
		struct result r = read_with(names[i], NULL, 0);
		assert_int_equal(r.rc, 0);
		assert_string_equal(r.job.base_dir, dir);
	}
	assert_int_equal(chdir(before), 0);
	free(dir);
}

static void a_file_in_the_root_is_in_the_root(void **state)
{
	const char *path = "/regatta-unit-test-job.toml";
	(void)state;

	if (file_write_atomic(path, STR("command = 'x'\n"), 0644, false, NULL) < 0) {
		print_message("# skipped: not root\n");
		skip();
	}
	struct result r = read_with(path, NULL, 0);
	unlink(path);
	assert_int_equal(r.rc, 0);
	assert_string_equal(r.job.base_dir, "/");
}

static void a_missing_file_is_not_found(void **state)
{
	char want[600];

	struct result r = read_with(unit_path(state, "no.toml"), NULL, 0);
	snprintf(want, sizeof(want), "job file '%s' does not exist", unit_path(state, "no.toml"));
	assert_int_equal(r.rc, -1);
	assert_int_equal(r.err.kind, ERR_NOT_FOUND);
	assert_string_equal(r.err.msg, want);
	assert_string_equal(r.text, "");
}

static void a_file_below_a_file_is_not_found(void **state)
{
	write_file(state, "job.toml", "command = 'x'\n");
	struct result r = read_with(unit_path(state, "job.toml/job.toml"), NULL, 0);
	assert_int_equal(r.err.kind, ERR_NOT_FOUND);
}

static void a_directory_is_no_job_file(void **state)
{
	struct result r = read_with(*state, NULL, 0);

	assert_int_equal(r.rc, -1);
	assert_int_equal(r.err.kind, ERR_INVALID);
	assert_non_null(strstr(r.err.msg, "is a directory: give the job file in it"));
}

static void a_suite_is_named_with_its_command(void **state)
{
	char want[600];
	const char *path =
		write_file(state, "s.toml", "[suite]\njob = 'j.toml'\n[matrix]\n'env.A' = ['1']\n");
	struct result r = read_with(path, NULL, 0);

	snprintf(want, sizeof(want), "%s:1:1: this is a suite, not a job: regatta suite run %s\n",
		 path, path);
	assert_int_equal(r.rc, -1);
	assert_int_equal(r.err.kind, ERR_INVALID);
	assert_string_equal(r.text, want);
}

/* As somebody else, because root may read everything. */
static enum err_kind kind_for_nobody(const char *path)
{
	pid_t pid = fork();
	int status;

	assert_true(pid >= 0);
	if (pid == 0) {
		if (geteuid() == 0 && seteuid(65534) < 0)
			_exit(100);
		_exit((int)read_with(path, NULL, 0).err.kind);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status));
	return (enum err_kind)WEXITSTATUS(status);
}

static void an_unreadable_file_is_denied(void **state)
{
	const char *path = write_file(state, "job.toml", "command = 'x'\n");

	assert_int_equal(chmod(*state, 0755), 0);
	assert_int_equal(chmod(path, 0), 0);
	assert_int_equal(kind_for_nobody(path), ERR_DENIED);
}

static void a_file_in_a_closed_directory_is_denied(void **state)
{
	const char *path = write_file(state, "job.toml", "command = 'x'\n");

	assert_int_equal(chmod(*state, 0), 0);
	assert_int_equal(kind_for_nobody(path), ERR_DENIED);
	assert_int_equal(chmod(*state, 0755), 0);
}

static void a_huge_file_is_bad_input(void **state)
{
	CLEANUP(buf_release) struct buf text;

	buf_init(&text, 2 * DOC_MAX_BYTES);
	while (text.n <= DOC_MAX_BYTES)
		buf_addz(&text, "# a comment that says nothing\n");
	struct result r = read_with(write_file(state, "job.toml", text.p), NULL, 0);
	assert_int_equal(r.err.kind, ERR_INVALID);
	assert_non_null(strstr(r.err.msg, "is larger than 1048576 bytes"));
}

static void a_directory_that_was_removed_is_an_error(void **state)
{
	static const char *const argv[] = {"true"};
	char before[4096];

	assert_non_null(getcwd(before, sizeof(before)));
	assert_int_equal(mkdir(unit_path(state, "gone"), 0755), 0);
	assert_int_equal(chdir(unit_path(state, "gone")), 0);
	assert_int_equal(rmdir(unit_path(state, "gone")), 0);
	struct result r = from_argv(NULL, 1, argv, 1, NULL, 0);
	assert_int_equal(chdir(before), 0);
	assert_int_equal(r.rc, -1);
	assert_int_equal(r.err.kind, ERR_NOT_FOUND);
	assert_memory_equal(r.err.msg, "directory '.': ", 15);
}

static void an_error_needs_no_place_to_go(void **state)
{
	const char *text;
	struct job job;
	struct doc *doc;

	assert_int_equal(job_read(unit_path(state, "no.toml"), &(struct job_options){0}, arena,
				  &job, &doc, &text, NULL),
			 -1);
	assert_int_equal(job_read(write_file(state, "job.toml", "x"), &(struct job_options){0},
				  arena, &job, &doc, &text, NULL),
			 -1);
	assert_string_not_equal(text, "");
}

static void a_parse_error_is_a_line_with_its_place(void **state)
{
	char want[600];

	struct result r =
		read_with(write_file(state, "job.toml", "name = 'x'\ncount = = 2\n"), NULL, 0);
	assert_int_equal(r.rc, -1);
	assert_int_equal(r.err.kind, ERR_INVALID);
	snprintf(want, sizeof(want), "%s:2:9: ", unit_path(state, "job.toml"));
	assert_memory_equal(r.text, want, strlen(want));
	snprintf(want, sizeof(want), "%s has 1 problem", unit_path(state, "job.toml"));
	assert_string_equal(r.err.msg, want);
}

static void an_unknown_ending_lists_the_known_ones(void **state)
{
	struct result r = read_with(write_file(state, "job.txt", "command = 'x'\n"), NULL, 0);

	assert_int_equal(r.err.kind, ERR_INVALID);
	assert_non_null(strstr(r.text, ".toml, .yaml, .yml or .json"));
}

static void problems_are_counted_in_the_summary(void **state)
{
	char want[600];

	struct result r =
		read_with(write_file(state, "job.toml", "cuont = 2\ncommand = 5\n"), NULL, 0);
	assert_int_equal(r.err.kind, ERR_INVALID);
	snprintf(want, sizeof(want), "%s has 2 problems", unit_path(state, "job.toml"));
	assert_string_equal(r.err.msg, want);
}

static void on_failure_the_outputs_are_not_touched(void **state)
{
	struct job job = {.name = "untouched"};
	struct doc *doc = NULL;
	const char *text;

	const char *path = write_file(state, "job.toml", "cuont = 2\n");
	assert_int_equal(job_read(path, &(struct job_options){0}, arena, &job, &doc, &text, NULL),
			 -1);
	assert_string_equal(job.name, "untouched");
	assert_null(doc);
}

static void a_problem_as_long_as_the_file_is_cut(void **state)
{
	CLEANUP(buf_release) struct buf text;

	buf_init(&text, 1 << 20);
	buf_addz(&text, "command = 'x'\n[[data]]\nsrc = 'a'\npath = '../");
	for (int i = 0; i < 100000; i++)
		buf_addz(&text, "\xc3\xa9");
	buf_addz(&text, "'\n");
	struct result r = read_with(write_file(state, "job.toml", text.p), NULL, 0);
	assert_true(strlen(r.text) < 1500);
	assert_non_null(strstr(r.text, "data: path '../\xc3\xa9"));
	assert_non_null(strstr(r.text, "\xc3\xa9...\n"));
	assert_true(str_is_utf8(str_from(r.text)));
	assert_null(strstr(r.text, "\\x"));
}

/* Settings. */

static void a_setting_replaces_what_the_file_says(void **state)
{
	struct result r = read_one_set(state, "command = 'x'\n[roles.trainer]\ncount = 2\n",
				       "roles.trainer.count=8");

	assert_int_equal(r.rc, 0);
	assert_int_equal(job_role(&r.job, 0)->count, 8);
	assert_int_equal(doc_int(doc_get(doc_get(r.doc, "roles"), "trainer"), "count", 0), 8);
}

static void a_setting_may_bring_keys_that_the_file_lacks(void **state)
{
	static const char *const sets[] = {
		"timeouts.grace=1m", "metrics.acc=acc=(.*)", "env.BATCH=7",  "max_cost=1.5",
		"output.keep=['a']", "command=echo a b",     "name=\"123\"", " sample_every =0",
	};
	struct result r =
		read_with(write_file(state, "job.toml", "command = 'x'\n"), sets, COUNT(sets));

	assert_string_equal(r.text, "");
	assert_int_equal(r.rc, 0);
	assert_int_equal(r.job.timeouts.grace_ms, 60000);
	assert_string_equal(((struct metric_spec *)r.job.metrics.v)->pattern, "acc=(.*)");
	assert_string_equal(r.job.env.v[0].value, "7");
	assert_true(r.job.max_cost == 1.5);
	assert_string_equal(r.job.output.keep.v[0], "a");
	assert_int_equal(r.job.command.n, 3);
	assert_string_equal(r.job.name, "123");
	assert_int_equal(r.job.sample_ms, 0);
}

static void the_last_of_two_settings_wins(void **state)
{
	static const char *const sets[] = {"count=2", "count=3"};
	struct result r = read_with(write_file(state, "job.toml", "command = 'x'\n"), sets, 2);

	assert_int_equal(r.job.count, 3);
}

/* Rule: what a later check finds wrong with a setting is printed as the setting's. */
static void the_place_of_a_setting_is_the_setting(void **state)
{
	static const char *const sets[] = {"engine=aws.ec2"};
	const struct job_options opts = {.sets = sets, .nsets = COUNT(sets)};
	struct result r = read_one_set(state, "command = 'x'\nengine = 'local'\n", sets[0]);
	CLEANUP(buf_release) struct buf out = {0};
	struct problems ps = {0};

	assert_int_equal(r.rc, 0);
	assert_int_equal(doc_get(r.doc, "command")->pos.line, 1);
	buf_init(&out, 4096);
	problems_add(&ps, arena, r.job.engine_pos, "bad");
	problems_add(&ps, arena, (struct doc_pos){2, 1}, "worse");
	problems_warn(&ps, arena, r.job.engine_pos, "odd");
	job_print_warnings(&opts, &ps, "f", &out);
	job_print_problems(&opts, &ps, "f", &out);
	buf_addc(&out, '\0');
	assert_string_equal(out.p, "--set engine: warning: odd\n--set engine: bad\nf:2:1: worse\n");
}

static void a_problem_of_a_setting_is_reported_by_the_setting(void **state)
{
	static const char *const sets[] = {"count=zero",      "max_runtime=1h",
					   "roles.x.cuont=3", "timeouts.launch=1ms",
					   "max_cost=true",   "output.keep=['a', 7]"};
	const char *path = write_file(state, "job.toml", "command = 5\n");

	struct result r = read_with(path, sets, COUNT(sets));
	assert_int_equal(r.rc, -1);
	assert_non_null(strstr(r.text, "--set count: count: expected a whole number"));
	assert_non_null(strstr(
		r.text,
		"--set roles.x.cuont: unknown key 'cuont' in roles.x: did you mean 'count'?"));
	assert_non_null(strstr(r.text, "--set timeouts.launch: timeouts.launch: "));
	/* The place that TOML gives these values is one of no file. */
	assert_non_null(strstr(r.text, "--set max_cost: max_cost: expected a number"));
	assert_non_null(strstr(r.text, "--set output.keep: output.keep[1]: expected a string"));
	assert_null(strstr(r.text, "max_runtime"));
	assert_non_null(strstr(r.text, ":1:11: command: expected"));
}

static void a_setting_is_key_and_value(void **state)
{
	static const char *const bad[] = {"count", "=3", "", " =3"};

	for (size_t i = 0; i < COUNT(bad); i++) {
		struct result r = read_one_set(state, "command = 'x'\n", bad[i]);
		assert_int_equal(r.rc, -1);
		assert_non_null(strstr(
			r.text, ": expected key=value, as in --set roles.trainer.count=8\n"));
	}
}

static void a_bad_path_says_so(void **state)
{
	struct result r = read_one_set(state, "command = 'x'\n", "command.x=3");
	assert_string_equal(
		r.text, "--set command.x: key 'command.x': 'command' is a string, not a table\n");
	r = read_one_set(state, "command = 'x'\n", "a..b=3");
	assert_int_equal(r.rc, -1);
	assert_memory_equal(r.text, "--set a..b: key 'a..b': ", 24);
}

static void a_mistyped_role_does_not_become_a_new_one(void **state)
{
	struct result r =
		read_one_set(state, "command = 'x'\n[roles.trainer]\n", "roles.trianer.count=8");
	assert_string_equal(
		r.text,
		"--set roles.trianer.count: there is no role 'trianer': did you mean 'trainer'?\n");
	r = read_one_set(state, "command = 'x'\n[roles.trainer]\n", "roles.zzzzzzzzzz.count=8");
	assert_string_equal(
		r.text,
		"--set roles.zzzzzzzzzz.count: there is no role 'zzzzzzzzzz' in the file\n");
	r = read_one_set(state, "command = 'x'\n[roles.trainer]\n", "roles.\"trainer\".count=8");
	assert_int_equal(r.rc, 0);
	assert_int_equal(job_role(&r.job, 0)->count, 8);
}

static void roles_may_be_set_where_there_are_none(void **state)
{
	struct result r = read_one_set(state, "command = 'x'\n", "roles.a.count=3");

	assert_int_equal(r.rc, 0);
	assert_int_equal(job_role(&r.job, 0)->count, 3);
	r = read_one_set(state, "command = 'x'\n[roles.old]\n", "roles={a={count=4},b={}}");
	assert_int_equal(r.rc, 0);
	assert_int_equal(r.job.roles.n, 2);
}

static void a_value_cannot_smuggle_in_other_keys(void **state)
{
	struct result r = read_one_set(state, "command = 'x'\n", "env.A=1\nname = 2");

	assert_int_equal(r.rc, 0);
	assert_string_equal(r.job.env.v[0].value, "1\nname = 2");
	assert_string_equal(r.job.name, JOB_DEFAULT_NAME);
	r = read_one_set(state, "command = 'x'\n", "env.A=");
	assert_string_equal(r.job.env.v[0].value, "");
}

static void a_setting_is_utf8_and_shown_harmless(void **state)
{
	struct result r = read_one_set(state, "command = 'x'\n", "name=\xff");
	assert_string_equal(r.text, "--set name: the text is not UTF-8\n");
	r = read_one_set(state, "command = 'x'\n", "\x1b[31m=1");
	assert_null(strchr(r.text, '\x1b'));
	r = read_one_set(state, "command = 'x'\n", "name=a\x1b[31m");
	assert_null(strchr(r.text, '\x1b'));
}

static void the_number_of_settings_is_limited(void **state)
{
	const char *sets[257];

	for (size_t i = 0; i < COUNT(sets); i++)
		sets[i] = "count=2";
	const char *path = write_file(state, "job.toml", "command = 'x'\n");
	assert_int_equal(read_with(path, sets, 256).rc, 0);
	struct result r = read_with(path, sets, 257);
	assert_int_equal(r.rc, -1);
	assert_string_equal(r.err.msg, "257 times --set: at most 256; write a file");
}

static void settings_on_a_file_that_is_no_table_change_nothing(void **state)
{
	const char *set = "count=2";
	struct result r = read_with(write_file(state, "job.json", "[1]"), &set, 1);

	assert_int_equal(r.rc, -1);
	assert_non_null(strstr(r.text, "a job file is a table of keys, not a list"));
}

/* The command line. */

static void a_command_line_is_a_job(void **state)
{
	static const char *const argv[] = {"python3", "train.py", "--lr", "0.1 x", ""};
	char cwd[4096];
	(void)state;

	struct result r = from_argv("ctr", 4, argv, COUNT(argv), NULL, 0);
	assert_int_equal(r.rc, 0);
	assert_string_equal(r.job.name, "ctr");
	assert_int_equal(r.job.count, 4);
	assert_int_equal(r.job.command.n, 5);
	assert_string_equal(r.job.command.v[3], "0.1 x");
	assert_string_equal(r.job.command.v[4], "");
	assert_string_equal(r.job.base_dir, getcwd(cwd, sizeof(cwd)));
	r = from_argv(NULL, 1, argv, 1, NULL, 0);
	assert_string_equal(r.job.name, JOB_DEFAULT_NAME);
}

static void a_command_line_takes_settings(void **state)
{
	static const char *const argv[] = {"true"};
	static const char *const sets[] = {"max_runtime=1m", "env.A=b"};
	(void)state;

	struct result r = from_argv(NULL, 2, argv, 1, sets, 2);
	assert_int_equal(r.rc, 0);
	assert_int_equal(r.job.max_runtime_ms, 60000);
	assert_string_equal(r.job.env.v[0].name, "A");
}

static void a_bad_command_line_says_what(void **state)
{
	static const char *const argv[] = {"true", "\xff\xfe"};
	static const char *const sets[] = {"cuont=3"};
	(void)state;

	struct result r = from_argv("Bad Name", 0, argv, 2, sets, 1);
	assert_int_equal(r.rc, -1);
	assert_int_equal(r.err.kind, ERR_INVALID);
	assert_string_equal(r.err.msg, "command line has 4 problems");
	assert_non_null(strstr(
		r.text, "command line: word 2 of the command is not UTF-8: put it in a script\n"));
	assert_non_null(strstr(r.text, "command line: count: "));
	assert_non_null(strstr(r.text, "command line: name: "));
	assert_non_null(
		strstr(r.text, "--set cuont: unknown key 'cuont': did you mean 'count'?\n"));
	r = from_argv(NULL, 1, argv, 0, NULL, 0);
	assert_string_equal(r.text, "command line: command is empty\n");
}

#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(a_good_file_gives_job_tree_and_directory),
		T(the_directory_is_absolute_however_the_file_is_named),
		T(a_file_in_the_root_is_in_the_root),
		T(a_missing_file_is_not_found),
		T(a_file_below_a_file_is_not_found),
		T(a_directory_is_no_job_file),
		T(a_suite_is_named_with_its_command),
		T(an_unreadable_file_is_denied),
		T(a_file_in_a_closed_directory_is_denied),
		T(a_huge_file_is_bad_input),
		T(a_directory_that_was_removed_is_an_error),
		T(an_error_needs_no_place_to_go),
		T(a_parse_error_is_a_line_with_its_place),
		T(an_unknown_ending_lists_the_known_ones),
		T(problems_are_counted_in_the_summary),
		T(on_failure_the_outputs_are_not_touched),
		T(a_problem_as_long_as_the_file_is_cut),
		T(a_setting_replaces_what_the_file_says),
		T(a_setting_may_bring_keys_that_the_file_lacks),
		T(the_last_of_two_settings_wins),
		T(the_place_of_a_setting_is_the_setting),
		T(a_problem_of_a_setting_is_reported_by_the_setting),
		T(a_setting_is_key_and_value),
		T(a_bad_path_says_so),
		T(a_mistyped_role_does_not_become_a_new_one),
		T(roles_may_be_set_where_there_are_none),
		T(a_value_cannot_smuggle_in_other_keys),
		T(a_setting_is_utf8_and_shown_harmless),
		T(the_number_of_settings_is_limited),
		T(settings_on_a_file_that_is_no_table_change_nothing),
		T(a_command_line_is_a_job),
		T(a_command_line_takes_settings),
		T(a_bad_command_line_says_what),
	};

	return cmocka_run_group_tests_name("job_read", tests, NULL, NULL);
}
