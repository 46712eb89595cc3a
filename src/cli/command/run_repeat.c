/*
 * run_repeat - the same job N times, K at a time.
 *
 * K lanes, each a thread with a connection of its own that submits a run, waits
 * for its end and takes the next number.  The main thread waits for
 * signals and for the lanes; what they share is under one lock.
 */
#include "cli/command/run_repeat.h"

#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/arena.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/err.h"
#include "cli/cli.h"
#include "cli/client/api.h"
#include "cli/client/submit.h"
#include "cli/client/watch.h"
#include "cli/show/render.h"
#include "cli/show/table.h"
#include "cli/show/terminal.h"
#include "fmt/doc.h"

#define LANE_STACK (512 * 1024)
#define MAX_METRICS 64
#define FLUSH_BYTES (16 * 1024)
#define PATIENCE_MS 1000 /* for the master's answer to a submission after the first interrupt */

struct metric_total {
	char name[128];
	int64_t n;
	double sum, min, max;
};

struct repeat {
	const struct api *api;
	const struct submission *s;
	enum cli_output output;
	struct style style;
	int64_t total;
	volatile int abandon; /* submissions that the master has not answered end */
	volatile int leave;   /* the lanes stop waiting, their runs go on */
	int finished;	      /* eventfd: one for each lane that ended */

	pthread_mutex_t lock; /* of everything below */
	int64_t next, done;
	bool stop; /* no new runs */
	struct buf out;
	bool out_dead;
	int64_t *elapsed_ms; /* of each ended run */
	int64_t succeeded, failed, cancelled;
	struct metric_total metrics[MAX_METRICS];
	size_t nmetrics;
	int exit_code;
	struct err err; /* of the first lane that failed */
};

struct lane {
	struct repeat *r;
	pthread_t thread;
	struct api api;
	char id[128]; /* of the run that the lane waits for; "" = none.  Under r->lock */
};

static void flush(struct repeat *r)
{
	if (r->out.n && !r->out_dead && cli_print(&r->out) != 0) {
		r->out_dead = true;
		r->exit_code = r->exit_code ? r->exit_code : 8;
	}
	buf_reset(&r->out);
}

static void add_metrics(struct repeat *r, const struct doc *run)
{
	const struct doc *m = doc_table(run, "metrics");

	for (size_t i = 0; m && i < m->table.n; i++) {
		double last = doc_num(m->table.v[i].value, "last", 0);
		size_t k = 0;
		while (k < r->nmetrics && !str_is(m->table.v[i].key, r->metrics[k].name))
			k++;
		if (k == MAX_METRICS || !doc_get(m->table.v[i].value, "last"))
			continue;
		struct metric_total *t = &r->metrics[k];
		if (k == r->nmetrics) {
			r->nmetrics++;
			snprintf(t->name, sizeof(t->name), "%.*s", STR_ARG(m->table.v[i].key));
			t->min = t->max = last;
		}
		t->n++;
		t->sum += last;
		t->min = last < t->min ? last : t->min;
		t->max = last > t->max ? last : t->max;
	}
}

/* One run has ended. */
static void record(struct repeat *r, struct str json, const struct doc *run)
{
	struct str state = doc_str(run, "state", STR(""));

	pthread_mutex_lock(&r->lock);
	r->elapsed_ms[r->done++] = doc_int(run, "elapsed_ms", 0);
	int64_t *counter = str_is(state, "succeeded")	? &r->succeeded
			   : str_is(state, "cancelled") ? &r->cancelled
							: &r->failed;
	++*counter;
	if (r->exit_code == 0)
		r->exit_code = run_exit_code(run);
	add_metrics(r, run);
	if (r->output == OUTPUT_JSON) {
		buf_addz(&r->out, r->done == 1 ? "[" : ",\n ");
		buf_addstr(&r->out, json);
	} else {
		run_line_render(run, &r->style, &r->out);
	}
	if (r->out.n >= FLUSH_BYTES || r->style.width)
		flush(r);
	pthread_mutex_unlock(&r->lock);
}

static int watch_to_end(struct lane *l, struct err *err)
{
	CLEANUP(arena_freep) struct arena *a = arena_new();
	struct str json;
	struct doc *run;

	l->api.stop = &l->r->leave;
	if (api_await_run(&l->api, l->id, a, &json, &run, err) < 0)
		return err->kind == ERR_CANCELLED
			       ? err_set(err, ERR_CANCELLED, "left: the active runs go on")
			       : -1;
	record(l->r, json, run);
	return 0;
}

