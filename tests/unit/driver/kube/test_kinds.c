/* The drivers of Kubernetes objects: create, find, observe, extend, destroy. */
#include "rig.h"

#include "driver/kube/kube_kind.h"

#define LABELS                                                                                     \
	"\"labels\":{\"regatta/run\":\"<run>\",\"regatta/install\":\"<install>\",\"regatta/role\":\"w\"}"
#define ROOT                                                                                                         \
	"{\"apiVersion\":\"v1\",\"kind\":\"ConfigMap\",\"metadata\":{\"name\":\"<run>\",\"namespace\":\"n\"," LABELS \
	"}}"
#define JOB                                                                                        \
	"{\"apiVersion\":\"batch/v1\",\"kind\":\"Job\",\"metadata\":{\"name\":\"<run>-w\","        \
	"\"namespace\":\"n\"," LABELS                                                              \
	",\"annotations\":{\"regatta/program\":\"ab12\"}},\"spec\":{}}"
#define OURS(uid, more)                                                                            \
	"{\"metadata\":{\"uid\":\"" uid "\",\"creationTimestamp\":\"2026-01-01T00:00:00Z\","       \
	"\"labels\":{\"regatta/run\":\"r1\",\"regatta/install\":\"i1\"}" more "},"                 \
	"\"spec\":{\"completions\":2,\"backoffLimitPerIndex\":0}}"
#define CMS "/prefix/api/v1/namespaces/n/configmaps"
#define CM CMS "/r1 "
#define JOBS "/prefix/apis/batch/v1/namespaces/n/jobs"
#define SECRETS "/prefix/api/v1/namespaces/n/secrets"
#define PODS "GET /prefix/api/v1/namespaces/n/pods?"
#define EVENTS "GET /prefix/api/v1/namespaces/n/events?"

static void root_row(struct rig *r)
{
	r->row.kind = "kube.root";
	r->row.spec = ROOT;
	r->row.nneeds = 0;
}

static void job_row(struct rig *r)
{
	r->row.kind = "kube.job";
	r->row.spec = JOB;
	snprintf(r->row.id, sizeof(r->row.id), "u1");
}

/* ---- one object ---- */

static void an_object_is_created_with_its_run_and_its_uid_is_kept(void **state)
{
	struct rig *r = *state;

	root_row(r);
	rig_expect(r, "POST " CMS "?fieldManager=regatta ", 201, OURS("u1", ""));
	assert_int_equal(kube_root_driver.create(&r->row), OUTCOME_DONE);
	assert_string_equal(r->row.id, "u1");
	assert_true(r->row.identity_checked);
	assert_non_null(strstr(r->fake.asked[0].body, "\"name\":\"r1\""));
	rig_done(r);
}

static void what_needs_the_root_is_owned_by_it(void **state)
{
	struct rig *r = *state;

	root_row(r);
	r->row.nneeds = 1;
	rig_expect(r, "POST " CMS, 201, OURS("u1", ""));
	assert_int_equal(kube_service_driver.create(&r->row), OUTCOME_DONE);
	assert_non_null(strstr(r->fake.asked[0].body, "\"uid\":\"uid-root\""));
}

/* Rule: what the runs of a suite make goes with the root of the run that carries it, which is the only one. */
static void what_a_run_of_a_suite_makes_is_owned_by_the_root_of_its_carrier(void **state)
{
	struct rig *r = *state;

	root_row(r);
	r->row.run = "s-abcd-r2-7";
	snprintf(r->row.id, sizeof(r->row.id), "u1");
	rig_expect(r, "GET " CMS "/s-abcd-r2 ", 200, OURS("u1", ""));
	assert_int_equal(kube_root_driver.observe(&r->row), OUTCOME_DONE);
	r->row.kind = "kube.service";
	r->row.nneeds = 1;
	rig_expect(r, "POST " CMS, 201, OURS("u2", ""));
	assert_int_equal(kube_service_driver.create(&r->row), OUTCOME_DONE);
	assert_non_null(strstr(r->fake.asked[1].body, "\"name\":\"s-abcd-r2-7\""));
	assert_non_null(
		strstr(r->fake.asked[1].body, "\"name\":\"s-abcd-r2\",\"uid\":\"uid-root\""));
	rig_done(r);
}

