/* S3 where the strict cloud cannot show it: hosts, regions, owners, uploads that go on, broken downloads. */
#include "rig.h"

#include <fcntl.h>

#include "base/hex.h"
#include "driver/aws/api/s3.h"
#include "net/digest.h"

static bool empty(struct fake_http *f, int fd, int nth, const struct fake_asked *asked)
{
	(void)f;
	(void)nth;
	(void)asked;
	fake_say(fd, 200, "", "");
	return true;
}

static void keys_are_encoded_and_the_owner_is_expected(void **state)
{
	struct rig *r = *state;
	struct s3_place at = {"a-bucket", "a b/\xc3\xa4+~?", "123456789012"};
	struct s3_options o = {.type = "text/plain", .tags = "a=b", .if_absent = true};

	r->fake.answer = empty;
	rig_open(r);
	assert_int_equal(s3_put_bytes(r->s, &at, STR("hello"), &o, &r->d, &r->err), 0);
	const struct fake_asked *q = &r->fake.asked[0];

	assert_true(fake_is(q, "PUT /a-bucket/a%20b/%C3%A4%2B~%3F HTTP/1.1\r\n"));
	assert_string_equal(fake_header(q, "x-amz-expected-bucket-owner"), "123456789012");
	assert_string_equal(fake_header(q, "x-amz-tagging"), "a=b");
	assert_string_equal(fake_header(q, "If-None-Match"), "*");
	assert_string_equal(fake_header(q, "Content-Type"), "text/plain");
	assert_string_equal(fake_header(q, "X-Amz-Content-Sha256"),
			    "2cf24dba5fb0a30e26e83b2ac5b9e29e1b161e5c1fa7425e73043362938b9824");
	assert_non_null(
		strstr(fake_header(q, "Authorization"),
		       "/eu-west-1/s3/aws4_request, SignedHeaders=content-type;host;if-none-match;"
		       "x-amz-checksum-sha256;x-amz-content-sha256;x-amz-date;"
		       "x-amz-expected-bucket-owner;x-amz-tagging, "));
}

static void bad_names_are_refused_before_anything_is_sent(void **state)
{
	static const struct s3_place bad[] = {{"A", "k", NULL},		 {"a_b", "k", NULL},
					      {"evil.com/x", "k", NULL}, {"-ab", "k", NULL},
					      {"a..b", "k", NULL},	 {"abc", "", NULL},
					      {"abc", NULL, NULL}};
	struct rig *r = *state;

	rig_open(r);
	for (size_t i = 0; i < COUNT(bad); i++) {
		assert_int_equal(s3_put_bytes(r->s, &bad[i], STR(""), NULL, &r->d, &r->err), -1);
		assert_int_equal(r->err.kind, ERR_INVALID);
	}
	assert_int_equal(r->fake.n, 0);
}

static void expect_url(struct rig *r, const char *bucket, const char *begin)
{
	struct s3_place at = {bucket, "k", NULL};
	struct buf url;

	buf_init(&url, 8192);
	assert_int_equal(s3_presign(r->s, &at, "GET", 60, &r->d, &url, &r->err), 0);
	if (strncmp(url.p, begin, strlen(begin)) != 0)
		fail_msg("%s", url.p);
	buf_release(&url);
}

static void buckets_are_in_the_host_unless_something_speaks_against_it(void **state)
{
	struct rig *r = *state;

	rig_open(r);
	rig_set(r, "AWS_ENDPOINT_URL", NULL);
	expect_url(r, "my-bucket", "https://my-bucket.s3.eu-west-1.amazonaws.com/k?X-Amz-");
	expect_url(r, "my.bucket", "https://s3.eu-west-1.amazonaws.com/my.bucket/k?X-Amz-");
	rig_set(r, "AWS_ENDPOINT_URL_S3", "http://lab:9000/s3");
	expect_url(r, "my-bucket", "http://lab:9000/s3/my-bucket/k?X-Amz-");
	rig_write(r, ".aws/config", "[default]\ns3 =\n  addressing_style = virtual\n");
	rig_open(r);
	expect_url(r, "my-bucket", "http://my-bucket.lab:9000/s3/k?X-Amz-");
	rig_write(r, ".aws/config", "[default]\ns3 =\n  addressing_style = path\n");
	rig_set(r, "AWS_ENDPOINT_URL_S3", NULL);
	rig_open(r);
	expect_url(r, "my-bucket", "https://s3.eu-west-1.amazonaws.com/my-bucket/k?X-Amz-");
}

