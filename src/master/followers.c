/*
 * Reads the logs of nodes without agents.  See followers.h.
 *
 * One read at a time: a worker waits for the next bytes, the loop stores them, and asks again.  When a log
 * ends the core has the node observed.  Once it knows the exit, the log is read to its end once more, so
 * that nothing is lost if it was cut off; then the node has handed over everything.
 */
#include "master/followers.h"

#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/arena.h"
#include "base/buf.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/deadline.h"
#include "base/err.h"
#include "base/file.h"
#include "base/log.h"
#include "base/path.h"
#include "core/agentless.h"
#include "driver/driver.h"
#include "link/message.h"
#include "master/effects.h"
#include "master/internal.h"
#include "master/live_run.h"
#include "master/log_scan.h"
#include "master/round.h"
#include "master/runs.h"
#include "master/streams.h"
#include "store/logfile.h"
#include "sys/loop.h"
#include "sys/pools.h"
#include "sys/worker.h"

#define THREADS 32
#define READ_MAX (512u << 10)
#define READ_MS 60000 /* of one read, with the call that begins it */
#define WAIT_MS 1500  /* for the next bytes, */
#define TURN_MS 200   /* where nodes take turns on the threads */
#define AGAIN_MS 500  /* after the end of a log, or an error: doubled for each error in a row */
#define AGAIN_MAX_MS 5000
#define NO_ROOM_MS 2000
#define SAVE_MS 1000	   /* the position is written so often, at most */
#define MOST_FAILURES 6	   /* in a row, of the log of a job that has ended */
#define POSITIONS "follow" /* in the directory of the run */
#define STOP_PAUSE_MS 200
#define STOP_AGAIN_MS 2000 /* after an error */
#define STOP_WAIT_MS 5000

struct follower {
	struct live_run *lr;
	int rank, attempt;
	const struct driver *driver;
	struct driver_log *log; /* NULL: not open */
	char at[DRIVER_LOG_AT]; /* position of `offset`; "": the beginning */
	uint64_t offset;	/* of the stream: what is stored */
	int64_t saved_ms;	/* when the position was written */
	struct buf bytes;	/* read and not stored */
	int rc;			/* of the last read */
	struct err err;
	int failures;
	bool reading; /* a worker has it */
	bool certain; /* since the exit is known the log is read to its end */
	struct loop_timer *again;
	struct log_scan *scan;
};

static void read_next(struct follower *f);

/* ---- the position ---- */

static char *position_path(const struct follower *f)
{
	CLEANUP(freep) char *dir = path_join(f->lr->dir, POSITIONS);
	char name[LOG_NAME_MAX];

	run_log_base(f->lr, f->rank, f->attempt, name);
	return path_join(dir, name);
}

/* If it cannot be written the next master reads the log from its beginning, which is stored already. */
static void save_position(struct follower *f, bool now)
{
	CLEANUP(freep) char *path = position_path(f);
	CLEANUP(buf_release) struct buf text = {0};
	struct err err = {0};

	if (!now && clock_boot_ms() - f->saved_ms < SAVE_MS)
		return;
	f->saved_ms = clock_boot_ms();
	buf_init(&text, 2 * DRIVER_LOG_AT);
	buf_printf(&text, "%" PRIu64 " %s", f->offset, f->at);
	if (file_make_parent(path, &err) < 0 ||
	    file_write_atomic(path, buf_str(&text), 0600, false, &err) < 0)
		log_warn("%s: %s", f->lr->row.id, err.msg);
}

/* What is not stored cannot be skipped: then it begins anew. */
static void load_position(struct follower *f, uint64_t stored)
{
	CLEANUP(freep) char *path = position_path(f);
	CLEANUP(buf_release) struct buf text = {0};
	struct err ignored;

	buf_init(&text, 2 * DRIVER_LOG_AT);
	if (file_read(path, &text, &ignored) < 0)
		return;
	struct str at = buf_str(&text), offset = str_cut(&at, ' ');
	int64_t n = 0;

	if (!str_to_i64(offset, &n) || n < 0 || (uint64_t)n > stored || at.n >= sizeof(f->at))
		return;
	f->offset = (uint64_t)n;
	snprintf(f->at, sizeof(f->at), "%.*s", STR_ARG(at));
}

/* ---- its life ---- */

static struct live_node *node_of(const struct follower *f)
{
	return &f->lr->nodes[f->rank];
}

static bool is_over(const struct follower *f)
{
	return f->lr->ended || f->lr->core->phase >= RUN_CLEANING ||
	       f->lr->core->nodes[f->rank].settled;
}

static void follower_free(struct follower *f)
{
	node_of(f)->follower = NULL;
	streams_close(f->lr, f->rank);
	if (f->log)
		f->driver->log_free(f->log);
	log_scan_free(f->scan);
	loop_timer_free(f->again);
	buf_release(&f->bytes);
	free(f);
}

void followers_free(struct live_run *lr)
{
	for (int i = 0; lr->nodes && i < lr->plan.crew.n; i++)
		if (lr->nodes[i].follower && !lr->nodes[i].follower->reading)
			follower_free(lr->nodes[i].follower);
}

