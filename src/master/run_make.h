#pragma once
/* run_make - the steps that make a run in memory, used for a submitted run (runs.c) and for one
 * loaded from its rows. */
struct doc;
struct err;
struct live_run;
struct master;

struct live_run *live_run_new(struct master *m);
/* Loads row.job_json into job and job_doc, and plans up to the crew.  On ERR_INVALID
 * *ret_details has all problems, one per line. */
int run_check_job(struct live_run *lr, const char **ret_details, struct err *err);
/* Sets dir and logs_dir from row.id. */
void run_set_dir(struct live_run *lr);
/* Sets lr->facts and row.facts, which the engine determines.  known: the facts stored by an
 * older version, or NULL.  given: those that the client found, for engines that leave it to it. */
int run_resolve(struct live_run *lr, const struct doc *known, const struct doc *given,
		struct err *err);
/* Writes job.toml and plan.json into the run's directory, secrets masked. */
int run_write_texts(struct live_run *lr, struct err *err);
/* Makes core, nodes and series for the plan. */
void run_make_state(struct live_run *lr);
void run_drop_state(struct live_run *lr);
