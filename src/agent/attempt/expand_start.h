#pragma once
/* expand_start - expand the templates of a START, and list the files to be written for the job. */
#include <stddef.h>

struct arena;
struct err;
struct expand_here;
struct message_start;

/* A file below the node's directory that is written before the job starts. */
struct start_file {
	const char *name, *text;
};
struct start_files {
	struct start_file *v;
	size_t n;
};

/* Expand env, hostfile and machinefile of *m in place (here NULL: they are no templates), and list the
 * files.  A value too long for execve goes to a file; the variable NAME_FILE has its path. */
int expand_start(struct message_start *m, const struct expand_here *here, const char *node_dir,
		 struct arena *a, struct start_files *ret, struct err *err);
