/*
 * iam.role - the role of this install's masters on instances: what a master needs, and no more.
 *
 * Name and id are regatta-<install>.  It is shared: made once, kept by runs.  Its policies are written
 * with every create, so that it follows the version of the program: "master", and one per bucket,
 * because another run may use another one.
 *
 * Spec: bucket; results: another bucket, that the run's results go to; read: other buckets, with inputs of
 * the run; cloudwatch: the namespace of its metrics.
 */
#include "base/cleanup.h"
#include "driver/aws/iam.h"
#include "driver/aws/policy.h"
#include "fmt/doc.h"

#define MAX_POLICY 10240

static int put_policy(const struct aws_work *w, const struct policy_input *in, const char *name,
		      struct aws_answer *ans, struct err *err)
{
	CLEANUP(buf_release) struct buf text = {0};

	buf_init(&text, MAX_POLICY);
	policy_write(in, &text);
	if (text.overflow)
		return err_set(err, ERR_INVALID, "the policy '%s' is too long", name);
	const char *params[] = {"RoleName", aws_kind_name(w, false), "PolicyName",
				name,	    "PolicyDocument",	     text.p,
				NULL};

	return iam_call(w, "PutRolePolicy", params, ans, err);
}

/* Names of policies have no '/' and '#', but '=' and '+', which namespaces do not have. */
static const char *metrics_policy(const struct aws_work *w, const char *namespace)
{
	char *name = arena_printf(w->a, "metrics-%s", namespace);

	for (char *p = name; *p; p++)
		*p = *p == '/' ? '=' : *p == '#' ? '+' : *p;
	return name;
}

static int put_policies(const struct aws_work *w, struct aws_answer *ans, struct err *err)
{
	const char *bucket = aws_spec(w, "bucket");
	struct policy_input in = {
		.part = POLICY_MASTER,
		.partition = aws_partition(w->s),
		.account = aws_spec(w, "account"),
		.install = w->row->install,
	};

	if (put_policy(w, &in, "master", ans, err) < 0)
		return -1;
	if (bucket) {
		in.part = POLICY_BUCKET;
		in.bucket = bucket;
		if (put_policy(w, &in, arena_printf(w->a, "bucket-%s", bucket), ans, err) < 0)
			return -1;
	}
	in.metrics = aws_spec(w, "cloudwatch");
	in.part = POLICY_METRICS;
	if (in.metrics && put_policy(w, &in, metrics_policy(w, in.metrics), ans, err) < 0)
		return -1;
	in.part = POLICY_RESULTS;
	in.bucket = aws_spec(w, "results");
	if (in.bucket &&
	    put_policy(w, &in, arena_printf(w->a, "results-%s", in.bucket), ans, err) < 0)
		return -1;
	const struct doc *read = doc_array(w->spec, "read");

	in.part = POLICY_READ;
	for (size_t i = 0; read && i < read->array.n; i++) {
		in.bucket = read->array.v[i]->s.p;
		if (put_policy(w, &in, arena_printf(w->a, "read-%s", in.bucket), ans, err) < 0)
			return -1;
	}
	return 0;
}

static int get(const struct aws_work *w, struct aws_answer *ans, struct err *err)
{
	const char *params[] = {"RoleName", aws_kind_name(w, false), NULL};

	return iam_call(w, "GetRole", params, ans, err);
}

static int create_call(const struct aws_work *w, struct aws_answer *ans, struct err *err)
{
	CLEANUP(buf_release) struct buf trust = {0};
	struct aws_request r;

	buf_init(&trust, MAX_POLICY);
	policy_write_trust(aws_dns_suffix(w->s), &trust);
	aws_request_init(&r, "iam", "CreateRole");
	aws_param(&r, aws_kind_name(w, false), "RoleName");
	aws_param(&r, trust.p, "AssumeRolePolicyDocument");
	aws_param(&r, "Masters of Regatta", "Description");
	iam_tags(&r, w);
	return aws_kind_call(w, &r, ans, err);
}

static enum outcome adopt(struct aws_work *w, struct driver_row *row, struct aws_answer *ans)
{
	if (get(w, ans, &row->err) < 0)
		return OUTCOME_UNSURE;
	if (!iam_is_ours(xml_at(ans->root, "GetRoleResult/Role"), row)) {
		err_set(&row->err, ERR_CONFLICT,
			"the role %s exists without the tag of this install: delete it",
			aws_kind_name(w, false));
		return OUTCOME_REFUSED;
	}
	row->err = (struct err){0};
	return OUTCOME_DONE;
}

/* A role without its policies may stay: the next create writes them. */
static enum outcome do_create(struct aws_work *w, struct driver_row *row)
{
	struct aws_answer ans = {0};
	enum outcome outcome = OUTCOME_DONE;

	if (create_call(w, &ans, &row->err) < 0)
		outcome = aws_code_is(&ans, "EntityAlreadyExists")
				  ? adopt(w, row, &ans)
				  : aws_kind_failed(AWS_CREATE, &ans, row);
	if (outcome == OUTCOME_DONE && put_policies(w, &ans, &row->err) < 0)
		outcome = row->err.kind == ERR_NOT_FOUND ? OUTCOME_UNSURE
							 : aws_kind_failed(AWS_CREATE, &ans, row);
	if (outcome == OUTCOME_DONE)
		aws_take_id(row, aws_kind_name(w, false));
	aws_answer_release(&ans);
	return outcome;
}

static enum outcome look(struct aws_work *w, struct driver_row *row, enum aws_question question)
{
	struct aws_answer ans = {0};
	enum outcome outcome = OUTCOME_DONE;

	if (get(w, &ans, &row->err) < 0)
		outcome = aws_kind_failed(question, &ans, row);
	else if (!iam_is_ours(xml_at(ans.root, "GetRoleResult/Role"), row))
		outcome = question == AWS_DESTROY ? aws_kind_foreign(row, aws_kind_name(w, false))
						  : aws_kind_absent(row);
	else
		aws_take_id(row, aws_kind_name(w, false));
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

#define MOST_POLICIES 64

static int delete_policies(const struct aws_work *w, struct aws_answer *ans, struct err *err)
{
	const char *role = aws_kind_name(w, false), *names[MOST_POLICIES];
	const char *params[] = {"RoleName", role, NULL};
	size_t n = 0;

	if (iam_call(w, "ListRolePolicies", params, ans, err) < 0)
		return -1;
	/* copied, because the next call reuses the answer */
	for (const struct xml *x = xml_at(ans->root, "ListRolePoliciesResult/PolicyNames/member");
	     x && n < MOST_POLICIES; x = xml_next(x))
		names[n++] = arena_strdup(w->a, x->text);
	for (size_t i = 0; i < n; i++) {
		const char *one[] = {"RoleName", role, "PolicyName", names[i], NULL};

		if (iam_call(w, "DeleteRolePolicy", one, ans, err) < 0)
			return -1;
	}
	return 0;
}

static enum outcome do_destroy(struct aws_work *w, struct driver_row *row)
{
	const char *params[] = {"RoleName", aws_kind_name(w, false), NULL};
	struct aws_answer ans = {0};
	enum outcome outcome = look(w, row, AWS_DESTROY);

	if (outcome == OUTCOME_DONE && (delete_policies(w, &ans, &row->err) < 0 ||
					iam_call(w, "DeleteRole", params, &ans, &row->err) < 0))
		outcome = aws_kind_failed(AWS_DESTROY, &ans, row);
	aws_answer_release(&ans);
	return outcome;
}

AWS_DRIVER(iam_role_driver, "iam.role", NULL);
