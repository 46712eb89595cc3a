/*
 * aws_ec2 - the engine of EC2: each node is an instance.
 *
 * Facts (driver/aws/aws_resolve.c): account, region, vpc, bucket, bucket_given; subnets: [{zone, id}] where they
 * are there, [{zone, cidr}] where the run makes its own; zones_of: {type: [zone]}; images: {role: {ami,
 * root, gb}}; input_bytes; prices, prices_as_of: in place of the table's (--prices); binary: {sha256, size} of the
 * client's program; binaries: {role: {machine, sha256, size}}, where machines have another architecture; client: the range
 * that may reach the master; at:
 * "client" if the master is to live on an instance that is not there yet; adopted: [{name, id, age_ms}]
 * what the client made for the master, on the master's instance; carries: the run stands for a suite.
 *
 * Every spec has account and region.  The others:
 *   s3.bucket            bucket, given: the user named it, so its rules are left alone; keep_days: how long
 *                        results stay there
 *   s3.object            bucket, key, sha256, size: the program
 *   iam.role             bucket; results: another bucket, of output.s3; read: other buckets, with inputs of the
 *                        job; cloudwatch: namespace of its metrics
 *   iam.profile          (the role of the same install)
 *   ec2.security_group   vpc; with a port also port, cidr: who may reach the master
 *   ec2.subnet           vpc, zone, cidr; choice: cidr, of ranges that were free when the run was resolved
 *   ec2.placement_group
 *   ec2.instance         role, ami, root, volume_gb, volume_type, spot, profile, key_name, public_ip,
 *                        groups, subnets: {zone: id} of those that are there, reservation, lease_ms,
 *                        bucket, key, sha256 of the program;
 *                        choice: type, zone.  What the run makes is among what the resource needs:
 *                        "group", "placement", "subnet-<zone>".
 *   ec2.master           as ec2.instance, without role and lease_ms; port
 * tags is in the spec of all that take tags, task_name too: the value of the old tool's tags.
 */
#include "base/arena.h"
#include "fmt/doc.h"
#include "plan/aws.h"
#include "plan/ec2_types.h"
#include "plan/internal.h"

#define GB 1000000000LL
#define DAY_MS (24LL * 60 * 60 * 1000)
#define DEFAULT_IMAGE_GB 8
#define MASTER_VOLUME_GB 10
/* EC2 may not show an existing instance for minutes: it counts as gone after five looks over five
 * minutes that did not find it. */
#define SETTLE_MS 300000
#define ABSENT_LOOKS 5
#define LATE_MS 60000
#define LEAST_PAID_MS 60000
#define NETWORK_SETTLE_MS 30000
#define NETWORK_LOOKS 3
#define BEFORE_NODES 8 /* resources besides nodes and subnets, at most */

struct subnet {
	const char *zone, *id, *cidr; /* id of an existing subnet, or the range of one to make */
	const struct doc *spare;      /* NULL, or ranges for the case that it is taken meanwhile */
};

struct ec2_plan {
	const struct doc *facts;
	const struct aws_table *t;
	struct arena *a;
	struct plan *p;
	int group, placement, binary, other_binary,
		profile; /* indices of resources; -1: not in this plan */
	struct subnet *subnets;
	int *made_subnets; /* per subnet: index of its resource; -1: it exists already */
	int nsubnets;
};

static void set_text(struct ec2_plan *m, struct doc *d, const char *key, const char *value)
{
	if (value)
		doc_set(m->a, d, str_from(key), doc_new_str(m->a, str_from(value)));
}

static void set_int(struct ec2_plan *m, struct doc *d, const char *key, int64_t value)
{
	doc_set(m->a, d, str_from(key), doc_new_int(m->a, value));
}

static void set_bool(struct ec2_plan *m, struct doc *d, const char *key, bool value)
{
	doc_set(m->a, d, str_from(key), doc_new_bool(m->a, value));
}

static const char *fact(const struct ec2_plan *m, const char *key, const char *fallback)
{
	return doc_str(m->facts, key, str_from(fallback)).p;
}

static struct doc *strings(struct ec2_plan *m, const struct strs *strs)
{
	struct doc *list = doc_new(m->a, DOC_ARRAY);

