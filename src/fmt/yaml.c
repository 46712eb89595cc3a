/*
 * yaml - the part of YAML that is plain data: block and flow style, the scalars of
 * the 1.2 core schema, and within limits anchors, aliases and the merge key.
 *
 * The tree is built from libyaml's events.  Tags, and anchors and aliases of keys, are
 * refused with their position.  Plain yes, no, on and off are strings.
 *
 * libyaml counts characters, doc.h counts bytes; the events come in the order
 * of the text, so the reader's cursor follows them.
 */
#include "fmt/doc.h"

#include <stdio.h>
#include <yaml.h>

#include "base/arena.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "fmt/number.h"
#include "fmt/quote.h"
#include "fmt/reader.h"
#include "fmt/yaml_anchor.h"
#include "fmt/yaml_scalar.h"

#define TAG_LINES_MAX 16 /* a text with more lines that look like %TAG directives is refused */

struct source {
	struct reader r;
	const char *text; /* where the cursor started */
	size_t index;	  /* characters between text and the cursor */
	yaml_parser_t parser;
	bool parser_open;
	struct yaml_anchors anchors;
};

static int read_node(struct source *s, const yaml_event_t *ev, struct doc **ret_doc);

static void source_release(struct source *s)
{
	if (s->parser_open)
		yaml_parser_delete(&s->parser);
	yaml_anchors_release(&s->anchors);
	reader_release(&s->r);
}

static bool is_continuation(char c)
{
	return ((unsigned char)c & 0xC0) == 0x80;
}

/* Moves the cursor to this character; linear in the distance. */
static void move_to(struct source *s, size_t index)
{
	struct reader *r = &s->r;
	bool other_line = false;

	while (s->index < index && r->p < r->end) {
		bool newline = *r->p == '\n';

		do
			r->p++;
		while (r->p < r->end && is_continuation(*r->p));
		s->index++;
		if (newline)
			reader_newline(r);
	}
	while (s->index > index) {
		do
			r->p--;
		while (is_continuation(*r->p));
		s->index--;
		if (*r->p == '\n') {
			r->line--;
			other_line = true;
		}
	}
	if (other_line) {
		const char *newline = memrchr(s->text, '\n', (size_t)(r->p - s->text));

		r->line_start = newline ? newline + 1 : s->text;
	}
}

static struct doc_pos pos_of(struct source *s, yaml_mark_t mark)
{
	move_to(s, mark.index);
	return reader_pos(&s->r);
}

/* Reports libyaml's own message after the text at its position. */
static int fail_parser(struct source *s)
{
	const yaml_parser_t *p = &s->parser;
	char found[FOUND_MAX];

	if (p->error == YAML_READER_ERROR) {
		/* libyaml gives this position in bytes, and it reads ahead of the events. */
		move_to(s, 0);
		while ((size_t)(s->r.p - s->text) < p->problem_offset && s->r.p < s->r.end)
			move_to(s, s->index + 1);
	} else {
		move_to(s, p->problem_mark.index);
	}
	return reader_fail(&s->r, reader_pos(&s->r), "found %s: %s%s%s%s",
			   reader_found(&s->r, found), p->problem ? p->problem : "out of memory",
			   p->context ? " (" : "", p->context ? p->context : "",
			   p->context ? ")" : "");
}

static int next(struct source *s, yaml_event_t *ev)
{
	if (yaml_parser_parse(&s->parser, ev))
		return 0;
	return fail_parser(s);
}

/* The name after '&' of the event; NULL: it has none. */
static const yaml_char_t *anchor_of(const yaml_event_t *ev)
{
	if (ev->type == YAML_SCALAR_EVENT)
		return ev->data.scalar.anchor;
	if (ev->type == YAML_SEQUENCE_START_EVENT)
		return ev->data.sequence_start.anchor;
	return ev->type == YAML_MAPPING_START_EVENT ? ev->data.mapping_start.anchor : NULL;
}

static int check_tag(struct source *s, const yaml_event_t *ev)
{
	const yaml_char_t *tag = NULL;

	if (ev->type == YAML_SCALAR_EVENT)
		tag = ev->data.scalar.tag;
	else if (ev->type == YAML_SEQUENCE_START_EVENT)
		tag = ev->data.sequence_start.tag;
	else if (ev->type == YAML_MAPPING_START_EVENT)
		tag = ev->data.mapping_start.tag;
	if (tag)
		return reader_fail(&s->r, pos_of(s, ev->start_mark),
				   "found a tag, expected a value without one");
	return 0;
}

