/*
 * Output files that nodes of other machines upload.
 *
 * A file arrives in pieces, which are gathered in uploads/ of the run, in a file named by node,
 * digest and size; the pieces survive lost connections and restarts of the master.  When all
 * bytes have arrived and have the promised digest, the file is renamed into outputs/<node>/, and
 * only then is the node told that it may delete its own copy.
 *
 * Nodes are not trusted: names stay below the node's directory, no link is made or followed, and
 * a run has limits.
 */
#include "master/api/outputs.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/arena.h"
#include "base/below.h"
#include "base/buf.h"
#include "base/cleanup.h"
#include "base/file.h"
#include "base/log.h"
#include "base/path.h"
#include "fmt/jsonw.h"
#include "link/layout.h"
#include "master/api/api.h"
#include "master/api/previous.h"
#include "master/live_run.h"
#include "master/round.h"
#include "master/runs.h"
#include "master/upkeep/trash.h"
#include "net/digest.h"
#include "sys/pools.h"
#include "sys/worker.h"

#define UPLOADS "uploads"  /* directory in that of the run, until the run has ended */
#define TOTAL_FILE "total" /* "FILES BYTES" uploaded so far */
#define UPLOAD_THREADS 2   /* threads that compute digests */
#define OUTPUT_PATH_MAX 2048
#define OUTPUT_PATH_DEPTH 64

/* The file that a request is about. */
struct output {
	struct live_run *lr;
	int rank;
	struct str path;
	uint64_t size, offset;
	struct str sha256;
	uint64_t mode;
	int64_t attempt;
};

/* ---- reading the request ---- */

static bool has_control(struct str s)
{
	for (size_t i = 0; i < s.n; i++)
		if ((unsigned char)s.p[i] < ' ' || s.p[i] == 0x7f)
			return true;
	return false;
}

bool output_path_ok(struct str path)
{
	struct str rest = path;
	int depth = 0;

	if (path.n > OUTPUT_PATH_MAX || !path_is_below(path) || has_control(path))
		return false;
	while (rest.p && depth <= OUTPUT_PATH_DEPTH) {
		if (str_is(str_cut(&rest, '/'), "."))
			return false;
		depth++;
	}
	return depth <= OUTPUT_PATH_DEPTH;
}

static int read_numbers(const struct url_query *q, struct output *o, struct err *err)
{
	uint64_t attempt;

	if (!str_to_u64(query_get(q, "size", STR("")), &o->size) || o->size > OUTPUT_MAX_BYTES)
		return err_set(err, ERR_INVALID, "'size' must be a number of bytes");
	if (!str_to_u64(query_get(q, "offset", STR("0")), &o->offset) || o->offset > o->size)
		return err_set(err, ERR_INVALID, "'offset' must be within the size");
	if (!str_to_u64(query_get(q, "mode", STR("420")), &o->mode) || o->mode > 0777)
		return err_set(err, ERR_INVALID, "'mode' must be permissions, as a number");
	if (!str_to_u64(query_get(q, "attempt", STR("1")), &attempt) || attempt < 1 ||
	    attempt > (uint64_t)o->lr->core->nodes[o->rank].attempt)
		return err_set(err, ERR_INVALID,
			       "'attempt' must be the number of an attempt that was started");
	o->attempt = (int64_t)attempt;
	return 0;
}

/* The caller is the node that the path names: node_caller() in auth.c has checked it. */
static int read_output(struct api_call *c, struct output *o, struct err *err)
{
	const struct url_query *q = &c->req->query;

	*o = (struct output){.lr = map_get(c->m->runs, c->params[0])};
	o->rank = o->lr ? run_find_rank(o->lr, c->params[1]) : -1;
	if (o->rank < 0)
		return err_set(err, ERR_DENIED, "no such run or node");
	o->path = query_get(q, "path", STR(""));
	o->sha256 = query_get(q, "sha256", STR(""));
	if (!output_path_ok(o->path))
		return err_set(err, ERR_INVALID,
			       "'path' must be the name of a file below the outputs, without '..'");
	if (!blob_name_ok(o->sha256))
		return err_set(err, ERR_INVALID, "'sha256' must be 64 hex digits");
	return read_numbers(q, o, err);
}

/* ---- paths ---- */