static void a_name_that_is_taken_is_adopted_only_if_it_is_of_this_run(void **state)
{
	struct rig *r = *state;

	root_row(r);
	rig_expect(r, "POST " CMS, 409, STATUS("exists"));
	rig_expect(r, "GET " CM, 200, OURS("u7", ""));
	assert_int_equal(kube_root_driver.create(&r->row), OUTCOME_DONE);
	assert_string_equal(r->row.id, "u7");
	rig_expect(r, "POST " CMS, 409, STATUS("exists"));
	rig_expect(r, "GET " CM, 200, "{\"metadata\":{\"uid\":\"u8\"}}");
	assert_int_equal(kube_root_driver.create(&r->row), OUTCOME_REFUSED);
	assert_int_equal(r->row.err.kind, ERR_CONFLICT);
	rig_expect(r, "POST " CMS, 409, STATUS("exists"));
	rig_expect(r, "GET " CM, 200,
		   OURS("u9", ",\"deletionTimestamp\":\"2026-01-01T00:00:00Z\""));
	assert_int_equal(kube_root_driver.create(&r->row), OUTCOME_REFUSED);
	assert_int_equal(r->row.err.kind, ERR_UNAVAILABLE);
	rig_expect(r, "POST " CMS, 409, STATUS("exists"));
	rig_expect(r, "GET " CM, 404, STATUS("gone"));
	assert_int_equal(kube_root_driver.create(&r->row), OUTCOME_UNSURE);
	rig_done(r);
}

static void a_create_is_refused_or_not_known(void **state)
{
	struct rig *r = *state;

	root_row(r);
	rig_expect(r, "POST " CMS, 403, STATUS("no"));
	assert_int_equal(kube_root_driver.create(&r->row), OUTCOME_REFUSED);
	rig_expect(r, "POST " CMS, 0, NULL);
	assert_int_equal(kube_root_driver.create(&r->row), OUTCOME_UNSURE);
	rig_expect(r, "POST " CMS, 500, STATUS("later"));
	assert_int_equal(kube_root_driver.create(&r->row), OUTCOME_UNSURE);
	rig_done(r);
}

static void another_object_of_the_name_is_not_the_one(void **state)
{
	struct rig *r = *state;

	root_row(r);
	rig_expect(r, "GET " CM, 200, OURS("u1", ""));
	assert_int_equal(kube_root_driver.find(&r->row), OUTCOME_DONE);
	assert_string_equal(r->row.id, "u1");
	rig_expect(r, "GET " CM, 200, OURS("u2", ""));
	assert_int_equal(kube_root_driver.observe(&r->row), OUTCOME_ABSENT);
	rig_expect(r, "GET " CM, 404, STATUS("none"));
	assert_int_equal(kube_root_driver.observe(&r->row), OUTCOME_ABSENT);
	rig_expect(r, "GET " CM, 403, STATUS("no"));
	assert_int_equal(kube_root_driver.find(&r->row), OUTCOME_UNSURE);
	rig_done(r);
}

static void an_object_stays_the_runs_without_its_labels(void **state)
{
	struct rig *r = *state;

	root_row(r);
	rig_expect(r, "GET " CM, 200, "{\"metadata\":{\"uid\":\"u1\"}}");
	assert_int_equal(kube_root_driver.find(&r->row), OUTCOME_ABSENT);
	snprintf(r->row.id, sizeof(r->row.id), "u1");
	rig_expect(r, "GET " CM, 200, "{\"metadata\":{\"uid\":\"u1\"}}");
	assert_int_equal(kube_root_driver.observe(&r->row), OUTCOME_DONE);
	rig_done(r);
}

/* A proxy, a login page or an API server that is cut off in the middle of its answer. */
static void answers_that_are_not_the_apis_prove_nothing(void **state)
{
	struct rig *r = *state;

	root_row(r);
	rig_expect(r, "GET " CM, 404, "<html>not found</html>");
	assert_int_equal(kube_root_driver.find(&r->row), OUTCOME_UNSURE);
	assert_int_equal(r->row.err.kind, ERR_PROTOCOL);
	assert_non_null(strstr(r->row.err.msg, "is no Kubernetes API"));
	rig_expect(r, "GET " CM, 404, "{\"error\":\"no route\"}");
	assert_int_equal(kube_root_driver.destroy(&r->row), OUTCOME_UNSURE);
	rig_expect(r, "GET " CM, 200, "{}");
	assert_int_equal(kube_root_driver.destroy(&r->row), OUTCOME_UNSURE);
	rig_expect(r, "GET " CM, 200, "{\"metadata\":{\"uid\":\"u1\"");
	assert_int_equal(kube_root_driver.observe(&r->row), OUTCOME_UNSURE);
	rig_expect(r, "POST " CMS, 200, "{\"welcome\":true}");
	assert_int_equal(kube_root_driver.create(&r->row), OUTCOME_UNSURE);
	rig_expect(r, "GET " CM, 404, "404 page not found\n"); /* its CRD was removed */
	assert_int_equal(kube_root_driver.destroy(&r->row), OUTCOME_ABSENT);
	rig_done(r);
}

