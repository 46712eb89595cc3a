#include "agent/scan.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/err.h"
#include "link/conn.h"
#include "metrics/extract.h"

#define ITEMS_MAX (768 * 1024) /* bytes of samples per frame, below FRAME_MAX_PAYLOAD */
#define PIECE (8 * 1024)
#define LINE_MAX_BYTES (64 * 1024) /* a longer line is scanned in pieces */
#define QUEUE_MAX (256 * 1024)	   /* no scanning while the send queue is longer */

void scan_init(struct scan *sc)
{
	*sc = (struct scan){0};
	buf_init(&sc->items, ITEMS_MAX);
}

void scan_release(struct scan *sc)
{
	sc->ex = extract_free(sc->ex);
	buf_release(&sc->items);
}

int scan_patterns(struct scan *sc, const struct message_inputs *in, struct err *err)
{
	struct metric_pattern *pats;
	struct extract *ex;
	int rc;

	sc->prefix = in->metric_prefix;
	/* Without patterns compiling cannot fail, so it can wait until the first output. */
	if (in->nmetrics == 0) {
		sc->ex = extract_free(sc->ex);
		return 0;
	}
	pats = xcalloc(in->nmetrics, sizeof(*pats));
	for (size_t i = 0; i < in->nmetrics; i++)
		pats[i] = (struct metric_pattern){in->metrics[i].name, in->metrics[i].pattern};
	rc = extract_new(pats, in->nmetrics, in->metric_prefix, &ex, err);
	free(pats);
	if (rc < 0)
		return -1;
	sc->ex = extract_free(sc->ex);
	sc->ex = ex;
	return 0;
}

void scan_resume(struct scan *sc, const uint64_t scanned[static STREAMS_MAX])
{
	for (int s = 0; s < STREAMS_MAX; s++)
		sc->s[s] = (struct scan_stream){scanned[s], scanned[s]};
	buf_reset(&sc->items);
	sc->nitems = 0;
}

static void add_sample(void *ctx, const struct sample *s)
{
	struct scan *sc = ctx;
	struct message_point p = {s->name, s->value, s->step, sc->time_ms, s->total};

	message_point_put(&p, &sc->items);
	sc->nitems++;
}

static void send_frame(struct scan *sc, enum stream s, struct conn *c)
{
	struct scan_stream *st = &sc->s[s];
	struct message_metrics m = {.from = st->reported,
				    .to = st->pos,
				    .bad = sc->bad,
				    .encoded = buf_str(&sc->items)};
	struct buf payload;

	buf_init(&payload, FRAME_MAX_PAYLOAD);
	message_metrics_put(&m, &payload);
	conn_send(c, FRAME_METRICS, (uint16_t)s, STR(""), buf_str(&payload));
	buf_release(&payload);
	buf_reset(&sc->items);
	sc->nitems = 0;
	sc->bad = 0;
	st->reported = st->pos;
}

static struct extract *extractor(struct scan *sc)
{
	if (!sc->ex && extract_new(NULL, 0, sc->prefix, &sc->ex, NULL) < 0)
		abort(); /* compiling without patterns cannot fail */
	return sc->ex;
}

static void run_block(struct scan *sc, enum stream s, struct str block)
{
	if (s != STREAM_METRICS) {
		extract_block(extractor(sc), block, add_sample, sc);
		return;
	}
	while (block.p && block.n > 0) {
		struct str line = str_cut(&block, '\n');

		if (line.n > 0 && line.p[line.n - 1] == '\r')
			line.n--;
		if (line.n > 0)
			extract_json_line(extractor(sc), line, add_sample, sc);
	}
}

/* Lines up to about the middle of the block; the whole block if it is one line. */
static size_t half(struct str block)
{
	const char *nl = memrchr(block.p, '\n', block.n / 2);

	if (!nl)
		nl = memchr(block.p, '\n', block.n - 1);
	return nl ? (size_t)(nl - block.p) + 1 : block.n;
}

