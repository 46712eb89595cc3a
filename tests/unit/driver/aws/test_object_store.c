/* Files in a store that is known by its URL. */
#include "unit.h"

#include <fcntl.h>
#include <string.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/deadline.h"
#include "base/err.h"
#include "driver/aws/api/s3.h"
#include "driver/object_store.h"
#include "fake_s3.h"
#include "fmt/doc.h"

struct rig {
	struct fake_s3 s3;
	struct object_store *st;
	struct deadline d;
	struct err err;
	void *dir;
};

static int setup(void **state)
{
	struct rig *r = xcalloc(1, sizeof(*r));

	if (fake_s3_start_with_dir(&r->s3, &r->dir) < 0)
		return -1;
	r->d = deadline_in(20000, NULL);
	*state = r;
	return 0;
}

static int teardown(void **state)
{
	struct rig *r = *state;

	object_store_free(r->st);
	int rc = fake_s3_stop_with_dir(&r->s3, &r->dir);

	free(r);
	return rc;
}

static void open_store(struct rig *r, const char *url, bool own)
{
	struct object_access who = {.credentials = r->s3.credentials, .own = own};

	if (object_store_open(url, &who, &r->d, &r->st, &r->err) < 0)
		fail_msg("%s", r->err.msg);
}

/* A new file with this text; its offset is at the end. */
static int file_with(struct rig *r, const char *text)
{
	static int number;
	char name[32];

	snprintf(name, sizeof(name), "file-%d", number++);
	int fd = open(unit_path(&r->dir, name), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);

	assert_true(fd >= 0);
	assert_int_equal(write(fd, text, strlen(text)), (ssize_t)strlen(text));
	return fd;
}

static void names_are_put_behind_the_url(void **state)
{
	struct rig *r = *state;
	int fd = file_with(r, "hello");

	open_store(r, "s3://b-1/results/", true);
	assert_int_equal(object_put_file(r->st, "x/log", fd, 5, NULL, &r->d, &r->err), 0);
	assert_int_equal(object_put_text(r->st, "x/a", STR("yes"),
					 &(struct object_options){.keep_days = 30}, &r->d, &r->err),
			 0);
	assert_non_null(fake_s3_find(&r->s3, "b-1/results/x/log"));
	assert_string_equal(fake_s3_find(&r->s3, "b-1/results/x/a")->tags,
			    "regatta%3Aretention=30d");
	close(fd);
}

static void whoever_must_own_the_store_is_told_with_every_call(void **state)
{
	struct rig *r = *state;

	open_store(r, "s3://b-1/", true);
	assert_int_equal(object_put_text(r->st, "x", STR("yes"), NULL, &r->d, &r->err), 0);
	const struct fake_asked *q = &r->s3.http.asked[r->s3.http.n - 1];

	assert_non_null(fake_header(q, "x-amz-expected-bucket-owner"));
	assert_string_equal(fake_header(q, "x-amz-expected-bucket-owner"), FAKE_S3_ACCOUNT);
	r->st = object_store_free(r->st);
	open_store(r, "s3://b-1/x", false);
	struct buf out;

	buf_init(&out, 100);
	assert_int_equal(object_get_text(r->st, "", &out, &r->d, &r->err), 0);
	q = &r->s3.http.asked[r->s3.http.n - 1];
	assert_true(fake_is(q, "GET /b-1/x HTTP/1.1"));
	assert_null(fake_header(q, "x-amz-expected-bucket-owner"));
	assert_string_equal(out.p, "yes");
	buf_release(&out);
}

static void a_download_goes_on_behind_what_the_file_has(void **state)
{
	struct rig *r = *state;
	int fd = file_with(r, "hello, ");
	char text[32] = "";

	open_store(r, "s3://b-1/", false);
	assert_int_equal(object_put_text(r->st, "x", STR("hello, world"), NULL, &r->d, &r->err), 0);
	assert_int_equal(object_get_file(r->st, "x", fd, 100, &r->d, &r->err), 0);
	const struct fake_asked *q = &r->s3.http.asked[r->s3.http.n - 1];

	assert_non_null(fake_header(q, "Range"));
	assert_string_equal(fake_header(q, "Range"), "bytes=7-");
	assert_int_equal(pread(fd, text, sizeof(text), 0), 12);
	assert_string_equal(text, "hello, world");
	assert_int_equal(object_get_file(r->st, "x", fd, 5, &r->d, &r->err), -1);
	assert_int_equal(r->err.kind, ERR_CAPACITY);
	close(fd);
}

