#pragma once
/* agentless - nodes whose machines start the job by themselves, and have no agent to tell of it. */
#include <stdbool.h>

#define OBSERVE_AGENTLESS_MS 5000 /* between observations, at most */

struct core_run;
struct event;
struct step;

void agentless_seen(struct step *s, const struct event *ev);
/* True once a machine of every node was seen. */
bool agentless_all_seen(const struct core_run *r);
/* After a restart: its output is stored again from where it was, and its machine is looked at. */
void agentless_resume(struct step *s, int rank);
/* Is a node of the resource left whose job is still to be stopped?  When timeouts.collect is over none is: all are
 * settled then, and the resource is destroyed. */
bool agentless_stop_needed(const struct core_run *r, int resource);
/* True once the output of all jobs of the resource that have ended is stored: what stops the others may remove it. */
bool agentless_output_stored(const struct core_run *r, int resource);
