/*
 * ec2.subnet - a subnet of the run's own, in one zone.
 *
 * The ranges are fixed when the run is resolved: a subnet of the chosen one with the run's tags is the one
 * that an earlier, unanswered create made.  Until the subnet is made, which after a hand-over may be minutes
 * later, somebody else may take the range: then the next choice is tried.
 *
 * Spec: vpc, zone, cidr; choice: cidr.
 */
#include <string.h>

#include "driver/aws/aws_kind.h"
#include "driver/aws/ec2_extend.h"
#include "driver/aws/cidr.h"

/* Finds every subnet that overlaps the range, not only one with exactly this range. */
struct search {
	const struct driver_row *row;
	const char *cidr;
	char ours[64], other[64];
};

static int look_at_page(void *ctx, const struct xml *root, struct err *err)
{
	struct search *s = ctx;
	struct cidr wanted, has;

	(void)err;
	for (const struct xml *x = xml_at(root, "subnetSet/item"); x; x = xml_next(x)) {
		const char *cidr = xml_text(x, "cidrBlock"), *id = xml_text(x, "subnetId");

		if (strcmp(cidr, s->cidr) == 0 && aws_is_ours(x, s->row, true))
			snprintf(s->ours, sizeof(s->ours), "%s", id);
		else if (cidr_parse(str_from(cidr), &has) &&
			 cidr_parse(str_from(s->cidr), &wanted) && cidr_overlap(has, wanted))
			snprintf(s->other, sizeof(s->other), "%s", id);
	}
	return 0;
}

static const char *range_of(const struct aws_work *w)
{
	const char *chosen = aws_choice(w, "cidr");

	return chosen ? chosen : aws_spec(w, "cidr");
}

static int search(const struct aws_work *w, struct search *s, struct aws_answer *ans,
		  struct err *err)
{
	const char *cidr = range_of(w);
	struct aws_request r;
	int rc;

	*s = (struct search){.row = w->row, .cidr = cidr ? cidr : ""};
	aws_request_init(&r, "ec2", "DescribeSubnets");
	aws_param(&r, "vpc-id", "Filter.1.Name");
	aws_param(&r, aws_spec(w, "vpc"), "Filter.1.Value.1");
	rc = aws_query_pages(w->s, &r, &w->d, look_at_page, s, ans, err);
	aws_request_release(&r);
	return rc;
}

static enum outcome adopt(struct aws_work *w, struct driver_row *row, struct aws_answer *ans)
{
	struct search s;

	if (search(w, &s, ans, &row->err) < 0)
		return OUTCOME_UNSURE;
	if (s.ours[0]) {
		aws_take_id(row, s.ours);
		row->err = (struct err){0};
		return OUTCOME_DONE;
	}
	if (s.other[0]) {
		err_set(&row->err, aws_choice(w, "cidr") ? ERR_CAPACITY : ERR_CONFLICT,
			"the range %s was free and is taken by %s now: submit the run again",
			s.cidr, s.other);
		return OUTCOME_REFUSED;
	}
	err_set(&row->err, ERR_UNAVAILABLE, "a subnet in %s exists, but is not seen yet", s.cidr);
	return OUTCOME_UNSURE;
}

static enum outcome do_create(struct aws_work *w, struct driver_row *row)
{
	struct aws_request r;
	struct aws_answer ans = {0};
	enum outcome outcome = OUTCOME_DONE;

	aws_request_init(&r, "ec2", "CreateSubnet");
	aws_param(&r, aws_spec(w, "vpc"), "VpcId");
	aws_param(&r, aws_spec(w, "zone"), "AvailabilityZone");
	aws_param(&r, range_of(w), "CidrBlock");
	aws_tag_specification(&r, w, 1, "subnet");
	if (aws_kind_call(w, &r, &ans, &row->err) == 0)
		aws_take_id(row, xml_text(ans.root, "subnet/subnetId"));
	else if (aws_code_is(&ans, "InvalidSubnet.Conflict"))
		outcome = adopt(w, row, &ans);
	else
		outcome = aws_kind_failed(AWS_CREATE, &ans, row);
	aws_answer_release(&ans);
	return outcome;
}

static enum outcome do_find(struct aws_work *w, struct driver_row *row)
{
	struct aws_answer ans = {0};
	struct search s;
	enum outcome outcome = OUTCOME_DONE;

	if (search(w, &s, &ans, &row->err) < 0)
		outcome = aws_kind_failed(AWS_FIND, &ans, row);
	else if (!s.ours[0])
		outcome = aws_kind_absent(row);
	else
		aws_take_id(row, s.ours);
	aws_answer_release(&ans);
	return outcome;
}

static int describe(const struct aws_work *w, const char *id, struct aws_answer *ans,
		    struct err *err)
{
	struct aws_request r;

	aws_request_init(&r, "ec2", "DescribeSubnets");
	aws_param(&r, id, "SubnetId.1");
	return aws_kind_call(w, &r, ans, err);
}

static enum outcome do_observe(struct aws_work *w, struct driver_row *row)
{
	struct aws_answer ans = {0};
	enum outcome outcome = OUTCOME_DONE;

	if (describe(w, row->id, &ans, &row->err) < 0)
		outcome = aws_kind_failed(AWS_OBSERVE, &ans, row);
	else if (!xml_at(ans.root, "subnetSet/item"))
		outcome = aws_kind_absent(row);
	aws_answer_release(&ans);
	return outcome;
}

static enum outcome remove_subnet(struct aws_work *w, struct driver_row *row,
				  struct aws_answer *ans)
{
	const struct xml *subnet;
	struct aws_request r;

	if (describe(w, row->id, ans, &row->err) < 0)
		return aws_kind_failed(AWS_DESTROY, ans, row);
	subnet = xml_at(ans->root, "subnetSet/item");
	if (!subnet)
		return aws_kind_absent(row);
	if (!aws_is_ours(subnet, row, false))
		return aws_kind_foreign(row, row->id);
	aws_request_init(&r, "ec2", "DeleteSubnet");
	aws_param(&r, row->id, "SubnetId");
	if (aws_kind_call(w, &r, ans, &row->err) < 0)
		return aws_kind_failed(AWS_DESTROY, ans, row);
	return OUTCOME_DONE;
}

static enum outcome do_destroy(struct aws_work *w, struct driver_row *row)
{
	struct aws_answer ans = {0};
	enum outcome outcome = row->id[0] ? OUTCOME_DONE : do_find(w, row);

	if (outcome == OUTCOME_DONE)
		outcome = remove_subnet(w, row, &ans);
	aws_answer_release(&ans);
	return outcome;
}

AWS_DRIVER(ec2_subnet_driver, "ec2.subnet", ec2_extend);
