#pragma once
/* map - string keys (copied) to pointers (not owned); insertion order is kept. */
#include <stddef.h>
#include "base/str.h"

struct map;

struct map *map_new(void);
/* NULL is allowed.  Returns NULL.  Values are the caller's. */
struct map *map_free(struct map *m);
static inline void map_freep(struct map **m)
{
	*m = map_free(*m);
}
/* Returns the value it replaced, or NULL. */
void *map_put(struct map *m, struct str key, void *value);
void *map_get(const struct map *m, struct str key);
void *map_del(struct map *m, struct str key);
size_t map_count(const struct map *m);
/* for (size_t i = 0; map_at(m, &i, &key, &value); ) ...; do not put or delete meanwhile. */
bool map_at(const struct map *m, size_t *it, struct str *ret_key, void **ret_value);
