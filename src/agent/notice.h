#pragma once
/*
 * notice - has the provider announced that it will take this machine?
 *
 * Blocking: the agent asks in a forked task (preempt.h).  `from` is `notices` of agent.json: "imds"
 * asks the metadata service of EC2 for the interruption of a Spot instance.
 */
#include <stdint.h>

struct deadline;

/* The time, on the wall clock, at which the machine will be taken; 0: nothing is announced, or nobody
 * answers. */
int64_t notice_ask(const char *from, const struct deadline *d);
