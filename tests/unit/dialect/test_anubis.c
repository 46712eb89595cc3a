/* A descriptor of Anubis becomes a native job. */
#include "unit.h"

#include "base/arena.h"
#include "base/err.h"
#include "dialect/dialect.h"
#include "fmt/doc.h"
#include "fmt/schema.h"

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

static struct doc *parse(const char *text)
{
	struct doc *doc;
	struct err err;

	if (toml_parse(str_from(text), arena, &doc, &err) < 0)
		fail_msg("%s", err.msg);
	return doc;
}

static const char *native(const char *text, struct problems *ps)
{
	*ps = (struct problems){0};
	return doc_json_text(arena, dialect_convert(parse(text), arena, ps));
}

static const char descriptor[] = "spec_version = '0.1.0'\n"
				 "[info]\n"
				 "task_name = 'Example MXNet!'\n"
				 "description = 'x'\n"
				 "execution_engine = 'aws.ec2'\n"
				 "labels = { team = 'ads' }\n"
				 "[aws.ec2]\n"
				 "image = 'ami-1'\n"
				 "[hardware]\n"
				 "instance_type = 't3.small'\n"
				 "strategy = 'single_node'\n"
				 "availability_zone = 'us-east-1a'\n"
				 "[env]\n"
				 "vars = { A = 'b' }\n"
				 "[ml]\n"
				 "benchmark_code = 'python3 train.py'\n"
				 "args = '--epochs 2'\n"
				 "framework = 'mxnet'\n"
				 "[ml.script]\n"
				 "script = './scripts'\n"
				 "[[data.sources]]\n"
				 "src = 'https://h/mnist.gz'\n"
				 "path = 'mnist.gz'\n"
				 "md5 = '098f6bcd4621d373cade4e832627b4f6'\n"
				 "[[output.metrics]]\n"
				 "name = 'accuracy'\n"
				 "units = 'ratio'\n"
				 "pattern = 'acc=([0-9.]+)'\n";

static void every_part_has_its_native_key(void **state)
{
	struct problems ps;
	(void)state;

	assert_string_equal(
		native(descriptor, &ps),
		"{\"name\":\"example-mxnet\",\"engine\":\"aws.ec2\","
		"\"aws\":{\"tags\":{\"team\":\"ads\"},\"zones\":\"us-east-1a\",\"ami\":\"ami-1\"},"
		"\"instance_type\":\"t3.small\",\"env\":{\"A\":\"b\"},"
		"\"command\":[\"sh\",\"-c\",\"python3 train.py --epochs 2\"],\"source\":\"./scripts\","
		"\"data\":[{\"src\":\"https://h/mnist.gz\",\"path\":\"mnist.gz\","
		"\"md5\":\"098f6bcd4621d373cade4e832627b4f6\"}],"
		"\"metrics\":{\"accuracy\":{\"pattern\":\"acc=([0-9.]+)\"}}}");
	assert_int_equal(ps.n, 0);
	assert_int_equal(ps.nwarnings, 0);
}

static void a_path_of_data_may_be_a_directory(void **state)
{
	struct problems ps;
	(void)state;

	assert_string_equal(
		native("spec_version = '1'\n[env]\ndocker_image = 'mxnet'\n"
		       "[[data.sources]]\nsrc = 's3://b/images.gz'\npath = '/data/mnist'\n"
		       "[[data.sources]]\nsrc = 'https://h/labels.gz?v=1'\npath = '/data/mnist/'\n"
		       "[[data.sources]]\nsrc = 's3://b/val.rec'\npath = '~/imn/'\n"
		       "[[data.sources]]\nsrc = 's3://b/all/'\npath = 'all/'\n"
		       "[[data.sources]]\nsrc = 's3://b/one.npz'\npath = '/x/other.npz'\n"
		       "[output]\nmetrics = ['accuracy']\n",
		       &ps),
		"{\"name\":\"benchmark\",\"image\":\"mxnet\",\"data\":["
		"{\"src\":\"s3://b/images.gz\",\"path\":\"/data/mnist/images.gz\"},"
		"{\"src\":\"https://h/labels.gz?v=1\",\"path\":\"/data/mnist/labels.gz\"},"
		"{\"src\":\"s3://b/val.rec\",\"path\":\"imn/val.rec\"},"
		"{\"src\":\"s3://b/all/\",\"path\":\"all\"},"
		"{\"src\":\"s3://b/one.npz\",\"path\":\"/x/other.npz\"}]}");
	assert_int_equal(ps.n, 0);
}

static void env_image_is_a_machine_on_ec2_and_a_container_elsewhere(void **state)
{
	struct problems ps;
	(void)state;

	assert_string_equal(
		native("[info]\nexecution_engine = 'aws.ec2'\n[env]\nimage = 'ami-2'\n", &ps),
		"{\"name\":\"benchmark\",\"engine\":\"aws.ec2\",\"aws\":{\"ami\":\"ami-2\"}}");
	assert_string_equal(native("[info]\ntask_name = 'a'\n[env]\nimage = 'mxnet'\n", &ps),
			    "{\"name\":\"a\",\"image\":\"mxnet\"}");
	assert_string_equal(native("spec_version = '1'\n[env]\ndocker_image = 'mxnet'\n", &ps),
			    "{\"name\":\"benchmark\",\"image\":\"mxnet\"}");
}

static void places_are_those_of_the_users_file(void **state)
{
	struct problems ps = {0};
	const struct doc *job = dialect_convert(parse(descriptor), arena, &ps);
	(void)state;

	assert_int_equal(doc_get(job, "engine")->pos.line, 5);
	assert_int_equal(doc_get(job, "instance_type")->pos.line, 10);
	assert_int_equal(doc_get(job, "command")->pos.line, 16);
	assert_int_equal(doc_get(doc_table(job, "aws"), "ami")->pos.line, 8);
	assert_int_equal(doc_array(job, "data")->array.v[0]->pos.line, 21);
}

