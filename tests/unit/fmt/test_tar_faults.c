/*
 * Every call that tar makes of the system fails once, at each point where it
 * is made (the linker puts the functions below in between), and the system
 * tells stories that a real one would need a race or a large disk for.
 */
#include "tar_test.h"

#include <dirent.h>
#include <stdarg.h>

/* The nth call from now fails with this errno; 0 = none does. */
static int countdown, fault_errno;
static bool only_transfers; /* count read and write alone */
static bool fired;
/* What fstat says about regular files; 0 = the truth. */
static int64_t claimed_size;
/* How often each name of a directory is listed. */
static long repeat_names, repeated;

static bool fails(bool transfer)
{
	if (countdown == 0 || (only_transfers && !transfer) || --countdown > 0)
		return false;
	fired = true;
	errno = fault_errno;
	return true;
}

ssize_t __real_read(int fd, void *p, size_t n);
ssize_t __wrap_read(int fd, void *p, size_t n);
ssize_t __wrap_read(int fd, void *p, size_t n)
{
	return fails(true) ? -1 : __real_read(fd, p, n);
}

ssize_t __real_write(int fd, const void *p, size_t n);
ssize_t __wrap_write(int fd, const void *p, size_t n);
ssize_t __wrap_write(int fd, const void *p, size_t n)
{
	return fails(true) ? -1 : __real_write(fd, p, n);
}

int __real_openat64(int fd, const char *name, int flags, ...);
int __wrap_openat64(int fd, const char *name, int flags, ...);
int __wrap_openat64(int fd, const char *name, int flags, ...)
{
	mode_t mode = 0;
	va_list ap;

	if (flags & O_CREAT) {
		va_start(ap, flags);
		mode = va_arg(ap, mode_t);
		va_end(ap);
	}
	return fails(false) ? -1 : __real_openat64(fd, name, flags, mode);
}

int __real_open64(const char *name, int flags, ...);
int __wrap_open64(const char *name, int flags, ...);
int __wrap_open64(const char *name, int flags, ...)
{
	mode_t mode = 0;
	va_list ap;

	if (flags & O_CREAT) {
		va_start(ap, flags);
		mode = va_arg(ap, mode_t);
		va_end(ap);
	}
	return fails(false) ? -1 : __real_open64(name, flags, mode);
}

int __real_mkdirat(int fd, const char *name, mode_t mode);
int __wrap_mkdirat(int fd, const char *name, mode_t mode);
int __wrap_mkdirat(int fd, const char *name, mode_t mode)
{
	return fails(false) ? -1 : __real_mkdirat(fd, name, mode);
}

int __real_fstat64(int fd, struct stat64 *st);
int __wrap_fstat64(int fd, struct stat64 *st);
int __wrap_fstat64(int fd, struct stat64 *st)
{
	if (fails(false))
		return -1;
	int ret = __real_fstat64(fd, st);

	if (ret == 0 && claimed_size && S_ISREG(st->st_mode))
		st->st_size = claimed_size;
	return ret;
}

int __real_fstatat64(int fd, const char *name, struct stat64 *st, int flags);
int __wrap_fstatat64(int fd, const char *name, struct stat64 *st, int flags);
int __wrap_fstatat64(int fd, const char *name, struct stat64 *st, int flags)
{
	return fails(false) ? -1 : __real_fstatat64(fd, name, st, flags);
}

DIR *__real_fdopendir(int fd);
DIR *__wrap_fdopendir(int fd);
DIR *__wrap_fdopendir(int fd)
{
	return fails(false) ? NULL : __real_fdopendir(fd);
}

struct dirent64 *__real_readdir64(DIR *dir);
struct dirent64 *__wrap_readdir64(DIR *dir);
struct dirent64 *__wrap_readdir64(DIR *dir)
{
	static struct dirent64 last;

	if (fails(false))
		return NULL;
	if (repeated > 0) {
		repeated--;
		return &last;
	}
	struct dirent64 *e = __real_readdir64(dir);

