#pragma once
/*
 * requests - the exact bytes of the calls that create resources, for drivers that render them.
 *
 * The bytes are made when the rows of a batch become `sent`, and stored with their SHA-256 in
 * the same transaction.  Only stored bytes are sent, so a call that is repeated after a restart
 * equals the first one.
 */
struct arena;
struct err;
struct live_run;

/* Stores the requests of the batches that this round sends for the first time. */
int requests_save(struct live_run *lr, struct err *err);
/* -1 if the request is not stored, or does not match its SHA-256. */
int request_load(struct live_run *lr, int batch, struct arena *a, const char **ret_bytes,
		 struct err *err);
