#include "metrics/pattern.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "base/alloc.h"
#include "base/err.h"

/* Each is about a millisecond of backtracking. */
#define MATCH_LIMIT 100000
#define DEPTH_LIMIT 20000
#define HEAP_LIMIT_KIB 4096
#define JIT_STACK_MIN (32 * 1024)
#define JIT_STACK_MAX (512 * 1024)

/* A match that hits a limit adds this much to a pattern's strain, any other result takes one
 * off; above the maximum the pattern is not tried.  So a pattern that hits a limit on every
 * line is tried on one line in STRAIN_COST. */
#define STRAIN_COST 64
#define STRAIN_MAX (32 * STRAIN_COST)

#define COMPILE_OPTIONS (PCRE2_NEVER_BACKSLASH_C | PCRE2_NEVER_UTF | PCRE2_NEVER_UCP)

static int refuse(const struct metric_pattern *from, size_t number, struct err *err,
		  const char *what)
{
	if (from->name)
		return err_set(err, ERR_INVALID, "metric '%s': %s", from->name, what);
	return err_set(err, ERR_INVALID, "metric pattern %zu: %s", number, what);
}

static int on_callout(pcre2_callout_enumerate_block *block, void *ctx)
{
	(void)block, (void)ctx;
	return 1;
}

static struct pattern_group find_group(const pcre2_code *code, const char *name)
{
	struct pattern_group g = {0};
	int row_bytes = pcre2_substring_nametable_scan(code, (PCRE2_SPTR)name, &g.first, &g.last);

	if (row_bytes < 0)
		return (struct pattern_group){0};
	g.row_bytes = (uint32_t)row_bytes;
	return g;
}

/* A row starts with the group's number, most significant byte first. */
static uint32_t row_number(PCRE2_SPTR row)
{
	return (uint32_t)row[0] << 8 | row[1];
}

static bool group_has(const struct pattern_group *g, uint32_t number)
{
	for (PCRE2_SPTR row = g->first; row && row <= g->last; row += g->row_bytes)
		if (row_number(row) == number)
			return true;
	return false;
}

/* The group "value", or else the first that is neither "step", "total" nor "name". */
static bool find_groups(struct pattern *p)
{
	uint32_t count = 0;

	pcre2_pattern_info(p->code, PCRE2_INFO_CAPTURECOUNT, &count);
	p->step_group = find_group(p->code, "step");
	p->total_group = find_group(p->code, "total");
	p->name_group = find_group(p->code, "name");
	p->value_group = find_group(p->code, "value");
	if (p->value_group.first)
		return true;
	for (uint32_t i = 1; i <= count; i++) {
		if (group_has(&p->step_group, i) || group_has(&p->total_group, i) ||
		    group_has(&p->name_group, i))
			continue;
		p->value_group.number = i;
		return true;
	}
	return false;
}

/*
 * PCRE2 10.42 remembers where a repeat has failed and searches for possible starts of a match; with
 * alternatives, atomic groups, assertions or items repeated zero times these optimisations lose matches
 * ('(?:..|=)\w\d*l' on "=1l").  Such patterns run without them; the prefilter makes up for most of the cost.
 */
static bool start_is_tricky(const char *pattern)
{
	static const char *const marks[] = {"|", "(?>", "(?=", "(?*", "{0"};

	for (size_t i = 0; i < sizeof(marks) / sizeof(marks[0]); i++)
		if (strstr(pattern, marks[i]))
			return true;
	return false;
}

static int compile_code(const struct metric_pattern *from, size_t number, pcre2_code **ret,
			struct err *err)
{
	uint32_t options = COMPILE_OPTIONS;
	size_t n = strlen(from->pattern);
	PCRE2_SIZE at = 0;
	int error = 0;

	if (n > PATTERN_MAX_BYTES)
		return refuse(from, number, err, "the pattern is longer than 4096 bytes");
	if (start_is_tricky(from->pattern))
		options |= PCRE2_NO_START_OPTIMIZE;
	*ret = pcre2_compile((PCRE2_SPTR)from->pattern, n, options, &error, &at, NULL);
	if (*ret)
		return 0;

	char text[120], what[160];
	pcre2_get_error_message(error, (PCRE2_UCHAR *)text, sizeof(text));
	snprintf(what, sizeof(what), "%s at offset %zu of its pattern", text, at);
	return refuse(from, number, err, what);
}

int pattern_compile(struct pattern *p, const struct metric_pattern *from, size_t number,
		    struct err *err)
{
	*p = (struct pattern){0};
	if (from->name && (from->name[0] == '\0' || strlen(from->name) > EXTRACT_MAX_NAME))
		return err_set(err, ERR_INVALID,
			       "metric pattern %zu: its name must have 1 to %d bytes", number,
			       EXTRACT_MAX_NAME);
	if (!from->pattern || from->pattern[0] == '\0')
		return refuse(from, number, err, "it has no pattern");
	if (compile_code(from, number, &p->code, err) < 0)
		return -1;

	const char *what = NULL;
	if (pcre2_callout_enumerate(p->code, on_callout, NULL) != 0)
		what = "callouts, (?C...), are not supported in patterns";
	else if (!find_groups(p))
		what = "its pattern captures no value: put it in (?<value>...)";
	else if (!from->name && !p->name_group.first)
		what = "it has no name: give one, or capture it with (?<name>...)";
	if (what) {
		pattern_release(p);
		return refuse(from, number, err, what);
	}
	p->name = from->name ? xstrdup(from->name) : NULL;
	/* Without JIT (the kernel or the pattern forbids it) PCRE2 uses its interpreter. */
	size_t jit_bytes = 0;
	if (pcre2_jit_compile(p->code, PCRE2_JIT_COMPLETE) == 0)
		pcre2_pattern_info(p->code, PCRE2_INFO_JITSIZE, &jit_bytes);
	p->jit = jit_bytes > 0;
	return 0;
}