	if (e && repeat_names > 0 && e->d_name[0] == 'f') {
		memcpy(&last, e, e->d_reclen);
		repeated = repeat_names;
	}
	return e;
}

static int reset(void **state)
{
	countdown = 0;
	only_transfers = fired = false;
	claimed_size = 0;
	repeat_names = repeated = 0;
	return unit_make_dir(state);
}

static int restore(void **state)
{
	countdown = 0;
	return unit_remove_dir(state);
}

static void make_tree(void **state)
{
	CLEANUP(buf_release) struct buf large;

	buf_init(&large, 1 << 20);
	add_nested(&large, 300000, "x", "", "");
	put_file(state, "src/d/large", large.p, 0644);
	put_file(state, "src/a", "1", 0755);
	assert_int_equal(symlink("a", unit_path(state, "src/link")), 0);
	buf_reset(&large);
	buf_addz(&large, "src/");
	add_nested(&large, 120, "n", "/", "");
	add_nested(&large, 120, "f", "", "");
	put_file(state, large.p, "2", 0644);
}

/* One attempt with the nth call failing; false when there was no nth call. */
static bool attempt(int n, int errnum, int (*work)(void **state, struct err *err), void **state,
		    int expected)
{
	struct err err = {0};

	fired = false;
	fault_errno = errnum;
	countdown = n;
	int ret = work(state, &err);

	countdown = 0;
	if (!fired) {
		assert_int_equal(ret, 0);
		return false;
	}
	if (ret != expected)
		fail_msg("call %d failing with %s: %d %s", n, strerror(errnum), ret, err.msg);
	if (ret < 0) {
		assert_int_equal(err.code, errnum);
		assert_true(strlen(err.msg) > 0);
	}
	return true;
}

static int pack_work(void **state, struct err *err)
{
	CLEANUP(close_fdp) int fd = open("/dev/null", O_WRONLY | O_CLOEXEC);

	/* The descriptor itself is the caller's business. */
	if (fd < 0)
		return err_errno(err, errno, "open");
	return tar_pack(unit_path(state, "src"), fd, err);
}

static int unpack_work(void **state, struct err *err)
{
	static int n;
	CLEANUP(freep) char *to = xasprintf("dst%d", n++);
	CLEANUP(close_fdp) int fd = open(unit_path(state, "a.tar"), O_RDONLY | O_CLOEXEC);

	if (fd < 0)
		return err_errno(err, errno, "open");
	return tar_unpack(fd, unit_path(state, to), err);
}

static void make_archive(void **state)
{
	CLEANUP(close_fdp)
	int fd = open(unit_path(state, "a.tar"), O_WRONLY | O_CREAT | O_CLOEXEC, 0600);

	make_tree(state);
	assert_int_equal(tar_pack(unit_path(state, "src"), fd, NULL), 0);
}

static void packing_reports_the_failure_of_any_call(void **state)
{
	int n = 1;

	make_tree(state);
	while (attempt(n, EIO, pack_work, state, -1))
		n++;
	assert_true(n > 20);
	print_message("# %d calls failed in turn\n", n - 1);
}

static void unpacking_reports_the_failure_of_any_call(void **state)
{
	int n = 1;

	make_archive(state);
	while (attempt(n, EIO, unpack_work, state, -1))
		n++;
	assert_true(n > 20);
	print_message("# %d calls failed in turn\n", n - 1);
}

static void interrupted_transfers_are_repeated(void **state)
{
	int n = 1;

	make_archive(state);
	only_transfers = true;
	while (attempt(n, EINTR, pack_work, state, 0))
		n++;
	assert_true(n > 3);
	n = 1;
	while (attempt(n, EINTR, unpack_work, state, 0))
		n++;
	assert_true(n > 3);
}

static int pack_to(void **state, int *ret_fd, struct err *err)
{
	*ret_fd = temp_fd(state);
	return tar_pack(unit_path(state, "src"), *ret_fd, err);
}

