#include "kind_rig.h"

#include "base/buf.h"
#include "base/cleanup.h"
#include "driver/aws/ec2_console.h"
#include "driver/aws/ec2_launch.h"

#define SPEC_HEAD                                                                                  \
	"{\"account\":\"123456789012\",\"region\":\"eu-west-1\",\"role\":\"trainer\",\"ami\":"     \
	"\"ami-1\",\"root\":\"/dev/xvda\",\"volume_gb\":12,\"volume_type\":\"gp3\",\"public_ip\":" \
	"true,\"groups\":[\"sg-9\"],\"tags\":{\"team\":\"ads\"},"
#define SPEC SPEC_HEAD "\"subnets\":{\"eu-west-1a\":\"subnet-a\"}}"
#define SPOT                                                                                       \
	SPEC_HEAD                                                                                  \
	"\"subnets\":{},\"spot\":true,\"profile\":\"arn:aws:iam::1:instance-profile/x\","          \
	"\"key_name\":\"k\",\"reservation\":\"cr-1\",\"task_name\":\"old task\"}"
#define CHOICE "{\"type\":\"c5.xlarge\",\"zone\":\"eu-west-1a\"}"
#define ROWS 3
#define INSTANCE(id, index, state, more)                                                           \
	"<item><instanceId>" id "</instanceId><instanceState><name>" state                         \
	"</name></instanceState><amiLaunchIndex>" index "</amiLaunchIndex>" OURS more "</item>"
#define LAUNCHED(inner) "<XResponse><instancesSet>" inner "</instancesSet></XResponse>"
#define SEEN(inner)                                                                                \
	"<XResponse><reservationSet><item><instancesSet>" inner                                    \
	"</instancesSet></item></reservationSet></XResponse>"
#define SHUTTING "shutting-down"
#define CHANGE(id, state)                                                                          \
	"<item><instanceId>" id "</instanceId><currentState><name>" state                          \
	"</name></currentState></item>"

static struct driver_row rows[ROWS];
static char names[ROWS][16];

static void make_rows(struct kind_rig *r, const char *spec)
{
	r->needs[0] = (struct driver_need){"ec2.security_group", "group", "sg-1"};
	r->needs[1] = (struct driver_need){"ec2.subnet", "subnet-eu-west-1a", "subnet-own"};
	for (int i = 0; i < ROWS; i++) {
		rows[i] = r->row;
		snprintf(names[i], sizeof(names[i]), "trainer-%d", i);
		rows[i].kind = "ec2.instance";
		rows[i].name = names[i];
		rows[i].role = "trainer";
		rows[i].spec = spec;
		rows[i].choice = CHOICE;
		rows[i].batch = 7;
		rows[i].batch_place = i;
		rows[i].nneeds = 2;
	}
}

static void set_ids(void)
{
	for (int i = 0; i < ROWS; i++)
		snprintf(rows[i].id, sizeof(rows[i].id), "i-%d", i);
}

static struct fake_asked render(size_t n, struct buf *out)
{
	buf_init(out, 1024 * 1024);
	ec2_instance_driver.render(rows, n, out);
	return (struct fake_asked){.body = out->p, .body_n = out->n};
}

static const char *store(struct buf *out)
{
	render(ROWS, out);
	for (int i = 0; i < ROWS; i++)
		rows[i].request = out->p;
	return out->p;
}

static enum outcome ask_one(void (*many)(struct driver_row *rows, size_t n), struct driver_row *row)
{
	many(row, 1);
	return row->outcome;
}

/* ---- the request ---- */

