#pragma once
/*
 * listener - listening sockets on a loop.
 *
 * Unix sockets are named by directory and name, because their path may be longer
 * than sun_path.  TCP addresses are numeric.
 */
#include <stdbool.h>
#include <stdint.h>

struct loop;
struct err;
struct listener;

/* The callee owns the descriptor (non-blocking, close-on-exec), and may free the listener. */
typedef void (*accept_fn)(void *ctx, int fd);

/* A unix socket at dir/name, mode 0600.  A socket file without a listener is replaced; ERR_CONFLICT if a
 * process listens on it, or the file is not a socket.  The directory is locked (flock) meanwhile. */
int listen_unix(struct loop *l, const char *dir, const char *name, accept_fn fn, void *ctx,
		struct listener **ret, struct err *err);
/* port 0: any.  A port in use is ERR_CONFLICT. */
int listen_tcp(struct loop *l, const char *addr, int port, accept_fn fn, void *ctx, int *ret_port,
	       struct listener **ret, struct err *err);
/* Let nobody in for now: who dials waits in the kernel's queue. */
void listener_pause(struct listener *li, bool pause);
/* Removes the socket file if it is still ours.  NULL allowed.  Returns NULL. */
struct listener *listener_free(struct listener *li);

/* Uid of the peer of a unix socket; -1 if unknown. */
int64_t socket_peer_uid(int fd);
