#include "master/api/tokens.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/hex.h"
#include "base/path.h"
#include "base/rand.h"
#include "fmt/doc.h"
#include "fmt/jsonw.h"
#include "master/api/api.h"
#include "master/round.h"
#include "net/digest.h"

#define SAVE_USED_MS 60000
#define JOIN_FILE "join"
#define MIN_TOKEN 32
#define MAX_EXPIRES_MS (INT64_C(3660) * 24 * 60 * 60 * 1000) /* ten years */

struct token {
	char id[9];
	char *name;
	uint8_t hash[SHA256_BYTES];
	enum api_auth scope;
	int64_t created_ms, expires_ms, used_ms, saved_ms;
	uint32_t holder;
	bool over; /* it has ended, and its streams were closed */
};

struct tokens {
	struct master *m;
	uint8_t user_hash[SHA256_BYTES]; /* of the user's own token */
	VEC(struct token) list;
	uint32_t last_number;
};

/* The user's own token is made once, in a file that only the user can read.  If the file is
 * lost, a new token is made. */
static int load_user_token(struct tokens *t, struct err *err)
{
	CLEANUP(freep) char *path = path_join(t->m->home, "token");
	struct buf text;
	int rc = 0;

	buf_init(&text, 4096);
	if (!file_exists(path)) {
		char token[65];
		token_new(token);
		rc = file_write_atomic(path, str_from(token), 0600, false, err);
	}
	if (rc == 0)
		rc = file_read(path, &text, err);
	if (rc == 0) {
		struct str token = str_trim(buf_str(&text));
		if (token.n < MIN_TOKEN)
			rc = err_set(err, ERR_INVALID,
				     "'%s' holds no token: remove it to get a new one", path);
		else
			sha256_of(token.p, token.n, t->user_hash);
	}
	buf_release(&text);
	return rc;
}

static uint32_t next_holder(struct tokens *t)
{
	return auth_token_holder(++t->last_number);
}

/* Scopes in the store: 1 read, 2 submit, 3 admin, 4 join. */
static int stored_scope(enum api_auth scope)
{
	return scope == API_JOIN ? STORE_TOKEN_SCOPES : (int)scope - API_READ + 1;
}

static enum api_auth scope_stored(int scope)
{
	return scope == STORE_TOKEN_SCOPES ? API_JOIN : (enum api_auth)(scope - 1 + API_READ);
}

static bool take_token(void *ctx, const struct token_row *row)
{
	struct tokens *all = ctx;
	struct token *t = vec_push(&all->list);

	snprintf(t->id, sizeof(t->id), "%s", row->id);
	t->name = xstrdup(row->name);
	memcpy(t->hash, row->hash, sizeof(t->hash));
	t->scope = scope_stored(row->scope);
	t->created_ms = row->created_ms;
	t->expires_ms = row->expires_ms;
	t->used_ms = t->saved_ms = row->used_ms;
	t->holder = next_holder(all);
	return true;
}

struct tokens *tokens_new(struct master *m, struct err *err)
{
	struct tokens *t = xcalloc(1, sizeof(*t));

	t->m = m;
	if (store_tokens_each(m->store, take_token, t, err) < 0 || load_user_token(t, err) < 0)
		return tokens_free(t);
	return t;
}

static void save_used(struct tokens *all, int64_t older_than_ms)
{
	struct master *m = all->m;
	bool begun = false;

	for (size_t i = 0; i < all->list.n; i++) {
		struct token *t = &all->list.v[i];
		if (t->used_ms <= t->saved_ms + older_than_ms)
			continue;
		if (!begun)
			round_end(m); /* commit the changes of runs first */
		begun = true;
		store_begin(m->store);
		if (store_token_used(m->store, t->id, t->used_ms, NULL) < 0)
			return; /* the store has failed: the next round_end() stops the master */
		t->saved_ms = t->used_ms;
	}
	if (begun)
		store_commit(m->store, NULL);
}

void tokens_tick(struct tokens *all)
{
	int64_t now = clock_wall_ms();

	for (size_t i = 0; i < all->list.n; i++) {
		struct token *t = &all->list.v[i];
		if (t->over || !t->expires_ms || t->expires_ms > now)
			continue;
		t->over = true;
		auth_cut_streams(all->m, t->holder);
	}
	save_used(all, SAVE_USED_MS);
}

