#pragma once
/*
 * setup - what a node runs before its job: one step after the other, each under a shim of its own, as an
 * attempt of the job is.  So a step survives the agent, has a time limit, is stopped with all its processes,
 * and its end is on disk: a step that has begun is never run again by a later agent of the node.
 *
 * Step n has the directory of attempt n below setup/ of the node's directory.  What the steps print becomes
 * the beginning of the job's own output.
 */
#include <stddef.h>
#include "agent/attempt/attempt.h"
#include "agent/config.h"

struct err;
struct loop;

struct setup_step {
	const char *line; /* as a person writes it: in the log, and in the cause of a failure */
	const char *const *argv; /* NULL-terminated */
};

struct setup_plan {
	const struct setup_step *steps;
	size_t n;
	struct env_pair *env;
	size_t nenv;
	const char *cwd;
	int64_t limit_ms; /* of all steps together; 0: none */
};

enum setup_state { SETUP_RUNS, SETUP_DONE, SETUP_FAILED };

struct setup {
	struct agent_config cfg; /* the agent's, without the namespaces of the job */
	struct attempt at;	 /* the step that was begun last; no 0: none */
	char *dir;
	int64_t until_ms; /* boot time; 0: no limit, or no step was begun by this agent */
};

/* Go on with the step that an earlier agent of the node has begun, if there is one. */
int setup_init(struct setup *s, struct loop *l, const struct agent_config *cfg, const char *boot_id,
	       const char *node_dir, const struct attempt_events *ev, void *ctx, struct err *err);
void setup_release(struct setup *s);
/* Begin the next step if the last one has ended well.  SETUP_FAILED: err says which step failed, and how. */
enum setup_state setup_advance(struct setup *s, const struct setup_plan *p, struct err *err);
/* Append what the steps have printed so far, and what is not there yet, to the spools in dirfd. */
int setup_copy_output(const struct setup *s, int dirfd, struct err *err);
