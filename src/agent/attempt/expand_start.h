#pragma once
/* expand_start - the templates of a START made texts, and the files that the job finds its hosts in. */
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

/* Replace env, hostfile and machinefile of *m by what they expand to (here NULL: they are texts already), and list the
 * files.  A value that is too long for an exec is in a file of its own, which NAME_FILE names. */
int expand_start(struct message_start *m, const struct expand_here *here, const char *node_dir,
		 struct arena *a, struct start_files *ret, struct err *err);
