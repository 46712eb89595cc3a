#pragma once
/*
 * container - the program of this machine that runs containers, and the removal of a node's containers.
 *
 * A node that runs containers has a record in its directory, written before the first of them is made: the program,
 * and the label that all containers of the node have.  Containers may outlive the program that has started them, so
 * whoever cleans up after the node (shim, agent, driver) removes all that have the label.
 */
#include <stdbool.h>
#include <limits.h>
#include <stddef.h>

struct buf;
struct deadline;
struct err;

enum container_kind { CONTAINER_DOCKER, CONTAINER_NVIDIA_DOCKER, CONTAINER_PODMAN };

struct container_tool {
	enum container_kind kind;
	bool gpus; /* containers can be given the GPUs of this machine */
	char program[PATH_MAX];
	const char *in_place_of; /* a program that comes before it and does not answer; NULL */
};

#define CONTAINER_LABEL "regatta.node"
#define CONTAINER_LABEL_MAX 256
struct container_record {
	struct container_tool tool;
	char label[CONTAINER_LABEL_MAX]; /* value of CONTAINER_LABEL */
	bool limited; /* the containers have a memory limit: they stay until it was asked whether it was reached */
};

/* Find docker, else podman, in `path`; with GPUs nvidia-docker before both.  Of several, the first that answers: the
 * daemon of docker may not run.  ERR_NOT_FOUND: there is none. */
int container_find(const char *path, bool has_gpus, struct container_tool *ret, struct err *err);

/* The file `name` in dirfd (AT_FDCWD: a path).  Reading ERR_NOT_FOUND: the node has no containers. */
int container_record_write(int dirfd, const char *name, const struct container_record *r,
			   struct err *err);
int container_record_read(int dirfd, const char *name, struct container_record *ret,
			  struct err *err);

/* Run the program with these words (ends with NULL) and append what it prints to out.  *ret_code: its exit code. */
int container_call(const struct container_tool *t, const char *const *words,
		   const struct deadline *d, struct buf *out, int *ret_code, struct err *err);
/* Wait until the container of this name runs. */
int container_wait(const struct container_tool *t, const char *name, const struct deadline *d,
		   struct err *err);
/* Kill and remove all containers with the record's label.  0: the program says that there are none.  *ret_oom is
 * set if one of them had reached its memory limit. */
int container_remove(const struct container_record *r, const struct deadline *d, bool *ret_oom,
		     struct err *err);