static bool elsewhere(struct fake_http *f, int fd, int nth, const struct fake_asked *asked)
{
	(void)f;
	(void)nth;
	fake_raw(fd, fake_is(asked, "HEAD") ? "HTTP/1.1 301 X\r\nx-amz-bucket-region: us-west-2\r\n"
					      "x-amz-request-id: R7\r\nContent-Length: 100\r\n\r\n"
					    : "HTTP/1.1 301 X\r\nx-amz-bucket-region: us-west-2\r\n"
					      "x-amz-request-id: R7\r\nContent-Length: 0\r\n\r\n");
	return true;
}

static void a_bucket_of_another_region_is_said_to_be_there(void **state)
{
	struct rig *r = *state;
	struct s3_place at = {"a-bucket", "k", NULL};
	struct buf out;

	buf_init(&out, 100);
	r->fake.answer = elsewhere;
	rig_open(r);
	assert_int_equal(s3_get_bytes(r->s, &at, &out, &r->d, &r->err), -1);
	assert_int_equal(r->err.kind, ERR_INVALID);
	assert_string_equal(r->err.msg, "PermanentRedirect: the bucket 'a-bucket' is in us-west-2, "
					"not in eu-west-1 (request id R7)");
	assert_int_equal(s3_bucket_check(r->s, &at, &r->d, &r->err), -1);
	assert_non_null(strstr(r->err.msg, "is in us-west-2"));
	assert_int_equal(r->fake.n, 2);
	buf_release(&out);
}

static bool somebody_elses(struct fake_http *f, int fd, int nth, const struct fake_asked *asked)
{
	(void)f;
	(void)nth;
	(void)asked;
	fake_say(fd, 403, "x-amz-request-id: R8\r\n",
		 "<Error><Code>AccessDenied</Code><Message>Access Denied</Message></Error>");
	return true;
}

static void a_bucket_of_another_account_is_denied(void **state)
{
	struct rig *r = *state;
	struct s3_place at = {"a-bucket", "k", "123456789012"};
	struct s3_object o;

	r->fake.answer = somebody_elses;
	rig_open(r);
	struct buf out;

	buf_init(&out, 100);
	assert_int_equal(s3_get_bytes(r->s, &at, &out, &r->d, &r->err), -1);
	assert_int_equal(r->err.kind, ERR_DENIED);
	assert_string_equal(
		r->err.msg,
		"bucket 'a-bucket' of account 123456789012: AccessDenied: not authorized "
		"to perform s3:GetObject (request id R8)");
	assert_int_equal(s3_head(r->s, &at, &r->d, &o, &r->err), -1);
	assert_int_equal(r->err.kind, ERR_DENIED);
	assert_non_null(strstr(r->err.msg, "s3:GetObject")); /* the permission, not the call */
	assert_int_equal(r->fake.n, 2);
	buf_release(&out);
}

/* ---- uploads ---- */

static bool late_error(struct fake_http *f, int fd, int nth, const struct fake_asked *asked)
{
	(void)f;
	(void)asked;
	fake_say(fd, 200, "",
		 nth == 0 ? "<ListBucketResult><IsTruncated>true</IsTruncated>"
			    "<NextContinuationToken>t</NextContinuationToken></ListBucketResult>"
			  : "<Error><Code>AccessDenied</Code><Message>m</Message></Error>");
	return true;
}

