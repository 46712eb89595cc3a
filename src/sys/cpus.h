#pragma once
/* cpus - the CPUs that a process may use, and shares of them. */
#include <sched.h>
#include <stdbool.h>

struct arena;

#define CPUS_MAX (8 * CPU_SETSIZE) /* as many as Linux can have */
struct cpus {
	cpu_set_t v[CPUS_MAX / CPU_SETSIZE];
};

/* Those that this process may use; false: the kernel does not say. */
bool cpus_allowed(struct cpus *ret);
/*
 * The share of process `i` of `n`: consecutive ones of `all`, in the order of their numbers.  Shares do not overlap,
 * have all CPUs together, and differ by one at most.  False: there are fewer CPUs than processes.
 */
bool cpus_share(const struct cpus *all, int n, int i, struct cpus *ret);
/* This process and those that it starts use no others. */
int cpus_bind(const struct cpus *c);
/* "0-3,8" */
const char *cpus_text(const struct cpus *c, struct arena *a);