static void a_list_without_items_is_no_list_of_no_pods(void **state)
{
	struct rig *r = *state;

	job_row(r);
	r->row.nmembers = 1;
	r->members[0] = (struct driver_member){.identity = "a"};
	rig_expect(r, "GET " JOBS "/r1-w ", 200, OURS("u1", ""));
	rig_expect(r, PODS, 200, "{}");
	assert_int_equal(kube_job_driver.observe(&r->row), OUTCOME_UNSURE);
	assert_false(r->members[0].gone);
	rig_done(r);
}

static void a_delete_names_the_uid_and_waits_for_the_end(void **state)
{
	struct rig *r = *state;

	root_row(r);
	rig_expect(r, "GET " CM, 200, OURS("u1", ""));
	rig_expect(r, "DELETE " CM, 200, "{}");
	rig_expect(r, "GET " CM, 200, OURS("u1", ",\"deletionTimestamp\":\"x\""));
	rig_expect(r, "GET " CM, 404, STATUS("none"));
	assert_int_equal(kube_root_driver.destroy(&r->row), OUTCOME_DONE);
	assert_non_null(strstr(r->fake.asked[1].body, "\"preconditions\":{\"uid\":\"u1\"}"));
	assert_non_null(strstr(r->fake.asked[1].body, "\"propagationPolicy\":\"Foreground\""));
	rig_expect(r, "GET " CM, 404, STATUS("none"));
	assert_int_equal(kube_root_driver.destroy(&r->row), OUTCOME_ABSENT);
	rig_expect(r, "GET " CM, 200, OURS("u1", ""));
	rig_expect(r, "DELETE " CM, 403, STATUS("no"));
	assert_int_equal(kube_root_driver.destroy(&r->row), OUTCOME_HELD);
	rig_expect(r, "GET " CM, 200, OURS("u1", ""));
	rig_expect(r, "DELETE " CM, 409, STATUS("another uid"));
	assert_int_equal(kube_root_driver.destroy(&r->row), OUTCOME_UNSURE);
	rig_done(r);
}

static void what_is_still_there_is_held(void **state)
{
	struct rig *r = *state;

	root_row(r);
	r->d = deadline_in(300, NULL);
	for (int i = 0; i < 8; i++)
		rig_expect(r, "GET " CM, 200, OURS("u1", ",\"deletionTimestamp\":\"x\""));
	assert_int_equal(kube_root_driver.destroy(&r->row), OUTCOME_HELD);
	assert_non_null(strstr(r->row.err.msg, "is being deleted"));
}

static void a_row_that_cannot_be_read_asks_nobody(void **state)
{
	struct rig *r = *state;

	root_row(r);
	r->row.spec = "{";
	assert_int_equal(kube_root_driver.create(&r->row), OUTCOME_REFUSED);
	assert_int_equal(kube_root_driver.observe(&r->row), OUTCOME_UNSURE);
	assert_false(r->row.identity_checked);
	r->row.spec = ROOT;
	r->row.credentials = "{}";
	assert_int_equal(kube_root_driver.destroy(&r->row), OUTCOME_UNSURE);
	assert_non_null(strstr(r->row.err.msg, "not of a Kubernetes cluster"));
	r->row.credentials = NULL; /* and this is no pod */
	assert_int_equal(kube_root_driver.find(&r->row), OUTCOME_UNSURE);
	assert_non_null(strstr(r->row.err.msg, "this is no pod"));
	/* What a master in the cluster gets beside its account is for stores. */
	r->row.credentials = "{\"store\":{\"access_key\":\"k\"}}";
	assert_int_equal(kube_root_driver.find(&r->row), OUTCOME_UNSURE);
	assert_non_null(strstr(r->row.err.msg, "this is no pod"));
	rig_done(r);
}

/* ---- the Job ---- */

static void a_job_comes_after_the_secret_with_its_token(void **state)
{
	struct rig *r = *state;

	job_row(r);
	rig_expect(r, "POST " SECRETS, 201, OURS("s1", ""));
	rig_expect(r, "PATCH " SECRETS "/r1-w?fieldManager=regatta ", 200, "{}");
	rig_expect(r, "POST " JOBS, 201, OURS("u1", ""));
	assert_int_equal(kube_job_driver.create(&r->row), OUTCOME_DONE);
	assert_string_equal(r->row.id, "u1");
	const char *secret = r->fake.asked[0].body;

	assert_non_null(strstr(secret, "1.2.3.mac"));
	assert_non_null(strstr(secret, "https://10.0.0.1:5436"));
	assert_non_null(strstr(secret, "/bin/ab12"));
	assert_non_null(strstr(secret, "\"uid\":\"uid-root\""));
	assert_null(strstr(r->fake.asked[2].body, "1.2.3.mac"));
	rig_expect(r, "POST " SECRETS, 403, STATUS("no"));
	assert_int_equal(kube_job_driver.create(&r->row), OUTCOME_REFUSED);
	rig_expect(r, "POST " SECRETS, 201, OURS("s1", ""));
	rig_expect(r, "PATCH " SECRETS, 500, STATUS("later"));
	assert_int_equal(kube_job_driver.create(&r->row), OUTCOME_UNSURE);
	rig_done(r);
}

