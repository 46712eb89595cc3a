#include "base/backoff.h"

void backoff_init(struct backoff *b, int64_t first_ms, int64_t max_ms)
{
	*b = (struct backoff){.first_ms = first_ms, .max_ms = max_ms, .span_ms = first_ms};
	rng_seed(&b->rng, rand_u64());
}

int64_t backoff_next(struct backoff *b)
{
	int64_t pause = (int64_t)rng_below(&b->rng, (uint64_t)b->span_ms + 1);

	b->span_ms = b->span_ms * 2 < b->max_ms ? b->span_ms * 2 : b->max_ms;
	return pause;
}

void backoff_reset(struct backoff *b)
{
	b->span_ms = b->first_ms;
}
