#pragma once
/* handover - a run that is handed to a master on one of its resources. */
#include "core/internal.h"

/* Finds the resource of the other master. */
void handover_restored(struct core_run *r);
/* True while the run is being offered to the other master, or is with it. */
bool handover_is_open(const struct core_run *r);
/* True while the results of a run that the other master has ended are awaited. */
bool handover_awaits_results(const struct core_run *r);
/* The machine of the other master is gone.  True if something that this master has made may be left: it is removed,
 * and then what the machine needed. */
bool handover_sweeps(struct step *s);
void handover_begin(struct step *s);
void handover_event(struct step *s, const struct event *ev);
void handover_cancel(struct step *s);
void handover_machine_gone(struct step *s, enum err_kind kind, const char *why);
void handover_late(struct step *s);
void handover_tick(struct step *s);
void handover_resume(struct step *s);
