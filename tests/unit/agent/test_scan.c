/* Ranges and samples: whole lines, each once, whatever the output looks like. */
#include "unit.h"

#include <fcntl.h>
#include <inttypes.h>
#include <string.h>
#include <sys/socket.h>

#include "agent/scan.h"
#include "base/arena.h"
#include "base/err.h"
#include "fmt/doc.h"
#include "link/conn.h"
#include "sys/loop.h"

struct bench {
	char *dir;
	struct loop *loop;
	struct conn *conn;
	struct scan scan;
	int peer, fd;
	struct buf rx;
	size_t frames, samples;
	uint64_t at; /* where the ranges have come to */
	uint64_t bad;
	double sum;
	char scratch[SCAN_CHUNK];
};

static void closed(void *ctx, const struct err *why)
{
	(void)ctx;
	(void)why;
}

static void no_frame(void *ctx, const struct frame *f)
{
	(void)ctx;
	(void)f;
}

static int setup(void **state)
{
	static const struct conn_events ev = {no_frame, NULL, closed};
	struct bench *b = xcalloc(1, sizeof(*b));
	struct message_metric metric = {"loss",
					"loss=(?<value>[-+.0-9eE]+)(?: step=(?<step>[0-9]+))?"};
	struct message_inputs in = {.metrics = &metric, .nmetrics = 1};
	struct err err = {0};
	void *dir;
	int s[2];

	if (unit_make_dir(&dir) < 0 || socketpair(AF_UNIX, SOCK_STREAM, 0, s) < 0)
		return -1;
	b->dir = dir;
	b->loop = loop_new();
	b->conn = conn_new(b->loop, s[0], &ev, b);
	b->peer = s[1];
	fcntl(b->peer, F_SETFL, O_NONBLOCK);
	b->fd = open(unit_path(&dir, "out"), O_RDWR | O_CREAT, 0600);
	buf_init(&b->rx, 64 << 20);
	scan_init(&b->scan);
	*state = b;
	return scan_patterns(&b->scan, &in, &err);
}

static int teardown(void **state)
{
	struct bench *b = *state;
	void *dir = b->dir;

	scan_release(&b->scan);
	conn_free(b->conn);
	loop_free(b->loop);
	close(b->peer);
	close(b->fd);
	buf_release(&b->rx);
	free(b);
	return unit_remove_dir(&dir);
}

static void take(struct bench *b, const struct frame *f, enum stream s)
{
	struct arena *a = arena_new();
	struct err err = {0};
	struct doc *d;

	assert_int_equal(f->type, FRAME_METRICS);
	assert_int_equal(f->channel, s);
	assert_int_equal(json_parse(f->payload, a, &d, &err), 0);
	assert_int_equal(doc_int(d, "from", -1), b->at);
	assert_true(doc_int(d, "to", -1) > doc_int(d, "from", -1));
	b->at = (uint64_t)doc_int(d, "to", 0);
	b->bad += (uint64_t)doc_int(d, "bad", 0);
	b->frames++;
	const struct doc *v = doc_array(d, "samples");

	for (size_t i = 0; i < v->array.n; i++) {
		const struct doc *value = v->array.v[i]->array.v[1];

		b->samples++;
		b->sum += value->type == DOC_INT ? (double)value->i : value->f;
		assert_true(v->array.v[i]->array.v[3]->i > 0);
	}
	arena_free(a);
}

static void receive(struct bench *b, enum stream s)
{
	struct frame f;
	size_t used;

	for (;;) {
		char *room = buf_reserve(&b->rx, 1 << 16);
		ssize_t n = read(b->peer, room, 1 << 16);

		if (n > 0)
			buf_commit(&b->rx, (size_t)n);
		while (frame_decode(buf_str(&b->rx), &f, &used) > 0) {
			take(b, &f, s);
			buf_drop_front(&b->rx, used);
		}
		if (n <= 0 && conn_queued(b->conn) == 0)
			return;
		loop_round(b->loop, 0);
	}
}

