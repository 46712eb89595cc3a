/* Commands that are about an engine and not about a run. */
#include "unit.h"

#include "cli/drive.h"

static void a_policy_is_printed_as_it_is(void **state)
{
	struct ran r = DRIVE(state, "iam-policy", "--engine", "cloudy");

	assert_int_equal(r.code, 0);
	assert_string_equal(r.out.p, "{\"bucket\":\"any\"}\n");
	ran_release(&r);
	r = DRIVE(state, "iam-policy", "--bucket", "ours", "--output", "json");
	assert_string_equal(r.out.p, "{\"bucket\":\"ours\"}\n");
	ran_release(&r);
}

static void an_engine_without_a_policy_is_refused(void **state)
{
	REFUSED(state, 2, "regatta: iam-policy: engine 'plain' does not do that: cloudy does\n",
		"iam-policy", "--engine", "plain");
	REFUSED(state, 2, "regatta: iam-policy: there is no engine 'clowdy': it can be cloudy\n",
		"iam-policy", "--engine", "clowdy");
}

static void a_home_without_runs_lists_what_there_is(void **state)
{
	struct ran r = DRIVE(state, "gc");

	assert_int_equal(r.code, 1);
	assert_has(&r.out, "aaaa");
	assert_has(&r.out, "bbbb");
	assert_has(&r.err, "so nothing was touched: 'regatta gc --install ID' removes all");
	ran_release(&r);
}

static void the_exit_code_says_whether_something_is_left(void **state)
{
	struct ran r = DRIVE(state, "gc", "--install", "aaaa");

	assert_int_equal(r.code, 0);
	assert_has(&r.out, "removed");
	assert_has_not(&r.out, "bbbb");
	assert_has(&r.err, "nothing of install aaaa is left");
	assert_has(&r.err, "1 of other installs were not touched");
	ran_release(&r);
	r = DRIVE(state, "gc", "--install", "bbbb");
	assert_int_equal(r.code, 1);
	assert_has(&r.out, "it is bolted down");
	assert_has(&r.err, "1 could not be removed");
	ran_release(&r);
	r = DRIVE(state, "gc", "--install", "aaaa", "--dry-run");
	assert_int_equal(r.code, 1);
	assert_has(&r.err, "1 would be removed");
	ran_release(&r);
}

static void options_of_clusters_are_refused_by_other_engines(void **state)
{
	struct ran r = DRIVE(state, "doctor", "--engine", "clustered", "--kube-context", "lab",
			     "--namespace", "team");

	assert_int_equal(r.code, 0);
	assert_has(&r.out, "lab/team");
	ran_release(&r);
	REFUSED(state, 2, "regatta: doctor: --kube-context goes with --engine clustered\n",
		"doctor", "--kube-context", "lab");
	REFUSED(state, 2, "regatta: gc: --namespace goes with --engine clustered\n", "gc",
		"--install", "aaaa", "--namespace", "team");
}

static void json_has_every_resource_and_the_sums(void **state)
{
	struct ran r = DRIVE(state, "gc", "--install", "bbbb", "--output", "json");

	assert_int_equal(r.code, 1);
	assert_has(&r.out,
		   "{\"kind\":\"fake.machine\",\"id\":\"m-1\",\"region\":\"here\",\"install\":"
		   "\"bbbb\",\"run\":\"r1\",\"expires\":\"1970-01-01T00:00:01.000Z\",\"state\":"
		   "\"left\",\"why\":\"it is bolted down\"}");
	assert_has(&r.out, "\"left\":1,\"removed\":0}\n");
	ran_release(&r);
}

static void a_look_that_fails_is_not_an_empty_list(void **state)
{
	struct ran r = DRIVE(state, "gc", "--install", "aaaa", "--region", "nowhere");

	assert_int_equal(r.code, 4);
	assert_has(&r.err, "regatta: nobody may look there\n");
	ran_release(&r);
	REFUSED(state, 2, "exclude each other", "gc", "--region", "r", "--all-regions");
	REFUSED(state, 2, "--namespace and --all-regions exclude each other", "gc", "--engine",
		"clustered", "--namespace", "n", "--all-regions");
	REFUSED(state, 2, "give one", "gc", "--engine", "clustered", "--namespace", "n", "--region",
		"n");
	REFUSED(state, 4, "nobody may look there", "gc", "--engine", "clustered", "--namespace",
		"nowhere");
}

static void a_checkup_ends_with_0_if_a_run_could_start(void **state)
{
	struct ran r = DRIVE(state, "doctor");

	assert_int_equal(r.code, 0);
	assert_has(&r.out, "disk   fine     large");
	assert_has(&r.out, "quota  warning  nobody says  nothing");
	ran_release(&r);
	r = DRIVE(state, "doctor", "--engine", "cloudy");
	assert_int_equal(r.code, 1);
	assert_has(&r.out, "keys   bad      there are none  set some");
	ran_release(&r);
	r = DRIVE(state, "doctor", "--engine", "cloudy", "--output", "json");
	assert_int_equal(r.code, 1);
	assert_has(&r.out,
		   "{\"engine\":\"cloudy\",\"ok\":false,\"checks\":[{\"name\":\"disk\",\"state\":"
		   "\"fine\",\"what\":\"large\",\"todo\":null}");
	ran_release(&r);
	REFUSED(state, 2, "there is no engine 'x'", "doctor", "--engine", "x");
}

int main(void)
{
#define T(fn) cmocka_unit_test_setup_teardown(fn, drive_setup, drive_teardown)
	const struct CMUnitTest tests[] = {
		T(a_policy_is_printed_as_it_is),
		T(an_engine_without_a_policy_is_refused),
		T(a_home_without_runs_lists_what_there_is),
		T(the_exit_code_says_whether_something_is_left),
		T(json_has_every_resource_and_the_sums),
		T(options_of_clusters_are_refused_by_other_engines),
		T(a_look_that_fails_is_not_an_empty_list),
		T(a_checkup_ends_with_0_if_a_run_could_start),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
