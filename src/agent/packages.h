#pragma once
/* packages - how this machine installs packages. */
#include <stddef.h>

struct arena;

/* The command line that installs them, for /bin/sh: NULL-terminated.  `path` is searched for the package
 * manager; without one the command says so and fails. */
const char *const *packages_command(const char *const *names, size_t n, const char *path,
				    struct arena *a);
