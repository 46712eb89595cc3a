#pragma once
/* outputs - files that nodes of other machines bring. */

struct api_call;
struct err;
struct live_run;

/* Of a run, all nodes and attempts together; more is ERR_QUOTA. */
#define OUTPUT_MAX_FILES 1000000
#define OUTPUT_MAX_BYTES (4ull << 40)

/* PUT: the descriptor that a piece goes to, then what becomes of it. */
int api_output_open(struct api_call *c, struct err *err);
int api_output_put(struct api_call *c, struct err *err);
/* GET: how much of a file is here. */
int api_output_state(struct api_call *c, struct err *err);
/* The run has ended: nothing more comes. */
void outputs_forget(struct live_run *lr);
