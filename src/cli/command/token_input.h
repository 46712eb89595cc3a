#pragma once
/* token_input - the token that a command is given: --token, or --token-file for one that nobody sees in ps. */
struct arena;
struct cli_call;
struct err;

int token_input(const struct cli_call *c, struct arena *a, const char **ret, struct err *err);
