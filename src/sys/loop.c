/*
 * The event loop: libevent for descriptors and signals, and a heap for timers.
 *
 * A round is: the "soon" calls, one pass of libevent, the timers that are due, the after-round hooks.
 * Timers use CLOCK_BOOTTIME through one timerfd, so that leases also expire while a laptop is
 * suspended.  The timerfd is armed at most once per round, and only if it would fire too late.
 */
#include "sys/loop.h"

#include <stdlib.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include <event2/event.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/vec.h"

#define MAX_DELAY_MS (INT64_C(10) * 366 * 24 * 3600 * 1000)
#define NOT_IN_HEAP SIZE_MAX

struct loop_call {
	loop_fn fn;
	void *ctx;
};

struct loop_signal {
	struct event *ev;
	loop_signal_fn fn;
	void *ctx;
	struct loop_signal *next;
};

struct loop {
	struct event_base *base;
	struct event *timer_ev;
	int timer_fd;
	int64_t armed_us; /* when timer_fd fires; 0 = not armed */
	int64_t cut_us; /* while timers run: timers set now are due after this, in a later round */
	VEC(struct loop_timer *) heap;
	VEC(struct loop_call) soon;
	VEC(struct loop_call) after;
	struct loop_signal *signals;
	void *scratch;
	int costly; /* steps of this round, up to LOOP_COSTLY */
	bool stop;
};

struct loop_timer {
	struct loop *loop;
	loop_fn fn;
	void *ctx;
	int64_t due_us;
	size_t at; /* index in the heap */
};

struct loop_io {
	struct event *read, *write;
	loop_io_fn fn;
	void *ctx;
	int events;
};

static void timer_fd_ready(evutil_socket_t fd, short what, void *ctx)
{
	struct loop *l = ctx;
	uint64_t times;

	(void)what;
	/* The read only clears the descriptor; the heap knows which timers are due. */
	if (read(fd, &times, sizeof(times)) == (ssize_t)sizeof(times))
		l->armed_us = 0;
}

struct loop *loop_new(void)
{
	struct loop *l = xcalloc(1, sizeof(*l));
	struct event_config *config = event_config_new();

	/* libevent has no timers here, so it need not cache the time. */
	if (!config || event_config_set_flag(config, EVENT_BASE_FLAG_NO_CACHE_TIME) < 0)
		abort();
	l->base = event_base_new_with_config(config);
	event_config_free(config);
	l->timer_fd = timerfd_create(CLOCK_BOOTTIME, TFD_NONBLOCK | TFD_CLOEXEC);
	if (!l->base || l->timer_fd < 0)
		abort();
	l->timer_ev = event_new(l->base, l->timer_fd, EV_READ | EV_PERSIST, timer_fd_ready, l);
	if (!l->timer_ev || event_add(l->timer_ev, NULL) < 0)
		abort();
	return l;
}

struct loop *loop_free(struct loop *l)
{
	if (!l)
		return NULL;
	while (l->signals) {
		struct loop_signal *s = l->signals;

		l->signals = s->next;
		event_free(s->ev);
		free(s);
	}
	event_free(l->timer_ev);
	event_base_free(l->base);
	close(l->timer_fd);
	vec_release(&l->heap);
	vec_release(&l->soon);
	vec_release(&l->after);
	free(l->scratch);
	free(l);
	return NULL;
}

struct event_base *loop_event_base(struct loop *l)
{
	return l->base;
}

void *loop_scratch(struct loop *l)
{
	if (!l->scratch)
		l->scratch = xmalloc(LOOP_SCRATCH);
	return l->scratch;
}

bool loop_take_costly(struct loop *l)
{
	if (l->costly >= LOOP_COSTLY)
		return false;
	l->costly++;
	return true;
}

/* The heap: a parent is never due later than its children. */

static void heap_place(struct loop *l, size_t at, struct loop_timer *t)
{
	l->heap.v[at] = t;
	t->at = at;
}

