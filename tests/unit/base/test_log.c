#include "unit.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <string.h>

#include "base/buf.h"
#include "base/log.h"

static int open_log(void **state, enum log_level max)
{
	int fd = open(unit_path(state, "log"), O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC, 0600);

	assert_true(fd >= 0);
	log_setup(fd, "agent", max);
	return fd;
}

static void read_log(void **state, int fd, struct buf *out)
{
	log_setup(STDERR_FILENO, "regatta", LOG_INFO);
	close(fd);
	buf_init(out, 1 << 22);
	assert_int_equal(file_read(unit_path(state, "log"), out, NULL), 0);
}

static void a_line_has_time_role_and_text(void **state)
{
	struct buf b;
	int fd = open_log(state, LOG_INFO);

	log_info("node %s is %d", "a-0", 7);
	read_log(state, fd, &b);
	/* 2026-01-02T03:04:05.678Z agent: node a-0 is 7 */
	assert_true(b.n > 24);
	assert_int_equal(b.p[10], 'T');
	assert_int_equal(b.p[23], 'Z');
	assert_string_equal(b.p + 24, " agent: node a-0 is 7\n");
	buf_release(&b);
}

static void a_second_place_gets_every_line_too(void **state)
{
	struct buf b, second;
	int fd = open_log(state, LOG_INFO);
	int also = open(unit_path(state, "also"), O_WRONLY | O_CREAT | O_CLOEXEC, 0600);

	assert_true(also >= 0);
	log_also(also);
	log_info("both");
	log_also(-1);
	log_info("one");
	close(also);
	read_log(state, fd, &b);
	buf_init(&second, 4096);
	assert_int_equal(file_read(unit_path(state, "also"), &second, NULL), 0);
	assert_non_null(strstr(b.p, "both\n"));
	assert_non_null(strstr(b.p, "one\n"));
	assert_string_equal(second.p + 24, " agent: both\n");
	buf_release(&second);
	buf_release(&b);
}

static void what_is_above_the_level_is_not_said(void **state)
{
	struct buf b;
	int fd = open_log(state, LOG_WARN);

	log_error("one");
	log_warn("two");
	log_info("three");
	log_debug("four");
	read_log(state, fd, &b);
	assert_non_null(strstr(b.p, "one\n"));
	assert_non_null(strstr(b.p, "two\n"));
	assert_null(strstr(b.p, "three"));
	assert_null(strstr(b.p, "four"));
	buf_release(&b);
}

static void control_bytes_and_inner_newlines_are_spelled_out(void **state)
{
	struct buf b;
	int fd = open_log(state, LOG_INFO);

	log_info("a\x1b[31m\nb\n");
	read_log(state, fd, &b);
	assert_non_null(strstr(b.p, "agent: a\\x1b[31m\\x0ab\n"));
	assert_null(memchr(b.p, 0x1b, b.n));
	assert_ptr_equal(memchr(b.p, '\n', b.n), b.p + b.n - 1);
	buf_release(&b);
}

static void a_very_long_text_is_cut_and_says_so(void **state)
{
	struct buf b;
	int fd = open_log(state, LOG_INFO);
	char text[5000];

	/* All of it escaped: the longest line there can be. */
	memset(text, 1, sizeof(text) - 1);
	text[sizeof(text) - 1] = '\0';
	log_info("%s", text);
	read_log(state, fd, &b);
	assert_true(b.n > 8000 && b.n < 9000);
	assert_string_equal(b.p + b.n - 8, "\\x01...\n");
	buf_release(&b);
}

static void errno_is_left_alone(void **state)
{
	int fd = open_log(state, LOG_INFO);

	close(fd);
	errno = ERANGE;
	log_info("to nobody");
	assert_int_equal(errno, ERANGE);
	log_setup(STDERR_FILENO, "regatta", LOG_INFO);
}

static void *talk(void *arg)
{
	for (int i = 0; i < 500; i++)
		log_info("%s", (const char *)arg);
	return NULL;
}

static void lines_of_several_threads_do_not_mix(void **state)
{
	char a[] = "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa";
	char b[] = "bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb";
	int fd = open_log(state, LOG_INFO);
	pthread_t first, second;
	struct buf all;
	int lines = 0;

	assert_int_equal(pthread_create(&first, NULL, talk, a), 0);
	assert_int_equal(pthread_create(&second, NULL, talk, b), 0);
	pthread_join(first, NULL);
	pthread_join(second, NULL);
	read_log(state, fd, &all);
	struct str rest = buf_str(&all);
	while (rest.n) {
		struct str line = str_cut(&rest, '\n');
		lines++;
		assert_true(str_ends(line, str_from(a)) || str_ends(line, str_from(b)));
		assert_int_equal(line.n, 24 + 8 + sizeof(a) - 1);
	}
	assert_int_equal(lines, 1000);
	buf_release(&all);
}

#define IN_DIR(test) cmocka_unit_test_setup_teardown(test, unit_make_dir, unit_remove_dir)

int main(void)
{
	const struct CMUnitTest tests[] = {
		IN_DIR(a_line_has_time_role_and_text),
		IN_DIR(a_second_place_gets_every_line_too),
		IN_DIR(what_is_above_the_level_is_not_said),
		IN_DIR(control_bytes_and_inner_newlines_are_spelled_out),
		IN_DIR(a_very_long_text_is_cut_and_says_so),
		IN_DIR(errno_is_left_alone),
		IN_DIR(lines_of_several_threads_do_not_mix),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
