/* Who acts: each place where credentials are looked for, their order, and their renewal. */
#include "rig.h"

#include <stdatomic.h>
#include <sys/stat.h>

#include "base/buf.h"
#include "base/hex.h"
#include "net/digest.h"

#define STS_ANSWER(action, key, expires)                                                           \
	"<" action "Response><" action "Result><Credentials><AccessKeyId>" key                     \
	"</AccessKeyId><SecretAccessKey>s2</SecretAccessKey><SessionToken>t2</SessionToken>"       \
	"<Expiration>" expires "</Expiration></Credentials></" action "Result></" action           \
	"Response>"
#define FAR "2099-01-01T00:00:00Z"
#define DOCUMENT(key, expires)                                                                     \
	"{\"Code\":\"Success\",\"AccessKeyId\":\"" key "\",\"SecretAccessKey\":\"s3\","            \
	"\"Token\":\"t3\",\"Expiration\":\"" expires "\"}"

/* What the world has, beside AWS itself. */
struct world {
	bool no_role, no_metadata, sts_denies;
	const char *instance_document, *container_document;
	char asked[2000]; /* "imds-token imds-role ... " */
};

static void note(struct world *w, const char *what)
{
	size_t n = strlen(w->asked);

	snprintf(w->asked + n, sizeof(w->asked) - n, "%s ", what);
}

static bool metadata(struct world *w, int fd, const struct fake_asked *a)
{
	const char *token = fake_header(a, "X-aws-ec2-metadata-token");

	if (fake_is(a, "PUT /latest/api/token ")) {
		note(w, "imds-token");
		assert_non_null(fake_header(a, "X-aws-ec2-metadata-token-ttl-seconds"));
		fake_say(fd, w->no_metadata ? 403 : 200, "", "imds-secret");
	} else if (!token || strcmp(token, "imds-secret") != 0) {
		fake_say(fd, 401, "", "");
	} else if (fake_is(a, "GET /latest/meta-data/placement/region ")) {
		fake_say(fd, 200, "", "ap-south-1\n");
	} else if (fake_is(a, "GET /latest/meta-data/iam/security-credentials/ ")) {
		note(w, "imds-role");
		fake_say(fd, w->no_role ? 404 : 200, "", "the-role\n");
	} else if (fake_is(a, "GET /latest/meta-data/iam/security-credentials/the-role ")) {
		note(w, "imds-keys");
		fake_say(fd, 200, "", w->instance_document);
	} else {
		fake_say(fd, 404, "", "");
	}
	return true;
}

static bool serve(struct fake_http *f, int fd, int nth, const struct fake_asked *a)
{
	struct world *w = f->ctx;

	(void)nth;
	if (strstr(a->head, " /latest/"))
		return metadata(w, fd, a);
	if (fake_is(a, "GET /container?x=1 ")) {
		note(w, "container");
		const char *auth = fake_header(a, "Authorization");

		fake_say(fd, auth && strcmp(auth, "Bearer z") == 0 ? 200 : 401, "",
			 w->container_document);
	} else if (fake_is(a, "GET /federation/credentials?role_name=Dev%20Role&account_id=111 ")) {
		note(w, "sso");
		assert_string_equal(fake_header(a, "x-amz-sso_bearer_token"), "sso-token");
		assert_null(fake_header(a, "Authorization"));
		fake_say(fd, 200, "",
			 "{\"roleCredentials\":{\"accessKeyId\":\"ASSO\",\"secretAccessKey\":\"s\","
			 "\"sessionToken\":\"t\",\"expiration\":4070908800000}}");
	} else if (strstr(a->body, "Action=AssumeRoleWithWebIdentity")) {
		note(w, "web");
		assert_null(fake_header(a, "Authorization"));
		fake_say(fd, 200, "", STS_ANSWER("AssumeRoleWithWebIdentity", "AWEB", FAR));
	} else if (strstr(a->body, "Action=AssumeRole")) {
		note(w, "assume");
		if (w->sts_denies)
			fake_say(
				fd, 403, "",
				"<ErrorResponse><Error><Code>AccessDenied</Code><Message>User x is not "
				"authorized to perform: sts:AssumeRole</Message></Error>"
				"<RequestId>q</RequestId></ErrorResponse>");
		else
			fake_say(fd, 200, "", STS_ANSWER("AssumeRole", "AROLE", FAR));
	} else {
		fake_say(fd, 200, "", "<XResponse/>");
	}
	return true;
}

