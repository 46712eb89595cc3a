#include "master/messages.h"

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/arena.h"
#include "base/cleanup.h"
#include "base/path.h"
#include "fmt/doc.h"
#include "link/layout.h"
#include "link/message.h"
#include "master/internal.h"
#include "master/runs.h"
#include "spec/job.h"
#include "strategy/strategy.h"

#define DEADLINE_SLACK_MS 5000
#define DEFAULT_PATH "/usr/local/bin:/usr/bin:/bin"

/* The client's PATH decides where the command is found. */
static const char *client_path(const struct live_run *lr, struct arena *a)
{
	struct doc *env = NULL;

	if (json_parse(str_from(lr->client_env), a, &env, NULL) < 0)
		return DEFAULT_PATH;
	return doc_str(env, "PATH", STR(DEFAULT_PATH)).p;
}

static const char *output_dir(const struct live_run *lr, int rank, struct arena *a)
{
	return arena_printf(a, "%s/" LAYOUT_OUTPUTS "/%s", lr->dir,
			    lr->plan.crew.members[rank].name);
}

static const char *node_dir(const struct live_run *lr, int rank, struct arena *a)
{
	return arena_printf(a, "%s/%s" LAYOUT_NODE_SUFFIX, lr->dir,
			    lr->plan.crew.members[rank].name);
}

static const char *work_dir(const struct live_run *lr, int rank, struct arena *a)
{
	if (lr->job->source || lr->job->data.n)
		return arena_printf(a, "%s/" LAYOUT_WORK, node_dir(lr, rank, a));
	return lr->row.base_dir;
}

/* Data is sharded by a node's place among the counted nodes, which come first. */
static void put_data(const struct live_run *lr, int rank, struct arena *a, struct message_inputs *m)
{
	const struct crew *crew = &lr->plan.crew;
	bool counted = crew->roles[crew->members[rank].role].counted;

	m->ndata = lr->job->data.n;
	m->data = arena_array(a, struct message_data, m->ndata + 1);
	for (size_t i = 0; i < m->ndata; i++) {
		const struct data_spec *d = &((struct data_spec *)lr->job->data.v)[i];
		CLEANUP(freep) char *src = path_join(lr->row.base_dir, d->src);
		bool sharded = d->shard && counted;

		m->data[i] = (struct message_data){
			.src = arena_strdup(a, src),
			.path = d->path,
			.shard_index = sharded ? rank : 0,
			.shard_count = sharded ? crew->ncounted : 1,
		};
	}
}

static void put_metrics(const struct job *job, struct arena *a, struct message_inputs *m)
{
	m->metrics = arena_array(a, struct message_metric, job->metrics.n + 1);
	for (size_t i = 0; i < job->metrics.n; i++) {
		const struct metric_spec *ms = &((struct metric_spec *)job->metrics.v)[i];

		if (ms->pattern)
			m->metrics[m->nmetrics++] = (struct message_metric){ms->name, ms->pattern};
	}
}

void node_inputs_put(const struct live_run *lr, int rank, struct buf *out)
{
	CLEANUP(arena_freep) struct arena *a = arena_new();
	const struct job *job = lr->job;
	const struct strategy_role *role = &lr->plan.crew.roles[lr->plan.crew.members[rank].role];
	struct message_source source = {
		.path = arena_printf(a, "%s/" LAYOUT_BLOBS "/%s", lr->m->home,
				     lr->row.source_sha256),
		.sha256 = lr->row.source_sha256,
	};
	struct message_inputs m = {
		.source = job->source ? &source : NULL,
		.cwd = work_dir(lr, rank, a),
		.argv0 = role->command.v[0],
		.path = client_path(lr, a),
		.address = lr->core->nodes[rank].address,
		.port = role->port,
		.memory = role->spec ? role->spec->memory : 0,
		.metric_prefix = job->data_prefix,
		.sample_ms = job->sample_ms,
		.keep = job->output.keep.v,
		.nkeep = job->output.keep.n,
		.output_dir = output_dir(lr, rank, a),
	};

	put_data(lr, rank, a, &m);
	put_metrics(job, a, &m);
	message_inputs_put(&m, out);
}

