/*
 * The log bytes and metrics of a node as they arrive.
 *
 * Bytes are appended to the node's log file and acknowledged only after a worker has synced it.
 * Samples are stored in the transaction of the round, together with the offset up to which the
 * stream was scanned, so that each sample counts once.
 */
#include "master/streams.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/arena.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/file.h"
#include "base/log.h"
#include "base/path.h"
#include "link/conn.h"
#include "link/layout.h"
#include "link/message.h"
#include "master/agents.h"
#include "master/internal.h"
#include "master/live_run.h"
#include "master/round.h"
#include "master/runs.h"
#include "metrics/stats.h"
#include "spec/job.h"
#include "store/log_cut.h"
#include "store/logfile.h"
#include "sys/worker.h"

#define SERIES_NAME_MAX 128
/* limit of steps: the totals of all nodes can be added without overflow */
#define MAX_TOTAL (INT64_MAX / 65536)

void run_log_base(const struct live_run *lr, int rank, int attempt, char out[static LOG_NAME_MAX])
{
	const char *node = lr->plan.crew.members[rank].name;

	if (attempt > 1)
		snprintf(out, LOG_NAME_MAX, "%s." LAYOUT_ATTEMPT, node, attempt);
	else
		snprintf(out, LOG_NAME_MAX, "%s", node);
}

void process_log_base(const struct live_run *lr, int rank, int process, int attempt,
		      char out[static LOG_NAME_MAX])
{
	const char *node = lr->plan.crew.members[rank].name;

	if (lr->nodes[rank].processes == 1)
		run_log_base(lr, rank, attempt, out);
	else if (attempt > 1)
		snprintf(out, LOG_NAME_MAX, "%s." LAYOUT_PROCESS "." LAYOUT_ATTEMPT, node, process,
			 attempt);
	else
		snprintf(out, LOG_NAME_MAX, "%s." LAYOUT_PROCESS, node, process);
}

void run_log_name(const struct live_run *lr, int rank, int attempt, enum stream s,
		  char out[static LOG_NAME_MAX])
{
	if (s == STREAM_METRICS)
		run_log_base(lr, rank, attempt, out);
	else
		process_log_base(lr, rank, stream_process(s), attempt, out);
	size_t n = strlen(out);

	snprintf(out + n, LOG_NAME_MAX - n, "%s", stream_suffix(s));
}

static int nstreams(const struct live_node *n)
{
	return streams_count(n->processes);
}

int run_attempts(const struct live_run *lr, int rank)
{
	int n = lr->core->nodes[rank].attempt;

	return n > 1 ? n : 1;
}

/* The limit of the log of a stream; 0: none.  Metrics that the job writes to its pipe are no log. */
static uint64_t log_limit(const struct live_run *lr, enum stream s)
{
	return lr->job && s != STREAM_METRICS ? lr->job->output.max_log : 0;
}

/* The lengths of the stream in the earlier attempts, which do not grow any more. */
static uint64_t bytes_before(const struct live_run *lr, int rank, int attempt, enum stream s)
{
	char name[LOG_NAME_MAX];
	uint64_t sum = 0, size;

	for (int i = 1; i < attempt; i++) {
		run_log_name(lr, rank, i, s, name);
		if (!logfile_exists(lr->logs_dir, name, &size))
			continue;
		sum += log_limit(lr, s) ? log_cut_received(lr->logs_dir, name, size) : size;
	}
	return sum;
}

/*
 * The stored offset up to which metrics were taken counts the logs of all attempts as one.  A
 * log of an attempt that has a successor counts as scanned to its end.
 */
static int begin_attempt(struct live_run *lr, int rank, int attempt, struct err *err)
{
	struct live_node *n = &lr->nodes[rank];
	char name[LOG_NAME_MAX];

	for (int s = 0; s < nstreams(n); s++)
		if (n->streams[s].syncing)
			return err_set(err, ERR_UNAVAILABLE,
				       "the output of an earlier attempt is still being stored");
	streams_close(lr, rank);
	for (int s = 0; s < nstreams(n); s++) {
		uint64_t base = bytes_before(lr, rank, attempt, (enum stream)s), taken = 0;
		uint64_t restored = n->streams[s].restored;

		run_log_name(lr, rank, attempt, (enum stream)s, name);
		if (attempt < lr->core->nodes[rank].attempt)
			logfile_exists(lr->logs_dir, name, &taken);
		else
			taken = restored > base ? restored - base : 0;
		n->streams[s] = (struct live_stream){
			.base = base, .scanned = taken, .scanned_saved = taken};
	}
	n->attempt = attempt;
	memset(n->orders, 0, (size_t)n->processes * sizeof(*n->orders));
	free(n->ends);
	n->ends = NULL;
	n->exit_told = n->collected = n->drained_told = false;
	n->lost_kind = ERR_NONE;
	n->lost[0] = '\0';
	return 0;
}

