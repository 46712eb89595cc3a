#pragma once
/*
 * limiter - limits how often an address may send a wrong token.  Pure.
 *
 * Each address may fail LIMITER_BURST times at once, and as often again in each further second.
 * A right token always passes, so nobody can lock out another user of the same address.
 */
#include <stdbool.h>
#include <stdint.h>
#include "base/str.h"

#define LIMITER_BURST 10
/* remembered addresses; the one that failed longest ago is replaced */
#define LIMITER_ADDRESSES 1024

struct limiter;
struct limiter *limiter_new(void);
struct limiter *limiter_free(struct limiter *l);
/* Counts one failure; false: too many. */
bool limiter_failed(struct limiter *l, struct str address, int64_t now_ms);