static void one_request_makes_all_rows(void **state)
{
	CLEANUP(buf_release) struct buf out = {0};
	char token[EC2_TOKEN];
	static const struct {
		const char *name, *value;
	} wanted[] = {
		{"MinCount", "3"},
		{"MaxCount", "3"},
		{"ImageId", "ami-1"},
		{"InstanceType", "c5.xlarge"},
		{"InstanceInitiatedShutdownBehavior", "terminate"},
		{"MetadataOptions.HttpTokens", "required"},
		{"MetadataOptions.HttpPutResponseHopLimit", "1"},
		{"Monitoring.Enabled", "true"},
		{"NetworkInterface.1.DeviceIndex", "0"},
		{"NetworkInterface.1.SubnetId", "subnet-a"},
		{"NetworkInterface.1.AssociatePublicIpAddress", "true"},
		{"NetworkInterface.1.DeleteOnTermination", "true"},
		{"NetworkInterface.1.SecurityGroupId.1", "sg-1"},
		{"NetworkInterface.1.SecurityGroupId.2", "sg-9"},
		{"BlockDeviceMapping.1.DeviceName", "%2Fdev%2Fxvda"},
		{"BlockDeviceMapping.1.Ebs.VolumeSize", "12"},
		{"BlockDeviceMapping.1.Ebs.VolumeType", "gp3"},
		{"BlockDeviceMapping.1.Ebs.DeleteOnTermination", "true"},
		{"TagSpecification.1.ResourceType", "instance"},
		{"TagSpecification.2.ResourceType", "volume"},
		{"TagSpecification.3.ResourceType", "network-interface"},
		{"TagSpecification.1.Tag.1.Key", "regatta%3Ainstall"},
		{"TagSpecification.1.Tag.2.Value", "r1"},
		{"TagSpecification.1.Tag.3.Value", "trainer"},
		{"TagSpecification.1.Tag.4.Key", "regatta%3Aattempt"},
		{"TagSpecification.1.Tag.5.Key", "regatta%3Aexpires"},
		{"TagSpecification.2.Tag.1.Value", "i1"},
		{"TagSpecification.3.Tag.1.Value", "i1"},
		{"TagSpecification.4.ResourceType", ""},
		{"InstanceMarketOptions.MarketType", ""},
		{"KeyName", ""},
		{"Placement.GroupName", ""},
		{"IamInstanceProfile.Name", ""},
	};

	make_rows(*state, SPEC);
	struct fake_asked asked = render(ROWS, &out);

	assert_true(kind_is(&asked, "RunInstances"));
	ec2_token(&rows[0], token);
	assert_string_equal(kind_param(&asked, "ClientToken"), token);
	assert_true(strlen(token) <= 64);
	for (size_t i = 0; i < COUNT(wanted); i++)
		if (strcmp(kind_param(&asked, wanted[i].name), wanted[i].value) != 0)
			fail_msg("%s is '%s'", wanted[i].name, kind_param(&asked, wanted[i].name));
	assert_true(strlen(kind_param(&asked, "UserData")) > 10);
	assert_non_null(strstr(out.p, "Key=team&"));
	assert_null(strstr(out.p, "Task_name"));
}

static void what_a_job_asks_for_is_in_the_request(void **state)
{
	CLEANUP(buf_release) struct buf out = {0};
	struct kind_rig *r = *state;
	static const struct {
		const char *name, *value;
	} wanted[] = {
		{"NetworkInterface.1.SubnetId", "subnet-own"},
		{"InstanceMarketOptions.MarketType", "spot"},
		{"InstanceMarketOptions.SpotOptions.InstanceInterruptionBehavior", "terminate"},
		{"InstanceMarketOptions.SpotOptions.SpotInstanceType", "one-time"},
		{"TagSpecification.4.ResourceType", "spot-instances-request"},
		{"IamInstanceProfile.Arn", "arn%3Aaws%3Aiam%3A%3A1%3Ainstance-profile%2Fx"},
		{"KeyName", "k"},
		{"Placement.GroupName", "regatta-i1-r1"},
		{"CapacityReservationSpecification.CapacityReservationTarget.CapacityReservationId",
		 "cr-1"},
	};

	make_rows(r, SPOT);
	r->needs[2] = (struct driver_need){"ec2.placement_group", "placement", "regatta-i1-r1"};
	rows[0].nneeds = 3;
	struct fake_asked asked = render(1, &out);

	for (size_t i = 0; i < COUNT(wanted); i++)
		if (strcmp(kind_param(&asked, wanted[i].name), wanted[i].value) != 0)
			fail_msg("%s is '%s'", wanted[i].name, kind_param(&asked, wanted[i].name));
	static const char *const old[] = {"Key=Task_name&", "Key=TASK_NAME&", "Key=Role&",
					  "Key=ROLE&", "Value=old%20task&"};

	for (size_t i = 0; i < COUNT(old); i++)
		assert_non_null(strstr(out.p, old[i]));
}

static void a_masters_instance_has_its_own_profile(void **state)
{
	CLEANUP(buf_release) struct buf out = {0};
	struct kind_rig *r = *state;

	make_rows(r, SPEC);
	r->needs[1] = (struct driver_need){"iam.profile", "profile", "regatta-i1"};
	rows[0].kind = "ec2.master";
	rows[0].role = "";
	struct fake_asked asked = render(1, &out);

	assert_string_equal(kind_param(&asked, "IamInstanceProfile.Name"), "regatta-i1");
	assert_string_equal(kind_param(&asked, "TagSpecification.1.Tag.3.Value"), "master");
	assert_string_equal(kind_param(&asked, "MaxCount"), "1");
}

