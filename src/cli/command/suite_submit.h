#pragma once
/* suite_submit - send a suite to a master, with the sources of its jobs. */
struct api;
struct buf;
struct cli_call;
struct suite_input;

/* The suite's object is appended to *ret_json.  0, or the exit code after a message. */
int suite_submit(struct api *api, const struct cli_call *c, struct suite_input *in,
		 struct buf *ret_json);
