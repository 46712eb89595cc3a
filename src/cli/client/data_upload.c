#include "cli/client/data_upload.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/buf.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "base/file.h"
#include "base/path.h"
#include "cli/client/api.h"
#include "cli/client/target.h"
#include "cli/command/job_input.h"
#include "driver/input_find.h"
#include "fmt/jsonw.h"
#include "fmt/tar.h"
#include "net/digest.h"

#define ASK_MS 30000

int blob_temporary(struct api *api, struct err *err)
{
	const char *dir = api->target->home;

	return file_mkdir_p(dir, 0700, err) < 0 ? -1 : file_temporary(dir, err);
}

int blob_upload(struct api *api, int fd, const char *sha256, uint64_t size, struct err *err)
{
	char path[128], own[64];

	snprintf(path, sizeof(path), "/api/v1/blobs/%s", sha256);
	if (api_call(api, "HEAD", path, (struct str){0}, ASK_MS, NULL, err) == 0)
		return 0;
	if (err->kind != ERR_NOT_FOUND)
		return -1;
	/* Opened again for a file offset of its own: several threads may read the file. */
	snprintf(own, sizeof(own), "/proc/self/fd/%d", fd);
	CLEANUP(close_fdp) int from = open(own, O_RDONLY | O_CLOEXEC);
	if (from < 0)
		return err_errno(err, errno, "open the file to upload");
	return api_upload(api, path, from, size, err);
}

/* Uploads the file and appends its digest to the list. */
static int upload_fd(struct api *api, int fd, const char *want, struct jsonw *w, struct err *err)
{
	char hex[SHA256_TEXT];
	uint64_t size;

	if (lseek(fd, 0, SEEK_SET) < 0)
		return err_errno(err, errno, "rewind");
	if (sha256_fd_hex(fd, hex, &size, err) < 0)
		return -1;
	if (want && strcmp(want, hex) != 0)
		return err_set(err, ERR_INVALID, "its sha256 is %s, not what the job file says",
			       hex);
	jsonw_z(w, hex);
	return blob_upload(api, fd, hex, size, err);
}

/* The files whose place in the sorted list is `which` modulo `count`, as engine local does it. */
static int upload_shard(struct api *api, const char *dir, char **names, size_t n, size_t which,
			size_t count, struct jsonw *w, struct err *err)
{
	CLEANUP(freep) char **part = xcalloc(n / count + 1, sizeof(*part));
	CLEANUP(close_fdp) int fd = blob_temporary(api, err);
	size_t k = 0;

	for (size_t i = which; i < n; i += count)
		part[k++] = names[i];
	if (fd < 0 || tar_pack_files(dir, part, k, fd, err) < 0)
		return -1;
	return upload_fd(api, fd, NULL, w, err);
}

static int upload_dir(struct api *api, const char *dir, size_t shards, struct jsonw *w,
		      struct err *err)
{
	char **names;
	size_t n;
	int rc = 0;

	if (file_list_tree(dir, TAR_MAX_ENTRIES, &names, &n, err) < 0)
		return -1;
	for (size_t i = 0; rc == 0 && i < shards; i++)
		rc = upload_shard(api, dir, names, n, i, shards, w, err);
	file_list_free(names, n);
	return rc;
}

static int upload_entry(struct api *api, const struct job_input *in, const struct data_spec *d,
			struct jsonw *w, struct err *err)
{
	CLEANUP(freep) char *path = path_join(in->job->base_dir, d->src);
	CLEANUP(close_fdp) int fd = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
	size_t shards = d->shard ? (size_t)in->plan.crew.ncounted : 1;
	struct stat st;
	int rc;

	if (fd < 0 || fstat(fd, &st) < 0)
		return err_errno(err, errno, "open '%.120s'", path);
	bool dir = S_ISDIR(st.st_mode);

	if ((dir && d->sha256) || (!dir && (d->shard || !S_ISREG(st.st_mode))))
		return err_set(err, ERR_INVALID, "%s",
			       dir		      ? "sha256 is for one file"
			       : !S_ISREG(st.st_mode) ? "it is no file and no directory"
						      : "one file cannot be sharded");
	jsonw_open(w, '{');
	jsonw_kbool(w, "tar", dir);
	jsonw_key(w, "sha256");
	jsonw_open(w, '[');
	rc = dir ? upload_dir(api, path, shards, w, err) : upload_fd(api, fd, d->sha256, w, err);
	jsonw_close(w);
	jsonw_close(w);
	return rc;
}

/* What nodes fetch elsewhere: finds its objects, so that all nodes get the same, and uploads the list. */
static int upload_list(struct api *api, const struct job_input *in, const struct data_spec *d,
		       struct jsonw *w, uint64_t *ret_bytes, struct err *err)
{
	CLEANUP(close_fdp) int fd = blob_temporary(api, err);
	struct input_found found;

	if (fd < 0 || job_input_find(in, d, fd, &found, err) < 0)
		return -1;
	jsonw_open(w, '{');
	jsonw_kz(w, "from", found.from);
	jsonw_kint(w, "objects", (int64_t)found.objects);
	jsonw_kint(w, "bytes", (int64_t)found.bytes);
	jsonw_key(w, "list");
	int rc = upload_fd(api, fd, NULL, w, err);

	jsonw_close(w);
	*ret_bytes = found.largest_shard;
	return rc;
}

int data_upload(struct api *api, const struct job_input *in, struct buf *ret_json,
		uint64_t *ret_bytes, struct err *err)
{
	const struct data_spec *v;
	size_t n = job_data(in->job, in->a, &v);
	struct jsonw w;

	*ret_bytes = 0;
	if (n == 0)
		return 0;
	jsonw_init(&w, ret_json);
	jsonw_open(&w, '[');
	for (size_t i = 0; i < n; i++) {
		uint64_t bytes = 0;
		int rc = 0;

		if (input_is_fetched(v[i].src))
			rc = upload_list(api, in, &v[i], &w, &bytes, err);
		else if (plan_shares_files(in->job))
			jsonw_null(&w);
		else
			rc = upload_entry(api, in, &v[i], &w, err);
		if (rc < 0)
			return err_wrap(err, "%s '%.80s'",
					strcmp(v[i].path, ".") == 0 ? "source" : "data", v[i].src);
		*ret_bytes += bytes;
	}
	jsonw_close(&w);
	return ret_json->overflow ? err_set(err, ERR_INVALID, "the data has too many parts") : 0;
}
