#pragma once
/*
 * carrier - a run that stands for a suite on the master that it was handed to.
 *
 * The resources of the carrier are that master's machine and what it needs; the runs of the suite have them as there
 * already.  So the carrier must last as long as the suite, or longer: while it is active the machine does not end
 * (machine_end.h), and whoever made the machine follows it as any run that was handed over (handover.h).  It begins to
 * run at once, and ends with EV_CARRIED and by nothing else: a cancel is passed on to the suite.
 */
#include "core/internal.h"

/* True while its suite is here and has not ended. */
bool carrier_is_open(const struct core_run *r);
void carrier_check(struct step *s);
void carrier_cancel(struct step *s);
void carrier_event(struct step *s, const struct event *ev);
void carrier_resume(struct step *s);
