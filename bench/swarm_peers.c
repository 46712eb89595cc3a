/*
 * swarm_peers - many hosts and the nodes that a master makes on them, played by one process.
 *
 *     swarm_peers HOST PORT PIN JOIN_TOKEN HOSTS PING_MS
 *
 * Each host has a connection of its own over TLS and joins as the daemon of a machine does; each node that it is
 * asked for is another connection, which says and answers what a node's agent says and answers, pings and samples
 * as often as the master asks for, and runs no job.  A host pings every PING_MS (a real one every 5 s).  Who loses the master dials again with the pauses of a real one.
 *
 * Five times a second a line of JSON on stdout says where all of them stand.
 */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/arena.h"
#include "base/backoff.h"
#include "base/buf.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/list.h"
#include "base/log.h"
#include "base/map.h"
#include "link/conn.h"
#include "link/layout.h"
#include "link/message.h"
#include "net/dialer.h"
#include "net/transport.h"
#include "sys/loop.h"

#define SAY_MS 200
#define NODE_PING_MS 5000   /* as agent/agent_link.c has it ... */
#define LOST_PINGS 15	    /* ... of a node that may be carried elsewhere: so many in `lost` */
#define BACKOFF_MIN_MS 50   /* of both */
#define BACKOFF_MAX_MS 5000 /* of both */
#define LOST_BACKOFF_MAX_MS 500
#define CALL_MS 10000
#define DIALS_PER_MS 4 /* of hosts that have never joined: they do not come all in one moment */
#define ID_MAX 128
#define SLOTS_MAX 1000 /* nodes on one host */

enum place { AWAY, DIALLING, THERE, LEFT };

struct peer {
	bool is_node;
	enum place place;
	bool welcome; /* the master has taken its JOIN or HELLO */
	char id[ID_MAX];
	struct dialer *dialer;
	struct conn *conn;
	struct loop_timer *dial, *ping, *sample;
	struct backoff backoff;

	struct list nodes; /* of a host: struct peer */

	/* of a node */
	struct list in_list;
	char run[64], node[64], token[65];
	int incarnation, attempt;
	bool ended;
	int64_t lost_ms, sample_ms;
};

static struct swarm {
	struct loop *loop;
	struct dialer_target master;
	const char *token;
	struct map *nodes; /* id -> struct peer */
	struct loop_timer *say;
	struct peer *hosts;
	int64_t host_ping_ms;
	int nhosts, joined, welcomed, nodes_known, started, ended, dials, failed_dials, refused;
} s;

static void send_text(struct peer *p, enum frame_type type, struct buf *text)
{
	conn_send(p->conn, type, 0, STR(""), buf_str(text));
	buf_release(text);
}

/* ---- what a host says ---- */

static void say_join(struct peer *p)
{
	struct buf text;

	buf_init(&text, MESSAGE_HELLO_MAX);
	message_join_put(&(struct message_join){.proto = LINK_PROTO,
						.id = p->id,
						.name = p->id,
						.token = s.token,
						.boot_id = "swarm",
						.version = "swarm",
						.address = "127.0.0.1",
						.time_ms = clock_wall_ms(),
						.cpus = 8,
						.memory = UINT64_C(32) << 30},
			 &text);
	send_text(p, FRAME_JOIN, &text);
}

static void say_nodes(struct peer *p)
{
	struct message_host_node nodes[SLOTS_MAX];
	struct message_host_nodes m = {.nodes = nodes};
	struct list *pos;
	struct buf text;

	list_each (pos, &p->nodes) {
		const struct peer *n = list_item(pos, struct peer, in_list);

		if (m.nnodes < SLOTS_MAX)
			nodes[m.nnodes++] =
				(struct message_host_node){n->run, n->node, n->incarnation};
	}
	buf_init(&text, FRAME_MAX_PAYLOAD);
	message_host_nodes_put(&m, &text);
	send_text(p, FRAME_HOST_NODES, &text);
}

static void node_new(struct peer *host, const struct message_host_ask *m, const char *id);
static void node_leave(struct peer *p);

