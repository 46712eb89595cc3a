/* Commands that end runs: kill and cleanup. */
#include "unit.h"

#include "cli/drive.h"
#include "cli/fake_master.h"

#define RUN                                                                                        \
	"{\"id\":\"job-abcd\",\"state\":\"running\",\"exit_code\":null,\"elapsed_ms\":5,"          \
	"\"counts\":{\"nodes\":1,"                                                                 \
	"\"running\":1},\"nodes\":[{\"name\":\"job-0\",\"state\":\"running\",\"log_bytes\":3}],"   \
	"\"metrics\":{}}"
#define ENDED                                                                                      \
	"{\"id\":\"job-abcd\",\"state\":\"succeeded\",\"exit_code\":0,\"nodes\":[],\"metrics\":{}" \
	"}"

static void kill_cancels_each_run_it_is_given(void **state)
{
	home_put(state, "run.json", RUN);
	struct ran r = DRIVE(state, "kill", "job");
	assert_int_equal(r.code, 0);
	assert_string_equal(r.out.p, "job-abcd is being cancelled\n");
	ran_release(&r);
	r = DRIVE(state, "kill", "nothing", "job", "", "--now");
	assert_int_equal(r.code, 3);
	assert_string_equal(r.out.p, "job-abcd is being killed\n");
	assert_has(&r.err, "no run 'nothing'");
	assert_has(&r.err, "the name of a run is empty");
	ran_release(&r);
	assert_int_equal(home_count(state, "requests.log", "/job/cancel {\"hurry\":false}"), 1);
	assert_int_equal(home_count(state, "requests.log", "/job/cancel {\"hurry\":true}"), 1);
	r = DRIVE(state, "kill", "job", "job-0", "--now");
	assert_int_equal(r.code, 2);
	assert_has(&r.err, "'job-0' is a node of job");
	ran_release(&r);
	assert_int_equal(home_count(state, "requests.log", "/job/cancel {\"hurry\":true}"), 1);
	r = DRIVE(state, "kill", "job", "job", "--output", "json");
	assert_string_equal(r.out.p, "[" RUN ",\n " RUN "]\n");
	ran_release(&r);
	home_put(state, "run.json", ENDED);
	r = DRIVE(state, "kill", "job");
	assert_int_equal(r.code, 0);
	assert_string_equal(r.out.p, "job-abcd has ended: succeeded\n");
	ran_release(&r);
}

#define HELD(engine)                                                                               \
	"{\"id\":\"job-abcd\",\"state\":\"cleaning\",\"exit_code\":null,\"engine\":\"" engine      \
	"\",\"nodes\":[],\"metrics\":{},\"waiting\":[{\"name\":\"x\",\"why\":\"expired\"}]}"

static void a_run_that_cannot_remove_something_gets_the_credentials_of_who_kills_it(void **state)
{
	home_put(state, "run.json", HELD("local"));
	struct ran r = DRIVE(state, "kill", "job");

	assert_int_equal(r.code, 0);
	assert_int_equal(r.err.n, 0);
	ran_release(&r);
	home_put(state, "run.json", HELD("aws.ec2"));
	r = DRIVE(state, "kill", "job", "--output", "json");
	assert_int_equal(r.code, 0);
	assert_has(&r.err, "tried again with your credentials");
	ran_release(&r);
	assert_int_equal(home_count(state, "requests.log",
				    "/job/cancel {\"credentials\":{\"access_key\":\"AK\"}}"),
			 1);
}

static void cleanup_ends_the_run_first(void **state)
{
	home_put(state, "run.json", ENDED);
	home_put(state, "fault-watched", "xx");
	struct ran r = DRIVE(state, "cleanup", "job");
	assert_int_equal(r.code, 0);
	assert_string_equal(r.out.p, "removed /runs/gone\n");
	assert_int_equal(r.err.n, 0);
	ran_release(&r);
	assert_int_equal(home_count(state, "requests.log", "POST /api/v1/runs/job-abcd/cleanup"),
			 3);
	assert_int_equal(home_count(state, "requests.log", "/cancel"), 0);
	home_put(state, "run.json", RUN);
	home_put(state, "watch.jsonl", RUN "\n" ENDED "\n");
	r = DRIVE(state, "cleanup", "job", "--output", "json");
	assert_int_equal(r.code, 0);
	assert_string_equal(r.out.p, "[{\"removed\":true,\"dir\":\"/runs/gone\"}]\n");
	assert_has(&r.err, "cancelling job-abcd");
	ran_release(&r);
	assert_int_equal(home_count(state, "requests.log", "/job-abcd/cancel"), 1);
	r = DRIVE(state, "cleanup", "many", "--output", "json");
	assert_int_equal(r.code, 2);
	assert_string_equal(r.out.p, "[]\n");
	assert_has(&r.err, "many-aaaa");
	ran_release(&r);
}

int main(int argc, char **argv)
{
#define T(fn) cmocka_unit_test_setup_teardown(fn, drive_setup, drive_teardown)
	const struct CMUnitTest tests[] = {
		T(kill_cancels_each_run_it_is_given),
		T(a_run_that_cannot_remove_something_gets_the_credentials_of_who_kills_it),
		T(cleanup_ends_the_run_first),
	};
	int code;

	if (fake_role(argc, argv, &code))
		return code;
	return cmocka_run_group_tests_name("end runs", tests, NULL, NULL);
}
