#include "agent/setup.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "agent/attempt/expand_start.h"
#include "agent/shim/spool.h"
#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/file.h"
#include "base/path.h"
#include "base/str.h"
#include "link/layout.h"

#define GRACE_MS 5000
#define SHOWN 100 /* bytes of a command in the cause of a failure */
#define COPY_BYTES 65536
#define END_BYTES 512 /* of a step's errors, which have their last line */

int setup_init(struct setup *s, struct loop *l, const struct agent_config *cfg, const char *boot_id,
	       const char *node_dir, const struct attempt_events *ev, void *ctx, struct err *err)
{
	*s = (struct setup){.cfg = *cfg, .dir = path_join(node_dir, LAYOUT_SETUP)};
	/* On the machine's own network: a step fetches things, which an isolated node cannot. */
	s->cfg.netns = s->cfg.hosts = NULL;
	s->cfg.boot =
		""; /* so that a claim is synced: a step must not run twice after a crash either */
	attempt_init(&s->at, l, &s->cfg, boot_id, ev, ctx);
	return attempt_find(&s->at, s->dir, err);
}

void setup_release(struct setup *s)
{
	if (s->dir)
		attempt_release(&s->at);
	free(s->dir);
	s->dir = NULL;
}

/* The command is the first line of the step's output. */
static int write_head(const struct setup *s, int no, const char *line, struct err *err)
{
	CLEANUP(freep) char *dir = attempt_dir(s->dir, no);
	CLEANUP(freep) char *head = xasprintf("+ %s\n", line);
	char name[16], fifo[16];

	spool_names(STREAM_OUT, name, fifo);
	CLEANUP(freep) char *path = path_join(dir, name);

	return file_mkdir_p(dir, 0700, err) < 0 ? -1 : file_write(path, str_from(head), 0600, err);
}

static int64_t time_left(struct setup *s, int64_t limit_ms)
{
	int64_t now = clock_boot_ms();

	if (limit_ms == 0)
		return 0;
	if (!s->until_ms)
		s->until_ms = now + limit_ms;
	return s->until_ms > now ? s->until_ms - now : 1;
}

static int begin(struct setup *s, const struct setup_plan *p, int no, struct err *err)
{
	const struct setup_step *step = &p->steps[no - 1];
	struct start_texts none = {0};
	struct message_start m = {
		.attempt = no,
		.rank = -1,
		.argv = (const char **)(uintptr_t)step->argv,
		.env = p->env,
		.nenv = p->nenv,
		.cwd = p->cwd,
		.grace_ms = GRACE_MS,
		.deadline_ms = time_left(s, p->limit_ms),
	};

	if (write_head(s, no, step->line, err) < 0)
		return -1;
	attempt_start(&s->at, s->dir, &m, &none, NULL);
	return 0;
}

static int open_spool(int dirfd, enum stream stream, int flags)
{
	char name[16], fifo[16];

	spool_names(stream, name, fifo);
	return openat(dirfd, name, flags | O_CLOEXEC | O_NOFOLLOW, 0600);
}

/* Bytes of the step's stream; 0 if it has none. */
static uint64_t open_step(const struct setup *s, int no, enum stream stream, int *ret_fd)
{
	CLEANUP(freep) char *dir = attempt_dir(s->dir, no);
	CLEANUP(close_fdp) int dirfd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
	struct stat st;

	*ret_fd = dirfd < 0 ? -1 : open_spool(dirfd, stream, O_RDONLY);
	return *ret_fd < 0 || fstat(*ret_fd, &st) < 0 ? 0 : (uint64_t)st.st_size;
}

/* The last line that the step has written to its standard error: mostly its reason. */
static struct str last_error(const struct setup *s, char room[static END_BYTES])
{
	int fd;
	uint64_t size = open_step(s, s->at.no, STREAM_ERR, &fd);
	CLEANUP(close_fdp) int from = fd;
	int64_t at = size > END_BYTES ? (int64_t)(size - END_BYTES) : 0;
	size_t n = 0;

	if (size == 0 || file_pread_full(from, room, END_BYTES, at, &n, NULL) < 0)
		return STR("");
	return str_last_line((struct str){room, n});
}

/* Why the last step has not ended well.  False if it has. */
static bool explain(const struct setup *s, const struct setup_plan *p, struct err *err)
{
	const struct exit_report *e = &s->at.exit;
	size_t i = (size_t)s->at.no - 1;
	const char *line = i < p->n ? p->steps[i].line : "";
	char span[32], room[END_BYTES];

	clock_format_span(p->limit_ms, span);
	if (s->at.other_boot)
		err_set(err, ERR_UNAVAILABLE,
			"setup '%.*s' was cut short: the machine has rebooted", SHOWN, line);
	else if (e->kind == ERR_TIMEOUT)
		err_set(err, ERR_TIMEOUT, "setup '%.*s' was not done within %s (timeouts.setup)",
			SHOWN, line, span);
	else if (e->kind != ERR_NONE)
		err_set(err, e->kind, "setup '%.*s': %s", SHOWN, line, e->reason);
	else if (e->signal)
		err_set(err, ERR_INVALID, "setup '%.*s' was killed by signal %d", SHOWN, line,
			e->signal);
	else if (e->code != 0) {
		struct str said = last_error(s, room);

		err_set(err, ERR_INVALID, "setup '%.*s' failed with exit code %d%s%.*s", SHOWN,
			line, e->code, said.n ? ": " : "", STR_ARG(said));
	}
	return err->kind != ERR_NONE;
}

enum setup_state setup_advance(struct setup *s, const struct setup_plan *p, struct err *err)
{
	for (;;) {
		if (attempt_is_live(&s->at))
			return SETUP_RUNS;
		if (s->at.no > 0 && explain(s, p, err))
			return SETUP_FAILED;
		if ((size_t)s->at.no >= p->n)
			return SETUP_DONE;
		if (begin(s, p, s->at.no + 1, err) < 0)
			return SETUP_FAILED;
	}
}

/* ---- output ---- */

static int copy_from(int from, uint64_t at, int to, struct err *err)
{
	char bytes[COPY_BYTES];

	for (;;) {
		ssize_t n = pread(from, bytes, sizeof(bytes), (off_t)at);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return n < 0 ? err_errno(err, errno, "read the output of setup") : 0;
		if (file_write_all(to, bytes, (size_t)n, err) < 0)
			return -1;
		at += (uint64_t)n;
	}
}

/* The steps' streams, one after the other, are what the spool holds or will hold: its size says how far
 * earlier copies came, also those of an agent that was killed. */
static int copy_stream(const struct setup *s, int dirfd, enum stream stream, struct err *err)
{
	CLEANUP(close_fdp) int to = open_spool(dirfd, stream, O_WRONLY | O_APPEND | O_CREAT);
	struct stat st;
	uint64_t done;

	if (to < 0 || fstat(to, &st) < 0)
		return err_errno(err, errno, "open the spool for the output of setup");
	done = (uint64_t)st.st_size;
	for (int no = 1; no <= s->at.no; no++) {
		int fd;
		uint64_t size = open_step(s, no, stream, &fd);
		CLEANUP(close_fdp) int from = fd;

		if (done >= size) {
			done -= size;
			continue;
		}
		if (copy_from(from, done, to, err) < 0)
			return -1;
		done = 0;
	}
	return 0;
}

int setup_copy_output(const struct setup *s, int dirfd, struct err *err)
{
	return copy_stream(s, dirfd, STREAM_OUT, err) < 0 ? -1
							  : copy_stream(s, dirfd, STREAM_ERR, err);
}
