#include "sys/nest.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "base/str.h"
#include "sys/child.h"
#include "sys/proctree.h"
#include "sys/title.h"

#define REQUEST_MAX (16 * 1024)
#define LOG_MAX_BYTES (8 * 1024 * 1024)
#define ANSWER_MS 5000			     /* then the nest is given up */
#define TITLE_ROOM 1024			     /* for the arguments that a child shows */
#define MARK_NONE "------------------------" /* the place that marks are written to */

/* ---- the nest's side ---- */

/* "mark\0arg\0log\0" */
static bool request_parse(char *text, size_t n, struct nest_child *ret)
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
	return rest.n == 0 && strlen(ret->mark) == NEST_MARK_LEN;
}

static void __attribute__((noreturn))
child_main(const struct nest_child *c, int log, int (*role)(const char *arg))
{
	setsid();
	child_reset_signals();
	title_words("agent", c->arg);
	if (dup2(log, 1) < 0 || dup2(log, 2) < 0)
		_exit(errno);
	child_close_from(3);
	exit(role(c->arg));
}

/* One log for all, so it must not grow for ever: the last full one is kept beside it. */
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
static int64_t hatch(const struct nest_child *c, char *mark, int (*role)(const char *arg))
{
	CLEANUP(close_fdp) int log = open_log(c->log);
	int64_t pid;

	if (log < 0)
		return -errno;
	/* Before the fork: from its first moment the child can be found by its mark. */
	memcpy(mark, c->mark, NEST_MARK_LEN);
	pid = fork();
	if (pid == 0)
		child_main(c, log, role);
	if (pid < 0)
		pid = -errno;
	memcpy(mark, MARK_NONE, NEST_MARK_LEN);
	return pid;
}

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

int nest_serve(int (*role)(const char *arg))
{
	struct sigaction forget = {.sa_handler = SIG_DFL, .sa_flags = SA_NOCLDWAIT};
	char *mark = getenv(PROC_MARK), *text = xmalloc(REQUEST_MAX);
	int fd = take_socket();

	if (fd < 0 || !mark || strlen(mark) != NEST_MARK_LEN)
		return 1;
	prctl(PR_SET_NAME, "regatta-nest");
	title_words("nest", "");
	sigaction(SIGCHLD, &forget, NULL);
	for (;;) {
		struct nest_child c;
		ssize_t n = recv(fd, text, REQUEST_MAX, 0);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			break;
		int64_t answer =
			request_parse(text, (size_t)n, &c) ? hatch(&c, mark, role) : -EINVAL;

		if (send(fd, &answer, sizeof(answer), MSG_NOSIGNAL) < 0)
			break;
	}
	free(text);
	return 0;
}

/* ---- the master's side ---- */

struct nest {
	pthread_mutex_t lock;
	char **env;
	struct proc_id id; /* pid 0: not started */
	int fd;
};

struct nest *nest_new(const char *const *env)
{
	struct nest *n = xcalloc(1, sizeof(*n));
	size_t count = 0;

	pthread_mutex_init(&n->lock, NULL);
	while (env[count])
		count++;
	n->env = xcalloc(count + 2, sizeof(*n->env));
	for (size_t i = 0; i < count; i++)
		n->env[i] = xstrdup(env[i]);
	n->env[count] = xstrdup(PROC_MARK "=" MARK_NONE);
	return n;
}

static int start(struct nest *n, struct err *err)
{
	char room[TITLE_ROOM + 1];
	const char *const argv[] = {"regatta", "nest", room, NULL};
	int pair[2];
	pid_t pid;

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
		return err_errno(err, errno, "make a socket for the nest");
	CLEANUP(close_fdp) int ours = pair[0];
	CLEANUP(close_fdp) int theirs = pair[1];
	struct child_spec spec = {.file = "/proc/self/exe",
				  .argv = argv,
				  .env = (const char *const *)n->env,
				  .in = theirs,
				  .out = -1,
				  .err = -1,
				  .session = true};

	memset(room, '.', TITLE_ROOM);
	room[TITLE_ROOM] = '\0';
	if (child_spawn(&spec, &pid, err) < 0)
		return -1;
	n->id = proc_id_of(pid);
	n->fd = TAKE_FD(ours);
	return 0;
}

/* It ends by itself when the socket closes; one that does not answer is helped. */
static void stop(struct nest *n)
{
	if (!n->id.pid)
		return;
	close(n->fd);
	if (proc_alive(n->id))
		kill(n->id.pid, SIGKILL);
	waitpid(n->id.pid, NULL, 0);
	n->id.pid = 0;
}

static int ask(struct nest *n, const struct nest_child *c, int64_t *ret, struct err *err)
{
	struct iovec parts[] = {{(void *)c->mark, strlen(c->mark) + 1},
				{(void *)c->arg, strlen(c->arg) + 1},
				{(void *)c->log, strlen(c->log) + 1}};
	struct msghdr request = {.msg_iov = parts, .msg_iovlen = 3};
	struct pollfd p = {.events = POLLIN};

	if (!n->id.pid && start(n, err) < 0)
		return -1;
	p.fd = n->fd;
	if (sendmsg(n->fd, &request, MSG_NOSIGNAL) < 0)
		return err_errno(err, errno, "ask the nest");
	if (poll(&p, 1, ANSWER_MS) != 1 ||
	    recv(n->fd, ret, sizeof(*ret), MSG_DONTWAIT) != (ssize_t)sizeof(*ret))
		return err_set(err, ERR_UNAVAILABLE, "the nest does not answer");
	return 0;
}

int nest_fork(struct nest *n, const struct nest_child *c, pid_t *ret_pid, struct err *err)
{
	int64_t answer = 0;
	int rc;

	pthread_mutex_lock(&n->lock);
	/* Once more with a new one: the old one may have been killed since it was last asked. */
	for (int i = 0; i < 2; i++) {
		*err = (struct err){0};
		rc = ask(n, c, &answer, err);
		if (rc == 0)
			break;
		stop(n);
	}
	pthread_mutex_unlock(&n->lock);
	if (rc < 0)
		return -1;
	if (answer <= 0)
		return err_errno(err, (int)-answer, "fork an agent");
	*ret_pid = (pid_t)answer;
	return 0;
}

struct nest *nest_free(struct nest *n)
{
	if (!n)
		return NULL;
	stop(n);
	pthread_mutex_destroy(&n->lock);
	for (size_t i = 0; n->env[i]; i++)
		free(n->env[i]);
	free(n->env);
	free(n);
	return NULL;
}
