/* Bucket, program, role and profile: what belongs to the install and not to a run. */
#include "kind_rig.h"

#include <fcntl.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/hex.h"
#include "driver/aws/policy.h"
#include "net/digest.h"

#define BASE "\"account\":\"123456789012\",\"region\":\"eu-west-1\""
#define ROLE_SPEC "{" BASE ",\"bucket\":\"bkt-1\"}"
#define IAM_TAGS(install)                                                                          \
	"<Tags><member><Key>regatta:install</Key><Value>" install "</Value></member></Tags>"
#define ROLE(tags) "<XResponse><GetRoleResult><Role>" tags "</Role></GetRoleResult></XResponse>"
#define PROFILE(tags, roles)                                                                       \
	"<XResponse><GetInstanceProfileResult><InstanceProfile>" tags "<Roles>" roles              \
	"</Roles></InstanceProfile></GetInstanceProfileResult></XResponse>"
#define OUR_ROLE "<member><RoleName>regatta-i1</RoleName></member>"
#define IAM_NO(code)                                                                               \
	409, "<ErrorResponse><Error><Code>" code "</Code><Message>m</Message></Error>"             \
	     "<RequestId>r-1</RequestId></ErrorResponse>"
#define IAM_MISSING                                                                                \
	404, "<ErrorResponse><Error><Code>NoSuchEntity</Code><Message>m</Message></Error>"         \
	     "<RequestId>r-1</RequestId></ErrorResponse>"
#define S3_NO(status, code)                                                                        \
	(status), "<Error><Code>" code                                                             \
		  "</Code><Message>m</Message><RequestId>r-1</RequestId></Error>"

static bool has_text(const struct driver_row *row, const char *part)
{
	if (!strstr(row->err.msg, part))
		print_error("'%s' has no '%s'\n", row->err.msg, part);
	return strstr(row->err.msg, part) != NULL;
}

/* ---- the role ---- */

static void the_role_is_tagged_and_gets_its_policies(void **state)
{
	struct kind_rig *r = *state;
	const struct fake_asked *made;

	r->row.spec = ROLE_SPEC;
	kind_expect(r, "CreateRole", OK("<XResponse/>"));
	kind_expect(r, "PutRolePolicy", OK("<XResponse/>"));
	kind_expect(r, "PutRolePolicy", OK("<XResponse/>"));
	assert_int_equal(iam_role_driver.create(&r->row), OUTCOME_DONE);
	assert_string_equal(r->row.id, "regatta-i1");
	made = kind_asked(r, "CreateRole", 0);
	assert_string_equal(kind_param(made, "RoleName"), "regatta-i1");
	assert_string_equal(kind_param(made, "Tags.member.1.Key"), "regatta%3Ainstall");
	assert_string_equal(kind_param(made, "Tags.member.1.Value"), "i1");
	assert_null(strstr(made->body, "regatta%3Arun"));
	assert_non_null(strstr(kind_param(made, "AssumeRolePolicyDocument"), "ec2.amazonaws.com"));
	assert_string_equal(kind_param(kind_asked(r, "PutRolePolicy", 0), "PolicyName"), "master");
	assert_string_equal(kind_param(kind_asked(r, "PutRolePolicy", 1), "PolicyName"),
			    "bucket-bkt-1");
	kind_done(r);
}

static void the_role_may_read_the_buckets_of_a_runs_inputs(void **state)
{
	struct kind_rig *r = *state;
	const char *policy;

	r->row.spec =
		"{\"account\":\"123456789012\",\"region\":\"us-east-2\",\"read\":[\"code-1\"]}";
	kind_expect(r, "CreateRole", OK("<XResponse/>"));
	kind_expect(r, "PutRolePolicy", OK("<XResponse/>"));
	kind_expect(r, "PutRolePolicy", OK("<XResponse/>"));
	assert_int_equal(iam_role_driver.create(&r->row), OUTCOME_DONE);
	assert_string_equal(kind_param(kind_asked(r, "PutRolePolicy", 1), "PolicyName"),
			    "read-code-1");
	policy = kind_param(kind_asked(r, "PutRolePolicy", 1), "PolicyDocument");
	assert_non_null(strstr(policy, "s3%3AGetObject"));
	assert_non_null(strstr(policy, "code-1%2F"));
	assert_null(strstr(policy, "PutObject"));
	kind_done(r);
}

