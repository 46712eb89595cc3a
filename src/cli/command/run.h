#pragma once
/* run - submit a job and stay with it: `regatta run` and the commands that read a job in another way. */
#include <stdbool.h>
#include "base/str.h"

struct api;
struct arena;
struct cli_call;
struct job_input;

/* What is printed when the master at this URL has the run. */
typedef const char *(*handed_line_fn)(struct str url, struct arena *a);

/* Options of the call that it reads: detach, follow, repeat, parallel.  With a line it stays with the run only until
 * another master has it.  The exit code. */
int run_job(const struct cli_call *c, const struct job_input *in, handed_line_fn line);
/* Shows the run until its end, then the summary.  signals: of watch_signals(); with detach an interrupt leaves the run
 * alone.  The exit code: that of the run, or 7 after such an interrupt. */
int run_watch(const struct cli_call *c, struct api *api, const char *id, int signals, bool detach);
