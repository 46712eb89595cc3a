#pragma once
/* A plan as it is stored with its run, and back. */
#include "../spec/golden.h"

#include "fmt/doc.h"
#include "plan/plan.h"

static inline const char *stored_text(const struct plan *p, struct arena *a)
{
	CLEANUP(buf_release) struct buf text;

	buf_init(&text, PLAN_MAX_BYTES);
	plan_to_stored(p, &text);
	assert_false(text.overflow);
	return arena_strndup(a, buf_str(&text).p, text.n);
}

static inline struct doc *stored_parsed(const char *json, struct arena *a)
{
	struct doc *d = NULL;
	struct err err = {0};

	if (json_parse_limited(str_from(json), PLAN_MAX_BYTES, PLAN_MAX_VALUES, a, &d, &err) < 0)
		fail_msg("%s", err.msg);
	return d;
}

static inline struct plan stored_back(const char *json, struct arena *a)
{
	struct problems ps = {0};
	struct plan p;

	if (!plan_from_doc(stored_parsed(json, a), a, &p, &ps))
		fail_msg("%s", ps.v[0].text);
	return p;
}