struct tokens *tokens_free(struct tokens *t)
{
	if (!t)
		return NULL;
	if (!t->m->exit_code)
		save_used(t, 0);
	for (size_t i = 0; i < t->list.n; i++)
		free(t->list.v[i].name);
	vec_release(&t->list);
	free(t);
	return NULL;
}

enum api_auth tokens_scope(struct tokens *t, struct str text, uint32_t *ret_holder)
{
	uint8_t hash[SHA256_BYTES];
	int64_t now = clock_wall_ms();
	struct token *found = NULL;

	sha256_of(text.p, text.n, hash);
	enum api_auth scope = digest_equal(hash, t->user_hash, sizeof(hash)) ? API_ADMIN : 0;
	for (size_t i = 0; i < t->list.n; i++)
		if (digest_equal(hash, t->list.v[i].hash, sizeof(hash)))
			found = &t->list.v[i];
	if (!found || (found->expires_ms && found->expires_ms <= now))
		return scope;
	found->used_ms = now;
	*ret_holder = found->holder;
	return found->scope;
}

static void kms(struct jsonw *w, const char *key, int64_t ms)
{
	jsonw_key(w, key);
	if (ms)
		jsonw_int(w, ms);
	else
		jsonw_null(w);
}

static void token_to_json(struct jsonw *w, const struct token *t)
{
	jsonw_kz(w, "id", t->id);
	jsonw_kz(w, "name", t->name);
	jsonw_kz(w, "scope", scope_name(t->scope));
	jsonw_kint(w, "created_ms", t->created_ms);
	kms(w, "expires_ms", t->expires_ms);
	kms(w, "used_ms", t->used_ms);
}

int api_tokens_list(struct api_call *c, struct err *err)
{
	const struct tokens *t = c->m->auth->tokens;
	struct buf text;
	struct jsonw w;

	(void)err;
	api_answer_begin(&w, &text);
	jsonw_key(&w, "tokens");
	jsonw_open(&w, '[');
	for (size_t i = 0; i < t->list.n; i++) {
		jsonw_open(&w, '{');
		token_to_json(&w, &t->list.v[i]);
		jsonw_close(&w);
	}
	jsonw_close(&w);
	api_answer_end(c, 200, &w);
	return 0;
}

/* Commits the token before it is shown to anybody. */
static int store_token(struct master *m, const struct token *t, struct err *err)
{
	struct token_row row = {.id = t->id,
				.name = t->name,
				.scope = stored_scope(t->scope),
				.created_ms = t->created_ms,
				.expires_ms = t->expires_ms};

	memcpy(row.hash, t->hash, sizeof(row.hash));
	round_end(m);
	store_begin(m->store);
	if (store_token_add(m->store, &row, err) < 0 || store_commit(m->store, err) < 0) {
		if (err->kind != ERR_CONFLICT)
			master_fatal(m, err);
		return -1;
	}
	return 0;
}

/* Adds a token with this text; `name` is copied. */
static int make_token(struct tokens *t, enum api_auth scope, struct str name, int64_t valid_ms,
		      const char *text, struct err *err)
{
	struct token made = {.scope = scope, .created_ms = clock_wall_ms()};
	uint8_t id[4];

	if (t->list.n >= TOKENS_MAX_TOKENS)
		return err_set(err, ERR_QUOTA, "there are %d tokens: revoke some first",
			       TOKENS_MAX_TOKENS);
	rand_bytes(id, sizeof(id));
	hex_encode(id, sizeof(id), made.id);
	sha256_of(text, strlen(text), made.hash);
	made.expires_ms = valid_ms ? made.created_ms + valid_ms : 0;
	made.name = xasprintf("%.*s", STR_ARG(name));
	if (store_token(t->m, &made, err) < 0) {
		free(made.name);
		return -1;
	}
	made.holder = next_holder(t);
	*vec_push(&t->list) = made;
	return 0;
}

