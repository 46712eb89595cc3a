/* The vectors that AWS publishes, step by step (tests/vectors/README.md). */
#include "unit.h"

#include <string.h>
#include <strings.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/clock.h"
#include "base/err.h"
#include "driver/aws/api/sigv4.h"
#include "fmt/doc.h"

#define MAX_HEADERS 32

struct vector {
	const struct doc *d;
	struct arena *a;
	const char *name;
	struct sigv4_keys keys;
	struct sigv4_scope scope;
	struct sigv4_request r;
	struct sigv4_header headers[MAX_HEADERS];
	char hash[SIGV4_HEX];
	bool omits_token, signs_body;
	int64_t expires;
};

static const char *text_of(const struct vector *v, const char *kind, const char *part)
{
	char key[64];

	snprintf(key, sizeof(key), "%s-%s", kind, part);
	struct str s = doc_str(v->d, key, (struct str){0});

	assert_non_null(s.p);
	return arena_strndup(v->a, s.p, s.n);
}

static void add_header(struct vector *v, const char *name, const char *value)
{
	assert_true(v->r.nheaders < MAX_HEADERS);
	v->headers[v->r.nheaders++] = (struct sigv4_header){name, value};
}

/* "GET /path?query HTTP/1.1", headers that may go on on the next line, an empty line, the body. */
static void read_request(struct vector *v)
{
	struct str text = doc_str(v->d, "request", (struct str){0});
	struct str line = str_cut(&text, '\n'), method = str_cut(&line, ' ');
	const char *end = memmem(line.p, line.n, " HTTP/1.1", 9);

	assert_non_null(end);
	line.n = (size_t)(end - line.p);
	v->r.method = arena_strndup(v->a, method.p, method.n);
	v->r.path = str_cut(&line, '?');
	v->r.query = line.p ? line : STR("");
	v->r.headers = v->headers;
	while (text.p) {
		line = str_cut(&text, '\n');
		if (line.n == 0)
			break;
		if (line.p[0] == ' ') {
			struct sigv4_header *last = &v->headers[v->r.nheaders - 1];

			last->value = arena_printf(v->a, "%s\n%.*s", last->value, STR_ARG(line));
			continue;
		}
		struct str name = str_cut(&line, ':');

		add_header(v, arena_strndup(v->a, name.p, name.n),
			   arena_strndup(v->a, line.p, line.n));
	}
	sigv4_hash(text, v->hash);
	v->r.payload = v->hash;
}

static void read_vector(struct vector *v, const struct doc *d, struct arena *a)
{
	const struct doc *context = doc_get(d, "context"), *keys = doc_get(context, "credentials");
	struct str token = doc_str(keys, "token", (struct str){0});

	*v = (struct vector){
		.d = d,
		.a = a,
		.name = doc_str(d, "name", STR("?")).p,
		.keys = {doc_str(keys, "access_key_id", STR("")).p,
			 doc_str(keys, "secret_access_key", STR("")).p, token.p},
		.scope = {doc_str(context, "region", STR("")).p,
			  doc_str(context, "service", STR("")).p, 0},
		.omits_token = doc_bool(context, "omit_session_token", false),
		.signs_body = doc_bool(context, "sign_body", false),
		.expires = doc_int(context, "expiration_in_seconds", 0),
		.r = {.keep_dots = !doc_bool(context, "normalize", true)},
	};
	assert_true(clock_parse(doc_str(context, "timestamp", STR("")), &v->scope.time_ms));
	read_request(v);
}

static void check(const struct vector *v, const char *kind, const char *part, const char *got)
{
	const char *wanted = text_of(v, kind, part);

	if (strcmp(got, wanted) != 0)
		fail_msg("%s: %s-%s:\n%s\ninstead of\n%s", v->name, kind, part, got, wanted);
}

static void check_steps(const struct vector *v, const char *kind, const struct sigv4_request *r)
{
	const char *names, *canonical = sigv4_canonical_request(r, v->a, &names);
	const char *to_sign = sigv4_string_to_sign(&v->scope, canonical, v->a);
	char signature[SIGV4_HEX];

	check(v, kind, "canonical-request", canonical);
	check(v, kind, "string-to-sign", to_sign);
	sigv4_signature(v->keys.secret_key, &v->scope, to_sign, signature);
	check(v, kind, "signature", signature);
}

