#pragma once
/* streams - log bytes and metrics of a node, from the agent to the disk. */
#include <stdbool.h>
#include <stdint.h>
#include "base/str.h"
#include "link/frame.h"

struct err;
struct exit_report;
struct live_run;
struct message_metrics;
struct message_sample;

/* Limit per run, for metrics and for samples of its machines separately. */
#define STREAMS_MAX_SERIES 10000
#define LOG_NAME_MAX 96
/* The start of the names of an attempt's files: "<node>" for the first attempt, then
 * "<node>.a<n>". */
void run_log_base(const struct live_run *lr, int rank, int attempt, char out[static LOG_NAME_MAX]);
/* The same for the logs of one process: of several "<node>.p<p>", then "<node>.p<p>.a<n>". */
void process_log_base(const struct live_run *lr, int rank, int process, int attempt,
		      char out[static LOG_NAME_MAX]);
void run_log_name(const struct live_run *lr, int rank, int attempt, enum stream s,
		  char out[static LOG_NAME_MAX]);
/* Number of attempts that may have logs, at least 1. */
int run_attempts(const struct live_run *lr, int rank);
/* Opens the logs of this attempt: what the node sends from now on belongs to it. */
int streams_open(struct live_run *lr, int rank, int attempt, struct err *err);
void streams_close(struct live_run *lr, int rank);
/* Bytes of a stream that came beyond the limit of its log. */
uint64_t stream_not_stored(const struct live_run *lr, int rank, int attempt, enum stream s);
/* True if `why` says that the log directory is missing; the core is then told that the node is
 * lost. */
bool streams_gone(struct live_run *lr, int rank, const struct err *why);
int streams_data(struct live_run *lr, int rank, enum stream st, struct str payload,
		 struct err *err);
/* The same, of bytes that belong at that offset. */
int streams_append(struct live_run *lr, int rank, enum stream st, uint64_t offset, struct str bytes,
		   struct err *err);
void streams_metrics(struct live_run *lr, int rank, enum stream st,
		     const struct message_metrics *m);
void streams_sample(struct live_run *lr, int rank, const struct message_sample *m);
void streams_final(struct live_run *lr, int rank, int attempt,
		   const uint64_t sizes[static STREAMS_MAX]);
/* Records how each of several processes of the node ended. */
void streams_ends(struct live_run *lr, int rank, const struct exit_report *e);
/* Reads what was recorded. */
int ends_restore(struct live_run *lr, struct err *err);
void streams_check_drained(struct live_run *lr, int rank);
/* Saves the rows of this round. */
int streams_save(struct live_run *lr, struct err *err);
/* Acknowledges what the commit has put on disk. */
void streams_committed(struct live_run *lr);
int series_restore(struct live_run *lr, struct err *err);
