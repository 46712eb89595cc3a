#include "master/upkeep/own_machine.h"

#include <assert.h>
#include <stdlib.h>

#include "base/alloc.h"
#include "base/arena.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/log.h"
#include "core/machine_end.h"
#include "driver/driver.h"
#include "link/layout.h"
#include "master/effects.h"
#include "master/internal.h"
#include "master/live_run.h"
#include "master/runs.h"
#include "master/upkeep/exports.h"
#include "master/upkeep/metric_push.h"
#include "master/upkeep/reports.h"
#include "sys/loop.h"
#include "sys/pools.h"
#include "sys/worker.h"

#define CALL_MS 60000

struct own_machine {
	struct master *m;
	struct machine_end end; /* on clock_boot_ms() */
};

/* One step. */
struct end_task {
	struct own_machine *o;
	struct live_run *lr;
	struct arena *a;
	char token[65];
	struct driver_row row;
	const struct driver *driver;
	bool detaches;
};

static void work(void *arg, const struct deadline *d)
{
	struct end_task *t = arg;

	t->row.deadline = d;
	if (t->detaches)
		t->row.outcome = t->driver->detach && t->driver->detach(&t->row) < 0 ? OUTCOME_HELD
										     : OUTCOME_DONE;
	else if (t->driver->destroy_many)
		t->driver->destroy_many(&t->row, 1);
	else
		t->row.outcome = t->driver->destroy(&t->row);
	if (t->row.outcome == OUTCOME_ABSENT && !t->row.identity_checked)
		t->row.outcome = OUTCOME_UNSURE;
}

static void work_done(void *arg, enum err_kind how)
{
	struct end_task *t = arg;

	if (how == ERR_NONE) {
		machine_end_answered(&t->o->end, t->row.outcome, &t->row.err, clock_boot_ms());
		log_info("the end of this master's machine: %s %s: %s",
			 t->detaches ? "detach" : "destroy", t->row.name,
			 t->o->end.why[0] ? t->o->end.why : "done");
	}
	t->lr->busy--;
	live_run_done(t->lr);
	arena_free(t->a);
	free(t);
}

static void begin_step(struct own_machine *o, struct live_run *lr, bool detaches, int index)
{
	const struct effect fx = {.kind = FX_DESTROY, .index = index};
	struct end_task *t = xcalloc(1, sizeof(*t));

	assert(lr); /* the core asks for a step of a run that it was given */
	t->o = o;
	t->lr = lr;
	t->a = arena_new();
	t->detaches = detaches;
	effect_row(lr, &fx, t->a, &t->row, t->token);
	t->driver = driver_for(t->row.kind);
	lr->busy++;
	workers_submit(pools_get(o->m->pools, t->driver->pool, 1), work, work_done, t, CALL_MS);
}

static bool newest_id(void *ctx, const struct run_row *row)
{
	*(const char **)ctx = row->id;
	return true;
}

/* The run that the machine was made for: the newest, or the one that carries it. */
static struct live_run *find_run(const struct own_machine *o)
{
	CLEANUP(arena_freep) struct arena *a = arena_new();
	const char *newest = NULL;

	if (store_runs_each(o->m->store, false, 0, 1, a, newest_id, &newest, NULL) < 0 || !newest)
		return NULL;
	struct str carrier = layout_carrier_of(str_from(newest));
	struct live_run *lr = live_run_exact(o->m, carrier.n ? arena_str(a, carrier).p : newest, a,
					     &(struct err){0});

	if (lr && machine_end_machine(&lr->plan) >= 0)
		return lr;
	if (lr)
		live_run_done(lr);
	return NULL;
}

void own_machine_check(struct own_machine *o)
{
	if (!o)
		return;
	struct machine_end_facts f = {
		.busy = runs_active(o->m) || exports_waiting(o->m->exports) ||
			reports_waiting(o->m->reports) || metric_push_waiting(o->m->metric_push),
	};
	struct live_run *lr = f.busy || o->end.asked ? NULL : find_run(o);
	int index = -1;

	if (lr) {
		const struct plan_results to = plan_results(&lr->plan, lr->arena);

		f.plan = &lr->plan;
		f.keep_ms = to.there_ms;
		f.copied = to.url != NULL;
		f.lost = exports_failed(o->m->exports);
	}
	switch (machine_end_next(&o->end, &f, clock_boot_ms(), &index)) {
	case MACHINE_END_WAIT:
		break;
	case MACHINE_END_DETACH:
		begin_step(o, lr, true, machine_end_machine(&lr->plan));
		return;
	case MACHINE_END_DESTROY:
		begin_step(o, lr, false, index);
		return;
	case MACHINE_END_LEAVE:
		log_info("no run has come: this master leaves, and its machine ends");
		loop_stop(o->m->loop);
		break;
	}
	if (lr)
		live_run_done(lr);
}

const char *own_machine_why(const struct own_machine *o)
{
	return o && o->end.why[0] ? o->end.why : NULL;
}

struct own_machine *own_machine_new(struct master *m)
{
	const char *set = getenv("REGATTA_OWN_MACHINE");

	if (!set || !*set)
		return NULL;
	struct own_machine *o = xcalloc(1, sizeof(*o));

	o->m = m;
	machine_end_init(&o->end, clock_boot_ms());
	return o;
}

struct own_machine *own_machine_free(struct own_machine *o)
{
	free(o);
	return NULL;
}
