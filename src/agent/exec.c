#include "agent/exec.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <termios.h>
#include <unistd.h>

#include "agent/environ.h"
#include "agent/internal.h"
#include "agent/log_tee.h"
#include "agent/places.h"
#include "agent/shim/isolation.h"
#include "agent/shim/shim.h"
#include "base/alloc.h"
#include "base/arena.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/file.h"
#include "base/vec.h"
#include "link/conn.h"
#include "sys/child.h"
#include "sys/loop.h"
#include "sys/proctree.h"

#define ENVIRON_MAX (8 * 1024 * 1024)
#define SETTLE_MS 2000 /* how long output may stay open after the command's exit */
#define IN_EXEC_MS 100 /* how long an exec of the job's process may take */
#define CODE_NOT_RUN 126

enum { IN, OUT, ERR, PIPES };

struct exec_call {
	struct list in_agent;
	struct agent *a;
	uint16_t channel;
	pid_t pid; /* 0: it was reaped */
	int wait_status;
	bool tty;
	int fd[PIPES]; /* -1: closed.  With a terminal IN and OUT are two descriptors of it. */
	struct loop_io *io[PIPES];
	struct loop_timer *settle;
	struct buf input; /* not written yet */
	bool input_ends;
	uint64_t input_done;  /* bytes written */
	uint64_t sent, taken; /* of the output */
	bool log;	      /* the output goes to the log of the node, too */
	struct log_tee tee;
};

