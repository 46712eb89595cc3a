/* The exact bytes of calls that create resources, one row per batch. */
#include "store/internal.h"

#include "base/cleanup.h"

enum { SAVE, LOAD };
static const struct stmt_def defs[STMT_SLOTS] = {
	[SAVE] = {"save request",
		  "INSERT INTO request (run, batch, bytes, sha256) VALUES (?1, ?2, ?3, ?4) "
		  "ON CONFLICT DO NOTHING"},
	[LOAD] = {"read request",
		  "SELECT bytes, sha256 FROM request WHERE run = ?1 AND batch = ?2"},
};

int store_request_save(struct store *st, int64_t no, int batch, struct str bytes,
		       const char *sha256, struct err *err)
{
	CLEANUP(query_end) struct sql_query q;

	if (query_write(&q, st, STMT_REQUEST, SAVE, defs, err) < 0)
		return -1;
	query_int(&q, no);
	query_int(&q, batch);
	query_str(&q, bytes);
	query_text(&q, sha256);
	return query_run(&q, err);
}

int store_request_load(struct store *st, int64_t no, int batch, struct arena *a,
		       const char **ret_bytes, const char **ret_sha256, struct err *err)
{
	CLEANUP(query_end) struct sql_query q;

	if (query_read(&q, st, STMT_REQUEST, LOAD, defs, err) < 0)
		return -1;
	query_int(&q, no);
	query_int(&q, batch);
	if (query_row(&q, "there is no request of batch", batch, err) < 0)
		return -1;
	*ret_bytes = row_text_in(&q, a);
	*ret_sha256 = row_text_in(&q, a);
	return 0;
}
