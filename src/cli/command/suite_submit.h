#pragma once
/* suite_submit - send a suite to a master, with the sources of its jobs. */
#include "base/str.h"

struct api;
struct buf;
struct cli_call;
struct err;
struct suite_input;

/* Sends what starts a suite, or starts it again.  From then on signals are read from *ret_signals (watch.h), so that
 * no interrupt is lost that comes before the caller stays with the suite. */
int suite_send(struct api *api, const char *path, struct str body, int *ret_signals,
	       struct buf *ret_json, struct err *err);
/* The suite's object is appended to *ret_json.  client: the name under which the caller will run on_exit
 * (suite_on_exit.h); NULL: the master does.  0, or the exit code after a message. */
int suite_submit(struct api *api, const struct cli_call *c, struct suite_input *in,
		 const char *client, int *ret_signals, struct buf *ret_json);
