/*
 * env - the environment of one rank: the contracts of many launchers at once,
 * so that a script written for another one runs unchanged.
 *
 * Each group is one function that appends; the table below says which there
 * are.  A name that comes twice keeps the later value, so the job's own env
 * wins over ours, and the role's over the job's.
 */
#include "strategy/internal.h"

#include <inttypes.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/cleanup.h"

#define TORCH_PORT 29500
#define JAX_PORT 8476
#define ANUBIS_FIFO_WAIT_S 60

static void (*const groups[])(const struct env_input *in, int rank, struct arena *a,
			      struct env_list *env) = {
	env_regatta, env_torch, env_jax, env_mpi, env_tf, env_paddle, env_anubis, env_network,
};

#define FIRST_CAP 128

void env_put(struct env_list *env, struct arena *a, const char *name, const char *value)
{
	/* The list has no capacity of its own: it is full at FIRST_CAP and at every doubling of it. */
	if (env->n == 0 || (env->n >= FIRST_CAP && (env->n & (env->n - 1)) == 0)) {
		struct env_pair *v =
			arena_array(a, struct env_pair, env->n ? env->n * 2 : FIRST_CAP);
		if (env->n)
			memcpy(v, env->v, env->n * sizeof(*v));
		env->v = v;
	}
	env->v[env->n++] = (struct env_pair){.name = name, .value = value};
}

void env_put_int(struct env_list *env, struct arena *a, const char *name, int64_t value)
{
	env_put(env, a, name, arena_printf(a, "%" PRId64, value));
}

void env_put_endpoint(struct env_list *env, struct arena *a, const char *name, const char *address,
		      int port)
{
	env_put(env, a, name, arena_printf(a, "%s:%d", address, port));
}

void env_put_buf(struct env_list *env, struct arena *a, const char *name, const struct buf *value)
{
	struct str text = buf_str(value);

	if (!value->overflow)
		env_put(env, a, name, arena_strndup(a, text.p, text.n));
}

const char *env_address(const struct env_input *in, int rank)
{
	return in->addresses[rank] ? in->addresses[rank] : in->crew->members[rank].name;
}

int env_port(const struct env_input *in, int rank, int fallback)
{
	int port = in->crew->roles[in->crew->members[rank].role].port;

	return port ? port : fallback;
}

/* printf would be most of the time that ten thousand nodes cost. */
void env_add_port(struct buf *out, int port)
{
	char text[12], *p = text + sizeof(text);

	for (; port > 0; port /= 10)
		*--p = (char)('0' + port % 10);
	*--p = ':';
	buf_add(out, p, (size_t)(text + sizeof(text) - p));
}

void env_endpoints(const struct env_input *in, int from, int to, int fallback_port, struct buf *out)
{
	for (int i = from; i < to && !out->overflow; i++) {
		if (i > from)
			buf_addc(out, ',');
		buf_addz(out, env_address(in, i));
		env_add_port(out, env_port(in, i, fallback_port));
	}
}

void env_regatta(const struct env_input *in, int rank, struct arena *a, struct env_list *env)
{
	const struct crew *c = in->crew;
	const struct member *m = &c->members[rank];
	CLEANUP(buf_release) struct buf members = {0};

	env_put(env, a, "REGATTA_RUN", in->run_id);
	env_put(env, a, "REGATTA_NODE", m->name);
	env_put(env, a, "REGATTA_ROLE", c->roles[m->role].name);
	env_put_int(env, a, "REGATTA_INDEX", m->index);
	env_put_int(env, a, "REGATTA_RANK", rank);
	env_put_int(env, a, "REGATTA_NODES", c->n);
	env_put_int(env, a, "REGATTA_ATTEMPT", in->attempt);
	env_put(env, a, "REGATTA_ADDRESS", env_address(in, rank));

	buf_init(&members, ENV_MAX_VALUE);
	for (int i = 0; i < c->n && !members.overflow; i++) {
		int port = env_port(in, i, 0);

		if (i > 0)
			buf_addc(&members, ',');
		buf_addz(&members, c->members[i].name);
		buf_addc(&members, '=');
		buf_addz(&members, env_address(in, i));
		if (port)
			env_add_port(&members, port);
	}
	env_put_buf(env, a, "REGATTA_MEMBERS", &members);

	const struct env_pair places[] = {
		{"REGATTA_OUTPUT", in->output_dir},
		{"REGATTA_WORK", in->work_dir},
		{"REGATTA_HOSTFILE", strategy_has_hosts(c) ? in->hostfile : NULL},
		{"REGATTA_METRICS", in->metrics_fifo},
	};
	for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++)
		if (places[i].value)
			env_put(env, a, places[i].name, places[i].value);
}

