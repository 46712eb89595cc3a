#include "unit.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/err.h"

static void write_file(const char *path, struct str content)
{
	assert_int_equal(file_write_atomic(path, content, 0644, false, NULL), 0);
}

static void assert_content(const char *path, struct str content)
{
	struct buf b;

	buf_init(&b, 1 << 24);
	assert_int_equal(file_read(path, &b, NULL), 0);
	assert_true(str_eq(buf_str(&b), content));
	buf_release(&b);
}

static size_t count_entries(const char *dir)
{
	DIR *d = opendir(dir);
	size_t n = 0;

	assert_non_null(d);
	while (readdir(d))
		n++;
	closedir(d);
	return n - 2;
}

static void a_file_is_read_whole_and_appended(void **state)
{
	const char *path = unit_path(state, "f");
	struct buf b;

	write_file(path, STR("a\0b"));
	buf_init(&b, 100);
	buf_addz(&b, "x");
	assert_int_equal(file_read(path, &b, NULL), 0);
	assert_int_equal(b.n, 4);
	assert_memory_equal(b.p, "xa\0b", 5);
	buf_release(&b);
}

static void an_empty_file_is_read_as_nothing(void **state)
{
	struct buf b;

	write_file(unit_path(state, "f"), STR(""));
	buf_init(&b, 0);
	assert_int_equal(file_read(unit_path(state, "f"), &b, NULL), 0);
	assert_int_equal(b.n, 0);
	buf_release(&b);
}

static void a_file_of_exactly_the_maximum_fits_and_a_larger_one_does_not(void **state)
{
	const char *path = unit_path(state, "f");
	struct err err = {0};
	struct buf b;

	write_file(path, STR("12345678"));
	buf_init(&b, 10);
	buf_addz(&b, "ab");
	assert_int_equal(file_read(path, &b, NULL), 0);
	assert_string_equal(b.p, "ab12345678");
	buf_release(&b);

	buf_init(&b, 9);
	buf_addz(&b, "ab");
	assert_int_equal(file_read(path, &b, &err), -1);
	assert_int_equal(err.kind, ERR_CAPACITY);
	assert_non_null(strstr(err.msg, "larger than 9 bytes"));
	assert_string_equal(b.p, "ab");
	buf_release(&b);
}

static void a_file_without_a_known_size_is_read_to_its_end(void **state)
{
	struct buf b;

	(void)state;
	buf_init(&b, 1 << 20);
	assert_int_equal(file_read("/proc/self/status", &b, NULL), 0);
	assert_non_null(strstr(b.p, "Pid:"));
	buf_release(&b);
}

static void a_large_file_is_read_in_steps(void **state)
{
	const char *path = unit_path(state, "f");
	size_t n = 300000;
	CLEANUP(freep) char *content = xmalloc(n);

	for (size_t i = 0; i < n; i++)
		content[i] = (char)(i * 7);
	write_file(path, (struct str){content, n});
	assert_content(path, (struct str){content, n});
}

static void what_cannot_be_read_says_why(void **state)
{
	struct err err = {0};
	struct buf b;

	buf_init(&b, 100);
	assert_int_equal(file_read(unit_path(state, "absent"), &b, &err), -1);
	assert_int_equal(err.kind, ERR_NOT_FOUND);
	assert_non_null(strstr(err.msg, "absent"));
	assert_int_equal(file_read(*state, &b, &err), -1);
	assert_int_equal(err.code, EISDIR);
	assert_int_equal(b.n, 0);
	buf_release(&b);
}

