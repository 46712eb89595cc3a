/* Jobs whose pods have no agent: no Secret, sights instead of enrolment, logs by the API. */
#include "rig.h"

#include "base/buf.h"

#define LABELS                                                                                     \
	"\"labels\":{\"regatta/run\":\"<run>\",\"regatta/install\":\"<install>\",\"regatta/role\":\"w\"}"
#define JOB                                                                                        \
	"{\"apiVersion\":\"batch/v1\",\"kind\":\"Job\",\"metadata\":{\"name\":\"<run>-w\","        \
	"\"namespace\":\"n\"," LABELS "},\"spec\":{}}"
#define OURS                                                                                             \
	"{\"metadata\":{\"uid\":\"u1\",\"labels\":{\"regatta/run\":\"r1\",\"regatta/install\":\"i1\"}}," \
	"\"spec\":{\"completions\":2}}"
#define JOBS "/prefix/apis/batch/v1/namespaces/n/jobs"
#define PODS "GET /prefix/api/v1/namespaces/n/pods?"
#define LOG                                                                                        \
	"GET /prefix/api/v1/namespaces/n/pods/p-0/log?container=main&follow=true&timestamps=true"

static void job_row(struct rig *r)
{
	r->row.kind = "kube.job";
	r->row.spec = JOB;
	snprintf(r->row.id, sizeof(r->row.id), "u1");
}

static void without_an_agent_there_is_no_secret(void **state)
{
	struct rig *r = *state;

	job_row(r);
	rig_expect(r, "POST " JOBS, 201, OURS);
	assert_int_equal(kube_job_driver.create(&r->row), OUTCOME_DONE);
	rig_expect(r, "GET " JOBS "/r1-w ", 404, STATUS("none"));
	assert_int_equal(kube_job_driver.find(&r->row), OUTCOME_ABSENT);
	rig_expect(r, "GET " JOBS "/r1-w ", 404, STATUS("none"));
	assert_int_equal(kube_job_driver.destroy(&r->row), OUTCOME_ABSENT);
	rig_done(r);
}

static void pods_that_run_are_seen_and_those_that_were_taken_are_gone(void **state)
{
	struct rig *r = *state;

	job_row(r);
	r->row.nmembers = 2;
	r->members[0] = (struct driver_member){.identity = "a"};
	r->members[1] = (struct driver_member){.identity = "b"};
	rig_expect(r, "GET " JOBS "/r1-w ", 200, OURS);
	rig_expect(
		r, PODS, 200,
		"{\"items\":[{\"metadata\":{\"uid\":\"a\",\"name\":\"p-0\",\"labels\":{"
		"\"regatta/role\":\"w\"},\"annotations\":{\"batch.kubernetes.io/job-completion-index\":"
		"\"1\"}},\"spec\":{\"restartPolicy\":\"Never\",\"containers\":[{\"name\":\"main\"}]},"
		"\"status\":{\"phase\":\"Failed\",\"containerStatuses\":[{\"name\":\"main\",\"state\":{"
		"\"terminated\":{\"exitCode\":3}}}]}},"
		"{\"metadata\":{\"uid\":\"b\",\"name\":\"p-1\"},\"status\":{\"phase\":\"Failed\","
		"\"reason\":\"Evicted\",\"message\":\"low on disk\"}}]}");
	assert_int_equal(kube_job_driver.observe(&r->row), OUTCOME_DONE);
	assert_int_equal(r->row.nsights, 1);
	assert_string_equal(r->row.sights[0].identity, "a");
	assert_int_equal(r->row.sights[0].index, 1);
	assert_true(r->row.sights[0].ended && r->row.sights[0].code == 3);
	assert_false(r->members[0].gone);
	assert_true(r->members[1].gone);
	assert_non_null(strstr(r->members[1].why.msg, "Evicted: low on disk"));
	free(r->row.sights);
	rig_done(r);
}

