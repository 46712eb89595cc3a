#include "agent/shim/spool.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/err.h"

#define PIPE_BYTES (256 * 1024) /* wanted; the system's limit may be smaller */
#define STEP_BYTES (1024 * 1024)
#define STEPS 8 /* per call, then other streams are served */
#define DROP_BYTES 16384

void spool_names(enum stream s, char file[static 16], char fifo[static 16])
{
	int process = stream_process(s);

	if (process > 0)
		snprintf(file, 16, "%s.p%d", stream_name(s), process);
	else
		snprintf(file, 16, "%s", stream_name(s));
	snprintf(fifo, 16, "%.10s.fifo", file);
}

int spool_make(int dirfd, int n, struct err *err)
{
	for (int s = 0; s < n; s++) {
		char file[16], fifo[16];

		spool_names((enum stream)s, file, fifo);
		if (mkfifoat(dirfd, fifo, 0600) < 0 && errno != EEXIST)
			return err_errno(err, errno, "make '%s'", fifo);
	}
	return 0;
}

void spool_empty(int dirfd, int n)
{
	for (int s = 0; s < n; s++) {
		char file[16], fifo[16];
		struct stat st;

		spool_names((enum stream)s, file, fifo);
		if (fstatat(dirfd, file, &st, AT_SYMLINK_NOFOLLOW) < 0 || st.st_size == 0)
			continue;
		int fd = openat(dirfd, file, O_WRONLY | O_TRUNC | O_CLOEXEC | O_NOFOLLOW);

		if (fd >= 0)
			close(fd);
	}
}

/* Open the spool file and set its size; `extra` may have O_CREAT. */
static int open_file(struct spool *sp, int extra)
{
	char file[16], fifo[16];
	struct stat st;

	spool_names(sp->stream, file, fifo);
	sp->file = openat(sp->dirfd, file, O_WRONLY | O_CLOEXEC | O_NOFOLLOW | extra, 0600);
	if (sp->file < 0 || fstat(sp->file, &st) < 0)
		return -1;
	sp->size = (uint64_t)st.st_size;
	return 0;
}

int spool_open(struct spool *sp, int dirfd, enum stream s, struct err *err)
{
	int mode = s == STREAM_METRICS ? O_RDWR : O_RDONLY;
	char file[16], fifo[16];

	spool_names(s, file, fifo);
	*sp = (struct spool){
		.stream = s, .dirfd = dirfd, .fifo = -1, .file = -1, .full_ms = SPOOL_FULL_MS};
	sp->fifo = openat(dirfd, fifo, mode | O_NONBLOCK | O_CLOEXEC | O_NOFOLLOW);
	if (sp->fifo < 0)
		return err_errno(err, errno, "open '%s'", fifo);
	if (open_file(sp, 0) < 0 && errno != ENOENT) {
		err_errno(err, errno, "open '%s'", file);
		spool_close(sp);
		return -1;
	}
	/* May be refused when the user has many large pipes; the FIFO then keeps its smaller size. */
	fcntl(sp->fifo, F_SETPIPE_SZ, PIPE_BYTES);
	return 0;
}

void spool_close(struct spool *sp)
{
	close_fdp(&sp->fifo);
	close_fdp(&sp->file);
	sp->fifo = sp->file = -1;
}

void spool_check_left(struct spool *sp)
{
	int spare[2];

	/* The metrics FIFO has no end of file; with an open spool file, splice() finds the end. */
	if (sp->stream == STREAM_METRICS || sp->file >= 0 || pipe2(spare, O_CLOEXEC) < 0)
		return;
	sp->eof = tee(sp->fifo, spare[1], 1, SPLICE_F_NONBLOCK) == 0;
	close(spare[0]);
	close(spare[1]);
}

/* Read bytes that cannot be written, and count them as a gap. */
static enum spool_state drop(struct spool *sp)
{
	char bin[DROP_BYTES];

	for (;;) {
		ssize_t n = read(sp->fifo, bin, sizeof(bin));

		if (n > 0) {
			if (sp->open.bytes == 0)
				sp->open = (struct gap){sp->stream, sp->size, 0};
			sp->open.bytes += (uint64_t)n;
			return SPOOL_MORE;
		}
		if (n < 0 && errno == EINTR)
			continue;
		return n == 0 ? SPOOL_EOF : SPOOL_FULL;
	}
}

static enum spool_state cannot_write(struct spool *sp, int errnum, int64_t now_ms)
{
	sp->why = errnum;
	if (!sp->full_since_ms)
		sp->full_since_ms = now_ms;
	/* ENOENT: the directory was removed, so waiting is useless. */
	if (errnum != ENOENT && now_ms - sp->full_since_ms < sp->full_ms)
		return SPOOL_FULL;
	return drop(sp);
}

/* Make the file when the first bytes arrive: many jobs write nothing to most of their streams. */
static enum spool_state first_bytes(struct spool *sp, int64_t now_ms)
{
	struct pollfd p = {.fd = sp->fifo, .events = POLLIN};

	if (poll(&p, 1, 0) <= 0)
		return SPOOL_IDLE;
	if (!(p.revents & POLLIN))
		return SPOOL_EOF;
	return open_file(sp, O_CREAT) < 0 ? cannot_write(sp, errno, now_ms) : SPOOL_MORE;
}

static enum spool_state step(struct spool *sp, int64_t now_ms)
{
	if (sp->file < 0)
		return first_bytes(sp, now_ms);
	loff_t at = (loff_t)sp->size;
	ssize_t n = splice(sp->fifo, NULL, sp->file, &at, STEP_BYTES,
			   SPLICE_F_NONBLOCK | SPLICE_F_MOVE);

	if (n > 0) {
		if (sp->open.bytes > 0) {
			sp->closed = sp->open;
			sp->open.bytes = 0;
		}
		sp->size += (uint64_t)n;
		sp->full_since_ms = 0;
		return SPOOL_MORE;
	}
	if (n == 0)
		return SPOOL_EOF;
	if (errno == EINTR)
		return SPOOL_MORE;
	if (errno == EAGAIN)
		return SPOOL_IDLE;
	return cannot_write(sp, errno, now_ms);
}

enum spool_state spool_pump(struct spool *sp, int64_t now_ms, uint64_t *ret_moved)
{
	enum spool_state state = SPOOL_EOF;
	uint64_t before = sp->size;

	for (int i = 0; !sp->eof && i < STEPS; i++) {
		state = step(sp, now_ms);
		sp->eof = state == SPOOL_EOF;
		if (state != SPOOL_MORE || sp->closed.bytes > 0)
			break;
	}
	*ret_moved = sp->size - before;
	return state;
}

bool spool_take_gap(struct spool *sp, bool at_end, struct gap *ret)
{
	struct gap *g = sp->closed.bytes > 0 ? &sp->closed : at_end ? &sp->open : NULL;

	if (!g || g->bytes == 0)
		return false;
	*ret = *g;
	g->bytes = 0;
	return true;
}