static void refused(const char *text, int line, const char *message)
{
	struct problems ps;

	(void)native(text, &ps);
	assert_int_equal(ps.n, 1);
	assert_string_equal(ps.v[0].text, message);
	assert_int_equal(ps.v[0].pos.line, line);
}

static void what_cannot_be_done_is_said_with_its_line(void **state)
{
	(void)state;
	refused("[info]\nscheduling = '*/5 * * * *'\n[ml]\n", 2,
		"info.scheduling: only single_run; start `regatta run` from cron for the others");
	refused("[info]\n[hardware]\nstrategy = 'mxnet_parameter_server'\n", 3,
		"hardware.strategy: write single_node, horovod or inference");
	refused("[info]\n[hardware]\naws_zone_id = 'use1-az1'\n", 3,
		"hardware.aws_zone_id: write availability_zone");
	refused("[info]\n[env]\n[server]\nmodels = []\n", 3,
		"server: it is for hardware.strategy = \"inference\"");
}

static void horovod_has_its_instances_and_processes(void **state)
{
	struct problems ps;
	(void)state;

	assert_string_equal(native("[info]\n[hardware]\nstrategy = 'horovod'\n", &ps),
			    "{\"name\":\"benchmark\",\"strategy\":\"horovod\",\"count\":2}");
	assert_string_equal(
		native("[info]\n[hardware]\nstrategy = 'horovod'\n[hardware.distributed]\n"
		       "num_instances = 3\nprocesses_per_instance = '4'\n",
		       &ps),
		"{\"name\":\"benchmark\",\"strategy\":\"horovod\",\"count\":3,\"processes_per_node\":4}");
	assert_string_equal(
		native("[info]\n[hardware]\nstrategy = 'horovod'\n[hardware.distributed]\n"
		       "processes_per_instance = 'gpus'\n",
		       &ps),
		"{\"name\":\"benchmark\",\"strategy\":\"horovod\",\"count\":2,\"processes_per_node\":\"gpus\"}");
	assert_int_equal(ps.n, 0);
}

static void inference_has_a_server_and_a_client(void **state)
{
	struct problems ps;
	(void)state;

	assert_string_equal(
		native("[info]\n[hardware]\nstrategy = 'inference'\n[ml]\nbenchmark_code = 'measure'\n"
		       "[[data.sources]]\nsrc = 'd'\npath = 'd'\n"
		       "[server.hardware]\ninstance_type = 'p3.2xlarge'\n"
		       "[server.env]\ndocker_image = 'mxnet/model_server'\nports = [8080, 8081]\n"
		       "start_command = 'serve'\nstart_command_args = '--model m'\nvars = { A = 'b' }\n"
		       "[server.env.readiness_probe]\nport = 8081\npath = '/ping'\n"
		       "[[server.models]]\nsrc = 'm'\npath = 'm'\n",
		       &ps),
		"{\"name\":\"benchmark\",\"strategy\":\"inference\",\"command\":[\"sh\",\"-c\",\"measure\"],"
		"\"data\":[{\"src\":\"d\",\"path\":\"d\"},{\"src\":\"m\",\"path\":\"m\"}],"
		"\"roles\":{\"server\":{\"instance_type\":\"p3.2xlarge\",\"image\":\"mxnet/model_server\","
		"\"env\":{\"A\":\"b\"},\"command\":[\"sh\",\"-c\",\"serve --model m\"],\"port\":8081},"
		"\"client\":{\"env\":{\"INFERENCE_SERVER_PORT_1\":8080,\"INFERENCE_SERVER_PORT_2\":8081}}}}");
	assert_int_equal(ps.n, 0);
	assert_int_equal(ps.nwarnings, 1);
	native("[info]\n[hardware]\nstrategy = 'inference'\n[server.env]\nports = [80]\n"
	       "[[server.models]]\nsrc = 'm'\n",
	       &ps);
	assert_int_equal(ps.n, 0);
}

static void what_changes_nothing_is_a_warning(void **state)
{
	struct problems ps;
	(void)state;

	(void)native("[info]\nmood = 'good'\n[env]\n[custom_params]\nx = 1\n", &ps);
	assert_int_equal(ps.n, 0);
	assert_int_equal(ps.nwarnings, 2);
	assert_string_equal(ps.warnings[0].text, "info.mood has no meaning here: it is ignored");
	assert_string_equal(ps.warnings[1].text,
			    "custom_params has no meaning here: it is ignored");
}

static void a_native_file_stays_as_it_is(void **state)
{
	static const char *const files[] = {"command = 'x'\n", "command = 'x'\n[env]\nA = 'b'\n",
					    "[roles.a]\ncommand = 'x'\n[env]\ninfo = 'x'\n", ""};
	struct problems ps = {0};
	(void)state;

	for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++) {
		struct doc *doc = parse(files[i]);

		assert_null(dialect_of(doc));
		assert_ptr_equal(dialect_convert(doc, arena, &ps), doc);
	}
}

#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(every_part_has_its_native_key),
		T(a_path_of_data_may_be_a_directory),
		T(env_image_is_a_machine_on_ec2_and_a_container_elsewhere),
		T(places_are_those_of_the_users_file),
		T(what_cannot_be_done_is_said_with_its_line),
		T(what_changes_nothing_is_a_warning),
		T(horovod_has_its_instances_and_processes),
		T(inference_has_a_server_and_a_client),
		T(a_native_file_stays_as_it_is),
	};

	return cmocka_run_group_tests_name("anubis", tests, NULL, NULL);
}
