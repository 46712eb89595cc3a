/* How the processes of nodes that have several ended. */
#include "store/internal.h"

#include "base/cleanup.h"

enum { SAVE, LIST };
static const struct stmt_def defs[STMT_SLOTS] = {
	[SAVE] = {"save ends of processes",
		  "REPLACE INTO process (run, rank, attempt, ends) VALUES (?1, ?2, ?3, ?4)"},
	[LIST] = {"list ends of processes",
		  "SELECT rank, attempt, ends FROM process WHERE run = ?1 ORDER BY rank"},
};

int store_ends_save(struct store *st, int64_t no, int rank, int attempt, const char *ends,
		    struct err *err)
{
	CLEANUP(query_end) struct sql_query q;

	if (query_write(&q, st, STMT_PROCESS, SAVE, defs, err) < 0)
		return -1;
	query_int(&q, no);
	query_int(&q, rank);
	query_int(&q, attempt);
	query_text(&q, ends);
	return query_run(&q, err);
}

int store_ends_each(struct store *st, int64_t no, ends_row_fn fn, void *ctx, struct err *err)
{
	CLEANUP(query_end) struct sql_query q;
	int got;

	if (query_read(&q, st, STMT_PROCESS, LIST, defs, err) < 0)
		return -1;
	query_int(&q, no);
	while ((got = query_next(&q, err)) > 0) {
		int rank = (int)row_int(&q), attempt = (int)row_int(&q);

		fn(ctx, rank, attempt, row_text(&q));
	}
	return got < 0 ? -1 : query_sound(&q, err);
}
