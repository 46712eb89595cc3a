#pragma once
/*
 * logfile - a node's output as a plain file that less can read.
 *
 * Appended at its end only; opened below the run's logs directory by dirfd with
 * O_NOFOLLOW.  The file's size is the truth about what has arrived; what was
 * synced may be acknowledged.
 */
#include <stdbool.h>
#include <stdint.h>
#include "base/str.h"

struct err;
struct logfile;

/* Finds or makes it.  What is in it is synced first, so that all of it may be acknowledged.
 * The name of a new file is on disk after file_sync_dir(logs_dir), once for all files of a run. */
int logfile_open(const char *logs_dir, const char *name, struct logfile **ret, struct err *err);
struct logfile *logfile_close(struct logfile *lf);
uint64_t logfile_size(const struct logfile *lf);
uint64_t logfile_synced(const struct logfile *lf);
int logfile_fd(const struct logfile *lf);
/* Bytes that belong at `offset`: what is stored already is skipped; a hole is ERR_PROTOCOL.
 * ENOSPC is ERR_CAPACITY and leaves the file at its old size (nothing half written counts). */
int logfile_append(struct logfile *lf, uint64_t offset, struct str bytes, struct err *err);
/* Worker thread: fdatasync of the descriptor; then, on the loop,
 * logfile_mark_synced(size at submit). */
int logfile_sync_fd(int fd, struct err *err);
void logfile_mark_synced(struct logfile *lf, uint64_t size);

/* Any file of the logs directory, never through a link: a descriptor, or -1 and errno. */
int logfile_open_below(const char *logs_dir, const char *name, int flags);

/* Reading, for the API: offset of the first byte of the last `lines` lines (file of any size,
 * block-wise from the end). */
int logfile_tail_offset(int fd, uint64_t lines, uint64_t *ret_offset, struct err *err);
/* Is there one, and how long is it?  false if not a regular file is there. */
bool logfile_exists(const char *logs_dir, const char *name, uint64_t *ret_size);
/* Opens read-only below logs_dir; ERR_NOT_FOUND if it is not a regular file there. */
int logfile_open_read(const char *logs_dir, const char *name, int *ret_fd, uint64_t *ret_size,
		      struct err *err);
