/* Regions, partitions, endpoints, and the files that say which. */
#include "rig.h"

#include "base/arena.h"
#include "driver/aws/api/endpoint.h"
#include "driver/aws/api/profile.h"

struct places {
	struct rig *r;
	struct arena *a;
	struct aws_places p;
};

static struct places places_of(struct rig *r, const char *region, const char *profile)
{
	struct places x = {.r = r, .a = arena_new()};
	struct profiles *profiles;

	x.p = (struct aws_places){.region = region, .profile = profile, .env = {rig_env, r}};
	if (profiles_read(&x.p.env, x.a, &profiles, &r->err) < 0)
		fail_msg("%s", r->err.msg);
	x.p.profiles = profiles;
	return x;
}

static void expect_at(struct places *x, const char *service, const char *url, const char *region)
{
	struct aws_endpoint e;
	char got[1024];

	if (aws_endpoint_find(&x->p, aws_service_named(service), NULL, &e, &x->r->err) < 0)
		fail_msg("%s", x->r->err.msg);
	snprintf(got, sizeof(got), "%s://%s:%d%s", e.tls ? "https" : "http", e.host, e.port,
		 e.base);
	assert_string_equal(got, url);
	assert_string_equal(e.region, region);
}

static void partitions_decide_where_a_service_is(void **state)
{
	static const struct {
		const char *region, *service, *url, *signs;
	} cases[] = {
		{"us-east-1", "ec2", "https://ec2.us-east-1.amazonaws.com:443", "us-east-1"},
		{"eu-west-3", "sts", "https://sts.eu-west-3.amazonaws.com:443", "eu-west-3"},
		{"eu-west-3", "s3", "https://s3.eu-west-3.amazonaws.com:443", "eu-west-3"},
		{"eu-west-3", "iam", "https://iam.amazonaws.com:443", "us-east-1"},
		{"cn-north-1", "ec2", "https://ec2.cn-north-1.amazonaws.com.cn:443", "cn-north-1"},
		{"cn-northwest-1", "iam", "https://iam.cn-north-1.amazonaws.com.cn:443",
		 "cn-north-1"},
		{"us-gov-east-1", "ec2", "https://ec2.us-gov-east-1.amazonaws.com:443",
		 "us-gov-east-1"},
		{"us-gov-east-1", "iam", "https://iam.us-gov.amazonaws.com:443", "us-gov-west-1"},
	};
	struct rig *r = *state;

	rig_set(r, "AWS_ENDPOINT_URL", NULL);
	for (size_t i = 0; i < COUNT(cases); i++) {
		struct places x = places_of(r, cases[i].region, "default");

		expect_at(&x, cases[i].service, cases[i].url, cases[i].signs);
		arena_free(x.a);
	}
	assert_string_equal(aws_partition_of("us-gov-west-1")->name, "aws-us-gov");
	assert_string_equal(aws_partition_of("cn-north-1")->suffix, "amazonaws.com.cn");
	assert_string_equal(aws_partition_of("mx-central-1")->name, "aws");
	assert_null(aws_service_named("braket"));
}

static void an_address_that_is_given_beats_the_partition(void **state)
{
	struct rig *r = *state;

	rig_set(r, "AWS_ENDPOINT_URL", NULL);
	rig_write(r, ".aws/config",
		  "# a comment\n[profile lab]\r\nregion = eu-west-1\r\nservices = here\n"
		  "endpoint_url = http://lab:1\ns3 =\n    addressing_style = path\n"
		  "[services here]\nec2 =\n  endpoint_url = http://ec2.lab:2/base/\n");
	struct places x = places_of(r, "eu-west-1", "lab");

	expect_at(&x, "ec2", "http://ec2.lab:2/base", "eu-west-1");
	expect_at(&x, "sts", "http://lab:1", "eu-west-1");
	assert_string_equal(profile_get(x.p.profiles, "lab", "s3.addressing_style"), "path");
	assert_null(profile_get(x.p.profiles, "lab", "s3"));
	rig_set(r, "AWS_ENDPOINT_URL", "https://all.test");
	expect_at(&x, "ec2", "https://all.test:443", "eu-west-1");
	rig_set(r, "AWS_ENDPOINT_URL_AUTO_SCALING", "http://[::1]:99");
	expect_at(&x, "autoscaling", "http://::1:99", "eu-west-1");
	expect_at(&x, "iam", "https://all.test:443", "us-east-1");
	rig_set(r, "AWS_IGNORE_CONFIGURED_ENDPOINT_URLS", "true");
	expect_at(&x, "ec2", "https://ec2.eu-west-1.amazonaws.com:443", "eu-west-1");
	x.p.endpoint_url = "http://job:8080";
	expect_at(&x, "ec2", "http://job:8080", "eu-west-1");
	arena_free(x.a);
}

