#pragma once
/* node_setup - what a node is told to run before its job. */

struct arena;
struct live_run;
struct message_inputs;

/* Set the keys of INPUTS about setup.  The texts are those of the run, or live in the arena. */
void node_setup_put(const struct live_run *lr, int rank, struct arena *a, struct message_inputs *m);
