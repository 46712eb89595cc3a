#include "sys/forkserver.h"

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

#define ANSWER_MS 5000	/* then the forkserver counts as hung and is killed */
#define TITLE_ROOM 1024 /* space for the title of a child (sys/title.h) */

struct forkserver {
	pthread_mutex_t lock;
	char *name, **env;
	struct proc_id id; /* pid 0: not started */
	int fd;
};

struct forkserver *forkserver_new(const char *name, const char *const *env)
{
	struct forkserver *f = xcalloc(1, sizeof(*f));
	size_t count = 0;

	pthread_mutex_init(&f->lock, NULL);
	f->name = xstrdup(name);
	while (env[count])
		count++;
	f->env = xcalloc(count + 2, sizeof(*f->env));
	for (size_t i = 0; i < count; i++)
		f->env[i] = xstrdup(env[i]);
	f->env[count] = xstrdup(PROC_MARK "=" FORKSERVER_MARK_NONE);
	return f;
}

static int start(struct forkserver *f, struct err *err)
{
	char room[TITLE_ROOM + 1];
	const char *const argv[] = {"regatta", "forkserver", f->name, room, NULL};
	int pair[2];
	pid_t pid;

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
		return err_errno(err, errno, "make a socket for the forkserver");
	CLEANUP(close_fdp) int ours = pair[0];
	CLEANUP(close_fdp) int theirs = pair[1];
	struct child_spec spec = {.file = "/proc/self/exe",
				  .argv = argv,
				  .env = (const char *const *)f->env,
				  .in = theirs,
				  .out = -1,
				  .err = -1,
				  .session = true};

	memset(room, '.', TITLE_ROOM);
	room[TITLE_ROOM] = '\0';
	if (child_spawn(&spec, &pid, err) < 0)
		return -1;
	f->id = proc_id_of(pid);
	f->fd = TAKE_FD(ours);
	return 0;
}

/* Close the socket; a forkserver that is alive is killed. */
static void stop(struct forkserver *f)
{
	if (!f->id.pid)
		return;
	close(f->fd);
	if (proc_alive(f->id))
		kill(f->id.pid, SIGKILL);
	waitpid(f->id.pid, NULL, 0);
	f->id.pid = 0;
}

static int ask(struct forkserver *f, const struct forkserver_child *c, int64_t *ret,
	       struct err *err)
{
	struct iovec parts[] = {{(void *)c->mark, strlen(c->mark) + 1},
				{(void *)c->arg, strlen(c->arg) + 1},
				{(void *)c->log, strlen(c->log) + 1}};
	struct msghdr request = {.msg_iov = parts, .msg_iovlen = 3};
	struct pollfd p = {.events = POLLIN};

	if (!f->id.pid && start(f, err) < 0)
		return -1;
	p.fd = f->fd;
	if (sendmsg(f->fd, &request, MSG_NOSIGNAL) < 0)
		return err_errno(err, errno, "ask the forkserver");
	if (poll(&p, 1, ANSWER_MS) != 1 ||
	    recv(f->fd, ret, sizeof(*ret), MSG_DONTWAIT) != (ssize_t)sizeof(*ret))
		return err_set(err, ERR_UNAVAILABLE, "the forkserver does not answer");
	return 0;
}

int forkserver_fork(struct forkserver *f, const struct forkserver_child *c, pid_t *ret_pid,
		    struct err *err)
{
	int64_t answer = 0;
	int rc;

	pthread_mutex_lock(&f->lock);
	/* Retry with a new forkserver: the old one may have been killed since the last request. */
	for (int i = 0; i < 2; i++) {
		struct err first = *err;

		*err = (struct err){0};
		rc = ask(f, c, &answer, err);
		if (rc == 0)
			break;
		stop(f);
		/* Code 0 means that the old forkserver may have forked: the caller must get this error. */
		if (i == 1 && first.code == 0)
			*err = first;
	}
	pthread_mutex_unlock(&f->lock);
	if (rc < 0)
		return -1;
	if (answer <= 0)
		return err_errno(err, (int)-answer, "fork an agent");
	*ret_pid = (pid_t)answer;
	return 0;
}

struct forkserver *forkserver_free(struct forkserver *f)
{
	if (!f)
		return NULL;
	stop(f);
	pthread_mutex_destroy(&f->lock);
	for (size_t i = 0; f->env[i]; i++)
		free(f->env[i]);
	free(f->env);
	free(f->name);
	free(f);
	return NULL;
}
