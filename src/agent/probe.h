#pragma once
/*
 * probe - wait until the job listens on its port.
 *
 * Connects, without blocking, every few milliseconds until it succeeds; then it calls `answered`
 * once and stops.
 */
#include <stdbool.h>
#include <sys/socket.h>

struct loop;
struct probe;

typedef void (*probe_fn)(void *ctx);

/* A numeric IPv4 or IPv6 address; false if it is neither. */
bool probe_address(const char *address, int port, struct sockaddr_storage *ret, socklen_t *ret_len);
/* NULL if the address is not numeric.  The first try is made at once, in the network namespace at
 * `netns` (NULL: the agent's), a text that must outlive the probe. */
struct probe *probe_new(struct loop *l, const char *netns, const char *address, int port,
			probe_fn answered, void *ctx);
/* NULL allowed.  Safe inside `answered`.  Returns NULL. */
struct probe *probe_free(struct probe *p);
