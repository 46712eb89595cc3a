#pragma once
/*
 * faulty_vfs - a disk that fails when told to, between SQLite and the real one.
 *
 * Every call that can fail on a real disk is counted.  The nth one fails: once,
 * or from then on; with EIO, with a full disk (half of the write is done), or as
 * a power cut, after which every call fails and faulty_power_on() leaves of the
 * writes that were not synced only those that the seed chose, some of them torn.
 * Works with an exclusive connection only (no shared memory).
 */
#include <stdbool.h>
#include <stdint.h>

enum fault {
	FAULT_IO_ONCE,
	FAULT_IO_FOREVER,
	FAULT_FULL_ONCE,
	FAULT_FULL_FOREVER,
	FAULT_POWER_CUT
};
#define FAULTS (FAULT_POWER_CUT + 1)

void faulty_install(void); /* as SQLite's default, for the process's life */
/* Start counting; at 0 nothing fails. */
void faulty_arm(enum fault fault, uint64_t at);
/* No more faults.  False if the moment never came. */
bool faulty_disarm(void);
uint64_t faulty_syncs(void); /* done since faulty_arm() */
uint64_t faulty_ops(void);
/* After the cut, and after everything was closed. */
void faulty_power_on(uint64_t seed);
