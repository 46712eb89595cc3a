/*
 * exec_ask - commands that a process of one node runs on another node of the same run: how mpirun
 * starts its daemons.
 *
 * Only in runs whose strategy has a launcher.  The asking agent numbers its commands
 * (MESSAGE_ASK_CHANNEL and up); its frames are passed on to the other agent, and that one's to it,
 * with the counts of bytes taken, so that no more than a window of each is ever here.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/arena.h"
#include "base/buf.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "base/exit_text.h"
#include "link/message.h"
#include "master/agents.h"
#include "master/execs.h"
#include "master/internal.h"
#include "master/live_run.h"
#include "master/round.h"
#include "master/runs.h"

#define PAYLOAD_MAX 4096
#define SAID_MAX 160

struct exec_ask {
	struct list in_asks;
	struct exec *e;
	struct live_run *lr;
	int rank; /* of the node that asks */
	uint16_t channel;
	int on, attempt; /* the node that runs the command, and its attempt */
	char daemon[32]; /* what the command starts for a launcher; "": nothing */
	bool leaves;	 /* the command of the daemon ends when that runs */
	char said[SAID_MAX];
};

static void ask_free(struct exec_ask *q)
{
	list_remove(&q->in_asks);
	free(q);
}

void exec_asks_forget(struct execs *es)
{
	struct list *pos, *tmp;

	list_each_safe (pos, tmp, &es->asks) {
		struct exec_ask *q = list_item(pos, struct exec_ask, in_asks);

		exec_forget(q->e);
		ask_free(q);
	}
}

static struct exec_ask *find(const struct live_run *lr, int rank, uint16_t channel)
{
	struct list *pos;

	list_each (pos, &lr->m->execs->asks) {
		struct exec_ask *q = list_item(pos, struct exec_ask, in_asks);

		if (q->lr == lr && q->rank == rank && q->channel == channel)
			return q;
	}
	return NULL;
}

static void send_close(struct live_run *lr, int rank, uint16_t channel,
		       const struct message_exec_close *m)
{
	CLEANUP(buf_release) struct buf text = {0};

	buf_init(&text, PAYLOAD_MAX);
	message_exec_close_put(m, &text);
	agent_send_stream(lr, rank, FRAME_EXEC_CLOSE, (enum stream)channel, buf_str(&text));
}

/* ---- to the node that asks ---- */

static void keep_last_line(struct exec_ask *q, struct str bytes)
{
	struct str text = str_trim(bytes);
	const char *end = memrchr(text.p, '\n', text.n);

	if (end)
		text = (struct str){end + 1, text.n - (size_t)(end + 1 - text.p)};
	if (text.n > 0)
		snprintf(q->said, sizeof(q->said), "%.*s", STR_ARG(text));
}

static void on_output(void *ctx, char stream, struct str bytes)
{
	CLEANUP(buf_release) struct buf both = {0};
	struct exec_ask *q = ctx;

	if (stream == 'e' && q->daemon[0])
		keep_last_line(q, bytes);
	buf_init(&both, bytes.n + 1);
	buf_addc(&both, stream);
	buf_addstr(&both, bytes);
	agent_send_stream(q->lr, q->rank, FRAME_EXEC_OUTPUT, (enum stream)q->channel,
			  buf_str(&both));
}

static void on_input_taken(void *ctx, uint64_t taken)
{
	CLEANUP(buf_release) struct buf text = {0};
	struct exec_ask *q = ctx;

	buf_init(&text, PAYLOAD_MAX);
	message_exec_control_put(&(struct message_exec_control){.taken = taken}, &text);
	agent_send_stream(q->lr, q->rank, FRAME_EXEC_CONTROL, (enum stream)q->channel,
			  buf_str(&text));
}

static void no_daemon(const struct exec_ask *q, enum err_kind kind, struct str why)
{
	struct event ev = {
		.kind = EV_NODE_NO_DAEMON, .index = q->on, .attempt = q->attempt, .err_kind = kind};

	snprintf(ev.text, sizeof(ev.text), "the launcher's %s did not start: %.*s", q->daemon,
		 STR_ARG(why));
	run_event(q->lr, &ev);
}

/* If the command was to start a daemon, and the launcher would not notice that it did not, the run ends. */
static void check_daemon(const struct exec_ask *q, const struct message_exec_close *m)
{
	CLEANUP(buf_release) struct buf why = {0};
	enum strategy_daemon_end end =
		strategy_daemon_end(&q->lr->plan.crew, q->leaves, m->kind, m->code, m->signal);

	if (!q->daemon[0] || end == DAEMON_IS_LAUNCHERS)
		return;
	buf_init(&why, PAYLOAD_MAX);
	if (m->kind != ERR_NONE)
		buf_addz(&why, m->reason ? m->reason : "the command was not run");
	else
		exit_describe(&why, m->code, m->signal, false, str_from(q->said));
	no_daemon(q, end == DAEMON_IS_MISSING ? ERR_NOT_FOUND : ERR_NONE, buf_str(&why));
}

