#pragma once
/*
 * secret - variables of the environment whose values are shown to nobody: those whose name says so
 * (*_KEY, *_TOKEN, *PASSWORD*, *SECRET*, in any case) and those that the job lists in `secrets`.
 *
 * What is stored, printed or sent to readers has SECRET_SHOWN in the place of the value.
 */
#include "spec/job.h"

#define SECRET_SHOWN "***"

/* A name that is in `secrets` but neither in an env of the job nor in `pass`; NULL if there is none. */
const char *secret_unused(const struct job *job);
bool secret_name(const struct job *job, struct str name);
/* The job with SECRET_SHOWN in the place of its secrets. */
struct job job_masked(const struct job *job, struct arena *a);
/*
 * Takes the secrets out of the job's document, which keeps SECRET_SHOWN in their place, and out of
 * the client's environment (may be NULL).  Returns them, {"env": {...}, "roles": {NAME: {"env":
 * {...}}}, "client_env": {...}}; NULL if there are none.
 */
struct doc *secrets_take(const struct job *job, struct doc *job_doc, struct doc *client_env,
			 struct arena *a);
/* Puts the values back into a masked job, and into the client's environment.  False if a value
 * is missing. */
bool secrets_put(const struct doc *secrets, struct job *job, struct doc *client_env,
		 struct arena *a);
