#include "kind_rig.h"

#include "../other_program.h"

#include "base/arena.h"
#include "driver/aws/aws_resolve.h"
#include "driver/aws/cidr.h"
#include "fmt/doc.h"

#define ROLES(types, ami)                                                                          \
	"\"roles\":{\"worker\":{\"types\":[" types "],\"ami\":\"" ami "\",\"max\":4}},"            \
	"\"master_type\":\"t3.micro\",\"inputs\":[\"data\"]"
#define HERE(more) "{\"master\":\"here\"," ROLES("\"c5.xlarge\"", "al2023") more "}"
#define AUTO(more) "{\"master\":\"auto\"," ROLES("\"c5.xlarge\"", "al2023") more "}"
#define VPCS                                                                                       \
	"<XResponse><vpcSet><item><vpcId>vpc-1</vpcId><cidrBlock>10.0.0.0/24</cidrBlock>"          \
	"</item></vpcSet></XResponse>"
#define SUBNET_OF(id, zone, vpc, cidr, more)                                                       \
	"<item><subnetId>" id "</subnetId><availabilityZone>" zone                                 \
	"</availabilityZone><vpcId>" vpc "</vpcId><cidrBlock>" cidr "</cidrBlock>" more "</item>"
#define SUBNETS(inner) "<XResponse><subnetSet>" inner "</subnetSet></XResponse>"
#define OFFER(type, zone)                                                                          \
	"<item><instanceType>" type "</instanceType><location>" zone "</location></item>"
#define OFFERS(inner)                                                                              \
	"<XResponse><instanceTypeOfferingSet>" inner "</instanceTypeOfferingSet></XResponse>"
#define IMAGE(id, date, arch)                                                                      \
	"<item><imageId>" id "</imageId><creationDate>" date "</creationDate><architecture>" arch  \
	"</architecture><rootDeviceName>/dev/xvda</rootDeviceName><blockDeviceMapping><item>"      \
	"<deviceName>/dev/xvda</deviceName><ebs><volumeSize>30</volumeSize></ebs></item>"          \
	"</blockDeviceMapping></item>"
#define IMAGES(inner) "<XResponse><imagesSet>" inner "</imagesSet></XResponse>"
#define X86 IMAGES(IMAGE("ami-1", "2026", "x86_64"))
#define PARAMETER "{\"Parameter\":{\"Value\":\"ami-1\"}}"

struct answer {
	struct arena *a;
	struct doc *facts;
	struct err err;
};

static const char *const variables[] = {"AWS_ENDPOINT_URL",  "AWS_ACCESS_KEY_ID",
					"AWS_SESSION_TOKEN", "AWS_SECRET_ACCESS_KEY",
					"AWS_REGION",	     "REGATTA_CHECKIP_URL"};

static int resolve_setup(void **state)
{
	struct kind_rig *r;

	kind_setup(state);
	r = *state;
	setenv("AWS_ENDPOINT_URL", r->fake.url, 1);
	setenv("AWS_ACCESS_KEY_ID", "AKIDTEST", 1);
	setenv("AWS_SECRET_ACCESS_KEY", "secret", 1);
	setenv("AWS_REGION", "eu-west-1", 1);
	setenv("HOME", "/nonexistent", 1);
	return 0;
}

static int resolve_teardown(void **state)
{
	for (size_t i = 0; i < COUNT(variables); i++)
		unsetenv(variables[i]);
	return kind_teardown(state);
}

static int resolve_nodes(const char *options, int nodes, struct answer *ret)
{
	struct doc *d = NULL;

	*ret = (struct answer){.a = arena_new()};
	assert_int_equal(json_parse(str_from(options), ret->a, &d, NULL), 0);
	struct resolve_input in = {.options = d, .nodes = nodes, .base_dir = "/nonexistent"};

	return aws_ec2_resolver.resolve(&in, ret->a, &ret->facts, &ret->err);
}

static void assert_refused(const char *options, enum err_kind kind, const char *text)
{
	struct answer got;

	assert_int_equal(resolve_nodes(options, 3, &got), -1);
	if (!strstr(got.err.msg, text))
		fail_msg("'%s' has no '%s'", got.err.msg, text);
	assert_int_equal(got.err.kind, kind);
	arena_free(got.a);
}