	for (size_t i = 0; i < strs->n; i++)
		doc_append(m->a, list, doc_new_str(m->a, str_from(strs->v[i])));
	return list;
}

static const char *region_of(const struct ec2_plan *m)
{
	return fact(m, "region", m->t->region ? m->t->region : EC2_PRICES_REGION);
}

static struct doc *spec_new(struct ec2_plan *m)
{
	struct doc *spec = doc_new(m->a, DOC_TABLE), *tags = doc_new(m->a, DOC_TABLE);

	set_text(m, spec, "account", fact(m, "account", "<account>"));
	set_text(m, spec, "region", region_of(m));
	set_text(m, spec, "task_name", m->t->task_name);
	for (size_t i = 0; i < m->t->tags.n; i++)
		set_text(m, tags, m->t->tags.v[i].name, m->t->tags.v[i].value);
	if (m->t->tags.n)
		doc_set(m->a, spec, STR("tags"), tags);
	return spec;
}

static int add_json(struct ec2_plan *m, const char *kind, const char *name, const char *spec)
{
	struct plan_resource *r = &m->p->resources[m->p->nresources];

	*r = (struct plan_resource){
		.kind = kind,
		.name = name,
		.node = -1,
		.late_ms = LATE_MS,
		.settle_ms = NETWORK_SETTLE_MS,
		.absent_looks = NETWORK_LOOKS,
		.spec = spec,
		.needs = arena_array(m->a, int, (size_t)m->nsubnets + BEFORE_NODES),
	};
	return m->p->nresources++;
}

static int add(struct ec2_plan *m, const char *kind, const char *name, struct doc *spec)
{
	return add_json(m, kind, name, doc_json_text(m->a, spec));
}

static void add_need(struct ec2_plan *m, int resource, int needed)
{
	struct plan_resource *r = &m->p->resources[resource];

	if (needed >= 0)
		r->needs[r->nneeds++] = needed;
}

static const char *bucket_of(struct ec2_plan *m)
{
	return fact(m, "bucket",
		    m->t->bucket ? m->t->bucket
				 : arena_printf(m->a, "regatta-<account>-%s", region_of(m)));
}

/* The program for the machines of the role, if they have another architecture than the client's; else NULL. */
static const struct doc *other_program(const struct ec2_plan *m, const char *role)
{
	return doc_table(doc_table(m->facts, "binaries"), role);
}

static void set_program(struct ec2_plan *m, struct doc *spec, const struct doc *program)
{
	const char *sum = doc_str(program, "sha256", STR("<sha256>")).p;

	set_text(m, spec, "bucket", bucket_of(m));
	set_text(m, spec, "key", arena_printf(m->a, "bin/%s", sum));
	set_text(m, spec, "sha256", sum);
}

/* Of the machines of a role; "" is the master. */
static void set_program_of(struct ec2_plan *m, struct doc *spec, const char *role)
{
	const struct doc *other = other_program(m, role);

	set_program(m, spec, other ? other : doc_table(m->facts, "binary"));
}

static const char *vpc_of(const struct ec2_plan *m)
{
	return fact(m, "vpc", m->t->vpc ? m->t->vpc : "<default VPC>");
}

/* In whole days, as the rules of a bucket count. */
static int keep_days(const struct job *job)
{
	return (int)((job->output.retention_ms + DAY_MS - 1) / DAY_MS);
}

static int add_object(struct ec2_plan *m, const char *name, const struct doc *program, int bucket)
{
	struct doc *spec = spec_new(m);

	set_program(m, spec, program);
	set_int(m, spec, "size", doc_int(program, "size", 0));
	int i = add(m, "s3.object", name, spec);
	m->p->resources[i].shared = true;
	add_need(m, i, bucket);
	return i;
}

static void add_storage(struct ec2_plan *m)
{
	struct doc *spec = spec_new(m);

	set_text(m, spec, "bucket", bucket_of(m));
	set_bool(m, spec, "given", m->t->bucket != NULL);
	set_int(m, spec, "keep_days", keep_days(m->p->job));
	int bucket = add(m, "s3.bucket", "bucket", spec);
	m->p->resources[bucket].shared = true;

	m->binary = add_object(m, "program", doc_table(m->facts, "binary"), bucket);
	/* There are two architectures: the roles that do not have the client's all have the other one. */
	const struct doc *others = doc_table(m->facts, "binaries");

	if (others && others->table.n) {
		const struct doc *other = others->table.v[0].value;

		m->other_binary = add_object(
			m,
			arena_printf(m->a, "program-%s", doc_str(other, "machine", STR("other")).p),
			other, bucket);
	}
}