static void scan_all(struct bench *b, enum stream s, uint64_t size, bool ended)
{
	while (!scan_stream(&b->scan, s, b->fd, size, ended, b->conn, b->scratch))
		receive(b, s);
	receive(b, s);
}

static uint64_t append(struct bench *b, const char *text, size_t n)
{
	assert_int_equal(write(b->fd, text, n), n);
	return (uint64_t)lseek(b->fd, 0, SEEK_END);
}

static void a_line_counts_when_it_is_whole(void **state)
{
	struct bench *b = *state;
	uint64_t size = append(b, "loss=1\nloss=2", 13);

	scan_all(b, STREAM_OUT, size, false);
	assert_int_equal(b->samples, 1);
	assert_int_equal(b->at, 7);
	size = append(b, "5\n", 2);
	scan_all(b, STREAM_OUT, size, false);
	assert_int_equal(b->samples, 2);
	assert_true(b->sum == 26);
	assert_int_equal(b->at, 15);
}

static void the_last_line_counts_without_its_end(void **state)
{
	struct bench *b = *state;
	uint64_t size = append(b, "x\nloss=3", 8);

	scan_all(b, STREAM_OUT, size, false);
	assert_int_equal(b->samples, 0);
	scan_all(b, STREAM_OUT, size, true);
	assert_int_equal(b->samples, 1);
	assert_int_equal(b->at, size);
	assert_true(scan_done(&b->scan, (uint64_t[STREAMS_MAX]){size, 0, 0}));
	assert_false(scan_done(&b->scan, (uint64_t[STREAMS_MAX]){size, 1, 0}));
}

static void every_byte_is_covered_even_without_samples(void **state)
{
	struct bench *b = *state;
	uint64_t size = append(b, "nothing here\n", 13);

	scan_all(b, STREAM_OUT, size, false);
	assert_int_equal(b->frames, 0); /* no hurry */
	scan_all(b, STREAM_OUT, size, true);
	assert_int_equal(b->frames, 1);
	assert_int_equal(b->at, size);
}

static void output_without_newlines_is_looked_at_in_pieces(void **state)
{
	struct bench *b = *state;
	char *big = xmalloc(5 << 20);

	memset(big, 'x', 5 << 20);
	uint64_t size = append(b, big, 5 << 20);

	scan_all(b, STREAM_OUT, size, false);
	assert_true(b->at >= 4 << 20);
	scan_all(b, STREAM_OUT, size, true);
	assert_int_equal(b->at, size);
	free(big);
}

static void many_samples_come_in_many_frames(void **state)
{
	struct bench *b = *state;
	struct buf text;
	uint64_t size;

	buf_init(&text, 4 << 20);
	for (int i = 1; i <= 100000; i++)
		buf_printf(&text, "loss=%d step=%d\n", i, i);
	size = append(b, text.p, text.n);
	scan_all(b, STREAM_OUT, size, true);
	assert_int_equal(b->samples, 100000);
	assert_true(b->sum == 5000050000.0);
	assert_true(b->frames >= 100000 / 2048);
	assert_int_equal(b->at, size);
	buf_release(&text);
}

static void a_new_connection_scans_from_where_the_master_stands(void **state)
{
	struct bench *b = *state;
	uint64_t size = append(b, "loss=1\nloss=2\nloss=3\n", 21);

	scan_all(b, STREAM_OUT, size, true);
	assert_int_equal(b->samples, 3);
	b->at = 7;
	b->samples = 0;
	scan_resume(&b->scan, (uint64_t[STREAMS_MAX]){7, 0, 0});
	scan_all(b, STREAM_OUT, size, true);
	assert_int_equal(b->samples, 2);
}

