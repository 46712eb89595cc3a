#pragma once
/* finish - the files written at the end of a run.  They are copies for people; the master reads
 * the rows. */
struct live_run;

/* To be called after each commit: events.jsonl of a run with very many events is written while it runs, in slices, so
 * that its end is no pause of the loop. */
void run_keep_events(struct live_run *lr);
/* Writes summary.json and what is missing in events.jsonl, and starts the report in the background. */
void run_write_files(struct live_run *lr);
/* Writes summary.json and events.jsonl anew, and nothing else. */
void run_write_records(struct live_run *lr);
