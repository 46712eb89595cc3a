/*
 * The link's master end: who is at the other end, and its words turned into events.
 *
 * An agent is believed about its own node only: the run and node it named in its
 * hello, proven by the node's token.  A newer connection of the same node
 * replaces the older one.
 */
#include "master/internal.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/arena.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/log.h"
#include "fmt/doc.h"
#include "fmt/jsonw.h"
#include "link/conn.h"
#include "net/digest.h"
#include "spec/job.h"
#include "sys/loop.h"

#define PING_AFTER_MS 5000
#define SILENT_MS 15000
#define HELLO_MS 10000
#define NO_ROOM_MS 2000 /* until an agent may try again to store bytes on a full disk */

struct agent_conn {
	struct master *m;
	struct conn *conn;
	struct live_run *lr; /* NULL before the hello */
	int rank;
	struct list in_agents;
	struct loop_timer *silence;
	int64_t heard_ms;
	bool closing;
	bool no_room; /* bytes could not be stored: no more are taken on this connection */
};

static void agent_free(struct agent_conn *ac)
{
	list_remove(&ac->in_agents);
	loop_timer_free(ac->silence);
	conn_free(ac->conn);
	free(ac);
}

/* Forget the connection; the node hears of it only if this was its current one. */
static void agent_lost(struct agent_conn *ac)
{
	struct live_run *lr = ac->lr;

	if (lr && lr->nodes[ac->rank].agent == ac) {
		int rank = ac->rank;
		lr->nodes[rank].agent = NULL;
		streams_close(lr, rank);
		/* One that was released leaves as it was told to: no news. */
		if (lr->core->phase < RUN_CLEANING)
			run_event(lr, &(struct event){.kind = EV_NODE_DROPPED, .index = rank});
		agent_free(ac);
		live_run_done(lr);
		return;
	}
	agent_free(ac);
}

void agent_drop(struct live_run *lr, int rank)
{
	struct agent_conn *ac = lr->nodes[rank].agent;

	if (!ac)
		return;
	lr->nodes[rank].agent = NULL;
	ac->lr = NULL;
	ac->closing = true;
	conn_close(ac->conn);
}

void agents_free(struct master *m)
{
	struct list *pos, *tmp;

	list_each_safe (pos, tmp, &m->agents) {
		struct agent_conn *ac = list_item(pos, struct agent_conn, in_agents);
		if (ac->lr)
			ac->lr->nodes[ac->rank].agent = NULL;
		agent_free(ac);
	}
}

static void refuse(struct agent_conn *ac, enum err_kind kind, const char *reason)
{
	struct buf text;
	struct jsonw w;

	buf_init(&text, 4096);
	jsonw_init(&w, &text);
	jsonw_open(&w, '{');
	jsonw_kz(&w, "kind", err_kind_name(kind));
	jsonw_kz(&w, "reason", reason);
	jsonw_close(&w);
	conn_send(ac->conn, FRAME_REFUSE, 0, STR(""), buf_str(&text));
	buf_release(&text);
	ac->closing = true;
	conn_close(ac->conn);
}

static void protocol_error(struct agent_conn *ac, const char *what)
{
	struct buf text;
	struct jsonw w;

	log_warn("agent%s%s: %s", ac->lr ? " of " : "", ac->lr ? ac->lr->row.id : "", what);
	buf_init(&text, 4096);
	jsonw_init(&w, &text);
	jsonw_open(&w, '{');
	jsonw_kz(&w, "reason", what);
	jsonw_close(&w);
	conn_send(ac->conn, FRAME_BYE, 0, STR(""), buf_str(&text));
	buf_release(&text);
	ac->closing = true;
	conn_close(ac->conn);
}

void agent_send_stream(struct live_run *lr, int rank, enum frame_type type, enum stream s,
		       struct str payload)
{
	struct agent_conn *ac = lr->nodes[rank].agent;

	if (ac && !ac->closing)
		conn_send(ac->conn, type, (uint16_t)s, STR(""), payload);
}

void agent_send(struct live_run *lr, int rank, enum frame_type type, struct str payload)
{
	agent_send_stream(lr, rank, type, STREAM_OUT, payload);
}

static void welcome(struct agent_conn *ac)
{
	const struct live_node *n = &ac->lr->nodes[ac->rank];
	struct buf text;
	struct jsonw w;

	buf_init(&text, 4096);
	jsonw_init(&w, &text);
	jsonw_open(&w, '{');
	jsonw_kint(&w, "lease_ms", ac->lr->job->timeouts.lease_ms);
	jsonw_key(&w, "acks");
	jsonw_open(&w, '[');
	for (int s = 0; s < STREAMS; s++)
		jsonw_int(&w, (int64_t)n->streams[s].acked);
	jsonw_close(&w);
	jsonw_key(&w, "scanned");
	jsonw_open(&w, '[');
	for (int s = 0; s < STREAMS; s++)
		jsonw_int(&w, (int64_t)n->streams[s].scanned);
	jsonw_close(&w);
	jsonw_close(&w);
	conn_send(ac->conn, FRAME_WELCOME, 0, STR(""), buf_str(&text));
	buf_release(&text);
}

