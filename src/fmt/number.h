#pragma once
/* number - the grammar that JSON and TOML share, and doubles as text.  Internal to fmt/. */
#include "base/str.h"

enum num_shape {
	NUM_NONE,
	NUM_INT,
	NUM_FLOAT,
};

/* What the whole text is by the grammar of RFC 8259. */
enum num_shape num_shape(struct str s);

#define NUM_TEXT_MAX 32
/* The shortest decimal that reads back as d, with '.' or 'e'; nan, inf, -inf.  Returns out. */
const char *num_text(double d, char out[static NUM_TEXT_MAX]);