static void add_group(struct ec2_plan *m, bool master)
{
	struct doc *spec = spec_new(m);

	set_text(m, spec, "vpc", vpc_of(m));
	if (master) {
		set_int(m, spec, "port", m->t->master_port);
		set_text(m, spec, "cidr",
			 fact(m, "client",
			      m->t->client_cidr ? m->t->client_cidr : "<this machine>"));
	}
	m->group = add(m, "ec2.security_group", "group", spec);
}

static bool has_text(const struct doc *list, struct str text)
{
	for (size_t i = 0; i < list->array.n; i++)
		if (str_eq(list->array.v[i]->s, text))
			return true;
	return false;
}

/* The bucket of an URL of S3, unless it is the one that a master may use anyway; empty: none. */
static struct str other_bucket(struct ec2_plan *m, const char *url)
{
	struct str bucket = aws_bucket_of(url);

	if (str_is(bucket, bucket_of(m)))
		bucket.n = 0;
	return bucket;
}

/* The buckets with inputs of the job, without the one that a master may read anyway. */
static struct doc *input_buckets(struct ec2_plan *m)
{
	struct doc *list = doc_new(m->a, DOC_ARRAY);
	const struct data_spec *inputs;
	size_t n = job_data(m->p->job, m->a, &inputs);

	for (size_t i = 0; i < n; i++) {
		struct str bucket = other_bucket(m, inputs[i].src);

		if (bucket.n && !has_text(list, bucket))
			doc_append(m->a, list, doc_new_str(m->a, bucket));
	}
	return list;
}

/* The role and the instance profile of master instances, shared by all runs of the install. */
static void add_role(struct ec2_plan *m)
{
	struct doc *spec = spec_new(m);

	struct doc *read = input_buckets(m);

	struct str results = other_bucket(m, m->p->job->output.s3);

	set_text(m, spec, "bucket", bucket_of(m));
	if (results.n)
		doc_set(m->a, spec, STR("results"), doc_new_str(m->a, results));
	if (read->array.n)
		doc_set(m->a, spec, STR("read"), read);
	set_text(m, spec, "cloudwatch", m->t->cloudwatch);
	int role = add(m, "iam.role", "role", spec);
	m->profile = add(m, "iam.profile", "profile", spec_new(m));
	m->p->resources[role].shared = m->p->resources[m->profile].shared = true;
	add_need(m, m->profile, role);
}

/* Lists one subnet for each zone that may be tried; at least one. */
static void list_subnets(struct ec2_plan *m)
{
	const struct doc *known = doc_array(m->facts, "subnets");
	size_t n = known ? known->array.n : m->t->zones.n;

	m->subnets = arena_array(m->a, struct subnet, n + 1);
	for (size_t i = 0; i < n; i++) {
		const struct doc *s = known ? known->array.v[i] : NULL;

		m->subnets[m->nsubnets++] = (struct subnet){
			.zone = s ? doc_str(s, "zone", STR("")).p : m->t->zones.v[i],
			.id = s ? doc_str(s, "id", STR("")).p : "",
			.cidr = doc_str(s, "cidr", STR("<free range>")).p,
			.spare = doc_array(s, "spare"),
		};
	}
	if (!m->nsubnets)
		m->subnets[m->nsubnets++] = (struct subnet){
			.zone = arena_printf(m->a, "%sa", region_of(m)),
			.id = m->t->subnets.n ? m->t->subnets.v[0] : "",
			.cidr = "<free range>",
		};
}

/* The choices of a subnet are ranges. */
static void add_ranges(struct ec2_plan *m, const struct subnet *s, struct plan_resource *r)
{
	size_t n = s->spare ? s->spare->array.n : 0;

	if (n == 0)
		return;
	r->choices = arena_array(m->a, const char *, n + 1);
	for (size_t i = 0; i <= n; i++) {
		struct doc *choice = doc_new(m->a, DOC_TABLE);

		set_text(m, choice, "cidr", i ? s->spare->array.v[i - 1]->s.p : s->cidr);
		r->choices[r->nchoices++] = doc_json_text(m->a, choice);
	}
}