static struct world *world_of(struct rig *r)
{
	static struct world w;

	w = (struct world){.instance_document = DOCUMENT("AINST", FAR),
			   .container_document = DOCUMENT("ACONT", FAR)};
	r->fake.ctx = &w;
	r->fake.answer = serve;
	return &w;
}

static void without_keys(struct rig *r)
{
	rig_set(r, "AWS_ACCESS_KEY_ID", NULL);
	rig_set(r, "AWS_SECRET_ACCESS_KEY", NULL);
}

/* The access key that a call is signed with, and where it came from. */
static void expect_key(struct rig *r, const char *key, const char *source)
{
	struct aws_answer ans = {0};
	struct buf text;
	char mark[80];

	if (rig_ask(r, "ec2", "DescribeVpcs", &ans) < 0)
		fail_msg("%s", r->err.msg);
	snprintf(mark, sizeof(mark), "Credential=%s/", key);
	if (!strstr(fake_header(&r->fake.asked[r->fake.n - 1], "Authorization"), mark))
		fail_msg("%s", fake_header(&r->fake.asked[r->fake.n - 1], "Authorization"));
	buf_init(&text, 1000);
	assert_int_equal(aws_credentials_source(r->s, &r->d, &text, &r->err), 0);
	assert_string_equal(text.p, source);
	buf_release(&text);
	aws_answer_release(&ans);
}

static void expect_trouble(struct rig *r, enum err_kind kind, const char *why)
{
	struct aws_answer ans = {0};

	assert_int_equal(rig_ask(r, "ec2", "DescribeVpcs", &ans), -1);
	assert_int_equal(r->err.kind, kind);
	if (!strstr(r->err.msg, why))
		fail_msg("%s", r->err.msg);
	assert_true(ans.refused);
	aws_answer_release(&ans);
}

static void explicit_ones_beat_the_environment(void **state)
{
	struct rig *r = *state;

	world_of(r);
	assert_int_equal(rig_try_open(r, (struct aws_config){.access_key = "AGIVEN",
							     .secret_key = "x",
							     .session_token = "y"}),
			 0);
	expect_key(r, "AGIVEN", "those given");
	assert_string_equal(fake_header(&r->fake.asked[0], "X-Amz-Security-Token"), "y");
	assert_int_equal(rig_try_open(r, (struct aws_config){.access_key = "AGIVEN"}), 0);
	expect_trouble(r, ERR_INVALID, "without its secret key");
}

static void the_environment_is_the_callers(void **state)
{
	struct rig *r = *state;

	world_of(r);
	setenv("AWS_ACCESS_KEY_ID", "AMASTER", 1);
	setenv("AWS_SECRET_ACCESS_KEY", "m", 1);
	rig_open(r);
	expect_key(r, "AKIDTEST", "the environment");
	without_keys(r);
	rig_set(r, "AWS_EC2_METADATA_DISABLED", "true");
	rig_open(r);
	expect_trouble(r, ERR_DENIED, "no AWS credentials");
	rig_set(r, "AWS_ACCESS_KEY_ID", "AHALF");
	rig_open(r);
	expect_trouble(r, ERR_DENIED, "but not AWS_SECRET_ACCESS_KEY");
	unsetenv("AWS_ACCESS_KEY_ID");
	unsetenv("AWS_SECRET_ACCESS_KEY");
}

