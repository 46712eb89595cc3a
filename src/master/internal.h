#pragma once
/*
 * What the files of master/ share.
 *
 * One loop thread owns everything here.  Everything that happens becomes an event: run_event()
 * steps the core and collects changed rows and effects.  At the end of the round all of them are
 * committed in one transaction, and only then are the effects carried out (round.c).
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

/* A master in the background leaves after so long without work (REGATTA_IDLE overrides it). */
#define MASTER_IDLE_MS 60000

struct master {
	char *home;
	struct loop *loop;
	/* worker threads by name: those of drivers (driver.h) and "disk"; NULL: the master
	 * leaves */
	struct pools *pools;
	struct store *store;
	struct listener *link_listener;
	struct http_server *http;
	/* id -> struct live_run: active runs, and ended ones that are still watched */
	struct map *runs;
	struct agents *agents;
	struct hosts *hosts;
	struct list rounds; /* struct live_run with changes to commit */
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
	struct tls_server *tls;	     /* NULL unless it listens beyond this machine */
	char http_url[96];	     /* "http://127.0.0.1:5436"; empty without TCP */
	char public_url[96];	     /* the URL for other machines */
	uint64_t log_bytes, samples; /* stored since this master started */
	int64_t started_ms;	     /* wall clock */
	bool background, stopping;
	int exit_code;
};

/* One stream of one attempt of a node. */
struct live_stream {
	struct logfile *file;
	uint64_t base; /* bytes of the stream in the earlier attempts */
	/* Offset up to which metrics were taken before the restart, earlier attempts included. */
	uint64_t restored;
	/* Offset up to which metrics were taken; their samples may be in the open transaction. */
	uint64_t scanned;
	/* The same, committed. */
	uint64_t scanned_saved;
	uint64_t acked; /* bytes synced, as last told to the agent */
	uint64_t final; /* length of the stream, told by the agent with the exit */
	bool syncing;
};

struct live_series {
	struct series_row row;
	bool dirty, host;
};

struct live_node {
	struct agent_conn *agent; /* NULL while no agent is connected */
	int64_t heard_ms;	  /* when the last agent that has left was last heard; 0: never */
	/* the network interface that the agent named; "" if it named none */
	char interface[16];
	bool templates; /* the agent takes MEMBERS, and templates in START */
	int attempt;	/* the attempt that `streams` belongs to; 0: none yet */
	struct live_stream streams[STREAMS];
	/* order in which bytes of standard output and standard error arrived */
	struct log_order order;
	uint64_t bad;
	bool exit_told, collected, drained_told, scan_dirty;
	/* Value of live_run.changes at the last change that the API shows. */
	uint64_t changed;
	enum err_kind lost_kind; /* ERR_NONE: all files to keep were collected */
	char lost[200];		 /* why files were not collected */
	VEC(struct live_series *) series;
};

struct live_run {
	struct master *m;
	struct run_row row;
	char *dir, *logs_dir;
	struct arena *arena; /* owns job, plan and row */
	struct doc *job_doc; /* the submitted job; NULL if the run was loaded with its plan */
	const struct job *job;
	struct doc *facts; /* facts of the engine; NULL if they cannot be read */
	/* real values that are masked in rows and files; NULL if there are none */
	struct doc *secrets;
	const char *credentials; /* JSON: the caller's, for the drivers; NULL: none were given */
	const char *client_env;	 /* row.client_env with its secrets unmasked */
	const char *unreadable;	 /* why it was loaded for clean-up only; NULL if it was not */
	struct plan plan;
	struct core_run *core;
	struct effects fx; /* effects of this round */
	struct live_node *nodes;
	struct start_table *start; /* shared parts of all STARTs; NULL: not made yet */
	struct map *ranks;	   /* node name -> struct member; NULL: not made yet */
	struct map *series;	   /* "<rank> <name>" -> struct live_series */
	int nseries[2]; /* of metrics, of samples of machines: each kind has its own limit */
	VEC(struct live_series *) dirty_series;
	VEC(int) dirty_scans;
	struct list in_round;
	/* the request that submitted the run, answered when the run is stored */
	struct http_exchange *answer;
	int64_t last_seq; /* sequence number of its newest event */
	uint64_t changes; /* counts changes of its nodes */
	/* the last delta sent to watchers contains the changes up to this one */
	uint64_t deltas_upto;
	int64_t deltas_ms;  /* when that delta was sent, on clock_boot_ms() */
	int watchers, busy; /* busy: calls that workers have not finished */
	struct {
		bool known; /* counted since this master started */
		uint64_t files, bytes;
	} uploads; /* outputs uploaded by nodes of other machines */
	bool ended, series_full[2];
	/* logs opened, and how many of their names are synced to disk */
	int names_opened, names_synced;
};

/* The worker threads for disk work: syncs of logs, checks of uploads, the trash. */
struct workers *master_disk(struct master *m);

/* To be called when something of the node that the API shows has changed. */
static inline void node_changed(struct live_run *lr, int rank)
{
	lr->nodes[rank].changed = ++lr->changes;
}

/* clock.c: never goes back over restarts, and until the next boot follows no change of the wall
 * clock. */
int64_t master_now(const struct master *m);
void master_clock_start(struct master *m);
/* What to add to boot_ms, with the clocks given. */
int64_t clock_base_for(const char *home, const char *boot_id, int64_t boot_ms, int64_t wall_ms,
		       int64_t last_ms);
