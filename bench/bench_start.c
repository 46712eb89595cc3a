/*
 * bench_start - what the start and the end of a run of many nodes cost the master's loop.
 *
 *     bench_start [NODES [ENGINE]]
 *
 * A whole master in this process, with a driver that makes nothing, and a swarm in a second process: one
 * connection per node that says hello, is ready, gets the table of members and START, and says that it has
 * started.  Measured from the moment when the last node is ready until all have been told, processor time of the
 * loop's thread; the longest turn of the loop is the longest time in which nobody else is served.  Then the run is
 * cancelled: until all have been told to stop, have ended, and are released and deleted.
 *
 * Engine `hosts` creates all nodes of a run with one call, `local` slice by slice.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/arena.h"
#include "base/buf.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/file.h"
#include "base/log.h"
#include "driver/driver.h"
#include "fmt/doc.h"
#include "link/layout.h"
#include "link/message.h"
#include "master/clock.h"
#include "master/internal.h"
#include "master/live_run.h"
#include "master/master.h"
#include "master/round.h"
#include "master/runs.h"
#include "sys/loop.h"

#define NODES 10000
#define TICKS 1000
#define AT_ONCE 100 /* that have dialled and not been welcomed: strangers are few */
#define RX_MAX (4u << 20)

/* ---- a driver that makes nothing ---- */

static enum outcome make(struct driver_row *row)
{
	snprintf(row->id, sizeof(row->id), "none");
	row->identity_checked = true;
	return OUTCOME_DONE;
}

static void make_many(struct driver_row *rows, size_t n)
{
	for (size_t i = 0; i < n; i++)
		rows[i].outcome = make(&rows[i]);
}

const struct driver *driver_for(const char *kind)
{
	static const struct driver none = {.pool = "none",
					   .create = make,
					   .create_many = make_many,
					   .find = make,
					   .observe = make,
					   .destroy = make};

	(void)kind;
	return &none;
}

const struct resolver *resolver_for(const char *engine)
{
	(void)engine;
	return &local_resolver;
}

int driver_resolve(const char *engine, const struct resolve_input *in, struct arena *a,
		   struct doc **ret_facts, struct err *err)
{
	(void)engine;
	return local_resolver.resolve(in, a, ret_facts, err);
}

size_t driver_sweep(const struct sweep_input *in, struct err *err)
{
	(void)in;
	(void)err;
	return 0;
}

/* These nodes print nothing: the master needs one file for each and not four, whatever the limit is here. */
int __wrap_getrlimit64(int what, struct rlimit *ret);
int __wrap_getrlimit64(int what, struct rlimit *ret)
{
	(void)what;
	*ret = (struct rlimit){1 << 20, 1 << 20};
	return 0;
}

int __wrap_streams_open(struct live_run *lr, int rank, struct err *err);
int __wrap_streams_open(struct live_run *lr, int rank, struct err *err)
{
	(void)err;
	lr->nodes[rank].attempt = 1;
	for (int i = 0; i < streams_count(lr->nodes[rank].processes); i++)
		lr->nodes[rank].streams[i].closed_whole = true;
	return 0;
}

/* ---- the swarm ---- */

struct node {
	int fd, starts;
	bool released;
	struct buf rx;
};

static void die(const char *what)
{
	perror(what);
	exit(1);
}

static void say(const struct node *n, enum frame_type type, struct str payload)
{
	uint8_t header[FRAME_HEADER];
	struct iovec iov[] = {{header, sizeof(header)}, {(void *)(uintptr_t)payload.p, payload.n}};

	frame_header(header, (uint8_t)type, 0, 0, (uint32_t)payload.n);
	if (writev(n->fd, iov, 2) != (ssize_t)(sizeof(header) + payload.n))
		die("send");
}

static void dial(const struct live_run *lr, int rank, struct node *n)
{
	struct sockaddr_un addr = {.sun_family = AF_UNIX};
	const char *name = lr->plan.crew.members[rank].name;
	char token[65];
	struct buf text;

	snprintf(addr.sun_path, sizeof(addr.sun_path), "%s/" LAYOUT_LINK_SOCKET, lr->m->home);
	n->fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (n->fd < 0 || connect(n->fd, (struct sockaddr *)&addr, sizeof(addr)) < 0)
		die("dial");
	node_token(lr, name, lr->core->nodes[rank].incarnation, token);
	buf_init(&text, MESSAGE_HELLO_MAX);
	buf_init(&n->rx, RX_MAX);
	message_hello_put(&(struct message_hello){.proto = LINK_PROTO,
						  .run = lr->row.id,
						  .node = name,
						  .token = token,
						  .boot_id = "b",
						  .pid = 1,
						  .version = "bench",
						  .templates = true,
						  .incarnation = lr->core->nodes[rank].incarnation},
			  &text);
	say(n, FRAME_HELLO, buf_str(&text));
	buf_release(&text);
}

