#pragma once
/* messages - INPUTS and START of a node, made from job, plan and strategy. */
struct buf;
struct live_run;

void node_inputs_put(const struct live_run *lr, int rank, struct buf *out);
void node_start_put(const struct live_run *lr, int rank, int attempt, struct buf *out);
