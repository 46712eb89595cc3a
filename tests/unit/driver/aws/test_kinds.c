#include "kind_rig.h"

#include "driver/aws/aws_kind.h"

#define GROUP                                                                                      \
	"{\"account\":\"123456789012\",\"region\":\"eu-west-1\",\"vpc\":\"vpc-1\",\"tags\":"       \
	"{\"team\":\"ads\"}}"
#define MASTER_GROUP                                                                               \
	"{\"account\":\"123456789012\",\"region\":\"eu-west-1\",\"vpc\":\"vpc-1\",\"port\":5436,"  \
	"\"cidr\":\"203.0.113.7/32\"}"
#define SUBNET                                                                                     \
	"{\"account\":\"123456789012\",\"region\":\"eu-west-1\",\"vpc\":\"vpc-1\",\"zone\":"       \
	"\"eu-west-1a\",\"cidr\":\"10.0.1.0/28\"}"
#define GROUPS(inner) "<XResponse><securityGroupInfo>" inner "</securityGroupInfo></XResponse>"
#define SELF                                                                                       \
	"<item><ipProtocol>-1</ipProtocol><groups><item><groupId>sg-1</groupId></item></groups>"   \
	"<ipRanges/></item>"
#define OPEN                                                                                        \
	"<item><ipProtocol>tcp</ipProtocol><fromPort>5436</fromPort><toPort>5436</toPort><groups/>" \
	"<ipRanges><item><cidrIp>203.0.113.7/32</cidrIp></item></ipRanges></item>"
#define GROUP_ITEM(tags, rules)                                                                    \
	"<item><groupId>sg-1</groupId><ipPermissions>" rules "</ipPermissions>" tags "</item>"
#define SUBNETS(inner) "<XResponse><subnetSet>" inner "</subnetSet></XResponse>"
#define SUBNET_ITEM(tags, cidr)                                                                    \
	"<item><subnetId>subnet-1</subnetId><cidrBlock>" cidr "</cidrBlock>" tags "</item>"
#define PLACES(inner) "<XResponse><placementGroupSet>" inner "</placementGroupSet></XResponse>"
#define PLACE_ITEM(tags, state)                                                                    \
	"<item><groupName>regatta-i1-r1</groupName><state>" state "</state>" tags "</item>"

static void assert_text(const struct driver_row *row, enum err_kind kind, const char *part)
{
	if (!strstr(row->err.msg, part))
		fail_msg("'%s' has no '%s'", row->err.msg, part);
	assert_int_equal(row->err.kind, kind);
}

/* ---- sessions ---- */

static void a_run_of_another_account_is_not_touched(void **state)
{
	struct kind_rig *r = *state;

	r->account = "999999999999";
	r->row.spec = GROUP;
	snprintf(r->row.id, sizeof(r->row.id), "sg-1");
	assert_int_equal(ec2_security_group_driver.create(&r->row), OUTCOME_REFUSED);
	assert_text(&r->row, ERR_DENIED,
		    "these credentials are of account 999999999999, the run belongs to "
		    "123456789012");
	assert_int_equal(ec2_security_group_driver.find(&r->row), OUTCOME_UNSURE);
	assert_int_equal(ec2_security_group_driver.observe(&r->row), OUTCOME_UNSURE);
	assert_int_equal(ec2_security_group_driver.destroy(&r->row), OUTCOME_UNSURE);
	assert_false(r->row.identity_checked);
	/* A row that does not say whose it is is nobody's. */
	r->row.spec = "{\"region\":\"eu-west-1\",\"vpc\":\"vpc-1\"}";
	assert_int_equal(ec2_security_group_driver.destroy(&r->row), OUTCOME_UNSURE);
	assert_text(&r->row, ERR_DENIED, "the run belongs to none");
	kind_done(r);
}

