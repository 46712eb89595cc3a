#pragma once
/* messages - INPUTS and START of a node, made from job, plan and strategy.  What all STARTs of a run share is
 * in start_table.h. */
#include <stdbool.h>

struct buf;
struct live_run;

void node_inputs_put(const struct live_run *lr, int rank, struct buf *out);
/* With templates, for an agent that expands them; without, for one of an earlier version. */
void node_start_put(struct live_run *lr, int rank, int attempt, bool templates, struct buf *out);
