/* Both logs are printed in the order of arrival, even if the file with the order is damaged. */
#include "store_fixture.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>

#include "store/log_order.h"
#include "store/logfile.h"

#define RECORD 42

/* A node's two logs as the master writes them. */
struct node {
	const char *dir;
	struct log_order order;
	struct logfile *logs[ORDER_LOGS];
};

static void node_open(struct node *n, const char *dir)
{
	static const char *const names[] = {"n.log", "n.err.log"};
	struct err err;

	*n = (struct node){.dir = dir};
	for (int i = 0; i < ORDER_LOGS; i++)
		assert_ok(logfile_open(dir, names[i], &n->logs[i], &err), &err);
}

static void node_close(struct node *n)
{
	for (int i = 0; i < ORDER_LOGS; i++)
		n->logs[i] = logfile_close(n->logs[i]);
}

static void sizes_of(const struct node *n, uint64_t sizes[static ORDER_LOGS])
{
	for (int i = 0; i < ORDER_LOGS; i++)
		sizes[i] = logfile_size(n->logs[i]);
}

static void write_log(struct node *n, int log, const char *text)
{
	uint64_t sizes[ORDER_LOGS];
	struct err err;

	sizes_of(n, sizes);
	assert_ok(log_order_grow(&n->order, n->dir, "n", log, sizes, &err), &err);
	assert_ok(logfile_append(n->logs[log], sizes[log], str_from(text), &err), &err);
}

/* Both logs from the positions on; whatever the order, every byte is there once. */
static void read_from(struct node *n, struct log_order_reader *r, struct buf *out)
{
	uint64_t sizes[ORDER_LOGS], end;
	int log;

	sizes_of(n, sizes);
	while ((log = log_order_next(r, n->dir, "n", sizes, &end)) >= 0) {
		char text[256];
		size_t got;
		assert_true(end > r->pos[log] && end - r->pos[log] < sizeof(text));
		assert_int_equal(file_pread_full(logfile_fd(n->logs[log]), text,
						 (size_t)(end - r->pos[log]), (int64_t)r->pos[log],
						 &got, NULL),
				 0);
		buf_add(out, text, got);
		r->pos[log] = end;
	}
}

static void assert_reads(struct node *n, uint64_t out_pos, uint64_t err_pos, const char *want)
{
	CLEANUP(buf_release) struct buf all = {0};
	struct log_order_reader r;

	buf_init(&all, 1 << 16);
	log_order_reader_init(&r, n->dir, "n", (uint64_t[]){out_pos, err_pos});
	read_from(n, &r, &all);
	assert_true(str_is(buf_str(&all), want));
	log_order_reader_release(&r);
}

static void logs_are_read_in_the_order_of_arrival(void **state)
{
	struct node n;

	node_open(&n, *state);
	write_log(&n, ORDER_OUT, "1\n");
	write_log(&n, ORDER_OUT, "2\n");
	write_log(&n, ORDER_ERR, "3\n");
	write_log(&n, ORDER_OUT, "4\n");
	write_log(&n, ORDER_ERR, "5\n");
	write_log(&n, ORDER_ERR, "6\n");
	assert_reads(&n, 0, 0, "1\n2\n3\n4\n5\n6\n");
	/* From anywhere. */
	assert_reads(&n, 2, 0, "2\n3\n4\n5\n6\n");
	assert_reads(&n, 4, 0, "3\n4\n5\n6\n");
	assert_reads(&n, 4, 2, "4\n5\n6\n");
	assert_reads(&n, 6, 4, "6\n");
	assert_reads(&n, 6, 6, "");
	assert_reads(&n, 99, 99, "");
	node_close(&n);
}

