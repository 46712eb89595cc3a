#pragma once
/*
 * prepare - make a node fit to run: its work directory, source, data, and
 * the checks that can be made before anybody starts.
 *
 * Doing it twice gives the same result: what was unpacked is remembered by the
 * digest of what was asked for, and a half-made directory is made again.
 */
#include <stdbool.h>
#include "link/message.h"

struct agent_config;
struct cgroup;
struct err;

/* Is there anything that takes long? */
bool prepare_is_long(const struct message_inputs *in);
/* work/ with source and data below node_dir, and the output directory of the first attempt. */
int prepare_files(const struct message_inputs *in, const struct agent_config *cfg,
		  const char *node_dir, struct err *err);
/* Can the command be found from cwd, is the port free in the network namespace at `netns` (NULL: ours)? */
int prepare_check(const struct message_inputs *in, const char *cwd, const char *netns,
		  struct err *err);
/* Can memory be limited?  Makes the groups. */
int prepare_memory(const struct message_inputs *in, struct cgroup *cg, struct err *err);

#define WORK_NEW_DIR "work.new" /* the name of work/ until it is complete */
