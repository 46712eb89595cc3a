/* Runs as they were submitted: add, find, list, remove. */
#include "store/internal.h"

#include <inttypes.h>

#include "base/arena.h"
#include "base/cleanup.h"

#define FOUND_IDS 10

/* From the beginning of the phase until the first one that follows; 0 while it goes on. */
#define RUNNING_MS                                                                                 \
	"CASE WHEN running_at_ms = 0 THEN 0 ELSE coalesce(nullif(collecting_at_ms, 0), "           \
	"nullif(cleaning_at_ms, 0), nullif(succeeded_at_ms, 0), nullif(failed_at_ms, 0), "         \
	"nullif(cancelled_at_ms, 0), running_at_ms) - running_at_ms END"
/* Columns, in the order of read_row(). */
#define ROW                                                                                        \
	"no, id, name, request_id, engine, strategy, nodes, seed, created_ms, phase, "             \
	"verdict, ended_ms, cause_text, step, total, cost_micro, " RUNNING_MS                      \
	", base_dir, source_sha256, client_env, secret, CASE WHEN json_valid(json) THEN "          \
	"json_extract(json, '$.params') END, (SELECT json_group_array(tag) FROM (SELECT tag FROM tag WHERE tag.run = no ORDER BY tag))"
/* CROSS JOIN makes SQLite read the runs in their order, and look up the job of each. */
#define WITH_JOB " CROSS JOIN job ON job.run = no"

enum {
	ADD,
	ADD_JOB,
	PLANNED,
	GET,
	EXACT,
	PREFIX,
	BY_REQUEST,
	BY_SOURCE,
	LIST,
	LIST_ACTIVE,
	PHASES,
	ALL
};
static const struct stmt_def defs[STMT_SLOTS] = {
	[ADD] = {"add run",
		 "INSERT INTO run (id, name, request_id, engine, strategy, nodes, seed, "
		 "created_ms, phase, verdict, ended_ms) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, "
		 "?11)"},
	[ADD_JOB] =
		{"add job",
		 "INSERT INTO job (run, base_dir, source_sha256, client_env, secret, json, facts, plan, data) "
		 "VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)"},
	[PLANNED] =
		{"add plan",
		 "UPDATE job SET facts = ?2, plan = ?3, json = ?4, client_env = ?5 WHERE run = ?1"},
	[GET] = {"read run",
		 "SELECT " ROW ", json, facts, plan, data FROM run" WITH_JOB " WHERE no = ?1"},
	[EXACT] = {"find run", "SELECT no FROM run WHERE id = ?1"},
	[PREFIX] =
		{"find run",
		 "SELECT no, id FROM run WHERE id >= ?1 AND id < ?1 || x'ff' ORDER BY id LIMIT ?2"},
	[BY_REQUEST] = {"find request", "SELECT no FROM run WHERE request_id = ?1"},
	[BY_SOURCE] =
		{"find source",
		 "SELECT 1 FROM job WHERE (source_sha256 = ?1 OR instr(data, ?1) > 0) AND run <> ?2 "
		 "UNION ALL SELECT 1 FROM suite WHERE ended_ms = 0 AND instr(sources, ?1) > 0 LIMIT 1"},
	[LIST] = {"list runs",
		  "SELECT " ROW " FROM run" WITH_JOB " WHERE no < ?1 ORDER BY no DESC LIMIT ?2"},
	[LIST_ACTIVE] = {"list runs", "SELECT " ROW " FROM run INDEXED BY run_active" WITH_JOB
				      " WHERE ended_ms = 0 AND no < ?1 ORDER BY no DESC LIMIT ?2"},
	[PHASES] = {"count runs", "SELECT phase, count(*) FROM run GROUP BY phase"},
	[ALL] = {"count runs", "SELECT count(*) FROM run"},
};

