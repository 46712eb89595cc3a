#pragma once
/* messages - the INPUTS and START frames of a node, made from job, plan and strategy.  The parts
 * that all STARTs of a run share are in start_table.h. */
#include <stdbool.h>

struct buf;
struct live_run;

void node_inputs_put(const struct live_run *lr, int rank, struct buf *out);
/* The nodes that this one has to reach before the gang starts. */
void node_preflight_put(const struct live_run *lr, int rank, int round, struct buf *out);
/* `templates`: the agent expands them; false for an agent of an earlier version. */
void node_start_put(struct live_run *lr, int rank, int attempt, bool templates, struct buf *out);
