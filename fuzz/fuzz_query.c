/* A query has a bounded number of pairs, no NUL in them, and every name finds its first value. */
#include <stdint.h>
#include <stdlib.h>

#include "base/arena.h"
#include "base/cleanup.h"
#include "fmt/url.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	CLEANUP(arena_freep) struct arena *a = arena_new();
	struct url_query q;

	if (!query_parse((struct str){(const char *)data, size}, a, &q))
		return 0;
	if (q.n > QUERY_MAX_PAIRS)
		abort();
	for (size_t i = 0; i < q.n; i++) {
		if (strlen(q.v[i].name.p) != q.v[i].name.n ||
		    strlen(q.v[i].value.p) != q.v[i].value.n)
			abort();
		size_t first = 0;

		while (!str_eq(q.v[first].name, q.v[i].name))
			first++;
		if (!str_eq(query_get(&q, q.v[i].name.p, STR("")), q.v[first].value))
			abort();
	}
	return 0;
}
