/* Objects of operators: their conditions, and their pods, which say more. */
#include "rig.h"

#define META(kind)                                                                                 \
	"\"kind\":\"" kind "\",\"metadata\":{\"name\":\"<run>\",\"namespace\":\"n\",\"labels\":{"  \
	"\"regatta/run\":\"<run>\",\"regatta/install\":\"<install>\",\"regatta/role\":\"\"},"      \
	"\"annotations\":{\"regatta/operator\":\"the operator\",\"regatta/nodes\":\"2\"}}"
#define TORCH "{\"apiVersion\":\"kubeflow.org/v1\"," META("PyTorchJob") ",\"spec\":{}}"
#define SET "{\"apiVersion\":\"jobset.x-k8s.io/v1alpha2\"," META("JobSet") ",\"spec\":{}}"
#define OURS(more)                                                                                  \
	"{\"metadata\":{\"uid\":\"u1\",\"creationTimestamp\":\"2026-01-01T00:00:00Z\",\"labels\":{" \
	"\"regatta/run\":\"r1\",\"regatta/install\":\"i1\"}}" more "}"
#define FAILED                                                                                     \
	",\"status\":{\"conditions\":[{\"type\":\"Created\",\"status\":\"True\"},{\"type\":"       \
	"\"Failed\",\"status\":\"True\",\"reason\":\"PyTorchJobFailed\",\"message\":\"too late\"}]}"
#define SUCCEEDED ",\"status\":{\"conditions\":[{\"type\":\"Succeeded\",\"status\":\"True\"}]}"
#define JOBS "/prefix/apis/kubeflow.org/v1/namespaces/n/pytorchjobs"
#define JOB JOBS "/r1 "
#define PODS "GET /prefix/api/v1/namespaces/n/pods?limit=100&labelSelector=regatta%2Frun%3Dr1 "
#define POD(uid, replica, from, state)                                                                     \
	"{\"metadata\":{\"uid\":\"" uid "\",\"name\":\"p" uid                                              \
	"\",\"labels\":{\"regatta/role\":\"w\","                                                           \
	"\"training.kubeflow.org/replica-index\":\"" replica "\"" from                                     \
	"}},\"spec\":{\"restartPolicy\":\"Never\",\"containers\":[{\"name\":\"pytorch\"}]},"               \
	"\"status\":{\"phase\":\"Running\",\"containerStatuses\":[{\"name\":\"pytorch\",\"state\":{" state \
	"}}]}}"

#define NONE "{\"items\":[]}"
#define EVENTS_OF(uid)                                                                             \
	"GET /prefix/api/v1/namespaces/n/events?limit=100&fieldSelector=involvedObject.uid%3D" uid \
	" "

static void operator_row(struct rig *r)
{
	r->row.kind = "kube.operator_job";
	r->row.spec = TORCH;
	snprintf(r->row.id, sizeof(r->row.id), "u1");
	r->row.nmembers = 2;
	r->members[0] = (struct driver_member){.identity = "a"};
	r->members[1] = (struct driver_member){.identity = "b"};
}

static enum outcome observe(struct rig *r, const char *object, const char *pods)
{
	free(r->row.sights);
	r->row.sights = NULL;
	r->row.nsights = 0;
	rig_expect(r, "GET " JOB, 200, object);
	rig_expect(r, PODS, 200, pods);
	return kube_operator_driver.observe(&r->row);
}

static void an_operator_that_is_missing_is_named(void **state)
{
	struct rig *r = *state;

	operator_row(r);
	rig_expect(r, "POST " JOBS, 404,
		   STATUS("the server could not find the requested resource"));
	assert_int_equal(kube_operator_driver.create(&r->row), OUTCOME_REFUSED);
	assert_string_equal(r->row.err.msg, "the cluster has no PyTorchJob: install the operator");
	rig_expect(r, "POST " JOBS, 403, STATUS("admission webhook denied the request"));
	assert_int_equal(kube_operator_driver.create(&r->row), OUTCOME_REFUSED);
	assert_non_null(strstr(r->row.err.msg, "denied the request"));
	rig_done(r);
}

static void an_object_that_calls_itself_succeeded_is_no_end_of_its_nodes(void **state)
{
	struct rig *r = *state;

	operator_row(r);
	assert_int_equal(
		observe(r, OURS(SUCCEEDED),
			"{\"items\":[" POD("a", "0", "", "\"terminated\":{\"exitCode\":0}") "," POD(
				"b", "0", ",\"regatta/from\":\"1\"", "\"running\":{}") "]}"),
		OUTCOME_DONE);
	assert_int_equal(r->row.nsights, 2);
	assert_true(r->row.sights[0].ended && r->row.sights[0].index == 0);
	assert_true(!r->row.sights[1].ended && r->row.sights[1].index == 1);
	assert_false(r->members[0].gone || r->members[1].gone);
	free(r->row.sights);
	rig_done(r);
}

static void what_failed_is_said_by_a_pod_or_else_by_the_object(void **state)
{
	struct rig *r = *state;

	operator_row(r);
	rig_expect(r, EVENTS_OF("b"), 200, NONE);
	assert_int_equal(
		observe(r, OURS(FAILED),
			"{\"items\":[" POD("a", "0", "", "\"terminated\":{\"exitCode\":3}") "]}"),
		OUTCOME_DONE);
	assert_int_equal(r->row.sights[0].code, 3);
	assert_true(r->members[1].gone);
	assert_string_equal(r->members[1].why.msg, "PyTorchJobFailed: too late");
	rig_expect(r, EVENTS_OF("a"), 200, NONE);
	rig_expect(r, EVENTS_OF("b"), 200, NONE);
	assert_int_equal(observe(r, OURS(FAILED), NONE), OUTCOME_ABSENT);
	assert_true(r->row.ended);
	assert_string_equal(r->row.err.msg, "PyTorchJobFailed: too late");
	free(r->row.sights);
	rig_done(r);
}

