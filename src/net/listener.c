#include "net/listener.h"

#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdbool.h>
#include <string.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/err.h"
#include "net/address.h"
#include "sys/loop.h"

#define BACKLOG 4096 /* who waits there while accepting is paused */
#define ACCEPTS_PER_ROUND 64
#define FULL_PAUSE_MS 100 /* pause when no descriptors are left */
#define LOCK_WAIT_MS 200  /* the lock is held for a few system calls */
#define LOCK_RETRY_MS 5

struct listener {
	int fd;
	struct loop_io *io;
	struct loop_timer *resume;
	accept_fn fn;
	void *ctx;
	bool paused;
	bool accepting, freed; /* freed by the callback: the memory is released after it returns */

	/* Unix sockets only. */
	int dirfd;
	char *name;
	dev_t dev;
	ino_t ino;
};

static void accept_some(struct listener *li)
{
	li->accepting = true;
	for (int i = 0; i < ACCEPTS_PER_ROUND && !li->paused; i++) {
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
			/* Level-triggered: without a pause the loop would spin. */
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

	loop_io_set(li->io, li->paused ? 0 : LOOP_READ);
}

void listener_pause(struct listener *li, bool pause)
{
	li->paused = pause;
	loop_timer_cancel(li->resume);
	loop_io_set(li->io, pause ? 0 : LOOP_READ);
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

/* The file exists: remove it if it is a socket without a listener.  The caller holds the lock. */
static int remove_dead(int dirfd, const char *dir, const char *name, const struct address *a,
		       struct err *err)
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
	if (connect(fd, &a->sa, a->len) == 0 || errno == EAGAIN)
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
	struct address a;
	struct stat st;

	if (lock_dir(dir, &dirfd, err) < 0 || address_unix(&a, dirfd, dir, name, err) < 0 ||
	    remove_dead(dirfd, dir, name, &a, err) < 0)
		return -1;
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return err_errno(err, errno, "make a socket");
	/* A connect before listen() fails, so the mode is set before the first peer connects. */
	if (bind(fd, &a.sa, a.len) < 0)
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

int listen_tcp(struct loop *l, const char *addr, int port, accept_fn fn, void *ctx, int *ret_port,
	       struct listener **ret, struct err *err)
{
	CLEANUP(close_fdp) int fd = -1;
	struct address a;
	int on = 1;

	if (!address_ip(&a, addr, port))
		return err_set(err, ERR_INVALID, "'%s' port %d is not a numeric address and port",
			       addr, port);
	fd = socket(a.sa.sa_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return err_errno(err, errno, "make a socket");
	setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
	if (a.sa.sa_family == AF_INET6)
		setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &on, sizeof(on));
	if (bind(fd, &a.sa, a.len) < 0 || listen(fd, BACKLOG) < 0) {
		if (errno == EADDRINUSE)
			return err_set(err, ERR_CONFLICT, "port %d on %s is taken", port, addr);
		return err_errno(err, errno, "listen on port %d of %s", port, addr);
	}
	if (getsockname(fd, &a.sa, &a.len) < 0)
		return err_errno(err, errno, "read the address of a socket");
	if (ret_port)
		*ret_port = address_port(&a);
	*ret = listener_new(l, TAKE_FD(fd), fn, ctx);
	return 0;
}

static void remove_own(struct listener *li)
{
	struct stat st;

	/* The holder of the lock is replacing a dead socket, maybe this one, and removes it. */
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
