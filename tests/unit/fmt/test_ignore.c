/* What is left out of a source. */
#include "tar_test.h"

#include "fmt/ignore.h"

static bool left_out(const char *rules, const char *path, bool is_dir)
{
	struct ignore *ig = ignore_new();

	ignore_add(ig, str_from(rules), "");
	bool yes = ignore_matches(ig, path, is_dir);

	ignore_free(ig);
	return yes;
}

static void a_name_matches_at_any_depth_a_path_from_its_directory(void **state)
{
	(void)state;
	assert_true(left_out("*.o", "a.o", false));
	assert_true(left_out("*.o", "x/y/a.o", false));
	assert_false(left_out("*.o", "a.c", false));
	assert_true(left_out("/a.o", "a.o", false));
	assert_false(left_out("/a.o", "x/a.o", false));
	assert_true(left_out("x/*.o", "x/a.o", false));
	assert_false(left_out("x/*.o", "y/x/a.o", false));
	assert_true(left_out("**/x/*.o", "y/x/a.o", false));
	assert_true(left_out("data/**", "data/deep/b", false));
	assert_false(left_out("data/**", "data", true));
}

static void a_slash_at_the_end_is_for_directories(void **state)
{
	(void)state;
	assert_true(left_out("build/", "build", true));
	assert_true(left_out("build/", "x/build", true));
	assert_false(left_out("build/", "build", false));
}

static void comments_and_blanks_are_no_rules_and_the_last_match_decides(void **state)
{
	(void)state;
	assert_false(left_out("# a\n\n  \n!\n/\n", "a", false));
	assert_true(left_out("a \t\r\n", "a", false));
	assert_true(left_out("a\\ ", "a ", false));
	assert_false(left_out("*\n!keep", "keep", false));
	assert_true(left_out("!keep\n*", "keep", false));
}

static void rules_hold_below_their_file_and_can_be_taken_back(void **state)
{
	struct ignore *ig = ignore_new();

	(void)state;
	ignore_add(ig, STR("*.log"), "");
	size_t count = ignore_count(ig);
	ignore_add(ig, STR("/top\n!x.log"), "sub/");
	assert_true(ignore_matches(ig, "sub/top", false));
	assert_false(ignore_matches(ig, "top", false));
	assert_false(ignore_matches(ig, "sub/x.log", false));
	assert_true(ignore_matches(ig, "x.log", false));
	ignore_cut(ig, count);
	assert_true(ignore_matches(ig, "sub/x.log", false));
	assert_false(ignore_matches(ig, "sub/top", false));
	ignore_free(ig);
	assert_null(ignore_free(NULL));
}

static void a_source_is_packed_without_what_is_left_out(void **state)
{
	CLEANUP(close_fdp) int fd = temp_fd(state);
	struct err err = {0};
	size_t n = 0;

	put_file(state, "src/.gitignore", "*.o\nbuild/\n*.log\n", 0644);
	put_file(state, "src/.regattaignore", "!kept.log\nbig\n", 0644);
	put_file(state, "src/.git/HEAD", "x", 0644);
	put_file(state, "src/a.c", "a", 0644);
	put_file(state, "src/a.o", "a", 0644);
	put_file(state, "src/kept.log", "k", 0644);
	put_file(state, "src/build/a", "a", 0644);
	put_file(state, "src/sub/.gitignore", "*.c\n", 0644);
	put_file(state, "src/sub/b.c", "b", 0644);
	put_file(state, "src/sub/b.h", "b", 0644);
	put_file(state, "src/zz.c", "z", 0644);
	/* what would be refused may be left out */
	assert_int_equal(symlink("/etc", unit_path(state, "src/big")), 0);
	if (tar_pack_source(unit_path(state, "src"), fd, &n, &err) < 0)
		fail_msg("%s", err.msg);
	assert_int_equal(n, 4);
	assert_int_equal(lseek(fd, 0, SEEK_SET), 0);
	assert_int_equal(tar_unpack(fd, unit_path(state, "dst"), &err), 0);
	char **names;
	size_t count;

	assert_int_equal(file_list_tree(unit_path(state, "dst"), 100, &names, &count, NULL), 0);
	const char *want[] = {".gitignore",	".regattaignore", "a.c", "kept.log",
			      "sub/.gitignore", "sub/b.h",	  "zz.c"};

	assert_int_equal(count, sizeof(want) / sizeof(want[0]));
	for (size_t i = 0; i < count; i++)
		assert_string_equal(names[i], want[i]);
	file_list_free(names, count);
}

static void rules_that_cannot_be_read_are_said(void **state)
{
	CLEANUP(close_fdp) int fd = temp_fd(state);
	struct err err = {0};
	size_t n;

	put_dir(state, "src/.regattaignore");
	assert_int_equal(tar_pack_source(unit_path(state, "src"), fd, &n, &err), -1);
	assert_non_null(strstr(err.msg, ".regattaignore"));
}

int main(void)
{
#define CASE(fn) cmocka_unit_test_setup_teardown(fn, unit_make_dir, unit_remove_dir)
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_name_matches_at_any_depth_a_path_from_its_directory),
		cmocka_unit_test(a_slash_at_the_end_is_for_directories),
		cmocka_unit_test(comments_and_blanks_are_no_rules_and_the_last_match_decides),
		cmocka_unit_test(rules_hold_below_their_file_and_can_be_taken_back),
		CASE(a_source_is_packed_without_what_is_left_out),
		CASE(rules_that_cannot_be_read_are_said),
	};

	return cmocka_run_group_tests_name("ignore", tests, NULL, NULL);
}
