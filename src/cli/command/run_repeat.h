#pragma once
/* run_repeat - `regatta run --repeat N --parallel K`: the same job N times, K at a time. */
struct api;
struct cli_call;
struct submission;

/* Returns the exit code: that of the first run that did not succeed, else 0. */
int run_repeat(const struct cli_call *c, struct api *api, const struct submission *s);
