/*
 * env - the environment of a role's nodes as templates: the contracts of many launchers at once,
 * so that a script written for another one runs unchanged.
 *
 * Each group of variables is one function that appends; the table below lists
 * them.  A name that comes twice keeps the later value, so the job's env
 * overrides Regatta's, and the role's env overrides the job's.
 */
#include "strategy/internal.h"

#include <inttypes.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/cleanup.h"

#define TORCH_PORT 29500
#define JAX_PORT 8476
#define ANUBIS_FIFO_WAIT_S 60
#define MAX_PORT 65535

static const struct {
	void (*put)(const struct env_input *in, int role, struct arena *a, struct env_list *env);
	/* Gives ranks or tasks to processes: not if a launcher like mpirun starts them, and gives them others. */
	bool ranks;
} groups[] = {
	{env_regatta, false}, {env_torch, true},  {env_jax, true},     {env_mpi, false},
	{env_tf, true},	      {env_paddle, true}, {env_anubis, false}, {env_network, false},
};

#define FIRST_CAP 128

void env_put(struct env_list *env, struct arena *a, const char *name, const char *template)
{
	/* The list stores no capacity: it is full at FIRST_CAP and at every doubling of it. */
	if (env->n == 0 || (env->n >= FIRST_CAP && (env->n & (env->n - 1)) == 0)) {
		struct env_pair *v =
			arena_array(a, struct env_pair, env->n ? env->n * 2 : FIRST_CAP);
		if (env->n)
			memcpy(v, env->v, env->n * sizeof(*v));
		env->v = v;
	}
	env->v[env->n++] = (struct env_pair){.name = name, .value = template};
}

void env_put_text(struct env_list *env, struct arena *a, const char *name, const char *text)
{
	CLEANUP(buf_release) struct buf quoted = {0};

	if (!strchr(text, '{')) {
		env_put(env, a, name, text);
		return;
	}
	buf_init(&quoted, 2 * strlen(text) + 1);
	expand_quote(text, &quoted);
	env_put(env, a, name, arena_strndup(a, quoted.p, quoted.n));
}

void env_put_int(struct env_list *env, struct arena *a, const char *name, int64_t value)
{
	env_put(env, a, name, arena_printf(a, "%" PRId64, value));
}

void env_put_first(struct env_list *env, struct arena *a, const char *name, int port)
{
	env_put(env, a, name, arena_printf(a, "{address:0}:%d", port));
}

static void put_table(struct env_list *env, struct arena *a, const struct env_pair *table, size_t n)
{
	for (size_t i = 0; i < n; i++)
		env_put(env, a, table[i].name, table[i].value);
}
#define PUT_TABLE(env, a, table) put_table(env, a, table, sizeof(table) / sizeof((table)[0]))

const char *env_rank(const struct env_input *in)
{
	return strategy_has_processes(in->crew) ? "{process}" : "{rank}";
}

const char *env_local(const struct env_input *in, int role)
{
	return in->crew->roles[role].processes > 1 ? "{local}" : "0";
}

const char *env_endpoints(const struct crew *crew, struct arena *a, const char *who,
			  const char *between, int port)
{
	bool several = strategy_has_processes(crew);

	return arena_printf(a, "{%s:%s|%s|{address}:{%s:%d}}", several ? "each" : "list", who,
			    between, several ? "process_port" : "port", port);
}

static bool find_port(const struct env_list *env, const char *name, int *ret)
{
	int64_t port;

	for (size_t i = 0; i < env->n; i++) {
		if (strcmp(env->v[i].name, name) == 0 &&
		    str_to_i64(str_from(env->v[i].value), &port) && port > 0 && port <= MAX_PORT) {
			*ret = (int)port;
			return true;
		}
	}
	return false;
}

int env_port(const struct env_input *in, int role, const char *name, int fallback)
{
	int port = fallback;

	if (!find_port(&in->crew->roles[role].spec->env, name, &port))
		find_port(&in->job->env, name, &port);
	return port;
}

int env_torch_port(const struct env_input *in, int role)
{
	return env_port(in, role, "MASTER_PORT", TORCH_PORT);
}

int env_jax_port(const struct env_input *in, int role)
{
	return env_port(in, role, "JAX_COORDINATOR_PORT", JAX_PORT);
}

void env_regatta(const struct env_input *in, int role, struct arena *a, struct env_list *env)
{
	static const struct env_pair own[] = {
		{"REGATTA_NODE", "{name}"},
		{"REGATTA_INDEX", "{index}"},
		{"REGATTA_NODE_RANK", "{rank}"},
		{"REGATTA_ATTEMPT", "{attempt}"},
		{"REGATTA_ADDRESS", "{address}"},
		{"REGATTA_MEMBERS", "{list:*|,|{name}={address}{:port}}"},
		{"REGATTA_OUTPUT", "{output}"},
		{"REGATTA_WORK", "{work}"},
		{"REGATTA_METRICS", "{metrics}"},
	};

	env_put_text(env, a, "REGATTA_RUN", in->run_id);
	env_put_text(env, a, "REGATTA_ROLE", in->crew->roles[role].name);
	env_put_int(env, a, "REGATTA_NODES", in->crew->n);
	PUT_TABLE(env, a, own);
	env_put(env, a, "REGATTA_LOCAL_RANK", env_local(in, role));
	env_put(env, a, "REGATTA_RANK", env_rank(in));
	env_put_int(env, a, "REGATTA_WORLD_SIZE", strategy_world(in->crew));
	if (strategy_has_hosts(in->crew))
		env_put(env, a, "REGATTA_HOSTFILE", "{hostfile}");
}

