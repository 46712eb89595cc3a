#pragma once
/*
 * page - the dashboard, as part of the binary: one page, its script, style sheet and icon.
 *
 * web/build.mjs makes them from web/ at build time, compressed.  Every browser takes
 * gzip, so there is no other form: answer with `Content-Encoding: gzip`, the type and
 * the ETag given here, and 304 when If-None-Match has that ETag.  The names do not change
 * with the contents, so `Cache-Control: no-cache`.
 */
#include <stddef.h>
#include "base/str.h"

/* Content-Security-Policy of every answer with a page: only what the page needs. */
#define PAGE_CSP                                                                                   \
	"default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; "            \
	"img-src 'self' data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

struct page_asset {
	const char *path;
	const char *type; /* Content-Type */
	const char *etag; /* with its quotes */
	const unsigned char *gzip;
	size_t n;
};

/*
 * The file at a path (without the query), NULL if none.  "/", "/compare" and "/run/<anything>" are all the same
 * page, which reads its own address.  The path is compared, never used as the name of a file.
 */
const struct page_asset *page_find(struct str path);
