#pragma once
/*
 * pattern - one named regular expression, compiled, and its run over a line.
 *
 * Bytes, not UTF-8.  A match is bounded by PCRE2's limits; a pattern that keeps
 * hitting them is skipped on most lines, so that it cannot stall the stream.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>
#include "base/str.h"
#include "metrics/extract.h"

struct err;

#define PATTERN_MAX_BYTES 4096 /* of the pattern's text */

/* Rows of PCRE2's name table that carry one name; several with (?J). */
struct pattern_group {
	PCRE2_SPTR first, last; /* NULL: no such group */
	uint32_t row_bytes;
	uint32_t number; /* of a group without a name; 0: none */
};

struct pattern {
	char *name; /* NULL: the group "name" gives it */
	pcre2_code *code;
	bool jit;
	struct pattern_group name_group, value_group, step_group, total_group;
	uint32_t strain;
};

/* What all patterns of one extractor share while they match. */
struct pattern_room {
	pcre2_match_data *match;
	pcre2_match_context *limits;
	pcre2_jit_stack *stack;
};

/* Receives the samples, and counts values that are none. */
struct sink {
	sample_fn fn;
	void *ctx;
	uint64_t *bad;
	int64_t total; /* of the current sample; 0 = unknown */
};

/* `number` (from 1) is for messages about a pattern without a name.  On failure *p is empty, as after pattern_release(). */
int pattern_compile(struct pattern *p, const struct metric_pattern *from, size_t number,
		    struct err *err);
void pattern_release(struct pattern *p);
/* Every match in the line, each a sample or one bad.  options: PCRE2_NOTBOL, PCRE2_NOTEOL for a piece of a line. */
void pattern_run(struct pattern *p, const struct pattern_room *room, struct str line,
		 uint32_t options, const struct sink *sink);

/* Large enough for all patterns. */
void pattern_room_init(struct pattern_room *room, const struct pattern *pats, size_t n);
void pattern_room_release(struct pattern_room *room);

/* Hands one sample on if the text is a finite number, else counts it. */
void sink_text(const struct sink *sink, struct str name, struct str value, int64_t step);
void sink_value(const struct sink *sink, struct str name, double value, int64_t step);
