/* What the cluster shows of a pod, in words; and the names of objects. */
#include "unit.h"

#include <string.h>

#include "base/arena.h"
#include "driver/kube/kube_pods.h"
#include "driver/kube/object.h"
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

static struct doc *parse(const char *text)
{
	struct doc *d = NULL;
	struct err err;

	if (json_parse(str_from(text), arena, &d, &err) < 0)
		fail_msg("%s", err.msg);
	return d;
}

static void expect(const char *status, enum pod_life life, enum err_kind kind, const char *words)
{
	struct pod_state s;

	pod_judge(parse(arena_printf(arena, "{\"metadata\":{\"name\":\"p-0\"},\"status\":%s}",
				     status)),
		  &s);
	assert_int_equal(s.life, life);
	assert_int_equal(s.why.kind, kind);
	if (!strstr(s.why.msg, words))
		fail_msg("'%s' is not in '%s'", words, s.why.msg);
}

static void a_pod_that_runs_or_starts_has_no_words(void **state)
{
	(void)state;
	expect("{\"phase\":\"Running\"}", POD_RUNNING, ERR_NONE, "");
	expect("{}", POD_WAITING, ERR_NONE, "");
	expect("{\"phase\":\"Pending\",\"conditions\":[{\"type\":\"PodScheduled\",\"status\":\"True\"}],"
	       "\"containerStatuses\":[{\"state\":{\"waiting\":{\"reason\":\"ContainerCreating\"}}}]}",
	       POD_WAITING, ERR_NONE, "");
	expect("{\"phase\":\"Succeeded\",\"containerStatuses\":[{\"state\":{\"terminated\":"
	       "{\"exitCode\":0}}}]}",
	       POD_ENDED, ERR_NONE, "");
}

static void the_scheduler_says_what_is_missing(void **state)
{
	(void)state;
	expect("{\"phase\":\"Pending\",\"conditions\":[{\"type\":\"PodScheduled\",\"status\":\"False\","
	       "\"reason\":\"Unschedulable\",\"message\":\"0/3 nodes: 3 Insufficient nvidia.com/gpu\"}]}",
	       POD_WAITING, ERR_CAPACITY,
	       "Unschedulable: 0/3 nodes: 3 Insufficient nvidia.com/gpu");
	expect("{\"phase\":\"Pending\",\"conditions\":[{\"type\":\"PodScheduled\",\"status\":\"False\","
	       "\"reason\":\"Unschedulable\",\"message\":\"persistentvolumeclaim \\\"x\\\" not found\"}]}",
	       POD_STUCK, ERR_INVALID, "persistentvolumeclaim \"x\" not found");
}

static void a_container_that_cannot_start_is_stuck(void **state)
{
	(void)state;
	expect("{\"phase\":\"Pending\",\"containerStatuses\":[{\"state\":{\"waiting\":{\"reason\":"
	       "\"ImagePullBackOff\",\"message\":\"Back-off pulling x\"}}}]}",
	       POD_STUCK, ERR_INVALID,
	       "p-0: its image cannot be pulled: ImagePullBackOff: Back-off pulling x");
	expect("{\"phase\":\"Pending\",\"containerStatuses\":[{\"image\":\"docker.io/team/x:1\",\"state\":{"
	       "\"waiting\":{\"reason\":\"ErrImagePull\",\"message\":\"failed to pull and unpack image "
	       "'docker.io/team/x:1': failed to resolve reference 'docker.io/team/x:1': failed to do "
	       "request: Head 'https://registry-1.docker.io/v2/team/x/manifests/1': dial tcp: lookup "
	       "registry-1.docker.io on 10.0.0.1:53: no such host\"}}}]}",
	       POD_STUCK, ERR_INVALID,
	       "p-0: its image cannot be pulled: ErrImagePull: docker.io/team/x:1: Head "
	       "'https://registry-1.docker.io/v2/team/x/manifests/1': dial tcp: lookup "
	       "registry-1.docker.io on 10.0.0.1:53: no such host");
	expect("{\"phase\":\"Pending\",\"initContainerStatuses\":[{\"state\":{\"waiting\":{\"reason\":"
	       "\"InvalidImageName\"}}}]}",
	       POD_STUCK, ERR_INVALID, "no valid name");
}

#define NO_SHELL "exec: \\\"/bin/sh\\\": stat /bin/sh: no such file or directory"

static struct pod_state judge_begun_by(const char *command, const char *status)
{
	struct pod_state s;

