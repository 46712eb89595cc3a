/* Who may do what: tokens, sessions, hosts and users, asked over the master's own port. */
#include "rig.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include "base/cleanup.h"
#include "base/path.h"
#include "master/api/auth.h"
#include "master/api/sse.h"
#include "master/api/tokens.h"

struct reply {
	int status;
	char text[8192];
};

static int dial(const struct rig *r)
{
	const char *port = strrchr(r->m.http_url, ':');
	struct sockaddr_in to = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	int64_t number = 0;
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	assert_true(port && str_to_i64(str_from(port + 1), &number));
	to.sin_port = htons((uint16_t)number);
	assert_int_equal(connect(fd, (struct sockaddr *)&to, sizeof(to)), 0);
	return fd;
}

static struct reply ask_at(struct rig *r, const char *host, const char *what, const char *headers,
			   const char *body)
{
	CLEANUP(close_fdp) int fd = dial(r);
	CLEANUP(freep)
	char *request = xasprintf("%s HTTP/1.1\r\nHost: %s\r\nConnection: close\r\n%s"
				  "Content-Length: %zu\r\n\r\n%s",
				  what, host, headers, strlen(body), body);
	struct reply a = {0};
	size_t n = 0;
	ssize_t got;

	assert_int_equal(send(fd, request, strlen(request), MSG_NOSIGNAL), strlen(request));
	for (int64_t until = rig_deadline(); !rig_late(until);) {
		rig_turn(r);
		got = recv(fd, a.text + n, sizeof(a.text) - 1 - n, MSG_DONTWAIT);
		if (got == 0)
			break;
		n += got > 0 ? (size_t)got : 0;
	}
	int64_t status = 0;

	assert_true(n > 12 && str_to_i64((struct str){a.text + 9, 3}, &status));
	a.status = (int)status;
	return a;
}

static struct reply ask(struct rig *r, const char *what, const char *headers, const char *body)
{
	return ask_at(r, strstr(r->m.http_url, "://") + 3, what, headers, body);
}

static int status_of(struct rig *r, const char *what, const char *headers)
{
	return ask(r, what, headers, "").status;
}

static char *bearer(const char *token)
{
	return xasprintf("Authorization: Bearer %.64s\r\n", token);
}

/* What stands behind a key of the answer, up to the next quote. */
static char *value_of(const struct reply *a, const char *key)
{
	CLEANUP(freep) char *want = xasprintf("\"%s\":\"", key);
	const char *at = strstr(a->text, want);

	assert_non_null(at);
	at += strlen(want);
	return xasprintf("%.*s", (int)strcspn(at, "\""), at);
}

/* The headers of the user's own token. */
static char *admin(struct rig *r)
{
	CLEANUP(freep) char *path = path_join(r->home, "token");
	struct buf text;

	buf_init(&text, 4096);
	assert_int_equal(file_read(path, &text, NULL), 0);
	char *headers = bearer(text.p);

	buf_release(&text);
	return headers;
}

/* A new token's headers; its id if wanted. */
static char *token_of(struct rig *r, const char *body, char **ret_id)
{
	CLEANUP(freep) char *headers = admin(r);
	struct reply a = ask(r, "POST /api/v1/tokens", headers, body);

	assert_int_equal(a.status, 201);
	CLEANUP(freep) char *token = value_of(&a, "token");

	if (ret_id)
		*ret_id = value_of(&a, "id");
	return bearer(token);
}

static void a_token_may_do_what_its_scope_says(void **state)
{
	struct rig *r = *state;
	CLEANUP(freep) char *reads = token_of(r, "{\"scope\":\"read\"}", NULL);
	CLEANUP(freep) char *submits = token_of(r, "{\"scope\":\"submit\"}", NULL);
	CLEANUP(freep) char *user = admin(r);

	struct reply none = ask(r, "GET /api/v1/me", "", "");

	assert_int_equal(none.status, 401);
	assert_non_null(strstr(
		none.text, "{\"error\":{\"kind\":\"denied\",\"message\":\"a token is needed: see"));
	assert_int_equal(status_of(r, "GET /api/v1/me", "Authorization: Bearer 0123\r\n"), 401);
	assert_int_equal(status_of(r, "GET /api/v1/me", reads), 200);
	/* Decided by its headers: no byte of a body is taken. */
	struct reply a = ask(r, "POST /api/v1/runs", reads, "");

	assert_int_equal(a.status, 403);
	assert_non_null(strstr(a.text, "the scope 'submit' is needed"));
	assert_int_equal(status_of(r, "POST /api/v1/runs", submits), 400);
	assert_int_equal(status_of(r, "GET /api/v1/tokens", submits), 403);
	assert_int_equal(status_of(r, "GET /api/v1/tokens", user), 200);
}