static int open_one(struct live_run *lr, int rank, enum stream s, struct err *err)
{
	struct live_stream *st = &lr->nodes[rank].streams[s];
	char name[LOG_NAME_MAX];

	if (!st->file) {
		run_log_name(lr, rank, lr->nodes[rank].attempt, s, name);
		if (logfile_open(lr->logs_dir, name, &st->file, err) < 0)
			return -1;
		lr->names_opened++; /* its name may be new in the directory */
		if (log_limit(lr, s))
			logfile_limit(st->file, log_limit(lr, s), st->scanned);
		logfile_share(st->file, lr->m->logs);
	}
	st->acked = logfile_synced(st->file);
	return 0;
}

int streams_open(struct live_run *lr, int rank, int attempt, struct err *err)
{
	char name[LOG_NAME_MAX];
	uint64_t size;

	if (lr->nodes[rank].attempt != attempt && begin_attempt(lr, rank, attempt, err) < 0)
		return -1;
	/* The log of the metrics pipe is created with its first byte: most jobs do not use the
	 * pipe. */
	run_log_name(lr, rank, attempt, STREAM_METRICS, name);
	if (logfile_exists(lr->logs_dir, name, &size) &&
	    open_one(lr, rank, STREAM_METRICS, err) < 0)
		return -1;
	for (int s = 0; s < nstreams(&lr->nodes[rank]); s++)
		if (s != STREAM_METRICS && open_one(lr, rank, (enum stream)s, err) < 0)
			return -1;
	return 0;
}

/* How much is missing of a log that was cut is known without its file too, also of a node that is
 * lost. */
static void close_one(struct live_run *lr, int rank, enum stream s)
{
	struct live_stream *st = &lr->nodes[rank].streams[s];
	char name[LOG_NAME_MAX];

	if (!st->file)
		return;
	st->length = logfile_stored(st->file);
	st->closed_whole = logfile_size(st->file) == st->length;
	if (!st->closed_whole) {
		run_log_name(lr, rank, lr->nodes[rank].attempt, s, name);
		log_cut_note(lr->logs_dir, name, st->length, logfile_size(st->file), NULL);
	}
	st->file = logfile_close(st->file);
}

void streams_close(struct live_run *lr, int rank)
{
	for (int s = 0; s < nstreams(&lr->nodes[rank]); s++)
		if (!lr->nodes[rank].streams[s].syncing) /* otherwise sync_done() closes it */
			close_one(lr, rank, (enum stream)s);
}

uint64_t stream_not_stored(const struct live_run *lr, int rank, int attempt, enum stream s)
{
	const struct live_node *n = &lr->nodes[rank];
	char name[LOG_NAME_MAX];

	if (!log_limit(lr, s))
		return 0;
	if (n->attempt == attempt && n->streams[s].file)
		return logfile_size(n->streams[s].file) - logfile_stored(n->streams[s].file);
	if (n->attempt == attempt && n->streams[s].closed_whole)
		return 0;
	run_log_name(lr, rank, attempt, s, name);
	return log_cut_missing(lr->logs_dir, name);
}

/* More may come. */
static bool is_written(const struct live_node *n)
{
	return n->agent || n->follower;
}

struct sync_call {
	struct live_run *lr;
	int rank;
	enum stream stream;
	int fd;
	uint64_t size;
	int names;	   /* names_opened when the sync began */
	bool sync_names;   /* the directory may have names that are not on disk */
	bool sync_parents; /* nor may its parents: the first time only */
	int rc;
	struct err err;
};

