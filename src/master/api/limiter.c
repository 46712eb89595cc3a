#include "master/api/limiter.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"

#define MS_PER_TRY (1000 / LIMITER_BURST)

struct failing {
	char address[64];
	int64_t last_ms;
	int64_t spent_ms; /* sum of what the failures cost, reduced as time passes */
};

struct limiter {
	struct failing v[LIMITER_ADDRESSES];
	size_t n;
};

struct limiter *limiter_new(void)
{
	return xcalloc(1, sizeof(struct limiter));
}

struct limiter *limiter_free(struct limiter *l)
{
	free(l);
	return NULL;
}

static struct failing *find(struct limiter *l, struct str address, int64_t now_ms)
{
	struct failing *oldest = &l->v[0];

	for (size_t i = 0; i < l->n; i++) {
		if (str_is(address, l->v[i].address))
			return &l->v[i];
		if (l->v[i].last_ms < oldest->last_ms)
			oldest = &l->v[i];
	}
	if (l->n < LIMITER_ADDRESSES)
		oldest = &l->v[l->n++];
	*oldest = (struct failing){.last_ms = now_ms};
	snprintf(oldest->address, sizeof(oldest->address), "%.*s", STR_ARG(address));
	return oldest;
}

bool limiter_failed(struct limiter *l, struct str address, int64_t now_ms)
{
	struct failing *f = find(l, address, now_ms);
	int64_t passed = now_ms - f->last_ms;

	f->spent_ms = passed < f->spent_ms ? f->spent_ms - passed : 0;
	f->last_ms = now_ms;
	if (f->spent_ms + MS_PER_TRY > MS_PER_TRY * LIMITER_BURST)
		return false;
	f->spent_ms += MS_PER_TRY;
	return true;
}