/* Whatever a call says that got no answer of AWS, a proxy's for example: it proves nothing. */
static void only_aws_can_say_that_something_is_not_there(void **state)
{
	struct kind_rig *r = *state;
	struct aws_answer ans = {.refused = false};

	err_set(&r->row.err, ERR_NOT_FOUND, "404 from somebody on the way");
	assert_int_equal(aws_kind_failed(AWS_DESTROY, &ans, &r->row), OUTCOME_UNSURE);
	assert_int_equal(aws_kind_failed(AWS_FIND, &ans, &r->row), OUTCOME_UNSURE);
	ans.refused = true;
	assert_int_equal(aws_kind_failed(AWS_DESTROY, &ans, &r->row), OUTCOME_ABSENT);
	assert_int_equal(aws_kind_failed(AWS_CREATE, &ans, &r->row), OUTCOME_REFUSED);
}

static void a_session_is_kept_and_its_account_asked_once(void **state)
{
	struct kind_rig *r = *state;

	r->row.spec = GROUP;
	for (int i = 0; i < 3; i++) {
		kind_expect(r, "DescribeSecurityGroups", OK(GROUPS("")));
		assert_int_equal(ec2_security_group_driver.find(&r->row), OUTCOME_ABSENT);
		assert_true(r->row.identity_checked);
	}
	assert_int_equal(r->fake.n, 4);
	kind_done(r);
}

static void other_credentials_are_another_session(void **state)
{
	struct kind_rig *r = *state;
	char *other = xasprintf("{\"access_key\":\"OTHER\",\"secret_key\":\"s\",\"env\":"
				"{\"AWS_ENDPOINT_URL\":\"%s\"}}",
				r->fake.url);

	r->row.spec = GROUP;
	kind_expect(r, "DescribeSecurityGroups", OK(GROUPS("")));
	kind_expect(r, "DescribeSecurityGroups", OK(GROUPS("")));
	ec2_security_group_driver.find(&r->row);
	r->row.credentials = other;
	ec2_security_group_driver.find(&r->row);
	assert_int_equal(r->fake.n, 4);
	assert_non_null(strstr(fake_header(&r->fake.asked[3], "Authorization"), "=OTHER/"));
	free(other);
}

static void what_cannot_be_read_is_not_sent(void **state)
{
	struct kind_rig *r = *state;

	r->row.spec = "{";
	assert_int_equal(ec2_security_group_driver.create(&r->row), OUTCOME_REFUSED);
	assert_text(&r->row, ERR_INVALID, "the spec of ec2.x 'x'");
	r->row.spec = GROUP;
	r->row.credentials = "{";
	assert_int_equal(ec2_security_group_driver.create(&r->row), OUTCOME_REFUSED);
	assert_text(&r->row, ERR_INVALID, "the credentials of the run");
	kind_done(r);
}

/* ---- the security group ---- */

static void a_group_is_tagged_as_it_is_made_and_open_to_itself_only(void **state)
{
	struct kind_rig *r = *state;
	const struct fake_asked *made, *rule;

	r->row.spec = GROUP;
	kind_expect(r, "CreateSecurityGroup", OK("<XResponse><groupId>sg-1</groupId></XResponse>"));
	kind_expect(r, "AuthorizeSecurityGroupIngress", OK(DONE_XML));
	assert_int_equal(ec2_security_group_driver.create(&r->row), OUTCOME_DONE);
	assert_string_equal(r->row.id, "sg-1");
	made = kind_asked(r, "CreateSecurityGroup", 0);
	assert_string_equal(kind_param(made, "GroupName"), "regatta-i1-r1");
	assert_string_equal(kind_param(made, "VpcId"), "vpc-1");
	assert_string_equal(kind_param(made, "TagSpecification.1.ResourceType"), "security-group");
	assert_string_equal(kind_param(made, "TagSpecification.1.Tag.1.Key"), "regatta%3Ainstall");
	assert_string_equal(kind_param(made, "TagSpecification.1.Tag.1.Value"), "i1");
	assert_string_equal(kind_param(made, "TagSpecification.1.Tag.2.Value"), "r1");
	assert_non_null(strstr(made->body, "Key=team&"));
	assert_non_null(strstr(made->body, "Value=2027-01-15T08%3A00%3A00.000Z"));
	rule = kind_asked(r, "AuthorizeSecurityGroupIngress", 0);
	assert_string_equal(kind_param(rule, "IpPermissions.1.IpProtocol"), "-1");
	assert_string_equal(kind_param(rule, "IpPermissions.1.Groups.1.GroupId"), "sg-1");
	assert_null(strstr(rule->body, "CidrIp"));
	kind_done(r);
}

