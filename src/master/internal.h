#pragma once
/*
 * What the files of master/ share; a run is in live_run.h.
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
#include "driver/driver.h"
#include "net/tls.h"
#include "store/store.h"

struct agents;
struct auth;
struct exports;
struct hooks;
struct metric_push;
struct feeder;
struct hosts;
struct http_server;
struct listener;
struct logfile_pool;
struct loop;
struct loop_timer;
struct own_machine;
struct pools;
struct records;
struct reports;
struct slices;
struct space;
struct sse;
struct suites;
struct tls_server;
struct trash;
struct watch;
struct execs;
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
	struct logfile_pool *logs; /* of all runs */
	struct listener *link_listener;
	struct http_server *http;
	/* id -> struct live_run: active runs, and ended ones that are still watched */
	struct map *runs;
	struct map *imports; /* id -> the import of its results that goes on */
	struct agents *agents;
	struct hosts *hosts;
	struct driver_services services;
	struct list rounds; /* struct live_run with changes to commit */
	struct loop_timer *tick, *idle;
	int64_t clock_base; /* master time = clock_base + boot time */
	int64_t idle_ms, last_busy_ms;
	/* services of api/ and upkeep/ */
	struct auth *auth;
	struct slices *slices;
	struct sse *sse;
	struct watch *watch;
	struct execs *execs;
	struct suites *suites;
	struct feeder *feeder;
	struct records *records;
	struct reports *reports;
	struct exports *exports;
	struct hooks *hooks;
	struct metric_push *metric_push;
	struct own_machine *own_machine; /* NULL: the machine is not the master's to end */
	struct space *space;
	struct trash *trash;
	struct tls_server *tls; /* NULL unless it listens beyond this machine */
	char http_url[96];	/* "http://127.0.0.1:5436"; empty without TCP */
	char public_url[96];	/* the URL for other machines */
	char given_url[96]; /* the same, if the machine's owner gave it (REGATTA_URL); else "" */
	char pin[TLS_PIN_SIZE];	     /* of its key; "" without TLS */
	uint64_t log_bytes, samples; /* stored since this master started */
	int64_t started_ms;	     /* wall clock */
	bool background, stopping;
	bool queue_due; /* a run that waits in the queue may be admitted: see queue.h */
	int exit_code;
};

/* The worker threads for disk work: syncs of logs, checks of uploads, the trash. */
struct workers *master_disk(struct master *m);
