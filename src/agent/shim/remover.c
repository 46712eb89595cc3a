#include "agent/shim/remover.h"

#include <signal.h>
#include <unistd.h>

#include "base/deadline.h"
#include "base/err.h"
#include "link/layout.h"
#include "sys/child.h"
#include "sys/container.h"

#define LIMIT_MS 20000

static int remove_all(int dirfd)
{
	const struct deadline d = deadline_in(LIMIT_MS, NULL);
	struct container_record r;
	bool oom = false;

	if (container_record_read(dirfd, LAYOUT_CONTAINER, &r, NULL) < 0 ||
	    container_remove(&r, &d, &oom, NULL) < 0)
		return 1;
	return oom ? REMOVER_OOM : r.limited ? REMOVER_LIMITED : REMOVER_DONE;
}

pid_t remover_fork(int dirfd)
{
	sigset_t all, before;
	pid_t pid;

	/* The owner's handlers must not run in the child. */
	sigfillset(&all);
	sigprocmask(SIG_SETMASK, &all, &before);
	pid = fork();
	if (pid == 0) {
		child_reset_signals();
		_exit(remove_all(dirfd));
	}
	sigprocmask(SIG_SETMASK, &before, NULL);
	return pid;
}
