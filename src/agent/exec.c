#include "agent/exec.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <termios.h>
#include <unistd.h>

#include "agent/exec_child.h"
#include "agent/internal.h"
#include "agent/log_tee.h"
#include "base/alloc.h"
#include "base/arena.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "link/conn.h"
#include "sys/loop.h"

#define SETTLE_MS 2000		     /* how long output may stay open after the command's exit */
#define TTY_BYTES ((size_t)16 << 10) /* more than a terminal holds of what was written to it */

struct exec_call {
	struct list in_agent;
	struct agent *a;
	uint16_t channel;
	struct exec_child c;
	int wait_status;
	bool tty;
	struct loop_io *io[EXEC_PIPES];
	struct loop_timer *settle;
	size_t owed[EXEC_PIPES]; /* of the output, at most: the command has left it unread */
	struct buf input;	 /* not written yet */
	bool input_ends;
	uint64_t input_done;  /* bytes written */
	uint64_t sent, taken; /* of the output */
	bool log;	      /* the output goes to the log of the node, too */
	struct log_tee tee;
};

static void exec_free(struct exec_call *e)
{
	for (int i = 0; i < EXEC_PIPES; i++)
		loop_io_free(e->io[i]);
	exec_child_release(&e->c);
	loop_timer_free(e->settle);
	log_tee_release(&e->tee);
	buf_release(&e->input);
	list_remove(&e->in_agent);
	e->a->nexecs--;
	free(e);
}

static struct exec_call *find(const struct agent *a, uint16_t channel)
{
	struct list *pos;

	list_each (pos, &a->execs) {
		struct exec_call *e = list_item(pos, struct exec_call, in_agent);

		if (e->channel == channel)
			return e;
	}
	return NULL;
}

static void send_close(struct agent *a, uint16_t channel, const struct message_exec_close *m)
{
	CLEANUP(buf_release) struct buf b = {0};

	if (!a->conn)
		return;
	buf_init(&b, AGENT_PAYLOAD_MAX);
	message_exec_close_put(m, &b);
	conn_send(a->conn, FRAME_EXEC_CLOSE, channel, STR(""), buf_str(&b));
}

static void refuse(struct agent *a, uint16_t channel, const struct err *why)
{
	send_close(a, channel,
		   &(struct message_exec_close){.code = -1, .kind = why->kind, .reason = why->msg});
}

/* The command has ended and its output is closed, or stays open for too long. */
static void finish(struct exec_call *e)
{
	int st = e->wait_status;

	send_close(e->a, e->channel,
		   &(struct message_exec_close){.code = WIFEXITED(st) ? WEXITSTATUS(st) : -1,
						.signal = WIFSIGNALED(st) ? WTERMSIG(st) : 0});
	exec_free(e);
}

/* Bytes that wait to be read. */
static size_t waiting(const struct exec_call *e, int i)
{
	int n = 0;

	return e->c.fd[i] >= 0 && ioctl(e->c.fd[i], FIONREAD, &n) == 0 ? (size_t)n : 0;
}

/* What the command itself has written is brought, however late it is taken.  What others write to its pipes or its
 * terminal is not waited for. */
static bool owes_output(const struct exec_call *e)
{
	if (e->tty)
		return e->owed[EXEC_OUT] > 0 && waiting(e, EXEC_OUT) > 0;
	return e->owed[EXEC_OUT] > 0 || e->owed[EXEC_ERR] > 0;
}

static void settled(void *ctx)
{
	struct exec_call *e = ctx;

	if (owes_output(e))
		loop_timer_set(e->settle, SETTLE_MS);
	else
		finish(e);
}

static void finish_if_over(struct exec_call *e)
{
	if (e->c.pid > 0)
		return;
	if (e->c.fd[EXEC_OUT] < 0 && e->c.fd[EXEC_ERR] < 0)
		finish(e);
	else
		loop_timer_set(e->settle, SETTLE_MS);
}

/* ---- output ---- */

static bool may_send(const struct exec_call *e)
{
	return e->sent - e->taken < MESSAGE_EXEC_WINDOW && !log_tee_waits(&e->tee);
}

