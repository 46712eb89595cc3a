/*
 * env_paddle - the names that Paddle 2 and 3 read.  Trainers are the counted
 * ranks of any strategy, each with an endpoint of its own.  Strategies with servers add their names.
 */
#include "strategy/internal.h"

#include "base/arena.h"

#define PADDLE_PORT 6170
#define PADDLE_MASTER_PORT 6070

void env_paddle(const struct env_input *in, int role, struct arena *a, struct env_list *env)
{
	const struct strategy_role *r = &in->crew->roles[role];
	int port = r->port ? r->port : PADDLE_PORT;
	const char *own = strategy_has_processes(in->crew)
				  ? arena_printf(a, "{process_port:%d}", port)
				  : arena_printf(a, "%d", port);

	env_put(env, a, "PADDLE_TRAINER_ENDPOINTS",
		env_endpoints(in->crew, a, "+", ",", PADDLE_PORT));
	env_put_int(env, a, "PADDLE_TRAINERS_NUM", strategy_world(in->crew));
	env_put(env, a, "PADDLE_CURRENT_ENDPOINT", arena_printf(a, "{address}:%s", own));
	env_put(env, a, "PADDLE_PORT", own);
	if (!r->counted)
		return;
	env_put(env, a, "PADDLE_TRAINER_ID", env_rank(in));
	env_put(env, a, "PADDLE_RANK_IN_NODE", env_local(in, role));
	env_put_int(env, a, "PADDLE_NNODES", in->crew->ncounted);
	env_put_first(env, a, "PADDLE_MASTER", PADDLE_MASTER_PORT);
}

/* The list of servers, under the names of all versions of the tool. */
static void put_list(const char *list, struct arena *a, struct env_list *env)
{
	static const char *const names[] = {"PSERVERS", "PSERVER_HOSTS",
					    "PADDLE_PSERVERS_IP_PORT_LIST"};

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		env_put(env, a, names[i], list);
}

void env_paddle_servers(const struct env_input *in, const struct paddle_servers *s, struct arena *a,
			struct env_list *env)
{
	int trainers = in->crew->ncounted;

	put_list(s->list, a, env);
	env_put_text(env, a, "TASK_NAME", in->run_id);
	env_put_int(env, a, "TRAINER_COUNT", trainers);
	env_put_int(env, a, "TRAINERS", trainers);
	if (in->master_endpoint && in->master_endpoint[0])
		env_put_text(env, a, "MASTER_ENDPOINT", in->master_endpoint);

	/* From the tool on Kubernetes; its JOB_NAMESPACE and TRAIN_CONFIG_DIR have no counterpart here. */
	env_put_text(env, a, "JOB_NAME", in->job->name);
	env_put(env, a, "JOB_PATH", "{work}");
	env_put(env, a, "CONF_PADDLE_NIC", "{interface}");
	env_put_int(env, a, "CONF_PADDLE_PORT", s->port);
	env_put_int(env, a, "CONF_PADDLE_PORTS_NUM", s->ports_num);
	env_put_int(env, a, "CONF_PADDLE_PORTS_NUM_SPARSE", s->sparse_ports_num);
	env_put_int(env, a, "CONF_PADDLE_GRADIENT_NUM", trainers);
	/* Newer Paddle servers make their endpoint of POD_IP and PADDLE_PORT. */
	env_put(env, a, "POD_IP", "{address}");
}
