/* Lines are the same however the bytes arrive, and nothing is lost, added or given twice. */
#include <stdint.h>
#include <stdlib.h>

#include "base/buf.h"
#include "metrics/lines.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define GROW 1	   /* this byte stands for a run that comes near the longest line */
#define GROW_MAX 4 /* runs in one input */

struct seen {
	struct buf history; /* "end cut length:bytes" of each line */
	uint64_t end;
	bool cut;
};

static void note(void *ctx, struct str line, uint64_t end, bool cut)
{
	struct seen *s = ctx;

	if (line.n > LINE_MAX_BYTES || end < s->end + line.n || memchr(line.p, '\n', line.n))
		abort();
	/* A piece has no newline behind it; a whole line has one, perhaps with a return, or is the last. */
	if (end - s->end > line.n + 2)
		abort();
	s->end = end;
	s->cut |= cut;
	buf_printf(&s->history, "%llu %d %zu:", (unsigned long long)end, cut, line.n);
	buf_addstr(&s->history, line);
}

static void feed(struct seen *s, struct str text, size_t chunk)
{
	struct lines l;

	*s = (struct seen){0};
	buf_init(&s->history, 4u << 20);
	lines_init(&l, 0);
	while (text.n > 0) {
		size_t n = chunk < text.n ? chunk : text.n;

		lines_feed(&l, (struct str){text.p, n}, note, s);
		text.p += n;
		text.n -= n;
	}
	lines_end(&l, note, s);
	if (l.offset != s->end || s->history.overflow)
		abort();
	lines_release(&l);
}

static void expand(struct buf *text, const uint8_t *data, size_t size)
{
	int grown = 0;

	buf_init(text, 2u << 20);
	for (size_t i = 0; i < size; i++) {
		if (data[i] != GROW || grown++ >= GROW_MAX) {
			buf_addc(text, (char)data[i]);
			continue;
		}
		memset(buf_reserve(text, LINE_MAX_BYTES - 2), 'x', LINE_MAX_BYTES - 2);
		buf_commit(text, LINE_MAX_BYTES - 2);
	}
}

/* From one byte to twice the longest line; a long text is not fed byte by byte, for speed. */
static size_t chunk_size(uint8_t choice, size_t text)
{
	size_t chunk = choice < 128 ? (size_t)choice + 1 : (size_t)choice * 512;

	return text > LINE_MAX_BYTES && chunk < 128 ? chunk * 331 : chunk;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct seen whole, parts;
	struct buf text;

	if (size < 2 || size > 4096)
		return 0;
	expand(&text, data + 1, size - 1);
	feed(&whole, buf_str(&text), text.n);
	feed(&parts, buf_str(&text), chunk_size(data[0], text.n));
	if (whole.end != text.n || !str_eq(buf_str(&whole.history), buf_str(&parts.history)))
		abort();
	buf_release(&whole.history);
	buf_release(&parts.history);
	buf_release(&text);
	return 0;
}
