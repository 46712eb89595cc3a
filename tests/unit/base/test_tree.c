#include "unit.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "base/cleanup.h"
#include "base/err.h"

/* The user nobody: root would be allowed everything. */
#define NOBODY 65534

static void touch(void **state, const char *name)
{
	assert_int_equal(file_write_atomic(unit_path(state, name), STR("x"), 0644, false, NULL), 0);
}

static void make_dirs(void **state, const char *name)
{
	assert_int_equal(file_mkdir_p(unit_path(state, name), 0700, NULL), 0);
}

static void a_tree_is_removed_with_all_that_is_in_it(void **state)
{
	make_dirs(state, "t/a/b/c");
	make_dirs(state, "t/empty");
	touch(state, "t/f");
	touch(state, "t/a/b/c/.hidden");
	touch(state, "beside");
	assert_int_equal(mkfifo(unit_path(state, "t/a/fifo"), 0600), 0);
	assert_int_equal(file_remove_tree(unit_path(state, "t"), NULL), 0);
	assert_false(file_exists(unit_path(state, "t")));
	assert_true(file_exists(unit_path(state, "beside")));
}

static void a_single_file_is_removed_and_an_absent_one_is_fine(void **state)
{
	touch(state, "f");
	assert_int_equal(file_remove_tree(unit_path(state, "f"), NULL), 0);
	assert_false(file_exists(unit_path(state, "f")));
	assert_int_equal(file_remove_tree(unit_path(state, "f"), NULL), 0);
	assert_int_equal(file_remove_tree(unit_path(state, "no/such/thing"), NULL), 0);
}

static void links_are_removed_and_never_followed(void **state)
{
	make_dirs(state, "outside/deep");
	touch(state, "outside/precious");
	touch(state, "outside/deep/precious");
	make_dirs(state, "t/d");
	assert_int_equal(symlink("../outside", unit_path(state, "t/to-dir")), 0);
	assert_int_equal(symlink("../../outside/precious", unit_path(state, "t/d/to-file")), 0);
	assert_int_equal(symlink("nowhere", unit_path(state, "t/d/dangling")), 0);
	assert_int_equal(symlink("..", unit_path(state, "t/d/up")), 0);
	assert_int_equal(file_remove_tree(unit_path(state, "t"), NULL), 0);
	assert_false(file_exists(unit_path(state, "t")));
	assert_true(file_exists(unit_path(state, "outside/precious")));
	assert_true(file_exists(unit_path(state, "outside/deep/precious")));
}

static void a_link_given_as_the_tree_goes_and_its_target_stays(void **state)
{
	make_dirs(state, "outside");
	touch(state, "outside/precious");
	assert_int_equal(symlink("outside", unit_path(state, "link")), 0);
	/* With a slash the kernel would go through. */
	assert_int_equal(file_remove_tree(unit_path(state, "link//"), NULL), 0);
	assert_false(file_exists(unit_path(state, "link")));
	assert_true(file_exists(unit_path(state, "outside/precious")));
}

static void what_is_never_meant_is_refused(void **state)
{
	static const char *const bad[] = {"", "/", "//", ".", "..", "a/..", "a/.", "./"};
	struct err err = {0};

	(void)state;
	for (size_t i = 0; i < COUNT(bad); i++) {
		if (file_remove_tree(bad[i], &err) == 0)
			fail_msg("'%s' was removed", bad[i]);
		assert_int_equal(err.kind, ERR_INVALID);
	}
}

static void a_tree_deeper_than_all_descriptors_is_removed(void **state)
{
	struct rlimit was, small;
	const int depth = 1500;

	assert_int_equal(getrlimit(RLIMIT_NOFILE, &was), 0);
	make_dirs(state, "t");
	CLEANUP(close_fdp) int at = open(unit_path(state, "t"), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	for (int i = 0; i < depth; i++) {
		char name[] = "directory-with-a-name";
		assert_int_equal(mkdirat(at, name, 0700), 0);
		int next = openat(at, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		assert_true(next >= 0);
		int file = openat(at, "f", O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
		assert_true(file >= 0);
		close(file);
		close(at);
		at = next;
	}
	small = was;
	small.rlim_cur = 100;
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &small), 0);
	struct err err = {0};
	int rc = file_remove_tree(unit_path(state, "t"), &err);
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &was), 0);
	if (rc < 0)
		fail_msg("%s", err.msg);
	assert_false(file_exists(unit_path(state, "t")));
}

