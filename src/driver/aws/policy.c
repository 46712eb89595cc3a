#include "driver/aws/policy.h"

#include <stddef.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "driver/aws/aws_kind.h"
#include "fmt/jsonw.h"

#define MOST 20
#define MAX_ARN 512

enum {
	CALLER = 1,
	MASTER = 2,
	BUCKET = 4,   /* one statement of the master's policy per bucket */
	READ = 8,     /* the same, per bucket with inputs */
	METRICS = 16, /* the same, per namespace of metrics */
	RESULTS = 32, /* the same, per bucket of the user that results go to */
};

enum condition {
	ANY,
	NEW_WITH_TAG, /* what is made carries the install's tag */
	OURS,	      /* what is changed carries the install's tag */
	TAGS_OF_NEW,  /* tags only as part of a create */
	END_OF_OURS, /* tags of what carries the install's tag, and only the one that tells its end */
	TO_EC2,	     /* the role is passed to instances only */
	OUR_METRICS, /* of the namespace that the job names */
};

/* In resources {p} is the partition, {r} the region, {a} the account, {b} the bucket, {i} the install. */
struct policy_rule {
	const char *sid;
	unsigned who;
	const char *actions[MOST], *resources[MOST];
	enum condition condition;
};

#define EC2 "arn:{p}:ec2:{r}:{a}:"

