#include "store/store_suite.h"

#include <inttypes.h>

#include "base/arena.h"
#include "base/cleanup.h"
#include "store/internal.h"

#define ROW                                                                                        \
	"no, id, name, request_id, base_dir, sources, parallel, created_ms, ended_ms, phase, cause"

enum {
	ADD,
	SAVE,
	SAVE_ENTRY,
	ENDED,
	LOAD,
	LOAD_ENTRIES,
	GET,
	EXACT,
	PREFIX,
	BY_REQUEST,
	LIST,
	LIST_ACTIVE,
	COUNTS
};
static const struct stmt_def defs[STMT_SLOTS] = {
	[ADD] = {"add suite",
		 "INSERT INTO suite (id, name, request_id, doc, base_dir, sources, parallel, created_ms) "
		 "VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)"},
	[SAVE] =
		{"save suite",
		 "UPDATE suite SET phase = ?2, cancel_asked = ?3, hurry = ?4, too_dear = ?5, kind = ?6, "
		 "cause = ?7, closed = ?8, since_ms = ?9, client = ?10, closer = ?11, "
		 "closer_until_ms = ?12, away = ?13, closed_there = ?14, carrier = ?15 WHERE no = ?1"},
	[SAVE_ENTRY] =
		{"save entry of a suite",
		 "REPLACE INTO suite_entry (suite, place, variant, repeat, state, attempt, "
		 "cost_micro, kind, cause, run) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10)"},
	[ENDED] = {"end suite", "UPDATE suite SET ended_ms = ?2 WHERE no = ?1"},
	[LOAD] =
		{"restore suite",
		 "SELECT phase, cancel_asked, hurry, too_dear, kind, cause, closed, since_ms, client, "
		 "closer, closer_until_ms, away, closed_there, carrier FROM suite WHERE no = ?1"},
	[LOAD_ENTRIES] =
		{"restore entries of a suite",
		 "SELECT place, variant, repeat, state, attempt, cost_micro, kind, cause, run FROM "
		 "suite_entry WHERE suite = ?1 ORDER BY place"},
	[GET] = {"read suite", "SELECT " ROW ", doc FROM suite WHERE no = ?1"},
	[EXACT] = {"find suite", "SELECT no FROM suite WHERE id = ?1"},
	[PREFIX] =
		{"find suite",
		 "SELECT no, id FROM suite WHERE id >= ?1 AND id < ?1 || x'ff' ORDER BY id LIMIT 3"},
	[BY_REQUEST] = {"find request", "SELECT no FROM suite WHERE request_id = ?1"},
	[LIST] = {"list suites", "SELECT " ROW " FROM suite ORDER BY no DESC LIMIT ?1"},
	[LIST_ACTIVE] = {"list suites",
			 "SELECT " ROW " FROM suite WHERE ended_ms = 0 ORDER BY no DESC LIMIT ?1"},
	[COUNTS] = {"count entries",
		    "SELECT state, count(*) FROM suite_entry WHERE suite = ?1 GROUP BY state"},
};

int store_suite_entry_save(struct store *st, int64_t no, int index, const struct suite_entry *e,
			   const char *run, struct err *err)
{
	CLEANUP(query_end) struct sql_query q;

	if (query_write(&q, st, STMT_SUITE, SAVE_ENTRY, defs, err) < 0)
		return -1;
	query_int(&q, no);
	query_int(&q, index);
	query_int(&q, e->variant);
	query_int(&q, e->repeat);
	query_int(&q, e->state);
	query_int(&q, e->attempt);
	query_int(&q, e->cost_micro);
	query_int(&q, e->kind);
	query_text(&q, e->cause);
	query_text(&q, run);
	return query_run(&q, err);
}

static int add_row(struct store *st, const struct suite_row *row, struct err *err)
{
	CLEANUP(query_end) struct sql_query q;

	if (query_write(&q, st, STMT_SUITE, ADD, defs, err) < 0)
		return -1;
	query_text(&q, row->id);
	query_text(&q, row->name);
	query_text(&q, row->request_id);
	query_text(&q, row->doc);
	query_text(&q, row->base_dir);
	query_text(&q, row->sources);
	query_int(&q, row->parallel);
	query_int(&q, row->created_ms);
	return query_run(&q, err);
}

int store_suite_add(struct store *st, struct suite_row *row, const struct core_suite *s,
		    struct err *err)
{
	if (add_row(st, row, err) < 0)
		return -1;
	row->no = sqlite3_last_insert_rowid(st->db);
	for (int i = 0; i < s->n; i++)
		if (store_suite_entry_save(st, row->no, i, &s->entries[i], NULL, err) < 0)
			return -1;
	return 0;
}

