#include "agent/shim/pipe_holder.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "agent/shim/spool.h"
#include "link/frame.h"
#include "link/layout.h"
#include "sys/child.h"
#include "sys/title.h"

#define CHECK_MS 200
#define DIR_FD 3

static bool closed_and_empty(const struct pollfd p[static STREAMS])
{
	for (int s = 0; s < STREAMS; s++) {
		int waiting = 0;

		/* The metrics pipe has no last writer that could be waited for. */
		if (s != STREAM_METRICS && p[s].fd >= 0 && !(p[s].revents & POLLHUP))
			return false;
		if (p[s].fd >= 0 && ioctl(p[s].fd, FIONREAD, &waiting) == 0 && waiting > 0)
			return false;
	}
	return true;
}

static void __attribute__((noreturn)) hold(int dirfd)
{
	struct pollfd p[STREAMS];
	struct stat st;

	setsid();
	prctl(PR_SET_NAME, "regatta-pipes");
	title_role("hold");
	child_reset_handlers();
	/* Above all the agent's connection: the master must see it close when the agent dies. */
	if (dirfd != DIR_FD && dup2(dirfd, DIR_FD) < 0)
		_exit(1);
	dirfd = DIR_FD;
	child_close_from(DIR_FD + 1);
	for (int s = 0; s < STREAMS; s++) {
		char file[16], fifo[16];

		spool_names((enum stream)s, file, fifo);
		p[s] = (struct pollfd){
			.fd = openat(dirfd, fifo, O_RDONLY | O_NONBLOCK | O_CLOEXEC | O_NOFOLLOW)};
	}
	for (;;) {
		poll(p, STREAMS, CHECK_MS);
		if (closed_and_empty(p) ||
		    fstatat(dirfd, LAYOUT_STATUS, &st, AT_SYMLINK_NOFOLLOW) < 0)
			_exit(0);
		/* A closed pipe is always ready: without a pause this would spin while bytes wait. */
		poll(NULL, 0, CHECK_MS);
	}
}

void pipe_holder_fork(int attempt_dirfd)
{
	if (fork() == 0)
		hold(attempt_dirfd);
}
