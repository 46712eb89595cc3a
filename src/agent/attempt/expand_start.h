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
struct start_texts {
	struct start_file *files;
	size_t nfiles;
	struct env_list *envs; /* of each process; NULL: all have that of the message */
	const int *keep;       /* descriptors that stay open in the shim, in rising order */
	size_t nkeep;
};

/* Expand hostfile and machinefile of *m in place and its env for each process (here NULL: they are no
 * templates), and list the files.  A value too long for execve goes to a file; the variable NAME_FILE has its
 * path. */
int expand_start(struct message_start *m, const struct expand_here *here, const char *node_dir,
		 struct arena *a, struct start_texts *ret, struct err *err);
