#pragma once
/*
 * buf - a growing byte buffer that owns its memory and knows its maximum.
 *
 * An append past the maximum sets `overflow` and appends nothing; callers that
 * build bounded text check it once at the end.  Always NUL-terminated once
 * something was appended (the NUL does not count).
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "base/str.h"

struct buf {
	char *p;
	size_t n, cap, max;
	bool overflow;
};

void buf_init(struct buf *b, size_t max);
void buf_release(struct buf *b);
void buf_reset(struct buf *b); /* empty, memory kept */
void buf_add(struct buf *b, const void *p, size_t n);
void buf_addstr(struct buf *b, struct str s);
void buf_addz(struct buf *b, const char *z);
void buf_addc(struct buf *b, char c);
void buf_addint(struct buf *b, int64_t value); /* in decimal */
void buf_printf(struct buf *b, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void buf_drop_front(struct buf *b, size_t n);
/* n writable bytes at the end, or NULL past the maximum; commit with buf_commit. */
char *buf_reserve(struct buf *b, size_t n);
void buf_commit(struct buf *b, size_t n);
static inline struct str buf_str(const struct buf *b)
{
	return (struct str){b->p ? b->p : "", b->n};
}
/* The text as an owned C string; the buffer is empty afterwards. */
char *buf_take(struct buf *b);
