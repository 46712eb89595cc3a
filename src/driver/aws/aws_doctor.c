#include "driver/aws/aws_doctor.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/suggest.h"
#include "driver/aws/api/endpoint.h"
#include "driver/aws/api/s3.h"
#include "driver/aws/aws_resolve.h"
#include "driver/engine_tools.h"

#define WHOLE_MS 60000
#define FIRST_MS 10000 /* until AWS has been reached */
#define SKEW_MS 60000
#define TYPE "c5.large"		      /* as good as any: it is in every region */
#define QUOTA "L-1216C47A"	      /* vCPUs of on-demand instances of the standard families */
#define LEAST_VCPUS 2		      /* of TYPE */
#define NO_INSTALL "0000000000000000" /* of nobody: in dry runs */

struct doctor {
	struct checkup *c;
	struct resolve_input in;
	struct aws_inquiry q;
};

static void add(struct doctor *d, const char *name, enum check_state state, const char *what,
		const char *todo)
{
	checkup_add(d->c, name, state, what, todo);
}

/* ---- who, where, when ---- */

/* What DescribeRegions says of the region; NULL: it does not have it, and *ret_near is a name like it. */
static const char *status_of(const struct xml *root, const char *region, struct arena *a,
			     const char **ret_near)
{
	const char **names;
	size_t n = 0, at = 0;

	for (const struct xml *x = xml_at(root, "regionInfo/item"); x; x = xml_next(x))
		n++;
	names = arena_array(a, const char *, n + 1);
	for (const struct xml *x = xml_at(root, "regionInfo/item"); x; x = xml_next(x)) {
		names[at++] = arena_strdup(a, xml_text(x, "regionName"));
		if (strcmp(names[at - 1], region) == 0)
			return arena_strdup(a, xml_text(x, "optInStatus"));
	}
	*ret_near = suggest_word(names, n, str_from(region));
	return NULL;
}

static bool judge_region(struct doctor *d, const struct xml *root)
{
	const char *region = aws_region(d->q.s), *near = NULL;
	const char *status = status_of(root, region, d->q.a, &near);

	if (!status)
		add(d, "region", CHECK_BAD,
		    arena_printf(d->q.a, "AWS has no region '%s'%s%s%s", region,
				 near ? ": did you mean '" : "", near ? near : "",
				 near ? "'?" : ""),
		    "set AWS_REGION, or region in ~/.aws/config");
	else if (strcmp(status, "not-opted-in") == 0)
		add(d, "region", CHECK_BAD,
		    arena_printf(d->q.a, "%s is not enabled for this account", region),
		    "enable it in the settings of the account, or set AWS_REGION");
	else
		add(d, "region", CHECK_FINE, region, NULL);
	return status && strcmp(status, "not-opted-in") != 0;
}

/* Nobody was reached, as opposed to somebody who refused. */
static bool is_silence(const struct err *err)
{
	return err->kind != ERR_DENIED && err->kind != ERR_INVALID && err->kind != ERR_NOT_FOUND;
}

static void say_silence(struct doctor *d, const struct err *err)
{
	add(d, "network", CHECK_BAD, err->msg,
	    "check the connection, https_proxy and AWS_ENDPOINT_URL");
}

/* Another region is asked, because one that does not exist has no address. */
static int list_regions(struct doctor *d, struct aws_answer *ans, struct err *err)
{
	const struct aws_partition *p = aws_partition_of(aws_region(d->q.s));
	struct aws_config config = {.region = p->home};
	struct deadline first = deadline_within(&d->q.d, FIRST_MS);
	CLEANUP(aws_freep) struct aws *s = NULL;
	struct aws_request r;

	if (aws_open(&config, &first, &s, err) < 0)
		return -1;
	aws_request_init(&r, "ec2", "DescribeRegions");
	aws_param_bool(&r, true, "AllRegions");
	int rc = aws_query(s, &r, &first, ans, err);
	aws_request_release(&r);
	return rc;
}

static bool check_region(struct doctor *d)
{
	struct aws_config config = {0};
	struct aws_answer ans = {0};
	struct err err = {0};
	bool fine = true;

	if (aws_open(&config, &d->q.d, &d->q.s, &err) < 0) {
		add(d, "region", CHECK_BAD, err.msg, "set AWS_REGION, or region in ~/.aws/config");
		return false;
	}
	if (list_regions(d, &ans, &err) == 0) {
		fine = judge_region(d, ans.root);
	} else {
		add(d, "region", CHECK_WARNING,
		    arena_printf(d->q.a, "%s, which was not looked up: %s", aws_region(d->q.s),
				 err.msg),
		    "nothing, if the rest is fine");
		fine = !is_silence(&err);
		if (!fine)
			say_silence(d, &err);
	}
	aws_answer_release(&ans);
	return fine;
}