/* The node's name, with the number of the attempt if it is not the first. */
static const char *label(const struct output *o, struct arena *a)
{
	const char *name = o->lr->plan.crew.members[o->rank].name;

	return o->attempt > 1 ? arena_printf(a, "%s" LAYOUT_ATTEMPT_SUFFIX, name, (int)o->attempt)
			      : name;
}

char *outputs_uploads_dir(const struct live_run *lr)
{
	return path_join(lr->dir, UPLOADS);
}

static char *part_path(const struct output *o, struct arena *a)
{
	return xasprintf("%s/" UPLOADS "/%s.%.*s.%" PRIu64, o->lr->dir, label(o, a),
			 STR_ARG(o->sha256), o->size);
}

/* ---- limits ---- */

static void load_total(struct live_run *lr)
{
	CLEANUP(freep) char *path = xasprintf("%s/" UPLOADS "/" TOTAL_FILE, lr->dir);
	CLEANUP(buf_release) struct buf text = {0};

	if (lr->uploads.known)
		return;
	lr->uploads.known = true;
	buf_init(&text, 64);
	if (file_read(path, &text, NULL) < 0)
		return;
	struct str rest = buf_str(&text), files = str_cut(&rest, ' ');

	if (!str_to_u64(files, &lr->uploads.files) || !rest.p ||
	    !str_to_u64(rest, &lr->uploads.bytes))
		lr->uploads.files = lr->uploads.bytes = 0;
}

/* Adds an upload to the totals, with its full size at its first piece, or takes it away again. */
static void count(struct live_run *lr, bool more, uint64_t size)
{
	CLEANUP(freep) char *path = xasprintf("%s/" UPLOADS "/" TOTAL_FILE, lr->dir);
	char text[64];

	if (more) {
		lr->uploads.files++;
		lr->uploads.bytes += size;
	} else {
		lr->uploads.files -= lr->uploads.files > 0;
		lr->uploads.bytes -= size < lr->uploads.bytes ? size : lr->uploads.bytes;
	}
	snprintf(text, sizeof(text), "%" PRIu64 " %" PRIu64, lr->uploads.files, lr->uploads.bytes);
	/* not synced: only the limits depend on it */
	file_write_atomic(path, str_from(text), 0600, false, NULL);
}

static int check_limits(const struct output *o, struct err *err)
{
	const struct live_run *lr = o->lr;

	if (lr->uploads.files >= OUTPUT_MAX_FILES)
		return err_set(err, ERR_QUOTA, "a run may keep %d files", OUTPUT_MAX_FILES);
	if (lr->uploads.bytes + o->size > OUTPUT_MAX_BYTES)
		return err_set(err, ERR_QUOTA, "a run may keep %llu GiB", OUTPUT_MAX_BYTES >> 30);
	return 0;
}

/* Tells the core that the node waits for room on the disk, or does not any more. */
static void tell_room(const struct output *o, bool room)
{
	if (o->lr->core->nodes[o->rank].no_room == room)
		run_event(o->lr, &(struct event){.kind = room ? EV_NODE_ROOM : EV_NODE_NO_ROOM,
						 .index = o->rank});
}

static int check_room(const struct output *o, struct err *err)
{
	bool full = store_disk_full(o->lr->m->store);

	tell_room(o, !full);
	return full ? err_set(err, ERR_CAPACITY, "the disk of the master is full: try again later")
		    : 0;
}

/* ---- one piece ---- */

static int open_part(const struct output *o, const char *path, struct err *err)
{
	int fd = open(path, O_WRONLY | O_NOFOLLOW | O_CLOEXEC);

	if (fd >= 0 || errno != ENOENT)
		return fd >= 0 ? fd : err_errno(err, errno, "open '%s'", path);
	CLEANUP(freep) char *dir = outputs_uploads_dir(o->lr);

	if (check_limits(o, err) < 0 || file_mkdir_p(dir, 0700, err) < 0)
		return -1;
	fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (fd < 0)
		return err_errno(err, errno, "create '%s'", path);
	count(o->lr, true, o->size);
	return fd;
}

