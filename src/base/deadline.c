#include "base/deadline.h"

#include <errno.h>
#include <poll.h>

#include "base/clock.h"
#include "base/err.h"

struct deadline deadline_in(int timeout_ms, const volatile int *stop)
{
	return (struct deadline){timeout_ms < 0 ? INT64_MAX : clock_boot_ms() + timeout_ms, stop};
}

int64_t deadline_left_ms(const struct deadline *d)
{
	if (d->at_ms == INT64_MAX)
		return INT64_MAX;
	int64_t left = d->at_ms - clock_boot_ms();

	return left > 0 ? left : 0;
}

struct deadline deadline_within(const struct deadline *d, int64_t max_ms)
{
	int64_t at = clock_boot_ms() + max_ms;

	return (struct deadline){at < d->at_ms ? at : d->at_ms, d->stop};
}

int deadline_slice_ms(const struct deadline *d)
{
	int64_t left = deadline_left_ms(d);

	if (d->stop && left > DEADLINE_CHECK_MS)
		return DEADLINE_CHECK_MS;
	return left > INT32_MAX ? -1 : (int)left;
}

int deadline_check(const struct deadline *d, const char *what, struct err *err)
{
	if (d->stop && *d->stop)
		return err_set(err, ERR_CANCELLED, "cancelled");
	if (deadline_left_ms(d) == 0)
		return err_set(err, ERR_TIMEOUT, "%s in time", what);
	return 0;
}

int deadline_poll(const struct deadline *d, int fd, short events, const char *what, struct err *err)
{
	for (;;) {
		struct pollfd p = {.fd = fd, .events = events};

		if (d->stop && *d->stop)
			return err_set(err, ERR_CANCELLED, "cancelled");
		int n = poll(&p, 1, deadline_slice_ms(d));

		if (n > 0)
			return p.revents;
		if (n < 0 && errno != EINTR)
			return err_errno(err, errno, "wait for a socket");
		/* Only after the poll: an event that is already pending counts even when no time is left. */
		if (n == 0 && deadline_check(d, what, err) < 0)
			return -1;
	}
}
