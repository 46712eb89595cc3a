#pragma once
/*
 * jsonw - write JSON into a buffer, commas and escaping done here.
 *
 *	struct jsonw w; jsonw_init(&w, &buf);
 *	jsonw_open(&w, '{'); jsonw_key(&w, "id"); jsonw_str(&w, id); jsonw_close(&w);
 *
 * Bytes that are not UTF-8 become U+FFFD; doubles print shortest round-trip,
 * always with '.' or 'e'; NaN and infinities become null.
 */
#include <stdbool.h>
#include <stdint.h>
#include "base/str.h"

struct buf;
struct err;

#define JSONW_MAX_DEPTH 96 /* more than any parsed tree; deeper is a bug of the caller and aborts */

struct jsonw {
	struct buf *out;
	int depth;
	bool need_comma;
	char stack[JSONW_MAX_DEPTH]; /* '{' or '[' */
};

/* out is the caller's and outlives w. */
void jsonw_init(struct jsonw *w, struct buf *out);
void jsonw_open(struct jsonw *w, char bracket); /* '{' or '[' */
void jsonw_close(struct jsonw *w);
void jsonw_key(struct jsonw *w, const char *key);
void jsonw_key_str(struct jsonw *w, struct str key);
void jsonw_str(struct jsonw *w, struct str s);
void jsonw_z(struct jsonw *w, const char *z); /* NULL gives null */
void jsonw_int(struct jsonw *w, int64_t i);
void jsonw_double(struct jsonw *w, double d);
void jsonw_bool(struct jsonw *w, bool b);
void jsonw_null(struct jsonw *w);
/* Ready-made JSON, put in as it is. */
void jsonw_raw(struct jsonw *w, struct str json);
/* key + value in one call. */
void jsonw_kstr(struct jsonw *w, const char *key, struct str s);
void jsonw_kz(struct jsonw *w, const char *key, const char *z);
void jsonw_kint(struct jsonw *w, const char *key, int64_t i);
void jsonw_kdouble(struct jsonw *w, const char *key, double d);
void jsonw_kbool(struct jsonw *w, const char *key, bool b);
/* Opens the error that the API answers with, {"error":{"kind":...,"message":...: two closes end it. */
void jsonw_open_error(struct jsonw *w, const struct err *err);
