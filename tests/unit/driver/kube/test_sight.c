/* A pod without an agent: which node it carries, and how its job stands. */
#include "unit.h"

#include <string.h>

#include "base/arena.h"
#include "driver/driver.h"
#include "driver/kube/kube_sight.h"
#include "fmt/doc.h"

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

#define POD(policy, status)                                                                          \
	"{\"metadata\":{\"name\":\"p\",\"uid\":\"u\",\"labels\":{\"regatta/role\":\"w\"},"           \
	"\"annotations\":{\"kubectl.kubernetes.io/default-container\":\"main\","                     \
	"\"batch.kubernetes.io/job-completion-index\":\"3\"}},\"spec\":{\"restartPolicy\":\"" policy \
	"\",\"containers\":[{\"name\":\"side\"},{\"name\":\"main\"}]},\"status\":" status "}"
#define MAIN(state)                                                                                \
	"\"containerStatuses\":[{\"name\":\"side\",\"state\":{\"running\":{}}},"                   \
	"{\"name\":\"main\"," state "}]"

static bool look(const char *text, struct driver_sight *ret)
{
	struct doc *d = NULL;
	struct err err;

	if (json_parse(str_from(text), arena, &d, &err) < 0)
		fail_msg("%s", err.msg);
	return pod_sight(d, ret);
}

static void a_pod_is_seen_when_its_main_container_has_begun(void **state)
{
	struct driver_sight s;

	(void)state;
	assert_false(look(POD("Never", "{\"phase\":\"Pending\"}"), &s));
	assert_false(look(
		POD("Never", "{\"phase\":\"Running\"," MAIN(
				     "\"state\":{\"waiting\":{\"reason\":\"ErrImagePull\"}}") "}"),
		&s));
	assert_true(look(POD("Never", "{\"phase\":\"Running\",\"podIP\":\"10.0.0.9\"," MAIN(
					      "\"state\":{\"running\":{}}") "}"),
			 &s));
	assert_false(s.ended);
	assert_string_equal(s.role, "w");
	assert_int_equal(s.index, 3);
	assert_string_equal(s.identity, "u");
	assert_string_equal(s.address, "10.0.0.9");
	assert_string_equal(s.log, "p/main");
}

static void its_end_is_that_of_the_main_container(void **state)
{
	struct driver_sight s;

	(void)state;
	assert_true(look(POD("Never", "{\"phase\":\"Running\"," MAIN(
					      "\"state\":{\"terminated\":{\"exitCode\":7}}") "}"),
			 &s));
	assert_true(s.ended);
	assert_int_equal(s.code, 7);
	assert_true(look(POD("Never", "{\"phase\":\"Failed\"," MAIN(
					      "\"state\":{\"terminated\":{\"exitCode\":137,"
					      "\"reason\":\"OOMKilled\"}}") "}"),
			 &s));
	assert_true(s.ended && s.oom);
	assert_non_null(strstr(s.reason, "container main of pod p was killed for its memory"));
	assert_true(
		look(POD("Never", "{\"phase\":\"Failed\",\"initContainerStatuses\":[{\"name\":"
				  "\"fetch\",\"state\":{\"terminated\":{\"exitCode\":4}}}]," MAIN(
					  "\"state\":{\"waiting\":{}}") "}"),
		     &s));
	assert_true(s.ended);
	assert_int_equal(s.code, 4);
	assert_string_equal(s.reason, "init container fetch ended with 4");
	assert_string_equal(s.log, "p/fetch");
}

static void a_container_that_is_started_again_has_not_ended(void **state)
{
	struct driver_sight s;

	(void)state;
	assert_true(
		look(POD("OnFailure", "{\"phase\":\"Running\"," MAIN(
					      "\"state\":{\"terminated\":{\"exitCode\":1}}") "}"),
		     &s));
	assert_false(s.ended);
	assert_true(look(
		POD("OnFailure",
		    "{\"phase\":\"Running\"," MAIN(
			    "\"restartCount\":3,\"lastState\":{\"terminated\":{\"exitCode\":5}},"
			    "\"state\":{\"waiting\":{\"reason\":\"CrashLoopBackOff\"}}") "}"),
		&s));
	assert_true(s.ended);
	assert_int_equal(s.code, 5);
	assert_non_null(strstr(s.reason, "CrashLoopBackOff"));
	assert_true(
		look(POD("OnFailure", "{\"phase\":\"Succeeded\"," MAIN(
					      "\"state\":{\"terminated\":{\"exitCode\":0}}") "}"),
		     &s));
	assert_true(s.ended && s.code == 0);
}

static void a_pod_that_the_cluster_took_has_no_end_of_its_own(void **state)
{
	struct driver_sight s;

	(void)state;
	assert_false(
		look(POD("Never", "{\"phase\":\"Failed\",\"reason\":\"Evicted\"," MAIN(
					  "\"state\":{\"terminated\":{\"exitCode\":137}}") "}"),
		     &s));
	assert_false(
		look(POD("Never", "{\"phase\":\"Running\",\"conditions\":[{\"type\":"
				  "\"DisruptionTarget\",\"status\":\"True\"}]," MAIN(
					  "\"state\":{\"terminated\":{\"exitCode\":143}}") "}"),
		     &s));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(a_pod_is_seen_when_its_main_container_has_begun,
						setup, teardown),
		cmocka_unit_test_setup_teardown(its_end_is_that_of_the_main_container, setup,
						teardown),
		cmocka_unit_test_setup_teardown(a_container_that_is_started_again_has_not_ended,
						setup, teardown),
		cmocka_unit_test_setup_teardown(a_pod_that_the_cluster_took_has_no_end_of_its_own,
						setup, teardown),
	};

	return cmocka_run_group_tests_name("driver kube sight", tests, NULL, NULL);
}
