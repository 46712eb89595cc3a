#pragma once
/*
 * deadline - how long a blocking call may wait, and a flag that ends it earlier.
 *
 * Work on a thread of its own gets one (sys/worker.h), and every wait of net/ that blocks
 * takes one: resolve, connect, handshake, send, read.  The stop flag is a plain int that another thread or a signal
 * handler sets to anything but 0; it is read before each wait, when a signal
 * interrupts the wait, and at least every DEADLINE_CHECK_MS.
 */
#include <stdint.h>

struct err;

#define DEADLINE_CHECK_MS 100

struct deadline {
	int64_t at_ms;		  /* on clock_boot_ms(); INT64_MAX: none */
	const volatile int *stop; /* NULL: no flag */
};

/* timeout_ms from now; negative: no deadline. */
struct deadline deadline_in(int timeout_ms, const volatile int *stop);
/* The time left, 0 when the deadline has passed; INT64_MAX without one. */
int64_t deadline_left_ms(const struct deadline *d);
/* The same stop flag, but at most max_ms from now. */
struct deadline deadline_within(const struct deadline *d, int64_t max_ms);
/* How long the next poll() may wait (-1: for ever), so that the stop flag is seen in time. */
int deadline_slice_ms(const struct deadline *d);
/* 0, or -1: ERR_CANCELLED if stopped, ERR_TIMEOUT if the deadline has passed; the text says that `what` did not happen. */
int deadline_check(const struct deadline *d, const char *what, struct err *err);
/* Wait for poll() events on fd: returns its revents (> 0), or -1 as deadline_check(). */
int deadline_poll(const struct deadline *d, int fd, short events, const char *what,
		  struct err *err);
