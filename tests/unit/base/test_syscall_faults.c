/*
 * What the kernel can refuse.  The linker sends our calls through __wrap_x
 * (see meson.build), which fail once when a test asks for it.
 */
#include "unit.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/rand.h"

/* After `skip` calls that go through, 1 + `more` fail with errnum. */
struct fault {
	int errnum, skip, more;
};

static bool strikes(struct fault *f)
{
	if (!f->errnum || f->skip-- > 0)
		return false;
	errno = f->errnum;
	if (f->more-- <= 0)
		f->errnum = 0;
	return true;
}

#define FAULTY(type, name, failure, params, ...)                                                   \
	static struct fault fault_##name;                                                          \
	type __real_##name params;                                                                 \
	type __wrap_##name params;                                                                 \
	type __wrap_##name params                                                                  \
	{                                                                                          \
		return strikes(&fault_##name) ? (failure) : __real_##name(__VA_ARGS__);            \
	}

FAULTY(int, chmod, -1, (const char *path, mode_t mode), path, mode)
FAULTY(ssize_t, copy_file_range, -1, (int a, off_t *ao, int b, off_t *bo, size_t n, unsigned flags),
       a, ao, b, bo, n, flags)
FAULTY(int, fchmod, -1, (int fd, mode_t mode), fd, mode)
FAULTY(DIR *, fdopendir, NULL, (int fd), fd)
FAULTY(int, fstat64, -1, (int fd, struct stat *st), fd, st)
FAULTY(int, fstatat64, -1, (int fd, const char *name, struct stat *st, int flags), fd, name, st,
       flags)
FAULTY(int, fsync, -1, (int fd), fd)
FAULTY(int, mkdir, -1, (const char *path, mode_t mode), path, mode)
FAULTY(ssize_t, getrandom, -1, (void *p, size_t n, unsigned flags), p, n, flags)
/* The kernel may also give less than was asked for. */
static bool short_reads;
FAULTY(ssize_t, pread64, -1, (int fd, void *p, size_t n, off_t off), fd, p,
       short_reads &&n > 3 ? 3 : n, off)
FAULTY(ssize_t, read, -1, (int fd, void *p, size_t n), fd, p, n)
FAULTY(struct dirent *, readdir64, NULL, (DIR * dir), dir)
FAULTY(int, rmdir, -1, (const char *path), path)
FAULTY(int, unlinkat, -1, (int fd, const char *name, int flags), fd, name, flags)
FAULTY(ssize_t, write, -1, (int fd, const void *p, size_t n), fd, p, n)

/* Ours never creates with openat, so the mode does not matter. */
static struct fault fault_openat64;
int __real_openat64(int fd, const char *name, int flags, ...);
int __wrap_openat64(int fd, const char *name, int flags, ...);
int __wrap_openat64(int fd, const char *name, int flags, ...)
{
	return strikes(&fault_openat64) ? -1 : __real_openat64(fd, name, flags);
}

/* A close that fails has closed the descriptor anyway. */
static struct fault fault_close;
int __real_close(int fd);
int __wrap_close(int fd);
int __wrap_close(int fd)
{
	int rc = __real_close(fd);

	return strikes(&fault_close) ? -1 : rc;
}

static void put(void **state, const char *name, const char *text)
{
	assert_int_equal(
		file_write_atomic(unit_path(state, name), str_from(text), 0600, false, NULL), 0);
}

static void assert_text(void **state, const char *name, const char *text)
{
	struct buf b;

	buf_init(&b, 1000);
	assert_int_equal(file_read(unit_path(state, name), &b, NULL), 0);
	assert_string_equal(buf_str(&b).p, text);
	buf_release(&b);
}

static size_t count_files(void **state)
{
	char **names;
	size_t n;

	assert_int_equal(file_list_tree(*state, 1000, &names, &n, NULL), 0);
	file_list_free(names, n);
	return n;
}

static void a_failed_replacement_leaves_the_old_file_and_nothing_beside(void **state)
{
	static const struct {
		struct fault *fault;
		int errnum;
		const char *says;
	} cases[] = {
		{&fault_write, ENOSPC, "/f'"},
		{&fault_fchmod, EPERM, "set the mode"},
		{&fault_fsync, EIO, "sync"},
		{&fault_close, EIO, "close"},
	};

	put(state, "f", "old");
	for (size_t i = 0; i < COUNT(cases); i++) {
		struct err err = {0};

		*cases[i].fault = (struct fault){cases[i].errnum, 0};
		assert_int_equal(
			file_write_atomic(unit_path(state, "f"), STR("new"), 0640, true, &err), -1);
		assert_int_equal(err.code, cases[i].errnum);
		assert_non_null(strstr(err.msg, cases[i].says));
		assert_text(state, "f", "old");
		assert_int_equal(count_files(state), 1);
	}
}

static void a_replacement_that_may_not_survive_a_crash_says_so(void **state)
{
	struct err err = {0};

	/* The file's own sync goes through, its directory's does not. */
	fault_fsync = (struct fault){EIO, 1};
	assert_int_equal(file_write_atomic(unit_path(state, "f"), STR("new"), 0600, true, &err),
			 -1);
	assert_non_null(strstr(err.msg, "sync directory"));
	assert_text(state, "f", "new");
}

static void a_filesystem_without_directory_sync_is_fine(void **state)
{
	fault_fsync = (struct fault){EINVAL, 0};
	assert_int_equal(file_sync_dir(*state, NULL), 0);
}

static void a_close_that_was_interrupted_has_closed(void **state)
{
	fault_close = (struct fault){EINTR, 0};
	assert_int_equal(file_write_atomic(unit_path(state, "f"), STR("new"), 0600, true, NULL), 0);
	assert_text(state, "f", "new");
}

static void a_durable_file_in_the_current_directory_is_written(void **state)
{
	char was[4096];

	assert_non_null(getcwd(was, sizeof(was)));
	assert_int_equal(chdir(*state), 0);
	int rc = file_write_atomic("f", STR("new"), 0600, true, NULL);
	assert_int_equal(chdir(was), 0);
	assert_int_equal(rc, 0);
	assert_text(state, "f", "new");
}

static void interrupted_and_short_calls_are_made_again(void **state)
{
	char out[8] = "";
	size_t n;

	fault_write = (struct fault){EINTR, 0};
	put(state, "f", "text");
	fault_read = (struct fault){EINTR, 0};
	assert_text(state, "f", "text");
	int fd = open(unit_path(state, "f"), O_RDONLY | O_CLOEXEC);
	fault_pread64 = (struct fault){EINTR, 0};
	assert_int_equal(file_pread_full(fd, out, 4, 0, &n, NULL), 0);
	assert_int_equal(n, 4);
	assert_string_equal(out, "text");
	memset(out, 0, sizeof(out));
	short_reads = true;
	assert_int_equal(file_pread_full(fd, out, 4, 0, &n, NULL), 0);
	short_reads = false;
	assert_int_equal(n, 4);
	assert_string_equal(out, "text");
	close(fd);
	fault_copy_file_range = (struct fault){EINTR, 0};
	assert_int_equal(file_copy(unit_path(state, "f"), unit_path(state, "g"), NULL), 0);
	assert_text(state, "g", "text");
	fault_getrandom = (struct fault){EINTR, 0};
	assert_true(rand_u64() != rand_u64());
}

static void a_read_that_fails_half_way_leaves_the_buffer_as_it_was(void **state)
{
	struct err err = {0};
	struct buf b;

	put(state, "f", "text");
	buf_init(&b, 100);
	fault_read = (struct fault){EIO, 0};
	assert_int_equal(file_read(unit_path(state, "f"), &b, &err), -1);
	assert_int_equal(err.kind, ERR_IO);
	buf_addz(&b, "before");
	fault_read = (struct fault){EIO, 1};
	assert_int_equal(file_read(unit_path(state, "f"), &b, &err), -1);
	assert_string_equal(b.p, "before");
	fault_fstat64 = (struct fault){EIO, 0};
	assert_int_equal(file_read_at(AT_FDCWD, unit_path(state, "f"), &b, &err), -1);
	assert_non_null(strstr(err.msg, "stat"));
	assert_string_equal(b.p, "before");
	buf_release(&b);
}

static void a_copy_goes_on_by_hand_where_the_kernel_cannot(void **state)
{
	put(state, "f", "text");
	fault_copy_file_range = (struct fault){EXDEV, 0};
	assert_int_equal(file_copy(unit_path(state, "f"), unit_path(state, "g"), NULL), 0);
	assert_text(state, "g", "text");
}

static void a_failed_copy_leaves_nothing(void **state)
{
	struct err err = {0};

	put(state, "f", "text");
	fault_fstat64 = (struct fault){EIO, 0};
	assert_int_equal(file_copy(unit_path(state, "f"), unit_path(state, "g"), &err), -1);
	assert_non_null(strstr(err.msg, "stat"));
	fault_copy_file_range = (struct fault){EXDEV, 0};
	fault_read = (struct fault){EIO, 0};
	assert_int_equal(file_copy(unit_path(state, "f"), unit_path(state, "g"), &err), -1);
	assert_non_null(strstr(err.msg, "read"));
	fault_copy_file_range = (struct fault){EXDEV, 0};
	fault_write = (struct fault){ENOSPC, 0};
	assert_int_equal(file_copy(unit_path(state, "f"), unit_path(state, "g"), &err), -1);
	assert_int_equal(err.kind, ERR_CAPACITY);
	assert_non_null(strstr(err.msg, "copy"));
	assert_int_equal(count_files(state), 1);
}

/* Run directories are made for every job: those above are not tried one by one from the root. */
static void only_missing_directories_are_asked_for(void **state)
{
	fault_mkdir = (struct fault){EROFS, 3, 0}; /* t/d, t, t/d */
	assert_int_equal(file_mkdir_p(unit_path(state, "t/d"), 0700, NULL), 0);
	assert_int_equal(fault_mkdir.errnum, EROFS);
	assert_int_equal(fault_mkdir.skip, 0);
	fault_mkdir = (struct fault){0};
}

static void make_tree(void **state)
{
	assert_int_equal(file_mkdir_p(unit_path(state, "t/d"), 0700, NULL), 0);
	put(state, "t/d/f", "x");
}

static void a_tree_that_cannot_be_removed_says_what_is_in_the_way(void **state)
{
	static const struct {
		struct fault *fault;
		struct fault what;
		const char *says;
	} cases[] = {
		{&fault_openat64, {EMFILE, 0}, "open"},
		{&fault_openat64, {EMFILE, 1}, "open directory 'd'"},
		{&fault_fdopendir, {ENOMEM, 0}, "read directory"},
		{&fault_fdopendir, {ENOMEM, 1}, "read directory"},
		{&fault_readdir64, {EIO, 0}, "read directory"},
		{&fault_unlinkat, {EROFS, 0}, "remove 'd'"},
		/* d: unlink (a directory), rmdir (not empty); then f. */
		{&fault_unlinkat, {EPERM, 2}, "remove 'f'"},
		{&fault_unlinkat, {EBUSY, 3}, "remove directory 'd'"},
		{&fault_rmdir, {EBUSY, 0}, "remove directory"},
	};

	for (size_t i = 0; i < COUNT(cases); i++) {
		struct err err = {0};

		make_tree(state);
		*cases[i].fault = cases[i].what;
		assert_int_equal(file_remove_tree(unit_path(state, "t"), &err), -1);
		if (!strstr(err.msg, cases[i].says) || err.code != cases[i].what.errnum)
			fail_msg("case %zu said: %s", i, err.msg);
		make_tree(state);
		*cases[i].fault = cases[i].what;
		assert_int_equal(file_remove_tree(unit_path(state, "t"), NULL), -1);
		assert_int_equal(file_remove_tree(unit_path(state, "t"), &err), 0);
	}
}

static void a_tree_that_grows_meanwhile_is_removed_in_the_next_round(void **state)
{
	make_tree(state);
	/* As if somebody had added a file after the directory was read. */
	fault_rmdir = (struct fault){ENOTEMPTY, 0};
	assert_int_equal(file_remove_tree(unit_path(state, "t"), NULL), 0);
	assert_false(file_exists(unit_path(state, "t")));
}

static void a_directory_that_stays_closed_is_reported(void **state)
{
	struct err err = {0};

	make_tree(state);
	fault_openat64 = (struct fault){EACCES, 0};
	fault_chmod = (struct fault){EPERM, 0};
	assert_int_equal(file_remove_tree(unit_path(state, "t"), &err), -1);
	assert_int_equal(err.kind, ERR_DENIED);
	assert_true(file_exists(unit_path(state, "t/d/f")));
	/* Not even a handle to it can be had. */
	fault_openat64 = (struct fault){EACCES, 0, .more = 1};
	assert_int_equal(file_remove_tree(unit_path(state, "t"), &err), -1);
	assert_int_equal(err.kind, ERR_DENIED);
	assert_int_equal(fault_openat64.errnum, 0);
}

static void a_single_file_that_stays_is_reported(void **state)
{
	struct err err = {0};

	(void)state;
	assert_int_equal(file_remove_tree("/proc/self/status", &err), -1);
	assert_int_equal(err.kind, ERR_DENIED);
	assert_non_null(strstr(err.msg, "remove '/proc/self/status'"));
}

static void a_closed_directory_is_opened_and_removed(void **state)
{
	make_tree(state);
	fault_openat64 = (struct fault){EACCES, 0};
	assert_int_equal(file_remove_tree(unit_path(state, "t"), NULL), 0);
	assert_false(file_exists(unit_path(state, "t")));
}

static void a_listing_with_a_hole_is_an_error(void **state)
{
	static const struct {
		struct fault *fault;
		struct fault what;
	} cases[] = {
		{&fault_openat64, {EMFILE, 0}},	 {&fault_fdopendir, {ENOMEM, 0}},
		{&fault_fdopendir, {ENOMEM, 1}}, {&fault_readdir64, {EIO, 0}},
		{&fault_fstatat64, {EIO, 0}},
	};

	make_tree(state);
	for (size_t i = 0; i < COUNT(cases); i++) {
		struct err err = {0};
		char **names = NULL;
		size_t n = 7;

		*cases[i].fault = cases[i].what;
		assert_int_equal(file_list_tree(*state, 10, &names, &n, &err), -1);
		assert_int_equal(err.code, cases[i].what.errnum);
		assert_null(names);
		assert_int_equal(n, 7);
	}
}

static void what_vanishes_during_a_listing_is_not_listed(void **state)
{
	char **names;
	size_t n;

	make_tree(state);
	fault_fstatat64 = (struct fault){ENOENT, 0};
	assert_int_equal(file_list_tree(*state, 10, &names, &n, NULL), 0);
	assert_int_equal(n, 0);
	file_list_free(names, n);
	fault_openat64 = (struct fault){ENOENT, 0};
	assert_int_equal(file_list_tree(*state, 10, &names, &n, NULL), 0);
	assert_int_equal(n, 0);
	file_list_free(names, n);
}

static void without_randomness_there_is_no_going_on(void **state)
{
	int status;

	(void)state;
	pid_t pid = fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		__real_close(STDERR_FILENO);
		fault_getrandom = (struct fault){ENOSYS, 0};
		signal(SIGABRT, SIG_DFL);
		rand_u64();
		_exit(0);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_false(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

#define IN_DIR(test) cmocka_unit_test_setup_teardown(test, unit_make_dir, unit_remove_dir)

int main(void)
{
	const struct CMUnitTest tests[] = {
		IN_DIR(a_failed_replacement_leaves_the_old_file_and_nothing_beside),
		IN_DIR(a_replacement_that_may_not_survive_a_crash_says_so),
		IN_DIR(a_filesystem_without_directory_sync_is_fine),
		IN_DIR(a_close_that_was_interrupted_has_closed),
		IN_DIR(a_durable_file_in_the_current_directory_is_written),
		IN_DIR(interrupted_and_short_calls_are_made_again),
		IN_DIR(a_read_that_fails_half_way_leaves_the_buffer_as_it_was),
		IN_DIR(a_copy_goes_on_by_hand_where_the_kernel_cannot),
		IN_DIR(a_failed_copy_leaves_nothing),
		IN_DIR(only_missing_directories_are_asked_for),
		IN_DIR(a_tree_that_cannot_be_removed_says_what_is_in_the_way),
		IN_DIR(a_tree_that_grows_meanwhile_is_removed_in_the_next_round),
		IN_DIR(a_directory_that_stays_closed_is_reported),
		IN_DIR(a_single_file_that_stays_is_reported),
		IN_DIR(a_closed_directory_is_opened_and_removed),
		IN_DIR(a_listing_with_a_hole_is_an_error),
		IN_DIR(what_vanishes_during_a_listing_is_not_listed),
		IN_DIR(without_randomness_there_is_no_going_on),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
