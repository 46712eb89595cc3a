#pragma once
/* collect - copy the files that the job file asks to keep. */
#include <stddef.h>
#include <stdint.h>

struct err;

#define COLLECT_MAX_FILES 200000

/* Every regular file below `from` that a pattern matches, to the same name below `to`.  Doing it again
 * overwrites.  With an error *ret_files and *ret_bytes still say how far it came. */
int collect_files(const char *from, const char *const *patterns, size_t n, const char *to,
		  uint64_t *ret_files, uint64_t *ret_bytes, struct err *err);
