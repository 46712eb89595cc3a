#pragma once
/*
 * handover - hands a run to the master that lives on one of its resources, and follows it there
 * (core/handover.c decides; this does what it asks).
 *
 * The other master is spoken to over HTTPS, with the pin and the token that its driver knows (reach).
 * It gets the submission as it came, the facts of the run with the ids of what is there already, and
 * the archives of source and data, but not the caller's credentials for the provider: its machine has a
 * role.  Of those only what is for other stores goes along (OBJECT_CREDENTIALS).  What it is handed is
 * kept with the secrets of the run until the run has ended.
 *
 * While it has the run, contexts/<run>.json of this home names it, so that commands find it.
 */
#include <stdbool.h>

struct doc;
struct effect;
struct err;
struct live_run;
struct master;

/* Keeps what will be handed over, before the secrets of the run are saved. */
void handover_keep(struct live_run *lr, const struct doc *submission);
/* FX_HAND_OVER, FX_FOLLOW, FX_AWAIT_RESULTS: answered with EV_REMOTE. */
void handover_do(struct live_run *lr, const struct effect *fx);
/* Commands of this home about `run`, one of a suite that the run carries, go to the master that has it; and no more. */
void handover_write_context(struct live_run *lr, const char *run);
void handover_remove_context(const struct master *m, const char *run);
/* The run has ended: removes the context, and takes the results in. */
void handover_ended(struct live_run *lr);
/* True until its results are taken in: the credentials are needed. */
bool handover_owes_results(const struct live_run *lr);
/* At the start of a master: takes in what the one before has not. */
void handover_check(struct master *m);
