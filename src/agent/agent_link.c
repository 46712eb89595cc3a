/*
 * The agent's end of the link: connect, send HELLO, handle frames, detect a silent master, connect
 * again with a growing pause.  The master is on a unix socket of this machine, or at a URL, with its
 * key checked against a pin.  When no process listens on the unix socket and the last master did not
 * send BYE, start a master.
 */
#include "agent/internal.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "agent/exec.h"
#include "agent/inspect.h"
#include "agent/preflight.h"
#include "agent/rsh.h"
#include "base/alloc.h"
#include "base/arena.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/log.h"
#include "link/conn.h"
#include "link/layout.h"
#include "net/dialer.h"
#include "net/transport.h"
#include "sys/child.h"
#include "sys/loop.h"
#include "sys/off_timer.h"

#define DIAL_TIMEOUT_MS 500
#define CALL_TIMEOUT_MS                                                                            \
	10000 /* to connect to another machine: resolving, trying every address, TLS */
#define BACKOFF_MIN_MS 50
#define BACKOFF_MAX_MS 5000
#define PING_MS 5000
#define SILENCE_MS 15000
/* With lost_ms set the node may be replaced: its agent must notice a lost master early, so that it can
 * connect again before lost_ms is over. */
#define LOST_PINGS 15	/* pings per lost_ms */
#define LOST_SILENCES 5 /* reconnects that fit into lost_ms */
#define LOST_PING_MIN_MS 100
#define LOST_SILENCE_MIN_MS 500
#define LOST_BACKOFF_MAX_MS 500
#define REVIVE_AFTER_MS 1000
#define REVIVE_EVERY_MS 2000
#define LEASE_DEFAULT_MS (30 * 60 * 1000) /* until the first WELCOME */

extern char **environ;

void link_send(struct agent *a, int type, const struct buf *payload)
{
	if (a->conn)
		conn_send(a->conn, (enum frame_type)type, 0, STR(""), buf_str(payload));
}

static void send_empty(struct agent *a, enum frame_type type)
{
	conn_send(a->conn, type, 0, STR(MESSAGE_EMPTY), STR(""));
}

void link_bye(struct agent *a, const char *reason)
{
	struct buf b;

	if (!a->conn)
		return;
	buf_init(&b, 4096);
	message_bye_put(&(struct message_bye){reason}, &b);
	link_send(a, FRAME_BYE, &b);
	buf_release(&b);
	conn_close(a->conn);
}

/* ---- dialling ---- */

static int64_t within(int64_t v, int64_t least, int64_t most)
{
	return v < least ? least : v > most ? most : v;
}

static int64_t ping_ms(const struct agent *a)
{
	return a->lost_ms ? within(a->lost_ms / LOST_PINGS, LOST_PING_MIN_MS, PING_MS) : PING_MS;
}

static int64_t silence_ms(const struct agent *a)
{
	return a->lost_ms ? within(a->lost_ms / LOST_SILENCES, LOST_SILENCE_MIN_MS, SILENCE_MS)
			  : SILENCE_MS;
}

static int64_t call_ms(const struct agent *a)
{
	return a->lost_ms ? within(silence_ms(a), 2 * LOST_SILENCE_MIN_MS, CALL_TIMEOUT_MS)
			  : CALL_TIMEOUT_MS;
}

static void dial_later(struct agent *a)
{
	int64_t pause = backoff_next(&a->backoff);

	loop_timer_set(a->dial, a->lost_ms ? within(pause, 0, LOST_BACKOFF_MAX_MS) : pause);
}

/* The environment for a new master: the agent's, without the mark by which processes of this node are
 * found and killed. */
static const char **master_env(const char *home)
{
	size_t n = 0, kept = 0;

	while (environ[n])
		n++;
	const char **env = xcalloc(n + 2, sizeof(*env));

	for (size_t i = 0; i < n; i++)
		if (strncmp(environ[i], PROC_MARK "=", sizeof(PROC_MARK)) != 0 &&
		    strncmp(environ[i], "REGATTA_HOME=", 13) != 0)
			env[kept++] = environ[i];
	env[kept] = xasprintf("REGATTA_HOME=%s", home);
	return env;
}

static void start_master(struct agent *a)
{
	const char *const argv[] = {"regatta", "master", "--background", NULL};
	const char **env = master_env(a->cfg.home);
	struct child_spec spec = {.file = "/proc/self/exe",
				  .argv = argv,
				  .env = env,
				  .in = -1,
				  .out = -1,
				  .err = 2,
				  .session = true};
	struct err err = {0};
	size_t last = 0;

	a->revived_ms = clock_boot_ms();
	log_info("no master listens in %s: starting one", a->cfg.link_dir);
	if (child_spawn_detached(&spec, &err) < 0)
		log_warn("%s", err.msg);
	backoff_reset(&a->backoff);
	while (env[last + 1])
		last++;
	free((char *)(uintptr_t)env[last]);
	free(env);
}

