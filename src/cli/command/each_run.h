#pragma once
/* each_run - a command with several RUN arguments: each is tried, the first failure gives the exit
 * code.  "RUN NODE" is refused before anything is done. */
#include <stddef.h>
#include "base/buf.h"
#include "base/str.h"

struct api;
struct cli_call;
struct err;

struct each_run {
	const struct cli_call *c;
	struct api *api;
	struct buf out; /* the result, printed at the end */
	size_t printed;
};

/* The exit code of the command.  With --all its runs are those of this state ("active", "all"), after a
 * question on the terminal: "cancel 3 runs?"; elsewhere --yes is the answer. */
int each_run_do(const struct cli_call *c, const char *state, const char *verb,
		int (*one)(struct each_run *e, const char *run, struct err *err));
/* One object of the array that --output json prints. */
void each_run_add(struct each_run *e, struct str json);
