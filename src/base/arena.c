#include "base/arena.h"

#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"

#define ARENA_FIRST_CHUNK 1024u /* ten thousand hosts have one each */
#define ARENA_LARGEST_CHUNK (256u * 1024)
#define ARENA_ALIGN 16u

struct arena_chunk {
	struct arena_chunk *next;
	size_t used, cap;
	_Alignas(ARENA_ALIGN) char bytes[];
};

/* The first chunk of the list is the one being filled. */
struct arena {
	struct arena_chunk *chunks;
	size_t next_cap;
};

struct arena *arena_new(void)
{
	struct arena *a = xcalloc(1, sizeof(*a));

	a->next_cap = ARENA_FIRST_CHUNK;
	return a;
}

struct arena *arena_free(struct arena *a)
{
	if (!a)
		return NULL;
	while (a->chunks) {
		struct arena_chunk *next = a->chunks->next;
		free(a->chunks);
		a->chunks = next;
	}
	free(a);
	return NULL;
}

static struct arena_chunk *chunk_new(size_t cap)
{
	size_t bytes;

	/* An overflow becomes SIZE_MAX, for which xcalloc aborts with its message. */
	if (__builtin_add_overflow(cap, sizeof(struct arena_chunk), &bytes))
		bytes = SIZE_MAX;
	struct arena_chunk *c = xcalloc(1, bytes);
	c->cap = cap;
	return c;
}

void *arena_alloc(struct arena *a, size_t n)
{
	struct arena_chunk *c = a->chunks;

	if (c && n <= c->cap - c->used) {
		void *p = c->bytes + c->used;
		size_t rounded = (n + ARENA_ALIGN - 1) & ~(size_t)(ARENA_ALIGN - 1);
		c->used += rounded <= c->cap - c->used ? rounded : c->cap - c->used;
		return p;
	}
	if (c && n > a->next_cap / 4) {
		/* A large block stands alone, behind the chunk that is still being filled. */
		struct arena_chunk *alone = chunk_new(n);
		alone->used = n;
		alone->next = c->next;
		c->next = alone;
		return alone->bytes;
	}
	c = chunk_new(n > a->next_cap ? n : a->next_cap);
	c->next = a->chunks;
	a->chunks = c;
	if (a->next_cap < ARENA_LARGEST_CHUNK)
		a->next_cap *= 2;
	return arena_alloc(a, n);
}

char *arena_strdup(struct arena *a, const char *z)
{
	return arena_strndup(a, z, strlen(z));
}

char *arena_strndup(struct arena *a, const char *p, size_t n)
{
	char *copy = arena_alloc(a, n + 1);

	if (n)
		memcpy(copy, p, n);
	return copy;
}

struct str arena_str(struct arena *a, struct str s)
{
	return (struct str){arena_strndup(a, s.p, s.n), s.n};
}

struct str arena_line(struct arena *a, struct str s)
{
	char *copy = arena_strndup(a, s.p, s.n);

	for (size_t i = 0; i < s.n; i++)
		if (copy[i] == '\n')
			copy[i] = ' ';
	return (struct str){copy, s.n};
}

char *arena_printf(struct arena *a, const char *fmt, ...)
{
	char small[256];
	va_list ap;

	va_start(ap, fmt);
	int n = vsnprintf(small, sizeof(small), fmt, ap);
	va_end(ap);
	if (n < 0)
		return arena_strndup(a, NULL, 0);
	if ((size_t)n < sizeof(small))
		return arena_strndup(a, small, (size_t)n);

	char *p = arena_alloc(a, (size_t)n + 1);
	va_start(ap, fmt);
	vsnprintf(p, (size_t)n + 1, fmt, ap);
	va_end(ap);
	return p;
}