static void a_job_takes_its_secret_with_it(void **state)
{
	struct rig *r = *state;

	job_row(r);
	rig_expect(r, "GET " JOBS "/r1-w ", 404, STATUS("none"));
	rig_expect(r, "GET " SECRETS "/r1-w ", 200, OURS("s1", ""));
	rig_expect(r, "DELETE " SECRETS "/r1-w ", 200, "{}");
	rig_expect(r, "GET " SECRETS "/r1-w ", 404, STATUS("none"));
	assert_int_equal(kube_job_driver.destroy(&r->row), OUTCOME_DONE);
	rig_expect(r, "GET " JOBS "/r1-w ", 404, STATUS("none"));
	rig_expect(r, "GET " SECRETS "/r1-w ", 404, STATUS("none"));
	assert_int_equal(kube_job_driver.destroy(&r->row), OUTCOME_ABSENT);
	rig_expect(r, "GET " JOBS "/r1-w ", 404, STATUS("none"));
	rig_expect(r, "GET " SECRETS "/r1-w ", 404, STATUS("none"));
	assert_int_equal(kube_job_driver.find(&r->row), OUTCOME_ABSENT);
	rig_expect(r, "GET " JOBS "/r1-w ", 403, STATUS("no"));
	assert_int_equal(kube_job_driver.find(&r->row), OUTCOME_UNSURE);
	rig_expect(r, "GET " JOBS "/r1-w ", 403, STATUS("no"));
	assert_int_equal(kube_job_driver.destroy(&r->row), OUTCOME_HELD);
	rig_done(r);
}

static enum outcome observe(struct rig *r, const char *pods)
{
	rig_expect(r, "GET " JOBS "/r1-w ", 200, OURS("u1", ""));
	rig_expect(r, PODS, 200, pods);
	return kube_job_driver.observe(&r->row);
}

#define EVENTS_OF(uid)                                                                             \
	"GET /prefix/api/v1/namespaces/n/events?limit=100&fieldSelector=involvedObject.uid%3D" uid \
	" "

static void pods_of_nodes_that_are_gone_are_named_with_their_end(void **state)
{
	struct rig *r = *state;

	job_row(r);
	r->row.nmembers = 3;
	for (int i = 0; i < 3; i++)
		r->members[i] = (struct driver_member){.identity = arena_printf(r->a, "pod-%d", i)};
	rig_expect(r, EVENTS_OF("pod-2"), 200,
		   "{\"items\":[{\"reason\":\"Preempted\",\"message\":\"Preempted by pod x\"},"
		   "{\"reason\":\"Killing\",\"message\":\"Stopping container main\"}]}");
	assert_int_equal(
		observe(r,
			"{\"items\":[{\"metadata\":{\"uid\":\"pod-0\"},\"status\":{\"phase\":\"Running\"}},"
			"{\"metadata\":{\"uid\":\"pod-1\",\"name\":\"p1\"},\"status\":{\"phase\":\"Failed\","
			"\"reason\":\"Evicted\",\"message\":\"low on disk\"}}]}"),
		OUTCOME_DONE);
	assert_false(r->members[0].gone);
	assert_true(r->members[1].gone);
	assert_non_null(strstr(r->members[1].why.msg, "Evicted: low on disk"));
	assert_true(r->members[2].gone);
	assert_string_equal(r->members[2].why.msg,
			    "its pod was deleted: Preempted: Preempted by pod x");
	assert_int_equal(r->members[2].why.kind, ERR_PREEMPTED);
	rig_done(r);
	/* nobody may look at events, or they say nothing of it */
	rig_expect(r, EVENTS_OF("pod-0"), 403, STATUS("no"));
	rig_expect(r, EVENTS_OF("pod-1"), 200, "{\"items\":[]}");
	rig_expect(r, EVENTS_OF("pod-2"), 200, "{\"items\":[]}");
	(void)observe(r, "{\"items\":[]}");
	for (int i = 0; i < 3; i++) {
		assert_string_equal(r->members[i].why.msg, "its pod was deleted");
		assert_int_equal(r->members[i].why.kind, ERR_UNAVAILABLE);
	}
}

