#include "agent/rank_tee.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <termios.h>
#include <unistd.h>

#include "agent/shim/spool.h"
#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/file.h"
#include "base/path.h"
#include "link/layout.h"
#include "sys/child.h"

#define CODE_USAGE 2
#define CODE_NOT_RUN 126
#define CODE_NO_PROGRAM 127
#define OUTPUTS 2

/* One of the rank's outputs; -1: not open. */
struct copied {
	int rank; /* what the rank writes to */
	int from; /* the other end of that */
	int to;	  /* what the launcher has given */
	int log;  /* the FIFO of the node's log */
};

bool rank_tee_is(const char *argv0)
{
	return argv0 && strcmp(path_base(argv0), LAYOUT_TEE) == 0;
}

/* ---- what the rank writes to ---- */

/* A terminal where the launcher has given one, so that the rank writes its lines as they come. */
static int open_terminal(struct copied *c)
{
	struct termios modes;
	char name[64];

	c->from = posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC);
	if (c->from < 0 || unlockpt(c->from) < 0 || ptsname_r(c->from, name, sizeof(name)) != 0)
		return -1;
	c->rank = open(name, O_RDWR | O_NOCTTY | O_CLOEXEC);
	return c->rank < 0 || tcgetattr(c->to, &modes) < 0 ? -1
							   : tcsetattr(c->rank, TCSANOW, &modes);
}

static int open_pipe(struct copied *c)
{
	int p[2];

	if (pipe2(p, O_CLOEXEC) < 0)
		return -1;
	c->from = p[0];
	c->rank = p[1];
	return 0;
}

/* O_NONBLOCK, because without a reader an open would wait for ever. */
static int open_log(int dirfd, enum stream s)
{
	char file[16], fifo[16];

	spool_names(s, file, fifo);
	int fd = openat(dirfd, fifo, O_WRONLY | O_NONBLOCK | O_CLOEXEC | O_NOFOLLOW);

	if (fd >= 0)
		fcntl(fd, F_SETFL, 0);
	return fd;
}