static void the_masters_port_is_open_to_one_range(void **state)
{
	struct kind_rig *r = *state;
	const struct fake_asked *rule;

	r->row.spec = MASTER_GROUP;
	kind_expect(r, "CreateSecurityGroup", OK("<XResponse><groupId>sg-1</groupId></XResponse>"));
	kind_expect(r, "AuthorizeSecurityGroupIngress", OK(DONE_XML));
	kind_expect(r, "AuthorizeSecurityGroupIngress",
		    NO("InvalidPermission.Duplicate", "already exists"));
	assert_int_equal(ec2_security_group_driver.create(&r->row), OUTCOME_DONE);
	rule = kind_asked(r, "AuthorizeSecurityGroupIngress", 1);
	assert_string_equal(kind_param(rule, "IpPermissions.1.IpRanges.1.CidrIp"),
			    "203.0.113.7%2F32");
	assert_string_equal(kind_param(rule, "IpPermissions.1.FromPort"), "5436");
	assert_string_equal(kind_param(rule, "IpPermissions.1.ToPort"), "5436");
	kind_done(r);
}

static void no_group_is_open_to_the_world(void **state)
{
	struct kind_rig *r = *state;

	r->row.spec = "{\"account\":\"123456789012\",\"region\":\"eu-west-1\",\"vpc\":\"vpc-1\","
		      "\"port\":5436,\"cidr\":\"0.0.0.0/0\"}";
	assert_int_equal(ec2_security_group_driver.create(&r->row), OUTCOME_REFUSED);
	assert_text(&r->row, ERR_INVALID, "not opened to 0.0.0.0/0");
	kind_done(r);
}

static void a_group_of_an_unanswered_create_is_adopted_by_its_tags(void **state)
{
	struct kind_rig *r = *state;

	r->row.spec = GROUP;
	kind_expect(r, "CreateSecurityGroup", NO("InvalidGroup.Duplicate", "exists"));
	kind_expect(r, "DescribeSecurityGroups", OK(GROUPS(GROUP_ITEM(OURS, ""))));
	kind_expect(r, "AuthorizeSecurityGroupIngress", OK(DONE_XML));
	assert_int_equal(ec2_security_group_driver.create(&r->row), OUTCOME_DONE);
	assert_string_equal(r->row.id, "sg-1");
	kind_done(r);
}

static void a_lost_answer_and_a_duplicate_are_one_group(void **state)
{
	struct kind_rig *r = *state;

	r->row.spec = GROUP;
	kind_expect(r, "CreateSecurityGroup", 0, NULL);
	kind_expect(r, "CreateSecurityGroup", NO("InvalidGroup.Duplicate", "exists"));
	kind_expect(r, "DescribeSecurityGroups", OK(GROUPS(GROUP_ITEM(OURS, ""))));
	kind_expect(r, "AuthorizeSecurityGroupIngress", 0, NULL);
	kind_expect(r, "AuthorizeSecurityGroupIngress",
		    NO("InvalidPermission.Duplicate", "exists"));
	assert_int_equal(ec2_security_group_driver.create(&r->row), OUTCOME_DONE);
	assert_string_equal(r->row.id, "sg-1");
	kind_done(r);
}

static void a_group_without_our_tags_is_not_taken(void **state)
{
	struct kind_rig *r = *state;

	r->row.spec = GROUP;
	kind_expect(r, "CreateSecurityGroup", NO("InvalidGroup.Duplicate", "exists"));
	kind_expect(r, "DescribeSecurityGroups", OK(GROUPS(GROUP_ITEM(TAGS("i1", "r2"), ""))));
	assert_int_equal(ec2_security_group_driver.create(&r->row), OUTCOME_REFUSED);
	assert_text(&r->row, ERR_CONFLICT, "regatta-i1-r1 (sg-1) exists without the tags");
	kind_expect(r, "DescribeSecurityGroups", OK(GROUPS(GROUP_ITEM(TAGS("i2", "r1"), ""))));
	assert_int_equal(ec2_security_group_driver.find(&r->row), OUTCOME_ABSENT);
	kind_done(r);
}

