/*
 * The master's end of the link: finds the node that a connection belongs to, and turns its
 * frames into events of the core.
 *
 * An agent may speak for one node only: the run and node that it named in its hello and proved
 * with the node's token.  A newer connection of the same node replaces the older one.
 *
 * A host that joins has a connection of its own; hosts.c handles its frames.
 *
 * Until its hello or join is accepted a peer is a stranger: its frames have at most
 * MESSAGE_HELLO_MAX bytes, it must be accepted within HELLO_MS, and the number of strangers is
 * limited (net/crowd.h).
 */
#include "master/agents.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/arena.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/log.h"
#include "link/conn.h"
#include "link/message.h"
#include "master/enrol.h"
#include "master/execs.h"
#include "master/hosts.h"
#include "master/internal.h"
#include "master/listen.h"
#include "master/live_run.h"
#include "master/messages.h"
#include "master/round.h"
#include "master/runs.h"
#include "master/stalls.h"
#include "master/start_table.h"
#include "master/streams.h"
#include "net/crowd.h"
#include "net/http_server.h"
#include "net/transport.h"
#include "spec/job.h"
#include "sys/loop.h"

#define PING_AFTER_MS 5000
#define SILENT_MS 15000
#define PING_GRID_MS 100 /* the silence of many connections is looked at in one round of the loop */
#define HELLO_MS 10000	 /* limit from accepting the connection to accepting its hello */
#define STRANGERS_MAX 1024 /* from half of it on nobody is let in over the network */
#define CROWDED_MS 2000	   /* for a hello, while nobody is let in */
#define WARN_EVERY_MS 60000
#define PAYLOAD_MAX 4096
#define NO_ROOM_MS 2000 /* pause before the agent may send bytes again after the disk was full */

struct agents {
	struct master *m;
	struct list known;	/* struct agent_conn whose hello or join was accepted */
	struct crowd strangers; /* struct agent_conn without an accepted hello or join */
	int64_t warned_ms;	/* last warning about too many strangers; 0: none yet */
	uint64_t last_no;	/* number of the newest connection */
};

struct agent_conn {
	struct agents *as;
	struct conn *conn;
	uint64_t no;	     /* identifies the connection in events of the core; never used twice */
	struct live_run *lr; /* NULL before the hello */
	int rank;
	struct host_conn *host; /* NULL unless a host has joined on this connection */
	bool stranger;
	struct crowd_member crowd; /* in agents.strangers */
	struct list in_list;	   /* in agents.known, otherwise */
	struct loop_timer *silence;
	int64_t since_ms, heard_ms;
	/* as sent in WELCOME: after so long without the master the agent ends its job; 0: after the
	 * lease */
	int64_t lost_ms;
	bool closing;
	bool enrols;  /* has sent its ENROL */
	bool no_room; /* the disk was full: further bytes on this connection are ignored */
};

static void leave_list(struct agent_conn *ac)
{
	if (ac->stranger)
		crowd_leave(&ac->as->strangers, &ac->crowd);
	else
		list_remove(&ac->in_list);
	ac->stranger = false;
}

static void agent_free(struct agent_conn *ac)
{
	leave_list(ac);
	if (ac->host)
		host_left(ac->host);
	loop_timer_free(ac->silence);
	conn_free(ac->conn);
	free(ac);
}

/* When the agent was last heard, on the master's clock: an agent with a lost_ms counts it from
 * there.  0: the core takes the current time. */
static int64_t last_word_ms(const struct agent_conn *ac)
{
	return ac->lost_ms ? ac->as->m->clock_base + ac->heard_ms : 0;
}

/* Frees the connection.  The core is told only if it was the current connection of its node. */
static void agent_lost(struct agent_conn *ac)
{
	struct live_run *lr = ac->lr;

	if (lr && lr->nodes[ac->rank].agent == ac) {
		int rank = ac->rank;
		lr->nodes[rank].heard_ms = ac->heard_ms;
		lr->nodes[rank].agent = NULL;
		lr->busy++; /* the end of a command may be the end of its last use */
		exec_agent_gone(lr, rank);
		lr->busy--;
		streams_close(lr, rank);
		/* A released agent closes its connection as it was told to: no event. */
		if (lr->core->phase < RUN_CLEANING)
			run_event(lr, &(struct event){.kind = EV_NODE_DROPPED,
						      .index = rank,
						      .heard_ms = last_word_ms(ac)});
		agent_free(ac);
		live_run_done(lr);
		return;
	}
	agent_free(ac);
}