void pattern_release(struct pattern *p)
{
	free(p->name);
	pcre2_code_free(p->code);
	*p = (struct pattern){0};
}

void pattern_room_init(struct pattern_room *room, const struct pattern *pats, size_t n)
{
	uint32_t pairs = 1;

	for (size_t i = 0; i < n; i++) {
		uint32_t count = 0;

		pcre2_pattern_info(pats[i].code, PCRE2_INFO_CAPTURECOUNT, &count);
		if (count + 1 > pairs)
			pairs = count + 1;
	}
	room->match = pcre2_match_data_create(pairs, NULL);
	room->limits = pcre2_match_context_create(NULL);
	room->stack = pcre2_jit_stack_create(JIT_STACK_MIN, JIT_STACK_MAX, NULL);
	if (!room->match || !room->limits)
		abort(); /* out of memory */
	pcre2_set_match_limit(room->limits, MATCH_LIMIT);
	pcre2_set_depth_limit(room->limits, DEPTH_LIMIT);
	pcre2_set_heap_limit(room->limits, HEAP_LIMIT_KIB);
	/* Without a stack of its own the compiled code uses 32 KiB of ours. */
	pcre2_jit_stack_assign(room->limits, NULL, room->stack);
}

void pattern_room_release(struct pattern_room *room)
{
	pcre2_match_data_free(room->match);
	pcre2_match_context_free(room->limits);
	pcre2_jit_stack_free(room->stack);
	*room = (struct pattern_room){0};
}

bool metric_name_ok(struct str name)
{
	for (size_t i = 0; i < name.n; i++) {
		char c = name.p[i];
		bool alnum =
			(c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');

		if (!alnum && c != '_' && c != '.' && c != '/' && c != '-')
			return false;
	}
	return name.n > 0 && name.n <= EXTRACT_MAX_NAME;
}

void sink_value(const struct sink *sink, struct str name, double value, int64_t step)
{
	struct sample s = {
		.name = str_trim(name), .value = value, .step = step, .total = sink->total};

	if (!metric_name_ok(s.name) || !isfinite(value))
		++*sink->bad;
	else
		sink->fn(sink->ctx, &s);
}

void sink_text(const struct sink *sink, struct str name, struct str value, int64_t step)
{
	double v;

	if (str_to_double(str_trim(value), &v))
		sink_value(sink, name, v, step);
	else
		++*sink->bad;
}

static struct str captured(const struct pattern_room *room, struct str line, uint32_t number,
			   uint32_t groups)
{
	const PCRE2_SIZE *at = pcre2_get_ovector_pointer(room->match) + 2 * (size_t)number;

	if (number >= groups || at[0] == PCRE2_UNSET || at[1] < at[0])
		return (struct str){NULL, 0};
	return (struct str){line.p + at[0], at[1] - at[0]};
}

/* The text that the group captured, p == NULL if none.  Of several groups of one name, the one that matched. */
static struct str capture(const struct pattern_room *room, const struct pattern_group *g,
			  struct str line, uint32_t groups)
{
	if (g->number)
		return captured(room, line, g->number, groups);
	for (PCRE2_SPTR row = g->first; row && row <= g->last; row += g->row_bytes) {
		struct str s = captured(room, line, row_number(row), groups);

		if (s.p)
			return s;
	}
	return (struct str){NULL, 0};
}

static void give_match(const struct pattern *p, const struct pattern_room *room, struct str line,
		       uint32_t groups, const struct sink *sink)
{
	const PCRE2_SIZE *at = pcre2_get_ovector_pointer(room->match);
	struct str value = capture(room, &p->value_group, line, groups);

	if (value.n == 0 && at[0] >= at[1])
		return; /* the value's group did not take part: not counted as bad */

	struct str name = p->name ? str_from(p->name) : capture(room, &p->name_group, line, groups);
	struct str step_text = capture(room, &p->step_group, line, groups);
	struct str total_text = capture(room, &p->total_group, line, groups);
	struct sink with = *sink;
	int64_t step = -1;

	if (!step_text.p || !str_to_i64(str_trim(step_text), &step) || step < 0)
		step = -1;
	if (!total_text.p || !str_to_i64(str_trim(total_text), &with.total) || with.total < step)
		with.total = 0;
	sink_text(&with, name, value, step);
}

/* Where to look for the next match: an empty one must not be found again. */
static size_t behind_match(const struct pattern_room *room, size_t from)
{
	const PCRE2_SIZE *at = pcre2_get_ovector_pointer(room->match);

	if (at[1] > at[0] && at[1] > from)
		return at[1];
	return (at[1] > from ? at[1] : from) + 1;
}

void pattern_run(struct pattern *p, const struct pattern_room *room, struct str line,
		 uint32_t options, const struct sink *sink)
{
	size_t from = 0;

	if (p->strain > STRAIN_MAX) {
		p->strain--;
		++*sink->bad;
		return;
	}
	while (from <= line.n) {
		int rc = p->jit ? pcre2_jit_match(p->code, (PCRE2_SPTR)line.p, line.n, from,
						  options, room->match, room->limits)
				: pcre2_match(p->code, (PCRE2_SPTR)line.p, line.n, from, options,
					      room->match, room->limits);
		if (rc == PCRE2_ERROR_NOMATCH)
			break;
		if (rc < 0) { /* a limit */
			++*sink->bad;
			p->strain += STRAIN_COST;
			return;
		}
		give_match(p, room, line, (uint32_t)rc, sink);
		from = behind_match(room, from);
	}
	if (p->strain > 0)
		p->strain--;
}
