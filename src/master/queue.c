#include "master/queue.h"

#include <stdio.h>
#include <string.h>

#include "base/arena.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "base/vec.h"
#include "driver/driver.h"
#include "fmt/jsonw.h"
#include "master/internal.h"
#include "master/live_run.h"
#include "master/round.h"
#include "plan/plan.h"

/* The runs of one engine that ask for resources. */
struct waiting_line {
	struct queue_run *v;
	struct live_run **runs;
	size_t n;
};

static bool is_queued(const struct live_run *lr)
{
	return !lr->ended && !lr->unreadable && !run_phase_is_final(lr->core->phase) &&
	       plan_queues(&lr->plan);
}

static bool waits(const struct live_run *lr)
{
	return lr->core->phase == RUN_ACCEPTED;
}

static void add(struct waiting_line *l, struct live_run *lr, struct arena *a)
{
	l->runs[l->n] = lr;
	l->v[l->n++] = (struct queue_run){
		.priority = lr->job->priority,
		.no = lr->row.no ? lr->row.no : INT64_MAX, /* not stored yet: it is the last */
		.waits = waits(lr),
		.placing = lr->core->phase == RUN_PROVISIONING,
		.nodes = plan_shares(&lr->plan, a),
		.n = (size_t)lr->plan.crew.n,
	};
}

/* The line of the run's engine; `lr` itself is in it even if the master does not have it yet. */
static struct waiting_line line_of(struct live_run *lr, struct arena *a, size_t *ret_own)
{
	const struct master *m = lr->m;
	size_t most = map_count(m->runs) + 1;
	struct waiting_line l = {.v = arena_array(a, struct queue_run, most),
				 .runs = arena_array(a, struct live_run *, most)};
	struct str id;
	void *value;

	*ret_own = 0;
	add(&l, lr, a);
	for (size_t i = 0; map_at(m->runs, &i, &id, &value);)
		if (value != lr && is_queued(value) &&
		    strcmp(((struct live_run *)value)->row.engine, lr->row.engine) == 0)
			add(&l, value, a);
	return l;
}

static void machines_of(const struct live_run *lr, bool all, struct arena *a,
			struct queue_machines *ret)
{
	const struct resolver *r = resolver_for(lr->row.engine);

	*ret = (struct queue_machines){0};
	if (r && r->machines)
		r->machines(plan_engine_options(lr->job, a), &lr->m->services, all, a, ret);
}

/* The run that comes first may have other machines to choose from than this one: it is asked with its own. */
static bool admit_from(struct live_run *lr)
{
	CLEANUP(arena_freep) struct arena *a = arena_new();
	struct queue_machines machines;
	size_t own;
	struct waiting_line l = line_of(lr, a, &own);

	machines_of(lr, false, a, &machines);
	int next = queue_admit(l.v, l.n, &machines);

	if (next < 0 || l.runs[next] != lr)
		return false;
	run_event(lr, &(struct event){.kind = EV_ADMIT});
	return true;
}

void queue_update(struct master *m)
{
	bool again = !m->stopping;
	struct str id;
	void *value;

	m->queue_due = false;
	while (again) {
		again = false;
		for (size_t i = 0; map_at(m->runs, &i, &id, &value);)
			if (is_queued(value) && waits(value))
				again |= admit_from(value);
	}
}

int queue_check(struct live_run *lr, bool no_wait, struct err *err)
{
	CLEANUP(arena_freep) struct arena *a = arena_new();
	struct queue_machines machines;
	char why[QUEUE_WHY];
	size_t own;

	if (!plan_queues(&lr->plan))
		return 0;
	machines_of(lr, true, a, &machines);
	if (!queue_possible(plan_shares(&lr->plan, a), (size_t)lr->plan.crew.n, &machines, why))
		return err_set(err, ERR_CAPACITY, "resources: this can never run here: %s", why);
	if (!no_wait)
		return 0;
	struct waiting_line l = line_of(lr, a, &own);

	machines_of(lr, false, a, &machines);
	if (queue_admit(l.v, l.n, &machines) == (int)own)
		return 0;
	queue_why(l.v, l.n, own, &machines, why);
	return err_set(err, ERR_CAPACITY, "resources: it would have to wait: %s", why);
}

bool queue_reason(const struct live_run *lr, int *ret_place, char why[static QUEUE_WHY])
{
	CLEANUP(arena_freep) struct arena *a = arena_new();
	struct queue_machines machines;
	size_t own;

	if (!is_queued(lr) || !waits(lr))
		return false;
	struct waiting_line l = line_of((struct live_run *)lr, a, &own);

	machines_of(lr, false, a, &machines);
	*ret_place = queue_place(l.v, l.n, own);
	queue_why(l.v, l.n, own, &machines, why);
	return true;
}

void queue_to_json(const struct live_run *lr, struct jsonw *w)
{
	char why[QUEUE_WHY];
	int place;

	jsonw_key(w, "queue");
	if (!queue_reason(lr, &place, why)) {
		jsonw_null(w);
		return;
	}
	jsonw_open(w, '{');
	jsonw_kint(w, "place", place);
	jsonw_kz(w, "why", why);
	jsonw_close(w);
}
