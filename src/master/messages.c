/* Control payloads for an agent, made from job, plan and strategy. */
#include "master/internal.h"

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/arena.h"
#include "base/cleanup.h"
#include "base/path.h"
#include "fmt/doc.h"
#include "fmt/jsonw.h"
#include "spec/job.h"
#include "strategy/strategy.h"

#define DEADLINE_SLACK_MS 5000

/* The client's PATH decides where the command is found. */
static struct str client_path(const struct live_run *lr, struct arena *a)
{
	struct doc *env = NULL;

	if (json_parse(str_from(lr->row.client_env), a, &env, NULL) < 0)
		return STR("/usr/local/bin:/usr/bin:/bin");
	return doc_str(env, "PATH", STR("/usr/local/bin:/usr/bin:/bin"));
}

static const char *output_dir(const struct live_run *lr, int rank, struct arena *a)
{
	return arena_printf(a, "%s/outputs/%s", lr->dir, lr->plan.crew.members[rank].name);
}

static const char *node_dir(const struct live_run *lr, int rank, struct arena *a)
{
	return arena_printf(a, "%s/%s.node", lr->dir, lr->plan.crew.members[rank].name);
}

static const char *work_dir(const struct live_run *lr, int rank, struct arena *a)
{
	if (lr->job->source || lr->job->data.n)
		return arena_printf(a, "%s/work", node_dir(lr, rank, a));
	return lr->row.base_dir;
}

/* Its place among the counted nodes: that is how data is sharded. */
static void data_to_json(const struct live_run *lr, int rank, struct arena *a, struct jsonw *w)
{
	const struct crew *crew = &lr->plan.crew;
	bool counted = crew->roles[crew->members[rank].role].counted;

	jsonw_key(w, "data");
	jsonw_open(w, '[');
	for (size_t i = 0; i < lr->job->data.n; i++) {
		const struct data_spec *d = &((struct data_spec *)lr->job->data.v)[i];
		char *src = path_join(lr->row.base_dir, d->src);
		jsonw_open(w, '{');
		jsonw_kz(w, "src", arena_strdup(a, src));
		jsonw_kz(w, "path", d->path);
		jsonw_kint(w, "shard_index", d->shard && counted ? rank : 0);
		jsonw_kint(w, "shard_count", d->shard && counted ? crew->ncounted : 1);
		jsonw_close(w);
		free(src);
	}
	jsonw_close(w);
}

void message_inputs(const struct live_run *lr, int rank, struct buf *out)
{
	CLEANUP(arena_freep) struct arena *a = arena_new();
	const struct job *job = lr->job;
	const struct strategy_role *role = &lr->plan.crew.roles[lr->plan.crew.members[rank].role];
	struct jsonw w;

	jsonw_init(&w, out);
	jsonw_open(&w, '{');
	if (job->source) {
		jsonw_key(&w, "source");
		jsonw_open(&w, '{');
		jsonw_kz(&w, "path",
			 arena_printf(a, "%s/blobs/%s", lr->m->home, lr->row.source_sha256));
		jsonw_kz(&w, "sha256", lr->row.source_sha256);
		jsonw_close(&w);
	}
	data_to_json(lr, rank, a, &w);
	jsonw_kz(&w, "cwd", work_dir(lr, rank, a));
	jsonw_kz(&w, "argv0", role->command.v[0]);
	jsonw_kstr(&w, "path", client_path(lr, a));
	jsonw_kz(&w, "address", lr->core->nodes[rank].address);
	if (role->port)
		jsonw_kint(&w, "port", role->port);
	if (role->spec && role->spec->memory)
		jsonw_kint(&w, "memory", (int64_t)role->spec->memory);
	jsonw_key(&w, "metrics");
	jsonw_open(&w, '[');
	for (size_t i = 0; i < job->metrics.n; i++) {
		const struct metric_spec *ms = &((struct metric_spec *)job->metrics.v)[i];
		if (!ms->pattern)
			continue;
		jsonw_open(&w, '{');
		jsonw_kz(&w, "name", ms->name);
		jsonw_kz(&w, "pattern", ms->pattern);
		jsonw_close(&w);
	}
	jsonw_close(&w);
	jsonw_kz(&w, "metric_prefix", job->data_prefix);
	jsonw_kint(&w, "sample_ms", job->sample_ms);
	jsonw_key(&w, "keep");
	jsonw_open(&w, '[');
	for (size_t i = 0; i < job->output.keep.n; i++)
		jsonw_z(&w, job->output.keep.v[i]);
	jsonw_close(&w);
	jsonw_kz(&w, "output_dir", output_dir(lr, rank, a));
	jsonw_close(&w);
}

