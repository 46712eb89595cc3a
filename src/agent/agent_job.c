/*
 * The agent's job: its inputs, its attempts, and what a HELLO says about them.
 */
#include "agent/internal.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "agent/attempt/expand_start.h"
#include "agent/places.h"
#include "agent/prepare.h"
#include "agent/previous.h"
#include "agent/probe.h"
#include "agent/forked_task.h"
#include "base/alloc.h"
#include "base/arena.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "base/file.h"
#include "base/log.h"
#include "base/path.h"
#include "link/conn.h"
#include "link/layout.h"
#include "net/address.h"

/* ---- inputs ---- */

static void put_ready(struct buf *out, const struct err *why)
{
	struct message_ready m = {.ok = why->kind == ERR_NONE, .kind = why->kind};

	if (!m.ok)
		m.reason = why->msg;
	message_ready_put(&m, out);
}

static void set_ready(struct agent *a, const struct err *why)
{
	buf_reset(&a->ready);
	put_ready(&a->ready, why);
	a->ready_known = true;
	if (why->kind != ERR_NONE)
		log_warn("not ready: %s", why->msg);
	agent_wake(a);
}

static int prepare_rest(struct agent *a, struct err *err)
{
	CLEANUP(freep) char *cwd = place_cwd(&a->cfg, a->dir, &a->inputs);

	if (prepare_files(&a->inputs, &a->cfg, a->dir, err) < 0)
		return -1;
	return prepare_check(&a->inputs, cwd, a->cfg.netns, err);
}

static void prepare_task(void *ctx, struct buf *out)
{
	struct err err = {0};

	prepare_rest(ctx, &err);
	put_ready(out, &err);
}

static void prepare_done(void *ctx, struct str text)
{
	struct agent *a = ctx;
	struct err err = {0};

	a->prepare = forked_task_free(a->prepare);
	if (text.n == 0) {
		err_set(&err, ERR_UNAVAILABLE, "preparing was interrupted");
		set_ready(a, &err);
		return;
	}
	buf_reset(&a->ready);
	buf_addstr(&a->ready, text);
	a->ready_known = true;
	agent_wake(a);
}

/* Use decoded inputs.  Takes the arena, which holds them. */
static int adopt_inputs(struct agent *a, struct arena *mem, const struct message_inputs *in,
			struct err *err)
{
	arena_free(a->inputs_arena);
	a->inputs_arena = mem;
	a->inputs = *in;
	if (a->port == 0) {
		a->port = in->port;
		free(a->address);
		a->address = xstrdup(in->address);
	}
	return scan_patterns(&a->scan, in, err);
}

static void prepare(struct agent *a)
{
	struct err err = {0};

	a->ready_known = false;
	a->prepare = forked_task_free(a->prepare);
	/* The job has started: its inputs are in place and must not change. */
	if (a->at.no > 0) {
		set_ready(a, &err);
		return;
	}
	struct cgroup cg = a->cfg.cg;

	if (prepare_memory(&a->inputs, &cg, &err) < 0) {
		set_ready(a, &err);
		return;
	}
	if (prepare_is_long(&a->inputs)) {
		if (forked_task_start(a->loop, prepare_task, prepare_done, a, &a->prepare, &err) <
		    0)
			set_ready(a, &err);
		return;
	}
	prepare_rest(a, &err);
	set_ready(a, &err);
}

void job_inputs(struct agent *a, struct str json, struct err *err)
{
	struct arena *mem = arena_new();
	struct message_inputs in;
	struct err e = {0};

	if (message_inputs_get(json, mem, &in, err) < 0) {
		arena_free(mem);
		return;
	}
	a->ready_wanted = true;
	if (adopt_inputs(a, mem, &in, &e) < 0)
		set_ready(a, &e);
	else
		prepare(a);
}

/* ---- the attempt ---- */

static void open_streams(struct agent *a)
{
	if (a->at.dirfd < 0)
		return;
	relay_open(&a->relay, a->at.dirfd);
	a->relaying = true;
}

static void close_streams(struct agent *a)
{
	if (a->relaying)
		relay_close(&a->relay);
	a->relaying = false;
}

/* Add the outputs of the previous attempt: those on this machine, else the ones that were fetched. */
static void add_previous(const struct agent *a, struct arena *mem, struct message_start *m)
{
	CLEANUP(freep)
	char *dir = a->at.no > 0 ? place_output(&a->cfg, a->dir, a->at.no) : place_previous(a->dir);
	struct env_pair *all = arena_array(mem, struct env_pair, m->nenv + 1);

	if (m->attempt < 2 || !file_exists(dir))
		return;
	for (size_t i = 0; i < m->nenv; i++)
		if (strcmp(m->env[i].name, "REGATTA_PREVIOUS") == 0)
			return; /* agent and master share a machine */
	if (m->nenv > 0)
		memcpy(all, m->env, m->nenv * sizeof(*all));
	all[m->nenv++] = (struct env_pair){"REGATTA_PREVIOUS", arena_strdup(mem, dir)};
	m->env = all;
}

