#include "net/crowd.h"

#include "base/clock.h"
#include "sys/loop.h"

static struct crowd_member *oldest(const struct crowd *c)
{
	return list_item(c->members.next, struct crowd_member, link);
}

static void wait_for_oldest(struct crowd *c)
{
	int64_t left = oldest(c)->since_ms + c->limits.patience_ms - clock_boot_ms();

	loop_timer_set(c->patience, left > 0 ? left : 0);
}

static void count_changed(struct crowd *c)
{
	bool full = c->n >= c->limits.enough;

	if (full == c->full)
		return;
	c->full = full;
	if (full)
		wait_for_oldest(c);
	else
		loop_timer_cancel(c->patience);
	c->ev.on_full(c->ctx, full);
}

static void patience_over(void *ctx)
{
	struct crowd *c = ctx;
	int64_t before = clock_boot_ms() - c->limits.patience_ms;

	while (c->n > 0 && oldest(c)->since_ms <= before)
		c->ev.drop(c->ctx, oldest(c));
	if (c->full)
		wait_for_oldest(c);
}

void crowd_init(struct crowd *c, struct loop *l, const struct crowd_limits *limits,
		const struct crowd_events *ev, void *ctx)
{
	*c = (struct crowd){.limits = *limits, .ev = *ev, .ctx = ctx};
	list_init(&c->members);
	c->patience = loop_timer_new(l, patience_over, c);
}

void crowd_release(struct crowd *c)
{
	c->patience = loop_timer_free(c->patience);
}

void crowd_enter(struct crowd *c, struct crowd_member *m)
{
	if (c->n >= c->limits.most)
		c->ev.drop(c->ctx, oldest(c));
	m->since_ms = clock_boot_ms();
	list_append(&c->members, &m->link);
	c->n++;
	count_changed(c);
}

void crowd_leave(struct crowd *c, struct crowd_member *m)
{
	list_remove(&m->link);
	c->n--;
	count_changed(c);
}