static int count_keys(void *ctx, const struct s3_object *o, struct err *err)
{
	(void)o;
	(void)err;
	++*(int *)ctx;
	return 0;
}

static void an_error_in_an_answer_of_200_is_an_error(void **state)
{
	struct rig *r = *state;
	struct s3_place at = {"a-bucket", "p/", NULL};
	int n = 0;

	r->fake.answer = late_error;
	rig_open(r);
	assert_int_equal(s3_list(r->s, &at, &r->d, count_keys, &n, &r->err), -1);
	assert_int_equal(r->err.kind, ERR_DENIED);
	assert_true(fake_is(&r->fake.asked[0], "GET /a-bucket?list-type=2&prefix=p%2F HTTP"));
	assert_true(fake_is(&r->fake.asked[1],
			    "GET /a-bucket?list-type=2&prefix=p%2F&continuation-token=t HTTP"));
}

#define VERSION(key, latest, version)                                                              \
	"<Version><Key>" key "</Key><VersionId>" version "</VersionId><IsLatest>" latest           \
	"</IsLatest><Size>3</Size><ETag>&quot;e&quot;</ETag></Version>"

static bool two_pages(struct fake_http *f, int fd, int nth, const struct fake_asked *asked)
{
	(void)f;
	(void)asked;
	fake_say(
		fd, 200, "",
		nth == 0
			? "<ListVersionsResult>" VERSION("p/a", "false", "v1") VERSION(
				  "p/a", "true",
				  "v2") "<DeleteMarker><Key>p/b</Key>"
					"<VersionId>v3</VersionId><IsLatest>true</IsLatest></DeleteMarker>" VERSION(
						"p/b", "false",
						"v4") "<IsTruncated>true</IsTruncated>"
						      "<NextKeyMarker>p/b</NextKeyMarker>"
						      "<NextVersionIdMarker>v4</NextVersionIdMarker></ListVersionsResult>"
			: "<ListVersionsResult>" VERSION(
				  "p/c", "true",
				  "null") "<IsTruncated>false</IsTruncated></ListVersionsResult>");
	return true;
}

static int note_version(void *ctx, const struct s3_object *o, struct err *err)
{
	char *out = ctx;
	size_t n = strlen(out);

	(void)err;
	snprintf(out + n, 100 - n, "%s@%s %d;", o->key, o->version, (int)o->size);
	return 0;
}

static void a_list_of_versions_has_the_newest_of_each_over_pages(void **state)
{
	struct rig *r = *state;
	struct s3_place at = {"a-bucket", "p/", NULL};
	char seen[100] = "";

	r->fake.answer = two_pages;
	rig_open(r);
	assert_int_equal(s3_list_versions(r->s, &at, &r->d, note_version, seen, &r->err), 0);
	assert_string_equal(seen, "p/a@v2 3;p/c@ 3;");
	assert_true(fake_is(&r->fake.asked[0], "GET /a-bucket?versions=&prefix=p%2F HTTP"));
	assert_true(fake_is(&r->fake.asked[1], "GET /a-bucket?versions=&prefix=p%2F&key-marker=p%2F"
					       "b&version-id-marker=v4 HTTP"));
}

#define SIZE (2 * S3_PART + 100)

struct store {
	char first[64];	 /* SHA-256 of the part that is there already, base64 */
	char md5[64];	 /* of the first part, in a store that keeps no SHA-256 */
	int parts;	 /* sent now */
	int loses_first; /* the first part that is sent is cut off so often */
	char completed[2048];
};

