/* What a collection finds, and what of it is in its scope. */
#include "unit.h"

#include <stdlib.h>

#include "base/arena.h"
#include "base/cleanup.h"
#include "driver/aws/gc/gc.h"
#include "kind_rig.h"

#define NOW 1000000

static bool live_is_r1(void *ctx, const char *run)
{
	(void)ctx;
	return !*run || strcmp(run, "r1") == 0;
}

static int refresh(void *ctx, struct err *err)
{
	(void)ctx;
	(void)err;
	return 0;
}

static const struct collect_input own = {
	.install = "i1", .has_ledger = true, .is_live = live_is_r1, .refresh = refresh};

static enum leftover_state judge(const struct collect_input *in, const char *install,
				 const char *run, int64_t expires_ms)
{
	struct leftover l = {.install = install, .run = run, .expires_ms = expires_ms};

	return gc_judge(in, &l, NOW);
}

static void what_a_live_run_has_is_not_in_the_scope(void **state)
{
	(void)state;
	assert_int_equal(judge(&own, "i1", "r1", 0), LEFTOVER_LIVE);
	assert_int_equal(judge(&own, "i1", "r1", NOW + 1), LEFTOVER_LIVE);
	assert_int_equal(judge(&own, "i1", "r2", 0), LEFTOVER_FOUND);
	assert_int_equal(judge(&own, "i1", "r2", NOW + 1), LEFTOVER_FOUND);
	/* of the install as a whole: while any run is live */
	assert_int_equal(judge(&own, "i1", "", 0), LEFTOVER_LIVE);
}

static void what_runs_of_a_carried_suite_have_goes_with_their_carrier(void **state)
{
	struct collect_input one = own;

	(void)state;
	one.run = "s-abcd";
	assert_int_equal(judge(&one, "i1", "s-abcd", 0), LEFTOVER_FOUND);
	assert_int_equal(judge(&one, "i1", "s-abcd-17", 0), LEFTOVER_FOUND);
	assert_int_equal(judge(&one, "i1", "s-abcd-r2", 0), LEFTOVER_LIVE);
	assert_int_equal(judge(&one, "i1", "s-abcd-r2-1", 0), LEFTOVER_LIVE);
	assert_int_equal(judge(&one, "i1", "s-abcd-efgh", 0), LEFTOVER_LIVE);
	assert_int_equal(judge(&one, "i1", "s-abcde-1", 0), LEFTOVER_LIVE);
	assert_int_equal(judge(&one, "i1", "s-abcd17", 0), LEFTOVER_LIVE);
}

static void past_its_time_it_is_in_the_scope(void **state)
{
	(void)state;
	assert_int_equal(judge(&own, "i1", "r1", NOW), LEFTOVER_FOUND);
	assert_int_equal(judge(&own, "i1", "r1", NOW - 1), LEFTOVER_FOUND);
}

static void another_install_is_never_in_the_scope(void **state)
{
	struct collect_input none = own;

	(void)state;
	none.install = NULL;
	assert_int_equal(judge(&own, "i2", "r2", 1), LEFTOVER_OTHER);
	assert_int_equal(judge(&own, "i", "r2", 1), LEFTOVER_OTHER);
	assert_int_equal(judge(&own, "", "r2", 1), LEFTOVER_OTHER);
	assert_int_equal(judge(&none, "i1", "r2", 1), LEFTOVER_OTHER);
}

static void without_a_ledger_all_of_an_install_is_in_the_scope(void **state)
{
	struct collect_input named = own;

	(void)state;
	named.has_ledger = false;
	assert_int_equal(judge(&named, "i1", "r1", 0), LEFTOVER_FOUND);
	assert_int_equal(judge(&named, "i1", "", 0), LEFTOVER_FOUND);
	assert_int_equal(judge(&named, "i2", "r1", 0), LEFTOVER_OTHER);
}

/* What no ledger has any more: also of a run that seems alive, and of no other. */
static void of_one_run_nothing_else_is_in_the_scope(void **state)
{
	struct collect_input one = own;

	(void)state;
	one.run = "r1";
	assert_int_equal(judge(&one, "i1", "r1", 0), LEFTOVER_FOUND);
	assert_int_equal(judge(&one, "i1", "r2", NOW - 1), LEFTOVER_LIVE);
	assert_int_equal(judge(&one, "i1", "", 0), LEFTOVER_LIVE);
	assert_int_equal(judge(&one, "i2", "r1", 0), LEFTOVER_OTHER);
}

/* The look into other regions for a role took two minutes: that it has not gone yet says nothing. */
static void a_slow_look_is_not_taken_for_a_standstill(void **state)
{
	const struct gc_count in_use = {.found = 2}, denied = {.found = 2, .denied = 1},
			      ending = {.found = 2, .ending = 1};

	(void)state;
	assert_false(gc_is_stuck(&in_use, 120000, 1));
	assert_false(gc_is_stuck(&in_use, 120000, 2));
	assert_true(gc_is_stuck(&in_use, 120000, 3));
	assert_false(gc_is_stuck(&in_use, 30000, 30));
	assert_false(gc_is_stuck(&denied, 120000, 1));
	assert_true(gc_is_stuck(&denied, 6000, 3));
	assert_false(gc_is_stuck(&ending, 120000, 30));
}

