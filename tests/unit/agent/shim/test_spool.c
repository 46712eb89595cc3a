/* A pipe into a file: nothing lost, nothing twice, gaps counted. */
#include "unit.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include "agent/shim/spool.h"
#include "base/buf.h"
#include "base/err.h"

struct pair {
	int dir, writer;
	struct spool sp;
};

static void begin(void **state, struct pair *p)
{
	struct err err = {0};

	p->dir = open(*state, O_RDONLY | O_DIRECTORY);
	assert_int_equal(spool_make(p->dir, STREAMS, &err), 0);
	assert_int_equal(spool_make(p->dir, STREAMS, &err), 0); /* again is fine */
	p->writer = openat(p->dir, "out.fifo", O_RDWR | O_NONBLOCK);
	assert_int_equal(spool_open(&p->sp, p->dir, STREAM_OUT, &err), 0);
}

static void end(struct pair *p)
{
	spool_close(&p->sp);
	if (p->writer >= 0)
		close(p->writer);
	close(p->dir);
}

static void bytes_go_through_and_the_end_is_seen(void **state)
{
	uint64_t moved;
	struct pair p;
	struct gap g;

	begin(state, &p);
	assert_int_equal(spool_pump(&p.sp, 1, &moved), SPOOL_IDLE);
	assert_int_equal(moved, 0);
	assert_int_equal(write(p.writer, "hello", 5), 5);
	assert_int_equal(spool_pump(&p.sp, 1, &moved), SPOOL_IDLE);
	assert_int_equal(moved, 5);
	close(p.writer);
	p.writer = -1;
	assert_int_equal(spool_pump(&p.sp, 1, &moved), SPOOL_EOF);
	assert_int_equal(spool_pump(&p.sp, 1, &moved), SPOOL_EOF);
	assert_int_equal(p.sp.size, 5);
	assert_false(spool_take_gap(&p.sp, true, &g));
	end(&p);
}

static void the_next_reader_goes_on_where_the_last_one_was(void **state)
{
	struct err err = {0};
	uint64_t moved;
	struct pair p;
	struct buf b;

	begin(state, &p);
	assert_int_equal(write(p.writer, "one ", 4), 4);
	spool_pump(&p.sp, 1, &moved);
	assert_int_equal(write(p.writer, "two", 3), 3); /* in the pipe while nobody reads */
	spool_close(&p.sp);
	assert_int_equal(spool_open(&p.sp, p.dir, STREAM_OUT, &err), 0);
	assert_int_equal(p.sp.size, 4);
	spool_pump(&p.sp, 1, &moved);
	buf_init(&b, 100);
	assert_int_equal(file_read(unit_path(state, "out"), &b, NULL), 0);
	assert_string_equal(b.p, "one two");
	buf_release(&b);
	end(&p);
}

static void the_metrics_pipe_has_no_end(void **state)
{
	struct err err = {0};
	struct spool sp;
	uint64_t moved;
	int dir = open(*state, O_RDONLY | O_DIRECTORY), w;

	assert_int_equal(spool_make(dir, STREAMS, &err), 0);
	assert_int_equal(spool_open(&sp, dir, STREAM_METRICS, &err), 0);
	for (int i = 0; i < 3; i++) {
		w = openat(dir, "metrics.fifo", O_WRONLY | O_NONBLOCK);
		assert_int_equal(write(w, "x", 1), 1);
		close(w);
		assert_int_equal(spool_pump(&sp, 1, &moved), SPOOL_IDLE);
	}
	assert_int_equal(sp.size, 3);
	spool_close(&sp);
	close(dir);
}

static void a_missing_directory_is_an_error(void **state)
{
	struct err err = {0};
	struct spool sp;

	(void)state;
	assert_int_equal(spool_make(-1, STREAMS, &err), -1);
	assert_int_equal(spool_open(&sp, -1, STREAM_OUT, &err), -1);
}

/* The size limit of a process stands for a full disk: it works everywhere. */
static void a_file_that_takes_nothing_blocks_then_drops_then_counts(void **state)
{
	struct rlimit before, small = {4, 4};
	uint64_t moved;
	struct pair p;
	struct gap g;

	begin(state, &p);
	p.sp.full_ms = 1000;
	signal(SIGXFSZ, SIG_IGN);
	getrlimit(RLIMIT_FSIZE, &before);
	small.rlim_max = before.rlim_max;
	assert_int_equal(write(p.writer, "12345678", 8), 8);
	setrlimit(RLIMIT_FSIZE, &small);
	enum spool_state first = spool_pump(&p.sp, 5000, &moved),
			 later = spool_pump(&p.sp, 5999, &moved);
	bool early = spool_take_gap(&p.sp, true, &g);

	spool_pump(&p.sp, 6000, &moved); /* the time is over */
	setrlimit(RLIMIT_FSIZE, &before);
	assert_int_equal(first, SPOOL_FULL);
	assert_int_equal(later, SPOOL_FULL);
	assert_false(early);
	assert_int_equal(p.sp.size, 4);
	assert_int_equal(p.sp.why, EFBIG);
	assert_false(spool_take_gap(&p.sp, false, &g)); /* still open */
	assert_int_equal(write(p.writer, "abc", 3), 3);
	spool_pump(&p.sp, 6100, &moved);
	assert_int_equal(moved, 3);
	assert_true(spool_take_gap(&p.sp, false, &g));
	assert_int_equal(g.offset, 4);
	assert_int_equal(g.bytes, 4);
	assert_false(spool_take_gap(&p.sp, true, &g));
	end(&p);
}

int main(void)
{
#define CASE(fn) cmocka_unit_test_setup_teardown(fn, unit_make_dir, unit_remove_dir)
	static const struct CMUnitTest tests[] = {
		CASE(bytes_go_through_and_the_end_is_seen),
		CASE(the_next_reader_goes_on_where_the_last_one_was),
		CASE(the_metrics_pipe_has_no_end),
		CASE(a_missing_directory_is_an_error),
		CASE(a_file_that_takes_nothing_blocks_then_drops_then_counts),
	};

	return cmocka_run_group_tests_name("agent: spool", tests, NULL, NULL);
}
