#include "sim/admission.h"

#include "base/rand.h"
#include "core/queue.h"
#include "sim/internal.h"

#define RUNS 6
#define MOST_NODES 3
#define HOSTS 3
#define ROUNDS 60

enum turn { ABSENT, WAITS, PLACES, HOLDS, OVER };

struct contest {
	struct rng rng;
	enum turn turns[RUNS];
	struct resources_spec wants[RUNS][MOST_NODES];
	size_t nodes[RUNS];
	int64_t priority[RUNS];
	int holder[HOSTS]; /* of hosts that are taken whole; -1: free */
	struct queue_machine machines[HOSTS];
	bool whole;
};

static void draw(struct contest *c, uint64_t seed)
{
	rng_seed(&c->rng, seed);
	c->whole = rng_below(&c->rng, 2);
	for (int i = 0; i < HOSTS; i++) {
		c->holder[i] = -1;
		c->machines[i] =
			(struct queue_machine){.name = "m",
					       .has = {.cpus = 1 + (double)rng_below(&c->rng, 3),
						       .gpus = (int64_t)rng_below(&c->rng, 3) + 1,
						       .memory = 8},
					       .slots = c->whole ? 1 : 0};
	}
	for (int i = 0; i < RUNS; i++) {
		c->nodes[i] = 1 + rng_below(&c->rng, MOST_NODES);
		c->priority[i] = (int64_t)rng_below(&c->rng, 3);
		for (size_t k = 0; k < c->nodes[i]; k++)
			c->wants[i][k] =
				(struct resources_spec){.cpus = (double)rng_below(&c->rng, 3) / 2,
							.gpus = (int64_t)rng_below(&c->rng, 3),
							.memory = rng_below(&c->rng, 3)};
	}
}

/* The machines as an engine lists them: without those that are taken, if they are taken whole. */
static struct queue_machines list(const struct contest *c, struct queue_machine v[static HOSTS],
				  bool all)
{
	struct queue_machines m = {.v = v, .whole = c->whole};

	for (int i = 0; i < (c->whole ? HOSTS : 1); i++)
		if (all || c->holder[i] < 0)
			v[m.n++] = c->machines[i];
	return m;
}

static void queue_of(const struct contest *c, struct queue_run v[static RUNS], int at[static RUNS],
		     size_t *ret_n)
{
	*ret_n = 0;
	for (int i = 0; i < RUNS; i++)
		if (c->turns[i] != ABSENT && c->turns[i] != OVER) {
			at[*ret_n] = i;
			v[(*ret_n)++] = (struct queue_run){.priority = c->priority[i],
							   .no = i,
							   .waits = c->turns[i] == WAITS,
							   .placing = c->turns[i] == PLACES,
							   .nodes = c->wants[i],
							   .n = c->nodes[i]};
		}
}

static bool precedes(const struct contest *c, int a, int b)
{
	return c->priority[a] != c->priority[b] ? c->priority[a] > c->priority[b] : a < b;
}

/* I28 for one machine: the sum of what is held. */
static void check_sum(struct world *w, const struct contest *c)
{
	struct resources_spec sum = {0};

	for (int i = 0; i < RUNS; i++)
		for (size_t k = 0;
		     (c->turns[i] == HOLDS || c->turns[i] == PLACES) && k < c->nodes[i]; k++) {
			sum.cpus += c->wants[i][k].cpus;
			sum.gpus += c->wants[i][k].gpus;
			sum.memory += c->wants[i][k].memory;
		}
	if (!c->whole &&
	    (sum.cpus > c->machines[0].has.cpus || sum.gpus > c->machines[0].has.gpus ||
	     sum.memory > c->machines[0].has.memory))
		sim_broken(w, "I28: %g cpus and %lld gpus are held of %g and %lld", sum.cpus,
			   (long long)sum.gpus, c->machines[0].has.cpus,
			   (long long)c->machines[0].has.gpus);
}

