/*
 * inference - a server that answers on its port, and clients that measure it, as in Anubis.
 *
 * The server is a service; the clients start when its port answers and find it in INFERENCE_SERVER_HOST and
 * INFERENCE_SERVER_PORT.
 */
#include "strategy/internal.h"

#define SERVER "server"

static bool crew(const struct job *job, struct arena *a, struct crew *ret, struct problems *ps)
{
	size_t before = ps->n + ps->more;
	struct role *server = added_find(job, SERVER);

	if (!server)
		problems_add(
			ps, a, job->strategy_pos,
			"strategy 'inference' needs a table [roles.server], and another for the clients");
	else if (!server->port)
		problems_add(ps, a, server->pos,
			     "roles.server needs a port: clients start when it answers");
	if (ps->n + ps->more != before || !crew_free(job, a, ret, ps))
		return false;
	crew_gate(ret, SERVER, a);
	return true;
}

static void complete(struct job *job, struct arena *a)
{
	struct role *server = added_find(job, SERVER);

	(void)a;
	if (server)
		server->service = server->service_set = true;
}

static void env(const struct env_input *in, int role, struct arena *a, struct env_list *out)
{
	if (!in->crew->roles[role].counted)
		return;
	env_put(out, a, "INFERENCE_SERVER_HOST", "{list:" SERVER "|,|{address}}");
	env_put_int(out, a, "INFERENCE_SERVER_PORT", crew_role(in->crew, SERVER)->port);
}

const struct strategy strategy_inference = {
	.name = "inference",
	.help = "a server that is probed, and clients that find it in INFERENCE_SERVER_HOST and _PORT",
	.complete = complete,
	.crew = crew,
	.env = env,
};
