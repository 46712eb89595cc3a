#include "agent/enrol.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/agent.h"
#include "agent/config.h"
#include "agent/enrol_config.h"
#include "base/alloc.h"
#include "base/arena.h"
#include "base/backoff.h"
#include "base/buf.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/file.h"
#include "base/log.h"
#include "base/path.h"
#include "link/conn.h"
#include "link/layout.h"
#include "link/message.h"
#include "net/dialer.h"
#include "net/transport.h"
#include "sys/loop.h"
#include "sys/proctree.h"

#define DIAL_MS 500   /* for a unix socket */
#define CALL_MS 10000 /* for a master on another machine, all its addresses and TLS */
#define ANSWER_MS 10000
#define BACKOFF_MIN_MS 200
#define BACKOFF_MAX_MS 5000

struct enrolment {
	const struct enrol_config *cfg;
	struct loop *loop;
	struct conn *conn;
	struct dialer *dialer;
	struct loop_timer *dial, *answer;
	struct backoff backoff;
	size_t url; /* the one that is tried */
	int64_t until_ms;
	char why[240]; /* the last failure: said once, not every time */
	bool kept;     /* the answer is on disk */
	struct err err;
};

static void give_up(struct enrolment *e)
{
	loop_stop(e->loop);
}

static void again(struct enrolment *e, const char *why)
{
	if (strcmp(e->why, why) != 0)
		log_warn("%s: %s; trying again",
			 e->cfg->nurls ? e->cfg->urls[e->url].text : "master", why);
	snprintf(e->why, sizeof(e->why), "%s", why);
	if (clock_boot_ms() >= e->until_ms) {
		err_set(&e->err, ERR_UNAVAILABLE, "no master has enrolled this machine in time: %s",
			e->why);
		give_up(e);
		return;
	}
	if (e->cfg->nurls > 0)
		e->url = (e->url + 1) % e->cfg->nurls;
	loop_timer_set(e->dial, backoff_next(&e->backoff));
}

static void hang_up(struct enrolment *e, const char *why)
{
	e->conn = conn_free(e->conn);
	loop_timer_cancel(e->answer);
	again(e, why);
}

static void on_silence(void *ctx)
{
	hang_up(ctx, "no answer to the enrolment");
}

/* ---- frames ---- */

static void on_enrolled(struct enrolment *e, const struct frame *f, struct arena *mem)
{
	struct message_enrolled m;

	if (message_enrolled_get(f->payload, mem, &m, &e->err) < 0)
		return;
	e->kept = enrol_config_keep(e->cfg, e->url, &m, &e->err) == 0;
	if (e->kept)
		log_info("machine %s is %s of run %s, incarnation %d", e->cfg->identity, m.node,
			 e->cfg->run, m.incarnation);
	give_up(e);
}

static void on_refuse(struct enrolment *e, const struct frame *f, struct arena *mem)
{
	struct message_refuse m;

	if (message_refuse_get(f->payload, mem, &m, &e->err) < 0)
		return;
	if (m.kind == ERR_DENIED || m.kind == ERR_NOT_FOUND) {
		err_set(&e->err, m.kind, "the master does not take machine %s: %s",
			e->cfg->identity, m.reason);
		give_up(e);
		return;
	}
	snprintf(e->why, sizeof(e->why), "%s", m.reason);
	log_info("the master says: %s", m.reason);
	conn_close(e->conn);
}

static void on_frame(void *ctx, const struct frame *f)
{
	CLEANUP(arena_freep) struct arena *mem = arena_new();
	struct enrolment *e = ctx;

	switch (f->type) {
	case FRAME_ENROLLED:
		on_enrolled(e, f, mem);
		break;
	case FRAME_REFUSE:
		on_refuse(e, f, mem);
		break;
	case FRAME_PING:
		conn_send(e->conn, FRAME_PONG, 0, STR(MESSAGE_EMPTY), STR(""));
		break;
	case FRAME_BYE:
		conn_close(e->conn);
		break;
	default:
		err_set(&e->err, ERR_PROTOCOL, "%s: not expected now", frame_type_name(f->type));
		break;
	}
	if (e->err.kind != ERR_PROTOCOL)
		return;
	log_error("the master sent an invalid message: %s", e->err.msg);
	e->err = (struct err){0};
	conn_close(e->conn);
}

