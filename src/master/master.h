#pragma once
/* master - connects the core with the world: store, link, drivers, API. */
#include <stdbool.h>
#include <stdint.h>
#include "base/str.h"
#include "master/announce.h"

struct err;
struct master;

struct master_options {
	const char *home;
	const char *listen; /* "ADDR:PORT" or NULL */
	bool background;    /* started by a client: stops when it is idle */
	enum announce announce;
};

/* The value of REGATTA_IDLE: how long a master in the background stays without work.  False unless
 * it is a duration above 0, such as "90s". */
static inline bool master_idle_time(const char *text, int64_t *ret_ms)
{
	return text && str_to_duration_ms(str_from(text), ret_ms) && *ret_ms > 0;
}

/* Runs until it is told to stop, and returns the exit code of the process. */
int master_main(const struct master_options *o);

/* For tests: master_open() sets up a zeroed master, after which its loop may run.  Call
 * master_close() also after a master_open() that failed.  With an exit_code set, nothing is
 * committed any more. */
int master_open(struct master *m, const struct master_options *o, struct err *err);
void master_close(struct master *m);
