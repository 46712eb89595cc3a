#pragma once
/*
 * start_table - what the STARTs of a run have in common: the table of its members, encoded once for
 * all nodes, and the environment of each role as templates.
 *
 * Made when the first node starts, and again after an address has changed; a START costs no more in a
 * run of 10,000 nodes than in one of two, but for sending the table.
 */
#include "base/expand.h"
#include "fmt/schema.h"

struct crew;
struct live_run;

/* Who takes part now: nodes that sleep are left out, and ranks have no holes. */
const struct crew *start_crew(struct live_run *lr);
int start_rank(struct live_run *lr, int rank); /* of a node's rank in the plan */
const struct expand_members *start_members(struct live_run *lr);
/* Of a role: the environment of whoever submitted, and the run's own names, which win. */
const struct env_list *start_templates(struct live_run *lr, int role);
/* The table and START to the agent of one node.  Values that are too long for an exec are noted as an event, once for
 * each role. */
void start_send(struct live_run *lr, int rank, int attempt);
/* An address has changed, or the run is freed. */
void start_forget(struct live_run *lr);
