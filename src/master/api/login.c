#include "master/api/login.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/hex.h"
#include "base/log.h"
#include "base/path.h"
#include "fmt/doc.h"
#include "fmt/jsonw.h"
#include "master/api/api.h"
#include "master/api/origin.h"
#include "master/api/session.h"
#include "master/clock.h"

#define SESSIONS_FILE "sessions"
#define SESSIONS_MAX_BYTES (16 * 1024) /* more than SESSION_MAX lines */

struct logins {
	struct master *m;
	struct sessions *sessions;
};

/* Writes one line of the file `sessions` of the home: "<sha256> <scope> <end, Unix ms>".  If a
 * line cannot be read, or the file is lost, the user must log in again. */
static void put_session(void *ctx, const struct session *one)
{
	char hex[2 * SHA256_BYTES + 1];

	hex_encode(one->hash, sizeof(one->hash), hex);
	buf_printf(ctx, "%s %s %lld\n", hex, scope_name(one->scope), (long long)one->until_ms);
}

static void save(const struct logins *l)
{
	CLEANUP(freep) char *path = path_join(l->m->home, SESSIONS_FILE);
	CLEANUP(buf_release) struct buf text = {0};
	struct err err = {0};

	buf_init(&text, SESSIONS_MAX_BYTES);
	sessions_each(l->sessions, put_session, &text);
	if (file_write_atomic(path, buf_str(&text), 0600, false, &err) < 0)
		log_warn("sessions will end with this master: %s", err.msg);
}

static void load(struct logins *l)
{
	CLEANUP(freep) char *path = path_join(l->m->home, SESSIONS_FILE);
	CLEANUP(buf_release) struct buf text = {0};

	buf_init(&text, SESSIONS_MAX_BYTES);
	if (file_read(path, &text, NULL) < 0)
		return;
	struct str rest = buf_str(&text);
	while (rest.p && rest.n) {
		struct str line = str_cut(&rest, '\n');
		struct str hash = str_cut(&line, ' '), scope = str_cut(&line, ' ');
		struct session one;

		if (hash.n == 2 * sizeof(one.hash) && hex_decode(hash, one.hash) &&
		    scope_from(scope, &one.scope) && str_to_i64(line, &one.until_ms))
			session_restore(l->sessions, &one, clock_wall_ms());
	}
}

struct logins *logins_new(struct master *m)
{
	struct logins *l = xcalloc(1, sizeof(*l));

	l->m = m;
	l->sessions = sessions_new();
	load(l);
	return l;
}

struct logins *logins_free(struct logins *l)
{
	if (!l)
		return NULL;
	sessions_free(l->sessions);
	free(l);
	return NULL;
}

void logins_tick(struct logins *l)
{
	uint32_t serial;
	bool changed = false;

	while ((serial = session_expire(l->sessions, clock_wall_ms()))) {
		auth_cut_streams(l->m, auth_session_holder(serial));
		changed = true;
	}
	if (changed)
		save(l);
}

enum api_auth logins_scope(const struct logins *l, struct str cookie, uint32_t *ret_holder)
{
	uint32_t serial = 0;
	enum api_auth scope = session_scope(l->sessions, cookie, clock_wall_ms(), &serial);

	if (scope)
		*ret_holder = auth_session_holder(serial);
	return scope;
}

/* A browser sends cookies to every port of a host: the port in the cookie's name tells masters
 * apart. */
static void cookie_name(const struct api_call *c, char out[static 32])
{
	char own[64];

	http_own_address(c->x, own);
	const char *colon = strrchr(own, ':');

	snprintf(out, 32, SESSION_COOKIE "%.5s", colon ? colon + 1 : "");
}

struct str login_cookie(const struct api_call *c)
{
	char name[32];

	cookie_name(c, name);
	return cookie_get(http_header(c->x, "cookie"), name);
}

int api_login_code(struct api_call *c, struct err *err)
{
	struct buf text;
	struct jsonw w;
	struct doc *body;
	enum api_auth scope;
	char code[65], url[256];

	if (api_read_body(c, &body, err) < 0 ||
	    auth_read_scope(c, body, STR("admin"), &scope, err) < 0)
		return -1;
	if (!c->m->http_url[0])
		return err_set(
			err, ERR_UNAVAILABLE,
			"this master has no HTTP port: see master.log, or start it with --listen");
	session_code(c->m->auth->logins->sessions, scope, clock_wall_ms(), code);
	snprintf(url, sizeof(url), "%s/login?code=%s", c->m->http_url, code);
	api_answer_begin(&w, &text);
	jsonw_kz(&w, "url", url);
	jsonw_kz(&w, "scope", scope_name(scope));
	jsonw_kint(&w, "valid_ms", SESSION_CODE_MS);
	api_answer_end(c, 201, &w);
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
	uint32_t forgotten;
	char secret[65];

	if (!session_begin(c->m->auth->logins->sessions, code, clock_wall_ms(), secret,
			   &forgotten)) {
		if (!c->req->local && !auth_failed(c))
			return err_set(err, ERR_THROTTLED, "too many wrong codes: wait a second");
		http_reply(c->x, 403, "text/plain; charset=utf-8",
			   STR("This link was used already, or is older than two minutes.\n"
			       "'regatta ui' prints a new one.\n"));
		return 0;
	}
	if (forgotten)
		auth_cut_streams(c->m, auth_session_holder(forgotten));
	save(c->m->auth->logins);
	/* the page will send requests soon: the master must not stop as idle */
	c->m->last_busy_ms = master_now(c->m);
	set_cookie(c, secret, SESSION_MS / 1000);
	explicit_bzero(secret, sizeof(secret));
	http_add_header(c->x, "Location", "/");
	http_reply(c->x, 303, "text/plain; charset=utf-8", STR("welcome\n"));
	return 0;
}

int api_logout(struct api_call *c, struct err *err)
{
	(void)err;
	struct str cookie = login_cookie(c);
	uint32_t serial = session_end(c->m->auth->logins->sessions, cookie);
	if (serial) {
		save(c->m->auth->logins);
		auth_cut_streams(c->m, auth_session_holder(serial));
	}
	set_cookie(c, "", 0);
	http_reply(c->x, 200, "application/json", STR("{}\n"));
	return 0;
}
