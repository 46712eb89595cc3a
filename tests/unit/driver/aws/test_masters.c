/* Masters on instances, found by their tags and made reachable from here. */
#include "kind_rig.h"

#include "base/arena.h"
#include "base/err.h"
#include "driver/aws/aws_masters.h"
#include "driver/engine_tools.h"

#define BUCKET "regatta-123456789012-eu-west-1"
#define MACHINE(state, run, group)                                                                 \
	"<item><instancesSet><item><instanceId>i-1</instanceId><instanceState><name>" state        \
	"</name></instanceState><groupSet><item><groupId>sg-0</groupId><groupName>other"           \
	"</groupName></item><item><groupId>sg-1</groupId><groupName>" group                        \
	"</groupName></item></groupSet>" TAGS("i1", run) "</item></instancesSet></item>"
#define SEEN(machines) "<XResponse><reservationSet>" machines "</reservationSet></XResponse>"
#define RECORD(run, install)                                                                       \
	"{\"run\":\"" run "\",\"install\":\"" install                                              \
	"\",\"url\":\"https://203.0.113.5:5436\",\"pin\":\"sha256//x\",\"token\":\"t0ken\"}"

struct masters_rig {
	struct kind_rig *k;
	struct arena *a;
	struct running_masters found;
	struct err err;
};

static int set_up(void **state)
{
	struct masters_rig *r = xcalloc(1, sizeof(*r));
	void *k;

	kind_setup(&k);
	r->k = k;
	r->a = arena_new();
	setenv("AWS_CONFIG_FILE", "/nowhere", 1);
	setenv("AWS_SHARED_CREDENTIALS_FILE", "/nowhere", 1);
	setenv("AWS_ENDPOINT_URL", r->k->fake.url, 1);
	setenv("AWS_ACCESS_KEY_ID", "AKIDTEST", 1);
	setenv("AWS_SECRET_ACCESS_KEY", "s", 1);
	setenv("AWS_REGION", "eu-west-1", 1);
	*state = r;
	return 0;
}

static int tear_down(void **state)
{
	struct masters_rig *r = *state;
	void *k = r->k;

	arena_free(r->a);
	free(r);
	return kind_teardown(&k);
}

static int find(struct masters_rig *r)
{
	return aws_masters(&(struct masters_input){0}, r->a, &r->found, &r->err);
}

static void a_master_is_reached_by_its_record_and_from_this_address_only(void **state)
{
	struct masters_rig *r = *state;

	kind_expect(r->k, "DescribeInstances", OK(SEEN(MACHINE("running", "r1", "regatta-i1-r1"))));
	kind_expect(r->k, "GET /" BUCKET "/masters/r1.json", OK(RECORD("r1", "i1")));
	kind_expect(r->k, "AuthorizeSecurityGroupIngress", OK(DONE_XML));
	assert_int_equal(find(r), 0);
	assert_int_equal(r->found.n, 1);
	assert_string_equal(r->found.v[0].run, "r1");
	assert_string_equal(r->found.v[0].state, "running");
	assert_string_equal(r->found.v[0].url, "https://203.0.113.5:5436");
	assert_string_equal(r->found.v[0].pin, "sha256//x");
	assert_string_equal(r->found.v[0].token, "t0ken");
	assert_null(r->found.v[0].why);
	const struct fake_asked *rule = kind_asked(r->k, "AuthorizeSecurityGroupIngress", 0);

	assert_string_equal(kind_param(rule, "GroupId"), "sg-1");
	assert_string_equal(kind_param(rule, "IpPermissions.1.FromPort"), "5436");
	assert_string_equal(kind_param(rule, "IpPermissions.1.ToPort"), "5436");
	assert_string_equal(kind_param(rule, "IpPermissions.1.IpRanges.1.CidrIp"),
			    "127.0.0.1%2F32");
	kind_done(r->k);
}

static void a_port_that_is_open_already_is_fine(void **state)
{
	struct masters_rig *r = *state;

	kind_expect(r->k, "DescribeInstances", OK(SEEN(MACHINE("running", "r1", "regatta-i1-r1"))));
	kind_expect(r->k, "GET /" BUCKET "/masters/r1.json", OK(RECORD("r1", "i1")));
	kind_expect(r->k, "AuthorizeSecurityGroupIngress",
		    NO("InvalidPermission.Duplicate", "it is there"));
	assert_int_equal(find(r), 0);
	assert_non_null(r->found.v[0].url);
	kind_done(r->k);
}

static void one_that_cannot_be_reached_does_not_hide_the_others(void **state)
{
	struct masters_rig *r = *state;

	kind_expect(r->k, "DescribeInstances",
		    OK(SEEN(MACHINE("pending", "r0", "regatta-i1-r0") MACHINE("running", "r1",
									      "regatta-i1-r1")
				    MACHINE("running", "r1", "regatta-i1-r1")
					    MACHINE("running", "r2", "default")
						    MACHINE("running", "r3", "regatta-i1-r3"))));
	kind_expect(r->k, "GET /" BUCKET "/masters/r0.json", 404,
		    "<Error><Code>NoSuchKey</Code><Message>no</Message></Error>");
	kind_expect(r->k, "GET /" BUCKET "/masters/r1.json", OK(RECORD("r1", "i1")));
	kind_expect(r->k, "AuthorizeSecurityGroupIngress", OK(DONE_XML));
	kind_expect(r->k, "GET /" BUCKET "/masters/r2.json", OK(RECORD("r2", "i1")));
	kind_expect(r->k, "GET /" BUCKET "/masters/r3.json", OK(RECORD("r3", "i2")));
	assert_int_equal(find(r), 0);
	assert_int_equal(r->found.n, 4);
	assert_null(r->found.v[0].url);
	assert_non_null(strstr(r->found.v[0].why, "NoSuchKey"));
	assert_non_null(r->found.v[1].url);
	assert_non_null(strstr(r->found.v[2].why, "its security group is gone"));
	assert_non_null(strstr(r->found.v[3].why, "is not the record of its master"));
	kind_done(r->k);
}

static void a_refused_look_is_told(void **state)
{
	struct masters_rig *r = *state;

	kind_expect(r->k, "DescribeInstances", NO("UnauthorizedOperation", "no"));
	assert_int_equal(find(r), -1);
	assert_int_equal(r->err.kind, ERR_DENIED);
	kind_done(r->k);
}

#define masters_test(fn) cmocka_unit_test_setup_teardown(fn, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		masters_test(a_master_is_reached_by_its_record_and_from_this_address_only),
		masters_test(a_port_that_is_open_already_is_fine),
		masters_test(one_that_cannot_be_reached_does_not_hide_the_others),
		masters_test(a_refused_look_is_told),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
