#pragma once
/*
 * suite_on_exit - the commands of on_exit, run by the client that has started a suite of another master.
 *
 * The master offers them when all runs have ended.  While they run the client says so, every few seconds;
 * if it cannot, they are stopped, because the master runs them then.
 */
#include "cli/client/submit.h"

struct api;
struct doc;
struct err;
struct suite_input;

struct suite_closer_here {
	const struct suite_input *in;
	char client[REQUEST_ID_SIZE]; /* its name, as it was sent with the suite */
};

/* The suite is closing.  0 also if the master runs the commands. */
int suite_on_exit(struct api *api, const struct suite_closer_here *closer, const struct doc *suite,
		  struct err *err);