static int submit_one(struct lane *l, struct err *err)
{
	CLEANUP(arena_freep) struct arena *a = arena_new();
	CLEANUP(buf_release) struct buf json = {0};
	char request[REQUEST_ID_SIZE];
	struct doc *run;

	buf_init(&json, API_MAX_ANSWER);
	request_id_new(request);
	l->api.stop = &l->r->abandon;
	if (submission_send(&l->api, l->r->s, request, &json, err) < 0)
		return submission_interrupted(err);
	if (reply_parse(buf_str(&json), a, &run, err) < 0)
		return -1;
	struct str id = doc_str(run, "id", STR(""));
	if (id.n == 0 || id.n >= sizeof(l->id))
		return err_set(err, ERR_PROTOCOL, "the master's answer has no run id");
	pthread_mutex_lock(&l->r->lock);
	snprintf(l->id, sizeof(l->id), "%.*s", STR_ARG(id));
	bool cancel = l->r->stop;
	pthread_mutex_unlock(&l->r->lock);
	/* An interrupt came while the run was being submitted. */
	return cancel ? api_cancel_run(&l->api, l->id, false, NULL, err) : 0;
}

static bool take_number(struct repeat *r)
{
	pthread_mutex_lock(&r->lock);
	bool more = !r->stop && r->next < r->total;
	if (more)
		r->next++;
	pthread_mutex_unlock(&r->lock);
	return more;
}

static void *lane_main(void *arg)
{
	struct lane *l = arg;
	struct repeat *r = l->r;
	struct err err;
	int rc = 0;

	while (rc == 0 && take_number(r)) {
		rc = submit_one(l, &err);
		if (rc == 0)
			rc = watch_to_end(l, &err);
		pthread_mutex_lock(&r->lock);
		l->id[0] = 0;
		if (rc < 0 && r->err.kind == ERR_NONE)
			r->err = err;
		r->stop = r->stop || rc < 0;
		pthread_mutex_unlock(&r->lock);
	}
	uint64_t one = 1;
	if (write(r->finished, &one, sizeof(one)) < 0)
		abort(); /* impossible: an eventfd counts to 2^64 */
	return NULL;
}

static void cancel_all(struct repeat *r, struct lane *lanes, size_t n, bool hurry)
{
	struct api api;
	struct err err;

	pthread_mutex_lock(&r->lock);
	r->stop = true;
	pthread_mutex_unlock(&r->lock);
	if (api_open_another(r->api, &api, &err) < 0) {
		cli_fail(&err);
		return;
	}
	for (size_t i = 0; i < n; i++) {
		char id[sizeof(lanes[i].id)];
		pthread_mutex_lock(&r->lock);
		memcpy(id, lanes[i].id, sizeof(id));
		pthread_mutex_unlock(&r->lock);
		if (id[0] && api_cancel_run(&api, id, hurry, NULL, &err) < 0 &&
		    err.kind != ERR_NOT_FOUND)
			cli_say("cancel %s: %s", id, err.msg);
	}
	api_release(&api);
}

/* How long to wait for signals and lanes: until the lanes must abandon their submissions. */
static int patience_left(struct repeat *r, int64_t first_interrupt)
{
	if (!first_interrupt || r->abandon)
		return -1;
	int64_t left = first_interrupt + PATIENCE_MS - clock_boot_ms();

	r->abandon = left <= 0;
	return left > 0 ? (int)left : -1;
}

/* Until every lane has ended; returns how often the user interrupted. */
static int wait_for_lanes(struct repeat *r, struct lane *lanes, size_t n, int signals)
{
	struct pollfd fds[2] = {{.fd = r->finished, .events = POLLIN},
				{.fd = signals, .events = POLLIN}};
	uint64_t ended = 0, more;
	int64_t first_interrupt = 0;
	int interrupts = 0;

	while (ended < n) {
		if (poll(fds, 2, patience_left(r, first_interrupt)) < 0 && errno != EINTR)
			abort();
		if (read(r->finished, &more, sizeof(more)) == (ssize_t)sizeof(more))
			ended += more;
		for (int sig; (sig = watch_signal_next(signals)) != 0;) {
			if (sig == SIGWINCH)
				continue;
			interrupts += sig != SIGHUP;
			r->abandon = r->abandon || sig == SIGHUP || interrupts > 1;
			if (sig == SIGHUP || interrupts > 2) {
				r->leave = 1;
				continue;
			}
			if (!first_interrupt)
				first_interrupt = clock_boot_ms();
			cli_say("%s",
				interrupts == 1
					? "cancelling the active runs; Ctrl-C again kills them at once"
					: "killing what is left; Ctrl-C again leaves at once");
			cancel_all(r, lanes, n, interrupts == 2);
		}
	}
	return interrupts;
}

static int by_value(const void *a, const void *b)
{
	int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;

	return (x > y) - (x < y);
}

static void span_cell(struct table *t, int64_t ms)
{
	char text[32];

	clock_format_span(ms, text);
	table_cellz(t, text);
}

