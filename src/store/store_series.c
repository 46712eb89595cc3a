/*
 * Samples by series, and how far each stream was scanned for them.
 *
 * The points of a series are stored side by side, numbered in the order of arrival.  A value
 * that is not a number (a mean that overflowed) is stored as NULL.
 */
#include "store/internal.h"

#include <inttypes.h>

#include "base/cleanup.h"

#define STREAMS_MAX 513 /* as in the schema */

enum {
	GET,
	COUNT,
	COUNT_IN,
	ADD,
	SAVE,
	LIST,
	LAST_SAMPLE,
	ADD_SAMPLE,
	LIST_SAMPLES,
	LIST_SAMPLES_AFTER,
	SAVE_SCAN,
	GET_SCANS
};
static const struct stmt_def defs[STMT_SLOTS] = {
	[GET] = {"find series",
		 "SELECT series, rank, name, count, first, last, min, max, mean, m2, step, "
		 "total FROM series WHERE run = ?1 AND rank = ?2 AND name = ?3"},
	[COUNT] = {"count series", "SELECT series FROM run WHERE no = ?1"},
	[COUNT_IN] = {"count series", "UPDATE run SET series = series + 1 WHERE no = ?1"},
	[ADD] = {"add series",
		 "INSERT INTO series (run, rank, name, count, first, last, min, max, mean, m2) VALUES (?1, "
		 "?2, ?3, 0, 0, 0, 0, 0, 0, 0)"},
	[SAVE] = {"save series",
		  "UPDATE series SET count = ?2, first = ?3, last = ?4, min = ?5, max = ?6, "
		  "mean = ?7, m2 = ?8, step = ?9, total = ?10 WHERE series = ?1"},
	[LIST] =
		{"list series",
		 "SELECT series, rank, name, count, first, last, min, max, mean, m2, step, total FROM "
		 "series WHERE run = ?1 ORDER BY rank, name"},
	[LAST_SAMPLE] = {"number sample",
			 "SELECT (SELECT max(n) FROM sample WHERE series = ?1) FROM series "
			 "WHERE series = ?1"},
	[ADD_SAMPLE] = {"add sample",
			"INSERT INTO sample (series, n, time_ms, step, value) VALUES (?1, ?2, "
			"?3, ?4, ?5)"},
	[LIST_SAMPLES] =
		{"list samples",
		 "SELECT time_ms, step, value FROM sample WHERE series = ?1 ORDER BY n LIMIT ?2"},
	[LIST_SAMPLES_AFTER] =
		{"list samples",
		 "SELECT time_ms, step, value FROM sample WHERE series = ?1 AND n > ?2 ORDER "
		 "BY n LIMIT ?3"},
	[SAVE_SCAN] =
		{"save scan",
		 "REPLACE INTO scan (run, rank, stream, offset, bad) VALUES (?1, ?2, ?3, ?4, ?5)"},
	[GET_SCANS] = {"read scans",
		       "SELECT stream, offset, bad FROM scan WHERE run = ?1 AND rank = ?2"},
};

/* The name belongs to SQLite and is valid until the next row. */
static void read_series(struct sql_query *q, struct series_row *row)
{
	row->series = row_int(q);
	row->rank = (int)row_int(q);
	row->name = row_text(q);
	row->count = (uint64_t)row_int(q);
	row->first = row_real(q);
	row->last = row_real(q);
	row->min = row_real(q);
	row->max = row_real(q);
	row->mean = row_real(q);
	row->m2 = row_real(q);
	row->step = row_int(q);
	row->total = row_int(q);
}

/* 1: found, 0: it does not exist. */
static int find_series(struct store *st, int64_t no, int rank, const char *name,
		       struct series_row *ret, struct err *err)
{
	CLEANUP(query_end) struct sql_query q;

	if (query_read(&q, st, STMT_SERIES, GET, defs, err) < 0)
		return -1;
	query_int(&q, no);
	query_int(&q, rank);
	query_text(&q, name);
	int got = query_next(&q, err);
	if (got > 0) {
		read_series(&q, ret);
		ret->name = name;
	}
	return got;
}

static int check_room(struct store *st, int64_t no, const char *name, struct err *err)
{
	CLEANUP(query_end) struct sql_query q;

	if (query_read(&q, st, STMT_SERIES, COUNT, defs, err) < 0)
		return -1;
	query_int(&q, no);
	if (query_row(&q, "add series: no run", no, err) < 0)
		return -1;
	if (row_int(&q) >= STORE_MAX_SERIES)
		return err_set(err, ERR_QUOTA, "a run has at most %d series: '%s' is not kept",
			       STORE_MAX_SERIES, name);
	return 0;
}

static int count_in(struct store *st, int64_t no, struct err *err)
{
	CLEANUP(query_end) struct sql_query q;

	if (query_write(&q, st, STMT_SERIES, COUNT_IN, defs, err) < 0)
		return -1;
	query_int(&q, no);
	return query_run(&q, err);
}

int store_series_open(struct store *st, int64_t no, int rank, const char *name,
		      struct series_row *ret, struct err *err)
{
	CLEANUP(query_end) struct sql_query q = {0};
	int got = find_series(st, no, rank, name, ret, err);

	if (got != 0)
		return got < 0 ? -1 : 0;
	if (check_room(st, no, name, err) < 0 || count_in(st, no, err) < 0 ||
	    query_write(&q, st, STMT_SERIES, ADD, defs, err) < 0)
		return -1;
	query_int(&q, no);
	query_int(&q, rank);
	query_text(&q, name);
	if (query_run(&q, err) < 0)
		return -1;
	*ret = (struct series_row){
		.series = sqlite3_last_insert_rowid(st->db), .rank = rank, .name = name};
	return 0;
}

