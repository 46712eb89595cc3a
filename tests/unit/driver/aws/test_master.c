/* The machine of a master: how it is reached, and how it ends itself. */
#include "kind_rig.h"

#include "driver/master_identity.h"
#include "base/buf.h"
#include "base/cleanup.h"
#include "driver/master_identity.h"
#include "sys/child.h"
#include "sys/off_timer.h"

#define SPEC "{\"account\":\"123456789012\",\"region\":\"eu-west-1\",\"port\":5436}"
#define SECRET "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
#define SEEN(inner)                                                                                \
	"<XResponse><reservationSet><item><instancesSet><item><instanceId>i-1</instanceId>" inner  \
	"</item></instancesSet></item></reservationSet></XResponse>"
#define INSIDE "<privateIpAddress>172.31.0.9</privateIpAddress>"
#define NETWORK                                                                                    \
	INSIDE "<vpcId>vpc-1</vpcId><networkInterfaceSet><item><networkInterfaceId>eni-1"          \
	       "</networkInterfaceId></item></networkInterfaceSet>"
#define GROUPS                                                                                     \
	"<XResponse><securityGroupInfo><item><groupId>sg-default</groupId></item>"                 \
	"</securityGroupInfo></XResponse>"

static char spawned[256];  /* what this machine was told; it is not done */
static char moved_on[256]; /* file and time of the timer */

int __wrap_off_timer_set(const char *file, int64_t wall_ms, struct err *err);
int __wrap_off_timer_set(const char *file, int64_t wall_ms, struct err *err)
{
	snprintf(moved_on, sizeof(moved_on), "%s %d", file, (int)wall_ms);
	return wall_ms == 3 ? err_set(err, ERR_IO, "the disk is full") : 0;
}

int __wrap_child_spawn_detached(const struct child_spec *spec, struct err *err);
int __wrap_child_spawn_detached(const struct child_spec *spec, struct err *err)
{
	(void)err;
	snprintf(spawned, sizeof(spawned), "%s", spec->argv[2]);
	return 0;
}

static void make_row(struct kind_rig *r)
{
	spawned[0] = moved_on[0] = '\0';
	r->row.kind = "ec2.master";
	r->row.name = "master";
	r->row.spec = SPEC;
	r->row.secret = SECRET;
	r->needs[0] = (struct driver_need){"ec2.security_group", "group", "sg-1"};
	r->row.nneeds = 1;
	snprintf(r->row.id, sizeof(r->row.id), "i-1");
}

/* ---- reach ---- */

static void it_is_where_ec2_shows_it_with_the_key_that_it_was_given(void **state)
{
	struct kind_rig *r = *state;
	struct driver_master at, own;
	CLEANUP(buf_release) struct buf pem = {0};

	make_row(r);
	kind_expect(r, "DescribeInstances", OK(SEEN(INSIDE "<ipAddress>203.0.113.5</ipAddress>")));
	kind_expect(r, "DescribeInstances", OK(SEEN(INSIDE)));
	assert_int_equal(ec2_master_driver.reach(&r->row, &at), 0);
	assert_string_equal(at.url, "https://203.0.113.5:5436");
	assert_int_equal(ec2_master_driver.reach(&r->row, &at), 0);
	assert_string_equal(at.url, "https://172.31.0.9:5436");
	buf_init(&pem, 4096);
	assert_int_equal(master_identity(&r->row, &own, &pem, NULL), 0);
	assert_string_equal(at.pin, own.pin);
	assert_string_equal(at.token, own.token);
	assert_int_equal(strlen(at.token), 64);
	assert_null(strstr(SECRET, at.token));
	assert_memory_equal(pem.p, "-----BEGIN ", 11);
	kind_done(r);
}

static void without_an_address_it_is_asked_for_again(void **state)
{
	struct kind_rig *r = *state;
	struct driver_master at;

	make_row(r);
	kind_expect(r, "DescribeInstances", OK(SEEN("")));
	kind_expect(r, "DescribeInstances",
		    OK("<XResponse><reservationSet></reservationSet></XResponse>"));
	for (int i = 0; i < 2; i++) {
		assert_int_equal(ec2_master_driver.reach(&r->row, &at), -1);
		assert_int_equal(r->row.err.kind, ERR_UNAVAILABLE);
	}
	kind_done(r);
}