static const char *place_text(const struct doc *facts, size_t i, const char *key)
{
	const struct doc *list = doc_array(facts, "subnets");

	assert_true(list && i < list->array.n);
	return doc_str(list->array.v[i], key, STR("")).p;
}

static const char *image_text(const struct doc *facts, const char *role, const char *key)
{
	return doc_str(doc_table(doc_table(facts, "images"), role), key, STR("")).p;
}

static void expect_network(struct kind_rig *r)
{
	kind_expect(r, "DescribeVpcs", OK(VPCS));
	kind_expect(r, "DescribeSubnets",
		    OK(SUBNETS(SUBNET_OF("subnet-a", "eu-west-1a", "vpc-1", "10.0.0.0/27", "")
				       SUBNET_OF("subnet-b", "eu-west-1b", "vpc-1", "10.0.0.240/28",
						 "<defaultForAz>true</defaultForAz>"))));
	kind_expect(r, "DescribeInstanceTypeOfferings",
		    OK(OFFERS(OFFER("c5.xlarge", "eu-west-1b") OFFER("c5.xlarge", "eu-west-1a")
				      OFFER("t3.micro", "eu-west-1a")
					      OFFER("t3.micro", "eu-west-1b"))));
}

static void expect_image(struct kind_rig *r)
{
	kind_expect(r, "GetParameter", OK(PARAMETER));
	kind_expect(r, "DescribeImages", OK(X86));
}

/* ---- facts ---- */

/* All ranges of all places, spare ones too: in the VPC, and none of them over another or one that is taken. */
static void assert_ranges(const struct doc *facts, size_t places)
{
	const struct doc *list = doc_array(facts, "subnets");
	struct cidr vpc, all[16];
	size_t n = 0;

	assert_int_equal(list->array.n, places);
	assert_true(cidr_parse(STR("10.0.0.0/24"), &vpc));
	assert_true(cidr_parse(STR("10.0.0.240/28"), &all[n++]));
	assert_true(cidr_parse(STR("10.0.0.0/27"), &all[n++]));
	for (size_t i = 0; i < places; i++) {
		const struct doc *spare = doc_array(list->array.v[i], "spare");

		assert_int_equal(spare->array.n, 3);
		assert_true(cidr_parse(doc_str(list->array.v[i], "cidr", STR("")), &all[n++]));
		for (size_t k = 0; k < spare->array.n; k++)
			assert_true(cidr_parse(spare->array.v[k]->s, &all[n++]));
	}
	for (size_t i = 2; i < n; i++) {
		assert_true(cidr_overlap(vpc, all[i]) && all[i].bits == 28);
		for (size_t k = 0; k < i; k++)
			assert_false(cidr_overlap(all[k], all[i]));
	}
}

static void a_run_gets_free_ranges_in_the_zones_that_offer_its_type(void **state)
{
	struct kind_rig *r = *state;
	struct answer got;

	expect_network(r);
	expect_image(r);
	if (resolve_nodes(HERE(""), 3, &got) < 0)
		fail_msg("%s", got.err.msg);
	assert_true(str_is(doc_str(got.facts, "account", STR("")), "123456789012"));
	assert_true(str_is(doc_str(got.facts, "region", STR("")), "eu-west-1"));
	assert_true(str_is(doc_str(got.facts, "vpc", STR("")), "vpc-1"));
	assert_true(
		str_is(doc_str(got.facts, "bucket", STR("")), "regatta-123456789012-eu-west-1"));
	assert_string_equal(place_text(got.facts, 0, "zone"), "eu-west-1a");
	assert_string_equal(place_text(got.facts, 1, "zone"), "eu-west-1b");
	assert_ranges(got.facts, 2);
	assert_string_equal(image_text(got.facts, "worker", "ami"), "ami-1");
	assert_string_equal(image_text(got.facts, "worker", "root"), "/dev/xvda");
	assert_int_equal(doc_int(doc_table(doc_table(got.facts, "images"), "worker"), "gb", 0), 30);
	assert_int_equal(doc_str(doc_table(got.facts, "binary"), "sha256", STR("")).n, 64);
	assert_true(doc_int(doc_table(got.facts, "binary"), "size", 0) > 1000);
	assert_null(doc_get(got.facts, "client"));
	assert_null(doc_get(got.facts, "at"));
	assert_non_null(
		strstr(kind_asked(r, "GetParameter", 0)->body, "al2023-ami-kernel-default-x86_64"));
	kind_done(r);
	arena_free(got.a);
}

