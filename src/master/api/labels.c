/* Handlers about what people put on runs: tags and notes.  They may change at any time, also after the end. */
#include "master/api/api.h"

#include "base/arena.h"
#include "base/clock.h"
#include "fmt/doc.h"
#include "master/live_run.h"
#include "master/round.h"
#include "master/runs.h"
#include "master/upkeep/finish.h"
#include "master/upkeep/reports.h"
#include "spec/tag.h"

#define SHOWN 100 /* bytes of a note in its event */

static size_t list_size(const char *json, struct arena *a)
{
	struct doc *d;

	return json && json_parse(str_from(json), a, &d, NULL) == 0 && d->type == DOC_ARRAY
		       ? d->array.n
		       : 0;
}

static bool has_tag(const struct live_run *lr, struct str tag, struct arena *a)
{
	struct doc *d;

	if (!lr->row.tags || json_parse(str_from(lr->row.tags), a, &d, NULL) < 0)
		return false;
	for (size_t i = 0; i < d->array.n; i++)
		if (str_eq(d->array.v[i]->s, tag))
			return true;
	return false;
}

/* The files of a run that has ended are made again, with what it has now. */
static int answer(struct api_call *c, struct live_run *lr, struct err *err)
{
	if (store_labels_get(c->m->store, lr->row.no, lr->arena, &lr->row.tags, &lr->notes, err) <
	    0)
		return -1;
	lr->changes++;
	lr->busy++; /* keeps it in memory: the commit may end it */
	round_end(c->m);
	lr->busy--;
	if (lr->ended) {
		run_write_records(lr);
		reports_add(c->m->reports, lr->row.no);
	}
	return api_reply_run(c, 200, lr);
}

static int change_tags(struct live_run *lr, const struct doc *list, bool on, struct arena *a,
		       struct err *err)
{
	for (size_t i = 0; list && i < list->array.n; i++) {
		struct str tag = list->array.v[i]->s;

		if (has_tag(lr, tag, a) == on)
			continue;
		if (store_tag_set(lr->m->store, lr->row.no, tag, on, err) < 0)
			return -1;
		run_note(lr, "tag", -1, "%c%.*s", on ? '+' : '-', STR_ARG(tag));
	}
	return 0;
}

/* How many tags the run would have: those to be added that it has not, and not those to be removed. */
static int check_room(const struct live_run *lr, const struct doc *add, const struct doc *remove,
		      struct arena *a, struct err *err)
{
	size_t n = list_size(lr->row.tags, a);

	for (size_t i = 0; add && i < add->array.n; i++)
		n += !has_tag(lr, add->array.v[i]->s, a);
	for (size_t i = 0; remove && i < remove->array.n; i++)
		n -= has_tag(lr, remove->array.v[i]->s, a);
	if (n > TAGS_MAX)
		return err_set(err, ERR_INVALID, "run '%s' would have %zu tags: at most %d",
			       lr->row.id, n, TAGS_MAX);
	return 0;
}

/* Each word once, all of them valid; NULL: none. */
static int read_list(const struct doc *body, const char *key, struct arena *a, struct doc **ret,
		     struct err *err)
{
	const char *json;

	if (tags_read(doc_get(body, key), a, &json, err) < 0)
		return -1;
	return json_parse(str_from(json), a, ret, err);
}

int api_run_tags(struct api_call *c, struct err *err)
{
	struct doc *body = NULL, *add = NULL, *remove = NULL;

	if (json_parse(c->req->body, c->arena, &body, err) < 0 ||
	    read_list(body, "add", c->arena, &add, err) < 0 ||
	    read_list(body, "remove", c->arena, &remove, err) < 0)
		return -1;
	struct live_run *lr = api_run(c, err);

	if (!lr)
		return -1;
	if (check_room(lr, add, remove, c->arena, err) < 0) {
		live_run_done(lr);
		return -1;
	}
	store_begin(c->m->store);
	if (change_tags(lr, remove, false, c->arena, err) < 0 ||
	    change_tags(lr, add, true, c->arena, err) < 0)
		return -1;
	return answer(c, lr, err);
}

int api_run_note(struct api_call *c, struct err *err)
{
	struct doc *body = NULL;

	if (json_parse(c->req->body, c->arena, &body, err) < 0)
		return -1;
	struct str text = doc_str(body, "text", STR(""));

	if (note_check(text, err) < 0)
		return -1;
	struct live_run *lr = api_run(c, err);

	if (!lr)
		return -1;
	if (list_size(lr->notes, c->arena) >= NOTES_MAX) {
		err_set(err, ERR_INVALID, "run '%s' has %d notes: no more are taken", lr->row.id,
			NOTES_MAX);
		live_run_done(lr);
		return -1;
	}
	store_begin(c->m->store);
	if (store_note_add(c->m->store, lr->row.no, clock_wall_ms(), text, err) < 0)
		return -1;
	size_t n = text.n < SHOWN ? text.n : SHOWN;

	while (n && n < text.n && ((unsigned char)text.p[n] & 0xc0) == 0x80)
		n--; /* no character is cut */
	run_note(lr, "note", -1, "%.*s%s", (int)n, text.p, n < text.n ? "..." : "");
	return answer(c, lr, err);
}