int64_t agent_heard_ms(const struct live_run *lr, int rank)
{
	const struct agent_conn *ac = lr->nodes[rank].agent;

	return ac ? ac->heard_ms : lr->nodes[rank].heard_ms;
}

void agent_drop(struct live_run *lr, int rank)
{
	struct agent_conn *ac = lr->nodes[rank].agent;

	if (!ac)
		return;
	lr->nodes[rank].heard_ms = ac->heard_ms;
	lr->nodes[rank].agent = NULL;
	exec_agent_gone(lr, rank);
	ac->lr = NULL;
	ac->closing = true;
	conn_close(ac->conn);
}

static struct agent_conn *stranger_of(struct list *link)
{
	return list_item(link, struct agent_conn, crowd.link);
}

/* The oldest ones, because an agent sends its hello at once. */
static void drop_stranger(void *ctx, struct crowd_member *member)
{
	struct agents *as = ctx;
	int64_t now = clock_boot_ms();

	if (!as->warned_ms || now - as->warned_ms >= WARN_EVERY_MS) {
		log_warn("%d connections of the link have not said hello: the oldest are dropped",
			 as->strangers.n);
		as->warned_ms = now;
	}
	agent_free(stranger_of(&member->link));
}

static void too_many_strangers(void *ctx, bool full)
{
	struct agents *as = ctx;

	if (as->m->http)
		http_server_hold(as->m->http, full);
}

struct agents *agents_new(struct master *m)
{
	struct agents *as = xcalloc(1, sizeof(*as));
	static const struct crowd_events events = {too_many_strangers, drop_stranger};
	int share = listen_max_connections() / 4;
	int most = share < 2 ? 2 : share > STRANGERS_MAX ? STRANGERS_MAX : share;
	struct crowd_limits limits = {most / 2, most, CROWDED_MS};

	as->m = m;
	list_init(&as->known);
	crowd_init(&as->strangers, m->loop, &limits, &events, as);
	return as;
}

struct agents *agents_free(struct agents *as)
{
	struct list *pos, *tmp;

	if (!as)
		return NULL;
	while (!list_empty(&as->strangers.members))
		agent_free(stranger_of(as->strangers.members.next));
	crowd_release(&as->strangers);
	list_each_safe (pos, tmp, &as->known) {
		struct agent_conn *ac = list_item(pos, struct agent_conn, in_list);

		if (ac->lr)
			ac->lr->nodes[ac->rank].agent = NULL;
		agent_free(ac);
	}
	free(as);
	return NULL;
}

static void say_and_close(struct agent_conn *ac, enum frame_type type, const struct buf *payload)
{
	conn_send(ac->conn, type, 0, STR(""), buf_str(payload));
	ac->closing = true;
	conn_close(ac->conn);
}

static void refuse(struct agent_conn *ac, enum err_kind kind, const char *reason)
{
	struct buf text;

	buf_init(&text, PAYLOAD_MAX);
	message_refuse_put(&(struct message_refuse){kind, reason}, &text);
	say_and_close(ac, FRAME_REFUSE, &text);
	buf_release(&text);
}

/* NULL: it has hung up. */
static struct agent_conn *stranger_no(const struct agents *as, uint64_t no)
{
	struct list *pos;

	list_each (pos, &as->strangers.members) {
		struct agent_conn *ac = stranger_of(pos);

		if (ac->no == no)
			return ac->closing ? NULL : ac;
	}
	return NULL;
}

void agent_refuse_stranger(struct master *m, uint64_t conn, enum err_kind kind, const char *reason)
{
	struct agent_conn *ac = stranger_no(m->agents, conn);

	if (ac)
		refuse(ac, kind, reason);
}

void agent_tell_stranger(struct master *m, uint64_t conn, enum frame_type type, struct str payload)
{
	struct agent_conn *ac = stranger_no(m->agents, conn);

	if (ac)
		conn_send(ac->conn, type, 0, STR(""), payload);
}

static void protocol_error(struct agent_conn *ac, const char *what)
{
	struct buf text;

	if (ac->lr)
		log_warn("agent of %s: %s", ac->lr->row.id, what);
	else if (ac->host)
		log_warn("host '%s': %s", host_conn_name(ac->host), what);
	else /* a stranger must not be able to fill the log */
		log_debug("a peer of the link: %s", what);
	buf_init(&text, PAYLOAD_MAX);
	message_bye_put(&(struct message_bye){what}, &text);
	say_and_close(ac, FRAME_BYE, &text);
	buf_release(&text);
}

