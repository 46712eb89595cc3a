/*
 * Source archives, addressed by their SHA-256.  An upload goes to a file of its
 * own and gets its name only after its digest was checked.
 */
#include "master/api.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/file.h"
#include "base/hex.h"
#include "base/path.h"
#include "net/digest.h"

static bool is_sha256(struct str s)
{
	return s.n == 64 && strspn(s.p, "0123456789abcdef") == 64;
}

static char *blob_path(const struct master *m, struct str sha256, const char *suffix)
{
	return xasprintf("%s/blobs/%.*s%s", m->home, STR_ARG(sha256), suffix);
}

int api_blob_head(struct api_call *c, struct err *err)
{
	if (!is_sha256(c->params[0]))
		return err_set(err, ERR_INVALID, "a blob's name is 64 hex digits");
	CLEANUP(freep) char *path = blob_path(c->m, c->params[0], "");
	if (!file_exists(path))
		return err_set(err, ERR_NOT_FOUND, "no such blob");
	http_reply(c->x, 200, "application/octet-stream", STR(""));
	return 0;
}

int api_blob_open(struct master *m, struct http_exchange *x, struct str sha256, struct err *err)
{
	(void)x;
	if (!is_sha256(sha256))
		return err_set(err, ERR_INVALID, "a blob's name is 64 hex digits");
	CLEANUP(freep) char *dir = path_join(m->home, "blobs");
	CLEANUP(freep) char *path = blob_path(m, sha256, ".part");
	if (file_mkdir_p(dir, 0700, err) < 0)
		return -1;
	unlink(path); /* of an upload that was cut */
	int fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	return fd >= 0 ? fd : err_errno(err, errno, "create '%s'", path);
}

int api_blob_put(struct api_call *c, struct err *err)
{
	CLEANUP(freep) char *part = blob_path(c->m, c->params[0], ".part");
	CLEANUP(freep) char *path = blob_path(c->m, c->params[0], "");
	CLEANUP(close_fdp) int fd = open(part, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
	uint8_t digest[SHA256_BYTES];
	char hex[65];
	uint64_t size;

	if (fd < 0)
		return err_errno(err, errno, "open '%s'", part);
	if (sha256_fd(fd, digest, &size, err) < 0)
		return -1;
	hex_encode(digest, sizeof(digest), hex);
	if (!str_is(c->params[0], hex)) {
		unlink(part);
		return err_set(err, ERR_INVALID,
			       "the bytes have another SHA-256 than their name says");
	}
	if (rename(part, path) < 0)
		return err_errno(err, errno, "rename '%s'", part);
	http_reply(c->x, 201, "application/json", STR("{}\n"));
	return 0;
}
