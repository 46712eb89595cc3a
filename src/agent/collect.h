#pragma once
/*
 * collect - copy the files that the job file asks to keep.
 *
 * Every regular file below the work directory that a pattern matches goes to the same name below the output directory;
 * doing it again overwrites.  In a directory that is not the node's own, only what changed since the job's start is the
 * job's.  A pattern that matches nothing is named in the note.  Holes stay holes.  A symbolic link is kept as a link if what it points to is kept too, and
 * named in the note otherwise, as is one on the way of a pattern or of another link: none is followed.  The output directory belongs to the job as well: a link in it, or in its place, is
 * replaced and never followed.  Nothing half copied stays, also if the process is killed.
 */
#include <stddef.h>
#include <stdint.h>

struct err;

#define COLLECT_MAX_FILES 200000

struct collected {
	uint64_t files, bytes; /* links are files of 0 bytes */
	char note[400];	       /* what was expected and is not kept; "": nothing */
};

struct collect_options {
	const char *const *patterns;
	size_t n;
	/* wall clock: what did not change since then stays; 0: everything is kept */
	int64_t since_ms;
};

/* With an error *ret still says how far it came. */
int collect_files(const char *from, const struct collect_options *o, const char *to,
		  struct collected *ret, struct err *err);
/* Remove what a collect_files that was killed may have left below `to`. */
void collect_remove_partial(const char *to);