static void the_role_may_write_results_to_the_bucket_of_a_run(void **state)
{
	struct kind_rig *r = *state;
	const char *policy;

	r->row.spec =
		"{\"account\":\"123456789012\",\"region\":\"us-east-2\",\"results\":\"kept-1\"}";
	kind_expect(r, "CreateRole", OK("<XResponse/>"));
	kind_expect(r, "PutRolePolicy", OK("<XResponse/>"));
	kind_expect(r, "PutRolePolicy", OK("<XResponse/>"));
	assert_int_equal(iam_role_driver.create(&r->row), OUTCOME_DONE);
	assert_string_equal(kind_param(kind_asked(r, "PutRolePolicy", 1), "PolicyName"),
			    "results-kept-1");
	policy = kind_param(kind_asked(r, "PutRolePolicy", 1), "PolicyDocument");
	assert_non_null(strstr(policy, "s3%3APutObject%22"));
	assert_non_null(strstr(policy, "s3%3AListBucket%22"));
	assert_non_null(strstr(policy, "kept-1%2F"));
	assert_null(strstr(policy, "Delete"));
	kind_done(r);
	kind_expect(r, "CreateRole", OK("<XResponse/>"));
	kind_expect(r, "PutRolePolicy", OK("<XResponse/>"));
	kind_expect(r, "PutRolePolicy", IAM_NO("AccessDenied"));
	assert_int_equal(iam_role_driver.create(&r->row), OUTCOME_REFUSED);
	kind_done(r);
}

static void the_role_may_send_metrics_to_the_namespace_of_a_run(void **state)
{
	struct kind_rig *r = *state;
	const char *policy;

	r->row.spec =
		"{\"account\":\"123456789012\",\"region\":\"us-east-2\",\"cloudwatch\":\"A/b#c\"}";
	kind_expect(r, "CreateRole", OK("<XResponse/>"));
	kind_expect(r, "PutRolePolicy", OK("<XResponse/>"));
	kind_expect(r, "PutRolePolicy", OK("<XResponse/>"));
	assert_int_equal(iam_role_driver.create(&r->row), OUTCOME_DONE);
	policy = kind_param(kind_asked(r, "PutRolePolicy", 0), "PolicyDocument");
	assert_null(strstr(policy, "cloudwatch"));
	assert_string_equal(kind_param(kind_asked(r, "PutRolePolicy", 1), "PolicyName"),
			    "metrics-A%3Db%2Bc");
	policy = kind_param(kind_asked(r, "PutRolePolicy", 1), "PolicyDocument");
	assert_non_null(strstr(policy, "cloudwatch%3APutMetricData"));
	assert_non_null(strstr(policy, "%22cloudwatch%3Anamespace%22%3A%22A%2Fb%23c%22"));
	kind_done(r);
	kind_expect(r, "CreateRole", OK("<XResponse/>"));
	kind_expect(r, "PutRolePolicy", OK("<XResponse/>"));
	kind_expect(r, "PutRolePolicy", IAM_NO("AccessDenied"));
	assert_int_equal(iam_role_driver.create(&r->row), OUTCOME_REFUSED);
	kind_done(r);
}

