/*
 * mxnet - MXNet's parameter server (ps-lite): a scheduler, servers and workers, by the DMLC_ names.
 *
 * The workers count.  Scheduler and servers are services; where the file has none there is one scheduler and a server
 * for each worker, and both run the command of the workers: MXNet sees by DMLC_ROLE what it is and serves.
 */
#include "strategy/internal.h"

#include "base/arena.h"

#define SCHEDULER "scheduler"
#define SERVER "server"
#define WORKER "worker"
#define MXNET_PORT 9091

static const char *const brings[] = {SCHEDULER, SERVER, NULL};

static void serve(struct job *job, struct role *r, const struct strs *command)
{
	r->service = r->service_set = true;
	if (!added_has_command(job, r))
		r->command = *command;
}

static void complete(struct job *job, struct arena *a)
{
	bool has_servers = added_find(job, SERVER);

	added_workers(job, a);
	added_role(job, a, SCHEDULER);
	added_role(job, a, SERVER);
	struct role *worker = added_find(job, WORKER), *server = added_find(job, SERVER),
		    *scheduler = added_find(job, SCHEDULER);

	if (!worker)
		return;
	if (!has_servers)
		server->count = server->policy.min = server->policy.max = worker->count;
	serve(job, scheduler, &worker->command);
	serve(job, server, &worker->command);
	if (!scheduler->port)
		scheduler->port = MXNET_PORT;
}

static bool crew(const struct job *job, struct arena *a, struct crew *ret, struct problems *ps)
{
	size_t before = ps->n + ps->more;
	const struct role *scheduler = added_find(job, SCHEDULER);

	if (!added_find(job, WORKER))
		problems_add(ps, a, job->strategy_pos,
			     "strategy 'mxnet' needs a table [roles.worker], or no roles at all");
	if (scheduler && scheduler->policy.max > 1)
		problems_add(ps, a, scheduler->pos, "roles.scheduler is one node: leave out count");
	if (ps->n + ps->more != before || !crew_free(job, a, ret, ps))
		return false;
	crew_gate(ret, SCHEDULER, a);
	return true;
}

static int nodes_of(const struct crew *c, const char *name)
{
	int n = 0;

	for (int i = 0; i < c->n; i++)
		if (strcmp(c->roles[c->members[i].role].name, name) == 0)
			n += c->roles[c->members[i].role].ranks;
	return n;
}

static void env(const struct env_input *in, int role, struct arena *a, struct env_list *out)
{
	const char *name = in->crew->roles[role].name;

	env_put_text(out, a, "DMLC_ROLE", name);
	env_put(out, a, "DMLC_PS_ROOT_URI", "{list:" SCHEDULER "|,|{address}}");
	env_put(out, a, "DMLC_PS_ROOT_PORT",
		arena_printf(a, "{list:" SCHEDULER "|,|{port:%d}}", MXNET_PORT));
	env_put_int(out, a, "DMLC_NUM_SERVER", nodes_of(in->crew, SERVER));
	env_put_int(out, a, "DMLC_NUM_WORKER", nodes_of(in->crew, WORKER));
	env_put(out, a, "DMLC_NODE_HOST", "{address}");
	env_put(out, a, "DMLC_INTERFACE", "{interface}");
	if (strcmp(name, WORKER) == 0)
		env_put(out, a, "DMLC_WORKER_ID",
			strategy_has_processes(in->crew) ? "{task}" : "{index}");
}

const struct strategy strategy_mxnet = {
	.name = "mxnet",
	.help = "MXNet: a scheduler and servers that Regatta adds, and workers, by DMLC_*",
	.complete = complete,
	.brings = brings,
	.crew = crew,
	.env = env,
};