static void each_batch_has_a_token_of_its_own(void **state)
{
	char a[EC2_TOKEN], b[EC2_TOKEN];

	make_rows(*state, SPEC);
	ec2_token(&rows[0], a);
	ec2_token(&rows[1], b);
	assert_string_equal(a, b);
	rows[1].batch = 8;
	ec2_token(&rows[1], b);
	assert_string_not_equal(a, b);
	rows[1] = rows[0];
	rows[1].run = "r2";
	ec2_token(&rows[1], b);
	assert_string_not_equal(a, b);
	rows[1] = rows[0];
	rows[1].install = "i2";
	ec2_token(&rows[1], b);
	assert_string_not_equal(a, b);
	/* The machine of the master that runs these nodes: made by another master, which counts as it likes. */
	rows[1] = rows[0];
	rows[1].kind = "ec2.master";
	ec2_token(&rows[1], b);
	assert_string_not_equal(a, b);
	rows[1] = rows[0];
	rows[1].attempt = 9;
	ec2_token(&rows[1], b);
	assert_string_equal(a, b);
}

/* ---- create ---- */

static void instances_belong_to_rows_by_their_launch_index(void **state)
{
	CLEANUP(buf_release) struct buf out = {0};
	struct kind_rig *r = *state;

	make_rows(r, SPEC);
	const char *bytes = store(&out);

	kind_expect(r, "RunInstances",
		    OK(LAUNCHED(INSTANCE("i-c", "2", "pending", "") INSTANCE(
			    "i-a", "0", "running", "") INSTANCE("i-b", "1", "pending", ""))));
	ec2_instance_driver.create_many(rows, ROWS);
	assert_string_equal(kind_asked(r, "RunInstances", 0)->body, bytes);
	for (int i = 0; i < ROWS; i++) {
		assert_int_equal(rows[i].outcome, OUTCOME_DONE);
		assert_true(rows[i].identity_checked);
	}
	assert_string_equal(rows[0].id, "i-a");
	assert_string_equal(rows[1].id, "i-b");
	assert_string_equal(rows[2].id, "i-c");
	/* a replay may have fewer rows, whose places are as before */
	kind_expect(r, "RunInstances",
		    OK(LAUNCHED(INSTANCE("i-a", "0", "running", "")
					INSTANCE("i-c", "2", "running", ""))));
	rows[2].id[0] = '\0';
	ec2_instance_driver.create_many(&rows[2], 1);
	assert_string_equal(rows[2].id, "i-c");
	kind_done(r);
}

static void a_replay_whose_instance_has_ended_asks_for_another_token(void **state)
{
	CLEANUP(buf_release) struct buf out = {0};
	struct kind_rig *r = *state;

	make_rows(r, SPEC);
	store(&out);
	kind_expect(r, "RunInstances",
		    OK(LAUNCHED(INSTANCE("i-0", "0", "terminated", "") INSTANCE(
			    "i-1", "1", SHUTTING, "") INSTANCE("i-2", "2", "running", ""))));
	ec2_instance_driver.create_many(rows, ROWS);
	assert_int_equal(rows[0].outcome, OUTCOME_ABSENT);
	assert_int_equal(rows[1].outcome, OUTCOME_HELD);
	assert_int_equal(rows[2].outcome, OUTCOME_DONE);
	kind_done(r);
}

static void rows_that_the_answer_does_not_name_are_looked_for(void **state)
{
	CLEANUP(buf_release) struct buf out = {0};
	struct kind_rig *r = *state;

	make_rows(r, SPEC);
	store(&out);
	kind_expect(r, "RunInstances", OK(LAUNCHED(INSTANCE("i-0", "0", "pending", ""))));
	ec2_instance_driver.create_many(rows, ROWS);
	assert_int_equal(rows[0].outcome, OUTCOME_DONE);
	assert_int_equal(rows[1].outcome, OUTCOME_UNSURE);
	assert_int_equal(rows[1].err.kind, ERR_UNAVAILABLE);
	assert_int_equal(rows[2].outcome, OUTCOME_UNSURE);
	kind_done(r);
}