static void answer(struct node *n, const struct frame *f, int *ret_here)
{
	if (f->type == FRAME_WELCOME) {
		++*ret_here;
	} else if (f->type == FRAME_INPUTS) {
		say(n, FRAME_READY, STR("{\"ok\":true}"));
	} else if (f->type == FRAME_START) {
		n->starts++;
		say(n, FRAME_STARTED, STR("{\"attempt\":1,\"pid\":1}"));
	} else if (f->type == FRAME_SIGNAL) {
		say(n, FRAME_EXIT,
		    STR("{\"attempt\":1,\"code\":0,\"signal\":15,\"oom\":false,\"kind\":\"none\","
			"\"reason\":\"\",\"streams\":[0,0,0]}"));
		say(n, FRAME_COLLECTED, STR("{\"files\":0,\"bytes\":0}"));
	} else if (f->type == FRAME_BYE) {
		fprintf(stderr, "the master leaves: %.*s\n", STR_ARG(f->payload));
		exit(1);
	} else if (f->type == FRAME_RELEASE) {
		n->released = true;
	}
}

static uint64_t take(struct node *n, int *ret_here)
{
	char *room = buf_reserve(&n->rx, 256 * 1024);
	ssize_t got = room ? recv(n->fd, room, 256 * 1024, MSG_DONTWAIT) : 0;
	struct frame f;
	size_t used;

	if (got < 0 && errno == EAGAIN)
		return 0;
	if (got <= 0)
		die("the master has left");
	buf_commit(&n->rx, (size_t)got);
	while (frame_decode(buf_str(&n->rx), &f, &used) > 0) {
		answer(n, &f, ret_here);
		buf_drop_front(&n->rx, used);
	}
	if (n->rx.n == 0)
		buf_release(&n->rx), buf_init(&n->rx, RX_MAX);
	return (uint64_t)got;
}

/* Until every node is released.  Writes the bytes that came to `told` when all have started. */
static void swarm(const struct live_run *lr, int n, int told)
{
	struct node *v = xcalloc((size_t)n, sizeof(*v));
	struct pollfd *p = xcalloc((size_t)n, sizeof(*p));
	int dialled = 0, here = 0, started = 0, released = 0;
	uint64_t bytes = 0;

	while (released < n) {
		while (dialled < n && dialled - here < AT_ONCE) {
			dial(lr, dialled, &v[dialled]);
			p[dialled] = (struct pollfd){.fd = v[dialled].fd, .events = POLLIN};
			dialled++;
		}
		if (poll(p, (nfds_t)dialled, 10000) <= 0)
			die("nothing comes");
		for (int i = 0; i < dialled; i++) {
			int before = v[i].starts;

			if (p[i].fd < 0 || !p[i].revents)
				continue;
			bytes += take(&v[i], &here);
			if (v[i].starts > before && ++started == n &&
			    write(told, &bytes, sizeof(bytes)) != sizeof(bytes))
				die("tell");
			if (!v[i].released)
				continue;
			close(v[i].fd);
			p[i].fd = -1;
			released++;
		}
	}
}

/* ---- the master ---- */

static double cpu_now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return (double)t.tv_sec * 1e3 + (double)t.tv_nsec / 1e6;
}

static struct live_run *submit(struct master *m, int n, const char *engine)
{
	struct arena *a = arena_new(); /* as long as the process */
	char *json = xasprintf(
		"{\"request_id\":\"request-0123456789\",\"job\":{\"name\":\"bench\",\"command\":[\"true\"],\"count\":%d,\"engine\":\"%s\"},\"client_env\":{\"PATH\":\"/bin\"},\"base_dir\":\"/\"}",
		n, engine);
	const char *details = NULL;
	struct live_run *lr = NULL;
	struct err err = {0};
	struct doc *body;
	bool fresh;

	if (json_parse(str_from(json), a, &body, &err) < 0 ||
	    runs_submit(m, body, a, &lr, &fresh, &details, &err) < 0) {
		fprintf(stderr, "%s\n", details ? details : err.msg);
		exit(1);
	}
	free(json);
	return lr;
}