#define LEAVING(uid, reason, message)                                                                \
	"{\"metadata\":{\"uid\":\"" uid "\",\"name\":\"r-worker-0-x\",\"deletionTimestamp\":"        \
	"\"2026-11-18T10:00:30Z\",\"deletionGracePeriodSeconds\":30},\"status\":{\"phase\":"         \
	"\"Running\",\"conditions\":[{\"type\":\"DisruptionTarget\",\"status\":\"True\",\"reason\":" \
	"\"" reason "\",\"message\":\"" message "\"}]}}"

/* Rule: an eviction that was asked for is told as long as the pod says it; its agent may still be heard. */
static void a_pod_that_is_drained_says_so_before_it_is_gone(void **state)
{
	struct rig *r = *state;

	job_row(r);
	r->row.nmembers = 2;
	for (int i = 0; i < 2; i++)
		r->members[i] = (struct driver_member){.identity = arena_printf(r->a, "pod-%d", i)};
	assert_int_equal(
		observe(r, "{\"items\":[" LEAVING(
				   "pod-0", "EvictionByEvictionAPI",
				   "Eviction API: evicting") "," LEAVING("pod-1",
									 "PreemptionByScheduler",
									 "preempted") "]}"),
		OUTCOME_DONE);
	assert_true(r->members[0].gone);
	assert_int_equal(r->members[0].why.kind, ERR_TIMEOUT);
	assert_string_equal(r->members[0].why.msg,
			    "pod r-worker-0-x: EvictionByEvictionAPI: Eviction API: evicting");
	assert_false(r->members[1].gone); /* an event says it when it is gone */
	rig_done(r);
}

static void a_pod_that_will_never_start_ends_the_wait(void **state)
{
	struct rig *r = *state;

	job_row(r);
	assert_int_equal(
		observe(r,
			"{\"items\":[{\"metadata\":{\"uid\":\"a\",\"name\":\"p\"},\"status\":{\"phase\":"
			"\"Pending\",\"containerStatuses\":[{\"state\":{\"waiting\":{\"reason\":"
			"\"ErrImagePull\",\"message\":\"no such image\"}}}]}},{\"metadata\":{}}]}"),
		OUTCOME_ABSENT);
	assert_true(r->row.ended);
	assert_int_equal(r->row.err.kind, ERR_INVALID);
	assert_non_null(strstr(r->row.err.msg, "no such image"));
	rig_done(r);
}

static void a_pod_that_ended_before_its_agent_spoke_shows_its_log(void **state)
{
	struct rig *r = *state;

	job_row(r);
	rig_expect(r, "GET /prefix/api/v1/namespaces/n/pods/p/log?", 200, "sh: no\nsuch thing\n");
	assert_int_equal(
		observe(r, "{\"items\":[{\"metadata\":{\"uid\":\"a\",\"name\":\"p\"},\"status\":"
			   "{\"phase\":\"Succeeded\"}},{\"metadata\":{}}]}"),
		OUTCOME_ABSENT);
	assert_non_null(
		strstr(r->row.err.msg, "p ended without a word; its log: sh: no such thing"));
	rig_done(r);
}

#define ENDED "{\"metadata\":{\"uid\":\"a\",\"name\":\"p\"},\"status\":{\"phase\":\"Failed\"}}"

static void pods_that_end_again_and_again_before_their_agents_speak_end_the_wait(void **state)
{
	static const char job[] = "{\"metadata\":{\"uid\":\"u1\"},\"spec\":{\"completions\":2,"
				  "\"backoffLimitPerIndex\":6}}";
	struct rig *r = *state;

	job_row(r);
	rig_expect(r, "GET " JOBS "/r1-w ", 200, job);
	rig_expect(r, PODS, 200, "{\"items\":[" ENDED "," ENDED "]}");
	assert_int_equal(kube_job_driver.observe(&r->row),
			 OUTCOME_DONE); /* others take their place */
	rig_expect(r, "GET " JOBS "/r1-w ", 200, job);
	rig_expect(r, PODS, 200, "{\"items\":[" ENDED "," ENDED "," ENDED "]}");
	rig_expect(r, "GET /prefix/api/v1/namespaces/n/pods/p/log?", 200, "no\n");
	assert_int_equal(kube_job_driver.observe(&r->row), OUTCOME_ABSENT);
	assert_true(r->row.ended);
	assert_non_null(strstr(r->row.err.msg, "p ended without a word; its log: no"));
	rig_done(r);
}

static void a_busy_cluster_has_refused_nothing(void **state)
{
	struct rig *r = *state;

	for (enum kube_question q = KUBE_CREATE; q <= KUBE_EXTEND; q++) {
		assert_int_equal(kube_kind_failed(q, 429, &r->row), OUTCOME_UNSURE);
		assert_int_equal(kube_kind_failed(q, 503, &r->row), OUTCOME_UNSURE);
		assert_int_equal(kube_kind_failed(q, 0, &r->row), OUTCOME_UNSURE);
	}
	assert_int_equal(kube_kind_failed(KUBE_CREATE, 403, &r->row), OUTCOME_REFUSED);
}

