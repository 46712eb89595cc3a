/*
 * Patterns, one per line, an empty line, then a block of log lines.  The prefilter must not lose a match:
 * the same patterns, written so that it does not understand them, give the same samples; and so does
 * the block line by line.
 */
#include <stdint.h>
#include <stdlib.h>

#include "base/alloc.h"
#include "base/buf.h"
#include "metrics/extract.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define MAX_PATTERNS 4
#define MAX_PATTERN_BYTES 120
#define MAX_BLOCK_BYTES 512
#define UNFILTERED "(*NO_DOTSTAR_ANCHOR)"

static void note(void *ctx, const struct sample *s)
{
	struct buf *b = ctx;

	if (s->name.n == 0 || s->name.n > EXTRACT_MAX_NAME || s->step < -1 ||
	    s->value - s->value != 0)
		abort();
	buf_addstr(b, s->name);
	buf_printf(b, "=%a@%lld;", s->value, (long long)s->step);
}

struct result {
	struct buf samples;
	uint64_t bad;
};

static bool run(char *const *patterns, size_t n, struct str block, bool by_line, struct result *r)
{
	struct metric_pattern pats[MAX_PATTERNS];
	struct extract *ex;

	for (size_t i = 0; i < n; i++)
		pats[i] = (struct metric_pattern){"m", patterns[i]};
	if (extract_new(pats, n, NULL, &ex, NULL) < 0)
		return false;
	buf_init(&r->samples, 16u << 20);
	if (!by_line)
		extract_block(ex, block, note, &r->samples);
	while (by_line && block.p)
		extract_block(ex, str_cut(&block, '\n'), note, &r->samples);
	r->bad = extract_bad(ex);
	extract_free(ex);
	return true;
}

/* Where a limit was hit the counts differ, and the samples may. */
static void compare(const struct result *a, const struct result *b)
{
	if (a->bad == b->bad && !str_eq(buf_str(&a->samples), buf_str(&b->samples)))
		abort();
}

static void check_patterns(char **patterns, size_t n, struct str block)
{
	struct result filtered, lines, plain;

	if (!run(patterns, n, block, false, &filtered))
		return;
	/* An empty line at the end of the block is no line, but a call of its own for line by line. */
	if (run(patterns, n, block, true, &lines)) {
		compare(&filtered, &lines);
		buf_release(&lines.samples);
	}
	for (size_t i = 0; i < n; i++) {
		char *marked = xasprintf("%s%s", UNFILTERED, patterns[i]);

		free(patterns[i]);
		patterns[i] = marked;
	}
	if (run(patterns, n, block, false, &plain)) {
		compare(&filtered, &plain);
		buf_release(&plain.samples);
	}
	buf_release(&filtered.samples);
}

static void check_json(struct str block)
{
	struct extract *ex;
	struct buf samples;

	if (extract_new(NULL, 0, NULL, &ex, NULL) < 0)
		abort();
	buf_init(&samples, 16u << 20);
	while (block.p)
		extract_json_line(ex, str_cut(&block, '\n'), note, &samples);
	buf_release(&samples);
	extract_free(ex);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct str rest = {(const char *)data, size};
	char *patterns[MAX_PATTERNS];
	size_t n = 0;

	while (rest.p) {
		struct str line = str_cut(&rest, '\n');

		if (line.n == 0)
			break;
		if (n == MAX_PATTERNS || line.n > MAX_PATTERN_BYTES || memchr(line.p, '\0', line.n))
			goto out;
		patterns[n++] = xstrndup(line.p, line.n);
	}
	if (rest.p && rest.n <= MAX_BLOCK_BYTES) {
		check_patterns(patterns, n, rest);
		check_json(rest);
	}
out:
	while (n > 0)
		free(patterns[--n]);
	return 0;
}
