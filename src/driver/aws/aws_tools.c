/* The functions of engine aws.ec2 for commands that are about the engine itself. */
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/err.h"
#include "driver/aws/api/aws.h"
#include "driver/aws/aws_doctor.h"
#include "driver/aws/aws_masters.h"
#include "driver/aws/aws_resolve.h"
#include "driver/aws/aws_session.h"
#include "driver/aws/gc/gc.h"
#include "driver/aws/policy.h"
#include "driver/engine_tools.h"

#define OUR_BUCKETS "regatta-*" /* AWS_BUCKET */

static void write_policy(const char *bucket, const char *metrics, struct buf *out)
{
	struct policy_input in = {
		.part = POLICY_ALL,
		.bucket = bucket ? bucket : OUR_BUCKETS,
		.metrics = metrics,
	};

	policy_write(&in, out);
}

/* The environment without the metadata service, which is waited for where there is none. */
static const char *get_set_up(void *ctx, const char *name)
{
	(void)ctx;
	return strcmp(name, "AWS_EC2_METADATA_DISABLED") == 0 ? "true" : getenv(name);
}

/* Whoever uses AWS from this machine has said in which region. */
static bool is_set_up(const struct deadline *d)
{
	const struct aws_config c = {.env = {get_set_up, NULL}};
	struct aws *s;

	if (aws_open(&c, d, &s, NULL) < 0)
		return false;
	aws_free(s);
	return true;
}

static int results_place(const struct deadline *d, struct arena *a, const char **ret_url,
			 struct err *err)
{
	struct aws_session *k;
	char account[AWS_ACCOUNT];

	*ret_url = NULL;
	if (!is_set_up(d))
		return 0;
	if (aws_session_take(NULL, NULL, d, &k, err) < 0)
		return -1;
	int rc = aws_session_account(k, d, account, err);

	if (rc == 0)
		*ret_url = arena_printf(a, "s3://" AWS_BUCKET "/runs/", account,
					aws_region(aws_session_of(k)));
	aws_session_give(k);
	return rc;
}

const struct engine_tools aws_ec2_tools = {
	.engine = "aws.ec2",
	.policy = write_policy,
	.collect = gc_collect,
	.check = aws_doctor,
	.results_place = results_place,
	.provider = "aws",
	.masters = aws_masters,
};