static void a_quota_keeps_pods_from_being_made(void **state)
{
	struct rig *r = *state;

	job_row(r);
	rig_expect(
		r, EVENTS, 200,
		"{\"items\":[{\"lastTimestamp\":\"2026-01-01T00:00:02Z\",\"reason\":\"FailedCreate\","
		"\"message\":\"pods x is forbidden: exceeded quota: few\"},"
		"{\"lastTimestamp\":\"2026-01-01T00:00:01Z\",\"reason\":\"Older\",\"message\":\"m\"}]}");
	assert_int_equal(observe(r, "{\"items\":[]}"), OUTCOME_ABSENT);
	assert_int_equal(r->row.err.kind, ERR_QUOTA);
	rig_expect(
		r, EVENTS, 200,
		"{\"items\":[{\"reason\":\"FailedCreate\",\"message\":\"admission webhook denied it\"}]}");
	assert_int_equal(observe(r, "{\"items\":[]}"), OUTCOME_ABSENT);
	assert_int_equal(r->row.err.kind, ERR_DENIED);
	/* The run goes on, and says what it may not ask. */
	rig_expect(r, EVENTS, 403,
		   STATUS("events is forbidden: User \\\"u\\\" cannot list resource events"));
	assert_int_equal(observe(r, "{\"items\":[]}"), OUTCOME_HELD);
	assert_string_equal(r->row.err.msg, "list events: User \"u\" cannot list resource events");
	rig_done(r);
}

static void a_quota_that_lets_in_a_part_of_the_pods_ends_the_wait_for_the_rest(void **state)
{
	struct rig *r = *state;

	job_row(r); /* of two */
	rig_expect(
		r, EVENTS, 200,
		"{\"items\":[{\"reason\":\"FailedCreate\",\"message\":\"exceeded quota: few\"}]}");
	assert_int_equal(observe(r, "{\"items\":[{\"metadata\":{\"uid\":\"a\"},"
				    "\"status\":{\"phase\":\"Running\"}}]}"),
			 OUTCOME_ABSENT);
	assert_int_equal(r->row.err.kind, ERR_QUOTA);
	rig_done(r);
}

#define QUEUED                                                                                     \
	"{\"metadata\":{\"uid\":\"u1\",\"labels\":{\"kueue.x-k8s.io/queue-name\":\"team\"}},"      \
	"\"spec\":{\"completions\":2,\"suspend\":true}}"
#define WORKLOADS                                                                                  \
	"GET /prefix/apis/kueue.x-k8s.io/v1beta1/namespaces/n/workloads?limit=100&labelSelector="  \
	"kueue.x-k8s.io%2Fjob-uid%3Du1 "
#define WORKLOAD(conditions)                                                                       \
	"{\"items\":[{\"metadata\":{\"name\":\"wl\"},\"status\":{\"conditions\":[" conditions      \
	"]}}]}"
#define CONDITION(type, status, reason, message)                                                   \
	"{\"type\":\"" type "\",\"status\":\"" status "\",\"reason\":\"" reason                    \
	"\",\"message\":\"" message "\"}"

static void pods_of_a_job_that_waits_in_a_queue_are_not_missed(void **state)
{
	static const struct {
		int status;
		const char *workloads, *words;
	} cases[] = {
		{200, WORKLOAD(CONDITION("QuotaReserved", "False", "Pending", "no room for 2 cpu")),
		 "in queue team: no room for 2 cpu"},
		{200,
		 WORKLOAD(CONDITION("QuotaReserved", "True", "QuotaReserved", "in x") "," CONDITION(
			 "Admitted", "False", "NoChecks", "a check is pending")),
		 "in queue team: a check is pending"},
		{200, "{\"items\":[]}", "in queue team: Kueue has not looked at it yet"},
		{403,
		 STATUS("workloads is forbidden: User \\\"u\\\" cannot list resource workloads"),
		 "in queue team: why is not known: list workloads: User \"u\" cannot list resource "
		 "workloads"},
	};
	struct rig *r = *state;

	job_row(r);
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		rig_expect(r, "GET " JOBS "/r1-w ", 200, QUEUED);
		rig_expect(r, PODS, 200, "{\"items\":[]}");
		rig_expect(r, WORKLOADS, cases[i].status, cases[i].workloads);
		assert_int_equal(kube_job_driver.observe(&r->row), OUTCOME_HELD);
		assert_true(r->row.queued);
		assert_int_equal(r->row.err.kind, ERR_CAPACITY);
		assert_string_equal(r->row.err.msg, cases[i].words);
	}
	/* Somebody else has suspended it. */
	rig_expect(r, "GET " JOBS "/r1-w ", 200,
		   "{\"metadata\":{\"uid\":\"u1\"},\"spec\":{\"suspend\":true}}");
	rig_expect(r, PODS, 200, "{\"items\":[]}");
	assert_int_equal(kube_job_driver.observe(&r->row), OUTCOME_HELD);
	assert_string_equal(r->row.err.msg, "it is suspended");
	rig_done(r);
}