static bool part_store(struct fake_http *f, int fd, int nth, const struct fake_asked *a)
{
	struct store *s = f->ctx;
	char text[1024], etag[64];

	(void)nth;
	if (fake_is(a, "GET /a-bucket?uploads=&prefix=big ")) {
		snprintf(text, sizeof(text),
			 "<L><Upload><Key>bigger</Key><UploadId>no</UploadId></Upload>%s</L>",
			 *s->first ? "<Upload><Key>big</Key><UploadId>u-1</UploadId></Upload>"
				   : "");
		fake_say(fd, 200, "", text);
	} else if (fake_is(a, "POST /a-bucket/big?uploads= ")) {
		fake_say(fd, 200, "", "<I><UploadId>u-1</UploadId></I>");
	} else if (*s->md5 && fake_is(a, "GET /a-bucket/big?uploadId=u-1 ")) {
		snprintf(
			text, sizeof(text),
			"<L><Part><PartNumber>1</PartNumber><ETag>\"%s\"</ETag><Size>%d</Size></Part>"
			"<Part><PartNumber>2</PartNumber><ETag>\"%s\"</ETag><Size>%d</Size></Part></L>",
			s->md5, (int)S3_PART, s->md5, (int)S3_PART);
		fake_say(fd, 200, "", text);
	} else if (fake_is(a, "GET /a-bucket/big?uploadId=u-1 ")) {
		snprintf(
			text, sizeof(text),
			"<L><Part><PartNumber>1</PartNumber><ETag>\"e-1\"</ETag><Size>%d</Size>"
			"<ChecksumSHA256>%s</ChecksumSHA256></Part><Part><PartNumber>2</PartNumber>"
			"<ETag>\"old\"</ETag><Size>%d</Size><ChecksumSHA256>other</ChecksumSHA256>"
			"</Part></L>",
			(int)S3_PART, s->first, (int)S3_PART);
		fake_say(fd, 200, "", text);
	} else if (fake_is(a, "PUT /a-bucket/big?partNumber=")) {
		if (s->loses_first-- > 0)
			return false;
		s->parts++;
		snprintf(etag, sizeof(etag), "ETag: \"e-%c\"\r\n",
			 a->head[strlen("PUT /a-bucket/big?partNumber=")]);
		fake_say(fd, 200, etag, "");
	} else if (fake_is(a, "POST /a-bucket/big?uploadId=u-1 ")) {
		snprintf(s->completed, sizeof(s->completed), "%s", a->body);
		fake_say(fd, 200, "", "<C/>");
	} else {
		fake_say(fd, 500, "", "<Error><Code>Unexpected</Code></Error>");
	}
	return true;
}

static int big_file(struct rig *r, struct store *s)
{
	char *path = xasprintf("%s/big", r->dir), *bytes = xcalloc(1, SIZE);
	int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	uint8_t digest[SHA256_BYTES];
	struct buf text;

	bytes[5] = 'x';
	assert_int_equal(file_write_all(fd, bytes, SIZE, &r->err), 0);
	if (s) {
		sha256_of(bytes, S3_PART, digest);
		buf_init(&text, 100);
		b64_encode(&text, digest, sizeof(digest));
		snprintf(s->first, sizeof(s->first), "%s", text.p);
		buf_release(&text);
	}
	free(bytes);
	free(path);
	return fd;
}

static void an_upload_goes_on_where_it_was_left(void **state)
{
	struct rig *r = *state;
	struct s3_place at = {"a-bucket", "big", NULL};
	struct store s = {0};
	int fd = big_file(r, &s);

	r->fake.ctx = &s;
	r->fake.answer = part_store;
	rig_open(r);
	if (s3_upload(r->s, &at, fd, SIZE, NULL, &r->d, &r->err) < 0)
		fail_msg("%s", r->err.msg);
	assert_int_equal(s.parts, 2); /* the first is there; the second there is another */
	assert_non_null(
		strstr(s.completed, "<Part><PartNumber>1</PartNumber><ETag>\"e-1\"</ETag>"));
	assert_non_null(
		strstr(s.completed, "<Part><PartNumber>2</PartNumber><ETag>\"e-2\"</ETag>"));
	assert_non_null(
		strstr(s.completed, "<Part><PartNumber>3</PartNumber><ETag>\"e-3\"</ETag>"));
	close(fd);
}

