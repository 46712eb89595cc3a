#pragma once
/* env_input - the variables of a command line: --env and --env-file. */
#include "fmt/schema.h"

struct arena;
struct cli_call;
struct err;

/* Those of the files in their order, then those of --env: of two with one name the last counts. */
int env_input_read(const struct cli_call *c, struct arena *a, struct env_list *ret,
		   struct err *err);