static void reading_at_a_directory_takes_regular_files_only(void **state)
{
	struct err err = {0};
	struct buf b;
	CLEANUP(close_fdp) int dir = open(*state, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	write_file(unit_path(state, "f"), STR("text"));
	assert_int_equal(symlink("f", unit_path(state, "link")), 0);
	assert_int_equal(mkfifo(unit_path(state, "fifo"), 0600), 0);
	buf_init(&b, 100);
	assert_int_equal(file_read_at(dir, "f", &b, &err), 0);
	assert_string_equal(b.p, "text");
	assert_int_equal(file_read_at(dir, "link", &b, &err), -1);
	assert_int_equal(err.code, ELOOP);
	assert_int_equal(file_read_at(dir, "fifo", &b, &err), -1);
	assert_int_equal(err.kind, ERR_INVALID);
	assert_int_equal(file_read_at(dir, ".", &b, &err), -1);
	assert_int_equal(err.kind, ERR_INVALID);
	assert_int_equal(file_read_at(dir, "absent", &b, &err), -1);
	assert_int_equal(err.kind, ERR_NOT_FOUND);
	assert_string_equal(b.p, "text");
	buf_release(&b);
}

static void writing_replaces_the_whole_file_and_leaves_nothing_beside(void **state)
{
	const char *path = unit_path(state, "f");
	struct stat st;

	for (int durable = 0; durable < 2; durable++) {
		assert_int_equal(file_write_atomic(path, STR("first, longer"), 0640, durable, NULL),
				 0);
		assert_int_equal(file_write_atomic(path, STR("second"), 0600, durable, NULL), 0);
		assert_content(path, STR("second"));
		assert_int_equal(stat(path, &st), 0);
		assert_int_equal(st.st_mode & 07777, 0600);
		assert_int_equal(count_entries(*state), 1);
	}
}

static void the_mode_is_the_one_asked_for_whatever_the_umask(void **state)
{
	mode_t was = umask(077);
	struct stat st;

	assert_int_equal(file_write_atomic(unit_path(state, "f"), STR("x"), 0644, false, NULL), 0);
	umask(was);
	assert_int_equal(stat(unit_path(state, "f"), &st), 0);
	assert_int_equal(st.st_mode & 07777, 0644);
}

static void writing_over_a_link_replaces_the_link(void **state)
{
	struct stat st;

	write_file(unit_path(state, "target"), STR("precious"));
	assert_int_equal(symlink("target", unit_path(state, "link")), 0);
	write_file(unit_path(state, "link"), STR("new"));
	assert_content(unit_path(state, "target"), STR("precious"));
	assert_int_equal(lstat(unit_path(state, "link"), &st), 0);
	assert_true(S_ISREG(st.st_mode));
}

static void a_failed_write_leaves_the_old_file_and_nothing_beside(void **state)
{
	struct err err = {0};

	assert_int_equal(mkdir(unit_path(state, "d"), 0700), 0);
	write_file(unit_path(state, "d/f"), STR("x"));
	/* A directory cannot be replaced by a file. */
	assert_int_equal(file_write_atomic(unit_path(state, "d"), STR("y"), 0600, true, &err), -1);
	assert_int_equal(err.code, EISDIR);
	assert_non_null(strstr(err.msg, "replace"));
	assert_int_equal(count_entries(*state), 1);
	assert_content(unit_path(state, "d/f"), STR("x"));
	assert_int_equal(file_write_atomic(unit_path(state, "no/f"), STR("y"), 0600, true, &err),
			 -1);
	assert_int_equal(err.kind, ERR_NOT_FOUND);
}

/* In a child: a limit on the size of files stands for a full disk. */
static void write_past_the_limit(void **state)
{
	struct rlimit limit = {1000, 1000};
	struct err err = {0};
	char content[2000] = "";

	signal(SIGXFSZ, SIG_IGN);
	if (setrlimit(RLIMIT_FSIZE, &limit) < 0)
		_exit(2);
	if (file_write_atomic(unit_path(state, "f"), (struct str){content, sizeof(content)}, 0600,
			      true, &err) == 0)
		_exit(3);
	if (err.code != EFBIG || err.kind != ERR_CAPACITY || !strstr(err.msg, "/f'"))
		_exit(4);
	if (file_copy(unit_path(state, "large"), unit_path(state, "f"), &err) == 0)
		_exit(5);
	_exit(err.code == EFBIG && strstr(err.msg, "copy") ? 0 : 6);
}

static void a_full_disk_leaves_the_old_file_and_nothing_beside(void **state)
{
	char content[2000] = "";
	int status;

	write_file(unit_path(state, "f"), STR("old"));
	write_file(unit_path(state, "large"), (struct str){content, sizeof(content)});
	pid_t pid = fork();
	assert_true(pid >= 0);
	if (pid == 0)
		write_past_the_limit(state);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	assert_content(unit_path(state, "f"), STR("old"));
	assert_int_equal(count_entries(*state), 2);
}

static void writing_all_survives_short_writes(void **state)
{
	int fds[2], status;
	size_t n = 1 << 20;
	CLEANUP(freep) char *content = xcalloc(1, n);

	(void)state;
	assert_int_equal(pipe(fds), 0);
	pid_t pid = fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		char step[777];
		size_t total = 0;
		ssize_t got;

		close(fds[1]);
		while ((got = read(fds[0], step, sizeof(step))) > 0)
			total += (size_t)got;
		_exit(total == n ? 0 : 1);
	}
	close(fds[0]);
	assert_int_equal(file_write_all(fds[1], content, n, NULL), 0);
	close(fds[1]);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
}

