#include "master/api/slices.h"

#include <stdlib.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "sys/loop.h"

struct slice_client {
	uint32_t id;
	struct list jobs;
	struct list in_clients;
};

struct slices {
	struct loop_timer *timer; /* set while there are clients */
	struct list clients;	  /* the first one is served next */
};

void slice_job_init(struct slice_job *j, bool (*piece)(void *ctx), void (*drop)(void *ctx),
		    void *ctx)
{
	list_init(&j->in_queue);
	j->piece = piece;
	j->drop = drop;
	j->ctx = ctx;
}

void slice_job_remove(struct slice_job *j)
{
	list_remove(&j->in_queue);
}

static void client_free(struct slice_client *c)
{
	list_remove(&c->in_clients);
	free(c);
}

/* Does one piece of the client's first job. */
static void serve(struct slice_client *c)
{
	struct slice_job *j = list_item(c->jobs.next, struct slice_job, in_queue);

	list_remove(&j->in_queue);
	/* in front, so that it stays the first job */
	if (j->piece(j->ctx))
		list_append(c->jobs.next, &j->in_queue);
}

static void turn(void *ctx)
{
	struct slices *s = ctx;
	int64_t end_us = clock_boot_us() + SLICES_TURN_MS * 1000;

	while (!list_empty(&s->clients) && clock_boot_us() < end_us) {
		struct slice_client *c =
			list_item(s->clients.next, struct slice_client, in_clients);

		if (list_empty(&c->jobs)) {
			client_free(c);
			continue;
		}
		list_remove(&c->in_clients);
		list_append(&s->clients, &c->in_clients);
		serve(c);
	}
	if (!list_empty(&s->clients))
		loop_timer_set(s->timer, 0);
}

static struct slice_client *client_of(struct slices *s, uint32_t id)
{
	struct list *pos;

	list_each (pos, &s->clients)
		if (list_item(pos, struct slice_client, in_clients)->id == id)
			return list_item(pos, struct slice_client, in_clients);
	struct slice_client *c = xcalloc(1, sizeof(*c));
	c->id = id;
	list_init(&c->jobs);
	list_append(&s->clients, &c->in_clients);
	return c;
}

void slices_add(struct slices *s, uint32_t client, struct slice_job *j)
{
	list_append(&client_of(s, client)->jobs, &j->in_queue);
	loop_timer_set(s->timer, 0);
}

struct slices *slices_new(struct loop *l)
{
	struct slices *s = xcalloc(1, sizeof(*s));

	s->timer = loop_timer_new(l, turn, s);
	list_init(&s->clients);
	return s;
}

struct slices *slices_free(struct slices *s)
{
	if (!s)
		return NULL;
	while (!list_empty(&s->clients)) {
		struct slice_client *c =
			list_item(s->clients.next, struct slice_client, in_clients);

		while (!list_empty(&c->jobs)) {
			struct slice_job *j = list_item(c->jobs.next, struct slice_job, in_queue);
			list_remove(&j->in_queue);
			if (j->drop)
				j->drop(j->ctx);
		}
		client_free(c);
	}
	loop_timer_free(s->timer);
	free(s);
	return NULL;
}
