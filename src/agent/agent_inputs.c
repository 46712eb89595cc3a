/*
 * The agent's inputs: work directory, source and data, then setup, then the checks, then READY.
 *
 * INPUTS comes again after every reconnect; what is complete is not done again.  Setup goes on without a
 * master: only its end is told.
 */
#include "agent/internal.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#include "agent/environ.h"
#include "agent/forked_task.h"
#include "agent/packages.h"
#include "agent/places.h"
#include "agent/ports.h"
#include "agent/preflight.h"
#include "agent/prepare.h"
#include "base/alloc.h"
#include "base/arena.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "base/file.h"
#include "base/log.h"

static void put_ready(struct buf *out, const struct err *why, const struct message_facts *facts)
{
	struct message_ready m = {
		.ok = why->kind == ERR_NONE, .kind = why->kind, .preflight = facts};

	if (!m.ok)
		m.reason = why->msg;
	message_ready_put(&m, out);
}

static void set_ready(struct agent *a, const struct err *why)
{
	struct message_facts facts = {0};

	a->preflight = preflight_free(a->preflight);
	if (why->kind == ERR_NONE && a->inputs.preflight)
		a->preflight = preflight_open(a->loop, a->cfg.netns, a->inputs.address, &facts);
	buf_reset(&a->ready);
	put_ready(&a->ready, why, a->preflight ? &facts : NULL);
	a->ready_known = true;
	if (why->kind != ERR_NONE)
		log_warn("not ready: %s", why->msg);
	agent_wake(a);
}

/* ---- files ---- */

/* Files are there, or `why` says why they are not. */
static void files_done(struct agent *a, const struct err *why)
{
	if (why->kind != ERR_NONE) {
		set_ready(a, why);
		return;
	}
	a->files_ready = true;
	agent_wake(a);
}

/* The child's answer is a READY. */
static void prepare_task(void *ctx, struct buf *out)
{
	struct agent *a = ctx;
	struct err err = {0};

	prepare_files(&a->inputs, &a->cfg, a->dir, &err);
	put_ready(out, &err, NULL);
}

static void start_prepare(struct agent *a);

static void prepare_done(void *ctx, struct str text)
{
	CLEANUP(arena_freep) struct arena *mem = arena_new();
	struct agent *a = ctx;
	struct message_ready m;
	struct err err = {0};

	a->prepare = forked_task_free(a->prepare);
	/* The next one goes on where that one was killed, as after a restart of the agent. */
	if (text.n == 0 && ++a->prepare_killed < FORKED_TASK_TRIES) {
		start_prepare(a);
		return;
	}
	if (text.n == 0)
		err_set(&err, ERR_UNAVAILABLE, "preparing was interrupted");
	else if (message_ready_get(text, mem, &m, &err) == 0 && !m.ok)
		err_set(&err, m.kind, "%s", m.reason);
	files_done(a, &err);
}

static void start_prepare(struct agent *a)
{
	struct err err = {0};

	if (forked_task_start(a->loop, prepare_task, prepare_done, a, &a->prepare, &err) < 0)
		set_ready(a, &err);
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

	a->ready_known = a->files_ready = false;
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
		a->prepare_killed = 0;
		start_prepare(a);
		return;
	}
	prepare_files(&a->inputs, &a->cfg, a->dir, &err);
	files_done(a, &err);
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

/* ---- setup ---- */

static int next_attempt(const struct agent *a)
{
	return a->inputs.attempt > 0 ? a->inputs.attempt : 1;
}

bool inputs_streams_are(const struct agent *a, int attempt)
{
	return a->ahead_fd >= 0 && a->ahead_no == attempt;
}

/* Open the streams of the attempt that will come, to send what setup prints while it runs. */
static int open_streams(struct agent *a, struct err *err)
{
	int no = next_attempt(a);
	CLEANUP(freep) char *dir = attempt_dir(a->dir, no);

	if (inputs_streams_are(a, no))
		return 0;
	if (a->relaying)
		relay_close(&a->relay);
	a->relaying = false;
	close_fdp(&a->ahead_fd);
	a->ahead_fd = -1;
	if (file_mkdir_p(dir, 0700, err) < 0)
		return -1;
	a->ahead_fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
	if (a->ahead_fd < 0)
		return err_errno(err, errno, "open '%s'", dir);
	a->ahead_no = no;
	relay_open(&a->relay, a->ahead_fd, STREAMS);
	a->relaying = true;
	return 0;
}

