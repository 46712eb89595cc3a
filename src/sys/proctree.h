#pragma once
/*
 * proctree - who is alive, who descends from whom, who carries a mark.
 *
 * A process is named by pid and start time, because pids are used again.  A
 * zombie counts as dead: it runs no code and holds nothing.  Reading /proc is
 * a snapshot; callers that must have nobody left repeat until a pass finds nobody.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* The name of the variable by which the processes of a node are known: agent and shim carry
 * "<mark>", the job of attempt n "<mark>.n". */
#define PROC_MARK "REGATTA_NODE_TOKEN"

struct proc_id {
	pid_t pid;
	uint64_t start; /* clock ticks since boot, as in /proc/<pid>/stat */
};

struct proc_info {
	pid_t pid, ppid;
	char state; /* R S D Z ... */
	uint64_t start;
	uint64_t cpu_ticks;    /* user + system, itself and its reaped children */
	uint64_t memory_bytes; /* resident */
};

/* false if there is no such process. */
bool proc_read(pid_t pid, struct proc_info *ret);
/* Is it still the same process, and not a zombie? */
bool proc_alive(struct proc_id id);
/* The calling or another process by pid; start is 0 if it is not there. */
struct proc_id proc_id_of(pid_t pid);

/* The kernel's id of this boot; "" if it cannot be read. */
#define PROC_BOOT_ID 64
void proc_boot_id(char out[static PROC_BOOT_ID]);

struct proc_list {
	struct proc_info *v;
	size_t n, cap;
};
void proc_list_release(struct proc_list *l);
/* Everything below root, root itself not included, zombies not included. */
void proc_descendants(pid_t root, struct proc_list *out);
/* Every process of our own user whose environment at exec had the entry `entry`, e.g. "NAME=value"; with
 * `prefix` an entry that only starts so counts too.  The caller itself is left out.  Zombies are not included. */
void proc_with_env(const char *entry, bool prefix, struct proc_list *out);

/* The same question about one process. */
bool proc_carries(pid_t pid, const char *entry);

/* SIGKILL to each that is still the process that was listed. */
void proc_kill(const struct proc_list *l);
/* A descriptor that becomes readable when the process has ended, also for a process that is not our child;
 * -1 if it is gone already or the kernel has no such thing (errno ESRCH or ENOSYS). */
int proc_open(struct proc_id id);