/* Runs fn in a child without privileges; its return value is the answer. */
static int as_nobody(int (*fn)(void **state), void **state)
{
	int status;

	pid_t pid = fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		if (geteuid() == 0 && (setgid(NOBODY) < 0 || setuid(NOBODY) < 0))
			_exit(100);
		_exit(fn(state));
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status));
	return WEXITSTATUS(status);
}

static int build_closed_tree_and_remove_it(void **state)
{
	struct err err = {0};

	if (file_mkdir_p(unit_path(state, "t/closed/inner"), 0700, &err) < 0)
		return 1;
	if (file_write_atomic(unit_path(state, "t/closed/inner/f"), STR("x"), 0000, false, &err) <
	    0)
		return 2;
	if (file_mkdir_p(unit_path(state, "t/read-only"), 0700, &err) < 0 ||
	    file_write_atomic(unit_path(state, "t/read-only/f"), STR("x"), 0400, false, &err) < 0)
		return 3;
	if (chmod(unit_path(state, "t/closed/inner"), 0000) < 0 ||
	    chmod(unit_path(state, "t/closed"), 0000) < 0 ||
	    chmod(unit_path(state, "t/read-only"), 0500) < 0)
		return 4;
	if (file_remove_tree(unit_path(state, "t"), &err) < 0)
		return 5;
	return file_exists(unit_path(state, "t")) ? 6 : 0;
}

static void directories_without_permissions_are_removed_by_their_owner(void **state)
{
	assert_int_equal(chmod(*state, 0777), 0);
	assert_int_equal(as_nobody(build_closed_tree_and_remove_it, state), 0);
}

/* Every directory of it is closed, and it is deeper than there are descriptors. */
static int build_deep_closed_tree_and_remove_it(void **state)
{
	const struct rlimit few = {.rlim_cur = 100, .rlim_max = 100};
	const int depth = 300;
	struct err err = {0};

	if (mkdir(unit_path(state, "t"), 0700) < 0 || chdir(unit_path(state, "t")) < 0)
		return 1;
	for (int i = 0; i < depth; i++)
		if (mkdir("d", 0700) < 0 || chdir("d") < 0)
			return 2;
	for (int i = 0; i < depth; i++)
		if (chdir("..") < 0 || chmod("d", 0000) < 0)
			return 3;
	if (chdir("/") < 0 || setrlimit(RLIMIT_NOFILE, &few) < 0)
		return 4;
	if (file_remove_tree(unit_path(state, "t"), &err) < 0)
		return 5;
	return file_exists(unit_path(state, "t")) ? 6 : 0;
}

static void closed_directories_deeper_than_all_descriptors_are_removed(void **state)
{
	assert_int_equal(chmod(*state, 0777), 0);
	assert_int_equal(as_nobody(build_deep_closed_tree_and_remove_it, state), 0);
}

static int remove_what_belongs_to_another(void **state)
{
	struct err err = {0};

	if (file_remove_tree(unit_path(state, "t"), &err) == 0)
		return 1;
	if (err.kind != ERR_DENIED)
		return 2;
	if (!strstr(err.msg, "guarded"))
		return 3;
	/* What could go is gone. */
	if (file_exists(unit_path(state, "t/free")))
		return 4;
	return file_exists(unit_path(state, "t/guarded/f")) ? 0 : 5;
}

static void what_cannot_be_removed_is_named_and_the_rest_is_gone(void **state)
{
	if (geteuid() != 0) {
		print_message("# skipped: not root\n");
		skip();
	}
	make_dirs(state, "t/guarded");
	touch(state, "t/guarded/f");
	touch(state, "t/free");
	assert_int_equal(chmod(*state, 0777), 0);
	assert_int_equal(chmod(unit_path(state, "t"), 0777), 0);
	assert_int_equal(chmod(unit_path(state, "t/guarded"), 0755), 0);
	assert_int_equal(as_nobody(remove_what_belongs_to_another, state), 0);
}

