/* The plan of the EC2 engine: resources, what they need, the ladder of types and zones, cost. */
#include "stored.h"

#include "plan/ec2_types.h"

static struct arena *arena;

static int setup(void **state)
{
	(void)state;
	arena = arena_new();
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	arena = arena_free(arena);
	return 0;
}

#define HEAD "engine = 'aws.ec2'\ncommand = 'x'\n"
#define TWO_ROLES                                                                                  \
	HEAD "[aws]\nregion = 'us-east-2'\n"                                                       \
	     "[roles.ps]\ncount = 2\nservice = true\ninstance_type = 'c5.2xlarge'\n"               \
	     "[roles.w]\ncount = 3\ninstance_type = ['p3.2xlarge', 'g4dn.xlarge']\nspot = true\n"

#define FACTS                                                                                                 \
	"{\"account\":\"123456789012\",\"region\":\"us-east-2\",\"vpc\":\"vpc-1\",\"bucket\":\"b\","          \
	"\"subnets\":[{\"zone\":\"us-east-2a\",\"cidr\":\"10.0.1.0/27\",\"spare\":[\"10.0.7.0/27\"]},"        \
	"{\"zone\":\"us-east-2b\",\"id\":\"subnet-b\"}],"                                                     \
	"\"zones_of\":{\"p3.2xlarge\":[\"us-east-2b\"],\"g4dn.xlarge\":[\"us-east-2a\",\"us-east-2b\"]},"     \
	"\"images\":{\"w\":{\"ami\":\"ami-w\",\"root\":\"/dev/sda1\",\"gb\":30}},\"input_bytes\":5000000000," \
	"\"binary\":{\"sha256\":\"ab\",\"size\":9},\"client\":\"203.0.113.7/32\""

static struct doc *parse(const char *text)
{
	struct doc *doc;
	struct err err;

	if (json_parse(str_from(text), arena, &doc, &err) < 0)
		fail_msg("%s: %s", text, err.msg);
	return doc;
}

/* With the tables of the engines. */
static struct job *job_of(const char *text)
{
	const struct job_rules rules = plan_job_rules();
	struct job *job = arena_new_of(arena, struct job);
	struct problems ps = {0};
	struct doc *doc;
	struct err err;

	if (toml_parse(str_from(text), arena, &doc, &err) < 0)
		fail_msg("%s", err.msg);
	if (!job_load(doc, &rules, arena, job, &ps) && ps.n == 0)
		fail_msg("%s", text);
	return job;
}

static struct plan plan_of(const char *text, const char *facts)
{
	const struct job *job = job_of(text);
	struct problems ps = {0};
	struct plan p;

	if (!plan_make(job, facts ? parse(facts) : NULL, arena, &p, &ps))
		fail_msg("%s", ps.v[0].text);
	return p;
}

static int index_of(const struct plan *p, const char *name)
{
	for (int i = 0; i < p->nresources; i++)
		if (strcmp(p->resources[i].name, name) == 0)
			return i;
	fail_msg("no resource %s", name);
	return -1;
}

static bool needs(const struct plan *p, const char *name, const char *other)
{
	const struct plan_resource *r = &p->resources[index_of(p, name)];

	for (int i = 0; i < r->nneeds; i++)
		if (r->needs[i] == index_of(p, other))
			return true;
	return false;
}

static const struct doc *spec_of(const struct plan *p, const char *name)
{
	return parse(p->resources[index_of(p, name)].spec);
}

static void assert_text(const struct doc *d, const char *key, const char *want)
{
	assert_string_equal(doc_str(d, key, STR("")).p, want);
}

static void every_type_has_its_size_and_price(void **state)
{
	const struct ec2_type *t = ec2_type_find("p3.2xlarge");
	(void)state;

	assert_non_null(t);
	assert_int_equal(t->vcpus, 8);
	assert_int_equal(t->gpus, 1);
	assert_int_equal(t->memory_mib, 62464);
	assert_int_equal(t->micro_hour, 3060000);
	assert_non_null(ec2_type_find("a1.2xlarge"));
	assert_null(ec2_type_find("p3.2xlarg"));
	assert_string_equal(ec2_type_suggest("c5.2xlrge"), "c5.2xlarge");
}