static int check_piece(const struct api_call *c, const struct output *o, int fd, struct err *err)
{
	uint64_t length = 0;
	struct stat st;

	str_to_u64(http_header(c->x, "content-length"), &length);
	if (length > o->size - o->offset)
		return err_set(err, ERR_INVALID, "the piece is longer than the file");
	/* The node may have a newer connection while the older one is not yet known to be dead. */
	if (flock(fd, LOCK_EX | LOCK_NB) < 0)
		return err_set(err, ERR_UNAVAILABLE,
			       "another piece of this file is being received");
	if (fstat(fd, &st) < 0)
		return err_errno(err, errno, "stat a partial upload");
	if ((uint64_t)st.st_size != o->offset)
		return err_set(err, ERR_CONFLICT,
			       "%lld bytes have arrived, and the piece begins at %" PRIu64,
			       (long long)st.st_size, o->offset);
	return lseek(fd, 0, SEEK_END) < 0 ? err_errno(err, errno, "seek in a partial upload") : 0;
}

int api_output_open(struct api_call *c, struct err *err)
{
	struct output o;

	if (read_output(c, &o, err) < 0)
		return -1;
	load_total(o.lr);
	if (check_room(&o, err) < 0)
		return -1;
	CLEANUP(freep) char *path = part_path(&o, c->arena);
	CLEANUP(close_fdp) int fd = open_part(&o, path, err);

	return fd < 0 || check_piece(c, &o, fd, err) < 0 ? -1 : TAKE_FD(fd);
}

/* ---- the complete file ---- */

/* The digest of a large file takes long: threads of the pool "uploads" compute it. */
struct output_work {
	struct http_exchange *x;
	struct live_run *lr;
	char *outputs; /* directory of the outputs of all nodes */
	char *uploads; /* directory of the uploads */
	char *node;    /* name of the node's directory in it */
	char *path;    /* path of the file below that */
	char *part;
	char sha256[65];
	uint64_t size, have;
	mode_t mode;
	bool done, same; /* done: the file has its final name; same: it had it before */
	struct err err;
};

static struct output_work *work_new(struct api_call *c, const struct output *o)
{
	struct output_work *w = xcalloc(1, sizeof(*w));

	w->x = c->x;
	w->lr = o->lr;
	w->outputs = path_join(o->lr->dir, LAYOUT_OUTPUTS);
	w->uploads = outputs_uploads_dir(o->lr);
	w->node = xstrdup(label(o, c->arena));
	w->path = xstrndup(o->path.p, o->path.n);
	w->part = part_path(o, c->arena);
	snprintf(w->sha256, sizeof(w->sha256), "%.*s", STR_ARG(o->sha256));
	w->size = o->size;
	w->mode = (mode_t)o->mode;
	o->lr->busy++;
	return w;
}

static void work_free(struct output_work *w)
{
	struct live_run *lr = w->lr;

	free(w->outputs);
	free(w->uploads);
	free(w->node);
	free(w->path);
	free(w->part);
	free(w);
	lr->busy--;
	live_run_done(lr);
}

