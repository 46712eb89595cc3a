#pragma once
/* master - connects the core with the world: store, link, drivers, API. */
#include <stdbool.h>
#include "master/announce.h"

struct err;
struct master;

struct master_options {
	const char *home;
	const char *listen; /* "ADDR:PORT" or NULL */
	bool background;    /* started by a client: stops when it is idle */
	enum announce announce;
};

/* Runs until it is told to stop, and returns the exit code of the process. */
int master_main(const struct master_options *o);

/* For tests: master_open() sets up a zeroed master, after which its loop may run.  Call
 * master_close() also after a master_open() that failed.  With an exit_code set, nothing is
 * committed any more. */
int master_open(struct master *m, const struct master_options *o, struct err *err);
void master_close(struct master *m);
