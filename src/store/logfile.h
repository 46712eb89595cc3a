#pragma once
/*
 * logfile - the output of a node as a plain text file.
 *
 * It is only appended to, and opened below the run's logs directory by dirfd with O_NOFOLLOW.
 * The size of the file says how much has arrived, up to the limit of the log if it has one; what is
 * synced may be acknowledged.
 */
#include <stdbool.h>
#include <stdint.h>
#include "base/str.h"

struct err;
struct logfile;
struct logfile_pool;

/* Opens or creates the file.  Existing bytes are synced first, so that all of them may be
 * acknowledged.  The name of a new file is on disk after file_sync_dir(logs_dir), once for all
 * files of a run. */
int logfile_open(const char *logs_dir, const char *name, struct logfile **ret, struct err *err);
struct logfile *logfile_close(struct logfile *lf);
/*
 * The files of a pool have at most `max` descriptors.  Of those whose bytes are all synced the one
 * that was not used for the longest time gives its descriptor to another, and is opened again, at
 * the size that it had, when it grows.
 */
struct logfile_pool *logfile_pool_new(int max);
struct logfile_pool *logfile_pool_free(struct logfile_pool *p); /* after its files */
/* The open file belongs to the pool from now on; the logs_dir it was opened with has to stay in
 * memory.  NULL: to none. */
void logfile_share(struct logfile *lf, struct logfile_pool *p);
/* Bytes from `limit` on are taken and counted, and not stored.  They are known to have come up to
 * `received`. */
void logfile_limit(struct logfile *lf, uint64_t limit, uint64_t received);
/* True if no more bytes are stored. */
bool logfile_is_full(const struct logfile *lf);
/* Bytes that came, and how many of them are in the file. */
uint64_t logfile_size(const struct logfile *lf);
uint64_t logfile_stored(const struct logfile *lf);
uint64_t logfile_synced(const struct logfile *lf);
/* The descriptor; a file of a pool has one while some of its bytes are not synced. */
int logfile_fd(const struct logfile *lf);
int logfile_pread(const struct logfile *lf, void *p, size_t n, uint64_t offset, size_t *ret_n,
		  struct err *err);
/* Appends bytes that belong at `offset`: those that are stored already are skipped; a gap is
 * ERR_PROTOCOL.  Bytes beyond the limit need no sync.  ENOSPC is ERR_CAPACITY and leaves the file at its old size; so
 * is a pool whose descriptors all wait for a sync. */
int logfile_append(struct logfile *lf, uint64_t offset, struct str bytes, struct err *err);
/* On a worker thread: fdatasync of the descriptor.  Afterwards, on the loop, call
 * logfile_mark_synced() with the size at the submit. */
int logfile_sync_fd(int fd, struct err *err);
void logfile_mark_synced(struct logfile *lf, uint64_t size);

/* Opens any file of the logs directory, never through a link: a descriptor, or -1 and errno. */
int logfile_open_below(const char *logs_dir, const char *name, int flags);

/* Offset of the first byte of the last `lines` lines; reads the file in blocks from its end. */
int logfile_tail_offset(int fd, uint64_t lines, uint64_t *ret_offset, struct err *err);
/* The start of the line that the byte at offset is in; a carriage return ends a line too.  The
 * offset itself if the line is very long. */
uint64_t logfile_line_start(int fd, uint64_t offset);
/* True if the log exists, with its size; false also if it is not a regular file. */
bool logfile_exists(const char *logs_dir, const char *name, uint64_t *ret_size);
/* Opens the log read-only; ERR_NOT_FOUND if it is not a regular file. */
int logfile_open_read(const char *logs_dir, const char *name, int *ret_fd, uint64_t *ret_size,
		      struct err *err);
