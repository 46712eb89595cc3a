#include "fmt_test.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

void seed_rng(struct rng *r)
{
	const char *given = getenv("REGATTA_SEED");
	uint64_t seed;

	if (!given || !str_to_u64(str_from(given), &seed))
		seed = rand_u64();
	print_message("# REGATTA_SEED=%llu\n", (unsigned long long)seed);
	rng_seed(r, seed);
}

static bool table_same(const struct doc *x, const struct doc *y)
{
	if (x->table.n != y->table.n)
		return false;
	for (size_t i = 0; i < x->table.n; i++) {
		const struct doc *other = NULL;

		for (size_t j = 0; j < y->table.n; j++) {
			if (str_eq(x->table.v[i].key, y->table.v[j].key))
				other = y->table.v[j].value;
		}
		if (!other || !doc_same(x->table.v[i].value, other))
			return false;
	}
	return true;
}

bool doc_same(const struct doc *x, const struct doc *y)
{
	if (x->type != y->type)
		return false;
	switch (x->type) {
	case DOC_NULL:
		return true;
	case DOC_BOOL:
		return x->b == y->b;
	case DOC_INT:
		return x->i == y->i;
	case DOC_FLOAT:
		return (isnan(x->f) && isnan(y->f)) ||
		       (x->f == y->f && signbit(x->f) == signbit(y->f));
	case DOC_STRING:
	case DOC_TIME:
		return str_eq(x->s, y->s);
	case DOC_ARRAY:
		if (x->array.n != y->array.n)
			return false;
		for (size_t i = 0; i < x->array.n; i++) {
			if (!doc_same(x->array.v[i], y->array.v[i]))
				return false;
		}
		return true;
	case DOC_TABLE:
		return table_same(x, y);
	}
	return false;
}

/* Short text of characters that need every kind of escaping. */
static struct str generate_text(struct rng *r, struct arena *a)
{
	static const char *const pieces[] = {
		"a",
		"Z",
		"9",
		"_",
		"-",
		".",
		" ",
		"\"",
		"\\",
		"'",
		"\n",
		"\t",
		"\r",
		"\x01",
		"\x1f",
		"\x7f",
		"\xc3\xa9",
		"\xe2\x82\xac",
		"\xf0\x9f\x9a\xa3",
		"[",
		"]",
		"{",
		"}",
		"#",
		"=",
		",",
		":",
		"key",
		"\xe2\x80\xa8",
	};
	CLEANUP(buf_release) struct buf b;
	size_t n = (size_t)rng_below(r, 8);

	buf_init(&b, 1024);
	for (size_t i = 0; i < n; i++) {
		if (rng_below(r, 30) == 0)
			buf_addc(&b, '\0');
		else
			buf_addz(&b, pieces[rng_below(r, sizeof(pieces) / sizeof(pieces[0]))]);
	}
	return arena_str(a, buf_str(&b));
}

static double generate_double(struct rng *r, bool special)
{
	static const double specials[] = {INFINITY, -INFINITY, NAN};
	static const double plain[] = {0.0,  -0.0, 1.0,	   0.1,
				       1e22, 1e-7, 5e-324, 1.7976931348623157e308};
	double d;

	if (special && rng_below(r, 6) == 0)
		return specials[rng_below(r, 3)];
	if (rng_below(r, 3) == 0)
		return plain[rng_below(r, sizeof(plain) / sizeof(plain[0]))];
	do {
		uint64_t bits = rng_next(r);

		memcpy(&d, &bits, sizeof(d));
	} while (!isfinite(d));
	return d;
}

static struct doc *generate_time(struct rng *r, struct arena *a)
{
	static const char *const times[] = {
		"1979-05-27",
		"07:32:00",
		"1979-05-27T07:32:00Z",
		"1979-05-27 07:32:00.5-07:00",
	};
	struct doc *d = doc_new_str(a, str_from(times[rng_below(r, 4)]));

	d->type = DOC_TIME;
	return d;
}

struct doc *doc_generate_table(struct rng *r, struct arena *a, struct doc_kinds kinds, int depth)
{
	struct doc *d = doc_new(a, DOC_TABLE);
	size_t n = (size_t)rng_below(r, 5);

