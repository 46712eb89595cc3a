/* The nest's own life: fork when asked, and see how those end whom nobody else can see. */
#include <errno.h>
#include <fcntl.h>
#include <malloc.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/vec.h"
#include "sys/child.h"
#include "sys/nest_child.h"
#include "sys/proctree.h"
#include "sys/title.h"

#define LOOKS 8 /* at what is left of dead children, for each new one */
#define KEPT_BYTES (1024 * 1024)
#define TAKEN_MS 200 /* how long a request may wait for somebody who waits for it */
#define IDLE_MS 1000 /* then nobody waits any longer */

struct hatched {
	pid_t pid; /* 0: it has ended */
	bool idle; /* it waits in the yard */
	char *arg;
};

struct nest {
	struct nest_home home; /* home.yard is the children's end */
	int fd, signals, yard; /* fd -1: the master has gone */
	VEC(struct hatched) hatched;
};

/* A pid, or minus an errno. */
static int64_t hatch(struct nest *n, const struct nest_child *c)
{
	CLEANUP(close_fdp) int log = nest_open_log(c->log);
	pid_t pid;

	if (log < 0)
		return -errno;
	/* Before the fork: from its first moment the child can be found by its mark. */
	memcpy(n->home.mark, c->mark, NEST_MARK_LEN);
	pid = fork();
	if (pid == 0)
		nest_child_main(&n->home, c, log);
	int64_t answer = pid < 0 ? -errno : pid;

	memcpy(n->home.mark, NEST_MARK_NONE, NEST_MARK_LEN);
	if (pid > 0)
		*vec_push(&n->hatched) = (struct hatched){.pid = pid, .arg = xstrdup(c->arg)};
	return answer;
}

/* ---- those who wait ---- */

static struct hatched *find(struct nest *n, int64_t pid)
{
	for (size_t i = 0; i < n->hatched.n; i++)
		if (n->hatched.v[i].pid == pid)
			return &n->hatched.v[i];
	return NULL;
}

static size_t count_idle(const struct nest *n)
{
	size_t idle = 0;

	for (size_t i = 0; i < n->hatched.n; i++)
		idle += n->hatched.v[i].idle;
	return idle;
}

/* What a child says, if one says something. */
static bool hear(struct nest *n, struct nest_word *ret)
{
	if (recv(n->yard, ret, sizeof(*ret), MSG_DONTWAIT) != (ssize_t)sizeof(*ret))
		return false;
	struct hatched *h = find(n, ret->pid);

	if (h)
		h->idle = ret->answer == 0;
	return true;
}

static bool wait_word(const struct nest *n, int64_t until_ms)
{
	struct pollfd p = {.fd = n->yard, .events = POLLIN};
	int64_t left = until_ms - clock_boot_ms();

	return left > 0 && poll(&p, 1, (int)left) == 1;
}

/* To one of those who wait.  A pid, minus an errno, or 0: nobody has answered, so it is not theirs any more. */
static int64_t hand_over(struct nest *n, char *text, size_t size, const struct nest_child *c)
{
	int64_t until = clock_boot_ms() + TAKEN_MS;
	struct nest_word w;

	while (hear(n, &w))
		;
	if (count_idle(n) == 0 || send(n->yard, text, size, MSG_DONTWAIT | MSG_NOSIGNAL) < 0)
		return 0;
	while (wait_word(n, until)) {
		if (!hear(n, &w) || w.answer == 0)
			continue;
		struct hatched *h = find(n, w.answer);

		if (h) { /* it left nothing of what it was before */
			free(h->arg);
			h->arg = xstrdup(c->arg);
		}
		return w.answer;
	}
	/* They were killed or stopped.  If one has it and wakes up later, it is a second agent, which leaves. */
	while (recv(n->home.yard, &w, sizeof(w), MSG_DONTWAIT) >= 0)
		;
	for (size_t i = 0; i < n->hatched.n; i++)
		n->hatched.v[i].idle = false;
	return 0;
}

/* As many as the socket takes; the others next time. */
static void send_home(struct nest *n)
{
	for (size_t i = 0; i < n->hatched.n; i++)
		if (n->hatched.v[i].idle &&
		    send(n->yard, NEST_LEAVE, sizeof(NEST_LEAVE), MSG_DONTWAIT | MSG_NOSIGNAL) >= 0)
			n->hatched.v[i].idle = false;
}

/* ---- the dead ---- */