/* Reads the scope of a new token: at most that of the caller, or join. */
static int read_new_scope(const struct api_call *c, const struct doc *body, enum api_auth *ret,
			  struct err *err)
{
	if (str_is(doc_str(body, "scope", STR("")), scope_name(API_JOIN))) {
		*ret = API_JOIN; /* the route needs the scope admin */
		return 0;
	}
	return auth_read_scope(c, body, STR(""), ret, err);
}

int api_token_new(struct api_call *c, struct err *err)
{
	struct tokens *t = c->m->auth->tokens;
	enum api_auth scope;
	struct doc *body;
	struct buf text;
	struct jsonw w;
	char token[TOKENS_TEXT];

	if (api_read_body(c, &body, err) < 0 || read_new_scope(c, body, &scope, err) < 0)
		return -1;
	struct str name = doc_str(body, "name", STR(""));
	int64_t valid_ms = doc_int(body, "valid_ms", 0);
	if (name.n > TOKENS_MAX_NAME || memchr(name.p, 0, name.n))
		return err_set(err, ERR_INVALID, "'name' has at most %d bytes", TOKENS_MAX_NAME);
	if (valid_ms < 0 || valid_ms > MAX_EXPIRES_MS)
		return err_set(err, ERR_INVALID,
			       "'valid_ms' must be from 0 (for ever) to ten years");
	token_new(token);
	if (make_token(t, scope, name, valid_ms, token, err) < 0)
		return -1;
	api_answer_begin(&w, &text);
	token_to_json(&w, &t->list.v[t->list.n - 1]);
	jsonw_kz(&w, "token", token);
	api_answer_end(c, 201, &w);
	explicit_bzero(token, sizeof(token));
	return 0;
}

static bool is_good_join(const struct tokens *t, struct str text)
{
	uint8_t hash[SHA256_BYTES];
	int64_t now = clock_wall_ms();

	sha256_of(text.p, text.n, hash);
	for (size_t i = 0; i < t->list.n; i++) {
		const struct token *one = &t->list.v[i];

		if (one->scope == API_JOIN && digest_equal(hash, one->hash, sizeof(hash)))
			return !one->expires_ms || one->expires_ms > now;
	}
	return false;
}

int tokens_join(struct tokens *t, char out[static TOKENS_TEXT], struct err *err)
{
	CLEANUP(freep) char *path = path_join(t->m->home, JOIN_FILE);
	CLEANUP(buf_release) struct buf text = {0};

	buf_init(&text, 4096);
	if (file_read(path, &text, NULL) == 0) {
		struct str kept = str_trim(buf_str(&text));

		if (kept.n == TOKENS_TEXT - 1 && is_good_join(t, kept)) {
			snprintf(out, TOKENS_TEXT, "%.*s", STR_ARG(kept));
			return 0;
		}
	}
	token_new(out);
	/* The file is written first: a row whose text is lost would be valid for ever. */
	if (file_write_atomic(path, str_from(out), 0600, true, err) < 0)
		return -1;
	return make_token(t, API_JOIN, STR("hosts"), 0, out, err);
}

int api_token_revoke(struct api_call *c, struct err *err)
{
	struct tokens *t = c->m->auth->tokens;
	struct buf text;
	struct jsonw w;
	size_t i = 0;

	while (i < t->list.n && !str_is(c->params[0], t->list.v[i].id))
		i++;
	if (i == t->list.n)
		return err_set(err, ERR_NOT_FOUND, "no token '%.*s'", STR_ARG(c->params[0]));
	struct token gone = t->list.v[i];
	round_end(c->m);
	store_begin(c->m->store);
	if (store_token_remove(c->m->store, gone.id, err) < 0 ||
	    store_commit(c->m->store, err) < 0) {
		master_fatal(c->m, err);
		return -1;
	}
	memmove(&t->list.v[i], &t->list.v[i + 1], (--t->list.n - i) * sizeof(gone));
	auth_cut_streams(c->m, gone.holder);
	api_answer_begin(&w, &text);
	jsonw_kbool(&w, "revoked", true);
	jsonw_kz(&w, "id", gone.id);
	api_answer_end(c, 200, &w);
	free(gone.name);
	return 0;
}
