/*
 * One call of any protocol: endpoint, pace, credentials, signature, connection, answer; and what
 * follows from it: another try, or an error with its kind.
 */
#include "driver/aws/api/internal.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/backoff.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/deadline.h"
#include "base/err.h"
#include "driver/aws/api/answer.h"

#define FIRST_PAUSE_MS 200
#define MAX_PAUSE_MS 20000
#define TRY_MS 30000		     /* for one try without a body */
#define BYTES_PER_MS 64		     /* a try with a body gets more time: at least 64 KB/s */
#define SKEW_MS (INT64_C(4) * 60000) /* AWS accepts clocks that differ by less */

/* What is the same in all tries of a call. */
struct trying {
	struct aws *s;
	const struct aws_call *c;
	const struct deadline *d;
	struct aws_endpoint at;
	char host[HTTP_HOST_MAX]; /* with the label */
	char path[4096];	  /* with the endpoint's base, and the query */
	struct backoff backoff;
	bool open;		  /* a try was sent whose outcome nobody knows */
	bool set_clock, new_keys; /* the clock was set, the keys were read again: once per call */
	/* of the last try */
	struct arena *arena;
	struct sigv4_keys keys;
	int64_t sent_wall_ms;
};

void aws_call_header(struct aws_call *c, const char *name, const char *value)
{
	if (value && c->nheaders < AWS_MAX_HEADERS)
		c->headers[c->nheaders++] = (struct sigv4_header){name, value};
}

void aws_answer_release(struct aws_answer *a)
{
	a->arena = arena_free(a->arena);
	*a = (struct aws_answer){0};
}

/* ---- where to ---- */

static int find_place(struct trying *t, struct err *err)
{
	const struct aws_service *service = aws_service_named(t->c->service);
	const char *query = t->c->query;

	if (!service)
		return err_set(err, ERR_INVALID, "no AWS service '%s'", t->c->service);
	if (aws_endpoint_find(&t->s->places, service, t->c->region, &t->at, err) < 0)
		return -1;
	int host = snprintf(t->host, sizeof(t->host), "%s%s", t->c->label ? t->c->label : "",
			    t->at.host);
	int path = snprintf(t->path, sizeof(t->path), "%s%s%s%s", t->at.base, t->c->path,
			    *query ? "?" : "", query);

	if (host >= (int)sizeof(t->host) || path >= (int)sizeof(t->path))
		return err_set(err, ERR_INVALID, "%s: the address is too long", t->c->action);
	return 0;
}

/* ---- the signature ---- */

struct signing {
	struct sigv4_header headers[AWS_MAX_HEADERS + 6];
	size_t n;
	char date[SIGV4_DATE], hash[SIGV4_HEX];
};

static const char *signing_name(const struct aws_call *c)
{
	/* Where the host has another name than the service. */
	static const struct {
		const char *service, *signs;
	} others[] = {{"portal.sso", "awsssoportal"}, {"api.ecr", "ecr"}};

	for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++)
		if (strcmp(c->service, others[i].service) == 0)
			return others[i].signs;
	return c->service;
}

static struct sigv4_request request_to_sign(const struct trying *t, const struct signing *g)
{
	struct str query = str_from(t->path), path = str_cut(&query, '?');

	return (struct sigv4_request){
		.method = t->c->method,
		.path = path,
		.query = query.p ? query : STR(""),
		.headers = g->headers,
		.nheaders = g->n,
		.payload = g->hash,
		.path_as_is = strcmp(t->c->service, "s3") == 0,
	};
}

static void sign_header(struct signing *g, const char *name, const char *value)
{
	g->headers[g->n++] = (struct sigv4_header){name, value};
}

static const char *authority(const struct trying *t)
{
	CLEANUP(buf_release) struct buf text = {0};

	buf_init(&text, 2 * HTTP_HOST_MAX);
	http_url_authority(&text, t->host, t->at.port, t->at.tls, false);
	return arena_strndup(t->arena, text.p, text.n);
}

/* Headers of the call and of the signature, without those that the client says. */
static size_t make_fields(struct trying *t, struct http_field *fields)
{
	const struct aws_call *c = t->c;
	struct signing g = {0};
	size_t n = 0;

	/* Headers that the HTTP client writes itself: they are signed, not added. */
	size_t said = 1;

	sign_header(&g, "Host", authority(t));
	if (c->type) {
		sign_header(&g, "Content-Type", c->type);
		said++;
	}
	for (size_t i = 0; i < c->nheaders; i++)
		sign_header(&g, c->headers[i].name, c->headers[i].value);
	if (!c->anonymous) {
		struct sigv4_scope scope = {t->at.region, signing_name(c), aws_clock_ms(t->s)};

		if (c->payload)
			snprintf(g.hash, sizeof(g.hash), "%s", c->payload);
		else
			sigv4_hash(c->body, g.hash);
		sigv4_date(scope.time_ms, g.date);
		sign_header(&g, "X-Amz-Date", arena_strdup(t->arena, g.date));
		if (strcmp(c->service, "s3") == 0)
			sign_header(&g, "X-Amz-Content-Sha256", arena_strdup(t->arena, g.hash));
		if (t->keys.session_token)
			sign_header(&g, "X-Amz-Security-Token", t->keys.session_token);
		struct sigv4_request r = request_to_sign(t, &g);

		fields[n++] = (struct http_field){
			"Authorization", sigv4_authorization(&t->keys, &scope, &r, t->arena)};
	}
	for (size_t i = said; i < g.n; i++)
		fields[n++] = (struct http_field){g.headers[i].name, g.headers[i].value};
	return n;
}

