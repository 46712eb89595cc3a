#pragma once
/* preempt - machines that the provider takes back. */
#include <stdbool.h>
#include "base/err.h"

struct effect;
struct event;
struct world;

/* Draws, for a machine that boots, whether and when it is taken. */
void preempt_draw(struct world *w, int slot);
void preempt_notice(struct world *w, int slot);
/* Tells the master of the notice, if there was one. */
void preempt_say(struct world *w, int slot);
/* A machine is about to end: the provider may show it as ended from now on. */
void preempt_ended(struct world *w, int slot, enum err_kind kind);
/* Completes the answer "absent" if the machine that was asked for is shown as ended. */
void preempt_shows_end(const struct world *w, const struct effect *fx, struct event *ev);
/* I19: what ends after a notice was preempted, and nothing else; no attempt follows there. */
void check_preempted(struct world *w);
/* True if the event is the end of an attempt on a machine that will be taken. */
bool preempt_attempt_ends(const struct world *w, const struct event *ev);
void check_next_attempt(struct world *w, int rank);