int store_suite_save(struct store *st, int64_t no, const struct core_suite *s, int64_t now_ms,
		     struct err *err)
{
	CLEANUP(query_end) struct sql_query q;

	if (query_write(&q, st, STMT_SUITE, SAVE, defs, err) < 0)
		return -1;
	store_saw_ms(st, now_ms);
	query_int(&q, no);
	query_int(&q, s->phase);
	query_int(&q, s->cancel_asked);
	query_int(&q, s->hurry);
	query_int(&q, s->too_dear);
	query_int(&q, s->kind);
	query_text(&q, s->cause);
	query_text(&q, s->closed);
	query_int(&q, s->since_ms);
	query_text(&q, s->client);
	query_int(&q, s->closer);
	query_int(&q, s->closer_until_ms);
	query_int(&q, s->away);
	query_int(&q, s->closed_there);
	query_int(&q, s->carrier);
	return query_run(&q, err);
}

int store_suite_ended(struct store *st, int64_t no, int64_t wall_ms, struct err *err)
{
	CLEANUP(query_end) struct sql_query q;

	if (query_write(&q, st, STMT_SUITE, ENDED, defs, err) < 0)
		return -1;
	query_int(&q, no);
	query_int(&q, wall_ms);
	return query_run(&q, err);
}

static int restore_suite(struct store *st, int64_t no, struct core_suite *s, struct err *err)
{
	CLEANUP(query_end) struct sql_query q;

	if (query_read(&q, st, STMT_SUITE, LOAD, defs, err) < 0)
		return -1;
	query_int(&q, no);
	if (query_row(&q, "no suite", no, err) < 0)
		return -1;
	s->phase = (enum suite_phase)row_below(&q, SUITE_PHASES);
	s->cancel_asked = row_int(&q);
	s->hurry = row_int(&q);
	s->too_dear = row_int(&q);
	s->kind = (enum err_kind)row_below(&q, ERR_KINDS);
	row_chars(&q, s->cause, sizeof(s->cause));
	row_chars(&q, s->closed, sizeof(s->closed));
	s->since_ms = row_int(&q);
	row_chars(&q, s->client, sizeof(s->client));
	s->closer = (enum suite_closer)row_below(&q, SUITE_CLOSERS);
	s->closer_until_ms = row_int(&q);
	s->away = row_int(&q);
	s->closed_there = row_int(&q);
	s->carrier = (int)row_int(&q);
	return query_sound(&q, err);
}

static void restore_entry(struct sql_query *q, struct suite_entry *e)
{
	e->variant = (int)row_int(q);
	e->repeat = (int)row_int(q);
	e->state = (enum entry_state)row_below(q, ENTRY_STATES);
	e->attempt = (int)row_int(q);
	e->cost_micro = row_int(q);
	e->kind = (enum err_kind)row_below(q, ERR_KINDS);
	row_chars(q, e->cause, sizeof(e->cause));
}

int store_suite_restore(struct store *st, int64_t no, struct core_suite *s, suite_run_fn fn,
			void *ctx, struct err *err)
{
	CLEANUP(query_end) struct sql_query q = {0};
	int got, n = 0;

	if (restore_suite(st, no, s, err) < 0 ||
	    query_read(&q, st, STMT_SUITE, LOAD_ENTRIES, defs, err) < 0)
		return -1;
	query_int(&q, no);
	while ((got = query_next(&q, err)) > 0) {
		int place = (int)row_int(&q);
		struct suite_entry e = {0};

		restore_entry(&q, &e);
		const char *run = row_text(&q);
		if (query_sound(&q, err) < 0)
			return -1;
		if (place != n || n >= s->n || e.variant != s->entries[n].variant ||
		    e.repeat != s->entries[n].repeat)
			return err_set(err, ERR_CONFLICT,
				       "suite %" PRId64 ": entry %d is not the one of its file", no,
				       place);
		s->entries[n++] = e;
		if (run)
			fn(ctx, place, run);
	}
	if (got == 0 && n != s->n)
		return err_set(err, ERR_CONFLICT, "suite %" PRId64 ": %d of %d entries", no, n,
			       s->n);
	return got;
}

