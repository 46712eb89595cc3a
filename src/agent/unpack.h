#pragma once
/*
 * unpack - unpack an archive by its first bytes: tar, tar.gz, tar.xz, tar.bz2, tar.zst or zip.
 *
 * Whatever it is, it comes out of a program of the node as a tar, which fmt/tar.h unpacks: so one place makes
 * sure that nothing is written outside `dest`.  Links are refused.
 */
struct err;

/* The file at fd, from its beginning.  dest is made if it is missing; after an error it is incomplete. */
int unpack_archive(int fd, const char *dest, struct err *err);
