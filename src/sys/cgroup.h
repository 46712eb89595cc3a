#pragma once
/*
 * cgroup - the control groups of a job: to kill it as a whole, to limit and measure its memory.
 *
 * Works with cgroup v2 alone, v1 alone and both side by side (v2 without controllers for killing, v1
 * for memory).  Without permission cg->unified or cg->memory is empty, and the caller falls back to
 * walking /proc.  Paths are absolute, so that a later process can find and remove the groups.
 */
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct err;
struct proc_list;

#define CGROUP_PATH_MAX 512

struct cgroup {
	char unified[CGROUP_PATH_MAX]; /* directory in the v2 hierarchy; "" = none */
	char memory[CGROUP_PATH_MAX];  /* directory in the v1 memory hierarchy; "" = none */
	/* The v2 directory was there before, and what was inside may have been killed.  Kernels with a
	 * counter of these kills (since 6.14) kill whatever CLONE_INTO_CGROUP puts there later. */
	bool used;
};

/* The paths for a group called `name`: below the calling process's groups that are writable.  Makes nothing. */
void cgroup_place(const char *name, struct cgroup *ret);
/* The same from given texts of /proc/self/mountinfo and /proc/self/cgroup (no check of permission). */
void cgroup_place_from(const char *mountinfo, const char *groups, const char *name,
		       struct cgroup *ret);

/* Make the directories; the path of one that cannot be made becomes "".  Idempotent. */
void cgroup_make(struct cgroup *cg, bool want_memory);
/* For groups that an earlier process may have made: the path of one that is not there becomes "". */
void cgroup_find(struct cgroup *cg);
/* ERR_UNAVAILABLE when no memory controller can be used here. */
int cgroup_limit_memory(struct cgroup *cg, uint64_t bytes, struct err *err);
/* A descriptor of the v2 directory for CLONE_INTO_CGROUP; -1 if there is none, or it is used: enter it then. */
int cgroup_open(const struct cgroup *cg);
/* Move the calling process into the group, if clone3 could not.  Async-signal-safe: no allocation. */
int cgroup_enter_memory(const struct cgroup *cg);
int cgroup_enter_unified(const struct cgroup *cg);

/* Is any live process inside?  false also when there is no group. */
bool cgroup_populated(const struct cgroup *cg);
/* SIGKILL to everything inside, forks included. */
void cgroup_kill(const struct cgroup *cg);
/* Every process inside, for messages and sums. */
void cgroup_procs(const struct cgroup *cg, struct proc_list *out);
/* true when no directory is left. */
bool cgroup_remove(const struct cgroup *cg);

uint64_t cgroup_oom_kills(const struct cgroup *cg);
/* false when the kernel has no such value for the group. */
bool cgroup_cpu_us(const struct cgroup *cg, uint64_t *ret);
bool cgroup_memory_bytes(const struct cgroup *cg, uint64_t *ret);
