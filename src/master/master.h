#pragma once
/* master - the real shell around the core: store, link, drivers, API. */
#include <stdbool.h>
#include "master/announce.h"

struct err;
struct master;

struct master_options {
	const char *home;
	const char *listen; /* "ADDR:PORT" or NULL */
	bool background;    /* started by a client: leaves when idle */
	enum announce announce;
};

/* Runs until it is told to stop; returns the process's exit code. */
int master_main(const struct master_options *o);

/* Its parts, for tests: everything of a zeroed master up to the first round; then its loop may turn.
 * Close it also when it could not be opened.  With an exit_code nothing is committed any more. */
int master_open(struct master *m, const struct master_options *o, struct err *err);
void master_close(struct master *m);
