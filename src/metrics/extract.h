#pragma once
/*
 * extract - figures out of a job's output.
 *
 * Three sources: named regular expressions (PCRE2, JIT, one scan of a literal
 * prefilter for all of them), lines with the prefix "**metrics_data: k=v,k=v"
 * and, on the metrics stream, JSON lines {"name": value, ..., "step": n}.  A value
 * that is no finite number is counted in `bad`, never fatal.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "base/str.h"

struct err;
struct extract;

struct metric_pattern {
	const char *name;
	/* Named group "value" (or the first that is not named below), optional "step" and "total";
	 * (?<name>..) with name unset: the metric's name. */
	const char *pattern;
};

struct sample {
	struct str name; /* valid during the callback only */
	double value;
	int64_t step;  /* -1 if the line gave none */
	int64_t total; /* how many steps there will be; 0 if the line did not say */
};
typedef void (*sample_fn)(void *ctx, const struct sample *s);

#define EXTRACT_MAX_PATTERNS 64
#define EXTRACT_MAX_NAME 64
/* A longer line is matched in pieces that end behind a \r or a blank: the cost of a pattern may
 * grow with the square of the length. */
#define EXTRACT_PIECE_BYTES 4096

/* ERR_INVALID names the pattern, what PCRE2 said and where in it.  data_prefix NULL is the default,
 * "" is not looked for. */
int extract_new(const struct metric_pattern *pats, size_t n, const char *data_prefix,
		struct extract **ret, struct err *err);
struct extract *extract_free(struct extract *ex);
/* A block of whole lines (each ending in \n, the last may lack it).  The fast path: one prefilter pass
 * over the block.  Samples come line by line, in a line by the order of the patterns; a pattern gives
 * all its matches.  A match that hits PCRE2's limits counts as bad; a pattern that keeps hitting them is skipped on most lines. */
void extract_block(struct extract *ex, struct str block, sample_fn fn, void *ctx);
/* One JSON line of the metrics stream: {"loss":0.5,"step":3}, {"name":"loss","value":0.5,"step":3} or
 * {"metrics":{"loss":0.5},"step":3}. */
void extract_json_line(struct extract *ex, struct str line, sample_fn fn, void *ctx);
uint64_t extract_bad(const struct extract *ex);

/* Up to EXTRACT_MAX_NAME letters, digits and _ . / -: the rule for names in the job file and in the
 * output.  A sample of another name counts as bad. */
bool metric_name_ok(struct str name);
