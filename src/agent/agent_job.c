/*
 * The agent's job: its attempts, and what a HELLO says about them.
 */
#include "agent/internal.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "agent/attempt/expand_start.h"
#include "agent/exec.h"
#include "agent/places.h"
#include "agent/ports.h"
#include "agent/inspect.h"
#include "agent/preflight.h"
#include "agent/preempt.h"
#include "agent/prepare.h"
#include "agent/previous.h"
#include "agent/probe.h"
#include "agent/rsh.h"
#include "agent/tail.h"
#include "agent/forked_task.h"
#include "base/alloc.h"
#include "base/arena.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "base/file.h"
#include "base/path.h"
#include "link/conn.h"
#include "link/layout.h"
#include "net/address.h"

/* ---- the attempt ---- */

static void open_streams(struct agent *a)
{
	if (a->at.dirfd < 0)
		return;
	relay_open(&a->relay, a->at.dirfd, streams_count(a->at.processes));
	a->relaying = true;
}

static void close_streams(struct agent *a)
{
	if (a->relaying)
		relay_close(&a->relay);
	a->relaying = false;
}

static void add_env(struct arena *mem, struct env_list *env, const char *name, const char *value)
{
	struct env_pair *all = arena_array(mem, struct env_pair, env->n + 1);

	if (env->n > 0)
		memcpy(all, env->v, env->n * sizeof(*all));
	all[env->n++] = (struct env_pair){name, arena_strdup(mem, value)};
	env->v = all;
}

static bool has_env(const struct env_list *env, const char *name)
{
	for (size_t i = 0; i < env->n; i++)
		if (strcmp(env->v[i].name, name) == 0)
			return true;
	return false;
}

/* All processes of the node see its GPUs; LOCAL_RANK says which one is whose, as with torchrun. */
static void add_gpus(const struct agent *a, struct arena *mem, struct env_list *env)
{
	static const char *const names[] = {"CUDA_VISIBLE_DEVICES", "NVIDIA_VISIBLE_DEVICES"};

	for (size_t i = 0; a->gpus.list[0] && i < sizeof(names) / sizeof(names[0]); i++)
		if (!has_env(env, names[i]))
			add_env(mem, env, names[i], a->gpus.list);
}

static void add_preempt_file(const struct agent *a, struct arena *mem, struct env_list *env)
{
	CLEANUP(freep) char *path = preempt_file(a);

	add_env(mem, env, "REGATTA_PREEMPT_FILE", path);
}

static void add_tmp(const struct agent *a, struct arena *mem, struct env_list *env)
{
	CLEANUP(freep) char *path = rsh_tmp(a);

	if (path && !has_env(env, "TMPDIR"))
		add_env(mem, env, "TMPDIR", path);
}

/* Add the outputs of the previous attempt: those on this machine, else the ones that were fetched. */
static void add_previous(const struct agent *a, struct arena *mem, int attempt,
			 struct env_list *env)
{
	CLEANUP(freep)
	char *dir = a->at.no > 0 ? place_output(&a->cfg, a->dir, a->at.no) : place_previous(a->dir);

	if (attempt < 2 || !file_exists(dir))
		return;
	if (has_env(env, "REGATTA_PREVIOUS"))
		return; /* agent and master share a machine */
	add_env(mem, env, "REGATTA_PREVIOUS", dir);
}

/* Expand the templates of a START for this node. */
static int make_texts(struct agent *a, struct message_start *m, struct arena *mem,
		      struct start_texts *ret, struct err *err)
{
	CLEANUP(freep) char *at_dir = attempt_dir(a->dir, m->attempt);
	CLEANUP(freep) char *cwd = place_cwd(&a->cfg, a->dir, &a->inputs);
	CLEANUP(freep) char *output = place_output(&a->cfg, a->dir, m->attempt);
	CLEANUP(freep) char *hostfile = path_join(a->dir, LAYOUT_HOSTFILE);
	CLEANUP(freep) char *machinefile = path_join(a->dir, LAYOUT_MACHINEFILE);
	CLEANUP(freep) char *metrics = path_join(at_dir, LAYOUT_METRICS_FIFO);
	CLEANUP(freep) char *rsh = path_join(a->dir, LAYOUT_RSH);
	CLEANUP(freep) char *tee = path_join(a->dir, LAYOUT_TEE);

	if (!m->cwd[0])
		m->cwd = arena_strdup(mem, cwd);
	const struct expand_here here = {
		.members = &a->members.table,
		.rank = m->rank,
		.attempt = m->attempt,
		.interface = m->interface,
		.output = output,
		.work = m->cwd,
		.hostfile = hostfile,
		.machinefile = machinefile,
		.metrics = metrics,
		.rsh = m->rsh ? rsh : NULL,
		.tee = m->rsh ? tee : NULL,
	};

