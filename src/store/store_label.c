/* What people put on runs: tags, and notes with their time. */
#include "store/internal.h"

#include "base/arena.h"
#include "base/cleanup.h"

#define TAGS "(SELECT json_group_array(tag) FROM (SELECT tag FROM tag WHERE run = ?1 ORDER BY tag))"
#define NOTES                                                                                      \
	"(SELECT json_group_array(json_object('time_ms', time_ms, 'text', text)) FROM "            \
	"(SELECT time_ms, text FROM note WHERE run = ?1 ORDER BY time_ms, n))"

enum { ADD_ALL, ADD, REMOVE, ADD_NOTE, GET };
static const struct stmt_def defs[STMT_SLOTS] = {
	[ADD_ALL] = {"add tags",
		     "INSERT OR IGNORE INTO tag (run, tag) SELECT ?1, value FROM json_each(?2)"},
	[ADD] = {"add tag", "INSERT OR IGNORE INTO tag (run, tag) VALUES (?1, ?2)"},
	[REMOVE] = {"remove tag", "DELETE FROM tag WHERE run = ?1 AND tag = ?2"},
	[ADD_NOTE] =
		{"add note",
		 "INSERT INTO note (run, n, time_ms, text) SELECT ?1, 1 + coalesce(max(n), 0), "
		 "?2, ?3 FROM note WHERE run = ?1"},
	[GET] = {"read tags", "SELECT " TAGS ", " NOTES},
};

int store_tags_add(struct store *st, int64_t no, const char *json, struct err *err)
{
	CLEANUP(query_end) struct sql_query q;

	if (query_write(&q, st, STMT_LABEL, ADD_ALL, defs, err) < 0)
		return -1;
	query_int(&q, no);
	query_text(&q, json);
	return query_run(&q, err);
}

int store_tag_set(struct store *st, int64_t no, struct str tag, bool on, struct err *err)
{
	CLEANUP(query_end) struct sql_query q;

	if (query_write(&q, st, STMT_LABEL, on ? ADD : REMOVE, defs, err) < 0)
		return -1;
	query_int(&q, no);
	query_str(&q, tag);
	return query_run(&q, err);
}

int store_note_add(struct store *st, int64_t no, int64_t time_ms, struct str text, struct err *err)
{
	CLEANUP(query_end) struct sql_query q;

	if (query_write(&q, st, STMT_LABEL, ADD_NOTE, defs, err) < 0)
		return -1;
	query_int(&q, no);
	query_int(&q, time_ms);
	query_str(&q, text);
	return query_run(&q, err);
}

int store_labels_get(struct store *st, int64_t no, struct arena *a, const char **ret_tags,
		     const char **ret_notes, struct err *err)
{
	CLEANUP(query_end) struct sql_query q;

	if (query_read(&q, st, STMT_LABEL, GET, defs, err) < 0)
		return -1;
	query_int(&q, no);
	if (query_row(&q, "no run", no, err) < 0)
		return -1;
	*ret_tags = row_text_in(&q, a);
	*ret_notes = row_text_in(&q, a);
	return 0;
}
