/* Durations, sizes and numbers: what is taken means one thing, and comes back from its plain form. */
#include <inttypes.h>
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/str.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_duration(struct str s)
{
	int64_t ms = -1, back = -1;
	char text[32];

	if (!str_to_duration_ms(s, &ms)) {
		if (ms != -1)
			abort();
		return;
	}
	snprintf(text, sizeof(text), "%" PRId64 "ms", ms);
	if (ms < 0 || !str_to_duration_ms(str_from(text), &back) || back != ms)
		abort();
}

static void check_size(struct str s)
{
	uint64_t bytes = 7, back = 0;
	char text[32];

	if (!str_to_size(s, &bytes)) {
		if (bytes != 7)
			abort();
		return;
	}
	snprintf(text, sizeof(text), "%" PRIu64, bytes);
	if (!str_to_size(str_from(text), &back) || back != bytes)
		abort();
}

static void check_whole(struct str s)
{
	uint64_t u;
	int64_t i;

	if (str_to_u64(s, &u) && u <= INT64_MAX && (!str_to_i64(s, &i) || (uint64_t)i != u))
		abort();
}

/* libc is the judge of what it takes; it takes more than we do. */
static void check_double(struct str s)
{
	char *z, *end;
	double v;

	if (!str_to_double(s, &v))
		return;
	z = xstrndup(s.p, s.n);
	double theirs = strtod(z, &end);
	if (!isfinite(v) || *end || end != z + s.n || memcmp(&theirs, &v, sizeof(v)) != 0)
		abort();
	free(z);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct str s = {(const char *)data, size};

	check_duration(s);
	check_size(s);
	check_whole(s);
	check_double(s);
	return 0;
}