static const struct policy_rule policy_rules[] = {
	{
		.sid = "Look",
		.who = CALLER | MASTER,
		.actions = {"ec2:Describe*", "sts:GetCallerIdentity"},
		.resources = {"*"},
	},
	{
		.sid = "FindImages",
		.who = CALLER,
		.actions = {"ssm:GetParameter"},
		.resources = {"arn:{p}:ssm:{r}::parameter/aws/service/*",
			      "arn:{p}:ssm:{r}:{a}:parameter/*"},
	},
	{
		.sid = "AskQuota",
		.who = CALLER,
		.actions = {"servicequotas:GetServiceQuota"},
		.resources = {"*"},
	},
	{
		.sid = "LogInToRegistry", /* registry = "ecr" */
		.who = CALLER | MASTER,
		.actions = {"ecr:GetAuthorizationToken"},
		.resources = {"*"},
	},
	{
		.sid = "PullImages", /* by nodes, with that login */
		.who = CALLER | MASTER,
		.actions = {"ecr:BatchCheckLayerAvailability", "ecr:BatchGetImage",
			    "ecr:GetDownloadUrlForLayer"},
		.resources = {"arn:{p}:ecr:*:*:repository/*"},
	},
	{
		.sid = "Launch",
		.who = CALLER | MASTER,
		.actions = {"ec2:RunInstances"},
		.resources = {EC2 "instance/*", EC2 "volume/*", EC2 "network-interface/*",
			      EC2 "spot-instances-request/*"},
		.condition = NEW_WITH_TAG,
	},
	{
		.sid = "LaunchWith",
		.who = CALLER | MASTER,
		.actions = {"ec2:RunInstances"},
		.resources = {"arn:{p}:ec2:{r}::image/*", EC2 "image/*", EC2 "subnet/*",
			      EC2 "security-group/*", EC2 "key-pair/*", EC2 "placement-group/*",
			      EC2 "capacity-reservation/*"},
	},
	{
		.sid = "MakeNetwork",
		.who = CALLER | MASTER,
		.actions = {"ec2:CreateSecurityGroup", "ec2:CreateSubnet",
			    "ec2:CreatePlacementGroup"},
		.resources = {EC2 "security-group/*", EC2 "subnet/*", EC2 "placement-group/*"},
		.condition = NEW_WITH_TAG,
	},
	{
		.sid = "MakeNetworkIn",
		.who = CALLER | MASTER,
		.actions = {"ec2:CreateSecurityGroup", "ec2:CreateSubnet"},
		.resources = {EC2 "vpc/*"},
	},
	{
		.sid = "TagNew",
		.who = CALLER | MASTER,
		.actions = {"ec2:CreateTags"},
		.resources = {EC2 "*"},
		.condition = TAGS_OF_NEW,
	},
	{
		.sid = "ExtendOurs",
		.who = CALLER | MASTER,
		.actions = {"ec2:CreateTags"},
		.resources = {EC2 "instance/*", EC2 "security-group/*", EC2 "subnet/*",
			      EC2 "placement-group/*"},
		.condition = END_OF_OURS,
	},
	{
		.sid = "ChangeOurs",
		.who = CALLER | MASTER,
		.actions = {"ec2:TerminateInstances", "ec2:AuthorizeSecurityGroupIngress",
			    "ec2:RevokeSecurityGroupIngress", "ec2:DeleteSecurityGroup",
			    "ec2:DeleteSubnet", "ec2:DeletePlacementGroup", "ec2:GetConsoleOutput"},
		.resources = {EC2 "instance/*", EC2 "security-group/*", EC2 "subnet/*",
			      EC2 "placement-group/*"},
		.condition = OURS,
	},
	{
		.sid = "CollectOurs",
		.who = CALLER,
		.actions = {"ec2:DeleteNetworkInterface", "ec2:DeleteVolume",
			    "ec2:DeleteLaunchTemplate"},
		.resources = {EC2 "network-interface/*", EC2 "volume/*", EC2 "launch-template/*"},
		.condition = OURS,
	},
	{
		.sid = "FindRoles",
		.who = CALLER,
		.actions = {"iam:ListRoles"},
		.resources = {"*"},
	},
	{
		.sid = "LeaveOwnGroup", /* before it is deleted, with the master's machine in it */
		.who = MASTER,
		.actions = {"ec2:ModifyNetworkInterfaceAttribute"},
		.resources = {EC2 "network-interface/*"},
		.condition = OURS,
	},
	{
		.sid = "LeaveOwnGroupFor",
		.who = MASTER,
		.actions = {"ec2:ModifyNetworkInterfaceAttribute"},
		.resources = {EC2 "security-group/*", EC2 "instance/*"},
	},
	{
		.sid = "MakeBucket",
		.who = CALLER,
		.actions = {"s3:CreateBucket", "s3:PutBucketPublicAccessBlock",
			    "s3:PutEncryptionConfiguration", "s3:PutBucketTagging",
			    "s3:PutLifecycleConfiguration", "s3:GetLifecycleConfiguration"},
		.resources = {"arn:{p}:s3:::{b}"},
	},
	{
		.sid = "ListBucket",
		.who = CALLER | BUCKET,
		.actions = {"s3:ListBucket", "s3:GetBucketTagging",
			    "s3:ListBucketMultipartUploads"},
		.resources = {"arn:{p}:s3:::{b}"},
	},
	{
		.sid = "Objects",
		.who = CALLER | BUCKET,
		.actions = {"s3:GetObject", "s3:PutObject", "s3:PutObjectTagging",
			    "s3:DeleteObject", "s3:AbortMultipartUpload",
			    "s3:ListMultipartUploadParts"},
		.resources = {"arn:{p}:s3:::{b}/*"},
	},
	{
		.sid = "Inputs", /* nodes get URLs that the master signs */
		.who = READ,
		.actions = {"s3:GetObject", "s3:GetObjectVersion"},
		.resources = {"arn:{p}:s3:::{b}/*"},
	},
	{
		.sid = "ListResults",
		.who = RESULTS,
		.actions = {"s3:ListBucket", "s3:ListBucketMultipartUploads"},
		.resources = {"arn:{p}:s3:::{b}"},
	},
	{
		.sid = "Results", /* in a bucket of the user nothing is deleted */
		.who = RESULTS,
		.actions = {"s3:GetObject", "s3:PutObject", "s3:AbortMultipartUpload",
			    "s3:ListMultipartUploadParts"},
		.resources = {"arn:{p}:s3:::{b}/*"},
	},
	{
		.sid = "SendMetrics",
		.who = CALLER | METRICS,
		.actions = {"cloudwatch:PutMetricData"},
		.resources = {"*"},
		.condition = OUR_METRICS,
	},
	{
		.sid = "RoleOfMasters",
		.who = CALLER,
		.actions = {"iam:CreateRole", "iam:TagRole", "iam:GetRole", "iam:PutRolePolicy",
			    "iam:ListRolePolicies", "iam:DeleteRolePolicy", "iam:DeleteRole"},
		.resources = {"arn:{p}:iam::{a}:role/regatta-{i}"},
	},
	{
		.sid = "ProfileOfMasters",
		.who = CALLER,
		.actions = {"iam:CreateInstanceProfile", "iam:TagInstanceProfile",
			    "iam:GetInstanceProfile", "iam:AddRoleToInstanceProfile",
			    "iam:RemoveRoleFromInstanceProfile", "iam:DeleteInstanceProfile"},
		.resources = {"arn:{p}:iam::{a}:instance-profile/regatta-{i}"},
	},
	{
		.sid = "PassRoleToMasters",
		.who = CALLER,
		.actions = {"iam:PassRole"},
		.resources = {"arn:{p}:iam::{a}:role/regatta-{i}"},
		.condition = TO_EC2,
	},
};

static const char *value_of(const struct policy_input *in, char name)
{
	const char *value = NULL;

	switch (name) {
	case 'p':
		return in->partition ? in->partition : "aws";
	case 'r':
		value = in->region;
		break;
	case 'a':
		value = in->account;
		break;
	case 'b':
		value = in->bucket;
		break;
	case 'i':
		value = in->install;
		break;
	default:
		break;
	}
	return value ? value : "*";
}

static void write_resource(struct jsonw *w, const struct policy_input *in, const char *text)
{
	CLEANUP(buf_release) struct buf out = {0};

	buf_init(&out, MAX_ARN);
	for (const char *p = text; *p; p++) {
		if (*p == '{' && p[1] && p[2] == '}') {
			buf_addz(&out, value_of(in, p[1]));
			p += 2;
		} else {
			buf_addc(&out, *p);
		}
	}
	jsonw_str(w, buf_str(&out));
}

