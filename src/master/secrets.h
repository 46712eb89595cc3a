#pragma once
/*
 * secrets - the secret variables of a run (spec/secret.h), in one file of its directory.
 *
 * They are masked in rows, job.toml and plan.json.  The file has mode 0600, is written before
 * the run is committed and removed when the run has ended; no route serves it.
 */
struct arena;
struct doc;
struct err;
struct job;
struct live_run;

/* Moves the secrets of a job that was just checked out of lr->job_doc, row.job_json and
 * row.client_env into lr->secrets; lr->client_env keeps the real values.  credentials came with the
 * job, for the drivers; NULL: none did. */
void run_secrets_take(struct live_run *lr, const struct doc *credentials);
/* New credentials for the drivers of an active run whose old ones hold no more; stored durably. */
int run_credentials_renew(struct live_run *lr, const struct doc *credentials, struct err *err);
/* Those among the credentials that are for stores of objects, where the engine has others; NULL: none. */
const struct doc *run_store_credentials(const struct live_run *lr);
/* Stores lr->secrets durably; does nothing if the run has none. */
int run_secrets_save(const struct live_run *lr, struct err *err);
/* Puts the secrets of an active run back into its masked job and into lr->client_env.
 * ERR_NOT_FOUND: the file is missing. */
int run_secrets_load(struct live_run *lr, struct job *job, struct err *err);
/* For a run that has ended: removes the file, except for credentials that are needed to copy its results
 * (upkeep/exports.h). */
void run_secrets_finish(const struct live_run *lr);
/* The credentials in the file, as JSON; NULL if there are none. */
const char *run_credentials_read(const struct live_run *lr, struct arena *a);