/* Scan a block.  If its samples do not fit into the frame, send the earlier ones and try a smaller block. */
static void take_block(struct scan *sc, enum stream s, struct str block, struct conn *c)
{
	size_t before = sc->items.n, count = sc->nitems;
	uint64_t bad = extract_bad(extractor(sc));

	run_block(sc, s, block);
	if (!sc->items.overflow) {
		sc->bad += extract_bad(sc->ex) - bad;
		sc->s[s].pos += block.n;
		return;
	}
	sc->items.overflow = false;
	size_t part = half(block);

	if (count == 0 && part == block.n) {
		/* One line whose samples do not fit into a frame: count them as bad. */
		sc->bad += sc->nitems;
		sc->items.n = sc->nitems = 0;
		sc->s[s].pos += block.n;
		return;
	}
	sc->items.n = before;
	sc->nitems = count;
	if (count > 0) {
		send_frame(sc, s, c);
		take_block(sc, s, block, c);
		return;
	}
	take_block(sc, s, (struct str){block.p, part}, c);
	if (sc->nitems > 0)
		send_frame(sc, s, c);
	take_block(sc, s, (struct str){block.p + part, block.n - part}, c);
}

/* Scan in small blocks of whole lines, so that a frame does not exceed SCAN_SAMPLES by much. */
static void take_lines(struct scan *sc, enum stream s, struct str lines, struct conn *c)
{
	while (lines.p && lines.n > 0) {
		size_t n = lines.n < PIECE ? lines.n : PIECE;
		const char *nl = memrchr(lines.p, '\n', n);

		if (!nl)
			nl = memchr(lines.p, '\n', lines.n);
		n = nl ? (size_t)(nl - lines.p) + 1 : lines.n;
		take_block(sc, s, (struct str){lines.p, n}, c);
		if (sc->nitems >= SCAN_SAMPLES || sc->s[s].pos - sc->s[s].reported >= SCAN_REPORT)
			send_frame(sc, s, c);
		lines.p += n;
		lines.n -= n;
	}
}

/* How many of the n bytes can be scanned: whole lines, a piece of an overlong line, or all at the stream's end. */
static size_t usable(const char *p, size_t n, bool at_end)
{
	const char *nl = p ? memrchr(p, '\n', n) : NULL;

	if (at_end)
		return n;
	if (nl)
		return (size_t)(nl - p) + 1;
	return n >= LINE_MAX_BYTES ? n : 0;
}

bool scan_stream(struct scan *sc, enum stream s, int fd, uint64_t size, bool ended, struct conn *c,
		 void *scratch)
{
	struct scan_stream *st = &sc->s[s];
	uint64_t first = st->pos;
	bool all = true;

	if (fd < 0)
		return true;
	sc->time_ms = clock_wall_ms();
	while (st->pos < size) {
		size_t want = size - st->pos < SCAN_CHUNK ? (size_t)(size - st->pos) : SCAN_CHUNK;

		if (conn_queued(c) > QUEUE_MAX || st->pos - first >= SCAN_TURN) {
			all = false;
			break;
		}
		ssize_t n = pread(fd, scratch, want, (off_t)st->pos);

		if (n <= 0)
			break;
		size_t use = usable(scratch, (size_t)n, ended && st->pos + (uint64_t)n >= size);

		if (use == 0)
			break;
		take_lines(sc, s, (struct str){scratch, use}, c);
	}
	if (sc->nitems > 0 || sc->bad > 0 || (ended && st->pos >= size && st->reported < st->pos))
		send_frame(sc, s, c);
	return all;
}

bool scan_done(const struct scan *sc, const uint64_t lengths[static STREAMS_MAX])
{
	for (int s = 0; s < STREAMS_MAX; s++)
		if (sc->s[s].reported < lengths[s])
			return false;
	return true;
}
