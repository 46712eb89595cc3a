#include "agent/exec_child.h"

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
#include <termios.h>
#include <unistd.h>

#include "agent/container.h"
#include "agent/environ.h"
#include "agent/internal.h"
#include "agent/places.h"
#include "agent/shim/isolation.h"
#include "agent/shim/status.h"
#include "base/arena.h"
#include "base/buf.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/deadline.h"
#include "base/err.h"
#include "base/file.h"
#include "base/path.h"
#include "link/layout.h"
#include "link/message.h"
#include "sys/child.h"
#include "sys/container.h"
#include "sys/proctree.h"

extern char **environ;

#define ENVIRON_MAX (8 * 1024 * 1024)
#define IN_EXEC_MS 100	   /* how long an exec of the job's process may take */
#define CONTAINER_MS 60000 /* how long a container may take to start */
#define CODE_NOT_RUN 126
#define CODE_NOT_FOUND 127

static int no_job(struct err *err)
{
	return err_set(err, ERR_UNAVAILABLE, "the node runs no job now");
}

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
static int job_environ(const struct attempt *at, const char *term, struct arena *mem,
		       struct buf *text, const char *const **ret, struct err *err)
{
	size_t n = 0, cap = 2;

	if (read_environ(job_process(at), text) < 0)
		return no_job(err);
	for (size_t i = 0; i < text->n; i++)
		cap += text->p[i] == '\0';
	const char **env = arena_array(mem, const char *, cap + 1);

	for (size_t i = 0; i < text->n; i += strlen(text->p + i) + 1)
		if (!term || strncmp(text->p + i, "TERM=", 5) != 0)
			env[n++] = text->p + i;
	if (term)
		env[n++] = term;
	*ret = env;
	return 0;
}

static int open_terminal(const struct message_exec *m, int parent[static EXEC_PIPES],
			 int child[static EXEC_PIPES], struct err *err)
{
	char name[64];

	parent[EXEC_OUT] = posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC);
	if (parent[EXEC_OUT] < 0 || unlockpt(parent[EXEC_OUT]) < 0 ||
	    ptsname_r(parent[EXEC_OUT], name, sizeof(name)) != 0)
		return err_errno(err, errno, "open a terminal");
	child[EXEC_IN] = open(name, O_RDWR | O_NOCTTY | O_CLOEXEC);
	parent[EXEC_IN] = fcntl(parent[EXEC_OUT], F_DUPFD_CLOEXEC, 3);
	if (child[EXEC_IN] < 0 || parent[EXEC_IN] < 0)
		return err_errno(err, errno, "open the terminal '%s'", name);
	struct winsize size = {.ws_row = (unsigned short)(m->rows ? m->rows : 24),
			       .ws_col = (unsigned short)(m->columns ? m->columns : 80)};

	ioctl(child[EXEC_IN], TIOCSWINSZ, &size);
	return 0;
}

static int open_pipes(int parent[static EXEC_PIPES], int child[static EXEC_PIPES], struct err *err)
{
	for (int i = 0; i < EXEC_PIPES; i++) {
		int p[2];

		if (pipe2(p, O_CLOEXEC) < 0)
			return err_errno(err, errno, "make a pipe");
		parent[i] = p[i == EXEC_IN];
		child[i] = p[i != EXEC_IN];
	}
	return 0;
}

struct exec_start {
	const char *file;
	const char *const *argv, *const *env;
	const char *cwd;
	bool inside;
	int child[EXEC_PIPES];
	/* The container in which the command runs. */
	const struct container_tool *tool; /* NULL: it runs on the node itself */
	const char *container;
};

/* The container may still be starting. */
static void wait_for_container(const struct exec_start *s)
{
	const struct deadline d = deadline_in(CONTAINER_MS, NULL);
	struct err err = {0};

	if (container_wait(s->tool, s->container, &d, &err) == 0)
		return;
	dprintf(STDERR_FILENO, "regatta: %s\n", err.msg);
	_exit(CODE_NOT_RUN);
}

static void __attribute__((noreturn)) not_run(const char *what, int code)
{
	dprintf(STDERR_FILENO, "regatta: %s: %s\n", what, strerror(errno));
	_exit(code);
}