static void writing_to_what_is_closed_says_why(void **state)
{
	struct err err = {0};

	(void)state;
	assert_int_equal(file_write_all(-1, "x", 1, &err), -1);
	assert_int_equal(err.code, EBADF);
	assert_int_equal(file_write_all(-1, "", 0, &err), 0);
}

static void reading_at_an_offset_gives_what_is_there(void **state)
{
	struct err err = {0};
	char out[10] = "";
	size_t n = 99;

	write_file(unit_path(state, "f"), STR("0123456789"));
	CLEANUP(close_fdp) int fd = open(unit_path(state, "f"), O_RDONLY | O_CLOEXEC);
	assert_int_equal(file_pread_full(fd, out, 4, 3, &n, NULL), 0);
	assert_int_equal(n, 4);
	assert_memory_equal(out, "3456", 4);
	assert_int_equal(file_pread_full(fd, out, 10, 8, &n, NULL), 0);
	assert_int_equal(n, 2);
	assert_int_equal(file_pread_full(fd, out, 10, 50, &n, NULL), 0);
	assert_int_equal(n, 0);
	n = 99;
	assert_int_equal(file_pread_full(-1, out, 10, 0, &n, &err), -1);
	assert_int_equal(err.code, EBADF);
	assert_int_equal(n, 99);
}

static void directories_are_made_with_all_their_parents(void **state)
{
	struct err err = {0};
	struct stat st;
	mode_t was = umask(022);

	assert_int_equal(file_mkdir_p(unit_path(state, "a/b//c/"), 0700, &err), 0);
	assert_int_equal(stat(unit_path(state, "a/b/c"), &st), 0);
	assert_int_equal(st.st_mode & 07777, 0700);
	assert_int_equal(file_mkdir_p(unit_path(state, "a/b/c"), 0700, &err), 0);
	assert_int_equal(file_mkdir_p(unit_path(state, "closed/inner"), 0500, &err), 0);
	assert_int_equal(stat(unit_path(state, "closed"), &st), 0);
	assert_int_equal(st.st_mode & 07777, 0700);
	umask(was);

	write_file(unit_path(state, "f"), STR("x"));
	assert_int_equal(file_mkdir_p(unit_path(state, "f"), 0700, &err), -1);
	assert_int_equal(err.code, ENOTDIR);
	assert_int_equal(file_mkdir_p(unit_path(state, "f/g"), 0700, &err), -1);
	assert_int_equal(err.code, ENOTDIR);
	assert_int_equal(file_mkdir_p("", 0700, &err), -1);
	assert_int_equal(err.kind, ERR_INVALID);
	assert_int_equal(symlink("nowhere", unit_path(state, "dangling")), 0);
	assert_int_equal(file_mkdir_p(unit_path(state, "dangling/x"), 0700, &err), -1);
	assert_int_equal(file_mkdir_p("/proc/no", 0700, &err), -1);
	assert_non_null(strstr(err.msg, "create directory '/proc/no'"));
}

static void a_directory_is_synced_or_says_why_not(void **state)
{
	struct err err = {0};

	assert_int_equal(file_sync_dir(*state, &err), 0);
	assert_int_equal(file_sync_dir(unit_path(state, "absent"), &err), -1);
	assert_int_equal(err.kind, ERR_NOT_FOUND);
	write_file(unit_path(state, "f"), STR("x"));
	assert_int_equal(file_sync_dir(unit_path(state, "f"), &err), -1);
	assert_int_equal(err.code, ENOTDIR);
}

static void a_thing_exists_also_when_it_is_a_broken_link(void **state)
{
	assert_false(file_exists(unit_path(state, "x")));
	assert_int_equal(symlink("nowhere", unit_path(state, "x")), 0);
	assert_true(file_exists(unit_path(state, "x")));
	assert_true(file_exists(*state));
}

static void a_copy_has_the_bytes_and_the_mode(void **state)
{
	size_t n = 200000;
	CLEANUP(freep) char *content = xmalloc(n);
	struct err err = {0};
	struct stat st;

	for (size_t i = 0; i < n; i++)
		content[i] = (char)(i * 31);
	assert_int_equal(file_write_atomic(unit_path(state, "from"), (struct str){content, n}, 0751,
					   false, NULL),
			 0);
	write_file(unit_path(state, "to"), STR("what was there"));
	assert_int_equal(file_copy(unit_path(state, "from"), unit_path(state, "to"), &err), 0);
	assert_content(unit_path(state, "to"), (struct str){content, n});
	assert_int_equal(stat(unit_path(state, "to"), &st), 0);
	assert_int_equal(st.st_mode & 07777, 0751);
	assert_int_equal(count_entries(*state), 2);
}

