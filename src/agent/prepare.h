#pragma once
/*
 * prepare - make a node ready for START: its work directory, source, data, and checks that can be
 * made before any node starts.
 *
 * It can be repeated: a work directory that is complete for the same inputs (compared by a digest) is
 * kept, an incomplete one is made again.
 */
#include <stdbool.h>
#include "link/message.h"

struct agent_config;
struct cgroup;
struct err;

/* Is there source or data to be fetched or copied? */
bool prepare_has_work(const struct message_inputs *in);
/* Is there anything to be fetched, pulled or copied? */
bool prepare_is_long(const struct message_inputs *in);
/* Make work/ with source and data below node_dir, and the output directory of the first attempt. */
int prepare_files(const struct message_inputs *in, const struct agent_config *cfg,
		  const char *node_dir, struct err *err);
/* Is cwd a directory, and can the command be found from there? */
int prepare_check(const struct message_inputs *in, const char *cwd, struct err *err);
/* Can memory be limited?  Makes the cgroups. */
int prepare_memory(const struct message_inputs *in, struct cgroup *cg, struct err *err);

#define WORK_NEW_DIR "work.new" /* the name of work/ until it is complete */
