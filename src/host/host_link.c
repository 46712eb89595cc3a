/*
 * The host's end of the link: connect, join, take questions, detect a silent master, connect again
 * with a growing pause.
 *
 * A refusal ends the daemon with an error, unless the master has no room for more hosts.  A master
 * that does not answer, or has no room, is tried for ever.  A wrong
 * key ends the daemon if it has never joined; later it is tried again.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/log.h"
#include "host/internal.h"
#include "link/conn.h"
#include "link/layout.h"
#include "net/address.h"
#include "net/dialer.h"
#include "fmt/http_url.h"
#include "net/tls.h"
#include "net/transport.h"
#include "sys/loop.h"
#include "sys/machine.h"

#define CALL_TIMEOUT_MS 10000 /* to try all addresses of the master, with the handshake */
#define BACKOFF_MIN_MS 50
#define BACKOFF_MAX_MS 5000
#define PING_MS 5000
#define SILENCE_MS 15000
#define BYE_MS 500 /* how long a leaving daemon waits until its BYE is sent */
#define NODES_MAX FRAME_MAX_PAYLOAD
#define KEEP_MS (7LL * 24 * 3600 * 1000)
#define EXPIRE_CHECK_MS (3600 * 1000)

void host_link_send(struct host_daemon *h, enum frame_type type, const struct buf *payload)
{
	if (h->conn)
		conn_send(h->conn, type, 0, STR(""), buf_str(payload));
}

static void send_empty(struct host_daemon *h, enum frame_type type)
{
	conn_send(h->conn, type, 0, STR(MESSAGE_EMPTY), STR(""));
}

static void give_up(struct host_daemon *h, enum err_kind kind)
{
	h->leaving = true;
	h->exit_code = err_exit_code(kind);
	loop_stop(h->loop);
}

static void late(void *ctx)
{
	struct host_daemon *h = ctx;

	loop_stop(h->loop);
}

void host_link_leave(struct host_daemon *h, const char *reason)
{
	struct buf b;

	if (!h->conn || h->leaving) {
		loop_stop(h->loop);
		return;
	}
	h->leaving = true;
	buf_init(&b, 4096);
	message_bye_put(&(struct message_bye){reason}, &b);
	host_link_send(h, FRAME_BYE, &b);
	buf_release(&b);
	h->bye = loop_timer_new(h->loop, late, h);
	loop_timer_set(h->bye, BYE_MS);
	conn_close(h->conn);
}

/* ---- joining ---- */

static void say_join(struct host_daemon *h)
{
	char interface[CONN_INTERFACE], address[ADDRESS_TEXT] = "";
	struct message_join m = {
		.proto = LINK_PROTO,
		.id = h->id,
		.name = h->o->name,
		.token = h->o->token,
		.boot_id = h->boot_id,
		.version = REGATTA_VERSION,
		.machine = h->machine[0] ? h->machine : NULL,
		.time_ms = clock_wall_ms(),
		.cpus = machine_cpus(),
		.gpus = machine_gpus(),
		.memory = machine_memory(),
		.labels = (struct env_pair *)(uintptr_t)h->o->labels,
		.nlabels = h->o->nlabels,
	};
	struct address own;
	struct buf b;

	if (conn_own_address(h->conn, &own, interface)) {
		address_text(&own, address);
		m.address = address;
	}
	buf_init(&b, MESSAGE_HELLO_MAX);
	message_join_put(&m, &b);
	if (b.overflow) {
		log_error("--labels: too long for the master: use fewer, or shorter ones");
		give_up(h, ERR_INVALID);
	} else {
		host_link_send(h, FRAME_JOIN, &b);
	}
	buf_release(&b);
}

static void say_nodes(struct host_daemon *h)
{
	CLEANUP(arena_freep) struct arena *a = arena_new();
	struct message_host_nodes m = {0};
	struct buf b;

	host_nodes_list(h, a, &m);
	buf_init(&b, NODES_MAX);
	message_host_nodes_put(&m, &b);
	host_link_send(h, FRAME_HOST_NODES, &b);
	buf_release(&b);
}

/* ---- dialling ---- */

static const struct conn_events events;