static void admit(struct world *w, struct contest *c)
{
	struct queue_run v[RUNS];
	struct queue_machine mv[HOSTS];
	int at[RUNS];
	size_t n;
	const struct queue_machines m = list(c, mv, false);

	queue_of(c, v, at, &n);
	int next = queue_admit(v, n, &m);

	if (next < 0)
		return;
	for (int i = 0; i < RUNS; i++)
		if (c->turns[i] == WAITS && precedes(c, i, at[next]))
			sim_broken(w, "I29: run %d was admitted before run %d", at[next], i);
	c->turns[at[next]] = c->whole ? PLACES : HOLDS;
	check_sum(w, c);
}

/* Some way to put the nodes from k on on hosts of their own, whatever it is. */
static bool some_way(const struct contest *c, int run, size_t k, unsigned taken)
{
	const struct resources_spec *want = &c->wants[run][k];

	if (k == c->nodes[run])
		return true;
	for (int i = 0; i < HOSTS; i++) {
		const struct resources_spec *has = &c->machines[i].has;

		if (!(taken & 1u << i) && want->cpus <= has->cpus && want->gpus <= has->gpus &&
		    want->memory <= has->memory && some_way(c, run, k + 1, taken | 1u << i))
			return true;
	}
	return false;
}

/* The driver takes hosts for the nodes of the run. */
static void take_hosts(struct world *w, struct contest *c, int run)
{
	struct queue_machine mv[HOSTS];
	struct queue_machines free = list(c, mv, false);
	size_t where[MOST_NODES];
	int hosts[HOSTS], n = 0;

	for (int i = 0; i < HOSTS; i++)
		if (c->holder[i] < 0)
			hosts[n++] = i;
	if (!queue_assign(&free, c->wants[run], c->nodes[run], where)) {
		sim_broken(w, "I28: no host is left for a run that was admitted");
		return;
	}
	for (size_t k = 0; k < c->nodes[run]; k++) {
		const struct resources_spec *want = &c->wants[run][k];
		int host = hosts[where[k]];

		if (c->holder[host] >= 0 || want->gpus > c->machines[host].has.gpus ||
		    want->cpus > c->machines[host].has.cpus ||
		    want->memory > c->machines[host].has.memory)
			sim_broken(w, "I28: host %d is given to a node that it has no room for",
				   host);
		c->holder[host] = run;
	}
	c->turns[run] = HOLDS;
}

static void end(struct contest *c, int run)
{
	c->turns[run] = OVER;
	for (int i = 0; i < HOSTS; i++)
		if (c->holder[i] == run)
			c->holder[i] = -1;
}

static void step(struct world *w, struct contest *c, bool comes)
{
	int run = (int)rng_below(&c->rng, RUNS);
	struct queue_machine mv[HOSTS];
	const struct queue_machines all = list(c, mv, true);
	char why[QUEUE_WHY];
	bool possible = queue_possible(c->wants[run], c->nodes[run], &all, why);

	if (c->whole && !possible && some_way(c, run, 0, 0))
		sim_broken(w, "I30: run %d is refused, and would fit", run);
	if (c->turns[run] == ABSENT && comes && possible)
		c->turns[run] = WAITS;
	else if (c->turns[run] == PLACES)
		take_hosts(w, c, run);
	else if (c->turns[run] == HOLDS ||
		 (comes && c->turns[run] == WAITS && rng_below(&c->rng, 10) == 0))
		end(c, run);
	admit(w, c);
}

void admission_run(struct world *w, uint64_t seed)
{
	struct contest c = {0};

	draw(&c, seed);
	for (int i = 0; i < ROUNDS; i++)
		step(w, &c, true);
	for (int i = 0; i < RUNS * ROUNDS; i++)
		step(w, &c, false);
	for (int i = 0; i < RUNS; i++)
		if (c.turns[i] != ABSENT && c.turns[i] != OVER)
			sim_broken(w,
				   "I30: run %d is still in the queue when all others have ended",
				   i);
}
