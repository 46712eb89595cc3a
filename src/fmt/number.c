#include "fmt/number.h"

#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

static size_t digits(struct str s, size_t i)
{
	size_t from = i;

	while (i < s.n && s.p[i] >= '0' && s.p[i] <= '9')
		i++;
	return i - from;
}

enum num_shape num_shape(struct str s)
{
	enum num_shape shape = NUM_INT;
	size_t i = s.n > 0 && s.p[0] == '-' ? 1 : 0;
	size_t n = digits(s, i);

	if (n == 0 || (n > 1 && s.p[i] == '0'))
		return NUM_NONE;
	i += n;
	if (i < s.n && s.p[i] == '.') {
		n = digits(s, ++i);
		if (n == 0)
			return NUM_NONE;
		i += n;
		shape = NUM_FLOAT;
	}
	if (i < s.n && (s.p[i] == 'e' || s.p[i] == 'E')) {
		i++;
		if (i < s.n && (s.p[i] == '+' || s.p[i] == '-'))
			i++;
		n = digits(s, i);
		if (n == 0)
			return NUM_NONE;
		i += n;
		shape = NUM_FLOAT;
	}
	return i == s.n ? shape : NUM_NONE;
}

const char *num_text(double d, char out[static NUM_TEXT_MAX])
{
	if (isnan(d)) {
		snprintf(out, NUM_TEXT_MAX, "nan");
		return out;
	}
	if (isinf(d)) {
		snprintf(out, NUM_TEXT_MAX, d < 0 ? "-inf" : "inf");
		return out;
	}
	/* A normal double holds any 15 digits, and %g drops trailing zeros of shorter ones;
	 * a subnormal double holds fewer digits, so the precision is searched from 1. */
	int precision = d != 0 && fabs(d) < DBL_MIN ? 1 : 15;

	for (; precision <= 17; precision++) {
		snprintf(out, NUM_TEXT_MAX, "%.*g", precision, d);
		if (strtod(out, NULL) == d)
			break;
	}
	if (!strpbrk(out, ".e")) {
		size_t n = strlen(out);

		snprintf(out + n, NUM_TEXT_MAX - n, ".0");
	}
	return out;
}