	pod_judge(parse(arena_printf(arena,
				     "{\"metadata\":{\"name\":\"p-0\"},\"spec\":{\"containers\":["
				     "{\"image\":\"bare:1\",\"command\":%s}]},\"status\":%s}",
				     command, status)),
		  &s);
	return s;
}

static void an_image_without_a_shell_says_what_to_set(void **state)
{
	static const char *const shown[] = {
		"{\"phase\":\"Failed\",\"containerStatuses\":[{\"state\":{\"terminated\":"
		"{\"exitCode\":128,\"reason\":\"StartError\",\"message\":\"" NO_SHELL "\"}}}]}",
		/* of a pod that is started again */
		"{\"phase\":\"Running\",\"containerStatuses\":[{\"state\":{\"waiting\":{\"reason\":"
		"\"CrashLoopBackOff\",\"message\":\"back-off\"}},\"lastState\":{\"terminated\":{"
		"\"exitCode\":128,\"reason\":\"StartError\",\"message\":\"" NO_SHELL "\"}}}]}",
		"{\"phase\":\"Pending\",\"containerStatuses\":[{\"state\":{\"waiting\":{\"reason\":"
		"\"RunContainerError\",\"message\":\"" NO_SHELL "\"}}}]}",
	};

	(void)state;
	for (size_t i = 0; i < sizeof(shown) / sizeof(shown[0]); i++) {
		struct pod_state s =
			judge_begun_by("[\"/bin/sh\",\"/var/run/regatta/start\"]", shown[i]);

		assert_int_equal(s.life, POD_STUCK);
		assert_int_equal(s.why.kind, ERR_INVALID);
		assert_non_null(strstr(s.why.msg, "image bare:1 has no /bin/sh"));
		assert_non_null(strstr(s.why.msg, "set agent_image in [kubernetes]"));
		s = judge_begun_by("[\"/bin/sh\",\"mine\"]", shown[i]); /* a command of the job */
		assert_null(strstr(s.why.msg, "agent_image"));
	}
}

static void how_a_pod_ended_is_said(void **state)
{
	(void)state;
	expect("{\"phase\":\"Failed\",\"containerStatuses\":[{\"name\":\"main\",\"state\":{\"terminated\":"
	       "{\"exitCode\":137,\"reason\":\"OOMKilled\"}}}]}",
	       POD_ENDED, ERR_UNAVAILABLE, "container main was killed for its memory (OOMKilled)");
	/* of a child of a shell that ends well */
	expect("{\"phase\":\"Failed\",\"containerStatuses\":[{\"name\":\"main\",\"state\":{\"terminated\":"
	       "{\"exitCode\":0,\"reason\":\"OOMKilled\"}}}]}",
	       POD_ENDED, ERR_UNAVAILABLE, "container main was killed for its memory (OOMKilled)");
	expect("{\"phase\":\"Failed\",\"initContainerStatuses\":[{\"name\":\"i\",\"state\":{\"terminated\":"
	       "{\"exitCode\":2,\"message\":\"no such file\\n\"}}}]}",
	       POD_ENDED, ERR_UNAVAILABLE, "container i ended with 2: no such file");
	expect("{\"phase\":\"Failed\",\"reason\":\"Evicted\",\"message\":\"low on memory\"}",
	       POD_ENDED, ERR_UNAVAILABLE, "Evicted: low on memory");
	expect("{\"phase\":\"Failed\",\"conditions\":[{\"type\":\"DisruptionTarget\",\"reason\":"
	       "\"PreemptionByScheduler\",\"message\":\"for a higher class\"}]}",
	       POD_ENDED, ERR_PREEMPTED, "PreemptionByScheduler: for a higher class");
	expect("{\"phase\":\"Failed\",\"conditions\":[{\"type\":\"DisruptionTarget\",\"reason\":"
	       "\"DeletionByTaintManager\",\"message\":\"its node is gone\"}]}",
	       POD_ENDED, ERR_UNAVAILABLE, "its node is gone");
}

static bool unheard(const char *status, struct err *why)
{
	return pod_is_unheard(parse(arena_printf(arena,
						 "{\"metadata\":{\"name\":\"p-0\"},"
						 "\"spec\":{\"nodeName\":\"node3\"},"
						 "\"status\":%s}",
						 status)),
			      why);
}

#define CONDITIONS(phase, ready, containers)                                                       \
	"{\"phase\":\"" phase "\",\"conditions\":[{\"type\":\"Ready\"," ready "},"                 \
	"{\"type\":\"ContainersReady\"," containers "}]}"

