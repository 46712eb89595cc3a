/* toml_plain - booleans, numbers, dates and times. */
#include "fmt/toml_scan.h"

#include <math.h>

#include "base/arena.h"
#include "fmt/number.h"
#include "fmt/quote.h"

static bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

static bool is_plain(char c)
{
	return is_digit(c) || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' ||
	       c == '+' || c == '-' || c == '.' || c == ':';
}

/* Does the text have this form?  '9' stands for a digit, anything else for itself. */
static bool has_form(struct str s, const char *form)
{
	size_t i = 0;

	for (; form[i]; i++) {
		if (i == s.n || (form[i] == '9' ? !is_digit(s.p[i]) : form[i] != s.p[i]))
			return false;
	}
	return true;
}

static int two(const char *p)
{
	return (p[0] - '0') * 10 + (p[1] - '0');
}

static bool date_exists(const char *p)
{
	static const int days[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
	int year = two(p) * 100 + two(p + 2), month = two(p + 5), day = two(p + 8);
	bool leap = (year % 4 == 0 && year % 100 != 0) || year % 400 == 0;

	return month >= 1 && month <= 12 && day >= 1 &&
	       day <= days[month - 1] + (month == 2 && leap ? 1 : 0);
}

/* Cuts "hh:mm:ss[.fraction]" off the front; 60 is a leap second. */
static bool cut_time(struct str *s)
{
	size_t n = 8;

	if (!has_form(*s, "99:99:99") || two(s->p) > 23 || two(s->p + 3) > 59 || two(s->p + 6) > 60)
		return false;
	if (n < s->n && s->p[n] == '.') {
		size_t from = ++n;

		while (n < s->n && is_digit(s->p[n]))
			n++;
		if (n == from)
			return false;
	}
	s->p += n;
	s->n -= n;
	return true;
}

static bool is_offset(struct str s)
{
	if (s.n == 1 && (*s.p == 'Z' || *s.p == 'z'))
		return true;
	return s.n == 6 && (has_form(s, "+99:99") || has_form(s, "-99:99")) && two(s.p + 1) <= 23 &&
	       two(s.p + 4) <= 59;
}

static bool is_time(struct str s)
{
	bool dated = has_form(s, "9999-99-99");

	if (dated) {
		if (!date_exists(s.p))
			return false;
		s.p += 10;
		s.n -= 10;
		if (s.n == 0)
			return true;
		if (*s.p != 'T' && *s.p != 't' && *s.p != ' ')
			return false;
		s.p++;
		s.n--;
	}
	if (!cut_time(&s))
		return false;
	return s.n == 0 || (dated && is_offset(s));
}

/* 0x, 0o and 0b: digits with single '_' between them, no sign, up to 2^63-1. */
static bool read_based(struct str s, int64_t *ret_value)
{
	static const struct {
		struct str prefix;
		unsigned base;
	} bases[] = {{{"0x", 2}, 16}, {{"0o", 2}, 8}, {{"0b", 2}, 2}};
	unsigned base = 0;
	uint64_t value = 0;
	bool after_digit = false;

	for (size_t i = 0; i < sizeof(bases) / sizeof(bases[0]); i++) {
		if (str_starts(s, bases[i].prefix))
			base = bases[i].base;
	}
	if (base == 0)
		return false;
	for (size_t i = 2; i < s.n; i++) {
		char c = s.p[i];
		unsigned digit = is_digit(c)		? (unsigned)(c - '0')
				 : c >= 'a' && c <= 'f' ? (unsigned)(c - 'a') + 10
				 : c >= 'A' && c <= 'F' ? (unsigned)(c - 'A') + 10
							: 99;

		if (c == '_' && after_digit) {
			after_digit = false;
			continue;
		}
		if (digit >= base || value > ((uint64_t)INT64_MAX - digit) / base)
			return false;
		value = value * base + digit;
		after_digit = true;
	}
	*ret_value = (int64_t)value;
	return after_digit;
}

/* The decimal without '_' and '+', into scratch; false if one is at a place where TOML forbids it. */
static bool clean_decimal(struct reader *r, struct str s)
{
	buf_reset(&r->scratch);
	for (size_t i = 0; i < s.n; i++) {
		if (s.p[i] == '_') {
			if (i == 0 || i + 1 == s.n || !is_digit(s.p[i - 1]) ||
			    !is_digit(s.p[i + 1]))
				return false;
		} else if (i > 0 || s.p[i] != '+') {
			buf_addc(&r->scratch, s.p[i]);
		} else if (s.n > 1 && s.p[1] == '-') {
			return false;
		}
	}
	return num_shape(buf_str(&r->scratch)) != NUM_NONE;
}

static bool read_special(struct str s, double *ret_value)
{
	bool minus = s.n > 0 && *s.p == '-';

	if (minus || (s.n > 0 && *s.p == '+')) {
		s.p++;
		s.n--;
	}
	if (!str_is(s, "inf") && !str_is(s, "nan"))
		return false;
	double value = *s.p == 'i' ? (double)INFINITY : (double)NAN;

	*ret_value = minus ? -value : value;
	return true;
}

/* All bytes a plain value may consist of; a date may go on behind one space. */
static struct str take_word(struct reader *r)
{
	struct str word = {r->p, 0};

	while (r->p < r->end && is_plain(*r->p))
		r->p++;
	if (r->p - word.p == 10 && has_form((struct str){word.p, 10}, "9999-99-99") &&
	    r->end - r->p >= 2 && r->p[0] == ' ' && is_digit(r->p[1])) {
		r->p++;
		while (r->p < r->end && is_plain(*r->p))
			r->p++;
	}
	word.n = (size_t)(r->p - word.p);
	return word;
}

int toml_read_plain(struct reader *r, struct doc **ret_doc)
{
	char shown[QUOTE_MAX];
	struct doc_pos pos = reader_pos(r);
	struct str word = take_word(r);
	struct doc value = {.type = DOC_NULL};

	if (word.n == 0)
		return reader_expected(r, "a value");
	if (clean_decimal(r, word)) {
		*ret_doc = reader_number(r, buf_str(&r->scratch), pos);
		return *ret_doc ? 0 : -1;
	}
	if (str_is(word, "true") || str_is(word, "false")) {
		value.type = DOC_BOOL;
		value.b = word.n == 4;
	} else if (read_based(word, &value.i)) {
		value.type = DOC_INT;
	} else if (read_special(word, &value.f)) {
		value.type = DOC_FLOAT;
		value.f_text = (struct str){0};
	} else if (is_time(word)) {
		value.type = DOC_TIME;
		value.s = arena_str(r->a, word);
	} else {
		bool numeric =
			is_digit(*word.p) || *word.p == '+' || *word.p == '-' || *word.p == '.';

		return reader_fail(r, pos, "found '%s', expected a value%s", str_quote(word, shown),
				   numeric ? " (not a valid number, date or time)"
					   : " (a string needs quotes)");
	}
	struct doc *d = reader_node(r, value.type, pos);

	if (!d)
		return -1;
	value.pos = pos;
	*d = value;
	*ret_doc = d;
	return 0;
}