/* ---- one try ---- */

/*
 * "Not found", "no capacity" and the like are said by AWS alone.  A file of credentials that is
 * missing, or an answer that is too long, says nothing about a resource.
 */
static enum err_kind own_kind(enum err_kind kind, enum err_kind otherwise)
{
	switch (kind) {
	case ERR_NOT_FOUND:
	case ERR_CONFLICT:
	case ERR_CAPACITY:
	case ERR_QUOTA:
	case ERR_PROTOCOL:
	case ERR_IO:
		return otherwise;
	case ERR_NONE:
	case ERR_INVALID:
	case ERR_DENIED:
	case ERR_THROTTLED:
	case ERR_TIMEOUT:
	case ERR_UNAVAILABLE:
	case ERR_CANCELLED:
	case ERR_PREEMPTED:
		break;
	}
	return kind;
}

static int get_keys(struct trying *t, struct err *err)
{
	if (t->c->anonymous)
		return 0;
	if (t->c->keys) {
		t->keys = *t->c->keys;
		return 0;
	}
	return aws_keys(t->s, t->arena, t->d, &t->keys, err);
}

static int64_t patience_ms(const struct aws_call *c)
{
	return TRY_MS + (int64_t)((c->from_fd ? c->size : c->body.n) / BYTES_PER_MS);
}

static int send_once(struct trying *t, struct http_client *client, struct http_answer *got,
		     struct err *err)
{
	const struct aws_call *c = t->c;
	struct http_field fields[AWS_MAX_HEADERS + 8];
	struct http_outgoing r = {
		.method = c->method,
		.path = t->path,
		.timeout_ms = aws_timeout_ms(t->d, patience_ms(c)),
		.fields = fields,
		.nfields = make_fields(t, fields),
		.type = c->type,
		.body = c->body,
		.from_fd = c->from_fd,
		.fd = c->fd,
		.offset = c->offset,
		.size = c->size,
		.expect_continue = c->from_fd,
	};

	t->sent_wall_ms = clock_wall_ms();
	if (!c->file)
		return http_send(client, &r, got, err);
	c->file->get = r;
	c->file->get.timeout_ms = aws_timeout_ms(t->d, INT32_MAX);
	return http_download(client, c->file, got, err);
}

/* The fault of a try without an answer.  sent: the request may have reached the service. */
static struct aws_fault silence(const struct trying *t, bool sent, enum err_kind kind)
{
	return (struct aws_fault){
		.kind = kind,
		.sure = !sent,
		.again = kind == ERR_UNAVAILABLE ||
			 (kind == ERR_TIMEOUT && deadline_left_ms(t->d) > 0),
	};
}

/* The difference between AWS' clock and ours, by the answer's Date. */
static void note_clock(struct trying *t, const struct http_client *client, int64_t *ret_skew_ms)
{
	int64_t there = 0;

	*ret_skew_ms = 0;
	if (clock_parse(http_client_header(client, "Date"), &there))
		*ret_skew_ms = there - t->sent_wall_ms;
}

/* 0, or -1 with *ret_fault. */
static int try_once(struct trying *t, struct aws_answer *ret, struct aws_fault *ret_fault,
		    int64_t *ret_skew_ms, struct err *err)
{
	struct http_client *client = NULL;
	struct http_answer got;

	*ret_skew_ms = 0;
	if (get_keys(t, err) < 0) {
		err->kind = own_kind(err->kind, ERR_DENIED);
		*ret_fault = (struct aws_fault){.kind = err->kind, .sure = true};
		return -1;
	}
	if (aws_connect(t->s, t->host, t->at.port, t->at.tls, t->d, &client, err) < 0) {
		err->kind = own_kind(err->kind, ERR_UNAVAILABLE);
		*ret_fault = silence(t, false, err->kind);
		return -1;
	}
	http_answer_init(&got, XML_MAX_BYTES);
	int rc = send_once(t, client, &got, err);
	bool whole = rc == 0;

	if (rc < 0) {
		/* A download has kinds of its own (ERR_CONFLICT, say) for its caller. */
		if (!t->c->file)
			err->kind = own_kind(err->kind, ERR_UNAVAILABLE);
		*ret_fault = silence(t, true, err->kind);
	} else {
		note_clock(t, client, ret_skew_ms);
		rc = aws_answer_read(ret, t->c, &got, client, ret_fault, err);
	}
	aws_disconnect(t->s, client, t->host, t->at.port, t->at.tls, whole);
	http_answer_release(&got);
	return rc;
}

