#pragma once
/*
 * metric_push - sends the metrics of runs to the sink that their plan names (plan_metrics()), once a minute and when
 * the run has ended: of each series the samples of each minute, as one point.
 *
 * How many samples of each series were sent is in the run's directory, so that the next master goes on there.  What
 * cannot be sent now is sent with the next minute; if it never can, the run has an event that says why, and goes on
 * without it.
 */
#include <stdbool.h>

struct live_run;
struct master;
struct metric_push;

struct metric_push *metric_push_new(struct master *m);
/* NULL is allowed.  Returns NULL. */
struct metric_push *metric_push_free(struct metric_push *p);
/* Sends the minutes that are over; done once a minute. */
void metric_push_check(struct metric_push *p);
/* Sends what is not sent yet, with the credentials that the run still has in memory. */
void metric_push_run_ended(struct metric_push *p, struct live_run *lr);
/* True while something is being sent. */
bool metric_push_waiting(const struct metric_push *p);
