#pragma once
/*
 * hosts - the hosts that have joined this master: their connections, and the questions that the
 * driver of hosts.node asks them (driver/hosts/host_table.h).
 */
#include <stdbool.h>
#include "base/str.h"
#include "driver/driver.h"

struct arena;
struct conn;
struct doc;
struct err;
struct host_conn;
struct hosts;
struct live_run;
struct master;

/* Adds the table of hosts to m->services. */
struct hosts *hosts_new(struct master *m);
/* NULL is allowed.  Returns NULL. */
struct hosts *hosts_free(struct hosts *hs);
/* Loads the hosts and reservations that an earlier master stored.  Call it after runs_resume(). */
int hosts_load(struct hosts *hs, struct err *err);
/* The loop calls this about every second. */
void hosts_tick(struct hosts *hs);
int hosts_connected(const struct hosts *hs); /* how many; hs may be NULL */
struct doc *hosts_list(struct hosts *hs, struct arena *a);
int hosts_forget(struct hosts *hs, struct str name, struct err *err);

/* Handles a JOIN.  NULL: refused, and err says why. */
struct host_conn *hosts_join(struct hosts *hs, struct conn *conn, struct str payload,
			     struct arena *mem, struct err *err);
const char *host_conn_name(const struct host_conn *hc);
/* Handle frames of a host that has joined; err is set if the frame is invalid. */
void host_take_nodes(struct host_conn *hc, struct str payload, struct arena *mem, struct err *err);
void host_take_answer(struct host_conn *hc, struct str payload, struct arena *mem, struct err *err);
void host_heard(struct host_conn *hc, int64_t now_ms);
/* The connection has ended.  Frees hc. */
void host_left(struct host_conn *hc);
