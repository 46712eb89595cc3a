#include "sys/netns.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <linux/magic.h>
#include <sched.h>
#include <stdlib.h>
#include <sys/mount.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "sys/netlink.h"

#define OURS "/proc/thread-self/ns/net"

/* The thread's current namespace, to return to it. */
static int own_open(struct err *err)
{
	int fd = open(OURS, O_RDONLY | O_CLOEXEC);

	return fd < 0 ? err_errno(err, errno, "open '%s'", OURS) : fd;
}

static void go_back(int own)
{
	if (setns(own, CLONE_NEWNET) < 0)
		abort();
}

static int fill_new(void *ctx, struct err *err)
{
	const char *path = ctx;
	CLEANUP(close_fdp) int nl = netlink_open(err);

	if (nl < 0 || netlink_set_up(nl, "lo", err) < 0)
		return -1;
	/* Last, so that a mounted namespace is complete. */
	if (mount(OURS, path, NULL, MS_BIND, NULL) < 0)
		return err_errno(err, errno, "hold a network namespace at '%s'", path);
	return 0;
}

int netns_make(const char *path, struct err *err)
{
	CLEANUP(close_fdp) int own = own_open(err);
	CLEANUP(close_fdp) int file = -1;

	if (own < 0)
		return -1;
	file = open(path, O_RDONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	if (file < 0)
		return err_errno(err, errno, "make '%s'", path);
	int rc = unshare(CLONE_NEWNET) < 0 ? err_errno(err, errno, "make a network namespace") : 0;

	if (rc == 0) {
		rc = fill_new((void *)path, err);
		go_back(own);
	}
	if (rc < 0)
		unlink(path);
	return rc;
}

bool netns_is_at(const char *path)
{
	struct statfs fs;

	return statfs(path, &fs) == 0 && fs.f_type == NSFS_MAGIC;
}

int netns_remove(const char *path, struct err *err)
{
	/* There may be several mounts on top of each other; bounded, to avoid an endless loop. */
	for (int i = 0; i < 16 && netns_is_at(path); i++)
		if (umount2(path, MNT_DETACH | UMOUNT_NOFOLLOW) < 0)
			return err_errno(err, errno, "unmount '%s'", path);
	if (unlink(path) < 0 && errno != ENOENT)
		return err_errno(err, errno, "remove '%s'", path);
	return 0;
}

int netns_open(const char *path, struct err *err)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);

	return fd < 0 ? err_errno(err, errno, "open the network namespace '%s'", path) : fd;
}

int netns_within(int fd, int (*fn)(void *ctx, struct err *err), void *ctx, struct err *err)
{
	CLEANUP(close_fdp) int own = own_open(err);

	if (own < 0)
		return -1;
	if (setns(fd, CLONE_NEWNET) < 0)
		return err_errno(err, errno, "enter a network namespace");
	int rc = fn(ctx, err);

	go_back(own);
	return rc;
}

struct socket_ask {
	int family, type, fd, errnum;
};

static int make_socket(void *ctx, struct err *err)
{
	struct socket_ask *s = ctx;

	(void)err;
	s->fd = socket(s->family, s->type, 0);
	s->errnum = errno;
	return 0;
}

int netns_socket(const char *path, int family, int type)
{
	struct socket_ask s = {.family = family, .type = type, .fd = -1};
	struct err err = {0};

	if (!path)
		return socket(family, type, 0);
	CLEANUP(close_fdp) int fd = netns_open(path, &err);

	if (fd < 0 || netns_within(fd, make_socket, &s, &err) < 0)
		s.errnum = err.code ? err.code : EIO;
	errno = s.errnum;
	return s.fd;
}

/* A raw system call, to avoid a dependency on libcap. */
static bool has_capability(unsigned cap)
{
	struct __user_cap_header_struct h = {.version = _LINUX_CAPABILITY_VERSION_3};
	struct __user_cap_data_struct d[_LINUX_CAPABILITY_U32S_3] = {0};

	return syscall(SYS_capget, &h, d) == 0 && d[CAP_TO_INDEX(cap)].effective & CAP_TO_MASK(cap);
}

int netns_check_allowed(struct err *err)
{
	if (geteuid() != 0)
		return err_set(err, ERR_DENIED,
			       "network namespaces take root, and this master is user %u",
			       (unsigned)geteuid());
	if (!has_capability(CAP_SYS_ADMIN) || !has_capability(CAP_NET_ADMIN))
		return err_set(err, ERR_DENIED,
			       "network namespaces take CAP_SYS_ADMIN and CAP_NET_ADMIN, which "
			       "this container withholds");
	return 0;
}