void inputs_hand_streams(struct agent *a)
{
	/* An attempt that could not be started has no directory: the streams stay as they are. */
	if (a->at.dirfd < 0)
		return;
	a->relay.dirfd = a->at.dirfd;
	relay_widen(&a->relay, streams_count(a->at.processes));
	close_fdp(&a->ahead_fd);
	a->ahead_fd = -1;
}

static struct setup_step by_shell(const char *line, struct arena *mem)
{
	const char **argv = arena_array(mem, const char *, 4);

	argv[0] = "/bin/sh";
	argv[1] = "-c";
	argv[2] = line;
	return (struct setup_step){.line = line, .argv = argv};
}

static const char *env_get(const struct message_inputs *in, const char *name)
{
	for (size_t i = 0; i < in->nsetup_env; i++)
		if (strcmp(in->setup_env[i].name, name) == 0)
			return in->setup_env[i].value;
	return NULL;
}

static struct setup_step packages_step(const struct message_inputs *in, struct arena *mem)
{
	const char *path = env_get(in, "PATH"), *line = "install";

	for (size_t i = 0; i < in->npackages; i++)
		line = arena_printf(mem, "%s %s", line, in->packages[i]);
	return (struct setup_step){.line = line,
				   .argv = packages_command(in->packages, in->npackages,
							    path ? path : ENVIRON_PATH, mem)};
}

/* Everything that is run before READY, in order. */
static struct setup_step *steps_of(const struct message_inputs *in, struct arena *mem,
				   size_t *ret_n)
{
	struct setup_step *v = arena_array(mem, struct setup_step, in->nsetup + 2);
	size_t n = 0;

	if (in->npackages > 0)
		v[n++] = packages_step(in, mem);
	for (size_t i = 0; i < in->nsetup; i++)
		v[n++] = by_shell(in->setup[i], mem);
	*ret_n = n;
	return v;
}

static bool sets_up(const struct message_inputs *in)
{
	return in->nsetup + in->npackages > 0;
}

static enum setup_state advance(struct agent *a, const char *cwd, struct err *err)
{
	CLEANUP(arena_freep) struct arena *mem = arena_new();
	size_t n;
	const struct setup_step *steps = steps_of(&a->inputs, mem, &n);
	const struct setup_plan plan = {
		.steps = steps,
		.n = n,
		.env = a->inputs.setup_env,
		.nenv = a->inputs.nsetup_env,
		.cwd = cwd,
		.limit_ms = a->inputs.setup_ms,
	};
	enum setup_state state;

	if (open_streams(a, err) < 0)
		return SETUP_FAILED;
	state = setup_advance(&a->setup, &plan, err);
	/* An error of the copy is no reason to stop: the steps' own spools have everything. */
	struct err lost = {0};

	if (setup_copy_output(&a->setup, a->ahead_fd, &lost) < 0)
		log_warn("%s", lost.msg);
	a->grown = true;
	return state;
}

void inputs_update(struct agent *a)
{
	CLEANUP(freep) char *cwd = NULL;
	struct err err = {0};

	if (!a->files_ready || a->ready_known || a->leave != LEAVE_NOT)
		return;
	cwd = place_cwd(&a->cfg, a->dir, &a->inputs);
	if (sets_up(&a->inputs) && advance(a, cwd, &err) == SETUP_RUNS)
		return;
	if (err.kind == ERR_NONE)
		prepare_check(&a->inputs, cwd, &err);
	if (err.kind == ERR_NONE)
		ports_claim(&a->ports, &a->inputs, &a->cfg, &err);
	if (err.kind == ERR_NONE && a->inputs.gpus > 0)
		gpu_claims_take(&a->gpus, a->dir, a->inputs.gpus, &err);
	set_ready(a, &err);
}