static void what_is_left_has_a_reason(void **state)
{
	CLEANUP(arena_freep) struct arena *a = arena_new();
	struct gc_item item = {.status = ""};

	(void)state;
	assert_string_equal(gc_reason(a, &item), "no delete of it was accepted");
	item.is.why = ""; /* of a driver that said nothing */
	assert_string_equal(gc_reason(a, &item), "no delete of it was accepted");
	item.accepted = true;
	assert_string_equal(gc_reason(a, &item), "its delete was accepted, and it is still there");
	item.ending = true;
	item.status = "shutting-down";
	assert_string_equal(gc_reason(a, &item), "it is shutting-down");
	item.is.why = "denied";
	assert_string_equal(gc_reason(a, &item), "denied");
}

/* ---- with a cloud that is a script ---- */

#define NOTHING(name, set) "<" name "Response><" set "></" set "></" name "Response>"
#define IAM_MISSING                                                                                \
	404, "<ErrorResponse><Error><Code>NoSuchEntity</Code><Message>m</Message></Error>"         \
	     "<RequestId>r-1</RequestId></ErrorResponse>"
#define GROUP(tags)                                                                                \
	"<DescribeSecurityGroupsResponse><securityGroupInfo><item><groupId>sg-1</groupId>" tags    \
	"</item></securityGroupInfo></DescribeSecurityGroupsResponse>"

static void use_fake(const struct kind_rig *r)
{
	setenv("AWS_ENDPOINT_URL", r->fake.url, 1);
	setenv("AWS_REGION", "eu-west-1", 1);
	setenv("AWS_ACCESS_KEY_ID", "AKID", 1);
	setenv("AWS_SECRET_ACCESS_KEY", "secret", 1);
}

/* A look that shows this group and nothing else. */
static void expect_finds_of_run(struct kind_rig *r, const char *groups)
{
	kind_expect(r, "DescribeInstances", OK(NOTHING("X", "reservationSet")));
	kind_expect(r, "DescribeNetworkInterfaces", OK(NOTHING("X", "networkInterfaceSet")));
	kind_expect(r, "DescribeVolumes", OK(NOTHING("X", "volumeSet")));
	kind_expect(r, "DescribeLaunchTemplates", OK(NOTHING("X", "launchTemplates")));
	kind_expect(r, "DescribePlacementGroups", OK(NOTHING("X", "placementGroupSet")));
	kind_expect(r, "DescribeSecurityGroups", 200, groups);
	kind_expect(r, "DescribeSubnets", OK(NOTHING("X", "subnetSet")));
}

/* The same, and neither role nor instance profile. */
static void expect_finds(struct kind_rig *r, const char *groups)
{
	expect_finds_of_run(r, groups);
	kind_expect(r, "GetInstanceProfile", IAM_MISSING);
	kind_expect(r, "GetRole", IAM_MISSING);
}

static void only_a_look_proves_that_it_is_gone(void **state)
{
	CLEANUP(arena_freep) struct arena *a = arena_new();
	struct kind_rig *r = *state;
	struct collection all;
	struct err err = {0};

	use_fake(r);
	expect_finds(r, GROUP(TAGS("i1", "r2")));
	kind_expect(r, "DescribeSecurityGroups", OK(GROUP(TAGS("i1", "r2")))); /* the driver's */
	kind_expect(r, "DeleteSecurityGroup", OK(DONE_XML));
	expect_finds(r, GROUP(TAGS("i1", "r2"))); /* accepted, and still there */
	kind_expect(r, "DescribeSecurityGroups", OK(GROUP(TAGS("i1", "r2"))));
	kind_expect(r, "DeleteSecurityGroup", OK(DONE_XML));
	expect_finds(r, NOTHING("X", "securityGroupInfo"));
	expect_finds(r, NOTHING("X", "securityGroupInfo"));
	assert_int_equal(gc_collect(&own, a, &all, &err), 0);
	assert_int_equal(all.n, 1);
	assert_int_equal(all.v[0].state, LEFTOVER_REMOVED);
	assert_string_equal(all.v[0].id, "sg-1");
	assert_string_equal(all.v[0].run, "r2");
	kind_done(r);
}

static int stop_at_the_second(void *ctx, struct err *err)
{
	volatile int *calls = ctx; /* [0] the stop flag, [1] of this function */

	(void)err;
	calls[0] = ++calls[1] == 2;
	return 0;
}

static void what_is_there_when_it_is_stopped_has_a_reason(void **state)
{
	CLEANUP(arena_freep) struct arena *a = arena_new();
	struct kind_rig *r = *state;
	struct collect_input in = own;
	volatile int calls[2] = {0};
	struct collection all;
	struct err err = {0};

	use_fake(r);
	in.refresh = stop_at_the_second;
	in.ctx = (void *)calls;
	in.stop = calls;
	expect_finds(r, GROUP(TAGS("i1", "r2")));
	kind_expect(r, "DescribeSecurityGroups", OK(GROUP(TAGS("i1", "r2"))));
	kind_expect(r, "DeleteSecurityGroup", OK(DONE_XML));
	expect_finds(r, GROUP(TAGS("i1", "r2")));
	assert_int_equal(gc_collect(&in, a, &all, &err), -1);
	assert_int_equal(err.kind, ERR_CANCELLED);
	assert_int_equal(all.n, 1);
	assert_int_equal(all.v[0].state, LEFTOVER_FOUND);
	assert_string_equal(all.v[0].why, "its delete was accepted, and it is still there");
	kind_done(r);
}

