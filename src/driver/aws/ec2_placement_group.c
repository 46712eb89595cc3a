/*
 * ec2.placement_group - keeps the machines of a run close together.
 *
 * Name and id are regatta-<install>-<run>; a group of that name with the run's tags is the one that
 * an earlier, unanswered create made.
 */
#include <string.h>

#include "driver/aws/aws_kind.h"
#include "driver/aws/ec2_extend.h"

/* *ret_group is of the answer; NULL if there is none, or it is being deleted. */
static int describe(const struct aws_work *w, struct aws_answer *ans, const struct xml **ret_group,
		    struct err *err)
{
	struct aws_request r;
	const struct xml *x;

	*ret_group = NULL;
	aws_request_init(&r, "ec2", "DescribePlacementGroups");
	aws_param(&r, "group-name", "Filter.1.Name");
	aws_param(&r, aws_kind_name(w, true), "Filter.1.Value.1");
	if (aws_kind_call(w, &r, ans, err) < 0)
		return -1;
	x = xml_at(ans->root, "placementGroupSet/item");
	if (x && strcmp(xml_text(x, "state"), "deleted") != 0)
		*ret_group = x;
	return 0;
}

static enum outcome adopt(struct aws_work *w, struct driver_row *row, struct aws_answer *ans)
{
	const struct xml *group;

	if (describe(w, ans, &group, &row->err) < 0)
		return OUTCOME_UNSURE;
	if (!group || strcmp(xml_text(group, "state"), "deleting") == 0) {
		err_set(&row->err, ERR_UNAVAILABLE, "placement group %s exists, but is not ready",
			aws_kind_name(w, true));
		return OUTCOME_UNSURE;
	}
	if (!aws_is_ours(group, row, true)) {
		err_set(&row->err, ERR_CONFLICT,
			"placement group %s exists without the tags of this run: delete it, or give "
			"the run another name",
			aws_kind_name(w, true));
		return OUTCOME_REFUSED;
	}
	row->err = (struct err){0};
	return OUTCOME_DONE;
}

static enum outcome do_create(struct aws_work *w, struct driver_row *row)
{
	struct aws_request r;
	struct aws_answer ans = {0};
	enum outcome outcome = OUTCOME_DONE;

	aws_request_init(&r, "ec2", "CreatePlacementGroup");
	aws_param(&r, aws_kind_name(w, true), "GroupName");
	aws_param(&r, "cluster", "Strategy");
	aws_tag_specification(&r, w, 1, "placement-group");
	if (aws_kind_call(w, &r, &ans, &row->err) < 0)
		outcome = aws_code_is(&ans, "InvalidPlacementGroup.Duplicate")
				  ? adopt(w, row, &ans)
				  : aws_kind_failed(AWS_CREATE, &ans, row);
	if (outcome == OUTCOME_DONE)
		aws_take_id(row, aws_kind_name(w, true));
	aws_answer_release(&ans);
	return outcome;
}

static enum outcome look(struct aws_work *w, struct driver_row *row, enum aws_question question)
{
	struct aws_answer ans = {0};
	const struct xml *group;
	enum outcome outcome = OUTCOME_DONE;

	if (describe(w, &ans, &group, &row->err) < 0)
		outcome = aws_kind_failed(question, &ans, row);
	else if (!group || !aws_is_ours(group, row, true))
		outcome = aws_kind_absent(row);
	else
		aws_take_id(row, aws_kind_name(w, true));
	aws_answer_release(&ans);
	return outcome;
}

static enum outcome do_find(struct aws_work *w, struct driver_row *row)
{
	return look(w, row, AWS_FIND);
}

static enum outcome do_observe(struct aws_work *w, struct driver_row *row)
{
	return look(w, row, AWS_OBSERVE);
}

static enum outcome do_destroy(struct aws_work *w, struct driver_row *row)
{
	struct aws_request r;
	struct aws_answer ans = {0};
	enum outcome outcome = look(w, row, AWS_DESTROY);

	if (outcome != OUTCOME_DONE)
		return outcome;
	aws_request_init(&r, "ec2", "DeletePlacementGroup");
	aws_param(&r, aws_kind_name(w, true), "GroupName");
	if (aws_kind_call(w, &r, &ans, &row->err) < 0)
		outcome = aws_kind_failed(AWS_DESTROY, &ans, row);
	aws_answer_release(&ans);
	return outcome;
}

/* Tags take the id that EC2 gave the group, not its name. */
static enum outcome do_extend(struct aws_work *w, struct driver_row *row)
{
	struct aws_answer ans = {0}, tagged = {0};
	const struct xml *group;
	enum outcome outcome = OUTCOME_DONE;

	if (describe(w, &ans, &group, &row->err) < 0) {
		outcome = aws_kind_failed(AWS_EXTEND, &ans, row);
	} else if (!group || !aws_is_ours(group, row, true)) {
		outcome = aws_kind_absent(row);
	} else {
		const char *id = xml_text(group, "groupId");

		if (ec2_extend_ids(w, &id, 1, &tagged, &row->err) < 0)
			outcome = aws_kind_failed(AWS_EXTEND, &tagged, row);
	}
	aws_answer_release(&tagged);
	aws_answer_release(&ans);
	return outcome;
}

static enum outcome extend(struct driver_row *row)
{
	return aws_kind_ask(row, AWS_EXTEND, do_extend);
}

AWS_DRIVER(ec2_placement_group_driver, "ec2.placement_group", extend);