/* One process per node, so a node's rank is its process's rank.  Services are not in the group. */
void env_torch(const struct env_input *in, int rank, struct arena *a, struct env_list *env)
{
	int world = in->crew->ncounted;
	const char *master = env_address(in, 0);

	if (rank >= world)
		return;
	env_put_int(env, a, "RANK", rank);
	env_put_int(env, a, "LOCAL_RANK", 0);
	env_put_int(env, a, "WORLD_SIZE", world);
	env_put_int(env, a, "LOCAL_WORLD_SIZE", 1);
	env_put_int(env, a, "GROUP_RANK", rank);
	env_put_int(env, a, "NODE_RANK", rank);
	env_put(env, a, "MASTER_ADDR", master);
	env_put_int(env, a, "MASTER_PORT", TORCH_PORT);
	env_put_int(env, a, "PET_NNODES", world);
	env_put_int(env, a, "PET_NPROC_PER_NODE", 1);
	env_put_int(env, a, "PET_NODE_RANK", rank);
	env_put_endpoint(env, a, "PET_RDZV_ENDPOINT", master, TORCH_PORT);
	env_put(env, a, "PET_RDZV_ID", in->run_id);
	env_put(env, a, "PET_MASTER_ADDR", master);
	env_put_int(env, a, "PET_MASTER_PORT", TORCH_PORT);
}

void env_jax(const struct env_input *in, int rank, struct arena *a, struct env_list *env)
{
	if (rank >= in->crew->ncounted)
		return;
	env_put_endpoint(env, a, "JAX_COORDINATOR_ADDRESS", env_address(in, 0), JAX_PORT);
	env_put_int(env, a, "JAX_NUM_PROCESSES", in->crew->ncounted);
	env_put_int(env, a, "JAX_PROCESS_ID", rank);
	env_put_endpoint(env, a, "COORDINATOR_ADDRESS", env_address(in, 0), JAX_PORT);
	env_put_int(env, a, "NUM_PROCESSES", in->crew->ncounted);
	env_put_int(env, a, "PROCESS_ID", rank);
}

void env_mpi(const struct env_input *in, int rank, struct arena *a, struct env_list *env)
{
	(void)rank;
	if (!strategy_has_hosts(in->crew))
		return;
	if (in->hostfile) {
		env_put(env, a, "OMPI_MCA_orte_default_hostfile", in->hostfile);
		env_put(env, a, "PRTE_MCA_prte_default_hostfile", in->hostfile);
	}
	/* Hydra stops at "slots=1" ("token slots not supported"): it needs a file of its own. */
	if (in->machinefile) {
		env_put(env, a, "HYDRA_HOST_FILE", in->machinefile);
		env_put(env, a, "I_MPI_HYDRA_HOST_FILE", in->machinefile);
	}
}

void env_anubis(const struct env_input *in, int rank, struct arena *a, struct env_list *env)
{
	(void)rank;
	if (in->metrics_fifo) {
		env_put(env, a, "BENCHMARK_AI", "fifo");
		env_put(env, a, "BENCHMARK_AI_FIFO_FILEPATH", in->metrics_fifo);
		env_put_int(env, a, "BENCHMARK_AI_FIFO_MAX_WAIT_TIME", ANUBIS_FIFO_WAIT_S);
	}
	if (in->work_dir)
		env_put(env, a, "BAI_SCRIPTS_PATH", in->work_dir);
}

void env_network(const struct env_input *in, int rank, struct arena *a, struct env_list *env)
{
	(void)rank;
	if (!in->iface)
		return;
	env_put(env, a, "NCCL_SOCKET_IFNAME", in->iface);
	env_put(env, a, "GLOO_SOCKET_IFNAME", in->iface);
}

static void put_all(struct env_list *env, struct arena *a, const struct env_list *more)
{
	for (size_t i = 0; i < more->n; i++)
		env_put(env, a, more->v[i].name, more->v[i].value);
}

/* By name, and what came first in front: pairs lie in one array, so addresses tell. */
static int compare(const void *x, const void *y)
{
	const struct env_pair *p = *(const struct env_pair *const *)x;
	const struct env_pair *q = *(const struct env_pair *const *)y;
	int order = strcmp(p->name, q->name);

	if (order != 0)
		return order;
	return p < q ? -1 : p > q;
}

static void sort_and_drop_doubles(struct env_list *env, struct arena *a)
{
	const struct env_pair **order = arena_array(a, const struct env_pair *, env->n);
	struct env_pair *sorted = arena_array(a, struct env_pair, env->n);
	size_t n = 0;

	for (size_t i = 0; i < env->n; i++)
		order[i] = &env->v[i];
	qsort(order, env->n, sizeof(order[0]), compare);
	for (size_t i = 0; i < env->n; i++) {
		if (n > 0 && strcmp(sorted[n - 1].name, order[i]->name) == 0)
			n--;
		sorted[n++] = *order[i];
	}
	*env = (struct env_list){.v = sorted, .n = n};
}

void strategy_env(const struct strategy *s, const struct env_input *in, int rank, struct arena *a,
		  struct env_list *out)
{
	const struct member *m = &in->crew->members[rank];
	struct env_list env = {0};

	for (size_t i = 0; i < sizeof(groups) / sizeof(groups[0]); i++)
		groups[i](in, rank, a, &env);
	if (s->env)
		s->env(in, rank, a, &env);
	put_all(&env, a, &in->job->env);
	put_all(&env, a, &in->crew->roles[m->role].spec->env);
	sort_and_drop_doubles(&env, a);
	*out = env;
}
