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
#include "store/log_order.h"
#include "store/store.h"

struct arena;
struct auth;
struct doc;
struct feeder;
struct hosts;
struct http_exchange;
struct http_server;
struct listener;
struct logfile;
struct loop;
struct loop_timer;
struct pools;
struct records;
struct reports;
struct slices;
struct space;
struct sse;
struct start_table;
struct tls_server;
struct trash;
struct watch;
struct workers;

/* a master in the background leaves after this (REGATTA_IDLE overrides) */
#define MASTER_IDLE_MS 60000

struct master {
	char *home;
	struct loop *loop;
	struct pools *pools; /* of drivers (driver.h), and "disk"; NULL: leaving */
	struct store *store;
	struct listener *link_listener;
	struct http_server *http;
	struct map *runs; /* id -> struct live_run: active ones, and ended ones still watched */
	struct agents *agents;
	struct hosts *hosts;
	struct list rounds; /* struct live_run with something to commit */
	struct loop_timer *tick, *idle;
	int64_t clock_base; /* master time = clock_base + boot time */
	int64_t idle_ms, last_busy_ms;
	/* services of api/ and upkeep/ */
	struct auth *auth;
	struct slices *slices;
	struct sse *sse;
	struct watch *watch;
	struct feeder *feeder;
	struct records *records;
	struct reports *reports;
	struct space *space;
	struct trash *trash;
	struct tls_server *tls;	     /* beyond this machine */
	char http_url[96];	     /* "http://127.0.0.1:5436"; empty without TCP */
	char public_url[96];	     /* the same for other machines */
	uint64_t log_bytes, samples; /* stored since the start */
	int64_t started_ms;	     /* wall clock */
	bool background, stopping;
	int exit_code;
};

/* One stream of one node, as it arrives. */
struct live_stream {
	struct logfile *file;
	uint64_t base;		/* bytes of the stream in earlier attempts */
	uint64_t restored;	/* with those: metrics were taken up to here before the restart */
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
	int64_t heard_ms;	  /* of the last agent that has left: its last word; 0: none */
	char interface[16];	  /* that has its address, as it said itself; "" if it did not */
	bool templates;		  /* its agent takes MEMBERS, and templates in START */
	int attempt;		  /* whose streams these are; 0: none yet */
	struct live_stream streams[STREAMS];
	struct log_order order; /* of the bytes of standard output and standard error */
	uint64_t bad;
	bool exit_told, collected, drained_told, scan_dirty;
	uint64_t changed; /* number of the last change that the API shows: see live_run.changes */
	enum err_kind lost_kind; /* ERR_NONE: the files that it was to keep are kept ... */
	char lost[200];		 /* ... and otherwise why not */
	VEC(struct live_series *) series;
};

struct live_run {
	struct master *m;
	struct run_row row;
	char *dir, *logs_dir;
	struct arena *arena; /* job, plan, row */
	struct doc *job_doc; /* of a fresh one only */
	const struct job *job;
	struct doc *facts;	/* of its engine; NULL if they cannot be read */
	struct doc *secrets;	/* values that rows and files have masked; NULL if there are none */
	const char *client_env; /* as row.client_env, with its secrets */
	const char *unreadable; /* why it was loaded for clean-up only; NULL if it was not */
	struct plan plan;
	struct core_run *core;
	struct effects fx; /* of this round */
	struct live_node *nodes;
	struct start_table *start; /* what every START needs; NULL: not made yet */
	struct map *ranks;	   /* name -> struct member; NULL: not made yet */
	struct map *series;	   /* "<rank> <name>" -> struct live_series */
	int nseries[2]; /* of figures, of samples of machines: each kind has its own limit */
	VEC(struct live_series *) dirty_series;
	VEC(int) dirty_scans;
	struct list in_round;
	struct http_exchange *answer; /* whoever submitted it waits until it is stored */
	int64_t last_seq;	      /* of its events */
	uint64_t changes;	      /* of its nodes, counted */
	uint64_t deltas_upto;	      /* whoever watches it by deltas knows these ... */
	int64_t deltas_ms;	      /* ... since then, on the clock of the boot */
	int watchers, busy;	      /* effects out with workers */
	struct {
		bool known; /* since this master has begun */
		uint64_t files, bytes;
	} uploads; /* by nodes of other machines */
	bool ended, series_full[2];
	int names_opened, names_synced; /* logs opened, and of those, with their names on disk */
};

/* The threads for work on this disk: syncs of logs, checks of uploads, the trash. */
struct workers *master_disk(struct master *m);

/* Something of the node that the API shows is another than before. */
static inline void node_changed(struct live_run *lr, int rank)
{
	lr->nodes[rank].changed = ++lr->changes;
}

/* clock.c: monotone over restarts; until the next boot a change of the wall clock does not move it */
int64_t master_now(const struct master *m);
void master_clock_start(struct master *m);
/* The same with the clocks given: what to add to boot_ms. */
int64_t clock_base_for(const char *home, const char *boot_id, int64_t boot_ms, int64_t wall_ms,
		       int64_t last_ms);
