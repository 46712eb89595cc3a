/* bench_link - frames through a socket pair, one process, one loop: what the link itself costs. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/err.h"
#include "link/conn.h"
#include "sys/loop.h"

#define BULK_FRAME (256 * 1024)
#define BULK_TOTAL (UINT64_C(4) << 30)
#define SMALL_FRAMES 500000
#define IDLE_PAIRS 2000

struct end {
	struct loop *loop;
	struct conn *conn;
	uint64_t left, bytes, frames;
	char *body;
};

static void push(void *ctx)
{
	struct end *e = ctx;
	uint8_t offset[8];

	while (e->left > 0 && conn_queued(e->conn) < CONN_LOW_WATER) {
		data_offset_put(offset, BULK_TOTAL - e->left);
		conn_send(e->conn, FRAME_DATA, 0, (struct str){(char *)offset, sizeof(offset)},
			  (struct str){e->body, BULK_FRAME});
		e->left -= BULK_FRAME;
	}
	if (e->left == 0)
		conn_close(e->conn);
}

static void take(void *ctx, const struct frame *f)
{
	struct end *e = ctx;

	e->bytes += f->payload.n;
	e->frames++;
}

static void echo(void *ctx, const struct frame *f)
{
	struct end *e = ctx;

	conn_send(e->conn, FRAME_PONG, 0, f->payload, STR(""));
}

static void again(void *ctx, const struct frame *f)
{
	struct end *e = ctx;

	if (++e->frames == SMALL_FRAMES)
		loop_stop(e->loop);
	else
		conn_send(e->conn, FRAME_PING, 0, f->payload, STR(""));
}

static void sender_closed(void *ctx, const struct err *why)
{
	(void)ctx;
	(void)why;
}

static void closed(void *ctx, const struct err *why)
{
	struct end *e = ctx;

	(void)why;
	loop_stop(e->loop);
}

static void make_pair(struct loop *l, struct end *a, const struct conn_events *a_ev, struct end *b,
		      const struct conn_events *b_ev)
{
	int fd[2];

	if (socketpair(AF_UNIX, SOCK_STREAM, 0, fd) < 0) {
		perror("socketpair");
		exit(1);
	}
	a->loop = b->loop = l;
	a->conn = conn_new(l, fd[0], a_ev, a);
	b->conn = conn_new(l, fd[1], b_ev, b);
}

static void bulk(struct loop *l)
{
	static const struct conn_events out = {
		.on_frame = take, .on_drained = push, .on_close = sender_closed};
	static const struct conn_events in = {.on_frame = take, .on_close = closed};
	struct end a = {.left = BULK_TOTAL, .body = calloc(1, BULK_FRAME)}, b = {0};

	make_pair(l, &a, &out, &b, &in);
	int64_t start = clock_boot_us();

	push(&a);
	loop_run(l);
	double s = (double)(clock_boot_us() - start) / 1e6;

	printf("link bulk: %" PRIu64 " frames of %d KiB, %.2f GB/s\n", b.frames, BULK_FRAME / 1024,
	       (double)b.bytes / s / 1e9);
	conn_free(a.conn);
	conn_free(b.conn);
	free(a.body);
}

static void ping_pong(struct loop *l)
{
	static const struct conn_events ping = {.on_frame = again, .on_close = closed};
	static const struct conn_events pong = {.on_frame = echo, .on_close = closed};
	struct end a = {0}, b = {0};

	make_pair(l, &a, &ping, &b, &pong);
	int64_t start = clock_boot_us();

	conn_send(a.conn, FRAME_PING, 0, STR("{}"), STR(""));
	loop_run(l);
	printf("link ping: %.2f us per round trip\n",
	       (double)(clock_boot_us() - start) / SMALL_FRAMES);
	conn_free(a.conn);
	conn_free(b.conn);
}

static void idle(struct loop *l)
{
	static const struct conn_events ev = {.on_frame = take, .on_close = closed};
	static struct end ends[IDLE_PAIRS * 2];
	struct rusage before, after;

	getrusage(RUSAGE_SELF, &before);
	for (int i = 0; i < IDLE_PAIRS; i++)
		make_pair(l, &ends[2 * i], &ev, &ends[2 * i + 1], &ev);
	for (int i = 0; i < IDLE_PAIRS; i++)
		conn_send(ends[2 * i].conn, FRAME_PING, 0, STR("{}"), STR(""));
	for (int i = 0; i < 100; i++)
		loop_round(l, 0);
	getrusage(RUSAGE_SELF, &after);
	printf("link idle: %d connections, %ld bytes each\n", 2 * IDLE_PAIRS,
	       (after.ru_maxrss - before.ru_maxrss) * 1024 / (2 * IDLE_PAIRS));
	for (int i = 0; i < 2 * IDLE_PAIRS; i++)
		conn_free(ends[i].conn);
}

/* The usual 1024 are too few for the idle connections. */
static void raise_descriptors(void)
{
	struct rlimit rl;

	if (getrlimit(RLIMIT_NOFILE, &rl) == 0 && rl.rlim_cur < rl.rlim_max) {
		rl.rlim_cur = rl.rlim_max;
		setrlimit(RLIMIT_NOFILE, &rl);
	}
}

int main(void)
{
	raise_descriptors();
	struct loop *l = loop_new();

	idle(l); /* first: it looks at the high-water mark of memory */
	bulk(l);
	ping_pong(l);
	loop_free(l);
	return 0;
}
