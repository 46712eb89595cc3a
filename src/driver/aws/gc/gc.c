#include "driver/aws/gc/gc.h"

#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "driver/aws/aws_session.h"

#define WHOLE_MS (15 * 60000)
#define IDLE_MS 60000	    /* without any change, while something is in use */
#define IDLE_LOOKS 3	    /* at least: a look into many regions may take longer than IDLE_MS */
#define IDLE_DENIED_MS 5000 /* the same, if a delete was refused for want of a permission */
#define FIRST_NAP_MS 250    /* between two looks while something is being removed; doubled up to */
#define LONGEST_NAP_MS 1000
#define SETTLE_MS 2000 /* what was made just now may not be shown at once */
#define CLEAN_LOOKS 2  /* that must show nothing, one after the other */

enum leftover_state gc_judge(const struct collect_input *in, const struct leftover *l,
			     int64_t now_ms)
{
	if (!in->install || strcmp(l->install, in->install) != 0)
		return LEFTOVER_OTHER;
	if (in->run)
		return leftover_is_of(l, in->run) ? LEFTOVER_FOUND : LEFTOVER_LIVE;
	if (!in->has_ledger || (l->expires_ms && l->expires_ms <= now_ms))
		return LEFTOVER_FOUND;
	return in->is_live(in->ctx, l->run) ? LEFTOVER_LIVE : LEFTOVER_FOUND;
}

static struct gc_count judge_all(struct gc *g)
{
	struct gc_count n = {0};

	for (size_t i = 0; i < g->items.n; i++) {
		struct gc_item *item = g->items.v[i];

		if (!item->seen) {
			if (item->is.state == LEFTOVER_FOUND) {
				item->is.state = LEFTOVER_REMOVED;
				item->is.why = NULL;
			}
			continue;
		}
		item->is.state = gc_judge(g->in, &item->is, g->now_ms);
		if (g->elsewhere && gc_is_shared(item) && item->is.state == LEFTOVER_FOUND)
			item->is.state = LEFTOVER_LIVE;
		if (item->is.state != LEFTOVER_FOUND)
			continue;
		n.found++;
		n.ending += item->ending;
		n.denied += item->denied;
	}
	return n;
}

/* The runs are asked for after the look, so that a run which has something is known by then. */
static int look(struct gc *g, struct gc_count *ret, struct err *err)
{
	if (gc_find(g, err) < 0 || (!g->in->run && gc_shared_find(g, err) < 0) ||
	    (g->in->has_ledger && g->in->refresh(g->in->ctx, err) < 0))
		return -1;
	*ret = judge_all(g);
	return 0;
}

bool gc_is_stuck(const struct gc_count *n, int64_t idle_ms, unsigned idle_looks)
{
	return n->ending == 0 && idle_looks >= IDLE_LOOKS &&
	       idle_ms > (n->denied ? IDLE_DENIED_MS : IDLE_MS);
}

const char *gc_reason(struct arena *a, const struct gc_item *item)
{
	if (item->is.why && *item->is.why)
		return item->is.why;
	if (item->ending)
		return arena_printf(a, "it is %s", *item->status ? item->status : "ending");
	return item->accepted ? "its delete was accepted, and it is still there"
			      : "no delete of it was accepted";
}

static int collect(struct gc *g, struct err *err)
{
	int64_t changed_ms = clock_boot_ms();
	struct gc_count n, before = {0};
	int64_t nap_ms = FIRST_NAP_MS;
	unsigned clean = 0, idle = 0; /* looks */

	for (;;) {
		if (look(g, &n, err) < 0)
			return -1;
		if (g->in->dry_run || !g->in->install)
			return 0;
		idle++;
		if (n.found != before.found || n.ending != before.ending) {
			changed_ms = clock_boot_ms();
			idle = 0;
		}
		before = n;
		clean = n.found == 0 ? clean + 1 : 0;
		if (clean == CLEAN_LOOKS || gc_is_stuck(&n, clock_boot_ms() - changed_ms, idle))
			return 0;
		gc_remove(g);
		if (gc_shared_remove(g, err) < 0 ||
		    aws_nap(&g->d, n.found ? nap_ms : SETTLE_MS, err) < 0)
			return -1;
		nap_ms = nap_ms * 2 < LONGEST_NAP_MS ? nap_ms * 2 : LONGEST_NAP_MS;
	}
}

int gc_collect(const struct collect_input *in, struct arena *a, struct collection *ret,
	       struct err *err)
{
	struct gc g = {.in = in, .a = a, .d = deadline_in(WHOLE_MS, in->stop)};
	int rc = gc_open(&g, err);

	if (rc == 0)
		rc = collect(&g, err);
	*ret = (struct collection){.v = arena_array(a, struct leftover, g.items.n + 1)};
	for (size_t i = 0; i < g.items.n; i++) {
		struct leftover *l = &ret->v[ret->n++];

		*l = g.items.v[i]->is;
		if (l->state == LEFTOVER_FOUND && !in->dry_run)
			l->why = gc_reason(a, g.items.v[i]);
	}
	gc_close(&g);
	return rc;
}

enum outcome gc_sweep_run(struct aws_work *w, struct driver_row *row)
{
	const struct collect_input in = {
		.install = row->install, .run = row->run, .credentials = row->credentials};
	struct gc g = {.in = &in, .a = w->a, .d = w->d};

	if (gc_use(&g, w->s, &row->err) < 0 || collect(&g, &row->err) < 0) {
		gc_close(&g);
		return OUTCOME_UNSURE;
	}
	enum outcome outcome = OUTCOME_DONE;

	for (size_t i = 0; i < g.items.n && outcome == OUTCOME_DONE; i++) {
		const struct leftover *is = &g.items.v[i]->is;

		if (is->state != LEFTOVER_FOUND)
			continue;
		outcome = OUTCOME_HELD;
		err_set(&row->err, g.items.v[i]->denied ? ERR_DENIED : ERR_UNAVAILABLE,
			"%s %s of the run is left: %s", is->kind, is->id,
			gc_reason(w->a, g.items.v[i]));
	}
	gc_close(&g);
	return outcome;
}
