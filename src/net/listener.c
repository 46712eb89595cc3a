#include "net/listener.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/err.h"
#include "sys/loop.h"

#define BACKLOG 1024
#define ACCEPTS_PER_ROUND 64
#define FULL_PAUSE_MS 100 /* out of descriptors: let some be closed first */
#define LOCK_WAIT_MS 200  /* it is held for a few system calls */
#define LOCK_RETRY_MS 5

struct listener {
	int fd;
	struct loop_io *io;
	struct loop_timer *resume;
	accept_fn fn;
	void *ctx;
	bool accepting, freed; /* the callee may free us: our memory goes after it returns */

	/* Unix sockets only. */
	int dirfd;
	char *name;
	dev_t dev;
	ino_t ino;
};

union address {
	struct sockaddr sa;
	struct sockaddr_un un;
	struct sockaddr_in in4;
	struct sockaddr_in6 in6;
};

static bool address_tcp(const char *addr, int port, union address *ret, socklen_t *ret_len)
{
	*ret = (union address){0};
	if (port < 0 || port > 65535)
		return false;
	if (inet_pton(AF_INET, addr, &ret->in4.sin_addr) == 1) {
		ret->in4.sin_family = AF_INET;
		ret->in4.sin_port = htons((uint16_t)port);
		*ret_len = sizeof(ret->in4);
		return true;
	}
	if (inet_pton(AF_INET6, addr, &ret->in6.sin6_addr) == 1) {
		ret->in6.sin6_family = AF_INET6;
		ret->in6.sin6_port = htons((uint16_t)port);
		*ret_len = sizeof(ret->in6);
		return true;
	}
	return false;
}

/* A long path goes through /proc/self/fd, which needs the directory open while the address is
 * used. */
static int address_unix(int dirfd, const char *dir, const char *name, union address *ret,
			socklen_t *ret_len, struct err *err)
{
	size_t max = sizeof(ret->un.sun_path);
	int n;

	if (!*name || strchr(name, '/'))
		return err_set(err, ERR_INVALID, "'%s' is no name for a socket", name);
	*ret = (union address){.un.sun_family = AF_UNIX};
	n = snprintf(ret->un.sun_path, max, "%s/%s", dir, name);
	if (n < 0 || (size_t)n >= max)
		n = snprintf(ret->un.sun_path, max, "/proc/self/fd/%d/%s", dirfd, name);
	if (n < 0 || (size_t)n >= max)
		return err_set(err, ERR_INVALID, "the socket name '%s' is too long", name);
	*ret_len = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + (size_t)n + 1);
	return 0;
}

static void accept_some(struct listener *li)
{
	li->accepting = true;
	for (int i = 0; i < ACCEPTS_PER_ROUND; i++) {
		int fd = accept4(li->fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);

		if (fd >= 0) {
			li->fn(li->ctx, fd);
			if (li->freed)
				break;
			continue;
		}
		if (errno == EINTR || errno == ECONNABORTED)
			continue;
		if (errno != EAGAIN) {
			/* Level-triggered: without a pause a full table would spin. */
			loop_io_set(li->io, 0);
			loop_timer_set(li->resume, FULL_PAUSE_MS);
		}
		break;
	}
	li->accepting = false;
	if (li->freed)
		free(li);
}

static void accept_ready(void *ctx, int fd, int events)
{
	(void)fd;
	(void)events;
	accept_some(ctx);
}

static void accept_resume(void *ctx)
{
	struct listener *li = ctx;

	loop_io_set(li->io, LOOP_READ);
}

static struct listener *listener_new(struct loop *l, int fd, accept_fn fn, void *ctx)
{
	struct listener *li = xcalloc(1, sizeof(*li));

	*li = (struct listener){.fd = fd, .dirfd = -1, .fn = fn, .ctx = ctx};
	li->io = loop_io_new(l, fd, LOOP_READ, accept_ready, li);
	li->resume = loop_timer_new(l, accept_resume, li);
	return li;
}

static int lock_dir(const char *dir, int *ret_fd, struct err *err)
{
	CLEANUP(close_fdp) int fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	int64_t give_up = clock_boot_ms() + LOCK_WAIT_MS;

	if (fd < 0)
		return err_errno(err, errno, "open '%s'", dir);
	while (flock(fd, LOCK_EX | LOCK_NB) < 0) {
		if (errno != EWOULDBLOCK && errno != EINTR)
			return err_errno(err, errno, "lock '%s'", dir);
		if (clock_boot_ms() >= give_up)
			return err_set(err, ERR_CONFLICT, "'%s' is locked by another process", dir);
		poll(NULL, 0, LOCK_RETRY_MS);
	}
	*ret_fd = TAKE_FD(fd);
	return 0;
}

