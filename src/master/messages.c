#include "master/messages.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/arena.h"
#include "base/cleanup.h"
#include "fmt/doc.h"
#include "link/layout.h"
#include "link/message.h"
#include "master/api/previous.h"
#include "master/clock.h"
#include "master/data_blobs.h"
#include "master/internal.h"
#include "master/live_run.h"
#include "master/node_container.h"
#include "master/node_setup.h"
#include "master/runs.h"
#include "master/start_table.h"
#include "master/streams.h"
#include "plan/plan.h"
#include "spec/job.h"
#include "strategy/strategy.h"

_Static_assert(JOB_MAX_PROCESSES == PROCESSES_MAX, "a job and the link have one limit");

#define DEADLINE_SLACK_MS 5000
#define DEFAULT_PATH "/usr/local/bin:/usr/bin:/bin"

static const char *own_path(const struct env_list *env)
{
	for (size_t i = 0; i < env->n; i++)
		if (strcmp(env->v[i].name, "PATH") == 0)
			return env->v[i].value;
	return NULL;
}

/* Where the command is searched: the PATH of the role, of the job, or of whoever submitted it. */
static const char *path_of(const struct live_run *lr, const struct strategy_role *role,
			   struct arena *a)
{
	const char *own = role->spec ? own_path(&role->spec->env) : NULL;
	struct doc *env = NULL;

	if (!own)
		own = own_path(&lr->job->env);
	if (own)
		return own;
	if (json_parse(str_from(lr->client_env), a, &env, NULL) < 0)
		return DEFAULT_PATH;
	return doc_str(env, "PATH", STR(DEFAULT_PATH)).p;
}

static const char *output_dir(const struct live_run *lr, int rank, int attempt, struct arena *a)
{
	char base[LOG_NAME_MAX];

	run_log_base(lr, rank, attempt, base);
	return arena_printf(a, "%s/" LAYOUT_OUTPUTS "/%s", lr->dir, base);
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
	return plan_runs_in_place(lr->job) ? lr->row.base_dir : "";
}

static int place_of(const struct live_run *lr, int rank)
{
	const struct core_run *r = lr->core;
	int n = 0;

	for (int i = 0; i < lr->plan.crew.n; i++)
		n += !r->nodes[i].asleep && core_job_rank(r, i) < core_job_rank(r, rank);
	return n;
}