static void a_refused_launch_is_of_the_kind_of_its_code(void **state)
{
	static const struct {
		int status;
		const char *body;
		enum outcome outcome;
		enum err_kind kind;
	} wanted[] = {
		{NO("InsufficientInstanceCapacity", "none"), OUTCOME_REFUSED, ERR_CAPACITY},
		{NO("VcpuLimitExceeded", "limit"), OUTCOME_REFUSED, ERR_QUOTA},
		{NO("UnauthorizedOperation", "no"), OUTCOME_REFUSED, ERR_DENIED},
		{NO("InvalidAMIID.NotFound", "no ami-1"), OUTCOME_REFUSED, ERR_NOT_FOUND},
		/* made by this run, and not seen by everybody yet */
		{NO("InvalidGroup.NotFound", "The security group 'sg-1' does not exist"),
		 OUTCOME_REFUSED, ERR_UNAVAILABLE},
		{NO("InvalidGroup.NotFound", "The security group 'sg-9' does not exist"),
		 OUTCOME_REFUSED, ERR_NOT_FOUND},
	};
	CLEANUP(buf_release) struct buf out = {0};
	struct kind_rig *r = *state;

	make_rows(r, SPEC);
	store(&out);
	for (size_t i = 0; i < COUNT(wanted); i++) {
		kind_expect(r, "RunInstances", wanted[i].status, wanted[i].body);
		ec2_instance_driver.create_many(rows, ROWS);
		for (int k = 0; k < ROWS; k++) {
			assert_int_equal(rows[k].outcome, wanted[i].outcome);
			assert_int_equal(rows[k].err.kind, wanted[i].kind);
		}
	}
	kind_done(r);
}

static void a_profile_that_is_too_new_is_waited_for(void **state)
{
	CLEANUP(buf_release) struct buf out = {0};
	struct kind_rig *r = *state;

	make_rows(r, SPEC);
	r->needs[1] = (struct driver_need){"iam.profile", "profile", "regatta-i1"};
	store(&out);
	kind_expect(r, "RunInstances",
		    NO("InvalidParameterValue", "Value (regatta-i1) for parameter "
						"iamInstanceProfile.name is invalid. Invalid IAM "
						"Instance Profile name"));
	assert_int_equal(ask_one(ec2_master_driver.create_many, &rows[0]), OUTCOME_REFUSED);
	assert_int_equal(rows[0].err.kind, ERR_UNAVAILABLE);
	kind_done(r);
}

static void a_lost_answer_is_unsure(void **state)
{
	CLEANUP(buf_release) struct buf out = {0};
	struct kind_rig *r = *state;

	make_rows(r, SPEC);
	store(&out);
	r->d = deadline_in(300, NULL);
	for (int i = 0; i < 9; i++)
		kind_expect(r, "RunInstances", 0, NULL);
	ec2_instance_driver.create_many(rows, ROWS);
	for (int i = 0; i < ROWS; i++)
		assert_int_equal(rows[i].outcome, OUTCOME_UNSURE);
	rows[0].request = "{}";
	r->d = deadline_in(20000, NULL);
	ec2_instance_driver.create_many(rows, ROWS);
	assert_int_equal(rows[0].outcome, OUTCOME_REFUSED);
}

static void a_token_of_other_bytes_gives_what_it_made(void **state)
{
	CLEANUP(buf_release) struct buf out = {0};
	struct kind_rig *r = *state;

	make_rows(r, SPEC);
	store(&out);
	kind_expect(r, "RunInstances", NO("IdempotentParameterMismatch", "inconsistent"));
	kind_expect(r, "DescribeInstances", OK(SEEN(INSTANCE("i-1", "1", "running", ""))));
	ec2_instance_driver.create_many(rows, ROWS);
	assert_int_equal(rows[0].outcome, OUTCOME_ABSENT);
	assert_non_null(strstr(rows[0].err.msg, "IdempotentParameterMismatch"));
	assert_int_equal(rows[1].outcome, OUTCOME_DONE);
	assert_string_equal(rows[1].id, "i-1");
	kind_done(r);
}

/* ---- find and observe ---- */

static void the_last_words_of_a_machine_fit_one_line(void **state)
{
	static const struct {
		const char *console, *tail;
	} cases[] = {
		{"", ""},
		{"\n \r\n", ""},
		{"one\n\ntwo\nthree", "one | two | three"},
		{"[ 1] cloud-init[7]: regatta: not the program\r\n[ OK ] power-off\n",
		 "regatta: not the program"},
		{"\033[1mbold\n", "\\x1b[1mbold"},
		{"a line that is long enough to leave no room for the one after it, or before it\n"
		 "another that is as long as the one before it, or nearly so\n",
		 "another that is as long as the one before it, or nearly so"},
	};
	char out[EC2_CONSOLE], longest[4000];

	(void)state;
	for (size_t i = 0; i < COUNT(cases); i++) {
		ec2_console_tail(str_from(cases[i].console), out);
		assert_string_equal(out, cases[i].tail);
	}
	memset(longest, 'x', sizeof(longest));
	ec2_console_tail((struct str){longest, sizeof(longest)}, out);
	assert_int_equal(strlen(out), EC2_CONSOLE - 1);
}

#define CONSOLE(text) "<XResponse><output>" text "</output></XResponse>"