static void nodes_are_one_group_per_role_and_need_the_network(void **state)
{
	struct plan p = plan_of(TWO_ROLES, FACTS "}");
	(void)state;

	assert_false(p.hands_over);
	for (int i = 0; i < p.crew.n; i++) {
		const struct plan_resource *r = &p.resources[p.resource_of[i]];

		assert_string_equal(r->kind, "ec2.instance");
		assert_string_equal(r->name, p.crew.members[i].name);
		assert_int_equal(r->node, i);
		assert_int_equal(r->group, p.crew.members[i].role + 1);
		assert_true(r->settle_ms >= 300000 && r->absent_looks >= 5);
		assert_true(needs(&p, r->name, "group") && needs(&p, r->name, "program"));
		assert_true(needs(&p, r->name, "subnet-us-east-2a"));
	}
	assert_text(spec_of(&p, "subnet-us-east-2a"), "cidr", "10.0.1.0/27");
	const struct plan_resource *subnet = &p.resources[index_of(&p, "subnet-us-east-2a")];

	assert_true(subnet->nchoices == 2 && subnet->group == 0);
	assert_string_equal(subnet->choices[0], "{\"cidr\":\"10.0.1.0/27\"}");
	assert_string_equal(subnet->choices[1], "{\"cidr\":\"10.0.7.0/27\"}");
	assert_text(doc_table(spec_of(&p, "w-0"), "subnets"), "us-east-2b", "subnet-b");
	assert_true(p.resources[index_of(&p, "bucket")].shared);
	assert_true(p.resources[index_of(&p, "profile")].shared);
	assert_false(p.resources[index_of(&p, "group")].shared);
}

/* Rule: what a run makes ends without a master: by the time that it carries, and nodes by their lease. */
static void what_costs_ends_by_itself(void **state)
{
	struct plan p =
		plan_of(TWO_ROLES "[timeouts]\nlease = '7m'\n", FACTS ",\"at\":\"client\"}");
	struct plan own =
		plan_of("master = 'here'\n" TWO_ROLES "[timeouts]\nlease = '7m'\n", FACTS "}");

	(void)state;
	for (int i = 0; i < p.nresources; i++)
		assert_int_equal(p.resources[i].expires, !p.resources[i].shared);
	for (int i = 0; i < own.nresources; i++)
		assert_int_equal(own.resources[i].expires, !own.resources[i].shared);
	assert_true(p.resources[index_of(&p, "master")].expires);
	for (int i = 0; i < own.crew.n; i++)
		assert_int_equal(doc_int(spec_of(&own, own.crew.members[i].name), "lease_ms", 0),
				 7 * 60 * 1000);
}

static void a_role_of_another_architecture_gets_its_own_program(void **state)
{
	struct plan p = plan_of(
		TWO_ROLES, FACTS
		",\"binaries\":{\"ps\":{\"machine\":\"arm64\",\"sha256\":\"cd\",\"size\":7}}}");
	const struct plan_resource *other = &p.resources[index_of(&p, "program-arm64")];
	(void)state;

	assert_string_equal(other->kind, "s3.object");
	assert_true(other->shared && needs(&p, "program-arm64", "bucket"));
	assert_text(spec_of(&p, "program-arm64"), "key", "bin/cd");
	assert_int_equal(doc_int(spec_of(&p, "program-arm64"), "size", 0), 7);
	assert_true(needs(&p, "ps-0", "program-arm64") && !needs(&p, "ps-0", "program"));
	assert_text(spec_of(&p, "ps-0"), "sha256", "cd");
	assert_text(spec_of(&p, "ps-0"), "key", "bin/cd");
	assert_true(needs(&p, "w-0", "program") && !needs(&p, "w-0", "program-arm64"));
	assert_text(spec_of(&p, "w-0"), "sha256", "ab");
}

