#pragma once
/*
 * transfer - the agent's HTTPS calls to the master, and to servers that have inputs of the job.
 *
 * Calls block without a limit: they are for forked tasks (forked_task.h), which are killed when their
 * work is not needed any more.  A lost connection, a master that does not answer or has no disk space
 * is tried again with a growing pause; an answer that refuses the call is an error.  Another server than
 * the master is given up after some tries in a row that brought nothing.
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
	int faults; /* server errors in a row; of a URL also calls without an answer */
	bool waited_for_room;
};

/* For the master (url NULL) or the server of a URL.  Connects at the first call. */
void transfer_init(struct transfer *t, const struct agent_config *cfg, const char *url);
void transfer_release(struct transfer *t);
/* A path of the master's API: "/api/v1/runs/RUN/nodes/NODE/REST"; the caller frees it. */
char *transfer_path(const struct transfer *t, const char *rest);

/* Download to fd.  The content of fd is the beginning of the file, from an earlier try.  With an ETag, any
 * other content is refused (ERR_CONFLICT); NULL: it may be anything. */
int transfer_download(struct transfer *t, const char *path, const char *etag, int fd,
		      struct err *err);
/* One call.  0: the answer was 2xx.  1: call again (the pause is over).  -1: the call was refused. */
int transfer_call(struct transfer *t, const struct http_outgoing *r, struct http_answer *ret,
		  struct err *err);
