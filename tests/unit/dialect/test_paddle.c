/* The flags of Paddle's AWS benchmark tool become a native job. */
#include "unit.h"

#include "base/arena.h"
#include "dialect/paddle.h"
#include "fmt/doc.h"
#include "fmt/schema.h"

static struct arena *arena;
static struct problems problems;

static int setup(void **state)
{
	(void)state;
	arena = arena_new();
	problems = (struct problems){0};
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	arena = arena_free(arena);
	return 0;
}

/* "name=value" words; NULL ends them. */
static struct doc *job(const char *const *words)
{
	struct doc *flags = doc_new(arena, DOC_TABLE);

	for (; *words; words++) {
		struct str value = str_from(*words), name = str_cut(&value, '=');

		doc_set(arena, flags, arena_str(arena, name), doc_new_str(arena, value));
	}
	return paddle_job(flags, arena, &problems);
}
#define JOB(...) job((const char *const[]){__VA_ARGS__, NULL})

static const char *json(const struct doc *d)
{
	return doc_json_text(arena, d);
}

static const struct doc *role(const struct doc *j, const char *name)
{
	return doc_table(doc_table(j, "roles"), name);
}

static const char *command(const struct doc *j, const char *name)
{
	return json(doc_get(role(j, name), "command"));
}

/* The example of the tool's document, with images as it means them. */
static void test_document(void **state)
{
	struct doc *j = JOB("action=create", "key_name=k", "security_group_id=sg-1",
			    "pserver_image_id=me/bench", "trainer_image_id=me/bench:gpu",
			    "pserver_count=2", "trainer_count=3");

	(void)state;
	assert_int_equal(problems.n, 0);
	assert_string_equal(
		json(j),
		"{\"name\":\"paddle\",\"engine\":\"aws.ec2\",\"strategy\":\"pserver\","
		"\"timeouts\":{\"gather\":\"30m\"},\"roles\":{"
		"\"pserver\":{\"count\":2,\"instance_type\":\"c5.2xlarge\",\"image\":\"me/bench\","
		"\"command\":[\"--device\",\"CPU\"]},"
		"\"trainer\":{\"count\":3,\"instance_type\":\"p2.8xlarge\",\"image\":\"me/bench:gpu\","
		"\"command\":[\"--device\",\"GPU\"]}},"
		"\"aws\":{\"security_groups\":[\"sg-1\"],\"key_name\":\"k\",\"task_name\":\"paddle\"}}");
}

/* As the tool's code means them: machine images, and the training image apart. */
static void test_machine_images(void **state)
{
	struct doc *j = JOB("docker_image=me/bench", "pserver_image_id=ami-1",
			    "trainer_instance_type=g4dn.xlarge");

	(void)state;
	assert_int_equal(problems.n, 0);
	assert_string_equal(doc_str(role(j, "pserver"), "ami", STR("")).p, "ami-1");
	assert_string_equal(doc_str(role(j, "pserver"), "image", STR("")).p, "me/bench");
	assert_null(doc_get(role(j, "trainer"), "ami"));
	assert_string_equal(doc_str(role(j, "trainer"), "instance_type", STR("")).p, "g4dn.xlarge");
}

static void test_commands(void **state)
{
	struct doc *j = JOB("docker_image=i", "pserver_command=python,vgg.py,batch_size:128",
			    "trainer_command=a:1,python,url:http://x:80,,device:CPU,t.py");

	(void)state;
	assert_string_equal(
		command(j, "pserver"),
		"[\"python\",\"vgg.py\",\"--batch_size\",\"128\",\"--device\",\"CPU\"]");
	assert_string_equal(command(j, "trainer"),
			    "[\"python\",\"t.py\",\"--a\",\"1\",\"--url\",\"http://x:80\","
			    "\"--device\",\"CPU\"]");
}

static void test_places(void **state)
{
	struct doc *j = JOB("docker_image=i", "availability_zone=us-east-2a", "vpc_id=vpc-1",
			    "subnet_id=subnet-1", "master_server_port=8000", "pserver_port=7000",
			    "task_name=VGG 8", "metric_data_identifier=METRIC ");

	(void)state;
	assert_int_equal(problems.n, 0);
	assert_string_equal(
		json(doc_table(j, "aws")),
		"{\"region\":\"us-east-2\",\"vpc\":\"vpc-1\",\"subnets\":[\"subnet-1\"],"
		"\"zones\":[\"us-east-2a\"],\"master_port\":8000,\"task_name\":\"VGG 8\"}");
	assert_string_equal(doc_str(j, "name", STR("")).p, "vgg-8");
	assert_string_equal(json(doc_table(j, "env")), "{\"TASK_NAME\":\"VGG 8\"}");
	assert_string_equal(doc_str(j, "metric_prefix", STR("")).p, "METRIC ");
	assert_int_equal(doc_int(role(j, "pserver"), "port", 0), 7000);
	assert_null(doc_get(role(j, "trainer"), "port"));
}

static void assert_problem(size_t i, const char *text)
{
	assert_true(i < problems.n);
	assert_string_equal(problems.v[i].text, text);
}

static void test_bad(void **state)
{
	(void)state;
	JOB("pserver_image_id=ami-1", "trainer_image_id=me/bench", "trainer_count=two",
	    "pserver_count=0", "pserver_port=65536");
	assert_int_equal(problems.n, 4);
	assert_problem(0, "--pserver_count: must be a whole number from 1 to 10000");
	assert_problem(1, "--pserver_port: must be a whole number from 1 to 65535");
	assert_problem(2, "--pserver_image_id: no training image: give it as --docker_image (or "
			  "here, if it is no ami-...)");
	assert_problem(3, "--trainer_count: must be a whole number from 1 to 10000");
}

static void test_without_effect(void **state)
{
	static const char *const flags[] = {"pem_path=x", "master_docker_image=x",
					    "no_clean_up=True"};

	(void)state;
	for (size_t i = 0; i < 3; i++) {
		problems = (struct problems){0};
		JOB("docker_image=i", flags[i]);
		assert_int_equal(problems.n, 0);
		assert_int_equal(problems.nwarnings, 1);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_document, setup, teardown),
		cmocka_unit_test_setup_teardown(test_machine_images, setup, teardown),
		cmocka_unit_test_setup_teardown(test_commands, setup, teardown),
		cmocka_unit_test_setup_teardown(test_places, setup, teardown),
		cmocka_unit_test_setup_teardown(test_bad, setup, teardown),
		cmocka_unit_test_setup_teardown(test_without_effect, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
