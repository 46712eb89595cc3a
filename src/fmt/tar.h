#pragma once
/*
 * tar - pack a file or directory, and unpack an untrusted archive safely.
 *
 * Written: ustar with pax headers for long names.  Read: ustar, GNU long names
 * and pax paths; regular files and directories only; no absolute names, no
 * "..", no links; every file is created with O_EXCL|O_NOFOLLOW below the
 * destination's own dirfd.
 */
#include <stddef.h>
#include <stdint.h>
#include "base/str.h"

struct err;

/* Limits of one archive, packed or unpacked. */
#define TAR_MAX_ENTRIES 200000
#define TAR_MAX_BYTES (64ull << 30)

/* path is a file or a directory (its contents).  Order is sorted, owner and times are zero:
 * the same tree gives the same bytes.  Symlinks to regular files inside are stored as files;
 * other links are refused with their name. */
int tar_pack(const char *path, int out_fd, struct err *err);
/* The same without .git and what .gitignore and .regattaignore of each directory leave out (fmt/ignore.h); the second
 * is asked first, and that of the deeper directory.  *ret_left_out: names, of directories with all in them, that were met
 * and left out, .git not counted. */
int tar_pack_source(const char *path, int out_fd, size_t *ret_left_out, struct err *err);
/* The same, but only the given files of a directory, in the given order; names are relative to dir. */
int tar_pack_files(const char *dir, char *const *names, size_t n, int out_fd, struct err *err);
/* Reads in_fd up to the archive's end mark, perhaps a little further.  dest_dir is made if it is
 * missing.  After an error the files unpacked so far stay: the caller removes dest_dir. */
int tar_unpack(int in_fd, const char *dest_dir, struct err *err);
