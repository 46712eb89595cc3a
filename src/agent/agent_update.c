/*
 * What the agent does while its job runs and after it: probe, sample, collect, relay, scan, and tell.
 * job_update() is level-triggered: it compares the whole state with what was done and does the
 * rest, so the order of events and lost connections do not matter.
 */
#include "agent/internal.h"

#include "agent/collect.h"
#include "agent/forked_task.h"
#include "agent/places.h"
#include "agent/preempt.h"
#include "agent/prepare.h"
#include "agent/probe.h"
#include "agent/upload.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/err.h"
#include "link/conn.h"
#include "sys/loop.h"

#define QUIET_MS 5
#define QUIET_BYTES (32 * 1024)
#define SCAN_NOW_BYTES (256 * 1024)
#define SAMPLE_MIN_MS 100

/* ---- probe, samples, collecting ---- */

static void answered(void *ctx)
{
	struct agent *a = ctx;

	a->probe = probe_free(a->probe);
	a->serving = true;
	agent_wake(a);
}

static void update_probe(struct agent *a)
{
	bool want = attempt_is_live(&a->at) && a->at.st.job.pid > 0 && a->port > 0 && !a->serving;

	if (want && !a->probe)
		a->probe = probe_new(a->loop, a->cfg.netns, a->address, a->port, answered, a);
	else if (!want && a->probe)
		a->probe = probe_free(a->probe);
}

static int64_t sample_ms(const struct agent *a)
{
	return a->inputs.sample_ms < SAMPLE_MIN_MS ? SAMPLE_MIN_MS : a->inputs.sample_ms;
}

static void sample_now(void *ctx)
{
	struct agent *a = ctx;
	struct buf b;

	if (!a->sampling)
		return;
	loop_timer_set(a->sample_timer, sample_ms(a));
	if (!a->has_host)
		host_init(&a->host, a->loop);
	a->has_host = true;
	buf_init(&b, AGENT_PAYLOAD_MAX);
	host_sample(&a->host, clock_wall_ms(), &a->at.cg, (int)a->at.st.job.pid,
		    a->cfg.netns != NULL, &b);
	if (a->welcomed)
		link_send(a, FRAME_SAMPLE, &b);
	buf_release(&b);
}

static void update_sampling(struct agent *a)
{
	bool want = attempt_is_live(&a->at) && a->at.st.job.pid > 0 && a->inputs.sample_ms > 0;

	if (want && !a->sampling)
		loop_timer_set(a->sample_timer, sample_ms(a));
	else if (!want && a->sampling)
		loop_timer_cancel(a->sample_timer);
	a->sampling = want;
}

static void collect_task(void *ctx, struct buf *out)
{
	struct agent *a = ctx;
	CLEANUP(freep) char *cwd = place_cwd(&a->cfg, a->dir, &a->inputs);
	CLEANUP(freep) char *output = place_output(&a->cfg, a->dir, a->at.no);
	struct message_collected m = {0};
	struct err err = {0};
	const struct collect_options o = {
		.patterns = a->inputs.keep,
		.n = a->inputs.nkeep,
		/* A work directory that is not the node's own may hold files from before the attempt. */
		.since_ms =
			prepare_has_work(&a->inputs) || !a->cfg.base_dir ? 0 : a->at.st.claimed_ms,
	};
	struct collected done;
	int rc = collect_files(cwd, &o, output, &done, &err);

	/* Upload the files that were copied even if others could not be. */
	if (!a->cfg.output_dir &&
	    upload_files(&a->cfg, output, a->at.no, &done, rc < 0 ? NULL : &err) < 0)
		rc = -1;
	if (rc < 0) {
		m.error = err.msg;
		m.kind = err.kind;
	} else if (done.note[0]) {
		m.error = done.note;
	}
	m.files = done.files;
	m.bytes = done.bytes;
	message_collected_put(&m, out);
}

static void set_collected(struct agent *a, enum err_kind kind, const char *error)
{
	buf_reset(&a->collected);
	message_collected_put(&(struct message_collected){.error = error, .kind = kind},
			      &a->collected);
	a->collected_known = true;
	agent_wake(a);
}

/* Killed, by the kernel for its memory or by somebody: what it copied in part is copied anew. */
static void collect_killed(struct agent *a)
{
	CLEANUP(freep) char *output = place_output(&a->cfg, a->dir, a->at.no);

	collect_remove_partial(output);
	if (++a->collect_killed < FORKED_TASK_TRIES)
		agent_wake(a);
	else
		set_collected(a, ERR_IO, "collecting was interrupted");
}

static void collect_done(void *ctx, struct str text)
{
	struct agent *a = ctx;

	a->collect = forked_task_free(a->collect);
	if (text.n == 0) {
		collect_killed(a);
		return;
	}
	buf_reset(&a->collected);
	buf_addstr(&a->collected, text);
	a->collected_known = true;
	agent_wake(a);
}

void job_drop_collect(struct agent *a)
{
	CLEANUP(freep) char *output = place_output(&a->cfg, a->dir, a->at.no);

	if (!a->collect)
		return;
	a->collect = forked_task_free(a->collect);
	collect_remove_partial(output);
}

/* Stop collecting, or do not begin: a cancelled run does not wait for copies. */
static void stop_collecting(struct agent *a)
{
	if (!a->at.has_exit || a->collected_known)
		return;
	job_drop_collect(a);
	set_collected(a, ERR_NONE, "keeping files was stopped");
}

void job_stop(struct agent *a, bool hurry)
{
	stop_collecting(a);
	attempt_stop(&a->at, hurry ? STOP_HURRY : STOP_ASKED);
}

