/*
 * What the machines of a run cost: from the moment a resource is live until its deletion was taken,
 * by the price of the choice that it was created with.  Without a price it costs nothing.
 */
#include "core/cost.h"

#define HOUR_MS (60LL * 60 * 1000)
#define MICRO 1000000

static int64_t price_of(const struct core_run *r, int index)
{
	const struct plan_resource *pr = &r->plan->resources[index];

	return pr->prices.n ? pr->prices.v[r->resources[index].choice % (int)pr->prices.n] : 0;
}

/* A deletion that was taken at once stopped the costs when it was asked for. */
static int64_t paid_until(const struct core_resource *res, int64_t now)
{
	return res->state == RES_DELETING && res->tries == 0 ? res->since_ms : now;
}

/* Of the machine that is there now: what it is charged for. */
static int64_t current_ms(const struct core_run *r, int index, int64_t now)
{
	const struct core_resource *res = &r->resources[index];
	int64_t ms = paid_until(res, now) - res->paid_from_ms;
	int64_t least = r->plan->resources[index].least_paid_ms;

	if (!res->paid_from_ms)
		return 0;
	return ms > least ? ms : least;
}

int64_t core_paid_ms(const struct core_run *r, int index, int64_t now)
{
	return r->resources[index].paid_ms + current_ms(r, index, now);
}

/* hours x price, without an overflow: a price is below 2^31, ms below 2^40. */
static int64_t charge(int64_t ms, int64_t price)
{
	return (ms * price + HOUR_MS / 2) / HOUR_MS;
}

int64_t core_cost_of(const struct core_run *r, int index, int64_t now)
{
	return r->resources[index].paid_micro +
	       charge(current_ms(r, index, now), price_of(r, index));
}

int64_t core_cost(const struct core_run *r, int64_t now)
{
	int64_t sum = 0;

	for (int i = 0; i < r->plan->nresources; i++)
		sum += core_cost_of(r, i, now);
	return sum;
}

/* Millionths of a US dollar per hour, now. */
static int64_t rate_of(const struct core_run *r)
{
	int64_t sum = 0;

	for (int i = 0; i < r->plan->nresources; i++)
		if (r->resources[i].paid_from_ms)
			sum += price_of(r, i);
	return sum;
}

void cost_changes(struct step *s, int index, enum res_state to)
{
	struct core_resource *res = &s->r->resources[index];

	if (!s->r->plan->resources[index].prices.n)
		return;
	if (to == RES_LIVE && !res->paid_from_ms) {
		res->paid_from_ms = s->now;
	} else if ((to == RES_GONE || to == RES_INTENT) && res->paid_from_ms) {
		int64_t ms = current_ms(s->r, index, s->now);

		res->paid_ms += ms;
		res->paid_micro += charge(ms, price_of(s->r, index));
		res->paid_from_ms = 0;
	}
	tick_want(s, s->now); /* the limit is reached at another time now */
}

void cost_tick(struct step *s)
{
	struct core_run *r = s->r;
	int64_t limit = (int64_t)(r->plan->job->max_cost * MICRO);

	/* Of a run that is handed over, its own master counts. */
	if (!limit || run_stopping(r) || r->phase == RUN_ACCEPTED || r->plan->hands_over)
		return;
	int64_t left = limit - core_cost(r, s->now), rate = rate_of(r);

	if (left <= 0)
		run_end_running(s, VERDICT_FAILED, ERR_QUOTA, -1,
				"max_cost of %.2f USD is reached: the run is stopped",
				r->plan->job->max_cost);
	else if (rate)
		tick_want(s, s->now + left / rate * HOUR_MS + left % rate * HOUR_MS / rate + 1);
}