static void the_metrics_stream_is_json_lines_and_bad_ones_are_counted(void **state)
{
	struct bench *b = *state;
	static const char text[] =
		"{\"a\": 1, \"b\": 2.5, \"step\": 9}\r\nnonsense\n\n{\"c\": \"NaN\"}\n{\"d\": 4}";
	uint64_t size = append(b, text, sizeof(text) - 1);

	scan_all(b, STREAM_METRICS, size, true);
	assert_int_equal(b->samples, 3);
	assert_true(b->sum == 7.5);
	assert_true(b->bad > 0);
	assert_int_equal(b->at, size);
}

/* 64 patterns that all match each of many short lines: far more than a frame can hold per piece of text. */
static void samples_that_do_not_fit_in_a_frame_are_split_not_lost(void **state)
{
	struct message_metric metrics[64];
	char names[64][128];
	struct message_inputs in = {.metrics = metrics, .nmetrics = 64};
	struct bench *b = *state;
	struct err err = {0};
	struct buf text;

	for (int i = 0; i < 64; i++) {
		memset(names[i], 'a' + i % 26, sizeof(names[i]));
		snprintf(names[i] + 60, 4, "%d", i);
		metrics[i] = (struct message_metric){names[i], "([0-9])"};
	}
	assert_int_equal(scan_patterns(&b->scan, &in, &err), 0);
	buf_init(&text, 1 << 20);
	for (int i = 0; i < 1000; i++)
		buf_addz(&text, "7\n");
	scan_all(b, STREAM_OUT, append(b, text.p, text.n), true);
	assert_int_equal(b->samples, 64000);
	assert_int_equal(b->at, text.n);
	buf_release(&text);
}

static void one_line_with_more_than_a_frame_of_figures_is_counted_as_bad(void **state)
{
	struct bench *b = *state;
	struct buf text;

	b->scan.items.max = 300; /* frames as small as this one needs them */
	buf_init(&text, 1 << 20);
	buf_addz(&text, "loss=1\n**metrics_data: ");
	for (int i = 0; i < 50; i++)
		buf_printf(&text, "n%d=1,", i);
	buf_addz(&text, "z=1\nloss=5\n");
	uint64_t size = append(b, text.p, text.n);

	scan_all(b, STREAM_OUT, size, true);
	assert_int_equal(b->at, size);
	assert_int_equal(b->samples, 2); /* those before and behind it */
	assert_true(b->sum == 6);
	assert_true(b->bad > 0);
	buf_release(&text);
}

static void a_pattern_that_does_not_compile_keeps_the_old_ones(void **state)
{
	struct bench *b = *state;
	struct message_metric metric = {"x", "("};
	struct message_inputs in = {.metrics = &metric, .nmetrics = 1};
	struct err err = {0};

	assert_int_equal(scan_patterns(&b->scan, &in, &err), -1);
	assert_int_equal(err.kind, ERR_INVALID);
	scan_all(b, STREAM_OUT, append(b, "loss=1\n", 7), true);
	assert_int_equal(b->samples, 1);
}

int main(void)
{
#define CASE(fn) cmocka_unit_test_setup_teardown(fn, setup, teardown)
	static const struct CMUnitTest tests[] = {
		CASE(a_line_counts_when_it_is_whole),
		CASE(the_last_line_counts_without_its_end),
		CASE(every_byte_is_covered_even_without_samples),
		CASE(output_without_newlines_is_looked_at_in_pieces),
		CASE(many_samples_come_in_many_frames),
		CASE(a_new_connection_scans_from_where_the_master_stands),
		CASE(the_metrics_stream_is_json_lines_and_bad_ones_are_counted),
		CASE(samples_that_do_not_fit_in_a_frame_are_split_not_lost),
		CASE(one_line_with_more_than_a_frame_of_figures_is_counted_as_bad),
		CASE(a_pattern_that_does_not_compile_keeps_the_old_ones),
	};

	return cmocka_run_group_tests_name("agent: scan", tests, NULL, NULL);
}