static void a_machine_that_should_have_spoken_shows_its_console(void **state)
{
	struct kind_rig *r = *state;

	make_rows(r, SPEC);
	set_ids();
	rows[0].overdue = true;
	kind_expect(r, "DescribeInstances", OK(SEEN(INSTANCE("i-0", "0", "running", ""))));
	kind_expect(r, "GetConsoleOutput", OK(CONSOLE("Ym9vdA=="))); /* boot */
	assert_int_equal(ask_one(ec2_instance_driver.observe_many, &rows[0]), OUTCOME_HELD);
	assert_string_equal(rows[0].err.msg, "boot");
	assert_string_equal(kind_param(kind_asked(r, "GetConsoleOutput", 0), "Latest"), "true");
	kind_expect(r, "DescribeInstances", OK(SEEN(INSTANCE("i-0", "0", "running", ""))));
	kind_expect(r, "GetConsoleOutput", NO("UnsupportedOperation", "not Latest"));
	kind_expect(r, "GetConsoleOutput", NO("UnauthorizedOperation", "nor at all"));
	assert_int_equal(ask_one(ec2_instance_driver.observe_many, &rows[0]), OUTCOME_HELD);
	assert_string_equal(rows[0].err.msg, "");
	assert_string_equal(kind_param(kind_asked(r, "GetConsoleOutput", 2), "Latest"), "");
	kind_done(r);
}

static void a_machine_that_ended_without_a_word_shows_its_console(void **state)
{
	struct kind_rig *r = *state;

	make_rows(r, SPEC);
	set_ids();
	for (int i = 0; i < ROWS; i++)
		rows[i].incarnation = 1;
	rows[1].heard_ms = 5;
	kind_expect(r, "DescribeInstances",
		    OK(SEEN(INSTANCE("i-0", "0", "terminated", "") INSTANCE(
			    "i-1", "1", "terminated", "") INSTANCE("i-2", "2", "running", ""))));
	kind_expect(r, "GetConsoleOutput", OK(CONSOLE("Ym9vdA==")));
	ec2_instance_driver.observe_many(rows, ROWS);
	assert_string_equal(rows[0].err.msg, "instance i-0 is terminated; console: boot");
	assert_string_equal(rows[1].err.msg, "instance i-1 is terminated");
	assert_int_equal(rows[2].outcome, OUTCOME_DONE);
	kind_done(r);
}

static void instances_are_found_by_token_and_then_by_tags(void **state)
{
	struct kind_rig *r = *state;
	const struct fake_asked *second;

	make_rows(r, SPEC);
	kind_expect(r, "DescribeInstances", OK(SEEN("")));
	kind_expect(r, "DescribeInstances",
		    OK(SEEN(INSTANCE("i-0", "0", "running", "")
				    INSTANCE("i-1", "1", "terminated", ""))));
	ec2_instance_driver.find_many(rows, ROWS);
	assert_string_equal(kind_param(kind_asked(r, "DescribeInstances", 0), "Filter.1.Name"),
			    "client-token");
	second = kind_asked(r, "DescribeInstances", 1);
	assert_string_equal(kind_param(second, "Filter.1.Value.1"), "i1");
	assert_string_equal(kind_param(second, "Filter.2.Value.1"), "r1");
	assert_string_equal(kind_param(second, "Filter.3.Value.1"), "7");
	assert_string_equal(kind_param(second, "Filter.4.Name"), "tag%3Aregatta%3Arole");
	assert_string_equal(kind_param(second, "Filter.4.Value.1"), "trainer");
	assert_int_equal(rows[0].outcome, OUTCOME_DONE);
	assert_string_equal(rows[0].id, "i-0");
	assert_int_equal(rows[1].outcome, OUTCOME_ABSENT);
	assert_int_equal(rows[2].outcome, OUTCOME_ABSENT);
	assert_true(rows[2].identity_checked);
	kind_expect(r, "DescribeInstances", NO("UnauthorizedOperation", "no"));
	ec2_instance_driver.find_many(rows, ROWS);
	assert_int_equal(rows[0].outcome, OUTCOME_UNSURE);
	kind_done(r);
}

static void one_look_sees_all_rows(void **state)
{
	struct kind_rig *r = *state;

	make_rows(r, SPEC);
	set_ids();
	kind_expect(
		r, "DescribeInstances",
		OK("<XResponse><reservationSet><item><instancesSet>" INSTANCE(
			"i-0", "0", "running",
			"") "</instancesSet></item></reservationSet><nextToken>t</nextToken></XResponse>"));
	kind_expect(r, "DescribeInstances",
		    OK(SEEN(INSTANCE("i-1", "1", "terminated",
				     "<stateReason><code>Server.SpotInstanceTermination</code>"
				     "<message>taken</message></stateReason>"))));
	ec2_instance_driver.observe_many(rows, ROWS);
	assert_int_equal(rows[0].outcome, OUTCOME_DONE);
	assert_int_equal(rows[1].outcome, OUTCOME_ABSENT);
	assert_string_equal(rows[1].err.msg, "instance i-1 is terminated: taken");
	assert_int_equal(rows[2].outcome, OUTCOME_ABSENT);
	assert_true(rows[2].identity_checked);
	assert_string_equal(kind_param(kind_asked(r, "DescribeInstances", 0), "Filter.1.Value.3"),
			    "i-2");
	kind_expect(r, "DescribeInstances", NO("UnauthorizedOperation", "no"));
	ec2_instance_driver.observe_many(rows, ROWS);
	assert_int_equal(rows[0].outcome, OUTCOME_UNSURE);
	kind_done(r);
}

