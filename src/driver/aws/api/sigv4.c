#include "driver/aws/api/sigv4.h"

#include <ctype.h>
#include <inttypes.h>
#include <string.h>

#include "base/alloc.h"
#include "base/arena.h"
#include "base/buf.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/hex.h"
#include "base/vec.h"
#include "fmt/url.h"
#include "net/digest.h"

#define MAX_TEXT ((size_t)4 * 1024 * 1024)
#define ALGORITHM "AWS4-HMAC-SHA256"

struct pair {
	const char *name, *value;
};
typedef VEC(struct pair) pairs;

static const char *keep(struct buf *b, struct arena *a)
{
	const char *text = arena_strndup(a, buf_str(b).p, b->n);

	buf_release(b);
	return text;
}

void sigv4_date(int64_t time_ms, char out[static SIGV4_DATE])
{
	char rfc3339[32];
	size_t n = 0;

	clock_format(time_ms, rfc3339); /* 2015-08-30T12:36:00.000Z */
	for (const char *p = rfc3339; *p && *p != '.' && n < SIGV4_DATE - 2; p++)
		if (*p != '-' && *p != ':')
			out[n++] = *p;
	out[n++] = 'Z';
	out[n] = '\0';
}

void sigv4_hash(struct str body, char out[static SIGV4_HEX])
{
	uint8_t digest[SHA256_BYTES];

	sha256_of(body.p ? body.p : "", body.n, digest);
	hex_encode(digest, sizeof(digest), out);
}

/* ---- the canonical request ---- */

const char *sigv4_encode_path(struct str path, struct arena *a)
{
	struct buf out;

	buf_init(&out, MAX_TEXT);
	for (size_t i = 0; i < path.n; i++) {
		if (path.p[i] == '/')
			buf_addc(&out, '/');
		else
			url_encode(&out, (struct str){path.p + i, 1});
	}
	return keep(&out, a);
}

static void drop_last_segment(struct buf *out)
{
	while (out->n > 0 && out->p[out->n - 1] != '/')
		out->n--;
	if (out->n > 0)
		out->n--;
}

/* Without ".", ".." and empty segments; a slash at the end stays. */
static struct str without_dots(struct str path, struct arena *a)
{
	struct buf out;
	struct str rest = path, segment = {0};

	buf_init(&out, MAX_TEXT);
	while (rest.p) {
		segment = str_cut(&rest, '/');
		if (str_is(segment, "..")) {
			drop_last_segment(&out);
		} else if (segment.n > 0 && !str_is(segment, ".")) {
			buf_addc(&out, '/');
			buf_addstr(&out, segment);
		}
	}
	if (out.n == 0 || segment.n == 0)
		buf_addc(&out, '/');
	return str_from(keep(&out, a));
}

static const char *canonical_path(const struct sigv4_request *r, struct arena *a)
{
	struct str path = r->path.n > 0 ? r->path : STR("/");

	if (r->path_as_is)
		return arena_strndup(a, path.p, path.n);
	return sigv4_encode_path(r->keep_dots ? path : without_dots(path, a), a);
}

/* Encoded anew, so that everything that must be encoded is, and nothing else. */
static const char *encode_again(struct str text, struct arena *a)
{
	CLEANUP(buf_release) struct buf plain = {0};
	struct buf out;

	buf_init(&plain, MAX_TEXT);
	buf_init(&out, MAX_TEXT);
	if (url_decode(&plain, text, false))
		url_encode(&out, buf_str(&plain));
	else
		url_encode(&out, text);
	return keep(&out, a);
}

static int by_name_and_value(const void *a, const void *b)
{
	const struct pair *x = a, *y = b;
	int order = strcmp(x->name, y->name);

	return order ? order : strcmp(x->value, y->value);
}

static const char *canonical_query(struct str query, struct arena *a)
{
	pairs all = {0};
	struct buf out;

	while (query.p) {
		struct str value = str_cut(&query, '&');

		if (value.n == 0)
			continue;
		struct str name = str_cut(&value, '=');

		*vec_push(&all) = (struct pair){encode_again(name, a), encode_again(value, a)};
	}
	if (all.n > 0)
		qsort(all.v, all.n, sizeof(*all.v), by_name_and_value);
	buf_init(&out, MAX_TEXT);
	for (size_t i = 0; i < all.n; i++)
		buf_printf(&out, "%s%s=%s", i ? "&" : "", all.v[i].name, all.v[i].value);
	vec_release(&all);
	return keep(&out, a);
}

static const char *lower_case(const char *name, struct arena *a)
{
	char *out = arena_strdup(a, name);

	for (char *p = out; *p; p++)
		*p = (char)tolower((unsigned char)*p);
	return out;
}

/* Blanks at both ends are dropped, runs of them become one. */
static const char *squeeze(const char *value, struct arena *a)
{
	char *out = arena_alloc(a, strlen(value) + 1);
	size_t n = 0;

	for (const char *p = value; *p; p++) {
		bool blank = *p == ' ' || *p == '\t' || *p == '\n' || *p == '\r';

		if (!blank)
			out[n++] = *p;
		else if (n > 0 && out[n - 1] != ' ')
			out[n++] = ' ';
	}
	if (n > 0 && out[n - 1] == ' ')
		n--;
	out[n] = '\0';
	return out;
}

