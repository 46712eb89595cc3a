#pragma once
/*
 * git_state - which commit a directory is at, and what of it is not committed.
 *
 * The git of this machine is asked, without hooks, monitors, filters or programs that the repository
 * itself names, and it writes nothing.  Without git, or if it fails, the commit is read from the files
 * of the repository.
 */
#include <stdbool.h>
#include "base/buf.h"

struct arena;
struct err;
struct jsonw;

#define GIT_STATE_DIFF_MAX (256 * 1024)

struct git_state {
	const char *revision; /* NULL: the directory is in no repository, or that has no commit */
	const char *branch;   /* NULL: none is checked out */
	bool known;	      /* what follows is known */
	bool dirty;
	struct buf
		diff; /* names that are not tracked as comments, then what differs from the commit */
};

/* Fills *ret in any case.  -1: some of it is not known, and err says why. */
int git_state_read(const char *dir, struct arena *a, struct git_state *ret, struct err *err);
void git_state_release(struct git_state *g);
/* As the value of a submission's "source"; the difference may be left out. */
void git_state_to_json(const struct git_state *g, bool with_diff, struct jsonw *w);
