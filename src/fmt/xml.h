#pragma once
/*
 * xml - a small tree of elements and texts, read by expat (docs/adr/0014).
 *
 * For answers of services, which are hostile until they are parsed: a text with a document type,
 * deeper than XML_MAX_DEPTH or with more than XML_MAX_NODES elements is refused.  Attributes,
 * comments and processing instructions are dropped, and so are prefixes of names ("ns:a" is "a").
 * Text between child elements does not count: an element has children or text.
 *
 *	for (x = xml_at(root, "reservationSet/item"); x; x = xml_next(x))
 *		use(xml_text(x, "reservationId"));
 */
#include <stddef.h>
#include "base/str.h"

struct arena;
struct err;

#define XML_MAX_BYTES ((size_t)64 * 1024 * 1024)
#define XML_MAX_DEPTH 64
#define XML_MAX_NODES 2000000

struct xml {
	const char *name;
	const char *text; /* never NULL; NUL-terminated, and without NULs */
	struct xml *child, *next, *parent;
};

/* The tree lives in the arena.  ERR_PROTOCOL: it is no XML, or too much of it. */
int xml_parse(struct str text, struct arena *a, struct xml **ret_root, struct err *err);
/* The first element at a path of names below x ("a/b/c"); NULL if there is none, or x is NULL. */
const struct xml *xml_at(const struct xml *x, const char *path);
/* The next sibling of the same name. */
const struct xml *xml_next(const struct xml *x);
/* The text at a path; "" is x's own.  "" if there is no such element. */
const char *xml_text(const struct xml *x, const char *path);
/* How many elements of the path's last name there are beside its first match. */
size_t xml_count(const struct xml *x, const char *path);
