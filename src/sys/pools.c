#include "sys/pools.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/vec.h"
#include "sys/worker.h"

struct pool {
	char *name;
	struct workers *workers;
};

struct pools {
	struct loop *loop;
	VEC(struct pool) all; /* few; walked by index, because a done() may add one */
	bool stopped;
};

struct pools *pools_new(struct loop *l)
{
	struct pools *p = xcalloc(1, sizeof(*p));

	p->loop = l;
	return p;
}

struct workers *pools_get(struct pools *p, const char *name, int nthreads)
{
	for (size_t i = 0; i < p->all.n; i++)
		if (strcmp(p->all.v[i].name, name) == 0)
			return p->all.v[i].workers;
	struct workers *w = workers_new(p->loop, name, nthreads);

	*vec_push(&p->all) = (struct pool){xstrdup(name), w};
	if (p->stopped)
		workers_stop(w);
	return w;
}

int pools_pending(const struct pools *p)
{
	int n = 0;

	for (size_t i = 0; i < p->all.n; i++)
		n += workers_pending(p->all.v[i].workers);
	return n;
}

struct pools *pools_free(struct pools *p)
{
	if (!p)
		return NULL;
	p->stopped = true;
	for (size_t i = 0; i < p->all.n; i++)
		workers_stop(p->all.v[i].workers);
	while (pools_pending(p) > 0)
		for (size_t i = 0; i < p->all.n; i++)
			workers_drain(p->all.v[i].workers);
	for (size_t i = 0; i < p->all.n; i++) {
		workers_free(p->all.v[i].workers);
		free(p->all.v[i].name);
	}
	vec_release(&p->all);
	free(p);
	return NULL;
}
