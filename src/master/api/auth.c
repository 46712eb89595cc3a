#include "master/api/auth.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "fmt/doc.h"
#include "fmt/jsonw.h"
#include "master/api/api.h"
#include "master/api/limiter.h"
#include "master/api/login.h"
#include "master/api/origin.h"
#include "master/api/tokens.h"
#include "master/live_run.h"
#include "master/runs.h"
#include "store/store.h"

static const char *const scopes[] = {
	[API_JOIN] = "join", [API_READ] = "read", [API_SUBMIT] = "submit", [API_ADMIN] = "admin"};

const char *scope_name(enum api_auth scope)
{
	return scope >= API_JOIN && scope <= API_ADMIN ? scopes[scope] : "none";
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

uint32_t auth_token_holder(uint32_t number)
{
	return number * 2;
}

uint32_t auth_session_holder(uint32_t serial)
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

static uint32_t user_holder(const void *user)
{
	return (uint32_t)((uintptr_t)user >> SCOPE_BITS);
}

uint32_t auth_client(const struct http_exchange *x)
{
	return user_holder(http_user(x));
}

static bool is_holder(const void *ctx, const void *user)
{
	return user_holder(user) == *(const uint32_t *)ctx;
}

int auth_count_streams(const struct master *m, uint32_t holder)
{
	return http_server_count_streams(m->http, is_holder, &holder);
}

void auth_cut_streams(struct master *m, uint32_t holder)
{
	http_server_cut(m->http, is_holder, &holder);
}

struct auth *auth_new(struct master *m, struct err *err)
{
	struct auth *a = xcalloc(1, sizeof(*a));

	a->failures = limiter_new();
	a->logins = logins_new(m);
	a->tokens = tokens_new(m, err);
	return a->tokens ? a : auth_free(a);
}

struct auth *auth_free(struct auth *a)
{
	if (!a)
		return NULL;
	tokens_free(a->tokens);
	logins_free(a->logins);
	limiter_free(a->failures);
	free(a);
	return NULL;
}

void auth_tick(struct auth *a)
{
	tokens_tick(a->tokens);
	logins_tick(a->logins);
}

bool auth_failed(const struct api_call *c)
{
	struct str address = address_without_port(str_from(c->req->peer));

	return limiter_failed(c->m->auth->failures, address, clock_boot_ms());
}

static enum api_auth refuse(int status, int *ret_status, struct err *err, enum err_kind kind,
			    const char *why)
{
	*ret_status = status;
	err_set(err, kind, "%s", why);
	return 0;
}

const char *auth_token_advice(struct str peer)
{
	return address_is_loopback(address_without_port(peer))
		       ? "a token is needed: see $REGATTA_HOME/token, or 'regatta ui' for a browser"
		       : "a token is needed: 'regatta ui' opens the page from a machine that knows this "
			 "master; on others add a token of its owner ('regatta token new') by 'regatta "
			 "context add'";
}

static enum api_auth not_known(struct api_call *c, bool tried, int *ret_status, struct err *err)
{
	if (tried && !auth_failed(c)) {
		http_add_header(c->x, "Retry-After", "1");
		return refuse(429, ret_status, err, ERR_THROTTLED,
			      "too many wrong tokens: wait a second");
	}
	http_add_header(c->x, "WWW-Authenticate", "Bearer");
	return refuse(401, ret_status, err, ERR_DENIED,
		      tried ? "the token or session is wrong, revoked or too old"
			    : auth_token_advice(str_from(c->req->peer)));
}

static bool comes_from_page(const struct api_call *c)
{
	return cookie_is_meant(c->req->method, http_header(c->x, "regatta-request"),
			       http_header(c->x, "sec-fetch-site"),
			       http_header(c->x, "sec-fetch-mode"));
}

/* Does the caller show a token?  A gateway before this master keeps Authorization for itself. */
static bool shows_token(const struct api_call *c)
{
	return http_header(c->x, "authorization").p || http_header(c->x, "x-regatta-token").p;
}

/* The token of X-Regatta-Token, or that after "Bearer "; p == NULL if there is none. */
static struct str bearer_token(const struct api_call *c)
{
	struct str bearer = http_header(c->x, "authorization"), prefix = STR("Bearer ");
	struct str own = http_header(c->x, "x-regatta-token");

	if (own.p)
		return own;

	if (!bearer.p || !str_starts(bearer, prefix))
		return (struct str){0};
	return (struct str){bearer.p + prefix.n, bearer.n - prefix.n};
}

/* The same answer in every case: without a token of the run a caller must not learn whether the
 * run exists. */
static enum api_auth node_caller(struct api_call *c, int *ret_status, struct err *err)
{
	struct live_run *lr = map_get(c->m->runs, c->params[0]);
	int rank = lr && !lr->ended ? run_find_rank(lr, c->params[1]) : -1;
	struct str token = bearer_token(c);

	if (rank < 0 || !token.p ||
	    !node_token_ok(lr, c->params[1], lr->core->nodes[rank].incarnation, token))
		return not_known(c, token.p != NULL, ret_status, err);
	if (lr->unreadable)
		return refuse(503, ret_status, err, ERR_UNAVAILABLE,
			      "this master cannot read the run: try again later");
	c->holder = AUTH_NODE;
	return API_NODE;
}

static enum api_auth tcp_caller(struct api_call *c, int *ret_status, struct err *err)
{
	struct str token = bearer_token(c), cookie = login_cookie(c);
	enum api_auth scope = 0;

	if (shows_token(c)) {
		if (token.p)
			scope = tokens_scope(c->m->auth->tokens, token, &c->holder);
		return scope ? scope : not_known(c, true, ret_status, err);
	}
	if (!cookie.n)
		return not_known(c, false, ret_status, err);
	scope = logins_scope(c->m->auth->logins, cookie, &c->holder);
	if (!scope)
		return not_known(c, true, ret_status, err);
	if (!comes_from_page(c))
		return refuse(
			403, ret_status, err, ERR_DENIED,
			"a browser's request needs the header 'Regatta-Request: 1' and our own page");
	return scope;
}

enum api_auth auth_check(struct api_call *c, enum api_auth need, int *ret_status, struct err *err)
{
	struct str host = http_header(c->x, "host"), origin = http_header(c->x, "origin");
	char own[64];

	if (need == API_NODE)
		return node_caller(c, ret_status, err);
	if (c->req->local) {
		c->holder = AUTH_LOCAL;
		if (c->req->peer_uid == (int64_t)geteuid() || c->req->peer_uid == 0)
			return API_ADMIN;
		return refuse(403, ret_status, err, ERR_DENIED,
			      "this master belongs to another user");
	}
	http_own_address(c->x, own);
	/* Checks of Host and Origin protect against web pages that make use of cookies, which a
	 * browser sends by itself.  A caller from another machine that sends a token may use any
	 * name or address for this master. */
	bool by_token = c->req->tls && shows_token(c);
	if (!by_token && !host_is_own(host, str_from(own), c->req->tls) &&
	    !(c->req->tls && host_is_given(host, c->m->given_url)))
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

/* ---- shared by handlers about callers ---- */

int auth_read_scope(const struct api_call *c, const struct doc *body, struct str fallback,
		    enum api_auth *ret, struct err *err)
{
	struct str name = doc_str(body, "scope", fallback);

	if (!scope_from(name, ret))
		return err_set(err, ERR_INVALID, "'scope' must be read, submit or admin");
	if (*ret > c->scope)
		return err_set(err, ERR_DENIED,
			       "a token cannot have a wider scope than the caller");
	return 0;
}

int api_me(struct api_call *c, struct err *err)
{
	struct buf text;
	struct jsonw w;

	(void)err;
	api_answer_begin(&w, &text);
	jsonw_kz(&w, "scope", scope_name(c->scope));
	jsonw_kz(&w, "version", REGATTA_VERSION);
	jsonw_kz(&w, "install", store_install(c->m->store));
	api_answer_end(c, 200, &w);
	return 0;
}
