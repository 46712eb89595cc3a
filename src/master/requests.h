#pragma once
/*
 * requests - the exact bytes of calls that create resources, of drivers that render them.
 *
 * They are made when the rows of a batch become `sent`, and stored with their SHA-256 in the same
 * transaction.  What is sent is what was stored: a replay after a restart cannot differ from the
 * call that it repeats.
 */
struct arena;
struct err;
struct live_run;

/* Those of the batches that this round sends for the first time. */
int requests_save(struct live_run *lr, struct err *err);
/* -1 if it is not there, or not as it was stored. */
int request_load(struct live_run *lr, int batch, struct arena *a, const char **ret_bytes,
		 struct err *err);
