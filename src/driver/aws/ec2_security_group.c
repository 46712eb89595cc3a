/*
 * ec2.security_group - the firewall of a run: its nodes reach each other, nobody else reaches them,
 * and with a port in the spec one range of addresses reaches the master.
 *
 * The name is regatta-<install>-<run>, which a VPC has once: a group of that name with the run's
 * tags is the one that an earlier, unanswered create made.
 *
 * Spec: vpc; port and cidr, or neither.
 */
#include <string.h>

#include "driver/aws/aws_kind.h"
#include "driver/aws/ec2_extend.h"
#include "fmt/doc.h"

#define MOST_TRIES 20 /* of a rule for a new group */
#define TRY_MS 250

static int describe(const struct aws_work *w, struct aws_request *r, struct aws_answer *ret,
		    const struct xml **ret_group, struct err *err)
{
	*ret_group = NULL;
	if (aws_kind_call(w, r, ret, err) < 0)
		return -1;
	*ret_group = xml_at(ret->root, "securityGroupInfo/item");
	return 0;
}

static int describe_named(const struct aws_work *w, struct aws_answer *ret,
			  const struct xml **ret_group, struct err *err)
{
	struct aws_request r;

	aws_request_init(&r, "ec2", "DescribeSecurityGroups");
	aws_param(&r, "group-name", "Filter.1.Name");
	aws_param(&r, aws_kind_name(w, true), "Filter.1.Value.1");
	aws_param(&r, "vpc-id", "Filter.2.Name");
	aws_param(&r, aws_spec(w, "vpc"), "Filter.2.Value.1");
	return describe(w, &r, ret, ret_group, err);
}

static int describe_id(const struct aws_work *w, const char *id, struct aws_answer *ret,
		       const struct xml **ret_group, struct err *err)
{
	struct aws_request r;

	aws_request_init(&r, "ec2", "DescribeSecurityGroups");
	aws_param(&r, id, "GroupId.1");
	return describe(w, &r, ret, ret_group, err);
}

/* ---- rules ---- */

struct group_rule {
	const char *protocol;
	int64_t port;	  /* 0: all */
	const char *cidr; /* NULL: from the group itself */
};

static size_t rules_of(const struct aws_work *w, struct group_rule out[static 2])
{
	const char *cidr = aws_spec(w, "cidr");
	size_t n = 0;

	out[n++] = (struct group_rule){"-1", 0, NULL};
	if (cidr)
		out[n++] = (struct group_rule){"tcp", doc_int(w->spec, "port", 0), cidr};
	return n;
}

/* A rule that opens a port to the whole world is refused, whatever the spec says. */
static bool is_the_world(const char *cidr)
{
	return strcmp(cidr + strcspn(cidr, "/"), "/0") == 0;
}

/* A rule that is there already is as good as one that was made. */
static int add_rule(const struct aws_work *w, const char *id, const struct group_rule *rule,
		    struct aws_answer *ans, struct err *err)
{
	struct aws_request r;

	aws_request_init(&r, "ec2", "AuthorizeSecurityGroupIngress");
	aws_param(&r, id, "GroupId");
	aws_param(&r, rule->protocol, "IpPermissions.1.IpProtocol");
	if (rule->port) {
		aws_param_int(&r, rule->port, "IpPermissions.1.FromPort");
		aws_param_int(&r, rule->port, "IpPermissions.1.ToPort");
	}
	if (rule->cidr)
		aws_param(&r, rule->cidr, "IpPermissions.1.IpRanges.1.CidrIp");
	else
		aws_param(&r, id, "IpPermissions.1.Groups.1.GroupId");
	if (aws_kind_call(w, &r, ans, err) < 0 && !aws_code_is(ans, "InvalidPermission.Duplicate"))
		return -1;
	*err = (struct err){0};
	return 0;
}

static bool has_rule(const struct xml *group, const struct group_rule *rule, const char *id)
{
	for (const struct xml *p = xml_at(group, "ipPermissions/item"); p; p = xml_next(p)) {
		const char *path = rule->cidr ? "ipRanges/item" : "groups/item";

		if (strcmp(xml_text(p, "ipProtocol"), rule->protocol) != 0)
			continue;
		for (const struct xml *x = xml_at(p, path); x; x = xml_next(x))
			if (strcmp(xml_text(x, rule->cidr ? "cidrIp" : "groupId"),
				   rule->cidr ? rule->cidr : id) == 0)
				return true;
	}
	return false;
}