static void a_token_that_is_too_old_is_none(void **state)
{
	struct rig *r = *state;
	CLEANUP(freep) char *old = token_of(r, "{\"scope\":\"read\",\"valid_ms\":1}", NULL);
	CLEANUP(freep) char *good = token_of(r, "{\"scope\":\"read\",\"valid_ms\":600000}", NULL);

	rig_until(r, status_of(r, "GET /api/v1/me", old) == 401);
	assert_int_equal(status_of(r, "GET /api/v1/me", good), 200);
}

/* The moment its maker has it, whatever becomes of the master. */
static void a_token_is_stored_before_it_is_shown(void **state)
{
	struct rig *r = *state;
	CLEANUP(freep) char *token = token_of(r, "{\"scope\":\"read\"}", NULL);

	rig_crash(r);
	assert_true(rig_start(r));
	assert_int_equal(status_of(r, "GET /api/v1/me", token), 200);
}

static void a_revoked_token_is_none_for_every_master(void **state)
{
	struct rig *r = *state;
	CLEANUP(freep) char *id = NULL, *user = admin(r);
	CLEANUP(freep) char *token = token_of(r, "{\"scope\":\"read\"}", &id);
	CLEANUP(freep) char *revoke = xasprintf("DELETE /api/v1/tokens/%s", id);

	assert_int_equal(status_of(r, "GET /api/v1/me", token), 200);
	assert_int_equal(status_of(r, revoke, user), 200);
	assert_int_equal(status_of(r, "GET /api/v1/me", token), 401);
	rig_crash(r);
	assert_true(rig_start(r));
	assert_int_equal(status_of(r, "GET /api/v1/me", token), 401);
}

/* True when the server has closed the connection; what it sent before is skipped. */
static bool has_ended(int fd)
{
	char text[4096];
	ssize_t n;

	do
		n = recv(fd, text, sizeof(text), MSG_DONTWAIT);
	while (n > 0);
	return n == 0;
}

static void a_stream_ends_with_its_token(void **state)
{
	struct rig *r = *state;
	CLEANUP(freep) char *id = NULL, *user = admin(r);
	CLEANUP(freep) char *token = token_of(r, "{\"scope\":\"read\"}", &id);
	CLEANUP(freep) char *revoke = xasprintf("DELETE /api/v1/tokens/%s", id);
	CLEANUP(freep)
	char *request = xasprintf("GET /api/v1/events HTTP/1.1\r\nHost: %s\r\n%s\r\n",
				  strstr(r->m.http_url, "://") + 3, token);
	CLEANUP(close_fdp) int fd = dial(r);

	assert_int_equal(send(fd, request, strlen(request), MSG_NOSIGNAL), strlen(request));
	rig_until(r, sse_viewers(r->m.sse) == 1);
	rig_idle(r);
	assert_false(has_ended(fd));
	assert_int_equal(status_of(r, revoke, user), 200);
	rig_until(r, has_ended(fd));
	assert_int_equal(sse_viewers(r->m.sse), 0);
}

/* Sign in by a link; returns the headers of the session. */
static char *sign_in(struct rig *r)
{
	CLEANUP(freep) char *user = admin(r);
	struct reply a = ask(r, "POST /api/v1/login", user, "{}");
	CLEANUP(freep) char *url = value_of(&a, "url");
	CLEANUP(freep) char *login = xasprintf("GET %s", strstr(url, "/login"));

	a = ask(r, login, "", "");
	assert_int_equal(a.status, 303);
	assert_int_equal(status_of(r, login, ""), 403); /* a link is good once */
	const char *cookie = strstr(a.text, "regatta_session_");

	assert_non_null(cookie);
	return xasprintf("Cookie: %.*s\r\n", (int)strcspn(cookie, ";"), cookie);
}

