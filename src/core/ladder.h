#pragma once
/* What follows a failed create: pauses, other choices, and the pause that a throttling provider causes. */
#include "core/core.h"

struct step;

/* True if a create that failed with this kind of error is not tried again. */
bool kind_is_fatal(enum err_kind kind);
/* True if the same create may succeed later. */
bool kind_passes(enum err_kind kind);
/* Asks again later, after a pause that depends on the kind of error and grows with each try. */
void retry_later(struct step *s, int index, enum err_kind kind, const char *why);
void retry_after(struct step *s, int index, int64_t pause_ms, enum err_kind kind, const char *why);
/* The pause for the next try, which grows with each try of the resource. */
int64_t retry_backoff_ms(struct step *s, int index, enum err_kind kind);
/* True if calls of the run must wait because the provider throttles; the resource is then
 * retried after the wait. */
bool calls_wait(struct step *s, int index);
void calls_answered(struct step *s, const struct event *ev);
/* A create was refused and nothing of the resource exists: tries the next choice, or the same
 * again. */
void ladder_refused(struct step *s, int index, enum err_kind kind, const char *why);
/* Nothing of the resource exists any more: it takes over the choice of its group, whose creates
 * are sent when it was the last one to do so. */
void ladder_follow(struct step *s, int index);
/* True if the resource's group has moved on to another choice: the resource is to be destroyed. */
bool ladder_left_behind(const struct core_run *r, int index);
/* True if a create must wait because resources of the group's earlier choice may still exist. */
bool ladder_waits(const struct core_run *r, int index);
/* " (7 tries of 3 choices, the last ...)", or "". */
void ladder_describe(const struct core_run *r, int index, char *out, size_t size);
/* Computes the state of the groups after a restart. */
void ladder_restored(struct core_run *r);
