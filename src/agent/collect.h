#pragma once
/*
 * collect - copy the files that the job file asks to keep.
 *
 * Every regular file below the work directory that a pattern matches is copied to the same name below
 * the output directory, over an older copy.  In a work directory that is not the node's own, only
 * files that changed since the job's start are kept.  A pattern that matches nothing is named in the
 * note.  Sparse files stay sparse.
 *
 * No symbolic link is followed.  A link is kept as a link if its target is kept too; otherwise it is
 * named in the note, as is a link inside the path of a pattern or of another link.  The job can write
 * to the output directory: a link in it, or in its place, is replaced.
 *
 * No partial copy stays, even if the process is killed.
 */
#include <stddef.h>
#include <stdint.h>

struct err;

#define COLLECT_MAX_FILES 200000

struct collected {
	uint64_t files, bytes; /* links are files of 0 bytes */
	char note[400];	       /* patterns without a match, links not kept; "": none */
};

struct collect_options {
	const char *const *patterns;
	size_t n;
	/* wall clock: only files changed since then are kept; 0: all files */
	int64_t since_ms;
};

/* After an error *ret counts the files copied before it. */
int collect_files(const char *from, const struct collect_options *o, const char *to,
		  struct collected *ret, struct err *err);
/* Remove the partial copy that a killed collect_files may have left below `to`. */
void collect_remove_partial(const char *to);
