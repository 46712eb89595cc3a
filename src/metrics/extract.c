/*
 * The fast path is extract_block(): the prefilter runs over the whole block and
 * a line is cut out only where a literal of some pattern ends.  Patterns
 * without a literal force the slow path: every line is cut out and tried.
 */
#include "metrics/extract.h"

#include <stdlib.h>
#include <string.h>
#include "base/alloc.h"
#include "base/arena.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "fmt/doc.h"
#include "metrics/literal.h"
#include "metrics/pattern.h"
#include "metrics/prefilter.h"

#define DEFAULT_PREFIX "**metrics_data: "
#define PREFIX_SET EXTRACT_MAX_PATTERNS /* the prefix's number in the prefilter */

struct extract {
	struct pattern pats[EXTRACT_MAX_PATTERNS];
	size_t n;
	struct pattern_room room;
	struct prefilter *prefilter;
	bool filtered;		      /* the prefilter has literals */
	struct prefilter_hits always; /* patterns that are tried on every line */
	bool any_always;
	char *prefix; /* trimmed; NULL: not looked for */
	uint64_t bad;
};

static void set_prefix(struct extract *ex, const char *prefix)
{
	struct str s = str_trim(str_from(prefix ? prefix : DEFAULT_PREFIX));

	if (s.n > 0)
		ex->prefix = xstrndup(s.p, s.n);
}

static void set_prefilter(struct extract *ex, const struct metric_pattern *pats)
{
	struct literal_set *sets = xcalloc(PREFIX_SET + 1, sizeof(*sets));

	for (size_t i = 0; i < ex->n; i++) {
		sets[i] = literal_required(pats[i].pattern);
		if (sets[i].n > 0) {
			ex->filtered = true;
		} else {
			ex->always.w[i / 64] |= (uint64_t)1 << (i % 64);
			ex->any_always = true;
		}
	}
	if (ex->prefix) {
		sets[PREFIX_SET] = literal_exactly(ex->prefix, strlen(ex->prefix));
		ex->filtered = true;
	}
	ex->prefilter = prefilter_new(sets, PREFIX_SET + 1);
	free(sets);
}

int extract_new(const struct metric_pattern *pats, size_t n, const char *data_prefix,
		struct extract **ret, struct err *err)
{
	if (n > EXTRACT_MAX_PATTERNS)
		return err_set(err, ERR_INVALID, "%zu metric patterns: at most %d are allowed", n,
			       EXTRACT_MAX_PATTERNS);
	if (data_prefix && strchr(data_prefix, '\n'))
		return err_set(err, ERR_INVALID, "the metric prefix holds a newline");

	struct extract *ex = xcalloc(1, sizeof(*ex));
	for (; ex->n < n; ex->n++) {
		if (pattern_compile(&ex->pats[ex->n], &pats[ex->n], ex->n + 1, err) < 0) {
			extract_free(ex);
			return -1;
		}
	}
	pattern_room_init(&ex->room, ex->pats, ex->n);
	set_prefix(ex, data_prefix);
	set_prefilter(ex, pats);
	*ret = ex;
	return 0;
}

struct extract *extract_free(struct extract *ex)
{
	if (ex) {
		for (size_t i = 0; i < ex->n; i++)
			pattern_release(&ex->pats[i]);
		pattern_room_release(&ex->room);
		prefilter_free(ex->prefilter);
		free(ex->prefix);
		free(ex);
	}
	return NULL;
}

uint64_t extract_bad(const struct extract *ex)
{
	return ex->bad;
}

/* "k=v, k=v".  A pair "step=3" is a sample like the others and also their step. */
static void give_pairs(struct str text, const struct sink *sink)
{
	int64_t step = -1;

	for (struct str rest = text; rest.p;) {
		struct str value = str_cut(&rest, ',');
		struct str key = str_cut(&value, '=');

		if (value.p && str_is(str_trim(key), "step") &&
		    (!str_to_i64(str_trim(value), &step) || step < 0))
			step = -1;
	}
	while (text.p) {
		struct str value = str_cut(&text, ',');
		struct str key = str_cut(&value, '=');

		if (value.p)
			sink_text(sink, key, value, step);
		else if (str_trim(key).n >
			 0) /* text without '='; an empty part after a last comma is ignored */
			++*sink->bad;
	}
}

static void give_data(const struct extract *ex, struct str line, const struct sink *sink)
{
	size_t n = strlen(ex->prefix);
	const char *at = memmem(line.p, line.n, ex->prefix, n);

	if (at)
		give_pairs((struct str){at + n, (size_t)(line.p + line.n - at) - n}, sink);
}

/* One line, or a piece of one, by the patterns that the prefilter let through. */
static void run_patterns(struct extract *ex, struct str line, uint32_t options,
			 const struct prefilter_hits *hits, const struct sink *sink)
{
	for (size_t w = 0; w < EXTRACT_MAX_PATTERNS / 64; w++) {
		for (uint64_t left = hits->w[w] | ex->always.w[w]; left; left &= left - 1) {
			size_t i = w * 64 + (size_t)__builtin_ctzll(left);

			pattern_run(&ex->pats[i], &ex->room, line, options, sink);
		}
	}
}

static size_t behind_last(const char *p, size_t n, char c)
{
	while (n > 0 && p[n - 1] != c)
		n--;
	return n;
}

/* A piece ends after the last carriage return (of a progress bar) or blank, so that no number is cut. */
static size_t piece_length(const char *p, size_t n)
{
	if (n <= EXTRACT_PIECE_BYTES)
		return n;
	n = behind_last(p, EXTRACT_PIECE_BYTES, '\r');
	if (n == 0)
		n = behind_last(p, EXTRACT_PIECE_BYTES, ' ');
	return n > 0 ? n : EXTRACT_PIECE_BYTES;
}

