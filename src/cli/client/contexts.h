#pragma once
/*
 * contexts - names of masters, as files of the user's home.
 *
 * contexts/<name>.json has url, pin (none: the certificate must be of a CA that is trusted here) and token, mode 0600;
 * a file that others can read is refused.  contexts/current has the name of the one in use.
 * The name "local" is the user's own master on its socket and has no file.
 * The context of a master that has one run, and goes with it, has the id of the run as its name, and "run" and, if it was
 * found with a provider, "region" in its file.
 */
#include <stdbool.h>
#include <stddef.h>

struct arena;
struct err;

#define CONTEXT_LOCAL "local"

struct context {
	const char *url, *pin, *token; /* pin NULL: none */
	const char *run,
		*region; /* NULL: it is not the master of one run; it was not found in a region */
};

/* [a-z0-9] and, inside, '-', '_' and '.'; at most 40.  ERR_INVALID says so. */
int context_check_name(const char *name, struct err *err);
/* In the arena.  ERR_NOT_FOUND names a similar context, if there is one. */
int context_read(const char *home, const char *name, struct arena *a, struct context *ret,
		 struct err *err);
int context_write(const char *home, const char *name, const struct context *c, struct err *err);
int context_remove(const char *home, const char *name, struct err *err);
/* Sorted, without "local"; in the arena. */
int context_list(const char *home, struct arena *a, const char ***ret_names, size_t *ret_n,
		 struct err *err);
/* "local" if none was chosen. */
int context_current(const char *home, struct arena *a, const char **ret_name, struct err *err);
int context_use(const char *home, const char *name, struct err *err);