static void a_machine_that_is_stopping_is_lost(void **state)
{
	static const char *const bodies[] = {SEEN(INSTANCE("i-0", "0", "stopping", "")),
					     SEEN(INSTANCE("i-0", "0", "stopped", "")),
					     SEEN(INSTANCE("i-0", "0", SHUTTING, "")),
					     SEEN(INSTANCE("i-0", "0", "terminated", ""))};
	struct kind_rig *r = *state;

	make_rows(r, SPEC);
	set_ids();
	for (size_t i = 0; i < COUNT(bodies); i++) {
		kind_expect(r, "DescribeInstances", OK(bodies[i]));
		assert_int_equal(ask_one(ec2_instance_driver.observe_many, &rows[0]),
				 OUTCOME_ABSENT);
		assert_int_equal(rows[0].ended, i == 3); /* a stopped one still costs */
	}
	kind_expect(r, "DescribeInstances", OK(SEEN(INSTANCE("i-0", "0", "pending", ""))));
	assert_int_equal(ask_one(ec2_instance_driver.observe_many, &rows[0]), OUTCOME_DONE);
	kind_done(r);
}

/* ---- destroy ---- */

static void gone_is_what_was_seen_terminated(void **state)
{
	struct kind_rig *r = *state;

	make_rows(r, SPEC);
	set_ids();
	kind_expect(r, "DescribeInstances",
		    OK(SEEN(INSTANCE("i-0", "0", "terminated", "") INSTANCE(
			    "i-1", "1", SHUTTING, "") INSTANCE("i-2", "2", "running", ""))));
	kind_expect(r, "TerminateInstances", OK(LAUNCHED(CHANGE("i-2", SHUTTING))));
	ec2_instance_driver.destroy_many(rows, ROWS);
	assert_int_equal(rows[0].outcome, OUTCOME_DONE);
	assert_int_equal(rows[1].outcome, OUTCOME_HELD);
	assert_int_equal(rows[2].outcome, OUTCOME_HELD);
	assert_string_equal(rows[2].err.msg, "instance i-2 is shutting-down");
	assert_string_equal(kind_param(kind_asked(r, "TerminateInstances", 0), "InstanceId.1"),
			    "i-2");
	assert_string_equal(kind_param(kind_asked(r, "TerminateInstances", 0), "InstanceId.2"), "");
	kind_done(r);
}

static void a_stopped_machine_is_terminated_too(void **state)
{
	struct kind_rig *r = *state;

	make_rows(r, SPEC);
	set_ids();
	kind_expect(r, "DescribeInstances", OK(SEEN(INSTANCE("i-0", "0", "stopped", ""))));
	kind_expect(r, "TerminateInstances", OK(LAUNCHED(CHANGE("i-0", "terminated"))));
	assert_int_equal(ask_one(ec2_instance_driver.destroy_many, &rows[0]), OUTCOME_DONE);
	kind_done(r);
}

/* The answer has the instances in an order of its own. */
static void each_machine_has_the_end_that_is_its_own(void **state)
{
	struct kind_rig *r = *state;

	make_rows(r, SPEC);
	set_ids();
	kind_expect(
		r, "DescribeInstances",
		OK(SEEN(INSTANCE("i-0", "0", "running", "") INSTANCE("i-1", "1", "running", ""))));
	kind_expect(r, "TerminateInstances",
		    OK(LAUNCHED(CHANGE("i-1", "terminated") CHANGE("i-0", SHUTTING))));
	ec2_instance_driver.destroy_many(rows, 2);
	assert_int_equal(rows[0].outcome, OUTCOME_HELD);
	assert_int_equal(rows[1].outcome, OUTCOME_DONE);
	kind_done(r);
}

