#pragma once
/*
 * exec - commands that run on the node beside its job, for somebody who waits for them.
 *
 * They run only while the job does: in its cgroup, in its network, with its environment and in its work
 * directory, so that they end with it at the latest.  They end too when the connection that asked for
 * them does.
 */
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>
#include "base/str.h"

struct agent;
struct err;

#define EXEC_MAX 64 /* commands at a time */

/* The frames of the command `channel`; err is set only if the frame is bad. */
void exec_open(struct agent *a, uint16_t channel, struct str json, struct err *err);
void exec_input(struct agent *a, uint16_t channel, struct str bytes);
void exec_control(struct agent *a, uint16_t channel, struct str json, struct err *err);
void exec_close(struct agent *a, uint16_t channel);
/* A child was reaped. */
void exec_reaped(struct agent *a, pid_t pid, int wait_status);
/* Kill all commands and forget them; with `why` the master is told. */
void exec_drop_all(struct agent *a, const char *why);
