#pragma once
/*
 * sim - runs the core with virtual time in a faulty world.
 *
 * One seed is one history: it draws the faults (machines that never come up, die, restart or
 * hang; lost, late and repeated answers; refusals; slow or failing deletion; a master that
 * crashes at any point) and everything that happens.  The same seed gives the same trace hash.
 * After a while the faults cease, and the run must end within bounded time with nothing left.
 */
#include <stdbool.h>
#include <stdint.h>

struct sim_options {
	uint64_t first_seed;
	int64_t seeds;
	int nodes;   /* at most, per run; each seed draws its own number */
	int verbose; /* 1: a line per seed, 2: the whole history */
	bool json;
};

/* 0, or 1 if an invariant was broken (each is printed with its seed). */
int sim_main(const struct sim_options *o);

struct sim_result {
	uint64_t seed, hash;
	bool broken;
	char what[200]; /* the invariant and the time */
	int verdict;	/* enum verdict */
	bool gone;	/* the master never came back: there may be no verdict */
	int64_t sim_ms;
	int events, crashes, faults;
};
/* Runs one history. */
void sim_run(uint64_t seed, int max_nodes, int verbose, struct sim_result *ret);
/* Runs one history of a suite (suite.c). */
void sim_suite(uint64_t seed, int verbose, struct sim_result *ret);
