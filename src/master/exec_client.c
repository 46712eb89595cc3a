/*
 * exec_client - commands that a client of the API waits for.
 *
 * The client holds one streamed answer, which ends with the command; if the client leaves, the
 * command is killed.  Input, signals and sizes come as calls of their own, by the command's id.
 */
#include <stdio.h>
#include <stdlib.h>

#include "base/alloc.h"
#include "base/buf.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "base/hex.h"
#include "base/rand.h"
#include "link/message.h"
#include "master/execs.h"
#include "master/internal.h"
#include "master/live_run.h"
#include "net/http_server.h"

#define ID_BYTES 8
#define QUEUE_LOW (64 * 1024) /* of an answer: more bytes are asked for below this */
#define LINE_MAX 4096

struct exec_client {
	struct list in_clients;
	char id[2 * ID_BYTES + 1];
	struct exec *e;
	struct http_exchange *x;
	uint64_t output; /* bytes received */
};

static void client_free(struct exec_client *c)
{
	list_remove(&c->in_clients);
	free(c);
}

/* The client has left. */
static void on_gone(void *ctx)
{
	struct exec_client *c = ctx;

	exec_abandon(c->e);
	client_free(c);
}

static struct exec_client *find_id(const struct execs *es, struct str id, struct err *err)
{
	struct list *pos;

	list_each (pos, &es->clients) {
		struct exec_client *c = list_item(pos, struct exec_client, in_clients);

		if (str_is(id, c->id))
			return c;
	}
	err_set(err, ERR_NOT_FOUND, "the command has ended");
	return NULL;
}

/* The client has taken what was sent: the agent may send more. */
static void client_took(void *ctx)
{
	struct exec_client *c = ctx;

	exec_send_taken(c->e, c->output);
}

static void on_output(void *ctx, char stream, struct str bytes)
{
	struct exec_client *c = ctx;
	char head[32];

	snprintf(head, sizeof(head), "%s %zu\n", stream == 'o' ? "out" : "err", bytes.n);
	c->output += bytes.n;
	if (!http_stream_write(c->x, str_from(head)) || !http_stream_write(c->x, bytes))
		return;
	if (http_stream_queued(c->x) < QUEUE_LOW)
		client_took(c);
	else
		http_stream_when_empty(c->x, client_took, c);
}

static void on_input_taken(void *ctx, uint64_t taken)
{
	(void)ctx;
	(void)taken;
}

static void on_ended(void *ctx, const struct message_exec_close *m)
{
	CLEANUP(buf_release) struct buf line = {0};
	struct exec_client *c = ctx;

	buf_init(&line, LINE_MAX);
	if (m->kind == ERR_NONE)
		buf_printf(&line, "exit %d %d\n", m->code, m->signal);
	else
		buf_printf(&line, "error %s %.400s\n", err_kind_name(m->kind),
			   m->reason ? m->reason : "");
	http_stream_write(c->x, buf_str(&line));
	http_stream_end(c->x);
	client_free(c);
}

int exec_begin(struct live_run *lr, int rank, const struct message_exec *m, struct http_exchange *x,
	       struct err *err)
{
	static const struct exec_waiter waiter = {on_output, on_input_taken, on_ended};
	struct exec_client *c = xcalloc(1, sizeof(*c));
	uint8_t random[ID_BYTES];
	char head[64];

	c->x = x;
	c->e = exec_new(lr, rank, m, &(struct exec_asker){.waiter = &waiter, .ctx = c}, err);
	if (!c->e) {
		free(c);
		return -1;
	}
	rand_bytes(random, sizeof(random));
	hex_encode(random, sizeof(random), c->id);
	list_append(&lr->m->execs->clients, &c->in_clients);
	http_stream_begin(x, 200, "application/vnd.regatta.exec", on_gone, c);
	snprintf(head, sizeof(head), "id %s\n", c->id);
	http_stream_write(x, str_from(head));
	return 0;
}

int exec_write(struct execs *es, struct str id, struct str bytes, struct err *err)
{
	struct exec_client *c = find_id(es, id, err);

	return c ? exec_send_input(c->e, bytes, err) : -1;
}

int exec_steer(struct execs *es, struct str id, const struct message_exec_control *m,
	       struct err *err)
{
	struct exec_client *c = find_id(es, id, err);

	if (!c)
		return -1;
	exec_send_control(c->e, m);
	return 0;
}
