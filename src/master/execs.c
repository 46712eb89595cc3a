#include "master/execs.h"

#include <stdlib.h>

#include "base/alloc.h"
#include "base/arena.h"
#include "base/buf.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "link/message.h"
#include "master/agents.h"
#include "master/internal.h"
#include "master/live_run.h"
#include "master/round.h"
#include "master/runs.h"

#define CONTROL_MAX 4096
#define COMMAND_SHOWN 120 /* bytes of the command in the event */
#define EXECS_MAX 16384	  /* at a time; there are MESSAGE_ASK_CHANNEL channels for them */

struct exec {
	struct list in_all;
	struct execs *es;
	struct live_run *lr;
	int rank;
	uint16_t channel;
	const struct exec_waiter *waiter;
	void *ctx;
	uint64_t output, taken;		  /* bytes of output: received, reported as taken */
	uint64_t input_sent, input_taken; /* bytes of input */
};

struct execs *execs_new(struct master *m)
{
	struct execs *es = xcalloc(1, sizeof(*es));

	es->m = m;
	list_init(&es->all);
	list_init(&es->clients);
	list_init(&es->asks);
	return es;
}

struct execs *execs_free(struct execs *es)
{
	if (es)
		exec_asks_forget(es);
	free(es);
	return NULL;
}

void exec_forget(struct exec *e)
{
	list_remove(&e->in_all);
	e->es->n--;
	e->lr->watchers--;
	free(e);
}

static void exec_free(struct exec *e)
{
	struct live_run *lr = e->lr;

	exec_forget(e);
	live_run_done(lr);
}

static void tell(struct exec *e, enum frame_type type, struct str payload)
{
	agent_send_stream(e->lr, e->rank, type, (enum stream)e->channel, payload);
}

void exec_send_control(struct exec *e, const struct message_exec_control *m)
{
	CLEANUP(buf_release) struct buf text = {0};

	buf_init(&text, CONTROL_MAX);
	message_exec_control_put(m, &text);
	tell(e, FRAME_EXEC_CONTROL, buf_str(&text));
}

void exec_abandon(struct exec *e)
{
	tell(e, FRAME_EXEC_CLOSE, STR(MESSAGE_EMPTY));
	exec_free(e);
}

static struct exec *find_channel(const struct execs *es, const struct live_run *lr, int rank,
				 uint16_t channel)
{
	struct list *pos;

	list_each (pos, &es->all) {
		struct exec *e = list_item(pos, struct exec, in_all);

		if (e->lr == lr && e->rank == rank && e->channel == channel)
			return e;
	}
	return NULL;
}

/* Channels are unique among all commands of this master. */
static uint16_t new_channel(struct execs *es)
{
	bool taken;

	do {
		struct list *pos;

		es->last_channel =
			es->last_channel == MESSAGE_ASK_CHANNEL - 1 ? 1 : es->last_channel + 1;
		taken = false;
		list_each (pos, &es->all)
			taken |= list_item(pos, struct exec, in_all)->channel == es->last_channel;
	} while (taken);
	return es->last_channel;
}

static void note(struct live_run *lr, int rank, const struct message_exec *m, const char *from)
{
	CLEANUP(buf_release) struct buf words = {0};

	/* For a node the first words are those of the shell. */
	buf_init(&words, 2 * COMMAND_SHOWN + 16);
	for (size_t i = from ? m->argc - 1 : 0; i < m->argc && words.n <= COMMAND_SHOWN; i++)
		buf_printf(&words, "%s%.*s", words.n ? " " : "", COMMAND_SHOWN + 1, m->argv[i]);
	bool cut = words.n > COMMAND_SHOWN;

	run_note(lr, "exec", rank, "%s%s%s: %.*s%s", m->term ? "shell" : "command",
		 from ? " of " : "", from ? from : "", cut ? COMMAND_SHOWN : (int)words.n,
		 words.n ? words.p : "", cut ? "..." : "");
}

static void no_agent(const struct live_run *lr, const char *node, struct err *err)
{
	enum run_phase phase = lr->core->phase;

	if (phase >= RUN_CLEANING)
		err_set(err, ERR_CONFLICT,
			"the run is over (%s): commands run on a node only while its job does",
			run_phase_name(phase));
	else if (phase == RUN_ACCEPTED && plan_queues(&lr->plan))
		err_set(err, ERR_CONFLICT,
			"the run waits in the queue: commands run on a node only while its job does");
	else
		err_set(err, ERR_UNAVAILABLE, "no agent of %s is connected now", node);
}