static int revoke_rules(const struct aws_work *w, const char *id, const struct xml *group,
			struct aws_answer *ans, struct err *err)
{
	struct aws_request r;
	int n = 0;

	aws_request_init(&r, "ec2", "RevokeSecurityGroupIngress");
	aws_param(&r, id, "GroupId");
	for (const struct xml *p = xml_at(group, "ipPermissions/item"); p; p = xml_next(p)) {
		int k = 0;

		n++;
		aws_param(&r, xml_text(p, "ipProtocol"), "IpPermissions.%d.IpProtocol", n);
		if (*xml_text(p, "fromPort")) {
			aws_param(&r, xml_text(p, "fromPort"), "IpPermissions.%d.FromPort", n);
			aws_param(&r, xml_text(p, "toPort"), "IpPermissions.%d.ToPort", n);
		}
		for (const struct xml *x = xml_at(p, "groups/item"); x; x = xml_next(x))
			aws_param(&r, xml_text(x, "groupId"), "IpPermissions.%d.Groups.%d.GroupId",
				  n, ++k);
		k = 0;
		for (const struct xml *x = xml_at(p, "ipRanges/item"); x; x = xml_next(x))
			aws_param(&r, xml_text(x, "cidrIp"), "IpPermissions.%d.IpRanges.%d.CidrIp",
				  n, ++k);
	}
	if (n == 0) {
		aws_request_release(&r);
		return 0;
	}
	if (aws_kind_call(w, &r, ans, err) < 0 && !aws_code_is(ans, "InvalidPermission.NotFound"))
		return -1;
	*err = (struct err){0};
	return 0;
}

/* ---- the four questions ---- */

static int delete_group(const struct aws_work *w, const char *id, struct aws_answer *ans,
			struct err *err)
{
	struct aws_request r;

	aws_request_init(&r, "ec2", "DeleteSecurityGroup");
	aws_param(&r, id, "GroupId");
	return aws_kind_call(w, &r, ans, err);
}

/* A group that was just made may not be known everywhere at once. */
static int add_rule_soon(struct aws_work *w, struct driver_row *row, const struct group_rule *rule,
			 struct aws_answer *ans)
{
	for (int tries = 1;; tries++) {
		if (add_rule(w, row->id, rule, ans, &row->err) == 0)
			return 0;
		if (row->err.kind != ERR_NOT_FOUND || tries == MOST_TRIES ||
		    aws_nap(&w->d, TRY_MS, &row->err) < 0)
			return -1;
	}
}

/* A group whose rules are refused is removed again: "refused" means that nothing is there. */
static enum outcome add_rules(struct aws_work *w, struct driver_row *row, struct aws_answer *ans)
{
	struct group_rule rules[2];
	size_t n = rules_of(w, rules);

	for (size_t i = 0; i < n; i++) {
		struct aws_answer removal = {0};
		struct err ignored;
		enum outcome outcome;

		if (add_rule_soon(w, row, &rules[i], ans) == 0)
			continue;
		/* still not visible: the create is repeated */
		if (!ans->refused || row->err.kind == ERR_NOT_FOUND)
			return OUTCOME_UNSURE;
		outcome = delete_group(w, row->id, &removal, &ignored) == 0 ? OUTCOME_REFUSED
									    : OUTCOME_UNSURE;
		aws_answer_release(&removal);
		return outcome;
	}
	return OUTCOME_DONE;
}

static int create_call(const struct aws_work *w, struct aws_answer *ans, struct err *err)
{
	struct aws_request r;

	aws_request_init(&r, "ec2", "CreateSecurityGroup");
	aws_param(&r, aws_kind_name(w, true), "GroupName");
	aws_param(&r, arena_printf(w->a, "run %s of Regatta", w->row->run), "GroupDescription");
	aws_param(&r, aws_spec(w, "vpc"), "VpcId");
	aws_tag_specification(&r, w, 1, "security-group");
	return aws_kind_call(w, &r, ans, err);
}

static enum outcome adopt(struct aws_work *w, struct driver_row *row, struct aws_answer *ans)
{
	const struct xml *group;

