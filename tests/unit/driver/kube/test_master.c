/* A master in the cluster: its program, its Job, the way to it, and how it ends itself. */
#include "rig.h"

#include "base/cleanup.h"
#include "driver/kube/kube_way.h"
#include "driver/master_way.h"
#include "driver/own_program.h"
#include "net/http_client.h"

#define SECRET "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
#define LABELS                                                                                     \
	"\"labels\":{\"regatta/run\":\"<run>\",\"regatta/install\":\"<install>\","                 \
	"\"regatta/role\":\"regatta\"}"
#define JOB                                                                                        \
	"{\"apiVersion\":\"batch/v1\",\"kind\":\"Job\",\"metadata\":{\"name\":\"<run>-regatta\","  \
	"\"namespace\":\"n\"," LABELS                                                              \
	",\"annotations\":{\"regatta/program\":\"ab12\",\"regatta/kept\":\"3600\"}},\"spec\":{}}"
#define OURS(uid, more)                                                                            \
	"{\"metadata\":{\"uid\":\"" uid "\",\"creationTimestamp\":\"2026-01-01T00:00:00Z\","       \
	"\"labels\":{\"regatta/run\":\"r1\",\"regatta/install\":\"i1\"}}" more "}"
#define NS "/prefix/api/v1/namespaces/n/"
#define JOBS "/prefix/apis/batch/v1/namespaces/n/jobs"
#define THE_JOB JOBS "/r1-regatta "
#define PODS "GET " NS "pods?"
#define EVENTS "GET " NS "events?"
#define POD(status)                                                                                \
	"{\"items\":[{\"metadata\":{\"name\":\"p\",\"uid\":\"up\"},\"status\":" status "}]}"

static void master_row(struct rig *r)
{
	r->row.kind = "kube.master";
	r->row.spec = JOB;
	r->row.secret = SECRET;
	snprintf(r->row.id, sizeof(r->row.id), "u1");
}

/* ---- the program ---- */

/* The size of this test's own program, which is what is put into ConfigMaps. */
static int64_t program_row(struct rig *r)
{
	struct doc *facts = doc_new(r->a, DOC_TABLE);

	assert_int_equal(own_program_add(facts, NULL, r->a, NULL), 0);
	const struct doc *binary = doc_table(facts, "binary");
	int64_t size = doc_int(binary, "size", 0);

	r->row.kind = "kube.program";
	r->row.spec =
		arena_printf(r->a,
			     "{\"apiVersion\":\"v1\",\"kind\":\"ConfigMap\",\"metadata\":{\"name\":"
			     "\"<run>-regatta-program\",\"namespace\":\"n\"," LABELS
			     "},\"data\":{\"sha256\":\"%s\",\"size\":\"%lld\"}}",
			     doc_str(binary, "sha256", STR("")).p, (long long)size);
	return (size + 999999) / 1000000;
}

static void the_program_is_put_into_parts_and_the_last_object_says_that_all_are_there(void **state)
{
	struct rig *r = *state;
	int64_t parts = program_row(r);

	for (int64_t i = 0; i < parts; i++)
		rig_expect(r, "POST " NS "configmaps?", 201, OURS("up", ""));
	rig_expect(r, "POST " NS "configmaps?", 201, OURS("u1", ""));
	assert_int_equal(kube_program_driver.create(&r->row), OUTCOME_DONE);
	assert_string_equal(r->row.id, "u1");
	assert_non_null(strstr(r->fake.asked[0].body, "\"name\":\"r1-regatta-program-00\""));
	assert_non_null(strstr(r->fake.asked[0].body, "\"part-00\":"));
	assert_non_null(strstr(r->fake.asked[0].body, "\"uid\":\"uid-root\""));
	assert_null(strstr(r->fake.asked[parts].body, "binaryData"));
	rig_done(r);
}

static void a_program_that_was_replaced_is_not_sent(void **state)
{
	struct rig *r = *state;

	r->row.kind = "kube.program";
	r->row.spec = "{\"apiVersion\":\"v1\",\"kind\":\"ConfigMap\",\"metadata\":{\"name\":\"x\"},"
		      "\"data\":{\"sha256\":\"00\",\"size\":\"5\"}}";
	assert_int_equal(kube_program_driver.create(&r->row), OUTCOME_REFUSED);
	assert_non_null(strstr(r->row.err.msg, "another version"));
	rig_done(r);
}