/* Opens the directory of the node's outputs; -1 if it is missing and `make` is false. */
static int node_dir(const struct output_work *w, bool make)
{
	CLEANUP(close_fdp)
	int all = open(w->outputs, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

	if (all < 0)
		return -1;
	return make ? below_enter(all, w->node)
		    : openat(all, w->node, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
}

static bool has_digest(int fd, const struct output_work *w)
{
	char hex[SHA256_TEXT];
	struct stat st;

	if (fstat(fd, &st) < 0 || !S_ISREG(st.st_mode) || (uint64_t)st.st_size != w->size ||
	    sha256_fd_hex(fd, hex, NULL, NULL) < 0)
		return false;
	return strcmp(hex, w->sha256) == 0;
}

static bool is_there(const struct output_work *w)
{
	CLEANUP(close_fdp) int top = node_dir(w, false);
	CLEANUP(close_fdp) int fd = top < 0 ? -1 : below_open(top, w->path);

	return fd >= 0 && has_digest(fd, w);
}

/* Syncs the directories of the file, which may be new. */
static int sync_names(const struct output_work *w, struct err *err)
{
	CLEANUP(freep) char *path = xasprintf("%s/%s/%s", w->outputs, w->node, w->path);
	size_t top = strlen(w->outputs);

	for (;;) {
		char *slash = strrchr(path, '/');

		*slash = '\0';
		if ((size_t)(slash - path) < top)
			return 0;
		if (file_sync_dir(path, err) < 0)
			return -1;
	}
}

static int give_name(struct output_work *w, int part, struct err *err)
{
	CLEANUP(close_fdp) int top = node_dir(w, true);
	CLEANUP(close_fdp) int dir = top < 0 ? -1 : below_enter_parent(top, w->path, err);

	if (top < 0)
		return err_errno(err, errno, "open the outputs of '%s'", w->node);
	if (dir < 0)
		return -1;
	/* The bytes are synced before the name exists, because a name promises the whole file. */
	if (fchmod(part, w->mode) < 0 || fsync(part) < 0 ||
	    renameat(AT_FDCWD, w->part, dir, path_base(w->path)) < 0)
		return err_errno(err, errno, "store '%s'", w->path);
	return sync_names(w, err);
}

/* The next attempt may want the file on another machine. */
static void add_to_list(const struct output_work *w)
{
	previous_add(w->uploads, w->node,
		     &(struct previous_file){w->path, w->size, w->sha256, w->mode});
}

static void put_work(void *arg, const struct deadline *d)
{
	struct output_work *w = arg;
	CLEANUP(close_fdp) int part = open(w->part, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);

	(void)d; /* no time limit: the file may be large */
	if (part < 0) {
		err_errno(&w->err, errno, "open '%s'", w->part);
		return;
	}
	if (!has_digest(part, w)) {
		err_set(&w->err, ERR_INVALID, "the bytes of '%.100s' have another SHA-256",
			w->path);
		unlink(w->part);
		return;
	}
	/* The file was sent again because an answer was lost: the first one stays. */
	w->same = is_there(w);
	if (w->same)
		unlink(w->part);
	else if (give_name(w, part, &w->err) < 0)
		return;
	w->done = true;
	add_to_list(w);
}

static void answer(struct output_work *w)
{
	char text[96];

	snprintf(text, sizeof(text), "{\"done\":%s,\"have\":%" PRIu64 "}\n",
		 w->done ? "true" : "false", w->done ? w->size : w->have);
	http_reply(w->x, 200, "application/json", str_from(text));
}

static void put_done(void *arg, enum err_kind how)
{
	struct output_work *w = arg;

	if (how != ERR_NONE)
		err_set(&w->err, ERR_UNAVAILABLE, "the master is about to stop");
	else if (!file_exists(w->part) && (w->same || !w->done))
		count(w->lr, false, w->size);
	if (w->err.kind != ERR_NONE)
		api_reply_error(w->x, &w->err);
	else
		answer(w);
	work_free(w);
}

static struct workers *upload_threads(struct master *m)
{
	return pools_get(m->pools, "uploads", UPLOAD_THREADS);
}

int api_output_put(struct api_call *c, struct err *err)
{
	uint64_t length = 0;
	struct output o;

	if (read_output(c, &o, err) < 0)
		return -1;
	str_to_u64(http_header(c->x, "content-length"), &length);
	struct output_work *w = work_new(c, &o);

	w->have = o.offset + length;
	if (w->have == o.size) {
		workers_submit(upload_threads(c->m), put_work, put_done, w, -1);
		return 0;
	}
	answer(w);
	work_free(w);
	return 0;
}

/* ---- how much has arrived ---- */

static void state_work(void *arg, const struct deadline *d)
{
	struct output_work *w = arg;
	struct stat st;

	(void)d;
	w->done = is_there(w);
	if (w->done) /* the master may have stopped before it did so */
		add_to_list(w);
	if (!w->done && lstat(w->part, &st) == 0)
		w->have = (uint64_t)st.st_size;
}

static void state_done(void *arg, enum err_kind how)
{
	struct output_work *w = arg;

	if (how == ERR_NONE) {
		answer(w);
	} else {
		err_set(&w->err, ERR_UNAVAILABLE, "the master is about to stop");
		api_reply_error(w->x, &w->err);
	}
	work_free(w);
}

int api_output_state(struct api_call *c, struct err *err)
{
	struct output o;

	if (read_output(c, &o, err) < 0)
		return -1;
	workers_submit(upload_threads(c->m), state_work, state_done, work_new(c, &o), -1);
	return 0;
}

void outputs_forget(struct live_run *lr)
{
	CLEANUP(freep) char *dir = outputs_uploads_dir(lr);
	CLEANUP(freep) char *name = xasprintf("%s." UPLOADS, lr->row.id);
	struct err err = {0};

	if (file_exists(dir) && trash_put(lr->m->trash, dir, name, &err) < 0)
		log_warn("run %s: %s", lr->row.id, err.msg);
}
