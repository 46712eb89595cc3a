#pragma once
/* stalls - what the hang watchdog finds, in the run's directory: stall/NODE.txt of its last look. */

struct live_run;
struct message_inspected;

/* The core has found that the job prints nothing: asks the node what its processes do. */
void stall_inspect(struct live_run *lr, int rank);
void stall_inspected(struct live_run *lr, int rank, const struct message_inspected *m);
