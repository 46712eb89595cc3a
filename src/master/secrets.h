#pragma once
/*
 * secrets - the secret variables of a run (spec/secret.h), in one file of its directory.
 *
 * Rows, job.toml and plan.json have them masked.  The file is 0600, written before the run is
 * committed and removed when the run has ended; no route serves it.
 */
struct err;
struct job;
struct live_run;

#define SECRETS_FILE "secrets.json"

/* Of a job that was just checked: out of lr->job_doc, row.job_json and row.client_env, into
 * lr->secrets; lr->client_env keeps the real values. */
void run_secrets_take(struct live_run *lr);
int run_secrets_save(const struct live_run *lr,
		     struct err *err); /* durable; nothing if there are none */
/* Back into the masked job of an active run, and lr->client_env.  ERR_NOT_FOUND: they are gone. */
int run_secrets_load(struct live_run *lr, struct job *job, struct err *err);
void run_secrets_remove(const struct live_run *lr);
