#pragma once
/*
 * below - files below a directory in which a job may have put links.
 *
 * Names are relative, without ".." (path_is_below).  No link is followed, neither at the end of the path nor on the way.
 */
#include <stdbool.h>

struct err;

bool below_is_link(int dir, const char *name);
/* The directory `name` in `parent`, made if it is missing; a link of this name is removed.  -1 and errno. */
int below_enter(int parent, const char *name);
/* The directory that the file `name` is in, below `top`, made if it is missing. */
int below_enter_parent(int top, const char *name, struct err *err);
/* The file `name` below `top`, for reading; -1 and errno. */
int below_open(int top, const char *name);
/* Remove a file or tree; absent is fine. */
int below_remove(int dir, const char *name, struct err *err);
