#include "agent/prepare.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "agent/config.h"
#include "agent/environ.h"
#include "agent/fetch.h"
#include "agent/image.h"
#include "agent/objects.h"
#include "agent/places.h"
#include "agent/previous.h"
#include "agent/unpack.h"
#include "base/alloc.h"
#include "base/buf.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "base/file.h"
#include "base/hex.h"
#include "base/path.h"
#include "fmt/tar.h"
#include "link/layout.h"
#include "net/digest.h"
#include "sys/cgroup.h"
#include "sys/child.h"

#define DATA_MAX_FILES 1000000
#define MARK_FILE "prepared" /* digest of what work/ was made from */

bool prepare_has_work(const struct message_inputs *in)
{
	return in->source || in->image_source || in->ndata > 0;
}

bool prepare_is_long(const struct message_inputs *in)
{
	return prepare_has_work(in) || in->previous > 0 || in->image;
}

/* ---- files ---- */

static int check_digest(const char *path, const char *sha256, struct err *err)
{
	CLEANUP(close_fdp) int fd = open(path, O_RDONLY | O_CLOEXEC);
	char hex[SHA256_TEXT];

	if (fd < 0)
		return err_errno(err, errno, "open '%s'", path);
	if (sha256_fd_hex(fd, hex, NULL, err) < 0)
		return -1;
	if (strcmp(hex, sha256) != 0)
		return err_set(err, ERR_INVALID, "wrong content: its sha256 is %s", hex);
	return 0;
}

/* The inputs of a node, and where they go. */
struct supply {
	const struct message_inputs *in;
	const struct agent_config *cfg;
	const char *node_dir;
};

static int unpack_blob(const struct supply *p, const struct message_blob *b, const char *dest,
		       struct err *err)
{
	CLEANUP(close_fdp) int fd = fetch_open(p->cfg, p->node_dir, b, err);

	return fd < 0 || tar_unpack(fd, dest, err) < 0 ? -1 : 0;
}

static int copy_one(const char *from, const char *to, struct err *err)
{
	return file_make_parent(to, err) < 0 ? -1 : file_copy(from, to, err);
}

static int copy_tree(const struct message_data *d, const char *src, const char *dest,
		     struct err *err)
{
	char **names;
	size_t n;
	int rc = 0;

	if (file_mkdir_p(dest, 0777, err) < 0 ||
	    file_list_tree(src, DATA_MAX_FILES, &names, &n, err) < 0)
		return -1;
	for (size_t i = 0; rc == 0 && i < n; i++) {
		if ((int64_t)(i % (size_t)d->shard_count) != d->shard_index)
			continue;
		CLEANUP(freep) char *from = path_join(src, names[i]);
		CLEANUP(freep) char *to = path_join(dest, names[i]);

		rc = copy_one(from, to, err);
	}
	file_list_free(names, n);
	return rc;
}

static int copy_file(const struct message_data *d, const char *src, const char *dest,
		     struct err *err)
{
	if (d->shard_count > 1)
		return err_set(err, ERR_INVALID,
			       "a single file cannot be sharded; give a directory");
	if (copy_one(src, dest, err) < 0)
		return -1;
	return d->sha256 ? check_digest(dest, d->sha256, err) : 0;
}

/* Copy files of the master's machine, on which this agent runs too. */
static int copy_src(const struct message_data *d, const char *base_dir, const char *dest,
		    struct err *err)
{
	struct stat st;

	if (!base_dir)
		return err_set(err, ERR_UNAVAILABLE, "the master's files are not on this machine");
	CLEANUP(freep) char *src = path_join(base_dir, d->src);

	if (stat(src, &st) < 0)
		return err_errno(err, errno, "open '%s'", src);
	return S_ISDIR(st.st_mode) ? copy_tree(d, src, dest, err) : copy_file(d, src, dest, err);
}

/* Copied, not linked: the job may change the file, and other nodes share the cache. */
static int copy_blob(const struct supply *p, const struct message_blob *b, const char *dest,
		     struct err *err)
{
	CLEANUP(close_fdp) int from = fetch_open(p->cfg, p->node_dir, b, err);

	if (from < 0 || file_make_parent(dest, err) < 0)
		return -1;
	CLEANUP(close_fdp)
	int to = open(dest, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0666);

	if (to < 0)
		return err_errno(err, errno, "create '%s'", dest);
	return file_copy_content(from, to, err);
}

