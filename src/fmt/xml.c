#include "fmt/xml.h"

#include <string.h>

#include <expat.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/cleanup.h"
#include "base/err.h"

struct xml_reading {
	XML_Parser parser;
	struct arena *a;
	struct xml *root, *at;
	struct buf text; /* of the element that is open */
	int depth;
	size_t nodes;
	const char *why; /* it was refused */
};

static void refuse(struct xml_reading *r, const char *why)
{
	r->why = why;
	XML_StopParser(r->parser, XML_FALSE);
}

static void append_child(struct xml_reading *r, struct xml *x)
{
	/* The last child is remembered in the parent's `next` until the parent itself ends. */
	struct xml *parent = r->at;

	x->parent = parent;
	if (!parent)
		r->root = x;
	else if (!parent->child)
		parent->child = x;
	else
		parent->next->next = x;
	if (parent)
		parent->next = x;
}

static void XMLCALL on_start(void *ctx, const char *name, const char **attributes)
{
	struct xml_reading *r = ctx;
	const char *colon = strrchr(name, ':');

	(void)attributes;
	if (++r->depth > XML_MAX_DEPTH) {
		refuse(r, "it is nested too deeply");
		return;
	}
	if (++r->nodes > XML_MAX_NODES) {
		refuse(r, "it has too many elements");
		return;
	}
	struct xml *x = arena_new_of(r->a, struct xml);

	x->name = arena_strdup(r->a, colon ? colon + 1 : name);
	x->text = "";
	append_child(r, x);
	r->at = x;
	buf_reset(&r->text);
}

static void XMLCALL on_end(void *ctx, const char *name)
{
	struct xml_reading *r = ctx;
	struct xml *x = r->at;

	(void)name;
	r->depth--;
	if (!x->child && r->text.n > 0)
		x->text = arena_strndup(r->a, r->text.p, r->text.n);
	buf_reset(&r->text);
	r->at = x->parent;
	x->next = NULL; /* a sibling that follows sets it */
}

static void XMLCALL on_text(void *ctx, const char *p, int n)
{
	struct xml_reading *r = ctx;

	buf_add(&r->text, p, (size_t)n);
}

static void XMLCALL on_doctype(void *ctx, const char *name, const char *system_id,
			       const char *public_id, int internal)
{
	(void)name;
	(void)system_id;
	(void)public_id;
	(void)internal;
	refuse(ctx, "it has a document type");
}

static int judge(struct xml_reading *r, bool ok, struct err *err)
{
	if (r->why)
		return err_set(err, ERR_PROTOCOL, "the XML is refused: %s", r->why);
	if (!ok)
		return err_set(err, ERR_PROTOCOL, "not XML: line %lu: %s",
			       (unsigned long)XML_GetCurrentLineNumber(r->parser),
			       XML_ErrorString(XML_GetErrorCode(r->parser)));
	return 0;
}

int xml_parse(struct str text, struct arena *a, struct xml **ret_root, struct err *err)
{
	struct xml_reading r = {.a = a};

	if (text.n > XML_MAX_BYTES)
		return err_set(err, ERR_PROTOCOL, "the XML is refused: it has %zu bytes", text.n);
	r.parser = XML_ParserCreate(NULL);
	if (!r.parser)
		return err_set(err, ERR_IO, "no memory for an XML parser");
	buf_init(&r.text, XML_MAX_BYTES);
	XML_SetUserData(r.parser, &r);
	XML_SetElementHandler(r.parser, on_start, on_end);
	XML_SetCharacterDataHandler(r.parser, on_text);
	XML_SetStartDoctypeDeclHandler(r.parser, on_doctype);
	bool ok = XML_Parse(r.parser, text.p ? text.p : "", (int)text.n, XML_TRUE) == XML_STATUS_OK;
	int rc = judge(&r, ok, err);

	XML_ParserFree(r.parser);
	buf_release(&r.text);
	if (rc == 0)
		*ret_root = r.root;
	return rc;
}

static const struct xml *child_named(const struct xml *x, struct str name)
{
	for (const struct xml *c = x ? x->child : NULL; c; c = c->next)
		if (str_is(name, c->name))
			return c;
	return NULL;
}

const struct xml *xml_at(const struct xml *x, const char *path)
{
	struct str rest = str_from(path);

	while (x && rest.p && rest.n > 0) {
		struct str name = str_cut(&rest, '/');

		x = child_named(x, name);
	}
	return x;
}

const struct xml *xml_next(const struct xml *x)
{
	for (const struct xml *n = x ? x->next : NULL; n; n = n->next)
		if (strcmp(n->name, x->name) == 0)
			return n;
	return NULL;
}

const char *xml_text(const struct xml *x, const char *path)
{
	const struct xml *at = xml_at(x, path);

	return at ? at->text : "";
}

size_t xml_count(const struct xml *x, const char *path)
{
	size_t n = 0;

	for (x = xml_at(x, path); x; x = xml_next(x))
		n++;
	return n;
}
