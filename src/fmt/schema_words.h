#pragma once
/* schema_words - fields, values and limits in the user's words.  Internal to fmt/. */
#include "fmt/schema.h"

/* What a value of this field is, for "expected ...": "a whole number". */
const char *words_expected(enum field_type type);
/* The same for the reference: "whole number". */
const char *words_type(enum field_type type);
/* "the string \"x\"", "a table", "3": what a value is, for "got ...". */
void words_value(const struct doc *d, struct buf *out);
/* " from 1 to 10" or " of at least 1", with the field's unit; nothing without limits. */
void words_range(const struct field *f, struct buf *out);
/* "single, roles or pserver" */
void words_choices(const char *const *choices, struct buf *out);
/* Type and limits: "whole number from 1 to 10", "lower or higher". */
void words_field(const struct field *f, struct buf *out);
/* The default as one would write it; nothing if there is none. */
void words_default(const struct field *f, struct buf *out);
/* A duration or size as one would write it. */
void words_duration(int64_t ms, struct buf *out);
void words_size(uint64_t bytes, struct buf *out);

/* Is n within the limits of the field?  max below min is no upper limit. */
bool field_allows(const struct field *f, int64_t n);
bool field_allows_float(const struct field *f, double n);
