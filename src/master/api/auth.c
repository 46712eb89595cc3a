/*
 * Callers over TCP and what they may do.
 *
 * The tokens are few and live in memory beside the store; all are compared, in
 * constant time.  A wrong one costs its address one of a few tries a second.
 * Nothing here writes a secret anywhere but into the user's own token file.
 */
#include "master/api/auth.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/arena.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/hex.h"
#include "base/path.h"
#include "base/rand.h"
#include "fmt/doc.h"
#include "fmt/jsonw.h"
#include "master/api/api.h"
#include "master/api/limiter.h"
#include "master/api/origin.h"
#include "master/api/session.h"
#include "net/digest.h"

#define SAVE_USED_MS 60000
#define MIN_TOKEN 32
#define MAX_EXPIRES_MS (INT64_C(3660) * 24 * 60 * 60 * 1000) /* ten years */
#define ANSWER_MAX (1u << 20)

struct token {
	char id[9];
	char *name;
	uint8_t hash[SHA256_BYTES];
	enum api_auth scope;
	int64_t created_ms, expires_ms, used_ms, saved_ms;
	uint32_t holder;
	bool over; /* its streams were cut */
};

struct auth {
	uint8_t user_hash[SHA256_BYTES]; /* of the user's own token */
	VEC(struct token) tokens;
	struct limiter *failures;
	struct sessions *sessions;
	uint32_t last_token;
};

static const char *const scopes[] = {
	[API_READ] = "read", [API_SUBMIT] = "submit", [API_ADMIN] = "admin"};

const char *scope_name(enum api_auth scope)
{
	return scope >= API_READ && scope <= API_ADMIN ? scopes[scope] : "none";
}

bool scope_from(struct str name, enum api_auth *ret)
{
	for (int s = API_READ; s <= API_ADMIN; s++)
		if (str_is(name, scopes[s])) {
			*ret = (enum api_auth)s;
			return true;
		}
	return false;
}

/* Tokens. */

/* One for the user, made once, readable by the user only.  If a crash loses it, another is made. */
static int load_user_token(struct master *m, struct err *err)
{
	CLEANUP(freep) char *path = path_join(m->home, "token");
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
			sha256_of(token.p, token.n, m->auth->user_hash);
	}
	buf_release(&text);
	return rc;
}

/* Holders: tokens have even numbers, sessions odd ones. */
static uint32_t token_holder(struct auth *a)
{
	return ++a->last_token * 2;
}

static uint32_t session_holder(uint32_t serial)
{
	return serial * 2 + 1;
}

#define SCOPE_BITS 3

void *auth_user(enum api_auth scope, uint32_t holder)
{
	return (void *)((uintptr_t)holder << SCOPE_BITS | (uintptr_t)scope);
}

enum api_auth auth_user_scope(const void *user)
{
	return (enum api_auth)((uintptr_t)user & ((1u << SCOPE_BITS) - 1));
}

static bool is_holder(const void *ctx, const void *user)
{
	return (uintptr_t)user >> SCOPE_BITS == *(const uint32_t *)ctx;
}

/* A stream is not to outlive what it was opened with. */
static void cut_streams(struct master *m, uint32_t holder)
{
	http_server_cut(m->http, is_holder, &holder);
}

static bool take_token(void *ctx, const struct token_row *row)
{
	struct auth *a = ctx;
	struct token *t = vec_push(&a->tokens);

	snprintf(t->id, sizeof(t->id), "%s", row->id);
	t->name = xstrdup(row->name);
	memcpy(t->hash, row->hash, sizeof(t->hash));
	t->scope = (enum api_auth)(row->scope - 1 + API_READ);
	t->created_ms = row->created_ms;
	t->expires_ms = row->expires_ms;
	t->used_ms = t->saved_ms = row->used_ms;
	t->holder = token_holder(a);
	return true;
}

int auth_open(struct master *m, struct err *err)
{
	m->auth = xcalloc(1, sizeof(*m->auth));
	m->auth->failures = limiter_new();
	m->auth->sessions = sessions_new();
	if (store_tokens_each(m->store, take_token, m->auth, err) < 0)
		return -1;
	return load_user_token(m, err);
}

static void save_used(struct master *m, int64_t older_than_ms)
{
	struct auth *a = m->auth;
	bool begun = false;

	for (size_t i = 0; i < a->tokens.n; i++) {
		struct token *t = &a->tokens.v[i];
		if (t->used_ms <= t->saved_ms + older_than_ms)
			continue;
		if (!begun)
			round_end(m); /* what waits for its own commit goes first */
		begun = true;
		store_begin(m->store);
		if (store_token_used(m->store, t->id, t->used_ms, NULL) < 0)
			return; /* the store is poisoned: the next round says so and leaves */
		t->saved_ms = t->used_ms;
	}
	if (begun)
		store_commit(m->store, NULL);
}

