#include "sim/queue.h"

#include <stdlib.h>
#include <string.h>

#include "base/vec.h"

static bool before(const struct happening *a, const struct happening *b)
{
	return a->at != b->at ? a->at < b->at : a->seq < b->seq;
}

static void swap(struct happening *a, struct happening *b)
{
	struct happening t = *a;
	*a = *b;
	*b = t;
}

void queue_add(struct queue *q, const struct happening *h)
{
	struct happening *slot = vec_push(q);

	*slot = *h;
	slot->seq = q->seq++;
	for (size_t i = q->n - 1; i > 0 && before(&q->v[i], &q->v[(i - 1) / 2]); i = (i - 1) / 2)
		swap(&q->v[i], &q->v[(i - 1) / 2]);
}

bool queue_next(struct queue *q, struct happening *ret)
{
	if (!q->n)
		return false;
	*ret = q->v[0];
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
}
