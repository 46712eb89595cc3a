/* Files to keep, by pattern. */
#include "unit.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "agent/collect.h"
#include "base/buf.h"
#include "base/err.h"

static void put(void **state, const char *name, const char *text)
{
	assert_int_equal(
		file_write_atomic(unit_path(state, name), str_from(text), 0644, false, NULL), 0);
}

static void tree(void **state)
{
	assert_int_equal(file_mkdir_p(unit_path(state, "w/model/deep"), 0755, NULL), 0);
	put(state, "w/a.txt", "aa");
	put(state, "w/b.log", "b");
	put(state, "w/model/m.bin", "mm");
	put(state, "w/model/deep/d.bin", "ddd");
	assert_int_equal(symlink("/etc/passwd", unit_path(state, "w/model/link")), 0);
	assert_int_equal(mkfifo(unit_path(state, "w/model/fifo"), 0600), 0);
}

/* ---- a file system that has no files without a name, and copies that fail ---- */

static bool no_tmpfile, no_copy;
static int refused;

int __real_openat(int dir, const char *path, int flags, mode_t mode);
int __wrap_openat(int dir, const char *path, int flags, ...);
int __wrap_openat64(int dir, const char *path, int flags, ...)
	__attribute__((alias("__wrap_openat")));
int __real_file_copy_content(int from, int to, struct err *err);
int __wrap_file_copy_content(int from, int to, struct err *err);

int __wrap_openat(int dir, const char *path, int flags, ...)
{
	va_list ap;

	va_start(ap, flags);
	mode_t mode =
		(flags & O_CREAT) || (flags & O_TMPFILE) == O_TMPFILE ? va_arg(ap, mode_t) : 0;

	va_end(ap);
	if (no_tmpfile && (flags & O_TMPFILE) == O_TMPFILE) {
		refused++;
		errno = EOPNOTSUPP;
		return -1;
	}
	return __real_openat(dir, path, flags, mode);
}

int __wrap_file_copy_content(int from, int to, struct err *err)
{
	if (no_copy)
		return err_errno(err, ENOSPC, "write");
	return __real_file_copy_content(from, to, err);
}

static struct collected last;
static int64_t since_ms; /* of the next collect() */

static int collect(void **state, const char *const *patterns, size_t n, uint64_t *files,
		   uint64_t *bytes, struct err *err)
{
	const struct collect_options o = {.patterns = patterns, .n = n, .since_ms = since_ms};
	int rc = collect_files(unit_path(state, "w"), &o, unit_path(state, "kept"), &last, err);

	*files = last.files;
	*bytes = last.bytes;
	return rc;
}

static void only_regular_files_that_match_are_copied_once(void **state)
{
	static const char *const patterns[] = {"model/**",    "*.txt",	   "a.txt",
					       "model/m.bin", "nothing/*", "missing"};
	uint64_t files, bytes;
	struct err err = {0};

	tree(state);
	for (int again = 0; again < 2; again++) { /* twice gives the same */
		assert_int_equal(collect(state, patterns, COUNT(patterns), &files, &bytes, &err),
				 0);
		assert_int_equal(files, 3);
		assert_int_equal(bytes, 7);
	}
	assert_true(file_exists(unit_path(state, "kept/model/deep/d.bin")));
	assert_true(file_exists(unit_path(state, "kept/a.txt")));
	assert_false(file_exists(unit_path(state, "kept/b.log")));
	assert_false(file_exists(unit_path(state, "kept/model/link")));
	assert_false(file_exists(unit_path(state, "kept/model/fifo")));
}

static void patterns_that_match_nothing_are_named(void **state)
{
	static const char *const patterns[] = {"*.txt", "missing", "a.txt", "nothing/*"};
	static const char *const both[] = {"*.json", "model/**"};
	uint64_t files, bytes;
	struct err err = {0};

	tree(state);
	assert_int_equal(collect(state, patterns, 1, &files, &bytes, &err), 0);
	assert_string_equal(last.note, "");
	assert_int_equal(collect(state, patterns, 3, &files, &bytes, &err), 0);
	assert_string_equal(last.note, "keep: 'missing' matches no file");
	assert_int_equal(collect(state, patterns, 4, &files, &bytes, &err), 0);
	assert_string_equal(last.note, "keep: 2 patterns match no file: 'missing', ...");
	assert_int_equal(collect(state, both, 2, &files, &bytes, &err), 0);
	assert_string_equal(last.note,
			    "keep: '*.json' matches no file; 1 symbolic link was not kept, "
			    "because what it points to is not kept: model/link");
}

