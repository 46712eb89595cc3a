#pragma once
/*
 * stall - the hang watchdog: a run whose job prints nothing for `stall` is looked at on all its nodes,
 * the node that differs from the others is named, and then the job's stall_action follows.
 *
 * Output of any rank counts: ranks that wait for each other are silent together, while most ranks of a
 * healthy job print nothing.  The clock stands still while output cannot arrive (a node is not
 * connected, or the master's disk is full).  Nothing of this is stored: a master that starts again
 * waits for the whole time.
 */
#include "core/internal.h"

/* The nodes were started: the time counts from now. */
void stall_start(struct step *s);
/* EV_PROGRESS, EV_NODE_INSPECTED */
void stall_event(struct step *s, const struct event *ev);
void stall_tick(struct step *s);
/* The rank whose state differs from that of the others, -1 if none stands out.  A rank that gave no answer
 * differs from all that did. */
int stall_odd_one(const struct core_run *r);
