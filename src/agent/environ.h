#pragma once
/* environ - the job's environment: the variables of START, and those that only the agent knows. */
#include "link/message.h"

/* The PATH of a job that sets none. */
#define ENVIRON_PATH "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

/* Where variables come from that START does not have. */
enum environ_rest {
	ENVIRON_FEW,   /* the few that are named below */
	ENVIRON_IMAGE, /* the image of the container that the job is put into */
	ENVIRON_OWN, /* all those of the agent, which is in the container with the job; not REGATTA_* */
};

/* NULL-terminated, freed by environ_freep.  The mark and REGATTA_METRICS are always set by the agent;
 * PATH, HOME and PYTHONUNBUFFERED are added if START has none; not PATH and HOME with ENVIRON_IMAGE, which has
 * them. */
const char **environ_make(const struct message_start *m, const char *mark, const char *metrics_fifo,
			  enum environ_rest rest);
/* The value of a variable; "" if it is not set. */
const char *environ_get(const char *const *env, const char *name);
void environ_freep(const char ***env);
