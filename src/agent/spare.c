#include "agent/spare.h"

#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include "agent/shim.h"
#include "base/arena.h"
#include "base/buf.h"
#include "base/cleanup.h"

#define START_MAX (128 * 1024) /* a longer one is worth a fork */

static struct {
	bool allowed, waits, spoilt;
	pid_t pid; /* 0: none */
	int fd;
} spare = {.fd = -1};

/* ---- a start as a message: the numbers, then all texts, each with its NUL ---- */

struct flat {
	struct shim_start s; /* its pointers mean nothing */
	size_t nargs, nenv;
	bool has_file;
};

static size_t count(const char *const *v)
{
	size_t n = 0;

	while (v[n])
		n++;
	return n;
}

static void add_text(struct buf *b, const char *z)
{
	buf_add(b, z, strlen(z) + 1);
}

static void flatten(const struct shim_start *s, struct buf *out)
{
	struct flat f = {
		.s = *s, .nargs = count(s->argv), .nenv = count(s->env), .has_file = s->file};

	buf_add(out, &f, sizeof(f));
	add_text(out, s->dir);
	add_text(out, s->mark);
	add_text(out, s->home);
	add_text(out, s->boot_id);
	add_text(out, s->cwd);
	add_text(out, s->file ? s->file : "");
	for (size_t i = 0; i < f.nargs; i++)
		add_text(out, s->argv[i]);
	for (size_t i = 0; i < f.nenv; i++)
		add_text(out, s->env[i]);
}

static const char *next_text(const char **at)
{
	const char *z = *at;

	*at += strlen(z) + 1;
	return z;
}

static const char *const *next_texts(const char **at, size_t n, struct arena *a)
{
	const char **v = arena_array(a, const char *, n + 1);

	for (size_t i = 0; i < n; i++)
		v[i] = next_text(at);
	v[n] = NULL;
	return v;
}

/* Our own process wrote it, with the same program. */
static void unfold(const char *message, struct arena *a, struct shim_start *ret)
{
	const char *at = message + sizeof(struct flat);
	struct flat f;

	memcpy(&f, message, sizeof(f));
	*ret = f.s;
	ret->dir = next_text(&at);
	ret->mark = next_text(&at);
	ret->home = next_text(&at);
	ret->boot_id = next_text(&at);
	ret->cwd = next_text(&at);
	ret->file = next_text(&at);
	if (!f.has_file)
		ret->file = NULL;
	ret->argv = next_texts(&at, f.nargs, a);
	ret->env = next_texts(&at, f.nenv, a);
}

/* ---- the agent's side ---- */

void spare_allow(void)
{
	spare.allowed = true;
}

static void let_go(void)
{
	close_fdp(&spare.fd);
	spare.fd = -1;
	spare.pid = 0;
	spare.waits = spare.spoilt = false;
}

pid_t spare_start(const struct shim_start *s)
{
	struct buf message;
	pid_t pid = 0;

	if (!spare.waits)
		return 0;
	buf_init(&message, START_MAX);
	flatten(s, &message);
	if (!message.overflow && send(spare.fd, message.p, message.n,
				      MSG_NOSIGNAL | MSG_DONTWAIT) == (ssize_t)message.n) {
		spare.waits = false;
		pid = spare.pid;
	}
	buf_release(&message);
	return pid;
}

int spare_prepare(void)
{
	int pair[2];

	let_go();
	if (!spare.allowed || socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
		return -1;
	spare.fd = pair[0];
	return pair[1];
}

void spare_born(pid_t pid)
{
	spare.pid = pid;
}

int spare_fd(void)
{
	return spare.fd;
}

bool spare_heard(void)
{
	char word;

	if (recv(spare.fd, &word, 1, MSG_DONTWAIT) != 1 || spare.spoilt) {
		let_go();
		return false;
	}
	spare.waits = true;
	return true;
}

void spare_signalled(void)
{
	spare.spoilt = true;
}

void spare_reaped(pid_t pid)
{
	if (pid == spare.pid)
		let_go();
}

/* ---- the shim's side ---- */

/* Whoever signals a shim that has no job wants it to end. */
static bool told_to_end(int signals)
{
	struct signalfd_siginfo si;

	while (read(signals, &si, sizeof(si)) == (ssize_t)sizeof(si))
		if (si.ssi_signo != SIGCHLD)
			return true;
	return false;
}

bool spare_wait(int line, int signals, struct arena *a, struct shim_start *ret)
{
	struct pollfd p[] = {{.fd = line, .events = POLLIN}, {.fd = signals, .events = POLLIN}};
	char *message = arena_alloc(a, START_MAX);

	if (send(line, "", 1, MSG_NOSIGNAL) != 1)
		return false;
	for (;;) {
		if (poll(p, 2, -1) < 0)
			continue;
		/* A signal that came with a start is meant for its job. */
		if (p[0].revents)
			break;
		if (p[1].revents && told_to_end(signals))
			return false;
	}
	if (recv(line, message, START_MAX, MSG_DONTWAIT) < (ssize_t)sizeof(struct flat))
		return false;
	unfold(message, a, ret);
	return true;
}
