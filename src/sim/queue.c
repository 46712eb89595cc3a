#include "sim/queue.h"

#include <stdlib.h>
#include <string.h>

static bool before(const struct queue_key *a, const struct queue_key *b)
{
	return a->at != b->at ? a->at < b->at : a->seq < b->seq;
}

static void swap(struct queue_key *a, struct queue_key *b)
{
	struct queue_key t = *a;
	*a = *b;
	*b = t;
}

void queue_add(struct queue *q, const struct happening *h)
{
	size_t place = q->unused.n > 0 ? q->unused.v[--q->unused.n] : q->all.n;

	if (place == q->all.n)
		vec_push(&q->all);
	q->all.v[place] = *h;
	*vec_push(q) = (struct queue_key){.at = h->at, .seq = q->seq++, .place = place};
	for (size_t i = q->n - 1; i > 0 && before(&q->v[i], &q->v[(i - 1) / 2]); i = (i - 1) / 2)
		swap(&q->v[i], &q->v[(i - 1) / 2]);
}

bool queue_next(struct queue *q, struct happening *ret)
{
	if (!q->n)
		return false;
	*ret = q->all.v[q->v[0].place];
	*vec_push(&q->unused) = q->v[0].place;
	q->v[0] = q->v[--q->n];
	for (size_t i = 0;;) {
		size_t l = 2 * i + 1, r = l + 1, min = i;
		if (l < q->n && before(&q->v[l], &q->v[min]))
			min = l;
		if (r < q->n && before(&q->v[r], &q->v[min]))
			min = r;
		if (min == i)
			return true;
		swap(&q->v[i], &q->v[min]);
		i = min;
	}
}

void queue_release(struct queue *q)
{
	vec_release(q);
	vec_release(&q->all);
	vec_release(&q->unused);
}
