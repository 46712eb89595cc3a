#pragma once
/* run_load - the steps of making a run in memory, for a fresh one (runs.c) and one from its rows. */
struct doc;
struct err;
struct live_run;
struct master;

struct live_run *live_run_new(struct master *m);
/* From row.job_json: job, job_doc and the plan up to its crew.  ERR_INVALID: *ret_details has all
 * problems, a line each. */
int run_check_job(struct live_run *lr, const char **ret_details, struct err *err);
void run_set_dir(struct live_run *lr); /* dir and logs_dir, from row.id */
/* lr->facts and row.facts, as its engine finds them out; known: those of an older version. */
int run_resolve(struct live_run *lr, const struct doc *known, struct err *err);
/* job.toml and plan.json in its directory, secrets masked. */
int run_write_texts(struct live_run *lr, struct err *err);
void run_make_state(struct live_run *lr); /* for its plan: core, nodes, series */
