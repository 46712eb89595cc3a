#include "base/buf.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"

#define BUF_FIRST_CAP 64

void buf_init(struct buf *b, size_t max)
{
	*b = (struct buf){.max = max};
}

void buf_release(struct buf *b)
{
	free(b->p);
	*b = (struct buf){.max = b->max};
}

void buf_reset(struct buf *b)
{
	b->n = 0;
	b->overflow = false;
	if (b->p)
		b->p[0] = '\0';
}

/* Room for n more bytes and the NUL, or false past the maximum. */
static bool make_room(struct buf *b, size_t n)
{
	if (b->n > b->max || n > b->max - b->n || n >= SIZE_MAX - b->n)
		return false;
	size_t need = b->n + n + 1;
	if (need <= b->cap)
		return true;

	size_t cap = b->cap < BUF_FIRST_CAP ? BUF_FIRST_CAP : b->cap + b->cap / 2;
	if (cap > b->max)
		cap = b->max < SIZE_MAX ? b->max + 1 : SIZE_MAX;
	if (cap < need)
		cap = need;
	b->p = xrealloc(b->p, cap);
	b->cap = cap;
	return true;
}

void buf_add(struct buf *b, const void *p, size_t n)
{
	if (!make_room(b, n)) {
		b->overflow = true;
		return;
	}
	if (n)
		memcpy(b->p + b->n, p, n);
	b->n += n;
	b->p[b->n] = '\0';
}

void buf_addstr(struct buf *b, struct str s)
{
	buf_add(b, s.p, s.n);
}

void buf_addz(struct buf *b, const char *z)
{
	buf_add(b, z, strlen(z));
}

void buf_addc(struct buf *b, char c)
{
	buf_add(b, &c, 1);
}

/* By hand: with ten thousand nodes printf would take most of the time. */
void buf_addint(struct buf *b, int64_t value)
{
	char text[24], *end = text + sizeof(text), *p = end;
	uint64_t left = value < 0 ? -(uint64_t)value : (uint64_t)value;

	do
		*--p = (char)('0' + left % 10);
	while ((left /= 10) > 0);
	if (value < 0)
		*--p = '-';
	buf_add(b, p, (size_t)(end - p));
}

void buf_printf(struct buf *b, const char *fmt, ...)
{
	size_t room = b->cap > b->n ? b->cap - b->n : 0;
	va_list ap, again;

	va_start(ap, fmt);
	va_copy(again, ap);
	int n = vsnprintf(room ? b->p + b->n : NULL, room, fmt, ap);
	va_end(ap);
	if (n < 0 || !make_room(b, (size_t)n)) {
		b->overflow = true;
		if (room)
			b->p[b->n] = '\0';
	} else {
		if ((size_t)n >= room)
			vsnprintf(b->p + b->n, (size_t)n + 1, fmt, again);
		b->n += (size_t)n;
	}
	va_end(again);
}

void buf_drop_front(struct buf *b, size_t n)
{
	if (n > b->n)
		n = b->n;
	if (!n)
		return;
	b->n -= n;
	memmove(b->p, b->p + n, b->n);
	b->p[b->n] = '\0';
}

char *buf_reserve(struct buf *b, size_t n)
{
	if (!make_room(b, n))
		return NULL;
	b->p[b->n] = '\0';
	return b->p + b->n;
}

void buf_commit(struct buf *b, size_t n)
{
	b->n += n;
	b->p[b->n] = '\0';
}

char *buf_take(struct buf *b)
{
	char *p = b->p ? b->p : xstrdup("");

	*b = (struct buf){.max = b->max};
	return p;
}