static void a_group_that_exists_and_is_not_seen_is_unsure(void **state)
{
	struct kind_rig *r = *state;

	r->row.spec = GROUP;
	kind_expect(r, "CreateSecurityGroup", NO("InvalidGroup.Duplicate", "exists"));
	kind_expect(r, "DescribeSecurityGroups", OK(GROUPS("")));
	assert_int_equal(ec2_security_group_driver.create(&r->row), OUTCOME_UNSURE);
	kind_expect(r, "CreateSecurityGroup", NO("InvalidGroup.Duplicate", "exists"));
	kind_expect(r, "DescribeSecurityGroups", NO("UnauthorizedOperation", "no"));
	assert_int_equal(ec2_security_group_driver.create(&r->row), OUTCOME_UNSURE);
	kind_done(r);
}

static void a_group_whose_rules_are_refused_is_removed(void **state)
{
	struct kind_rig *r = *state;

	r->row.spec = GROUP;
	kind_expect(r, "CreateSecurityGroup", OK("<XResponse><groupId>sg-1</groupId></XResponse>"));
	kind_expect(r, "AuthorizeSecurityGroupIngress", NO("UnauthorizedOperation", "no"));
	kind_expect(r, "DeleteSecurityGroup", OK(DONE_XML));
	assert_int_equal(ec2_security_group_driver.create(&r->row), OUTCOME_REFUSED);
	assert_text(&r->row, ERR_DENIED, "ec2:AuthorizeSecurityGroupIngress");
	kind_expect(r, "CreateSecurityGroup", OK("<XResponse><groupId>sg-1</groupId></XResponse>"));
	kind_expect(r, "AuthorizeSecurityGroupIngress", NO("UnauthorizedOperation", "no"));
	kind_expect(r, "DeleteSecurityGroup", NO("UnauthorizedOperation", "no"));
	assert_int_equal(ec2_security_group_driver.create(&r->row), OUTCOME_UNSURE);
	kind_expect(r, "CreateSecurityGroup", OK("<XResponse><groupId>sg-1</groupId></XResponse>"));
	kind_expect(r, "AuthorizeSecurityGroupIngress", NO("InvalidGroup.NotFound", "not yet"));
	kind_expect(r, "AuthorizeSecurityGroupIngress", OK(DONE_XML));
	assert_int_equal(ec2_security_group_driver.create(&r->row), OUTCOME_DONE);
	kind_done(r);
}

static void a_refused_create_says_why(void **state)
{
	struct kind_rig *r = *state;

	r->row.spec = GROUP;
	kind_expect(r, "CreateSecurityGroup", NO("UnauthorizedOperation", "no"));
	assert_int_equal(ec2_security_group_driver.create(&r->row), OUTCOME_REFUSED);
	assert_text(&r->row, ERR_DENIED, "ec2:CreateSecurityGroup");
	assert_text(&r->row, ERR_DENIED, "request id r-1");
	kind_done(r);
}

static void a_group_that_lost_a_rule_is_broken(void **state)
{
	struct kind_rig *r = *state;

	r->row.spec = MASTER_GROUP;
	snprintf(r->row.id, sizeof(r->row.id), "sg-1");
	kind_expect(r, "DescribeSecurityGroups", OK(GROUPS(GROUP_ITEM(OURS, SELF OPEN))));
	assert_int_equal(ec2_security_group_driver.observe(&r->row), OUTCOME_DONE);
	kind_expect(r, "DescribeSecurityGroups", OK(GROUPS(GROUP_ITEM(OURS, OPEN))));
	assert_int_equal(ec2_security_group_driver.observe(&r->row), OUTCOME_BROKEN);
	kind_expect(r, "DescribeSecurityGroups", OK(GROUPS(GROUP_ITEM(OURS, SELF))));
	assert_int_equal(ec2_security_group_driver.observe(&r->row), OUTCOME_BROKEN);
	kind_expect(r, "DescribeSecurityGroups", NO("InvalidGroup.NotFound", "gone"));
	assert_int_equal(ec2_security_group_driver.observe(&r->row), OUTCOME_ABSENT);
	kind_expect(r, "DescribeSecurityGroups", NO("UnauthorizedOperation", "no"));
	assert_int_equal(ec2_security_group_driver.observe(&r->row), OUTCOME_UNSURE);
	kind_done(r);
}