static int unpack_all(const struct supply *p, const struct message_data *d, const char *dest,
		      struct err *err)
{
	for (size_t i = 0; i < d->nblobs; i++)
		if (unpack_blob(p, &d->blobs[i], dest, err) < 0)
			return -1;
	return 0;
}

static int check_md5(int fd, const char *md5, struct err *err)
{
	uint8_t digest[MD5_BYTES];
	char hex[2 * MD5_BYTES + 1];

	if (md5_fd(fd, digest, err) < 0)
		return -1;
	hex_encode(digest, sizeof(digest), hex);
	if (strcmp(hex, md5) != 0)
		return err_set(err, ERR_INVALID, "wrong content: its md5 is %s", hex);
	return 0;
}

static int check_md5_of(const char *path, const char *md5, struct err *err)
{
	CLEANUP(close_fdp) int fd = open(path, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);

	return fd < 0 ? err_errno(err, errno, "open '%s'", path) : check_md5(fd, md5, err);
}

static int open_archive(const struct supply *p, const struct message_data *d, struct err *err)
{
	if (d->list)
		return objects_open_one(p->cfg, p->node_dir, d, err);
	if (!d->src)
		return d->tar ? err_set(err, ERR_INVALID,
					"unpack: it is a directory, not an archive")
			      : fetch_open(p->cfg, p->node_dir, d->blobs, err);
	if (!p->cfg->base_dir)
		return err_set(err, ERR_UNAVAILABLE, "the master's files are not on this machine");
	CLEANUP(freep) char *src = path_join(p->cfg->base_dir, d->src);
	struct stat st;

	if (d->sha256 && check_digest(src, d->sha256, err) < 0)
		return -1;
	if (stat(src, &st) == 0 && !S_ISREG(st.st_mode))
		return err_set(err, ERR_INVALID, "unpack: it is not a file");
	int fd = open(src, O_RDONLY | O_CLOEXEC);

	return fd < 0 ? err_errno(err, errno, "open '%s'", src) : fd;
}

static int unpack_file(const struct supply *p, const struct message_data *d, const char *dest,
		       struct err *err)
{
	CLEANUP(close_fdp) int fd = open_archive(p, d, err);

	if (fd < 0 || (d->md5 && check_md5(fd, d->md5, err) < 0))
		return -1;
	return unpack_archive(fd, dest, err);
}

static int put_data(const struct supply *p, const struct message_data *d, const char *work,
		    struct err *err)
{
	CLEANUP(freep) char *dest = path_join(work, d->path);
	bool elsewhere = d->path[0] == '/' && place_is_own_machine(p->cfg);
	int rc;

	if (!path_is_below(str_from(d->path + elsewhere)))
		return err_set(err, ERR_INVALID, "data path '%s' leaves the work directory",
			       d->path);
	if (elsewhere)
		unlink(dest); /* a file that an earlier try has left; the work directory is a new one */
	if (d->unpack)
		rc = unpack_file(p, d, dest, err);
	else if (d->list)
		rc = objects_put(p->cfg, p->node_dir, d, dest, err);
	else if (d->src)
		rc = copy_src(d, p->cfg->base_dir, dest, err);
	else
		rc = d->tar ? unpack_all(p, d, dest, err) : copy_blob(p, d->blobs, dest, err);
	if (rc == 0 && d->md5 && !d->unpack)
		rc = check_md5_of(dest, d->md5, err);
	if (rc == 0)
		return 0;
	return strcmp(d->path, ".") == 0 ? err_wrap(err, "source")
					 : err_wrap(err, "data '%s'", d->path);
}

static void put_field(struct sha256 *s, const char *text)
{
	sha256_add(s, text, strlen(text) + 1);
}

/* A digest of everything that work/ is made from. */
static void inputs_digest(const struct message_inputs *in, char out[static 2 * SHA256_BYTES + 1])
{
	struct sha256 *s = sha256_new();
	uint8_t digest[SHA256_BYTES];

	if (in->source)
		put_field(s, in->source->sha256);
	if (in->image && in->image_source) {
		put_field(s, in->image);
		put_field(s, in->image_source);
	}
	for (size_t i = 0; i < in->ndata; i++) {
		const struct message_data *d = &in->data[i];
		char shard[64];

		snprintf(shard, sizeof(shard), "%d/%d %d", (int)d->shard_index, (int)d->shard_count,
			 d->tar + 2 * d->unpack);
		put_field(s, d->src ? d->src : d->list ? d->list : "");
		put_field(s, d->path);
		put_field(s, shard);
		for (size_t k = 0; k < d->nblobs; k++)
			put_field(s, d->blobs[k].sha256);
	}
	sha256_end(s, digest);
	hex_encode(digest, sizeof(digest), out);
}

