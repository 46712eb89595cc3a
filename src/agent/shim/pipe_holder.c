#include "agent/shim/pipe_holder.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "agent/shim/status.h"
#include "link/layout.h"
#include "sys/child.h"
#include "sys/title.h"

#define CHECK_MS 200
#define DIR_FD 3
#define PIPES_FD 4

static bool closed_and_empty(const struct pollfd *p, int n)
{
	for (int s = 0; s < n; s++) {
		int waiting = 0;

		/* The metrics pipe has no end of file: its reader has it open for writing. */
		if (s != STREAM_METRICS && p[s].fd >= 0 && !(p[s].revents & POLLHUP))
			return false;
		if (p[s].fd >= 0 && ioctl(p[s].fd, FIONREAD, &waiting) == 0 && waiting > 0)
			return false;
	}
	return true;
}

static bool end_is_recorded(int dirfd)
{
	struct status st;

	return status_read(dirfd, &st, NULL) == 0 && st.has_exit;
}

/* Moved to high numbers first: one may have the number that another is to get. */
static void take_descriptors(int dirfd, const int *pipes, int n, struct pollfd *p)
{
	int moved[STREAMS_MAX], end = PIPES_FD + n, dir = fcntl(dirfd, F_DUPFD, end);

	for (int s = 0; s < n; s++)
		moved[s] = fcntl(pipes[s], F_DUPFD, end);
	if (dir < 0 || dup2(dir, DIR_FD) < 0)
		_exit(1);
	for (int s = 0; s < n; s++) {
		close(PIPES_FD + s);
		p[s] = (struct pollfd){.fd = moved[s] < 0 ? -1 : dup2(moved[s], PIPES_FD + s)};
	}
	/* In particular the agent's connection: the master must see it close when the agent dies. */
	child_close_from(end);
}

static void __attribute__((noreturn)) hold(int dirfd, const int *pipes, int n)
{
	struct pollfd p[STREAMS_MAX];
	struct stat st;

	setsid();
	prctl(PR_SET_NAME, "regatta-pipes");
	title_role("hold");
	child_reset_handlers();
	take_descriptors(dirfd, pipes, n, p);
	for (;;) {
		poll(p, (nfds_t)n, CHECK_MS);
		if (fstatat(DIR_FD, LAYOUT_STATUS, &st, AT_SYMLINK_NOFOLLOW) < 0 ||
		    (closed_and_empty(p, n) && end_is_recorded(DIR_FD)))
			_exit(0);
		/* A closed pipe is always ready: without a pause this would spin while bytes wait. */
		poll(NULL, 0, CHECK_MS);
	}
}

void pipe_holder_fork(int attempt_dirfd, const int *pipes, int n)
{
	if (fork() == 0)
		hold(attempt_dirfd, pipes, n);
}
