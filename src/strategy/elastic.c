/*
 * elastic - PyTorch with a number of nodes that changes, as torchelastic on AWS ran it.
 *
 * One role counts, the trainers: between min and max nodes of it, each with a torchrun that joins a rendezvous.
 * The rendezvous is a service of its own, role "rdzv": etcd, or PyTorch's own store (c10d).  Trainers start when its
 * port answers.  It is none of the trainers, so the loss of any of them leaves the others a place to meet again.
 * The file may have a [roles.rdzv], to choose its machine or to run a program of its own.
 */
#include "strategy/internal.h"

#include <string.h>

#include "base/arena.h"

#define RDZV "rdzv"
#define ETCD_PORT 2379
#define C10D_PORT 29400
/* So often a torchrun starts its processes anew after a failure: when a node is lost, those of the others fail. */
#define MAX_RESTARTS 3
/* What the script of etcd says on a node that has none, and what the cause of the run says then. */
#define NO_ETCD "there is no etcd on the path of "
#define NO_ETCD_NEXT "install it (Debian: etcd-server), or write rendezvous = \"c10d\""

static const struct backend {
	const char *name;
	int port;
	const char *conf; /* of torchrun's handler */
} backends[] = {
	/* Everybody is ready before anybody starts: five seconds for more nodes to come are enough. */
	{"etcd", ETCD_PORT, "last_call_timeout=5"},
	{"c10d", C10D_PORT, "last_call_timeout=5,is_host=0"},
};
#define NBACKENDS (sizeof(backends) / sizeof(backends[0]))

static const struct backend *backend_of(const struct job *job)
{
	for (size_t i = 0; i < NBACKENDS; i++)
		if (strcmp(job->rendezvous ? job->rendezvous : backends[0].name,
			   backends[i].name) == 0)
			return &backends[i];
	return NULL;
}

/* The store of etcd is in the node's own directory, which goes with the node.  It has no peers, and listens for them
 * on any free port: only the one for clients is looked at before the start. */
static const char *etcd_script(int port, struct arena *a)
{
	return arena_printf(
		a,
		"command -v etcd >/dev/null || {\n"
		"\techo \"" NO_ETCD "$REGATTA_NODE:\" '" NO_ETCD_NEXT "' >&2\n"
		"\texit 127\n"
		"}\n"
		"at=http://$REGATTA_ADDRESS\n"
		"exec etcd --name rdzv --enable-v2 --data-dir \"${REGATTA_METRICS%%/*}/etcd\" \\\n"
		"\t--listen-client-urls $at:%d --advertise-client-urls $at:%d \\\n"
		"\t--listen-peer-urls $at:0 --initial-advertise-peer-urls $at:0 \\\n"
		"\t--initial-cluster rdzv=$at:0 --logger zap --log-level warn\n",
		port, port);
}

static const char *c10d_script(int port, struct arena *a)
{
	return arena_printf(
		a,
		"import os, signal, torch.distributed as dist\n"
		"store = dist.TCPStore(os.environ['REGATTA_ADDRESS'], %d, is_master=True, "
		"wait_for_workers=False)\n"
		"signal.pause()\n",
		port);
}

static void complete(struct job *job, struct arena *a)
{
	const struct backend *b = backend_of(job);

	added_workers(job, a);
	struct role *rdzv = added_role(job, a, RDZV);

	rdzv->service = rdzv->service_set = true;
	if (!b || added_has_command(job, rdzv))
		return;
	if (!rdzv->port)
		rdzv->port = b->port;
	if (b->port == ETCD_PORT)
		added_run_script(rdzv, a, "sh", etcd_script((int)rdzv->port, a));
	else
		added_run_script(rdzv, a, added_python(job), c10d_script((int)rdzv->port, a));
}

static bool cause(struct str tail, struct strategy_end *ret)
{
	if (!memmem(tail.p, tail.n, NO_ETCD, strlen(NO_ETCD)))
		return false;
	*ret = (struct strategy_end){
		.rank = -1, .code = -1, .what = "there is no etcd on its path: " NO_ETCD_NEXT};
	return true;
}

static const char *const brings[] = {RDZV, NULL};

static bool check(const struct job *job, struct arena *a, const struct crew *c, struct problems *ps)
{
	size_t before = ps->n + ps->more;
	const struct role *rdzv = added_find(job, RDZV);
	int counted = 0;

	for (int i = 0; i < c->nroles; i++)
		counted += c->roles[i].counted;
	if (counted > 1)
		problems_add(
			ps, a, job->strategy_pos,
			"strategy 'elastic' has one role that counts for the finish, and this file has %d: mark "
			"the others with service = true",
			counted);
	if (!backend_of(job))
		problems_add(ps, a, job->rendezvous_pos,
			     "rendezvous = \"%s\": write \"etcd\" or \"c10d\"", job->rendezvous);
	if (rdzv && rdzv->policy.max > 1)
		problems_add(ps, a, rdzv->pos, "roles.rdzv is one node: leave out count");
	return ps->n + ps->more == before;
}

static bool crew(const struct job *job, struct arena *a, struct crew *ret, struct problems *ps)
{
	if (!crew_free(job, a, ret, ps) || !check(job, a, ret, ps))
		return false;
	torch_start_torchrun_once(ret);
	crew_gate(ret, RDZV, a);
	return true;
}

static void env(const struct env_input *in, int role, struct arena *a, struct env_list *out)
{
	const struct strategy_role *r = &in->crew->roles[role];
	const struct backend *b = backend_of(in->job);
	const struct role *s = r->spec;

	if (!r->counted || !b)
		return;
	const char *endpoint = arena_printf(a, "{list:" RDZV "|,|{address}:{port:%d}}", b->port);

	/* The names of torchelastic's own launcher, of both of its versions. */
	env_put(out, a, "RDZV_ENDPOINT", endpoint);
	env_put_text(out, a, "JOB_ID", in->run_id);
	env_put_int(out, a, "MIN_SIZE", s->policy.min);
	env_put_int(out, a, "MAX_SIZE", s->policy.max);
	env_put_int(out, a, "SIZE", r->count);
	env_put_int(out, a, "NUM_NODES", r->count);
	env_put(out, a, "PET_NNODES",
		arena_printf(a, "%lld:%lld", (long long)s->policy.min, (long long)s->policy.max));
	env_put_int(out, a, "PET_NPROC_PER_NODE", r->processes < r->ranks ? r->ranks : 1);
	env_put(out, a, "PET_RDZV_BACKEND", b->name);
	env_put(out, a, "PET_RDZV_ENDPOINT", endpoint);
	env_put(out, a, "PET_RDZV_CONF", b->conf);
	env_put_int(out, a, "PET_MAX_RESTARTS", MAX_RESTARTS);
}

const struct strategy strategy_elastic = {
	.name = "elastic",
	.help = "PyTorch with min to max nodes: torchrun on each, and a rendezvous that Regatta starts",
	.replaces_lost = true,
	.takes_rendezvous = true,
	.complete = complete,
	.brings = brings,
	.crew = crew,
	.env = env,
	.cause = cause,
};