static void a_pod_that_is_being_taken_is_gone_while_its_reason_can_be_read(void **state)
{
	struct rig *r = *state;

	job_row(r);
	r->row.nmembers = 1;
	r->members[0] = (struct driver_member){.identity = "a"};
	rig_expect(r, "GET " JOBS "/r1-w ", 200, OURS);
	rig_expect(
		r, PODS, 200,
		"{\"items\":[{\"metadata\":{\"uid\":\"a\",\"name\":\"p-0\",\"deletionTimestamp\":\"x\"},"
		"\"status\":{\"phase\":\"Running\",\"conditions\":[{\"type\":\"DisruptionTarget\","
		"\"status\":\"True\",\"reason\":\"PreemptionByScheduler\",\"message\":\"for another\"}]}},"
		"{\"metadata\":{\"uid\":\"b\"},\"status\":{\"phase\":\"Running\"}}]}");
	assert_int_equal(kube_job_driver.observe(&r->row), OUTCOME_DONE);
	assert_true(r->members[0].gone);
	assert_int_equal(r->members[0].why.kind, ERR_PREEMPTED);
	assert_non_null(strstr(r->members[0].why.msg, "PreemptionByScheduler: for another"));
	rig_done(r);
}

static void a_pod_on_a_node_that_does_not_answer_is_gone_though_its_container_seems_to_run(
	void **state)
{
	struct rig *r = *state;

	job_row(r);
	r->row.nmembers = 1;
	r->members[0] = (struct driver_member){.identity = "a"};
	rig_expect(r, "GET " JOBS "/r1-w ", 200, OURS);
	rig_expect(r, PODS, 200,
		   "{\"items\":[{\"metadata\":{\"uid\":\"a\",\"name\":\"p-0\"},"
		   "\"spec\":{\"nodeName\":\"node3\",\"containers\":[{\"name\":\"main\"}]},"
		   "\"status\":{\"phase\":\"Running\",\"conditions\":["
		   "{\"type\":\"Ready\",\"status\":\"False\"},"
		   "{\"type\":\"ContainersReady\",\"status\":\"True\"}],"
		   "\"containerStatuses\":[{\"name\":\"main\",\"state\":{\"running\":{}}}]}},"
		   "{\"metadata\":{\"uid\":\"b\"},\"status\":{\"phase\":\"Running\"}}]}");
	assert_int_equal(kube_job_driver.observe(&r->row), OUTCOME_DONE);
	assert_int_equal(r->row.nsights, 0);
	assert_true(r->members[0].gone);
	assert_int_equal(r->members[0].why.kind, ERR_TIMEOUT);
	assert_non_null(strstr(r->members[0].why.msg, "its node node3 does not answer"));
	rig_done(r);
}

static void a_job_is_suspended_so_that_its_pods_end(void **state)
{
	struct rig *r = *state;

	job_row(r);
	rig_expect(r, "GET " JOBS "/r1-w ", 200, OURS);
	rig_expect(r, "PATCH " JOBS "/r1-w?fieldManager=regatta ", 200, "{}");
	assert_int_equal(kube_job_driver.stop(&r->row), OUTCOME_DONE);
	assert_string_equal(r->fake.asked[1].body, "{\"spec\":{\"suspend\":true}}");
	rig_done(r);
}

#define QUEUED "{\"metadata\":{\"uid\":\"u1\",\"labels\":{\"kueue.x-k8s.io/queue-name\":\"team\"}}}"
#define WORKLOADS "/prefix/apis/kueue.x-k8s.io/v1beta1/namespaces/n/workloads"