static bool exit_from(const struct doc *d, struct exit_info *e, uint64_t sizes[static STREAMS])
{
	const struct doc *streams = doc_array(d, "streams");
	struct str kind = doc_str(d, "kind", STR("")), reason = doc_str(d, "reason", STR(""));

	if (!streams || streams->array.n != STREAMS)
		return false;
	for (int s = 0; s < STREAMS; s++) {
		if (streams->array.v[s]->type != DOC_INT || streams->array.v[s]->i < 0)
			return false;
		sizes[s] = (uint64_t)streams->array.v[s]->i;
	}
	e->code = (int)doc_int(d, "code", -1);
	e->signal = (int)doc_int(d, "signal", 0);
	e->oom = doc_bool(d, "oom", false);
	e->kind = kind.n ? err_kind_from_name(kind.p) : ERR_NONE;
	snprintf(e->reason, sizeof(e->reason), "%.*s", STR_ARG(reason));
	return true;
}

static void take_exit(struct agent_conn *ac, const struct doc *d)
{
	struct event ev = {
		.kind = EV_NODE_EXITED,
		.index = ac->rank,
		.attempt = (int)doc_int(d, "attempt", 0),
	};
	uint64_t sizes[STREAMS];

	if (!exit_from(d, &ev.exit, sizes)) {
		protocol_error(ac, "an exit without the length of its streams");
		return;
	}
	run_event(ac->lr, &ev);
	streams_final(ac->lr, ac->rank, sizes);
}

static enum holds holds_from(struct str s)
{
	return str_is(s, "started")	 ? HOLDS_STARTED
	       : str_is(s, "other_boot") ? HOLDS_OTHER_BOOT
					 : HOLDS_NOTHING;
}

static bool token_ok(const struct live_run *lr, int rank, struct str token)
{
	char want[65];

	node_token(lr, rank, want);
	return token.n == 64 && digest_equal(token.p, want, 64);
}

static void hello(struct agent_conn *ac, const struct doc *d)
{
	struct master *m = ac->m;
	struct err err = {0};
	int64_t proto = doc_int(d, "proto", 0);
	struct str run = doc_str(d, "run", STR(""));

	if (proto != LINK_PROTO) {
		refuse(ac, ERR_UNAVAILABLE, "another protocol version");
		return;
	}
	struct live_run *lr = run.n ? map_get(m->runs, run) : NULL;
	int rank = lr ? rank_of(lr, doc_str(d, "node", STR(""))) : -1;
	if (rank < 0) {
		refuse(ac, ERR_NOT_FOUND, "no such run or node here");
		return;
	}
	if (!token_ok(lr, rank, doc_str(d, "token", STR("")))) {
		refuse(ac, ERR_DENIED, "wrong token");
		return;
	}
	agent_drop(lr, rank); /* replaced, not lost */
	ac->lr = lr;
	ac->rank = rank;
	lr->nodes[rank].agent = ac;
	if (streams_open(lr, rank, &err) < 0) {
		log_error("logs of %s: %s", lr->row.id, err.msg);
		refuse(ac, ERR_UNAVAILABLE, err.msg);
		return;
	}
	welcome(ac);

	struct event ev = {
		.kind = EV_NODE_HELLO,
		.index = rank,
		.attempt = (int)doc_int(d, "attempt", 0),
		.holds = holds_from(doc_str(d, "holds", STR(""))),
	};
	run_event(lr, &ev);
	const struct doc *ex = doc_table(d, "exit");
	if (ex)
		take_exit(ac, ex);
}

static void ready(struct agent_conn *ac, const struct doc *d)
{
	struct event ev = {.kind = EV_NODE_READY, .index = ac->rank};

	if (!doc_bool(d, "ok", false)) {
		struct str kind = doc_str(d, "kind", STR("invalid")),
			   why = doc_str(d, "reason", STR("not ready"));
		ev.kind = EV_NODE_UNFIT;
		ev.err_kind = err_kind_from_name(kind.p);
		snprintf(ev.text, sizeof(ev.text), "%.*s", STR_ARG(why));
	}
	run_event(ac->lr, &ev);
}

static void collected(struct agent_conn *ac, const struct doc *d)
{
	struct str error = doc_str(d, "error", STR(""));

	if (error.n)
		run_note(ac->lr, "collect", ac->rank, "%.*s", STR_ARG(error));
	ac->lr->nodes[ac->rank].collected = true;
	streams_check_drained(ac->lr, ac->rank);
}

