#pragma once
/*
 * limiter - how often an address may fail to prove who it is.  Pure.
 *
 * Each address has LIMITER_BURST failures and gets as many back each second.  What
 * is right always passes: a stranger on the same address cannot lock anybody out.
 */
#include <stdbool.h>
#include <stdint.h>
#include "base/str.h"

#define LIMITER_BURST 10
#define LIMITER_ADDRESSES 1024 /* remembered; the one that failed longest ago is forgotten */

struct limiter;
struct limiter *limiter_new(void);
struct limiter *limiter_free(struct limiter *l);
/* One more failure; false when it is one too many. */
bool limiter_failed(struct limiter *l, struct str address, int64_t now_ms);