static void check_headers(struct vector *v)
{
	char date[SIGV4_DATE], expected[4096];

	sigv4_date(v->scope.time_ms, date);
	add_header(v, "X-Amz-Date", date);
	if (v->keys.session_token && !v->omits_token)
		add_header(v, "X-Amz-Security-Token", v->keys.session_token);
	if (v->signs_body)
		add_header(v, "x-amz-content-sha256", v->hash);
	check_steps(v, "header", &v->r);
	snprintf(expected, sizeof(expected), "Authorization:%s\n",
		 sigv4_authorization(&v->keys, &v->scope, &v->r, v->a));
	if (!strstr(text_of(v, "header", "signed-request"), expected))
		fail_msg("%s: %s", v->name, expected);
}

/* The signed request's line has the query that we make. */
static void check_query(struct vector *v)
{
	struct sigv4_keys keys = v->keys;
	char expected[8192];

	if (v->omits_token)
		keys.session_token = NULL; /* it is added after the signature */
	const char *query = sigv4_presigned_query(&keys, &v->scope, &v->r, v->expires, v->a);
	struct sigv4_request full = v->r;
	const char *end = strstr(query, "&X-Amz-Signature=");

	assert_non_null(end);
	full.query = (struct str){query, (size_t)(end - query)};
	check_steps(v, "query", &full);
	snprintf(expected, sizeof(expected), "?%s HTTP/1.1", query);
	if (!v->omits_token && !strstr(text_of(v, "query", "signed-request"), expected))
		fail_msg("%s: %s\n%s", v->name, expected, text_of(v, "query", "signed-request"));
}

static void each(void (*fn)(struct vector *))
{
	struct arena *a = arena_new();
	struct buf text;
	struct doc *all = NULL;
	struct err err = {0};
	char path[512];

	snprintf(path, sizeof(path), "%s/vectors/aws-sigv4.json", getenv("REGATTA_TESTS"));
	buf_init(&text, 1024 * 1024);
	if (file_read(path, &text, &err) < 0 || json_parse(buf_str(&text), a, &all, &err) < 0)
		fail_msg("%s", err.msg);
	assert_int_equal(all->type, DOC_ARRAY);
	assert_int_equal(all->array.n, 38);
	for (size_t i = 0; i < all->array.n; i++) {
		struct vector v;

		read_vector(&v, all->array.v[i], a);
		fn(&v);
	}
	buf_release(&text);
	arena_free(a);
}

static void the_38_vectors_are_signed_in_headers(void **state)
{
	(void)state;
	each(check_headers);
}

static void the_38_vectors_are_signed_in_queries(void **state)
{
	(void)state;
	each(check_query);
}

/* The example of the S3 documentation: "GET Object" and its presigned URL. */
static void s3_takes_the_path_as_it_is(void **state)
{
	struct arena *a = arena_new();
	struct sigv4_keys keys = {"AKIAIOSFODNN7EXAMPLE",
				  "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY", NULL};
	struct sigv4_scope scope = {"us-east-1", "s3", 0};
	struct sigv4_header host = {"Host", "examplebucket.s3.amazonaws.com"};
	struct sigv4_request r = {.method = "GET",
				  .path = STR("/test.txt"),
				  .headers = &host,
				  .nheaders = 1,
				  .payload = SIGV4_UNSIGNED,
				  .path_as_is = true};

	(void)state;
	assert_true(clock_parse(STR("2013-05-24T00:00:00Z"), &scope.time_ms));
	const char *query = sigv4_presigned_query(&keys, &scope, &r, 86400, a);

	assert_non_null(strstr(
		query,
		"X-Amz-Signature=aeeed9bbccd4d02ee5c0109b86d86835f995330da4c265957d157751f604d404"));
	assert_string_equal(sigv4_encode_path(STR("/a b/\xc3\xa4+~"), a), "/a%20b/%C3%A4%2B~");
	arena_free(a);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_38_vectors_are_signed_in_headers),
		cmocka_unit_test(the_38_vectors_are_signed_in_queries),
		cmocka_unit_test(s3_takes_the_path_as_it_is),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
