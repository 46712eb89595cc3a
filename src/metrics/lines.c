#include "metrics/lines.h"

void lines_init(struct lines *l, uint64_t offset)
{
	*l = (struct lines){.offset = offset};
	buf_init(&l->rest, LINE_MAX_BYTES);
}

void lines_release(struct lines *l)
{
	buf_release(&l->rest);
}

/* `used` counts what leaves the stream with this line: its newline too. */
static void give(struct lines *l, struct str line, size_t used, bool cut, line_fn fn, void *ctx)
{
	l->offset += used;
	fn(ctx, line, l->offset, cut);
}

static struct str without_cr(struct str line)
{
	if (line.n > 0 && line.p[line.n - 1] == '\r')
		line.n--;
	return line;
}

/*
 * Give out what `head` holds beyond one full piece.  A piece leaves only when
 * a byte of the same line follows it, so that a line of exactly LINE_MAX_BYTES
 * stays whole.
 */
static struct str give_pieces(struct lines *l, struct str head, line_fn fn, void *ctx)
{
	while (head.n > LINE_MAX_BYTES) {
		l->cutting = true;
		give(l, (struct str){head.p, LINE_MAX_BYTES}, LINE_MAX_BYTES, true, fn, ctx);
		head.p += LINE_MAX_BYTES;
		head.n -= LINE_MAX_BYTES;
	}
	return head;
}

static void give_line(struct lines *l, struct str line, line_fn fn, void *ctx)
{
	bool cut = l->cutting;

	l->cutting = false;
	give(l, without_cr(line), line.n + 1, cut, fn, ctx);
}

/* Complete the line begun in an earlier feed.  Returns what of `bytes` is left. */
static struct str feed_rest(struct lines *l, struct str bytes, const char *nl, line_fn fn,
			    void *ctx)
{
	struct str head = {bytes.p, nl ? (size_t)(nl - bytes.p) : bytes.n};

	while (head.n > 0) {
		size_t room = LINE_MAX_BYTES - l->rest.n;

		if (room == 0) {
			l->cutting = true;
			give(l, buf_str(&l->rest), l->rest.n, true, fn, ctx);
			buf_reset(&l->rest);
			/* The rest of this line needs no copy. */
			return (struct str){head.p, (size_t)(bytes.p + bytes.n - head.p)};
		}
		if (room > head.n)
			room = head.n;
		buf_add(&l->rest, head.p, room);
		head.p += room;
		head.n -= room;
	}
	if (!nl)
		return (struct str){bytes.p + bytes.n, 0};
	give_line(l, buf_str(&l->rest), fn, ctx);
	buf_reset(&l->rest);
	return (struct str){nl + 1, (size_t)(bytes.p + bytes.n - nl - 1)};
}

void lines_feed(struct lines *l, struct str bytes, line_fn fn, void *ctx)
{
	while (bytes.n > 0) {
		const char *nl = memchr(bytes.p, '\n', bytes.n);

		if (l->rest.n > 0) {
			bytes = feed_rest(l, bytes, nl, fn, ctx);
			continue;
		}
		struct str head = {bytes.p, nl ? (size_t)(nl - bytes.p) : bytes.n};
		head = give_pieces(l, head, fn, ctx);
		if (!nl) {
			buf_addstr(&l->rest, head);
			return;
		}
		give_line(l, head, fn, ctx);
		bytes.n -= (size_t)(nl + 1 - bytes.p);
		bytes.p = nl + 1;
	}
}

void lines_end(struct lines *l, line_fn fn, void *ctx)
{
	bool cut = l->cutting;

	l->cutting = false;
	if (l->rest.n > 0)
		give(l, buf_str(&l->rest), l->rest.n, cut, fn, ctx);
	buf_reset(&l->rest);
}