static void sync_run(void *arg, const struct deadline *d)
{
	struct sync_call *c = arg;

	(void)d; /* an fsync cannot be stopped */
	c->rc = logfile_sync_fd(c->fd, &c->err);
	if (c->rc == 0 && c->sync_names)
		c->rc = file_sync_dir(c->lr->logs_dir, &c->err);
	if (c->rc == 0 && c->sync_parents)
		c->rc = file_sync_dir(c->lr->dir, &c->err);
	if (c->rc == 0 && c->sync_parents) {
		CLEANUP(freep) char *runs = path_join(c->lr->m->home, LAYOUT_RUNS);
		c->rc = file_sync_dir(runs, &c->err);
	}
}

static void acknowledge(struct live_run *lr, int rank, enum stream s)
{
	struct live_stream *st = &lr->nodes[rank].streams[s];
	uint8_t ack[MESSAGE_ACK_BYTES];

	message_ack_put(&(struct message_ack){st->acked, st->scanned_saved}, ack);
	agent_send_stream(lr, rank, FRAME_ACK, s, (struct str){(const char *)ack, sizeof(ack)});
}

static void sync_start(struct live_run *lr, int rank, enum stream s);

bool streams_gone(struct live_run *lr, int rank, const struct err *why)
{
	struct event ev = {.kind = EV_NODE_NO_LOG, .index = rank};

	if (why->code != ENOENT && why->code != ENOTDIR)
		return false;
	snprintf(ev.text, sizeof(ev.text), "the logs of the run are missing: %.200s", why->msg);
	run_event(lr, &ev);
	return true;
}

static void sync_done(void *arg, enum err_kind how)
{
	struct sync_call *c = arg;
	struct live_run *lr = c->lr;
	struct live_stream *st = &lr->nodes[c->rank].streams[c->stream];

	st->syncing = false;
	lr->busy--;
	/* The master leaves: agents send the next one what was not acknowledged. */
	if (how != ERR_NONE) {
		if (!is_written(&lr->nodes[c->rank]))
			streams_close(lr, c->rank);
		live_run_done(lr);
		free(c);
		return;
	}
	/* The log directory was removed: this ends the run, not the master. */
	if (c->rc < 0 && streams_gone(lr, c->rank, &c->err)) {
		if (!is_written(&lr->nodes[c->rank]))
			streams_close(lr, c->rank);
		live_run_done(lr);
		free(c);
		return;
	}
	if (c->rc < 0) {
		/* After a failed fsync the state of the file is unknown: the master leaves, and
		 * the next one reads the file. */
		master_fatal(lr->m, &c->err);
		free(c);
		return;
	}
	if (c->names > lr->names_synced)
		lr->names_synced = c->names;
	logfile_mark_synced(st->file, c->size);
	st->acked = logfile_synced(st->file);
	acknowledge(lr, c->rank, c->stream);
	if (logfile_size(st->file) > st->acked)
		sync_start(lr, c->rank, c->stream);
	streams_check_drained(lr, c->rank);
	if (!is_written(&lr->nodes[c->rank]))
		streams_close(lr, c->rank);
	live_run_done(lr);
	free(c);
}

static void sync_start(struct live_run *lr, int rank, enum stream s)
{
	struct live_stream *st = &lr->nodes[rank].streams[s];
	struct sync_call *c;

	if (st->syncing)
		return;
	c = xcalloc(1, sizeof(*c));
	*c = (struct sync_call){.lr = lr,
				.rank = rank,
				.stream = s,
				.fd = logfile_fd(st->file),
				.size = logfile_size(st->file),
				.names = lr->names_opened,
				.sync_names = lr->names_synced < lr->names_opened,
				.sync_parents = lr->names_synced == 0};
	st->syncing = true;
	lr->busy++;
	workers_submit(master_disk(lr->m), sync_run, sync_done, c, -1);
}

/* Records which of standard output and standard error grows now, so that they can be shown in
 * order of arrival. */
static int note_order(struct live_run *lr, int rank, enum stream s, struct err *err)
{
	struct live_node *n = &lr->nodes[rank];
	int process = stream_process(s);
	uint64_t sizes[ORDER_LOGS];
	char base[LOG_NAME_MAX];

	if (s == STREAM_METRICS)
		return 0;
	for (int log = 0; log < ORDER_LOGS; log++) {
		const struct live_stream *st = &n->streams[stream_of(process, (enum stream)log)];

		sizes[log] = st->file ? logfile_stored(st->file) : 0;
	}
	process_log_base(lr, rank, process, n->attempt, base);
	return log_order_grow(&n->orders[process], lr->logs_dir, base, (int)stream_kind(s), sizes,
			      err);
}

