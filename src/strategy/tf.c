/*
 * tf - TensorFlow by TF_CONFIG (env_tf.c): chief, worker, ps and evaluator.
 *
 * Parameter servers are services and are probed; everybody else starts when they answer.  The evaluator is a
 * service too: it is stopped when the training is done.  With a chief and parameter servers the workers only serve the
 * chief, for ever, so they are services as well.  A role that says service = true or false itself is as it says.
 */
#include "strategy/internal.h"

static void serve(struct role *r)
{
	if (r && !r->service_set)
		r->service = r->service_set = true;
}

static void complete(struct job *job, struct arena *a)
{
	struct role *ps = added_find(job, "ps");

	(void)a;
	serve(ps);
	serve(added_find(job, EVALUATOR));
	if (ps && added_find(job, "chief"))
		serve(added_find(job, "worker"));
	if (ps && !ps->port)
		ps->port = TF_PORT;
}

static bool crew(const struct job *job, struct arena *a, struct crew *ret, struct problems *ps)
{
	if (!crew_free(job, a, ret, ps))
		return false;
	/* The port of a task is TensorFlow's to open: only that of the parameter servers is waited for. */
	for (int i = 0; i < ret->nroles; i++)
		if (strcmp(ret->roles[i].name, "ps") != 0 &&
		    ret->roles[i].spec->ready_when == READY_DEFAULT)
			ret->roles[i].ready_when = READY_STARTED;
	crew_gate(ret, "ps", a);
	return true;
}

/* Each task of the cluster listens; those of a node have ports that follow each other. */
static bool ports(const struct env_input *in, int rank, struct strategy_port *ret)
{
	const struct strategy_role *r = &in->crew->roles[in->crew->members[rank].role];

	*ret = (struct strategy_port){r->port ? r->port : TF_PORT, r->processes, false,
				      "`port` of its role"};
	return strcmp(r->name, EVALUATOR) != 0;
}

const struct strategy strategy_tf = {
	.name = "tf",
	.help = "TensorFlow: chief, worker, ps and evaluator, by TF_CONFIG",
	.complete = complete,
	.crew = crew,
	.ports = ports,
};