	for (size_t i = 0; i < n; i++)
		doc_set(a, d, generate_text(r, a), doc_generate(r, a, kinds, depth - 1));
	return d;
}

struct doc *doc_generate(struct rng *r, struct arena *a, struct doc_kinds kinds, int depth)
{
	switch (rng_below(r, depth > 0 ? 10 : 6)) {
	case 0:
		return doc_new_bool(a, rng_below(r, 2));
	case 1:
		return doc_new_int(a, (int64_t)rng_next(r) >> rng_below(r, 64));
	case 2:
		return doc_new_float(a, generate_double(r, kinds.special_floats));
	case 3:
		if (kinds.nulls)
			return doc_new(a, DOC_NULL);
		break;
	case 4:
		if (kinds.times)
			return generate_time(r, a);
		break;
	case 5:
		break;
	case 6:
	case 7: {
		struct doc *d = doc_new(a, DOC_ARRAY);
		size_t n = (size_t)rng_below(r, 4);
		bool tables = rng_below(r, 2);

		for (size_t i = 0; i < n; i++)
			doc_append(a, d,
				   tables ? doc_generate_table(r, a, kinds, depth - 1)
					  : doc_generate(r, a, kinds, depth - 1));
		return d;
	}
	default:
		return doc_generate_table(r, a, kinds, depth);
	}
	return doc_new_str(a, generate_text(r, a));
}

void text_mutate(struct rng *r, struct buf *text)
{
	static const char bytes[] =
		"{}[]\",:\\/0123456789.eE+-tfnu \n\t\x01\x7f\xc3\xa9\xed\xa0\x80'#=_";
	size_t n = 1 + (size_t)rng_below(r, 3);

	for (size_t i = 0; i < n && text->n > 0; i++) {
		size_t at = (size_t)rng_below(r, text->n);
		char c = bytes[rng_below(r, sizeof(bytes) - 1)];

		switch (rng_below(r, 4)) {
		case 0: /* another byte */
			text->p[at] = c;
			break;
		case 1: /* one less */
			memmove(text->p + at, text->p + at + 1, text->n - at - 1);
			text->n--;
			break;
		case 2: /* one more */
			buf_addc(text, c);
			memmove(text->p + at + 1, text->p + at, text->n - at - 1);
			text->p[at] = c;
			break;
		default: /* the end is missing */
			text->n = at;
			break;
		}
	}
}

struct doc *parse_ok(parse_fn *parse, struct arena *a, struct str text)
{
	struct err err = {0};
	struct doc *d = NULL;

	if (parse(text, a, &d, &err) < 0)
		fail_msg("refused: %s\n%.*s", err.msg, STR_ARG(text));
	assert_non_null(d);
	return d;
}

void assert_refused(parse_fn *parse, struct str text, const char *message)
{
	CLEANUP(arena_freep) struct arena *a = arena_new();
	struct err err = {0};
	struct doc untouched, *d = &untouched;

	if (parse(text, a, &d, &err) == 0)
		fail_msg("accepted: %.*s", STR_ARG(text));
	assert_ptr_equal(d, &untouched);
	assert_int_equal(err.kind, ERR_INVALID);
	assert_string_equal(err.msg, message);
}

void assert_parses_to(parse_fn *parse, struct str text, const char *json)
{
	CLEANUP(arena_freep) struct arena *a = arena_new();
	CLEANUP(buf_release) struct buf b;

	buf_init(&b, 1 << 22);
	doc_to_json(parse_ok(parse, a, text), &b);
	assert_string_equal(buf_str(&b).p, json);
}

void assert_pos(struct doc_pos pos, int line, int col)
{
	assert_int_equal(pos.line, line);
	assert_int_equal(pos.col, col);
}

void add_nested(struct buf *out, int n, const char *open, const char *middle, const char *close)
{
	for (int i = 0; i < n; i++)
		buf_addz(out, open);
	buf_addz(out, middle);
	for (int i = 0; i < n; i++)
		buf_addz(out, close);
}