static void a_job_that_uses_one_log_has_no_order(void **state)
{
	struct stat sb;
	struct node n;

	node_open(&n, *state);
	for (int i = 0; i < 10; i++)
		write_log(&n, ORDER_ERR, "x\n");
	assert_int_equal(stat(unit_path(state, "n.order"), &sb), -1);
	/* And neighbours of one log are one record. */
	for (int i = 0; i < 10; i++)
		write_log(&n, ORDER_OUT, "y\n");
	assert_int_equal(stat(unit_path(state, "n.order"), &sb), 0);
	assert_int_equal(sb.st_size, RECORD);
	assert_int_equal(sb.st_mode & 0777, 0600);
	node_close(&n);
}

static void a_reader_that_stays_sees_what_comes(void **state)
{
	CLEANUP(buf_release) struct buf all = {0};
	struct log_order_reader r;
	struct node n;

	buf_init(&all, 1 << 16);
	node_open(&n, *state);
	log_order_reader_init(&r, n.dir, "n", (uint64_t[]){0, 0});
	for (int i = 0; i < 8; i++) {
		char text[8];
		snprintf(text, sizeof(text), "%d\n", i);
		write_log(&n, i / 2 % 2, text);
		if (i % 3 == 0)
			read_from(&n, &r, &all);
	}
	read_from(&n, &r, &all);
	assert_true(str_is(buf_str(&all), "0\n1\n2\n3\n4\n5\n6\n7\n"));
	log_order_reader_release(&r);
	node_close(&n);
}

static void the_next_master_goes_on(void **state)
{
	struct node n;

	node_open(&n, *state);
	write_log(&n, ORDER_OUT, "1\n");
	write_log(&n, ORDER_ERR, "2\n");
	node_close(&n);
	node_open(&n, *state);
	write_log(&n, ORDER_ERR, "3\n");
	write_log(&n, ORDER_OUT, "4\n");
	assert_reads(&n, 0, 0, "1\n2\n3\n4\n");
	node_close(&n);
}

static void without_an_order_standard_output_comes_first(void **state)
{
	struct node n;

	node_open(&n, *state);
	write_log(&n, ORDER_ERR, "1\n");
	write_log(&n, ORDER_OUT, "2\n");
	write_log(&n, ORDER_ERR, "3\n");
	assert_int_equal(unlink(unit_path(state, "n.order")), 0);
	assert_reads(&n, 0, 0, "2\n1\n3\n");
	node_close(&n);
	/* What comes from now on is in order again. */
	node_open(&n, *state);
	write_log(&n, ORDER_ERR, "4\n");
	write_log(&n, ORDER_OUT, "5\n");
	assert_reads(&n, 0, 0, "2\n1\n3\n4\n5\n");
	node_close(&n);
}

/* After the power went: records about bytes that are not there, zeros, half a record. */
static void a_damaged_order_costs_no_byte(void **state)
{
	static const struct {
		const char *text;
		size_t n;
	} tails[] = {
		{"00000000000000000099 00000000000000000002\n", RECORD},
		{"00000000000000000002 00000000000000000099\n", RECORD},
		{"0000000000000000000", 19},
		{"\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0"
		 "\0\0\0",
		 RECORD}};

	for (size_t i = 0; i < sizeof(tails) / sizeof(tails[0]); i++) {
		const char *path = unit_path(state, "n.order");
		struct node n;
		unlink(path);
		unlink(unit_path(state, "n.log"));
		unlink(unit_path(state, "n.err.log"));
		node_open(&n, *state);
		write_log(&n, ORDER_ERR, "1\n");
		write_log(&n, ORDER_OUT, "2\n");
		node_close(&n);
		int fd = open(unit_path(state, "n.order"), O_WRONLY | O_APPEND);
		assert_int_equal(write(fd, tails[i].text, tails[i].n), (ssize_t)tails[i].n);
		close(fd);
		node_open(&n, *state);
		assert_reads(&n, 0, 0, "1\n2\n");
		write_log(&n, ORDER_ERR, "3\n");
		write_log(&n, ORDER_OUT, "4\n");
		assert_reads(&n, 0, 0, "1\n2\n3\n4\n");
		node_close(&n);
	}
}

