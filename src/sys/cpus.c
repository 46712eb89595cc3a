#include "sys/cpus.h"

#include <string.h>

#include "base/arena.h"

static bool has(const struct cpus *c, int cpu)
{
	return cpu < CPUS_MAX && CPU_ISSET_S((size_t)cpu, sizeof(c->v), c->v);
}

bool cpus_allowed(struct cpus *ret)
{
	memset(ret, 0, sizeof(*ret));
	return sched_getaffinity(0, sizeof(ret->v), ret->v) == 0;
}

bool cpus_share(const struct cpus *all, int n, int i, struct cpus *ret)
{
	int have = CPU_COUNT_S(sizeof(all->v), all->v), at = 0;
	int first = (int)((long)have * i / n), end = (int)((long)have * (i + 1) / n);

	memset(ret, 0, sizeof(*ret));
	if (have < n)
		return false;
	for (int cpu = 0; cpu < CPUS_MAX; cpu++) {
		if (!has(all, cpu))
			continue;
		if (at >= first && at < end)
			CPU_SET_S((size_t)cpu, sizeof(ret->v), ret->v);
		at++;
	}
	return true;
}

int cpus_bind(const struct cpus *c)
{
	return sched_setaffinity(0, sizeof(c->v), c->v);
}

const char *cpus_text(const struct cpus *c, struct arena *a)
{
	const char *text = "";

	for (int cpu = 0; cpu < CPUS_MAX; cpu++) {
		int first = cpu;

		if (!has(c, cpu))
			continue;
		while (has(c, cpu + 1))
			cpu++;
		text = arena_printf(a, "%s%s%d", text, text[0] ? "," : "", first);
		if (cpu > first)
			text = arena_printf(a, "%s-%d", text, cpu);
	}
	return text;
}
