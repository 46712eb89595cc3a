#include "agent/preflight.h"

#include <errno.h>
#include <net/if.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/list.h"
#include "base/log.h"
#include "net/address.h"
#include "sys/loop.h"
#include "sys/netns.h"

#define AGAIN_MS 100	/* until a peer that was not reached is tried again */
#define BACKLOG 1024	/* all peers come at once */
#define MOST_GUESTS 256 /* others wait in the kernel's queue */
#define SHM "/dev/shm"

/* A connection of a peer to the listener. */
struct guest {
	struct list link;
	struct preflight *p;
	int fd;
	struct loop_io *io;
	size_t got;
};

/* A connection to a peer. */
struct call {
	struct preflight *p;
	struct address to;
	int rank, fd, errnum;
	struct loop_io *io;
	size_t sent;
	bool reached, done;
};

struct preflight {
	struct loop *loop;
	char *netns;
	int fd;
	struct loop_io *io;
	struct list guests;
	int nguests;

	/* The question of the master. */
	int round;
	struct call *calls;
	size_t ncalls, left;
	int64_t limit_ms;
	struct loop_timer *limit, *again;
	preflight_fn done;
	void *ctx;
};

/* ---- facts ---- */

struct mtu_search {
	struct address at;
	int64_t mtu;
};