static void a_file_that_becomes_shorter_is_an_error(void **state)
{
	CLEANUP(close_fdp) int fd = -1;
	struct err err = {0};

	put_file(state, "src/f", "12345", 0644);
	claimed_size = 6;
	assert_int_equal(pack_to(state, &fd, &err), -1);
	assert_int_equal(err.kind, ERR_CONFLICT);
	assert_non_null(strstr(err.msg, "'f' became shorter while it was packed"));
}

static void a_file_that_becomes_longer_is_packed_as_long_as_it_was(void **state)
{
	CLEANUP(close_fdp) int fd = -1;
	struct err err = {0};

	put_file(state, "src/f", "12345", 0644);
	claimed_size = 3;
	assert_int_equal(pack_to(state, &fd, &err), 0);
	claimed_size = 0;
	assert_int_equal(lseek(fd, 0, SEEK_SET), 0);
	assert_int_equal(tar_unpack(fd, unit_path(state, "dst"), &err), 0);
	assert_content(state, "dst/f", "123");
}

static void a_size_of_more_than_8_gib_has_its_own_header(void **state)
{
	CLEANUP(freep) char *content = xcalloc(200, 1024);
	CLEANUP(close_fdp) int fd = -1;
	char blocks[1024];
	struct err err = {0};

	/* Long enough that the headers are written before the file ends. */
	memset(content, 'x', 200 * 1024 - 1);
	put_file(state, "src/f", content, 0644);
	claimed_size = INT64_C(9) << 30;
	assert_int_equal(pack_to(state, &fd, &err), -1);
	assert_non_null(strstr(err.msg, "became shorter"));
	claimed_size = 0;
	assert_int_equal(pread(fd, blocks, sizeof(blocks), 0), sizeof(blocks));
	assert_int_equal(blocks[156], 'x');
	assert_memory_equal(blocks + 512, "19 size=9663676416\n", 19);
}

static void more_than_the_limit_is_refused_before_it_is_read(void **state)
{
	CLEANUP(close_fdp) int fd = -1;
	struct err err = {0};

	put_file(state, "src/f", "x", 0644);
	claimed_size = (int64_t)TAR_MAX_BYTES + 1;
	assert_int_equal(pack_to(state, &fd, &err), -1);
	assert_int_equal(err.kind, ERR_CAPACITY);
	assert_non_null(strstr(err.msg, "'f': more than 68719476736 bytes in all"));
}

static void too_many_files_are_refused(void **state)
{
	struct err err = {0};

	/* In one directory. */
	put_file(state, "src/a/f", "", 0644);
	repeat_names = TAR_MAX_ENTRIES;
	assert_int_equal(pack_work(state, &err), -1);
	assert_int_equal(err.kind, ERR_CAPACITY);
	assert_non_null(strstr(err.msg, "more than 200000 files"));
	/* In several. */
	put_file(state, "src/b/f", "", 0644);
	repeated = 0;
	repeat_names = TAR_MAX_ENTRIES / 2;
	err = (struct err){0};
	assert_int_equal(pack_work(state, &err), -1);
	assert_int_equal(err.kind, ERR_CAPACITY);
	assert_non_null(strstr(err.msg, "more than 200000 files"));
}

int main(void)
{
#define rule(fn) cmocka_unit_test_setup_teardown(fn, reset, restore)
	const struct CMUnitTest tests[] = {
		rule(packing_reports_the_failure_of_any_call),
		rule(unpacking_reports_the_failure_of_any_call),
		rule(interrupted_transfers_are_repeated),
		rule(a_file_that_becomes_shorter_is_an_error),
		rule(a_file_that_becomes_longer_is_packed_as_long_as_it_was),
		rule(a_size_of_more_than_8_gib_has_its_own_header),
		rule(more_than_the_limit_is_refused_before_it_is_read),
		rule(too_many_files_are_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