void auth_tick(struct master *m)
{
	struct auth *a = m->auth;
	int64_t now = clock_wall_ms();
	uint32_t serial;

	for (size_t i = 0; i < a->tokens.n; i++) {
		struct token *t = &a->tokens.v[i];
		if (t->over || !t->expires_ms || t->expires_ms > now)
			continue;
		t->over = true;
		cut_streams(m, t->holder);
	}
	while ((serial = session_expire(a->sessions, clock_boot_ms())))
		cut_streams(m, session_holder(serial));
	save_used(m, SAVE_USED_MS);
}

void auth_close(struct master *m)
{
	struct auth *a = m->auth;

	if (!a)
		return;
	if (!m->exit_code)
		save_used(m, 0);
	for (size_t i = 0; i < a->tokens.n; i++)
		free(a->tokens.v[i].name);
	vec_release(&a->tokens);
	limiter_free(a->failures);
	sessions_free(a->sessions);
	free(a);
	m->auth = NULL;
}

static enum api_auth token_scope(struct auth *a, struct str text, uint32_t *ret_holder)
{
	uint8_t hash[SHA256_BYTES];
	int64_t now = clock_wall_ms();
	struct token *found = NULL;

	sha256_of(text.p, text.n, hash);
	enum api_auth scope = digest_equal(hash, a->user_hash, sizeof(hash)) ? API_ADMIN : 0;
	for (size_t i = 0; i < a->tokens.n; i++)
		if (digest_equal(hash, a->tokens.v[i].hash, sizeof(hash)))
			found = &a->tokens.v[i];
	if (!found || (found->expires_ms && found->expires_ms <= now))
		return scope;
	found->used_ms = now;
	*ret_holder = found->holder;
	return found->scope;
}

/* The rules. */

static enum api_auth refuse(int status, int *ret_status, struct err *err, enum err_kind kind,
			    const char *why)
{
	*ret_status = status;
	err_set(err, kind, "%s", why);
	return 0;
}

static enum api_auth not_known(struct api_call *c, bool tried, int *ret_status, struct err *err)
{
	struct str address = address_without_port(str_from(c->req->peer));

	if (tried && !limiter_failed(c->m->auth->failures, address, clock_boot_ms())) {
		http_add_header(c->x, "Retry-After", "1");
		return refuse(429, ret_status, err, ERR_THROTTLED,
			      "too many wrong tokens: wait a second");
	}
	http_add_header(c->x, "WWW-Authenticate", "Bearer");
	return refuse(
		401, ret_status, err, ERR_DENIED,
		tried ? "the token or session is wrong, revoked or too old"
		      : "a token is needed: see $REGATTA_HOME/token, or 'regatta ui' for a browser");
}

static bool changes_state(struct str method)
{
	return !str_is(method, "GET") && !str_is(method, "HEAD");
}

/* A page elsewhere can make a browser send our cookie (the SameSite rule does not know ports), but
 * neither this header nor a navigation that we would obey. */
static bool cookie_is_meant(const struct api_call *c)
{
	struct str site = http_header(c->x, "sec-fetch-site"),
		   mode = http_header(c->x, "sec-fetch-mode");

	if (changes_state(c->req->method) && !str_is(http_header(c->x, "regatta-request"), "1"))
		return false;
	return !site.p || str_is(site, "same-origin") || str_is(site, "none") ||
	       str_is(mode, "navigate");
}

/* Two masters on one machine share a browser's cookies: each has a name of its own. */
static void cookie_name(const struct api_call *c, char out[static 32])
{
	char own[64];

	http_own_address(c->x, own);
	const char *colon = strrchr(own, ':');

	snprintf(out, 32, SESSION_COOKIE "%.5s", colon ? colon + 1 : "");
}

static struct str session_cookie(const struct api_call *c)
{
	char name[32];

	cookie_name(c, name);
	return cookie_get(http_header(c->x, "cookie"), name);
}

static enum api_auth tcp_caller(struct api_call *c, int *ret_status, struct err *err)
{
	struct str bearer = http_header(c->x, "authorization"), prefix = STR("Bearer ");
	struct str cookie = session_cookie(c);
	enum api_auth scope = 0;

	if (bearer.p) {
		if (str_starts(bearer, prefix))
			scope = token_scope(c->m->auth,
					    (struct str){bearer.p + prefix.n, bearer.n - prefix.n},
					    &c->holder);
		return scope ? scope : not_known(c, true, ret_status, err);
	}
	if (!cookie.n)
		return not_known(c, false, ret_status, err);
	uint32_t serial = 0;
	scope = session_scope(c->m->auth->sessions, cookie, clock_boot_ms(), &serial);
	if (!scope)
		return not_known(c, true, ret_status, err);
	c->holder = session_holder(serial);
	if (!cookie_is_meant(c))
		return refuse(
			403, ret_status, err, ERR_DENIED,
			"a browser's request needs the header 'Regatta-Request: 1' and our own page");
	return scope;
}