static void dial_failed(struct agent *a, enum err_kind why)
{
	int64_t now = clock_boot_ms();

	/* A master listens and is busy, or the error is local: do not start another master. */
	if (why != ERR_UNAVAILABLE) {
		a->nobody_since_ms = 0;
		dial_later(a);
		return;
	}
	if (!a->nobody_since_ms)
		a->nobody_since_ms = now;
	if (a->cfg.revive && !a->said_bye && now - a->nobody_since_ms >= REVIVE_AFTER_MS &&
	    (!a->revived_ms || now - a->revived_ms >= REVIVE_EVERY_MS))
		start_master(a);
	dial_later(a);
}

static void say_hello(struct agent *a)
{
	struct buf b;

	buf_init(&b, AGENT_PAYLOAD_MAX);
	job_hello(a, &b);
	link_send(a, FRAME_HELLO, &b);
	buf_release(&b);
}

static const struct conn_events events;

static void connected(struct agent *a, const struct transport *t)
{
	a->nobody_since_ms = 0;
	a->dial_why[0] = '\0';
	a->heard_ms = clock_boot_ms();
	a->pinged = false;
	a->conn = conn_new_over(a->loop, t, &events, a);
	loop_timer_set(a->silence, ping_ms(a));
	a->asked_at_ms = a->heard_ms;
	say_hello(a);
}

static void dialed(void *ctx, const struct transport *t, const struct err *why)
{
	struct agent *a = ctx;

	if (!t) {
		if (strcmp(a->dial_why, why->msg) != 0)
			log_warn("master %s: %s; trying again", a->cfg.url, why->msg);
		snprintf(a->dial_why, sizeof(a->dial_why), "%s", why->msg);
	}
	a->dialer = dialer_free(a->dialer);
	if (t)
		connected(a, t);
	else
		dial_later(a);
}

static void dial_now(void *ctx)
{
	struct agent *a = ctx;
	struct dialer_target there = {.host = a->cfg.host,
				      .port = a->cfg.port,
				      .trust = {.mode = TLS_PIN, .pin = a->cfg.pin},
				      .protocol = LINK_ALPN,
				      .limit_ms = (int)call_ms(a)};
	struct err err = {0};
	struct transport t;
	int fd;

	if (a->cfg.url) {
		a->dialer = dialer_start(a->loop, &there, dialed, a);
		return;
	}
	if (dial_unix(a->cfg.link_dir, a->cfg.link_name, DIAL_TIMEOUT_MS, &fd, &err) < 0) {
		log_debug("dial: %s", err.msg);
		dial_failed(a, err.kind);
		return;
	}
	transport_plain(&t, fd);
	connected(a, &t);
}

/* ---- silence and lease ---- */

static void hang_up(struct agent *a)
{
	if (a->welcomed && a->lease_ms > 0)
		loop_timer_set(a->lease, a->lease_ms - (clock_boot_ms() - a->heard_ms));
	exec_drop_all(a, NULL);
	rsh_drop_all(a);
	a->conn = conn_free(a->conn);
	members_release(&a->members);
	a->welcomed = false;
	loop_timer_cancel(a->silence);
	if (a->leave == LEAVE_NOW)
		loop_stop(a->loop);
	else if (a->leave != LEAVE_CLEAN)
		dial_later(a);
	agent_wake(a);
}

/* The master answered HELLO or PING: at asked_at_ms it had not given up this node. */
static void answered(struct agent *a)
{
	if (a->asked_at_ms && a->lost_ms)
		attempt_fence(&a->at,
			      (struct supervisor_fence){a->asked_at_ms + a->lost_ms, a->lost_ms});
	a->asked_at_ms = 0;
}

/* Send a PING even when other frames arrive: only its answer moves the fence. */
static void ping_for_proof(struct agent *a, int64_t now)
{
	if (a->welcomed && !a->asked_at_ms) {
		a->asked_at_ms = now;
		send_empty(a, FRAME_PING);
	}
	loop_timer_set(a->silence, ping_ms(a));
}

static void silence(void *ctx)
{
	struct agent *a = ctx;
	int64_t now = clock_boot_ms(), quiet = now - a->heard_ms;

	if (quiet >= silence_ms(a)) {
		log_warn("the master has been silent for %lld ms: dialling again",
			 (long long)silence_ms(a));
		hang_up(a);
		return;
	}
	if (a->lost_ms) {
		ping_for_proof(a, now);
		return;
	}
	if (quiet < PING_MS) {
		loop_timer_set(a->silence, PING_MS - quiet);
		return;
	}
	if (!a->pinged)
		send_empty(a, FRAME_PING);
	a->pinged = true;
	loop_timer_set(a->silence, SILENCE_MS - quiet);
}

