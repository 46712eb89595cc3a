#include "cli/client/download.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "base/file.h"
#include "base/hex.h"
#include "cli/client/api.h"
#include "net/digest.h"
#include "net/http_client.h"

#define CHUNK (256 * 1024)
#define READ_MS 60000
#define OWN_FDS "/proc/self/fd"

/* Reads to the end of the answer; the caller ends the digest. */
static int copy_stream(struct api *api, int fd, struct download *d, struct sha256 *sum,
		       struct err *err)
{
	CLEANUP(freep) char *chunk = xmalloc(CHUNK);

	for (;;) {
		size_t n;
		if (http_stream_read(api->http, chunk, CHUNK, READ_MS, api->stop, &n, err) < 0 ||
		    (n && file_write_all(fd, chunk, n, err) < 0)) {
			api_drop(api);
			return -1;
		}
		if (n == 0)
			return 0;
		sha256_add(sum, chunk, n);
		d->bytes += n;
	}
}

int download_to(struct api *api, const char *url, int fd, struct download *d, struct err *err)
{
	uint8_t digest[SHA256_BYTES];
	char text[SHA256_TEXT];

	if (api_stream(api, url, err) < 0)
		return -1;
	struct sha256 *sum = sha256_new();
	int rc = copy_stream(api, fd, d, sum, err);

	sha256_end(sum, digest);
	hex_encode(digest, sizeof(digest), text);
	if (rc == 0 && d->sha256 && strcmp(text, d->sha256) != 0)
		return err_set(err, ERR_IO,
			       "its bytes have another SHA-256 than the run's record says");
	return rc;
}

/* A file without a name, of which nothing stays if this process is killed; one with the name `part` where the
 * file system has no such files. */
static int open_part(const struct download *d, const char *part, bool *ret_named)
{
	mode_t mode = d->executable ? 0777 : 0666;
	int fd = file_exists(OWN_FDS) ? openat(d->dir, ".", O_TMPFILE | O_WRONLY | O_CLOEXEC, mode)
				      : -1;

	*ret_named = fd < 0;
	unlinkat(d->dir, part, 0); /* left by a process that had this number */
	return fd >= 0 ? fd
		       : openat(d->dir, part, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW,
				mode);
}

static int name_part(const struct download *d, int fd, const char *part)
{
	CLEANUP(freep) char *own = xasprintf(OWN_FDS "/%d", fd);

	return linkat(AT_FDCWD, own, d->dir, part, AT_SYMLINK_FOLLOW);
}

/* A pipe or a device is never replaced: for root that would be /dev/null. */
static int check_place(const struct download *d, struct err *err)
{
	struct stat st;

	if (fstatat(d->dir, d->name, &st, AT_SYMLINK_NOFOLLOW) < 0 || S_ISREG(st.st_mode) ||
	    S_ISLNK(st.st_mode))
		return 0;
	return err_set(err, ERR_CONFLICT,
		       "'%.150s' in the destination is no regular file: choose another one",
		       d->name);
}

int download_file(struct api *api, const char *url, struct download *d, struct err *err)
{
	if (check_place(d, err) < 0)
		return -1;
	CLEANUP(freep) char *part = xasprintf(".%.200s.%d.part", d->name, (int)getpid());
	bool named;
	CLEANUP(close_fdp) int fd = open_part(d, part, &named);

	if (fd < 0)
		return err_errno(err, errno, "make a file for '%s'", d->name);
	if (download_to(api, url, fd, d, err) == 0) {
		if ((named || name_part(d, fd, part) == 0) &&
		    renameat(d->dir, part, d->dir, d->name) == 0)
			return 0;
		err_errno(err, errno, "make '%s'", d->name);
	}
	unlinkat(d->dir, part, 0);
	return err_wrap(err, "'%s'", d->name);
}
