/* Start, stop, and the idle end of a master. */
#include "master/master.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/arena.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/file.h"
#include "base/log.h"
#include "base/path.h"
#include "base/rand.h"
#include "link/conn.h"
#include "master/internal.h"
#include "net/digest.h"
#include "net/http_server.h"
#include "sys/loop.h"
#include "sys/worker.h"

#define IDLE_LOOK_MS 1000
#define LOCAL_SPREAD 0x00fc0000u /* of addresses, over which masters of one machine begin */

static void on_tick(void *ctx)
{
	struct master *m = ctx;
	int64_t now = master_now(m);
	struct str id;
	void *value;

	for (size_t i = 0; map_at(m->runs, &i, &id, &value);) {
		struct live_run *lr = value;
		if (!lr->ended && lr->core->next_ms && lr->core->next_ms <= now)
			run_event(lr, &(struct event){.kind = EV_TICK});
	}
	tick_rearm(m);
}

static void on_idle_look(void *ctx)
{
	struct master *m = ctx;
	size_t active = runs_active(m);

	if (active || !list_empty(&m->watchers) || workers_pending(m->workers))
		m->last_busy_ms = master_now(m);
	if (!active && m->stopping) {
		loop_stop(m->loop);
		return;
	}
	if (m->background && master_now(m) - m->last_busy_ms >= m->idle_ms) {
		log_info("idle: leaving");
		loop_stop(m->loop);
		return;
	}
	loop_timer_set(m->idle, m->stopping		    ? 20
				: m->idle_ms < IDLE_LOOK_MS ? m->idle_ms
							    : IDLE_LOOK_MS);
}

static void on_stop_signal(void *ctx, int signo)
{
	struct master *m = ctx;

	log_info("signal %d: leaving; runs go on with their agents", signo);
	loop_stop(m->loop);
}

/* Agents are children only of the master that started them; their end is seen on the link. */
static void on_child(void *ctx, int signo)
{
	(void)ctx;
	(void)signo;
	while (waitpid(-1, NULL, WNOHANG) > 0)
		;
}

static int parse_listen(const char *text, char *addr, size_t size, int *ret_port, struct err *err)
{
	const char *colon = strrchr(text, ':');
	int64_t port;

	if (!colon || colon == text || (size_t)(colon - text) >= size ||
	    !str_to_i64(str_from(colon + 1), &port) || port < 0 || port > 65535)
		return err_set(err, ERR_INVALID,
			       "--listen '%s': expected ADDRESS:PORT, e.g. 127.0.0.1:5436", text);
	snprintf(addr, size, "%.*s", (int)(colon - text), text);
	if (addr[0] == '[' && addr[strlen(addr) - 1] == ']') {
		addr[strlen(addr) - 1] = '\0';
		memmove(addr, addr + 1, strlen(addr));
	}
	if (strncmp(addr, "127.", 4) != 0 && strcmp(addr, "::1") != 0)
		return err_set(err, ERR_INVALID,
			       "--listen '%s': beyond this machine TLS would be needed; use "
			       "127.0.0.1:PORT",
			       text);
	*ret_port = (int)port;
	return 0;
}

/* One token for all TCP callers, made once, readable by the user only. */
static int load_token(struct master *m, struct err *err)
{
	CLEANUP(freep) char *path = path_join(m->home, "token");
	struct buf text;
	int rc = 0;

	buf_init(&text, 4096);
	if (!file_exists(path)) {
		char token[65];
		token_new(token);
		rc = file_write_atomic(path, str_from(token), 0600, true, err);
	}
	if (rc == 0)
		rc = file_read(path, &text, err);
	if (rc == 0) {
		struct str token = str_trim(buf_str(&text));
		if (token.n < 32)
			rc = err_set(err, ERR_INVALID,
				     "'%s' holds no token: remove it to get a new one", path);
		else
			sha256_of(token.p, token.n, m->token_hash);
	}
	m->have_token = rc == 0;
	buf_release(&text);
	return rc;
}

