/* aws_table - the keys of [aws] in a job file, and the machines of its roles. */
#include "plan/aws.h"

#include <arpa/inet.h>
#include <string.h>
#include <strings.h>

#include "base/arena.h"
#include "base/err.h"
#include "plan/ec2_types.h"
#include "plan/internal.h"

#define MOST_VOLUME_GB 65536
#define MOST_TAGS 40 /* EC2 takes 50, and Regatta sets up to ten */
#define MOST_TAG_KEY 128
#define MOST_TAG_VALUE 256
#define MOST_NAMESPACE 100 /* CloudWatch takes 255, but its name is part of a policy's */

static const char *const placement_choices[] = {"spread", "cluster", NULL};

#define MEMBER(m) .offset = offsetof(struct aws_table, m)

static const struct field fields[] = {
	{
		.name = "region",
		.type = FIELD_STR,
		MEMBER(region),
		.help = "Region. Without it: AWS_REGION, AWS_DEFAULT_REGION, or that of the profile.",
		.example = "region = \"us-east-2\"",
	},
	{
		.name = "profile",
		.type = FIELD_STR,
		MEMBER(profile),
		.help = "Profile of the shared configuration files whose credentials are used. Without it: the "
			"usual chain of credentials.",
		.example = "profile = \"benchmarks\"",
	},
	{
		.name = "assume_role",
		.type = FIELD_STR,
		MEMBER(assume_role),
		.help = "ARN of a role that is assumed with those credentials.",
		.example = "assume_role = \"arn:aws:iam::123456789012:role/bench\"",
	},
	{
		.name = "endpoint_url",
		.type = FIELD_STR,
		MEMBER(endpoint_url),
		.pos_offset = offsetof(struct aws_table, endpoint_url_pos),
		.help = "Address of the service, for tests and private clouds. Without it: AWS_ENDPOINT_URL and "
			"its forms for single services, or AWS itself.",
		.example = "endpoint_url = \"http://127.0.0.1:5000\"",
	},
	{
		.name = "vpc",
		.type = FIELD_STR,
		MEMBER(vpc),
		.help = "VPC of the nodes. Without it: that of `subnets`, or the default VPC of the region.",
		.example = "vpc = \"vpc-0a1b2c3d\"",
	},
	{
		.name = "subnets",
		.type = FIELD_STRS,
		MEMBER(subnets),
		.help = "Subnets that the nodes may be in. Without it the run gets subnets of its own, just large "
			"enough, in free ranges of the VPC; they are deleted at its end.",
		.example = "subnets = [\"subnet-0a1b2c3d\"]",
	},
	{
		.name = "zones",
		.type = FIELD_STRS,
		MEMBER(zones),
		.help = "Availability zones to try, in this order. Without it: those that offer the machine type.",
		.example = "zones = [\"us-east-2a\", \"us-east-2b\"]",
	},
	{
		.name = "security_groups",
		.type = FIELD_STRS,
		MEMBER(security_groups),
		.help = "Security groups that the nodes are in besides the run's own.",
		.example = "security_groups = [\"sg-0a1b2c3d\"]",
	},
	{
		.name = "key_name",
		.type = FIELD_STR,
		MEMBER(key_name),
		.help = "Key pair for logging in to the machines. Nothing here needs one.",
		.example = "key_name = \"my-key\"",
	},
	{
		.name = "instance_profile",
		.type = FIELD_STR,
		MEMBER(instance_profile),
		.help = "Instance profile of the nodes. Without it they have no credentials.",
		.example = "instance_profile = \"reads-my-bucket\"",
	},
	{
		.name = "ami",
		.type = FIELD_STR,
		MEMBER(ami),
		.help = "Machine image: an id, ssm:NAME, OWNER/name pattern, or one of al2023, ecs, ubuntu-24.04, "
			"debian-12, dlami. The newest that fits is found once, at the submit. Without it: ecs if "
			"the role has a container image, else al2023.",
		.example = "ami = \"ubuntu-24.04\"",
	},
	{
		.name = "volume_gb",
		.type = FIELD_INT,
		MEMBER(volume_gb),
		.min = 1,
		.max = MOST_VOLUME_GB,
		.help = "Size of the root volumes. Without it: that of the image and 1.2 times source and data.",
		.example = "volume_gb = 200",
	},
	{
		.name = "volume_type",
		.type = FIELD_STR,
		MEMBER(volume_type),
		.fallback = "gp3",
		.help = "Type of the root volumes.",
		.example = "volume_type = \"io2\"",
	},
	{
		.name = "bucket",
		.type = FIELD_STR,
		MEMBER(bucket),
		.pos_offset = offsetof(struct aws_table, bucket_pos),
		.help = "Bucket for the program, inputs and results. Without it: regatta-<account>-<region>, which "
			"is made at first use.",
		.example = "bucket = \"my-results\"",
	},
	{
		.name = "tags",
		.type = FIELD_ENV,
		MEMBER(tags),
		.pos_offset = offsetof(struct aws_table, tags_pos),
		.help = "Tags of everything that is made, besides those of Regatta.",
		.example = "tags = { team = \"ads\" }",
	},
	{
		.name = "task_name",
		.type = FIELD_STR,
		MEMBER(task_name),
		.help = "Value of the tags Task_name and TASK_NAME, which everything on EC2 then has, with Role "
			"and ROLE. `regatta paddle` sets it.",
		.example = "task_name = \"vgg-8-nodes\"",
	},
	{
		.name = "master_port",
		.type = FIELD_INT,
		MEMBER(master_port),
		.min = 1,
		.max = 65535,
		.fallback = "5436",
		.help = "Port of the master on its instance.",
		.example = "master_port = 5436",
	},
	{
		.name = "placement",
		.type = FIELD_CHOICE,
		MEMBER(placement),
		.fallback = "spread",
		.choices = placement_choices,
		.help = "cluster: the nodes are put close together, in a placement group of the run.",
		.example = "placement = \"cluster\"",
	},
	{
		.name = "reservation",
		.type = FIELD_STR,
		MEMBER(reservation),
		.help = "Capacity reservation that the nodes are taken from.",
		.example = "reservation = \"cr-0a1b2c3d\"",
	},
	{
		.name = "public_ip",
		.type = FIELD_BOOL,
		MEMBER(public_ip),
		.fallback = "true",
		.help = "The nodes get public addresses, which they need to fetch anything in a VPC without NAT. "
			"Their security group lets nobody in.",
		.example = "public_ip = false",
	},
	{
		.name = "client_cidr",
		.type = FIELD_STR,
		MEMBER(client_cidr),
		.pos_offset = offsetof(struct aws_table, client_cidr_pos),
		.help = "Addresses that may reach the master's port. Without it: the public address of this machine.",
		.example = "client_cidr = \"203.0.113.0/24\"",
	},
	{
		.name = "cloudwatch",
		.type = FIELD_STR,
		MEMBER(cloudwatch),
		.pos_offset = offsetof(struct aws_table, cloudwatch_pos),
		.help = "Namespace of CloudWatch that the metrics of the job are sent to, once a minute and at its "
			"end. Without it nothing is sent. If it fails, the run goes on without it.",
		.example = "cloudwatch = \"Regatta\"",
	},
	{.name = NULL},
};

