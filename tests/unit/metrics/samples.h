#pragma once
/* samples - what an extractor gave, as text: "loss=0.5@3 acc=1@- lr=1@3/10 ". */
#include "unit.h"

#include "base/buf.h"
#include "base/err.h"
#include "metrics/extract.h"

static inline void samples_note(void *ctx, const struct sample *s)
{
	struct buf *b = ctx;

	buf_addstr(b, s->name);
	buf_printf(b, "=%.17g@", s->value);
	if (s->step < 0)
		buf_addz(b, "- ");
	else if (s->total > 0)
		buf_printf(b, "%lld/%lld ", (long long)s->step, (long long)s->total);
	else
		buf_printf(b, "%lld ", (long long)s->step);
}

static inline struct extract *samples_extractor(const struct metric_pattern *pats, size_t n)
{
	struct extract *ex = NULL;
	struct err err = {0};

	if (extract_new(pats, n, NULL, &ex, &err) < 0)
		fail_msg("%s", err.msg);
	return ex;
}

static inline void samples_equal(struct buf *got, const char *want)
{
	assert_false(got->overflow);
	if (!str_is(buf_str(got), want))
		fail_msg("got '%s', expected '%s'", buf_str(got).p, want);
}
