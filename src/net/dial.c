#include "net/dial.h"

#include <errno.h>
#include <fcntl.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/deadline.h"
#include "base/err.h"
#include "net/address.h"
#include "net/resolve.h"

#define ADDRESS_MAX_MS 10000 /* for one address, if there are more to try */

/* Limit a connect to a unix socket: poll() cannot wait for space in its backlog. */
static void limit_connect(int fd, int ms)
{
	struct timeval wait = {0}; /* for ever */

	if (ms >= 0)
		wait = (struct timeval){ms / 1000, ms % 1000 * 1000 + 1};
	setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &wait, sizeof(wait));
}

static int connect_unix(int fd, const struct address *a, const char *dir, const char *name,
			const struct deadline *d, struct err *err)
{
	for (;;) {
		limit_connect(fd, deadline_slice_ms(d));
		if (connect(fd, &a->sa, a->len) == 0)
			break;
		switch (errno) {
		case ENOENT:
		case ECONNREFUSED:
			return err_set(err, ERR_UNAVAILABLE, "nobody listens on '%s/%s'", dir,
				       name);
		case EINTR:
		case EAGAIN:
			if (deadline_check(d, "it did not accept", err) < 0)
				return err_wrap(err, "connect to '%s/%s'", dir, name);
			break;
		default:
			return err_errno(err, errno, "connect to '%s/%s'", dir, name);
		}
	}
	limit_connect(fd, -1);
	return 0;
}

int dial_unix_until(const char *dir, const char *name, const struct deadline *d, int *ret_fd,
		    struct err *err)
{
	CLEANUP(close_fdp) int dirfd = -1;
	CLEANUP(close_fdp) int fd = -1;
	struct address a;

	dirfd = open(dir, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (dirfd < 0 && errno == ENOENT)
		return err_set(err, ERR_UNAVAILABLE, "nobody listens on '%s/%s': no such directory",
			       dir, name);
	if (dirfd < 0)
		return err_errno(err, errno, "open '%s'", dir);
	if (address_unix(&a, dirfd, dir, name, err) < 0)
		return -1;
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return err_errno(err, errno, "make a socket");
	if (connect_unix(fd, &a, dir, name, d, err) < 0)
		return -1;
	*ret_fd = TAKE_FD(fd);
	return 0;
}

int dial_unix(const char *dir, const char *name, int timeout_ms, int *ret_fd, struct err *err)
{
	struct deadline d = deadline_in(timeout_ms, NULL);

	return dial_unix_until(dir, name, &d, ret_fd, err);
}

/* Wait for the end of a non-blocking connect. */
static int wait_connected(int fd, const struct deadline *d, int *ret_errno, struct err *err)
{
	socklen_t len = sizeof(*ret_errno);

	if (deadline_poll(d, fd, POLLOUT, "nobody answered", err) < 0)
		return -1;
	if (getsockopt(fd, SOL_SOCKET, SO_ERROR, ret_errno, &len) < 0)
		*ret_errno = errno;
	return 0;
}

static int dial_address(const struct address *a, const struct deadline *d, int *ret_fd,
			struct err *err)
{
	CLEANUP(close_fdp) int fd = -1;
	char text[ADDRESS_TEXT];
	int e = 0, on = 1;

	address_text(a, text);
	fd = socket(a->sa.sa_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return err_errno(err, errno, "make a socket");
	if (connect(fd, &a->sa, a->len) < 0)
		e = errno;
	if ((e == EINPROGRESS || e == EINTR) && wait_connected(fd, d, &e, err) < 0)
		return err_wrap(err, "connect to port %d of %s", address_port(a), text);
	if (e == ECONNREFUSED)
		return err_set(err, ERR_UNAVAILABLE, "nobody listens on port %d of %s",
			       address_port(a), text);
	if (e) {
		err_errno(err, e, "connect to port %d of %s", address_port(a), text);
		/* EACCES of a firewall must not become ERR_DENIED. */
		if (err && err->kind != ERR_TIMEOUT)
			err->kind = ERR_UNAVAILABLE;
		return -1;
	}
	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
	if (fcntl(fd, F_SETFL, 0) < 0)
		return err_errno(err, errno, "set up a socket");
	*ret_fd = TAKE_FD(fd);
	return 0;
}

int dial_tcp(const char *addr, int port, int timeout_ms, int *ret_fd, struct err *err)
{
	struct deadline d = deadline_in(timeout_ms, NULL);
	struct address a;

	if (!address_ip(&a, addr, port))
		return err_set(err, ERR_INVALID, "'%s' port %d is not a numeric address and port",
			       addr, port);
	return dial_address(&a, &d, ret_fd, err);
}

int dial_host(const char *host, int port, const struct resolve_options *o, const struct deadline *d,
	      int *ret_fd, struct err *err)
{
	struct address all[RESOLVE_MAX];
	size_t n = 0;
	int rc = -1;

	if (port <= 0 || port > 65535)
		return err_set(err, ERR_INVALID, "%d is not a port", port);
	if (resolve_host(o, host, d, all, &n, err) < 0)
		return -1;
	for (size_t i = 0; i < n && rc < 0; i++) {
		struct deadline share = *d;
		int64_t left = deadline_left_ms(d);

		if (deadline_check(d, "no address answered", err) < 0)
			return err_wrap(err, "connect to '%s'", host);
		if (i + 1 < n) {
			left /= (int64_t)(n - i);
			share = deadline_within(d, left < ADDRESS_MAX_MS ? left : ADDRESS_MAX_MS);
		}
		address_set_port(&all[i], port);
		rc = dial_address(&all[i], &share, ret_fd, err);
		if (rc < 0 && d->stop && *d->stop)
			return -1;
	}
	return rc;
}
