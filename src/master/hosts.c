/*
 * The loop thread's side of the hosts.
 *
 * Workers of the driver put questions into the table and wait for the answers.  An eventfd wakes
 * the loop, which sends the questions on the connections of the hosts and puts the answers into
 * the table.
 */
#include "master/hosts.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/arena.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/log.h"
#include "base/path.h"
#include "driver/hosts/host_table.h"
#include "fmt/doc.h"
#include "link/conn.h"
#include "link/layout.h"
#include "link/message.h"
#include "master/api/auth.h"
#include "master/api/tokens.h"
#include "master/internal.h"
#include "master/listen.h"
#include "master/live_run.h"
#include "master/queue.h"
#include "master/round.h"
#include "sys/loop.h"

#define CLOCK_OFF_MS (15 * 60 * 1000) /* a host whose clock differs by more is refused */
#define ASK_MAX (16 * 1024)
#define ASKS_AT_ONCE 256 /* ten thousand in one turn would hold up the loop */
#define WARN_EVERY_MS 60000

struct hosts {
	struct master *m;
	struct host_table *table;
	int wakeup; /* eventfd: the table has something to send */
	struct loop_io *io;
	int connected;	    /* struct host_conn */
	int64_t no_room_ms; /* last warning about it; 0: none yet */
};

struct host_conn {
	struct hosts *hs;
	struct conn *conn;
	char *name;
	_Atomic int64_t heard_ms; /* read by the table, on any thread */
};

/* ---- questions ---- */

/* Called on any thread. */
static void wake(void *ctx)
{
	struct hosts *hs = ctx;

	while (eventfd_write(hs->wakeup, 1) < 0 && errno == EINTR)
		;
}

static void send_ask(void *conn, const struct host_ask *ask)
{
	struct message_host_ask m = {
		.no = ask->no,
		.op = ask->op,
		.run = ask->node.run,
		.node = ask->node.node,
		.incarnation = ask->node.incarnation,
		.token = ask->op == HOST_CREATE ? ask->token : "",
		.id = ask->id,
		.limit_ms = ask->limit_ms,
	};
	struct host_conn *hc = conn;
	struct buf text;

	buf_init(&text, ASK_MAX);
	message_host_ask_put(&m, &text);
	conn_send(hc->conn, FRAME_HOST_ASK, 0, STR(""), buf_str(&text));
	buf_release(&text);
}

/* A host has free capacity: runs that wait for it try again now. */
static void tell_runs(struct master *m)
{
	struct str id;
	void *value;

	for (size_t i = 0; map_at(m->runs, &i, &id, &value);)
		run_event(value, &(struct event){.kind = EV_CAPACITY});
	queue_update(m);
}

static void on_wakeup(void *ctx, int fd, int events)
{
	struct hosts *hs = ctx;
	eventfd_t n;

	(void)events;
	eventfd_read(fd, &n);
	if (host_table_send(hs->table, ASKS_AT_ONCE, send_ask))
		wake(hs);
	if (host_table_freed(hs->table))
		tell_runs(hs->m);
}

/* ---- life ---- */

struct hosts *hosts_new(struct master *m)
{
	CLEANUP(freep) char *dir = path_join(m->home, LAYOUT_HOSTS);
	struct hosts *hs = xcalloc(1, sizeof(*hs));

	hs->m = m;
	hs->wakeup = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	hs->io = loop_io_new(m->loop, hs->wakeup, LOOP_READ, on_wakeup, hs);
	hs->table = host_table_new(dir, wake, hs);
	m->services.hosts = hs->table;
	return hs;
}

struct hosts *hosts_free(struct hosts *hs)
{
	if (!hs)
		return NULL;
	loop_io_free(hs->io);
	close(hs->wakeup);
	host_table_free(hs->table);
	free(hs);
	return NULL;
}

static bool run_is_active(void *ctx, const char *run)
{
	struct master *m = ctx;
	const struct live_run *lr = map_get(m->runs, str_from(run));

	return lr && !lr->ended;
}

int hosts_load(struct hosts *hs, struct err *err)
{
	return host_table_load(hs->table, run_is_active, hs->m, err);
}

void hosts_tick(struct hosts *hs)
{
	host_table_sweep(hs->table);
}

int hosts_connected(const struct hosts *hs)
{
	return hs ? hs->connected : 0;
}

struct doc *hosts_list(struct hosts *hs, struct arena *a)
{
	return host_table_list(hs->table, a);
}

int hosts_forget(struct hosts *hs, struct str name, struct err *err)
{
	CLEANUP(freep) char *text = xstrndup(name.p, name.n);

	/* The name becomes part of a path. */
	if (!message_host_name_ok(text))
		return err_set(err, ERR_NOT_FOUND, "no host has joined with that name");
	if (host_table_forget(hs->table, text, err) < 0)
		return -1;
	log_info("host '%s' is forgotten", text);
	return 0;
}

/* ---- joining ---- */

static int check_token(struct hosts *hs, const char *token, struct err *err)
{
	uint32_t holder = 0;

	if (tokens_scope(hs->m->auth->tokens, str_from(token), &holder) == API_JOIN)
		return 0;
	return err_set(
		err, ERR_DENIED,
		"the token is wrong, revoked or too old: 'regatta token new --scope join' on the "
		"master makes another");
}