static void one_bad_id_does_not_keep_the_others(void **state)
{
	struct kind_rig *r = *state;

	make_rows(r, SPEC);
	set_ids();
	kind_expect(
		r, "DescribeInstances",
		OK(SEEN(INSTANCE("i-0", "0", "running", "") INSTANCE("i-2", "2", "running", ""))));
	kind_expect(r, "TerminateInstances", NO("InvalidInstanceID.NotFound", "i-1"));
	kind_expect(r, "TerminateInstances", OK(LAUNCHED(CHANGE("i-0", SHUTTING))));
	kind_expect(r, "TerminateInstances", NO("InvalidInstanceID.NotFound", "i-1"));
	kind_expect(r, "TerminateInstances", NO("OperationNotPermitted", "is protected"));
	/* the one that was too new to be seen is asked for again */
	kind_expect(r, "DescribeInstances", OK(SEEN(INSTANCE("i-1", "1", "running", ""))));
	kind_expect(r, "TerminateInstances", OK(LAUNCHED(CHANGE("i-1", "terminated"))));
	ec2_instance_driver.destroy_many(rows, ROWS);
	assert_int_equal(rows[0].outcome, OUTCOME_HELD);
	assert_int_equal(rows[1].outcome, OUTCOME_DONE);
	assert_int_equal(rows[2].outcome, OUTCOME_HELD);
	assert_non_null(strstr(rows[2].err.msg, "is protected"));
	kind_done(r);
}

static void one_call_moves_the_end_of_all_rows(void **state)
{
	struct kind_rig *r = *state;

	make_rows(r, SPEC);
	set_ids();
	rows[0].expires_ms = 1800000000000;
	kind_expect(r, "CreateTags", OK(DONE_XML));
	ec2_instance_driver.extend_many(rows, ROWS);
	for (int i = 0; i < ROWS; i++)
		assert_int_equal(rows[i].outcome, OUTCOME_DONE);
	const struct fake_asked *asked = kind_asked(r, "CreateTags", 0);

	assert_string_equal(kind_param(asked, "ResourceId.1"), "i-0");
	assert_string_equal(kind_param(asked, "ResourceId.3"), "i-2");
	assert_string_equal(kind_param(asked, "Tag.1.Key"), "regatta%3Aexpires");
	assert_string_equal(kind_param(asked, "Tag.1.Value"), "2027-01-15T08%3A00%3A00.000Z");
	assert_string_equal(kind_param(asked, "Tag.2.Key"), "");
	kind_done(r);
}

static void the_end_of_others_moves_though_one_is_not_there(void **state)
{
	struct kind_rig *r = *state;

	make_rows(r, SPEC);
	set_ids();
	kind_expect(r, "CreateTags", NO("InvalidInstanceID.NotFound", "i-1"));
	kind_expect(r, "CreateTags", OK(DONE_XML));
	kind_expect(r, "CreateTags", NO("InvalidInstanceID.NotFound", "i-1"));
	kind_expect(r, "CreateTags", OK(DONE_XML));
	ec2_instance_driver.extend_many(rows, ROWS);
	assert_int_equal(rows[0].outcome, OUTCOME_DONE);
	assert_int_equal(rows[1].outcome, OUTCOME_ABSENT);
	assert_int_equal(rows[2].outcome, OUTCOME_DONE);
	/* Whoever may not is not asked again for each. */
	kind_expect(r, "CreateTags", NO("UnauthorizedOperation", "no"));
	ec2_instance_driver.extend_many(rows, ROWS);
	for (int i = 0; i < ROWS; i++) {
		assert_int_equal(rows[i].outcome, OUTCOME_UNSURE);
		assert_int_equal(rows[i].err.kind, ERR_DENIED);
	}
	kind_done(r);
}

static void an_instance_that_stays_unknown_is_absent(void **state)
{
	struct kind_rig *r = *state;

	make_rows(r, SPEC);
	set_ids();
	for (int i = 0; i < 10; i++) {
		kind_expect(r, "DescribeInstances", OK(SEEN("")));
		kind_expect(r, "TerminateInstances", NO("InvalidInstanceID.NotFound", "i-0"));
	}
	assert_int_equal(ask_one(ec2_instance_driver.destroy_many, &rows[0]), OUTCOME_ABSENT);
	assert_true(rows[0].identity_checked);
	kind_done(r);
}

static void what_may_not_be_looked_at_or_ended_is_held(void **state)
{
	struct kind_rig *r = *state;

	make_rows(r, SPEC);
	set_ids();
	kind_expect(r, "DescribeInstances", NO("UnauthorizedOperation", "no"));
	assert_int_equal(ask_one(ec2_instance_driver.destroy_many, &rows[0]), OUTCOME_HELD);
	kind_expect(r, "DescribeInstances", OK(SEEN(INSTANCE("i-0", "0", "running", ""))));
	kind_expect(r, "TerminateInstances", NO("UnauthorizedOperation", "no"));
	assert_int_equal(ask_one(ec2_instance_driver.destroy_many, &rows[0]), OUTCOME_HELD);
	assert_non_null(strstr(rows[0].err.msg, "ec2:TerminateInstances"));
	kind_expect(r, "DescribeInstances", OK(SEEN(INSTANCE("i-0", "0", "running", ""))));
	kind_expect(r, "TerminateInstances", OK(LAUNCHED("")));
	assert_int_equal(ask_one(ec2_instance_driver.destroy_many, &rows[0]), OUTCOME_UNSURE);
	kind_done(r);
}

