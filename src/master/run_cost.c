#include "master/run_cost.h"

#include <string.h>

#include "base/arena.h"
#include "base/cleanup.h"
#include "fmt/jsonw.h"
#include "master/clock.h"
#include "master/live_run.h"
#include "master/run_json.h"
#include "spec/job.h"

#define MICRO 1e6

/* The machines of a role, or a resource without a node. */
struct cost_line {
	const char *name;
	int machines;
	int64_t micro, paid_ms, busy_ms;
};

static double dollars(int64_t micro)
{
	return (double)micro / MICRO;
}

void run_cost_to_json(const struct live_run *lr, struct jsonw *w)
{
	double here = dollars(core_cost(lr->core, master_now(lr->m)));

	/* Of a run that was handed over the other master counts all machines, its own too. */
	jsonw_kdouble(w, "cost_usd", lr->remote.cost_usd > here ? lr->remote.cost_usd : here);
}

static const char *name_of(const struct plan *p, const struct plan_resource *pr)
{
	return pr->node >= 0 ? p->crew.roles[p->crew.members[pr->node].role].name : pr->name;
}

static struct cost_line *line_of(struct cost_line *lines, int *n, const char *name)
{
	for (int i = 0; i < *n; i++)
		if (strcmp(lines[i].name, name) == 0)
			return &lines[i];
	lines[*n] = (struct cost_line){.name = name};
	return &lines[(*n)++];
}

/* A machine is busy while the run is in the phase `running`, and never for longer than it was paid. */
static void add_resource(const struct live_run *lr, int index, struct cost_line *line)
{
	int64_t now = master_now(lr->m), running = run_phase_ms(lr, RUN_RUNNING);
	int64_t paid = core_paid_ms(lr->core, index, now);

	if (paid == 0)
		return;
	line->machines++;
	line->micro += core_cost_of(lr->core, index, now);
	line->paid_ms += paid;
	if (lr->plan.resources[index].node >= 0 && running > 0)
		line->busy_ms += running < paid ? running : paid;
}

static int lines_of(const struct live_run *lr, struct cost_line *lines)
{
	int n = 0;

	for (int i = 0; i < lr->plan.nresources; i++)
		if (lr->plan.resources[i].prices.n)
			add_resource(
				lr, i,
				line_of(lines, &n, name_of(&lr->plan, &lr->plan.resources[i])));
	return n;
}

static void line_members(const struct cost_line *l, struct jsonw *w)
{
	jsonw_kint(w, "machines", l->machines);
	jsonw_kdouble(w, "hours", (double)l->paid_ms / 3600e3);
	jsonw_kdouble(w, "usd", dollars(l->micro));
	jsonw_key(w, "idle");
	if (l->paid_ms)
		jsonw_double(w, 1 - (double)l->busy_ms / (double)l->paid_ms);
	else
		jsonw_null(w);
}

/* 0: not known. */
static double samples_of(const struct live_run *lr)
{
	double per_s = 0;

	for (int i = 0; i < lr->plan.crew.n; i++)
		for (size_t k = 0; k < lr->nodes[i].series.n; k++) {
			const struct series_row *row = &lr->nodes[i].series.v[k]->row;

			if (strcmp(row->name, SAMPLES_METRIC) == 0 && row->count > 0 &&
			    row->mean > 0)
				per_s += row->mean;
		}
	int64_t running = run_phase_ms(lr, RUN_RUNNING);

	return running > 0 ? per_s * (double)running / 1000 : 0;
}

static void put_share(struct jsonw *w, const char *key, double usd, double n)
{
	jsonw_key(w, key);
	if (n > 0)
		jsonw_double(w, usd / n);
	else
		jsonw_null(w);
}

static void shares_to_json(const struct live_run *lr, const struct cost_line *all, struct jsonw *w)
{
	double samples = samples_of(lr);
	int64_t step, total;

	run_progress(lr, &step, &total);
	jsonw_kint(w, "steps", step);
	put_share(w, "usd_per_step", dollars(all->micro), (double)step);
	jsonw_key(w, "samples");
	if (samples > 0)
		jsonw_double(w, samples);
	else
		jsonw_null(w);
	put_share(w, "usd_per_1k_samples", dollars(all->micro), samples / 1000);
}

const char *run_cost_text(const struct live_run *lr, struct arena *a)
{
	double usd = dollars(core_cost(lr->core, master_now(lr->m))), samples = samples_of(lr);
	int64_t step, total;

	if (!lr->plan.prices_as_of)
		return NULL;
	run_progress(lr, &step, &total);
	const char *text = arena_printf(a, "%.4f USD", usd);

	if (step > 0)
		text = arena_printf(a, "%s, %.3g USD per step", text, usd / (double)step);
	if (samples > 0)
		text = arena_printf(a, "%s, %.3g USD per 1,000 samples", text,
				    usd / (samples / 1000));
	return text;
}

void run_costs_to_json(const struct live_run *lr, struct buf *out)
{
	CLEANUP(arena_freep) struct arena *a = arena_new();
	struct cost_line *lines = arena_array(a, struct cost_line, (size_t)lr->plan.nresources + 1);
	struct cost_line all = {.name = "total"};
	int n = lines_of(lr, lines);
	struct jsonw w;

	jsonw_init(&w, out);
	jsonw_open(&w, '{');
	jsonw_kz(&w, "id", lr->row.id);
	jsonw_key(&w, "roles");
	jsonw_open(&w, '[');
	for (int i = 0; i < n; i++) {
		jsonw_open(&w, '{');
		jsonw_kz(&w, "name", lines[i].name);
		line_members(&lines[i], &w);
		jsonw_close(&w);
		all.machines += lines[i].machines;
		all.micro += lines[i].micro;
		all.paid_ms += lines[i].paid_ms;
		all.busy_ms += lines[i].busy_ms;
	}
	jsonw_close(&w);
	line_members(&all, &w);
	shares_to_json(lr, &all, &w);
	jsonw_kz(&w, "currency", "USD");
	jsonw_kz(&w, "as_of", lr->plan.prices_as_of);
	jsonw_kdouble(&w, "max_cost", lr->job->max_cost);
	jsonw_close(&w);
}
