#include "spec/tag.h"

#include "base/arena.h"
#include "base/err.h"
#include "fmt/doc.h"

static bool is_control(char c)
{
	return (unsigned char)c < ' ' || c == 0x7f;
}

/* U+0080 to U+009F, which terminals may obey. */
static bool is_control_pair(struct str s, size_t i)
{
	return i + 1 < s.n && (unsigned char)s.p[i] == 0xc2 && (unsigned char)s.p[i + 1] < 0xa0;
}

int tag_check(struct str tag, struct err *err)
{
	if (!tag.n)
		return err_set(err, ERR_INVALID, "a tag is empty");
	if (tag.n > TAG_MAX)
		return err_set(err, ERR_INVALID, "tag '%.*s...' has %zu bytes: at most %d", 20,
			       tag.p, tag.n, TAG_MAX);
	if (!str_is_utf8(tag))
		return err_set(err, ERR_INVALID, "a tag is not UTF-8");
	for (size_t i = 0; i < tag.n; i++) {
		if (is_control(tag.p[i]) || is_control_pair(tag, i))
			return err_set(err, ERR_INVALID,
				       "a tag has a line break or control character: it is one "
				       "printable word");
		if (tag.p[i] == ' ' || tag.p[i] == ',')
			return err_set(
				err, ERR_INVALID,
				"tag '%.*s' has a blank or comma: it is one word; give several "
				"each on its own",
				STR_ARG(tag));
	}
	if (tag.p[0] == '+' || tag.p[0] == '-')
		return err_set(err, ERR_INVALID, "tag '%.*s' starts with + or -: choose another",
			       STR_ARG(tag));
	return 0;
}

int note_check(struct str text, struct err *err)
{
	if (!str_trim(text).n)
		return err_set(err, ERR_INVALID, "the note is empty");
	if (text.n > NOTE_MAX)
		return err_set(err, ERR_INVALID, "the note has %zu bytes: at most %d", text.n,
			       NOTE_MAX);
	if (!str_is_utf8(text))
		return err_set(err, ERR_INVALID, "the note is not UTF-8");
	for (size_t i = 0; i < text.n; i++)
		if ((is_control(text.p[i]) && text.p[i] != '\n' && text.p[i] != '\t') ||
		    is_control_pair(text, i))
			return err_set(
				err, ERR_INVALID,
				"the note has a control character: only line breaks and tabs "
				"are taken");
	return 0;
}

static bool has(const struct doc *list, struct str tag)
{
	for (size_t i = 0; i < list->array.n; i++)
		if (str_eq(list->array.v[i]->s, tag))
			return true;
	return false;
}

int tags_read(const struct doc *list, struct arena *a, const char **ret_json, struct err *err)
{
	struct doc *tags = doc_new(a, DOC_ARRAY);

	if (list && list->type != DOC_ARRAY)
		return err_set(err, ERR_INVALID, "'tags' must be a list of strings");
	if (list && list->array.n > TAGS_MAX)
		return err_set(err, ERR_INVALID, "%zu tags: a run has at most %d", list->array.n,
			       TAGS_MAX);
	for (size_t i = 0; list && i < list->array.n; i++) {
		const struct doc *d = list->array.v[i];

		if (d->type != DOC_STRING)
			return err_set(err, ERR_INVALID, "'tags' must be a list of strings");
		if (tag_check(d->s, err) < 0)
			return -1;
		if (!has(tags, d->s))
			doc_append(a, tags, doc_new_str(a, d->s));
	}
	*ret_json = doc_json_text(a, tags);
	return 0;
}