static void a_session_is_for_our_own_page(void **state)
{
	struct rig *r = *state;
	CLEANUP(freep) char *session = sign_in(r);
	CLEANUP(freep) char *meant = xasprintf("%sRegatta-Request: 1\r\n", session);
	CLEANUP(freep) char *other = xasprintf("%sSec-Fetch-Site: same-site\r\n", meant);
	CLEANUP(freep) char *foreign = xasprintf("%sOrigin: http://evil.example\r\n", meant);

	assert_int_equal(status_of(r, "GET /api/v1/me", session), 200);
	assert_int_equal(status_of(r, "GET /api/v1/me", other), 403);
	assert_int_equal(status_of(r, "GET /api/v1/me", foreign), 403);
	assert_int_equal(status_of(r, "POST /api/v1/logout", session), 403);
	assert_int_equal(status_of(r, "GET /api/v1/me", session), 200);
	assert_int_equal(status_of(r, "POST /api/v1/logout", meant), 200);
	assert_int_equal(status_of(r, "GET /api/v1/me", session), 401);
}

/* A name that somebody else's server points at this machine. */
static void a_host_that_is_not_ours_is_refused(void **state)
{
	struct rig *r = *state;
	CLEANUP(freep) char *session = sign_in(r);

	assert_int_equal(ask_at(r, "evil.example", "GET /api/v1/me", session, "").status, 403);
	assert_int_equal(ask_at(r, "evil.example", "GET /", "", "").status, 403);
}

/* The API server of a cluster keeps Authorization for itself. */
static void behind_a_gateway_the_token_has_a_header_of_its_own(void **state)
{
	struct rig *r = *state;
	CLEANUP(freep) char *user = admin(r), *session = sign_in(r);
	const char *token = strstr(user, "Bearer ") + strlen("Bearer ");
	CLEANUP(freep)
	char *both =
		xasprintf("Authorization: Bearer of-the-cluster\r\nX-Regatta-Token: %s", token);
	CLEANUP(freep) char *wrong = xasprintf("%sX-Regatta-Token: 0123\r\n", user);
	CLEANUP(freep) char *cookie = xasprintf("%sX-Regatta-Token: 0123\r\n", session);

	assert_int_equal(status_of(r, "GET /api/v1/me", both), 200);
	assert_int_equal(status_of(r, "GET /api/v1/me", wrong), 401);
	assert_int_equal(status_of(r, "GET /api/v1/me", cookie), 401);
}

static void the_socket_is_for_its_user_and_root(void **state)
{
	struct rig *r = *state;

	assert_int_equal(rig_http(r, "GET", "/api/v1/me", ""), 200);
	r->peer_uid = geteuid() + 1;
	assert_int_equal(rig_http(r, "GET", "/api/v1/me", ""), 403);
}

static void is_private(const struct rig *r, const char *name)
{
	CLEANUP(freep) char *path = path_join(r->home, name);
	struct stat st;

	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(st.st_mode & 07777, 0600);
}

static void what_lets_somebody_in_is_the_users_alone(void **state)
{
	struct rig *r = *state;
	CLEANUP(freep) char *path = path_join(r->home, "token");
	char join[TOKENS_TEXT];
	struct err err = {0};

	rig_crash(r);
	assert_int_equal(unlink(path), 0);
	mode_t before = umask(0); /* what a file allows is not left to the user's umask */

	assert_true(rig_start(r));
	free(sign_in(r));
	assert_int_equal(tokens_join(r->m.auth->tokens, join, &err), 0);
	umask(before);
	is_private(r, "token");
	is_private(r, "sessions");
	is_private(r, "join");
}

int main(void)
{
#define CASE(fn) cmocka_unit_test_setup_teardown(fn, rig_make, rig_drop)
	static const struct CMUnitTest tests[] = {
		CASE(a_token_may_do_what_its_scope_says),
		CASE(a_token_that_is_too_old_is_none),
		CASE(a_token_is_stored_before_it_is_shown),
		CASE(a_revoked_token_is_none_for_every_master),
		CASE(a_stream_ends_with_its_token),
		CASE(a_session_is_for_our_own_page),
		CASE(a_host_that_is_not_ours_is_refused),
		CASE(behind_a_gateway_the_token_has_a_header_of_its_own),
		CASE(the_socket_is_for_its_user_and_root),
		CASE(what_lets_somebody_in_is_the_users_alone),
	};

	return cmocka_run_group_tests_name("master: auth", tests, NULL, NULL);
}
