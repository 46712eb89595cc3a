#include "agent/probe.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "sys/loop.h"
#include "sys/netns.h"

#define PROBE_MS 20
#define PROBE_SLOW_MS 200 /* after PROBE_FAST_FOR_MS without an answer */
#define PROBE_FAST_FOR_MS (10 * 1000)
#define CONNECT_MS 1000 /* a connection that hangs is given up */

struct probe {
	struct loop *loop;
	struct loop_timer *timer;
	struct loop_io *io;
	int fd;
	const char *netns;
	struct sockaddr_storage sa;
	socklen_t len;
	int64_t since_ms;
	probe_fn answered;
	void *ctx;
};

bool probe_address(const char *address, int port, struct sockaddr_storage *ret, socklen_t *ret_len)
{
	struct sockaddr_in *v4 = (struct sockaddr_in *)ret;
	struct sockaddr_in6 *v6 = (struct sockaddr_in6 *)ret;

	*ret = (struct sockaddr_storage){0};
	if (inet_pton(AF_INET, address, &v4->sin_addr) == 1) {
		v4->sin_family = AF_INET;
		v4->sin_port = htons((uint16_t)port);
		*ret_len = sizeof(*v4);
		return true;
	}
	if (inet_pton(AF_INET6, address, &v6->sin6_addr) == 1) {
		v6->sin6_family = AF_INET6;
		v6->sin6_port = htons((uint16_t)port);
		*ret_len = sizeof(*v6);
		return true;
	}
	return false;
}

static void drop(struct probe *p)
{
	p->io = loop_io_free(p->io);
	if (p->fd >= 0)
		close(p->fd);
	p->fd = -1;
}

static void later(struct probe *p)
{
	bool fast = clock_boot_ms() - p->since_ms < PROBE_FAST_FOR_MS;

	drop(p);
	loop_timer_set(p->timer, fast ? PROBE_MS : PROBE_SLOW_MS);
}

static void result(struct probe *p, int errnum)
{
	if (errnum) {
		later(p);
		return;
	}
	drop(p);
	loop_timer_cancel(p->timer);
	p->answered(p->ctx); /* may free p */
}

static void connected(void *ctx, int fd, int events)
{
	int errnum = EIO;
	socklen_t len = sizeof(errnum);

	(void)events;
	getsockopt(fd, SOL_SOCKET, SO_ERROR, &errnum, &len);
	result(ctx, errnum);
}

static void try_now(void *ctx)
{
	struct probe *p = ctx;

	drop(p); /* the last connection, if it hangs */
	p->fd = netns_socket(p->netns, p->sa.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC);
	if (p->fd < 0)
		later(p);
	else if (connect(p->fd, (struct sockaddr *)&p->sa, p->len) == 0)
		result(p, 0);
	else if (errno != EINPROGRESS)
		result(p, errno);
	else {
		p->io = loop_io_new(p->loop, p->fd, LOOP_WRITE, connected, p);
		loop_timer_set(p->timer, CONNECT_MS);
	}
}

struct probe *probe_new(struct loop *l, const char *netns, const char *address, int port,
			probe_fn answered, void *ctx)
{
	struct sockaddr_storage sa;
	socklen_t len;

	if (!probe_address(address, port, &sa, &len))
		return NULL;
	struct probe *p = xcalloc(1, sizeof(*p));

	*p = (struct probe){.loop = l,
			    .netns = netns,
			    .fd = -1,
			    .sa = sa,
			    .len = len,
			    .answered = answered,
			    .ctx = ctx,
			    .since_ms = clock_boot_ms()};
	p->timer = loop_timer_new(l, try_now, p);
	loop_timer_set(p->timer, 0);
	return p;
}

struct probe *probe_free(struct probe *p)
{
	if (!p)
		return NULL;
	drop(p);
	p->timer = loop_timer_free(p->timer);
	free(p);
	return NULL;
}