struct turns {
	double cpu, longest;
	int n;
};

static void turn(struct master *m, struct turns *t)
{
	double before = cpu_now();

	loop_round(m->loop, 0);
	double took = cpu_now() - before;

	t->cpu += took;
	t->n++;
	if (took > t->longest)
		t->longest = took;
}

/* A tick of the core that is due and finds nothing to do: it looks at every node and resource. */
static double tick_ms(struct core_run *r, int64_t now_ms)
{
	const struct event tick = {.kind = EV_TICK};
	struct effects fx = {0};
	double before = cpu_now();

	for (int i = 0; i < TICKS; i++) {
		r->next_ms = 1;
		core_step(r, &tick, now_ms, &fx);
	}
	effects_release(&fx);
	return (cpu_now() - before) / TICKS;
}

static void bench_end(struct master *m, struct live_run *lr, int n)
{
	struct turns stop = {0}, end = {0}, clean = {0};

	lr->busy++; /* it stays in memory when it has ended */
	run_event(lr, &(struct event){.kind = EV_CANCEL});
	while (lr->core->phase == RUN_COLLECTING && lr->core->stop_next < n)
		turn(m, &stop);
	while (lr->core->phase == RUN_COLLECTING)
		turn(m, &end);
	while (!run_phase_is_final(lr->core->phase))
		turn(m, &clean);
	printf("stop of %d nodes: %.3f s of the loop in %d turns, the longest %.1f ms; until all have "
	       "ended %.3f s, the longest turn %.1f ms; until all are gone %.3f s, the longest turn %.1f ms\n",
	       n, stop.cpu / 1e3, stop.n, stop.longest, (stop.cpu + end.cpu) / 1e3, end.longest,
	       (stop.cpu + end.cpu + clean.cpu) / 1e3, clean.longest);
}

int main(int argc, char **argv)
{
	int n = argc > 1 ? (int)strtol(argv[1], NULL, 10) : NODES;
	struct rlimit files = {1 << 20, 1 << 20};
	char home[] = "/tmp/bench_start.XXXXXX";
	struct master m = {0};
	struct err err = {0};
	int told[2];

	setrlimit(RLIMIT_NOFILE, &files);
	signal(SIGPIPE, SIG_IGN);
	log_setup(2, "bench", LOG_WARN);
	if (!mkdtemp(home) || pipe(told) < 0)
		die("mkdtemp");
	struct master_options o = {.home = home, .background = true};

	if (master_open(&m, &o, &err) < 0) {
		fprintf(stderr, "%s\n", err.msg);
		return 1;
	}
	double before = cpu_now();
	struct live_run *lr = submit(&m, n, argc > 2 ? argv[2] : "local");
	double planned = cpu_now() - before;
	struct turns first = {0}, boot = {0}, start = {0}, rest = {0};

	turn(&m, &first);
	printf("submission of %d nodes: %.1f ms to plan it, %.1f ms for the turn that stores it\n",
	       n, planned, first.cpu);
	while (lr->core->phase != RUN_GATHERING)
		turn(&m, &boot);
	printf("until all nodes of %d are made: %.3f s of the loop in %d turns, the longest %.1f ms\n",
	       n, boot.cpu / 1e3, boot.n, boot.longest);
	pid_t pid = fork();

	if (pid == 0) {
		swarm(lr, n, told[1]);
		_exit(0);
	}
	/* The last of these turns sends the first slice. */
	while (lr->core->phase == RUN_GATHERING) {
		start = (struct turns){0};
		turn(&m, &start);
	}
	while (lr->core->starting)
		turn(&m, &start);
	while (lr->core->node_count[NODE_RUNNING] < n)
		turn(&m, &rest);

	uint64_t bytes = 0;

	if (read(told[0], &bytes, sizeof(bytes)) != sizeof(bytes))
		die("the swarm has failed");
	printf("START of %d nodes: %.3f s of the loop in %d turns, the longest %.1f ms; until all have "
	       "started %.3f s, the longest turn %.1f ms; %.1f MB sent\n",
	       n, start.cpu / 1e3, start.n, start.longest, (start.cpu + rest.cpu) / 1e3,
	       rest.longest, (double)bytes / 1e6);
	printf("a tick over %d nodes that run: %.3f ms\n", n, tick_ms(lr->core, master_now(&m)));
	bench_end(&m, lr, n);
	waitpid(pid, NULL, 0);
	m.exit_code = 1; /* nothing is cleaned up: the home goes as it is */
	file_remove_tree(home, NULL);
	return 0;
}