static int find_mtu(void *ctx, struct err *err)
{
	struct mtu_search *m = ctx;
	CLEANUP(close_fdp) int fd = socket(m->at.sa.sa_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	struct ifreq ifr = {0};

	(void)err;
	address_interface(&m->at, ifr.ifr_name, sizeof(ifr.ifr_name));
	if (fd >= 0 && ifr.ifr_name[0] && ioctl(fd, SIOCGIFMTU, &ifr) == 0)
		m->mtu = ifr.ifr_mtu;
	return 0;
}

static int64_t mtu_of(const char *netns, const struct address *at)
{
	struct mtu_search m = {.at = *at};
	CLEANUP(close_fdp) int fd = netns ? netns_open(netns, NULL) : -1;

	if (!netns)
		find_mtu(&m, NULL);
	else if (fd >= 0)
		netns_within(fd, find_mtu, &m, NULL);
	return m.mtu;
}

static void find_facts(const char *netns, const struct address *at, struct message_facts *ret)
{
	struct rlimit files = {0};
	struct statvfs shm;

	getrlimit(RLIMIT_NOFILE, &files);
	ret->files = files.rlim_cur > INT32_MAX ? INT32_MAX : (int64_t)files.rlim_cur;
	ret->shm = statvfs(SHM, &shm) == 0 ? (int64_t)(shm.f_bavail * shm.f_frsize) : -1;
	ret->mtu = mtu_of(netns, at);
	ret->time_ms = clock_wall_ms();
}

/* ---- the listener ---- */

static void guest_free(struct guest *g)
{
	list_remove(&g->link);
	if (g->p->nguests-- == MOST_GUESTS && g->p->io)
		loop_io_set(g->p->io, LOOP_READ);
	g->io = loop_io_free(g->io);
	close(g->fd);
	free(g);
}

static void guest_reads(void *ctx, int fd, int events)
{
	struct guest *g = ctx;
	ssize_t n = read(fd, loop_scratch(g->p->loop), LOOP_SCRATCH);

	(void)events;
	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (n > 0)
		g->got += (size_t)n;
	if (n > 0 && g->got < PREFLIGHT_BYTES)
		return;
	/* The peer closes first: its end has the TIME_WAIT. */
	if (n > 0 && g->got == PREFLIGHT_BYTES && write(fd, "k", 1) == 1)
		return;
	guest_free(g);
}

static void guest_comes(void *ctx, int fd, int events)
{
	struct preflight *p = ctx;

	(void)events;
	for (;;) {
		int in = accept4(fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);

		if (in < 0)
			return;
		struct guest *g = xcalloc(1, sizeof(*g));

		*g = (struct guest){.p = p, .fd = in};
		list_append(&p->guests, &g->link);
		g->io = loop_io_new(p->loop, in, LOOP_READ, guest_reads, g);
		if (++p->nguests == MOST_GUESTS) {
			loop_io_set(p->io, 0);
			return;
		}
	}
}

struct preflight *preflight_open(struct loop *l, const char *netns, const char *address,
				 struct message_facts *ret)
{
	CLEANUP(close_fdp) int fd = -1;
	struct address at;
	socklen_t len = sizeof(at.in6);

	if (!address_ip(&at, address, 0))
		return NULL;
	fd = netns_socket(netns, at.sa.sa_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC);
	if (fd < 0 || bind(fd, &at.sa, at.len) < 0 || listen(fd, BACKLOG) < 0) {
		log_warn("preflight: cannot listen on %s: %s", address, strerror(errno));
		return NULL;
	}
	find_facts(netns, &at, ret);
	getsockname(fd, &at.sa, &len);
	ret->port = address_port(&at);
	struct preflight *p = xcalloc(1, sizeof(*p));

	p->loop = l;
	p->netns = netns ? xstrdup(netns) : NULL;
	list_init(&p->guests);
	p->fd = TAKE_FD(fd);
	p->io = loop_io_new(l, p->fd, LOOP_READ, guest_comes, p);
	return p;
}

/* ---- the peers ---- */

static void hang_up(struct call *c)
{
	c->io = loop_io_free(c->io);
	if (c->fd >= 0)
		close(c->fd);
	c->fd = -1;
}

static void drop_calls(struct preflight *p)
{
	for (size_t i = 0; i < p->ncalls; i++)
		hang_up(&p->calls[i]);
	free(p->calls);
	p->calls = NULL;
	p->ncalls = p->left = 0;
	p->limit = loop_timer_free(p->limit);
	p->again = loop_timer_free(p->again);
}

static void describe(const struct preflight *p, const struct call *c, char *out, size_t size)
{
	char span[32];

	clock_format_span(p->limit_ms, span);
	if (c->reached)
		snprintf(
			out, size,
			"a connection is made, but a message of %d KiB does not get through within %s",
			PREFLIGHT_BYTES / 1024, span);
	else if (c->errnum)
		snprintf(out, size, "%s", strerror(c->errnum));
	else
		snprintf(out, size, "no answer within %s", span);
}

/* All peers are reached, or the time is over. */
static void finish(void *ctx)
{
	struct preflight *p = ctx;
	struct message_preflight_done m = {.round = p->round};
	char why[160];

	for (size_t i = 0; i < p->ncalls; i++) {
		const struct call *c = &p->calls[i];

		if (c->done || m.failed++ > 0)
			continue;
		m.rank = c->rank;
		m.reached = c->reached;
		describe(p, c, why, sizeof(why));
		m.reason = why;
	}
	drop_calls(p);
	p->done(p->ctx, &m);
}

static void call_failed(struct call *c, int errnum)
{
	c->errnum = errnum;
	hang_up(c);
	loop_timer_set(c->p->again, AGAIN_MS);
}

static void call_done(struct call *c)
{
	struct preflight *p = c->p;

	c->done = true;
	hang_up(c);
	if (--p->left == 0)
		loop_timer_set(p->limit, 0);
}

/* Returns 0, or an errno. */
static int send_more(struct call *c)
{
	static const char zeros[PREFLIGHT_BYTES];

	while (c->sent < sizeof(zeros)) {
		ssize_t n = send(c->fd, zeros + c->sent, sizeof(zeros) - c->sent, MSG_NOSIGNAL);

		if (n < 0)
			return errno == EAGAIN || errno == EINTR ? 0 : errno;
		c->sent += (size_t)n;
	}
	loop_io_set(c->io, LOOP_READ);
	return 0;
}

static void call_goes_on(void *ctx, int fd, int events)
{
	struct call *c = ctx;
	int errnum = 0;
	socklen_t len = sizeof(errnum);
	char answer;

	if (events & LOOP_READ) {
		ssize_t n = read(fd, &answer, 1);

		if (n == 1)
			call_done(c);
		else if (n == 0 || (errno != EAGAIN && errno != EINTR))
			call_failed(c, n == 0 ? ECONNRESET : errno);
		return;
	}
	getsockopt(fd, SOL_SOCKET, SO_ERROR, &errnum, &len);
	c->reached = !errnum;
	if (!errnum)
		errnum = send_more(c);
	if (errnum)
		call_failed(c, errnum);
}

static void call(struct call *c)
{
	c->reached = false;
	c->sent = 0;
	c->fd = netns_socket(c->p->netns, c->to.sa.sa_family,
			     SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC);
	if (c->fd < 0 || (connect(c->fd, &c->to.sa, c->to.len) < 0 && errno != EINPROGRESS)) {
		call_failed(c, errno);
		return;
	}
	c->errnum = 0;
	c->io = loop_io_new(c->p->loop, c->fd, LOOP_WRITE, call_goes_on, c);
}

static void call_again(void *ctx)
{
	struct preflight *p = ctx;

	for (size_t i = 0; i < p->ncalls; i++)
		if (!p->calls[i].done && p->calls[i].fd < 0)
			call(&p->calls[i]);
}

void preflight_ask(struct preflight *p, const struct message_preflight *m, preflight_fn done,
		   void *ctx)
{
	drop_calls(p);
	p->round = m->round;
	p->limit_ms = m->limit_ms;
	p->done = done;
	p->ctx = ctx;
	p->limit = loop_timer_new(p->loop, finish, p);
	p->again = loop_timer_new(p->loop, call_again, p);
	p->calls = xcalloc(m->npeers + 1, sizeof(*p->calls));
	for (size_t i = 0; i < m->npeers; i++) {
		struct call *c = &p->calls[p->ncalls];

		*c = (struct call){.p = p, .rank = m->peers[i].rank, .fd = -1};
		/* Where the job could not call it by its address either, nothing can be tried out. */
		if (address_ip(&c->to, m->peers[i].address, m->peers[i].port))
			p->ncalls++;
	}
	p->left = p->ncalls;
	loop_timer_set(p->limit, p->left ? p->limit_ms : 0);
	loop_timer_set(p->again, 0);
}

struct preflight *preflight_free(struct preflight *p)
{
	struct list *at, *next;

	if (!p)
		return NULL;
	drop_calls(p);
	p->io = loop_io_free(p->io);
	list_each_safe (at, next, &p->guests)
		guest_free(list_item(at, struct guest, link));
	close(p->fd);
	free(p->netns);
	free(p);
	return NULL;
}
