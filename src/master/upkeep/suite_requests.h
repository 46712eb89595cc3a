#pragma once
/*
 * suite_requests - what was submitted of suites (request.json) has secrets in it, and stays only as long
 * as a suite may need it: while it goes on, and after its end while a run is left that could be resumed.
 */
#include "core/suite.h"

struct err;
struct master;

/* The suite has ended: removes its request if nothing can be resumed any more. */
void suite_request_drop(const char *dir, const struct core_suite *s);
/* When the master starts: what a master that was killed could not remove any more.  A directory with a request
 * whose suite was never stored goes as a whole. */
int suite_requests_sweep(struct master *m, struct err *err);
