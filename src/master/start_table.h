#pragma once
/*
 * start_table - the parts that all STARTs of a run share: the table of its members, encoded
 * once, and the environment of each role as templates.
 *
 * It is made when the first node starts, and again after an address has changed.  So a START
 * costs the same in a run of 10,000 nodes as in one of two, except for sending the table.
 */
#include "base/expand.h"
#include "fmt/schema.h"

struct crew;
struct live_run;

/* The nodes that take part now: without those that are asleep, with ranks as the job sees them
 * (core_job_rank()), renumbered without gaps. */
const struct crew *start_crew(struct live_run *lr);
/* The rank there of the node with this rank in the plan. */
int start_rank(struct live_run *lr, int rank);
const struct expand_members *start_members(struct live_run *lr);
/* The environment of a role: the variables of the submitting shell, and those of the run, which
 * override them. */
const struct env_list *start_templates(struct live_run *lr, int role);
/* Sends the table and START to the agent of one node.  Values that are too long for an exec are
 * recorded as an event, once per role. */
void start_send(struct live_run *lr, int rank, int attempt);
/* Frees the table: after an address has changed, or with the run. */
void start_forget(struct live_run *lr);