static void a_master_of_its_own_lives_in_a_subnet_that_is_there(void **state)
{
	struct kind_rig *r = *state;
	struct answer got;

	expect_network(r);
	expect_image(r);
	expect_image(r);
	if (resolve_nodes(AUTO(""), 3, &got) < 0)
		fail_msg("%s", got.err.msg);
	const struct doc *master = doc_table(got.facts, "master");

	assert_true(str_is(doc_str(master, "subnet", STR("")), "subnet-b"));
	assert_true(str_is(doc_str(master, "zone", STR("")), "eu-west-1b"));
	assert_true(str_is(doc_str(got.facts, "at", STR("")), "client"));
	assert_true(str_is(doc_str(got.facts, "client", STR("")), "127.0.0.1/32"));
	assert_string_equal(image_text(got.facts, "", "ami"), "ami-1");
	kind_done(r);
	arena_free(got.a);
}

static void subnets_of_the_user_say_vpc_and_zones(void **state)
{
	struct kind_rig *r = *state;
	struct answer got;

	kind_expect(r, "DescribeSubnets",
		    OK(SUBNETS(SUBNET_OF("subnet-a", "eu-west-1a", "vpc-7", "10.0.0.0/27", "")
				       SUBNET_OF("subnet-b", "eu-west-1b", "vpc-7", "10.0.1.0/27",
						 ""))));
	kind_expect(r, "DescribeVpcs", OK(VPCS));
	kind_expect(r, "DescribeInstanceTypeOfferings",
		    OK(OFFERS(OFFER("c5.xlarge", "eu-west-1b") OFFER("c5.xlarge", "eu-west-1a"))));
	expect_image(r);
	if (resolve_nodes(
		    HERE(",\"subnets\":[\"subnet-a\",\"subnet-b\"],\"zones\":[\"eu-west-1b\"]"), 3,
		    &got) < 0)
		fail_msg("%s", got.err.msg);
	assert_string_equal(kind_param(kind_asked(r, "DescribeVpcs", 0), "VpcId.1"), "vpc-7");
	assert_string_equal(place_text(got.facts, 0, "id"), "subnet-b");
	assert_int_equal(doc_array(got.facts, "subnets")->array.n, 1);
	kind_done(r);
	arena_free(got.a);
}

/* ---- bad input ---- */

static void a_region_without_a_default_vpc_is_named(void **state)
{
	struct kind_rig *r = *state;

	kind_expect(r, "DescribeVpcs", OK("<XResponse><vpcSet/></XResponse>"));
	assert_refused(HERE(""), ERR_INVALID, "region eu-west-1 has no default VPC: name one");
	kind_expect(r, "DescribeVpcs", NO("InvalidVpcID.NotFound", "vpc-x"));
	assert_refused(HERE(",\"vpc\":\"vpc-x\""), ERR_NOT_FOUND, "InvalidVpcID.NotFound");
	kind_done(r);
}

/* Rule: a bucket that results cannot go to is found before anything is made. */
static void the_bucket_of_the_results_is_looked_at_first(void **state)
{
	struct kind_rig *r = *state;

	kind_expect(r, "HEAD /kept-1", 404, "");
	assert_refused(HERE(",\"results\":\"kept-1\""), ERR_NOT_FOUND,
		       "output.s3: bucket 'kept-1' of account 123456789012");
	kind_expect(r, "HEAD /kept-1", OK(""));
	kind_expect(r, "DescribeVpcs", OK("<XResponse><vpcSet/></XResponse>"));
	assert_refused(HERE(",\"results\":\"kept-1\""), ERR_INVALID, "has no default VPC");
	kind_done(r);
}