static void take_ask(struct peer *p, const struct frame *f, struct arena *mem, struct err *err)
{
	struct message_host_answer answer = {.outcome = OUTCOME_DONE, .text = ""};
	struct message_host_ask m;
	char id[ID_MAX];
	struct buf text;

	if (message_host_ask_get(f->payload, mem, &m, err) < 0)
		return;
	snprintf(id, sizeof(id), "%s.%s.%d", m.run, m.node, m.incarnation);
	struct peer *node = map_get(s.nodes, str_from(id));

	if (!node && m.op == HOST_CREATE)
		node_new(p, &m, id);
	else if (!node && m.op != HOST_DESTROY)
		answer.outcome = OUTCOME_ABSENT;
	else if (node && m.op == HOST_DESTROY)
		node_leave(node);
	answer.no = m.no;
	answer.id = id;
	buf_init(&text, ID_MAX + 256);
	message_host_answer_put(&answer, &text);
	send_text(p, FRAME_HOST_ANSWER, &text);
}

/* ---- what a node says ---- */

static struct exit_report exit_of(const struct peer *p)
{
	return (struct exit_report){.attempt = p->attempt, .code = -1, .signal = SIGTERM};
}

static void say_hello(struct peer *p)
{
	struct exit_report end = exit_of(p);
	struct buf text;

	buf_init(&text, MESSAGE_HELLO_MAX);
	message_hello_put(
		&(struct message_hello){.proto = LINK_PROTO,
					.run = p->run,
					.node = p->node,
					.token = p->token,
					.boot_id = "swarm",
					.pid = 1,
					.version = "swarm",
					.attempt = p->attempt,
					.holds = p->attempt ? HOLDS_STARTED : HOLDS_NOTHING,
					.exit = p->ended ? &end : NULL,
					.templates = true,
					.address = "127.0.0.1",
					.incarnation = p->incarnation},
		&text);
	send_text(p, FRAME_HELLO, &text);
}

static void say_collected(struct peer *p)
{
	struct buf text;

	buf_init(&text, 256);
	message_collected_put(&(struct message_collected){0}, &text);
	send_text(p, FRAME_COLLECTED, &text);
}

static void take_welcome(struct peer *p, const struct frame *f, struct arena *mem, struct err *err)
{
	struct message_welcome m;

	if (message_welcome_get(f->payload, mem, &m, err) < 0)
		return;
	p->lost_ms = m.lost_ms;
	p->welcome = true;
	s.welcomed++;
	backoff_reset(&p->backoff);
	if (p->lost_ms)
		loop_timer_set(p->ping, p->lost_ms / LOST_PINGS);
	if (p->ended)
		say_collected(p);
	else if (p->attempt && p->sample_ms)
		loop_timer_set(p->sample, p->sample_ms);
}

static void take_inputs(struct peer *p, const struct frame *f, struct arena *mem, struct err *err)
{
	struct message_inputs m;
	struct buf text;

	if (message_inputs_get(f->payload, mem, &m, err) < 0)
		return;
	p->sample_ms = m.sample_ms;
	buf_init(&text, 256);
	message_ready_put(&(struct message_ready){.ok = true}, &text);
	send_text(p, FRAME_READY, &text);
}

static void take_start(struct peer *p, const struct frame *f, struct arena *mem, struct err *err)
{
	struct message_start m;
	struct buf text;

	if (message_start_get(f->payload, mem, &m, err) < 0)
		return;
	s.started += p->attempt == 0;
	p->attempt = m.attempt;
	buf_init(&text, 256);
	message_started_put(&(struct message_started){m.attempt, 1}, &text);
	send_text(p, FRAME_STARTED, &text);
	if (p->sample_ms)
		loop_timer_set(p->sample, p->sample_ms);
}

static void take_signal(struct peer *p, const struct frame *f, struct arena *mem, struct err *err)
{
	struct exit_report end = exit_of(p);
	struct buf text;

	(void)f;
	(void)mem;
	(void)err;
	if (p->ended || !p->attempt)
		return;
	p->ended = true;
	s.ended++;
	loop_timer_cancel(p->sample);
	buf_init(&text, 4096);
	message_exit_put(&end, &text);
	send_text(p, FRAME_EXIT, &text);
	say_collected(p);
}

static void take_release(struct peer *p, const struct frame *f, struct arena *mem, struct err *err)
{
	(void)f;
	(void)mem;
	(void)err;
	p->place = LEFT;
	conn_close(p->conn);
}

