#pragma once
/*
 * preempt - the notice that this machine will be taken.
 *
 * It is asked for regularly (notice.h) until it has come.  Then it is written to the file that the
 * job knows as REGATTA_PREEMPT_FILE, the job gets the signal that its job file chooses, and the
 * master is told, after every HELLO again.  The file outlives the agent.
 */
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct agent;

void preempt_init(struct agent *a);
void preempt_release(struct agent *a);
/* Tell the master, unless this connection has heard it. */
void preempt_tell(struct agent *a);
/* Path of the file, to be freed. */
char *preempt_file(const struct agent *a);
bool preempt_is_task(const struct agent *a, pid_t pid);
void preempt_reaped(struct agent *a, pid_t pid);
