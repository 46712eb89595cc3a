#include "driver/aws/ec2_extend.h"

int ec2_extend_ids(const struct aws_work *w, const char *const *ids, size_t n,
		   struct aws_answer *ans, struct err *err)
{
	struct aws_request r;

	aws_request_init(&r, "ec2", "CreateTags");
	for (size_t i = 0; i < n; i++)
		aws_param(&r, ids[i], "ResourceId.%zu", i + 1);
	aws_param(&r, AWS_TAG_EXPIRES, "Tag.1.Key");
	aws_param(&r, aws_utc(w->a, w->row->expires_ms), "Tag.1.Value");
	return aws_kind_call(w, &r, ans, err);
}

static enum outcome extend_one(struct aws_work *w, struct driver_row *row)
{
	const char *id = row->id;
	struct aws_answer ans = {0};
	enum outcome outcome = OUTCOME_DONE;

	if (ec2_extend_ids(w, &id, 1, &ans, &row->err) < 0)
		outcome = aws_kind_failed(AWS_EXTEND, &ans, row);
	aws_answer_release(&ans);
	return outcome;
}

enum outcome ec2_extend(struct driver_row *row)
{
	return aws_kind_ask(row, AWS_EXTEND, extend_one);
}

static int extend_together(struct driver_row *rows, size_t n, struct aws_answer *ans,
			   struct err *err)
{
	struct aws_work w;
	int rc;

	if (aws_work_open(&rows[0], &w, err) < 0)
		return -1;
	const char **ids = arena_array(w.a, const char *, n);

	for (size_t i = 0; i < n; i++)
		ids[i] = rows[i].id;
	rc = ec2_extend_ids(&w, ids, n, ans, err);
	aws_work_close(&w);
	return rc;
}

/* One id that is not there fails the whole call: then each is extended alone. */
void ec2_extend_many(struct driver_row *rows, size_t n)
{
	struct aws_answer ans = {0};
	struct err err = {0};
	int rc = extend_together(rows, n, &ans, &err);

	for (size_t i = 0; i < n; i++)
		if (rc < 0 && ans.refused && err.kind == ERR_NOT_FOUND) {
			rows[i].outcome = ec2_extend(&rows[i]);
		} else {
			rows[i].outcome = rc < 0 ? OUTCOME_UNSURE : OUTCOME_DONE;
			rows[i].err = err;
		}
	aws_answer_release(&ans);
}
