#pragma once
/* grep - a regular expression of a user, and whether a line has it.  Bytes, not UTF-8, as in the patterns of metrics. */
#include <stdbool.h>
#include "base/str.h"

struct err;
struct grep;

/* ERR_INVALID: one line that says what is wrong with it, and where. */
struct grep *grep_new(const char *text, struct err *err);
struct grep *grep_free(struct grep *g);
/* 1: the line has it, 0: it has not; -1 (ERR_CAPACITY): it takes too many steps to say. */
int grep_line(struct grep *g, struct str line, struct err *err);
