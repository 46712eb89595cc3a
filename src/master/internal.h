#pragma once
/*
 * What the files of master/ share.
 *
 * One loop thread owns everything here.  Whatever happens becomes an event:
 * run_event() steps the core and remembers changed rows and effects; at the end
 * of the round all of it is committed at once, and only then do the effects go
 * to drivers and agents (round.c).
 */
#include <stdbool.h>
#include <stdint.h>
#include "base/buf.h"
#include "base/list.h"
#include "base/map.h"
#include "base/vec.h"
#include "core/core.h"
#include "link/frame.h"
#include "metrics/stats.h"
#include "store/store.h"

struct arena;
struct auth;
struct conn;
struct doc;
struct http_exchange;
struct http_server;
struct listener;
struct logfile;
struct loop;
struct loop_timer;
struct message_metrics;
struct message_sample;
struct sse;
struct tls_server;
struct workers;

/* a master in the background leaves after this (REGATTA_IDLE overrides) */
#define MASTER_IDLE_MS 60000
#define MASTER_WORKERS 6
#define WATCH_EVERY_MS 50    /* at most one object per run and watcher in this time */
#define FAILED_TAIL_LINES 10 /* of the failed node, in the run object */
#define API_SOCKET "api.sock"
#define LINK_SOCKET "link.sock"

struct master {
	char *home;
	struct loop *loop;
	struct workers *workers;
	struct workers *reporter; /* one thread: pieces stay in order; made at first use */
	struct store *store;
	struct listener *link_listener;
	struct http_server *http;
	struct map *runs;     /* id -> struct live_run: active ones, and ended ones still watched */
	struct list agents;   /* struct agent_conn */
	struct list rounds;   /* struct live_run with something to commit */
	struct list watchers; /* of api/watch.c */
	struct loop_timer *tick, *idle;
	uint32_t next_local;
	int64_t clock_base; /* master time = clock_base + boot time */
	int64_t idle_ms, last_busy_ms;
	struct auth *auth;
	struct sse *sse;
	struct tls_server *tls;	     /* beyond this machine */
	char http_url[96];	     /* "http://127.0.0.1:5436"; empty without TCP */
	uint64_t files_soft;	     /* limit of open files that we were started with */
	uint64_t log_bytes, samples; /* stored since the start */
	int64_t started_ms;	     /* wall clock */
	bool background, stopping;
	int exit_code;
	int trash_runs; /* ended since the trash was emptied */
	bool trash_busy, trash_wanted;
	bool disk_full; /* and said so */
	/* ended runs whose report waits for a quiet moment, of upkeep/reports.c */
	VEC(int64_t) reports_due;
	struct loop_timer *report_timer;
	bool report_busy;
	VEC(int64_t) unwritten; /* ended runs without their records, of upkeep/records.c */
};

/* One stream of one node, as it arrives. */
struct live_stream {
	struct logfile *file;
	uint64_t scanned;	/* metrics taken up to here, perhaps in the open transaction */
	uint64_t scanned_saved; /* ... and committed */
	uint64_t acked;		/* last told to the agent */
	uint64_t final;		/* known with the exit */
	bool syncing;
};

struct live_series {
	struct series_row row;
	bool dirty, host;
};

struct live_node {
	struct agent_conn *agent; /* NULL while it is not connected */
	struct live_stream streams[STREAMS];
	uint64_t bad;
	bool exit_told, collected, drained_told, scan_dirty;
	VEC(struct live_series *) series;
};

struct live_run {
	struct master *m;
	struct run_row row;
	char *dir, *logs_dir;
	struct arena *arena; /* job, plan, row */
	struct doc *job_doc;
	struct job *job;
	struct plan plan;
	struct core_run *core;
	struct effects fx; /* of this round */
	struct live_node *nodes;
	struct map *series; /* "<rank> <name>" -> struct live_series */
	VEC(struct live_series *) dirty_series;
	VEC(int) dirty_scans;
	struct list in_round;
	struct http_exchange *answer; /* whoever submitted it waits until it is stored */
	int64_t last_seq;	      /* of its events */
	int watchers, busy;	      /* effects out with workers */
	bool ended, series_full;
	int names_opened, names_synced; /* logs opened, and of those, with their names on disk */
};

/* clock.c: monotone over restarts, and not led astray by the wall clock before the next boot */
int64_t master_now(const struct master *m);
void master_clock_start(struct master *m);
/* The same with the clocks given: what to add to boot_ms. */
int64_t clock_base_for(const char *home, const char *boot_id, int64_t boot_ms, int64_t wall_ms,
		       int64_t last_ms);

/* runs.c */
struct live_run *live_run_load(struct master *m, int64_t no, struct err *err);
struct live_run *live_run_free(struct live_run *lr);
/* By id or unique prefix.  Not active: loaded for reading; give it back with live_run_done(). */
struct live_run *live_run_find(struct master *m, struct str id, struct arena *a,
			       const char ***ret_ids, size_t *ret_n, struct err *err);