static bool env_has(const struct env_list *env, struct str name)
{
	for (size_t i = 0; i < env->n; i++)
		if (str_is(name, env->v[i].name))
			return true;
	return false;
}

/* What the submitting shell had comes first; the run's own names win. */
static void put_env(const struct live_run *lr, const struct env_list *env, struct arena *a,
		    struct message_start *m)
{
	struct doc *client = NULL;
	size_t n = 0;

	if (json_parse(str_from(lr->client_env), a, &client, NULL) == 0 &&
	    client->type == DOC_TABLE)
		n = client->table.n;
	m->env = arena_array(a, struct env_pair, n + env->n + 1);
	for (size_t i = 0; i < n; i++) {
		const struct doc_entry *e = &client->table.v[i];

		if (e->value->type == DOC_STRING && !env_has(env, e->key))
			m->env[m->nenv++] =
				(struct env_pair){arena_str(a, e->key).p, e->value->s.p};
	}
	for (size_t i = 0; i < env->n; i++)
		m->env[m->nenv++] = env->v[i];
}

/* The host and port of the HTTP service, "127.0.0.1:5436"; "" if the master listens on no TCP port. */
static const char *http_endpoint(const struct master *m)
{
	const char *scheme_end = strstr(m->http_url, "://");

	return scheme_end ? scheme_end + strlen("://") : "";
}

/* How long the node may run without hearing from a master: its run's deadline and a little more, so that the master
 * comes first.  0: no limit. */
static int64_t time_left(const struct live_run *lr)
{
	if (!lr->core->deadline_ms || lr->core->phase != RUN_RUNNING)
		return 0;
	int64_t left = lr->core->deadline_ms - master_now(lr->m) + lr->job->timeouts.grace_ms +
		       DEADLINE_SLACK_MS;

	return left > 0 ? left : 1;
}

static const char *node_interface(const struct live_node *n)
{
	return n->interface[0] ? n->interface : NULL;
}

void node_start_put(const struct live_run *lr, int rank, int attempt, struct buf *out)
{
	CLEANUP(arena_freep) struct arena *a = arena_new();
	const struct crew *crew = &lr->plan.crew;
	const struct strategy_role *role = &crew->roles[crew->members[rank].role];
	const char *nd = node_dir(lr, rank, a);
	const char **addresses = arena_array(a, const char *, (size_t)crew->n);
	struct env_list env = {0};

	for (int i = 0; i < crew->n; i++)
		addresses[i] = lr->core->nodes[i].address[0] ? lr->core->nodes[i].address : NULL;
	struct env_input in = {
		.job = lr->job,
		.crew = crew,
		.run_id = lr->row.id,
		.addresses = addresses,
		.iface = lr->plan.iface ? lr->plan.iface : node_interface(&lr->nodes[rank]),
		.output_dir = output_dir(lr, rank, a),
		.work_dir = work_dir(lr, rank, a),
		.hostfile = arena_printf(a, "%s/" LAYOUT_HOSTFILE, nd),
		.metrics_fifo =
			attempt > 1 ? arena_printf(a, "%s/" LAYOUT_ATTEMPT "/" LAYOUT_METRICS_FIFO,
						   nd, attempt)
				    : arena_printf(a, "%s/" LAYOUT_METRICS_FIFO, nd),
		.master_endpoint = http_endpoint(lr->m),
		.attempt = attempt,
		.machinefile = arena_printf(a, "%s/" LAYOUT_MACHINEFILE, nd),
	};
	strategy_env(lr->plan.strategy, &in, rank, a, &env);

	struct message_start m = {
		.attempt = attempt,
		.argv = role->command.v,
		.argc = role->command.n,
		.cwd = in.work_dir,
		.hostfile = strategy_hostfile(crew, addresses, a),
		.machinefile = strategy_machinefile(crew, addresses, a),
		.address = addresses[rank],
		.port = role->port,
		.grace_ms = lr->job->timeouts.grace_ms,
		.memory = role->spec ? role->spec->memory : 0,
		.deadline_ms = time_left(lr),
		.pty = role->spec && role->spec->pty_set ? role->spec->pty : lr->job->pty,
	};
	put_env(lr, &env, a, &m);
	message_start_put(&m, out);
}