/* Children first: a table that is missing here breaks a foreign key. */
enum {
	ENDED,
	KEEP_ORDER,
	DROP_SAMPLES,
	DROP_SERIES,
	DROP_SCAN,
	DROP_PROCESSES,
	DROP_EVENTS,
	DROP_RESOURCES,
	DROP_REQUESTS,
	DROP_NODES,
	DROP_TAGS,
	DROP_NOTES,
	DROP_JOB,
	DROP_RUN
};
static const struct stmt_def removals[STMT_SLOTS] = {
	[ENDED] = {"remove run", "SELECT ended_ms FROM run WHERE no = ?1"},
	[KEEP_ORDER] = {"remove run", "UPDATE install SET last_event = ?1"},
	[DROP_SAMPLES] =
		{"remove samples",
		 "DELETE FROM sample WHERE series IN (SELECT series FROM series WHERE run = ?1)"},
	[DROP_SERIES] = {"remove series", "DELETE FROM series WHERE run = ?1"},
	[DROP_SCAN] = {"remove scans", "DELETE FROM scan WHERE run = ?1"},
	[DROP_PROCESSES] = {"remove ends of processes", "DELETE FROM process WHERE run = ?1"},
	[DROP_EVENTS] = {"remove events", "DELETE FROM event WHERE run = ?1"},
	[DROP_RESOURCES] = {"remove resources", "DELETE FROM resource WHERE run = ?1"},
	[DROP_REQUESTS] = {"remove requests", "DELETE FROM request WHERE run = ?1"},
	[DROP_NODES] = {"remove nodes", "DELETE FROM node WHERE run = ?1"},
	[DROP_TAGS] = {"remove tags", "DELETE FROM tag WHERE run = ?1"},
	[DROP_NOTES] = {"remove notes", "DELETE FROM note WHERE run = ?1"},
	[DROP_JOB] = {"remove job", "DELETE FROM job WHERE run = ?1"},
	[DROP_RUN] = {"remove run", "DELETE FROM run WHERE no = ?1"},
};

static int add_row(struct store *st, struct run_row *row, struct err *err)
{
	CLEANUP(query_end) struct sql_query q;

	if (query_write(&q, st, STMT_RUN, ADD, defs, err) < 0)
		return -1;
	query_text(&q, row->id);
	query_text(&q, row->name);
	query_text(&q, row->request_id && *row->request_id ? row->request_id : NULL);
	query_text(&q, row->engine);
	query_text(&q, row->strategy);
	query_int(&q, row->nodes);
	query_int(&q, (int64_t)row->seed);
	query_int(&q, row->created_ms);
	query_int(&q, row->phase);
	query_int(&q, row->verdict);
	query_int(&q, row->ended_ms);
	return query_run(&q, err);
}

static int add_job(struct store *st, int64_t no, const struct run_row *row, struct err *err)
{
	CLEANUP(query_end) struct sql_query q;

	if (query_write(&q, st, STMT_RUN, ADD_JOB, defs, err) < 0)
		return -1;
	query_int(&q, no);
	query_text(&q, row->base_dir);
	query_text(&q, row->source_sha256);
	query_text(&q, row->client_env);
	query_text(&q, row->secret);
	query_text(&q, row->job_json);
	query_text(&q, row->facts);
	query_text(&q, row->plan);
	query_text(&q, row->data);
	return query_run(&q, err);
}

int store_run_planned(struct store *st, const struct run_row *row, struct err *err)
{
	CLEANUP(query_end) struct sql_query q;

	if (query_write(&q, st, STMT_RUN, PLANNED, defs, err) < 0)
		return -1;
	query_int(&q, row->no);
	query_text(&q, row->facts);
	query_text(&q, row->plan);
	query_text(&q, row->job_json);
	query_text(&q, row->client_env);
	return query_run(&q, err);
}

int store_run_add(struct store *st, struct run_row *row, struct err *err)
{
	struct err why = {0};

	if (add_row(st, row, &why) < 0) {
		if (why.kind == ERR_CONFLICT && st->broken.kind == ERR_NONE)
			return strstr(why.msg, "request_id")
				       ? err_set(err, ERR_CONFLICT, "request '%s' was made already",
						 row->request_id)
				       : err_set(err, ERR_CONFLICT, "run '%s' exists already",
						 row->id);
		if (err)
			*err = why;
		return -1;
	}
	int64_t no = sqlite3_last_insert_rowid(st->db);
	if (add_job(st, no, row, err) < 0 ||
	    (row->tags && store_tags_add(st, no, row->tags, err) < 0))
		return -1;
	row->no = no;
	return 0;
}

