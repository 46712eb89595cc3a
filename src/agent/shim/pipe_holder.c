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
#define END_FD (PIPES_FD + STREAMS)

static bool closed_and_empty(const struct pollfd p[static STREAMS])
{
	for (int s = 0; s < STREAMS; s++) {
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
static void take_descriptors(int dirfd, const int pipes[static STREAMS],
			     struct pollfd p[static STREAMS])
{
	int moved[STREAMS], dir = fcntl(dirfd, F_DUPFD, END_FD);

	for (int s = 0; s < STREAMS; s++)
		moved[s] = fcntl(pipes[s], F_DUPFD, END_FD);
	if (dir < 0 || dup2(dir, DIR_FD) < 0)
		_exit(1);
	for (int s = 0; s < STREAMS; s++) {
		close(PIPES_FD + s);
		p[s] = (struct pollfd){.fd = moved[s] < 0 ? -1 : dup2(moved[s], PIPES_FD + s)};
	}
	/* In particular the agent's connection: the master must see it close when the agent dies. */
	child_close_from(END_FD);
}

static void __attribute__((noreturn)) hold(int dirfd, const int pipes[static STREAMS])
{
	struct pollfd p[STREAMS];
	struct stat st;

	setsid();
	prctl(PR_SET_NAME, "regatta-pipes");
	title_role("hold");
	child_reset_handlers();
	take_descriptors(dirfd, pipes, p);
	for (;;) {
		poll(p, STREAMS, CHECK_MS);
		if (fstatat(DIR_FD, LAYOUT_STATUS, &st, AT_SYMLINK_NOFOLLOW) < 0 ||
		    (closed_and_empty(p) && end_is_recorded(DIR_FD)))
			_exit(0);
		/* A closed pipe is always ready: without a pause this would spin while bytes wait. */
		poll(NULL, 0, CHECK_MS);
	}
}

void pipe_holder_fork(int attempt_dirfd, const int pipes[static STREAMS])
{
	if (fork() == 0)
		hold(attempt_dirfd, pipes);
}