/* The same figures as agent/host.c, at the same pace. */
static void say_sample(void *ctx)
{
	static const char *const names[] = {"host.memory",     "job.memory",  "host.cpu",
					    "host.net_rx",     "host.net_tx", "host.disk_read",
					    "host.disk_write", "job.cpu"};
	struct message_value values[sizeof(names) / sizeof(names[0])];
	struct peer *p = ctx;
	size_t n = sizeof(names) / sizeof(names[0]);
	struct buf text;

	for (size_t i = 0; i < n; i++)
		values[i] = (struct message_value){str_from(names[i]), 12345.678 * (double)i};
	buf_init(&text, 4096);
	message_sample_put(&(struct message_sample){clock_wall_ms(), values, n}, &text);
	send_text(p, FRAME_SAMPLE, &text);
	loop_timer_set(p->sample, p->sample_ms);
}

/* ---- both ---- */

static void say_ping(void *ctx)
{
	struct peer *p = ctx;

	conn_send(p->conn, FRAME_PING, 0, STR(""), STR(MESSAGE_EMPTY));
	loop_timer_set(p->ping, !p->is_node  ? s.host_ping_ms
				: p->lost_ms ? p->lost_ms / LOST_PINGS
					     : NODE_PING_MS);
}

static void take_joined(struct peer *p, const struct frame *f, struct arena *mem, struct err *err)
{
	(void)f;
	(void)mem;
	(void)err;
	p->welcome = true;
	s.joined++;
	backoff_reset(&p->backoff);
	say_nodes(p);
}

static void take_refuse(struct peer *p, const struct frame *f, struct arena *mem, struct err *err)
{
	struct message_refuse m;

	if (message_refuse_get(f->payload, mem, &m, err) < 0)
		return;
	if (s.refused++ == 0)
		log_warn("%s: %s", p->id, m.reason);
	if (p->is_node && m.kind == ERR_DENIED)
		p->place = LEFT;
	conn_close(p->conn);
}

static void take_ping(struct peer *p, const struct frame *f, struct arena *mem, struct err *err)
{
	(void)f;
	(void)mem;
	(void)err;
	conn_send(p->conn, FRAME_PONG, 0, STR(""), STR(MESSAGE_EMPTY));
}

static void take_bye(struct peer *p, const struct frame *f, struct arena *mem, struct err *err)
{
	struct message_bye m;

	if (message_bye_get(f->payload, mem, &m, err) == 0)
		log_warn("%s: the master says goodbye: %s", p->id, m.reason);
	conn_close(p->conn);
}

static void (*const takes[FRAME_TYPE_MAX + 1])(struct peer *p, const struct frame *f,
					       struct arena *mem, struct err *err) = {
	[FRAME_JOINED] = take_joined, [FRAME_WELCOME] = take_welcome, [FRAME_REFUSE] = take_refuse,
	[FRAME_HOST_ASK] = take_ask,  [FRAME_INPUTS] = take_inputs,   [FRAME_START] = take_start,
	[FRAME_SIGNAL] = take_signal, [FRAME_RELEASE] = take_release, [FRAME_PING] = take_ping,
	[FRAME_BYE] = take_bye,
};

static void on_frame(void *ctx, const struct frame *f)
{
	CLEANUP(arena_freep) struct arena *mem = arena_new();
	struct err err = {0};
	struct peer *p = ctx;

	if (takes[f->type])
		takes[f->type](p, f, mem, &err);
	if (err.kind != ERR_NONE) {
		log_error("%s: %s", p->id, err.msg);
		exit(1);
	}
}

static void dial_later(struct peer *p)
{
	int64_t pause = backoff_next(&p->backoff);

	p->place = AWAY;
	loop_timer_set(p->dial,
		       p->lost_ms && pause > LOST_BACKOFF_MAX_MS ? LOST_BACKOFF_MAX_MS : pause);
}

static void hang_up(struct peer *p)
{
	if (p->welcome)
		*(p->is_node ? &s.welcomed : &s.joined) -= 1;
	p->welcome = false;
	p->conn = conn_free(p->conn);
	loop_timer_cancel(p->ping);
	loop_timer_cancel(p->sample);
}

static void on_close(void *ctx, const struct err *why)
{
	struct peer *p = ctx;

	(void)why;
	hang_up(p);
	if (p->place != LEFT)
		dial_later(p);
}

