/*
 * iam.profile - the instance profile that carries the role of this install's masters.
 *
 * Name and id are regatta-<install>, as those of the role.  It is shared: made once, kept by runs.
 */
#include <string.h>

#include "driver/aws/iam.h"

#define PROFILE "GetInstanceProfileResult/InstanceProfile"

static int call(const struct aws_work *w, const char *action, bool with_role,
		struct aws_answer *ans, struct err *err)
{
	const char *name = aws_kind_name(w, false);
	const char *params[] = {"InstanceProfileName", name, with_role ? "RoleName" : NULL, name,
				NULL};

	return iam_call(w, action, params, ans, err);
}

static bool has_role(const struct xml *profile, const char *name)
{
	for (const struct xml *x = xml_at(profile, "Roles/member"); x; x = xml_next(x))
		if (strcmp(xml_text(x, "RoleName"), name) == 0)
			return true;
	return false;
}

static int create_call(const struct aws_work *w, struct aws_answer *ans, struct err *err)
{
	struct aws_request r;

	aws_request_init(&r, "iam", "CreateInstanceProfile");
	aws_param(&r, aws_kind_name(w, false), "InstanceProfileName");
	iam_tags(&r, w);
	return aws_kind_call(w, &r, ans, err);
}

/* A profile takes one role: with another one it is of no use. */
static enum outcome adopt(struct aws_work *w, struct driver_row *row, struct aws_answer *ans,
			  bool *ret_has_role)
{
	const struct xml *profile;

	if (call(w, "GetInstanceProfile", false, ans, &row->err) < 0)
		return OUTCOME_UNSURE;
	profile = xml_at(ans->root, PROFILE);
	*ret_has_role = has_role(profile, aws_kind_name(w, false));
	if (!iam_is_ours(profile, row) || (!*ret_has_role && xml_at(profile, "Roles/member"))) {
		err_set(&row->err, ERR_CONFLICT,
			"the instance profile %s exists without the tag of this install, or with "
			"another role: delete it",
			aws_kind_name(w, false));
		return OUTCOME_REFUSED;
	}
	row->err = (struct err){0};
	return OUTCOME_DONE;
}

static enum outcome do_create(struct aws_work *w, struct driver_row *row)
{
	struct aws_answer ans = {0};
	enum outcome outcome = OUTCOME_DONE;
	bool has = false;

	if (create_call(w, &ans, &row->err) < 0)
		outcome = aws_code_is(&ans, "EntityAlreadyExists")
				  ? adopt(w, row, &ans, &has)
				  : aws_kind_failed(AWS_CREATE, &ans, row);
	if (outcome == OUTCOME_DONE && !has &&
	    call(w, "AddRoleToInstanceProfile", true, &ans, &row->err) < 0)
		outcome = row->err.kind == ERR_NOT_FOUND ? OUTCOME_UNSURE
							 : aws_kind_failed(AWS_CREATE, &ans, row);
	if (outcome == OUTCOME_DONE)
		aws_take_id(row, aws_kind_name(w, false));
	aws_answer_release(&ans);
	return outcome;
}

static enum outcome look(struct aws_work *w, struct driver_row *row, enum aws_question question,
			 bool *ret_has_role)
{
	struct aws_answer ans = {0};
	enum outcome outcome = OUTCOME_DONE;
	const struct xml *profile;

	*ret_has_role = false;
	if (call(w, "GetInstanceProfile", false, &ans, &row->err) < 0) {
		outcome = aws_kind_failed(question, &ans, row);
	} else {
		profile = xml_at(ans.root, PROFILE);
		*ret_has_role = has_role(profile, aws_kind_name(w, false));
		if (iam_is_ours(profile, row))
			aws_take_id(row, aws_kind_name(w, false));
		else
			outcome = question == AWS_DESTROY
					  ? aws_kind_foreign(row, aws_kind_name(w, false))
					  : aws_kind_absent(row);
	}
	aws_answer_release(&ans);
	return outcome;
}

static enum outcome do_find(struct aws_work *w, struct driver_row *row)
{
	bool has;

	return look(w, row, AWS_FIND, &has);
}

static enum outcome do_observe(struct aws_work *w, struct driver_row *row)
{
	bool has;
	enum outcome outcome = look(w, row, AWS_OBSERVE, &has);

	return outcome == OUTCOME_DONE && !has ? OUTCOME_BROKEN : outcome;
}

static enum outcome do_destroy(struct aws_work *w, struct driver_row *row)
{
	struct aws_answer ans = {0};
	bool has;
	enum outcome outcome = look(w, row, AWS_DESTROY, &has);

	if (outcome == OUTCOME_DONE &&
	    ((has && call(w, "RemoveRoleFromInstanceProfile", true, &ans, &row->err) < 0) ||
	     call(w, "DeleteInstanceProfile", false, &ans, &row->err) < 0))
		outcome = aws_kind_failed(AWS_DESTROY, &ans, row);
	aws_answer_release(&ans);
	return outcome;
}

AWS_DRIVER(iam_profile_driver, "iam.profile", NULL);