static void read_row(struct sql_query *q, struct arena *a, struct suite_row *row)
{
	*row = (struct suite_row){.no = row_int(q)};
	row->id = row_text_in(q, a);
	row->name = row_text_in(q, a);
	row->request_id = row_text_in(q, a);
	row->base_dir = row_text_in(q, a);
	row->sources = row_text_in(q, a);
	row->parallel = (int)row_int(q);
	row->created_ms = row_int(q);
	row->ended_ms = row_int(q);
	row->phase = (int)row_below(q, SUITE_PHASES);
	row->cause = row_text_in(q, a);
}

int store_suite_get(struct store *st, int64_t no, struct arena *a, struct suite_row *ret,
		    struct err *err)
{
	CLEANUP(query_end) struct sql_query q;

	if (query_read(&q, st, STMT_SUITE, GET, defs, err) < 0)
		return -1;
	query_int(&q, no);
	if (query_row(&q, "no suite", no, err) < 0)
		return -1;
	read_row(&q, a, ret);
	ret->doc = row_text_in(&q, a);
	return query_sound(&q, err);
}

static int find_exact(struct store *st, struct str id, int64_t *ret_no, struct err *err)
{
	CLEANUP(query_end) struct sql_query q;

	if (query_read(&q, st, STMT_SUITE, EXACT, defs, err) < 0)
		return -1;
	query_str(&q, id);
	return query_number(&q, 0, ret_no, err);
}

static int find_prefix(struct store *st, struct str prefix, struct arena *a, int64_t *ret_no,
		       struct err *err)
{
	CLEANUP(query_end) struct sql_query q;
	const char *ids[3] = {NULL};
	int got, n = 0;

	if (query_read(&q, st, STMT_SUITE, PREFIX, defs, err) < 0)
		return -1;
	query_str(&q, prefix);
	while ((got = query_next(&q, err)) > 0 && n < 3) {
		*ret_no = row_int(&q);
		ids[n++] = row_text_in(&q, a);
	}
	if (got < 0)
		return -1;
	if (n > 1)
		return err_set(err, ERR_CONFLICT, "'%.*s' matches several suites: %s, %s%s",
			       STR_ARG(prefix), ids[0], ids[1], n > 2 ? ", ..." : "");
	return n == 1 ? 0 : err_set(err, ERR_NOT_FOUND, "no suite '%.*s'", STR_ARG(prefix));
}

int store_suite_find(struct store *st, struct str prefix, struct arena *a, struct suite_row *ret,
		     struct err *err)
{
	int64_t no;

	if (!prefix.n)
		return err_set(err, ERR_INVALID, "the suite has no name");
	if (find_exact(st, prefix, &no, err) < 0 ||
	    (!no && find_prefix(st, prefix, a, &no, err) < 0))
		return -1;
	return store_suite_get(st, no, a, ret, err);
}

int store_suite_by_request(struct store *st, const char *request_id, int64_t *ret_no,
			   struct err *err)
{
	CLEANUP(query_end) struct sql_query q;

	if (query_read(&q, st, STMT_SUITE, BY_REQUEST, defs, err) < 0)
		return -1;
	query_text(&q, request_id);
	return query_number(&q, 0, ret_no, err);
}

static int count_entries(struct store *st, struct suite_row *row, struct err *err)
{
	CLEANUP(query_end) struct sql_query q;
	int got;

	if (query_read(&q, st, STMT_SUITE, COUNTS, defs, err) < 0)
		return -1;
	query_int(&q, row->no);
	while ((got = query_next(&q, err)) > 0) {
		int64_t state = row_below(&q, ENTRY_STATES);

		row->entries[state] = (int)row_int(&q);
	}
	return got < 0 ? -1 : query_sound(&q, err);
}

/* Rows are collected before the first call of fn, so that fn may use the store. */
int store_suites_each(struct store *st, bool active, int limit, struct arena *a, suite_row_fn fn,
		      void *ctx, struct err *err)
{
	CLEANUP(query_end) struct sql_query q;
	VEC(struct suite_row) rows = {0};
	int got;

	if (query_read(&q, st, STMT_SUITE, active ? LIST_ACTIVE : LIST, defs, err) < 0)
		return -1;
	query_int(&q, limit > 0 ? limit : -1);
	while ((got = query_next(&q, err)) > 0)
		read_row(&q, a, vec_push(&rows));
	query_end(&q);
	for (size_t i = 0; got == 0 && i < rows.n; i++) {
		if (count_entries(st, &rows.v[i], err) < 0)
			got = -1;
		else if (!fn(ctx, &rows.v[i]))
			break;
	}
	vec_release(&rows);
	return got;
}
