#include "driver/aws/aws_masters.h"

#include <string.h>

#include "base/vec.h"
#include "driver/aws/aws_kind.h"
#include "driver/aws/aws_resolve.h"
#include "driver/aws/ec2_access.h"
#include "driver/engine_tools.h"
#include "fmt/http_url.h"

#define WHOLE_MS 60000

struct found_master {
	struct running_master is;
	const char *group; /* of its run; "": it has none any more */
};

/* A search under way. */
struct master_search {
	struct arena *a;
	struct deadline d;
	struct aws *s;
	char account[AWS_ACCOUNT];
	const char *client; /* the addresses of the caller */
	VEC(struct found_master) found;
};

static const char *tag_of(const struct master_search *q, const struct xml *x, const char *key)
{
	for (const struct xml *t = xml_at(x, "tagSet/item"); t; t = xml_next(t))
		if (strcmp(xml_text(t, "key"), key) == 0)
			return arena_strdup(q->a, xml_text(t, "value"));
	return "";
}

/* The group that only this run has, so that a rule in it goes with the run. */
static const char *group_of(const struct master_search *q, const struct xml *x,
			    const struct running_master *is)
{
	const char *name = arena_printf(q->a, "regatta-%s-%s", is->install, is->run);

	for (const struct xml *g = xml_at(x, "groupSet/item"); g; g = xml_next(g))
		if (strcmp(xml_text(g, "groupName"), name) == 0)
			return arena_strdup(q->a, xml_text(g, "groupId"));
	return "";
}

/* The nodes of a role that is called "master" have the same tags. */
static bool is_known(const struct master_search *q, const struct running_master *is)
{
	for (size_t i = 0; i < q->found.n; i++)
		if (strcmp(q->found.v[i].is.run, is->run) == 0 &&
		    strcmp(q->found.v[i].is.install, is->install) == 0)
			return true;
	return false;
}

static int take_page(void *ctx, const struct xml *root, struct err *err)
{
	struct master_search *q = ctx;

	(void)err;
	for (const struct xml *r = xml_at(root, "reservationSet/item"); r; r = xml_next(r))
		for (const struct xml *x = xml_at(r, "instancesSet/item"); x; x = xml_next(x)) {
			struct found_master m = {
				.is = {
					.run = tag_of(q, x, "regatta:run"),
					.install = tag_of(q, x, "regatta:install"),
					.region = arena_strdup(q->a, aws_region(q->s)),
					.state = arena_strdup(q->a,
							      xml_text(x, "instanceState/name")),
				}};

			m.group = group_of(q, x, &m.is);
			if (!is_known(q, &m.is))
				*vec_push(&q->found) = m;
		}
	return 0;
}

static int find_instances(struct master_search *q, struct err *err)
{
	struct aws_request r;
	int rc;

	aws_request_init(&r, "ec2", "DescribeInstances");
	aws_param(&r, "tag:regatta:role", "Filter.1.Name");
	aws_param(&r, "master", "Filter.1.Value.1");
	aws_param(&r, "tag-key", "Filter.2.Name");
	aws_param(&r, "regatta:install", "Filter.2.Value.1");
	aws_param(&r, "instance-state-name", "Filter.3.Name");
	aws_param(&r, "pending", "Filter.3.Value.1");
	aws_param(&r, "running", "Filter.3.Value.2");
	rc = aws_query_pages(q->s, &r, &q->d, take_page, q, NULL, err);
	aws_request_release(&r);
	return rc;
}

static int find_client(struct master_search *q, struct err *err)
{
	struct doc *options = doc_new(q->a, DOC_TABLE), *facts = doc_new(q->a, DOC_TABLE);
	const struct resolve_input in = {.options = options};
	struct aws_inquiry inquiry = {.s = q->s, .a = q->a, .d = q->d, .in = &in, .facts = facts};

	inquiry_set(&inquiry, options, "master", "auto");
	if (inquiry_client(&inquiry, err) < 0)
		return -1;
	q->client = doc_str(facts, "client", STR("")).p;
	return 0;
}

static int open_port(const struct master_search *q, const struct found_master *m, int port,
		     struct err *err)
{
	struct aws_answer ans = {0};
	struct aws_request r;
	int rc;

	if (!*m->group)
		return err_set(err, ERR_UNAVAILABLE,
			       "its security group is gone: the run is ending");
	aws_request_init(&r, "ec2", "AuthorizeSecurityGroupIngress");
	aws_param(&r, m->group, "GroupId");
	aws_param(&r, "tcp", "IpPermissions.1.IpProtocol");
	aws_param_int(&r, port, "IpPermissions.1.FromPort");
	aws_param_int(&r, port, "IpPermissions.1.ToPort");
	aws_param(&r, q->client, "IpPermissions.1.IpRanges.1.CidrIp");
	rc = aws_query(q->s, &r, &q->d, &ans, err);
	if (rc < 0 && aws_code_is(&ans, "InvalidPermission.Duplicate")) {
		*err = (struct err){0};
		rc = 0;
	}
	aws_request_release(&r);
	aws_answer_release(&ans);
	return rc;
}

static int reach(const struct master_search *q, struct found_master *m, struct err *err)
{
	const char *bucket = arena_printf(q->a, AWS_BUCKET, q->account, aws_region(q->s));
	struct driver_master at;
	struct http_url u;

	if (ec2_access_get(q->s, bucket, q->account, m->is.install, m->is.run, &q->d, &at, err) <
		    0 ||
	    http_url_parse(&u, str_from(at.url), false, err) < 0 ||
	    open_port(q, m, u.port, err) < 0)
		return -1;
	m->is.url = arena_strdup(q->a, at.url);
	m->is.pin = arena_strdup(q->a, at.pin);
	m->is.token = arena_strdup(q->a, at.token);
	return 0;
}

static int search(struct master_search *q, struct err *err)
{
	if (aws_account(q->s, &q->d, q->account, err) < 0 || find_instances(q, err) < 0)
		return -1;
	if (q->found.n == 0)
		return 0;
	if (find_client(q, err) < 0)
		return -1;
	for (size_t i = 0; i < q->found.n; i++) {
		struct err why = {0};

		if (reach(q, &q->found.v[i], &why) < 0)
			q->found.v[i].is.why = arena_strdup(q->a, why.msg);
	}
	return 0;
}

int aws_masters(const struct masters_input *in, struct arena *a, struct running_masters *ret,
		struct err *err)
{
	struct master_search q = {.a = a, .d = deadline_in(WHOLE_MS, in->stop)};
	const struct aws_config config = {.region = in->region};
	int rc = aws_open(&config, &q.d, &q.s, err);

	if (rc == 0)
		rc = search(&q, err);
	*ret = (struct running_masters){.v = arena_array(a, struct running_master, q.found.n + 1)};
	for (size_t i = 0; i < q.found.n; i++)
		ret->v[ret->n++] = q.found.v[i].is;
	ret->region = q.s ? arena_strdup(a, aws_region(q.s)) : "";
	vec_release(&q.found);
	aws_free(q.s);
	return rc;
}