/* Everything is stored, or what can be had of it. */
static void finish(struct follower *f, const struct err *lost)
{
	struct live_run *lr = f->lr;
	struct live_node *n = node_of(f);
	uint64_t sizes[STREAMS_MAX] = {0};
	int rank = f->rank, attempt = f->attempt;

	sizes[STREAM_OUT] = f->offset;
	if (lost) {
		n->lost_kind = ERR_UNAVAILABLE;
		snprintf(n->lost, sizeof(n->lost), "its log could not be read to the end: %.150s",
			 lost->msg);
	}
	n->collected = true;
	follower_free(f);
	streams_final(lr, rank, attempt, sizes);
}

static bool has_exited(const struct follower *f)
{
	return f->lr->core->nodes[f->rank].state == NODE_EXITED;
}

static void wait_a_while(struct follower *f, int64_t ms)
{
	loop_timer_set(f->again, ms);
}

/* ---- reading ---- */

static void read_run(void *arg, const struct deadline *d)
{
	struct follower *f = arg;
	int wait_ms = f->lr->plan.crew.n > THREADS ? TURN_MS : WAIT_MS;

	f->rc = f->driver->log_read(f->log, wait_ms, d, &f->bytes, &f->err);
}

/* False: there is no room, or no log directory; the bytes are kept. */
static bool store_bytes(struct follower *f)
{
	struct err err = {0};

	if (f->bytes.n == 0)
		return true;
	if (streams_append(f->lr, f->rank, STREAM_OUT, f->offset, buf_str(&f->bytes), &err) < 0) {
		if (!streams_gone(f->lr, f->rank, &err)) {
			log_warn("%s: %s", f->lr->row.id, err.msg);
			wait_a_while(f, NO_ROOM_MS);
		}
		return false;
	}
	f->offset += f->bytes.n;
	buf_reset(&f->bytes);
	f->driver->log_at(f->log, f->at);
	run_event(f->lr, &(struct event){.kind = EV_PROGRESS});
	return true;
}

/* The next read opens it anew, with the credentials that the run has by then. */
static void close_log(struct follower *f)
{
	f->driver->log_free(f->log);
	f->log = NULL;
}

static void failed(struct follower *f)
{
	int64_t pause = AGAIN_MS;

	close_log(f);
	f->failures++;
	for (int i = 1; i < f->failures && pause < AGAIN_MAX_MS; i++)
		pause *= 2;
	log_debug("log of node %d of %s: %s", f->rank, f->lr->row.id, f->err.msg);
	if (!has_exited(f) && f->failures == 1)
		run_event(f->lr, &(struct event){.kind = EV_NODE_DROPPED, .index = f->rank});
	if (has_exited(f) && f->failures >= MOST_FAILURES)
		finish(f, &f->err);
	else
		wait_a_while(f, pause < AGAIN_MAX_MS ? pause : AGAIN_MAX_MS);
}

static void at_end(struct follower *f)
{
	save_position(f, true);
	if (has_exited(f) && f->certain) {
		finish(f, NULL);
		return;
	}
	if (!has_exited(f)) {
		run_event(f->lr, &(struct event){.kind = EV_NODE_DROPPED, .index = f->rank});
		wait_a_while(f, AGAIN_MS);
		return;
	}
	f->certain = true;
	read_next(f);
}

/* What a read has brought; also when it waited for room. */
static void take(struct follower *f)
{
	if (f->driver->log_gap(f->log))
		run_note(f->lr, "log_gap", f->rank,
			 "lines of its log are missing before byte %" PRIu64
			 ": the cluster rotated them away before they were read",
			 f->offset);
	if (!store_bytes(f))
		return;
	log_scan_run(f->scan, f->rc == 0 && f->certain);
	save_position(f, false);
	if (f->rc < 0) {
		failed(f);
		return;
	}
	f->failures = 0;
	if (f->rc == 0)
		at_end(f);
	else
		read_next(f);
}

static void read_done(void *arg, enum err_kind how)
{
	struct follower *f = arg;
	struct live_run *lr = f->lr;

	f->reading = false;
	lr->busy--;
	if (how == ERR_NONE && !is_over(f)) {
		take(f);
	} else { /* the next master goes on, or nobody waits for more */
		(void)store_bytes(f);
		follower_free(f);
	}
	live_run_done(lr);
}

/* The row lasts for the call only. */
static void open_log(struct follower *f)
{
	CLEANUP(arena_freep) struct arena *a = arena_new();
	const struct effect fx = {.kind = FX_OBSERVE, .index = f->lr->plan.resource_of[f->rank]};
	struct driver_row row;
	char token[65] = "";

	effect_row(f->lr, &fx, a, &row, token);
	f->log = f->driver->log_open(&row, node_of(f)->log_name, f->at);
}

static void read_next(struct follower *f)
{
	struct live_run *lr = f->lr;

	if (f->reading || !lr->m->pools || !node_of(f)->log_name)
		return;
	if (!f->log)
		open_log(f);
	loop_timer_cancel(f->again);
	f->reading = true;
	f->err = (struct err){0};
	lr->busy++;
	workers_submit(pools_get(lr->m->pools, "logs", THREADS), read_run, read_done, f, READ_MS);
}