static void lease_over(void *ctx)
{
	struct agent *a = ctx;

	log_warn("no master for %lld ms: the lease is over", (long long)a->lease_ms);
	agent_leave(a, LEAVE_KEEP);
}

/* ---- messages ---- */

static void on_welcome(struct agent *a, const struct frame *f, struct arena *mem, struct err *err)
{
	struct message_welcome m;

	if (message_welcome_get(f->payload, mem, &m, err) < 0)
		return;
	a->lease_ms = m.lease_ms;
	a->lost_ms = m.lost_ms;
	loop_timer_cancel(a->lease);
	answered(a);
	backoff_reset(&a->backoff);
	a->said_bye = false;
	a->welcomed = true;
	loop_timer_set(a->silence, ping_ms(a));
	job_welcomed(a, &m);
}

static void on_refuse(struct agent *a, const struct frame *f, struct arena *mem, struct err *err)
{
	struct message_refuse m;

	if (message_refuse_get(f->payload, mem, &m, err) < 0)
		return;
	log_warn("the master refuses this node: %s (%s)", m.reason, err_kind_name(m.kind));
	if (m.kind == ERR_NOT_FOUND || m.kind == ERR_DENIED)
		agent_leave(a, LEAVE_CLEAN);
	else
		conn_close(a->conn);
}

static void on_inputs(struct agent *a, const struct frame *f, struct arena *mem, struct err *err)
{
	(void)mem;
	job_inputs(a, f->payload, err);
}

static void on_start(struct agent *a, const struct frame *f, struct arena *mem, struct err *err)
{
	(void)mem;
	job_start(a, f->payload, err);
	members_release(&a->members);
}

static void on_members(struct agent *a, const struct frame *f, struct arena *mem, struct err *err)
{
	(void)mem;
	members_take(&a->members, f->payload, err);
}

static void on_ack(struct agent *a, const struct frame *f, struct arena *mem, struct err *err)
{
	struct message_ack m;

	(void)mem;
	if (f->channel >= STREAMS_MAX) {
		err_set(err, ERR_PROTOCOL, "ack: stream %d does not exist", f->channel);
		return;
	}
	if (message_ack_get(f->payload, &m, err) == 0 && a->relaying && f->channel < a->relay.n)
		relay_ack(&a->relay, (enum stream)f->channel, m.stored, m.scanned);
}

static void on_signal(struct agent *a, const struct frame *f, struct arena *mem, struct err *err)
{
	struct message_signal m;

	if (message_signal_get(f->payload, mem, &m, err) == 0)
		job_stop(a, m.hurry);
}

/* A machine of one's own is never switched off: it has no such timer. */
static void on_extend(struct agent *a, const struct frame *f, struct arena *mem, struct err *err)
{
	struct message_extend m;
	struct err why = {0};

	if (message_extend_get(f->payload, mem, &m, err) == 0 && a->cfg.expires_file &&
	    off_timer_set(a->cfg.expires_file, m.expires_ms, &why) < 0)
		log_warn("the time at which this machine is switched off was not changed: %s",
			 why.msg);
}

static void on_release(struct agent *a, const struct frame *f, struct arena *mem, struct err *err)
{
	(void)f;
	(void)mem;
	(void)err;
	agent_leave(a, LEAVE_CLEAN);
}

static void on_ping(struct agent *a, const struct frame *f, struct arena *mem, struct err *err)
{
	(void)f;
	(void)mem;
	(void)err;
	send_empty(a, FRAME_PONG);
}

static void on_pong(struct agent *a, const struct frame *f, struct arena *mem, struct err *err)
{
	(void)f;
	(void)mem;
	(void)err;
	answered(a);
}

static void on_bye(struct agent *a, const struct frame *f, struct arena *mem, struct err *err)
{
	struct message_bye m = {""};

	(void)err;
	/* A BYE with an unreadable payload counts. */
	if (message_bye_get(f->payload, mem, &m, NULL) < 0)
		m.reason = "";
	log_info("the master closes the connection: %s", m.reason);
	a->said_bye = true;
	conn_close(a->conn);
}

static void on_exec(struct agent *a, const struct frame *f, struct arena *mem, struct err *err)
{
	(void)mem;
	exec_open(a, f->channel, f->payload, err);
}

static void on_exec_input(struct agent *a, const struct frame *f, struct arena *mem,
			  struct err *err)
{
	(void)mem;
	(void)err;
	exec_input(a, f->channel, f->payload);
}