static void add_subnets(struct ec2_plan *m)
{
	m->made_subnets = arena_array(m->a, int, (size_t)m->nsubnets);
	for (int i = 0; i < m->nsubnets; i++) {
		const struct subnet *s = &m->subnets[i];
		struct doc *spec = spec_new(m);

		m->made_subnets[i] = -1;
		if (s->id[0])
			continue;
		set_text(m, spec, "vpc", vpc_of(m));
		set_text(m, spec, "zone", s->zone);
		set_text(m, spec, "cidr", s->cidr);
		m->made_subnets[i] =
			add(m, "ec2.subnet", arena_printf(m->a, "subnet-%s", s->zone), spec);
		add_ranges(m, s, &m->p->resources[m->made_subnets[i]]);
	}
}

/* Does the zone offer the type?  True if the facts do not say. */
static bool zone_offers(const struct ec2_plan *m, const char *type, const char *zone)
{
	const struct doc *zones = doc_array(doc_table(m->facts, "zones_of"), type);

	for (size_t i = 0; zones && i < zones->array.n; i++)
		if (str_is(zones->array.v[i]->s, zone))
			return true;
	return !zones;
}

/* Price of an hour of the type, in millionths of a US dollar. */
static int64_t price_of(const struct ec2_plan *m, const char *type)
{
	const struct ec2_type *known = ec2_type_find(type);

	return doc_int(doc_table(m->facts, "prices"), type, known ? known->micro_hour : 0);
}

static const char *choice_of(struct ec2_plan *m, const char *type, const char *zone)
{
	struct doc *choice = doc_new(m->a, DOC_TABLE);

	set_text(m, choice, "type", type);
	set_text(m, choice, "zone", zone);
	return doc_json_text(m->a, choice);
}

/* The choices of a role: its first type in each zone, then its second type, and so on. */
struct ladder {
	const char **choices;
	struct ints prices;
};

static struct ladder ladder_of(struct ec2_plan *m, const struct strs *types)
{
	size_t most = types->n * (size_t)m->nsubnets;
	struct ladder l = {
		.choices = arena_array(m->a, const char *, most),
		.prices = {.v = arena_array(m->a, int64_t, most)},
	};

	for (size_t i = 0; i < types->n; i++)
		for (int z = 0; z < m->nsubnets; z++)
			if (zone_offers(m, types->v[i], m->subnets[z].zone)) {
				l.choices[l.prices.n] =
					choice_of(m, types->v[i], m->subnets[z].zone);
				l.prices.v[l.prices.n++] = price_of(m, types->v[i]);
			}
	return l;
}

static int object_of(const struct ec2_plan *m, const char *role)
{
	return other_program(m, role) ? m->other_binary : m->binary;
}

/* Adds what the instance of a node needs: group, placement group, program and subnets. */
static void add_needs(struct ec2_plan *m, int resource, const char *role)
{
	add_need(m, resource, m->group);
	add_need(m, resource, m->placement);
	add_need(m, resource, object_of(m, role));
	for (int i = 0; i < m->nsubnets; i++)
		add_need(m, resource, m->made_subnets[i]);
}

static void set_network(struct ec2_plan *m, struct doc *spec)
{
	struct doc *subnets = doc_new(m->a, DOC_TABLE);

	for (int i = 0; i < m->nsubnets; i++)
		if (m->subnets[i].id[0])
			set_text(m, subnets, m->subnets[i].zone, m->subnets[i].id);
	doc_set(m->a, spec, STR("subnets"), subnets);
	doc_set(m->a, spec, STR("groups"), strings(m, &m->t->security_groups));
	set_text(m, spec, "key_name", m->t->key_name);
}

static int64_t volume_of(const struct ec2_plan *m, const struct doc *image, int64_t wanted)
{
	int64_t inputs = doc_int(m->facts, "input_bytes", 0);

	if (wanted)
		return wanted;
	return doc_int(image, "gb", DEFAULT_IMAGE_GB) + (inputs + inputs / 5 + GB - 1) / GB;
}