static void a_store_without_sha256_tells_parts_by_their_md5(void **state)
{
	struct rig *r = *state;
	struct s3_place at = {"a-bucket", "big", NULL};
	struct store s = {0};
	uint8_t digest[MD5_BYTES];
	int fd = big_file(r, &s);

	assert_int_equal(md5_fd_range(fd, 0, S3_PART, digest, &r->err), 0);
	for (size_t i = 0; i < MD5_BYTES; i++)
		snprintf(s.md5 + 2 * i, 3, "%02x", digest[i]);
	r->fake.ctx = &s;
	r->fake.answer = part_store;
	rig_open(r);
	if (s3_upload(r->s, &at, fd, SIZE, NULL, &r->d, &r->err) < 0)
		fail_msg("%s", r->err.msg);
	assert_int_equal(s.parts, 2); /* the second part has other bytes than the store's */
	assert_non_null(strstr(s.completed, s.md5));
	assert_non_null(strstr(s.completed, s.first));
	close(fd);
}

static void a_part_that_was_cut_off_is_sent_again(void **state)
{
	struct rig *r = *state;
	struct s3_place at = {"a-bucket", "big", NULL};
	struct store s = {.loses_first = 1};
	int fd = big_file(r, NULL);

	r->fake.ctx = &s;
	r->fake.answer = part_store;
	rig_open(r);
	if (s3_upload(r->s, &at, fd, SIZE, NULL, &r->d, &r->err) < 0)
		fail_msg("%s", r->err.msg);
	assert_int_equal(s.parts, 3);
	/* A file that has become shorter is not sent at all. */
	assert_int_equal(s3_upload(r->s, &at, fd, SIZE + 1, NULL, &r->d, &r->err), -1);
	assert_int_equal(r->err.kind, ERR_INVALID);
	close(fd);
}

/* ---- downloads ---- */

#define TEXT "0123456789abcdefghij"

struct source {
	int cuts;    /* so many answers end early */
	int changed; /* from this request on it is another object */
};

static bool piecewise(struct fake_http *f, int fd, int nth, const struct fake_asked *a)
{
	struct source *s = f->ctx;
	const char *range = fake_header(a, "Range"), *match;
	size_t from = range ? strtoul(range + strlen("bytes="), NULL, 10) : 0;
	char head[512];

	if (fake_is(a, "HEAD")) {
		fake_raw(fd, "HTTP/1.1 200 X\r\nETag: \"v1\"\r\nx-amz-request-id: R\r\n"
			     "Content-Length: 20\r\n\r\n");
		return true;
	}
	match = fake_header(a, "If-Match");
	if (!match || strcmp(match, "\"v1\"") != 0) {
		fake_say(fd, 400, "", "<Error><Code>NoIfMatch</Code></Error>");
		return true;
	}
	if (s->changed && nth >= s->changed) {
		fake_say(fd, 412, "", "<Error><Code>PreconditionFailed</Code></Error>");
		return true;
	}
	snprintf(head, sizeof(head),
		 "HTTP/1.1 %d X\r\nx-amz-request-id: R\r\nContent-Range: bytes %zu-19/20\r\n"
		 "Content-Length: %zu\r\n\r\n",
		 range ? 206 : 200, from, 20 - from);
	fake_raw(fd, head);
	if (s->cuts-- > 0) {
		char piece[3] = {TEXT[from], TEXT[from + 1], 0};

		fake_raw(fd, piece);
		return false;
	}
	fake_raw(fd, &TEXT[from]);
	return true;
}