static void connected(struct host_daemon *h, const struct transport *t)
{
	h->heard_ms = clock_boot_ms();
	h->pinged = h->joined = false;
	h->conn = conn_new_over(h->loop, t, &events, h);
	loop_timer_set(h->silence, PING_MS);
	say_join(h);
}

static void dialed(void *ctx, const struct transport *t, const struct err *why)
{
	struct host_daemon *h = ctx;

	h->dialer = dialer_free(h->dialer);
	if (t) {
		connected(h, t);
		return;
	}
	if (why->kind == ERR_DENIED && !h->was_joined) {
		log_error(
			"master %s: %s: use the pin that the master prints (regatta master --listen), or find out "
			"who answers there",
			h->o->url, why->msg);
		give_up(h, why->kind);
		return;
	}
	if (strcmp(h->dial_why, why->msg) != 0)
		log_warn("master %s: %s; trying again", h->o->url, why->msg);
	snprintf(h->dial_why, sizeof(h->dial_why), "%s", why->msg);
	loop_timer_set(h->dial, backoff_next(&h->backoff));
}

static void dial_now(void *ctx)
{
	struct host_daemon *h = ctx;
	struct dialer_target there = {.host = h->host,
				      .port = h->port,
				      .trust = {.mode = TLS_PIN, .pin = h->o->pin},
				      .protocol = LINK_ALPN,
				      .limit_ms = CALL_TIMEOUT_MS};

	h->dialer = dialer_start(h->loop, &there, dialed, h);
}

static void hang_up(struct host_daemon *h)
{
	if (h->joined)
		h->last_joined_ms = clock_boot_ms();
	h->conn = conn_free(h->conn);
	h->joined = false;
	host_nodes_drop(h);
	loop_timer_cancel(h->silence);
	if (h->leaving)
		loop_stop(h->loop);
	else
		loop_timer_set(h->dial, backoff_next(&h->backoff));
}

static void silence(void *ctx)
{
	struct host_daemon *h = ctx;
	int64_t quiet = clock_boot_ms() - h->heard_ms;

	if (quiet >= SILENCE_MS) {
		log_warn("the master has been silent for %d s: dialling again", SILENCE_MS / 1000);
		hang_up(h);
		return;
	}
	if (quiet < PING_MS) {
		loop_timer_set(h->silence, PING_MS - quiet);
		return;
	}
	if (!h->pinged)
		send_empty(h, FRAME_PING);
	h->pinged = true;
	loop_timer_set(h->silence, SILENCE_MS - quiet);
}

/* ---- frames ---- */

static void on_joined(struct host_daemon *h, const struct frame *f, struct arena *mem,
		      struct err *err)
{
	(void)f;
	(void)mem;
	(void)err;
	if (!h->was_joined || h->dial_why[0])
		log_info("joined %s as '%s'", h->o->url, h->o->name);
	h->joined = h->was_joined = true;
	h->dial_why[0] = '\0';
	h->last_joined_ms = clock_boot_ms();
	backoff_reset(&h->backoff);
	say_nodes(h);
}

static void on_refuse(struct host_daemon *h, const struct frame *f, struct arena *mem,
		      struct err *err)
{
	struct message_refuse m;

	if (message_refuse_get(f->payload, mem, &m, err) < 0)
		return;
	if (m.kind == ERR_QUOTA) {
		if (strcmp(h->dial_why, m.reason) != 0)
			log_warn("the master has no room for this host: %s; trying again",
				 m.reason);
		snprintf(h->dial_why, sizeof(h->dial_why), "%s", m.reason);
		conn_close(h->conn);
		return;
	}
	log_error("the master refuses this host: %s (%s)", m.reason, err_kind_name(m.kind));
	give_up(h, m.kind ? m.kind : ERR_UNAVAILABLE);
}

static void on_ask(struct host_daemon *h, const struct frame *f, struct arena *mem, struct err *err)
{
	struct message_host_ask m;

	if (message_host_ask_get(f->payload, mem, &m, err) == 0)
		host_nodes_ask(h, &m);
}

static void on_ping(struct host_daemon *h, const struct frame *f, struct arena *mem,
		    struct err *err)
{
	(void)f;
	(void)mem;
	(void)err;
	send_empty(h, FRAME_PONG);
}

