#pragma once
/*
 * netns - network namespaces: made, held by a mount on a file, entered, removed.
 *
 * A thread enters a namespace alone; whoever enters one here for a moment is back afterwards, and
 * the process ends if that fails, because everything that follows would happen in the wrong place.
 */
#include <stdbool.h>

struct err;

/* A new namespace with its loopback up, held by a mount at `path`, which must not exist. */
int netns_make(const char *path, struct err *err);
/* Is there a namespace at this path? */
bool netns_is_at(const char *path);
/* Let go of it: it ends with its last process.  Nothing at the path is fine. */
int netns_remove(const char *path, struct err *err);
/* A descriptor of the namespace; -1 on error. */
int netns_open(const char *path, struct err *err);
/* Call fn in the namespace of `fd`; what it returns is returned. */
int netns_within(int fd, int (*fn)(void *ctx, struct err *err), void *ctx, struct err *err);
/* socket(), in the namespace at `path`; NULL: in ours. */
int netns_socket(const char *path, int family, int type);
/* May this process make namespaces and links?  ERR_DENIED says what it lacks. */
int netns_check_allowed(struct err *err);
