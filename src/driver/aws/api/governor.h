#pragma once
/*
 * governor - how fast a session may call: a token bucket for each action, with EC2's own figures
 * (EC2 API reference, "Request throttling"), which hold per account and region.
 *
 * Each action has a bucket of its own, so deletes never wait for creates.  RunInstances and the
 * like have a second one, in which each instance counts.  An answer that says "too fast" empties
 * the bucket: others of the account use it too.  Safe on any thread; time is the caller's
 * (clock_boot_ms()).
 */
#include <stdint.h>

struct governor;

struct governor *governor_new(void);
/* NULL is allowed.  Returns NULL. */
struct governor *governor_free(struct governor *g);
/* Takes what a call of service:action for `resources` instances needs: 0, or how many ms to wait
 * until it can be had (nothing was taken). */
int64_t governor_take(struct governor *g, const char *service, const char *action,
		      int64_t resources, int64_t now_ms);
/* The service answered that calls come too fast. */
void governor_throttled(struct governor *g, const char *service, const char *action,
			int64_t now_ms);
