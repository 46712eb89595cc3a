#pragma once
/*
 * admission - a history of many runs that wait for resources of one machine, or of hosts that are taken whole.
 *
 * Runs come, end, are cancelled while they wait, and the master is lost between two admissions: it knows
 * from their phases who holds what.  Checked: nothing is given twice (I28), nobody overtakes (I29), everybody
 * gets his turn when no more come (I30).
 */
#include <stdint.h>

struct world;

void admission_run(struct world *w, uint64_t seed);