static void a_role_that_is_there_is_ours_or_refused(void **state)
{
	struct kind_rig *r = *state;

	r->row.spec = ROLE_SPEC;
	kind_expect(r, "CreateRole", IAM_NO("EntityAlreadyExists"));
	kind_expect(r, "GetRole", OK(ROLE(IAM_TAGS("i1"))));
	kind_expect(r, "PutRolePolicy", OK("<XResponse/>"));
	kind_expect(r, "PutRolePolicy", OK("<XResponse/>"));
	assert_int_equal(iam_role_driver.create(&r->row), OUTCOME_DONE);
	kind_expect(r, "CreateRole", IAM_NO("EntityAlreadyExists"));
	kind_expect(r, "GetRole", OK(ROLE(IAM_TAGS("i2"))));
	assert_int_equal(iam_role_driver.create(&r->row), OUTCOME_REFUSED);
	assert_true(has_text(&r->row, "the role regatta-i1 exists without the tag"));
	kind_expect(r, "CreateRole", IAM_NO("EntityAlreadyExists"));
	kind_expect(r, "GetRole", IAM_MISSING);
	assert_int_equal(iam_role_driver.create(&r->row), OUTCOME_UNSURE);
	kind_expect(r, "CreateRole", IAM_NO("AccessDenied"));
	assert_int_equal(iam_role_driver.create(&r->row), OUTCOME_REFUSED);
	assert_true(has_text(&r->row, "iam:CreateRole"));
	kind_expect(r, "CreateRole", OK("<XResponse/>"));
	kind_expect(r, "PutRolePolicy", IAM_NO("AccessDenied"));
	assert_int_equal(iam_role_driver.create(&r->row), OUTCOME_REFUSED);
	kind_expect(r, "CreateRole", OK("<XResponse/>"));
	kind_expect(r, "PutRolePolicy", IAM_MISSING);
	assert_int_equal(iam_role_driver.create(&r->row), OUTCOME_UNSURE);
	kind_done(r);
}

static void a_role_is_found_and_deleted_with_its_policies(void **state)
{
	struct kind_rig *r = *state;

	r->row.spec = ROLE_SPEC;
	kind_expect(r, "GetRole", OK(ROLE(IAM_TAGS("i1"))));
	assert_int_equal(iam_role_driver.find(&r->row), OUTCOME_DONE);
	kind_expect(r, "GetRole", IAM_MISSING);
	assert_int_equal(iam_role_driver.find(&r->row), OUTCOME_ABSENT);
	kind_expect(r, "GetRole", OK(ROLE("")));
	assert_int_equal(iam_role_driver.observe(&r->row), OUTCOME_ABSENT);
	kind_expect(r, "GetRole", OK(ROLE(IAM_TAGS("i1"))));
	kind_expect(
		r, "ListRolePolicies",
		OK("<XResponse><ListRolePoliciesResult><PolicyNames><member>master</member>"
		   "<member>bucket-bkt-1</member></PolicyNames></ListRolePoliciesResult></XResponse>"));
	kind_expect(r, "DeleteRolePolicy", OK("<XResponse/>"));
	kind_expect(r, "DeleteRolePolicy", OK("<XResponse/>"));
	kind_expect(r, "DeleteRole", OK("<XResponse/>"));
	assert_int_equal(iam_role_driver.destroy(&r->row), OUTCOME_DONE);
	assert_string_equal(kind_param(kind_asked(r, "DeleteRolePolicy", 1), "PolicyName"),
			    "bucket-bkt-1");
	kind_expect(r, "GetRole", OK(ROLE(IAM_TAGS("i1"))));
	kind_expect(r, "ListRolePolicies", OK("<XResponse/>"));
	kind_expect(r, "DeleteRole", IAM_NO("DeleteConflict"));
	assert_int_equal(iam_role_driver.destroy(&r->row), OUTCOME_HELD);
	kind_expect(r, "GetRole", OK(ROLE(IAM_TAGS("i2"))));
	assert_int_equal(iam_role_driver.destroy(&r->row), OUTCOME_HELD);
	kind_done(r);
}

/* ---- the profile ---- */