	if (m->rank >= 0 && !members_have(&a->members, m->rank))
		return err_set(err, ERR_PROTOCOL, "start: the table of members is incomplete");
	/* That of the first attempt was made by prepare_files. */
	if (m->attempt > 1 && file_mkdir_p(output, 0700, err) < 0)
		return err_wrap(err, "make the output directory");
	if (expand_start(m, m->rank >= 0 ? &here : NULL, a->dir, mem, ret, err) < 0)
		return -1;
	for (int i = 0; i < m->processes; i++) {
		add_gpus(a, mem, &ret->envs[i]);
		add_previous(a, mem, m->attempt, &ret->envs[i]);
		add_preempt_file(a, mem, &ret->envs[i]);
		if (m->rsh)
			add_tmp(a, mem, &ret->envs[i]);
		if (m->tee)
			add_env(mem, &ret->envs[i], "REGATTA_TEE_LOG", at_dir);
	}
	return 0;
}

/* ---- the container ---- */

static bool is_below(const char *path, const char *dir)
{
	size_t n = strlen(dir);

	return strncmp(path, dir, n) == 0 && (path[n] == '/' || !path[n]);
}

static void add_mount(struct attempt_container *c, const char *dir, struct arena *mem)
{
	size_t n = 0;

	for (; c->mounts[n]; n++)
		if (is_below(dir, c->mounts[n]))
			return;
	c->mounts[n] = arena_strdup(mem, dir);
}

/* Where the node has no files of the job's, the container works in the directory that its image names. */
static int make_container(const struct agent *a, const struct message_start *m, struct arena *mem,
			  struct attempt_container *ret, struct err *err)
{
	CLEANUP(freep) char *record = path_join(a->dir, LAYOUT_CONTAINER);
	CLEANUP(freep) char *output = place_output(&a->cfg, a->dir, m->attempt);
	CLEANUP(freep) char *before = place_output(&a->cfg, a->dir, m->attempt - 1);
	bool has_files = a->cfg.base_dir || prepare_has_work(&a->inputs);

	*ret = (struct attempt_container){.image = a->inputs.image,
					  .workdir = has_files ? m->cwd : NULL};
	add_mount(ret, a->dir, mem);
	add_mount(ret, m->cwd, mem);
	add_mount(ret, output, mem);
	if (m->attempt > 1 && file_exists(before))
		add_mount(ret, before, mem);
	return container_record_read(AT_FDCWD, record, &ret->record, err);
}

void job_start(struct agent *a, struct str json, struct err *err)
{
	static const uint64_t zeros[STREAMS_MAX];
	CLEANUP(arena_freep) struct arena *mem = arena_new();
	struct message_start m;
	struct start_texts texts;
	struct attempt_container container;

	if (message_start_get(json, mem, &m, err) < 0)
		return;
	if (a->at.no >= m.attempt) {
		/* A repeated START is answered again, but not executed again. */
		if (a->at.no == m.attempt)
			memset(&a->told, 0, sizeof(a->told));
		return;
	}
	if (attempt_is_live(&a->at)) {
		err_set(err, ERR_PROTOCOL, "start: attempt %d still runs", a->at.no);
		return;
	}
	gpu_claims_resume(&a->gpus, a->dir);
	if (make_texts(a, &m, mem, &texts, err) < 0 || (m.rsh && rsh_open(a, err) < 0))
		return;
	if (a->inputs.image && make_container(a, &m, mem, &container, err) < 0)
		return;
	bool ahead = inputs_streams_are(a, m.attempt); /* they have the output of setup */

	if (!ahead)
		close_streams(a);
	a->probe = probe_free(a->probe);
	a->preflight = preflight_free(a->preflight);
	a->serving = a->collected_known = false;
	a->collect_killed = 0;
	a->collect = forked_task_free(a->collect);
	memset(&a->told, 0, sizeof(a->told));
	free(a->address);
	a->address = xstrdup(m.address);
	a->port = m.port;
	tail_begin(&a->tail, m.tail);
	texts.keep = a->gpus.fds;
	texts.nkeep = a->gpus.n;
	attempt_start(&a->at, a->dir, &m, &texts, a->inputs.image ? &container : NULL);
	if (ahead)
		inputs_hand_streams(a);
	else
		open_streams(a);
	scan_resume(&a->scan, zeros);
}

/* The report of a node with many processes, or with a job's last words, may be too long for a HELLO: it follows as an
 * EXIT. */
