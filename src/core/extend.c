#include "core/extend.h"

#define EXTEND_EVERY_MS (60LL * 60 * 1000)

static bool ends_by_itself(const struct plan *p)
{
	for (int i = 0; i < p->nresources; i++)
		if (p->resources[i].expires)
			return true;
	return false;
}

void extend_start(struct step *s, bool now)
{
	struct core_run *r = s->r;

	if (r->plan->job->max_runtime_ms || !ends_by_itself(r->plan))
		return;
	r->extend_at_ms = s->now + (now ? 0 : EXTEND_EVERY_MS);
	r->extend_next = 0;
	tick_want(s, r->extend_at_ms);
}

void extend_tick(struct step *s)
{
	struct core_run *r = s->r;

	if (!r->extend_at_ms)
		return;
	if (s->now >= r->extend_at_ms) {
		int end = slice_end(s, r->extend_next, r->plan->nresources);

		for (; r->extend_next < end; r->extend_next++)
			if (r->plan->resources[r->extend_next].expires)
				res_extend(s, r->extend_next);
		if (end < r->plan->nresources)
			return;
		r->extend_at_ms = s->now + EXTEND_EVERY_MS;
		r->extend_next = 0;
	}
	tick_want(s, r->extend_at_ms);
}
