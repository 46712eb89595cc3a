#include "sys/nest.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "sys/child.h"
#include "sys/proctree.h"

#define ANSWER_MS 5000	/* then the nest is given up */
#define TITLE_ROOM 1024 /* for the arguments that a child shows */

struct nest {
	pthread_mutex_t lock;
	char *name, **env;
	struct proc_id id; /* pid 0: not started */
	int fd;
};

struct nest *nest_new(const char *name, const char *const *env)
{
	struct nest *n = xcalloc(1, sizeof(*n));
	size_t count = 0;

	pthread_mutex_init(&n->lock, NULL);
	n->name = xstrdup(name);
	while (env[count])
		count++;
	n->env = xcalloc(count + 2, sizeof(*n->env));
	for (size_t i = 0; i < count; i++)
		n->env[i] = xstrdup(env[i]);
	n->env[count] = xstrdup(PROC_MARK "=" NEST_MARK_NONE);
	return n;
}

static int start(struct nest *n, struct err *err)
{
	char room[TITLE_ROOM + 1];
	const char *const argv[] = {"regatta", "nest", n->name, room, NULL};
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
	free(n->name);
	free(n);
	return NULL;
}