/* Data is sharded by the node's place among the counted nodes, which come first in the crew. */
static void put_data(const struct live_run *lr, int rank, struct arena *a, struct message_inputs *m)
{
	const struct crew *crew = &lr->plan.crew;
	bool counted = crew->roles[crew->members[rank].role].counted;
	const struct data_spec *inputs;

	m->ndata = job_data(lr->job, a, &inputs);
	m->data = arena_array(a, struct message_data, m->ndata + 1);
	for (size_t i = 0; i < m->ndata; i++) {
		const struct data_spec *d = &inputs[i];
		int place = d->shard && counted ? place_of(lr, rank) : -1;

		m->data[i] = (struct message_data){
			.path = d->path, .md5 = d->md5, .shard_count = 1, .unpack = d->unpack};
		if (input_is_fetched(d->src) || plan_shares_files(lr->job))
			m->data[i].sha256 = d->sha256;
		if (input_is_fetched(d->src) || !plan_shares_files(lr->job)) {
			data_blobs_put(lr, i, place, a, &m->data[i]);
			continue;
		}
		m->data[i].src = d->src;
		m->data[i].shard_index = place >= 0 ? place : 0;
		m->data[i].shard_count = place >= 0 ? lr->core->counted : 1;
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

static void put_ports(const struct live_run *lr, int rank, struct arena *a,
		      struct message_inputs *m)
{
	const struct env_input in = {.job = lr->job, .crew = &lr->plan.crew};
	struct strategy_port p;

	if (!lr->plan.strategy->ports || !lr->plan.strategy->ports(&in, rank, &p))
		return;
	m->ports = arena_array(a, struct message_port, 1);
	m->ports[m->nports++] = (struct message_port){p.port, p.count, p.any, p.key};
}

static int preempt_signal(const struct job *job)
{
	static const int signals[] = {
		[PREEMPT_NONE] = 0,	[PREEMPT_TERM] = SIGTERM, [PREEMPT_INT] = SIGINT,
		[PREEMPT_HUP] = SIGHUP, [PREEMPT_USR1] = SIGUSR1, [PREEMPT_USR2] = SIGUSR2,
	};

	return signals[job->preempt_signal];
}

/* The limit that the agent sets; 0: none, or whoever made the container has set it. */
static uint64_t memory_of(const struct live_run *lr, const struct strategy_role *role)
{
	return role->spec && !plan_contains(lr->job) ? role->spec->memory : 0;
}

/* That the node takes of its machine; elsewhere the engine gives them. */
static int gpus_of(const struct live_run *lr, const struct strategy_role *role)
{
	const struct resources_spec *r = role->spec ? role->spec->resources : NULL;

	return r && plan_queues(&lr->plan) ? (int)r->gpus : 0;
}

void node_inputs_put(const struct live_run *lr, int rank, struct buf *out)
{
	CLEANUP(arena_freep) struct arena *a = arena_new();
	const struct job *job = lr->job;
	const struct strategy_role *role = &lr->plan.crew.roles[lr->plan.crew.members[rank].role];
	struct message_blob source = {.sha256 = lr->row.source_sha256};
	struct message_inputs m = {
		.source = job->source && input_is_packed(job->source) ? &source : NULL,
		.argv0 = strategy_program(&lr->plan.crew, rank),
		.path = path_of(lr, role, a),
		.address = lr->core->nodes[rank].address,
		.port = role->port,
		.gpus = gpus_of(lr, role),
		.memory = memory_of(lr, role),
		.metric_prefix = job->data_prefix,
		.sample_ms = job->sample_ms,
		.preempt_signal = preempt_signal(job),
		.keep = job->output.keep.v,
		.nkeep = job->output.keep.n,
		.previous = plan_shares_files(job) ? 0 : previous_attempt(lr, rank),
		.preflight = plan_preflight(&lr->plan) && lr->core->phase <= RUN_GATHERING,
	};

	put_data(lr, rank, a, &m);
	put_metrics(job, a, &m);
	put_ports(lr, rank, a, &m);
	node_setup_put(lr, rank, a, &m);
	node_container_put(lr, rank, a, &m);
	message_inputs_put(&m, out);
}

void node_preflight_put(const struct live_run *lr, int rank, int round, struct buf *out)
{
	CLEANUP(arena_freep) struct arena *a = arena_new();
	int *ranks = arena_array(a, int, (size_t)lr->plan.crew.n);
	int n = core_preflight_peers(lr->core, rank, ranks);
	struct message_preflight m = {.round = round,
				      .peers = arena_array(a, struct message_peer, (size_t)n + 1),
				      .limit_ms = CORE_PREFLIGHT_MS};

	for (int i = 0; i < n; i++) {
		const struct core_node *peer = &lr->core->nodes[ranks[i]];

		m.peers[m.npeers++] =
			(struct message_peer){ranks[i], peer->address, peer->facts.port};
	}
	message_preflight_put(&m, out);
}

/* How long the node may run without hearing from a master: until the deadline of the run, plus
 * the grace period and some slack, so that the master normally acts first.  0: no limit. */
static int64_t time_left(const struct live_run *lr)
{
	if (!lr->core->deadline_ms || lr->core->phase != RUN_RUNNING)
		return 0;
	int64_t left = lr->core->deadline_ms - master_now(lr->m) + lr->job->timeouts.grace_ms +
		       DEADLINE_SLACK_MS;

	return left > 0 ? left : 1;
}

static const char *node_interface(const struct live_run *lr, int rank)
{
	const struct live_node *n = &lr->nodes[rank];

	return lr->plan.iface ? lr->plan.iface : n->interface[0] ? n->interface : NULL;
}

/* For an agent of an earlier version, which does not expand templates: expands them here. */
static void expand_for(struct live_run *lr, int rank, struct arena *a, struct message_start *m)
{
	const char *nd = node_dir(lr, rank, a);
	const struct expand_here here = {
		.members = start_members(lr),
		.rank = start_rank(lr, rank),
		.attempt = m->attempt,
		.interface = m->interface,
		.output = output_dir(lr, rank, m->attempt, a),
		.work = m->cwd,
		.hostfile = arena_printf(a, "%s/" LAYOUT_HOSTFILE, nd),
		.machinefile = arena_printf(a, "%s/" LAYOUT_MACHINEFILE, nd),
		.metrics = m->attempt > 1
				   ? arena_printf(a, "%s/" LAYOUT_ATTEMPT "/" LAYOUT_METRICS_FIFO,
						  nd, m->attempt)
				   : arena_printf(a, "%s/" LAYOUT_METRICS_FIFO, nd),
	};
	const struct env_list templates = {m->env, m->nenv};
	struct env_list env;
	const char **texts[] = {&m->hostfile, &m->machinefile};

	strategy_env_expand(&templates, &here, NULL, a, &env);
	m->env = env.v;
	m->nenv = env.n;
	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
		CLEANUP(buf_release) struct buf text = {0};

		buf_init(&text, FRAME_MAX_PAYLOAD / 2);
		expand_text(*texts[i], &here, &text, NULL);
		*texts[i] = arena_str(a, buf_str(&text)).p;
	}
	m->rank = -1;
	m->interface = NULL;
}

/* Adds REGATTA_PREVIOUS, the output directory of the previous attempt. */
static void put_previous(const char *dir, struct arena *a, struct message_start *m)
{
	struct env_pair *all = arena_array(a, struct env_pair, m->nenv + 1);
	CLEANUP(buf_release) struct buf text = {0};

	buf_init(&text, 2 * strlen(dir) + 1);
	expand_quote(dir, &text);
	memcpy(all, m->env, m->nenv * sizeof(*all));
	all[m->nenv++] = (struct env_pair){"REGATTA_PREVIOUS", arena_str(a, buf_str(&text)).p};
	m->env = all;
}

void node_start_put(struct live_run *lr, int rank, int attempt, bool templates, struct buf *out)
{
	CLEANUP(arena_freep) struct arena *a = arena_new();
	const struct crew *crew = &lr->plan.crew;
	const struct strategy_role *role = &crew->roles[crew->members[rank].role];
	const struct env_list *env = start_templates(lr, crew->members[rank].role);
	const char *address = lr->core->nodes[rank].address;
	const struct strs command = strategy_command(crew, rank);
	const bool runs = strategy_runs(crew, rank);
	struct message_start m = {
		.attempt = attempt,
		.rank = start_rank(lr, rank),
		.interface = node_interface(lr, rank),
		.argv = command.v,
		.argc = command.n,
		.env = env->v,
		.nenv = env->n,
		.cwd = templates ? NULL : work_dir(lr, rank, a),
		.hostfile = strategy_hostfile(start_crew(lr), a),
		.machinefile = strategy_machinefile(start_crew(lr), a),
		.address = address[0] ? address : NULL,
		.port = role->port,
		.grace_ms = lr->job->timeouts.grace_ms,
		.memory = memory_of(lr, role),
		.deadline_ms = time_left(lr),
		.processes = role->processes,
		.rsh = crew->launch != LAUNCH_ALL,
		.tee = !runs,
		.tail = lr->plan.strategy->cause && runs,
		/* One that idles for a launcher takes the output of ranks, both streams of it. */
		.pty = runs && (role->spec && role->spec->pty_set ? role->spec->pty : lr->job->pty),
		.bind = lr->job->bind_cpus,
	};

	if (attempt > 1 && plan_shares_files(lr->job))
		put_previous(output_dir(lr, rank, attempt - 1, a), a, &m);
	if (!templates)
		expand_for(lr, rank, a, &m);
	message_start_put(&m, out);
}
