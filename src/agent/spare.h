#pragma once
/*
 * spare - a shim that has done its work and waits for the next job.
 *
 * To fork a shim and to end it costs more than what it does for a short job.  So
 * an agent process that may serve several nodes keeps the one it has: the shim says
 * when it has nothing left, and gets the next start as a message.  There is at most
 * one; it ends when its agent does.
 */
#include <stdbool.h>
#include <sys/types.h>

struct arena;
struct shim_start;

/* ---- the agent's side: one for the whole process ---- */

/* From now on shims are kept. */
void spare_allow(void);
/* Give the job to the shim that waits.  Its pid, or 0: there is none, or the start is too long for a message. */
pid_t spare_start(const struct shim_start *s);
/* Before a fork: the end of the line for the new shim, -1 if it is not to be kept.  The caller closes it. */
int spare_prepare(void);
void spare_born(pid_t pid);
/* Readable when the shim says something; -1 if there is none. */
int spare_fd(void);
/* What it said: it waits.  One that was sent a signal is not used again and ends. */
bool spare_heard(void);
void spare_signalled(void);
/* A child of ours has ended. */
void spare_reaped(pid_t pid);

/* ---- the shim's side ---- */

/* Say that we wait, and do so.  False: there will be nothing more to do.  Strings are the arena's. */
bool spare_wait(int line, int signals, struct arena *a, struct shim_start *ret);