struct exec *exec_new(struct live_run *lr, int rank, const struct message_exec *m,
		      const struct exec_asker *asker, struct err *err)
{
	struct execs *es = lr->m->execs;
	CLEANUP(buf_release) struct buf text = {0};
	const char *node = lr->plan.crew.members[rank].name;

	if (!lr->nodes[rank].agent) {
		no_agent(lr, node, err);
		return NULL;
	}
	if (!lr->nodes[rank].exec) {
		err_set(err, ERR_UNAVAILABLE,
			"the agent of %s is of an earlier version, which runs no commands", node);
		return NULL;
	}
	if (es->n >= EXECS_MAX) {
		err_set(err, ERR_THROTTLED, "the master runs %d commands already", EXECS_MAX);
		return NULL;
	}
	buf_init(&text, FRAME_MAX_PAYLOAD);
	message_exec_put(m, &text);
	if (text.overflow) {
		err_set(err, ERR_INVALID, "the command is too long");
		return NULL;
	}
	struct exec *e = xcalloc(1, sizeof(*e));

	*e = (struct exec){.es = es,
			   .lr = lr,
			   .rank = rank,
			   .channel = new_channel(es),
			   .waiter = asker->waiter,
			   .ctx = asker->ctx};
	list_append(&es->all, &e->in_all);
	es->n++;
	lr->watchers++;
	note(lr, rank, m, asker->name);
	tell(e, FRAME_EXEC, buf_str(&text));
	return e;
}

void exec_send_taken(struct exec *e, uint64_t taken)
{
	if (taken <= e->taken || taken > e->output)
		return;
	e->taken = taken;
	exec_send_control(e, &(struct message_exec_control){.taken = taken});
}

int exec_send_input(struct exec *e, struct str bytes, struct err *err)
{
	if (e->input_sent - e->input_taken + bytes.n > MESSAGE_EXEC_WINDOW)
		return err_set(err, ERR_THROTTLED, "the command does not read its input");
	do {
		size_t n = bytes.n < MESSAGE_EXEC_PIECE ? bytes.n : MESSAGE_EXEC_PIECE;

		tell(e, FRAME_EXEC_INPUT, (struct str){bytes.p, n});
		e->input_sent += n;
		bytes = (struct str){bytes.p + n, bytes.n - n};
	} while (bytes.n > 0);
	return 0;
}

/* ---- from the node ---- */

static void take_output(struct exec *e, struct str payload, struct err *err)
{
	if (payload.n < 2 || (payload.p[0] != 'o' && payload.p[0] != 'e')) {
		err_set(err, ERR_PROTOCOL, "exec_output: neither standard output nor error");
		return;
	}
	struct str bytes = {payload.p + 1, payload.n - 1};

	if (e->output + bytes.n - e->taken > MESSAGE_EXEC_WINDOW + MESSAGE_EXEC_PIECE) {
		err_set(err, ERR_PROTOCOL, "exec_output: more than was asked for");
		return;
	}
	e->output += bytes.n;
	e->waiter->output(e->ctx, payload.p[0], bytes);
}

static void take_control(struct exec *e, const struct frame *f, struct arena *mem, struct err *err)
{
	struct message_exec_control m;

	if (message_exec_control_get(f->payload, mem, &m, err) < 0 || m.taken > e->input_sent)
		return;
	e->input_taken = m.taken;
	e->waiter->input_taken(e->ctx, m.taken);
}

static void end(struct exec *e, const struct message_exec_close *m)
{
	e->waiter->ended(e->ctx, m);
	exec_free(e);
}

void exec_frame(struct live_run *lr, int rank, const struct frame *f, struct arena *mem,
		struct err *err)
{
	struct exec *e = find_channel(lr->m->execs, lr, rank, f->channel);
	struct message_exec_close m;

	if (!e)
		return; /* nobody waits for it any more */
	if (f->type == FRAME_EXEC_OUTPUT)
		take_output(e, f->payload, err);
	else if (f->type == FRAME_EXEC_CONTROL)
		take_control(e, f, mem, err);
	else if (f->type == FRAME_EXEC_CLOSE &&
		 message_exec_close_get(f->payload, mem, &m, err) == 0)
		end(e, &m);
}

void exec_agent_gone(struct live_run *lr, int rank)
{
	struct list *pos, *tmp;

	exec_asker_gone(lr, rank);
	list_each_safe (pos, tmp, &lr->m->execs->all) {
		struct exec *e = list_item(pos, struct exec, in_all);

		if (e->lr == lr && e->rank == rank)
			end(e, &(struct message_exec_close){
				       .code = -1,
				       .kind = ERR_UNAVAILABLE,
				       .reason = "the connection to the node was lost"});
	}
}
