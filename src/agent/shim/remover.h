#pragma once
/* remover - a process that removes the containers of a node (sys/container.h), so that its owner need not wait. */
#include <sys/types.h>

/* Forks it; -1 with errno.  dirfd has the record.  Its exit code is one of these; any other means that containers
 * may be left. */
pid_t remover_fork(int dirfd);
#define REMOVER_DONE 0
#define REMOVER_OOM 2 /* done, and one of the containers had reached its memory limit */
#define REMOVER_LIMITED                                                                            \
	3 /* done; it has a memory limit, and its program does not say that it was reached */