static void profiles_have_keys(void **state)
{
	struct rig *r = *state;

	world_of(r);
	rig_write(r, ".aws/credentials",
		  "[default]\naws_access_key_id = ADEF\naws_secret_access_key=s\n"
		  "[x y]\naws_access_key_id = AX # why\n  aws_secret_access_key = s\n"
		  "[half]\naws_access_key_id = AHALF\n");
	rig_write(r, ".aws/config", "[default]\naws_access_key_id = AOTHER\nregion = eu-north-1\n");
	/* A profile that was asked for beats the environment; AWS_PROFILE does not. */
	assert_int_equal(rig_try_open(r, (struct aws_config){.profile = "x y"}), 0);
	expect_key(r, "AX", "the profile 'x y'");
	rig_set(r, "AWS_PROFILE", "x y");
	rig_open(r);
	expect_key(r, "AKIDTEST", "the environment");
	without_keys(r);
	rig_open(r);
	expect_key(r, "AX", "the profile 'x y'");
	rig_set(r, "AWS_PROFILE", NULL);
	rig_open(r);
	expect_key(r, "ADEF", "the profile 'default'");
	assert_int_equal(rig_try_open(r, (struct aws_config){.profile = "half"}), 0);
	expect_trouble(r, ERR_DENIED, "no aws_secret_access_key");
	assert_int_equal(rig_try_open(r, (struct aws_config){.profile = "none"}), -1);
	assert_int_equal(r->err.kind, ERR_INVALID);
}

static void roles_are_assumed_with_the_source_of_a_profile(void **state)
{
	struct rig *r = *state;
	struct world *w = world_of(r);

	without_keys(r);
	rig_write(r, ".aws/config",
		  "[profile base]\naws_access_key_id = ABASE\naws_secret_access_key = s\n"
		  "[profile one]\nrole_arn = arn:one\nsource_profile = base\nexternal_id = e&1\n"
		  "role_session_name = me\nduration_seconds = 900\n"
		  "[profile two]\nrole_arn = arn:two\nsource_profile = one\n"
		  "[profile self]\nrole_arn = arn:self\nsource_profile = self\n"
		  "aws_access_key_id = ASELF\naws_secret_access_key = s\n"
		  "[profile a]\nrole_arn = arn:a\nsource_profile = b\n"
		  "[profile b]\nrole_arn = arn:b\nsource_profile = a\n"
		  "[profile lost]\nrole_arn = arn:l\nsource_profile = nowhere\n"
		  "[profile mfa]\nrole_arn = arn:m\nsource_profile = base\nmfa_serial = x\n"
		  "[profile inst]\nrole_arn = arn:i\ncredential_source = Ec2InstanceMetadata\n"
		  "[profile odd]\nrole_arn = arn:o\ncredential_source = Elsewhere\n");
	assert_int_equal(rig_try_open(r, (struct aws_config){.profile = "one"}), 0);
	expect_key(r, "AROLE", "the role arn:one");
	assert_non_null(strstr(fake_header(&r->fake.asked[0], "Authorization"), "ABASE/"));
	assert_string_equal(r->fake.asked[0].body,
			    "Action=AssumeRole&Version=2011-06-15&RoleArn=arn%3Aone"
			    "&RoleSessionName=me&ExternalId=e%261&DurationSeconds=900");
	assert_string_equal(fake_header(&r->fake.asked[1], "X-Amz-Security-Token"), "t2");
	assert_int_equal(rig_try_open(r, (struct aws_config){.profile = "two"}), 0);
	expect_key(r, "AROLE", "the role arn:two");
	assert_string_equal(w->asked, "assume assume assume ");
	assert_int_equal(rig_try_open(r, (struct aws_config){.profile = "self"}), 0);
	expect_key(r, "AROLE", "the role arn:self");
	assert_int_equal(rig_try_open(r, (struct aws_config){.profile = "inst"}), 0);
	expect_key(r, "AROLE", "the role arn:i");

	static const struct {
		const char *profile, *why;
		enum err_kind kind;
	} bad[] = {{"a", "circle", ERR_INVALID},
		   {"lost", "does not exist", ERR_INVALID},
		   {"mfa", "mfa_serial", ERR_DENIED},
		   {"odd", "credential_source 'Elsewhere'", ERR_INVALID}};

	for (size_t i = 0; i < COUNT(bad); i++) {
		assert_int_equal(rig_try_open(r, (struct aws_config){.profile = bad[i].profile}),
				 0);
		expect_trouble(r, bad[i].kind, bad[i].why);
	}
	w->sts_denies = true;
	assert_int_equal(rig_try_open(r, (struct aws_config){.profile = "one"}), 0);
	expect_trouble(r, ERR_DENIED, "role arn:one: AccessDenied: ");
}

