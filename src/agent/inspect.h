#pragma once
/*
 * inspect - what do the processes of the job do?  Asked by the master's hang watchdog (INSPECT).
 *
 * A forked task reads /proc: state, place in the kernel and open sockets of each process, and what
 * py-spy or gdb say of the busiest ones, if the machine has them.  The answer is INSPECTED: one line that
 * can be compared with that of other nodes, and the whole text.
 */
#include <stdbool.h>
#include <sys/types.h>
#include "base/str.h"

struct agent;
struct buf;
struct proc_info;

void inspect_start(struct agent *a);
void inspect_release(struct agent *a);
bool inspect_is_task(const struct agent *a, pid_t pid);
void inspect_reaped(struct agent *a, pid_t pid);

/* "S sleeps in futex_wait_queue, system call 202"; `syscall` as in /proc/PID/syscall, wchan "" or "0" if
 * the kernel does not tell it. */
void inspect_line(char state, struct str wchan, struct str syscall, struct buf *out);
/* A line for each connection of /proc/PID/net/tcp whose inode is among these. */
void inspect_sockets(struct str table, const unsigned long *inodes, size_t n, struct buf *out);
