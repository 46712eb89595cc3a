#pragma once
/*
 * listener - sockets that wait for peers.
 *
 * Unix sockets are named by directory and name, because their path may be longer
 * than sun_path.  Addresses are numeric: names are resolved elsewhere.
 */
#include <stdbool.h>
#include <stdint.h>

struct loop;
struct err;
struct listener;

/* The descriptor (non-blocking, close-on-exec) is the callee's.  It may free the listener. */
typedef void (*accept_fn)(void *ctx, int fd);

/* A unix socket at dir/name, mode 0600.  A dead socket file is replaced; if somebody listens
 * there, or the file is no socket: ERR_CONFLICT.  The directory is locked (flock) while this is
 * decided. */
int listen_unix(struct loop *l, const char *dir, const char *name, accept_fn fn, void *ctx,
		struct listener **ret, struct err *err);
/* port 0: any.  A taken port is ERR_CONFLICT. */
int listen_tcp(struct loop *l, const char *addr, int port, accept_fn fn, void *ctx, int *ret_port,
	       struct listener **ret, struct err *err);
/* Let nobody in for now: who dials waits in the kernel's queue. */
void listener_pause(struct listener *li, bool pause);
/* Removes the socket file if it is still ours.  NULL allowed.  Returns NULL. */
struct listener *listener_free(struct listener *li);

/* Uid of the peer of a unix socket; -1 if unknown. */
int64_t socket_peer_uid(int fd);
