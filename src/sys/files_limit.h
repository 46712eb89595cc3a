#pragma once
/*
 * files_limit - the limit of open files (RLIMIT_NOFILE).
 *
 * A process with many connections raises its limit.  Jobs get the original limit back, because select()
 * and some runtimes fail above 1024.
 */
#include <stdint.h>
#include <sys/types.h>

/* Raise the limit to `most`, or to the hard limit.  Returns the new limit; 0 if it is unknown. */
uint64_t files_limit_raise(uint64_t most);
/* Give a process the limit from before files_limit_raise(), if that was called. */
void files_limit_restore(pid_t pid);