static void a_copy_lends_no_rights(void **state)
{
	struct stat st;

	write_file(unit_path(state, "from"), STR("x"));
	assert_int_equal(chmod(unit_path(state, "from"), 07755), 0);
	assert_int_equal(file_copy(unit_path(state, "from"), unit_path(state, "to"), NULL), 0);
	assert_int_equal(stat(unit_path(state, "to"), &st), 0);
	assert_int_equal(st.st_mode & 07777, 0755);
}

static void a_name_as_long_as_the_filesystem_takes_can_be_written_and_copied(void **state)
{
	char name[NAME_MAX + 1];

	memset(name, 'n', NAME_MAX);
	name[NAME_MAX] = '\0';
	write_file(unit_path(state, name), STR("x"));
	assert_int_equal(mkdir(unit_path(state, "d"), 0700), 0);
	CLEANUP(freep) char *to = xasprintf("%s/%s", unit_path(state, "d"), name);
	assert_int_equal(file_copy(unit_path(state, name), to, NULL), 0);
	assert_content(to, STR("x"));
	assert_int_equal(count_entries(unit_path(state, "d")), 1);
}

static void a_copy_from_where_the_kernel_cannot_is_made_by_hand(void **state)
{
	struct buf b;

	assert_int_equal(file_copy("/proc/self/status", unit_path(state, "to"), NULL), 0);
	buf_init(&b, 1 << 20);
	assert_int_equal(file_read(unit_path(state, "to"), &b, NULL), 0);
	assert_non_null(strstr(b.p, "Pid:"));
	buf_release(&b);
}

static void what_cannot_be_copied_says_why(void **state)
{
	struct err err = {0};

	assert_int_equal(file_copy(unit_path(state, "absent"), unit_path(state, "to"), &err), -1);
	assert_int_equal(err.kind, ERR_NOT_FOUND);
	assert_int_equal(file_copy(*state, unit_path(state, "to"), &err), -1);
	assert_int_equal(err.kind, ERR_INVALID);
	assert_int_equal(mkfifo(unit_path(state, "fifo"), 0600), 0);
	assert_int_equal(file_copy(unit_path(state, "fifo"), unit_path(state, "to"), &err), -1);
	assert_int_equal(err.kind, ERR_INVALID);
	write_file(unit_path(state, "from"), STR("x"));
	assert_int_equal(file_copy(unit_path(state, "from"), unit_path(state, "no/to"), &err), -1);
	assert_int_equal(err.kind, ERR_NOT_FOUND);
	assert_int_equal(count_entries(*state), 2);
}

#define IN_DIR(test) cmocka_unit_test_setup_teardown(test, unit_make_dir, unit_remove_dir)

int main(void)
{
	const struct CMUnitTest tests[] = {
		IN_DIR(a_file_is_read_whole_and_appended),
		IN_DIR(an_empty_file_is_read_as_nothing),
		IN_DIR(a_file_of_exactly_the_maximum_fits_and_a_larger_one_does_not),
		IN_DIR(a_file_without_a_known_size_is_read_to_its_end),
		IN_DIR(a_large_file_is_read_in_steps),
		IN_DIR(what_cannot_be_read_says_why),
		IN_DIR(reading_at_a_directory_takes_regular_files_only),
		IN_DIR(writing_replaces_the_whole_file_and_leaves_nothing_beside),
		IN_DIR(the_mode_is_the_one_asked_for_whatever_the_umask),
		IN_DIR(writing_over_a_link_replaces_the_link),
		IN_DIR(a_failed_write_leaves_the_old_file_and_nothing_beside),
		IN_DIR(a_full_disk_leaves_the_old_file_and_nothing_beside),
		IN_DIR(writing_all_survives_short_writes),
		IN_DIR(writing_to_what_is_closed_says_why),
		IN_DIR(reading_at_an_offset_gives_what_is_there),
		IN_DIR(directories_are_made_with_all_their_parents),
		IN_DIR(a_directory_is_synced_or_says_why_not),
		IN_DIR(a_thing_exists_also_when_it_is_a_broken_link),
		IN_DIR(a_copy_has_the_bytes_and_the_mode),
		IN_DIR(a_copy_lends_no_rights),
		IN_DIR(a_name_as_long_as_the_filesystem_takes_can_be_written_and_copied),
		IN_DIR(a_copy_from_where_the_kernel_cannot_is_made_by_hand),
		IN_DIR(what_cannot_be_copied_says_why),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