static void __attribute__((noreturn)) child_main(const struct agent *a, const struct exec_start *s)
{
	const struct isolation net = {a->cfg.netns, a->cfg.hosts, a->cfg.node};
	sigset_t none;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	setsid();
	for (int i = 0; i < EXEC_PIPES; i++)
		if (dup2(s->child[i] >= 0 ? s->child[i] : s->child[EXEC_IN], i) < 0)
			_exit(CODE_NOT_RUN);
	if ((!s->inside && cgroup_enter_unified(&a->at.cg) < 0) ||
	    cgroup_enter_memory(&a->at.cg) < 0)
		not_run("enter the cgroup of the job", CODE_NOT_RUN);
	if (isolation_enter(&net) < 0)
		not_run("enter the network of the job", CODE_NOT_RUN);
	if (chdir(s->cwd) < 0)
		not_run(s->cwd, CODE_NOT_RUN);
	if (s->child[EXEC_OUT] < 0 && ioctl(STDIN_FILENO, TIOCSCTTY, 0) < 0)
		not_run("take the terminal", CODE_NOT_RUN);
	child_reset_handlers();
	signal(SIGPIPE, SIG_DFL);
	signal(SIGHUP, SIG_DFL);
	signal(SIGXFSZ, SIG_DFL);
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	umask(022);
	if (s->tool)
		wait_for_container(s);
	execve(s->file, (char *const *)s->argv, (char *const *)s->env);
	not_run(s->argv[0], errno == ENOENT ? CODE_NOT_FOUND : CODE_NOT_RUN);
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

static void close_all(int fd[static EXEC_PIPES])
{
	for (int i = 0; i < EXEC_PIPES; i++)
		close_fdp(&fd[i]);
}

/* Both ends are open here, so that neither has to wait for the other.  No other command has had the name: one that
 * was killed while its container's program still started it would take this line for its own, and run. */
static int make_line(const struct agent *a, struct exec_child *c, struct err *err)
{
	static int n;
	char name[64];

	snprintf(name, sizeof(name), "exec-%lld-%d", (long long)clock_boot_ms(), n++);
	c->line_path = path_join(a->dir, name);
	if (mkfifo(c->line_path, 0600) < 0)
		return err_errno(err, errno, "make '%s'", c->line_path);
	c->line = open(c->line_path, O_RDWR | O_NONBLOCK | O_CLOEXEC | O_NOFOLLOW);
	return c->line < 0 ? err_errno(err, errno, "open '%s'", c->line_path) : 0;
}

/* The first process of the job that has not ended: the container of one that has is gone. */
static int live_process(const struct attempt *at)
{
	struct status st;
	size_t i = 0;

	if (status_read(at->dirfd, &st, NULL) < 0)
		return 0;
	for (; i + 1 < st.exit.nprocesses; i++)
		if (st.exit.processes[i].code < 0 && st.exit.processes[i].signal == 0)
			break;
	return (int)i;
}

/* In the container of a process that runs, which has the environment of the job. */
static void find_inside(const struct agent *a, const struct message_exec *m,
			const struct container_record *r, const char *line, struct arena *mem,
			struct exec_start *s)
{
	CLEANUP(freep) char *program = path_join(a->dir, LAYOUT_INSIDE);
	const char **argv = arena_array(mem, const char *, m->argc + 3);

	argv[0] = arena_strdup(mem, program);
	argv[1] = line;
	memcpy(argv + 2, m->argv, m->argc * sizeof(*argv));
	s->tool = &r->tool;
	s->container = attempt_container_name(&a->at, live_process(&a->at), mem);
	s->argv = container_exec_argv(&r->tool, s->container, m->term, argv, mem);
	s->file = s->argv[0];
	s->env = (const char *const *)environ;
}

/* On the node, with the environment of the job.  Its texts are in *text. */
static int find_beside(const struct agent *a, const struct message_exec *m, struct arena *mem,
		       struct buf *text, struct exec_start *s, struct err *err)
{
	CLEANUP(freep) char *file = NULL;
	const char *term = m->term ? arena_printf(mem, "TERM=%s", m->term) : NULL;

	if (job_environ(&a->at, term, mem, text, &s->env, err) < 0 ||
	    child_find_command(m->argv[0], environ_get(s->env, "PATH"), s->cwd, &file, err) < 0)
		return -1;
	s->argv = m->argv;
	s->file = arena_strdup(mem, file);
	return 0;
}

int exec_child_start(struct agent *a, const struct message_exec *m, struct arena *mem,
		     struct exec_child *ret, struct err *err)
{
	CLEANUP(buf_release) struct buf text = {0};
	CLEANUP(freep) char *cwd = place_cwd(&a->cfg, a->dir, &a->inputs);
	CLEANUP(exec_child_release) struct exec_child c = EXEC_NO_CHILD;
	struct exec_start s = {.cwd = cwd, .child = {-1, -1, -1}};
	struct container_record record;
	struct err no_record = {0};
	int rc;

	if (!attempt_is_live(&a->at) || a->at.st.job.pid == 0 || !proc_alive(a->at.st.job))
		return no_job(err);
	buf_init(&text, ENVIRON_MAX);
	if (container_record_read(a->at.dirfd, LAYOUT_CONTAINER, &record, &no_record) == 0) {
		rc = make_line(a, &c, err);
		if (rc == 0)
			find_inside(a, m, &record, c.line_path, mem, &s);
	} else if (no_record.kind != ERR_NOT_FOUND) {
		return err_set(err, no_record.kind, "%s", no_record.msg);
	} else {
		rc = find_beside(a, m, mem, &text, &s, err);
	}
	if (rc == 0)
		rc = m->term ? open_terminal(m, c.fd, s.child, err)
			     : open_pipes(c.fd, s.child, err);
	if (rc == 0 && (c.pid = fork_child(a, &s)) < 0)
		rc = err_errno(err, errno, "fork a command");
	close_all(s.child);
	if (rc < 0)
		return -1;
	*ret = c;
	c = EXEC_NO_CHILD;
	return 0;
}

void exec_child_signal(const struct exec_child *c, int signo)
{
	unsigned char number = (unsigned char)signo;

	if (c->line < 0)
		kill(-c->pid, signo);
	else
		(void)!write(c->line, &number, sizeof(number));
}

static void close_line(struct exec_child *c)
{
	close_fdp(&c->line);
	c->line = -1;
}

void exec_child_kill(struct exec_child *c)
{
	close_line(c);
	if (c->pid > 0 && kill(-c->pid, SIGKILL) < 0)
		kill(c->pid, SIGKILL);
}

void exec_child_release(struct exec_child *c)
{
	close_all(c->fd);
	close_line(c);
	if (c->line_path)
		unlink(c->line_path);
	free(c->line_path);
}
