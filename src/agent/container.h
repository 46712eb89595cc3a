#pragma once
/*
 * container - the command line that runs a job in a container, and the environment of the program that does it.
 *
 * The container shares the machine's network and shared memory, has the node's directories at the same paths, runs as
 * the user whom the agent is, and its name says which attempt of which node it is, so that it cannot be started twice.
 * Values of variables go through the environment of the program, not through its command line.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include "sys/container.h"

struct arena;

#define CONTAINER_MOUNTS 4
struct container_job {
	const struct container_record *record;
	const char *name;
	const char *image;
	const char *workdir;		      /* NULL: that of the image */
	const char *mounts[CONTAINER_MOUNTS]; /* directories; those after the last are NULL */
	const char *const *env;		      /* of the job, NAME=VALUE; ends with NULL */
	const char *const *argv;	      /* of the job; ends with NULL */
	uint64_t memory;		      /* bytes; 0: no limit */
	const char *cpus;		      /* "0-3"; NULL: all */
	bool pty;
	uid_t uid;
	gid_t gid;
};

const char *const *container_argv(const struct container_job *j, struct arena *a);
/* A command in the container that runs, with its environment; term: of the terminal that it gets, NULL: none. */
const char *const *container_exec_argv(const struct container_tool *t, const char *name,
				       const char *term, const char *const *argv, struct arena *a);
/* own (the agent's environment) with the job's variables that container_argv() does not write out. */
const char *const *container_env(const struct container_job *j, const char *const *own,
				 struct arena *a);
