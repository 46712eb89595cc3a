#pragma once
/*
 * live_run - a run in memory: its rows, its plan and core, its nodes with their agents and streams.
 *
 * runs.h loads, finds and frees it; run_event() of round.h changes its state.
 */
#include <stdbool.h>
#include <stdint.h>
#include "base/list.h"
#include "base/vec.h"
#include "core/core.h"
#include "driver/driver.h"
#include "link/frame.h"
#include "metrics/stats.h"
#include "store/log_order.h"
#include "store/log_times.h"
#include "store/store.h"

struct agent_conn;
struct process_end;
struct arena;
struct doc;
struct follower;
struct http_exchange;
struct logfile;
struct map;
struct master;
struct start_table;

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
	/* It was closed by this master with `length` bytes, all that had come: nobody has to look at the file. */
	bool closed_whole;
	uint64_t length;
	struct log_times times;
};

struct live_series {
	struct series_row row;
	bool dirty, host;
	int64_t sent; /* samples that went to the sink of metrics */
};

struct live_node {
	struct agent_conn *agent; /* NULL while no agent is connected */
	/* Of a node without an agent: whoever reads its log (followers.h), and which one; NULL: nobody, not
	 * known. */
	struct follower *follower;
	const char *log_name;
	int64_t heard_ms; /* when the last agent that has left was last heard; 0: never */
	/* the network interface that the agent named; "" if it named none */
	char interface[16];
	bool templates; /* the agent takes MEMBERS, and templates in START */
	bool exec;	/* the agent takes EXEC */
	bool inspect;	/* the agent takes INSPECT */
	int attempt;	/* the attempt that `streams` belongs to; 0: none yet */
	int processes;
	struct live_stream *streams; /* streams_count(processes) */
	/* of each process: order in which bytes of its standard output and standard error arrived */
	struct log_order *orders;
	/* how each of several processes ended; NULL: not known yet */
	struct process_end *ends;
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
	const char *source_state; /* JSON: see source_state.h; NULL: none was told */
	const char *credentials;  /* JSON: the caller's, for the drivers; NULL: none were given */
	const char *notes;	  /* JSON: [{"time_ms", "text"}, ...]; NULL: none */
	const char *client_env;	  /* row.client_env with its secrets unmasked */
	const char *unreadable;	  /* why it was loaded for clean-up only; NULL if it was not */
	struct plan plan;
	struct core_run *core;
	struct effects fx; /* effects of this round */
	struct live_node *nodes;
	struct live_stream *streams; /* of all nodes, and */
	struct log_order *orders;    /* of all their processes */
	struct start_table *start;   /* shared parts of all STARTs; NULL: not made yet */
	struct map *ranks;	     /* node name -> struct member; NULL: not made yet */
	struct map *series;	     /* "<rank> <name>" -> struct live_series */
	int nseries[2]; /* of metrics, of samples of machines: each kind has its own limit */
	VEC(struct live_series *) dirty_series;
	VEC(int) dirty_scans;
	VEC(int) stopped; /* resources without agents whose jobs were told to end */
	struct list in_round;
	/* the request that submitted the run, answered when the run is stored */
	struct http_exchange *answer;
	int64_t last_seq; /* sequence number of its newest event */
	int64_t events_kept; /* ... of the last one written for events.jsonl; 0: none since it was loaded */
	uint64_t changes; /* counts changes of its nodes */
	/* the last delta sent to watchers contains the changes up to this one */
	uint64_t deltas_upto;
	int64_t deltas_ms;  /* when that delta was sent, on clock_boot_ms() */
	int watchers, busy; /* busy: calls that workers have not finished */
	struct {
		bool known; /* counted since this master started */
		uint64_t files, bytes;
	} uploads; /* outputs uploaded by nodes of other machines */
	/* The master that it was handed to (handover.h): url "" if none is known; its state of the run */
	struct {
		struct driver_master at;
		bool has_context; /* the commands of this home were told of it */
		char state[32];
		char counts[400]; /* JSON: of its nodes; "": not known */
		double cost_usd;
	} remote;
	/* metric_push.c */
	struct {
		bool is_read, is_busy, is_off;
		int tries; /* of the last call, when the run has ended */
	} push;
	bool ended, series_full[2];
	/* logs opened, and how many of their names are synced to disk */
	int names_opened, names_synced;
};

/* To be called when something of the node that the API shows has changed. */
static inline void node_changed(struct live_run *lr, int rank)
{
	lr->nodes[rank].changed = ++lr->changes;
}
