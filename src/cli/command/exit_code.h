#pragma once
/* exit_code - the exit code of a run as that of a command which shows it: --exit-code. */
#include <stdbool.h>

struct cli_call;
struct doc;

/* Of the run object.  8 and a message if the run has not ended. */
int exit_code_now(const struct doc *run);
/* The same after asking for the run; wait: after its end, unless nobody reads the output any more.  After a failure, a
 * message and its code. */
int exit_code_later(const struct cli_call *c, const char *run, bool wait);