/* Expand the templates of a START for this node. */
static int make_texts(struct agent *a, struct message_start *m, struct arena *mem,
		      struct start_files *ret, struct err *err)
{
	CLEANUP(freep) char *at_dir = attempt_dir(a->dir, m->attempt);
	CLEANUP(freep) char *cwd = place_cwd(&a->cfg, a->dir, &a->inputs);
	CLEANUP(freep) char *output = place_output(&a->cfg, a->dir, m->attempt);
	CLEANUP(freep) char *hostfile = path_join(a->dir, LAYOUT_HOSTFILE);
	CLEANUP(freep) char *machinefile = path_join(a->dir, LAYOUT_MACHINEFILE);
	CLEANUP(freep) char *metrics = path_join(at_dir, LAYOUT_METRICS_FIFO);

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
	};

	if (m->rank >= 0 && !members_have(&a->members, m->rank))
		return err_set(err, ERR_PROTOCOL, "start: the table of members is incomplete");
	/* That of the first attempt was made by prepare_files. */
	if (m->attempt > 1 && file_mkdir_p(output, 0700, err) < 0)
		return err_wrap(err, "make the output directory");
	if (expand_start(m, m->rank >= 0 ? &here : NULL, a->dir, mem, ret, err) < 0)
		return -1;
	add_previous(a, mem, m);
	return 0;
}

void job_start(struct agent *a, struct str json, struct err *err)
{
	static const uint64_t zeros[STREAMS];
	CLEANUP(arena_freep) struct arena *mem = arena_new();
	struct message_start m;
	struct start_files files;

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
	if (make_texts(a, &m, mem, &files, err) < 0)
		return;
	close_streams(a);
	a->probe = probe_free(a->probe);
	a->serving = a->collected_known = false;
	a->collect = forked_task_free(a->collect);
	memset(&a->told, 0, sizeof(a->told));
	free(a->address);
	a->address = xstrdup(m.address);
	a->port = m.port;
	attempt_start(&a->at, a->dir, &m, &files);
	open_streams(a);
	scan_resume(&a->scan, zeros);
}

void job_hello(struct agent *a, struct buf *out)
{
	struct attempt *at = &a->at;
	char text[ADDRESS_TEXT], interface[CONN_INTERFACE];
	struct address own;
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
		.attempt = at->no,
		.holds = at->other_boot ? HOLDS_OTHER_BOOT
			 : at->no == 0	? HOLDS_NOTHING
					: HOLDS_STARTED,
		.exit = at->has_exit ? &at->exit : NULL,
	};

	if (conn_own_address(a->conn, &own, interface)) {
		address_text(&own, text);
		m.address = text;
		m.interface = message_interface_ok(interface) ? interface : NULL;
	}
	if (a->relaying) {
		relay_refresh(&a->relay);
		for (int s = 0; s < STREAMS; s++)
			m.streams[s] = a->relay.s[s].size;
	}
	message_hello_put(&m, out);
	memset(&a->told, 0, sizeof(a->told));
	a->told.started = at->no > 0;
	a->told.exit = at->has_exit;
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
	agent_wake(a);
}

/* Forked tasks and nvidia-smi are children of the agent that do not belong to the job. */
static bool is_helper(void *ctx, pid_t pid)
{
	struct agent *a = ctx;

	return forked_task_is(a->prepare, pid) || forked_task_is(a->collect, pid) ||
	       (a->has_host && gpu_is(a->host.gpu, pid));
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
	attempt_init(&a->at, a->loop, &a->cfg, a->boot_id, &ev, a);
	if (attempt_find(&a->at, a->dir, err) < 0)
		return -1;
	open_streams(a);
	return 0;
}

void job_release(struct agent *a)
{
	a->prepare = forked_task_free(a->prepare);
	a->collect = forked_task_free(a->collect);
	a->probe = probe_free(a->probe);
	close_streams(a);
	attempt_release(&a->at);
	scan_release(&a->scan);
	if (a->has_host)
		host_release(&a->host);
	job_timers_release(a);
	arena_free(a->inputs_arena);
	members_release(&a->members);
	buf_release(&a->ready);
	buf_release(&a->collected);
	free(a->address);
}