static void heap_up(struct loop *l, size_t at, struct loop_timer *t)
{
	while (at > 0) {
		size_t parent = (at - 1) / 2;

		if (l->heap.v[parent]->due_us <= t->due_us)
			break;
		heap_place(l, at, l->heap.v[parent]);
		at = parent;
	}
	heap_place(l, at, t);
}

static void heap_down(struct loop *l, size_t at, struct loop_timer *t)
{
	for (;;) {
		size_t child = 2 * at + 1;

		if (child >= l->heap.n)
			break;
		if (child + 1 < l->heap.n &&
		    l->heap.v[child + 1]->due_us < l->heap.v[child]->due_us)
			child++;
		if (l->heap.v[child]->due_us >= t->due_us)
			break;
		heap_place(l, at, l->heap.v[child]);
		at = child;
	}
	heap_place(l, at, t);
}

static void heap_remove(struct loop *l, struct loop_timer *t)
{
	size_t at = t->at;
	struct loop_timer *last = l->heap.v[--l->heap.n];

	t->at = NOT_IN_HEAP;
	if (last == t)
		return;
	if (last->due_us < t->due_us)
		heap_up(l, at, last);
	else
		heap_down(l, at, last);
}

struct loop_timer *loop_timer_new(struct loop *l, loop_fn fn, void *ctx)
{
	struct loop_timer *t = xcalloc(1, sizeof(*t));

	*t = (struct loop_timer){.loop = l, .fn = fn, .ctx = ctx, .at = NOT_IN_HEAP};
	return t;
}

void loop_timer_set(struct loop_timer *t, int64_t delay_ms)
{
	struct loop *l = t->loop;
	int64_t due;

	if (delay_ms < 0)
		delay_ms = 0;
	if (delay_ms > MAX_DELAY_MS)
		delay_ms = MAX_DELAY_MS;
	due = clock_boot_us() + delay_ms * 1000;
	/* A timer that sets itself to 0 must not keep the round running. */
	if (due <= l->cut_us)
		due = l->cut_us + 1;
	loop_timer_cancel(t);
	t->due_us = due;
	*vec_push(&l->heap) = t;
	heap_up(l, l->heap.n - 1, t);
}

void loop_timer_cancel(struct loop_timer *t)
{
	if (t->at != NOT_IN_HEAP)
		heap_remove(t->loop, t);
}

struct loop_timer *loop_timer_free(struct loop_timer *t)
{
	if (!t)
		return NULL;
	loop_timer_cancel(t);
	free(t);
	return NULL;
}

static void run_due_timers(struct loop *l)
{
	if (l->heap.n == 0)
		return;
	l->cut_us = clock_boot_us();
	while (l->heap.n > 0 && l->heap.v[0]->due_us <= l->cut_us) {
		struct loop_timer *t = l->heap.v[0];

		heap_remove(l, t);
		t->fn(t->ctx); /* may free t */
	}
	l->cut_us = 0;
}

static void arm(struct loop *l, int64_t due_us)
{
	struct itimerspec spec = {
		.it_value = {.tv_sec = due_us / 1000000, .tv_nsec = due_us % 1000000 * 1000}};

	/* Armed too early costs one useless wakeup, less than a system call for every change. */
	if (l->armed_us && l->armed_us <= due_us)
		return;
	if (timerfd_settime(l->timer_fd, TFD_TIMER_ABSTIME, &spec, NULL) < 0)
		abort();
	l->armed_us = due_us;
}

/* True when the round must not sleep; otherwise the timerfd is armed for the next timer or max_wait_ms. */
static bool prepare_wait(struct loop *l, int max_wait_ms)
{
	int64_t now, due = INT64_MAX;

	if (l->soon.n > 0 || max_wait_ms == 0)
		return true;
	if (l->heap.n > 0)
		due = l->heap.v[0]->due_us;
	if (due == INT64_MAX && max_wait_ms < 0)
		return false;
	now = clock_boot_us();
	if (due <= now)
		return true;
	if (max_wait_ms > 0 && now + (int64_t)max_wait_ms * 1000 < due)
		due = now + (int64_t)max_wait_ms * 1000;
	arm(l, due);
	return false;
}

