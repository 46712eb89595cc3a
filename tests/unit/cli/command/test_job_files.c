/* Commands about job files: init, plan, explain. */
#include "unit.h"

#include <unistd.h>

#include "cli/drive.h"
#include "cli/fake_master.h"

static void init_writes_a_job_file_that_plan_accepts(void **state)
{
	const char *file = unit_path(state, "job.toml");
	struct ran r = DRIVE(state, "init", "-o", file);
	assert_int_equal(r.code, 0);
	assert_has(&r.err, "wrote ");
	ran_release(&r);
	r = DRIVE(state, "plan", file);
	if (r.code != 0)
		fail_msg("%s", r.err.p);
	assert_true(r.out.n > 0);
	ran_release(&r);
	/* Never overwritten. */
	REFUSED(state, 2, "exists and is not overwritten", "init", "pserver", "-o", file);
	r = DRIVE(state, "init", "pserver", "-o", unit_path(state, "ps.toml"), "--output", "json");
	assert_has(&r.out, "\"strategy\":\"pserver\"}\n");
	ran_release(&r);
	r = DRIVE(state, "init", "pserver", "-o", "-");
	assert_has(&r.out, "pserver");
	ran_release(&r);
	r = DRIVE(state, "init", "pserver", "-o", "-", "--output", "json");
	assert_has(&r.out, "{\"job\":\"");
	ran_release(&r);
	REFUSED(state, 2, "no strategy 'psever': did you mean 'pserver'?", "init", "psever");
	REFUSED(state, 2, "no strategy 'qqqqqqq': choose from single", "init", "qqqqqqq");
	REFUSED(state, 3, "create '", "init", "-o", unit_path(state, "no/such/dir/job.toml"));
}

static void plan_reads_files_and_command_lines(void **state)
{
	struct ran r =
		DRIVE(state, "plan", "-n", "3", "--name", "demo", "--", "python3", "train.py");
	assert_int_equal(r.code, 0);
	assert_has(&r.out, "demo-xxxx");
	ran_release(&r);
	r = DRIVE(state, "plan", "--output", "json", "--", "true");
	assert_int_equal(r.code, 0);
	assert_int_equal(r.out.p[0], '{');
	assert_int_equal(r.out.p[r.out.n - 1], '\n');
	ran_release(&r);
	home_put(state, "train.py", "");
	home_put(state, "far.toml", "engine = \"hosts\"\ncommand = [\"python3\", \"train.py\"]\n");
	REFUSED(state, 2, "the nodes do not have 'train.py', which is beside the job file", "plan",
		unit_path(state, "far.toml"));
	r = DRIVE(state, "plan", unit_path(state, "far.toml"), "--set", "source=.");
	assert_int_equal(r.code, 0);
	ran_release(&r);
	home_put(state, "bad.toml", "comand = [\"true\"]\ncount = 0\n");
	const char *bad = unit_path(state, "bad.toml");
	r = DRIVE(state, "plan", bad);
	assert_int_equal(r.code, 2);
	assert_has(&r.err, "bad.toml:1:");
	assert_has(&r.err, "did you mean 'command'?");
	assert_has(&r.err, "bad.toml:2:");
	ran_release(&r);
	home_put(state, "engine.toml", "engine = \"moon\"\ncommand = [\"true\"]\n");
	REFUSED(state, 2, "engine.toml:1:", "plan", unit_path(state, "engine.toml"));
	REFUSED(state, 3, "does not exist", "plan", unit_path(state, "none.toml"));
	REFUSED(state, 2, "give one of them", "plan", "x.toml", "--", "true");
	REFUSED(state, 2, "the command after '--' is missing", "plan", "--");
	assert_int_equal(chdir(*state), 0);
	REFUSED(state, 2, "no job: give a FILE", "plan");
	home_put(state, "job.toml", "command = [\"true\"]\n");
	r = DRIVE(state, "plan", "--name", "a-b", "-n", "2");
	if (r.code != 0)
		fail_msg("%s", r.err.p);
	assert_has(&r.out, "a-b-xxxx");
	ran_release(&r);
	/* A name is a text, whatever it looks like. */
	r = DRIVE(state, "plan", "--name", "true");
	if (r.code != 0)
		fail_msg("%s", r.err.p);
	assert_has(&r.out, "true-xxxx");
	ran_release(&r);
	assert_int_equal(chdir("/"), 0);
}

static void explain_prints_keys_and_refuses_unknown_ones(void **state)
{
	struct ran r = DRIVE(state, "explain");
	assert_int_equal(r.code, 0);
	assert_has(&r.out, "command");
	ran_release(&r);
	r = DRIVE(state, "explain", "--output", "json");
	assert_int_equal(r.out.p[0], '[');
	assert_has(&r.out, "\"key\":\"command\"");
	ran_release(&r);
	r = DRIVE(state, "explain", "roles.trainer.count", "--output", "json");
	assert_has(&r.out, "{\"key\":\"count\",\"type\":\"integer\"");
	ran_release(&r);
	r = DRIVE(state, "explain", "roles", "--output", "json");
	assert_has(&r.out, "\"keys\":[");
	ran_release(&r);
	r = DRIVE(state, "explain", "roles.trainer", "--output", "json");
	assert_int_equal(r.code, 0);
	assert_int_equal(r.out.p[0], '{');
	ran_release(&r);
	r = DRIVE(state, "explain", "comand");
	assert_int_equal(r.code, 3);
	assert_has(&r.err, "command");
	ran_release(&r);
}

