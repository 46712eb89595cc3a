#pragma once
/* report_facts - the facts about a run in a report, as values that another thread may read. */
struct arena;
struct live_run;
struct report_run;

/* All values are in the arena; none points into the run. */
void report_facts(struct live_run *lr, struct arena *a, struct report_run *ret);
