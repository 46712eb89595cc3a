#pragma once
/* master - the real shell around the core: store, link, drivers, API. */
#include <stdbool.h>

struct master_options {
	const char *home;
	const char *listen; /* "ADDR:PORT" or NULL */
	bool background;    /* started by a client: leaves when idle */
};

/* Runs until it is told to stop; returns the process's exit code. */
int master_main(const struct master_options *o);