/* Records when the bytes arrive that a log is about to get. */
static void note_time(struct live_run *lr, int rank, enum stream s)
{
	struct live_stream *st = &lr->nodes[rank].streams[s];
	char name[LOG_NAME_MAX];

	if (s == STREAM_METRICS)
		return;
	run_log_name(lr, rank, lr->nodes[rank].attempt, s, name);
	log_times_grow(&st->times, lr->logs_dir, name, logfile_size(st->file), clock_wall_ms());
}

/* Tells the core when the disk becomes full for a node, and when it has room again: a cancelled
 * run does not wait for output that cannot be stored. */
static void note_room(struct live_run *lr, int rank, bool room)
{
	if (lr->core->nodes[rank].no_room == room)
		run_event(lr, &(struct event){.kind = room ? EV_NODE_ROOM : EV_NODE_NO_ROOM,
					      .index = rank});
}

/* ERR_CAPACITY, ERR_QUOTA: the disk is full. */
static int append(struct live_run *lr, int rank, enum stream s, uint64_t offset, struct str bytes,
		  struct err *err)
{
	struct live_stream *st = &lr->nodes[rank].streams[s];

	if (!st->file && open_one(lr, rank, s, err) < 0)
		return -1;
	if (store_disk_tight(lr->m->store))
		return err_set(err, ERR_CAPACITY, "the disk is full: the job's output has to wait");
	uint64_t before = logfile_stored(st->file);
	bool grows = offset + bytes.n > before && !logfile_is_full(st->file);
	if (grows && note_order(lr, rank, s, err) < 0)
		return -1;
	if (grows)
		note_time(lr, rank, s);
	if (logfile_append(st->file, offset, bytes, err) < 0)
		return -1;
	lr->m->log_bytes += logfile_stored(st->file) - before;
	node_changed(lr, rank);
	return 0;
}

int streams_data(struct live_run *lr, int rank, enum stream s, struct str payload, struct err *err)
{
	uint64_t offset;
	struct str bytes;

	if (!data_payload(payload, &offset, &bytes))
		return err_set(err, ERR_PROTOCOL, "a data frame without an offset");
	return streams_append(lr, rank, s, offset, bytes, err);
}

int streams_append(struct live_run *lr, int rank, enum stream s, uint64_t offset, struct str bytes,
		   struct err *err)
{
	struct live_stream *st = &lr->nodes[rank].streams[s];

	if (append(lr, rank, s, offset, bytes, err) < 0) {
		if (err->kind == ERR_CAPACITY || err->kind == ERR_QUOTA)
			note_room(lr, rank, false);
		return -1;
	}
	note_room(lr, rank, true);
	if (logfile_size(st->file) > logfile_synced(st->file)) {
		sync_start(lr, rank, s);
		return 0;
	}
	/* Bytes beyond the limit, or sent again because an acknowledgement was lost. */
	st->acked = logfile_synced(st->file);
	acknowledge(lr, rank, s);
	streams_check_drained(lr, rank);
	return 0;
}

/* True for samples of the machine, by the names that agents give them. */
static bool is_host_name(const char *name)
{
	return !strncmp(name, "host.", 5) || !strncmp(name, "job.", 4) ||
	       (!strncmp(name, "gpu", 3) && name[3] >= '0' && name[3] <= '9');
}

static struct live_series *series_add(struct live_run *lr, const struct series_row *row)
{
	struct live_series *ls = xcalloc(1, sizeof(*ls));
	char key[SERIES_NAME_MAX + 16];

	ls->row = *row;
	ls->row.name = arena_strdup(lr->arena, row->name);
	ls->host = is_host_name(row->name);
	lr->nseries[ls->host]++;
	snprintf(key, sizeof(key), "%d %s", row->rank, row->name);
	map_put(lr->series, str_from(key), ls);
	*vec_push(&lr->nodes[row->rank].series) = ls;
	return ls;
}

static bool restore_one(void *ctx, const struct series_row *row)
{
	struct live_run *lr = ctx;

	if (row->rank >= 0 && row->rank < lr->plan.crew.n && strlen(row->name) <= SERIES_NAME_MAX)
		series_add(lr, row);
	return true;
}

int series_restore(struct live_run *lr, struct err *err)
{
	return store_series_each(lr->m->store, lr->row.no, restore_one, lr, err);
}