static void parts_without_their_last_object_are_removed(void **state)
{
	struct rig *r = *state;
	int64_t parts = program_row(r);

	rig_expect(r, "GET " NS "configmaps/r1-regatta-program ", 404, STATUS("none"));
	rig_expect(r, "GET " NS "configmaps/r1-regatta-program-00 ", 200, OURS("u0", ""));
	rig_expect(r, "DELETE " NS "configmaps/r1-regatta-program-00 ", 200, "{}");
	rig_expect(r, "GET " NS "configmaps/r1-regatta-program-00 ", 404, STATUS("none"));
	for (int64_t i = 1; i < parts; i++)
		rig_expect(r, "GET " NS "configmaps/r1-regatta-program-", 404, STATUS("none"));
	assert_int_equal(kube_program_driver.find(&r->row), OUTCOME_ABSENT);
	rig_done(r);
}

/* ---- the Job, the Service, the Secret ---- */

static void the_service_is_made_first_for_its_address_is_in_the_secret(void **state)
{
	struct rig *r = *state;

	master_row(r);
	rig_expect(r, "POST " NS "services?", 201, OURS("us", ""));
	rig_expect(r, "GET " NS "services/r1-regatta ", 200,
		   OURS("us", ",\"spec\":{\"clusterIP\":\"10.0.0.9\"}"));
	rig_expect(r, "POST " NS "secrets?", 201, OURS("ux", ""));
	rig_expect(r, "POST " JOBS "?", 201, OURS("u1", ""));
	assert_int_equal(kube_master_driver.create(&r->row), OUTCOME_DONE);
	assert_string_equal(r->row.id, "u1");
	assert_non_null(strstr(r->fake.asked[0].body, "\"regatta/role\":\"regatta\""));
	assert_non_null(strstr(r->fake.asked[2].body, "\"url\":\"https://10.0.0.9:5436\""));
	struct driver_master at = {0};

	assert_int_equal(kube_master_driver.reach(&r->row, &at), 0);
	assert_string_equal(at.url, "kube://n/r1-regatta:5436");
	assert_non_null(strstr(r->fake.asked[2].body, at.token));
	rig_done(r);
}

static void all_three_are_deleted_and_looked_for(void **state)
{
	static const char *const paths[] = {THE_JOB, NS "services/r1-regatta ",
					    NS "secrets/r1-regatta "};
	struct rig *r = *state;

	master_row(r);
	for (size_t i = 0; i < 3; i++) {
		rig_expect(r, arena_printf(r->a, "GET %s", paths[i]), 200, OURS("u1", ""));
		rig_expect(r, arena_printf(r->a, "DELETE %s", paths[i]), 200, "{}");
		rig_expect(r, arena_printf(r->a, "GET %s", paths[i]), 404, STATUS("none"));
	}
	assert_int_equal(kube_master_driver.destroy(&r->row), OUTCOME_DONE);
	rig_done(r);
}

static void the_master_itself_deletes_the_root_by_its_uid_and_nothing_else(void **state)
{
	struct rig *r = *state;

	master_row(r);
	setenv("REGATTA_OWN_MACHINE", "r1-regatta", 1);
	rig_expect(r, "DELETE " NS "configmaps/r1 ", 200, "{}");
	assert_int_equal(kube_master_driver.destroy(&r->row), OUTCOME_HELD);
	unsetenv("REGATTA_OWN_MACHINE");
	assert_non_null(strstr(r->fake.asked[0].body, "\"preconditions\":{\"uid\":\"uid-root\"}"));
	assert_non_null(strstr(r->fake.asked[0].body, "Background"));
	rig_done(r);
}

static void its_time_is_that_of_the_run_and_of_its_results(void **state)
{
	struct rig *r = *state;

	master_row(r);
	r->row.expires_ms = 1767225600000 + 7200000; /* two hours after it was made */
	rig_expect(r, "GET " THE_JOB, 200, OURS("u1", ""));
	rig_expect(r, "PATCH " JOBS "/r1-regatta?", 200, "{}");
	assert_int_equal(kube_master_driver.extend(&r->row), OUTCOME_DONE);
	assert_non_null(strstr(r->fake.asked[1].body, "\"activeDeadlineSeconds\":10800"));
}

/* ---- how its pod stands ---- */

static void observes(struct rig *r, const char *job, const char *pods, enum outcome expected,
		     const char *words)
{
	rig_forget(r);
	r->row.err = (struct err){0};
	rig_expect(r, "GET " THE_JOB, 200, job);
	if (pods)
		rig_expect(r, PODS, 200, pods);
	assert_int_equal(kube_master_driver.observe(&r->row), expected);
	if (!strstr(r->row.err.msg, words))
		fail_msg("'%s' is not in '%s'", words, r->row.err.msg);
}