static void set_image(struct ec2_plan *m, struct doc *spec, const char *role, const char *ami,
		      int64_t volume_gb)
{
	const struct doc *image = doc_table(doc_table(m->facts, "images"), role);

	set_text(m, spec, "ami", doc_str(image, "ami", str_from(ami)).p);
	set_text(m, spec, "root", doc_str(image, "root", STR("/dev/xvda")).p);
	set_int(m, spec, "volume_gb", volume_of(m, image, volume_gb));
	if (!volume_gb && !doc_get(image, "gb"))
		set_bool(m, spec, "volume_least", true);
	set_text(m, spec, "volume_type", m->t->volume_type);
}

static const char *node_spec(struct ec2_plan *m, const struct strategy_role *r,
			     const struct aws_machine *machine)
{
	struct doc *spec = spec_new(m);

	set_text(m, spec, "role", r->name);
	set_image(m, spec, r->name, machine->ami, machine->volume_gb);
	set_network(m, spec);
	set_bool(m, spec, "spot", machine->spot);
	set_bool(m, spec, "public_ip", m->t->public_ip);
	set_text(m, spec, "profile", machine->instance_profile);
	set_text(m, spec, "reservation", m->t->reservation);
	set_program_of(m, spec, r->name);
	set_int(m, spec, "lease_ms", m->p->job->timeouts.lease_ms);
	return doc_json_text(m->a, spec);
}

static void add_nodes(struct ec2_plan *m)
{
	struct plan *p = m->p;
	const char **specs = arena_array(m->a, const char *, (size_t)p->crew.nroles);
	struct ladder *ladders = arena_array(m->a, struct ladder, (size_t)p->crew.nroles);

	for (int i = 0; i < p->crew.nroles; i++) {
		struct aws_machine machine =
			aws_machine_of(p->job, p->crew.roles[i].spec, m->t, m->a);

		specs[i] = node_spec(m, &p->crew.roles[i], &machine);
		ladders[i] = ladder_of(m, &machine.types);
	}
	for (int i = 0; i < p->crew.n; i++) {
		const struct member *member = &p->crew.members[i];
		int at = add_json(m, "ec2.instance", member->name, specs[member->role]);
		struct plan_resource *r = &p->resources[at];

		r->node = i;
		r->group = member->role + 1;
		r->settle_ms = SETTLE_MS;
		r->least_paid_ms = LEAST_PAID_MS;
		r->absent_looks = ABSENT_LOOKS;
		r->choices = ladders[member->role].choices;
		r->nchoices = (int)ladders[member->role].prices.n;
		r->prices = ladders[member->role].prices;
		add_needs(m, at, p->crew.roles[member->role].name);
		p->resource_of[i] = at;
	}
}

/* The instance of the master.  It is put into a subnet that exists already, because the subnets of
 * the run are deleted before it. */
static void add_master(struct ec2_plan *m)
{
	static const char *types[] = {AWS_MASTER_TYPE};
	const struct doc *at = doc_table(m->facts, "master");
	struct doc *spec = spec_new(m), *subnets = doc_new(m->a, DOC_TABLE);
	const char *zone = doc_str(at, "zone", str_from(m->subnets[0].zone)).p;

	set_text(m, subnets, zone, doc_str(at, "subnet", STR("<subnet of the VPC>")).p);
	set_image(m, spec, "", "al2023", MASTER_VOLUME_GB);
	set_network(m, spec);
	doc_set(m->a, spec, STR("subnets"), subnets);
	set_bool(m, spec, "public_ip", true);
	set_program_of(m, spec, "");
	set_int(m, spec, "keep_days", keep_days(m->p->job));
	set_int(m, spec, "port", m->t->master_port);
	int i = add(m, "ec2.master", "master", spec);
	struct plan_resource *r = &m->p->resources[i];
	r->master = true;
	r->settle_ms = SETTLE_MS;
	r->least_paid_ms = LEAST_PAID_MS;
	r->absent_looks = ABSENT_LOOKS;
	r->choices = arena_array(m->a, const char *, 1);
	r->choices[0] = choice_of(m, types[0], zone);
	r->nchoices = 1;
	r->prices.v = arena_array(m->a, int64_t, 1);
	r->prices.v[r->prices.n++] = price_of(m, types[0]);
	add_need(m, i, m->group);
	add_need(m, i, object_of(m, ""));
	add_need(m, i, m->profile);
}