static void on_pong(struct host_daemon *h, const struct frame *f, struct arena *mem,
		    struct err *err)
{
	(void)h;
	(void)f;
	(void)mem;
	(void)err;
}

static void on_bye(struct host_daemon *h, const struct frame *f, struct arena *mem, struct err *err)
{
	struct message_bye m = {""};

	(void)err;
	if (message_bye_get(f->payload, mem, &m, NULL) < 0)
		m.reason = "";
	log_info("the master closes the connection: %s", m.reason);
	conn_close(h->conn);
}

static const struct {
	void (*take)(struct host_daemon *h, const struct frame *f, struct arena *mem,
		     struct err *err);
	bool before_joined;
} frames[FRAME_TYPE_MAX + 1] = {
	[FRAME_JOINED] = {on_joined, true}, [FRAME_REFUSE] = {on_refuse, true},
	[FRAME_HOST_ASK] = {on_ask, false}, [FRAME_PING] = {on_ping, true},
	[FRAME_PONG] = {on_pong, true},	    [FRAME_BYE] = {on_bye, true},
};

static void on_frame(void *ctx, const struct frame *f)
{
	CLEANUP(arena_freep) struct arena *mem = arena_new();
	struct host_daemon *h = ctx;
	struct err err = {0};

	h->heard_ms = clock_boot_ms();
	h->pinged = false;
	if (!frames[f->type].take || (!h->joined && !frames[f->type].before_joined))
		err_set(&err, ERR_PROTOCOL, "%s: not expected now", frame_type_name(f->type));
	else
		frames[f->type].take(h, f, mem, &err);
	if (err.kind == ERR_NONE)
		return;
	log_error("the master sent an invalid message: %s", err.msg);
	conn_close(h->conn);
}

static void on_close(void *ctx, const struct err *why)
{
	struct host_daemon *h = ctx;

	/* Before it has joined again one reason is enough. */
	bool said = !h->joined && h->dial_why[0];

	if (!said)
		snprintf(h->dial_why, sizeof(h->dial_why), "connection lost");
	if (!said && !h->leaving)
		log_info("connection lost%s%s: dialling again", why->msg[0] ? ": " : "", why->msg);
	hang_up(h);
}

static const struct conn_events events = {.on_frame = on_frame, .on_close = on_close};

/* Nodes are kept for a master that may come back, but only for KEEP_MS. */
static void on_expire(void *ctx)
{
	struct host_daemon *h = ctx;

	if (!h->joined && clock_boot_ms() - h->last_joined_ms >= KEEP_MS)
		host_nodes_expire(h);
	loop_timer_set(h->expire, EXPIRE_CHECK_MS);
}

int host_link_init(struct host_daemon *h, struct err *err)
{
	struct http_url u;

	if (http_url_parse(&u, str_from(h->o->url), false, err) < 0)
		return err_wrap(err, "--join");
	if (!u.tls || u.user.n > 0 || (u.path.n > 0 && !str_is(u.path, "/")))
		return err_set(err, ERR_INVALID, "--join must be https://HOST:PORT, not '%s'",
			       h->o->url);
	if (!tls_pin_ok(h->o->pin))
		return err_set(err, ERR_INVALID,
			       "--pin: '%.60s' is no pin: it is sha256// and 44 characters, as the "
			       "master prints it",
			       h->o->pin);
	snprintf(h->host, sizeof(h->host), "%s", u.host);
	h->port = u.port;
	h->dial = loop_timer_new(h->loop, dial_now, h);
	h->silence = loop_timer_new(h->loop, silence, h);
	h->expire = loop_timer_new(h->loop, on_expire, h);
	h->last_joined_ms = clock_boot_ms();
	loop_timer_set(h->expire, EXPIRE_CHECK_MS);
	backoff_init(&h->backoff, BACKOFF_MIN_MS, BACKOFF_MAX_MS);
	dial_now(h);
	return 0;
}

void host_link_release(struct host_daemon *h)
{
	h->conn = conn_free(h->conn);
	h->dialer = dialer_free(h->dialer);
	h->dial = loop_timer_free(h->dial);
	h->silence = loop_timer_free(h->silence);
	h->bye = loop_timer_free(h->bye);
	h->expire = loop_timer_free(h->expire);
}
