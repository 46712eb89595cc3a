#include "cli/client/follow.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "base/alloc.h"
#include "base/arena.h"
#include "base/buf.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/vec.h"
#include "cli/client/api.h"
#include "fmt/doc.h"
#include "fmt/url.h"
#include "net/http_client.h"

#define CHUNK (64 * 1024)
#define CHUNKS_PER_STEP 16 /* read from one stream before the others have their turn */
#define MAX_DESCRIPTORS 16384
#define RETRY_FIRST_MS 5
#define RETRY_MAX_MS 1000
#define NO_CONTACT_MS 60000

#define MAX_HEAD 32 /* bytes of "out 12 1731859200123\n" */

/* One log of a node: the bytes received, and the start of an unfinished line. */
struct part {
	int64_t offset;
	struct buf line;
	int64_t line_ms; /* when its first byte arrived; -1: not known */
};

struct log_stream {
	char *node;
	enum follow_logs logs;
	bool go_on;
	/* tail >= 0, since: the offsets are not known yet */
	int64_t tail;
	char *since;
	bool times; /* one log is in pieces too, and they have times */
	int64_t attempt;
	struct api api; /* http != NULL: the stream is open */
	struct part parts[FOLLOW_BOTH];
	/* The piece that is being received, if the answer is in pieces */
	struct buf head;
	enum follow_logs piece;
	int64_t piece_left, piece_ms;
	bool done, more, got_bytes, ended_once;
	int64_t retry_at; /* boot time; 0 = now */
	int64_t lost_at;  /* boot time of the first failed try; 0: none */
	int pause_ms;
};

struct follow {
	const struct api *api;
	char *run;
	struct follow_sink sink;
	void *ctx;
	VEC(struct log_stream *) streams;
	size_t open;
	char *chunk;
	/* For streams added from now on: */
	int64_t attempt; /* 0: all */
	const char *since;
	bool times;
};

/* Every stream needs a connection, and so a descriptor. */
static void raise_descriptors(void)
{
	struct rlimit rl;

	if (getrlimit(RLIMIT_NOFILE, &rl) == 0 && rl.rlim_cur < MAX_DESCRIPTORS) {
		rl.rlim_cur = rl.rlim_max < MAX_DESCRIPTORS ? rl.rlim_max : MAX_DESCRIPTORS;
		setrlimit(RLIMIT_NOFILE, &rl);
	}
}

size_t follow_names(const struct doc *node, struct arena *a, struct str **ret)
{
	const struct doc *processes = doc_array(node, "processes");
	struct str name = doc_str(node, "name", STR(""));
	size_t n = processes ? processes->array.n : 1;

	*ret = arena_array(a, struct str, n + 1);
	(*ret)[0] = name;
	for (size_t i = 0; processes && i < n; i++)
		(*ret)[i] = str_from(arena_printf(a, "%.*s.p%zu", STR_ARG(name), i));
	return n;
}

/* The name of a node ends with "-<index>". */
struct str follow_node(struct str name)
{
	const char *dot = memrchr(name.p, '.', name.n);

	if (dot && dot + 1 < name.p + name.n && dot[1] == 'p' &&
	    !memchr(dot, '-', (size_t)(name.p + name.n - dot)))
		return (struct str){name.p, (size_t)(dot - name.p)};
	return name;
}

struct follow *follow_new(const struct api *api, const char *run, const struct follow_sink *sink,
			  void *ctx)
{
	struct follow *f = xcalloc(1, sizeof(*f));

	f->api = api;
	f->run = xstrdup(run);
	f->sink = *sink;
	f->ctx = ctx;
	f->chunk = xmalloc(CHUNK);
	raise_descriptors();
	return f;
}

static void stream_free(struct log_stream *s)
{
	api_release(&s->api);
	for (int i = 0; i < FOLLOW_BOTH; i++)
		buf_release(&s->parts[i].line);
	buf_release(&s->head);
	free(s->node);
	free(s->since);
	free(s);
}