static int listen_all(struct master *m, const struct master_options *o, struct err *err)
{
	char addr[64];
	int port;

	if (o->listen) {
		if (parse_listen(o->listen, addr, sizeof(addr), &port, err) < 0 ||
		    load_token(m, err) < 0 ||
		    http_server_listen_tcp(m->http, addr, port, &port, err) < 0)
			return -1;
		log_info("HTTP on %s:%d, token in %s/token", addr, port, m->home);
	}
	if (listen_unix(m->loop, m->home, LINK_SOCKET, agent_accept, m, &m->link_listener, err) < 0)
		return -1;
	return http_server_listen_unix(m->http, m->home, API_SOCKET, err);
}

static int64_t idle_ms(void)
{
	const char *text = getenv("REGATTA_IDLE");
	int64_t ms;

	return text && str_to_duration_ms(str_from(text), &ms) && ms > 0 ? ms : MASTER_IDLE_MS;
}

static int master_open(struct master *m, const struct master_options *o, struct err *err)
{
	m->home = path_clean(o->home);
	m->background = o->background;
	m->idle_ms = idle_ms();
	m->next_local = 0x7f010001u + (uint32_t)(rand_u64() % LOCAL_SPREAD) / 256 * 256;
	list_init(&m->agents);
	list_init(&m->rounds);
	list_init(&m->watchers);
	m->runs = map_new();
	if (store_open(m->home, &m->store, err) < 0)
		return -1;
	int64_t wall = clock_wall_ms(), last = store_last_ms(m->store);
	m->clock_base = (wall > last ? wall : last) - clock_boot_ms();
	m->last_busy_ms = master_now(m);

	m->loop = loop_new();
	m->workers = workers_new(m->loop, MASTER_WORKERS);
	m->http = http_server_new(m->loop, NULL, &api_handler, m);
	m->tick = loop_timer_new(m->loop, on_tick, m);
	m->idle = loop_timer_new(m->loop, on_idle_look, m);
	loop_on_signal(m->loop, SIGTERM, on_stop_signal, m);
	loop_on_signal(m->loop, SIGINT, on_stop_signal, m);
	loop_on_signal(m->loop, SIGCHLD, on_child, m);
	loop_after_round(m->loop, round_end, m);
	if (runs_resume(m, err) < 0)
		return err_wrap(err, "take up the runs of '%s'", m->home);
	return listen_all(m, o, err);
}

static void master_close(struct master *m)
{
	struct str id;
	void *value;

	if (m->workers)
		m->workers = workers_free(m->workers); /* every answer is in */
	if (m->loop && !m->exit_code)
		round_end(m);
	if (m->runs) {
		watch_free(m);
		agents_free(m);
		for (size_t i = 0; map_at(m->runs, &i, &id, &value);)
			live_run_free(value);
		map_free(m->runs);
	}
	http_server_free(m->http);
	listener_free(m->link_listener);
	loop_timer_free(m->tick);
	loop_timer_free(m->idle);
	loop_free(m->loop);
	store_close(m->store);
	free(m->home);
}

int master_main(const struct master_options *o)
{
	struct master m = {0};
	struct err err = {0};

	umask(077);
	signal(SIGPIPE, SIG_IGN);
	log_setup(2, "master", LOG_INFO);
	if (master_open(&m, o, &err) < 0) {
		log_error("%s", err.msg);
		m.exit_code = err_exit_code(err.kind);
	} else {
		log_info("regatta %s on %s, pid %d", REGATTA_VERSION, m.home, (int)getpid());
		loop_timer_set(m.idle, m.idle_ms < IDLE_LOOK_MS ? m.idle_ms : IDLE_LOOK_MS);
		round_end(&m);
		loop_run(m.loop);
	}
	master_close(&m);
	return m.exit_code;
}