static void a_queue_that_is_not_there_ends_the_wait(void **state)
{
	struct rig *r = *state;

	job_row(r);
	rig_expect(r, "GET " JOBS "/r1-w ", 200, QUEUED);
	rig_expect(r, PODS, 200, "{\"items\":[]}");
	rig_expect(r, WORKLOADS, 200,
		   WORKLOAD(CONDITION("QuotaReserved", "False", "Inadmissible",
				      "LocalQueue team doesn't exist")));
	assert_int_equal(kube_job_driver.observe(&r->row), OUTCOME_ABSENT);
	assert_true(r->row.ended && !r->row.queued);
	assert_int_equal(r->row.err.kind, ERR_INVALID);
	assert_string_equal(r->row.err.msg, "in queue team: LocalQueue team doesn't exist");
	rig_done(r);
}

static void pods_whose_place_a_queue_gives_to_others_say_so(void **state)
{
	static const struct {
		const char *job, *workloads, *pods;
		enum outcome outcome;
	} cases[] = {
		/* while they end */
		{QUEUED,
		 WORKLOAD(CONDITION("QuotaReserved", "False", "Pending", "no room") "," CONDITION(
			 "Evicted", "True", "Preempted", "Preempted for another")),
		 "{\"items\":[{\"metadata\":{\"uid\":\"a\",\"deletionTimestamp\":\"x\"},\"status\":{"
		 "\"phase\":\"Failed\"}},{\"metadata\":{\"uid\":\"b\"},\"status\":{\"phase\":\"Failed\"}}]}",
		 OUTCOME_HELD},
		/* when they are gone, and it is the turn of others */
		{"{\"metadata\":{\"uid\":\"u1\",\"labels\":{\"kueue.x-k8s.io/queue-name\":\"team\"}}}",
		 WORKLOAD(CONDITION("Evicted", "False", "QuotaReserved",
				    "Previously: Preempted for another")),
		 "{\"items\":[]}", OUTCOME_DONE},
	};
	struct rig *r = *state;

	job_row(r);
	r->row.nmembers = 1;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		r->members[0] = (struct driver_member){.identity = "a"};
		rig_expect(r, "GET " JOBS "/r1-w ", 200, cases[i].job);
		rig_expect(r, WORKLOADS, 200, cases[i].workloads);
		rig_expect(r, PODS, 200, cases[i].pods);
		assert_int_equal(kube_job_driver.observe(&r->row), cases[i].outcome);
		assert_true(r->members[0].gone);
		assert_int_equal(r->members[0].why.kind, ERR_PREEMPTED);
		assert_string_equal(r->members[0].why.msg,
				    "Kueue has taken its place: Preempted for another");
	}
	/* What its user ends was not taken away. */
	r->members[0] = (struct driver_member){.identity = "a"};
	rig_expect(r, "GET " JOBS "/r1-w ", 200, QUEUED);
	rig_expect(r, WORKLOADS, 200,
		   WORKLOAD(CONDITION("Evicted", "True", "Deactivated",
				      "The workload is deactivated")));
	rig_expect(r, PODS, 200, cases[0].pods);
	assert_int_equal(kube_job_driver.observe(&r->row), OUTCOME_HELD);
	assert_true(r->members[0].gone);
	assert_null(strstr(r->members[0].why.msg, "Kueue"));
	rig_done(r);
}