static struct str scalar_text(const yaml_event_t *ev)
{
	return (struct str){(const char *)ev->data.scalar.value, ev->data.scalar.length};
}

static bool is_plain(const yaml_event_t *ev)
{
	return ev->data.scalar.style == YAML_PLAIN_SCALAR_STYLE;
}

static int read_scalar(struct source *s, const yaml_event_t *ev, struct doc **ret_doc)
{
	char shown[QUOTE_MAX];
	struct doc_pos pos = pos_of(s, ev->start_mark);
	struct str text = scalar_text(ev);
	struct doc value = {.type = DOC_STRING};

	if (is_plain(ev) && !yaml_scalar(text, &value))
		return reader_fail(
			&s->r, pos,
			"found the number %s, expected one that fits 64 bits (a string needs quotes)",
			str_quote(text, shown));
	struct doc *d = reader_node(&s->r, value.type, pos);

	if (!d)
		return -1;
	if (value.type == DOC_STRING)
		value.s = arena_str(s->r.a, text);
	else if (value.type == DOC_FLOAT && num_shape(text) == NUM_FLOAT)
		value.f_text = arena_str(s->r.a, text);
	value.pos = pos;
	*d = value;
	*ret_doc = d;
	return 0;
}

static int read_sequence(struct source *s, struct doc *d)
{
	for (;;) {
		CLEANUP(yaml_event_delete) yaml_event_t ev = {0};
		struct doc *item;

		if (next(s, &ev) < 0)
			return -1;
		if (ev.type == YAML_SEQUENCE_END_EVENT)
			return 0;
		if (read_node(s, &ev, &item) < 0)
			return -1;
		doc_append(s->r.a, d, item);
	}
}

static int read_key(struct source *s, const yaml_event_t *ev, struct doc_pos pos,
		    struct str *ret_key)
{
	if (ev->type == YAML_ALIAS_EVENT)
		return reader_fail(&s->r, pos, "found an alias as a key, expected text");
	if (check_tag(s, ev) < 0)
		return -1;
	if (ev->type != YAML_SCALAR_EVENT)
		return reader_fail(&s->r, pos, "found a %s as a key, expected text",
				   ev->type == YAML_SEQUENCE_START_EVENT ? "list" : "table");
	if (anchor_of(ev))
		return reader_fail(&s->r, pos, "found an anchor at a key, expected one at a value");
	struct str text = scalar_text(ev);

	if (is_plain(ev) && text.n == 0)
		return reader_fail(&s->r, pos, "found an empty key, expected text before the ':'");
	*ret_key = arena_str(s->r.a, text);
	return 0;
}

/* A "<<" may stand before the keys that win over what it brings: it is merged at the end. */
static int read_mapping(struct source *s, struct doc *d)
{
	struct doc *merged = NULL;
	struct doc_pos merged_pos = {0};

	for (;;) {
		CLEANUP(yaml_event_delete) yaml_event_t key_ev = {0};
		CLEANUP(yaml_event_delete) yaml_event_t ev = {0};
		struct str key = {0};
		struct doc *value = NULL;

		if (next(s, &key_ev) < 0)
			return -1;
		if (key_ev.type == YAML_MAPPING_END_EVENT)
			return merged ? yaml_merge(&s->r, d, merged) : 0;
		struct doc_pos pos = pos_of(s, key_ev.start_mark);

		if (read_key(s, &key_ev, pos, &key) < 0 || next(s, &ev) < 0 ||
		    read_node(s, &ev, &value) < 0)
			return -1;
		if (is_plain(&key_ev) && str_is(key, "<<")) {
			if (merged)
				return reader_duplicate(&s->r, key, pos, merged_pos);
			merged = value;
			merged_pos = pos;
		} else if (reader_put(&s->r, d, key, pos, value) < 0) {
			return -1;
		}
	}
}

static int read_alias(struct source *s, const yaml_event_t *ev, struct doc **ret_doc)
{
	*ret_doc =
		yaml_anchors_copy(&s->anchors, &s->r, str_from((const char *)ev->data.alias.anchor),
				  pos_of(s, ev->start_mark));
	return *ret_doc ? 0 : -1;
}

static int read_container(struct source *s, const yaml_event_t *ev, struct doc **ret_doc)
{
	struct doc_pos pos = pos_of(s, ev->start_mark);
	bool mapping = ev->type == YAML_MAPPING_START_EVENT;
	struct doc *d = reader_node(&s->r, mapping ? DOC_TABLE : DOC_ARRAY, pos);

	if (!d || reader_enter(&s->r, pos) < 0)
		return -1;
	if ((mapping ? read_mapping(s, d) : read_sequence(s, d)) < 0)
		return -1;
	s->r.depth--;
	*ret_doc = d;
	return 0;
}