static const struct schema aws_schema = {
	.name = "aws",
	.size = sizeof(struct aws_table),
	.pos_offset = offsetof(struct aws_table, pos),
	.fields = fields,
};

const struct field aws_field = {
	.name = "aws",
	.type = FIELD_BOX,
	.sub = &aws_schema,
	.help = "Account, network and machines of the AWS engines.",
	.example = "[aws]\nregion = \"us-east-2\"",
};

static const char *default_ami(const struct role *role)
{
	return role->image ? "ecs" : "al2023";
}

static const char *first_of(const char *a, const char *b, const char *c)
{
	return a ? a : b ? b : c;
}

struct aws_machine aws_machine_of(const struct job *job, const struct role *role,
				  const struct aws_table *t, struct arena *a)
{
	const struct machine_spec *own = &role->machine, *shared = &job->machine;
	struct aws_machine m = {
		.types = own->instance_type.n ? own->instance_type : shared->instance_type,
		.spot = own->spot_set ? own->spot : shared->spot,
		.ami = first_of(first_of(own->ami, shared->ami, t->ami), default_ami(role), NULL),
		.instance_profile = first_of(own->instance_profile, shared->instance_profile,
					     t->instance_profile),
		.volume_gb = own->volume_gb	 ? own->volume_gb
			     : shared->volume_gb ? shared->volume_gb
						 : t->volume_gb,
	};

	if (!m.types.n) {
		m.types.v = arena_array(a, const char *, 1);
		m.types.v[0] = AWS_DEFAULT_TYPE;
		m.types.n = 1;
	}
	return m;
}

