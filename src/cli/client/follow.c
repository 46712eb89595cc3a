#include "cli/client/follow.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "base/alloc.h"
#include "base/buf.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/vec.h"
#include "cli/client/api.h"
#include "fmt/url.h"
#include "net/http_client.h"

#define CHUNK (64 * 1024)
#define CHUNKS_PER_STEP 16 /* of one stream, before the others have their turn */
#define MAX_DESCRIPTORS 16384
#define RETRY_FIRST_MS 5
#define RETRY_MAX_MS 1000

struct stream {
	char *node;
	bool is_err, go_on;
	int64_t offset, tail; /* tail >= 0: the offset is not known yet */
	struct api api;	      /* http != NULL: the stream is open */
	struct buf line;
	bool done, more, got_bytes, ended_once;
	int64_t retry_at; /* boot time; 0 = now */
	int pause_ms;
};

struct follow {
	const struct api *api;
	char *run;
	struct follow_sink sink;
	void *ctx;
	VEC(struct stream *) streams;
	size_t open;
	char *chunk;
};

/* Every stream has a connection of its own. */
static void raise_descriptors(void)
{
	struct rlimit rl;

	if (getrlimit(RLIMIT_NOFILE, &rl) == 0 && rl.rlim_cur < MAX_DESCRIPTORS) {
		rl.rlim_cur = rl.rlim_max < MAX_DESCRIPTORS ? rl.rlim_max : MAX_DESCRIPTORS;
		setrlimit(RLIMIT_NOFILE, &rl);
	}
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

static void stream_free(struct stream *s)
{
	api_release(&s->api);
	buf_release(&s->line);
	free(s->node);
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

void follow_add(struct follow *f, struct str node, bool is_err, int64_t offset, int64_t tail,
		bool go_on)
{
	struct stream *s = xcalloc(1, sizeof(*s));

	s->node = xstrndup(node.p, node.n);
	s->is_err = is_err;
	s->offset = offset;
	s->tail = tail;
	s->go_on = go_on;
	s->more = true;
	s->pause_ms = RETRY_FIRST_MS;
	s->api = (struct api){
		.home = xstrdup(f->api->home), .start = f->api->start, .stop = f->api->stop};
	buf_init(&s->api.details, 4096);
	buf_init(&s->line, FOLLOW_MAX_LINE);
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
		const struct stream *s = f->streams.v[i];
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

static char *log_path(const struct follow *f, const struct stream *s)
{
	CLEANUP(buf_release) struct buf b = {0};
	CLEANUP(freep) char *start = api_run_path(f->run, "/logs/");

	buf_init(&b, 64 * 1024);
	buf_addz(&b, start);
	url_encode(&b, str_from(s->node));
	buf_printf(&b, "?stream=%s", s->is_err ? "err" : "out");
	if (s->tail >= 0)
		buf_printf(&b, "&tail=%" PRId64, s->tail);
	else
		buf_printf(&b, "&offset=%" PRId64, s->offset);
	if (s->go_on)
		buf_addz(&b, "&follow=1");
	return buf_take(&b);
}

static void give_line(struct follow *f, struct stream *s)
{
	f->sink.line(f->ctx, str_from(s->node), s->is_err, buf_str(&s->line));
	buf_reset(&s->line);
}

static void give(struct follow *f, struct stream *s, struct str bytes)
{
	if (f->sink.bytes) {
		f->sink.bytes(f->ctx, bytes);
		return;
	}
	while (bytes.n) {
		const char *nl = memchr(bytes.p, '\n', bytes.n);
		size_t n = nl ? (size_t)(nl - bytes.p) : bytes.n;
		size_t room = FOLLOW_MAX_LINE - s->line.n;
		if (n > room) {
			buf_add(&s->line, bytes.p, room);
			give_line(f, s);
			bytes = (struct str){bytes.p + room, bytes.n - room};
			continue;
		}
		buf_add(&s->line, bytes.p, n);
		if (nl)
			give_line(f, s);
		n += nl ? 1 : 0;
		bytes = (struct str){bytes.p + n, bytes.n - n};
	}
}

static void stream_done(struct follow *f, struct stream *s)
{
	if (s->line.n)
		give_line(f, s);
	api_drop(&s->api);
	s->done = true;
	f->open--;
}

static void try_later(struct stream *s)
{
	api_drop(&s->api);
	s->retry_at = clock_boot_ms() + s->pause_ms;
	s->pause_ms = s->pause_ms * 2 < RETRY_MAX_MS ? s->pause_ms * 2 : RETRY_MAX_MS;
}

/* A master that leaves ends its streams as if the logs had ended: the end counts when it comes
 * twice without a byte. */
static void at_end(struct follow *f, struct stream *s)
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

static int open_stream(struct follow *f, struct stream *s, struct err *err)
{
	CLEANUP(freep) char *path = log_path(f, s);

	s->got_bytes = false;
	if (api_stream(&s->api, path, err) < 0)
		return -1;
	if (s->tail < 0)
		return 0;
	/* The last lines: from here on the offset is known. */
	if (!str_to_i64(http_client_header(s->api.http, "Regatta-Offset"), &s->offset))
		return err_set(err, ERR_INVALID, "the master did not say where its answer starts");
	s->tail = -1;
	return 0;
}

static int step(struct follow *f, struct stream *s, struct err *err)
{
	if (!s->api.http) {
		if (s->retry_at > clock_boot_ms())
			return 0;
		if (open_stream(f, s, err) < 0) {
			if (!api_lost(err))
				return err_wrap(err, "log of %s", s->node);
			try_later(s);
			return 0;
		}
		s->retry_at = 0;
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
		s->offset += (int64_t)n;
		give(f, s, (struct str){f->chunk, n});
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