static int check_clock(int64_t time_ms, struct err *err)
{
	int64_t ahead = time_ms - clock_wall_ms(), off = ahead < 0 ? -ahead : ahead;
	char span[32];

	if (off <= CLOCK_OFF_MS)
		return 0;
	clock_format_span(off, span);
	return err_set(
		err, ERR_INVALID,
		"the clock of this host is %s %s the master's: set it (timedatectl set-ntp true) "
		"and join again",
		span, ahead > 0 ? "ahead of" : "behind");
}

static const struct doc *labels_doc(const struct message_join *m, struct arena *a)
{
	struct doc *d = doc_new(a, DOC_TABLE);

	for (size_t i = 0; i < m->nlabels; i++)
		doc_set(a, d, str_from(m->labels[i].name),
			doc_new_str(a, str_from(m->labels[i].value)));
	return d;
}

/*
 * The host joins on another connection, so the old one is over.  If its daemon only dialled again,
 * nobody reads the words.  Else two daemons have one identity, and would take the connection from
 * each other for ever.
 */
static void send_away(struct host_conn *old)
{
	char why[256];
	struct buf text;

	snprintf(why, sizeof(why),
		 "another 'regatta agent' has joined as '%s' with a copy of this one's directory: "
		 "give one of them another directory (--dir) and name (--name)",
		 old->name);
	buf_init(&text, MESSAGE_HELLO_MAX);
	message_refuse_put(&(struct message_refuse){ERR_CONFLICT, why}, &text);
	conn_send(old->conn, FRAME_REFUSE, 0, STR(""), buf_str(&text));
	buf_release(&text);
	conn_close(old->conn);
}

static struct host_conn *join(struct hosts *hs, struct conn *conn, const struct message_join *m,
			      struct arena *mem, struct err *err)
{
	const struct host_facts facts = {.name = m->name,
					 .id = m->id,
					 .address = m->address ? m->address : "",
					 .version = m->version,
					 .machine = m->machine ? m->machine : "",
					 .boot_id = m->boot_id,
					 .cpus = m->cpus,
					 .gpus = m->gpus,
					 .memory = m->memory,
					 .labels = labels_doc(m, mem)};
	struct host_conn *hc = xcalloc(1, sizeof(*hc));
	void *old = NULL;

	*hc = (struct host_conn){
		.hs = hs, .conn = conn, .name = xstrdup(m->name), .heard_ms = clock_boot_ms()};
	if (host_table_join(hs->table, &facts, hc, &hc->heard_ms, &old, err) < 0) {
		free(hc->name);
		free(hc);
		return NULL;
	}
	hs->connected++;
	if (old)
		send_away(old);
	return hc;
}

/* A host for which there is no room comes again every few seconds. */
static void say_refused(struct hosts *hs, const char *name, const struct err *why)
{
	int64_t now = clock_boot_ms();

	if (why->kind == ERR_QUOTA) {
		if (hs->no_room_ms && now - hs->no_room_ms < WARN_EVERY_MS)
			return;
		hs->no_room_ms = now;
	}
	log_warn("host '%s' may not join: %s", name, why->msg);
}

struct host_conn *hosts_join(struct hosts *hs, struct conn *conn, struct str payload,
			     struct arena *mem, struct err *err)
{
	struct message_join m;

	if (message_join_get(payload, mem, &m, err) < 0 || check_token(hs, m.token, err) < 0 ||
	    check_clock(m.time_ms, err) < 0)
		return NULL;
	/* The last descriptors are for the clients of this machine. */
	struct host_conn *hc =
		listen_check_host(hs->m, err) < 0 ? NULL : join(hs, conn, &m, mem, err);

	if (!hc) {
		say_refused(hs, m.name, err);
		return NULL;
	}
	log_info("host '%s' has joined from %s", m.name, m.address ? m.address : "?");
	conn_send(conn, FRAME_JOINED, 0, STR(""), STR(MESSAGE_EMPTY));
	return hc;
}

const char *host_conn_name(const struct host_conn *hc)
{
	return hc->name;
}

/* ---- frames ---- */

void host_take_nodes(struct host_conn *hc, struct str payload, struct arena *mem, struct err *err)
{
	struct message_host_nodes m;

	if (message_host_nodes_get(payload, mem, &m, err) < 0)
		return;
	struct host_node *nodes = arena_array(mem, struct host_node, m.nnodes + 1);

	for (size_t i = 0; i < m.nnodes; i++)
		nodes[i] =
			(struct host_node){m.nodes[i].run, m.nodes[i].node, m.nodes[i].incarnation};
	host_table_has(hc->hs->table, hc, nodes, m.nnodes);
}

void host_take_answer(struct host_conn *hc, struct str payload, struct arena *mem, struct err *err)
{
	struct message_host_answer m;
	struct err why = {0};

	if (message_host_answer_get(payload, mem, &m, err) < 0)
		return;
	if (m.kind != ERR_NONE)
		err_set(&why, m.kind, "%s", m.text);
	host_table_answer(hc->hs->table, hc, m.no, m.outcome, &why, m.id);
}

void host_heard(struct host_conn *hc, int64_t now_ms)
{
	atomic_store_explicit(&hc->heard_ms, now_ms, memory_order_relaxed);
}

void host_left(struct host_conn *hc)
{
	if (host_table_left(hc->hs->table, hc))
		log_info("host '%s' has left", hc->name);
	hc->hs->connected--;
	free(hc->name);
	free(hc);
}