static void read_row(struct sql_query *q, struct arena *a, struct run_row *row)
{
	*row = (struct run_row){.no = row_int(q)};
	row->id = row_text_in(q, a);
	row->name = row_text_in(q, a);
	row->request_id = row_text_in(q, a);
	row->engine = row_text_in(q, a);
	row->strategy = row_text_in(q, a);
	row->nodes = (int)row_int(q);
	row->seed = (uint64_t)row_int(q);
	row->created_ms = row_int(q);
	row->phase = (int)row_int(q);
	row->verdict = (int)row_int(q);
	row->ended_ms = row_int(q);
	row->cause = row_text_in(q, a);
	row->step = row_int(q);
	row->total = row_int(q);
	row->cost_micro = row_int(q);
	row->running_ms = row_int(q);
	row->base_dir = row_text_in(q, a);
	row->source_sha256 = row_text_in(q, a);
	row->client_env = row_text_in(q, a);
	row->secret = row_text_in(q, a);
	row->params = row_text_in(q, a);
	row->tags = row_text_in(q, a);
}

int store_run_get(struct store *st, int64_t no, struct arena *a, struct run_row *ret,
		  struct err *err)
{
	CLEANUP(query_end) struct sql_query q;

	if (query_read(&q, st, STMT_RUN, GET, defs, err) < 0)
		return -1;
	query_int(&q, no);
	if (query_row(&q, "no run", no, err) < 0)
		return -1;
	read_row(&q, a, ret);
	ret->job_json = row_text_in(&q, a);
	ret->facts = row_text_in(&q, a);
	ret->plan = row_text_in(&q, a);
	ret->data = row_text_in(&q, a);
	return 0;
}

static int find_exact(struct store *st, struct str id, int64_t *ret_no, struct err *err)
{
	CLEANUP(query_end) struct sql_query q;

	if (query_read(&q, st, STMT_RUN, EXACT, defs, err) < 0)
		return -1;
	query_str(&q, id);
	return query_number(&q, 0, ret_no, err);
}

static int several(struct str prefix, const char *const *ids, size_t n, struct err *err)
{
	return err_set(err, ERR_CONFLICT, "'%.*s' matches several runs: %s, %s%s", STR_ARG(prefix),
		       ids[0], ids[1], n > 2 ? ", ..." : "");
}

int store_run_find(struct store *st, struct str prefix, struct arena *a, int64_t *ret_no,
		   const char ***ret_ids, size_t *ret_nids, struct err *err)
{
	CLEANUP(query_end) struct sql_query q = {0};
	const char **ids = arena_array(a, const char *, FOUND_IDS);
	int64_t no;
	size_t n = 0;
	int got;

	if (!prefix.n)
		return err_set(err, ERR_INVALID, "the run has no name");
	if (find_exact(st, prefix, &no, err) < 0)
		return -1;
	if (no) {
		*ret_no = no;
		return 0;
	}
	if (query_read(&q, st, STMT_RUN, PREFIX, defs, err) < 0)
		return -1;
	query_str(&q, prefix);
	query_int(&q, FOUND_IDS);
	while ((got = query_next(&q, err)) > 0) {
		no = row_int(&q);
		ids[n++] = row_text_in(&q, a);
	}
	if (got < 0)
		return -1;
	if (n == 0)
		return err_set(err, ERR_NOT_FOUND, "no run '%.*s': 'regatta ps --all' lists them",
			       STR_ARG(prefix));
	if (n > 1) {
		*ret_ids = ids;
		*ret_nids = n;
		return several(prefix, ids, n, err);
	}
	*ret_no = no;
	return 0;
}

