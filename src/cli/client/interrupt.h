#pragma once
/*
 * interrupt - SIGINT and SIGTERM while a call waits for the master.
 *
 * Outside begin and end the signals are blocked (watch_signals), and the command reads them when it can
 * act on them.  Between begin and end the first signal gives the master a second to answer, so that
 * the run can be cancelled afterwards; then, or at the second signal, the flag is set and
 * the call ends.  One call at a time, in the main thread.
 */
struct err;

int interrupt_begin(struct err *err);
/* For the stop flag of an api. */
extern const volatile int *const interrupt_flag;
/* Blocks the signals again.  One that came and did not set the flag is pending afterwards. */
void interrupt_end(void);
