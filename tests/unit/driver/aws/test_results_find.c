/* Copies of runs, found where the engines leave them. */
#include "unit.h"

#include <string.h>

#include "base/arena.h"
#include "base/deadline.h"
#include "base/err.h"
#include "driver/aws/aws_session.h"
#include "driver/results.h"
#include "fake_s3.h"

#define BUCKET "regatta-" FAKE_S3_ACCOUNT "-eu-west-1"

struct rig {
	struct fake_s3 s3;
	struct arena *a;
	struct deadline d;
	struct results_found found;
	struct err err;
};

static const char *const variables[] = {
	"AWS_REGION",	     "AWS_DEFAULT_REGION",	   "AWS_PROFILE",	"AWS_ENDPOINT_URL",
	"AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY",	   "AWS_SESSION_TOKEN", "http_proxy",
	"AWS_CONFIG_FILE",   "AWS_SHARED_CREDENTIALS_FILE"};

static int setup(void **state)
{
	struct rig *r = xcalloc(1, sizeof(*r));

	fake_s3_start(&r->s3);
	r->a = arena_new();
	r->d = deadline_in(20000, NULL);
	for (size_t i = 0; i < COUNT(variables); i++)
		unsetenv(variables[i]);
	setenv("AWS_CONFIG_FILE", "/nowhere", 1);
	setenv("AWS_SHARED_CREDENTIALS_FILE", "/nowhere", 1);
	setenv("AWS_ENDPOINT_URL", r->s3.http.url, 1);
	setenv("AWS_ACCESS_KEY_ID", "AKIDTEST", 1);
	setenv("AWS_SECRET_ACCESS_KEY", "s", 1);
	setenv("AWS_REGION", "eu-west-1", 1);
	*state = r;
	return 0;
}

static int teardown(void **state)
{
	struct rig *r = *state;

	aws_sessions_drop();
	fake_s3_stop(&r->s3);
	arena_free(r->a);
	free(r);
	return 0;
}

static void put(struct rig *r, const char *key)
{
	struct fake_s3_object *o = &r->s3.objects[r->s3.n++];

	*o = (struct fake_s3_object){
		.name = xasprintf(BUCKET "/runs/%s", key),
		.body = xstrdup("{}"),
		.tags = xstrdup(""),
		.n = 2,
	};
}

static int find(struct rig *r, const char *word)
{
	return results_find(word, &r->d, r->a, &r->found, &r->err);
}

static void a_run_is_found_by_its_id_or_the_beginning_of_it(void **state)
{
	struct rig *r = *state;

	put(r, "job-abcd/index.json");
	put(r, "job-abcd/summary.json");
	put(r, "job-efgh/index.json");
	put(r, "job-abcdx/summary.json");
	assert_int_equal(find(r, "job-abcd"), 0);
	assert_string_equal(r->found.url, "s3://" BUCKET "/runs/");
	assert_string_equal(r->found.run, "job-abcd");
	assert_non_null(strstr(r->found.credentials, "\"access_key\":\"AKIDTEST\""));
	assert_int_equal(find(r, "job-e"), 0);
	assert_string_equal(r->found.run, "job-efgh");
	assert_int_equal(find(r, "job"), -1);
	assert_int_equal(r->err.kind, ERR_CONFLICT);
	assert_non_null(strstr(r->err.msg, "2 runs in s3://" BUCKET "/runs/ begin with 'job'"));
}

static void a_copy_that_is_not_complete_is_not_found(void **state)
{
	struct rig *r = *state;

	put(r, "job-abcd/summary.json");
	put(r, "job-abcd/outputs/index.json");
	assert_int_equal(find(r, "job-abcd"), 0);
	assert_null(r->found.run);
	assert_string_equal(r->found.url, "s3://" BUCKET "/runs/");
}

static void without_a_region_nobody_is_asked(void **state)
{
	struct rig *r = *state;

	unsetenv("AWS_REGION");
	/* Where an instance would tell its own. */
	setenv("AWS_EC2_METADATA_SERVICE_ENDPOINT", r->s3.http.url, 1);
	assert_int_equal(find(r, "job-abcd"), 0);
	assert_null(r->found.url);
	assert_int_equal(r->s3.http.n, 0);
	unsetenv("AWS_EC2_METADATA_SERVICE_ENDPOINT");
}

static void a_bucket_that_nobody_has_made_has_no_runs(void **state)
{
	struct rig *r = *state;

	r->s3.refuse = "GET /" BUCKET;
	r->s3.refuse_status = 404;
	r->s3.refuse_body = "<Error><Code>NoSuchBucket</Code><Message>no</Message></Error>";
	r->s3.refusals = 1;
	assert_int_equal(find(r, "job-abcd"), 0);
	assert_non_null(r->found.url);
	assert_null(r->found.run);
}

static void a_refusal_is_told_with_its_code_and_request(void **state)
{
	struct rig *r = *state;

	r->s3.refuse = "GET /" BUCKET;
	r->s3.refuse_status = 403;
	r->s3.refuse_body = "<Error><Code>AccessDenied</Code><Message>no</Message></Error>";
	r->s3.refusals = 1;
	assert_int_equal(find(r, "job-abcd"), -1);
	assert_int_equal(r->err.kind, ERR_DENIED);
	assert_non_null(strstr(r->err.msg, "bucket '" BUCKET "' of account "));
	assert_non_null(strstr(r->err.msg, "AccessDenied"));
	assert_non_null(strstr(r->err.msg, "request id"));
}

static void credentials_that_are_missing_are_told(void **state)
{
	struct rig *r = *state;

	unsetenv("AWS_ACCESS_KEY_ID");
	unsetenv("AWS_SECRET_ACCESS_KEY");
	setenv("AWS_EC2_METADATA_DISABLED", "true", 1);
	assert_int_equal(find(r, "job-abcd"), -1);
	assert_non_null(strstr(r->err.msg, "aws.ec2: "));
	unsetenv("AWS_EC2_METADATA_DISABLED");
}

#define find_test(fn) cmocka_unit_test_setup_teardown(fn, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		find_test(a_run_is_found_by_its_id_or_the_beginning_of_it),
		find_test(a_copy_that_is_not_complete_is_not_found),
		find_test(without_a_region_nobody_is_asked),
		find_test(a_bucket_that_nobody_has_made_has_no_runs),
		find_test(a_refusal_is_told_with_its_code_and_request),
		find_test(credentials_that_are_missing_are_told),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