/* What a dead child was made for may still have processes, until its directory is gone. */
static void forget_some(struct nest *n)
{
	size_t looks = 0;

	for (size_t i = 0; i < n->hatched.n && looks < LOOKS;) {
		struct hatched *h = &n->hatched.v[i];

		if (h->pid == 0)
			looks++;
		if (h->pid == 0 && !file_exists(h->arg)) {
			free(h->arg);
			*h = n->hatched.v[--n->hatched.n];
		} else {
			i++;
		}
	}
}

/* Whoever is not ours by birth has lost all that stood between us and it: if we do not say how it ended, nobody can. */
static void ended(struct nest *n, pid_t pid, int wait_status)
{
	struct hatched *h = find(n, pid);

	if (h) {
		h->pid = 0;
		h->idle = false;
		return;
	}
	for (size_t i = 0; i < n->hatched.n; i++)
		if (n->home.role->orphan_ended(n->hatched.v[i].arg, pid, wait_status))
			return;
}

/* False: there is no child left. */
static bool reap(struct nest *n)
{
	struct signalfd_siginfo rings;

	while (read(n->signals, &rings, sizeof(rings)) > 0)
		;
	for (;;) {
		siginfo_t si = {0};

		/* Look first: what is to be said of it must be on record before the kernel forgets it. */
		if (waitid(P_ALL, 0, &si, WEXITED | WNOHANG | WNOWAIT) < 0)
			return false;
		if (si.si_pid == 0)
			return true;
		ended(n, si.si_pid, child_wait_status(&si));
		waitpid(si.si_pid, NULL, 0);
	}
}

/* ---- life ---- */

/* Away from descriptor 0, which the children need. */
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
static bool serve_one(struct nest *n, char *text)
{
	struct nest_child c;
	ssize_t got = recv(n->fd, text, NEST_REQUEST_MAX, MSG_DONTWAIT);
	int64_t answer = -EINVAL;

	if (got < 0 && (errno == EINTR || errno == EAGAIN))
		return true;
	if (got <= 0)
		return false;
	if (nest_request_parse(text, (size_t)got, &c)) {
		answer = hand_over(n, text, (size_t)got, &c);
		if (answer == 0)
			answer = hatch(n, &c);
	}
	return send(n->fd, &answer, sizeof(answer), MSG_NOSIGNAL) >= 0;
}

static int begin(struct nest *n)
{
	int yard[2];
	sigset_t set;

	n->fd = take_socket();
	n->home.mark = getenv(PROC_MARK);
	sigemptyset(&set);
	sigaddset(&set, SIGCHLD);
	sigprocmask(SIG_BLOCK, &set, NULL);
	n->signals = signalfd(-1, &set, SFD_NONBLOCK | SFD_CLOEXEC);
	if (n->fd < 0 || n->signals < 0 || !n->home.mark || strlen(n->home.mark) != NEST_MARK_LEN ||
	    socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, yard) < 0)
		return -1;
	/* A child that is used again asks for the same big buffers again. */
	mallopt(M_MMAP_THRESHOLD, KEPT_BYTES);
	mallopt(M_TRIM_THRESHOLD, KEPT_BYTES);
	n->yard = yard[0];
	n->home.yard = yard[1];
	prctl(PR_SET_CHILD_SUBREAPER, 1);
	prctl(PR_SET_NAME, "regatta-nest");
	title_words("nest", n->home.name);
	return 0;
}

int nest_serve(const struct nest_role *role, const char *name)
{
	CLEANUP(freep) char *own = xstrdup(name); /* it stands where the title goes */
	CLEANUP(freep) char *text = xmalloc(NEST_REQUEST_MAX);
	struct nest n = {.home = {.role = role, .name = own}};
	bool children = false;

	if (begin(&n) < 0)
		return 1;
	while (n.fd >= 0 || children) {
		struct pollfd p[] = {{.fd = n.signals, .events = POLLIN},
				     {.fd = n.fd, .events = POLLIN},
				     {.fd = n.yard, .events = POLLIN}};
		struct nest_word w;
		int ready = poll(p, 3, count_idle(&n) > 0 ? IDLE_MS : -1);

		if (ready < 0)
			continue;
		if (ready == 0)
			send_home(&n);
		if (p[2].revents)
			while (hear(&n, &w))
				;
		if (p[1].revents && !serve_one(&n, text)) {
			close(n.fd);
			n.fd = -1;
			shutdown(n.yard, SHUT_WR); /* whoever waits, or would, ends */
		}
		if (p[0].revents)
			forget_some(&n);
		children = reap(&n);
	}
	return 0;
}