static void the_profile_gets_the_role(void **state)
{
	struct kind_rig *r = *state;

	r->row.spec = "{" BASE "}";
	kind_expect(r, "CreateInstanceProfile", OK("<XResponse/>"));
	kind_expect(r, "AddRoleToInstanceProfile", OK("<XResponse/>"));
	assert_int_equal(iam_profile_driver.create(&r->row), OUTCOME_DONE);
	assert_string_equal(r->row.id, "regatta-i1");
	assert_string_equal(kind_param(kind_asked(r, "AddRoleToInstanceProfile", 0), "RoleName"),
			    "regatta-i1");
	kind_expect(r, "CreateInstanceProfile", IAM_NO("EntityAlreadyExists"));
	kind_expect(r, "GetInstanceProfile", OK(PROFILE(IAM_TAGS("i1"), OUR_ROLE)));
	assert_int_equal(iam_profile_driver.create(&r->row), OUTCOME_DONE);
	kind_expect(r, "CreateInstanceProfile", IAM_NO("EntityAlreadyExists"));
	kind_expect(r, "GetInstanceProfile", OK(PROFILE(IAM_TAGS("i1"), "")));
	kind_expect(r, "AddRoleToInstanceProfile", OK("<XResponse/>"));
	assert_int_equal(iam_profile_driver.create(&r->row), OUTCOME_DONE);
	kind_done(r);
}

static void a_profile_of_somebody_else_is_not_used(void **state)
{
	struct kind_rig *r = *state;

	r->row.spec = "{" BASE "}";
	kind_expect(r, "CreateInstanceProfile", IAM_NO("EntityAlreadyExists"));
	kind_expect(r, "GetInstanceProfile", OK(PROFILE("", OUR_ROLE)));
	assert_int_equal(iam_profile_driver.create(&r->row), OUTCOME_REFUSED);
	kind_expect(r, "CreateInstanceProfile", IAM_NO("EntityAlreadyExists"));
	kind_expect(r, "GetInstanceProfile",
		    OK(PROFILE(IAM_TAGS("i1"), "<member><RoleName>admin</RoleName></member>")));
	assert_int_equal(iam_profile_driver.create(&r->row), OUTCOME_REFUSED);
	assert_true(has_text(&r->row, "with another role"));
	kind_expect(r, "CreateInstanceProfile", IAM_NO("AccessDenied"));
	assert_int_equal(iam_profile_driver.create(&r->row), OUTCOME_REFUSED);
	kind_expect(r, "CreateInstanceProfile", IAM_NO("EntityAlreadyExists"));
	kind_expect(r, "GetInstanceProfile", IAM_MISSING);
	assert_int_equal(iam_profile_driver.create(&r->row), OUTCOME_UNSURE);
	kind_expect(r, "CreateInstanceProfile", OK("<XResponse/>"));
	kind_expect(r, "AddRoleToInstanceProfile", IAM_MISSING);
	assert_int_equal(iam_profile_driver.create(&r->row), OUTCOME_UNSURE);
	kind_done(r);
}

static void a_profile_is_seen_and_deleted(void **state)
{
	struct kind_rig *r = *state;

	r->row.spec = "{" BASE "}";
	kind_expect(r, "GetInstanceProfile", OK(PROFILE(IAM_TAGS("i1"), OUR_ROLE)));
	assert_int_equal(iam_profile_driver.observe(&r->row), OUTCOME_DONE);
	kind_expect(r, "GetInstanceProfile", OK(PROFILE(IAM_TAGS("i1"), "")));
	assert_int_equal(iam_profile_driver.observe(&r->row), OUTCOME_BROKEN);
	kind_expect(r, "GetInstanceProfile", IAM_MISSING);
	assert_int_equal(iam_profile_driver.find(&r->row), OUTCOME_ABSENT);
	kind_expect(r, "GetInstanceProfile", OK(PROFILE(IAM_TAGS("i1"), OUR_ROLE)));
	kind_expect(r, "RemoveRoleFromInstanceProfile", OK("<XResponse/>"));
	kind_expect(r, "DeleteInstanceProfile", OK("<XResponse/>"));
	assert_int_equal(iam_profile_driver.destroy(&r->row), OUTCOME_DONE);
	kind_expect(r, "GetInstanceProfile", OK(PROFILE(IAM_TAGS("i1"), "")));
	kind_expect(r, "DeleteInstanceProfile", IAM_NO("DeleteConflict"));
	assert_int_equal(iam_profile_driver.destroy(&r->row), OUTCOME_HELD);
	kind_expect(r, "GetInstanceProfile", OK(PROFILE("", "")));
	assert_int_equal(iam_profile_driver.destroy(&r->row), OUTCOME_HELD);
	kind_done(r);
}

