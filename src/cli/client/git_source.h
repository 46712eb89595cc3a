#pragma once
/*
 * git_source - a source in a git repository: "git+https://host/repository.git@rev".
 *
 * The git of this machine fetches it, with the user's own settings and keys; it asks nothing.  The
 * revision is a branch, a tag or a commit; without one it is the repository's HEAD.  Submodules are
 * not fetched.
 */
struct arena;
struct err;

/* *ret_dir: a new directory in `home` with the files, without those of git; the caller frees the name and
 * removes it.  *ret_pinned: the source with the commit in place of the revision (in the arena). */
int git_source_fetch(const char *source, const char *home, struct arena *a, char **ret_dir,
		     const char **ret_pinned, struct err *err);