/* Services are not in the group.  A torchrun on the node starts one process, unless the strategy
 * knows that it starts all of them (torch.c). */
void env_torch(const struct env_input *in, int role, struct arena *a, struct env_list *env)
{
	static const struct env_pair own[] = {
		{"GROUP_RANK", "{rank}"},	 {"NODE_RANK", "{rank}"},
		{"MASTER_ADDR", "{address:0}"},	 {"PET_NPROC_PER_NODE", "1"},
		{"PET_NODE_RANK", "{rank}"},	 {"PET_MASTER_ADDR", "{address:0}"},
		{"PET_LOCAL_ADDR", "{address}"},
	};
	const struct strategy_role *r = &in->crew->roles[role];
	int port = env_torch_port(in, role);

	if (!r->counted)
		return;
	PUT_TABLE(env, a, own);
	env_put(env, a, "RANK", env_rank(in));
	env_put(env, a, "LOCAL_RANK", env_local(in, role));
	env_put_int(env, a, "LOCAL_WORLD_SIZE", r->ranks);
	env_put_int(env, a, "WORLD_SIZE", strategy_world(in->crew));
	env_put_int(env, a, "MASTER_PORT", port);
	env_put_int(env, a, "PET_NNODES", in->crew->ncounted);
	env_put_first(env, a, "PET_RDZV_ENDPOINT", port);
	env_put_text(env, a, "PET_RDZV_ID", in->run_id);
	env_put_int(env, a, "PET_MASTER_PORT", port);
}

void env_jax(const struct env_input *in, int role, struct arena *a, struct env_list *env)
{
	if (!in->crew->roles[role].counted)
		return;
	int port = env_jax_port(in, role);

	env_put_first(env, a, "JAX_COORDINATOR_ADDRESS", port);
	env_put_int(env, a, "JAX_NUM_PROCESSES", strategy_world(in->crew));
	env_put(env, a, "JAX_PROCESS_ID", env_rank(in));
	env_put_first(env, a, "COORDINATOR_ADDRESS", port);
	env_put_int(env, a, "NUM_PROCESSES", strategy_world(in->crew));
	env_put(env, a, "PROCESS_ID", env_rank(in));
}

void env_mpi(const struct env_input *in, int role, struct arena *a, struct env_list *env)
{
	static const struct env_pair files[] = {
		{"OMPI_MCA_orte_default_hostfile", "{hostfile}"},
		{"PRTE_MCA_prte_default_hostfile", "{hostfile}"},
		/* Hydra stops at "slots=1" ("token slots not supported"): it needs a file of its own. */
		{"HYDRA_HOST_FILE", "{machinefile}"},
		{"I_MPI_HYDRA_HOST_FILE", "{machinefile}"},
	};

	(void)role;
	if (strategy_has_hosts(in->crew))
		PUT_TABLE(env, a, files);
}

void env_anubis(const struct env_input *in, int role, struct arena *a, struct env_list *env)
{
	(void)in;
	(void)role;
	env_put(env, a, "BENCHMARK_AI", "fifo");
	env_put(env, a, "BENCHMARK_AI_FIFO_FILEPATH", "{metrics}");
	env_put_int(env, a, "BENCHMARK_AI_FIFO_MAX_WAIT_TIME", ANUBIS_FIFO_WAIT_S);
	env_put(env, a, "BAI_SCRIPTS_PATH", "{work}");
}

void env_network(const struct env_input *in, int role, struct arena *a, struct env_list *env)
{
	(void)in;
	(void)role;
	env_put(env, a, "NCCL_SOCKET_IFNAME", "{interface}");
	env_put(env, a, "GLOO_SOCKET_IFNAME", "{interface}");
}

static void put_all(struct env_list *env, struct arena *a, const struct env_list *more)
{
	for (size_t i = 0; i < more->n; i++)
		env_put_text(env, a, more->v[i].name, more->v[i].value);
}

/* By name; of pairs with one name the earlier in the array first. */
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

void strategy_env(const struct strategy *s, const struct env_input *in, int role, struct arena *a,
		  struct env_list *out)
{
	struct env_list env = {0};

	for (size_t i = 0; i < sizeof(groups) / sizeof(groups[0]); i++)
		if (in->crew->launch == LAUNCH_ALL || !groups[i].ranks)
			groups[i].put(in, role, a, &env);
	if (s->env)
		s->env(in, role, a, &env);
	put_all(&env, a, &in->job->env);
	put_all(&env, a, &in->crew->roles[role].spec->env);
	sort_and_drop_doubles(&env, a);
	*out = env;
}

void strategy_env_expand(const struct env_list *templates, const struct expand_here *here,
			 const char *long_dir, struct arena *a, struct env_list *out)
{
	CLEANUP(buf_release) struct buf text = {0};
	struct env_list env = {0};

	buf_init(&text, EXPAND_MAX_TEXT);
	for (size_t i = 0; i < templates->n; i++) {
		const char *name = templates->v[i].name;

		switch (expand_variable(name, templates->v[i].value, here, &text, NULL)) {
		case EXPAND_OK:
			env_put(&env, a, name, arena_str(a, buf_str(&text)).p);
			break;
		case EXPAND_LONG:
			if (long_dir)
				env_put(&env, a, arena_printf(a, "%s" EXPAND_FILE_SUFFIX, name),
					arena_printf(a, "%s/%s", long_dir, name));
			break;
		case EXPAND_NONE:
		case EXPAND_BAD: /* no template of a strategy is bad */
			break;
		}
	}
	sort_and_drop_doubles(&env, a);
	*out = env;
}