/* ---- the bucket ---- */

#define BUCKET "{" BASE ",\"bucket\":\"bkt-1\",\"given\":false}"
#define GIVEN "{" BASE ",\"bucket\":\"bkt-1\",\"given\":true}"

static void a_bucket_is_closed_encrypted_and_tagged_last(void **state)
{
	static const char *const calls[] = {"HEAD /bkt-1", "PUT /bkt-1",
					    "PUT /bkt-1?publicAccessBlock", "PUT /bkt-1?encryption",
					    "PUT /bkt-1?tagging"};
	struct kind_rig *r = *state;

	r->row.spec = BUCKET;
	kind_expect(r, "HEAD /bkt-1", 404, "");
	for (int i = 0; i < 4; i++)
		kind_expect(r, "PUT /bkt-1", OK(""));
	assert_int_equal(s3_bucket_driver.create(&r->row), OUTCOME_DONE);
	assert_string_equal(r->row.id, "bkt-1");
	for (size_t i = 0; i < COUNT(calls); i++)
		assert_true(fake_is(&r->fake.asked[i + 1], calls[i]));
	assert_non_null(strstr(r->fake.asked[5].body, "<Key>regatta:install</Key>"));
	assert_null(strstr(r->fake.asked[5].body, "regatta:run"));
	for (int i = 3; i < 6; i++)
		assert_string_equal(fake_header(&r->fake.asked[i], "x-amz-expected-bucket-owner"),
				    "123456789012");
	kind_done(r);
}

static void a_bucket_that_is_there_is_used_as_it_is(void **state)
{
	struct kind_rig *r = *state;

	r->row.spec = GIVEN;
	kind_expect(r, "HEAD /bkt-1", OK(""));
	assert_int_equal(s3_bucket_driver.create(&r->row), OUTCOME_DONE);
	r->row.spec = BUCKET;
	kind_expect(r, "HEAD /bkt-1", OK(""));
	kind_expect(r, "GET /bkt-1?tagging",
		    OK("<Tagging><TagSet><Tag><Key>regatta:install</Key><Value>i9</Value></Tag>"
		       "</TagSet></Tagging>"));
	assert_int_equal(s3_bucket_driver.create(&r->row), OUTCOME_DONE);
	/* an earlier create was cut off before the tags */
	kind_expect(r, "HEAD /bkt-1", OK(""));
	kind_expect(r, "GET /bkt-1?tagging", S3_NO(404, "NoSuchTagSet"));
	for (int i = 0; i < 3; i++)
		kind_expect(r, "PUT /bkt-1", OK(""));
	assert_int_equal(s3_bucket_driver.create(&r->row), OUTCOME_DONE);
	kind_done(r);
}

