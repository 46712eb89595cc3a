#include "agent/rsh.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "agent/internal.h"
#include "base/alloc.h"
#include "base/arena.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "base/file.h"
#include "base/path.h"
#include "link/conn.h"
#include "link/layout.h"
#include "link/message.h"
#include "net/listener.h"

struct rsh_call {
	struct list in_agent;
	struct agent *a;
	struct conn *conn; /* of the process that waits */
	uint16_t channel;  /* on the connection to the master; 0: it has not asked yet */
	bool ended;
};

static void call_free(struct rsh_call *c)
{
	list_remove(&c->in_agent);
	c->a->rsh.n--;
	conn_free(c->conn);
	free(c);
}

static struct rsh_call *find(const struct agent *a, uint16_t channel)
{
	struct list *pos;

	list_each (pos, &a->rsh.calls) {
		struct rsh_call *c = list_item(pos, struct rsh_call, in_agent);

		if (c->channel == channel)
			return c;
	}
	return NULL;
}

/* ---- from the process ---- */

static void refuse(struct rsh_call *c, enum err_kind kind, const char *why)
{
	CLEANUP(buf_release) struct buf b = {0};

	buf_init(&b, AGENT_PAYLOAD_MAX);
	message_exec_close_put(
		&(struct message_exec_close){.code = -1, .kind = kind, .reason = why}, &b);
	conn_send(c->conn, FRAME_EXEC_CLOSE, 0, STR(""), buf_str(&b));
	c->ended = true;
	conn_close(c->conn);
}

static uint16_t new_channel(struct agent *a)
{
	do
		a->rsh.channel =
			a->rsh.channel < MESSAGE_ASK_CHANNEL || a->rsh.channel == UINT16_MAX
				? MESSAGE_ASK_CHANNEL
				: a->rsh.channel + 1;
	while (find(a, a->rsh.channel));
	return a->rsh.channel;
}

static void ask(struct rsh_call *c, struct str payload)
{
	CLEANUP(arena_freep) struct arena *mem = arena_new();
	struct message_exec_ask m;
	struct err err = {0};

	if (message_exec_ask_get(payload, mem, &m, &err) < 0) {
		refuse(c, err.kind, err.msg);
		return;
	}
	if (!c->a->conn || !c->a->welcomed) {
		refuse(c, ERR_UNAVAILABLE, "no master is connected to this node now");
		return;
	}
	c->channel = new_channel(c->a);
	conn_send(c->a->conn, FRAME_EXEC_ASK, c->channel, STR(""), payload);
}

static void on_frame(void *ctx, const struct frame *f)
{
	struct rsh_call *c = ctx;

	if (c->ended)
		return;
	if (!c->channel && f->type == FRAME_EXEC_ASK)
		ask(c, f->payload);
	else if (c->channel && (f->type == FRAME_EXEC_INPUT || f->type == FRAME_EXEC_CONTROL))
		conn_send(c->a->conn, (enum frame_type)f->type, c->channel, STR(""), f->payload);
	else
		refuse(c, ERR_PROTOCOL, "a message that was not expected");
}

/* The process has gone: the command is killed. */
static void on_close(void *ctx, const struct err *why)
{
	struct rsh_call *c = ctx;

	(void)why;
	if (c->channel && !c->ended && c->a->conn)
		conn_send(c->a->conn, FRAME_EXEC_CLOSE, c->channel, STR(""), STR(MESSAGE_EMPTY));
	call_free(c);
}

static const struct conn_events events = {.on_frame = on_frame, .on_close = on_close};

static void accepted(void *ctx, int fd)
{
	struct agent *a = ctx;
	int64_t uid = socket_peer_uid(fd);

	if (a->rsh.n >= RSH_MAX || (uid != (int64_t)geteuid() && uid != 0)) {
		close(fd);
		return;
	}
	struct rsh_call *c = xcalloc(1, sizeof(*c));

	c->a = a;
	c->conn = conn_new(a->loop, fd, &events, c);
	list_append(&a->rsh.calls, &c->in_agent);
	a->rsh.n++;
}

/* ---- from the master ---- */

void rsh_frame(struct agent *a, const struct frame *f)
{
	struct rsh_call *c = find(a, f->channel);

	if (!c || c->ended)
		return; /* nobody waits for it any more */
	conn_send(c->conn, (enum frame_type)f->type, 0, STR(""), f->payload);
	if (f->type != FRAME_EXEC_CLOSE)
		return;
	c->ended = true;
	conn_close(c->conn);
}

void rsh_drop_all(struct agent *a)
{
	struct list *pos;

	list_each (pos, &a->rsh.calls) {
		struct rsh_call *c = list_item(pos, struct rsh_call, in_agent);

		if (c->channel && !c->ended)
			refuse(c, ERR_UNAVAILABLE, "the connection to the master was lost");
	}
}

/* ---- the link and the socket ---- */

/* By way of /proc, so that it is this very program even if its file was replaced meanwhile; in a container, which has
 * another /proc, to the copy that is there for it. */
static int make_link(const char *dir, const char *name, struct err *err)
{
	CLEANUP(freep) char *path = path_join(dir, name);
	CLEANUP(freep) char *copy = path_join(dir, LAYOUT_INSIDE);
	char program[64];

	snprintf(program, sizeof(program), "/proc/%d/exe", (int)getpid());
	if (file_exists(copy))
		snprintf(program, sizeof(program), LAYOUT_INSIDE);
	if (unlink(path) < 0 && errno != ENOENT)
		return err_errno(err, errno, "remove '%s'", path);
	if (symlink(program, path) < 0)
		return err_errno(err, errno, "make '%s'", path);
	return 0;
}

/* Of a socket's path, for "/" NAME "/" NAME of those who put one below a directory that they made. */
#define TMP_ROOM 36

char *rsh_tmp(const struct agent *a)
{
	struct sockaddr_un address;
	CLEANUP(freep) char *path = path_join(a->dir, LAYOUT_TMP);

	return strlen(path) + TMP_ROOM < sizeof(address.sun_path) ? TAKE_PTR(path) : NULL;
}

int rsh_open(struct agent *a, struct err *err)
{
	CLEANUP(freep) char *tmp = rsh_tmp(a);

	if (a->rsh.listener)
		return 0;
	if ((tmp && file_mkdir_p(tmp, 0700, err) < 0) || make_link(a->dir, LAYOUT_RSH, err) < 0 ||
	    make_link(a->dir, LAYOUT_TEE, err) < 0 ||
	    listen_unix(a->loop, a->dir, LAYOUT_RSH_SOCKET, accepted, a, &a->rsh.listener, err) < 0)
		return err_wrap(err, "start");
	return 0;
}

int rsh_resume(struct agent *a, struct err *err)
{
	CLEANUP(freep) char *path = path_join(a->dir, LAYOUT_RSH);
	char to[2];

	return readlink(path, to, sizeof(to)) < 0 ? 0 : rsh_open(a, err);
}

void rsh_release(struct agent *a)
{
	struct list *pos, *tmp;

	list_each_safe (pos, tmp, &a->rsh.calls)
		call_free(list_item(pos, struct rsh_call, in_agent));
	a->rsh.listener = listener_free(a->rsh.listener);
}
