#pragma once
/* report_facts - what a report says about a run, as values that another thread may read. */
struct arena;
struct live_run;
struct report_run;

/* Everything lives in the arena; nothing points into the run. */
void report_facts(struct live_run *lr, struct arena *a, struct report_run *ret);