static int64_t changed_ms(const char *path)
{
	struct stat st;

	assert_int_equal(stat(path, &st), 0);
	return (int64_t)st.st_ctim.tv_sec * 1000 + st.st_ctim.tv_nsec / 1000000;
}

static void what_did_not_change_since_the_start_is_not_the_jobs(void **state)
{
	static const char *const patterns[] = {"*.txt"};
	uint64_t files, bytes;
	struct err err = {0};

	tree(state);
	since_ms = changed_ms(unit_path(state, "w/a.txt")) + 100;
	assert_int_equal(collect(state, patterns, 1, &files, &bytes, &err), 0);
	assert_int_equal(files, 0);
	assert_string_equal(last.note,
			    "keep: '*.txt' matches no file that changed since the job's start");
	/* The time stamps of files lag a little behind the clock. */
	since_ms = changed_ms(unit_path(state, "w/a.txt")) + 5;
	assert_int_equal(collect(state, patterns, 1, &files, &bytes, &err), 0);
	since_ms = 0;
	assert_int_equal(files, 1);
	assert_string_equal(last.note, "");
}

static void no_link_on_the_way_to_the_outputs_is_followed(void **state)
{
	static const char *const patterns[] = {"a.txt"};
	const struct collect_options o = {.patterns = patterns, .n = 1};
	static const char *const replaced[] = {"run/outputs", "run"};
	struct err err = {0};

	tree(state);
	for (size_t i = 0; i < COUNT(replaced); i++) {
		assert_int_equal(file_mkdir_p(unit_path(state, "elsewhere"), 0755, NULL), 0);
		assert_int_equal(file_mkdir_p(unit_path(state, "run"), 0755, NULL), 0);
		assert_int_equal(file_remove_tree(unit_path(state, replaced[i]), NULL), 0);
		assert_int_equal(
			symlink(unit_path(state, "elsewhere"), unit_path(state, replaced[i])), 0);
		assert_int_equal(collect_files(unit_path(state, "w"), &o,
					       unit_path(state, "run/outputs/n-0"), &last, &err),
				 0);
		assert_true(file_exists(unit_path(state, "run/outputs/n-0/a.txt")));
		assert_false(file_exists(unit_path(state, "elsewhere/n-0")));
		assert_false(file_exists(unit_path(state, "elsewhere/outputs")));
	}
}

static void the_name_of_a_directory_is_all_of_it(void **state)
{
	static const char *const patterns[] = {"model", "model/m.bin", "a.txt", "model"};
	uint64_t files, bytes;
	struct err err = {0};

	tree(state);
	put(state, "w/model.txt", "not below it");
	for (size_t i = 0; i < 3; i += 2) {
		assert_int_equal(collect(state, patterns + i, 2, &files, &bytes, &err), 0);
		assert_int_equal(files, i == 0 ? 2 : 3);
		assert_int_equal(bytes, i == 0 ? 5 : 7);
	}
	assert_true(file_exists(unit_path(state, "kept/model/deep/d.bin")));
	assert_false(file_exists(unit_path(state, "kept/model.txt")));
	assert_false(file_exists(unit_path(state, "kept/model/link")));
}

static void a_changed_file_replaces_its_old_copy(void **state)
{
	static const char *const patterns[] = {"a.txt"};
	uint64_t files, bytes;
	struct err err = {0};
	struct buf b;

	tree(state);
	collect(state, patterns, 1, &files, &bytes, &err);
	put(state, "w/a.txt", "new");
	assert_int_equal(collect(state, patterns, 1, &files, &bytes, &err), 0);
	buf_init(&b, 100);
	assert_int_equal(file_read(unit_path(state, "kept/a.txt"), &b, NULL), 0);
	assert_string_equal(b.p, "new");
	buf_release(&b);
}

static void a_pattern_that_leaves_the_directory_is_refused(void **state)
{
	static const char *const bad[] = {"../x", "/etc/*", ""};
	uint64_t files, bytes;

	tree(state);
	for (size_t i = 0; i < COUNT(bad); i++) {
		struct err err = {0};

		assert_int_equal(collect(state, &bad[i], 1, &files, &bytes, &err), -1);
		assert_int_equal(err.kind, ERR_INVALID);
	}
}

static void a_destination_that_cannot_be_written_is_an_error_with_the_count_so_far(void **state)
{
	static const char *const patterns[] = {"a.txt", "model/m.bin"};
	uint64_t files, bytes;
	struct err err = {0};

	tree(state);
	put(state, "kept_file", "x");
	assert_int_equal(mkdir(unit_path(state, "kept"), 0755), 0);
	put(state, "kept/model", "a file in the way");
	assert_int_equal(collect(state, patterns, COUNT(patterns), &files, &bytes, &err), -1);
	assert_int_equal(files, 1);
	assert_non_null(strstr(err.msg, "keep 'model/m.bin'"));
}