static void the_ladder_tries_each_type_where_it_is_offered(void **state)
{
	static const char *const want[][2] = {{"p3.2xlarge", "us-east-2b"},
					      {"g4dn.xlarge", "us-east-2a"},
					      {"g4dn.xlarge", "us-east-2b"}};
	struct plan p = plan_of(TWO_ROLES, FACTS "}");
	const struct plan_resource *r = &p.resources[index_of(&p, "w-0")];
	(void)state;

	assert_int_equal(r->nchoices, 3);
	assert_int_equal(r->prices.n, 3);
	for (int i = 0; i < 3; i++) {
		const struct doc *choice = parse(r->choices[i]);

		assert_text(choice, "type", want[i][0]);
		assert_text(choice, "zone", want[i][1]);
		assert_int_equal(r->prices.v[i], ec2_type_find(want[i][0])->micro_hour);
	}
}

static void a_volume_holds_image_and_inputs(void **state)
{
	struct plan p = plan_of(TWO_ROLES, FACTS "}");
	const struct doc *w = spec_of(&p, "w-0");
	(void)state;

	assert_text(w, "ami", "ami-w");
	assert_text(w, "root", "/dev/sda1");
	assert_int_equal(doc_int(w, "volume_gb", 0), 30 + 6);
	assert_true(doc_bool(w, "spot", false));
	assert_false(doc_bool(spec_of(&p, "ps-0"), "spot", true));
	p = plan_of("volume_gb = 99\n" TWO_ROLES, FACTS "}");
	assert_int_equal(doc_int(spec_of(&p, "w-0"), "volume_gb", 0), 99);
}

static void a_client_plans_the_master_and_hands_the_run_over(void **state)
{
	struct plan p =
		plan_of(TWO_ROLES, FACTS ",\"at\":\"client\",\"master\":{\"zone\":\"us-east-2c\","
					 "\"subnet\":\"subnet-c\"}}");
	(void)state;

	assert_true(p.hands_over);
	assert_int_equal(p.crew.n, 0);
	assert_int_equal(p.nresources, 6);
	assert_true(needs(&p, "master", "group") && needs(&p, "master", "profile"));
	assert_text(spec_of(&p, "group"), "cidr", "203.0.113.7/32");
	assert_text(doc_table(spec_of(&p, "master"), "subnets"), "us-east-2c", "subnet-c");
	/* and it is stored like any other */
	struct plan again = stored_back(stored_text(&p, arena), arena);
	assert_true(again.hands_over);
	assert_int_equal(again.crew.n, 0);
	assert_int_equal(again.resources[index_of(&again, "master")].prices.v[0], 10400);
}

static void a_masters_role_may_read_the_buckets_of_the_inputs(void **state)
{
	struct plan p = plan_of("source = 's3://code/x.tar'\n" TWO_ROLES
				"[[data]]\nsrc = 's3://days/d/'\n[[data]]\nsrc = 's3://days/e'\n"
				"[[data]]\nsrc = 'https://h/x'\n",
				FACTS ",\"at\":\"client\"}");
	const struct doc *read = doc_array(spec_of(&p, "role"), "read");

	(void)state;
	assert_non_null(read);
	assert_int_equal(read->array.n, 2);
	assert_string_equal(read->array.v[0]->s.p, "code");
	assert_string_equal(read->array.v[1]->s.p, "days");
}

static void a_masters_role_may_write_to_the_bucket_of_the_results(void **state)
{
	struct plan p = plan_of(TWO_ROLES "[output]\ns3 = 's3://kept/here/'\n",
				FACTS ",\"at\":\"client\"}");
	struct plan own = plan_of(TWO_ROLES, FACTS ",\"at\":\"client\"}");

	(void)state;
	assert_text(spec_of(&p, "role"), "results", "kept");
	assert_null(doc_get(spec_of(&own, "role"), "results"));
	assert_text(plan_engine_options(p.job, arena), "results", "kept");
}

static void a_master_here_needs_neither_role_nor_open_port(void **state)
{
	struct plan p = plan_of("master = 'here'\n" TWO_ROLES, FACTS ",\"at\":\"client\"}");
	(void)state;

	assert_false(p.hands_over);
	for (int i = 0; i < p.nresources; i++) {
		assert_string_not_equal(p.resources[i].kind, "iam.role");
		assert_string_not_equal(p.resources[i].kind, "ec2.master");
	}
	assert_null(doc_get(spec_of(&p, "group"), "cidr"));
}