static void env_to_json(const struct live_run *lr, const struct env_list *env, struct arena *a,
			struct jsonw *w)
{
	struct doc *client = NULL;

	jsonw_key(w, "env");
	jsonw_open(w, '{');
	/* What the submitting shell had comes first; the run's own names win. */
	if (json_parse(str_from(lr->row.client_env), a, &client, NULL) == 0 &&
	    client->type == DOC_TABLE) {
		for (size_t i = 0; i < client->table.n; i++) {
			struct str key = client->table.v[i].key;
			bool ours = false;
			for (size_t k = 0; k < env->n && !ours; k++)
				ours = str_is(key, env->v[k].name);
			if (ours || client->table.v[i].value->type != DOC_STRING)
				continue;
			jsonw_key_str(w, key);
			jsonw_str(w, client->table.v[i].value->s);
		}
	}
	for (size_t i = 0; i < env->n; i++)
		jsonw_kz(w, env->v[i].name, env->v[i].value);
	jsonw_close(w);
}

/* "127.0.0.1:5436" of "http://127.0.0.1:5436"; "" without TCP. */
static const char *http_endpoint(const struct master *m)
{
	const char *scheme_end = strstr(m->http_url, "://");

	return scheme_end ? scheme_end + strlen("://") : "";
}

void message_start(const struct live_run *lr, int rank, int attempt, struct buf *out)
{
	CLEANUP(arena_freep) struct arena *a = arena_new();
	const struct crew *crew = &lr->plan.crew;
	const struct strategy_role *role = &crew->roles[crew->members[rank].role];
	const char *nd = node_dir(lr, rank, a);
	const char **addresses = arena_array(a, const char *, (size_t)crew->n);
	struct env_list env = {0};
	struct jsonw w;

	for (int i = 0; i < crew->n; i++)
		addresses[i] = lr->core->nodes[i].address;
	struct env_input in = {
		.job = lr->job,
		.crew = crew,
		.run_id = lr->row.id,
		.addresses = addresses,
		.iface = lr->plan.iface,
		.output_dir = output_dir(lr, rank, a),
		.work_dir = work_dir(lr, rank, a),
		.hostfile = arena_printf(a, "%s/hostfile", nd),
		.metrics_fifo = attempt > 1 ? arena_printf(a, "%s/a%d/metrics.fifo", nd, attempt)
					    : arena_printf(a, "%s/metrics.fifo", nd),
		.master_endpoint = http_endpoint(lr->m),
		.attempt = attempt,
		.machinefile = arena_printf(a, "%s/machinefile", nd),
	};
	strategy_env(lr->plan.strategy, &in, rank, a, &env);

	jsonw_init(&w, out);
	jsonw_open(&w, '{');
	jsonw_kint(&w, "attempt", attempt);
	jsonw_key(&w, "argv");
	jsonw_open(&w, '[');
	for (size_t i = 0; i < role->command.n; i++)
		jsonw_z(&w, role->command.v[i]);
	jsonw_close(&w);
	env_to_json(lr, &env, a, &w);
	jsonw_kz(&w, "cwd", in.work_dir);
	jsonw_kz(&w, "hostfile", strategy_hostfile(crew, addresses, a));
	jsonw_kz(&w, "machinefile", strategy_machinefile(crew, addresses, a));
	jsonw_kz(&w, "address", addresses[rank]);
	if (role->port)
		jsonw_kint(&w, "port", role->port);
	jsonw_kint(&w, "grace_ms", lr->job->timeouts.grace_ms);
	if (role->spec && role->spec->memory)
		jsonw_kint(&w, "memory", (int64_t)role->spec->memory);
	/* The node's own limit is the last resort, for when nobody tells it to stop in time. */
	if (lr->core->deadline_ms && lr->core->phase == RUN_RUNNING)
		jsonw_kint(&w, "deadline_ms",
			   lr->core->deadline_ms - master_now(lr->m) + lr->job->timeouts.grace_ms +
				   DEADLINE_SLACK_MS);
	jsonw_close(&w);
}
