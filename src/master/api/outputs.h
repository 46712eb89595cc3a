#pragma once
/* outputs - output files that nodes of other machines upload. */
#include <stdbool.h>
#include "base/str.h"

struct api_call;
struct err;
struct live_run;

/* Limits of a run, over all nodes and attempts; above them: ERR_QUOTA. */
#define OUTPUT_MAX_FILES 1000000
#define OUTPUT_MAX_BYTES (4ull << 40)

/* PUT: open returns the descriptor for a piece; put handles the piece when it has arrived. */
int api_output_open(struct api_call *c, struct err *err);
int api_output_put(struct api_call *c, struct err *err);
/* GET: how many bytes of a file have arrived. */
int api_output_state(struct api_call *c, struct err *err);
/* May a file below the outputs of a node have this path? */
bool output_path_ok(struct str path);
/* The directory of uploads that are not complete; the caller frees it. */
char *outputs_uploads_dir(const struct live_run *lr);
/* To be called when the run has ended: removes uploads that are not complete. */
void outputs_forget(struct live_run *lr);