static bool made_already(const char *mark, const char *work, const char *digest)
{
	struct buf text;
	bool same;

	buf_init(&text, 2 * SHA256_BYTES);
	same = file_exists(work) && file_read(mark, &text, NULL) == 0 &&
	       str_is(buf_str(&text), digest);
	buf_release(&text);
	return same;
}

static int fill(const struct supply *p, const char *dir, struct err *err)
{
	const struct message_inputs *in = p->in;

	if (in->source && unpack_blob(p, in->source, dir, err) < 0)
		return err_wrap(err, "source");
	if (in->image && in->image_source && image_copy_out(in, p->node_dir, dir, err) < 0)
		return err_wrap(err, "source");
	for (size_t i = 0; i < in->ndata; i++)
		if (put_data(p, &in->data[i], dir, err) < 0)
			return -1;
	return 0;
}

static int make_work(const struct supply *p, const char *work, struct err *err)
{
	CLEANUP(freep) char *fresh = path_join(p->node_dir, WORK_NEW_DIR);
	CLEANUP(freep) char *mark = path_join(p->node_dir, MARK_FILE);
	char digest[2 * SHA256_BYTES + 1];

	inputs_digest(p->in, digest);
	if (made_already(mark, work, digest))
		return 0;
	unlink(mark); /* the old digest must not vouch for an incomplete new work/ */
	if (file_remove_tree(work, err) < 0 || file_remove_tree(fresh, err) < 0)
		return err_wrap(err, "clear the work directory");
	if (mkdir(fresh, 0777) < 0)
		return err_errno(err, errno, "make the work directory");
	if (fill(p, fresh, err) < 0)
		return -1;
	if (rename(fresh, work) < 0)
		return err_errno(err, errno, "put the work directory in place");
	fetch_drop_own_cache(p->cfg, p->node_dir);
	return file_write_atomic(mark, str_from(digest), 0600, false, err);
}

/* On a full disk the cache makes room, once. */
static int make_work_with_room(const struct supply *p, const char *work, struct err *err)
{
	int rc = make_work(p, work, err);

	if (rc == 0 || err->code != ENOSPC)
		return rc;
	fetch_empty_cache(p->cfg);
	*err = (struct err){0};
	return make_work(p, work, err);
}

int prepare_files(const struct message_inputs *in, const struct agent_config *cfg,
		  const char *node_dir, struct err *err)
{
	CLEANUP(freep) char *output = place_output(cfg, node_dir, 1);
	CLEANUP(freep) char *work = place_work(node_dir);

	if (file_mkdir_p(output, 0700, err) < 0)
		return err_wrap(err, "make the output directory");
	if (in->image && image_prepare(in, cfg, node_dir, err) < 0)
		return -1;
	if (in->previous > 0 && previous_fetch(cfg, node_dir, in->previous, err) < 0)
		return -1;
	if (prepare_has_work(in))
		return make_work_with_room(&(struct supply){in, cfg, node_dir}, work, err);
	/* With base_dir and without inputs the job runs in the directory of its job file. */
	if (!cfg->base_dir && mkdir(work, 0777) < 0 && errno != EEXIST)
		return err_errno(err, errno, "make the work directory");
	return 0;
}

/* ---- checks ---- */

int prepare_check(const struct message_inputs *in, const char *cwd, struct err *err)
{
	CLEANUP(freep) char *file = NULL;
	struct stat st;

	if (stat(cwd, &st) < 0)
		return err_errno(err, errno, "work directory '%s'", cwd);
	if (!S_ISDIR(st.st_mode))
		return err_set(err, ERR_INVALID, "work directory '%s' is not a directory", cwd);
	if (in->image)
		return 0;
	return child_find_command(in->argv0, in->path[0] ? in->path : ENVIRON_PATH, cwd, &file,
				  err);
}

int prepare_memory(const struct message_inputs *in, struct cgroup *cg, struct err *err)
{
	if (!in->memory || in->image) /* a container has a limit of its own */
		return 0;
	cgroup_make(cg, true);
	return cgroup_limit_memory(cg, in->memory, err);
}