static void run_soon(struct loop *l)
{
	struct loop_call *v = l->soon.v;
	size_t n = l->soon.n;

	if (n == 0)
		return;
	l->soon.v = NULL; /* calls added by these calls run in the next round */
	l->soon.n = l->soon.cap = 0;
	for (size_t i = 0; i < n; i++)
		v[i].fn(v[i].ctx);
	free(v);
}

void loop_round(struct loop *l, int max_wait_ms)
{
	int flags = EVLOOP_ONCE;

	l->costly = 0;
	if (prepare_wait(l, max_wait_ms))
		flags |= EVLOOP_NONBLOCK;
	if (event_base_loop(l->base, flags) < 0)
		abort(); /* epoll itself failed: the state of the loop is unknown */
	run_soon(l);
	run_due_timers(l);
	for (size_t i = 0; i < l->after.n; i++)
		l->after.v[i].fn(l->after.v[i].ctx);
}

void loop_run(struct loop *l)
{
	l->stop = false;
	while (!l->stop)
		loop_round(l, -1);
}

void loop_stop(struct loop *l)
{
	l->stop = true;
}

void loop_after_round(struct loop *l, loop_fn fn, void *ctx)
{
	*vec_push(&l->after) = (struct loop_call){fn, ctx};
}

void loop_soon(struct loop *l, loop_fn fn, void *ctx)
{
	*vec_push(&l->soon) = (struct loop_call){fn, ctx};
}

static void io_ready(evutil_socket_t fd, short what, void *ctx)
{
	struct loop_io *io = ctx;

	io->fn(io->ctx, fd, what & EV_WRITE ? LOOP_WRITE : LOOP_READ); /* may free io */
}

struct loop_io *loop_io_new(struct loop *l, int fd, int events, loop_io_fn fn, void *ctx)
{
	struct loop_io *io = xcalloc(1, sizeof(*io));

	io->fn = fn;
	io->ctx = ctx;
	io->read = event_new(l->base, fd, EV_READ | EV_PERSIST, io_ready, io);
	io->write = event_new(l->base, fd, EV_WRITE | EV_PERSIST, io_ready, io);
	if (!io->read || !io->write)
		abort();
	loop_io_set(io, events);
	return io;
}

static void toggle(struct event *ev, bool was, bool want)
{
	if (was == want)
		return;
	if ((want ? event_add(ev, NULL) : event_del(ev)) < 0)
		abort(); /* a descriptor that epoll cannot watch is a bug of the caller */
}

void loop_io_set(struct loop_io *io, int events)
{
	toggle(io->read, io->events & LOOP_READ, events & LOOP_READ);
	toggle(io->write, io->events & LOOP_WRITE, events & LOOP_WRITE);
	io->events = events;
}

struct loop_io *loop_io_free(struct loop_io *io)
{
	if (!io)
		return NULL;
	event_free(io->read);
	event_free(io->write);
	free(io);
	return NULL;
}

static void signal_ready(evutil_socket_t signo, short what, void *ctx)
{
	struct loop_signal *s = ctx;

	(void)what;
	s->fn(s->ctx, signo);
}

void loop_on_signal(struct loop *l, int signo, loop_signal_fn fn, void *ctx)
{
	struct loop_signal *s = xcalloc(1, sizeof(*s));

	*s = (struct loop_signal){.fn = fn, .ctx = ctx, .next = l->signals};
	s->ev = evsignal_new(l->base, signo, signal_ready, s);
	if (!s->ev || event_add(s->ev, NULL) < 0)
		abort();
	l->signals = s;
}
