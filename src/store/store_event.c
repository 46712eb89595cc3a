/* Events of a run, numbered from 1 without gaps; and the events of all runs, in one order. */
#include "store/internal.h"

#include "base/cleanup.h"

enum { LAST_SEQ, ADD, LIST, LIST_ALL };
static const struct stmt_def defs[STMT_SLOTS] = {
	[LAST_SEQ] = {"number event", "SELECT max(seq) FROM event WHERE run = ?1"},
	[ADD] = {"add event",
		 "INSERT INTO event (run, seq, time_ms, kind, node, text, n) VALUES (?1, ?2, "
		 "?3, ?4, ?5, ?6, ?7)"},
	[LIST] = {"list events",
		  "SELECT seq, time_ms, kind, node, text FROM event WHERE run = ?1 AND seq > "
		  "?2 ORDER BY seq LIMIT ?3"},
	[LIST_ALL] = {"list events",
		      "SELECT n, run, seq, time_ms, kind, node, text FROM event WHERE n > ?1 "
		      "ORDER BY n LIMIT ?2"},
};

static int last_seq(struct store *st, int64_t no, int64_t *ret, struct err *err)
{
	CLEANUP(query_end) struct sql_query q;

	if (query_read(&q, st, STMT_EVENT, LAST_SEQ, defs, err) < 0)
		return -1;
	query_int(&q, no);
	/* max(seq) is NULL, read as 0, if there are no events. */
	return query_number(&q, 0, ret, err);
}

int store_event_add(struct store *st, int64_t no, int64_t wall_ms, const char *kind, int node,
		    const char *text, int64_t *ret_seq, struct err *err)
{
	CLEANUP(query_end) struct sql_query q = {0};
	int64_t seq;

	if (last_seq(st, no, &seq, err) < 0 || query_write(&q, st, STMT_EVENT, ADD, defs, err) < 0)
		return -1;
	query_int(&q, no);
	query_int(&q, seq + 1);
	query_int(&q, wall_ms);
	query_text(&q, kind);
	query_int(&q, node);
	query_text(&q, text ? text : "");
	query_int(&q, st->last_event + 1);
	if (query_run(&q, err) < 0)
		return -1;
	st->last_event++;
	if (ret_seq)
		*ret_seq = seq + 1;
	return 0;
}

static struct event_row read_event(struct sql_query *q)
{
	struct event_row row;

	row.seq = row_int(q);
	row.time_ms = row_int(q);
	row.kind = row_text(q);
	row.node = (int)row_int(q);
	row.text = row_text(q);
	return row;
}

int store_events_each(struct store *st, int64_t no, int64_t after_seq, int limit, event_row_fn fn,
		      void *ctx, struct err *err)
{
	CLEANUP(query_end) struct sql_query q;
	int got;

	if (query_read(&q, st, STMT_EVENT, LIST, defs, err) < 0)
		return -1;
	query_int(&q, no);
	query_int(&q, after_seq);
	query_int(&q, limit > 0 ? limit : -1);
	while ((got = query_next(&q, err)) > 0) {
		struct event_row row = read_event(&q);

		if (!fn(ctx, &row))
			return 0;
	}
	return got;
}

int64_t store_last_event(const struct store *st)
{
	return st->last_event;
}

int store_all_events_each(struct store *st, int64_t after_n, int limit, any_event_fn fn, void *ctx,
			  struct err *err)
{
	CLEANUP(query_end) struct sql_query q;
	int got;

	if (query_read(&q, st, STMT_EVENT, LIST_ALL, defs, err) < 0)
		return -1;
	query_int(&q, after_n);
	query_int(&q, limit > 0 ? limit : -1);
	while ((got = query_next(&q, err)) > 0) {
		int64_t n = row_int(&q), no = row_int(&q);
		struct event_row row = read_event(&q);

		if (!fn(ctx, n, no, &row))
			return 0;
	}
	return got;
}