/* As the API server shows a pod whose node was killed, and others that are not ready. */
static void a_pod_whose_node_is_silent_is_told_from_one_that_is_not_ready(void **state)
{
	struct err why = {0};

	(void)state;
	assert_true(unheard(CONDITIONS("Running", "\"status\":\"False\"", "\"status\":\"True\""),
			    &why));
	assert_int_equal(why.kind, ERR_TIMEOUT);
	assert_string_equal(why.msg, "pod p-0: its node node3 does not answer (NodeNotReady)");
	assert_true(unheard("{\"phase\":\"Running\",\"conditions\":[{\"type\":\"DisruptionTarget\","
			    "\"status\":\"True\",\"reason\":\"DeletionByTaintManager\"}]}",
			    &why));
	assert_false(unheard(CONDITIONS("Running",
					"\"status\":\"False\",\"reason\":\"ContainersNotReady\"",
					"\"status\":\"False\",\"reason\":\"ContainersNotReady\""),
			     &why));
	assert_false(unheard(
		CONDITIONS("Running", "\"status\":\"False\",\"reason\":\"ReadinessGatesNotReady\"",
			   "\"status\":\"True\""),
		&why));
	assert_false(
		unheard(CONDITIONS("Running", "\"status\":\"True\"", "\"status\":\"True\""), &why));
	assert_false(
		unheard(CONDITIONS("Failed", "\"status\":\"False\"", "\"status\":\"True\""), &why));
	assert_false(unheard("{\"phase\":\"Running\"}", &why));
}

/* ---- objects ---- */

static void run_and_install_are_put_in_everywhere(void **state)
{
	struct doc *d = parse("{\"kind\":\"Job\",\"metadata\":{\"name\":\"<run>-w\",\"labels\":"
			      "{\"regatta/run\":\"<run>\",\"regatta/install\":\"<install>\"}},"
			      "\"spec\":[{\"x\":\"<run>\"},\"not <run>\",1,null]}");

	(void)state;
	kube_object_fill(d, "r-1", "i1", arena);
	kube_object_own(d, "r-1", "uid-1", arena);
	assert_string_equal(kube_meta(d, "name"), "r-1-w");
	assert_string_equal(kube_label(d, "regatta/run"), "r-1");
	assert_string_equal(kube_label(d, "regatta/install"), "i1");
	const char *text = doc_json_text(arena, d);

	assert_non_null(strstr(text, "\"spec\":[{\"x\":\"r-1\"},\"not <run>\",1,null]"));
	assert_non_null(strstr(text,
			       "\"ownerReferences\":[{\"apiVersion\":\"v1\",\"kind\":\"ConfigMap\","
			       "\"name\":\"r-1\",\"uid\":\"uid-1\"}]"));
}

static void a_long_name_is_cut_and_stays_its_own(void **state)
{
	static const char *const roles[] = {"<run>-a-role-with-a-name-of-its-own-1",
					    "<run>-a-role-with-a-name-of-its-own-2"};
	const char *names[2];

	(void)state;
	for (int i = 0; i < 2; i++) {
		struct doc *d =
			parse(arena_printf(arena, "{\"metadata\":{\"name\":\"%s\"}}", roles[i]));

		kube_object_fill(d, "a-run-with-quite-a-long-name-abcd", "i", arena);
		names[i] = kube_meta(d, "name");
		assert_int_equal(strlen(names[i]), KUBE_NAME_MAX);
	}
	assert_string_not_equal(names[0], names[1]);
}

static void only_kinds_of_the_engine_have_a_path(void **state)
{
	(void)state;
	assert_string_equal(kube_resource_of("Job"), "jobs");
	assert_null(kube_resource_of("Gadget"));
	assert_string_equal(kube_meta(parse("{}"), "name"), "");
}

#define T(fn) cmocka_unit_test_setup_teardown(fn, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(a_pod_that_runs_or_starts_has_no_words),
		T(the_scheduler_says_what_is_missing),
		T(a_container_that_cannot_start_is_stuck),
		T(an_image_without_a_shell_says_what_to_set),
		T(how_a_pod_ended_is_said),
		T(run_and_install_are_put_in_everywhere),
		T(a_long_name_is_cut_and_stays_its_own),
		T(only_kinds_of_the_engine_have_a_path),
		T(a_pod_whose_node_is_silent_is_told_from_one_that_is_not_ready),
	};

	return cmocka_run_group_tests_name("pods", tests, NULL, NULL);
}