/* Metrics and samples of machines have separate limits: a dozen samples of each of many nodes
 * would leave no room for metrics. */
static bool has_room(struct live_run *lr, int rank, const char *name)
{
	static const char *const kinds[] = {"metrics", "samples of machines"};
	bool host = is_host_name(name);

	if (lr->nseries[host] < STREAMS_MAX_SERIES && !lr->series_full[host])
		return true;
	if (!lr->series_full[host])
		run_note(lr, "metrics", rank, "a run has at most %d series of %s: '%s' is not kept",
			 STREAMS_MAX_SERIES, kinds[host], name);
	lr->series_full[host] = true;
	return false;
}

/* NULL if the name is invalid or the run has as many series of this kind as it may have
 * (recorded as an event once). */
static struct live_series *series_get(struct live_run *lr, int rank, struct str name)
{
	char key[SERIES_NAME_MAX + 16], text[SERIES_NAME_MAX + 1];
	struct err err = {0};
	struct series_row row = {0};

	if (name.n == 0 || name.n > SERIES_NAME_MAX || memchr(name.p, 0, name.n))
		return NULL;
	snprintf(text, sizeof(text), "%.*s", STR_ARG(name));
	snprintf(key, sizeof(key), "%d %s", rank, text);
	struct live_series *ls = map_get(lr->series, str_from(key));
	if (ls)
		return ls;
	if (!has_room(lr, rank, text))
		return NULL;
	store_begin(lr->m->store);
	if (store_series_open(lr->m->store, lr->row.no, rank, text, &row, &err) < 0) {
		/* The store may count more series than this master: rows of another version,
		 * say. */
		lr->series_full[is_host_name(text)] = true;
		if (err.kind != ERR_QUOTA)
			master_fatal(lr->m, &err);
		return NULL;
	}
	row.name = text;
	return series_add(lr, &row);
}

static int sample_add(struct live_run *lr, int rank, struct str name, double value, int64_t step,
		      int64_t wall_ms, struct err *err)
{
	struct live_series *ls = isfinite(value) ? series_get(lr, rank, name) : NULL;
	struct series_row *row;
	struct stats st;

	if (!ls) {
		lr->nodes[rank].bad++;
		return 0;
	}
	lr->m->samples++;
	row = &ls->row;
	st = (struct stats){row->count, row->first, row->last, row->min,
			    row->max,	row->mean,  row->m2};
	stats_add(&st, value);
	row->count = st.count;
	row->first = st.first;
	row->last = st.last;
	row->min = st.min;
	row->max = st.max;
	row->mean = st.mean;
	row->m2 = st.m2;
	if (!ls->dirty)
		*vec_push(&lr->dirty_series) = ls;
	ls->dirty = true;
	round_mark(lr);
	return store_sample_add(lr->m->store, row->series, wall_ms, step, value, err);
}

/* Sets the progress of a node (step of total); it is saved with the sample of the same series. */
static void note_progress(struct live_run *lr, int rank, struct str name, int64_t step,
			  int64_t total)
{
	struct live_series *ls = series_get(lr, rank, name);

	if (!ls || step < 0 || total <= 0 || total > MAX_TOTAL || step > total)
		return;
	ls->row.step = step;
	ls->row.total = total;
}

static void scan_touched(struct live_run *lr, int rank)
{
	if (!lr->nodes[rank].scan_dirty)
		*vec_push(&lr->dirty_scans) = rank;
	lr->nodes[rank].scan_dirty = true;
	round_mark(lr);
}

/* All samples of a frame are stored or none, together with the offset up to which the stream was
 * scanned. */
void streams_metrics(struct live_run *lr, int rank, enum stream s, const struct message_metrics *m)
{
	struct live_node *n = &lr->nodes[rank];
	/* Ranks on other nodes print for the launcher, in whose log they count; their nodes have copies. */
	bool counts = s == STREAM_METRICS || strategy_runs(&lr->plan.crew, rank);
	struct err err = {0};

	if (m->from != n->streams[s].scanned)
		return; /* a repeated frame */
	store_begin(lr->m->store);
	for (size_t i = 0; counts && i < m->nsamples; i++) {
		const struct message_point *p = &m->samples[i];

		if (sample_add(lr, rank, p->name, p->value, p->step, p->time_ms, &err) < 0) {
			master_fatal(lr->m, &err);
			return;
		}
		if (p->total > 0)
			note_progress(lr, rank, p->name, p->step, p->total);
	}
	n->bad += counts ? m->bad : 0;
	n->streams[s].scanned = m->to;
	node_changed(lr, rank);
	scan_touched(lr, rank);
}

