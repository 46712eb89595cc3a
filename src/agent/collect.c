#include "agent/collect.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/below.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "base/file.h"
#include "base/path.h"
#include "base/str.h"
#include "base/vec.h"

#define WILDCARDS "*?[\\"
#define JOBS_OWN 3 /* last directories of the output directory's path, which a job could replace */
#define CLOCK_STEP_MS 20	    /* the file system's clock may lag by this */
#define PARTIAL ".regatta-keep.tmp" /* for file systems without O_TMPFILE */

struct collector {
	int from; /* the work directory */
	int to;	  /* the output directory */
	const struct collect_options *o;
	struct collected *done;
	VEC(char *) links; /* names of links that matched */
	size_t unmatched;
	const char *first_unmatched; /* pattern */
	bool matched;		     /* a file matched the current pattern */
};

static void collector_release(struct collector *c)
{
	close_fdp(&c->from);
	close_fdp(&c->to);
	for (size_t i = 0; i < c->links.n; i++)
		free(c->links.v[i]);
	vec_release(&c->links);
}

/* ---- patterns ---- */

/* The directories before the first wildcard: only they need to be walked. */
static char *literal_part(const char *pattern)
{
	size_t n = strcspn(pattern, WILDCARDS);

	while (n > 0 && pattern[n - 1] != '/')
		n--;
	return xstrndup(pattern, n);
}

static bool is_plain(const char *pattern)
{
	return !pattern[strcspn(pattern, WILDCARDS)];
}

/* A plain name also stands for everything below it. */
static bool matches(const char *pattern, const char *name)
{
	size_t n = strlen(pattern);

	return path_match(pattern, name) ||
	       (is_plain(pattern) && strncmp(name, pattern, n) == 0 && name[n] == '/');
}

static bool matched_before(const char *const *patterns, size_t upto, const char *name)
{
	for (size_t i = 0; i < upto; i++)
		if (matches(patterns[i], name))
			return true;
	return false;
}

/* ---- the work directory ---- */

static void add_link(struct collector *c, const char *name)
{
	c->matched = true; /* the note names the link; the pattern needs no note of its own */
	for (size_t i = 0; i < c->links.n; i++)
		if (strcmp(c->links.v[i], name) == 0)
			return;
	*vec_push(&c->links) = xstrdup(name);
}

/* Open the directory `name` ("": the work directory) without following links; a link in its path is
 * noted.  -1: errno is set. */