static int collect(void *ctx, const struct object *o, struct err *err)
{
	(void)err;
	buf_printf(ctx, "%s %d;", o->name, (int)o->size);
	return 0;
}

static void a_list_names_what_is_behind_the_url(void **state)
{
	struct rig *r = *state;
	struct buf out;

	buf_init(&out, 1000);
	open_store(r, "s3://b-1/results/", false);
	assert_int_equal(object_put_text(r->st, "r1/b", STR("bb"), NULL, &r->d, &r->err), 0);
	assert_int_equal(object_put_text(r->st, "r1/a", STR("a"), NULL, &r->d, &r->err), 0);
	assert_int_equal(object_put_text(r->st, "r2/c", STR("c"), NULL, &r->d, &r->err), 0);
	assert_int_equal(object_list(r->st, "r1/", &r->d, collect, &out, &r->err), 0);
	assert_string_equal(out.p, "r1/a 1;r1/b 2;");
	buf_release(&out);
}

static void what_is_there_already_is_known_by_its_bytes(void **state)
{
	struct rig *r = *state;
	int fd = file_with(r, "hello"), other = file_with(r, "jello");
	struct object o;

	open_store(r, "s3://b-1/", false);
	assert_int_equal(object_head(r->st, "x", &r->d, &o, &r->err), -1);
	assert_int_equal(r->err.kind, ERR_NOT_FOUND);
	assert_int_equal(object_put_file(r->st, "x", fd, 5, NULL, &r->d, &r->err), 0);
	assert_int_equal(object_head(r->st, "x", &r->d, &o, &r->err), 0);
	assert_int_equal(o.size, 5);
	assert_int_equal(object_is_file(r->st, &o, fd, 5, &r->err), 1);
	assert_int_equal(object_is_file(r->st, &o, other, 5, &r->err), 0);
	assert_int_equal(object_is_file(r->st, &o, fd, 4, &r->err), 0);
	close(fd);
	close(other);
}

static void a_file_of_several_parts_has_the_etag_of_its_parts(void **state)
{
	struct rig *r = *state;
	int fd = file_with(r, "");

	/* Parts of 16 MiB of zeros, and one byte: computed with hashlib. */
	assert_int_equal(ftruncate(fd, (off_t)(2 * S3_PART + 1)), 0);
	assert_int_equal(s3_etag_is_of("\"0d8c3ea0c7f9a1c5\"", fd, 2 * S3_PART + 1, &r->err), 0);
	assert_int_equal(s3_etag_is_of("\"43146238733cbdc91d3e93bb76c975bb-3\"", fd,
				       2 * S3_PART + 1, &r->err),
			 1);
	close(fd);
}

static void a_signed_url_names_method_time_and_object(void **state)
{
	struct rig *r = *state;
	struct buf url;

	buf_init(&url, 4096);
	open_store(r, "s3://b-1/in/", false);
	assert_int_equal(object_presign(r->st, "a b", NULL, "PUT", 600, &r->d, &url, &r->err), 0);
	assert_non_null(strstr(url.p, "/b-1/in/a%20b?X-Amz-"));
	assert_non_null(strstr(url.p, "X-Amz-Expires=600"));
	assert_null(strstr(url.p, "expected-bucket-owner"));
	buf_release(&url);
}

static void only_urls_of_a_store_are_opened(void **state)
{
	static const char *const bad[] = {"gs://b/x", "s3:/b/x", "b/x", "s3:///x", ""};
	struct rig *r = *state;
	struct object_access who = {.credentials = r->s3.credentials};

	assert_true(object_url_is("s3://b/x"));
	for (size_t i = 0; i < COUNT(bad); i++) {
		assert_int_equal(object_store_open(bad[i], &who, &r->d, &r->st, &r->err), -1);
		assert_int_equal(r->err.kind, ERR_INVALID);
	}
	assert_int_equal(r->s3.http.n, 0);
}