static void a_bucket_that_is_not_to_be_had_is_refused_in_one_line(void **state)
{
	struct kind_rig *r = *state;

	r->row.spec = BUCKET;
	kind_expect(r, "HEAD /bkt-1", 403, "");
	assert_int_equal(s3_bucket_driver.create(&r->row), OUTCOME_REFUSED);
	assert_int_equal(r->row.err.kind, ERR_DENIED);
	assert_true(has_text(&r->row, "not yours, or no permission"));
	r->row.spec = GIVEN;
	kind_expect(r, "HEAD /bkt-1", 404, "");
	assert_int_equal(s3_bucket_driver.create(&r->row), OUTCOME_REFUSED);
	assert_true(has_text(&r->row, "there is no bucket 'bkt-1': make it"));
	r->row.spec = BUCKET;
	kind_expect(r, "HEAD /bkt-1", 404, "");
	kind_expect(r, "PUT /bkt-1", S3_NO(409, "BucketAlreadyExists"));
	assert_int_equal(s3_bucket_driver.create(&r->row), OUTCOME_REFUSED);
	assert_true(has_text(&r->row, "the name 'bkt-1' is taken"));
	kind_done(r);
}

static void a_bucket_is_never_deleted(void **state)
{
	struct kind_rig *r = *state;

	r->row.spec = BUCKET;
	kind_expect(r, "HEAD /bkt-1", OK(""));
	assert_int_equal(s3_bucket_driver.destroy(&r->row), OUTCOME_HELD);
	assert_true(has_text(&r->row, "is not deleted"));
	kind_expect(r, "HEAD /bkt-1", 404, "");
	assert_int_equal(s3_bucket_driver.destroy(&r->row), OUTCOME_ABSENT);
	kind_expect(r, "HEAD /bkt-1", 404, "");
	assert_int_equal(s3_bucket_driver.find(&r->row), OUTCOME_ABSENT);
	kind_expect(r, "HEAD /bkt-1", 403, "");
	assert_int_equal(s3_bucket_driver.observe(&r->row), OUTCOME_UNSURE);
	kind_done(r);
}

/* ---- the program ---- */

static char *object_spec(bool right)
{
	uint8_t digest[SHA256_BYTES];
	char hex[2 * SHA256_BYTES + 1];
	uint64_t size;
	int fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);

	assert_int_equal(sha256_fd(fd, digest, &size, NULL), 0);
	close(fd);
	hex_encode(digest, sizeof(digest), hex);
	hex[0] = right ? hex[0] : 'x';
	return xasprintf("{" BASE ",\"bucket\":\"bkt-1\",\"key\":\"bin/p\",\"sha256\":\"%s\"}",
			 hex);
}

static void the_program_is_uploaded_if_it_is_not_there(void **state)
{
	struct kind_rig *r = *state;
	char *spec = object_spec(true);

	r->row.spec = spec;
	kind_expect(r, "HEAD /bkt-1/bin/p", OK(""));
	assert_int_equal(s3_object_driver.create(&r->row), OUTCOME_DONE);
	assert_string_equal(r->row.id, "bin/p");
	kind_expect(r, "HEAD /bkt-1/bin/p", 403, "");
	assert_int_equal(s3_object_driver.create(&r->row), OUTCOME_REFUSED);
	assert_true(has_text(&r->row, "AccessDenied"));
	kind_expect(r, "HEAD /bkt-1/bin/p", 404, "");
	assert_int_equal(s3_object_driver.find(&r->row), OUTCOME_ABSENT);
	kind_expect(r, "DELETE /bkt-1/bin/p", 204, "");
	assert_int_equal(s3_object_driver.destroy(&r->row), OUTCOME_DONE);
	kind_expect(r, "DELETE /bkt-1/bin/p", S3_NO(403, "AccessDenied"));
	assert_int_equal(s3_object_driver.destroy(&r->row), OUTCOME_HELD);
	kind_done(r);
	free(spec);
}

static void another_program_is_not_uploaded(void **state)
{
	struct kind_rig *r = *state;
	char *spec = object_spec(false);

	r->row.spec = spec;
	kind_expect(r, "HEAD /bkt-1/bin/p", 404, "");
	assert_int_equal(s3_object_driver.create(&r->row), OUTCOME_REFUSED);
	assert_true(has_text(&r->row, "another version of regatta"));
	kind_done(r);
	free(spec);
}