static bool exit_fits_hello(const struct attempt *at)
{
	return at->has_exit && at->processes == 1 && !at->exit.tail;
}

void job_hello(struct agent *a, struct buf *out)
{
	struct attempt *at = &a->at;
	char text[ADDRESS_TEXT], interface[CONN_INTERFACE];
	struct address own;

	if (a->relaying && at->has_exit)
		tail_take(&a->tail, &a->relay, &at->exit);
	struct message_hello m = {
		.proto = LINK_PROTO,
		.run = a->cfg.run,
		.node = a->cfg.node,
		.token = a->cfg.token,
		.incarnation = a->cfg.incarnation,
		.boot_id = a->boot_id,
		.pid = getpid(),
		.version = REGATTA_VERSION,
		.templates = true,
		.exec = true,
		.inspect = true,
		.attempt = at->no,
		.holds = at->other_boot ? HOLDS_OTHER_BOOT
			 : at->no == 0	? HOLDS_NOTHING
					: HOLDS_STARTED,
		.exit = exit_fits_hello(at) ? &at->exit : NULL,
	};

	if (conn_own_address(a->conn, &own, interface)) {
		address_text(&own, text);
		m.address = text;
		m.interface = message_interface_ok(interface) ? interface : NULL;
	}
	if (a->cfg.address)
		m.address = a->cfg.address;
	if (a->relaying) {
		relay_refresh(&a->relay);
		for (int s = 0; s < STREAMS; s++)
			m.streams[s] = a->relay.s[s].size;
	}
	message_hello_put(&m, out);
	memset(&a->told, 0, sizeof(a->told));
	a->told.started = at->no > 0;
	a->told.exit = exit_fits_hello(at);
	a->ready_wanted = false;
}

void job_welcomed(struct agent *a, const struct message_welcome *m)
{
	if (a->relaying)
		relay_resume(&a->relay, m->acks, m->scanned);
	scan_resume(&a->scan, m->scanned);
}

/* ---- init and release ---- */

static void changed(void *ctx)
{
	struct agent *a = ctx;

	a->grown = true;
	if (!attempt_is_live(&a->at))
		exec_drop_all(a, "the job has ended");
	agent_wake(a);
}

/* Forked tasks and nvidia-smi are children of the agent that do not belong to the job. */
static bool is_helper(void *ctx, pid_t pid)
{
	struct agent *a = ctx;

	return forked_task_is(a->prepare, pid) || forked_task_is(a->collect, pid) ||
	       preempt_is_task(a, pid) || inspect_is_task(a, pid) ||
	       (a->has_host && gpu_is(a->host.gpu, pid));
}

static void resume_tail(struct agent *a)
{
	CLEANUP(freep) char *path = path_join(a->dir, LAYOUT_TAIL);

	tail_begin(&a->tail, file_exists(path));
}

int job_init(struct agent *a, struct err *err)
{
	static const struct attempt_events ev = {changed, is_helper};

	buf_init(&a->ready, AGENT_PAYLOAD_MAX);
	buf_init(&a->collected, AGENT_PAYLOAD_MAX);
	scan_init(&a->scan);
	/* Before the inputs arrive: the metric prefix and the FIFO work without patterns. */
	if (scan_patterns(&a->scan, &a->inputs, err) < 0)
		return -1;
	job_timers_init(a);
	preempt_init(a);
	attempt_init(&a->at, a->loop, &a->cfg, a->boot_id, &ev, a);
	if (attempt_find(&a->at, a->dir, err) < 0 ||
	    setup_init(&a->setup, a->loop, &a->cfg, a->boot_id, a->dir, &ev, a, err) < 0)
		return -1;
	open_streams(a);
	resume_tail(a);
	gpu_claims_resume(&a->gpus, a->dir);
	return rsh_resume(a, err);
}

void job_release(struct agent *a)
{
	exec_drop_all(a, NULL);
	rsh_release(a);
	a->prepare = forked_task_free(a->prepare);
	a->collect = forked_task_free(a->collect);
	a->probe = probe_free(a->probe);
	a->preflight = preflight_free(a->preflight);
	preempt_release(a);
	inspect_release(a);
	close_streams(a);
	close_fdp(&a->ahead_fd);
	setup_release(&a->setup);
	attempt_release(&a->at);
	scan_release(&a->scan);
	if (a->has_host)
		host_release(&a->host);
	job_timers_release(a);
	ports_release(&a->ports);
	gpu_claims_release(&a->gpus);
	arena_free(a->inputs_arena);
	members_release(&a->members);
	buf_release(&a->ready);
	buf_release(&a->collected);
	buf_release(&a->tail.text);
	free(a->address);
}
