#include "fmt/schema_words.h"

#include "base/buf.h"
#include "fmt/number.h"
#include "fmt/quote.h"

static const struct {
	const char *expected, *type;
	const char *unit; /* what min and max count; NULL: they limit the value itself */
} kinds[] = {
	[FIELD_STR] = {"a string", "string", "bytes"},
	[FIELD_NAME] = {"a name of a-z, 0-9 and - (at most 40, a letter or digit at both ends)",
			"name", "bytes"},
	[FIELD_BOOL] = {"true or false", "true or false", ""},
	[FIELD_INT] = {"a whole number", "whole number", ""},
	[FIELD_FLOAT] = {"a number", "number", ""},
	[FIELD_DURATION] = {"a duration such as \"90s\" or \"2h\"", "duration", ""},
	[FIELD_SIZE] = {"a size such as \"512MiB\" or \"2GiB\"", "size", ""},
	[FIELD_CHOICE] = {"one of the known words", "choice", ""},
	[FIELD_STRS] = {"a string or a list of strings", "string or list of strings", "items"},
	[FIELD_INTS] = {"whole numbers", "list of whole numbers", ""},
	[FIELD_ARGV] = {"a command as a list of strings or one string", "command", "words"},
	[FIELD_ENV] = {"a table of names and strings", "table of strings", "entries"},
	[FIELD_TABLE] = {"a table", "table", "entries"},
	[FIELD_MAP] = {"tables by name", "tables by name", "entries"},
	[FIELD_LIST] = {"a list of tables", "list of tables", "tables"},
	[FIELD_BOX] = {"a table", "table", "entries"},
	[FIELD_DOC] = {"a table", "table of any keys", "entries"},
	[FIELD_ANY] = {"a value", "value", ""},
};

const char *words_expected(enum field_type type)
{
	return kinds[type].expected;
}

const char *words_type(enum field_type type)
{
	return kinds[type].type;
}

void words_value(const struct doc *d, struct buf *out)
{
	char shown[QUOTE_MAX], number[NUM_TEXT_MAX];

	switch (d->type) {
	case DOC_NULL:
		buf_addz(out, "null");
		break;
	case DOC_BOOL:
		buf_addz(out, d->b ? "true" : "false");
		break;
	case DOC_INT:
		buf_printf(out, "the whole number %lld", (long long)d->i);
		break;
	case DOC_FLOAT:
		buf_printf(out, "the number %s", num_text(d->f, number));
		break;
	case DOC_STRING:
		buf_printf(out, "the string \"%s\"", str_quote(d->s, shown));
		break;
	case DOC_TIME:
		buf_printf(out, "the date or time %s", str_quote(d->s, shown));
		break;
	case DOC_ARRAY:
	case DOC_TABLE:
		buf_printf(out, "a %s", doc_type_name(d->type));
		break;
	}
}

void words_duration(int64_t ms, struct buf *out)
{
	static const struct {
		int64_t ms;
		const char *name;
	} units[] = {{86400000, "d"}, {3600000, "h"}, {60000, "m"}, {1000, "s"}, {1, "ms"}};

	if (ms <= 0)
		buf_addz(out, "0s");
	for (size_t i = 0; ms > 0 && i < sizeof(units) / sizeof(units[0]); i++) {
		if (ms >= units[i].ms)
			buf_printf(out, "%lld%s", (long long)(ms / units[i].ms), units[i].name);
		ms %= units[i].ms;
	}
}

void words_size(uint64_t bytes, struct buf *out)
{
	static const char *const units[] = {"", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
	size_t i = 0;

	while (bytes > 0 && bytes % 1024 == 0 && i + 1 < sizeof(units) / sizeof(units[0])) {
		bytes /= 1024;
		i++;
	}
	buf_printf(out, "%llu%s", (unsigned long long)bytes, units[i]);
}

static void words_limit(const struct field *f, int64_t n, struct buf *out)
{
	if (f->type == FIELD_DURATION)
		words_duration(n, out);
	else if (f->type == FIELD_SIZE)
		words_size((uint64_t)n, out);
	else
		buf_printf(out, "%lld", (long long)n);
}

void words_range(const struct field *f, struct buf *out)
{
	if (f->min == 0 && f->max == 0)
		return;
	if (f->max < f->min && f->min == 1 && *kinds[f->type].unit) {
		buf_addz(out, " that is not empty");
		return;
	}
	if (f->max < f->min) {
		buf_addz(out, " of at least ");
		words_limit(f, f->min, out);
	} else {
		buf_addz(out, " from ");
		words_limit(f, f->min, out);
		buf_addz(out, " to ");
		words_limit(f, f->max, out);
	}
	if (*kinds[f->type].unit)
		buf_printf(out, " %s", kinds[f->type].unit);
}

void words_choices(const char *const *choices, struct buf *out)
{
	for (size_t i = 0; choices[i]; i++)
		buf_printf(out, "%s%s", i == 0 ? "" : choices[i + 1] ? ", " : " or ", choices[i]);
}

void words_field(const struct field *f, struct buf *out)
{
	if (f->type == FIELD_CHOICE)
		words_choices(f->choices, out);
	else
		buf_addz(out, words_type(f->type));
	words_range(f, out);
	if (f->type == FIELD_INT && f->choices) {
		buf_addz(out, ", or ");
		words_choices(f->choices, out);
	}
}

void words_default(const struct field *f, struct buf *out)
{
	bool quoted = f->type == FIELD_STR || f->type == FIELD_NAME || f->type == FIELD_CHOICE ||
		      f->type == FIELD_DURATION || f->type == FIELD_SIZE;

	if (f->fallback)
		buf_printf(out, quoted ? "\"%s\"" : "%s", f->fallback);
	else if (f->type == FIELD_BOOL && !f->set_offset && !f->required)
		buf_addz(out, "false");
}

bool field_allows(const struct field *f, int64_t n)
{
	if (f->min == 0 && f->max == 0)
		return true;
	return n >= f->min && (f->max < f->min || n <= f->max);
}

bool field_allows_float(const struct field *f, double n)
{
	if (f->min == 0 && f->max == 0)
		return true;
	return n >= (double)f->min && (f->max < f->min || n <= (double)f->max);
}