static void expect_given(struct rig *r, const char *key, const char *token, int64_t expires)
{
	struct arena *a = arena_new();
	struct aws_credentials c;

	assert_int_equal(aws_credentials_get(r->s, a, &r->d, &c, &r->err), 0);
	assert_string_equal(c.access_key, key);
	assert_int_equal(c.expires_ms, expires);
	if (token)
		assert_string_equal(c.session_token, token);
	else
		assert_null(c.session_token);
	arena_free(a);
}

static void a_role_of_the_job_is_taken_on_with_what_was_found(void **state)
{
	struct rig *r = *state;

	world_of(r);
	assert_int_equal(rig_try_open(r, (struct aws_config){.assume_role = "arn:job"}), 0);
	expect_key(r, "AROLE", "the role arn:job");
	expect_given(r, "AROLE", "t2", INT64_C(4070908800000));
	rig_open(r);
	expect_given(r, "AKIDTEST", NULL, 0);
	assert_non_null(strstr(fake_header(&r->fake.asked[0], "Authorization"), "AKIDTEST/"));
}

static void a_token_of_an_identity_provider_is_enough(void **state)
{
	struct rig *r = *state;
	char *path = xasprintf("%s/token", r->dir);

	world_of(r);
	without_keys(r);
	rig_write(r, "token", " jwt-1 \n");
	rig_set(r, "AWS_WEB_IDENTITY_TOKEN_FILE", path);
	rig_set(r, "AWS_ROLE_ARN", "arn:pod");
	rig_open(r);
	expect_key(r, "AWEB", "the role arn:pod");
	assert_non_null(strstr(r->fake.asked[0].body, "&WebIdentityToken=jwt-1"));
	rig_set(r, "AWS_WEB_IDENTITY_TOKEN_FILE", "/nonexistent/token");
	rig_open(r);
	expect_trouble(r, ERR_DENIED, "web identity");
	rig_set(r, "AWS_WEB_IDENTITY_TOKEN_FILE", NULL);
	rig_write(r, ".aws/config",
		  "[default]\nrole_arn = arn:file\nweb_identity_token_file = ~/token\n");
	rig_open(r);
	expect_key(r, "AWEB", "the role arn:file");
	free(path);
}

static void a_process_prints_credentials(void **state)
{
	struct rig *r = *state;
	char *path = xasprintf("%s/creds.sh", r->dir), *config;

	world_of(r);
	without_keys(r);
	rig_write(r, "creds.sh",
		  "#!/bin/sh\n[ \"$1\" = 'a b' ] || { echo no such user >&2; exit 3; }\n"
		  "echo '{\"Version\": 1, \"AccessKeyId\": \"APROC\", \"SecretAccessKey\": \"s\", "
		  "\"SessionToken\": \"t\", \"Expiration\": \"" FAR "\"}'\n");
	assert_int_equal(chmod(path, 0700), 0);
	config = xasprintf("[default]\ncredential_process = %s 'a b'\n"
			   "[profile bad]\ncredential_process = %s x\n"
			   "[profile none]\ncredential_process = /nonexistent/x\n"
			   "[profile text]\ncredential_process = /bin/echo hello\n"
			   "[profile slow]\ncredential_process = /bin/sleep 60\n",
			   path, path);
	rig_write(r, ".aws/config", config);
	rig_open(r);
	expect_key(r, "APROC", "credential_process of the profile 'default'");
	assert_string_equal(fake_header(&r->fake.asked[0], "X-Amz-Security-Token"), "t");

	assert_int_equal(rig_try_open(r, (struct aws_config){.profile = "bad"}), 0);
	expect_trouble(r, ERR_DENIED, "exit code 3: no such user");
	assert_int_equal(rig_try_open(r, (struct aws_config){.profile = "none"}), 0);
	/* Not "not found": that would be said of whatever the call was about. */
	expect_trouble(r, ERR_DENIED, "credential_process of the profile 'none'");
	assert_int_equal(rig_try_open(r, (struct aws_config){.profile = "text"}), 0);
	expect_trouble(r, ERR_DENIED, "it prints no JSON");
	r->d = deadline_in(300, NULL);
	assert_int_equal(rig_try_open(r, (struct aws_config){.profile = "slow"}), 0);
	expect_trouble(r, ERR_TIMEOUT, "it did not end");
	free(config);
	free(path);
}

