/* schema_reference - the whole schema as one page of Markdown: a section with a table per table. */
#include "fmt/schema.h"

#include "base/buf.h"
#include "base/cleanup.h"
#include "fmt/schema_words.h"

#define HEADING_MAX 256
#define SECTIONS_MAX 64 /* different tables of one page */

struct page {
	struct buf *out;
	const struct schema *seen[SECTIONS_MAX];
	char first_heading[SECTIONS_MAX][HEADING_MAX];
	size_t n;
};

/* Prose in a cell or paragraph, with the characters of Markdown escaped. */
static void add_prose(struct buf *out, const char *text)
{
	for (; *text; text++) {
		if (*text == '<')
			buf_addz(out, "&lt;");
		else if (*text == '\n')
			buf_addc(out, ' ');
		else if (*text == '|' || *text == '*' || *text == '`' || *text == '\\' ||
			 *text == '[')
			buf_printf(out, "\\%c", *text);
		else
			buf_addc(out, *text);
	}
}

/* Code in a table cell; nothing for an empty text. */
static void add_code(struct buf *out, const char *text)
{
	const char *fence = strchr(text, '`') ? "``" : "`";

	if (!*text)
		return;
	buf_addz(out, fence);
	for (; *text; text++) {
		if (*text == '|')
			buf_addz(out, "\\|");
		else
			buf_addc(out, *text == '\n' ? ' ' : *text);
	}
	buf_addz(out, fence);
}

/* The anchor that Markdown viewers make of a heading. */
static void add_anchor(struct buf *out, const char *heading)
{
	for (; *heading; heading++) {
		char c = *heading;

		if (c >= 'A' && c <= 'Z')
			buf_addc(out, (char)(c | 0x20));
		else if ((c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_' || c == '-')
			buf_addc(out, c);
	}
}

/* [output], [roles.NAME], [[data]] below the path of the table that has the field. */
static void heading_of(const struct field *f, const char *path, char out[static HEADING_MAX],
		       char below[static HEADING_MAX])
{
	bool list = f->type == FIELD_LIST;

	snprintf(below, HEADING_MAX, "%s%s%s%s", path, *path ? "." : "", f->name,
		 f->type == FIELD_MAP ? ".NAME" : "");
	snprintf(out, HEADING_MAX, "%s%.*s%s", list ? "[[" : "[", HEADING_MAX - 8, below,
		 list ? "]]" : "]");
}

static void add_row(struct page *p, const struct field *f, const char *path)
{
	CLEANUP(buf_release) struct buf text = {0};
	char heading[HEADING_MAX], below[HEADING_MAX];

	buf_init(&text, 4096);
	buf_printf(p->out, "| `%s` | ", f->name);
	words_field(f, &text);
	add_prose(p->out, buf_str(&text).p);
	if (f->sub) {
		heading_of(f, path, heading, below);
		buf_printf(p->out, ", see [`%s`](#", heading);
		add_anchor(p->out, heading);
		buf_addc(p->out, ')');
	}
	buf_addz(p->out, " | ");
	buf_reset(&text);
	words_default(f, &text);
	if (f->required)
		buf_addz(p->out, "required");
	else
		add_code(p->out, buf_str(&text).p);
	buf_addz(p->out, " | ");
	add_prose(p->out, f->help ? f->help : "");
	buf_addz(p->out, " | ");
	/* The example of a table has several lines and is shown in its own section. */
	if (f->example && !f->sub)
		add_code(p->out, f->example);
	buf_addz(p->out, " |\n");
}

static void add_table(struct page *p, const struct schema *sc, const char *path)
{
	buf_addz(p->out, "| Key | Type | Default | Meaning | Example |\n|---|---|---|---|---|\n");
	for (const struct field *f = sc->fields; f->name; f++)
		add_row(p, f, path);
}

static const char *seen_as(const struct page *p, const struct schema *sc)
{
	for (size_t i = 0; i < p->n; i++) {
		if (p->seen[i] == sc)
			return p->first_heading[i];
	}
	return NULL;
}

static void add_sections(struct page *p, const struct schema *sc, const char *path);

static void add_section(struct page *p, const struct field *f, const char *path)
{
	char heading[HEADING_MAX], below[HEADING_MAX];
	const char *first = seen_as(p, f->sub);

	heading_of(f, path, heading, below);
	buf_printf(p->out, "\n## `%s`\n\n", heading);
	if (f->sub->help) {
		add_prose(p->out, f->sub->help);
		buf_addz(p->out, "\n\n");
	}
	if (f->example)
		buf_printf(p->out, "```toml\n%s\n```\n\n", f->example);
	if (first || p->n == SECTIONS_MAX) {
		buf_printf(p->out, "The keys are those of `%s`.\n", first ? first : f->sub->name);
		return;
	}
	snprintf(p->first_heading[p->n], HEADING_MAX, "%s", heading);
	p->seen[p->n++] = f->sub;
	add_table(p, f->sub, below);
	add_sections(p, f->sub, below);
}

static void add_sections(struct page *p, const struct schema *sc, const char *path)
{
	for (const struct field *f = sc->fields; f->name; f++) {
		if (f->sub)
			add_section(p, f, path);
	}
}

void schema_reference(const struct schema *root, struct buf *out)
{
	struct page p = {.out = out};

	buf_printf(out, "# The %s file\n\n", root->name);
	if (root->help) {
		add_prose(out, root->help);
		buf_addz(out, "\n\n");
	}
	p.seen[0] = root;
	snprintf(p.first_heading[0], HEADING_MAX, "%s", root->name);
	p.n = 1;
	add_table(&p, root, "");
	add_sections(&p, root, "");
}