static void say_whose(struct doctor *d, const char *account)
{
	CLEANUP(buf_release) struct buf source = {0};
	struct err ignored;

	buf_init(&source, 4096);
	if (aws_credentials_source(d->q.s, &d->q.d, &source, &ignored) < 0)
		buf_addz(&source, "?");
	add(d, "credentials", CHECK_FINE,
	    arena_printf(d->q.a, "account %s, from %s", account, source.p), NULL);
}

static bool check_credentials(struct doctor *d, char account[static AWS_ACCOUNT])
{
	struct deadline first = deadline_within(&d->q.d, FIRST_MS);
	struct err err = {0};

	if (aws_account(d->q.s, &first, account, &err) == 0) {
		say_whose(d, account);
		return true;
	}
	if (is_silence(&err))
		say_silence(d, &err);
	else
		add(d, "credentials", CHECK_BAD, err.msg,
		    "set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or AWS_PROFILE (docs/aws.md)");
	return false;
}

static void check_clock(struct doctor *d)
{
	int64_t off_ms = clock_wall_ms() - aws_clock_ms(d->q.s);
	char text[32];

	if (llabs(off_ms) <= SKEW_MS) {
		add(d, "clock", CHECK_FINE, "agrees with AWS", NULL);
		return;
	}
	clock_format_span(llabs(off_ms), text);
	add(d, "clock", CHECK_WARNING,
	    arena_printf(d->q.a, "%s %s; calls are corrected", text,
			 off_ms > 0 ? "ahead" : "behind"),
	    "set the clock of this machine");
}

/* ---- what a run would use ---- */

/* The options of a job with one node. */
static struct doc *plain_options(struct arena *a)
{
	struct doc *options = doc_new(a, DOC_TABLE), *roles = doc_new(a, DOC_TABLE);
	struct doc *role = doc_new(a, DOC_TABLE), *types = doc_new(a, DOC_ARRAY);

	doc_append(a, types, doc_new_str(a, STR(TYPE)));
	doc_set(a, role, STR("types"), types);
	doc_set(a, roles, STR("worker"), role);
	doc_set(a, options, STR("roles"), roles);
	return options;
}

static bool check_network(struct doctor *d)
{
	struct err err = {0};

	if (inquiry_network(&d->q, &err) < 0) {
		add(d, "vpc", CHECK_BAD, err.msg,
		    err.kind == ERR_DENIED ? "regatta iam-policy prints what is needed"
					   : "name `vpc` or `subnets` in [aws] of the job");
		return false;
	}
	add(d, "vpc", CHECK_FINE, doc_str(d->q.facts, "vpc", STR("?")).p, NULL);
	return true;
}

static const char *image_of(const struct doctor *d)
{
	return doc_str(doc_table(doc_table(d->q.facts, "images"), "worker"), "ami", STR("")).p;
}

static bool check_image(struct doctor *d)
{
	struct err err = {0};

	if (inquiry_images(&d->q, &err) < 0) {
		add(d, "ami", CHECK_BAD, err.msg,
		    err.kind == ERR_DENIED ? "regatta iam-policy prints what is needed"
					   : "name an image with `ami` in [aws] of the job");
		return false;
	}
	add(d, "ami", CHECK_FINE, arena_printf(d->q.a, "al2023 is %s", image_of(d)), NULL);
	return true;
}

static void check_bucket(struct doctor *d, const char *account)
{
	struct s3_place at = {
		.bucket = arena_printf(d->q.a, AWS_BUCKET, account, aws_region(d->q.s)),
		.owner = account,
	};
	struct err err = {0};

	if (s3_bucket_check(d->q.s, &at, &d->q.d, &err) == 0)
		add(d, "bucket", CHECK_FINE, at.bucket, NULL);
	else if (err.kind == ERR_NOT_FOUND)
		add(d, "bucket", CHECK_FINE, arena_printf(d->q.a, "%s will be made", at.bucket),
		    NULL);
	else
		add(d, "bucket",
		    err.kind == ERR_DENIED || err.kind == ERR_INVALID ? CHECK_BAD : CHECK_WARNING,
		    err.msg, "name a bucket of yours with `bucket` in [aws] of the job");
}