static void kueue_is_told_to_end_what_it_would_resume(void **state)
{
	struct rig *r = *state;

	job_row(r);
	rig_expect(r, "GET " JOBS "/r1-w ", 200, QUEUED);
	rig_expect(r, "GET " WORKLOADS "?limit=100&labelSelector=kueue.x-k8s.io%2Fjob-uid%3Du1 ",
		   200, "{\"items\":[{\"metadata\":{\"name\":\"wl\"}}]}");
	rig_expect(r, "PATCH " WORKLOADS "/wl?fieldManager=regatta ", 200, "{}");
	assert_int_equal(kube_job_driver.stop(&r->row), OUTCOME_DONE);
	assert_string_equal(r->fake.asked[2].body, "{\"spec\":{\"active\":false}}");
	rig_expect(r, "GET " JOBS "/r1-w ", 200, QUEUED);
	rig_expect(r, "GET " WORKLOADS "?", 403, STATUS("you cannot list workloads"));
	assert_int_equal(kube_job_driver.stop(&r->row), OUTCOME_UNSURE);
	assert_non_null(strstr(r->row.err.msg, "cannot list workloads"));
	rig_done(r);
}

/* Its exit is that of a container that was told to end. */
static void a_pod_whose_place_a_queue_gives_to_another_is_lost_and_has_not_ended(void **state)
{
	struct rig *r = *state;

	job_row(r);
	r->row.nmembers = 1;
	r->members[0] = (struct driver_member){.identity = "a"};
	rig_expect(r, "GET " JOBS "/r1-w ", 200, QUEUED);
	rig_expect(
		r, "GET " WORKLOADS "?", 200,
		"{\"items\":[{\"status\":{\"conditions\":[{\"type\":\"Evicted\",\"status\":\"True\","
		"\"message\":\"Preempted for another\"}]}}]}");
	rig_expect(
		r, PODS, 200,
		"{\"items\":[{\"metadata\":{\"uid\":\"a\",\"deletionTimestamp\":\"x\"},"
		"\"spec\":{\"restartPolicy\":\"Never\",\"containers\":[{\"name\":\"main\"}]},"
		"\"status\":{\"phase\":\"Failed\",\"containerStatuses\":[{\"name\":\"main\",\"state\":{"
		"\"terminated\":{\"exitCode\":137}}}]}}]}");
	assert_int_equal(kube_job_driver.observe(&r->row), OUTCOME_DONE);
	assert_int_equal(r->row.nsights, 0);
	assert_true(r->members[0].gone);
	assert_string_equal(r->members[0].why.msg,
			    "Kueue has taken its place: Preempted for another");
	rig_done(r);
}

static void read_log(struct rig *r, struct driver_log *l, struct buf *out, int want)
{
	struct err err = {0};

	assert_int_equal(kube_job_driver.log_read(l, 1000, &r->d, out, &err), want);
}