static struct doc *strings_doc(const struct strs *strs, struct arena *a)
{
	struct doc *list = doc_new(a, DOC_ARRAY);

	for (size_t i = 0; i < strs->n; i++)
		doc_append(a, list, doc_new_str(a, str_from(strs->v[i])));
	return list;
}

static struct doc *role_options(const struct job *job, const struct role *role,
				const struct aws_table *t, struct arena *a)
{
	struct aws_machine m = aws_machine_of(job, role, t, a);
	struct doc *d = doc_new(a, DOC_TABLE);

	doc_set(a, d, STR("types"), strings_doc(&m.types, a));
	doc_set(a, d, STR("ami"), doc_new_str(a, str_from(m.ami)));
	doc_set(a, d, STR("max"), doc_new_int(a, role->policy.max));
	return d;
}

/* Source and data that are on the client's machine. */
static struct doc *input_options(const struct job *job, struct arena *a)
{
	const struct data_spec *data = job->data.v;
	struct doc *list = doc_new(a, DOC_ARRAY);

	if (job->source && !strstr(job->source, "://"))
		doc_append(a, list, doc_new_str(a, str_from(job->source)));
	for (size_t i = 0; i < job->data.n; i++)
		if (!strstr(data[i].src, "://"))
			doc_append(a, list, doc_new_str(a, str_from(data[i].src)));
	return list;
}

struct str aws_bucket_of(const char *url)
{
	struct str rest = str_from(url ? url : ""), scheme = STR("s3://");

	if (!str_starts(rest, scheme))
		return (struct str){0};
	rest = (struct str){rest.p + scheme.n, rest.n - scheme.n};
	return str_cut(&rest, '/');
}

struct doc *aws_options(const struct job *job, const struct aws_table *t, struct arena *a)
{
	struct doc *d = schema_to_doc(&aws_schema, t, a), *roles = doc_new(a, DOC_TABLE);
	const struct role worker = job_worker(job);

	for (size_t i = 0; i < job->roles.n; i++)
		doc_set(a, roles, str_from(job_role(job, i)->name),
			role_options(job, job_role(job, i), t, a));
	if (!job->roles.n)
		doc_set(a, roles, str_from(worker.name), role_options(job, &worker, t, a));
	doc_set(a, d, STR("roles"), roles);
	doc_set(a, d, STR("inputs"), input_options(job, a));
	if (job->output.s3)
		doc_set(a, d, STR("results"), doc_new_str(a, aws_bucket_of(job->output.s3)));
	doc_set(a, d, STR("master"), doc_new_str(a, str_from(job->master)));
	doc_set(a, d, STR("master_type"), doc_new_str(a, STR(AWS_MASTER_TYPE)));
	return d;
}

static void check_types(const struct machine_spec *m, const char *where, struct arena *a,
			struct problems *ps)
{
	for (size_t i = 0; i < m->instance_type.n; i++) {
		const char *type = m->instance_type.v[i];
		const char *near = ec2_type_suggest(type);

		if (!ec2_type_find(type))
			problems_add(ps, a, m->instance_type_pos,
				     "%sinstance_type: '%s' is none of the types of %s%s%s%s",
				     where, type, EC2_PRICES_AS_OF, near ? ": did you mean '" : "",
				     near ? near : "", near ? "'?" : "");
	}
}