/* The name is taken: remove it if it is a socket on which nobody listens.  The caller holds the
 * lock. */
static int remove_dead(int dirfd, const char *dir, const char *name, const union address *a,
		       socklen_t len, struct err *err)
{
	CLEANUP(close_fdp) int fd = -1;
	struct stat st;

	if (fstatat(dirfd, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return errno == ENOENT ? 0 : err_errno(err, errno, "stat '%s/%s'", dir, name);
	if (!S_ISSOCK(st.st_mode))
		return err_set(err, ERR_CONFLICT, "'%s/%s' is in the way: it is not a socket", dir,
			       name);
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return err_errno(err, errno, "make a socket");
	/* EAGAIN: alive, with a full backlog. */
	if (connect(fd, &a->sa, len) == 0 || errno == EAGAIN)
		return err_set(err, ERR_CONFLICT, "another process listens on '%s/%s'", dir, name);
	if (errno != ECONNREFUSED && errno != ENOENT)
		return err_errno(err, errno, "probe '%s/%s'", dir, name);
	if (unlinkat(dirfd, name, 0) < 0 && errno != ENOENT)
		return err_errno(err, errno, "remove dead socket '%s/%s'", dir, name);
	return 0;
}

int listen_unix(struct loop *l, const char *dir, const char *name, accept_fn fn, void *ctx,
		struct listener **ret, struct err *err)
{
	CLEANUP(close_fdp) int dirfd = -1;
	CLEANUP(close_fdp) int fd = -1;
	union address a;
	socklen_t len;
	struct stat st;

	if (lock_dir(dir, &dirfd, err) < 0 || address_unix(dirfd, dir, name, &a, &len, err) < 0 ||
	    remove_dead(dirfd, dir, name, &a, len, err) < 0)
		return -1;
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return err_errno(err, errno, "make a socket");
	/* Nobody can connect before listen(), so the mode is right from the first peer on. */
	if (bind(fd, &a.sa, len) < 0)
		return err_errno(err, errno, "bind '%s/%s'", dir, name);
	if (fchmodat(dirfd, name, 0600, 0) < 0 ||
	    fstatat(dirfd, name, &st, AT_SYMLINK_NOFOLLOW) < 0 || listen(fd, BACKLOG) < 0) {
		err_errno(err, errno, "listen in '%s'", dir);
		unlinkat(dirfd, name, 0);
		return -1;
	}
	flock(dirfd, LOCK_UN);

	struct listener *li = listener_new(l, TAKE_FD(fd), fn, ctx);

	li->dirfd = TAKE_FD(dirfd);
	li->name = xstrdup(name);
	li->dev = st.st_dev;
	li->ino = st.st_ino;
	*ret = li;
	return 0;
}

static int socket_tcp(const char *addr, int port, union address *ret_address, socklen_t *ret_len,
		      int *ret_fd, struct err *err)
{
	if (!address_tcp(addr, port, ret_address, ret_len))
		return err_set(err, ERR_INVALID, "'%s' port %d is not a numeric address and port",
			       addr, port);
	int fd = socket(ret_address->sa.sa_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return err_errno(err, errno, "make a socket");
	*ret_fd = fd;
	return 0;
}

int listen_tcp(struct loop *l, const char *addr, int port, accept_fn fn, void *ctx, int *ret_port,
	       struct listener **ret, struct err *err)
{
	CLEANUP(close_fdp) int fd = -1;
	union address a;
	socklen_t len;
	int on = 1;

	if (socket_tcp(addr, port, &a, &len, &fd, err) < 0)
		return -1;
	setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
	if (a.sa.sa_family == AF_INET6)
		setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &on, sizeof(on));
	if (bind(fd, &a.sa, len) < 0 || listen(fd, BACKLOG) < 0) {
		if (errno == EADDRINUSE)
			return err_set(err, ERR_CONFLICT, "port %d on %s is taken", port, addr);
		return err_errno(err, errno, "listen on port %d of %s", port, addr);
	}
	if (getsockname(fd, &a.sa, &len) < 0)
		return err_errno(err, errno, "read the address of a socket");
	if (ret_port)
		*ret_port = ntohs(a.sa.sa_family == AF_INET6 ? a.in6.sin6_port : a.in4.sin_port);
	*ret = listener_new(l, TAKE_FD(fd), fn, ctx);
	return 0;
}

static void remove_own(struct listener *li)
{
	struct stat st;

	/* Whoever holds the lock is replacing a dead socket, maybe ours: then it is theirs to
	 * remove. */
	if (flock(li->dirfd, LOCK_EX | LOCK_NB) < 0)
		return;
	if (fstatat(li->dirfd, li->name, &st, AT_SYMLINK_NOFOLLOW) == 0 && st.st_dev == li->dev &&
	    st.st_ino == li->ino)
		unlinkat(li->dirfd, li->name, 0);
}

struct listener *listener_free(struct listener *li)
{
	if (!li)
		return NULL;
	loop_io_free(li->io);
	loop_timer_free(li->resume);
	if (li->dirfd >= 0) {
		remove_own(li);
		close(li->dirfd);
	}
	close(li->fd);
	free(li->name);
	li->freed = true;
	if (!li->accepting)
		free(li);
	return NULL;
}

int dial_unix(const char *dir, const char *name, int timeout_ms, int *ret_fd, struct err *err)
{
	CLEANUP(close_fdp) int dirfd = -1;
	CLEANUP(close_fdp) int fd = -1;
	struct timeval wait = {0};
	union address a;
	socklen_t len;

	dirfd = open(dir, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (dirfd < 0 && errno == ENOENT)
		return err_set(err, ERR_UNAVAILABLE, "nobody listens on '%s/%s': no such directory",
			       dir, name);
	if (dirfd < 0)
		return err_errno(err, errno, "open '%s'", dir);
	if (address_unix(dirfd, dir, name, &a, &len, err) < 0)
		return -1;
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return err_errno(err, errno, "make a socket");

	/* A unix connect waits only for room in the backlog, for which there is no poll(). */
	if (timeout_ms >= 0)
		wait = (struct timeval){timeout_ms / 1000, timeout_ms % 1000 * 1000 + 1};
	setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &wait, sizeof(wait));
	while (connect(fd, &a.sa, len) < 0) {
		switch (errno) {
		case EINTR:
			continue;
		case ENOENT:
		case ECONNREFUSED:
			return err_set(err, ERR_UNAVAILABLE, "nobody listens on '%s/%s'", dir,
				       name);
		case EAGAIN:
			return err_set(err, ERR_TIMEOUT, "'%s/%s' did not accept within %d ms", dir,
				       name, timeout_ms);
		default:
			return err_errno(err, errno, "connect to '%s/%s'", dir, name);
		}
	}
	wait = (struct timeval){0};
	setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &wait, sizeof(wait));
	*ret_fd = TAKE_FD(fd);
	return 0;
}

/* Wait for the end of a connect that is under way; 0 or an errno. */
static int wait_connected(int fd, int timeout_ms)
{
	int64_t give_up = clock_boot_ms() + timeout_ms;
	int e = 0;
	socklen_t len = sizeof(e);

	for (;;) {
		struct pollfd p = {.fd = fd, .events = POLLOUT};
		int64_t left = timeout_ms < 0 ? -1 : give_up - clock_boot_ms();
		int n = poll(&p, 1, timeout_ms < 0 ? -1 : left > 0 ? (int)left : 0);

		if (n > 0)
			break;
		if (n == 0)
			return ETIMEDOUT;
		if (errno != EINTR)
			return errno;
	}
	return getsockopt(fd, SOL_SOCKET, SO_ERROR, &e, &len) < 0 ? errno : e;
}

int dial_tcp(const char *addr, int port, int timeout_ms, int *ret_fd, struct err *err)
{
	CLEANUP(close_fdp) int fd = -1;
	union address a;
	socklen_t len;
	int e = 0, on = 1;

	if (socket_tcp(addr, port, &a, &len, &fd, err) < 0)
		return -1;
	if (connect(fd, &a.sa, len) < 0)
		e = errno == EINPROGRESS || errno == EINTR ? wait_connected(fd, timeout_ms) : errno;
	if (e == ECONNREFUSED)
		return err_set(err, ERR_UNAVAILABLE, "nobody listens on port %d of %s", port, addr);
	if (e)
		return err_errno(err, e, "connect to port %d of %s", port, addr);
	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
	if (fcntl(fd, F_SETFL, 0) < 0)
		return err_errno(err, errno, "set up a socket");
	*ret_fd = TAKE_FD(fd);
	return 0;
}

int64_t socket_peer_uid(int fd)
{
	struct ucred cred;
	socklen_t len = sizeof(cred);
	int domain = 0;
	socklen_t domain_len = sizeof(domain);

	if (getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &domain, &domain_len) < 0 || domain != AF_UNIX)
		return -1;
	if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &cred, &len) < 0 || cred.uid == (uid_t)-1)
		return -1;
	return (int64_t)cred.uid;
}