static int open_copied(struct copied *c, int dirfd, int fd, enum stream s)
{
	c->to = fcntl(fd, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
	c->log = open_log(dirfd, s);
	if (c->to < 0 || c->log < 0)
		return -1;
	return isatty(fd) ? open_terminal(c) : open_pipe(c);
}

static void close_copied(struct copied *c)
{
	close_fdp(&c->rank);
	close_fdp(&c->from);
	close_fdp(&c->to);
	close_fdp(&c->log);
	*c = (struct copied){-1, -1, -1, -1};
}

/* ---- the process that copies ---- */

/* false: the stream has ended, or the launcher reads it no more. */
static bool copy(struct copied *c)
{
	char bytes[PIPE_BUF]; /* so many are not mixed with those of other ranks */
	ssize_t n = read(c->from, bytes, sizeof(bytes));

	if (n < 0 && errno == EINTR)
		return true;
	if (n <= 0) /* a terminal ends with EIO */
		return false;
	if (c->log >= 0 && file_write_all(c->log, bytes, (size_t)n, NULL) < 0) {
		close_fdp(&c->log);
		c->log = -1;
	}
	return file_write_all(c->to, bytes, (size_t)n, NULL) == 0;
}

static void __attribute__((noreturn)) copier_main(struct copied v[static OUTPUTS])
{
	struct pollfd p[OUTPUTS];
	int left = 0;

	prctl(PR_SET_NAME, LAYOUT_TEE);
	for (int i = 0; i < OUTPUTS; i++) {
		p[i] = (struct pollfd){.fd = v[i].from, .events = POLLIN};
		left += v[i].from >= 0;
	}
	while (left > 0) {
		if (poll(p, OUTPUTS, -1) < 0)
			continue;
		for (int i = 0; i < OUTPUTS; i++) {
			if (!p[i].revents || copy(&v[i]))
				continue;
			close_copied(&v[i]);
			p[i].fd = -1;
			left--;
		}
	}
	_exit(0);
}

/* Everything but the descriptors of the streams: above all the rank's input, which must end with the rank. */
static void keep_only(struct copied v[static OUTPUTS])
{
	int *all[OUTPUTS * 3], n = 0;

	for (int i = 0; i < OUTPUTS; i++) {
		all[n++] = &v[i].from;
		all[n++] = &v[i].to;
		all[n++] = &v[i].log;
		v[i].rank = -1;
	}
	/* Moved to high numbers first: one may have another's target number. */
	for (int i = 0; i < n; i++)
		if (*all[i] >= 0 && (*all[i] = fcntl(*all[i], F_DUPFD, n)) < 0)
			_exit(1);
	for (int i = 0; i < n; i++) {
		if (*all[i] >= 0)
			*all[i] = dup2(*all[i], i);
		else
			close(i);
	}
	child_close_from(n);
	(void)!chdir("/");
}

/* Signals to the rank's group do not end it: it has to bring what is still on its way. */
static void leave_group(void)
{
	sigset_t all;

	setsid();
	sigfillset(&all);
	sigprocmask(SIG_SETMASK, &all, NULL);
}

/* No child of the rank, which may wait for children of its own.  It has left the group before the rank goes on. */
static int start_copier(struct copied v[static OUTPUTS])
{
	pid_t pid = fork();

	if (pid == 0) {
		leave_group();
		pid = fork();
		if (pid != 0)
			_exit(pid < 0 ? 1 : 0);
		keep_only(v);
		copier_main(v);
	}
	int status = 0;

	if (pid < 0)
		return -1;
	while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	return status == 0 ? 0 : -1;
}

/* ---- the rank ---- */

static bool are_one(int a, int b)
{
	struct stat x, y;

	return fstat(a, &x) == 0 && fstat(b, &y) == 0 && x.st_dev == y.st_dev &&
	       x.st_ino == y.st_ino;
}

/* Where it cannot be copied the rank writes to the launcher alone. */
static int copy_output(const char *dir)
{
	struct copied v[OUTPUTS] = {{-1, -1, -1, -1}, {-1, -1, -1, -1}};
	CLEANUP(close_fdp) int dirfd = open(dir, O_PATH | O_DIRECTORY | O_CLOEXEC);
	bool one = are_one(STDOUT_FILENO, STDERR_FILENO);
	int rc = dirfd < 0 ? -1 : open_copied(&v[0], dirfd, STDOUT_FILENO, STREAM_OUT);

	if (rc == 0 && !one)
		rc = open_copied(&v[1], dirfd, STDERR_FILENO, STREAM_ERR);
	if (rc == 0)
		rc = start_copier(v);
	if (rc == 0)
		rc = dup2(v[0].rank, STDOUT_FILENO) < 0 || dup2(v[!one].rank, STDERR_FILENO) < 0
			     ? -1
			     : 0;
	int failure = errno;

	close_copied(&v[0]);
	close_copied(&v[1]);
	errno = failure;
	return rc;
}

/* Open MPI has looked for the program there ("--path"), beside PATH. */
static void add_search_path(void)
{
	const char *more = getenv("OMPI_exec_path"), *path = getenv("PATH");
	CLEANUP(freep) char *both = NULL;

	if (!more)
		return;
	both = xasprintf("%s:%s", more, path ? path : "");
	setenv("PATH", both, 1);
}

int rank_tee_main(int argc, char **argv)
{
	const char *dir = getenv("REGATTA_TEE_LOG");

	if (argc < 2) {
		fprintf(stderr, "regatta: usage: " LAYOUT_TEE " PROGRAM [ARGUMENT...]\n");
		return CODE_USAGE;
	}
	if (dir && copy_output(dir) < 0)
		fprintf(stderr, "regatta: the log of this node gets no output of '%s': %s\n",
			argv[1], strerror(errno));
	add_search_path();
	execvp(argv[1], argv + 1);
	int failure = errno;

	fprintf(stderr, "regatta: command '%s': %s\n", argv[1], strerror(failure));
	return failure == ENOENT ? CODE_NO_PROGRAM : CODE_NOT_RUN;
}
