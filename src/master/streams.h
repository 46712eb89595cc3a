#pragma once
/* streams - log bytes and metrics of a node, from the agent to the disk. */
#include <stdbool.h>
#include <stdint.h>
#include "base/str.h"
#include "link/frame.h"

struct err;
struct live_run;
struct message_metrics;
struct message_sample;

/* Of a run: of figures, and as many of samples of its machines, which cannot crowd the figures out. */
#define STREAMS_MAX_SERIES 10000
#define LOG_NAME_MAX 96
/* What the files of an attempt begin with: "<node>", and after the first attempt "<node>.a<n>". */
void run_log_base(const struct live_run *lr, int rank, int attempt, char out[static LOG_NAME_MAX]);
void run_log_name(const struct live_run *lr, int rank, int attempt, enum stream s,
		  char out[static LOG_NAME_MAX]);
/* Attempts of which there may be logs. */
int run_attempts(const struct live_run *lr, int rank);
/* From here on what the node sends belongs to this attempt. */
int streams_open(struct live_run *lr, int rank, int attempt, struct err *err);
void streams_close(struct live_run *lr, int rank);
/* If `why` says that the directory of the logs is gone, the core is told that the node is lost. */
bool streams_gone(struct live_run *lr, int rank, const struct err *why);
int streams_data(struct live_run *lr, int rank, enum stream st, struct str payload,
		 struct err *err);
void streams_metrics(struct live_run *lr, int rank, enum stream st,
		     const struct message_metrics *m);
void streams_sample(struct live_run *lr, int rank, const struct message_sample *m);
void streams_final(struct live_run *lr, int rank, int attempt,
		   const uint64_t sizes[static STREAMS]);
void streams_check_drained(struct live_run *lr, int rank);
int streams_save(struct live_run *lr, struct err *err); /* rows of this round */
void streams_committed(struct live_run *lr);		/* acknowledge what is now on disk */
int series_restore(struct live_run *lr, struct err *err);