static void bad_addresses_and_regions_are_named(void **state)
{
	struct rig *r = *state;
	struct places x = places_of(r, "eu-west-1", "default");
	struct aws_endpoint e;
	static const char *const bad[] = {"ftp://x", "x", "http://u:p@x", "http://x/?q"};

	for (size_t i = 0; i < COUNT(bad); i++) {
		rig_set(r, "AWS_ENDPOINT_URL", bad[i]);
		assert_int_equal(
			aws_endpoint_find(&x.p, aws_service_named("ec2"), NULL, &e, &r->err), -1);
		assert_int_equal(r->err.kind, ERR_INVALID);
		assert_non_null(strstr(r->err.msg, "AWS_ENDPOINT_URL"));
	}
	assert_int_equal(
		aws_endpoint_find(&x.p, aws_service_named("ec2"), "Bad.Region", &e, &r->err), -1);
	assert_non_null(strstr(r->err.msg, "is not the name of a region"));
	arena_free(x.a);
}

static void the_region_comes_from_the_first_that_says_it(void **state)
{
	struct rig *r = *state;

	rig_write(r, ".aws/config", "[default]\nregion = eu-north-1\n");
	assert_int_equal(rig_try_open(r, (struct aws_config){.region = "sa-east-1"}), 0);
	assert_string_equal(aws_region(r->s), "sa-east-1");
	rig_open(r);
	assert_string_equal(aws_region(r->s), "eu-west-1");
	rig_set(r, "AWS_REGION", NULL);
	rig_set(r, "AWS_DEFAULT_REGION", "us-west-2");
	rig_open(r);
	assert_string_equal(aws_region(r->s), "us-west-2");
	rig_set(r, "AWS_DEFAULT_REGION", NULL);
	rig_open(r);
	assert_string_equal(aws_region(r->s), "eu-north-1");
	assert_string_equal(aws_partition(r->s), "aws");
	assert_string_equal(aws_dns_suffix(r->s), "amazonaws.com");
	assert_int_equal(rig_try_open(r, (struct aws_config){.region = "x/y"}), -1);
	assert_int_equal(r->err.kind, ERR_INVALID);
}

static void a_file_that_cannot_be_read_is_named_with_its_line(void **state)
{
	struct rig *r = *state;

	rig_write(r, ".aws/config", "[default]\n\nregion\n");
	assert_int_equal(rig_try_open(r, (struct aws_config){0}), -1);
	assert_int_equal(r->err.kind, ERR_INVALID);
	assert_non_null(strstr(r->err.msg, ".aws/config: line 3"));
	rig_write(r, ".aws/config", "[default\n");
	assert_int_equal(rig_try_open(r, (struct aws_config){0}), -1);
	assert_non_null(strstr(r->err.msg, "line 1: a section without ']'"));
	rig_write(r, ".aws/config", "key = before any section\n");
	rig_open(r);
	rig_set(r, "AWS_CONFIG_FILE", "~/mine");
	rig_write(r, "mine", "[default]\nregion = eu-south-1\n");
	rig_set(r, "AWS_REGION", NULL);
	rig_open(r);
	assert_string_equal(aws_region(r->s), "eu-south-1");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		rig_test(partitions_decide_where_a_service_is),
		rig_test(an_address_that_is_given_beats_the_partition),
		rig_test(bad_addresses_and_regions_are_named),
		rig_test(the_region_comes_from_the_first_that_says_it),
		rig_test(a_file_that_cannot_be_read_is_named_with_its_line),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