enum api_auth auth_check(struct api_call *c, enum api_auth need, int *ret_status, struct err *err)
{
	struct str host = http_header(c->x, "host"), origin = http_header(c->x, "origin");
	char own[64];

	if (c->req->local) {
		if (c->req->peer_uid == (int64_t)geteuid() || c->req->peer_uid == 0)
			return API_ADMIN;
		return refuse(403, ret_status, err, ERR_DENIED,
			      "this master belongs to another user");
	}
	http_own_address(c->x, own);
	if (!host_is_own(host, str_from(own), c->req->tls))
		return refuse(403, ret_status, err, ERR_DENIED, "unknown Host");
	if (origin.p && !origin_is_own(origin, host, c->req->tls))
		return refuse(403, ret_status, err, ERR_DENIED,
			      "requests from another web page are not accepted");
	if (need == API_OPEN)
		return API_OPEN;
	enum api_auth scope = tcp_caller(c, ret_status, err);
	if (scope && scope < need) {
		*ret_status = 403;
		err_set(err, ERR_DENIED, "the scope '%s' is needed, this token or session has '%s'",
			scope_name(need), scope_name(scope));
		return 0;
	}
	return scope;
}

/* Handlers. */

static void reply(struct api_call *c, int status, struct jsonw *w)
{
	jsonw_close(w);
	buf_addc(w->out, '\n');
	api_reply_json(c, status, w->out);
	buf_release(w->out);
}

static void open_answer(struct jsonw *w, struct buf *text)
{
	buf_init(text, ANSWER_MAX);
	jsonw_init(w, text);
	jsonw_open(w, '{');
}

int api_me(struct api_call *c, struct err *err)
{
	struct buf text;
	struct jsonw w;

	(void)err;
	open_answer(&w, &text);
	jsonw_kz(&w, "scope", scope_name(c->scope));
	jsonw_kz(&w, "version", REGATTA_VERSION);
	reply(c, 200, &w);
	return 0;
}

static int read_body(struct api_call *c, struct doc **ret, struct err *err)
{
	*ret = NULL;
	if (c->req->body.n && json_parse(c->req->body, c->arena, ret, err) < 0)
		return err_wrap(err, "request body");
	if (*ret && (*ret)->type != DOC_TABLE)
		return err_set(err, ERR_INVALID, "request body: a JSON object is expected");
	return 0;
}

static int read_scope(const struct api_call *c, const struct doc *body, struct str fallback,
		      enum api_auth *ret, struct err *err)
{
	struct str name = doc_str(body, "scope", fallback);

	if (!scope_from(name, ret))
		return err_set(err, ERR_INVALID, "'scope' must be read, submit or admin");
	if (*ret > c->scope)
		return err_set(err, ERR_DENIED, "nobody can give more than they have");
	return 0;
}

int api_login_code(struct api_call *c, struct err *err)
{
	struct buf text;
	struct jsonw w;
	struct doc *body;
	enum api_auth scope;
	char code[65], url[256];

	if (read_body(c, &body, err) < 0 || read_scope(c, body, STR("admin"), &scope, err) < 0)
		return -1;
	if (!c->m->http_url[0])
		return err_set(
			err, ERR_UNAVAILABLE,
			"this master has no HTTP port: see master.log, or start it with --listen");
	session_code(c->m->auth->sessions, scope, clock_boot_ms(), code);
	snprintf(url, sizeof(url), "%s/login?code=%s", c->m->http_url, code);
	open_answer(&w, &text);
	jsonw_kz(&w, "url", url);
	jsonw_kz(&w, "scope", scope_name(scope));
	jsonw_kint(&w, "valid_ms", SESSION_CODE_MS);
	reply(c, 201, &w);
	explicit_bzero(code, sizeof(code));
	explicit_bzero(url, sizeof(url));
	return 0;
}

static void set_cookie(struct api_call *c, const char *value, int64_t age_s)
{
	char text[256], name[32];

	cookie_name(c, name);
	snprintf(text, sizeof(text), "%s=%s; HttpOnly; SameSite=Strict; Path=/; Max-Age=%lld%s",
		 name, value, (long long)age_s, c->req->tls ? "; Secure" : "");
	http_add_header(c->x, "Set-Cookie", text);
}