static void an_object_of_another_size_is_not_the_program(void **state)
{
	struct kind_rig *r = *state;

	r->row.spec =
		"{" BASE ",\"bucket\":\"bkt-1\",\"key\":\"bin/p\",\"sha256\":\"y\",\"size\":7}";
	kind_expect(r, "HEAD /bkt-1/bin/p", OK("12345"));
	assert_int_equal(s3_object_driver.find(&r->row), OUTCOME_ABSENT);
	kind_done(r);
}

/* ---- the policy ---- */

static void no_action_of_the_policy_is_everything(void **state)
{
	CLEANUP(buf_release) struct buf out = {0};

	(void)state;
	buf_init(&out, 65536);
	policy_write(&(struct policy_input){.account = "1", .bucket = "b"}, &out);
	assert_null(strstr(out.p, "\"*\"],\"Resource"));
	assert_null(strstr(out.p, "\"ec2:*\""));
	assert_null(strstr(out.p, "\"s3:*\""));
	assert_null(strstr(out.p, "\"iam:*\""));
	assert_non_null(strstr(out.p, "ec2:RunInstances"));
	assert_non_null(strstr(out.p, "iam:PassRole"));
	assert_non_null(strstr(out.p, "arn:aws:iam::1:role/regatta-*"));
	assert_non_null(
		strstr(out.p, "{\"StringLike\":{\"aws:RequestTag/regatta:install\":\"*\"}}"));
}

static void a_masters_role_is_bound_to_its_install(void **state)
{
	CLEANUP(buf_release) struct buf out = {0}, bucket = {0};

	(void)state;
	buf_init(&out, 65536);
	buf_init(&bucket, 65536);
	policy_write(&(struct policy_input){.part = POLICY_MASTER, .account = "1", .install = "i1"},
		     &out);
	const char *change = strstr(out.p, "\"ChangeOurs\"");
	const char *bound =
		strstr(change, "{\"StringEquals\":{\"aws:ResourceTag/regatta:install\":\"i1\"}}");

	assert_non_null(bound);
	assert_true(bound < strstr(change, "\"Sid\""));
	assert_null(strstr(out.p, "iam:"));
	assert_null(strstr(out.p, "s3:"));
	policy_write(&(struct policy_input){.part = POLICY_BUCKET, .bucket = "bkt-1"}, &bucket);
	assert_non_null(strstr(bucket.p, "arn:aws:s3:::bkt-1/*"));
	assert_null(strstr(bucket.p, "ec2:"));
	assert_null(strstr(bucket.p, "s3:CreateBucket"));
	assert_true(out.n + bucket.n < 10240);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		kind_test(the_role_is_tagged_and_gets_its_policies),
		kind_test(the_role_may_read_the_buckets_of_a_runs_inputs),
		kind_test(the_role_may_write_results_to_the_bucket_of_a_run),
		kind_test(the_role_may_send_metrics_to_the_namespace_of_a_run),
		kind_test(a_role_that_is_there_is_ours_or_refused),
		kind_test(a_role_is_found_and_deleted_with_its_policies),
		kind_test(the_profile_gets_the_role),
		kind_test(a_profile_of_somebody_else_is_not_used),
		kind_test(a_profile_is_seen_and_deleted),
		kind_test(a_bucket_is_closed_encrypted_and_tagged_last),
		kind_test(a_bucket_that_is_there_is_used_as_it_is),
		kind_test(a_bucket_that_is_not_to_be_had_is_refused_in_one_line),
		kind_test(a_bucket_is_never_deleted),
		kind_test(the_program_is_uploaded_if_it_is_not_there),
		kind_test(another_program_is_not_uploaded),
		kind_test(an_object_of_another_size_is_not_the_program),
		cmocka_unit_test(no_action_of_the_policy_is_everything),
		cmocka_unit_test(a_masters_role_is_bound_to_its_install),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