static void rules_go_before_their_group(void **state)
{
	struct kind_rig *r = *state;
	const struct fake_asked *revoked;

	r->row.spec = MASTER_GROUP;
	snprintf(r->row.id, sizeof(r->row.id), "sg-1");
	kind_expect(r, "DescribeSecurityGroups", OK(GROUPS(GROUP_ITEM(OURS, SELF OPEN))));
	kind_expect(r, "RevokeSecurityGroupIngress", OK(DONE_XML));
	kind_expect(r, "DeleteSecurityGroup", OK(DONE_XML));
	assert_int_equal(ec2_security_group_driver.destroy(&r->row), OUTCOME_DONE);
	revoked = kind_asked(r, "RevokeSecurityGroupIngress", 0);
	assert_string_equal(kind_param(revoked, "IpPermissions.1.Groups.1.GroupId"), "sg-1");
	assert_string_equal(kind_param(revoked, "IpPermissions.2.IpRanges.1.CidrIp"),
			    "203.0.113.7%2F32");
	assert_string_equal(kind_param(revoked, "IpPermissions.2.FromPort"), "5436");
	kind_done(r);
}

static void a_group_in_use_is_held_with_its_words(void **state)
{
	struct kind_rig *r = *state;

	r->row.spec = GROUP;
	snprintf(r->row.id, sizeof(r->row.id), "sg-1");
	kind_expect(r, "DescribeSecurityGroups", OK(GROUPS(GROUP_ITEM(OURS, ""))));
	kind_expect(r, "DeleteSecurityGroup",
		    NO("DependencyViolation", "resource sg-1 has a dependent object"));
	assert_int_equal(ec2_security_group_driver.destroy(&r->row), OUTCOME_HELD);
	assert_text(&r->row, ERR_CONFLICT, "resource sg-1 has a dependent object");
	kind_expect(r, "DescribeSecurityGroups", NO("UnauthorizedOperation", "no"));
	assert_int_equal(ec2_security_group_driver.destroy(&r->row), OUTCOME_HELD);
	kind_expect(r, "DescribeSecurityGroups", NO("InvalidGroup.NotFound", "gone"));
	assert_int_equal(ec2_security_group_driver.destroy(&r->row), OUTCOME_ABSENT);
	assert_true(r->row.identity_checked);
	kind_expect(r, "DescribeSecurityGroups", OK(GROUPS(GROUP_ITEM(TAGS("i2", "r1"), SELF))));
	assert_int_equal(ec2_security_group_driver.destroy(&r->row), OUTCOME_HELD);
	assert_text(&r->row, ERR_CONFLICT, "it is not touched");
	r->row.id[0] = '\0';
	kind_expect(r, "DescribeSecurityGroups", OK(GROUPS(GROUP_ITEM(TAGS("i2", "r1"), SELF))));
	assert_int_equal(ec2_security_group_driver.destroy(&r->row), OUTCOME_ABSENT);
	kind_done(r);
}

/* ---- the subnet ---- */

static void a_subnet_is_tagged_as_it_is_made(void **state)
{
	struct kind_rig *r = *state;
	const struct fake_asked *made;

	r->row.spec = SUBNET;
	kind_expect(r, "CreateSubnet",
		    OK("<XResponse><subnet><subnetId>subnet-1</subnetId></subnet></XResponse>"));
	assert_int_equal(ec2_subnet_driver.create(&r->row), OUTCOME_DONE);
	assert_string_equal(r->row.id, "subnet-1");
	made = kind_asked(r, "CreateSubnet", 0);
	assert_string_equal(kind_param(made, "AvailabilityZone"), "eu-west-1a");
	assert_string_equal(kind_param(made, "CidrBlock"), "10.0.1.0%2F28");
	assert_string_equal(kind_param(made, "TagSpecification.1.ResourceType"), "subnet");
	assert_string_equal(kind_param(made, "TagSpecification.1.Tag.1.Value"), "i1");
	kind_done(r);
}