int store_run_by_request(struct store *st, const char *request_id, int64_t *ret_no, struct err *err)
{
	CLEANUP(query_end) struct sql_query q;

	if (query_read(&q, st, STMT_RUN, BY_REQUEST, defs, err) < 0)
		return -1;
	query_text(&q, request_id);
	return query_number(&q, 0, ret_no, err);
}

int store_source_used(struct store *st, const char *sha256, int64_t not_this, bool *ret,
		      struct err *err)
{
	CLEANUP(query_end) struct sql_query q;
	int64_t found;

	if (query_read(&q, st, STMT_RUN, BY_SOURCE, defs, err) < 0)
		return -1;
	query_text(&q, sha256);
	query_int(&q, not_this);
	if (query_number(&q, 0, &found, err) < 0)
		return -1;
	*ret = found;
	return 0;
}

/* Rows are collected before the first call of fn, so that fn may use the store. */
int store_runs_each(struct store *st, bool active, int64_t before_no, int limit, struct arena *a,
		    run_row_fn fn, void *ctx, struct err *err)
{
	CLEANUP(query_end) struct sql_query q;
	VEC(struct run_row) rows = {0};
	int got;

	if (query_read(&q, st, STMT_RUN, active ? LIST_ACTIVE : LIST, defs, err) < 0)
		return -1;
	query_int(&q, before_no > 0 ? before_no : INT64_MAX);
	query_int(&q, limit > 0 ? limit : -1);
	while ((got = query_next(&q, err)) > 0)
		read_row(&q, a, vec_push(&rows));
	query_end(&q);
	for (size_t i = 0; got == 0 && i < rows.n && fn(ctx, &rows.v[i]); i++)
		;
	vec_release(&rows);
	return got;
}

int store_run_phases(struct store *st, int64_t ret[static RUN_PHASES], struct err *err)
{
	CLEANUP(query_end) struct sql_query q;
	int64_t counts[RUN_PHASES] = {0};
	int got;

	if (query_read(&q, st, STMT_RUN, PHASES, defs, err) < 0)
		return -1;
	while ((got = query_next(&q, err)) > 0) {
		int64_t phase = row_below(&q, RUN_PHASES);

		counts[phase] += row_int(&q);
	}
	if (got < 0 || query_sound(&q, err) < 0)
		return -1;
	memcpy(ret, counts, sizeof(counts));
	return 0;
}

int store_run_count(struct store *st, int64_t *ret, struct err *err)
{
	CLEANUP(query_end) struct sql_query q;

	if (query_read(&q, st, STMT_RUN, ALL, defs, err) < 0 || query_next(&q, err) < 0)
		return -1;
	*ret = row_int(&q);
	return query_sound(&q, err);
}

static int check_ended(struct store *st, int64_t no, struct err *err)
{
	CLEANUP(query_end) struct sql_query q;
	int64_t ended;

	if (query_read(&q, st, STMT_REMOVE, ENDED, removals, err) < 0)
		return -1;
	query_int(&q, no);
	if (query_number(&q, -1, &ended, err) < 0)
		return -1;
	if (ended < 0)
		return err_set(err, ERR_NOT_FOUND, "no run %" PRId64, no);
	if (ended == 0)
		return err_set(err, ERR_CONFLICT, "run %" PRId64 " has not ended", no);
	return 0;
}

int store_run_remove(struct store *st, int64_t no, struct err *err)
{
	if (check_ended(st, no, err) < 0)
		return -1;
	/* Its events may be the newest of all runs: their numbers must not be used again. */
	struct sql_query order;

	if (query_write(&order, st, STMT_REMOVE, KEEP_ORDER, removals, err) < 0)
		return -1;
	query_int(&order, st->last_event);
	if (query_run(&order, err) < 0)
		return -1;
	for (int i = DROP_SAMPLES; i <= DROP_RUN; i++) {
		struct sql_query q;

		if (query_write(&q, st, STMT_REMOVE, i, removals, err) < 0)
			return -1;
		query_int(&q, no);
		if (query_run(&q, err) < 0)
			return -1;
	}
	/* A late sample of this run must find that its series is gone. */
	memset(st->last_samples, 0, sizeof(st->last_samples));
	return 0;
}
