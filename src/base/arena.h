#pragma once
/* arena - many small allocations, freed in one call.  Memory is zeroed. */
#include <stddef.h>
#include "base/str.h"

struct arena;

struct arena *arena_new(void);
/* NULL is allowed.  Returns NULL. */
struct arena *arena_free(struct arena *a);
void *arena_alloc(struct arena *a, size_t n) __attribute__((returns_nonnull));
#define arena_new_of(a, type) ((type *)arena_alloc((a), sizeof(type)))
#define arena_array(a, type, n) ((type *)arena_alloc((a), sizeof(type) * (n)))
char *arena_strdup(struct arena *a, const char *z);
char *arena_strndup(struct arena *a, const char *p, size_t n);
struct str arena_str(struct arena *a, struct str s); /* copy, NUL-terminated */
struct str arena_line(struct arena *a,
		      struct str s); /* the same, with a space for each line break */
char *arena_printf(struct arena *a, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
static inline void arena_freep(struct arena **a)
{
	*a = arena_free(*a);
}