void live_run_done(struct live_run *lr);
int runs_resume(struct master *m, struct err *err);
int runs_submit(struct master *m, const struct doc *body, struct arena *a, struct live_run **ret,
		bool *ret_new, const char **ret_details, struct err *err);
int runs_remove(struct live_run *lr, struct err *err);
size_t runs_active(const struct master *m);
void runs_cancel_all(struct master *m, const char *why);
int rank_of(const struct live_run *lr, struct str node); /* -1 if there is none */
void node_token(const struct live_run *lr, int rank, char out[static 65]);

/* round.c */
void run_event(struct live_run *lr, const struct event *ev);
void run_note(struct live_run *lr, const char *kind, int node, const char *fmt, ...)
	__attribute__((format(printf, 4, 5)));
void round_end(void *m);
/* api/runs.c: answer lr->answer */
void api_run_stored(struct live_run *lr, const struct err *why_not);
void round_mark(struct live_run *lr); /* has something to commit */
void tick_rearm(struct master *m);
void master_fatal(struct master *m, const struct err *err);

/* effects.c */
void effect_do(struct live_run *lr, const struct effect *fx);

/* messages.c: the payloads of INPUTS and START */
void node_inputs_put(const struct live_run *lr, int rank, struct buf *out);
void node_start_put(const struct live_run *lr, int rank, int attempt, struct buf *out);

/* agents.c */
void agent_accept(void *m, int fd);
void agent_send(struct live_run *lr, int rank, enum frame_type type, struct str payload);
void agent_send_stream(struct live_run *lr, int rank, enum frame_type type, enum stream s,
		       struct str payload);
void agent_drop(struct live_run *lr, int rank); /* its node is not told */
void agents_free(struct master *m);

/* streams.c: log bytes and metrics of a node */
#define LOG_NAME_MAX 96
void run_log_name(const struct live_run *lr, int rank, enum stream s,
		  char out[static LOG_NAME_MAX]);
int streams_open(struct live_run *lr, int rank, struct err *err);
void streams_close(struct live_run *lr, int rank);
int streams_data(struct live_run *lr, int rank, enum stream st, struct str payload,
		 struct err *err);
void streams_metrics(struct live_run *lr, int rank, enum stream st,
		     const struct message_metrics *m);
void streams_sample(struct live_run *lr, int rank, const struct message_sample *m);
void streams_final(struct live_run *lr, int rank, const uint64_t sizes[static STREAMS]);
void streams_check_drained(struct live_run *lr, int rank);
int streams_save(struct live_run *lr, struct err *err); /* rows of this round */
void streams_committed(struct live_run *lr);		/* acknowledge what is now on disk */
int series_restore(struct live_run *lr, struct err *err);

/* run_json.c */
void run_to_json(struct live_run *lr, bool with_nodes, struct buf *out);
void row_to_json(const struct run_row *row, struct buf *out); /* the little that a list shows */
void metrics_to_json(struct live_run *lr, struct str name, struct str node, bool host,
		     int64_t limit, struct buf *out);

enum better run_better(const struct live_run *lr, const char *metric);
struct stats series_stats(const struct series_row *row);
int64_t run_end_ms(const struct live_run *lr); /* of the core's clock; now if it has not ended */
int64_t run_phase_ms(const struct live_run *lr, enum run_phase p); /* -1: not entered */
int64_t run_log_size(const struct live_run *lr, int rank, enum stream s);
/* The last lines of the node that failed the run. */
bool run_tail(const struct live_run *lr, struct buf *out, enum stream *ret_stream);

/* upkeep/trash.c: what destroyed nodes leave, removed when nothing runs or there is much of it, and what
 * removed runs leave, removed at once */
void trash_look(struct master *m, bool idle);
/* Out of its place in one step, or removed here and now.  `name` is nobody else's. */
int trash_put(struct master *m, const char *path, const char *name, struct err *err);

/* upkeep/space.c: a full disk */
void space_look(struct master *m);
int space_for_run(struct master *m, struct err *err); /* ERR_CAPACITY */

/* upkeep/records.c: soon after the start, what a crash kept from being written at the end of a run */
void records_look(void *m);

/* upkeep/finish.c: files at the end of a run */
void run_write_files(struct live_run *lr);
void run_write_records(struct live_run *lr); /* of them, summary.json and events.jsonl */

/* upkeep/reports.c: report.html and metrics.csv, made in the background.  At the end of a run that has
 * samples both are written into its directory. */
void report_at_end(struct live_run *lr);
void report_later(struct master *m, int64_t no);
void reports_close(struct master *m);

/* api/watch.c */
void watch_begin(struct live_run *lr, struct http_exchange *x, bool only_last);
void watch_changed(struct live_run *lr);
bool run_watched(const struct master *m, int64_t no);
void events_begin(struct live_run *lr, struct http_exchange *x, int64_t after, bool follow);
/* Takes over fd, the log opened for reading. */
void log_follow_begin(struct live_run *lr, struct http_exchange *x, int rank, enum stream st,
		      int fd, uint64_t offset);
void event_to_json(const struct live_run *lr, const struct event_row *row, struct buf *out);
void watch_free(struct master *m);

/* api/api.c */
extern const struct http_handler api_handler;