static void credentials_for_the_store_stand_beside_those_of_another_engine(void **state)
{
	struct rig *r = *state;
	char *both = xasprintf("{\"server\":\"https://cluster\",\"token\":\"t\",\"store\":%s}",
			       r->s3.credentials);
	struct object_access who = {.credentials = both, .own = true};

	assert_int_equal(object_store_open("s3://b-1/", &who, &r->d, &r->st, &r->err), 0);
	assert_int_equal(object_put_text(r->st, "x", STR("yes"), NULL, &r->d, &r->err), 0);
	free(both);
}

static void a_refusal_is_told_with_the_bucket_and_the_code(void **state)
{
	struct rig *r = *state;

	open_store(r, "s3://b-1/", true);
	r->s3.refuse = "PUT /b-1/x";
	r->s3.refuse_status = 403;
	r->s3.refuse_body = "<Error><Code>AccessDenied</Code><Message>no</Message></Error>";
	r->s3.refusals = 1;
	assert_int_equal(object_put_text(r->st, "x", STR("yes"), NULL, &r->d, &r->err), -1);
	assert_int_equal(r->err.kind, ERR_DENIED);
	assert_non_null(strstr(r->err.msg, "bucket 'b-1' of account " FAKE_S3_ACCOUNT));
	assert_non_null(
		strstr(r->err.msg,
		       "AccessDenied: not authorized to perform s3:PutObject (request id R0)"));
}

static void the_store_itself_is_looked_at_as_its_owner(void **state)
{
	struct rig *r = *state;

	open_store(r, "s3://b-1/results/", true);
	r->s3.refuse = "HEAD /b-1";
	r->s3.refuse_status = 200;
	r->s3.refuse_body = "";
	r->s3.refusals = 1;
	assert_int_equal(object_store_check(r->st, &r->d, &r->err), 0);
	const struct fake_asked *q = &r->s3.http.asked[r->s3.http.n - 1];

	assert_true(fake_is(q, "HEAD /b-1 ") || fake_is(q, "HEAD /b-1/ "));
	assert_string_equal(fake_header(q, "x-amz-expected-bucket-owner"), FAKE_S3_ACCOUNT);
	assert_int_equal(object_store_check(r->st, &r->d, &r->err), -1);
	assert_int_equal(r->err.kind, ERR_NOT_FOUND);
	assert_non_null(strstr(r->err.msg, "bucket 'b-1' of account " FAKE_S3_ACCOUNT));
}

/* Rule: a path of this machine says nothing to another one. */
static void certificates_are_carried_to_another_machine_as_text(void **state)
{
	struct rig *r = *state;
	struct arena *a = arena_new();
	struct doc *given = doc_new(a, DOC_TABLE), *env = doc_new(a, DOC_TABLE);
	int fd = file_with(r, "the CAs of this machine");
	char path[64];

	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	doc_set(a, env, STR("AWS_CA_BUNDLE"), doc_new_str(a, str_from(path)));
	doc_set(a, given, STR("env"), env);
	object_credentials_carry(given, a);
	assert_true(str_is(doc_str(given, "ca_pem", STR("")), "the CAs of this machine"));
	/* Too many for a request: the other machine has to have its own. */
	given = doc_new(a, DOC_TABLE);
	doc_set(a, given, STR("env"), env);
	assert_int_equal(ftruncate(fd, 600 << 10), 0);
	object_credentials_carry(given, a);
	assert_null(doc_get(given, "ca_pem"));
	arena_free(a);
	close(fd);
}

#define store_test(fn) cmocka_unit_test_setup_teardown(fn, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		store_test(names_are_put_behind_the_url),
		store_test(credentials_for_the_store_stand_beside_those_of_another_engine),
		store_test(whoever_must_own_the_store_is_told_with_every_call),
		store_test(a_download_goes_on_behind_what_the_file_has),
		store_test(a_list_names_what_is_behind_the_url),
		store_test(what_is_there_already_is_known_by_its_bytes),
		store_test(a_file_of_several_parts_has_the_etag_of_its_parts),
		store_test(a_signed_url_names_method_time_and_object),
		store_test(only_urls_of_a_store_are_opened),
		store_test(a_refusal_is_told_with_the_bucket_and_the_code),
		store_test(the_store_itself_is_looked_at_as_its_owner),
		store_test(certificates_are_carried_to_another_machine_as_text),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