static int open_dir(struct collector *c, const char *name)
{
	struct str rest = str_from(name);
	CLEANUP(close_fdp) int fd = openat(c->from, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	while (fd >= 0 && rest.p && rest.n > 0) {
		struct str part = str_cut(&rest, '/');
		CLEANUP(freep) char *dir = xstrndup(part.p, part.n);

		if (part.n == 0)
			continue;
		int below = openat(fd, dir, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
		int errnum = errno;

		if (below < 0 && below_is_link(fd, dir)) {
			CLEANUP(freep)
			char *link = xstrndup(name, (size_t)(part.p + part.n - name));

			add_link(c, link);
			errnum = ENOENT;
		}
		close_fdp(&fd);
		fd = below;
		errno = errnum == ENOTDIR ? ENOENT : errnum;
	}
	return TAKE_FD(fd);
}

/* Open the directory that contains the file `name`. */
static int open_parent(struct collector *c, const char *name)
{
	CLEANUP(freep) char *dir = xstrndup(name, (size_t)(path_base(name) - name));

	return open_dir(c, dir);
}

/* The directory to walk, ending with a slash; NULL if the pattern names one file or nothing. */
static char *walk_from(struct collector *c, const char *pattern)
{
	if (!is_plain(pattern))
		return literal_part(pattern);
	CLEANUP(close_fdp) int parent = open_parent(c, pattern);
	struct stat st;

	if (parent < 0 || fstatat(parent, path_base(pattern), &st, AT_SYMLINK_NOFOLLOW) < 0 ||
	    !S_ISDIR(st.st_mode))
		return NULL;
	return xasprintf("%s/", pattern);
}

/* ---- the output directory ---- */

/* A file without a name, so that a killed process leaves nothing. */
static int open_partial(const struct collector *c, int dir, bool *ret_named)
{
	int fd = openat(dir, ".", O_TMPFILE | O_WRONLY | O_CLOEXEC, 0600);

	*ret_named = fd < 0;
	if (fd >= 0)
		return fd;
	return openat(c->to, PARTIAL, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
}

static int give_name(const struct collector *c, int fd, bool named, int dir, const char *name)
{
	char self[64];

	if (named)
		return renameat(c->to, PARTIAL, dir, name);
	snprintf(self, sizeof(self), "/proc/self/fd/%d", fd);
	return linkat(AT_FDCWD, self, dir, name, AT_SYMLINK_FOLLOW);
}

/* ---- copying ---- */

static int copy_into(const struct collector *c, int from, int dir, const char *name, mode_t mode,
		     struct err *err)
{
	bool named;
	CLEANUP(close_fdp) int fd = open_partial(c, dir, &named);

	if (fd < 0)
		return err_errno(err, errno, "create '%s'", name);
	/* Without set-id bits: the copy belongs to the agent's user, whose rights they would give away. */
	if (file_copy_content(from, fd, err) < 0)
		err_wrap(err, "copy '%s'", name);
	else if (fchmod(fd, mode & 0777) < 0 || give_name(c, fd, named, dir, name) < 0)
		err_errno(err, errno, "create '%s'", name);
	else
		return 0;
	if (named)
		unlinkat(c->to, PARTIAL, 0);
	return -1;
}

static int keep_file(const struct collector *c, int parent, const char *name, const struct stat *st,
		     struct err *err)
{
	CLEANUP(close_fdp)
	int from = openat(parent, path_base(name), O_RDONLY | O_NONBLOCK | O_NOFOLLOW | O_CLOEXEC);

	if (from < 0)
		return err_errno(err, errno, "open '%s'", name);
	CLEANUP(close_fdp) int dir = below_enter_parent(c->to, name, err);

	if (dir < 0 || below_remove(dir, path_base(name), err) < 0 ||
	    copy_into(c, from, dir, path_base(name), st->st_mode, err) < 0)
		return -1;
	c->done->files++;
	c->done->bytes += (uint64_t)st->st_size;
	return 0;
}

/* Did the file change since the job's start, within the precision of the file system's clock? */
static bool is_new(const struct collector *c, const struct stat *st)
{
	int64_t changed_ms = (int64_t)st->st_ctim.tv_sec * 1000 + st->st_ctim.tv_nsec / 1000000;

	return c->o->since_ms == 0 || changed_ms + CLOCK_STEP_MS >= c->o->since_ms;
}

static int keep_name(struct collector *c, const char *name, struct err *err)
{
	CLEANUP(close_fdp) int parent = open_parent(c, name);
	struct stat st;

	if (parent < 0 || fstatat(parent, path_base(name), &st, AT_SYMLINK_NOFOLLOW) < 0)
		return errno == ENOENT ? 0 : err_errno(err, errno, "'%s'", name);
	if (!is_new(c, &st))
		return 0;
	c->matched = true;
	if (S_ISLNK(st.st_mode))
		add_link(c, name);
	return S_ISREG(st.st_mode) ? keep_file(c, parent, name, &st, err) : 0;
}

static int walk_pattern(struct collector *c, size_t which, struct err *err)
{
	const char *pattern = c->o->patterns[which];
	CLEANUP(freep) char *prefix = walk_from(c, pattern);

	if (!prefix) {
		c->matched = matched_before(c->o->patterns, which, pattern);
		return c->matched ? 0 : keep_name(c, pattern, err);
	}
	int top = open_dir(c, prefix);
	char **names = NULL;
	size_t n = 0;
	int rc = 0;

	if (top < 0)
		return errno == ENOENT ? 0 : err_errno(err, errno, "open '%s'", prefix);
	if (file_list_tree_and_links(top, COLLECT_MAX_FILES, &names, &n, err) < 0)
		return err_wrap(err, "list '%s'", prefix);
	for (size_t i = 0; rc == 0 && i < n; i++) {
		CLEANUP(freep) char *name = xasprintf("%s%s", prefix, names[i]);

		if (!matches(pattern, name))
			continue;
		if (matched_before(c->o->patterns, which, name))
			c->matched = true;
		else
			rc = keep_name(c, name, err);
	}
	file_list_free(names, n);
	return rc;
}

static int keep_pattern(struct collector *c, size_t which, struct err *err)
{
	c->matched = false;
	if (walk_pattern(c, which, err) < 0)
		return err_wrap(err, "keep '%s'", c->o->patterns[which]);
	if (!c->matched && c->unmatched++ == 0)
		c->first_unmatched = c->o->patterns[which];
	return 0;
}

static void note_unmatched(const struct collector *c)
{
	const char *what = c->o->since_ms ? "file that changed since the job's start" : "file";

	if (c->unmatched == 1)
		snprintf(c->done->note, sizeof(c->done->note), "keep: '%.100s' matches no %s",
			 c->first_unmatched, what);
	else if (c->unmatched > 1)
		snprintf(c->done->note, sizeof(c->done->note),
			 "keep: %zu patterns match no %s: '%.100s', ...", c->unmatched, what,
			 c->first_unmatched);
}

/* ---- links, after all files ---- */

/* Is `name` a directory in the outputs that no kept link replaces? */
static bool is_kept_dir(const struct collector *c, const char *name)
{
	struct stat st;

	return !below_is_link(c->from, name) &&
	       fstatat(c->to, name, &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISDIR(st.st_mode);
}

/* The target of the link `name`, relative to the work directory; the caller frees it.  NULL: it is
 * outside, or its path has another link. */
static char *link_target(const struct collector *c, const char *name, const char *text)
{
	struct str rest = str_from(text);
	size_t n = (size_t)(path_base(name) - name);
	CLEANUP(freep) char *out = xcalloc(1, n + strlen(text) + 2);

	n -= n > 0; /* without the slash */
	memcpy(out, name, n);
	size_t own = n; /* length of the part that is the link's own directory */

	if (text[0] == '/')
		return NULL;
	while (rest.p && rest.n > 0) {
		struct str part = str_cut(&rest, '/');

		if (part.n == 0 || str_is(part, "."))
			continue;
		if (n > own && !is_kept_dir(c, out))
			return NULL;
		if (str_is(part, "..")) {
			if (n == 0)
				return NULL;
			while (n > 0 && out[--n] != '/')
				;
			own = n < own ? n : own;
		} else {
			if (n > 0)
				out[n++] = '/';
			memcpy(out + n, part.p, part.n);
			n += part.n;
		}
		out[n] = '\0';
	}
	return TAKE_PTR(out);
}

/* False: the target is not kept. */
static bool keep_link(struct collector *c, const char *name)
{
	CLEANUP(close_fdp) int parent = open_parent(c, name);
	char text[PATH_MAX];
	ssize_t n = parent < 0 ? -1 : readlinkat(parent, path_base(name), text, sizeof(text) - 1);
	struct stat st;

	text[n < 0 ? 0 : n] = '\0';
	CLEANUP(freep) char *target = link_target(c, name, text);

	if (n <= 0 || !target || !target[0] || fstatat(c->to, target, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return false;
	CLEANUP(close_fdp) int dir = below_enter_parent(c->to, name, NULL);

	return dir >= 0 && below_remove(dir, path_base(name), NULL) == 0 &&
	       symlinkat(text, dir, path_base(name)) == 0;
}

static void note_links(const struct collector *c)
{
	size_t used = strlen(c->done->note);

	if (c->links.n > 0)
		snprintf(c->done->note + used, sizeof(c->done->note) - used,
			 "%s%zu symbolic link%s not kept, because what %s to is not kept: %.100s%s",
			 used ? "; " : "", c->links.n, c->links.n == 1 ? " was" : "s were",
			 c->links.n == 1 ? "it points" : "they point", c->links.v[0],
			 c->links.n == 1 ? "" : ", ...");
}

/* A link may point to another link: repeat until a pass keeps none. */
static void keep_links(struct collector *c)
{
	for (bool more = true; more;) {
		size_t left = 0;

		for (size_t i = 0; i < c->links.n; i++) {
			if (!keep_link(c, c->links.v[i])) {
				c->links.v[left++] = c->links.v[i];
				continue;
			}
			free(c->links.v[i]);
			c->done->files++;
		}
		more = left > 0 && left < c->links.n;
		c->links.n = left;
	}
	note_links(c);
}

/* Open the output directory without following links in the last JOBS_OWN directories of its path (the
 * run's, "outputs" and the node's), which the job could have replaced. */
static int open_output(const char *to, struct err *err)
{
	const char *below = to + strlen(to);

	for (int depth = 0; depth < JOBS_OWN && below > to; depth++)
		do
			below--;
		while (below > to && below[-1] != '/');
	CLEANUP(freep) char *top = xstrndup(to, (size_t)(below - to));
	struct str rest = str_from(below);

	if (top[0] && file_mkdir_p(top, 0777, err) < 0)
		return -1;
	CLEANUP(close_fdp)
	int fd = open(top[0] ? top : ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	while (fd >= 0 && rest.p && rest.n > 0) {
		struct str part = str_cut(&rest, '/');
		CLEANUP(freep) char *name = xstrndup(part.p, part.n);
		int next = below_enter(fd, name);

		close_fdp(&fd);
		fd = next;
	}
	if (fd < 0)
		return err_errno(err, errno, "open the output directory");
	return TAKE_FD(fd);
}

int collect_files(const char *from, const struct collect_options *o, const char *to,
		  struct collected *ret, struct err *err)
{
	CLEANUP(collector_release)
	struct collector c = {.from = open(from, O_RDONLY | O_DIRECTORY | O_CLOEXEC),
			      .to = -1,
			      .o = o,
			      .done = ret};

	*ret = (struct collected){0};
	if (c.from < 0 && errno != ENOENT)
		return err_errno(err, errno, "open the work directory");
	c.to = open_output(to, err);
	if (c.to < 0)
		return -1;
	unlinkat(c.to, PARTIAL, 0);
	for (size_t i = 0; i < o->n; i++) {
		if (!path_is_below(str_from(o->patterns[i])))
			return err_set(err, ERR_INVALID,
				       "keep pattern '%s' leaves the work directory",
				       o->patterns[i]);
		if (c.from >= 0 && keep_pattern(&c, i, err) < 0)
			return -1;
	}
	note_unmatched(&c);
	keep_links(&c);
	return 0;
}

void collect_remove_partial(const char *to)
{
	CLEANUP(freep) char *path = path_join(to, PARTIAL);

	unlink(path);
}