static void a_download_goes_on_where_it_was_cut_off(void **state)
{
	struct rig *r = *state;
	struct s3_place at = {"a-bucket", "k", NULL};
	struct source s = {.cuts = 9};
	char *path = xasprintf("%s/down", r->dir), got[32] = "";
	int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	uint64_t offset = 0;

	r->fake.ctx = &s;
	r->fake.answer = piecewise;
	rig_open(r);
	if (s3_download(r->s, &at, fd, &offset, 100, &r->d, &r->err) < 0)
		fail_msg("%s", r->err.msg);
	assert_int_equal(offset, 20);
	assert_int_equal(pread(fd, got, sizeof(got), 0), 20);
	assert_string_equal(got, TEXT);
	offset = 0;
	assert_int_equal(s3_download(r->s, &at, fd, &offset, 19, &r->d, &r->err), -1);
	assert_int_equal(r->err.kind, ERR_CAPACITY);
	offset = 21;
	assert_int_equal(s3_download(r->s, &at, fd, &offset, 100, &r->d, &r->err), -1);
	assert_int_equal(r->err.kind, ERR_CONFLICT);
	close(fd);
	free(path);
}

static void an_object_that_changes_meanwhile_is_not_mixed(void **state)
{
	struct rig *r = *state;
	struct s3_place at = {"a-bucket", "k", NULL};
	struct source s = {.cuts = 1, .changed = 2};
	char *path = xasprintf("%s/down", r->dir);
	int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	uint64_t offset = 0;

	r->fake.ctx = &s;
	r->fake.answer = piecewise;
	rig_open(r);
	assert_int_equal(s3_download(r->s, &at, fd, &offset, 100, &r->d, &r->err), -1);
	assert_int_equal(r->err.kind, ERR_CONFLICT);
	assert_int_equal(offset, 2);
	close(fd);
	free(path);
}

static bool hello(struct fake_http *f, int fd, int nth, const struct fake_asked *asked)
{
	(void)f;
	(void)nth;
	(void)asked;
	fake_say(fd, 200, "", "hello");
	return true;
}

static bool portal(struct fake_http *f, int fd, int nth, const struct fake_asked *asked)
{
	(void)f;
	(void)asked;
	if (nth == 0)
		fake_raw(fd, "HTTP/1.1 200 X\r\nContent-Length: 7\r\n\r\nsign in");
	else
		fake_say(fd, 200, "", "hello");
	return true;
}

static void a_page_of_a_proxy_is_not_the_object(void **state)
{
	struct rig *r = *state;
	struct s3_place at = {"a-bucket", "k", NULL};
	struct buf out;

	buf_init(&out, 100);
	r->fake.answer = portal;
	rig_open(r);
	assert_int_equal(s3_get_bytes(r->s, &at, &out, &r->d, &r->err), 0);
	assert_true(str_is(buf_str(&out), "hello"));
	buf_release(&out);
}

static void an_object_larger_than_the_buffer_is_refused(void **state)
{
	struct rig *r = *state;
	struct s3_place at = {"a-bucket", "k", NULL};
	struct buf out;

	buf_init(&out, 4);
	r->fake.answer = hello;
	rig_open(r);
	assert_int_equal(s3_get_bytes(r->s, &at, &out, &r->d, &r->err), -1);
	assert_int_equal(r->err.kind, ERR_CAPACITY);
	buf_release(&out);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		rig_test(keys_are_encoded_and_the_owner_is_expected),
		rig_test(bad_names_are_refused_before_anything_is_sent),
		rig_test(buckets_are_in_the_host_unless_something_speaks_against_it),
		rig_test(a_bucket_of_another_region_is_said_to_be_there),
		rig_test(a_bucket_of_another_account_is_denied),
		rig_test(an_error_in_an_answer_of_200_is_an_error),
		rig_test(a_list_of_versions_has_the_newest_of_each_over_pages),
		rig_test(an_upload_goes_on_where_it_was_left),
		rig_test(a_store_without_sha256_tells_parts_by_their_md5),
		rig_test(a_part_that_was_cut_off_is_sent_again),
		rig_test(a_download_goes_on_where_it_was_cut_off),
		rig_test(an_object_that_changes_meanwhile_is_not_mixed),
		rig_test(a_page_of_a_proxy_is_not_the_object),
		rig_test(an_object_larger_than_the_buffer_is_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
