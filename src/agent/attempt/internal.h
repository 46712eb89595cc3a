#pragma once
/* Functions shared by the files of this folder. */
#include <stdbool.h>

struct attempt;
struct err;
struct exit_report;

#define NEVER_STARTED "the shim was killed before the job had started"

/* Open the directory of attempt `no` and set no, dir, dirfd, cg and mark. */
int attempt_open_dir(struct attempt *at, const char *node_dir, int no, struct err *err);
/* Watch the FIFO that signals new output and new records. */
int attempt_watch_wakeup(struct attempt *at, struct err *err);
/* Open the read ends of the job's pipes, so that their bytes outlive the shim. */
void attempt_hold_pipes(struct attempt *at);
/* Read the status file if it grew. */
void attempt_refresh(struct attempt *at);
/* The attempt is over; e is its final report. */
void attempt_ended(struct attempt *at, const struct exit_report *e);
/* The attempt cannot be supervised: end it with `why` as the report, without a record. */
void attempt_give_up(struct attempt *at, const struct err *why);

/* Write at->fence, if it is set. */
int attempt_write_fence(const struct attempt *at, struct err *err);

/* takeover.c: the shim is dead and there is no exit record. */
void attempt_take_over(struct attempt *at);
void attempt_stop_supervising(struct attempt *at);