struct follow *follow_free(struct follow *f)
{
	if (!f)
		return NULL;
	for (size_t i = 0; i < f->streams.n; i++)
		stream_free(f->streams.v[i]);
	vec_release(&f->streams);
	free(f->chunk);
	free(f->run);
	free(f);
	return NULL;
}

void follow_attempt(struct follow *f, int64_t attempt)
{
	f->attempt = attempt;
}

void follow_since(struct follow *f, const char *since)
{
	f->since = since;
}

void follow_times(struct follow *f, bool times)
{
	f->times = times;
}

void follow_add(struct follow *f, struct str node, enum follow_logs logs, int64_t offset,
		int64_t tail, bool go_on)
{
	struct log_stream *s = xcalloc(1, sizeof(*s));

	s->node = xstrndup(node.p, node.n);
	s->logs = logs;
	for (int i = 0; i < FOLLOW_BOTH; i++) {
		s->parts[i].offset = offset;
		s->parts[i].line_ms = -1;
		buf_init(&s->parts[i].line, FOLLOW_MAX_LINE);
	}
	buf_init(&s->head, MAX_HEAD);
	s->tail = tail;
	s->since = f->since ? xstrdup(f->since) : NULL;
	s->times = f->times;
	s->piece_ms = -1;
	s->attempt = f->attempt;
	s->go_on = go_on;
	s->more = true;
	s->pause_ms = RETRY_FIRST_MS;
	api_init_like(&s->api, f->api);
	*vec_push(&f->streams) = s;
	f->open++;
}

size_t follow_open(const struct follow *f)
{
	return f->open;
}

size_t follow_fds(const struct follow *f, struct pollfd *fds, size_t max, int *timeout_ms)
{
	int64_t now = clock_boot_ms();
	size_t n = 0;

	for (size_t i = 0; i < f->streams.n; i++) {
		const struct log_stream *s = f->streams.v[i];
		if (s->done)
			continue;
		if (s->api.http && !s->more) {
			if (n < max)
				fds[n++] = (struct pollfd){.fd = http_client_fd(s->api.http),
							   .events = POLLIN};
			continue;
		}
		int64_t wait = !s->more && s->retry_at > now ? s->retry_at - now : 0;
		if (*timeout_ms < 0 || wait < *timeout_ms)
			*timeout_ms = (int)wait;
	}
	return n;
}

static char *log_path(const struct follow *f, const struct log_stream *s)
{
	CLEANUP(buf_release) struct buf b = {0};
	CLEANUP(freep) char *start = api_run_path(f->run, "/logs/");
	static const char *const names[] = {"out", "err", "both"};

	buf_init(&b, 64 * 1024);
	buf_addz(&b, start);
	url_encode(&b, str_from(s->node));
	buf_printf(&b, "?stream=%s", names[s->logs]);
	if (s->tail >= 0)
		buf_printf(&b, "&tail=%" PRId64, s->tail);
	else
		buf_printf(&b, "&offset=%" PRId64,
			   s->parts[s->logs == FOLLOW_ERR ? FOLLOW_ERR : FOLLOW_OUT].offset);
	if (s->tail < 0 && s->logs == FOLLOW_BOTH)
		buf_printf(&b, "&err_offset=%" PRId64, s->parts[FOLLOW_ERR].offset);
	if (s->since) {
		buf_addz(&b, "&since=");
		url_encode(&b, str_from(s->since));
	}
	if (s->times)
		buf_addz(&b, "&times=1");
	if (s->attempt)
		buf_printf(&b, "&attempt=%" PRId64, s->attempt);
	if (s->go_on)
		buf_addz(&b, "&follow=1");
	return buf_take(&b);
}

static void give_line(struct follow *f, struct log_stream *s, enum follow_logs log)
{
	struct buf *line = &s->parts[log].line;
	const struct follow_line give = {.node = str_from(s->node),
					 .text = buf_str(line),
					 .is_err = log == FOLLOW_ERR,
					 .ms = s->parts[log].line_ms};

	if (f->sink.line)
		f->sink.line(f->ctx, &give);
	else
		f->sink.bytes(f->ctx, buf_str(line));
	buf_reset(line);
}