static void subnets_of_two_vpcs_do_not_fit(void **state)
{
	struct kind_rig *r = *state;

	kind_expect(r, "DescribeSubnets",
		    OK(SUBNETS(SUBNET_OF("subnet-a", "eu-west-1a", "vpc-7", "10.0.0.0/27", "")
				       SUBNET_OF("subnet-b", "eu-west-1b", "vpc-8", "10.0.1.0/27",
						 ""))));
	assert_refused(HERE(",\"subnets\":[\"subnet-a\",\"subnet-b\"]"), ERR_INVALID,
		       "subnet subnet-b is in vpc-8, not in vpc-7");
	kind_done(r);
}

static void a_full_vpc_says_what_to_do(void **state)
{
	struct kind_rig *r = *state;

	kind_expect(r, "DescribeVpcs", OK(VPCS));
	kind_expect(r, "DescribeSubnets",
		    OK(SUBNETS(SUBNET_OF("subnet-a", "eu-west-1a", "vpc-1", "10.0.0.0/24", ""))));
	kind_expect(r, "DescribeInstanceTypeOfferings",
		    OK(OFFERS(OFFER("c5.xlarge", "eu-west-1b"))));
	assert_refused(HERE(""), ERR_CAPACITY, "vpc-1 has no free range of /28");
	kind_done(r);
}

static void a_type_that_is_not_offered_is_named(void **state)
{
	struct kind_rig *r = *state;

	kind_expect(r, "DescribeVpcs", OK(VPCS));
	kind_expect(r, "DescribeSubnets", OK(SUBNETS("")));
	kind_expect(r, "DescribeInstanceTypeOfferings", OK(OFFERS("")));
	assert_refused(
		HERE(""), ERR_INVALID,
		"region eu-west-1 does not offer the type 'c5.xlarge': choose another instance type");
	kind_expect(r, "DescribeVpcs", OK(VPCS));
	kind_expect(r, "DescribeSubnets", OK(SUBNETS("")));
	kind_expect(r, "DescribeInstanceTypeOfferings",
		    OK(OFFERS(OFFER("c5.xlarge", "eu-west-1b"))));
	assert_refused(HERE(",\"zones\":[\"eu-west-1a\"]"), ERR_INVALID,
		       "role 'worker': no zone of this run's subnets offers c5.xlarge");
	kind_done(r);
}

static void a_vpc_without_subnets_has_no_place_for_a_master(void **state)
{
	struct kind_rig *r = *state;

	kind_expect(r, "DescribeVpcs", OK(VPCS));
	kind_expect(r, "DescribeSubnets", OK(SUBNETS("")));
	kind_expect(r, "DescribeInstanceTypeOfferings",
		    OK(OFFERS(OFFER("c5.xlarge", "eu-west-1b") OFFER("t3.micro", "eu-west-1b"))));
	assert_refused(AUTO(""), ERR_INVALID, "vpc-1 has no subnet in which the master can live");
	kind_done(r);
}

static void credentials_that_are_missing_or_wrong_are_named(void **state)
{
	struct kind_rig *r = *state;
	struct answer got;

	r->account = "nonsense";
	assert_int_equal(resolve_nodes(HERE(""), 3, &got), -1);
	assert_non_null(strstr(got.err.msg, "is no account"));
	arena_free(got.a);
	unsetenv("AWS_ACCESS_KEY_ID");
	unsetenv("AWS_SECRET_ACCESS_KEY");
	setenv("AWS_EC2_METADATA_DISABLED", "true", 1);
	assert_int_equal(resolve_nodes(HERE(""), 3, &got), -1);
	assert_int_equal(got.err.kind, ERR_DENIED);
	unsetenv("AWS_EC2_METADATA_DISABLED");
	arena_free(got.a);
	kind_done(r);
}

/* ---- the program ---- */