void agent_fail(struct live_run *lr, int rank, const struct err *why)
{
	struct agent_conn *ac = lr->nodes[rank].agent;

	if (ac && !ac->closing)
		protocol_error(ac, why->msg);
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

void agent_send_shared(struct live_run *lr, int rank, struct conn_shared *frame)
{
	struct agent_conn *ac = lr->nodes[rank].agent;

	if (ac && !ac->closing)
		conn_send_shared(ac->conn, frame);
}

void agent_cork(struct live_run *lr, int rank, bool cork)
{
	struct agent_conn *ac = lr->nodes[rank].agent;

	if (ac && cork)
		conn_cork(ac->conn);
	else if (ac)
		conn_uncork(ac->conn);
}

static void welcome(struct agent_conn *ac)
{
	const struct live_node *n = &ac->lr->nodes[ac->rank];
	struct message_welcome m = {.lease_ms = ac->lr->job->timeouts.lease_ms,
				    .lost_ms = core_lost_ms(ac->lr->core, ac->rank)};
	struct buf text;

	ac->lost_ms = m.lost_ms;
	if (ac->lost_ms && ac->lost_ms < PING_AFTER_MS)
		loop_timer_set(ac->silence, ac->lost_ms);
	for (int s = 0; s < streams_count(n->processes); s++) {
		m.acks[s] = n->streams[s].acked;
		m.scanned[s] = n->streams[s].scanned;
	}
	buf_init(&text, PAYLOAD_MAX);
	message_welcome_put(&m, &text);
	conn_send(ac->conn, FRAME_WELCOME, 0, STR(""), buf_str(&text));
	buf_release(&text);
}

/* What a launcher says about the process that ended its job. */
static void describe_tail(struct live_run *lr, const char *tail, char *ret, size_t max)
{
	CLEANUP(buf_release) struct buf text = {0};
	struct strategy_end end;
	const char *node = NULL;

	if (!lr->plan.strategy->cause || !lr->plan.strategy->cause(str_from(tail), &end))
		return;
	int rank = run_find_host(lr, end.host);

	if (rank >= 0)
		node = lr->plan.crew.members[rank].name;
	buf_init(&text, 1024);
	strategy_describe_end(&end, node, &text);
	snprintf(ret, max, "%.*s", STR_ARG(buf_str(&text)));
}

static void node_exited(struct agent_conn *ac, const struct exit_report *e)
{
	const struct core_node *n = &ac->lr->core->nodes[ac->rank];

	/* An exit of another attempt is ignored by the core, and its stream lengths must not be
	 * used for this attempt. */
	if (!n->start_sent || e->attempt != n->attempt)
		return;
	struct event ev = {
		.kind = EV_NODE_EXITED,
		.index = ac->rank,
		.attempt = e->attempt,
		.exit = {.code = e->code, .signal = e->signal, .oom = e->oom, .kind = e->kind},
	};

	snprintf(ev.exit.reason, sizeof(ev.exit.reason), "%s", e->reason);
	if (e->tail && !e->reason[0])
		describe_tail(ac->lr, e->tail, ev.exit.reason, sizeof(ev.exit.reason));
	streams_ends(ac->lr, ac->rank, e);
	run_event(ac->lr, &ev);
	streams_final(ac->lr, ac->rank, e->attempt, e->streams);
}

/* The attempt whose streams the agent will send: the one that it holds, or the one that it will
 * be told to start. */
static int attempt_of(const struct core_node *n, int held)
{
	if (held > 0 && n->attempt > 0)
		return held < n->attempt ? held : n->attempt;
	return n->start_sent ? n->attempt : n->attempt + 1;
}

/* ---- frames ---- */

/* A protocol error stays in err, and ends the connection with BYE; any other error is answered
 * with REFUSE. */
static void refuse_unless_broken(struct agent_conn *ac, struct err *err)
{
	if (err->kind == ERR_PROTOCOL)
		return;
	refuse(ac, err->kind, err->msg);
	*err = (struct err){0};
}

static void no_stranger(struct agent_conn *ac)
{
	leave_list(ac);
	list_append(&ac->as->known, &ac->in_list);
	conn_set_max(ac->conn, FRAME_MAX_PAYLOAD);
}

static void on_join(struct agent_conn *ac, const struct frame *f, struct arena *mem,
		    struct err *err)
{
	ac->host = hosts_join(ac->as->m->hosts, ac->conn, f->payload, mem, err);
	if (ac->host)
		no_stranger(ac);
	else
		refuse_unless_broken(ac, err);
}

/* One question per connection: the answer comes when it is stored. */
static void on_enrol(struct agent_conn *ac, const struct frame *f, struct arena *mem,
		     struct err *err)
{
	if (ac->enrols) {
		err_set(err, ERR_PROTOCOL, "enrol: sent twice");
		return;
	}
	ac->enrols = true;
	if (enrol_ask(ac->as->m, ac->no, f->payload, mem, err) < 0)
		refuse_unless_broken(ac, err);
}

static void on_host_nodes(struct agent_conn *ac, const struct frame *f, struct arena *mem,
			  struct err *err)
{
	host_take_nodes(ac->host, f->payload, mem, err);
}

static void on_host_answer(struct agent_conn *ac, const struct frame *f, struct arena *mem,
			   struct err *err)
{
	host_take_answer(ac->host, f->payload, mem, err);
}

static void on_hello(struct agent_conn *ac, const struct frame *f, struct arena *mem,
		     struct err *err)
{
	struct message_hello m;
	struct err why = {0};

	if (message_hello_get(f->payload, mem, &m, err) < 0) {
		refuse_unless_broken(ac, err);
		return;
	}
	struct live_run *lr = m.run[0] ? map_get(ac->as->m->runs, str_from(m.run)) : NULL;
	int rank = lr ? run_find_rank(lr, str_from(m.node)) : -1;

	/* The same answer in every case: without a token of the run a peer must not learn
	 * whether the run exists. */
	if (!lr || (rank < 0 && !lr->unreadable) ||
	    !node_token_ok(lr, str_from(m.node), m.incarnation, str_from(m.token))) {
		refuse(ac, ERR_DENIED, "no such run or node, or a wrong token");
		return;
	}
	if (lr->unreadable) {
		refuse(ac, ERR_UNAVAILABLE, "this master cannot read the run: try again later");
		return;
	}
	struct event hello = {
		.kind = EV_NODE_HELLO,
		.index = rank,
		.incarnation = m.incarnation,
		.attempt = m.attempt,
		.holds = m.holds,
		.conn = ac->no,
	};

	snprintf(hello.text, sizeof(hello.text), "%s", m.address ? m.address : "");
	if (core_incarnation_is_past(lr->core, rank, m.incarnation)) {
		/* A machine that was given up stays a stranger until the core releases it. */
		snprintf(hello.text, sizeof(hello.text), "%.47s: it was given up, and has to leave",
			 m.address ? m.address : "");
		run_event(lr, &hello);
		return;
	}
	agent_drop(lr, rank); /* a newer connection of the same node: no EV_NODE_DROPPED */
	no_stranger(ac);
	ac->lr = lr;
	ac->rank = rank;
	lr->nodes[rank].agent = ac;
	/* If the log directory is missing the node is lost: the agent is still welcomed, so that
	 * it can be released. */
	if (streams_open(lr, rank, attempt_of(&lr->core->nodes[rank], m.attempt), &why) < 0 &&
	    !streams_gone(lr, rank, &why)) {
		log_error("logs of %s: %s", lr->row.id, why.msg);
		refuse(ac, ERR_UNAVAILABLE, why.msg);
		return;
	}
	welcome(ac);
	lr->nodes[rank].templates = m.templates;
	lr->nodes[rank].exec = m.exec;
	lr->nodes[rank].inspect = m.inspect;
	snprintf(lr->nodes[rank].interface, sizeof(lr->nodes[rank].interface), "%s",
		 m.interface ? m.interface : "");
	char before[sizeof(lr->core->nodes[rank].address)];

	memcpy(before, lr->core->nodes[rank].address, sizeof(before));
	run_event(lr, &hello);
	if (strcmp(before, lr->core->nodes[rank].address) != 0)
		start_forget(lr);
	if (m.exit)
		node_exited(ac, m.exit);
}

static void on_ready(struct agent_conn *ac, const struct frame *f, struct arena *mem,
		     struct err *err)
{
	struct event ev = {.kind = EV_NODE_READY, .index = ac->rank};
	struct message_ready m;

	if (message_ready_get(f->payload, mem, &m, err) < 0)
		return;
	if (!m.ok) {
		ev.kind = EV_NODE_UNFIT;
		ev.err_kind = m.kind;
		snprintf(ev.text, sizeof(ev.text), "%s", m.reason);
	}
	if (m.preflight)
		ev.facts = (struct preflight_facts){
			.port = m.preflight->port,
			.mtu = m.preflight->mtu,
			.shm = m.preflight->shm,
			.files = m.preflight->files,
			.clock_ms = m.preflight->time_ms - clock_wall_ms(),
		};
	run_event(ac->lr, &ev);
}

static void on_preflight_done(struct agent_conn *ac, const struct frame *f, struct arena *mem,
			      struct err *err)
{
	struct event ev = {.kind = EV_NODE_PREFLIGHT, .index = ac->rank};
	struct message_preflight_done m;

	if (message_preflight_done_get(f->payload, mem, &m, err) < 0)
		return;
	ev.attempt = m.round;
	ev.want = m.failed;
	ev.place = m.rank;
	ev.reached = m.reached;
	snprintf(ev.text, sizeof(ev.text), "%s", m.reason ? m.reason : "");
	run_event(ac->lr, &ev);
}

static void on_started(struct agent_conn *ac, const struct frame *f, struct arena *mem,
		       struct err *err)
{
	struct message_started m;

	if (message_started_get(f->payload, mem, &m, err) == 0)
		run_event(ac->lr, &(struct event){.kind = EV_NODE_STARTED,
						  .index = ac->rank,
						  .attempt = m.attempt});
}

static void on_serving(struct agent_conn *ac, const struct frame *f, struct arena *mem,
		       struct err *err)
{
	struct message_serving m;

	if (message_serving_get(f->payload, mem, &m, err) == 0)
		run_event(ac->lr, &(struct event){.kind = EV_NODE_SERVING,
						  .index = ac->rank,
						  .attempt = m.attempt});
}

static void on_preempt(struct agent_conn *ac, const struct frame *f, struct arena *mem,
		       struct err *err)
{
	struct message_preempt m;

	if (message_preempt_get(f->payload, mem, &m, err) == 0)
		run_event(ac->lr, &(struct event){.kind = EV_NODE_PREEMPT,
						  .index = ac->rank,
						  .at_ms = m.time_ms});
}

/*
 * On a full disk the agent keeps the bytes that were not acknowledged.  Its connection is closed
 * only after a pause: it reconnects at once and sends the same bytes again, and each
 * reconnection writes a few rows.
 */
static void on_data(struct agent_conn *ac, const struct frame *f, struct arena *mem,
		    struct err *err)
{
	struct err why = {0};

	(void)mem;
	if (f->channel >= streams_count(ac->lr->nodes[ac->rank].processes)) {
		err_set(err, ERR_PROTOCOL, "data: stream %d does not exist", f->channel);
		return;
	}
	if (ac->no_room ||
	    streams_data(ac->lr, ac->rank, (enum stream)f->channel, f->payload, &why) == 0) {
		run_event(ac->lr, &(struct event){.kind = EV_PROGRESS});
		return;
	}
	if (streams_gone(ac->lr, ac->rank, &why))
		return;
	if (why.kind != ERR_CAPACITY && why.kind != ERR_QUOTA) {
		*err = why;
		return;
	}
	log_warn("agent of %s: %s", ac->lr->row.id, why.msg);
	ac->no_room = true;
	loop_timer_set(ac->silence, NO_ROOM_MS);
}

static void on_inspected(struct agent_conn *ac, const struct frame *f, struct arena *mem,
			 struct err *err)
{
	struct message_inspected m;

	if (message_inspected_get(f->payload, mem, &m, err) == 0)
		stall_inspected(ac->lr, ac->rank, &m);
}

static void on_metrics(struct agent_conn *ac, const struct frame *f, struct arena *mem,
		       struct err *err)
{
	struct message_metrics m;

	/* The bytes that these metrics were found in were not stored either. */
	if (ac->no_room)
		return;
	if (f->channel >= streams_count(ac->lr->nodes[ac->rank].processes))
		err_set(err, ERR_PROTOCOL, "metrics: stream %d does not exist", f->channel);
	else if (message_metrics_get(f->payload, mem, &m, err) == 0)
		streams_metrics(ac->lr, ac->rank, (enum stream)f->channel, &m);
}

static void on_sample(struct agent_conn *ac, const struct frame *f, struct arena *mem,
		      struct err *err)
{
	struct message_sample m;

	if (message_sample_get(f->payload, mem, &m, err) == 0)
		streams_sample(ac->lr, ac->rank, &m);
}

static void on_exited(struct agent_conn *ac, const struct frame *f, struct arena *mem,
		      struct err *err)
{
	struct exit_report m;

	if (message_exit_get(f->payload, mem, &m, err) == 0)
		node_exited(ac, &m);
}

static void on_collected(struct agent_conn *ac, const struct frame *f, struct arena *mem,
			 struct err *err)
{
	struct live_node *n = &ac->lr->nodes[ac->rank];
	struct message_collected m;

	/* Files are collected after the exit: this frame is of another attempt. */
	if (message_collected_get(f->payload, mem, &m, err) < 0 || !n->exit_told)
		return;
	if (m.error)
		run_note(ac->lr, "collect", ac->rank, "%s", m.error);
	n->collected = true;
	n->lost_kind = m.kind;
	snprintf(n->lost, sizeof(n->lost), "%s", m.kind == ERR_NONE ? "" : m.error);
	streams_check_drained(ac->lr, ac->rank);
}

static void on_exec(struct agent_conn *ac, const struct frame *f, struct arena *mem,
		    struct err *err)
{
	if (f->channel >= MESSAGE_ASK_CHANNEL)
		exec_ask_frame(ac->lr, ac->rank, f, mem, err);
	else
		exec_frame(ac->lr, ac->rank, f, mem, err);
}

static void on_ping(struct agent_conn *ac, const struct frame *f, struct arena *mem,
		    struct err *err)
{
	(void)f;
	(void)mem;
	(void)err;
	conn_send(ac->conn, FRAME_PONG, 0, STR(""), STR(MESSAGE_EMPTY));
}

static void on_pong(struct agent_conn *ac, const struct frame *f, struct arena *mem,
		    struct err *err)
{
	(void)ac;
	(void)f;
	(void)mem;
	(void)err;
}

/* The reason in the frame is not needed here: the agent has logged it. */
static void on_bye(struct agent_conn *ac, const struct frame *f, struct arena *mem, struct err *err)
{
	(void)f;
	(void)mem;
	(void)err;
	ac->closing = true;
	conn_close(ac->conn);
}

/* The kind of a peer decides which frames it may send. */
enum peer_kind { PEER_STRANGER = 1, PEER_NODE = 2, PEER_HOST = 4 };
#define PEER_ANY (PEER_STRANGER | PEER_NODE | PEER_HOST)

static enum peer_kind peer_of(const struct agent_conn *ac)
{
	return ac->lr ? PEER_NODE : ac->host ? PEER_HOST : PEER_STRANGER;
}

/* Frames that only a master sends have no row. */
static const struct {
	void (*take)(struct agent_conn *ac, const struct frame *f, struct arena *mem,
		     struct err *err);
	unsigned from; /* bits of enum peer_kind */
	bool empty;    /* the payload is not read: `mem` is NULL */
} frames[FRAME_TYPE_MAX + 1] = {
	[FRAME_HELLO] = {on_hello, PEER_STRANGER},
	[FRAME_READY] = {on_ready, PEER_NODE},
	[FRAME_STARTED] = {on_started, PEER_NODE},
	[FRAME_SERVING] = {on_serving, PEER_NODE},
	[FRAME_PREEMPT] = {on_preempt, PEER_NODE},
	[FRAME_INSPECTED] = {on_inspected, PEER_NODE},
	[FRAME_PREFLIGHT_DONE] = {on_preflight_done, PEER_NODE},
	[FRAME_DATA] = {on_data, PEER_NODE},
	[FRAME_METRICS] = {on_metrics, PEER_NODE},
	[FRAME_SAMPLE] = {on_sample, PEER_NODE},
	[FRAME_EXIT] = {on_exited, PEER_NODE},
	[FRAME_COLLECTED] = {on_collected, PEER_NODE},
	[FRAME_EXEC_OUTPUT] = {on_exec, PEER_NODE},
	[FRAME_EXEC_CONTROL] = {on_exec, PEER_NODE},
	[FRAME_EXEC_CLOSE] = {on_exec, PEER_NODE},
	[FRAME_EXEC_ASK] = {on_exec, PEER_NODE},
	[FRAME_EXEC_INPUT] = {on_exec, PEER_NODE},
	[FRAME_PING] = {on_ping, PEER_ANY, .empty = true},
	[FRAME_PONG] = {on_pong, PEER_ANY, .empty = true},
	[FRAME_BYE] = {on_bye, PEER_ANY},
	[FRAME_JOIN] = {on_join, PEER_STRANGER},
	[FRAME_ENROL] = {on_enrol, PEER_STRANGER},
	[FRAME_HOST_NODES] = {on_host_nodes, PEER_HOST},
	[FRAME_HOST_ANSWER] = {on_host_answer, PEER_HOST},
};

static void not_expected(const struct agent_conn *ac, uint8_t type, struct err *err)
{
	static const char *const why[] = {
		[PEER_STRANGER] = "sent before the hello was accepted",
		[PEER_NODE] = "not from a node that has said hello already",
		[PEER_HOST] = "not from a host that has joined",
	};

	err_set(err, ERR_PROTOCOL, "%s: %s", frame_type_name(type),
		frames[type].take ? why[peer_of(ac)] : "only a master sends this frame");
}

static void on_frame(void *ctx, const struct frame *f)
{
	CLEANUP(arena_freep) struct arena *mem = NULL;
	struct agent_conn *ac = ctx;
	struct err err = {0};

	if (ac->closing)
		return;
	ac->heard_ms = clock_boot_ms();
	if (ac->host)
		host_heard(ac->host, ac->heard_ms);
	if (!(frames[f->type].from & (unsigned)peer_of(ac))) {
		not_expected(ac, f->type, &err);
	} else {
		mem = frames[f->type].empty ? NULL : arena_new();
		frames[f->type].take(ac, f, mem, &err);
	}
	if (err.kind != ERR_NONE)
		protocol_error(ac, err.msg);
}

static void on_close(void *ctx, const struct err *why)
{
	struct agent_conn *ac = ctx;

	if (why->kind != ERR_NONE)
		log_debug("agent connection: %s", why->msg);
	agent_lost(ac);
}

/* How much longer the peer may be silent. */
static int64_t may_be_silent_ms(const struct agent_conn *ac, int64_t now)
{
	int64_t most = ac->lost_ms && ac->lost_ms < SILENT_MS ? ac->lost_ms : SILENT_MS;
	int64_t left = ac->heard_ms + most - now, hello = ac->since_ms + HELLO_MS - now;

	/* Frames other than a hello do not extend a stranger's time limit. */
	return ac->stranger && hello < left ? hello : left;
}

static void on_silence(void *ctx)
{
	struct agent_conn *ac = ctx;
	int64_t now = clock_boot_ms(), quiet = now - ac->heard_ms, left = may_be_silent_ms(ac, now);
	int64_t ping = quiet < PING_AFTER_MS ? PING_AFTER_MS - quiet : PING_AFTER_MS;

	ping += PING_GRID_MS - (now + ping) % PING_GRID_MS;

	if (left <= 0) {
		agent_lost(ac);
		return;
	}
	if (ac->no_room && !ac->closing)
		protocol_error(ac, "the disk of the master is full");
	if (quiet >= PING_AFTER_MS && !ac->closing)
		conn_send(ac->conn, FRAME_PING, 0, STR(""), STR(MESSAGE_EMPTY));
	loop_timer_set(ac->silence, left < ping ? left : ping);
}

void agent_accept_over(void *ctx, struct transport *t)
{
	static const struct conn_events events = {.on_frame = on_frame, .on_close = on_close};
	struct agents *as = ctx;
	struct agent_conn *ac = xcalloc(1, sizeof(*ac));

	ac->as = as;
	ac->no = ++as->last_no;
	ac->since_ms = ac->heard_ms = clock_boot_ms();
	ac->stranger = true;
	crowd_enter(&as->strangers, &ac->crowd);
	ac->conn = conn_new_over(as->m->loop, t, &events, ac);
	conn_set_max(ac->conn, MESSAGE_HELLO_MAX);
	ac->silence = loop_timer_new(as->m->loop, on_silence, ac);
	loop_timer_set(ac->silence, PING_AFTER_MS);
}

void agent_accept(void *ctx, int fd)
{
	struct transport t;

	transport_plain(&t, fd);
	agent_accept_over(ctx, &t);
}