static void link_to(void **state, const char *text, const char *name)
{
	assert_int_equal(symlink(text, unit_path(state, name)), 0);
}

static void is_link(void **state, const char *name, const char *text)
{
	char got[256];
	ssize_t n = readlink(unit_path(state, name), got, sizeof(got) - 1);

	assert_true(n > 0);
	got[n] = '\0';
	assert_string_equal(got, text);
}

static void links_to_what_is_kept_are_kept_and_others_are_named(void **state)
{
	static const char *const patterns[] = {"model/**"};
	uint64_t files, bytes;
	struct err err = {0};

	tree(state);
	link_to(state, "deep/d.bin", "w/model/best");
	link_to(state, "best", "w/model/a-newest"); /* a link to a link, which comes first */
	link_to(state, "deep", "w/model/dir");
	link_to(state, "../../model/m.bin", "w/model/deep/up");
	assert_int_equal(collect(state, patterns, 1, &files, &bytes, &err), 0);
	assert_int_equal(files, 6);
	is_link(state, "kept/model/best", "deep/d.bin");
	is_link(state, "kept/model/a-newest", "best");
	is_link(state, "kept/model/dir", "deep");
	is_link(state, "kept/model/deep/up", "../../model/m.bin");
	assert_string_equal(last.note, "1 symbolic link was not kept, because what it points to is "
				       "not kept: model/link");
	link_to(state, "../a.txt", "w/model/link2"); /* it is there, but not kept */
	link_to(state, "../../outside", "w/model/link3");
	assert_int_equal(collect(state, patterns, 1, &files, &bytes, &err), 0);
	assert_string_equal(last.note,
			    "3 symbolic links were not kept, because what they point to is "
			    "not kept: model/link, ...");
	assert_false(file_exists(unit_path(state, "kept/model/link2")));
}

static void no_link_on_the_way_is_followed(void **state)
{
	static const char *const patterns[] = {"out/s*", "out/secret", "model/in/**",
					       "model/in/d.bin"};
	uint64_t files, bytes;
	struct err err = {0};

	tree(state);
	assert_int_equal(file_mkdir_p(unit_path(state, "outside"), 0755, NULL), 0);
	put(state, "outside/secret", "s");
	link_to(state, unit_path(state, "outside"), "w/out");
	link_to(state, "deep", "w/model/in");
	assert_int_equal(collect(state, patterns, COUNT(patterns), &files, &bytes, &err), 0);
	assert_int_equal(files, 0);
	assert_false(file_exists(unit_path(state, "kept/out")));
	assert_string_equal(last.note,
			    "2 symbolic links were not kept, because what they point to is "
			    "not kept: out, ...");
}

static void a_link_that_leads_through_another_one_is_not_kept(void **state)
{
	static const char *const patterns[] = {"**"};
	uint64_t files, bytes;
	struct err err = {0};
	struct stat st;

	assert_int_equal(file_mkdir_p(unit_path(state, "w/a/b"), 0755, NULL), 0);
	assert_int_equal(file_mkdir_p(unit_path(state, "w/x"), 0755, NULL), 0);
	put(state, "w/x/f", "x");
	put(state, "w/y", "y");
	link_to(state, "../../x", "w/a/b/c");
	/* By its letters it is "y" in here; by the file system it is out of here. */
	link_to(state, "a/b/c/../../../y", "w/esc");
	link_to(state, "a/b/../../y", "w/good");
	for (int again = 0; again < 2; again++) {
		assert_int_equal(collect(state, patterns, 1, &files, &bytes, &err), 0);
		assert_int_equal(files, 4);
		is_link(state, "kept/a/b/c", "../../x");
		is_link(state, "kept/good", "a/b/../../y");
		assert_true(lstat(unit_path(state, "kept/esc"), &st) < 0);
		assert_string_equal(last.note, "1 symbolic link was not kept, because what it "
					       "points to is not kept: esc");
	}
}