/* Nothing is asked of AWS before: the script of the fake has no step. */
static void machines_of_another_architecture_need_their_program(void **state)
{
	struct kind_rig *r = *state;
	const char *type = strcmp(other_machine(), "arm64") == 0 ? "c7g.large" : "c5.xlarge";
	char *options =
		xasprintf("{\"master\":\"here\",\"roles\":{\"w\":{\"types\":[\"%s\"]}}}", type);
	char *text = xasprintf("role 'w', %s: there is no regatta-%s for these machines", type,
			       other_machine());
	char *dir = xstrdup(getenv("REGATTA_BINARIES"));

	setenv("REGATTA_BINARIES", "/nonexistent", 1);
	assert_refused(options, ERR_NOT_FOUND, text);
	setenv("REGATTA_BINARIES", dir, 1);
	kind_done(r);
	free(options);
	free(text);
	free(dir);
}

/* ---- images ---- */

static void images_are_found_by_every_form_of_name(void **state)
{
	static const struct {
		const char *type, *word;
		bool ssm;
		const char *asks; /* what is in the call that finds it */
		const char *arch;
	} rows[] = {
		{"c5.xlarge", "ami-7", false, "ImageId.1=ami-7", "x86_64"},
		{"c5.xlarge", "ssm:/my/image", true, "\"/my/image\"", "x86_64"},
		{"c5.xlarge", "self/team-*", false, "Filter.1.Value.1=team-%2A", "x86_64"},
		{"c7g.large", "al2023", true, "al2023-ami-kernel-default-arm64", "arm64"},
		{"c5.xlarge", "ecs", true, "amazon-linux-2023/recommended/image_id", "x86_64"},
		{"g5.xlarge", "ecs", true, "amazon-linux-2023/gpu/recommended/image_id", "x86_64"},
		{"m6g.large", "ecs", true, "amazon-linux-2023/arm64/recommended/image_id", "arm64"},
		{"c5.xlarge", "ubuntu-24.04", true, "24.04/stable/current/amd64/hvm", "x86_64"},
		{"t4g.small", "ubuntu-24.04", true, "24.04/stable/current/arm64/hvm", "arm64"},
		{"c5.xlarge", "debian-12", true, "debian/release/12/latest/amd64", "x86_64"},
		{"p4d.24xlarge", "dlami", true, "deeplearning/ami/x86_64/base-oss", "x86_64"},
	};

	for (size_t i = 0; i < COUNT(rows); i++) {
		struct kind_rig *r;
		struct answer got;

		resolve_setup(state);
		r = *state;
		char *options =
			xasprintf("{\"master\":\"here\",\"roles\":{\"w\":{\"types\":[\"%s\"],"
				  "\"ami\":\"%s\"}}}",
				  rows[i].type, rows[i].word);
		char *offers = xasprintf(
			"<XResponse><instanceTypeOfferingSet><item><instanceType>%s</instanceType>"
			"<location>eu-west-1a</location></item></instanceTypeOfferingSet></XResponse>",
			rows[i].type);
		char *images = xasprintf(
			"<XResponse><imagesSet><item><imageId>ami-old</imageId><creationDate>2025"
			"</creationDate><architecture>%s</architecture></item><item><imageId>ami-new"
			"</imageId><creationDate>2026</creationDate><architecture>%s</architecture>"
			"</item></imagesSet></XResponse>",
			rows[i].arch, rows[i].arch);

		kind_expect(r, "DescribeVpcs", OK(VPCS));
		kind_expect(r, "DescribeSubnets", OK(SUBNETS("")));
		kind_expect(r, "DescribeInstanceTypeOfferings", 200, offers);
		if (rows[i].ssm)
			kind_expect(
				r, "GetParameter",
				OK("{\"Parameter\":{\"Value\":\"{\\\"image_id\\\":\\\"ami-1\\\"}\"}}"));
		kind_expect(r, "DescribeImages", 200, images);
		if (resolve_nodes(options, 1, &got) < 0)
			fail_msg("%s: %s", rows[i].word, got.err.msg);
		assert_string_equal(image_text(got.facts, "w", "ami"), "ami-new");
		const char *call =
			kind_asked(r, rows[i].ssm ? "GetParameter" : "DescribeImages", 0)->body;

		if (!strstr(call, rows[i].asks))
			fail_msg("%s of %s: %s", rows[i].word, rows[i].type, call);
		if (rows[i].ssm)
			assert_string_equal(
				kind_param(kind_asked(r, "DescribeImages", 0), "ImageId.1"),
				"ami-1");
		kind_done(r);
		resolve_teardown(state); /* first: its threads may still be at the answers */
		arena_free(got.a);
		free(options);
		free(offers);
		free(images);
	}
}