static void write_one(struct jsonw *w, const char *operator_, const char *key, const char *value)
{
	jsonw_key(w, "Condition");
	jsonw_open(w, '{');
	jsonw_key(w, operator_);
	jsonw_open(w, '{');
	jsonw_kz(w, key, value);
	jsonw_close(w);
	jsonw_close(w);
}

static void write_create_actions(struct jsonw *w)
{
	static const char *const creates[] = {"RunInstances", "CreateSecurityGroup", "CreateSubnet",
					      "CreatePlacementGroup"};

	jsonw_key(w, "Condition");
	jsonw_open(w, '{');
	jsonw_key(w, "StringEquals");
	jsonw_open(w, '{');
	jsonw_key(w, "ec2:CreateAction");
	jsonw_open(w, '[');
	for (size_t i = 0; i < sizeof(creates) / sizeof(creates[0]); i++)
		jsonw_z(w, creates[i]);
	jsonw_close(w);
	jsonw_close(w);
	jsonw_close(w);
}

static void write_end_of_ours(struct jsonw *w, const char *same, const char *install)
{
	jsonw_key(w, "Condition");
	jsonw_open(w, '{');
	jsonw_key(w, same);
	jsonw_open(w, '{');
	jsonw_kz(w, "aws:ResourceTag/regatta:install", install);
	jsonw_close(w);
	jsonw_key(w, "ForAllValues:StringEquals");
	jsonw_open(w, '{');
	jsonw_kz(w, "aws:TagKeys", AWS_TAG_EXPIRES);
	jsonw_close(w);
	jsonw_close(w);
}

static void write_condition(struct jsonw *w, const struct policy_input *in, enum condition c)
{
	const char *same = in->install ? "StringEquals" : "StringLike";

	switch (c) {
	case ANY:
		return;
	case NEW_WITH_TAG:
		write_one(w, same, "aws:RequestTag/regatta:install", value_of(in, 'i'));
		return;
	case OURS:
		write_one(w, same, "aws:ResourceTag/regatta:install", value_of(in, 'i'));
		return;
	case TAGS_OF_NEW:
		write_create_actions(w);
		return;
	case END_OF_OURS:
		write_end_of_ours(w, same, value_of(in, 'i'));
		return;
	case TO_EC2:
		/* ec2.amazonaws.com, with another ending in China */
		write_one(w, "StringLike", "iam:PassedToService", "ec2.amazonaws.com*");
		return;
	case OUR_METRICS:
		write_one(w, "StringEquals", "cloudwatch:namespace", in->metrics);
		return;
	}
}

static void write_rule(struct jsonw *w, const struct policy_input *in,
		       const struct policy_rule *rule)
{
	jsonw_open(w, '{');
	jsonw_kz(w, "Sid", rule->sid);
	jsonw_kz(w, "Effect", "Allow");
	jsonw_key(w, "Action");
	jsonw_open(w, '[');
	for (size_t i = 0; i < MOST && rule->actions[i]; i++)
		jsonw_z(w, rule->actions[i]);
	jsonw_close(w);
	jsonw_key(w, "Resource");
	jsonw_open(w, '[');
	for (size_t i = 0; i < MOST && rule->resources[i]; i++)
		write_resource(w, in, rule->resources[i]);
	jsonw_close(w);
	write_condition(w, in, rule->condition);
	jsonw_close(w);
}

void policy_write(const struct policy_input *in, struct buf *out)
{
	static const unsigned parts[] = {
		[POLICY_ALL] = CALLER, [POLICY_MASTER] = MASTER,   [POLICY_BUCKET] = BUCKET,
		[POLICY_READ] = READ,  [POLICY_METRICS] = METRICS, [POLICY_RESULTS] = RESULTS,
	};
	struct jsonw w;

	jsonw_init(&w, out);
	jsonw_open(&w, '{');
	jsonw_kz(&w, "Version", "2012-10-17");
	jsonw_key(&w, "Statement");
	jsonw_open(&w, '[');
	for (size_t i = 0; i < sizeof(policy_rules) / sizeof(policy_rules[0]); i++)
		if (policy_rules[i].who & parts[in->part] &&
		    (policy_rules[i].condition != OUR_METRICS || in->metrics))
			write_rule(&w, in, &policy_rules[i]);
	jsonw_close(&w);
	jsonw_close(&w);
}

void policy_write_trust(const char *dns_suffix, struct buf *out)
{
	buf_printf(
		out,
		"{\"Version\":\"2012-10-17\",\"Statement\":[{\"Effect\":\"Allow\",\"Principal\":{"
		"\"Service\":\"ec2.%s\"},\"Action\":\"sts:AssumeRole\"}]}",
		dns_suffix);
}