static void assert_tail(struct node *n, uint64_t lines, const char *want)
{
	uint64_t sizes[ORDER_LOGS], pos[ORDER_LOGS] = {77, 77};
	int fds[ORDER_LOGS] = {logfile_fd(n->logs[0]), logfile_fd(n->logs[1])};
	struct err err;

	sizes_of(n, sizes);
	assert_ok(log_order_tail(n->dir, "n", fds, sizes, lines, pos, &err), &err);
	assert_reads(n, pos[ORDER_OUT], pos[ORDER_ERR], want);
}

static void the_last_lines_are_those_of_both_together(void **state)
{
	struct node n;

	node_open(&n, *state);
	assert_tail(&n, 3, "");
	write_log(&n, ORDER_OUT, "1\n2\n");
	write_log(&n, ORDER_ERR, "3\n");
	write_log(&n, ORDER_OUT, "4\n");
	write_log(&n, ORDER_ERR, "5\n6\n");
	assert_tail(&n, 0, "");
	assert_tail(&n, 1, "6\n");
	assert_tail(&n, 3, "4\n5\n6\n");
	assert_tail(&n, 4, "3\n4\n5\n6\n");
	assert_tail(&n, 5, "2\n3\n4\n5\n6\n");
	assert_tail(&n, 6, "1\n2\n3\n4\n5\n6\n");
	assert_tail(&n, 1000, "1\n2\n3\n4\n5\n6\n");
	/* A line that another one interrupts is one line, and one without its end is the last. */
	write_log(&n, ORDER_OUT, "sev");
	write_log(&n, ORDER_ERR, "8\n");
	write_log(&n, ORDER_OUT, "en");
	assert_tail(&n, 1, "seven");
	assert_tail(&n, 2, "sev8\nen");
	assert_tail(&n, 3, "6\nsev8\nen");
	node_close(&n);
}

/* A missing log is an empty one. */
static void the_tail_of_one_log_is_its_own(void **state)
{
	uint64_t sizes[ORDER_LOGS], pos[ORDER_LOGS];
	struct node n;
	struct err err;

	node_open(&n, *state);
	write_log(&n, ORDER_ERR, "1\n2\n3\n");
	sizes_of(&n, sizes);
	int fds[ORDER_LOGS] = {-1, logfile_fd(n.logs[ORDER_ERR])};
	assert_ok(log_order_tail(n.dir, "n", fds, sizes, 2, pos, &err), &err);
	assert_int_equal(pos[ORDER_OUT], 0);
	assert_int_equal(pos[ORDER_ERR], 2);
	node_close(&n);
}

static void an_order_that_cannot_be_written_is_an_error(void **state)
{
	struct err err = {0};
	struct node n;

	node_open(&n, *state);
	write_log(&n, ORDER_OUT, "1\n");
	assert_int_equal(mkdir(unit_path(state, "n.order"), 0700), 0);
	assert_int_equal(log_order_grow(&n.order, n.dir, "n", ORDER_ERR, (uint64_t[]){2, 0}, &err),
			 -1);
	assert_true(strstr(err.msg, "order of the logs of 'n'") != NULL);
	node_close(&n);
}

int main(void)
{
#define T(fn) cmocka_unit_test_setup_teardown(fn, unit_make_dir, unit_remove_dir)
	const struct CMUnitTest tests[] = {
		T(logs_are_read_in_the_order_of_arrival),
		T(a_job_that_uses_one_log_has_no_order),
		T(a_reader_that_stays_sees_what_comes),
		T(the_next_master_goes_on),
		T(without_an_order_standard_output_comes_first),
		T(a_damaged_order_costs_no_byte),
		T(the_last_lines_are_those_of_both_together),
		T(the_tail_of_one_log_is_its_own),
		T(an_order_that_cannot_be_written_is_an_error),
	};

	return cmocka_run_group_tests_name("log_order", tests, NULL, NULL);
}