/* A merge sort would do; insertion keeps the values of one name in their order. */
static void sort_headers(pairs *all)
{
	for (size_t i = 1; i < all->n; i++) {
		struct pair p = all->v[i];
		size_t at = i;

		for (; at > 0 && strcmp(all->v[at - 1].name, p.name) > 0; at--)
			all->v[at] = all->v[at - 1];
		all->v[at] = p;
	}
}

static const char *canonical_headers(const struct sigv4_request *r, struct arena *a,
				     const char **ret_signed)
{
	pairs all = {0};
	struct buf out, names;

	for (size_t i = 0; i < r->nheaders; i++)
		*vec_push(&all) = (struct pair){lower_case(r->headers[i].name, a),
						squeeze(r->headers[i].value, a)};
	sort_headers(&all);
	buf_init(&out, MAX_TEXT);
	buf_init(&names, MAX_TEXT);
	for (size_t i = 0; i < all.n; i++) {
		if (i > 0 && strcmp(all.v[i].name, all.v[i - 1].name) == 0) {
			buf_printf(&out, ",%s", all.v[i].value);
			continue;
		}
		buf_printf(&out, "%s%s:%s", i ? "\n" : "", all.v[i].name, all.v[i].value);
		buf_printf(&names, "%s%s", i ? ";" : "", all.v[i].name);
	}
	vec_release(&all);
	*ret_signed = keep(&names, a);
	return keep(&out, a);
}

const char *sigv4_canonical_request(const struct sigv4_request *r, struct arena *a,
				    const char **ret_signed_headers)
{
	const char *headers = canonical_headers(r, a, ret_signed_headers);
	struct buf out;

	buf_init(&out, MAX_TEXT);
	buf_printf(&out, "%s\n%s\n%s\n%s\n\n%s\n%s", r->method, canonical_path(r, a),
		   canonical_query(r->query, a), headers, *ret_signed_headers, r->payload);
	return keep(&out, a);
}

/* ---- the signature ---- */

static const char *scope_text(const struct sigv4_scope *s, struct arena *a)
{
	char date[SIGV4_DATE];

	sigv4_date(s->time_ms, date);
	return arena_printf(a, "%.8s/%s/%s/aws4_request", date, s->region, s->service);
}

const char *sigv4_string_to_sign(const struct sigv4_scope *s, const char *canonical,
				 struct arena *a)
{
	char date[SIGV4_DATE], hash[SIGV4_HEX];

	sigv4_date(s->time_ms, date);
	sigv4_hash(str_from(canonical), hash);
	return arena_printf(a, ALGORITHM "\n%s\n%s\n%s", date, scope_text(s, a), hash);
}

static void chain(uint8_t key[static SHA256_BYTES], const char *text)
{
	uint8_t next[SHA256_BYTES];

	hmac_sha256(key, SHA256_BYTES, text, strlen(text), next);
	memcpy(key, next, sizeof(next));
}

void sigv4_signature(const char *secret_key, const struct sigv4_scope *s,
		     const char *string_to_sign, char out[static SIGV4_HEX])
{
	CLEANUP(freep) char *first = xasprintf("AWS4%s", secret_key);
	char date[SIGV4_DATE];
	uint8_t key[SHA256_BYTES];

	sigv4_date(s->time_ms, date);
	hmac_sha256(first, strlen(first), date, 8, key);
	chain(key, s->region);
	chain(key, s->service);
	chain(key, "aws4_request");
	chain(key, string_to_sign);
	hex_encode(key, sizeof(key), out);
}

const char *sigv4_authorization(const struct sigv4_keys *k, const struct sigv4_scope *s,
				const struct sigv4_request *r, struct arena *a)
{
	const char *names;
	const char *canonical = sigv4_canonical_request(r, a, &names);
	char signature[SIGV4_HEX];

	sigv4_signature(k->secret_key, s, sigv4_string_to_sign(s, canonical, a), signature);
	return arena_printf(a, ALGORITHM " Credential=%s/%s, SignedHeaders=%s, Signature=%s",
			    k->access_key, scope_text(s, a), names, signature);
}

static void add_pair(struct buf *out, const char *name, const char *value)
{
	buf_printf(out, "%s%s=", out->n ? "&" : "", name);
	url_encode(out, str_from(value));
}

const char *sigv4_presigned_query(const struct sigv4_keys *k, const struct sigv4_scope *s,
				  const struct sigv4_request *r, int64_t seconds, struct arena *a)
{
	struct sigv4_request full = *r;
	const char *names;
	char date[SIGV4_DATE], signature[SIGV4_HEX];
	struct buf query;

	canonical_headers(r, a, &names);
	sigv4_date(s->time_ms, date);
	buf_init(&query, MAX_TEXT);
	buf_addstr(&query, r->query);
	add_pair(&query, "X-Amz-Algorithm", ALGORITHM);
	add_pair(&query, "X-Amz-Credential",
		 arena_printf(a, "%s/%s", k->access_key, scope_text(s, a)));
	add_pair(&query, "X-Amz-Date", date);
	add_pair(&query, "X-Amz-SignedHeaders", names);
	add_pair(&query, "X-Amz-Expires", arena_printf(a, "%" PRId64, seconds));
	if (k->session_token)
		add_pair(&query, "X-Amz-Security-Token", k->session_token);
	full.query = buf_str(&query);
	const char *canonical = sigv4_canonical_request(&full, a, &names);

	sigv4_signature(k->secret_key, s, sigv4_string_to_sign(s, canonical, a), signature);
	add_pair(&query, "X-Amz-Signature", signature);
	return keep(&query, a);
}