static int list_what_is_closed(void **state)
{
	struct err err = {0};
	char **names = NULL;
	size_t n = 0;

	if (file_list_tree(*state, 100, &names, &n, &err) == 0)
		return 1;
	if (names || n)
		return 2;
	return err.kind == ERR_DENIED && strstr(err.msg, "closed") ? 0 : 3;
}

static void a_listing_that_cannot_be_whole_is_an_error(void **state)
{
	if (geteuid() != 0) {
		print_message("# skipped: not root\n");
		skip();
	}
	make_dirs(state, "closed");
	touch(state, "a");
	assert_int_equal(chmod(*state, 0755), 0);
	assert_int_equal(as_nobody(list_what_is_closed, state), 0);
}

static void regular_files_are_listed_sorted_and_relative(void **state)
{
	static const char *const expected[] = {"a/b/c", "a/z", "a.txt", "b"};
	char **names;
	size_t n;

	make_dirs(state, "a/b");
	make_dirs(state, "empty");
	touch(state, "b");
	touch(state, "a/z");
	touch(state, "a/b/c");
	touch(state, "a.txt");
	assert_int_equal(symlink("b", unit_path(state, "link")), 0);
	assert_int_equal(symlink("a", unit_path(state, "link-to-dir")), 0);
	assert_int_equal(mkfifo(unit_path(state, "fifo"), 0600), 0);
	assert_int_equal(file_list_tree(*state, 4, &names, &n, NULL), 0);
	assert_int_equal(n, COUNT(expected));
	/* By byte: '.' comes before '/'. */
	assert_string_equal(names[0], "a.txt");
	assert_string_equal(names[1], "a/b/c");
	assert_string_equal(names[2], "a/z");
	assert_string_equal(names[3], "b");
	file_list_free(names, n);
}

static void an_empty_directory_lists_as_nothing(void **state)
{
	char **names;
	size_t n = 99;

	assert_int_equal(file_list_tree(*state, 10, &names, &n, NULL), 0);
	assert_int_equal(n, 0);
	file_list_free(names, n);
}

static void more_files_than_allowed_or_deeper_is_an_error(void **state)
{
	struct err err = {0};
	char **names = NULL;
	size_t n = 99;
	char deep[2 * 140 + 1] = "";

	touch(state, "a");
	touch(state, "b");
	assert_int_equal(file_list_tree(*state, 1, &names, &n, &err), -1);
	assert_int_equal(err.kind, ERR_CAPACITY);
	assert_non_null(strstr(err.msg, "more than 1 files"));
	for (size_t i = 0; i + 2 < sizeof(deep); i += 2)
		memcpy(deep + i, "d/", 3);
	make_dirs(state, deep);
	assert_int_equal(file_list_tree(*state, 100, &names, &n, &err), -1);
	assert_int_equal(err.kind, ERR_CAPACITY);
	assert_int_equal(file_list_tree(unit_path(state, "absent"), 100, &names, &n, &err), -1);
	assert_int_equal(err.kind, ERR_NOT_FOUND);
	assert_int_equal(file_list_tree(unit_path(state, "a"), 100, &names, &n, &err), -1);
	assert_int_equal(err.code, ENOTDIR);
	assert_null(names);
	assert_int_equal(n, 99);
}

#define IN_DIR(test) cmocka_unit_test_setup_teardown(test, unit_make_dir, unit_remove_dir)

int main(void)
{
	const struct CMUnitTest tests[] = {
		IN_DIR(a_tree_is_removed_with_all_that_is_in_it),
		IN_DIR(a_single_file_is_removed_and_an_absent_one_is_fine),
		IN_DIR(links_are_removed_and_never_followed),
		IN_DIR(a_link_given_as_the_tree_goes_and_its_target_stays),
		IN_DIR(what_is_never_meant_is_refused),
		IN_DIR(a_tree_deeper_than_all_descriptors_is_removed),
		IN_DIR(directories_without_permissions_are_removed_by_their_owner),
		IN_DIR(closed_directories_deeper_than_all_descriptors_are_removed),
		IN_DIR(what_cannot_be_removed_is_named_and_the_rest_is_gone),
		IN_DIR(a_listing_that_cannot_be_whole_is_an_error),
		IN_DIR(regular_files_are_listed_sorted_and_relative),
		IN_DIR(an_empty_directory_lists_as_nothing),
		IN_DIR(more_files_than_allowed_or_deeper_is_an_error),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
