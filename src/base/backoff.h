#pragma once
/*
 * backoff - how long to wait before the next try, when many processes may be trying.
 *
 * A random part of a span that doubles from try to try, so that agents which lost their master do not
 * all dial the next one at once.
 */
#include <stdint.h>
#include "base/rand.h"

struct backoff {
	struct rng rng;
	int64_t first_ms, max_ms, span_ms;
};

void backoff_init(struct backoff *b, int64_t first_ms, int64_t max_ms);
/* The pause before the next try. */
int64_t backoff_next(struct backoff *b);
/* Call after a success: the next pause is short again. */
void backoff_reset(struct backoff *b);
