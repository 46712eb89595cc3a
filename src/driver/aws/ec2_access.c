#include "driver/aws/ec2_access.h"

#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "driver/aws/api/s3.h"
#include "driver/aws/aws_kind.h"
#include "driver/aws/s3_kind.h"
#include "fmt/doc.h"
#include "fmt/jsonw.h"

#define MOST_BYTES 4096
#define TAG_MAX 64

static struct s3_place place_of(struct arena *a, const char *bucket, const char *account,
				const char *run)
{
	return (struct s3_place){
		.bucket = bucket,
		.key = arena_printf(a, "masters/%s.json", run),
		.owner = account,
	};
}

static void write_record(const struct driver_row *row, const struct driver_master *at,
			 struct buf *out)
{
	char expires[32];
	struct jsonw w;

	clock_format(row->expires_ms, expires);
	jsonw_init(&w, out);
	jsonw_open(&w, '{');
	jsonw_kz(&w, "run", row->run);
	jsonw_kz(&w, "install", row->install);
	jsonw_kz(&w, "url", at->url);
	jsonw_kz(&w, "pin", at->pin);
	jsonw_kz(&w, "token", at->token);
	jsonw_kz(&w, "expires", expires);
	jsonw_close(&w);
	buf_addc(out, '\n');
}

int ec2_access_put(const struct aws_work *w, const struct driver_master *at, struct err *err)
{
	struct s3_place to =
		place_of(w->a, aws_spec(w, "bucket"), aws_spec(w, "account"), w->row->run);
	int days = (int)doc_int(w->spec, "keep_days", 0);
	char tag[TAG_MAX];
	const struct s3_options o = {.type = "application/json", .tags = days > 0 ? tag : NULL};
	CLEANUP(buf_release) struct buf text = {0};

	if (!to.bucket)
		return err_set(err, ERR_INVALID, "the run has no bucket");
	snprintf(tag, sizeof(tag), "%s=%dd", S3_KEEP_TAG_ENCODED, days);
	buf_init(&text, MOST_BYTES);
	write_record(w->row, at, &text);
	int rc = s3_put_bytes(w->s, &to, buf_str(&text), &o, &w->d, err);

	explicit_bzero(text.p, text.n);
	return rc < 0 ? err_wrap(err, "the access record of the master") : 0;
}

int ec2_access_remove(const struct aws_work *w, struct err *err)
{
	struct s3_place at =
		place_of(w->a, aws_spec(w, "bucket"), aws_spec(w, "account"), w->row->run);

	if (!at.bucket)
		return 0;
	if (s3_delete(w->s, &at, &w->d, err) < 0 && err->kind != ERR_NOT_FOUND)
		return err_wrap(err, "the access record of the master");
	*err = (struct err){0};
	return 0;
}

static bool take(const struct doc *record, const char *key, char *out, size_t size)
{
	struct str text = doc_str(record, key, STR(""));

	if (text.n == 0 || text.n >= size)
		return false;
	snprintf(out, size, "%.*s", STR_ARG(text));
	return true;
}

static int read_record(const struct doc *record, const char *install, const char *run,
		       struct driver_master *ret, struct err *err)
{
	struct driver_master at = {0};

	if (!str_is(doc_str(record, "run", STR("")), run) ||
	    !str_is(doc_str(record, "install", STR("")), install) ||
	    !take(record, "url", at.url, sizeof(at.url)) ||
	    !take(record, "pin", at.pin, sizeof(at.pin)) ||
	    !take(record, "token", at.token, sizeof(at.token)))
		return err_set(err, ERR_INVALID,
			       "masters/%.60s.json is not the record of its master", run);
	*ret = at;
	return 0;
}

int ec2_access_get(struct aws *s, const char *bucket, const char *account, const char *install,
		   const char *run, const struct deadline *d, struct driver_master *ret,
		   struct err *err)
{
	CLEANUP(arena_freep) struct arena *a = arena_new();
	struct s3_place at = place_of(a, bucket, account, run);
	CLEANUP(buf_release) struct buf text = {0};
	struct doc *record;

	buf_init(&text, MOST_BYTES);
	if (s3_get_bytes(s, &at, &text, d, err) < 0)
		return err_wrap(err, "s3://%.80s/%.80s", bucket, at.key);
	int rc = json_parse(buf_str(&text), a, &record, err);

	if (rc == 0)
		rc = read_record(record, install, run, ret, err);
	explicit_bzero(text.p, text.n);
	return rc;
}
