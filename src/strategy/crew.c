/* crew - roles and members as every strategy needs them. */
#include "strategy/internal.h"

#include "base/arena.h"
#include "base/cleanup.h"
#include "base/map.h"

static int resolve_ready(const struct role *r)
{
	if (r->ready_when != READY_DEFAULT)
		return r->ready_when;
	return r->port > 0 ? READY_PORT : READY_STARTED;
}

void crew_roles(const struct job *job, struct arena *a, struct crew *c)
{
	CLEANUP(map_freep) struct map *index = map_new();

	c->nroles = (int)job->roles.n;
	c->roles = arena_array(a, struct strategy_role, job->roles.n);
	for (int i = 0; i < c->nroles; i++) {
		const struct role *r = job_role(job, (size_t)i);

		c->roles[i] = (struct strategy_role){
			.name = r->name,
			.spec = r,
			.count = (int)r->count,
			.max = (int)r->policy.max,
			.command = r->command,
			.port = (int)r->port,
			.processes = (int)r->processes,
			.ranks = (int)r->processes,
			.counted = !r->service,
			.ready_when = resolve_ready(r),
			.after = arena_array(a, int, r->after.n),
		};
		map_put(index, str_from(r->name), &c->roles[i]);
	}
	for (int i = 0; i < c->nroles; i++) {
		struct strategy_role *r = &c->roles[i];

		for (size_t k = 0; k < r->spec->after.n; k++) {
			const struct strategy_role *other =
				map_get(index, str_from(r->spec->after.v[k]));
			if (other) /* never NULL: job_load() has refused unknown roles */
				r->after[r->nafter++] = (int)(other - c->roles);
		}
	}
}

void strategy_awake(const struct crew *crew, const bool *asleep, struct arena *a, struct crew *ret,
		    int *ret_ranks)
{
	struct crew c = {
		.nroles = crew->nroles, .launch = crew->launch, .one_host = crew->one_host};

	c.roles = arena_array(a, struct strategy_role, (size_t)c.nroles);
	c.members = arena_array(a, struct member, (size_t)crew->n);
	for (int i = 0; i < c.nroles; i++) {
		c.roles[i] = crew->roles[i];
		c.roles[i].count = 0;
	}
	for (int i = 0; i < crew->n; i++) {
		struct member m = crew->members[i];

		ret_ranks[i] = asleep[i] ? -1 : c.n;
		if (asleep[i])
			continue;
		m.rank = c.n;
		c.members[c.n++] = m;
		c.roles[m.role].count++;
		c.ncounted += c.roles[m.role].counted;
	}
	for (int i = 0; i < c.nroles; i++)
		c.roles[i].max = c.roles[i].count;
	*ret = c;
}

void crew_members(struct crew *c, struct arena *a)
{
	c->n = c->ncounted = 0;
	for (int i = 0; i < c->nroles; i++)
		c->n += c->roles[i].max;
	c->members = arena_array(a, struct member, (size_t)c->n);

	int rank = 0;
	for (int pass = 0; pass < 2; pass++) {
		for (int i = 0; i < c->nroles; i++) {
			const struct strategy_role *r = &c->roles[i];

			if (r->counted != (pass == 0))
				continue;
			for (int k = 0; k < r->max; k++, rank++)
				c->members[rank] = (struct member){
					.name = arena_printf(a, "%s-%d", r->name, k),
					.role = i,
					.index = k,
					.rank = rank,
				};
		}
		if (pass == 0)
			c->ncounted = rank;
	}
}

bool crew_free(const struct job *job, struct arena *a, struct crew *ret, struct problems *ps)
{
	const struct strategy *s = job->roles.n > 0 ? &strategy_roles : &strategy_single;

	return s->crew(job, a, ret, ps);
}

void crew_start_after(struct strategy_role *r, int other, struct arena *a)
{
	int *after = arena_array(a, int, (size_t)r->nafter + 1);

	for (int i = 0; i < r->nafter; i++) {
		if (r->after[i] == other)
			return;
		after[i] = r->after[i];
	}
	after[r->nafter++] = other;
	r->after = after;
}

struct strategy_role *crew_role(const struct crew *c, const char *name)
{
	for (int i = 0; i < c->nroles; i++)
		if (strcmp(c->roles[i].name, name) == 0)
			return &c->roles[i];
	return NULL;
}

/* Roles wait for each other in no circle: job_load() has seen to it. */
static bool waits_for(const struct crew *c, const struct strategy_role *r, int other)
{
	for (int i = 0; i < r->nafter; i++)
		if (r->after[i] == other || waits_for(c, &c->roles[r->after[i]], other))
			return true;
	return false;
}

void crew_gate(struct crew *c, const char *name, struct arena *a)
{
	const struct strategy_role *gate = crew_role(c, name);

	for (int i = 0; gate && i < c->nroles; i++)
		if (&c->roles[i] != gate && !waits_for(c, gate, i))
			crew_start_after(&c->roles[i], (int)(gate - c->roles), a);
}