void streams_sample(struct live_run *lr, int rank, const struct message_sample *m)
{
	struct err err = {0};

	store_begin(lr->m->store);
	for (size_t i = 0; i < m->nvalues; i++) {
		const struct message_value *v = &m->values[i];

		if (sample_add(lr, rank, v->name, v->value, -1, m->time_ms, &err) < 0) {
			master_fatal(lr->m, &err);
			return;
		}
	}
}

void streams_final(struct live_run *lr, int rank, int attempt,
		   const uint64_t sizes[static STREAMS_MAX])
{
	struct live_node *n = &lr->nodes[rank];

	if (attempt != n->attempt)
		return;
	n->exit_told = true;
	for (int s = 0; s < nstreams(n); s++)
		n->streams[s].final = sizes[s];
	streams_check_drained(lr, rank);
}

/* Logs that reached their limit say how much is missing. */
static void end_cut_logs(struct live_run *lr, int rank)
{
	struct live_node *n = &lr->nodes[rank];
	char name[LOG_NAME_MAX];
	struct err err = {0};

	for (int s = 0; s < nstreams(n); s++) {
		uint64_t limit = log_limit(lr, (enum stream)s);

		if (!limit || n->streams[s].final <= limit)
			continue;
		run_log_name(lr, rank, n->attempt, (enum stream)s, name);
		if (log_cut_end(lr->logs_dir, name, limit, n->streams[s].final, &err) < 0)
			log_warn("run %s: %s: %s", lr->row.id, name, err.msg);
	}
}

/* Tells the core when all output is synced and scanned and the files are collected. */
void streams_check_drained(struct live_run *lr, int rank)
{
	struct live_node *n = &lr->nodes[rank];

	if (!n->exit_told || !n->collected || n->drained_told)
		return;
	for (int s = 0; s < nstreams(n); s++)
		if (n->streams[s].acked < n->streams[s].final ||
		    n->streams[s].scanned_saved < n->streams[s].final)
			return;
	end_cut_logs(lr, rank);
	n->drained_told = true;
	struct event drained = {.kind = EV_NODE_DRAINED,
				.index = rank,
				.attempt = n->attempt,
				.err_kind = n->lost_kind};

	snprintf(drained.text, sizeof(drained.text), "%s", n->lost);
	run_event(lr, &drained);
}

int streams_save(struct live_run *lr, struct err *err)
{
	for (size_t i = 0; i < lr->dirty_series.n; i++) {
		if (store_series_save(lr->m->store, &lr->dirty_series.v[i]->row, err) < 0)
			return -1;
		lr->dirty_series.v[i]->dirty = false;
	}
	lr->dirty_series.n = 0;
	for (size_t i = 0; i < lr->dirty_scans.n; i++) {
		int rank = lr->dirty_scans.v[i];
		struct live_node *n = &lr->nodes[rank];
		for (int s = 0; s < nstreams(n); s++)
			if (store_scan_save(lr->m->store, lr->row.no, rank, s,
					    n->streams[s].base + n->streams[s].scanned,
					    s == 0 ? n->bad : 0, err) < 0)
				return -1;
	}
	return 0;
}

/* The samples are on disk: the agent may discard the bytes that they came from. */
void streams_committed(struct live_run *lr)
{
	VEC(int) ranks = {lr->dirty_scans.v, lr->dirty_scans.n, lr->dirty_scans.cap};

	lr->dirty_scans.v = NULL;
	lr->dirty_scans.n = lr->dirty_scans.cap = 0;
	for (size_t i = 0; i < ranks.n; i++) {
		struct live_node *n = &lr->nodes[ranks.v[i]];
		n->scan_dirty = false;
		for (int s = 0; s < nstreams(n); s++) {
			struct live_stream *st = &n->streams[s];
			if (st->scanned == st->scanned_saved)
				continue;
			st->scanned_saved = st->scanned;
			acknowledge(lr, ranks.v[i], (enum stream)s);
		}
		streams_check_drained(lr, ranks.v[i]);
	}
	vec_release(&ranks);
}