static void dialed(void *ctx, const struct transport *t, const struct err *why)
{
	static const struct conn_events events = {.on_frame = on_frame, .on_close = on_close};
	struct peer *p = ctx;

	s.failed_dials += !t;
	if (!t && s.failed_dials % 5000 == 1)
		log_warn("%s: %s", p->id, why->msg);
	p->dialer = dialer_free(p->dialer);
	if (!t) {
		dial_later(p);
		return;
	}
	p->place = THERE;
	p->conn = conn_new_over(s.loop, t, &events, p);
	if (p->is_node)
		say_hello(p);
	else
		say_join(p);
	loop_timer_set(p->ping, p->is_node ? NODE_PING_MS : s.host_ping_ms);
}

static void dial_now(void *ctx)
{
	struct peer *p = ctx;

	s.dials++;
	p->place = DIALLING;
	p->dialer = dialer_start(s.loop, &s.master, dialed, p);
}

static void peer_init(struct peer *p, bool is_node)
{
	p->is_node = is_node;
	list_init(&p->nodes);
	list_init(&p->in_list);
	backoff_init(&p->backoff, BACKOFF_MIN_MS, BACKOFF_MAX_MS);
	p->dial = loop_timer_new(s.loop, dial_now, p);
	p->ping = loop_timer_new(s.loop, say_ping, p);
	p->sample = loop_timer_new(s.loop, say_sample, p);
}

static void node_new(struct peer *host, const struct message_host_ask *m, const char *id)
{
	struct peer *p = xcalloc(1, sizeof(*p));

	peer_init(p, true);
	snprintf(p->id, sizeof(p->id), "%s", id);
	snprintf(p->run, sizeof(p->run), "%s", m->run);
	snprintf(p->node, sizeof(p->node), "%s", m->node);
	snprintf(p->token, sizeof(p->token), "%s", m->token);
	p->incarnation = m->incarnation;
	map_put(s.nodes, str_from(p->id), p);
	list_append(&host->nodes, &p->in_list);
	s.nodes_known++;
	dial_now(p);
}

/* The memory of a node stays: there may be callbacks of its connection under way. */
static void node_leave(struct peer *p)
{
	map_del(s.nodes, str_from(p->id));
	list_remove(&p->in_list);
	s.nodes_known--;
	p->place = LEFT;
	loop_timer_cancel(p->dial);
	p->dialer = dialer_free(p->dialer);
	if (p->conn)
		hang_up(p);
}

static void say_state(void *ctx)
{
	(void)ctx;
	printf("{\"ms\":%lld,\"joined\":%d,\"nodes\":%d,\"welcomed\":%d,\"started\":%d,\"ended\":%d,\"dials\":%d,"
	       "\"failed_dials\":%d,\"refused\":%d}\n",
	       (long long)clock_boot_ms(), s.joined, s.nodes_known, s.welcomed, s.started, s.ended,
	       s.dials, s.failed_dials, s.refused);
	if (fflush(stdout) < 0)
		exit(1);
	loop_timer_set(s.say, SAY_MS);
}

int main(int argc, char **argv)
{
	struct rlimit files;

	if (argc != 7) {
		fprintf(stderr, "swarm_peers HOST PORT PIN JOIN_TOKEN HOSTS PING_MS\n");
		return 2;
	}
	if (getrlimit(RLIMIT_NOFILE, &files) == 0) {
		files.rlim_cur = files.rlim_max;
		setrlimit(RLIMIT_NOFILE, &files);
	}
	signal(SIGPIPE, SIG_IGN);
	log_setup(2, "swarm", LOG_WARN);
	s.master = (struct dialer_target){.host = argv[1],
					  .port = (int)strtol(argv[2], NULL, 10),
					  .trust = {.mode = TLS_PIN, .pin = argv[3]},
					  .protocol = LINK_ALPN,
					  .limit_ms = CALL_MS};
	s.token = argv[4];
	s.nhosts = (int)strtol(argv[5], NULL, 10);
	s.host_ping_ms = strtol(argv[6], NULL, 10);
	s.loop = loop_new();
	s.nodes = map_new();
	s.hosts = xcalloc((size_t)s.nhosts + 1, sizeof(*s.hosts));
	for (int i = 0; i < s.nhosts; i++) {
		peer_init(&s.hosts[i], false);
		snprintf(s.hosts[i].id, sizeof(s.hosts[i].id), "h%05d", i);
		loop_timer_set(s.hosts[i].dial, i / DIALS_PER_MS);
	}
	s.say = loop_timer_new(s.loop, say_state, NULL);
	say_state(NULL);
	loop_run(s.loop);
	return 0;
}
