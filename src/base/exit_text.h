#pragma once
/* exit_text - how a process ended, in the one wording that users see everywhere. */
#include <stdbool.h>
#include "base/str.h"

struct buf;

/*
 * Appends "exit code 3", "killed by SIGKILL, out of memory", each with ": REASON" after it if there
 * is one.  `code` is -1 and `signal` 0 where there is none; with neither, only oom and reason are said.
 */
void exit_describe(struct buf *out, int code, int signal, bool oom, struct str reason);
