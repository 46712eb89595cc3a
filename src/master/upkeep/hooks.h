#pragma once
/*
 * hooks - on_finish of a job: when its run has ended, the run object is posted to a URL and given to a
 * command on the master's machine.
 *
 * Each hook has its own tries on threads of their own, so that neither the run nor another hook waits for
 * it.  A try that fails is repeated with a growing pause; after HOOK_TRIES the events of the run say why.
 * on_finish.json in the run's directory says that a hook is done or was given up: until then the next
 * master tries it too, so that a receiver may hear of a run twice.
 */
#include <stdbool.h>

struct hooks;
struct live_run;
struct master;

#define HOOK_TRIES 8

struct hooks *hooks_new(struct master *m);
/* NULL is allowed.  Call it after the pools have gone. */
struct hooks *hooks_free(struct hooks *h);
/* True while one is tried, or will be. */
bool hooks_waiting(const struct hooks *h);
/* To be called when a run has ended, before its summary.json is written: the next master then knows of it. */
void hooks_note_owed(const struct live_run *lr);
/* To be called when it is written. */
void hooks_run_ended(struct hooks *h, struct live_run *lr);
/* Looks for ended runs whose hooks an earlier master has not finished. */
void hooks_check(struct hooks *h);