static void pods_that_its_operator_may_not_make_end_the_run(void **state)
{
	struct rig *r = *state;

	operator_row(r);
	rig_expect(r, "GET " JOB, 200, OURS(""));
	rig_expect(r, PODS, 200, "{\"items\":[]}");
	rig_expect(r, EVENTS_OF("u1%2Ctype%3DWarning"), 200,
		   "{\"items\":[{\"reason\":\"FailedCreatePod\",\"message\":\"Error creating: pods "
		   "\\\"r1-0\\\" is forbidden: violates PodSecurity\"}]}");
	r->row.nmembers = 0;
	assert_int_equal(kube_operator_driver.observe(&r->row), OUTCOME_ABSENT);
	assert_true(r->row.ended);
	assert_int_equal(r->row.err.kind, ERR_DENIED);
	assert_non_null(strstr(r->row.err.msg, "violates PodSecurity"));
	rig_done(r);
}

static void pods_that_the_jobs_of_a_jobset_may_not_make_end_the_run(void **state)
{
	struct rig *r = *state;

	operator_row(r);
	r->row.spec = SET;
	r->row.nmembers = 0;
	rig_expect(r, "GET /prefix/apis/jobset.x-k8s.io/v1alpha2/namespaces/n/jobsets/r1 ", 200,
		   OURS(""));
	rig_expect(r, PODS, 200, NONE);
	rig_expect(r, EVENTS_OF("u1%2Ctype%3DWarning"), 200, NONE);
	rig_expect(
		r,
		"GET /prefix/api/v1/namespaces/n/events?limit=100&fieldSelector=involvedObject.kind%3DJob"
		"%2Ctype%3DWarning ",
		200,
		"{\"items\":[{\"involvedObject\":{\"name\":\"r1-w-0\"},\"reason\":\"FailedCreate\","
		"\"lastTimestamp\":\"2026-01-01T00:00:01Z\",\"message\":\"pods are forbidden\"},"
		"{\"involvedObject\":{\"name\":\"other-0\"},\"reason\":\"FailedCreate\","
		"\"lastTimestamp\":\"2026-01-01T00:00:02Z\",\"message\":\"exceeded quota\"}]}");
	assert_int_equal(kube_operator_driver.observe(&r->row), OUTCOME_ABSENT);
	assert_string_equal(r->row.err.msg, "FailedCreate: pods are forbidden");
	assert_int_equal(r->row.err.kind, ERR_DENIED);
	rig_done(r);
}

static void a_stop_spares_the_pods_that_have_ended(void **state)
{
	struct rig *r = *state;

	operator_row(r);
	rig_expect(r, "GET " JOBS "/r1 ", 200, OURS(""));
	rig_expect(r, "PATCH " JOBS "/r1?fieldManager=regatta ", 200, "{}");
	assert_int_equal(kube_operator_driver.stop(&r->row), OUTCOME_DONE);
	assert_string_equal(
		r->fake.asked[1].body,
		"{\"spec\":{\"runPolicy\":{\"suspend\":true,\"cleanPodPolicy\":\"Running\"}}}");
	r->row.spec = SET;
	rig_expect(r, "GET /prefix/apis/jobset.x-k8s.io/v1alpha2/namespaces/n/jobsets/r1 ", 200,
		   OURS(""));
	rig_expect(
		r,
		"PATCH /prefix/apis/jobset.x-k8s.io/v1alpha2/namespaces/n/jobsets/r1?fieldManager=regatta ",
		200, "{}");
	assert_int_equal(kube_operator_driver.stop(&r->row), OUTCOME_DONE);
	assert_string_equal(r->fake.asked[3].body, "{\"spec\":{\"suspend\":true}}");
	rig_done(r);
}

static void more_time_counts_from_the_creation(void **state)
{
	struct rig *r = *state;

	operator_row(r);
	r->row.expires_ms = 1767225600000 + 7200000; /* two hours after 2026-01-01 */
	rig_expect(r, "GET " JOB, 200, OURS(""));
	rig_expect(r, "PATCH " JOBS "/r1?fieldManager=regatta ", 200, "{}");
	assert_int_equal(kube_operator_driver.extend(&r->row), OUTCOME_DONE);
	assert_string_equal(r->fake.asked[1].body,
			    "{\"spec\":{\"runPolicy\":{\"activeDeadlineSeconds\":7200}}}");
	rig_done(r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		rig_test(an_operator_that_is_missing_is_named),
		rig_test(an_object_that_calls_itself_succeeded_is_no_end_of_its_nodes),
		rig_test(what_failed_is_said_by_a_pod_or_else_by_the_object),
		rig_test(pods_that_its_operator_may_not_make_end_the_run),
		rig_test(pods_that_the_jobs_of_a_jobset_may_not_make_end_the_run),
		rig_test(a_stop_spares_the_pods_that_have_ended),
		rig_test(more_time_counts_from_the_creation),
	};

	return cmocka_run_group_tests_name("driver kube operator", tests, NULL, NULL);
}