static void update_collect(struct agent *a)
{
	struct err err = {0};

	/* The patterns come with the inputs, which the master sends after every hello. */
	if (!a->at.has_exit || a->collected_known || a->collect || !a->inputs_arena)
		return;
	if (a->inputs.nkeep == 0 && a->cfg.output_dir)
		set_collected(a, ERR_NONE, NULL);
	else if (forked_task_start(a->loop, collect_task, collect_done, a, &a->collect, &err) < 0)
		set_collected(a, err.kind, err.msg);
}

/* ---- sending what is new ---- */

static void tell_small(struct agent *a)
{
	struct attempt *at = &a->at;
	struct buf b;

	preempt_tell(a);
	buf_init(&b, AGENT_PAYLOAD_MAX);
	/* What setup printed goes first: a run that fails by it shows it. */
	if (a->ready_wanted && a->ready_known &&
	    (a->ahead_fd < 0 || relay_waiting(&a->relay) == 0)) {
		link_send(a, FRAME_READY, &a->ready);
		a->ready_wanted = false;
	}
	if (!a->told.started && (at->st.job.pid > 0 || at->has_exit)) {
		message_started_put(&(struct message_started){at->no, at->st.job.pid}, &b);
		link_send(a, FRAME_STARTED, &b);
		a->told.started = true;
	}
	if (!a->told.serving && a->serving && !at->has_exit) {
		buf_reset(&b);
		message_serving_put(&(struct message_serving){at->no}, &b);
		link_send(a, FRAME_SERVING, &b);
		a->told.serving = true;
	}
	if (!a->told.exit && at->has_exit) {
		buf_reset(&b);
		if (a->relaying)
			tail_take(&a->tail, &a->relay, &at->exit);
		message_exit_put(&at->exit, &b);
		link_send(a, FRAME_EXIT, &b);
		a->told.exit = true;
	}
	buf_release(&b);
}

static void quiet_over(void *ctx)
{
	struct agent *a = ctx;

	a->is_quiet = false;
	agent_wake(a);
}

static void push_output(struct agent *a)
{
	if (a->is_quiet && !a->at.has_exit && relay_waiting(&a->relay) < QUIET_BYTES)
		return;
	uint64_t sent = relay_push(&a->relay, a->conn, loop_scratch(a->loop));

	/* After a small piece of output, gather for QUIET_MS before the next is sent. */
	if (sent > 0 && sent < QUIET_BYTES) {
		a->is_quiet = true;
		loop_timer_set(a->quiet, QUIET_MS);
	}
}

static void scan_output(struct agent *a)
{
	bool all = true;

	a->scan_waits = false;
	for (int s = 0; s < a->relay.n; s++) {
		struct relay_stream *st = &a->relay.s[s];

		all &= scan_stream(&a->scan, (enum stream)s, st->fd, st->size, a->at.has_exit,
				   a->conn, loop_scratch(a->loop));
	}
	/* A long queue calls on_drained; a scan that was only too long is continued by a timer. */
	if (!all && conn_queued(a->conn) < CONN_LOW_WATER) {
		a->scan_waits = true;
		loop_timer_set(a->scan_timer, 0);
	}
}

static void scan_due(void *ctx)
{
	struct agent *a = ctx;

	a->scan_waits = false;
	if (a->welcomed && a->relaying)
		scan_output(a);
	agent_wake(a);
}

static void scan_soon(struct agent *a)
{
	uint64_t waiting = 0;

	for (int s = 0; s < a->relay.n; s++) {
		/* At the end even a range without samples must be reported. */
		uint64_t done = a->at.has_exit ? a->scan.s[s].reported : a->scan.s[s].pos;

		if (a->relay.s[s].size > done)
			waiting += a->relay.s[s].size - done;
	}
	if (waiting == 0)
		return;
	if (a->at.has_exit || waiting >= SCAN_NOW_BYTES) {
		if (!a->scan_waits || a->at.has_exit)
			scan_output(a);
	} else if (!a->scan_waits) {
		a->scan_waits = true;
		loop_timer_set(a->scan_timer, SCAN_MS);
	}
}

static void tell_collected(struct agent *a)
{
	const uint64_t *lengths = a->at.exit.streams;

	if (a->told.collected || !a->told.exit || !a->collected_known)
		return;
	if (a->relaying && (!relay_sent_all(&a->relay, lengths) || !scan_done(&a->scan, lengths)))
		return;
	link_send(a, FRAME_COLLECTED, &a->collected);
	a->told.collected = true;
}

void job_update(struct agent *a)
{
	update_probe(a);
	update_sampling(a);
	update_collect(a);
	inputs_update(a);
	if (!a->welcomed || !a->conn)
		return;
	if (a->relaying && a->grown) {
		a->grown = false;
		relay_refresh(&a->relay);
	}
	/* Without output to send, gather the small frames into one write. */
	if (!a->relaying || relay_waiting(&a->relay) == 0)
		conn_cork(a->conn);
	tell_small(a);
	if (a->relaying) {
		push_output(a);
		/* Before the inputs arrive, which follow every WELCOME, the patterns are unknown; before the
		 * attempt, the streams are not its own yet. */
		if (a->inputs_arena && a->at.no > 0)
			scan_soon(a);
	}
	tell_collected(a);
	conn_uncork(a->conn);
}

/* ---- timers ---- */

void job_timers_init(struct agent *a)
{
	a->quiet = loop_timer_new(a->loop, quiet_over, a);
	a->scan_timer = loop_timer_new(a->loop, scan_due, a);
	a->sample_timer = loop_timer_new(a->loop, sample_now, a);
}

void job_timers_release(struct agent *a)
{
	a->quiet = loop_timer_free(a->quiet);
	a->scan_timer = loop_timer_free(a->scan_timer);
	a->sample_timer = loop_timer_free(a->sample_timer);
}