static void an_image_that_does_not_fit_is_named(void **state)
{
	struct kind_rig *r = *state;

	expect_network(r);
	kind_expect(r, "GetParameter", OK(PARAMETER));
	kind_expect(r, "DescribeImages", OK(IMAGES(IMAGE("ami-1", "2026", "arm64"))));
	assert_refused(HERE(""), ERR_INVALID,
		       "ami-1 is an image for arm64, and c5.xlarge has x86_64");
	expect_network(r);
	kind_expect(r, "GetParameter", OK(PARAMETER));
	kind_expect(r, "DescribeImages", OK(IMAGES("")));
	assert_refused(HERE(""), ERR_NOT_FOUND, "ami 'al2023': there is no such image");
	expect_network(r);
	assert_refused("{\"master\":\"here\"," ROLES("\"c5.xlarge\"", "fedora") "}", ERR_INVALID,
		       "ami 'fedora': it is neither an id, ssm:NAME");
	kind_expect(r, "DescribeVpcs", OK(VPCS));
	kind_expect(r, "DescribeSubnets", OK(SUBNETS("")));
	kind_expect(r, "DescribeInstanceTypeOfferings",
		    OK(OFFERS(OFFER("c5.xlarge", "eu-west-1a") OFFER("c7g.xlarge", "eu-west-1a"))));
	assert_refused("{\"master\":\"here\"," ROLES("\"c5.xlarge\",\"c7g.xlarge\"", "al2023") "}",
		       ERR_INVALID, "c5.xlarge and c7g.xlarge have different processors");
	kind_done(r);
}

static void the_name_of_a_type_tells_its_processor(void **state)
{
	static const char *const arm[] = {"c7g.large",	   "m6gd.xlarge",  "t4g.nano",
					  "im4gn.large",   "is4gen.large", "g5g.xlarge",
					  "hpc7g.4xlarge", "a1.large",	   "x2gd.large"};
	static const char *const intel[] = {"c5.large",	    "g4dn.xlarge", "g5.xlarge",
					    "p4d.24xlarge", "m7i.large",   "c6in.large",
					    "inf2.xlarge",  "gr6.4xlarge"};

	(void)state;
	for (size_t i = 0; i < COUNT(arm); i++)
		assert_string_equal(aws_type_architecture(arm[i]), "arm64");
	for (size_t i = 0; i < COUNT(intel); i++)
		assert_string_equal(aws_type_architecture(intel[i]), "x86_64");
	assert_true(aws_type_has_gpus("g5.xlarge"));
	assert_true(aws_type_has_gpus("p4d.24xlarge"));
	assert_true(aws_type_has_gpus("gr6.4xlarge"));
	assert_false(aws_type_has_gpus("c5.large"));
	assert_false(aws_type_has_gpus("inf2.xlarge"));
}

/* ---- who the caller is ---- */

static void the_caller_is_seen_as_the_address_check_says(void **state)
{
	struct kind_rig *r = *state;
	struct answer got;
	char *endpoint = xasprintf("http://localhost:%d", r->fake.port);
	char *check = xasprintf("%s/checkip", r->fake.url);

	setenv("AWS_ENDPOINT_URL", endpoint, 1);
	setenv("REGATTA_CHECKIP_URL", check, 1);
	expect_network(r);
	expect_image(r);
	expect_image(r);
	kind_expect(r, "GET /checkip", OK("203.0.113.7\n"));
	if (resolve_nodes(AUTO(""), 3, &got) < 0)
		fail_msg("%s", got.err.msg);
	assert_true(str_is(doc_str(got.facts, "client", STR("")), "203.0.113.7/32"));
	arena_free(got.a);
	expect_network(r);
	expect_image(r);
	expect_image(r);
	kind_expect(r, "GET /checkip", OK("<html>log in first</html>"));
	assert_refused(AUTO(""), ERR_PROTOCOL, "set `client_cidr`");
	expect_network(r);
	expect_image(r);
	expect_image(r);
	kind_expect(r, "GET /checkip", 500, "");
	assert_refused(AUTO(""), ERR_UNAVAILABLE, "set `client_cidr`");
	expect_network(r);
	expect_image(r);
	expect_image(r);
	if (resolve_nodes(AUTO(",\"client_cidr\":\"198.51.100.0/24\""), 3, &got) < 0)
		fail_msg("%s", got.err.msg);
	assert_true(str_is(doc_str(got.facts, "client", STR("")), "198.51.100.0/24"));
	arena_free(got.a);
	kind_done(r);
	free(endpoint);
	free(check);
}

