#pragma once
/*
 * proctree - find processes in /proc: alive, descendants of a process, with a mark.
 *
 * A process is identified by pid and start time, because pids are reused.  A zombie counts as dead: it
 * runs no code and holds no resources.  A list is a snapshot; a caller that has to kill all processes
 * repeats until it finds none.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* The variable by which the processes of a node are found: agent and shim have "<mark>", the job of
 * attempt n "<mark>.n". */
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
/* The identity of a process; start is 0 if it does not exist. */
struct proc_id proc_id_of(pid_t pid);

/* The kernel's id of this boot; "" if it cannot be read. */
#define PROC_BOOT_ID 64
void proc_boot_id(char out[static PROC_BOOT_ID]);

struct proc_list {
	struct proc_info *v;
	size_t n, cap;
};
void proc_list_release(struct proc_list *l);
/* All descendants of root, without root and without zombies. */
void proc_descendants(pid_t root, struct proc_list *out);
/* All processes of the same user whose environment at exec had `entry`, e.g. "NAME=value", or, with `prefix`,
 * an entry that begins with it.  Without the caller and without zombies. */
void proc_with_env(const char *entry, bool prefix, struct proc_list *out);

/* Has one process this entry in its environment? */
bool proc_carries(pid_t pid, const char *entry);

/* SIGKILL to each listed process, unless its pid was reused. */
void proc_kill(const struct proc_list *l);
/* A pidfd, readable when the process has ended; it need not be a child.  -1 if the process is gone or the
 * kernel has no pidfds (errno ESRCH or ENOSYS). */
int proc_open(struct proc_id id);