static void a_subnet_in_the_range_is_adopted_if_it_is_ours(void **state)
{
	static const struct {
		const char *subnets;
		enum outcome outcome;
		const char *text;
	} rows[] = {
		{SUBNETS(SUBNET_ITEM(OURS, "10.0.1.0/28")), OUTCOME_DONE, ""},
		{SUBNETS(SUBNET_ITEM(TAGS("i1", "r2"), "10.0.1.0/28")), OUTCOME_REFUSED,
		 "is taken by subnet-1"},
		{SUBNETS(SUBNET_ITEM("", "10.0.0.0/23")), OUTCOME_REFUSED, "is taken by subnet-1"},
		{SUBNETS(SUBNET_ITEM("", "10.0.2.0/24")), OUTCOME_UNSURE, "not seen yet"},
		{SUBNETS(""), OUTCOME_UNSURE, "not seen yet"},
	};
	struct kind_rig *r = *state;

	r->row.spec = SUBNET;
	for (size_t i = 0; i < COUNT(rows); i++) {
		kind_expect(r, "CreateSubnet", NO("InvalidSubnet.Conflict", "conflicts"));
		kind_expect(r, "DescribeSubnets", OK(rows[i].subnets));
		assert_int_equal(ec2_subnet_driver.create(&r->row), rows[i].outcome);
		assert_non_null(strstr(r->row.err.msg, rows[i].text));
	}
	kind_expect(r, "CreateSubnet", NO("InvalidSubnet.Conflict", "conflicts"));
	kind_expect(r, "DescribeSubnets", NO("UnauthorizedOperation", "no"));
	assert_int_equal(ec2_subnet_driver.create(&r->row), OUTCOME_UNSURE);
	/* One of several ranges: the core tries the next one. */
	r->row.choice = "{\"cidr\":\"10.0.7.0/28\"}";
	kind_expect(r, "CreateSubnet", NO("InvalidSubnet.Conflict", "conflicts"));
	kind_expect(r, "DescribeSubnets", OK(SUBNETS(SUBNET_ITEM("", "10.0.7.0/28"))));
	assert_int_equal(ec2_subnet_driver.create(&r->row), OUTCOME_REFUSED);
	assert_text(&r->row, ERR_CAPACITY, "the range 10.0.7.0/28 was free and is taken");
	kind_expect(r, "DescribeSubnets", OK(SUBNETS(SUBNET_ITEM(OURS, "10.0.7.0/28"))));
	assert_int_equal(ec2_subnet_driver.find(&r->row), OUTCOME_DONE);
	r->row.choice = NULL;
	kind_expect(r, "CreateSubnet", NO("SubnetLimitExceeded", "too many"));
	assert_int_equal(ec2_subnet_driver.create(&r->row), OUTCOME_REFUSED);
	assert_text(&r->row, ERR_QUOTA, "SubnetLimitExceeded");
	kind_done(r);
}

static void a_subnet_is_found_seen_and_deleted(void **state)
{
	struct kind_rig *r = *state;

	r->row.spec = SUBNET;
	kind_expect(r, "DescribeSubnets", OK(SUBNETS(SUBNET_ITEM(OURS, "10.0.1.0/28"))));
	assert_int_equal(ec2_subnet_driver.find(&r->row), OUTCOME_DONE);
	assert_string_equal(r->row.id, "subnet-1");
	kind_expect(r, "DescribeSubnets", OK(SUBNETS(SUBNET_ITEM(OURS, "10.0.1.0/28"))));
	assert_int_equal(ec2_subnet_driver.observe(&r->row), OUTCOME_DONE);
	kind_expect(r, "DescribeSubnets", NO("InvalidSubnetID.NotFound", "gone"));
	assert_int_equal(ec2_subnet_driver.observe(&r->row), OUTCOME_ABSENT);
	kind_expect(r, "DescribeSubnets", OK(SUBNETS(SUBNET_ITEM(OURS, "10.0.1.0/28"))));
	kind_expect(r, "DeleteSubnet", NO("DependencyViolation", "has dependencies"));
	assert_int_equal(ec2_subnet_driver.destroy(&r->row), OUTCOME_HELD);
	assert_text(&r->row, ERR_CONFLICT, "has dependencies");
	kind_expect(r, "DescribeSubnets", OK(SUBNETS(SUBNET_ITEM("", "10.0.1.0/28"))));
	assert_int_equal(ec2_subnet_driver.destroy(&r->row), OUTCOME_HELD);
	kind_expect(r, "DescribeSubnets", OK(SUBNETS(SUBNET_ITEM(OURS, "10.0.1.0/28"))));
	kind_expect(r, "DeleteSubnet", OK(DONE_XML));
	assert_int_equal(ec2_subnet_driver.destroy(&r->row), OUTCOME_DONE);
	r->row.id[0] = '\0';
	kind_expect(r, "DescribeSubnets", OK(SUBNETS("")));
	assert_int_equal(ec2_subnet_driver.destroy(&r->row), OUTCOME_ABSENT);
	kind_expect(r, "DescribeSubnets", NO("UnauthorizedOperation", "no"));
	assert_int_equal(ec2_subnet_driver.find(&r->row), OUTCOME_UNSURE);
	kind_done(r);
}