	if (describe_named(w, ans, &group, &row->err) < 0)
		return OUTCOME_UNSURE;
	if (!group) {
		err_set(&row->err, ERR_UNAVAILABLE, "security group %s exists, but is not seen yet",
			aws_kind_name(w, true));
		return OUTCOME_UNSURE;
	}
	if (!aws_is_ours(group, row, true)) {
		err_set(&row->err, ERR_CONFLICT,
			"security group %s (%s) exists without the tags of this run: delete it, or "
			"give the run another name",
			aws_kind_name(w, true), xml_text(group, "groupId"));
		return OUTCOME_REFUSED;
	}
	aws_take_id(row, xml_text(group, "groupId"));
	row->err = (struct err){0};
	return OUTCOME_DONE;
}

static enum outcome do_create(struct aws_work *w, struct driver_row *row)
{
	const char *cidr = aws_spec(w, "cidr");
	struct aws_answer ans = {0};
	enum outcome outcome = OUTCOME_DONE;

	if (cidr && is_the_world(cidr)) {
		err_set(&row->err, ERR_INVALID, "the master's port is not opened to %s", cidr);
		return OUTCOME_REFUSED;
	}
	if (create_call(w, &ans, &row->err) == 0)
		aws_take_id(row, xml_text(ans.root, "groupId"));
	else if (aws_code_is(&ans, "InvalidGroup.Duplicate"))
		outcome = adopt(w, row, &ans);
	else
		outcome = aws_kind_failed(AWS_CREATE, &ans, row);
	if (outcome == OUTCOME_DONE)
		outcome = add_rules(w, row, &ans);
	aws_answer_release(&ans);
	return outcome;
}

static enum outcome do_find(struct aws_work *w, struct driver_row *row)
{
	struct aws_answer ans = {0};
	const struct xml *group;
	enum outcome outcome = OUTCOME_DONE;

	if (describe_named(w, &ans, &group, &row->err) < 0)
		outcome = aws_kind_failed(AWS_FIND, &ans, row);
	else if (!group || !aws_is_ours(group, row, true))
		outcome = aws_kind_absent(row);
	else
		aws_take_id(row, xml_text(group, "groupId"));
	aws_answer_release(&ans);
	return outcome;
}

/* A group that lost one of its rules is mended by another create. */
static enum outcome do_observe(struct aws_work *w, struct driver_row *row)
{
	struct aws_answer ans = {0};
	const struct xml *group;
	enum outcome outcome = OUTCOME_DONE;
	struct group_rule rules[2];
	size_t n = rules_of(w, rules);

	if (describe_id(w, row->id, &ans, &group, &row->err) < 0)
		outcome = aws_kind_failed(AWS_OBSERVE, &ans, row);
	else if (!group)
		outcome = aws_kind_absent(row);
	for (size_t i = 0; outcome == OUTCOME_DONE && i < n; i++)
		if (!has_rule(group, &rules[i], row->id))
			outcome = OUTCOME_BROKEN;
	aws_answer_release(&ans);
	return outcome;
}

/* Rules go first: groups that name each other cannot be deleted. */
static enum outcome do_destroy(struct aws_work *w, struct driver_row *row)
{
	struct aws_answer ans = {0};
	const struct xml *group;
	enum outcome outcome = OUTCOME_DONE;

	if ((row->id[0] ? describe_id(w, row->id, &ans, &group, &row->err)
			: describe_named(w, &ans, &group, &row->err)) < 0)
		outcome = aws_kind_failed(AWS_DESTROY, &ans, row);
	else if (!group || (!row->id[0] && !aws_is_ours(group, row, true)))
		outcome = aws_kind_absent(row);
	else if (!aws_is_ours(group, row, false))
		outcome = aws_kind_foreign(row, row->id);
	if (outcome == OUTCOME_DONE) {
		struct aws_answer removal = {0};
		const char *id = xml_text(group, "groupId");

		if (revoke_rules(w, id, group, &removal, &row->err) < 0 ||
		    delete_group(w, id, &removal, &row->err) < 0)
			outcome = aws_kind_failed(AWS_DESTROY, &removal, row);
		aws_answer_release(&removal);
	}
	aws_answer_release(&ans);
	return outcome;
}

AWS_DRIVER(ec2_security_group_driver, "ec2.security_group", ec2_extend);