static void on_ended(void *ctx, const struct message_exec_close *m)
{
	struct exec_ask *q = ctx;

	check_daemon(q, m);
	send_close(q->lr, q->rank, q->channel, m);
	ask_free(q);
}

/* ---- from the node that asks ---- */

static struct exec_ask *ask_new(struct live_run *lr, int rank, uint16_t channel, int on,
				const char *command)
{
	struct exec_ask *q = xcalloc(1, sizeof(*q));
	struct strategy_daemon daemon;

	*q = (struct exec_ask){.lr = lr,
			       .rank = rank,
			       .channel = channel,
			       .on = on,
			       .attempt = lr->core->nodes[on].attempt};
	if (lr->plan.strategy->daemon && lr->plan.strategy->daemon(str_from(command), &daemon)) {
		snprintf(q->daemon, sizeof(q->daemon), "%.*s", STR_ARG(daemon.name));
		q->leaves = daemon.leaves;
	}
	return q;
}

static int begin(struct live_run *lr, int rank, uint16_t channel, const struct message_exec_ask *m,
		 struct err *err)
{
	static const struct exec_waiter waiter = {on_output, on_input_taken, on_ended};
	const char *argv[] = {"/bin/sh", "-c", m->command, NULL};
	const struct message_exec exec = {.argv = argv, .argc = 3, .log = true};
	int on = run_find_host(lr, str_from(m->host));

	if (lr->plan.crew.launch == LAUNCH_ALL)
		return err_set(
			err, ERR_DENIED,
			"only jobs with a launcher (strategy mpi) start commands on other nodes");
	struct exec_ask *q = ask_new(lr, rank, channel, on < 0 ? rank : on, m->command);

	if (on < 0)
		err_set(err, ERR_NOT_FOUND, "'%.100s' is not a node of this run", m->host);
	else
		q->e = exec_new(lr, on, &exec,
				&(struct exec_asker){&waiter, q, lr->plan.crew.members[rank].name},
				err);
	if (!q->e) {
		check_daemon(q, &(struct message_exec_close){
					.code = -1, .kind = err->kind, .reason = err->msg});
		free(q);
		return -1;
	}
	list_append(&lr->m->execs->asks, &q->in_asks);
	return 0;
}

static void take_ask(struct live_run *lr, int rank, const struct frame *f, struct arena *mem,
		     struct err *err)
{
	struct message_exec_ask m;
	struct err why = {0};

	if (message_exec_ask_get(f->payload, mem, &m, err) < 0)
		return;
	if (f->channel < MESSAGE_ASK_CHANNEL || find(lr, rank, f->channel)) {
		err_set(err, ERR_PROTOCOL, "exec_ask: channel %d is not free", f->channel);
		return;
	}
	if (begin(lr, rank, f->channel, &m, &why) < 0)
		send_close(lr, rank, f->channel,
			   &(struct message_exec_close){
				   .code = -1, .kind = why.kind, .reason = why.msg});
}

static void take_control(struct exec_ask *q, struct str json, struct arena *mem, struct err *err)
{
	struct message_exec_control m;

	if (message_exec_control_get(json, mem, &m, err) < 0)
		return;
	if (m.taken)
		exec_send_taken(q->e, m.taken);
	if (m.signal)
		exec_send_control(q->e, &(struct message_exec_control){.signal = m.signal});
}

void exec_ask_frame(struct live_run *lr, int rank, const struct frame *f, struct arena *mem,
		    struct err *err)
{
	struct exec_ask *q = find(lr, rank, f->channel);

	if (f->type == FRAME_EXEC_ASK) {
		take_ask(lr, rank, f, mem, err);
	} else if (!q) {
		return; /* it has ended meanwhile */
	} else if (f->type == FRAME_EXEC_INPUT) {
		exec_send_input(q->e, f->payload, err);
	} else if (f->type == FRAME_EXEC_CONTROL) {
		take_control(q, f->payload, mem, err);
	} else {
		exec_abandon(q->e);
		ask_free(q);
	}
}

void exec_asker_gone(struct live_run *lr, int rank)
{
	struct list *pos, *tmp;

	list_each_safe (pos, tmp, &lr->m->execs->asks) {
		struct exec_ask *q = list_item(pos, struct exec_ask, in_asks);

		if (q->lr != lr || q->rank != rank)
			continue;
		exec_abandon(q->e);
		ask_free(q);
	}
}