static void write_sso_token(struct rig *r, const char *name, const char *expires)
{
	uint8_t digest[SHA1_BYTES];
	char hex[2 * SHA1_BYTES + 1], file[128], text[256];

	sha1_of(name, strlen(name), digest);
	hex_encode(digest, sizeof(digest), hex);
	snprintf(file, sizeof(file), ".aws/sso/cache/%s.json", hex);
	snprintf(text, sizeof(text), "{\"accessToken\":\"sso-token\",\"expiresAt\":\"%s\"}",
		 expires);
	rig_write(r, file, text);
}

static void a_sign_in_by_sso_is_used_until_it_expires(void **state)
{
	struct rig *r = *state;

	world_of(r);
	without_keys(r);
	rig_write(r, ".aws/config",
		  "[default]\nsso_session = corp\nsso_account_id = 111\nsso_role_name = Dev Role\n"
		  "[sso-session corp]\nsso_start_url = https://x/start\nsso_region = eu-west-3\n"
		  "[profile old]\nsso_start_url = https://y/start\nsso_region = eu-west-3\n"
		  "sso_account_id = 111\nsso_role_name = Dev Role\n"
		  "[profile half]\nsso_start_url = https://y/start\n");
	rig_open(r);
	expect_trouble(r, ERR_DENIED, "run `aws sso login --profile default`");
	write_sso_token(r, "corp", "2001-01-01T00:00:00Z");
	expect_trouble(r, ERR_DENIED, "the sign-in has expired");
	write_sso_token(r, "corp", FAR);
	expect_key(r, "ASSO", "SSO of the profile 'default'");
	write_sso_token(r, "https://y/start", FAR);
	assert_int_equal(rig_try_open(r, (struct aws_config){.profile = "old"}), 0);
	expect_key(r, "ASSO", "SSO of the profile 'old'");
	assert_int_equal(rig_try_open(r, (struct aws_config){.profile = "half"}), 0);
	expect_trouble(r, ERR_INVALID, "belong together");
}

static void a_container_has_an_endpoint(void **state)
{
	struct rig *r = *state;
	struct world *w = world_of(r);
	char url[128];

	without_keys(r);
	snprintf(url, sizeof(url), "%s/container?x=1", r->fake.url);
	rig_set(r, "AWS_CONTAINER_CREDENTIALS_FULL_URI", url);
	rig_set(r, "AWS_CONTAINER_AUTHORIZATION_TOKEN", "Bearer z");
	rig_open(r);
	expect_key(r, "ACONT", "the container");
	assert_string_equal(w->asked, "container ");
	rig_set(r, "AWS_CONTAINER_AUTHORIZATION_TOKEN", "Bearer wrong");
	rig_open(r);
	expect_trouble(r, ERR_DENIED, "container credentials: it says 401");
	rig_write(r, "auth", "Bearer z\n");
	snprintf(url, sizeof(url), "%s/auth", r->dir);
	rig_set(r, "AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE", url);
	rig_open(r);
	expect_key(r, "ACONT", "the container");
	rig_set(r, "AWS_CONTAINER_CREDENTIALS_FULL_URI", "http://192.0.2.1/x");
	rig_open(r);
	expect_trouble(r, ERR_DENIED, "neither https nor on this machine");
	rig_set(r, "AWS_CONTAINER_CREDENTIALS_FULL_URI", url);
	rig_open(r);
	expect_trouble(r, ERR_INVALID, "the URL");
}

static void an_instance_has_a_role_and_a_region(void **state)
{
	struct rig *r = *state;
	struct world *w = world_of(r);

	without_keys(r);
	rig_set(r, "AWS_REGION", NULL);
	rig_open(r);
	assert_string_equal(aws_region(r->s), "ap-south-1");
	expect_key(r, "AINST", "the role of the instance");
	assert_string_equal(w->asked, "imds-token imds-token imds-role imds-token imds-keys ");
	w->instance_document = "{\"Code\": \"Failed\"}";
	rig_open(r);
	expect_trouble(r, ERR_DENIED, "the role of the instance has no credentials (Failed)");
	w->no_role = true;
	rig_open(r);
	expect_trouble(r, ERR_DENIED, "no AWS credentials");
	rig_set(r, "REGATTA_OWN_MACHINE", "1");
	expect_trouble(r, ERR_UNAVAILABLE, "no credentials of its role yet");
	w->no_role = false;
	w->instance_document = DOCUMENT("AINST", FAR);
	expect_key(r, "AINST", "the role of the instance");
	w->no_metadata = true;
	assert_int_equal(rig_try_open(r, (struct aws_config){0}), -1);
	assert_int_equal(r->err.kind, ERR_INVALID);
	assert_non_null(strstr(r->err.msg, "no AWS region"));
}