static void on_close(void *ctx, const struct err *why)
{
	struct enrolment *e = ctx;

	hang_up(e, why->msg[0] ? why->msg : "the master has closed the connection");
}

/* ---- dialling ---- */

static void say_enrol(struct enrolment *e)
{
	const struct enrol_config *c = e->cfg;
	struct message_enrol m = {.proto = LINK_PROTO,
				  .run = c->run,
				  .role = c->role,
				  .token = c->token,
				  .identity = c->identity,
				  .place = c->place,
				  .version = REGATTA_VERSION};
	struct buf b;

	buf_init(&b, MESSAGE_HELLO_MAX);
	message_enrol_put(&m, &b);
	conn_send(e->conn, FRAME_ENROL, 0, STR(""), buf_str(&b));
	buf_release(&b);
}

static void connected(struct enrolment *e, const struct transport *t)
{
	static const struct conn_events events = {.on_frame = on_frame, .on_close = on_close};

	e->conn = conn_new_over(e->loop, t, &events, e);
	conn_set_max(e->conn, MESSAGE_HELLO_MAX);
	loop_timer_set(e->answer, ANSWER_MS);
	say_enrol(e);
}

static void dialed(void *ctx, const struct transport *t, const struct err *why)
{
	struct enrolment *e = ctx;

	e->dialer = dialer_free(e->dialer);
	if (t)
		connected(e, t);
	else
		again(e, why->msg);
}

static void dial_now(void *ctx)
{
	struct enrolment *e = ctx;
	struct err err = {0};
	struct transport t;
	int fd;

	if (e->cfg->nurls > 0) {
		struct dialer_target there = {.host = e->cfg->urls[e->url].host,
					      .port = e->cfg->urls[e->url].port,
					      .trust = {.mode = TLS_PIN, .pin = e->cfg->pin},
					      .protocol = LINK_ALPN,
					      .limit_ms = CALL_MS};

		e->dialer = dialer_start(e->loop, &there, dialed, e);
		return;
	}
	if (dial_unix(e->cfg->link_dir, e->cfg->link_name, DIAL_MS, &fd, &err) < 0) {
		again(e, err.msg);
		return;
	}
	transport_plain(&t, fd);
	connected(e, &t);
}

static int enrol(const struct enrol_config *c, struct err *err)
{
	struct enrolment e = {.cfg = c, .until_ms = clock_boot_ms() + c->limit_ms};

	e.loop = loop_new();
	e.dial = loop_timer_new(e.loop, dial_now, &e);
	e.answer = loop_timer_new(e.loop, on_silence, &e);
	backoff_init(&e.backoff, BACKOFF_MIN_MS, BACKOFF_MAX_MS);
	dial_now(&e);
	loop_run(e.loop);
	e.conn = conn_free(e.conn);
	e.dialer = dialer_free(e.dialer);
	e.dial = loop_timer_free(e.dial);
	e.answer = loop_timer_free(e.answer);
	loop_free(e.loop);
	if (e.kept)
		return 0;
	*err = e.err;
	return -1;
}

/* The node directory is there, of this run, and its mark is in the environment of all that follows. */
static int take_up(const struct enrol_config *c, struct arena *a, struct err *err)
{
	struct agent_config kept;

	if (config_load(c->dir, a, &kept, err) < 0)
		return -1;
	if (strcmp(kept.run, c->run) != 0)
		return err_set(err, ERR_CONFLICT,
			       "'%s' belongs to run %.60s, not to %.60s: remove it first", c->dir,
			       kept.run, c->run);
	setenv(PROC_MARK, kept.mark, 1);
	return 0;
}

static int begin(const char *file, struct arena *a, struct enrol_config *c, struct err *err)
{
	if (enrol_config_load(file, a, c, err) < 0)
		return -1;
	CLEANUP(freep) char *config = path_join(c->dir, LAYOUT_AGENT_CONFIG);

	if (!file_exists(config) && enrol(c, err) < 0)
		return -1;
	return take_up(c, a, err);
}

int agent_enrol_main(const char *file)
{
	CLEANUP(arena_freep) struct arena *a = arena_new();
	struct enrol_config c;
	struct err err = {0};

	log_setup(2, "enrol", LOG_INFO);
	signal(SIGPIPE, SIG_IGN);
	if (begin(file, a, &c, &err) < 0) {
		log_error("%s", err.msg);
		return err_exit_code(err.kind);
	}
	return agent_main(c.dir);
}
