/* bench_link - frames through a pair of sockets, one process, one loop: what the link itself costs,
 * plain and over TLS (both ends' share of it). */
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/file.h"
#include "link/conn.h"
#include "net/tls.h"
#include "net/tls_client.h"
#include "net/tls_handshake.h"
#include "net/transport.h"
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

static struct tls_server *tls; /* NULL: plain */
static char pin[TLS_PIN_SIZE];

static void shaken(void *ctx, struct transport *t, const struct err *why)
{
	struct transport *out = ctx;

	if (!t) {
		fprintf(stderr, "%s\n", why->msg);
		exit(1);
	}
	*out = *t;
}

/* Both ends of a pair over TLS. */
static void shake_hands(struct loop *l, const int fd[2], struct transport ret[2])
{
	struct tls_trust trust = {.mode = TLS_PIN, .pin = pin};
	struct tls_handshake *h[2];
	struct transport t[2];

	fcntl(fd[0], F_SETFL, O_NONBLOCK);
	tls_accept(tls, &t[0], fd[0]);
	if (tls_client_begin(&t[1], fd[1], &trust, "localhost", NULL, NULL) < 0)
		exit(1);
	for (int i = 0; i < 2; i++) {
		ret[i].ops = NULL;
		h[i] = tls_handshake_new(l, &t[i], 10000, shaken, &ret[i]);
	}
	while (!ret[0].ops || !ret[1].ops)
		loop_round(l, 100);
	for (int i = 0; i < 2; i++)
		tls_handshake_free(h[i]);
}

static void make_pair(struct loop *l, struct end *a, const struct conn_events *a_ev, struct end *b,
		      const struct conn_events *b_ev)
{
	struct transport t[2];
	int fd[2];

	if (socketpair(AF_UNIX, SOCK_STREAM, 0, fd) < 0) {
		perror("socketpair");
		exit(1);
	}
	transport_plain(&t[0], fd[0]);
	transport_plain(&t[1], fd[1]);
	if (tls)
		shake_hands(l, fd, t);
	a->loop = b->loop = l;
	a->conn = conn_new_over(l, &t[0], a_ev, a);
	b->conn = conn_new_over(l, &t[1], b_ev, b);
}

static const char *how(void)
{
	return tls ? "link over TLS" : "link";
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

	printf("%s bulk: %" PRIu64 " frames of %d KiB, %.2f GB/s\n", how(), b.frames,
	       BULK_FRAME / 1024, (double)b.bytes / s / 1e9);
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
	printf("%s ping: %.2f us per round trip\n", how(),
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
	printf("%s idle: %d connections, %ld bytes each\n", how(), 2 * IDLE_PAIRS,
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

static void open_tls(void)
{
	char dir[] = "/tmp/bench-link-XXXXXX";
	struct err err = {0};

	if (!mkdtemp(dir) || tls_server_open(dir, &tls, &err) < 0) {
		fprintf(stderr, "%s\n", err.msg);
		exit(1);
	}
	tls_server_pin(tls, pin);
	file_remove_tree(dir, NULL);
}

static void all_of(struct loop *l)
{
	idle(l); /* first: it looks at the high-water mark of memory */
	bulk(l);
	ping_pong(l);
}

int main(void)
{
	raise_descriptors();
	signal(SIGPIPE, SIG_IGN); /* OpenSSL writes with write() */
	struct loop *l = loop_new();

	all_of(l);
	open_tls();
	all_of(l);
	tls_server_free(tls);
	loop_free(l);
	return 0;
}
