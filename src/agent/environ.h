#pragma once
/* environ - the job's environment: what the master sent, and the little that only the node knows. */
#include "link/message.h"

/* The PATH of a job that sets none. */
#define ENVIRON_PATH "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

/* NULL-terminated, owned: environ_freep.  The mark and REGATTA_METRICS are always ours; PATH, HOME and
 * PYTHONUNBUFFERED are filled in if the master sent none. */
const char **environ_make(const struct message_start *m, const char *mark,
			  const char *metrics_fifo);
/* The value; "" if there is none. */
const char *environ_get(const char *const *env, const char *name);
void environ_freep(const char ***env);