static void give_lines(struct follow *f, struct log_stream *s, enum follow_logs log,
		       struct str bytes)
{
	struct buf *line = &s->parts[log].line;

	while (bytes.n) {
		const char *nl = memchr(bytes.p, '\n', bytes.n);
		size_t n = nl ? (size_t)(nl - bytes.p) : bytes.n;
		if (line->n == 0)
			s->parts[log].line_ms = s->piece_ms;
		size_t room = FOLLOW_MAX_LINE - line->n;
		if (n > room) {
			buf_add(line, bytes.p, room);
			give_line(f, s, log);
			bytes = (struct str){bytes.p + room, bytes.n - room};
			continue;
		}
		buf_add(line, bytes.p, n);
		if (nl)
			give_line(f, s, log);
		n += nl ? 1 : 0;
		bytes = (struct str){bytes.p + n, bytes.n - n};
	}
}

/* Both logs on one output: only whole lines are passed on, so that the logs do not mix within a line.  A progress
 * bar rewrites its line with carriage returns: they end a line too. */
static void give_whole_lines(struct follow *f, struct log_stream *s, enum follow_logs log,
			     struct str bytes)
{
	struct buf *line = &s->parts[log].line;
	size_t whole = bytes.n;

	while (whole && bytes.p[whole - 1] != '\n' && bytes.p[whole - 1] != '\r')
		whole--;
	size_t rest = bytes.n - whole;
	if (line->n && (whole || rest > FOLLOW_MAX_LINE - line->n))
		give_line(f, s, log);
	if (rest > FOLLOW_MAX_LINE - line->n)
		whole = bytes.n; /* the line is too long: pass on all of it */
	if (whole)
		f->sink.bytes(f->ctx, (struct str){bytes.p, whole});
	buf_add(line, bytes.p + whole, bytes.n - whole);
}

static void give(struct follow *f, struct log_stream *s, enum follow_logs log, struct str bytes)
{
	s->parts[log].offset += (int64_t)bytes.n;
	if (f->sink.line)
		give_lines(f, s, log, bytes);
	else if (s->logs == FOLLOW_BOTH)
		give_whole_lines(f, s, log, bytes);
	else
		f->sink.bytes(f->ctx, bytes);
}

/* The head of a piece, "out 12" or "out 12 1731859200123": which log, how many bytes follow, and
 * when they arrived. */
static int read_head(struct log_stream *s, struct err *err)
{
	struct str rest = buf_str(&s->head), log = str_cut(&rest, ' '),
		   number = str_cut(&rest, ' ');
	bool is_err = str_is(log, "err");

	s->piece_ms = -1;
	if ((!is_err && !str_is(log, "out")) || !str_to_i64(number, &s->piece_left) ||
	    s->piece_left < 0 || s->head.overflow ||
	    (rest.n && !str_is(rest, "-") && !str_to_i64(rest, &s->piece_ms)))
		return err_set(err, ERR_PROTOCOL, "the master's answer is not a log");
	s->piece = is_err ? FOLLOW_ERR : FOLLOW_OUT;
	buf_reset(&s->head);
	return 0;
}

static int give_pieces(struct follow *f, struct log_stream *s, struct str bytes, struct err *err)
{
	while (bytes.n) {
		size_t n = bytes.n;
		if (s->piece_left == 0) {
			const char *nl = memchr(bytes.p, '\n', bytes.n);
			n = nl ? (size_t)(nl - bytes.p) : bytes.n;
			buf_add(&s->head, bytes.p, n);
			if ((nl || s->head.overflow) && read_head(s, err) < 0)
				return -1;
			n += nl ? 1 : 0;
		} else {
			n = (int64_t)n < s->piece_left ? n : (size_t)s->piece_left;
			s->piece_left -= (int64_t)n;
			give(f, s, s->piece, (struct str){bytes.p, n});
		}
		bytes = (struct str){bytes.p + n, bytes.n - n};
	}
	return 0;
}

