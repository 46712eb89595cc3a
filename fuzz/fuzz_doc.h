#pragma once
/* fuzz_doc - what must hold for every parser of documents. */
#include <stdio.h>
#include <stdlib.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/utf8.h"
#include "fmt/doc.h"

/* Escapes and repeated header paths make the written text longer than what was read. */
#define FUZZ_TEXT_MAX ((size_t)256 << 20)

typedef int fuzz_parse_fn(struct str text, struct arena *a, struct doc **ret_doc, struct err *err);
typedef void fuzz_print_fn(const struct doc *d, struct buf *out);

/* No byte of a message may steer a terminal. */
static inline void fuzz_check_message(const char *msg)
{
	int line, col;

	if (sscanf(msg, "%d:%d: ", &line, &col) != 2 || line < 1 || col < 1)
		abort();
	for (const char *p = msg; *p; p++)
		if (((unsigned char)*p < 0x20 && *p != '\t') || *p == 0x7f)
			abort();
}

static inline struct doc *fuzz_parse(fuzz_parse_fn *parse, struct str text, struct arena *a)
{
	struct err err = {0};
	struct doc *d = NULL;

	if (parse(text, a, &d, &err) == 0)
		return d;
	if (err.kind != ERR_INVALID || d)
		abort();
	fuzz_check_message(err.msg);
	return NULL;
}

/* Printed, read and printed again: the same text.  What is too long to be read is left alone. */
static inline void fuzz_round_trip(fuzz_parse_fn *parse, fuzz_print_fn *print, const struct doc *d,
				   struct arena *a)
{
	struct err err = {0};
	struct buf one, two;
	struct doc *back;

	buf_init(&one, FUZZ_TEXT_MAX);
	buf_init(&two, FUZZ_TEXT_MAX);
	print(d, &one);
	if (one.overflow)
		abort();
	if (one.n <= DOC_MAX_BYTES) {
		if (parse(buf_str(&one), a, &back, &err) < 0)
			abort();
		print(back, &two);
		if (!str_eq(buf_str(&one), buf_str(&two)))
			abort();
	}
	buf_release(&one);
	buf_release(&two);
}