static void exec_free(struct exec_call *e)
{
	for (int i = 0; i < PIPES; i++) {
		loop_io_free(e->io[i]);
		close_fdp(&e->fd[i]);
	}
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

static void settled(void *ctx)
{
	finish(ctx);
}

static void finish_if_over(struct exec_call *e)
{
	if (e->pid > 0)
		return;
	if (e->fd[OUT] < 0 && e->fd[ERR] < 0)
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
	for (int i = OUT; i <= ERR; i++)
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
	close_fdp(&e->fd[i]);
	e->fd[i] = -1;
}

static void output_ready(void *ctx, int fd, int events)
{
	struct exec_call *e = ctx;
	int i = fd == e->fd[ERR] ? ERR : OUT;
	char bytes[MESSAGE_EXEC_PIECE];
	ssize_t n = read(fd, bytes, sizeof(bytes));

	(void)events;
	if (n < 0 && (errno == EINTR || errno == EAGAIN))
		return;
	if (n <= 0) { /* a terminal ends with EIO */
		close_pipe(e, i);
		finish_if_over(e);
		return;
	}
	conn_send(e->a->conn, FRAME_EXEC_OUTPUT, e->channel, i == ERR ? STR("e") : STR("o"),
		  (struct str){bytes, (size_t)n});
	e->sent += (uint64_t)n;
	if (e->log)
		log_tee_write(&e->tee, e->a->at.dirfd, i == ERR ? STREAM_ERR : STREAM_OUT,
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
		(void)!write(e->fd[IN], eot, sizeof(eot));
	close_pipe(e, IN);
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
		loop_io_set(e->io[IN], 0);
}

void exec_input(struct agent *a, uint16_t channel, struct str bytes)
{
	struct exec_call *e = find(a, channel);

	if (!e)
		return; /* it has ended meanwhile */
	if (e->fd[IN] < 0) {
		e->input_done += bytes.n;
		tell_taken(e);
		return;
	}
	if (bytes.n == 0)
		e->input_ends = true;
	buf_addstr(&e->input, bytes);
	loop_io_set(e->io[IN], LOOP_WRITE);
}

/* ---- control ---- */

static void set_size(const struct exec_call *e, int columns, int rows)
{
	struct winsize size = {.ws_row = (unsigned short)rows, .ws_col = (unsigned short)columns};

	if (e->tty && e->fd[OUT] >= 0 && columns > 0 && rows > 0)
		ioctl(e->fd[OUT], TIOCSWINSZ, &size);
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
	if (m.signal > 0 && e->pid > 0)
		kill(-e->pid, m.signal);
	set_size(e, m.columns, m.rows);
	watch_output(e);
}

static void kill_now(const struct exec_call *e)
{
	if (e->pid > 0 && kill(-e->pid, SIGKILL) < 0)
		kill(e->pid, SIGKILL);
}

void exec_close(struct agent *a, uint16_t channel)
{
	struct exec_call *e = find(a, channel);

	if (!e)
		return;
	kill_now(e);
	exec_free(e);
}

void exec_drop_all(struct agent *a, const char *why)
{
	struct list *pos, *tmp;

	list_each_safe (pos, tmp, &a->execs) {
		struct exec_call *e = list_item(pos, struct exec_call, in_agent);

		kill_now(e);
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

		if (e->pid != pid)
			continue;
		e->pid = 0;
		e->wait_status = wait_status;
		close_pipe(e, IN);
		finish_if_over(e);
		return;
	}
}

/* ---- starting ---- */

/* A process of the job: its main process, or the first of several. */
static pid_t job_process(const struct attempt *at)
{
	CLEANUP(proc_list_release) struct proc_list l = {0};

	if (at->processes == 1)
		return at->st.job.pid;
	proc_descendants(at->st.job.pid, &l);
	return l.n > 0 ? l.v[0].pid : 0;
}

/* While a process is in its exec, the kernel shows no environment.  One that stays empty is the job's own. */
static int read_environ(pid_t pid, struct buf *text)
{
	char path[64];
	int64_t until = clock_boot_ms() + IN_EXEC_MS;

	snprintf(path, sizeof(path), "/proc/%d/environ", (int)pid);
	for (;;) {
		buf_reset(text);
		if (file_read(path, text, NULL) < 0)
			return -1;
		if (text->n > 0 || clock_boot_ms() >= until)
			return 0;
		poll(NULL, 0, 1);
	}
}

/* The environment of the job as it was started.  The texts are in *text. */
static int job_environ(const struct attempt *at, const char *term, struct buf *text,
		       const char ***ret, struct err *err)
{
	size_t n = 0, cap = 2;

	if (!attempt_is_live(at) || at->st.job.pid == 0 || !proc_alive(at->st.job) ||
	    read_environ(job_process(at), text) < 0)
		return err_set(err, ERR_UNAVAILABLE, "the node runs no job now");
	for (size_t i = 0; i < text->n; i++)
		cap += text->p[i] == '\0';
	const char **env = xcalloc(cap + 1, sizeof(*env));

	for (size_t i = 0; i < text->n; i += strlen(text->p + i) + 1)
		if (!term || strncmp(text->p + i, "TERM=", 5) != 0)
			env[n++] = text->p + i;
	if (term)
		env[n++] = term;
	*ret = env;
	return 0;
}

static int open_terminal(const struct message_exec *m, int parent[static PIPES],
			 int child[static PIPES], struct err *err)
{
	char name[64];

	parent[OUT] = posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC);
	if (parent[OUT] < 0 || unlockpt(parent[OUT]) < 0 ||
	    ptsname_r(parent[OUT], name, sizeof(name)) != 0)
		return err_errno(err, errno, "open a terminal");
	child[IN] = open(name, O_RDWR | O_NOCTTY | O_CLOEXEC);
	parent[IN] = fcntl(parent[OUT], F_DUPFD_CLOEXEC, 3);
	if (child[IN] < 0 || parent[IN] < 0)
		return err_errno(err, errno, "open the terminal '%s'", name);
	struct winsize size = {.ws_row = (unsigned short)(m->rows ? m->rows : 24),
			       .ws_col = (unsigned short)(m->columns ? m->columns : 80)};

	ioctl(child[IN], TIOCSWINSZ, &size);
	return 0;
}

static int open_pipes(int parent[static PIPES], int child[static PIPES], struct err *err)
{
	for (int i = 0; i < PIPES; i++) {
		int p[2];

		if (pipe2(p, O_CLOEXEC) < 0)
			return err_errno(err, errno, "make a pipe");
		parent[i] = p[i == IN];
		child[i] = p[i != IN];
	}
	return 0;
}

struct exec_start {
	const char *file;
	const char *const *argv, *const *env;
	const char *cwd;
	bool inside;
	int child[PIPES];
};

static void __attribute__((noreturn)) child_main(const struct agent *a, const struct exec_start *s)
{
	const struct isolation net = {a->cfg.netns, a->cfg.hosts, a->cfg.node};
	sigset_t none;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	setsid();
	if ((!s->inside && cgroup_enter_unified(&a->at.cg) < 0) ||
	    cgroup_enter_memory(&a->at.cg) < 0 || isolation_enter(&net) < 0 || chdir(s->cwd) < 0)
		_exit(CODE_NOT_RUN);
	if (s->child[OUT] < 0 && ioctl(s->child[IN], TIOCSCTTY, 0) < 0)
		_exit(CODE_NOT_RUN);
	for (int i = 0; i < PIPES; i++)
		if (dup2(s->child[i] >= 0 ? s->child[i] : s->child[IN], i) < 0)
			_exit(CODE_NOT_RUN);
	child_reset_handlers();
	signal(SIGPIPE, SIG_DFL);
	signal(SIGHUP, SIG_DFL);
	signal(SIGXFSZ, SIG_DFL);
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	umask(022);
	execve(s->file, (char *const *)s->argv, (char *const *)s->env);
	_exit(errno == ENOENT ? 127 : CODE_NOT_RUN);
}

static pid_t fork_child(const struct agent *a, struct exec_start *s)
{
	CLEANUP(close_fdp) int cgroup_fd = cgroup_open(&a->at.cg);
	sigset_t all, before;

	/* The event loop's handlers must not run in the child. */
	sigfillset(&all);
	sigprocmask(SIG_SETMASK, &all, &before);
	pid_t pid = child_fork_into(cgroup_fd, &s->inside);

	if (pid == 0)
		child_main(a, s);
	sigprocmask(SIG_SETMASK, &before, NULL);
	return pid;
}

static void begin(struct agent *a, uint16_t channel, pid_t pid, const struct message_exec *m,
		  int fd[static PIPES])
{
	struct exec_call *e = xcalloc(1, sizeof(*e));

	*e = (struct exec_call){
		.a = a, .channel = channel, .pid = pid, .tty = m->term, .log = m->log};
	log_tee_init(&e->tee, a->loop, MESSAGE_EXEC_PIECE, logged, e);
	buf_init(&e->input, 2 * MESSAGE_EXEC_WINDOW);
	for (int i = 0; i < PIPES; i++) {
		e->fd[i] = fd[i];
		fd[i] = -1;
		if (e->fd[i] < 0)
			continue;
		fcntl(e->fd[i], F_SETFL, fcntl(e->fd[i], F_GETFL) | O_NONBLOCK);
		e->io[i] = loop_io_new(a->loop, e->fd[i], i == IN ? 0 : LOOP_READ,
				       i == IN ? input_ready : output_ready, e);
	}
	e->settle = loop_timer_new(a->loop, settled, e);
	list_append(&a->execs, &e->in_agent);
	a->nexecs++;
}

static void close_all(int fd[static PIPES])
{
	for (int i = 0; i < PIPES; i++)
		close_fdp(&fd[i]);
}

static int start(struct agent *a, uint16_t channel, const struct message_exec *m, struct arena *mem,
		 struct err *err)
{
	CLEANUP(buf_release) struct buf text = {0};
	CLEANUP(freep) char *file = NULL;
	CLEANUP(freep) char *cwd = place_cwd(&a->cfg, a->dir, &a->inputs);
	int parent[PIPES] = {-1, -1, -1};
	struct exec_start s = {.argv = m->argv, .cwd = cwd, .child = {-1, -1, -1}};
	const char *term = m->term ? arena_printf(mem, "TERM=%s", m->term) : NULL;
	const char **env = NULL;

	if (a->nexecs >= EXEC_MAX)
		return err_set(err, ERR_THROTTLED, "the node runs %d commands already", EXEC_MAX);
	buf_init(&text, ENVIRON_MAX);
	if (job_environ(&a->at, term, &text, &env, err) < 0)
		return -1;
	s.env = env;
	int rc = child_find_command(m->argv[0], environ_get(env, "PATH"), cwd, &file, err);

	s.file = file;
	if (rc == 0)
		rc = m->term ? open_terminal(m, parent, s.child, err)
			     : open_pipes(parent, s.child, err);
	pid_t pid = rc == 0 ? fork_child(a, &s) : 0;

	if (pid < 0)
		rc = err_errno(err, errno, "fork a command");
	if (rc == 0)
		begin(a, channel, pid, m, parent);
	close_all(parent);
	close_all(s.child);
	free(env);
	return rc;
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
