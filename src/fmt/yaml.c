/*
 * yaml - the part of YAML that is plain data: block and flow style, and the
 * scalars of the 1.2 core schema.
 *
 * The tree is built from libyaml's events.  Anchors, aliases, tags, merge keys and
 * further documents are refused with their position: nothing in a file may mean
 * something else than it shows.  Plain yes, no, on and off are strings.
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
#include "fmt/yaml_scalar.h"

#define TAG_LINES_MAX 16 /* a text with more lines that look like %TAG directives is refused */

struct source {
	struct reader r;
	const char *text; /* where the cursor started */
	size_t index;	  /* characters between text and the cursor */
	yaml_parser_t parser;
	bool parser_open;
};

static int read_node(struct source *s, const yaml_event_t *ev, struct doc **ret_doc);

static void source_release(struct source *s)
{
	if (s->parser_open)
		yaml_parser_delete(&s->parser);
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

/* Refuses aliases, anchors and tags. */
static int check_plain_data(struct source *s, const yaml_event_t *ev)
{
	const yaml_char_t *anchor = NULL, *tag = NULL;

	if (ev->type == YAML_ALIAS_EVENT)
		return reader_fail(&s->r, pos_of(s, ev->start_mark),
				   "found an alias, expected the value written out");
	if (ev->type == YAML_SCALAR_EVENT) {
		anchor = ev->data.scalar.anchor;
		tag = ev->data.scalar.tag;
	} else if (ev->type == YAML_SEQUENCE_START_EVENT) {
		anchor = ev->data.sequence_start.anchor;
		tag = ev->data.sequence_start.tag;
	} else if (ev->type == YAML_MAPPING_START_EVENT) {
		anchor = ev->data.mapping_start.anchor;
		tag = ev->data.mapping_start.tag;
	}
	if (anchor)
		return reader_fail(&s->r, pos_of(s, ev->start_mark),
				   "found an anchor, expected a value without one");
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
	if (check_plain_data(s, ev) < 0)
		return -1;
	if (ev->type != YAML_SCALAR_EVENT)
		return reader_fail(&s->r, pos, "found a %s as a key, expected text",
				   ev->type == YAML_SEQUENCE_START_EVENT ? "list" : "table");
	struct str text = scalar_text(ev);

	if (is_plain(ev) && text.n == 0)
		return reader_fail(&s->r, pos, "found an empty key, expected text before the ':'");
	if (is_plain(ev) && str_is(text, "<<"))
		return reader_fail(&s->r, pos,
				   "found the merge key '<<', expected every key written out");
	*ret_key = arena_str(s->r.a, text);
	return 0;
}

static int read_mapping(struct source *s, struct doc *d)
{
	for (;;) {
		CLEANUP(yaml_event_delete) yaml_event_t key_ev = {0};
		CLEANUP(yaml_event_delete) yaml_event_t ev = {0};
		struct str key;
		struct doc *value;

		if (next(s, &key_ev) < 0)
			return -1;
		if (key_ev.type == YAML_MAPPING_END_EVENT)
			return 0;
		struct doc_pos pos = pos_of(s, key_ev.start_mark);

		if (read_key(s, &key_ev, pos, &key) < 0 || next(s, &ev) < 0 ||
		    read_node(s, &ev, &value) < 0 || reader_put(&s->r, d, key, pos, value) < 0)
			return -1;
	}
}

static int read_node(struct source *s, const yaml_event_t *ev, struct doc **ret_doc)
{
	struct doc_pos pos = pos_of(s, ev->start_mark);
	bool mapping = ev->type == YAML_MAPPING_START_EVENT;

	if (check_plain_data(s, ev) < 0)
		return -1;
	if (ev->type == YAML_SCALAR_EVENT)
		return read_scalar(s, ev, ret_doc);

	struct doc *d = reader_node(&s->r, mapping ? DOC_TABLE : DOC_ARRAY, pos);
	if (!d || reader_enter(&s->r, pos) < 0)
		return -1;
	if ((mapping ? read_mapping(s, d) : read_sequence(s, d)) < 0)
		return -1;
	s->r.depth--;
	*ret_doc = d;
	return 0;
}

/* The document that starts with this event, to its end. */
static int read_document(struct source *s, const yaml_event_t *start, struct doc **ret_doc)
{
	CLEANUP(yaml_event_delete) yaml_event_t ev = {0};
	CLEANUP(yaml_event_delete) yaml_event_t end = {0};

	if (start->data.document_start.tag_directives.start !=
	    start->data.document_start.tag_directives.end)
		return reader_fail(&s->r, pos_of(s, start->start_mark),
				   "found a %%TAG directive, expected a document without tags");
	if (next(s, &ev) < 0 || read_node(s, &ev, ret_doc) < 0)
		return -1;
	return next(s, &end);
}

static int read_stream(struct source *s, struct doc **ret_doc)
{
	CLEANUP(yaml_event_delete) yaml_event_t stream = {0};
	CLEANUP(yaml_event_delete) yaml_event_t first = {0};
	CLEANUP(yaml_event_delete) yaml_event_t second = {0};

	if (next(s, &stream) < 0 || next(s, &first) < 0)
		return -1;
	if (first.type == YAML_STREAM_END_EVENT) {
		/* A text of comments only is null, like an empty document. */
		*ret_doc = reader_node(&s->r, DOC_NULL, (struct doc_pos){1, 1});
		return 0;
	}
	if (read_document(s, &first, ret_doc) < 0 || next(s, &second) < 0)
		return -1;
	if (second.type != YAML_STREAM_END_EVENT)
		return reader_fail(&s->r, pos_of(s, second.start_mark),
				   "found a second document, expected one in a file");
	return 0;
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

int yaml_parse(struct str text, struct arena *a, struct doc **ret_doc, struct err *err)
{
	CLEANUP(source_release) struct source s = {0};
	struct doc *d = NULL;

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
	if (read_stream(&s, &d) < 0)
		return -1;
	*ret_doc = d;
	return 0;
}
