#include "driver/aws/api/s3_call.h"

#include <string.h>

#include "base/arena.h"
#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "base/file.h"
#include "base/hex.h"
#include "driver/aws/api/profile.h"
#include "fmt/url.h"
#include "net/digest.h"

#define CHUNK ((size_t)256 * 1024)

/* Names that S3 allows; only they may become part of a host's name. */
static bool is_bucket(const char *name)
{
	size_t n = strlen(name);

	return n >= 3 && n <= 63 && strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789.-") == n &&
	       name[0] != '.' && name[0] != '-' && !strstr(name, "..");
}

static int choose_style(const struct aws *s, const char *bucket, bool *ret_in_path, struct err *err)
{
	const char *word =
		profile_get(s->places.profiles, s->places.profile, "s3.addressing_style");
	struct aws_endpoint e;

	if (aws_endpoint_find(&s->places, aws_service_named("s3"), NULL, &e, err) < 0)
		return -1;
	if (word && strcmp(word, "path") == 0)
		*ret_in_path = true;
	else if (word && strcmp(word, "virtual") == 0)
		*ret_in_path = false;
	else
		*ret_in_path = e.given || strchr(bucket, '.');
	return 0;
}

int s3_call_init(struct s3_call *x, struct aws *s, const struct s3_place *at, bool with_key,
		 const char *method, const char *action, struct err *err)
{
	bool in_path;
	const char *key = "";

	*x = (struct s3_call){
		.c = {.service = "s3", .action = action, .method = method, .shape = AWS_XML}};
	if (!is_bucket(at->bucket))
		return err_set(err, ERR_INVALID, "'%.70s' is not the name of a bucket", at->bucket);
	if (with_key && (!at->key || !*at->key))
		return err_set(err, ERR_INVALID, "bucket '%s': no key", at->bucket);
	if (choose_style(s, at->bucket, &in_path, err) < 0)
		return -1;
	x->arena = arena_new();
	buf_init(&x->query, 16384);
	if (with_key)
		key = sigv4_encode_path(str_from(at->key), x->arena);
	if (!in_path) {
		snprintf(x->label, sizeof(x->label), "%s.", at->bucket);
		x->c.label = x->label;
	}
	x->c.path =
		in_path ? arena_printf(x->arena, "/%s%s%s", at->bucket, with_key ? "/" : "", key)
			: arena_printf(x->arena, "/%s", key);
	if (with_key && at->version)
		s3_call_query(x, "versionId", at->version);
	aws_call_header(&x->c, "x-amz-expected-bucket-owner", at->owner);
	return 0;
}

void s3_call_release(struct s3_call *x)
{
	x->arena = arena_free(x->arena);
	buf_release(&x->query);
}

void s3_call_query(struct s3_call *x, const char *name, const char *value)
{
	if (x->query.n > 0)
		buf_addc(&x->query, '&');
	url_encode(&x->query, str_from(name));
	buf_addc(&x->query, '=');
	if (value)
		url_encode(&x->query, str_from(value));
}

int s3_call_run(struct s3_call *x, struct aws *s, const struct s3_place *at,
		const struct deadline *d, struct aws_answer *ret, struct err *err)
{
	x->c.query = buf_str(&x->query).p;
	if (x->query.overflow)
		return err_set(err, ERR_INVALID, "bucket '%s': the request is too long",
			       at->bucket);
	if (aws_call_run(s, &x->c, d, ret, err) == 0)
		return 0;
	if (*ret->region && strcmp(ret->region, aws_region(s)) != 0 &&
	    (ret->status == 301 || ret->status == 307 || ret->status == 400))
		return err_set(err, ERR_INVALID,
			       "%s: the bucket '%s' is in %s, not in %s (request id %s)", ret->code,
			       at->bucket, ret->region, aws_region(s), ret->request_id);
	return err_wrap(err, "bucket '%s'%s%s", at->bucket, at->owner ? " of account " : "",
			at->owner ? at->owner : "");
}

static int hash_file(const struct aws_call *c, uint8_t out[static SHA256_BYTES], struct err *err)
{
	CLEANUP(freep) char *chunk = xmalloc(CHUNK);
	struct sha256 *sum = sha256_new();
	uint64_t done = 0;
	int rc = 0;

	while (done < c->size && rc == 0) {
		uint64_t left = c->size - done;
		size_t n = 0;

		rc = file_pread_full(c->fd, chunk, left < CHUNK ? (size_t)left : CHUNK,
				     c->offset + (int64_t)done, &n, err);
		if (rc == 0 && n == 0)
			rc = err_set(err, ERR_INVALID, "the file to upload is shorter than it was");
		if (rc == 0)
			sha256_add(sum, chunk, n);
		done += n;
	}
	sha256_end(sum, out);
	return rc;
}

int s3_call_hash(struct s3_call *x, const char **ret_b64, struct err *err)
{
	CLEANUP(buf_release) struct buf text = {0};
	uint8_t digest[SHA256_BYTES];
	char hex[SIGV4_HEX];

	if (!x->c.from_fd)
		sha256_of(x->c.body.p ? x->c.body.p : "", x->c.body.n, digest);
	else if (hash_file(&x->c, digest, err) < 0)
		return -1;
	hex_encode(digest, sizeof(digest), hex);
	x->c.payload = arena_strdup(x->arena, hex);
	buf_init(&text, 128);
	b64_encode(&text, digest, sizeof(digest));
	const char *b64 = arena_strdup(x->arena, text.p);

	aws_call_header(&x->c, "x-amz-checksum-sha256", b64);
	if (ret_b64)
		*ret_b64 = b64;
	return 0;
}

void s3_call_options(struct s3_call *x, const struct s3_options *o)
{
	x->c.type = o && o->type ? o->type : "application/octet-stream";
	if (o)
		aws_call_header(&x->c, "x-amz-tagging", o->tags);
	if (o && o->if_absent)
		aws_call_header(&x->c, "If-None-Match", "*");
}
