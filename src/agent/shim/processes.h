#pragma once
/*
 * processes - the main process of a job that has several processes on its node.
 *
 * Forked by the shim in the place of the job's program, it starts the processes, waits for them and
 * ends as they did: with 0 when all have ended with 0, else with the code or signal of the first that
 * failed.  That one's failure also ends the others: SIGTERM, and after the grace period SIGKILL.
 * All are in its process group and in the job's cgroup, so whoever supervises the main process stops
 * and kills all of them, as with a job of one process.  The end of each is in the status file before
 * it is reaped.
 */
#include <stdint.h>

struct processes {
	int n;
	int status_fd;
	int64_t grace_ms;
	int report; /* a pipe: closed when every process runs its program */
	/* In the new process: run the program of process `local`. */
	void (*run)(void *ctx, int local);
	void *ctx;
};

void __attribute__((noreturn)) processes_main(const struct processes *ps);