static void an_instance_without_our_tag_is_not_ended(void **state)
{
	struct kind_rig *r = *state;

	make_rows(r, SPEC);
	rows[0].install = "another";
	set_ids();
	kind_expect(r, "DescribeInstances", OK(SEEN(INSTANCE("i-0", "0", "running", ""))));
	assert_int_equal(ask_one(ec2_instance_driver.destroy_many, &rows[0]), OUTCOME_HELD);
	assert_non_null(strstr(rows[0].err.msg, "regatta:install=another"));
	kind_done(r);
}

static void a_row_without_an_id_is_looked_for_before_it_is_gone(void **state)
{
	struct kind_rig *r = *state;

	make_rows(r, SPEC);
	kind_expect(r, "DescribeInstances", OK(SEEN(INSTANCE("i-0", "0", "running", ""))));
	kind_expect(r, "DescribeInstances", OK(SEEN(INSTANCE("i-0", "0", "running", ""))));
	kind_expect(r, "TerminateInstances", OK(LAUNCHED(CHANGE("i-0", "terminated"))));
	ec2_instance_driver.destroy_many(rows, 2);
	assert_int_equal(rows[0].outcome, OUTCOME_DONE);
	assert_int_equal(rows[1].outcome, OUTCOME_ABSENT);
	rows[0].id[0] = '\0';
	kind_expect(r, "DescribeInstances", NO("UnauthorizedOperation", "no"));
	assert_int_equal(ask_one(ec2_instance_driver.destroy_many, &rows[0]), OUTCOME_UNSURE);
	kind_done(r);
}

static void another_account_says_nothing(void **state)
{
	struct kind_rig *r = *state;

	r->account = "999999999999";
	make_rows(r, SPEC);
	set_ids();
	ec2_instance_driver.observe_many(rows, ROWS);
	assert_int_equal(rows[0].outcome, OUTCOME_UNSURE);
	assert_false(rows[0].identity_checked);
	assert_int_equal(ask_one(ec2_instance_driver.create_many, &rows[0]), OUTCOME_REFUSED);
	assert_int_equal(ask_one(ec2_instance_driver.destroy_many, &rows[0]), OUTCOME_UNSURE);
	assert_int_equal(ask_one(ec2_instance_driver.find_many, &rows[0]), OUTCOME_UNSURE);
	kind_done(r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		kind_test(one_request_makes_all_rows),
		kind_test(what_a_job_asks_for_is_in_the_request),
		kind_test(a_masters_instance_has_its_own_profile),
		kind_test(each_batch_has_a_token_of_its_own),
		kind_test(instances_belong_to_rows_by_their_launch_index),
		kind_test(a_replay_whose_instance_has_ended_asks_for_another_token),
		kind_test(rows_that_the_answer_does_not_name_are_looked_for),
		kind_test(a_refused_launch_is_of_the_kind_of_its_code),
		kind_test(a_profile_that_is_too_new_is_waited_for),
		kind_test(a_lost_answer_is_unsure),
		kind_test(a_token_of_other_bytes_gives_what_it_made),
		kind_test(instances_are_found_by_token_and_then_by_tags),
		cmocka_unit_test(the_last_words_of_a_machine_fit_one_line),
		kind_test(a_machine_that_should_have_spoken_shows_its_console),
		kind_test(a_machine_that_ended_without_a_word_shows_its_console),
		kind_test(one_look_sees_all_rows),
		kind_test(a_machine_that_is_stopping_is_lost),
		kind_test(gone_is_what_was_seen_terminated),
		kind_test(a_stopped_machine_is_terminated_too),
		kind_test(each_machine_has_the_end_that_is_its_own),
		kind_test(one_bad_id_does_not_keep_the_others),
		kind_test(one_call_moves_the_end_of_all_rows),
		kind_test(the_end_of_others_moves_though_one_is_not_there),
		kind_test(an_instance_that_stays_unknown_is_absent),
		kind_test(what_may_not_be_looked_at_or_ended_is_held),
		kind_test(an_instance_without_our_tag_is_not_ended),
		kind_test(a_row_without_an_id_is_looked_for_before_it_is_gone),
		kind_test(another_account_says_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