static void totals_table(struct repeat *r, struct arena *a, int64_t wall_ms)
{
	static const struct column columns[] = {
		{.title = "RUNS", .right = true},   {.title = "SUCCEEDED", .right = true},
		{.title = "FAILED", .right = true}, {.title = "CANCELLED", .right = true},
		{.title = "MIN", .right = true},    {.title = "MEDIAN", .right = true},
		{.title = "MEAN", .right = true},   {.title = "MAX", .right = true},
		{.title = "IN ALL", .right = true}, {.title = "RUNS/S", .right = true},
	};
	struct table t;
	int64_t sum = 0;

	qsort(r->elapsed_ms, (size_t)r->done, sizeof(*r->elapsed_ms), by_value);
	for (int64_t i = 0; i < r->done; i++)
		sum += r->elapsed_ms[i];
	table_init(&t, a, columns, sizeof(columns) / sizeof(columns[0]));
	table_cellf(&t, "%" PRId64, r->done);
	table_cellf(&t, "%" PRId64, r->succeeded);
	table_cellf(&t, "%" PRId64, r->failed);
	table_cellf(&t, "%" PRId64, r->cancelled);
	span_cell(&t, r->elapsed_ms[0]);
	span_cell(&t, (r->elapsed_ms[(r->done - 1) / 2] + r->elapsed_ms[r->done / 2]) / 2);
	span_cell(&t, sum / r->done);
	span_cell(&t, r->elapsed_ms[r->done - 1]);
	span_cell(&t, wall_ms);
	table_cellf(&t, "%.1f", (double)r->done * 1000 / (double)(wall_ms > 0 ? wall_ms : 1));
	table_render(&t, &r->style, &r->out);
}

static void totals_metrics(struct repeat *r, struct arena *a)
{
	static const struct column columns[] = {
		{.title = "METRIC"},
		{.title = "RUNS", .right = true},
		{.title = "MEAN OF LAST", .right = true},
		{.title = "MIN", .right = true},
		{.title = "MAX", .right = true},
	};
	struct table t;
	char number[32];

	if (r->nmetrics == 0)
		return;
	table_init(&t, a, columns, sizeof(columns) / sizeof(columns[0]));
	for (size_t i = 0; i < r->nmetrics; i++) {
		const struct metric_total *m = &r->metrics[i];
		double values[] = {m->sum / (double)m->n, m->min, m->max};
		table_cellz(&t, m->name);
		table_cellf(&t, "%" PRId64, m->n);
		for (size_t k = 0; k < 3; k++) {
			number_format(values[k], number);
			table_cellz(&t, number);
		}
	}
	table_render(&t, &r->style, &r->out);
}

static size_t start_lanes(struct repeat *r, struct lane *lanes, size_t n)
{
	pthread_attr_t attr;
	size_t started = 0;

	pthread_attr_init(&attr);
	pthread_attr_setstacksize(&attr, LANE_STACK);
	for (; started < n; started++) {
		struct lane *l = &lanes[started];
		l->r = r;
		api_init_like(&l->api, r->api);
		int e = pthread_create(&l->thread, &attr, lane_main, l);
		if (e != 0) {
			api_release(&l->api);
			if (started == 0)
				err_errno(&r->err, e, "start a thread for the runs");
			break;
		}
	}
	pthread_attr_destroy(&attr);
	return started;
}

static void print_totals(struct repeat *r, int64_t wall_ms)
{
	CLEANUP(arena_freep) struct arena *a = arena_new();

	if (r->output == OUTPUT_JSON) {
		buf_addz(&r->out, r->done ? "]\n" : "[]\n");
	} else if (r->done > 0) {
		totals_table(r, a, wall_ms);
		totals_metrics(r, a);
	}
	flush(r);
}

int run_repeat(const struct cli_call *c, struct api *api, const struct submission *s)
{
	struct repeat r = {
		.api = api,
		.s = s,
		.output = c->output,
		.style = style_detect(STDOUT_FILENO),
		.total = call_number(c, "repeat", 1),
		.lock = PTHREAD_MUTEX_INITIALIZER,
	};
	int64_t k = call_number(c, "parallel", 1);
	size_t n = (size_t)(k < r.total ? k : r.total);
	CLEANUP(freep) struct lane *lanes = xcalloc(n, sizeof(*lanes));
	CLEANUP(close_fdp) int signals = watch_signals(&r.err);

	if (signals < 0)
		return cli_fail(&r.err);
	r.err = (struct err){0};
	r.elapsed_ms = xcalloc((size_t)r.total, sizeof(*r.elapsed_ms));
	r.finished = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
	buf_init(&r.out, CLI_MAX_TEXT);
	int64_t start = clock_boot_ms();
	size_t started = start_lanes(&r, lanes, n);
	int interrupts = wait_for_lanes(&r, lanes, started, signals);
	for (size_t i = 0; i < started; i++) {
		pthread_join(lanes[i].thread, NULL);
		api_release(&lanes[i].api);
	}
	print_totals(&r, clock_boot_ms() - start);
	int code = r.exit_code == 0 && interrupts ? 7 : r.exit_code;
	if (r.err.kind == ERR_CANCELLED)
		cli_say("%s", r.err.msg);
	else if (r.err.kind != ERR_NONE)
		code = cli_fail(&r.err);
	close(r.finished);
	buf_release(&r.out);
	free(r.elapsed_ms);
	return code;
}
