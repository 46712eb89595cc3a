/* The forkserver's process: forks on request, and records the exit status of orphans. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/file.h"
#include "base/str.h"
#include "base/vec.h"
#include "sys/child.h"
#include "sys/forkserver.h"
#include "sys/proctree.h"
#include "sys/title.h"

#define REQUEST_MAX (16 * 1024)
#define LOG_MAX_BYTES (8 * 1024 * 1024)
#define CHECKS 8 /* directories of dead children checked when a child ends */

struct forked_child {
	pid_t pid; /* 0: it has ended */
	char *arg;
};

struct fork_service {
	const struct forkserver_role *role;
	int fd, signals; /* fd -1: the master has gone */
	char *mark;	 /* points into the process's environment, which each child inherits */
	VEC(struct forked_child) children;
};

/* "mark\0arg\0log\0" */
static bool request_parse(char *text, size_t n, struct forkserver_child *ret)
{
	const char **words[] = {&ret->mark, &ret->arg, &ret->log};
	struct str rest = {text, n};

	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
		const char *end = memchr(rest.p, '\0', rest.n);

		if (!end)
			return false;
		*words[i] = rest.p;
		rest.n -= (size_t)(end + 1 - rest.p);
		rest.p = end + 1;
	}
	return rest.n == 0 && strlen(ret->mark) == FORKSERVER_MARK_LEN;
}

static void __attribute__((noreturn))
child_main(const struct fork_service *s, const struct forkserver_child *c, int log)
{
	setsid();
	child_reset_signals();
	title_words("node-agent", c->arg);
	if (dup2(log, 1) < 0 || dup2(log, 2) < 0)
		_exit(errno);
	child_close_from(3);
	exit(s->role->run(c->arg));
}

/* One log for all children.  When it is full it is renamed, replacing the last full one. */
static int open_log(const char *path)
{
	int flags = O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NOFOLLOW;
	int fd = open(path, flags, 0600);
	struct stat st;

	if (fd < 0 || fstat(fd, &st) < 0 || st.st_size < LOG_MAX_BYTES)
		return fd;
	CLEANUP(freep) char *old = xasprintf("%s.old", path);

	if (rename(path, old) < 0)
		return fd;
	close(fd);
	return open(path, flags, 0600);
}

/* A pid, or minus an errno. */
static int64_t fork_child(struct fork_service *s, const struct forkserver_child *c)
{
	CLEANUP(close_fdp) int log = open_log(c->log);
	pid_t pid;

	if (log < 0)
		return -errno;
	/* Before the fork, so that the child can be found by its mark at any time. */
	memcpy(s->mark, c->mark, FORKSERVER_MARK_LEN);
	pid = fork();
	if (pid == 0)
		child_main(s, c, log);
	int64_t answer = pid < 0 ? -errno : pid;

	memcpy(s->mark, FORKSERVER_MARK_NONE, FORKSERVER_MARK_LEN);
	if (pid > 0)
		*vec_push(&s->children) = (struct forked_child){pid, xstrdup(c->arg)};
	return answer;
}

/* ---- children that ended ---- */

/* The node of a dead agent may still have processes, until its directory is gone. */
static void forget_some(struct fork_service *s)
{
	size_t checked = 0;

	for (size_t i = 0; i < s->children.n && checked < CHECKS;) {
		struct forked_child *c = &s->children.v[i];

		if (c->pid == 0)
			checked++;
		if (c->pid == 0 && !file_exists(c->arg)) {
			free(c->arg);
			*c = s->children.v[--s->children.n];
		} else {
			i++;
		}
	}
}

/* A child that was not forked here is an orphan whose shim and agent are dead: record its exit status. */
static void ended(struct fork_service *s, pid_t pid, int wait_status)
{
	for (size_t i = 0; i < s->children.n; i++)
		if (s->children.v[i].pid == pid) {
			s->children.v[i].pid = 0;
			return;
		}
	for (size_t i = 0; i < s->children.n; i++)
		if (s->role->orphan_ended(s->children.v[i].arg, pid, wait_status))
			return;
}

/* False: there is no child left. */
static bool reap(struct fork_service *s)
{
	struct signalfd_siginfo signals_read;

	while (read(s->signals, &signals_read, sizeof(signals_read)) > 0)
		;
	for (;;) {
		siginfo_t si = {0};

		/* WNOWAIT: the status must be recorded before the process is reaped. */
		if (waitid(P_ALL, 0, &si, WEXITED | WNOHANG | WNOWAIT) < 0)
			return false;
		if (si.si_pid == 0)
			return true;
		ended(s, si.si_pid, child_wait_status(&si));
		waitpid(si.si_pid, NULL, 0);
	}
}

/* ---- main loop ---- */

/* Move the socket away from descriptor 0, which becomes /dev/null for the children. */
static int take_socket(void)
{
	int fd = fcntl(0, F_DUPFD_CLOEXEC, 3);
	int null = open("/dev/null", O_RDONLY | O_CLOEXEC);

	if (fd < 0 || null < 0 || dup2(null, 0) < 0)
		return -1;
	close(null);
	return fd;
}

/* False: the master has gone. */
static bool serve_one(struct fork_service *s, char *text)
{
	struct forkserver_child c;
	ssize_t got = recv(s->fd, text, REQUEST_MAX, MSG_DONTWAIT);

	if (got < 0 && (errno == EINTR || errno == EAGAIN))
		return true;
	if (got <= 0)
		return false;
	int64_t answer = request_parse(text, (size_t)got, &c) ? fork_child(s, &c) : -EINVAL;

	return send(s->fd, &answer, sizeof(answer), MSG_NOSIGNAL) >= 0;
}

static int begin(struct fork_service *s, const char *name)
{
	CLEANUP(freep) char *own = xstrdup(name); /* the title overwrites `name` */
	sigset_t set;

	s->fd = take_socket();
	s->mark = getenv(PROC_MARK);
	sigemptyset(&set);
	sigaddset(&set, SIGCHLD);
	sigprocmask(SIG_BLOCK, &set, NULL);
	s->signals = signalfd(-1, &set, SFD_NONBLOCK | SFD_CLOEXEC);
	if (s->fd < 0 || s->signals < 0 || !s->mark || strlen(s->mark) != FORKSERVER_MARK_LEN)
		return -1;
	prctl(PR_SET_CHILD_SUBREAPER, 1);
	prctl(PR_SET_NAME, "regatta-forksrv");
	title_words("forkserver", own);
	return 0;
}

int forkserver_serve(const struct forkserver_role *role, const char *name)
{
	struct fork_service s = {.role = role};
	char *text = xmalloc(REQUEST_MAX);
	bool has_children = false;

	if (begin(&s, name) < 0)
		return 1;
	while (s.fd >= 0 || has_children) {
		struct pollfd p[] = {{.fd = s.signals, .events = POLLIN},
				     {.fd = s.fd, .events = POLLIN}};

		if (poll(p, 2, -1) < 0)
			continue;
		if (p[1].revents && !serve_one(&s, text)) {
			close(s.fd);
			s.fd = -1;
		}
		if (p[0].revents)
			forget_some(&s);
		has_children = reap(&s);
	}
	free(text);
	return 0;
}
