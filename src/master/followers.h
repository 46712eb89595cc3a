#pragma once
/*
 * followers - the logs of nodes without agents, from the cluster to the disk.
 *
 * A follower reads the log of one node with the driver of its resource, on worker threads, for as long as
 * the node is expected; bytes and metrics are stored as those of an agent are (streams.h).  How far it is
 * stands beside the run, so that the next master goes on from there.
 */
struct driver_sight;
struct live_run;

/* FX_START of such a node: its output is stored from now on, and the core is told that it has started. */
void follow_start(struct live_run *lr, int rank, int attempt);
/* FX_STOP of such a node: the jobs of its resource are to end. */
void follow_stop(struct live_run *lr, int rank);
/* An observation has seen the node's machine; the core knows. */
void follow_seen(struct live_run *lr, int rank, const struct driver_sight *sight);
/* Frees those that no worker has; the others are freed when their worker is done. */
void followers_free(struct live_run *lr);
