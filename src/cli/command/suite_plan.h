#pragma once
/* suite_plan - what a suite would run, how long and how dear, and what its repeats can show. */
struct cli_call;

int suite_plan(const struct cli_call *c, const char *path);
