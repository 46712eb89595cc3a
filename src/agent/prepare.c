#include "agent/prepare.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "agent/environ.h"
#include "agent/probe.h"
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
#include "sys/netns.h"

#define DATA_MAX_FILES 1000000
#define MARK_FILE "prepared" /* digest of what work/ was made from */

bool prepare_is_long(const struct message_inputs *in)
{
	return in->source || in->ndata > 0;
}

char *prepare_cwd(const char *node_dir, const char *cwd)
{
	CLEANUP(freep) char *work = path_join(node_dir, LAYOUT_WORK);

	return path_join(work, cwd);
}

/* ---- files ---- */

static int unpack_source(const struct message_source *source, const char *dest, struct err *err)
{
	CLEANUP(close_fdp) int fd = open(source->path, O_RDONLY | O_CLOEXEC);
	uint8_t digest[SHA256_BYTES];
	char hex[2 * SHA256_BYTES + 1];
	uint64_t size;

	if (fd < 0)
		return err_errno(err, errno, "open source '%s'", source->path);
	if (sha256_fd(fd, digest, &size, err) < 0)
		return err_wrap(err, "read source '%s'", source->path);
	hex_encode(digest, sizeof(digest), hex);
	if (strcmp(hex, source->sha256) != 0)
		return err_set(err, ERR_INVALID,
			       "source '%s' is not what was sent: its sha256 is %s", source->path,
			       hex);
	if (lseek(fd, 0, SEEK_SET) < 0)
		return err_errno(err, errno, "rewind source '%s'", source->path);
	if (tar_unpack(fd, dest, err) < 0)
		return err_wrap(err, "unpack source");
	return 0;
}

static int copy_one(const char *from, const char *to, struct err *err)
{
	CLEANUP(freep) char *dir = xstrdup(to);
	char *slash = strrchr(dir, '/');

	if (slash && slash != dir) {
		*slash = '\0';
		if (file_mkdir_p(dir, 0777, err) < 0)
			return -1;
	}
	return file_copy(from, to, err);
}

static int copy_tree(const struct message_data *d, const char *dest, struct err *err)
{
	char **names;
	size_t n;
	int rc = 0;

	if (file_mkdir_p(dest, 0777, err) < 0 ||
	    file_list_tree(d->src, DATA_MAX_FILES, &names, &n, err) < 0)
		return -1;
	for (size_t i = 0; rc == 0 && i < n; i++) {
		if ((int64_t)(i % (size_t)d->shard_count) != d->shard_index)
			continue;
		CLEANUP(freep) char *from = path_join(d->src, names[i]);
		CLEANUP(freep) char *to = path_join(dest, names[i]);

		rc = copy_one(from, to, err);
	}
	file_list_free(names, n);
	return rc;
}

static int copy_data(const struct message_data *d, const char *work, struct err *err)
{
	struct stat st;

	if (!path_is_below(str_from(d->path)))
		return err_set(err, ERR_INVALID, "data path '%s' leaves the work directory",
			       d->path);
	if (strstr(d->src, "://"))
		return err_set(err, ERR_INVALID,
			       "data '%s' cannot be fetched on this engine; give a local path",
			       d->src);
	if (stat(d->src, &st) < 0)
		return err_errno(err, errno, "data '%s'", d->src);
	CLEANUP(freep) char *dest = path_join(work, d->path);

	if (S_ISDIR(st.st_mode)) {
		if (copy_tree(d, dest, err) < 0)
			return err_wrap(err, "data '%s'", d->src);
		return 0;
	}
	if (d->shard_count > 1)
		return err_set(err, ERR_INVALID,
			       "data '%s' is one file and cannot be sharded; give a directory",
			       d->src);
	if (copy_one(d->src, dest, err) < 0)
		return err_wrap(err, "data '%s'", d->src);
	return 0;
}

static void put_field(struct sha256 *s, const char *text)
{
	sha256_add(s, text, strlen(text) + 1);
}