static const char *in_seconds(int64_t seconds)
{
	static char text[256];
	char moment[32];

	clock_format(clock_wall_ms() + seconds * 1000, moment);
	snprintf(text, sizeof(text),
		 "{\"AccessKeyId\":\"AX%d\",\"SecretAccessKey\":\"s\",\"Expiration\":\"%s\"}",
		 (int)seconds, moment);
	return text;
}

static void credentials_are_renewed_before_they_expire(void **state)
{
	struct rig *r = *state;
	struct world *w = world_of(r);

	without_keys(r);
	w->instance_document = in_seconds(299); /* due: less than five minutes */
	rig_open(r);
	expect_key(r, "AX299", "the role of the instance");
	w->instance_document = in_seconds(3600);
	expect_key(r, "AX3600", "the role of the instance");
	w->asked[0] = '\0';
	expect_key(r, "AX3600", "the role of the instance");
	assert_string_equal(w->asked, "");
}

static void old_credentials_last_while_their_renewal_fails(void **state)
{
	struct rig *r = *state;
	struct world *w = world_of(r);

	without_keys(r);
	w->instance_document = in_seconds(200);
	rig_open(r);
	expect_key(r, "AX200", "the role of the instance");
	w->no_role = true;
	expect_key(r, "AX200", "the role of the instance");
	w->asked[0] = '\0';
	expect_key(r, "AX200", "the role of the instance");
	assert_string_equal(w->asked, ""); /* not with every call */
}

static atomic_int expired_calls;

static bool expired_once(struct fake_http *f, int fd, int nth, const struct fake_asked *a)
{
	if (strstr(a->head, " /latest/"))
		return metadata(f->ctx, fd, a);
	(void)nth;
	if (atomic_fetch_add(&expired_calls, 1) == 0) {
		((struct world *)f->ctx)->instance_document = DOCUMENT("ANEW", FAR);
		fake_say(fd, 400, "",
			 "<Response><Errors><Error><Code>RequestExpired</Code><Message>m</Message>"
			 "</Error></Errors></Response>");
	} else {
		fake_say(fd, 200, "", "<XResponse/>");
	}
	return true;
}

static void credentials_that_aws_calls_expired_are_looked_for_again(void **state)
{
	struct rig *r = *state;

	world_of(r);
	without_keys(r);
	r->fake.answer = expired_once;
	expired_calls = 0;
	rig_open(r);
	expect_key(r, "ANEW", "the role of the instance");
	/* Those that cannot change are not asked for again. */
	rig_set(r, "AWS_ACCESS_KEY_ID", "AFIXED");
	rig_set(r, "AWS_SECRET_ACCESS_KEY", "s");
	expired_calls = 0;
	rig_open(r);
	expect_trouble(r, ERR_DENIED, "RequestExpired");
	assert_int_equal(expired_calls, 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		rig_test(explicit_ones_beat_the_environment),
		rig_test(the_environment_is_the_callers),
		rig_test(profiles_have_keys),
		rig_test(roles_are_assumed_with_the_source_of_a_profile),
		rig_test(a_role_of_the_job_is_taken_on_with_what_was_found),
		rig_test(a_token_of_an_identity_provider_is_enough),
		rig_test(a_process_prints_credentials),
		rig_test(a_sign_in_by_sso_is_used_until_it_expires),
		rig_test(a_container_has_an_endpoint),
		rig_test(an_instance_has_a_role_and_a_region),
		rig_test(credentials_are_renewed_before_they_expire),
		rig_test(old_credentials_last_while_their_renewal_fails),
		rig_test(credentials_that_aws_calls_expired_are_looked_for_again),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