/* A full disk: the agent keeps what is not acknowledged.  It is sent away after a pause only, because
 * it comes back at once and sends the same, and each time costs a few rows. */
static void bytes(struct agent_conn *ac, const struct frame *f)
{
	struct err err = {0};

	if (f->channel >= STREAMS) {
		protocol_error(ac, "data of a stream that does not exist");
		return;
	}
	if (ac->no_room ||
	    streams_data(ac->lr, ac->rank, (enum stream)f->channel, f->payload, &err) == 0)
		return;
	if (err.kind != ERR_CAPACITY && err.kind != ERR_QUOTA) {
		protocol_error(ac, err.msg);
		return;
	}
	log_warn("agent of %s: %s", ac->lr->row.id, err.msg);
	ac->no_room = true;
	loop_timer_set(ac->silence, NO_ROOM_MS);
}

static void control(struct agent_conn *ac, const struct frame *f, const struct doc *d)
{
	struct err err = {0};
	int attempt = (int)doc_int(d, "attempt", 0);

	switch ((int)f->type) {
	case FRAME_READY:
		ready(ac, d);
		return;
	case FRAME_STARTED:
		run_event(ac->lr, &(struct event){.kind = EV_NODE_STARTED,
						  .index = ac->rank,
						  .attempt = attempt});
		return;
	case FRAME_SERVING:
		run_event(ac->lr, &(struct event){.kind = EV_NODE_SERVING,
						  .index = ac->rank,
						  .attempt = attempt});
		return;
	case FRAME_METRICS:
		if (ac->no_room)
			return; /* with the bytes they came from */
		if (f->channel >= STREAMS ||
		    streams_metrics(ac->lr, ac->rank, (enum stream)f->channel, d, &err) < 0)
			protocol_error(ac, err.msg[0] ? err.msg
						      : "metrics of a stream that does not exist");
		return;
	case FRAME_SAMPLE:
		if (streams_sample(ac->lr, ac->rank, d, &err) < 0)
			protocol_error(ac, err.msg);
		return;
	case FRAME_EXIT:
		take_exit(ac, d);
		return;
	case FRAME_COLLECTED:
		collected(ac, d);
		return;
	case FRAME_BYE:
		ac->closing = true;
		conn_close(ac->conn);
		return;
	default:
		protocol_error(ac, "a frame that only a master sends");
	}
}

static void on_frame(void *ctx, const struct frame *f)
{
	struct agent_conn *ac = ctx;

	if (ac->closing)
		return;
	ac->heard_ms = clock_boot_ms();
	if (f->type == FRAME_PING) {
		conn_send(ac->conn, FRAME_PONG, 0, STR(""), STR("{}"));
		return;
	}
	if (f->type == FRAME_PONG)
		return;
	if (f->type != FRAME_HELLO && !ac->lr) {
		protocol_error(ac, "spoke before its hello");
		return;
	}
	if (f->type == FRAME_DATA) {
		bytes(ac, f);
		return;
	}
	CLEANUP(arena_freep) struct arena *a = arena_new();
	struct doc *d = NULL;
	struct err err = {0};
	if (json_parse(f->payload, a, &d, &err) < 0 || d->type != DOC_TABLE) {
		protocol_error(ac, "a payload that is no JSON object");
		return;
	}
	if (f->type == FRAME_HELLO && !ac->lr)
		hello(ac, d);
	else if (f->type != FRAME_HELLO)
		control(ac, f, d);
	else
		protocol_error(ac, "a second hello");
}

static void on_close(void *ctx, const struct err *why)
{
	struct agent_conn *ac = ctx;

	if (why->kind != ERR_NONE)
		log_debug("agent connection: %s", why->msg);
	agent_lost(ac);
}

static void on_silence(void *ctx)
{
	struct agent_conn *ac = ctx;
	int64_t quiet = clock_boot_ms() - ac->heard_ms;

	if (quiet >= SILENT_MS || (!ac->lr && quiet >= HELLO_MS)) {
		agent_lost(ac);
		return;
	}
	if (ac->no_room && !ac->closing)
		protocol_error(ac, "the disk of the master is full");
	if (quiet >= PING_AFTER_MS && !ac->closing)
		conn_send(ac->conn, FRAME_PING, 0, STR(""), STR("{}"));
	loop_timer_set(ac->silence, PING_AFTER_MS);
}

void agent_accept(void *ctx, int fd)
{
	static const struct conn_events events = {.on_frame = on_frame, .on_close = on_close};
	struct master *m = ctx;
	struct agent_conn *ac = xcalloc(1, sizeof(*ac));

	ac->m = m;
	ac->heard_ms = clock_boot_ms();
	list_append(&m->agents, &ac->in_agents);
	ac->conn = conn_new(m->loop, fd, &events, ac);
	ac->silence = loop_timer_new(m->loop, on_silence, ac);
	loop_timer_set(ac->silence, PING_AFTER_MS);
}
