#pragma once
/* log_scan - takes metrics out of the stored output of a node without an agent, as an agent does. */
#include <stdbool.h>

struct live_run;
struct log_scan;

struct log_scan *log_scan_new(struct live_run *lr, int rank);
/* Scans the whole lines that are stored and were not scanned; at_end: also the last one without an end. */
void log_scan_run(struct log_scan *sc, bool at_end);
/* NULL is allowed.  Returns NULL. */
struct log_scan *log_scan_free(struct log_scan *sc);
