#pragma once
/* finish - the files written at the end of a run.  They are copies for people; the master reads
 * the rows. */
struct live_run;

/* Writes summary.json and events.jsonl, and starts the report in the background. */
void run_write_files(struct live_run *lr);
/* Writes summary.json and events.jsonl only. */
void run_write_records(struct live_run *lr);