/* ---- the end ---- */

static void expect_metadata(struct kind_rig *r, const char *id)
{
	kind_expect(r, "PUT /latest/api/token", OK("t"));
	kind_expect(r, "GET /latest/meta-data/instance-id", OK(id));
}

static void destroy(struct kind_rig *r)
{
	setenv("AWS_EC2_METADATA_SERVICE_ENDPOINT", r->fake.url, 1);
	ec2_master_driver.destroy_many(&r->row, 1);
	unsetenv("AWS_EC2_METADATA_SERVICE_ENDPOINT");
}

static void expect_detach(struct kind_rig *r, const char *reply)
{
	kind_expect(r, "DescribeInstances", OK(SEEN(NETWORK)));
	kind_expect(r, "DescribeSecurityGroups", OK(GROUPS));
	kind_expect(r, "ModifyNetworkInterfaceAttribute", OK(reply));
}

static void it_detaches_itself_from_its_group(void **state)
{
	struct kind_rig *r = *state;

	make_row(r);
	expect_detach(r, DONE_XML);
	assert_int_equal(ec2_master_driver.detach(&r->row), 0);
	const struct fake_asked *moved = kind_asked(r, "ModifyNetworkInterfaceAttribute", 0);

	assert_string_equal(kind_param(moved, "NetworkInterfaceId"), "eni-1");
	assert_string_equal(kind_param(moved, "SecurityGroupId.1"), "sg-default");
	kind_done(r);
}

static void a_group_that_it_cannot_leave_is_told(void **state)
{
	struct kind_rig *r = *state;

	make_row(r);
	kind_expect(r, "DescribeInstances", OK(SEEN(NETWORK)));
	kind_expect(r, "DescribeSecurityGroups", OK(GROUPS));
	kind_expect(r, "ModifyNetworkInterfaceAttribute", NO("UnauthorizedOperation", "no"));
	assert_int_equal(ec2_master_driver.detach(&r->row), -1);
	assert_int_equal(r->row.err.kind, ERR_DENIED);
	assert_non_null(strstr(r->row.err.msg, "UnauthorizedOperation"));
	kind_done(r);
}

/* A role that is gone does not keep it. */
static void its_own_machine_is_switched_off_without_asking_ec2(void **state)
{
	struct kind_rig *r = *state;

	make_row(r);
	expect_metadata(r, "i-1");
	destroy(r);
	assert_int_equal(r->row.outcome, OUTCOME_HELD);
	assert_string_equal(spawned, "shutdown -h now");
	kind_done(r);
}

static void another_machine_is_terminated_and_this_one_goes_on(void **state)
{
	struct kind_rig *r = *state;

	make_row(r);
	expect_metadata(r, "i-2");
	kind_expect(r, "DescribeInstances",
		    OK(SEEN("<instanceState><name>running</name></instanceState>" OURS)));
	kind_expect(r, "TerminateInstances",
		    OK("<XResponse><instancesSet><item><instanceId>i-1</instanceId><currentState>"
		       "<name>terminated</name></currentState></item></instancesSet></XResponse>"));
	destroy(r);
	assert_int_equal(r->row.outcome, OUTCOME_DONE);
	assert_string_equal(spawned, "");
	kind_done(r);
}

static void only_its_own_timer_is_moved_on_by_a_master(void **state)
{
	static const struct {
		const char *id, *moved_on;
		enum outcome outcome;
	} rows[] = {{"i-1", "/var/lib/regatta/expires 1", OUTCOME_DONE},
		    {"i-2", "", OUTCOME_DONE},
		    {"i-1", "/var/lib/regatta/expires 3", OUTCOME_UNSURE}};
	struct kind_rig *r = *state;

	for (int i = 0; i < 3; i++) {
		make_row(r);
		r->row.expires_ms = i + 1;
		kind_expect(r, "CreateTags", OK(DONE_XML));
		expect_metadata(r, rows[i].id);
		setenv("AWS_EC2_METADATA_SERVICE_ENDPOINT", r->fake.url, 1);
		ec2_master_driver.extend_many(&r->row, 1);
		unsetenv("AWS_EC2_METADATA_SERVICE_ENDPOINT");
		assert_int_equal(r->row.outcome, rows[i].outcome);
		assert_string_equal(moved_on, rows[i].moved_on);
	}
	kind_done(r);
}

