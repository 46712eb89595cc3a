#pragma once
/* suite_submit - send a suite to a master, with the sources of its jobs. */
struct api;
struct buf;
struct cli_call;
struct suite_input;

/* The suite's object is appended to *ret_json.  client: the name under which the caller will run on_exit
 * (suite_on_exit.h); NULL: the master does.  0, or the exit code after a message. */
int suite_submit(struct api *api, const struct cli_call *c, struct suite_input *in,
		 const char *client, struct buf *ret_json);
