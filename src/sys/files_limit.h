#pragma once
/*
 * files_limit - the limit of open files (RLIMIT_NOFILE).
 *
 * A process that holds many connections raises its own; children that are not its own work get
 * back what it was started with, because select() and some runtimes fail above 1024.
 */
#include <stdint.h>
#include <sys/types.h>

/* Up to `most`, as far as the hard limit allows.  Returns what it is now; 0 if that is unknown. */
uint64_t files_limit_raise(uint64_t most);
/* Give another process the limit from before files_limit_raise(); does nothing if that was not called. */
void files_limit_restore(pid_t pid);