int api_login(struct api_call *c, struct err *err)
{
	struct str code = query_get(&c->req->query, "code", STR(""));
	struct str address = address_without_port(str_from(c->req->peer));
	uint32_t forgotten;
	char secret[65];

	if (!session_begin(c->m->auth->sessions, code, clock_boot_ms(), secret, &forgotten)) {
		if (!c->req->local &&
		    !limiter_failed(c->m->auth->failures, address, clock_boot_ms()))
			return err_set(err, ERR_THROTTLED, "too many wrong codes: wait a second");
		http_reply(c->x, 403, "text/plain; charset=utf-8",
			   STR("This link was used already, or is older than two minutes.\n"
			       "'regatta ui' prints a new one.\n"));
		return 0;
	}
	if (forgotten)
		cut_streams(c->m, session_holder(forgotten));
	set_cookie(c, secret, SESSION_MS / 1000);
	explicit_bzero(secret, sizeof(secret));
	http_add_header(c->x, "Location", "/");
	http_reply(c->x, 303, "text/plain; charset=utf-8", STR("welcome\n"));
	return 0;
}

int api_logout(struct api_call *c, struct err *err)
{
	(void)err;
	struct str cookie = session_cookie(c);
	uint32_t serial = session_end(c->m->auth->sessions, cookie);
	if (serial)
		cut_streams(c->m, session_holder(serial));
	set_cookie(c, "", 0);
	http_reply(c->x, 200, "application/json", STR("{}\n"));
	return 0;
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
	const struct auth *a = c->m->auth;
	struct buf text;
	struct jsonw w;

	(void)err;
	open_answer(&w, &text);
	jsonw_key(&w, "tokens");
	jsonw_open(&w, '[');
	for (size_t i = 0; i < a->tokens.n; i++) {
		jsonw_open(&w, '{');
		token_to_json(&w, &a->tokens.v[i]);
		jsonw_close(&w);
	}
	jsonw_close(&w);
	reply(c, 200, &w);
	return 0;
}

/* On disk before anybody hears of it. */
static int store_token(struct master *m, const struct token *t, struct err *err)
{
	struct token_row row = {.id = t->id,
				.name = t->name,
				.scope = (int)t->scope - API_READ + 1,
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

int api_token_new(struct api_call *c, struct err *err)
{
	struct auth *a = c->m->auth;
	struct token t = {.created_ms = clock_wall_ms()};
	uint8_t id[4];
	struct doc *body;
	struct buf text;
	struct jsonw w;
	char token[65];

	if (read_body(c, &body, err) < 0 || read_scope(c, body, STR(""), &t.scope, err) < 0)
		return -1;
	struct str name = doc_str(body, "name", STR(""));
	int64_t valid_ms = doc_int(body, "valid_ms", 0);
	if (name.n > AUTH_MAX_NAME || memchr(name.p, 0, name.n))
		return err_set(err, ERR_INVALID, "'name' has at most %d bytes", AUTH_MAX_NAME);
	if (valid_ms < 0 || valid_ms > MAX_EXPIRES_MS)
		return err_set(err, ERR_INVALID,
			       "'valid_ms' must be from 0 (for ever) to ten years");
	if (a->tokens.n >= AUTH_MAX_TOKENS)
		return err_set(err, ERR_QUOTA, "there are %d tokens: revoke some first",
			       AUTH_MAX_TOKENS);
	rand_bytes(id, sizeof(id));
	hex_encode(id, sizeof(id), t.id);
	token_new(token);
	sha256_of(token, strlen(token), t.hash);
	t.expires_ms = valid_ms ? t.created_ms + valid_ms : 0;
	t.name = xasprintf("%.*s", STR_ARG(name));
	if (store_token(c->m, &t, err) < 0) {
		free(t.name);
		return -1;
	}
	t.holder = token_holder(a);
	*vec_push(&a->tokens) = t;
	open_answer(&w, &text);
	token_to_json(&w, &t);
	jsonw_kz(&w, "token", token);
	reply(c, 201, &w);
	explicit_bzero(token, sizeof(token));
	return 0;
}

int api_token_revoke(struct api_call *c, struct err *err)
{
	struct auth *a = c->m->auth;
	struct buf text;
	struct jsonw w;
	size_t i = 0;

	while (i < a->tokens.n && !str_is(c->params[0], a->tokens.v[i].id))
		i++;
	if (i == a->tokens.n)
		return err_set(err, ERR_NOT_FOUND, "no token '%.*s'", STR_ARG(c->params[0]));
	struct token t = a->tokens.v[i];
	round_end(c->m);
	store_begin(c->m->store);
	if (store_token_remove(c->m->store, t.id, err) < 0 || store_commit(c->m->store, err) < 0) {
		master_fatal(c->m, err);
		return -1;
	}
	memmove(&a->tokens.v[i], &a->tokens.v[i + 1], (--a->tokens.n - i) * sizeof(t));
	cut_streams(c->m, t.holder);
	open_answer(&w, &text);
	jsonw_kbool(&w, "revoked", true);
	jsonw_kz(&w, "id", t.id);
	reply(c, 200, &w);
	free(t.name);
	return 0;
}