/* ---- pace and retries ---- */

/* Wait until the pace allows a call. */
static int keep_pace(struct trying *t, struct err *err)
{
	const struct aws_call *c = t->c;

	for (;;) {
		int64_t wait = governor_take(t->s->governor, c->service, c->action, c->resources,
					     clock_boot_ms());

		if (wait == 0)
			return 0;
		if (wait > deadline_left_ms(t->d))
			return err_set(
				err, ERR_THROTTLED,
				"%s:%s: calls are held back to AWS' pace, the next in %" PRId64
				" ms",
				c->service, c->action, wait);
		if (aws_nap(t->d, wait, err) < 0)
			return -1;
	}
}

/* True if the call should be sent again at once: our clock was corrected, or the expired keys were
 * dropped.  Each is done once per call. */
static bool mend(struct trying *t, const struct aws_fault *f, int64_t skew_ms)
{
	int64_t error = skew_ms - atomic_load(&t->s->skew_ms);

	if (f->by_clock && !t->set_clock && skew_ms && (error > SKEW_MS || error < -SKEW_MS)) {
		t->set_clock = true;
		atomic_store(&t->s->skew_ms, skew_ms);
		return true;
	}
	if (f->by_expiry && !t->new_keys && !t->c->keys && !t->c->anonymous) {
		t->new_keys = true;
		return credentials_expire(t->s->credentials, t->keys.access_key) > 0;
	}
	return false;
}

static bool may_try_again(struct trying *t, const struct aws_fault *f, int tries, int64_t skew_ms)
{
	if (t->c->once && t->open)
		return false;
	if (mend(t, f, skew_ms))
		return true;
	if (!f->again || tries >= AWS_MAX_TRIES)
		return false;
	int64_t pause = backoff_next(&t->backoff);

	return pause < deadline_left_ms(t->d) && aws_nap(t->d, pause, NULL) == 0;
}

static int run(struct trying *t, struct aws_answer *ret, struct err *err)
{
	for (int tries = 1;; tries++) {
		struct aws_fault f = {0};
		int64_t skew_ms;

		if (keep_pace(t, err) < 0) {
			ret->refused = !t->open;
			return -1;
		}
		aws_answer_release(ret);
		if (try_once(t, ret, &f, &skew_ms, err) == 0)
			return 0;
		t->open |= !f.sure;
		ret->refused = !t->open;
		if (f.kind == ERR_THROTTLED)
			governor_throttled(t->s->governor, t->c->service, t->c->action,
					   clock_boot_ms());
		if (!may_try_again(t, &f, tries, skew_ms))
			return -1;
	}
}

int aws_call_run(struct aws *s, const struct aws_call *c, const struct deadline *d,
		 struct aws_answer *ret, struct err *err)
{
	struct trying t = {.s = s, .c = c, .d = d, .arena = arena_new()};
	struct err own = {0};
	int rc;

	aws_answer_release(ret);
	backoff_init(&t.backoff, FIRST_PAUSE_MS, MAX_PAUSE_MS);
	rc = find_place(&t, &own);
	if (rc < 0)
		ret->refused = true;
	else
		rc = run(&t, ret, &own);
	arena_free(t.arena);
	if (rc < 0 && err)
		*err = own;
	return rc;
}

int aws_call_presign(struct aws *s, const struct aws_call *c, int64_t seconds,
		     const struct deadline *d, struct buf *out, struct err *err)
{
	CLEANUP(arena_freep) struct arena *a = arena_new();
	struct trying t = {.s = s, .c = c, .d = d, .arena = a};
	struct signing g = {.hash = SIGV4_UNSIGNED};

	if (find_place(&t, err) < 0 || get_keys(&t, err) < 0)
		return -1;
	sign_header(&g, "Host", authority(&t));
	for (size_t i = 0; i < c->nheaders; i++)
		sign_header(&g, c->headers[i].name, c->headers[i].value);
	struct sigv4_request r = request_to_sign(&t, &g);
	struct sigv4_scope scope = {t.at.region, signing_name(c), aws_clock_ms(s)};

	buf_printf(out, "%s://%s%.*s?%s", t.at.tls ? "https" : "http", g.headers[0].value,
		   STR_ARG(r.path), sigv4_presigned_query(&t.keys, &scope, &r, seconds, a));
	return 0;
}