/* ---- the record for other machines ---- */

#define BUCKET_SPEC                                                                                \
	"{\"account\":\"123456789012\",\"region\":\"eu-west-1\",\"port\":5436,\"bucket\":\"b-1\"," \
	"\"keep_days\":30}"

static const struct driver_master there = {
	.url = "https://203.0.113.5:5436", .pin = "sha256//x", .token = "t0ken"};

static void what_others_need_is_left_in_the_bucket(void **state)
{
	struct kind_rig *r = *state;

	make_row(r);
	r->row.spec = BUCKET_SPEC;
	kind_expect(r, "PUT /b-1/masters/r1.json", OK(""));
	assert_int_equal(ec2_master_driver.publish(&r->row, &there), 0);
	const struct fake_asked *put = kind_asked(r, "PUT /b-1/masters/r1.json", 0);

	assert_string_equal(put->body,
			    "{\"run\":\"r1\",\"install\":\"i1\",\"url\":\"https://"
			    "203.0.113.5:5436\",\"pin\":\"sha256//x\",\"token\":\"t0ken\","
			    "\"expires\":\"2027-01-15T08:00:00.000Z\"}\n");
	assert_string_equal(fake_header(put, "x-amz-tagging"), "regatta%3Aretention=30d");
	assert_string_equal(fake_header(put, "x-amz-expected-bucket-owner"), "123456789012");
	kind_done(r);
}

static void a_record_that_cannot_be_left_is_told(void **state)
{
	struct kind_rig *r = *state;

	make_row(r);
	assert_int_equal(ec2_master_driver.publish(&r->row, &there), -1);
	assert_int_equal(r->row.err.kind, ERR_INVALID);
	r->row.spec = BUCKET_SPEC;
	kind_expect(r, "PUT /b-1/masters/r1.json", NO("AccessDenied", "no"));
	assert_int_equal(ec2_master_driver.publish(&r->row, &there), -1);
	assert_non_null(strstr(r->row.err.msg, "the access record of the master"));
	kind_done(r);
}

static void the_record_goes_before_the_group_is_left(void **state)
{
	struct kind_rig *r = *state;

	make_row(r);
	r->row.spec = BUCKET_SPEC;
	kind_expect(r, "DELETE /b-1/masters/r1.json", OK(""));
	expect_detach(r, DONE_XML);
	assert_int_equal(ec2_master_driver.detach(&r->row), 0);
	kind_done(r);
}

static void a_record_that_stays_keeps_no_machine(void **state)
{
	struct kind_rig *r = *state;

	make_row(r);
	r->row.spec = BUCKET_SPEC;
	kind_expect(r, "DELETE /b-1/masters/r1.json", NO("AccessDenied", "no"));
	expect_detach(r, DONE_XML);
	assert_int_equal(ec2_master_driver.detach(&r->row), 0);
	kind_done(r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		kind_test(it_is_where_ec2_shows_it_with_the_key_that_it_was_given),
		kind_test(without_an_address_it_is_asked_for_again),
		kind_test(it_detaches_itself_from_its_group),
		kind_test(a_group_that_it_cannot_leave_is_told),
		kind_test(its_own_machine_is_switched_off_without_asking_ec2),
		kind_test(another_machine_is_terminated_and_this_one_goes_on),
		kind_test(only_its_own_timer_is_moved_on_by_a_master),
		kind_test(what_others_need_is_left_in_the_bucket),
		kind_test(a_record_that_cannot_be_left_is_told),
		kind_test(the_record_goes_before_the_group_is_left),
		kind_test(a_record_that_stays_keeps_no_machine),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
