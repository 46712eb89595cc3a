/* outputs and cp: the files that a run has kept. */
#include "unit.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/file.h"
#include "cli/drive.h"
#include "cli/fake_master.h"

#define ABC "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
#define FILE_AT(path) "{\"path\":\"" path "\",\"size\":3,\"mode\":420,\"sha256\":\"" ABC "\"}"
#define LINK_AT(path, to) "{\"path\":\"" path "\",\"size\":0,\"link\":\"" to "\"}"
#define LIST(...) "{\"files\":[" __VA_ARGS__ "],\"bytes\":3}"

/* A path in a directory of the test's home.  Owned. */
static char *place(void **state, const char *name)
{
	return xasprintf("%s/%s", (const char *)*state, name);
}

static void assert_abc(void **state, const char *name)
{
	CLEANUP(freep) char *text = home_get(state, name);
	assert_string_equal(text, "abc");
}

static bool is_there(void **state, const char *name)
{
	CLEANUP(freep) char *path = place(state, name);
	struct stat st;

	return lstat(path, &st) == 0;
}

static void copy_ok(void **state, const char *what, const char *to)
{
	CLEANUP(freep) char *dest = place(state, to);
	struct ran r = DRIVE(state, "cp", what, dest);

	if (r.code)
		fail_msg("cp %s: %s", what, r.err.p);
	ran_release(&r);
}

static void copy_refused(void **state, int code, const char *why, const char *what, const char *to)
{
	CLEANUP(freep) char *dest = place(state, to);
	REFUSED(state, code, why, "cp", what, dest);
}

static void outputs_are_listed_with_their_sums(void **state)
{
	home_put(state, "outputs.json", LIST(FILE_AT("w-0/m") "," LINK_AT("w-0/l", "m")));
	struct ran r = DRIVE(state, "outputs", "job");

	assert_int_equal(r.code, 0);
	assert_has(&r.out, "w-0/m           3  " ABC);
	assert_has(&r.out, "w-0/l -> m      0  -");
	ran_release(&r);
	r = DRIVE(state, "outputs", "job", "--output", "json");
	assert_string_equal(r.out.p, LIST(FILE_AT("w-0/m") "," LINK_AT("w-0/l", "m")) "\n");
	ran_release(&r);
	home_put(state, "outputs.json", LIST(""));
	r = DRIVE(state, "outputs", "job");
	assert_int_equal(r.code, 0);
	assert_has(&r.err, "run 'job' has no outputs");
	ran_release(&r);
	REFUSED(state, 3, "no run 'nothing'", "outputs", "nothing");
}

static void a_file_gets_the_name_of_the_destination_or_its_own_in_a_directory(void **state)
{
	home_put(state, "outputs.json", LIST(FILE_AT("w-0/m")));
	copy_ok(state, "job:w-0/m", "here");
	assert_abc(state, "here");
	copy_ok(state, "job:w-0/m", "d/");
	copy_ok(state, "job:w-0/m", "d");
	assert_abc(state, "d/m");
	struct ran r = DRIVE(state, "cp", "job:w-0/m", "-");
	assert_string_equal(r.out.p, "abc");
	assert_int_equal(r.err.n, 0);
	ran_release(&r);
}

static void a_directory_is_copied_whole_with_its_links(void **state)
{
	home_put(state, "outputs.json",
		 LIST(FILE_AT("w-0/m/a") "," FILE_AT("w-0/m/b/c") "," FILE_AT("w-0/mm") "," LINK_AT(
			 "w-0/m/b/l", "../a") "," LINK_AT("w-0/m/out", "../mm")));
	CLEANUP(freep) char *dest = place(state, "new");
	struct ran r = DRIVE(state, "cp", "job:w-0/m/", dest, "--output", "json");

	assert_int_equal(r.code, 0);
	assert_has(&r.out, "\"files\":3,\"bytes\":6,\"left_out\":1}");
	assert_has(&r.err, "'out' is left out: it is a symbolic link to '../mm'");
	ran_release(&r);
	assert_abc(state, "new/a");
	assert_abc(state, "new/b/c");
	assert_abc(state, "new/b/l");
	assert_false(is_there(state, "new/out"));
	copy_ok(state, "job:w-0/m", "new");
	assert_abc(state, "new/m/b/l");
	copy_ok(state, "job:", "all");
	assert_abc(state, "all/w-0/m/out");
	copy_ok(state, "job:", "all"); /* over what is there */
}

static void nothing_is_written_outside_the_destination(void **state)
{
	CLEANUP(freep) char *inside = place(state, "dest/w-0"), *outside = place(state, "outside");

	home_put(state, "outputs.json", LIST(FILE_AT("../evil")));
	copy_refused(state, 8, "'../evil', which is no name below a directory", "job:", "dest");
	home_put(state, "outputs.json", LIST(FILE_AT("/etc/evil")));
	copy_refused(state, 8, "which is no name below a directory", "job:", "dest");
	assert_false(is_there(state, "evil"));
	/* links that leave it, also by way of others */
	home_put(state, "outputs.json",
		 LIST(LINK_AT("w-1/abs", "/etc") "," LINK_AT("w-1/up", "../../x") "," LINK_AT(
			 "w-1/by", "d/../x") "," LINK_AT("w-1/none", "")));
	copy_ok(state, "job:", "dest");
	assert_false(is_there(state, "dest/w-1/abs"));
	assert_false(is_there(state, "dest/w-1/up"));
	assert_false(is_there(state, "dest/w-1/by"));
	/* a link that is in the destination already */
	assert_int_equal(file_mkdir_p(outside, 0700, NULL), 0);
	assert_int_equal(symlink(outside, inside), 0);
	home_put(state, "outputs.json", LIST(FILE_AT("w-0/m")));
	copy_refused(state, 2, "'w-0' in the destination is a symbolic link", "job:", "dest");
	assert_false(is_there(state, "outside/m"));
	assert_true(is_there(state, "dest/w-0"));
	/* a link in place of the file is replaced, not followed */
	assert_int_equal(unlink(inside), 0);
	assert_int_equal(file_mkdir_p(inside, 0700, NULL), 0);
	CLEANUP(freep) char *m = place(state, "dest/w-0/m"), *target = place(state, "outside/m");
	assert_int_equal(symlink(target, m), 0);
	copy_ok(state, "job:", "dest");
	assert_false(is_there(state, "outside/m"));
	assert_abc(state, "dest/w-0/m");
}