static void on_again(void *ctx)
{
	struct follower *f = ctx;
	struct live_run *lr = f->lr;

	if (is_over(f))
		follower_free(f);
	else if (f->bytes.n > 0)
		take(f);
	else
		read_next(f);
	live_run_done(lr);
}

/* ---- what the core asks for ---- */

void follow_start(struct live_run *lr, int rank, int attempt)
{
	struct event no_log = {.kind = EV_NODE_NO_LOG, .index = rank};
	struct err err = {0};

	if (lr->nodes[rank].follower)
		return;
	if (streams_open(lr, rank, attempt, &err) < 0) {
		snprintf(no_log.text, sizeof(no_log.text), "its log cannot be stored: %.200s",
			 err.msg);
		run_event(lr, &no_log);
		return;
	}
	struct follower *f = xcalloc(1, sizeof(*f));

	*f = (struct follower){
		.lr = lr,
		.rank = rank,
		.attempt = attempt,
		.driver = driver_for(lr->plan.resources[lr->plan.resource_of[rank]].kind),
		.again = loop_timer_new(lr->m->loop, on_again, f),
		.scan = log_scan_new(lr, rank),
	};
	buf_init(&f->bytes, READ_MAX);
	load_position(f, logfile_size(lr->nodes[rank].streams[STREAM_OUT].file));
	lr->nodes[rank].follower = f;
	run_event(lr, &(struct event){.kind = EV_NODE_STARTED, .index = rank, .attempt = attempt});
	read_next(f);
}

void follow_seen(struct live_run *lr, int rank, const struct driver_sight *sight)
{
	struct live_node *n = &lr->nodes[rank];

	if (strcmp(lr->core->nodes[rank].identity, sight->identity) != 0)
		return; /* not the node's */
	if (!n->log_name || strcmp(n->log_name, sight->log) != 0)
		n->log_name = arena_strdup(lr->arena, sight->log);
	if (n->follower && n->follower->bytes.n == 0 && n->follower->failures == 0)
		read_next(n->follower);
}

/* ---- the end of the jobs ---- */

struct stop_call {
	struct live_run *lr;
	const struct driver *driver;
	struct arena *a; /* of the row, which is made anew for each try */
	struct driver_row row;
	char token[65];
	int index;
	struct loop_timer *wait;
	int64_t by_ms; /* on clock_boot_ms(): logs are waited for until then */
	bool warned;
};

static void stop_when_read(void *ctx);

static void stop_run(void *arg, const struct deadline *d)
{
	struct stop_call *c = arg;

	c->row.deadline = d;
	c->row.outcome = c->driver->stop(&c->row);
}

static void stop_free(struct stop_call *c)
{
	struct live_run *lr = c->lr;

	loop_timer_free(c->wait);
	arena_free(c->a);
	free(c);
	lr->busy--;
	live_run_done(lr);
}

static bool is_stop_needed(const struct stop_call *c)
{
	return !c->lr->ended && agentless_stop_needed(c->lr->core, c->index);
}

static void stop_done(void *arg, enum err_kind how)
{
	struct stop_call *c = arg;
	bool done = c->row.outcome == OUTCOME_DONE || c->row.outcome == OUTCOME_ABSENT;

	if (how != ERR_NONE || done || !c->lr->m->pools || !is_stop_needed(c)) {
		stop_free(c);
		return;
	}
	if (!c->warned)
		run_note(c->lr, "not_stopped", -1, "%s", c->row.err.msg);
	c->warned = true;
	loop_timer_set(c->wait, STOP_AGAIN_MS);
}

static void stop_when_read(void *ctx)
{
	struct stop_call *c = ctx;
	const struct effect fx = {.kind = FX_OBSERVE, .index = c->index};

	/* Without pools the next master stops them. */
	if (!c->lr->m->pools || (c->warned && !is_stop_needed(c))) {
		stop_free(c);
		return;
	}
	if (!agentless_output_stored(c->lr->core, c->index) && clock_boot_ms() < c->by_ms) {
		loop_timer_set(c->wait, STOP_PAUSE_MS);
		return;
	}
	arena_free(c->a);
	c->a = arena_new();
	effect_row(c->lr, &fx, c->a, &c->row, c->token);
	workers_submit(pools_get(c->lr->m->pools, c->driver->pool, EFFECT_THREADS), stop_run,
		       stop_done, c, READ_MS);
}

void follow_stop(struct live_run *lr, int rank)
{
	int index = lr->plan.resource_of[rank];

	for (size_t i = 0; i < lr->stopped.n; i++)
		if (lr->stopped.v[i] == index)
			return;
	*vec_push(&lr->stopped) = index;
	struct stop_call *c = xcalloc(1, sizeof(*c));

	c->lr = lr;
	c->driver = driver_for(lr->plan.resources[index].kind);
	c->index = index;
	c->wait = loop_timer_new(lr->m->loop, stop_when_read, c);
	c->by_ms = clock_boot_ms() + STOP_WAIT_MS;
	lr->busy++;
	stop_when_read(c);
}
