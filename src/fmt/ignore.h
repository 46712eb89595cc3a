#pragma once
/*
 * ignore - which files of a tree are left out, by rules as in .gitignore.
 *
 * A line is a glob (base/path.h).  With a '/' in front or inside it is a path from the directory of its file, else
 * a name at any depth below that.  '/' at the end: directories only.  '!' in front takes back what an
 * earlier line left out.  '#' begins a comment.  The last line that matches decides.
 */
#include <stdbool.h>
#include <stddef.h>
#include "base/str.h"

struct ignore;

#define IGNORE_MAX_BYTES (1u << 20) /* of one file of rules */

struct ignore *ignore_new(void);
/* NULL is allowed.  Returns NULL. */
struct ignore *ignore_free(struct ignore *ig);
/* The text of a file in the directory `base`: "" or "a/b/". */
void ignore_add(struct ignore *ig, struct str text, const char *base);
/* Number of rules; ignore_cut() takes back those that were added after it was read. */
size_t ignore_count(const struct ignore *ig);
void ignore_cut(struct ignore *ig, size_t count);
/* path: from the top of the tree, without '/' at its end. */
bool ignore_matches(const struct ignore *ig, const char *path, bool is_dir);
