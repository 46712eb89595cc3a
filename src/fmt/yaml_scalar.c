#include "fmt/yaml_scalar.h"

#include <math.h>

#include "base/hex.h"

/* All words with a meaning: yes, no, on and off are strings. */
static const struct {
	const char *word;
	struct doc value;
} words[] = {
	{"", {.type = DOC_NULL}},
	{"~", {.type = DOC_NULL}},
	{"null", {.type = DOC_NULL}},
	{"Null", {.type = DOC_NULL}},
	{"NULL", {.type = DOC_NULL}},
	{"true", {.type = DOC_BOOL, .b = true}},
	{"True", {.type = DOC_BOOL, .b = true}},
	{"TRUE", {.type = DOC_BOOL, .b = true}},
	{"false", {.type = DOC_BOOL, .b = false}},
	{"False", {.type = DOC_BOOL, .b = false}},
	{"FALSE", {.type = DOC_BOOL, .b = false}},
	{".inf", {.type = DOC_FLOAT, .f = INFINITY}},
	{".Inf", {.type = DOC_FLOAT, .f = INFINITY}},
	{".INF", {.type = DOC_FLOAT, .f = INFINITY}},
	{"+.inf", {.type = DOC_FLOAT, .f = INFINITY}},
	{"+.Inf", {.type = DOC_FLOAT, .f = INFINITY}},
	{"+.INF", {.type = DOC_FLOAT, .f = INFINITY}},
	{"-.inf", {.type = DOC_FLOAT, .f = -INFINITY}},
	{"-.Inf", {.type = DOC_FLOAT, .f = -INFINITY}},
	{"-.INF", {.type = DOC_FLOAT, .f = -INFINITY}},
	{".nan", {.type = DOC_FLOAT, .f = NAN}},
	{".NaN", {.type = DOC_FLOAT, .f = NAN}},
	{".NAN", {.type = DOC_FLOAT, .f = NAN}},
};

static size_t digits(struct str s, size_t i)
{
	size_t n = 0;

	while (i + n < s.n && s.p[i + n] >= '0' && s.p[i + n] <= '9')
		n++;
	return n;
}

/* 0o or 0x followed by one or more digits of that base and nothing else. */
static bool is_based(struct str s, char letter, const char *alphabet)
{
	if (s.n < 3 || s.p[0] != '0' || s.p[1] != letter)
		return false;
	for (size_t i = 2; i < s.n; i++) {
		if (s.p[i] == '\0' || !strchr(alphabet, s.p[i]))
			return false;
	}
	return true;
}

static bool read_based(struct str s, unsigned base, int64_t *ret_value)
{
	uint64_t value = 0;

	for (size_t i = 2; i < s.n; i++) {
		unsigned digit = (unsigned)hex_digit(s.p[i]);

		if (value > ((uint64_t)INT64_MAX - digit) / base)
			return false;
		value = value * base + digit;
	}
	*ret_value = (int64_t)value;
	return true;
}

/* [-+]? ( .digits | digits [ . digits? ] ) ( [eE] [-+]? digits )?: DOC_INT, DOC_FLOAT, or a
 * string. */
static enum doc_type decimal_type(struct str s)
{
	size_t i = s.n > 0 && (s.p[0] == '-' || s.p[0] == '+') ? 1 : 0;
	size_t before = digits(s, i), after = 0;
	enum doc_type type = DOC_INT;

	i += before;
	if (i < s.n && s.p[i] == '.') {
		after = digits(s, ++i);
		i += after;
		type = DOC_FLOAT;
	}
	if (before + after == 0)
		return DOC_STRING;
	if (i < s.n && (s.p[i] == 'e' || s.p[i] == 'E')) {
		i++;
		if (i < s.n && (s.p[i] == '-' || s.p[i] == '+'))
			i++;
		size_t n = digits(s, i);

		if (n == 0)
			return DOC_STRING;
		i += n;
		type = DOC_FLOAT;
	}
	return i == s.n ? type : DOC_STRING;
}

bool yaml_scalar(struct str text, struct doc *ret)
{
	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
		if (str_is(text, words[i].word)) {
			*ret = words[i].value;
			return true;
		}
	}
	bool octal = is_based(text, 'o', "01234567");

	if (octal || is_based(text, 'x', "0123456789abcdefABCDEF")) {
		ret->type = DOC_INT;
		return read_based(text, octal ? 8 : 16, &ret->i);
	}
	ret->type = decimal_type(text);
	if (ret->type == DOC_INT)
		return str_to_i64(text, &ret->i);
	if (ret->type == DOC_FLOAT) {
		ret->f_text = (struct str){0};
		return str_to_double(text, &ret->f);
	}
	return true;
}