static void run_long_line(struct extract *ex, struct str line, const struct sink *sink)
{
	uint32_t options = 0;

	for (size_t from = 0; from < line.n;) {
		struct prefilter_hits hits = {0};
		struct prefilter_scan scan = {0};
		struct str piece = {line.p + from, piece_length(line.p + from, line.n - from)};
		const char *p = ex->filtered ? piece.p : NULL;

		while (p)
			p = prefilter_next(ex->prefilter, &scan, p, piece.p + piece.n, &hits);
		from += piece.n;
		run_patterns(ex, piece, options | (from < line.n ? PCRE2_NOTEOL : 0), &hits, sink);
		options = PCRE2_NOTBOL;
	}
}

static void run_line(struct extract *ex, const char *start, const char *end,
		     const struct prefilter_hits *hits, const struct sink *sink)
{
	struct str line = {start, (size_t)(end - start)};

	if (line.n > 0 && line.p[line.n - 1] == '\r')
		line.n--;
	if (line.n > EXTRACT_PIECE_BYTES)
		run_long_line(ex, line, sink);
	else
		run_patterns(ex, line, 0, hits, sink);
	if (ex->prefix && prefilter_hit(hits, PREFIX_SET))
		give_data(ex, line, sink);
}

static const char *line_end(const char *p, const char *end)
{
	const char *nl = memchr(p, '\n', (size_t)(end - p));

	return nl ? nl : end;
}

/* Runs the patterns only on lines in which the prefilter finds a literal. */
static void run_filtered(struct extract *ex, struct str block, const struct sink *sink)
{
	const char *start = block.p, *end = block.p + block.n;

	for (;;) {
		struct prefilter_hits hits = {0};
		struct prefilter_scan scan = {0};
		const char *p = prefilter_next(ex->prefilter, &scan, start, end, &hits);

		if (!p)
			return;
		const char *before = memrchr(start, '\n', (size_t)(p - start));
		const char *stop = line_end(p, end);
		while (p)
			p = prefilter_next(ex->prefilter, &scan, p, stop, &hits);
		run_line(ex, before ? before + 1 : start, stop, &hits, sink);
		if (stop == end)
			return;
		start = stop + 1;
	}
}

static void run_every_line(struct extract *ex, struct str block, const struct sink *sink)
{
	const char *start = block.p, *end = block.p + block.n;

	while (start < end) {
		struct prefilter_hits hits = {0};
		struct prefilter_scan scan = {0};
		const char *stop = line_end(start, end);
		const char *p = ex->filtered ? start : NULL;

		while (p)
			p = prefilter_next(ex->prefilter, &scan, p, stop, &hits);
		run_line(ex, start, stop, &hits, sink);
		start = stop + 1;
	}
}

void extract_block(struct extract *ex, struct str block, sample_fn fn, void *ctx)
{
	const struct sink sink = {.fn = fn, .ctx = ctx, .bad = &ex->bad};

	if (block.n == 0)
		return;
	if (ex->any_always)
		run_every_line(ex, block, &sink);
	else if (ex->filtered)
		run_filtered(ex, block, &sink);
}

static void give_json(const struct sink *sink, struct str name, const struct doc *d, int64_t step)
{
	switch (d->type) {
	case DOC_INT:
		sink_value(sink, name, (double)d->i, step);
		return;
	case DOC_FLOAT:
		sink_value(sink, name, d->f, step);
		return;
	case DOC_STRING: /* some writers quote their numbers */
		sink_text(sink, name, d->s, step);
		return;
	case DOC_NULL:
	case DOC_BOOL:
	case DOC_TIME:
	case DOC_ARRAY:
	case DOC_TABLE:
		++*sink->bad;
		return;
	}
}

/* A whole number from 0 on, 3.0 included; anything else counts as bad and gives no step. */
static int64_t json_step(const struct doc *d, const struct sink *sink)
{
	if (!d)
		return -1;
	if (d->type == DOC_INT && d->i >= 0)
		return d->i;
	if (d->type == DOC_FLOAT && d->f >= 0 && d->f < 9e15 && d->f == (double)(int64_t)d->f)
		return (int64_t)d->f;
	++*sink->bad;
	return -1;
}

static void give_table(const struct doc *table, int64_t step, const struct sink *sink)
{
	for (size_t i = 0; i < table->table.n; i++) {
		const struct doc_entry *e = &table->table.v[i];

		if (!str_is(e->key, "step"))
			give_json(sink, e->key, e->value, step);
	}
}

/*
 * {"name": "loss", "value": 0.5, "step": 3}, {"metrics": {"loss": 0.5}, "step": 3} or
 * {"loss": 0.5, "step": 3}.  Other keys of the first two forms are the writer's own.
 */
static void give_object(const struct doc *top, const struct sink *sink)
{
	const struct doc *name = doc_get(top, "name"), *value = doc_get(top, "value");
	const struct doc *metrics = doc_table(top, "metrics"), *step = doc_get(top, "step");

	if (metrics && !step)
		step = doc_get(metrics, "step");
	int64_t n = json_step(step, sink);

	if (name && name->type == DOC_STRING && value)
		give_json(sink, name->s, value, n);
	else
		give_table(metrics ? metrics : top, n, sink);
}

void extract_json_line(struct extract *ex, struct str line, sample_fn fn, void *ctx)
{
	CLEANUP(arena_freep) struct arena *a = NULL;
	const struct sink sink = {.fn = fn, .ctx = ctx, .bad = &ex->bad};
	struct doc *top;

	line = str_trim(line);
	if (line.n == 0)
		return;
	a = arena_new();
	if (json_parse(line, a, &top, NULL) < 0 || top->type != DOC_TABLE)
		ex->bad++;
	else
		give_object(top, &sink);
}
