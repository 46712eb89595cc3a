#pragma once
/*
 * off_timer - the timer that switches off a machine that was made for a run.
 *
 * The script with which the machine boots arms it first; whoever speaks for a living master moves it
 * on.  The time is in a file too, so that the script finds it when the machine boots again.
 */
#include <stdint.h>

struct err;

/* Writes the time (Unix seconds) to the file, then arms the timer, which replaces the one before. */
int off_timer_set(const char *file, int64_t wall_ms, struct err *err);
/* Switches the machine off now. */
int off_now(struct err *err);
