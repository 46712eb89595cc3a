#include "driver/aws/api/governor.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/map.h"
#include "base/str.h"

/* `action` is a prefix; the first row that fits counts. */
struct pace {
	const char *service, *action;
	double size, per_second;
	double resources, resources_per_second; /* 0: they do not count */
};

static const struct pace paces[] = {
	{"ec2", "RunInstances", 5, 2, 1000, 2},
	{"ec2", "StartInstances", 5, 2, 1000, 2},
	{"ec2", "TerminateInstances", 100, 5, 1000, 20},
	{"ec2", "StopInstances", 100, 5, 1000, 20},
	{"ec2", "Describe", 100, 20, 0, 0},
	{"ec2", "Get", 100, 20, 0, 0},
	{"ec2", "", 50, 5, 0, 0},
	{"iam", "Get", 100, 20, 0, 0},
	{"iam", "List", 100, 20, 0, 0},
	{"iam", "", 20, 5, 0, 0},
	{"s3", "", 3000, 1000, 0, 0},
	{"", "", 50, 10, 0, 0},
};

struct bucket {
	double tokens, size, per_second;
	int64_t at_ms;
};

struct paced_action {
	struct bucket calls, resources;
};

struct governor {
	pthread_mutex_t lock;
	struct map *actions; /* "service:action" -> struct paced_action */
};

struct governor *governor_new(void)
{
	struct governor *g = xcalloc(1, sizeof(*g));

	pthread_mutex_init(&g->lock, NULL);
	g->actions = map_new();
	return g;
}

struct governor *governor_free(struct governor *g)
{
	struct str key;
	void *value;

	if (!g)
		return NULL;
	for (size_t i = 0; map_at(g->actions, &i, &key, &value);)
		free(value);
	map_free(g->actions);
	pthread_mutex_destroy(&g->lock);
	free(g);
	return NULL;
}

static const struct pace *pace_of(const char *service, const char *action)
{
	const struct pace *p = paces;

	while (*p->service && (strcmp(p->service, service) != 0 ||
			       !str_starts(str_from(action), str_from(p->action))))
		p++;
	return p;
}

static struct paced_action *action_of(struct governor *g, const char *service, const char *action,
				      int64_t now_ms)
{
	char key[128];
	struct paced_action *a;

	snprintf(key, sizeof(key), "%.40s:%.80s", service, action);
	a = map_get(g->actions, str_from(key));
	if (a)
		return a;
	const struct pace *p = pace_of(service, action);

	a = xcalloc(1, sizeof(*a));
	a->calls = (struct bucket){p->size, p->size, p->per_second, now_ms};
	a->resources = (struct bucket){p->resources, p->resources, p->resources_per_second, now_ms};
	map_put(g->actions, str_from(key), a);
	return a;
}

static void refill(struct bucket *b, int64_t now_ms)
{
	if (now_ms > b->at_ms)
		b->tokens += b->per_second * (double)(now_ms - b->at_ms) / 1000;
	if (b->tokens > b->size)
		b->tokens = b->size;
	b->at_ms = now_ms;
}

/* How long until the bucket has n tokens.  A call that needs more than it can hold waits until it
 * is full. */
static int64_t wait_ms(const struct bucket *b, double n)
{
	double lacks = (n < b->size ? n : b->size) - b->tokens;

	return b->size <= 0 || lacks <= 0 ? 0 : (int64_t)(lacks / b->per_second * 1000) + 1;
}

int64_t governor_take(struct governor *g, const char *service, const char *action,
		      int64_t resources, int64_t now_ms)
{
	pthread_mutex_lock(&g->lock);
	struct paced_action *a = action_of(g, service, action, now_ms);

	refill(&a->calls, now_ms);
	refill(&a->resources, now_ms);
	int64_t calls = wait_ms(&a->calls, 1), more = wait_ms(&a->resources, (double)resources);
	int64_t wait = calls > more ? calls : more;

	if (wait == 0) {
		a->calls.tokens -= 1;
		a->resources.tokens -= (double)resources;
	}
	pthread_mutex_unlock(&g->lock);
	return wait;
}

void governor_throttled(struct governor *g, const char *service, const char *action, int64_t now_ms)
{
	pthread_mutex_lock(&g->lock);
	struct paced_action *a = action_of(g, service, action, now_ms);

	refill(&a->calls, now_ms);
	if (a->calls.tokens > 0)
		a->calls.tokens = 0;
	pthread_mutex_unlock(&g->lock);
}
