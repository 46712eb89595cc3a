#pragma once
/*
 * secrets - the secret variables of a run (spec/secret.h), in one file of its directory.
 *
 * They are masked in rows, job.toml and plan.json.  The file has mode 0600, is written before
 * the run is committed and removed when the run has ended; no route serves it.
 */
struct doc;
struct err;
struct job;
struct live_run;

#define SECRETS_FILE "secrets.json"

/* Moves the secrets of a job that was just checked out of lr->job_doc, row.job_json and
 * row.client_env into lr->secrets; lr->client_env keeps the real values.  credentials came with the
 * job, for the drivers; NULL: none did. */
void run_secrets_take(struct live_run *lr, const struct doc *credentials);
/* Stores lr->secrets durably; does nothing if the run has none. */
int run_secrets_save(const struct live_run *lr, struct err *err);
/* Puts the secrets of an active run back into its masked job and into lr->client_env.
 * ERR_NOT_FOUND: the file is missing. */
int run_secrets_load(struct live_run *lr, struct job *job, struct err *err);
void run_secrets_remove(const struct live_run *lr);
