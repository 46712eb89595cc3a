#pragma once
/* file - whole files, directories and trees.  Only the given path itself may be a link. */
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>
#include "base/str.h"

struct err;
struct buf;

/* Appends the whole file; larger than the buffer's maximum is ERR_CAPACITY. */
int file_read(const char *path, struct buf *out, struct err *err);
/* The same for a regular file of a directory; a link is refused. */
int file_read_at(int dirfd, const char *name, struct buf *out, struct err *err);
/* Temporary file, fsync if durable, rename: the old or the new content, never half. */
int file_write_atomic(const char *path, struct str content, mode_t mode, bool durable,
		      struct err *err);
/* In place, the old content is lost first: for a file that no other process reads before it is complete. */
int file_write(const char *path, struct str content, mode_t mode, struct err *err);
/* Retries EINTR and short writes. */
int file_write_all(int fd, const void *p, size_t n, struct err *err);
/* Up to n bytes, fewer only at the end of the file. */
int file_pread_full(int fd, void *p, size_t n, int64_t off, size_t *ret_n, struct err *err);
int file_mkdir_p(const char *path, mode_t mode, struct err *err);
/* An unlinked file in a directory, open for reading and writing. */
int file_temporary(const char *dir, struct err *err);
/* Makes the directory that a path is in, with the modes of the umask. */
int file_make_parent(const char *path, struct err *err);
int file_sync_dir(const char *path, struct err *err);
/* Remove a file or tree, symlinks not followed; absent is fine. */
int file_remove_tree(const char *path, struct err *err);
bool file_exists(const char *path);
/* Copy a regular file (copy_file_range where possible), permissions kept, set-id bits not. */
int file_copy(const char *from, const char *to, struct err *err);
/* The same between two open files, the second one empty.  Holes stay holes. */
int file_copy_content(int from, int to, struct err *err);
/* Every regular file below dir, names relative to it, sorted; at most `max` of them. */
int file_list_tree(const char *dir, size_t max, char ***ret_names, size_t *ret_n, struct err *err);
/* The same, symbolic links included, below an open directory; closes dir. */
int file_list_tree_and_links(int dir, size_t max, char ***ret_names, size_t *ret_n,
			     struct err *err);
void file_list_free(char **names, size_t n);
/* Bytes of a file, or of all files below a directory; what cannot be read counts as 0. */
int64_t file_tree_bytes(const char *path);
