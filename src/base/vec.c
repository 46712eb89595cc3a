#include "base/vec.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/alloc.h"

#define VEC_FIRST_CAP 8

void *vec_grow_(void *v, size_t *cap, size_t need, size_t size)
{
	size_t want = *cap ? *cap : VEC_FIRST_CAP / 2;
	size_t bytes;

	do {
		if (__builtin_mul_overflow(want, (size_t)2, &want))
			want = SIZE_MAX;
	} while (want < need);
	/* An overflow becomes SIZE_MAX, for which xrealloc aborts with its message. */
	if (__builtin_mul_overflow(want, size, &bytes))
		bytes = SIZE_MAX;
	v = xrealloc(v, bytes);
	*cap = want;
	return v;
}