static void stream_done(struct follow *f, struct log_stream *s)
{
	for (int log = 0; log < FOLLOW_BOTH; log++)
		if (s->parts[log].line.n)
			give_line(f, s, (enum follow_logs)log);
	api_drop(&s->api);
	s->done = true;
	f->open--;
}

static void try_later(struct log_stream *s)
{
	api_drop(&s->api);
	s->retry_at = clock_boot_ms() + s->pause_ms;
	s->pause_ms = s->pause_ms * 2 < RETRY_MAX_MS ? s->pause_ms * 2 : RETRY_MAX_MS;
}

/* A master that exits ends its streams as if the logs had ended: an end counts when it comes twice
 * in a row without a byte in between. */
static void at_end(struct follow *f, struct log_stream *s)
{
	if (s->got_bytes)
		s->ended_once = false;
	if (s->ended_once || !s->go_on) {
		stream_done(f, s);
		return;
	}
	s->ended_once = true;
	s->more = true;
	api_drop(&s->api);
}

static int open_stream(struct follow *f, struct log_stream *s, struct err *err)
{
	CLEANUP(freep) char *path = log_path(f, s);

	s->got_bytes = false;
	s->piece_left = 0;
	buf_reset(&s->head);
	if (api_stream(&s->api, path, err) < 0)
		return -1;
	if (s->tail < 0 && !s->since)
		return 0;
	/* The request was for the last lines or minutes: the headers say at which offsets they start. */
	static const char *const headers[] = {"Regatta-Offset", "Regatta-Err-Offset"};
	for (int log = 0; log < FOLLOW_BOTH; log++) {
		bool both = s->logs == FOLLOW_BOTH;
		if (!both && s->logs != (enum follow_logs)log)
			continue;
		if (!str_to_i64(http_client_header(s->api.http, headers[both ? log : 0]),
				&s->parts[log].offset))
			return err_set(err, ERR_INVALID,
				       "the master did not say where its answer starts");
	}
	s->tail = -1;
	free(s->since);
	s->since = NULL;
	return 0;
}

/* The user's own master is started again as often as needed; another one may stay unreachable. */
static bool given_up(struct log_stream *s)
{
	int64_t now = clock_boot_ms();

	s->lost_at = s->lost_at ? s->lost_at : now;
	return api_remote(&s->api) && now - s->lost_at > NO_CONTACT_MS;
}

static int step(struct follow *f, struct log_stream *s, struct err *err)
{
	if (!s->api.http) {
		if (s->retry_at > clock_boot_ms())
			return 0;
		if (open_stream(f, s, err) < 0) {
			if (!api_lost(err) || given_up(s))
				return err_wrap(err, "log of %s", s->node);
			try_later(s);
			return 0;
		}
		s->retry_at = s->lost_at = 0;
	}
	s->more = false;
	for (int i = 0; i < CHUNKS_PER_STEP; i++) {
		size_t n;
		if (http_stream_read(s->api.http, f->chunk, CHUNK, 0, NULL, &n, err) < 0) {
			if (err->kind != ERR_TIMEOUT)
				try_later(s);
			return 0;
		}
		if (n == 0) {
			at_end(f, s);
			return 0;
		}
		s->got_bytes = true;
		s->pause_ms = RETRY_FIRST_MS;
		if (s->logs != FOLLOW_BOTH && !s->times)
			give(f, s, s->logs, (struct str){f->chunk, n});
		else if (give_pieces(f, s, (struct str){f->chunk, n}, err) < 0)
			return -1;
	}
	s->more = true;
	return 0;
}

int follow_step(struct follow *f, struct err *err)
{
	for (size_t i = 0; i < f->streams.n; i++)
		if (!f->streams.v[i]->done && step(f, f->streams.v[i], err) < 0)
			return -1;
	return 0;
}