static void holes_stay_holes(void **state)
{
	static const char *const patterns[] = {"**"};
	uint64_t files, bytes;
	struct err err = {0};
	struct stat st;
	struct buf b;

	assert_int_equal(file_mkdir_p(unit_path(state, "w"), 0755, NULL), 0);
	int fd = open(unit_path(state, "w/big"), O_RDWR | O_CREAT, 0644);

	assert_int_equal(pwrite(fd, "begin", 5, 0), 5);
	assert_int_equal(pwrite(fd, "middle", 6, 1LL << 30), 6);
	assert_int_equal(ftruncate(fd, 3LL << 40), 0);
	close(fd);
	assert_int_equal(collect(state, patterns, 1, &files, &bytes, &err), 0);
	assert_int_equal(stat(unit_path(state, "kept/big"), &st), 0);
	assert_true(st.st_size == 3LL << 40);
	assert_true(st.st_blocks < 1024);
	fd = open(unit_path(state, "kept/big"), O_RDONLY);
	buf_init(&b, 64);
	assert_int_equal(pread(fd, buf_reserve(&b, 6), 6, 1LL << 30), 6);
	assert_memory_equal(b.p, "middle", 6);
	buf_release(&b);
	close(fd);
}

static void a_link_in_place_of_the_output_directory_is_not_followed(void **state)
{
	static const char *const patterns[] = {"a.txt", "model/m.bin"};
	uint64_t files, bytes;
	struct err err = {0};
	struct stat st;

	tree(state);
	assert_int_equal(file_mkdir_p(unit_path(state, "victim"), 0755, NULL), 0);
	link_to(state, unit_path(state, "victim"), "kept");
	assert_int_equal(collect(state, patterns, 2, &files, &bytes, &err), 0);
	assert_false(file_exists(unit_path(state, "victim/a.txt")));
	assert_int_equal(lstat(unit_path(state, "kept"), &st), 0);
	assert_true(S_ISDIR(st.st_mode));
	assert_true(file_exists(unit_path(state, "kept/model/m.bin")));
	/* Nor one below it. */
	assert_int_equal(file_remove_tree(unit_path(state, "kept/model"), NULL), 0);
	link_to(state, unit_path(state, "victim"), "kept/model");
	assert_int_equal(collect(state, patterns, 2, &files, &bytes, &err), 0);
	assert_false(file_exists(unit_path(state, "victim/m.bin")));
	assert_true(file_exists(unit_path(state, "kept/model/m.bin")));
}

static void without_nameless_files_a_copy_still_appears_whole_or_not_at_all(void **state)
{
	static const char *const patterns[] = {"model/m.bin", "a.txt"};
	const char *partial = "kept/.regatta-keep.tmp";
	uint64_t files, bytes;
	struct err err = {0};
	struct buf text;

	tree(state);
	no_tmpfile = true;
	refused = 0;
	/* What a collector that was killed left behind is in nobody's way. */
	assert_int_equal(mkdir(unit_path(state, "kept"), 0755), 0);
	put(state, partial, "half a file that is longer than any other");
	assert_int_equal(collect(state, patterns, 2, &files, &bytes, &err), 0);
	assert_int_equal(files, 2);
	assert_true(refused >= 2);
	buf_init(&text, 100);
	assert_int_equal(file_read(unit_path(state, "kept/model/m.bin"), &text, &err), 0);
	assert_string_equal(text.p, "mm");
	buf_release(&text);
	assert_false(file_exists(unit_path(state, partial)));
	/* A copy that fails leaves nothing. */
	put(state, "w/a.txt", "changed");
	no_copy = true;
	assert_int_equal(collect(state, patterns + 1, 1, &files, &bytes, &err), -1);
	no_copy = no_tmpfile = false;
	assert_false(file_exists(unit_path(state, partial)));
}

int main(void)
{
#define CASE(fn) cmocka_unit_test_setup_teardown(fn, unit_make_dir, unit_remove_dir)
	static const struct CMUnitTest tests[] = {
		CASE(only_regular_files_that_match_are_copied_once),
		CASE(patterns_that_match_nothing_are_named),
		CASE(what_did_not_change_since_the_start_is_not_the_jobs),
		CASE(no_link_on_the_way_to_the_outputs_is_followed),
		CASE(the_name_of_a_directory_is_all_of_it),
		CASE(a_changed_file_replaces_its_old_copy),
		CASE(links_to_what_is_kept_are_kept_and_others_are_named),
		CASE(no_link_on_the_way_is_followed),
		CASE(a_link_that_leads_through_another_one_is_not_kept),
		CASE(holes_stay_holes),
		CASE(a_link_in_place_of_the_output_directory_is_not_followed),
		CASE(without_nameless_files_a_copy_still_appears_whole_or_not_at_all),
		CASE(a_pattern_that_leaves_the_directory_is_refused),
		CASE(a_destination_that_cannot_be_written_is_an_error_with_the_count_so_far),
	};

	return cmocka_run_group_tests_name("agent: collect", tests, NULL, NULL);
}
