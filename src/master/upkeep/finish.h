#pragma once
/* finish - the files at the end of a run.  They are copies for people; the rows are the truth. */
struct live_run;

/* summary.json, events.jsonl, and the report in the background. */
void run_write_files(struct live_run *lr);
/* Of them, summary.json and events.jsonl. */
void run_write_records(struct live_run *lr);