/* Rule: what the plan finds wrong with a setting is said of the setting, not of the line that it replaces. */
static void problems_of_settings_name_the_setting(void **state)
{
	home_put(state, "job.toml",
		 "command = 'x'\nengine = 'aws.ec2'\ninstance_type = 'c5.large'\nmax_cost = 1.0\n");
	REFUSED(state, 2, "--set instance_type: instance_type: 'foo' is none of the types", "plan",
		"--set", "instance_type=foo", unit_path(state, "job.toml"));
	home_put(state, "other.toml",
		 "command = 'x'\nengine = 'local'\ninstance_type = 'c5.small'\n");
	REFUSED(state, 2, "other.toml:3:17: instance_type: 'c5.small' is none", "plan", "--set",
		"engine=aws.ec2", unit_path(state, "other.toml"));
	struct ran r = DRIVE(state, "plan", "--set", "engine=local", "--set", "max_cost=2.5",
			     unit_path(state, "job.toml"));
	assert_int_equal(r.code, 0);
	assert_has(&r.err, "--set max_cost: warning: max_cost stops nothing here");
	ran_release(&r);
}

static void plan_tells_what_nodes_fetch(void **state)
{
	static const char job[] = "command = 'x'\nengine = 'aws.ec2'\ncount = 3\n"
				  "[[data]]\nsrc = 's3://big/d/'\nshard = true\n"
				  "[[data]]\nsrc = 's3://none/e'\n";

	home_put(state, "job.toml", job);
	struct ran r = DRIVE(state, "plan", unit_path(state, "job.toml"));
	assert_int_equal(r.code, 0);
	assert_has(&r.out, "inputs that nodes fetch\n");
	assert_has(&r.out, "s3://big/d/: 3 objects, 30 bytes, at most 10 per node\n");
	assert_has(&r.out, "s3://none/e: not known: there is no such object\n");
	ran_release(&r);
	r = DRIVE(state, "plan", "--output", "json", unit_path(state, "job.toml"));
	assert_has(&r.out, "\"bytes\":30,\"bytes_per_node\":10}");
	ran_release(&r);
}

/* Rule: volumes are as large as the source and data that were found need. */
static void plan_sizes_volumes_by_source_and_data(void **state)
{
	home_put(state, "job.toml",
		 "command = 'x'\nengine = 'aws.ec2'\nmaster = 'here'\ninstance_type = 'c5.large'\n"
		 "data = [{ src = 'large.bin', path = 'd' }]\n");
	home_put(state, "large.bin", "x");
	assert_int_equal(truncate(unit_path(state, "large.bin"), 10000000000), 0);
	struct ran r = DRIVE(state, "plan", unit_path(state, "job.toml"));
	assert_int_equal(r.code, 0);
	assert_has(&r.out, "volumes\n  worker        1 x 20 GB gp3, more if the image is larger\n");
	ran_release(&r);
}

static void plan_takes_prices_from_a_file(void **state)
{
	const char *job =
		"command = 'x'\nengine = 'aws.ec2'\nmaster = 'here'\ninstance_type = 'c5.large'\n";

	home_put(state, "job.toml", job);
	home_put(state, "own.csv", "type,vcpus,usd_per_hour\nc5.large,2,1.5\nc5.xlarge,4,\n");
	struct ran r = DRIVE(state, "plan", "--prices", unit_path(state, "own.csv"),
			     unit_path(state, "job.toml"));
	assert_int_equal(r.code, 0);
	assert_has(&r.out, "prices of own.csv");
	assert_has(&r.out, "1 x c5.large at 1.5");
	ran_release(&r);
	home_put(state, "bad.csv", "type,usd_per_hour\nc5.large,cheap\n");
	REFUSED(state, 2, "bad.csv:2: 'cheap' is no price", "plan", "--prices",
		unit_path(state, "bad.csv"), unit_path(state, "job.toml"));
	home_put(state, "head.csv", "name,price\n");
	REFUSED(state, 2, "head.csv:1: the first line must name the columns", "plan", "--prices",
		unit_path(state, "head.csv"), unit_path(state, "job.toml"));
	REFUSED(state, 3, "none.csv", "plan", "--prices", unit_path(state, "none.csv"),
		unit_path(state, "job.toml"));
	REFUSED(state, 2, "--prices: engine local costs nothing", "plan", "--prices",
		unit_path(state, "own.csv"), "--", "true");
}

int main(int argc, char **argv)
{
#define T(fn) cmocka_unit_test_setup_teardown(fn, drive_setup, drive_teardown)
	const struct CMUnitTest tests[] = {
		T(init_writes_a_job_file_that_plan_accepts),
		T(plan_reads_files_and_command_lines),
		T(problems_of_settings_name_the_setting),
		T(plan_tells_what_nodes_fetch),
		T(plan_sizes_volumes_by_source_and_data),
		T(plan_takes_prices_from_a_file),
		T(explain_prints_keys_and_refuses_unknown_ones),
	};
	int code;

	if (fake_role(argc, argv, &code))
		return code;
	return cmocka_run_group_tests_name("job files", tests, NULL, NULL);
}