/* ---- the placement group ---- */

static void a_placement_group_is_made_once(void **state)
{
	static const struct {
		const char *groups;
		enum outcome outcome;
	} rows[] = {
		{PLACES(PLACE_ITEM(OURS, "available")), OUTCOME_DONE},
		{PLACES(PLACE_ITEM("", "available")), OUTCOME_REFUSED},
		{PLACES(PLACE_ITEM(OURS, "deleting")), OUTCOME_UNSURE},
		{PLACES(""), OUTCOME_UNSURE},
	};
	struct kind_rig *r = *state;

	r->row.spec = GROUP;
	kind_expect(r, "CreatePlacementGroup", OK(DONE_XML));
	assert_int_equal(ec2_placement_group_driver.create(&r->row), OUTCOME_DONE);
	assert_string_equal(r->row.id, "regatta-i1-r1");
	assert_string_equal(kind_param(kind_asked(r, "CreatePlacementGroup", 0),
				       "TagSpecification.1.ResourceType"),
			    "placement-group");
	for (size_t i = 0; i < COUNT(rows); i++) {
		kind_expect(r, "CreatePlacementGroup", NO("InvalidPlacementGroup.Duplicate", "x"));
		kind_expect(r, "DescribePlacementGroups", OK(rows[i].groups));
		assert_int_equal(ec2_placement_group_driver.create(&r->row), rows[i].outcome);
	}
	kind_expect(r, "CreatePlacementGroup", NO("UnauthorizedOperation", "x"));
	assert_int_equal(ec2_placement_group_driver.create(&r->row), OUTCOME_REFUSED);
	kind_done(r);
}

static void a_placement_group_is_found_and_deleted(void **state)
{
	struct kind_rig *r = *state;

	r->row.spec = GROUP;
	kind_expect(r, "DescribePlacementGroups", OK(PLACES(PLACE_ITEM(OURS, "available"))));
	assert_int_equal(ec2_placement_group_driver.find(&r->row), OUTCOME_DONE);
	kind_expect(r, "DescribePlacementGroups", OK(PLACES(PLACE_ITEM(OURS, "available"))));
	kind_expect(r, "DeletePlacementGroup", NO("InvalidPlacementGroup.InUse", "in use"));
	assert_int_equal(ec2_placement_group_driver.destroy(&r->row), OUTCOME_HELD);
	kind_expect(r, "DescribePlacementGroups", OK(PLACES(PLACE_ITEM(OURS, "available"))));
	kind_expect(r, "DeletePlacementGroup", OK(DONE_XML));
	assert_int_equal(ec2_placement_group_driver.destroy(&r->row), OUTCOME_DONE);
	kind_expect(r, "DescribePlacementGroups", OK(PLACES("")));
	assert_int_equal(ec2_placement_group_driver.destroy(&r->row), OUTCOME_ABSENT);
	kind_expect(r, "DescribePlacementGroups", OK(PLACES(PLACE_ITEM("", "available"))));
	assert_int_equal(ec2_placement_group_driver.destroy(&r->row), OUTCOME_ABSENT);
	kind_expect(r, "DescribePlacementGroups", OK(PLACES(PLACE_ITEM(OURS, "deleted"))));
	assert_int_equal(ec2_placement_group_driver.observe(&r->row), OUTCOME_ABSENT);
	kind_expect(r, "DescribePlacementGroups", NO("UnauthorizedOperation", "no"));
	assert_int_equal(ec2_placement_group_driver.observe(&r->row), OUTCOME_UNSURE);
	kind_done(r);
}