/* Is it a range such as "203.0.113.0/24"?  A range of all addresses is refused. */
static bool cidr_is_fine(const char *text, struct arena *a)
{
	struct str rest = str_from(text), address = str_cut(&rest, '/');
	struct in_addr at;
	int64_t bits;

	return rest.p && inet_pton(AF_INET, arena_strndup(a, address.p, address.n), &at) == 1 &&
	       str_to_i64(rest, &bits) && bits >= 1 && bits <= 32;
}

static bool bucket_is_fine(const char *name)
{
	size_t n = strlen(name);

	return n >= 3 && n <= 63 && strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789.-") == n;
}

static bool namespace_is_fine(const char *text)
{
	size_t n = strlen(text);

	return n > 0 && n <= MOST_NAMESPACE && !str_starts(str_from(text), STR("AWS/")) &&
	       strspn(text,
		      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.-_/#") == n;
}

/* NULL, or why AWS or Regatta does not take the tag. */
static const char *tag_problem(const char *key, const char *value)
{
	/* whose something is, and when it may go, is told by these */
	if (strncmp(key, "regatta:", 8) == 0)
		return "names with regatta: are set by Regatta";
	if (strncasecmp(key, "aws:", 4) == 0)
		return "names with aws: are those of AWS";
	if (!*key || strlen(key) > MOST_TAG_KEY)
		return "a name has 1 to 128 characters";
	return strlen(value) > MOST_TAG_VALUE ? "a value has at most 256 characters" : NULL;
}

static void check_tags(const struct aws_table *t, struct arena *a, struct problems *ps)
{
	for (size_t i = 0; i < t->tags.n; i++) {
		const char *key = t->tags.v[i].name, *why = tag_problem(key, t->tags.v[i].value);

		if (why)
			problems_add(ps, a, t->tags_pos, "aws.tags: '%.140s': %s", key, why);
	}
	if (t->tags.n > MOST_TAGS)
		problems_add(ps, a, t->tags_pos, "aws.tags: %zu are more than %d", t->tags.n,
			     MOST_TAGS);
}

void aws_check(const struct job *job, const struct aws_table *t, const char *engine,
	       struct arena *a, struct problems *ps)
{
	struct err err = {0};

	check_types(&job->machine, "", a, ps);
	for (size_t i = 0; i < job->roles.n; i++) {
		const struct role *r = job_role(job, i);

		check_types(&r->machine, arena_printf(a, "roles.%s.", r->name), a, ps);
	}
	if (t->client_cidr && !cidr_is_fine(t->client_cidr, a))
		problems_add(
			ps, a, t->client_cidr_pos,
			"aws.client_cidr: '%s' is no range of addresses such as 203.0.113.0/24 (and "
			"not the whole world)",
			t->client_cidr);
	if (t->endpoint_url && web_url_check(t->endpoint_url, &err) < 0)
		problems_add(ps, a, t->endpoint_url_pos, "aws.endpoint_url: %s", err.msg);
	check_tags(t, a, ps);
	if (t->bucket && !bucket_is_fine(t->bucket))
		problems_add(
			ps, a, t->bucket_pos,
			"aws.bucket: '%.80s' is not the name of a bucket: 3 to 63 small letters, "
			"digits, '.' and '-'",
			t->bucket);
	plan_warn_of_containers(job, engine, a, ps);
	plan_warn_of_resources(job, engine, a, ps);
	if (t->cloudwatch && !namespace_is_fine(t->cloudwatch))
		problems_add(
			ps, a, t->cloudwatch_pos,
			"aws.cloudwatch: '%s' is no namespace: 1 to %d letters, digits and . - _ / #, "
			"and not one of AWS' own (AWS/...)",
			t->cloudwatch, MOST_NAMESPACE);
	plan_check_files(job, engine, a, ps);
}