static void check_quota(struct doctor *d)
{
	struct aws_answer ans = {0};
	struct err err = {0};
	double vcpus;

	if (aws_json(d->q.s, "servicequotas", "GetServiceQuota",
		     STR("{\"ServiceCode\":\"ec2\",\"QuotaCode\":\"" QUOTA "\"}"), &d->q.d, &ans,
		     &err) < 0) {
		add(d, "quota", CHECK_WARNING, err.msg, "nothing, if runs start");
	} else {
		vcpus = doc_num(doc_table(ans.doc, "Quota"), "Value", 0);
		add(d, "quota", vcpus < LEAST_VCPUS ? CHECK_BAD : CHECK_FINE,
		    arena_printf(d->q.a, "%.0f vCPUs of on-demand instances", vcpus),
		    vcpus < LEAST_VCPUS ? "ask for more: Service Quotas, EC2, " QUOTA : NULL);
	}
	aws_answer_release(&ans);
}

/* ---- permissions ---- */

static void launch_params(const struct doctor *d, struct aws_request *r)
{
	aws_param(r, image_of(d), "ImageId");
	aws_param(r, TYPE, "InstanceType");
	aws_param_int(r, 1, "MinCount");
	aws_param_int(r, 1, "MaxCount");
}

static void group_params(const struct doctor *d, struct aws_request *r)
{
	aws_param(r, "regatta-doctor", "GroupName");
	aws_param(r, "a dry run", "GroupDescription");
	aws_param(r, doc_str(d->q.facts, "vpc", STR("")).p, "VpcId");
}

static void placement_params(const struct doctor *d, struct aws_request *r)
{
	(void)d;
	aws_param(r, "regatta-doctor", "GroupName");
	aws_param(r, "cluster", "Strategy");
}

/* Calls that can be asked for without being done; deletes need something that is there. */
static const struct {
	const char *action;
	const char *tagged[3]; /* types of what it makes */
	void (*params)(const struct doctor *d, struct aws_request *r);
} dry_runs[] = {
	{"RunInstances", {"instance", "volume", "network-interface"}, launch_params},
	{"CreateSecurityGroup", {"security-group"}, group_params},
	{"CreatePlacementGroup", {"placement-group"}, placement_params},
};
#define NDRY (sizeof(dry_runs) / sizeof(dry_runs[0]))

static int dry_run(struct doctor *d, size_t i, struct err *err)
{
	struct aws_answer ans = {0};
	struct aws_request r;
	int rc;

	aws_request_init(&r, "ec2", dry_runs[i].action);
	dry_runs[i].params(d, &r);
	for (size_t k = 0; k < 3 && dry_runs[i].tagged[k]; k++) {
		aws_param(&r, dry_runs[i].tagged[k], "TagSpecification.%zu.ResourceType", k + 1);
		aws_param(&r, "regatta:install", "TagSpecification.%zu.Tag.1.Key", k + 1);
		aws_param(&r, NO_INSTALL, "TagSpecification.%zu.Tag.1.Value", k + 1);
	}
	aws_param_bool(&r, true, "DryRun");
	rc = aws_query(d->q.s, &r, &d->q.d, &ans, err);
	aws_request_release(&r);
	aws_answer_release(&ans);
	return rc;
}

static void check_permissions(struct doctor *d)
{
	for (size_t i = 0; i < NDRY; i++) {
		struct err err = {0};

		if (dry_run(d, i, &err) == 0)
			continue;
		if (err.kind == ERR_DENIED)
			add(d, "permissions", CHECK_BAD, err.msg,
			    "regatta iam-policy prints what is needed");
		else
			add(d, "permissions", CHECK_WARNING, err.msg, "nothing, if runs start");
		return;
	}
	add(d, "permissions", CHECK_FINE,
	    "instances, security groups and placement groups may be made (DryRun)", NULL);
}

static void check_all(struct doctor *d)
{
	char account[AWS_ACCOUNT];
	bool has_network, has_image;

	if (!check_region(d) || !check_credentials(d, account))
		return;
	check_clock(d);
	has_network = check_network(d);
	has_image = check_image(d);
	if (has_network && has_image)
		check_permissions(d);
	check_bucket(d, account);
	check_quota(d);
}

void aws_doctor(struct checkup *c)
{
	struct doctor d = {
		.c = c,
		.in = {.nodes = 1, .least = 1, .options = plain_options(c->a)},
		.q = {.a = c->a, .d = deadline_in(WHOLE_MS, c->stop)},
	};

	d.q.in = &d.in;
	d.q.facts = doc_new(c->a, DOC_TABLE);
	check_all(&d);
	aws_free(d.q.s);
}