static void credentials_travel_with_the_variables_that_name_services(void **state)
{
	struct kind_rig *r = *state;
	struct arena *a = arena_new();
	struct doc *options, *got;
	struct err err;

	setenv("AWS_SESSION_TOKEN", "token", 1);
	json_parse(STR("{\"endpoint_url\":\"http://127.0.0.1:1\"}"), a, &options, NULL);
	struct resolve_input in = {.options = options};

	assert_int_equal(aws_ec2_resolver.credentials(&in, a, &got, &err), 0);
	assert_true(str_is(doc_str(got, "access_key", STR("")), "AKIDTEST"));
	assert_true(str_is(doc_str(got, "secret_key", STR("")), "secret"));
	assert_true(str_is(doc_str(got, "session_token", STR("")), "token"));
	assert_true(str_is(doc_str(got, "region", STR("")), "eu-west-1"));
	assert_true(str_is(doc_str(got, "endpoint_url", STR("")), "http://127.0.0.1:1"));
	assert_true(
		str_is(doc_str(doc_table(got, "env"), "AWS_ENDPOINT_URL", STR("")), r->fake.url));
	assert_null(doc_get(doc_table(got, "env"), "AWS_ACCESS_KEY_ID"));
	/* Whoever names the certificates: the master finds them by the one name. */
	setenv("SSL_CERT_FILE", "/of/mine.pem", 1);
	unsetenv("AWS_CA_BUNDLE");
	assert_int_equal(aws_ec2_resolver.credentials(&in, a, &got, &err), 0);
	unsetenv("SSL_CERT_FILE");
	assert_true(
		str_is(doc_str(doc_table(got, "env"), "AWS_CA_BUNDLE", STR("")), "/of/mine.pem"));
	assert_null(doc_get(doc_table(got, "env"), "SSL_CERT_FILE"));
	assert_true(aws_ec2_resolver.at_client);
	arena_free(a);
}

#define resolve_test(fn) cmocka_unit_test_setup_teardown(fn, resolve_setup, resolve_teardown)

/* Not the state of the group, which a test that makes its own rigs replaces. */
static void *programs;

static int make_programs(void **state)
{
	(void)state;
	return other_programs_make(&programs);
}

static int remove_programs(void **state)
{
	(void)state;
	return other_programs_remove(&programs);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		resolve_test(a_run_gets_free_ranges_in_the_zones_that_offer_its_type),
		resolve_test(a_master_of_its_own_lives_in_a_subnet_that_is_there),
		resolve_test(subnets_of_the_user_say_vpc_and_zones),
		resolve_test(a_region_without_a_default_vpc_is_named),
		resolve_test(the_bucket_of_the_results_is_looked_at_first),
		resolve_test(subnets_of_two_vpcs_do_not_fit),
		resolve_test(a_full_vpc_says_what_to_do),
		resolve_test(a_type_that_is_not_offered_is_named),
		resolve_test(a_vpc_without_subnets_has_no_place_for_a_master),
		resolve_test(credentials_that_are_missing_or_wrong_are_named),
		resolve_test(machines_of_another_architecture_need_their_program),
		cmocka_unit_test(images_are_found_by_every_form_of_name),
		resolve_test(an_image_that_does_not_fit_is_named),
		cmocka_unit_test(the_name_of_a_type_tells_its_processor),
		resolve_test(the_caller_is_seen_as_the_address_check_says),
		resolve_test(credentials_travel_with_the_variables_that_name_services),
	};

	return cmocka_run_group_tests(tests, make_programs, remove_programs);
}