static void a_cluster_has_a_placement_group(void **state)
{
	struct plan p = plan_of(HEAD "[aws]\nplacement = 'cluster'\n", NULL);
	(void)state;

	assert_true(needs(&p, "worker-0", "placement"));
}

/* Rule: the plan says how large the volumes are, and whether the image may make them larger. */
static void the_plan_says_how_large_volumes_are(void **state)
{
	CLEANUP(buf_release) struct buf out = {0};
	(void)state;

	buf_init(&out, GOLDEN_MAX);
	struct plan p = plan_of(TWO_ROLES, FACTS "}");
	plan_to_json(&p, "r-xxxx", arena, &out);
	const struct doc *all = doc_array(parse(arena_strndup(arena, out.p, out.n)), "volumes");
	assert_int_equal(all->array.n, 3);
	const struct doc *w = all->array.v[1], *ps = all->array.v[2];
	assert_text(all->array.v[0], "name", "master");
	assert_text(ps, "name", "ps");
	assert_int_equal(doc_int(ps, "count", 0), 2);
	assert_int_equal(doc_int(ps, "gb", 0), 8 + 6);
	assert_text(ps, "type", "gp3");
	assert_true(doc_bool(ps, "at_least", false)); /* the facts have no image for it */
	assert_int_equal(doc_int(w, "gb", 0), 30 + 6);
	assert_false(doc_bool(w, "at_least", true));
	buf_reset(&out);
	plan_to_text(&p, "r-xxxx", arena, &out);
	const char *text = arena_strndup(arena, out.p, out.n);
	assert_non_null(strstr(text,
			       "\nvolumes\n  master        1 x 10 GB gp3\n"
			       "  w             3 x 36 GB gp3\n"
			       "  ps            2 x 14 GB gp3, more if the image is larger\n"));
}

static void the_cost_is_that_of_the_table(void **state)
{
	struct plan p = plan_of("max_runtime = '2h'\nmaster = 'here'\n" TWO_ROLES, NULL);
	struct buf out;
	(void)state;

	buf_init(&out, 1 << 20);
	plan_to_json(&p, "r", arena, &out);
	const struct doc *cost = doc_table(parse(arena_strndup(arena, out.p, out.n)), "cost");
	assert_true(doc_num(cost, "per_hour", 0) > 9.8599 && doc_num(cost, "per_hour", 0) < 9.8601);
	assert_true(doc_num(cost, "upper_bound", 0) > 19.7199 &&
		    doc_num(cost, "upper_bound", 0) < 19.7201);
	assert_text(cost, "currency", "USD");
	assert_text(cost, "as_of", EC2_PRICES_AS_OF ", " EC2_PRICES_REGION);
	out.n = 0;
	plan_to_text(&p, "r", arena, &out);
	const char *text = arena_strndup(arena, out.p, out.n);
	assert_non_null(strstr(text, "9.18: 3 x p3.2xlarge at 3.06, or g4dn.xlarge at 0.526\n"));
	assert_non_null(strstr(text, "total         9.86\n"));
	assert_non_null(strstr(text, "at most       19.72 USD, for max_runtime 2 h\n"));
	buf_release(&out);
}

static void the_bound_is_of_the_dearest_type(void **state)
{
	struct plan p = plan_of(HEAD "max_runtime = '1h'\nmaster = 'here'\n"
				     "instance_type = ['c5.large', 'p3.2xlarge']\n",
				NULL);
	struct buf out;
	(void)state;

	buf_init(&out, 1 << 20);
	plan_to_text(&p, "r", arena, &out);
	assert_non_null(strstr(out.p, "at most       3.06 USD"));
	buf_release(&out);
}

static void refused(const char *text, int line, const char *message)
{
	const struct job *job = job_of(text);
	struct problems ps = {0};
	struct plan p;

	assert_false(plan_make(job, NULL, arena, &p, &ps));
	assert_int_equal(ps.n, 1);
	assert_string_equal(ps.v[0].text, message);
	assert_int_equal(ps.v[0].pos.line, line);
}

