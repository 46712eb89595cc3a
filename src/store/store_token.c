/* Tokens: hash, scope and expiry of each. */
#include "store/internal.h"

#include "base/cleanup.h"
#include "base/hex.h"

enum { ADD, USED, REMOVE, LIST };
static const struct stmt_def defs[STMT_SLOTS] = {
	[ADD] = {"add token",
		 "INSERT INTO token (id, hash, name, scope, created_ms, expires_ms, used_ms) VALUES (?1, ?2, "
		 "?3, ?4, ?5, ?6, ?7)"},
	[USED] = {"note the use of a token", "UPDATE token SET used_ms = ?2 WHERE id = ?1"},
	[REMOVE] = {"remove token", "DELETE FROM token WHERE id = ?1"},
	[LIST] = {"list tokens",
		  "SELECT id, hash, name, scope, created_ms, expires_ms, used_ms FROM token "
		  "ORDER BY created_ms, id"},
};

int store_token_add(struct store *st, const struct token_row *row, struct err *err)
{
	CLEANUP(query_end) struct sql_query q = {0};
	char hash[2 * STORE_TOKEN_HASH + 1];

	if (row->scope < 1 || row->scope > STORE_TOKEN_SCOPES)
		return err_set(err, ERR_INVALID, "add token: scope %d does not exist", row->scope);
	hex_encode(row->hash, sizeof(row->hash), hash);
	if (query_write(&q, st, STMT_TOKEN, ADD, defs, err) < 0)
		return -1;
	query_text(&q, row->id);
	query_text(&q, hash);
	query_text(&q, row->name ? row->name : "");
	query_int(&q, row->scope);
	query_int(&q, row->created_ms);
	query_int(&q, row->expires_ms);
	query_int(&q, row->used_ms);
	return query_run(&q, err);
}

int store_token_used(struct store *st, const char *id, int64_t wall_ms, struct err *err)
{
	CLEANUP(query_end) struct sql_query q;

	if (query_write(&q, st, STMT_TOKEN, USED, defs, err) < 0)
		return -1;
	query_text(&q, id);
	query_int(&q, wall_ms);
	return query_run(&q, err);
}

int store_token_remove(struct store *st, const char *id, struct err *err)
{
	CLEANUP(query_end) struct sql_query q;

	if (query_write(&q, st, STMT_TOKEN, REMOVE, defs, err) < 0)
		return -1;
	query_text(&q, id);
	return query_run(&q, err);
}

int store_tokens_each(struct store *st, token_row_fn fn, void *ctx, struct err *err)
{
	CLEANUP(query_end) struct sql_query q;
	int got;

	if (query_read(&q, st, STMT_TOKEN, LIST, defs, err) < 0)
		return -1;
	while ((got = query_next(&q, err)) > 0) {
		struct token_row row;

		row.id = row_text(&q);
		struct str hash = str_from(row_text(&q));
		row.name = row_text(&q);
		row.scope = (int)row_below(&q, STORE_TOKEN_SCOPES + 1);
		row.created_ms = row_int(&q);
		row.expires_ms = row_int(&q);
		row.used_ms = row_int(&q);
		if (hash.n != sizeof(row.hash) * 2 || !hex_decode(hash, row.hash))
			q.unsound = true;
		if (query_sound(&q, err) < 0)
			return -1;
		if (!fn(ctx, &row))
			return 0;
	}
	return got;
}
