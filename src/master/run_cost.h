#pragma once
/*
 * run_cost - what a run costs, in all, per step and per 1,000 samples.
 *
 * Steps are those of its metrics that have a step and a total.  Samples are known if nodes print the
 * metric samples_per_s: its mean over the time in which the job ran, summed over the nodes that print it.
 */

struct arena;
struct buf;
struct jsonw;
struct live_run;

/* Adds cost_usd to the object: a number, 0 on machines without a price. */
void run_cost_to_json(const struct live_run *lr, struct jsonw *w);
/* One object: per role, in all, per step and per 1,000 samples. */
void run_costs_to_json(const struct live_run *lr, struct buf *out);
/* "0.42 USD, 0.00013 USD per step"; NULL if its machines have no price. */
const char *run_cost_text(const struct live_run *lr, struct arena *a);
