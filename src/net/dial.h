#pragma once
/*
 * dial - blocking connects with a deadline.
 *
 * The caller owns the descriptor (blocking, close-on-exec).  ERR_UNAVAILABLE: no process listens on
 * the address.  A negative timeout means no limit.
 */
struct deadline;
struct err;
struct resolve_options;

/* The unix socket dir/name. */
int dial_unix(const char *dir, const char *name, int timeout_ms, int *ret_fd, struct err *err);
int dial_unix_until(const char *dir, const char *name, const struct deadline *d, int *ret_fd,
		    struct err *err);
/* A numeric address. */
int dial_tcp(const char *addr, int port, int timeout_ms, int *ret_fd, struct err *err);
/* A host by name (resolve.h) or numeric address.  Its addresses are tried in turn, each with a share of
 * the time left; the error is that of the last one.  `o` may be NULL. */
int dial_host(const char *host, int port, const struct resolve_options *o, const struct deadline *d,
	      int *ret_fd, struct err *err);