static void watch_output(struct exec_call *e)
{
	for (int i = EXEC_OUT; i <= EXEC_ERR; i++)
		if (e->io[i])
			loop_io_set(e->io[i], may_send(e) ? LOOP_READ : 0);
}

static void logged(void *ctx)
{
	watch_output(ctx);
}

static void close_pipe(struct exec_call *e, int i)
{
	e->io[i] = loop_io_free(e->io[i]);
	close_fdp(&e->c.fd[i]);
	e->c.fd[i] = -1;
}

static void output_ready(void *ctx, int fd, int events)
{
	struct exec_call *e = ctx;
	int i = fd == e->c.fd[EXEC_ERR] ? EXEC_ERR : EXEC_OUT;
	char bytes[MESSAGE_EXEC_PIECE];
	ssize_t n = read(fd, bytes, sizeof(bytes));

	(void)events;
	if (n < 0 && (errno == EINTR || errno == EAGAIN))
		return;
	if (n <= 0) { /* a terminal ends with EIO */
		e->owed[i] = 0;
		close_pipe(e, i);
		finish_if_over(e);
		return;
	}
	conn_send(e->a->conn, FRAME_EXEC_OUTPUT, e->channel, i == EXEC_ERR ? STR("e") : STR("o"),
		  (struct str){bytes, (size_t)n});
	e->sent += (uint64_t)n;
	e->owed[i] -= (size_t)n < e->owed[i] ? (size_t)n : e->owed[i];
	if (e->log)
		log_tee_write(&e->tee, e->a->at.dirfd, i == EXEC_ERR ? STREAM_ERR : STREAM_OUT,
			      (struct str){bytes, (size_t)n});
	watch_output(e);
}

/* ---- input ---- */

static void tell_taken(const struct exec_call *e)
{
	CLEANUP(buf_release) struct buf b = {0};

	buf_init(&b, 256);
	message_exec_control_put(&(struct message_exec_control){.taken = e->input_done}, &b);
	conn_send(e->a->conn, FRAME_EXEC_CONTROL, e->channel, STR(""), buf_str(&b));
}

/* Of a terminal the end of the input is a character that says so. */
static void end_input(struct exec_call *e)
{
	static const char eot[] = {4};

	if (e->tty)
		(void)!write(e->c.fd[EXEC_IN], eot, sizeof(eot));
	close_pipe(e, EXEC_IN);
}

static void input_ready(void *ctx, int fd, int events)
{
	struct exec_call *e = ctx;
	ssize_t n = e->input.n > 0 ? write(fd, e->input.p, e->input.n) : 0;

	(void)events;
	if (n < 0 && (errno == EINTR || errno == EAGAIN))
		return;
	if (n < 0) { /* nobody reads it any more: the rest counts as taken */
		n = (ssize_t)e->input.n;
		e->input_ends = true;
	}
	e->input_done += (uint64_t)n;
	buf_drop_front(&e->input, (size_t)n);
	tell_taken(e);
	if (e->input.n > 0)
		return;
	if (e->input_ends)
		end_input(e);
	else
		loop_io_set(e->io[EXEC_IN], 0);
}

void exec_input(struct agent *a, uint16_t channel, struct str bytes)
{
	struct exec_call *e = find(a, channel);

	if (!e)
		return; /* it has ended meanwhile */
	if (e->c.fd[EXEC_IN] < 0) {
		e->input_done += bytes.n;
		tell_taken(e);
		return;
	}
	if (bytes.n == 0)
		e->input_ends = true;
	buf_addstr(&e->input, bytes);
	loop_io_set(e->io[EXEC_IN], LOOP_WRITE);
}

/* ---- control ---- */

static void set_size(const struct exec_call *e, int columns, int rows)
{
	struct winsize size = {.ws_row = (unsigned short)rows, .ws_col = (unsigned short)columns};

	if (e->tty && e->c.fd[EXEC_OUT] >= 0 && columns > 0 && rows > 0)
		ioctl(e->c.fd[EXEC_OUT], TIOCSWINSZ, &size);
}