/* What work/ is made from, as one digest. */
static void inputs_digest(const struct message_inputs *in, char out[static 2 * SHA256_BYTES + 1])
{
	struct sha256 *s = sha256_new();
	uint8_t digest[SHA256_BYTES];

	put_field(s, in->source ? in->source->sha256 : "");
	for (size_t i = 0; i < in->ndata; i++) {
		char shard[64];

		snprintf(shard, sizeof(shard), "%d/%d", (int)in->data[i].shard_index,
			 (int)in->data[i].shard_count);
		put_field(s, in->data[i].src);
		put_field(s, in->data[i].path);
		put_field(s, shard);
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

static int fill(const struct message_inputs *in, const char *dir, struct err *err)
{
	if (in->source && unpack_source(in->source, dir, err) < 0)
		return -1;
	for (size_t i = 0; i < in->ndata; i++)
		if (copy_data(&in->data[i], dir, err) < 0)
			return -1;
	return 0;
}

int prepare_files(const struct message_inputs *in, const char *node_dir, struct err *err)
{
	CLEANUP(freep) char *work = path_join(node_dir, LAYOUT_WORK);
	CLEANUP(freep) char *fresh = path_join(node_dir, WORK_NEW_DIR);
	CLEANUP(freep) char *mark = path_join(node_dir, MARK_FILE);
	char digest[2 * SHA256_BYTES + 1];

	if (in->output_dir[0] && file_mkdir_p(in->output_dir, 0700, err) < 0)
		return err_wrap(err, "make the output directory");
	if (!prepare_is_long(in)) {
		/* Without source and data the job runs in its cwd: no work directory is needed. */
		if (!in->cwd[0] && mkdir(work, 0777) < 0 && errno != EEXIST)
			return err_errno(err, errno, "make the work directory");
		return 0;
	}
	inputs_digest(in, digest);
	if (made_already(mark, work, digest))
		return 0;
	unlink(mark); /* the digest of the old work/ must not stand for a half-made new one */
	if (file_remove_tree(work, err) < 0 || file_remove_tree(fresh, err) < 0)
		return err_wrap(err, "clear the work directory");
	if (mkdir(fresh, 0777) < 0)
		return err_errno(err, errno, "make the work directory");
	if (fill(in, fresh, err) < 0)
		return -1;
	if (rename(fresh, work) < 0)
		return err_errno(err, errno, "put the work directory in place");
	return file_write_atomic(mark, str_from(digest), 0600, false, err);
}

/* ---- checks ---- */

static int check_port(const char *netns, const char *address, int port, struct err *err)
{
	CLEANUP(close_fdp) int fd = -1;
	struct sockaddr_storage sa;
	socklen_t len;
	int on = 1;

	if (!probe_address(address, port, &sa, &len))
		return err_set(err, ERR_INVALID, "'%s' is not an address", address);
	fd = netns_socket(netns, sa.ss_family, SOCK_STREAM | SOCK_CLOEXEC);
	if (fd < 0)
		return err_errno(err, errno, "make a socket");
	/* As servers do: only a listener counts, not the remains of old connections. */
	setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
	if (bind(fd, (struct sockaddr *)&sa, len) == 0)
		return 0;
	if (errno == EADDRINUSE)
		return err_set(err, ERR_CONFLICT, "port %d on %s is taken by another process", port,
			       address);
	if (errno == EACCES)
		return err_set(err, ERR_DENIED, "port %d on %s needs a privilege", port, address);
	return err_set(err, ERR_UNAVAILABLE, "port %d on %s cannot be used: %s", port, address,
		       strerror(errno));
}

int prepare_check(const struct message_inputs *in, const char *node_dir, const char *netns,
		  struct err *err)
{
	CLEANUP(freep) char *cwd = prepare_cwd(node_dir, in->cwd);
	CLEANUP(freep) char *file = NULL;
	struct stat st;

	if (stat(cwd, &st) < 0)
		return err_errno(err, errno, "work directory '%s'", cwd);
	if (!S_ISDIR(st.st_mode))
		return err_set(err, ERR_INVALID, "work directory '%s' is not a directory", cwd);
	if (child_find_command(in->argv0, in->path[0] ? in->path : ENVIRON_PATH, cwd, &file, err) <
	    0)
		return -1;
	return in->port ? check_port(netns, in->address, in->port, err) : 0;
}

int prepare_memory(const struct message_inputs *in, struct cgroup *cg, struct err *err)
{
	if (!in->memory)
		return 0;
	cgroup_make(cg, true);
	return cgroup_limit_memory(cg, in->memory, err);
}
