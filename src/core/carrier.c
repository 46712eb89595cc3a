#include "core/carrier.h"

static bool is_carrier(const struct core_run *r)
{
	return r->plan->carries && !r->plan->hands_over;
}

bool carrier_is_open(const struct core_run *r)
{
	return is_carrier(r) && !run_stopping(r);
}

/* It waits for no node. */
void carrier_check(struct step *s)
{
	if (is_carrier(s->r) && s->r->phase == RUN_GATHERING)
		run_set_phase(s, RUN_RUNNING);
}

void carrier_cancel(struct step *s)
{
	effect_add(s, FX_CANCEL_CARRIED, 0);
}

void carrier_event(struct step *s, const struct event *ev)
{
	if (carrier_is_open(s->r))
		run_end_running(s, ev->verdict, ev->err_kind, -1, "%s", ev->text);
}

void carrier_resume(struct step *s)
{
	if (carrier_is_open(s->r) && s->r->cancel_asked)
		carrier_cancel(s);
}
