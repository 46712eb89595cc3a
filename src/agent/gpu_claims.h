#pragma once
/*
 * gpu_claims - the GPUs of the machine that are this node's: no other run, of any master, has them.
 *
 * They are claimed (claim.h) before the job starts, and stay claimed until agent and shim have left.  Their
 * numbers are in a file of the node's directory: an agent that comes after a crash claims the same ones, those
 * that the shim still has before the next attempt.
 */
#include <stddef.h>
#include <stdint.h>

struct err;

#define GPU_CLAIMS_MAX 64

struct gpu_claims {
	int fds[GPU_CLAIMS_MAX]; /* in rising order */
	size_t n;
	char list[GPU_CLAIMS_MAX * 3 + 1]; /* "0,2,3", as CUDA_VISIBLE_DEVICES has it */
};

/* Claims `want` of the machine's GPUs; nothing if it has that many already.  ERR_CAPACITY: there are not as many,
 * or others have them. */
int gpu_claims_take(struct gpu_claims *g, const char *node_dir, int64_t want, struct err *err);
/* After a crash of the agent, and before each attempt: claims those of the file that are free. */
void gpu_claims_resume(struct gpu_claims *g, const char *node_dir);
void gpu_claims_release(struct gpu_claims *g);
