#include "agent/log_tee.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "agent/shim/spool.h"
#include "base/cleanup.h"
#include "sys/loop.h"

void log_tee_init(struct log_tee *t, struct loop *l, size_t max, void (*drained)(void *ctx),
		  void *ctx)
{
	*t = (struct log_tee){.loop = l, .fd = -1, .drained = drained, .ctx = ctx};
	buf_init(&t->waiting, max);
}

static void close_pipe(struct log_tee *t)
{
	t->io = loop_io_free(t->io);
	close_fdp(&t->fd);
	t->fd = -1;
	buf_reset(&t->waiting);
}

void log_tee_release(struct log_tee *t)
{
	close_pipe(t);
	buf_release(&t->waiting);
}

bool log_tee_waits(const struct log_tee *t)
{
	return t->fd >= 0;
}

/* Returns false when nothing is left to do: all is written, or nobody reads the pipe. */
static bool pump(struct log_tee *t)
{
	while (t->waiting.n > 0) {
		ssize_t n = write(t->fd, t->waiting.p, t->waiting.n);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return errno == EAGAIN;
		buf_drop_front(&t->waiting, (size_t)n);
	}
	return false;
}

static void writable(void *ctx, int fd, int events)
{
	struct log_tee *t = ctx;

	(void)fd;
	(void)events;
	if (pump(t))
		return;
	close_pipe(t);
	t->drained(t->ctx);
}

void log_tee_write(struct log_tee *t, int dirfd, enum stream s, struct str bytes)
{
	char file[16], fifo[16];

	spool_names(s, file, fifo);
	t->fd = openat(dirfd, fifo, O_WRONLY | O_NONBLOCK | O_CLOEXEC | O_NOFOLLOW);
	if (t->fd < 0)
		return;
	buf_addstr(&t->waiting, bytes);
	if (pump(t))
		t->io = loop_io_new(t->loop, t->fd, LOOP_WRITE, writable, t);
	else
		close_pipe(t);
}
