#pragma once
/*
 * netns - network namespaces: made, held by a mount on a file, entered, removed.
 *
 * A namespace is entered by the calling thread only.  Functions that enter one return to the old one;
 * if that fails the process aborts, because it would go on in the wrong namespace.
 */
#include <stdbool.h>

struct err;

/* A new namespace with its loopback up, held by a mount at `path`, which must not exist. */
int netns_make(const char *path, struct err *err);
/* Is there a namespace at this path? */
bool netns_is_at(const char *path);
/* Remove the mount and the file; the namespace ends with its last process.  No error if there is none. */
int netns_remove(const char *path, struct err *err);
/* A descriptor of the namespace; -1 on error. */
int netns_open(const char *path, struct err *err);
/* Call fn in the namespace of `fd`.  Returns its result. */
int netns_within(int fd, int (*fn)(void *ctx, struct err *err), void *ctx, struct err *err);
/* socket() in the namespace at `path`; NULL: in the thread's own. */
int netns_socket(const char *path, int family, int type);
/* May this process make namespaces and links?  ERR_DENIED says what it lacks. */
int netns_check_allowed(struct err *err);
