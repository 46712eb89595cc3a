#pragma once
/*
 * small_disk - a file system of a given size, in a child process with its own mounts.
 *
 * small_disk_run() calls fn(ctx, dir) there, where dir is the root of the small
 * disk; an assertion that fails in fn fails the test.  Skips the test, saying why,
 * where mounting is not permitted.
 */
#include <stdbool.h>
#include <stddef.h>

void small_disk_run(const char *dir, size_t bytes, void (*fn)(void *ctx, const char *dir),
		    void *ctx);
/* Inside fn: more room. */
void small_disk_grow(const char *dir, size_t bytes);