/* It was in use when its delete was tried, and went with what used it. */
static void what_is_gone_has_no_reason(void **state)
{
	CLEANUP(arena_freep) struct arena *a = arena_new();
	struct kind_rig *r = *state;
	struct collection all;
	struct err err = {0};

	use_fake(r);
	expect_finds(r, GROUP(TAGS("i1", "r2")));
	kind_expect(r, "DescribeSecurityGroups", OK(GROUP(TAGS("i1", "r2"))));
	kind_expect(r, "DeleteSecurityGroup", NO("DependencyViolation", "in use"));
	expect_finds(r, NOTHING("X", "securityGroupInfo"));
	expect_finds(r, NOTHING("X", "securityGroupInfo"));
	assert_int_equal(gc_collect(&own, a, &all, &err), 0);
	assert_int_equal(all.v[0].state, LEFTOVER_REMOVED);
	assert_null(all.v[0].why);
	kind_done(r);
}

/* With the credentials of the run, and the role of the install is not even looked at. */
static void what_a_lost_master_has_made_is_swept_by_its_run(void **state)
{
	struct kind_rig *r = *state;

	r->row.kind = "ec2.master";
	r->row.spec = "{\"account\":\"123456789012\",\"region\":\"eu-west-1\"}";
	expect_finds_of_run(r, GROUP(TAGS("i1", "r1")));
	kind_expect(r, "DescribeSecurityGroups", OK(GROUP(TAGS("i1", "r1"))));
	kind_expect(r, "DeleteSecurityGroup", OK(DONE_XML));
	expect_finds_of_run(r, GROUP(TAGS("i1", "r2")));
	expect_finds_of_run(r, GROUP(TAGS("i1", "r2")));
	assert_int_equal(ec2_master_driver.sweep(&r->row), OUTCOME_DONE);
	kind_done(r);
}

static void what_cannot_be_swept_is_named(void **state)
{
	struct kind_rig *r = *state;

	r->row.kind = "ec2.master";
	r->row.spec = "{\"account\":\"123456789012\",\"region\":\"eu-west-1\"}";
	kind_expect(r, "DescribeInstances", NO("UnauthorizedOperation", "no"));
	assert_int_equal(ec2_master_driver.sweep(&r->row), OUTCOME_UNSURE);
	assert_int_equal(r->row.err.kind, ERR_DENIED);
	kind_done(r);
}

/* Whatever a filter lets through. */
static void a_resource_without_our_tag_is_not_even_listed(void **state)
{
	CLEANUP(arena_freep) struct arena *a = arena_new();
	struct collect_input in = own;
	struct kind_rig *r = *state;
	struct collection all;
	struct err err = {0};

	use_fake(r);
	in.dry_run = true;
	expect_finds(r, GROUP("<tagSet><item><key>regatta</key><value>i1</value></item></tagSet>"));
	assert_int_equal(gc_collect(&in, a, &all, &err), 0);
	assert_int_equal(all.n, 0);
	kind_done(r);
}

static void a_look_that_fails_ends_it(void **state)
{
	CLEANUP(arena_freep) struct arena *a = arena_new();
	struct kind_rig *r = *state;
	struct collection all;
	struct err err = {0};

	use_fake(r);
	kind_expect(r, "DescribeInstances", NO("UnauthorizedOperation", "no"));
	assert_int_equal(gc_collect(&own, a, &all, &err), -1);
	assert_int_equal(err.kind, ERR_DENIED);
	assert_non_null(strstr(err.msg, "ec2:DescribeInstances"));
	kind_done(r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_a_live_run_has_is_not_in_the_scope),
		cmocka_unit_test(what_runs_of_a_carried_suite_have_goes_with_their_carrier),
		cmocka_unit_test(past_its_time_it_is_in_the_scope),
		cmocka_unit_test(another_install_is_never_in_the_scope),
		cmocka_unit_test(without_a_ledger_all_of_an_install_is_in_the_scope),
		cmocka_unit_test(of_one_run_nothing_else_is_in_the_scope),
		cmocka_unit_test(a_slow_look_is_not_taken_for_a_standstill),
		cmocka_unit_test(what_is_left_has_a_reason),
		kind_test(what_is_there_when_it_is_stopped_has_a_reason),
		kind_test(what_is_gone_has_no_reason),
		kind_test(what_a_lost_master_has_made_is_swept_by_its_run),
		kind_test(what_cannot_be_swept_is_named),
		kind_test(only_a_look_proves_that_it_is_gone),
		kind_test(a_resource_without_our_tag_is_not_even_listed),
		kind_test(a_look_that_fails_ends_it),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