void exec_control(struct agent *a, uint16_t channel, struct str json, struct err *err)
{
	CLEANUP(arena_freep) struct arena *mem = arena_new();
	struct exec_call *e = find(a, channel);
	struct message_exec_control m;

	if (message_exec_control_get(json, mem, &m, err) < 0 || !e)
		return;
	if (m.taken > e->taken && m.taken <= e->sent)
		e->taken = m.taken;
	if (m.signal > 0 && e->c.pid > 0)
		exec_child_signal(&e->c, m.signal);
	set_size(e, m.columns, m.rows);
	watch_output(e);
}

void exec_close(struct agent *a, uint16_t channel)
{
	struct exec_call *e = find(a, channel);

	if (!e)
		return;
	exec_child_kill(&e->c);
	exec_free(e);
}

void exec_drop_all(struct agent *a, const char *why)
{
	struct list *pos, *tmp;

	list_each_safe (pos, tmp, &a->execs) {
		struct exec_call *e = list_item(pos, struct exec_call, in_agent);

		exec_child_kill(&e->c);
		if (why)
			send_close(a, e->channel,
				   &(struct message_exec_close){
					   .code = -1, .kind = ERR_CANCELLED, .reason = why});
		exec_free(e);
	}
}

void exec_reaped(struct agent *a, pid_t pid, int wait_status)
{
	struct list *pos;

	list_each (pos, &a->execs) {
		struct exec_call *e = list_item(pos, struct exec_call, in_agent);

		if (e->c.pid != pid)
			continue;
		e->c.pid = 0;
		e->wait_status = wait_status;
		for (int i = EXEC_OUT; i <= EXEC_ERR; i++)
			e->owed[i] = e->tty ? TTY_BYTES : waiting(e, i);
		close_pipe(e, EXEC_IN);
		finish_if_over(e);
		return;
	}
}

/* ---- starting ---- */

static void begin(struct agent *a, uint16_t channel, const struct message_exec *m,
		  struct exec_child *c)
{
	struct exec_call *e = xcalloc(1, sizeof(*e));

	*e = (struct exec_call){.a = a, .channel = channel, .c = *c, .tty = m->term, .log = m->log};
	*c = EXEC_NO_CHILD;
	log_tee_init(&e->tee, a->loop, MESSAGE_EXEC_PIECE, logged, e);
	buf_init(&e->input, 2 * MESSAGE_EXEC_WINDOW);
	for (int i = 0; i < EXEC_PIPES; i++) {
		if (e->c.fd[i] < 0)
			continue;
		fcntl(e->c.fd[i], F_SETFL, fcntl(e->c.fd[i], F_GETFL) | O_NONBLOCK);
		e->io[i] = loop_io_new(a->loop, e->c.fd[i], i == EXEC_IN ? 0 : LOOP_READ,
				       i == EXEC_IN ? input_ready : output_ready, e);
	}
	e->settle = loop_timer_new(a->loop, settled, e);
	list_append(&a->execs, &e->in_agent);
	a->nexecs++;
}

static int start(struct agent *a, uint16_t channel, const struct message_exec *m, struct arena *mem,
		 struct err *err)
{
	CLEANUP(exec_child_release) struct exec_child c = EXEC_NO_CHILD;

	if (a->nexecs >= EXEC_MAX)
		return err_set(err, ERR_THROTTLED, "the node runs %d commands already", EXEC_MAX);
	if (exec_child_start(a, m, mem, &c, err) < 0)
		return -1;
	begin(a, channel, m, &c);
	return 0;
}

void exec_open(struct agent *a, uint16_t channel, struct str json, struct err *err)
{
	CLEANUP(arena_freep) struct arena *mem = arena_new();
	struct message_exec m;
	struct err why = {0};

	if (message_exec_get(json, mem, &m, err) < 0)
		return;
	if (find(a, channel)) {
		err_set(err, ERR_PROTOCOL, "exec: channel %d is in use", channel);
		return;
	}
	if (start(a, channel, &m, mem, &why) < 0)
		refuse(a, channel, &why);
}