static void on_exec_control(struct agent *a, const struct frame *f, struct arena *mem,
			    struct err *err)
{
	(void)mem;
	if (f->channel >= MESSAGE_ASK_CHANNEL)
		rsh_frame(a, f);
	else
		exec_control(a, f->channel, f->payload, err);
}

static void on_exec_output(struct agent *a, const struct frame *f, struct arena *mem,
			   struct err *err)
{
	(void)mem;
	(void)err;
	rsh_frame(a, f);
}

static void on_exec_close(struct agent *a, const struct frame *f, struct arena *mem,
			  struct err *err)
{
	(void)mem;
	(void)err;
	if (f->channel >= MESSAGE_ASK_CHANNEL)
		rsh_frame(a, f);
	else
		exec_close(a, f->channel);
}

static void on_inspect(struct agent *a, const struct frame *f, struct arena *mem, struct err *err)
{
	(void)f;
	(void)mem;
	(void)err;
	inspect_start(a);
}

static void preflight_done(void *ctx, const struct message_preflight_done *m)
{
	struct agent *a = ctx;
	struct buf b;

	buf_init(&b, AGENT_PAYLOAD_MAX);
	message_preflight_done_put(m, &b);
	if (a->welcomed)
		link_send(a, FRAME_PREFLIGHT_DONE, &b);
	buf_release(&b);
}

static void on_preflight(struct agent *a, const struct frame *f, struct arena *mem, struct err *err)
{
	struct message_preflight m;

	if (message_preflight_get(f->payload, mem, &m, err) == 0 && a->preflight)
		preflight_ask(a->preflight, &m, preflight_done, a);
}

static const struct {
	void (*take)(struct agent *a, const struct frame *f, struct arena *mem, struct err *err);
	bool before_welcome;
} messages[FRAME_TYPE_MAX + 1] = {
	[FRAME_WELCOME] = {on_welcome, true},
	[FRAME_REFUSE] = {on_refuse, true},
	[FRAME_INPUTS] = {on_inputs, false},
	[FRAME_START] = {on_start, false},
	[FRAME_ACK] = {on_ack, false},
	[FRAME_SIGNAL] = {on_signal, false},
	[FRAME_RELEASE] = {on_release, false},
	[FRAME_PING] = {on_ping, true},
	[FRAME_PONG] = {on_pong, true},
	[FRAME_BYE] = {on_bye, true},
	[FRAME_MEMBERS] = {on_members, false},
	[FRAME_EXEC] = {on_exec, false},
	[FRAME_EXEC_INPUT] = {on_exec_input, false},
	[FRAME_EXEC_OUTPUT] = {on_exec_output, false},
	[FRAME_EXEC_CONTROL] = {on_exec_control, false},
	[FRAME_EXEC_CLOSE] = {on_exec_close, false},
	[FRAME_EXTEND] = {on_extend, false},
	[FRAME_INSPECT] = {on_inspect, false},
	[FRAME_PREFLIGHT] = {on_preflight, false},
};

static void on_frame(void *ctx, const struct frame *f)
{
	CLEANUP(arena_freep) struct arena *mem = NULL;
	struct agent *a = ctx;
	struct err err = {0};

	a->heard_ms = clock_boot_ms();
	a->pinged = false;
	if (!messages[f->type].take || (!a->welcomed && !messages[f->type].before_welcome)) {
		err_set(&err, ERR_PROTOCOL, "%s: not expected now", frame_type_name(f->type));
	} else {
		mem = arena_new();
		messages[f->type].take(a, f, mem, &err);
	}
	if (err.kind != ERR_NONE) {
		log_error("the master sent an invalid message: %s", err.msg);
		link_bye(a, err.msg);
	}
	agent_wake(a);
}

static void on_drained(void *ctx)
{
	agent_wake(ctx);
}

static void on_close(void *ctx, const struct err *why)
{
	struct agent *a = ctx;

	if (why->kind != ERR_NONE)
		log_info("connection lost: %s", why->msg);
	hang_up(a);
}

static const struct conn_events events = {on_frame, on_drained, on_close};

void link_init(struct agent *a)
{
	a->dial = loop_timer_new(a->loop, dial_now, a);
	a->silence = loop_timer_new(a->loop, silence, a);
	a->lease = loop_timer_new(a->loop, lease_over, a);
	backoff_init(&a->backoff, BACKOFF_MIN_MS, BACKOFF_MAX_MS);
	a->lease_ms = LEASE_DEFAULT_MS;
	loop_timer_set(a->lease, a->lease_ms);
	dial_now(a);
}

void link_release(struct agent *a)
{
	a->conn = conn_free(a->conn);
	a->dialer = dialer_free(a->dialer);
	a->dial = loop_timer_free(a->dial);
	a->silence = loop_timer_free(a->silence);
	a->lease = loop_timer_free(a->lease);
}
