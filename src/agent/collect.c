#include "agent/collect.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>

#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "base/file.h"
#include "base/path.h"
#include "base/str.h"

#define WILDCARDS "*?[\\"

/* The directories in front of the first wildcard: nothing above them needs to be walked. */
static char *literal_part(const char *pattern)
{
	size_t n = strcspn(pattern, WILDCARDS);

	while (n > 0 && pattern[n - 1] != '/')
		n--;
	return xstrndup(pattern, n);
}

static int copy_one(const char *from_dir, const char *name, const char *to_dir, uint64_t *bytes,
		    struct err *err)
{
	CLEANUP(freep) char *from = path_join(from_dir, name);
	CLEANUP(freep) char *to = path_join(to_dir, name);
	CLEANUP(freep) char *parent = xstrdup(to);
	struct stat st;

	*strrchr(parent, '/') = '\0';
	if (lstat(from, &st) < 0)
		return err_errno(err, errno, "'%s'", name);
	if (file_mkdir_p(parent, 0777, err) < 0)
		return -1;
	if (file_remove_tree(to, err) < 0 || file_copy(from, to, err) < 0)
		return -1;
	*bytes += (uint64_t)st.st_size;
	return 0;
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

/* Where to walk, with a slash at its end; NULL if the pattern is the name of one file, or of nothing. */
static char *walk_from(const char *from, const char *pattern)
{
	CLEANUP(freep) char *path = path_join(from, pattern);
	struct stat st;

	if (!is_plain(pattern))
		return literal_part(pattern);
	if (lstat(path, &st) < 0 || !S_ISDIR(st.st_mode))
		return NULL;
	return xasprintf("%s/", pattern);
}

/* Only regular files count. */
static int collect_name(const char *from, const char *name, const char *to, uint64_t *files,
			uint64_t *bytes, struct err *err)
{
	CLEANUP(freep) char *path = path_join(from, name);
	struct stat st;

	if (lstat(path, &st) < 0 || !S_ISREG(st.st_mode))
		return 0;
	if (copy_one(from, name, to, bytes, err) < 0)
		return -1;
	(*files)++;
	return 0;
}

static int collect_pattern(const char *from, const char *const *patterns, size_t which,
			   const char *to, uint64_t *files, uint64_t *bytes, struct err *err)
{
	const char *pattern = patterns[which];
	CLEANUP(freep) char *prefix = walk_from(from, pattern);

	if (!prefix)
		return matched_before(patterns, which, pattern)
			       ? 0
			       : collect_name(from, pattern, to, files, bytes, err);
	CLEANUP(freep) char *top = path_join(from, prefix);
	char **names = NULL;
	size_t n = 0;
	int rc = 0;

	if (!file_exists(top))
		return 0;
	if (file_list_tree(top, COLLECT_MAX_FILES, &names, &n, err) < 0)
		return -1;
	for (size_t i = 0; rc == 0 && i < n; i++) {
		CLEANUP(freep) char *name = xasprintf("%s%s", prefix, names[i]);

		if (!matches(pattern, name) || matched_before(patterns, which, name))
			continue;
		rc = copy_one(from, name, to, bytes, err);
		if (rc == 0)
			(*files)++;
	}
	file_list_free(names, n);
	return rc;
}

int collect_files(const char *from, const char *const *patterns, size_t n, const char *to,
		  uint64_t *ret_files, uint64_t *ret_bytes, struct err *err)
{
	*ret_files = *ret_bytes = 0;
	for (size_t i = 0; i < n; i++) {
		if (!path_is_below(str_from(patterns[i])))
			return err_set(err, ERR_INVALID,
				       "keep pattern '%s' leaves the work directory", patterns[i]);
		if (collect_pattern(from, patterns, i, to, ret_files, ret_bytes, err) < 0)
			return err_wrap(err, "keep '%s'", patterns[i]);
	}
	return 0;
}
