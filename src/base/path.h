#pragma once
/* path - names of files, as text only. */
#include <stdbool.h>
#include "base/str.h"

/* Owned "a/b"; b absolute gives b. */
char *path_join(const char *a, const char *b);
/* Owned, lexically cleaned ("." and ".." folded, no double slash). */
char *path_clean(const char *p);
/* Is it relative and without "..", empty parts or NUL: safe below a directory? */
bool path_is_below(struct str p);
const char *path_base(const char *p);
/* "s3://bucket/criteo/", "https://host/criteo?v=1" and "../criteo" are called criteo; "." has no name. */
struct str path_source_name(struct str src);
/* Glob with * ? [a-z] and ** (any depth), matched on '/'-separated names. */
bool path_match(const char *pattern, const char *name);