/* The resources that exist before any node: made by the client before it hands the run over, or by the
 * master if the run stays with it. */
static void add_before(struct ec2_plan *m)
{
	bool apart = plan_master_is_apart(m->p);

	add_storage(m);
	if (apart)
		add_role(m);
	add_group(m, apart);
	if (apart)
		add_master(m);
}

/* The nodes, and what only they need. */
static void add_own(struct ec2_plan *m)
{
	add_subnets(m);
	if (m->t->placement == AWS_CLUSTER)
		m->placement = add(m, "ec2.placement_group", "placement", spec_new(m));
	add_nodes(m);
}

static void plan(const struct doc *facts, struct arena *a, struct plan *p)
{
	struct ec2_plan m = {
		.facts = facts,
		.t = engine_table(&engine_aws_ec2, p->job, a),
		.a = a,
		.p = p,
		.group = -1,
		.placement = -1,
		.binary = -1,
		.other_binary = -1,
		.profile = -1,
	};

	list_subnets(&m);
	p->addresses = arena_array(a, const char *, (size_t)p->crew.n);
	p->resource_of = arena_array(a, int, (size_t)p->crew.n);
	p->resources = arena_array(a, struct plan_resource,
				   (size_t)(p->crew.n + m.nsubnets + BEFORE_NODES));
	p->prices_as_of = fact(&m, "prices_as_of", EC2_PRICES_AS_OF ", " EC2_PRICES_REGION);
	add_before(&m);
	if (plan_settle(p, facts))
		add_own(&m);
	/* What belongs to the install has no end; everything else has its tag, machines have a timer too. */
	for (int i = 0; i < p->nresources; i++)
		p->resources[i].expires = !p->resources[i].shared;
	plan_adopt(p, facts);
}

static struct plan_results results(const struct plan *p, struct arena *a)
{
	for (int i = 0; i < p->nresources; i++) {
		struct doc *spec = NULL;

		if (strcmp(p->resources[i].kind, "s3.bucket") != 0 ||
		    json_parse(str_from(p->resources[i].spec), a, &spec, NULL) < 0)
			continue;
		return (struct plan_results){
			.url = arena_printf(a, "s3://%s/runs/", doc_str(spec, "bucket", STR("")).p),
			.keep_days = (int)doc_int(spec, "keep_days", 0),
		};
	}
	return (struct plan_results){0};
}

static const char *metrics(const struct plan *p, struct arena *a)
{
	const struct aws_table *t = engine_table(&engine_aws_ec2, p->job, a);
	struct doc *spec = NULL;

	/* Every spec has the region. */
	if (!t->cloudwatch || !p->nresources ||
	    json_parse(str_from(p->resources[0].spec), a, &spec, NULL) < 0)
		return NULL;
	return arena_printf(a, "cloudwatch://%s/%s", doc_str(spec, "region", STR("")).p,
			    t->cloudwatch);
}

static struct plan_volume volume(const struct plan_resource *r, struct arena *a)
{
	struct doc *spec = NULL;

	if (json_parse(str_from(r->spec), a, &spec, NULL) < 0)
		return (struct plan_volume){0};
	return (struct plan_volume){
		.gb = doc_int(spec, "volume_gb", 0),
		.type = doc_str(spec, "volume_type", STR("")).p,
		.least = doc_bool(spec, "volume_least", false),
	};
}

static bool check(const struct job *job, struct arena *a, struct problems *ps)
{
	size_t before = ps->n + ps->more;

	aws_check(job, engine_table(&engine_aws_ec2, job, a), "aws.ec2", a, ps);
	return ps->n + ps->more == before;
}

/* What the resolver must know of a job. */
static struct doc *options(const struct job *job, struct arena *a)
{
	return aws_options(job, engine_table(&engine_aws_ec2, job, a), a);
}

const struct engine engine_aws_ec2 = {
	.name = "aws.ec2",
	.help = "instances of EC2, one node each, and a master on an instance of its own",
	.schema = &aws_field,
	.moves_nodes = true,
	.makes_machines = true,
	.options = options,
	.check = check,
	.plan = plan,
	.volume = volume,
	.results = results,
	.metrics = metrics,
};
