#pragma once
/* token_input - the token given to a command: --token, or --token-file, which keeps it out of the process list. */
struct arena;
struct cli_call;
struct err;

int token_input(const struct cli_call *c, struct arena *a, const char **ret, struct err *err);