static void a_log_goes_on_in_the_next_answer_and_for_the_next_master(void **state)
{
	struct rig *r = *state;
	char at[DRIVER_LOG_AT];
	struct buf out;
	struct err err = {0};

	job_row(r);
	buf_init(&out, 1 << 20);
	struct driver_log *l = kube_job_driver.log_open(&r->row, "p-0/main", "");

	rig_expect(r, LOG " ", 400, STATUS("waiting to start"));
	assert_int_equal(kube_job_driver.log_read(l, 1000, &r->d, &out, &err), -1);
	assert_non_null(strstr(err.msg, "waiting to start"));
	rig_expect(
		r, LOG " ", 200,
		"2026-01-01T00:00:09.9Z one\n2026-01-01T00:00:10.5Z two\n2026-01-01T00:00:10.7Z th");
	read_log(r, l, &out, 0);
	assert_true(str_is(buf_str(&out), "one\ntwo\nth"));
	rig_expect(
		r, LOG "&sinceTime=2026-01-01T00:00:09.000Z ", 200,
		"2026-01-01T00:00:09.9Z one\n2026-01-01T00:00:10.5Z two\n2026-01-01T00:00:10.7Z three\n");
	read_log(r, l, &out, 0);
	assert_true(str_is(buf_str(&out), "one\ntwo\nthree\n"));
	kube_job_driver.log_at(l, at);
	kube_job_driver.log_free(l);
	l = kube_job_driver.log_open(&r->row, "p-0/main", at);
	rig_expect(
		r, LOG "&sinceTime=2026-01-01T00:00:09.000Z ", 200,
		"2026-01-01T00:00:09.9Z one\n2026-01-01T00:00:10.5Z two\n2026-01-01T00:00:10.7Z three\n"
		"2026-01-01T00:00:10.7Z four\n");
	read_log(r, l, &out, 0);
	assert_true(str_is(buf_str(&out), "one\ntwo\nthree\nfour\n"));
	assert_false(kube_job_driver.log_gap(l));
	/* The node has dropped what was taken, and perhaps more: that is said once. */
	static const char later[] = "2026-01-01T00:00:11.1Z A\n2026-01-01T00:00:11.2Z B\n"
				    "2026-01-01T00:00:11.3Z C\n2026-01-01T00:00:11.4Z D\n";
	rig_expect(r, LOG "&sinceTime=2026-01-01T00:00:09.000Z ", 200, later);
	read_log(r, l, &out, 0);
	rig_expect(r, LOG "&sinceTime=2026-01-01T00:00:09.000Z ", 200, later);
	read_log(r, l, &out, 0);
	assert_true(str_is(buf_str(&out), "one\ntwo\nthree\nfour\nA\nB\nC\nD\n"));
	assert_true(kube_job_driver.log_gap(l));
	assert_false(kube_job_driver.log_gap(l));
	kube_job_driver.log_free(l);
	buf_release(&out);
	rig_done(r);
}

/* Whoever waits for the end of the log of a job that has ended must not take any of these for it. */
static void an_answer_that_is_cut_or_is_no_log_is_not_the_end_of_it(void **state)
{
	static const struct {
		int status;
		const char *body, *words;
	} cases[] = {
		{RIG_CUT, "2026-01-01T00:00:09.9Z one\n", "follow a log: "},
		{200, "<html><title>Please log in</title>\n",
		 "follow a log: <html><title>Please log in"},
		{200, "2026-01-01T00:00:09.9Z one\nunable to retrieve container logs\nfor x\n",
		 "follow a log: unable to retrieve container logs"},
	};
	struct rig *r = *state;

	job_row(r);
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct driver_log *l = kube_job_driver.log_open(&r->row, "p-0/main", "");
		struct err err = {0};
		struct buf out;
		int rc = 1;

		buf_init(&out, 1 << 20);
		rig_expect(r, LOG " ", cases[i].status, cases[i].body);
		while (rc == 1)
			rc = kube_job_driver.log_read(l, 1000, &r->d, &out, &err);
		assert_int_equal(rc, -1);
		if (!strstr(err.msg, cases[i].words))
			fail_msg("'%s' is not in '%s'", cases[i].words, err.msg);
		assert_true(str_is(buf_str(&out), strstr(cases[i].body, "one") ? "one\n" : ""));
		kube_job_driver.log_free(l);
		buf_release(&out);
	}
	rig_done(r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		rig_test(without_an_agent_there_is_no_secret),
		rig_test(pods_that_run_are_seen_and_those_that_were_taken_are_gone),
		rig_test(a_pod_that_is_being_taken_is_gone_while_its_reason_can_be_read),
		rig_test(
			a_pod_on_a_node_that_does_not_answer_is_gone_though_its_container_seems_to_run),
		rig_test(a_job_is_suspended_so_that_its_pods_end),
		rig_test(kueue_is_told_to_end_what_it_would_resume),
		rig_test(a_pod_whose_place_a_queue_gives_to_another_is_lost_and_has_not_ended),
		rig_test(a_log_goes_on_in_the_next_answer_and_for_the_next_master),
		rig_test(an_answer_that_is_cut_or_is_no_log_is_not_the_end_of_it),
	};

	return cmocka_run_group_tests_name("driver kube agentless", tests, NULL, NULL);
}
