/*
 * A fixed set of threads, two queues and one eventfd.  A stop moves `todo` to `done`.
 *
 * Jobs wait in `todo` for a thread; finished ones wait in `done` for the loop, which
 * takes at most DONE_PER_ROUND at once, so that thousands do not stop it.  Threads block every signal, so that signals reach
 * the loop.  `pending` belongs to the loop thread alone.
 */
#include "sys/worker.h"

#include <assert.h>
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/deadline.h"
#include "base/list.h"
#include "sys/loop.h"

#define STACK_BYTES (512 * 1024)
#define DONE_PER_ROUND 256

struct work_item {
	struct list link;
	work_fn work;
	work_done_fn done;
	void *arg;
	int timeout_ms;
	enum err_kind how;
};

struct workers {
	pthread_mutex_t lock; /* protects todo, done and quit */
	pthread_cond_t wake;
	struct list todo, done;
	bool quit;
	volatile int stop; /* polled by running work; set once, on the loop thread */

	int wake_fd;
	struct loop_io *io;
	int pending;
	bool in_done;
	char name[16];
	int nthreads;
	pthread_t threads[];
};

static void wake_loop(struct workers *w)
{
	if (eventfd_write(w->wake_fd, 1) < 0)
		abort();
}

/* The caller holds the lock.  The loop is awake as long as `done` has an item, so only the first wakes it. */
static void put_done(struct workers *w, struct work_item *j)
{
	bool first = list_empty(&w->done);

	list_append(&w->done, &j->link);
	if (first)
		wake_loop(w);
}

static void *thread_main(void *ctx)
{
	struct workers *w = ctx;

	prctl(PR_SET_NAME, w->name);
	pthread_mutex_lock(&w->lock);
	for (;;) {
		while (list_empty(&w->todo) && !w->quit)
			pthread_cond_wait(&w->wake, &w->lock);
		if (list_empty(&w->todo))
			break;
		struct work_item *j = list_item(w->todo.next, struct work_item, link);

		list_remove(&j->link);
		pthread_mutex_unlock(&w->lock);
		struct deadline d = deadline_in(j->timeout_ms, &w->stop);

		j->work(j->arg, &d);
		pthread_mutex_lock(&w->lock);
		put_done(w, j);
	}
	pthread_mutex_unlock(&w->lock);
	return NULL;
}

static void finish_done(struct workers *w)
{
	struct list batch;
	eventfd_t n;

	/* Reset the eventfd first: a job that ends after `done` is taken below wakes the loop again. */
	if (eventfd_read(w->wake_fd, &n) < 0 && errno != EAGAIN && errno != EINTR)
		abort();
	list_init(&batch);
	pthread_mutex_lock(&w->lock);
	for (int i = 0; i < DONE_PER_ROUND && !list_empty(&w->done); i++) {
		struct list *item = w->done.next;

		list_remove(item);
		list_append(&batch, item);
	}
	if (!list_empty(&w->done))
		wake_loop(w);
	pthread_mutex_unlock(&w->lock);

	w->in_done = true;
	while (!list_empty(&batch)) {
		struct work_item *j = list_item(batch.next, struct work_item, link);

		list_remove(&j->link);
		w->pending--;
		if (j->done)
			j->done(j->arg, j->how);
		free(j);
	}
	w->in_done = false;
}

static void wake_ready(void *ctx, int fd, int events)
{
	(void)fd;
	(void)events;
	finish_done(ctx);
}

struct workers *workers_new(struct loop *l, const char *name, int nthreads)
{
	struct workers *w;
	sigset_t all, old;
	pthread_attr_t attr;

	assert(nthreads > 0);
	w = xcalloc(1, sizeof(*w) + sizeof(w->threads[0]) * (size_t)nthreads);
	pthread_mutex_init(&w->lock, NULL);
	pthread_cond_init(&w->wake, NULL);
	list_init(&w->todo);
	list_init(&w->done);
	w->wake_fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
	if (w->wake_fd < 0)
		abort();
	w->io = loop_io_new(l, w->wake_fd, LOOP_READ, wake_ready, w);
	w->nthreads = nthreads;
	snprintf(w->name, sizeof(w->name), "%s", name);

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	pthread_attr_init(&attr);
	pthread_attr_setstacksize(&attr, STACK_BYTES);
	for (int i = 0; i < nthreads; i++) {
		if (pthread_create(&w->threads[i], &attr, thread_main, w) != 0)
			abort();
	}
	pthread_attr_destroy(&attr);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	return w;
}

void workers_submit(struct workers *w, work_fn work, work_done_fn done, void *arg, int timeout_ms)
{
	struct work_item *j = xcalloc(1, sizeof(*j));

	*j = (struct work_item){.work = work, .done = done, .arg = arg, .timeout_ms = timeout_ms};
	w->pending++;
	pthread_mutex_lock(&w->lock);
	if (w->stop) {
		j->how = ERR_CANCELLED;
		put_done(w, j);
	} else {
		list_append(&w->todo, &j->link);
		pthread_cond_signal(&w->wake);
	}
	pthread_mutex_unlock(&w->lock);
}

void workers_stop(struct workers *w)
{
	pthread_mutex_lock(&w->lock);
	w->stop = 1;
	while (!list_empty(&w->todo)) {
		struct work_item *j = list_item(w->todo.next, struct work_item, link);

		list_remove(&j->link);
		j->how = ERR_CANCELLED;
		put_done(w, j);
	}
	pthread_mutex_unlock(&w->lock);
}

int workers_pending(const struct workers *w)
{
	return w->pending;
}

void workers_drain(struct workers *w)
{
	assert(!w->in_done);
	/* A done() may submit more work: repeat until none is left. */
	while (w->pending > 0) {
		struct pollfd p = {.fd = w->wake_fd, .events = POLLIN};

		if (poll(&p, 1, -1) < 0 && errno != EINTR)
			abort();
		finish_done(w);
	}
}

struct workers *workers_free(struct workers *w)
{
	if (!w)
		return NULL;
	workers_drain(w);
	pthread_mutex_lock(&w->lock);
	w->quit = true;
	pthread_cond_broadcast(&w->wake);
	pthread_mutex_unlock(&w->lock);
	for (int i = 0; i < w->nthreads; i++)
		pthread_join(w->threads[i], NULL);
	loop_io_free(w->io);
	close(w->wake_fd);
	pthread_mutex_destroy(&w->lock);
	pthread_cond_destroy(&w->wake);
	free(w);
	return NULL;
}
