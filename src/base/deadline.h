#pragma once
/*
 * deadline - how long a blocking call may wait, and who may end it before.
 *
 * Work on a thread of its own gets one (sys/worker.h), and every wait of net/ that blocks
 * takes one: resolving, connecting, shaking hands, sending, reading.  The stop flag is a plain int that another thread or a signal
 * handler sets to anything but 0; it is looked at before each wait, when a signal
 * interrupts it, and at least every DEADLINE_CHECK_MS.
 */
#include <stdint.h>

struct err;

#define DEADLINE_CHECK_MS 100

struct deadline {
	int64_t at_ms;		  /* on clock_boot_ms(); INT64_MAX: none */
	const volatile int *stop; /* NULL: nobody */
};

/* From now; a negative timeout is none. */
struct deadline deadline_in(int timeout_ms, const volatile int *stop);
/* What is left, 0 when it has passed; INT64_MAX without a deadline. */
int64_t deadline_left_ms(const struct deadline *d);
/* The same stop flag, but at most max_ms from now. */
struct deadline deadline_within(const struct deadline *d, int64_t max_ms);
/* The next wait: at most this long (-1: for ever), so that the stop flag is seen in time. */
int deadline_slice_ms(const struct deadline *d);
/* 0, or -1: ERR_CANCELLED if stopped, ERR_TIMEOUT if it has passed; `what` did not happen. */
int deadline_check(const struct deadline *d, const char *what, struct err *err);
/* Wait for poll() events on fd; what happened (> 0), or -1 as above. */
int deadline_poll(const struct deadline *d, int fd, short events, const char *what,
		  struct err *err);