static void a_master_that_will_never_answer_is_gone(void **state)
{
	struct rig *r = *state;

	master_row(r);
	observes(r, OURS("u1", ""), POD("{\"phase\":\"Running\"}"), OUTCOME_DONE, "");
	observes(r, OURS("u1", ""),
		 POD("{\"phase\":\"Running\",\"containerStatuses\":[{\"restartCount\":2,"
		     "\"state\":{\"waiting\":{}}}]}"),
		 OUTCOME_DONE, "");
	observes(r, OURS("u1", ""),
		 POD("{\"phase\":\"Running\",\"containerStatuses\":[{\"restartCount\":3,"
		     "\"state\":{\"waiting\":{}},\"lastState\":{\"terminated\":{\"exitCode\":127,"
		     "\"message\":\"no cat\"}}}]}"),
		 OUTCOME_ABSENT, "ends as soon as it starts, with 127: no cat");
	assert_true(r->row.ended);
	observes(r,
		 OURS("u1", ",\"status\":{\"conditions\":[{\"type\":\"Failed\",\"status\":\"True\","
			    "\"reason\":\"DeadlineExceeded\"}]}"),
		 NULL, OUTCOME_ABSENT, "DeadlineExceeded");
	observes(r, OURS("u1", ""),
		 POD("{\"phase\":\"Pending\",\"conditions\":[{\"type\":\"PodScheduled\",\"status\":"
		     "\"False\",\"reason\":\"Unschedulable\",\"message\":\"0/3 nodes\"}]}"),
		 OUTCOME_HELD, "0/3 nodes");
}

/* ---- the way to it ---- */

static void requests_go_through_the_api_server_with_both_tokens(void **state)
{
	struct rig *r = *state;
	struct driver_master at = {.token = "inner"};
	struct http_client *c = NULL;
	struct http_answer ans;

	kube_way_url(at.url, sizeof(at.url), "n", "r1-regatta", 5436, "a/b");
	assert_string_equal(at.url, "kube://n/r1-regatta:5436?context=a%2Fb");
	assert_true(str_starts(str_from(at.url), str_from(kube_way.scheme)));
	rig_expect(r, "GET " NS "services/https:r1-regatta:5436/proxy/api/v1/runs ", 200, "{}");
	assert_int_equal(kube_way.dial(&at, r->credentials, &r->d, &c, &r->err), 0);
	http_answer_init(&ans, 4096);
	assert_int_equal(http_call(c, "GET", "/api/v1/runs", STR(""), NULL, 5000, &ans, &r->err),
			 0);
	assert_int_equal(ans.status, 200);
	http_answer_release(&ans);
	http_client_free(c);
	assert_non_null(strstr(r->fake.asked[0].head, "Authorization: Bearer tok\r\n"));
	assert_non_null(strstr(r->fake.asked[0].head, "X-Regatta-Token: inner\r\n"));
	rig_done(r);
}

static void a_url_that_names_no_service_is_refused(void **state)
{
	static const char *const bad[] = {"kube://", "kube://n", "kube://n/s", "kube://n/s:1?%zz"};
	struct rig *r = *state;

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		struct driver_master at = {0};
		struct http_client *c = NULL;

		snprintf(at.url, sizeof(at.url), "%s", bad[i]);
		assert_int_equal(kube_way.dial(&at, r->credentials, &r->d, &c, &r->err), -1);
		assert_int_equal(r->err.kind, ERR_INVALID);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		rig_test(the_program_is_put_into_parts_and_the_last_object_says_that_all_are_there),
		rig_test(a_program_that_was_replaced_is_not_sent),
		rig_test(parts_without_their_last_object_are_removed),
		rig_test(the_service_is_made_first_for_its_address_is_in_the_secret),
		rig_test(all_three_are_deleted_and_looked_for),
		rig_test(the_master_itself_deletes_the_root_by_its_uid_and_nothing_else),
		rig_test(its_time_is_that_of_the_run_and_of_its_results),
		rig_test(a_master_that_will_never_answer_is_gone),
		rig_test(requests_go_through_the_api_server_with_both_tokens),
		rig_test(a_url_that_names_no_service_is_refused),
	};

	return cmocka_run_group_tests_name("kube master", tests, NULL, NULL);
}