static void what_a_pod_waits_for_is_said(void **state)
{
	struct rig *r = *state;
	const char *two =
		"{\"items\":[{\"metadata\":{\"uid\":\"a\",\"name\":\"p\"}},{\"metadata\":{}}]}";

	job_row(r);
	rig_expect(r, EVENTS, 200,
		   "{\"items\":[{\"reason\":\"FailedMount\",\"message\":\"mount timed out\"}]}");
	assert_int_equal(observe(r, two), OUTCOME_HELD);
	assert_non_null(strstr(r->row.err.msg, "pod p: FailedMount: mount timed out"));
	rig_expect(
		r, EVENTS, 200,
		"{\"items\":[{\"reason\":\"FailedMount\",\"message\":\"configmap \\\"x\\\" not found\"}]}");
	assert_int_equal(observe(r, two), OUTCOME_ABSENT);
	assert_int_equal(r->row.err.kind, ERR_INVALID);
	assert_int_equal(
		observe(r,
			"{\"items\":[{\"metadata\":{\"uid\":\"a\",\"name\":\"p\"},\"status\":{\"phase\":"
			"\"Pending\",\"conditions\":[{\"type\":\"PodScheduled\",\"status\":\"False\","
			"\"reason\":\"Unschedulable\",\"message\":\"0/3 nodes\"}]}},{\"metadata\":{}}]}"),
		OUTCOME_HELD);
	assert_int_equal(r->row.err.kind, ERR_CAPACITY);
	rig_done(r);
}

static void a_job_that_cannot_be_looked_at_is_not_gone(void **state)
{
	struct rig *r = *state;

	job_row(r);
	rig_expect(r, "GET " JOBS "/r1-w ", 200, OURS("u1", ""));
	rig_expect(r, PODS, 403, STATUS("no"));
	assert_int_equal(kube_job_driver.observe(&r->row), OUTCOME_UNSURE);
	rig_expect(r, "GET " JOBS "/r1-w ", 404, STATUS("none"));
	assert_int_equal(kube_job_driver.observe(&r->row), OUTCOME_ABSENT);
	assert_false(r->row.ended);
	rig_done(r);
}

static void more_time_counts_from_the_creation(void **state)
{
	struct rig *r = *state;

	job_row(r);
	r->row.expires_ms = 1767225600000 + 7200000; /* two hours after 2026-01-01 */
	rig_expect(r, "GET " JOBS "/r1-w ", 200, OURS("u1", ""));
	rig_expect(r, "PATCH " JOBS "/r1-w?fieldManager=regatta ", 200, "{}");
	assert_int_equal(kube_job_driver.extend(&r->row), OUTCOME_DONE);
	assert_string_equal(r->fake.asked[1].body, "{\"spec\":{\"activeDeadlineSeconds\":7200}}");
	rig_expect(r, "GET " JOBS "/r1-w ", 200, OURS("u1", ""));
	rig_expect(r, "PATCH " JOBS, 422, STATUS("no"));
	assert_int_equal(kube_job_driver.extend(&r->row), OUTCOME_UNSURE);
	rig_expect(r, "GET " JOBS "/r1-w ", 404, STATUS("none"));
	assert_int_equal(kube_job_driver.extend(&r->row), OUTCOME_ABSENT);
	rig_done(r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		rig_test(an_object_is_created_with_its_run_and_its_uid_is_kept),
		rig_test(what_needs_the_root_is_owned_by_it),
		rig_test(what_a_run_of_a_suite_makes_is_owned_by_the_root_of_its_carrier),
		rig_test(a_name_that_is_taken_is_adopted_only_if_it_is_of_this_run),
		rig_test(a_create_is_refused_or_not_known),
		rig_test(another_object_of_the_name_is_not_the_one),
		rig_test(an_object_stays_the_runs_without_its_labels),
		rig_test(answers_that_are_not_the_apis_prove_nothing),
		rig_test(a_list_without_items_is_no_list_of_no_pods),
		rig_test(a_delete_names_the_uid_and_waits_for_the_end),
		rig_test(what_is_still_there_is_held),
		rig_test(a_row_that_cannot_be_read_asks_nobody),
		rig_test(a_job_comes_after_the_secret_with_its_token),
		rig_test(a_job_takes_its_secret_with_it),
		rig_test(pods_of_nodes_that_are_gone_are_named_with_their_end),
		rig_test(a_pod_that_is_drained_says_so_before_it_is_gone),
		rig_test(a_pod_that_will_never_start_ends_the_wait),
		rig_test(a_pod_that_ended_before_its_agent_spoke_shows_its_log),
		rig_test(pods_that_end_again_and_again_before_their_agents_speak_end_the_wait),
		rig_test(a_busy_cluster_has_refused_nothing),
		rig_test(a_quota_keeps_pods_from_being_made),
		rig_test(a_quota_that_lets_in_a_part_of_the_pods_ends_the_wait_for_the_rest),
		rig_test(pods_of_a_job_that_waits_in_a_queue_are_not_missed),
		rig_test(a_queue_that_is_not_there_ends_the_wait),
		rig_test(pods_whose_place_a_queue_gives_to_others_say_so),
		rig_test(what_a_pod_waits_for_is_said),
		rig_test(a_job_that_cannot_be_looked_at_is_not_gone),
		rig_test(more_time_counts_from_the_creation),
	};

	return cmocka_run_group_tests_name("kinds", tests, NULL, NULL);
}