int store_series_save(struct store *st, const struct series_row *row, struct err *err)
{
	CLEANUP(query_end) struct sql_query q;

	if (query_write(&q, st, STMT_SERIES, SAVE, defs, err) < 0)
		return -1;
	query_int(&q, row->series);
	query_int(&q, (int64_t)row->count);
	query_real(&q, row->first);
	query_real(&q, row->last);
	query_real(&q, row->min);
	query_real(&q, row->max);
	query_real(&q, row->mean);
	query_real(&q, row->m2);
	query_int(&q, row->step);
	query_int(&q, row->total);
	return query_run(&q, err);
}

/* The slot of the series, with the number of its last sample. */
static int find_last(struct store *st, int64_t series, struct last_sample **ret, struct err *err)
{
	CLEANUP(query_end) struct sql_query q = {0};
	struct last_sample *slot = &st->last_samples[(uint64_t)series % LAST_SAMPLES];

	*ret = slot;
	if (series && slot->series == series)
		return 0;
	if (query_read(&q, st, STMT_SERIES, LAST_SAMPLE, defs, err) < 0)
		return -1;
	query_int(&q, series);
	if (query_row(&q, "add sample: no series", series, err) < 0)
		return -1;
	*slot = (struct last_sample){series, row_int(&q)};
	return 0;
}

int store_sample_add(struct store *st, int64_t series, int64_t wall_ms, int64_t step, double value,
		     struct err *err)
{
	CLEANUP(query_end) struct sql_query q = {0};
	struct last_sample *last;

	if (find_last(st, series, &last, err) < 0 ||
	    query_write(&q, st, STMT_SERIES, ADD_SAMPLE, defs, err) < 0)
		return -1;
	query_int(&q, series);
	query_int(&q, last->n + 1);
	query_int(&q, wall_ms);
	query_int(&q, step);
	query_real(&q, value);
	if (query_run(&q, err) < 0)
		return -1;
	last->n++;
	return 0;
}

int store_series_each(struct store *st, int64_t no, series_row_fn fn, void *ctx, struct err *err)
{
	CLEANUP(query_end) struct sql_query q;
	int got;

	if (query_read(&q, st, STMT_SERIES, LIST, defs, err) < 0)
		return -1;
	query_int(&q, no);
	while ((got = query_next(&q, err)) > 0) {
		struct series_row row;

		read_series(&q, &row);
		if (!fn(ctx, &row))
			return 0;
	}
	return got;
}

static int each_sample(struct sql_query *q, sample_row_fn fn, void *ctx, struct err *err)
{
	int got;

	while ((got = query_next(q, err)) > 0) {
		int64_t wall_ms = row_int(q), step = row_int(q);

		if (!fn(ctx, wall_ms, step, row_real(q)))
			return 0;
	}
	return got;
}

int store_samples_each(struct store *st, int64_t series, int64_t limit, sample_row_fn fn, void *ctx,
		       struct err *err)
{
	CLEANUP(query_end) struct sql_query q;

	if (query_read(&q, st, STMT_SERIES, LIST_SAMPLES, defs, err) < 0)
		return -1;
	query_int(&q, series);
	query_int(&q, limit > 0 ? limit : -1);
	return each_sample(&q, fn, ctx, err);
}

int store_samples_after(struct store *st, int64_t series, int64_t after, int64_t limit,
			sample_row_fn fn, void *ctx, struct err *err)
{
	CLEANUP(query_end) struct sql_query q;

	if (query_read(&q, st, STMT_SERIES, LIST_SAMPLES_AFTER, defs, err) < 0)
		return -1;
	query_int(&q, series);
	query_int(&q, after);
	query_int(&q, limit > 0 ? limit : -1);
	return each_sample(&q, fn, ctx, err);
}

int store_scan_save(struct store *st, int64_t no, int rank, int stream, uint64_t offset,
		    uint64_t bad, struct err *err)
{
	CLEANUP(query_end) struct sql_query q;

	if (query_write(&q, st, STMT_SERIES, SAVE_SCAN, defs, err) < 0)
		return -1;
	query_int(&q, no);
	query_int(&q, rank);
	query_int(&q, stream);
	query_int(&q, (int64_t)offset);
	query_int(&q, (int64_t)bad);
	return query_run(&q, err);
}

int store_scan_get(struct store *st, int64_t no, int rank, uint64_t *ret_offsets, int n,
		   uint64_t *ret_bad, struct err *err)
{
	CLEANUP(query_end) struct sql_query q;
	uint64_t offsets[STREAMS_MAX] = {0}, bad = 0;
	int got;

	if (query_read(&q, st, STMT_SERIES, GET_SCANS, defs, err) < 0)
		return -1;
	query_int(&q, no);
	query_int(&q, rank);
	while ((got = query_next(&q, err)) > 0) {
		int64_t stream = row_below(&q, STREAMS_MAX);

		offsets[stream] = (uint64_t)row_int(&q);
		bad += (uint64_t)row_int(&q);
	}
	if (got < 0 || query_sound(&q, err) < 0)
		return -1;
	memcpy(ret_offsets, offsets,
	       (size_t)(n < STREAMS_MAX ? n : STREAMS_MAX) * sizeof(*offsets));
	*ret_bad = bad;
	return 0;
}