/* ---- the end of a run without a limit ---- */

static void the_end_of_networks_moves_on(void **state)
{
	struct kind_rig *r = *state;

	r->row.spec = SUBNET;
	snprintf(r->row.id, sizeof(r->row.id), "subnet-1");
	kind_expect(r, "CreateTags", OK(DONE_XML));
	assert_int_equal(ec2_subnet_driver.extend(&r->row), OUTCOME_DONE);
	assert_string_equal(kind_param(kind_asked(r, "CreateTags", 0), "ResourceId.1"), "subnet-1");
	kind_expect(r, "CreateTags", NO("InvalidGroup.NotFound", "sg-1"));
	assert_int_equal(ec2_security_group_driver.extend(&r->row), OUTCOME_ABSENT);
	kind_expect(r, "CreateTags", NO("UnauthorizedOperation", "no"));
	assert_int_equal(ec2_security_group_driver.extend(&r->row), OUTCOME_UNSURE);
	kind_done(r);
}

static void a_placement_group_is_tagged_by_its_id(void **state)
{
	struct kind_rig *r = *state;

	r->row.spec = GROUP;
	kind_expect(
		r, "DescribePlacementGroups",
		OK(PLACES("<item><groupId>pg-1</groupId><state>available</state>" OURS "</item>")));
	kind_expect(r, "CreateTags", OK(DONE_XML));
	assert_int_equal(ec2_placement_group_driver.extend(&r->row), OUTCOME_DONE);
	assert_string_equal(kind_param(kind_asked(r, "CreateTags", 0), "ResourceId.1"), "pg-1");
	kind_expect(r, "DescribePlacementGroups", OK(PLACES("")));
	assert_int_equal(ec2_placement_group_driver.extend(&r->row), OUTCOME_ABSENT);
	kind_expect(r, "DescribePlacementGroups", NO("UnauthorizedOperation", "no"));
	assert_int_equal(ec2_placement_group_driver.extend(&r->row), OUTCOME_UNSURE);
	kind_expect(
		r, "DescribePlacementGroups",
		OK(PLACES("<item><groupId>pg-1</groupId><state>available</state>" OURS "</item>")));
	kind_expect(r, "CreateTags", NO("UnauthorizedOperation", "no"));
	assert_int_equal(ec2_placement_group_driver.extend(&r->row), OUTCOME_UNSURE);
	kind_done(r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		kind_test(a_run_of_another_account_is_not_touched),
		kind_test(only_aws_can_say_that_something_is_not_there),
		kind_test(a_session_is_kept_and_its_account_asked_once),
		kind_test(other_credentials_are_another_session),
		kind_test(what_cannot_be_read_is_not_sent),
		kind_test(a_group_is_tagged_as_it_is_made_and_open_to_itself_only),
		kind_test(the_masters_port_is_open_to_one_range),
		kind_test(no_group_is_open_to_the_world),
		kind_test(a_group_of_an_unanswered_create_is_adopted_by_its_tags),
		kind_test(a_lost_answer_and_a_duplicate_are_one_group),
		kind_test(a_group_without_our_tags_is_not_taken),
		kind_test(a_group_that_exists_and_is_not_seen_is_unsure),
		kind_test(a_group_whose_rules_are_refused_is_removed),
		kind_test(a_refused_create_says_why),
		kind_test(a_group_that_lost_a_rule_is_broken),
		kind_test(rules_go_before_their_group),
		kind_test(a_group_in_use_is_held_with_its_words),
		kind_test(a_subnet_is_tagged_as_it_is_made),
		kind_test(a_subnet_in_the_range_is_adopted_if_it_is_ours),
		kind_test(a_subnet_is_found_seen_and_deleted),
		kind_test(a_placement_group_is_made_once),
		kind_test(a_placement_group_is_found_and_deleted),
		kind_test(the_end_of_networks_moves_on),
		kind_test(a_placement_group_is_tagged_by_its_id),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
