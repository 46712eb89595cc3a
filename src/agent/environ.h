#pragma once
/* environ - the job's environment: the variables of START, and those that only the agent knows. */
#include "link/message.h"

/* The PATH of a job that sets none. */
#define ENVIRON_PATH "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

/* NULL-terminated, freed by environ_freep.  The mark and REGATTA_METRICS are always set by the agent;
 * PATH, HOME and PYTHONUNBUFFERED are added if START has none. */
const char **environ_make(const struct message_start *m, const char *mark,
			  const char *metrics_fifo);
/* The value of a variable; "" if it is not set. */
const char *environ_get(const char *const *env, const char *name);
void environ_freep(const char ***env);