static void bad_values_are_named_with_their_line(void **state)
{
	(void)state;
	refused(HEAD "instance_type = 'c5.2xlrge'\n", 3,
		"instance_type: 'c5.2xlrge' is none of the types of 2026-07: did you mean 'c5.2xlarge'?");
	refused(HEAD "[roles.w]\ninstance_type = ['c5.large', 'mainframe']\n", 4,
		"roles.w.instance_type: 'mainframe' is none of the types of 2026-07");
	refused(HEAD "[aws]\nclient_cidr = '0.0.0.0/0'\n", 4,
		"aws.client_cidr: '0.0.0.0/0' is no range of addresses such as 203.0.113.0/24 (and not the "
		"whole world)");
	refused(HEAD "[aws]\ntags = { 'regatta:run' = 'x' }\n", 4,
		"aws.tags: 'regatta:run': names with regatta: are set by Regatta");
	refused(HEAD "[aws]\ntags = { 'AWS:x' = 'x' }\n", 4,
		"aws.tags: 'AWS:x': names with aws: are those of AWS");
	refused(HEAD "[aws]\nendpoint_url = 'http://[::1'\n", 4,
		"aws.endpoint_url: the URL 'http://[::1' has no proper host and port");
	refused(HEAD "[aws]\nbucket = 'My_Bucket'\n", 4,
		"aws.bucket: 'My_Bucket' is not the name of a bucket: 3 to 63 small letters, digits, "
		"'.' and '-'");
	refused(HEAD "[aws]\nclient_cidr = 'home'\n", 4,
		"aws.client_cidr: 'home' is no range of addresses such as 203.0.113.0/24 (and not the whole "
		"world)");
	static const char *const namespaces[] = {"", "AWS/EC2", "two words"};

	for (size_t i = 0; i < sizeof(namespaces) / sizeof(namespaces[0]); i++) {
		CLEANUP(freep)
		char *text = xasprintf(HEAD "[aws]\ncloudwatch = '%s'\n", namespaces[i]);
		CLEANUP(freep)
		char *said =
			xasprintf("aws.cloudwatch: '%s' is no namespace: 1 to 100 letters, digits "
				  "and . - _ / #, and not one of AWS' own (AWS/...)",
				  namespaces[i]);

		refused(text, 4, said);
	}
	refused(HEAD "source = 'http://b/c'\n", 3,
		"engine aws.ec2 takes no source 'http://b/c': it takes a file, a directory, s3://, https://, "
		"git+https://...@REVISION and docker:///PATH");
}

static void sources_of_every_form_are_taken(void **state)
{
	static const char *const forms[] = {"s3://b/c/", "https://h/c.tar.gz", "git+https://h/r@v1",
					    "docker:///opt/app"};
	(void)state;

	for (size_t i = 0; i < sizeof(forms) / sizeof(forms[0]); i++) {
		CLEANUP(freep)
		char *text =
			xasprintf(HEAD "image = 'i'\nsource = '%s'\nmaster = 'here'\n", forms[i]);

		assert_string_equal(plan_of(text, NULL).job->source, forms[i]);
	}
}

#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(every_type_has_its_size_and_price),
		T(sources_of_every_form_are_taken),
		T(nodes_are_one_group_per_role_and_need_the_network),
		T(what_costs_ends_by_itself),
		T(a_role_of_another_architecture_gets_its_own_program),
		T(the_ladder_tries_each_type_where_it_is_offered),
		T(a_volume_holds_image_and_inputs),
		T(a_client_plans_the_master_and_hands_the_run_over),
		T(a_masters_role_may_read_the_buckets_of_the_inputs),
		T(a_masters_role_may_write_to_the_bucket_of_the_results),
		T(a_master_here_needs_neither_role_nor_open_port),
		T(a_cluster_has_a_placement_group),
		T(the_plan_says_how_large_volumes_are),
		T(the_cost_is_that_of_the_table),
		T(the_bound_is_of_the_dearest_type),
		T(bad_values_are_named_with_their_line),
	};

	return cmocka_run_group_tests_name("aws_ec2", tests, NULL, NULL);
}
