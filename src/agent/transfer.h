#pragma once
/*
 * transfer - the agent's HTTPS calls to its master, and to servers that a job file names.
 *
 * Blocking, with patience: for forked tasks (forked_task.h), which are killed when nobody wants their
 * work any more.  A connection that was cut, a master that is away or has no room is tried again with
 * a growing pause, for as long as it takes; what an answer forbids is an error.
 */
#include <stdint.h>
#include "base/buf.h"
#include "net/http_client.h"

struct agent_config;
struct err;

struct transfer {
	const struct agent_config *cfg;
	const char *url; /* NULL: the master */
	struct http_client *client;
	int64_t pause_ms;
	int faults; /* of the server, in a row */
	bool waited_for_room;
};

/* To the master, or to the server of a URL.  Connects when it is needed. */
void transfer_init(struct transfer *t, const struct agent_config *cfg, const char *url);
void transfer_release(struct transfer *t);
/* The path of this node's part of the master's API: "/api/v1/runs/RUN/nodes/NODE/REST"; owned. */
char *transfer_path(const struct transfer *t, const char *rest);

/* All of it into fd, which may have a part already. */
int transfer_download(struct transfer *t, const char *path, int fd, struct err *err);
/* One call.  0: it was answered with 2xx.  1: try again (the pause is over).  -1: that is no use. */
int transfer_call(struct transfer *t, const struct http_outgoing *r, struct http_answer *ret,
		  struct err *err);