static int read_node(struct source *s, const yaml_event_t *ev, struct doc **ret_doc)
{
	const yaml_char_t *anchor = anchor_of(ev);

	if (ev->type == YAML_ALIAS_EVENT)
		return read_alias(s, ev, ret_doc);
	if (check_tag(s, ev) < 0)
		return -1;
	if ((ev->type == YAML_SCALAR_EVENT ? read_scalar(s, ev, ret_doc)
					   : read_container(s, ev, ret_doc)) < 0)
		return -1;
	if (anchor)
		yaml_anchors_add(&s->anchors, str_from((const char *)anchor), *ret_doc);
	return 0;
}

/* The document that starts with this event, to its end; NULL: it failed. */
static struct doc *read_document(struct source *s, const yaml_event_t *start)
{
	CLEANUP(yaml_event_delete) yaml_event_t ev = {0};
	CLEANUP(yaml_event_delete) yaml_event_t end = {0};
	struct doc *d = NULL;

	if (start->data.document_start.tag_directives.start !=
	    start->data.document_start.tag_directives.end) {
		reader_fail(&s->r, pos_of(s, start->start_mark),
			    "found a %%TAG directive, expected a document without tags");
		return NULL;
	}
	yaml_anchors_clear(&s->anchors);
	if (next(s, &ev) < 0 || read_node(s, &ev, &d) < 0 || next(s, &end) < 0)
		return NULL;
	return d;
}

/* All documents that are not empty. */
static int read_stream(struct source *s, struct doc *all)
{
	CLEANUP(yaml_event_delete) yaml_event_t stream = {0};

	if (next(s, &stream) < 0)
		return -1;
	for (;;) {
		CLEANUP(yaml_event_delete) yaml_event_t start = {0};

		if (next(s, &start) < 0)
			return -1;
		if (start.type == YAML_STREAM_END_EVENT)
			return 0;
		struct doc *d = read_document(s, &start);

		if (!d)
			return -1;
		if (d->type != DOC_NULL)
			doc_append(s->r.a, all, d);
	}
}

/*
 * libyaml compares every %TAG directive with all previous ones: a text of nothing
 * else would take minutes before the first event.  A few lines that only look like
 * directives, inside a long string, are accepted.
 */
static int check_tag_lines(struct source *s)
{
	static const struct str tag = {"%TAG", 4};
	struct str rest = {s->text, (size_t)(s->r.end - s->text)};
	size_t n = 0;

	for (int line = 1; rest.p; line++) {
		if (str_starts(str_cut(&rest, '\n'), tag) && ++n > TAG_LINES_MAX)
			return reader_fail(
				&s->r, (struct doc_pos){line, 1},
				"found a %%TAG directive, expected a document without tags");
	}
	return 0;
}

int yaml_parse_documents(struct str text, struct arena *a, struct doc **ret_all, struct err *err)
{
	CLEANUP(source_release) struct source s = {0};
	struct doc *all = doc_new(a, DOC_ARRAY);

	if (reader_open(&s.r, text, a, err) < 0)
		return -1;
	s.text = s.r.p;
	if (check_tag_lines(&s) < 0)
		return -1;
	if (!yaml_parser_initialize(&s.parser))
		return err_set(err, ERR_CAPACITY, "out of memory");
	s.parser_open = true;
	yaml_parser_set_encoding(&s.parser, YAML_UTF8_ENCODING);
	yaml_parser_set_input_string(&s.parser, (const unsigned char *)s.text,
				     (size_t)(s.r.end - s.text));
	if (read_stream(&s, all) < 0)
		return -1;
	if (all->array.n == 0) {
		/* A text of comments only is null, like an empty document. */
		doc_append(a, all, doc_new(a, DOC_NULL));
		all->array.v[0]->pos = (struct doc_pos){1, 1};
	}
	*ret_all = all;
	return 0;
}

int yaml_parse(struct str text, struct arena *a, struct doc **ret_doc, struct err *err)
{
	struct doc *all;

	if (yaml_parse_documents(text, a, &all, err) < 0)
		return -1;
	if (all->array.n > 1)
		return err_set(err, ERR_INVALID,
			       "%d:%d: found a second document, expected one in a file",
			       all->array.v[1]->pos.line, all->array.v[1]->pos.col);
	*ret_doc = all->array.v[0];
	return 0;
}