static void a_device_or_link_that_is_named_as_destination_stays(void **state)
{
	CLEANUP(freep) char *pipe = place(state, "pipe"), *link = place(state, "link");
	struct stat st;

	home_put(state, "outputs.json", LIST(FILE_AT("w-0/m")));
	assert_int_equal(mkfifo(pipe, 0600), 0);
	assert_int_equal(symlink(pipe, link), 0);
	copy_refused(state, 2, "'pipe' in the destination is no regular file", "job:w-0/m", "pipe");
	copy_refused(state, 2, "/link' in the destination is a symbolic link", "job:w-0/m", "link");
	assert_int_equal(lstat(pipe, &st), 0);
	assert_true(S_ISFIFO(st.st_mode));
	assert_int_equal(lstat(link, &st), 0);
	assert_true(S_ISLNK(st.st_mode));
}

static void a_file_that_cannot_be_copied_does_not_keep_the_others(void **state)
{
	home_put(state, "outputs.json",
		 LIST("{\"path\":\"w-0/bad\",\"size\":3,\"mode\":420,\"sha256\":\"00\"}," FILE_AT(
			 "w-0/m")));
	copy_refused(state, 8, "'bad': its bytes have another SHA-256", "job:", "dest");
	assert_false(is_there(state, "dest/w-0/bad"));
	assert_abc(state, "dest/w-0/m");
}

static void a_file_with_other_bytes_than_recorded_is_not_kept(void **state)
{
	home_put(state, "outputs.json",
		 LIST("{\"path\":\"w-0/m\",\"size\":3,\"mode\":493,\"sha256\":\"00\"}"));
	copy_refused(state, 8, "its bytes have another SHA-256", "job:", "dest");
	char **names;
	size_t n;
	CLEANUP(freep) char *dest = place(state, "dest");

	assert_int_equal(file_list_tree(dest, 10, &names, &n, NULL), 0);
	file_list_free(names, n);
	assert_int_equal(n, 0);
	home_put(state, "outputs.json", LIST("{\"path\":\"w-0/m\",\"size\":3,\"mode\":493}"));
	copy_ok(state, "job:", "dest"); /* the run goes on: no sum yet */
	CLEANUP(freep) char *m = place(state, "dest/w-0/m");
	struct stat st;
	assert_int_equal(stat(m, &st), 0);
	assert_true(st.st_mode & S_IXUSR);
}

static void a_wrong_name_is_said(void **state)
{
	home_put(state, "outputs.json", LIST(FILE_AT("w-0/m") "," LINK_AT("w-0/l", "m")));
	copy_refused(state, 3, "run 'job' has no output 'w-0/n': 'regatta outputs job' lists them",
		     "job:w-0/n", "x");
	copy_refused(state, 2, "'w-0/l' is a symbolic link to 'm': copy that one", "job:w-0/l",
		     "x");
	copy_refused(state, 2, "'w-0' is not RUN:PATH", "w-0", "x");
	copy_refused(state, 2, "':w-0' is not RUN:PATH", ":w-0", "x");
	copy_refused(state, 2, "without '..'", "job:../m", "x");
	copy_refused(state, 3, "no run 'nothing'", "nothing:m", "x");
	REFUSED(state, 2, "cp: the destination has no name", "cp", "job:", "");
	REFUSED(state, 2, "'w-0' is a directory: standard output takes one file", "cp", "job:w-0",
		"-");
	home_put(state, "file", "");
	copy_refused(state, 2, "file", "job:", "file/x");
	home_put(state, "outputs.json", LIST(FILE_AT("w-0/m") "," FILE_AT("w-0/m/n")));
	copy_refused(state, 2, "make the directory of 'w-0/m/n'", "job:", "odd");
}

int main(int argc, char **argv)
{
#define T(fn) cmocka_unit_test_setup_teardown(fn, drive_setup, drive_teardown)
	const struct CMUnitTest tests[] = {
		T(outputs_are_listed_with_their_sums),
		T(a_file_gets_the_name_of_the_destination_or_its_own_in_a_directory),
		T(a_directory_is_copied_whole_with_its_links),
		T(nothing_is_written_outside_the_destination),
		T(a_device_or_link_that_is_named_as_destination_stays),
		T(a_file_that_cannot_be_copied_does_not_keep_the_others),
		T(a_file_with_other_bytes_than_recorded_is_not_kept),
		T(a_wrong_name_is_said),
	};
	int code;

	if (fake_role(argc, argv, &code))
		return code;
	return cmocka_run_group_tests_name("outputs", tests, NULL, NULL);
}
