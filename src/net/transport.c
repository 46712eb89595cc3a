#include "net/transport.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <unistd.h>

static ssize_t plain_read(struct transport *t, void *p, size_t n)
{
	ssize_t got;

	do {
		got = recv(t->fd, p, n, MSG_DONTWAIT);
	} while (got < 0 && errno == EINTR);
	return got;
}

static ssize_t plain_readv(struct transport *t, struct iovec *iov, size_t n)
{
	struct msghdr m = {.msg_iov = iov, .msg_iovlen = n};
	ssize_t got;

	do {
		got = recvmsg(t->fd, &m, MSG_DONTWAIT);
	} while (got < 0 && errno == EINTR);
	return got;
}

static bool plain_pending(const struct transport *t)
{
	(void)t;
	return false;
}

static ssize_t plain_writev(struct transport *t, struct iovec *iov, size_t n)
{
	struct msghdr m = {.msg_iov = iov, .msg_iovlen = n};
	ssize_t sent;

	do {
		sent = sendmsg(t->fd, &m, MSG_NOSIGNAL | MSG_DONTWAIT);
	} while (sent < 0 && errno == EINTR);
	return sent;
}

/* sendfile() has no MSG_NOSIGNAL: block SIGPIPE and consume the one that it may raise. */
static ssize_t plain_send_file(struct transport *t, int fd, off_t *off, size_t n)
{
	sigset_t pipe_only, old;
	ssize_t sent;

	sigemptyset(&pipe_only);
	sigaddset(&pipe_only, SIGPIPE);
	pthread_sigmask(SIG_BLOCK, &pipe_only, &old);
	do {
		sent = sendfile(t->fd, fd, off, n);
	} while (sent < 0 && errno == EINTR);
	int e = errno;

	if (sent < 0 && e == EPIPE)
		sigtimedwait(&pipe_only, NULL, &(struct timespec){0});
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	errno = e;
	return sent;
}

static void plain_end_output(struct transport *t)
{
	shutdown(t->fd, SHUT_WR);
}

static void plain_close(struct transport *t)
{
	if (t->fd >= 0)
		close(t->fd);
	t->fd = -1;
}

static const struct transport_ops plain = {
	.read = plain_read,
	.readv = plain_readv,
	.writev = plain_writev,
	.send_file = plain_send_file,
	.pending = plain_pending,
	.end_output = plain_end_output,
	.close = plain_close,
};

void transport_plain(struct transport *t, int fd)
{
	*t = (struct transport){.fd = fd, .ops = &plain};
}
