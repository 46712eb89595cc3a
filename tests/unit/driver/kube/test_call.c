/* Calls of the Kubernetes API: what is sent, what an answer means, what is tried again. */
#include "rig.h"

#include "base/clock.h"

#include "base/buf.h"
#include "base/cleanup.h"
#include "driver/kube/api/internal.h"

static int ask(struct rig *r, const char *method, const char *path, struct doc **ret,
	       int *ret_status)
{
	const struct kube_call c = {.method = method,
				    .path = path,
				    .what = "test",
				    .deadline = &r->d,
				    .body = strcmp(method, "GET") ? "{}" : NULL};

	return kube_ask(r->k, &c, r->a, ret, ret_status, &r->err);
}

static void the_token_and_the_path_of_the_server_are_sent(void **state)
{
	struct rig *r = *state;
	struct doc *d = NULL;
	int status;

	rig_expect(r, "GET /prefix/api/v1/x ", 200, "{\"a\":1}");
	assert_int_equal(ask(r, "GET", "/api/v1/x", &d, &status), 0);
	assert_int_equal(doc_int(d, "a", 0), 1);
	assert_string_equal(fake_header(&r->fake.asked[0], "Authorization"), "Bearer tok");
	rig_done(r);
}

static void every_status_has_its_kind(void **state)
{
	static const struct {
		int status;
		const char *body;
		enum err_kind kind;
		const char *words;
	} cases[] = {
		{401, STATUS("Unauthorized"), ERR_DENIED, "does not take these credentials"},
		{403, STATUS("jobs.batch is forbidden: User cannot create resource jobs"),
		 ERR_DENIED, "cannot create resource jobs"},
		{403, STATUS("pods x is forbidden: exceeded quota: few"), ERR_QUOTA,
		 "exceeded quota"},
		{403,
		 STATUS("roles x is forbidden: user u (groups=[a b c]) is attempting to grant RBAC "
			"permissions not currently held:\\n{Resources:[jobs]}\\n{Resources:[pods]}"),
		 ERR_DENIED,
		 "it would give rights that you do not have: {Resources:[jobs]} {Resources:[pods]}"},
		{404, STATUS("x not found"), ERR_NOT_FOUND, "x not found"},
		{409, STATUS("x already exists"), ERR_CONFLICT, "already exists"},
		{422, STATUS("spec.x is invalid"), ERR_INVALID, "spec.x is invalid"},
		{503, "not json", ERR_UNAVAILABLE, "the cluster answers 503"},
	};
	struct rig *r = *state;
	int status;

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		rig_expect(r, "POST /prefix/x ", cases[i].status, cases[i].body);
		assert_int_equal(ask(r, "POST", "/x", NULL, &status), -1);
		assert_int_equal(status, cases[i].status);
		assert_int_equal(r->err.kind, cases[i].kind);
		if (!strstr(r->err.msg, cases[i].words))
			fail_msg("'%s' is not in '%s'", cases[i].words, r->err.msg);
	}
	rig_done(r);
}

static void a_pause_is_as_long_as_a_server_says_but_not_longer_than_half_a_minute(void **state)
{
	(void)state;
	assert_int_equal(status_retry_ms(STR("7"), STR("")), 7000);
	assert_int_equal(status_retry_ms(STR("3600"), STR("")), 30000);
	assert_int_equal(status_retry_ms(STR("9223372036854775807"), STR("")), 30000);
	assert_int_equal(status_retry_ms(STR("-1"), STR("")), 0);
	assert_int_equal(status_retry_ms((struct str){0}, STR("no JSON")), 0);
	assert_int_equal(
		status_retry_ms((struct str){0}, STR("{\"details\":{\"retryAfterSeconds\":2}}")),
		2000);
}

static void a_busy_cluster_is_asked_again_after_the_pause_that_it_names(void **state)
{
	struct rig *r = *state;
	int status;

	rig_expect(
		r, "POST /prefix/x ", 429,
		"{\"kind\":\"Status\",\"message\":\"busy\",\"details\":{\"retryAfterSeconds\":1}}");
	r->steps[0].headers = "Retry-After: 1\r\n";
	rig_expect(r, "POST /prefix/x ", 201, "{}");
	int64_t before_ms = clock_boot_ms();

	assert_int_equal(ask(r, "POST", "/x", NULL, &status), 0);
	assert_true(clock_boot_ms() - before_ms >= 1000);
	rig_done(r);
}

static void only_what_reads_is_sent_again_without_an_answer(void **state)
{
	struct rig *r = *state;
	int status = 1;

	rig_expect(r, "GET /prefix/x ", 0, NULL);
	rig_expect(r, "GET /prefix/x ", 500, STATUS("later"));
	rig_expect(r, "GET /prefix/x ", 200, "{}");
	assert_int_equal(ask(r, "GET", "/x", NULL, &status), 0);
	rig_expect(r, "POST /prefix/x ", 0, NULL);
	assert_int_equal(ask(r, "POST", "/x", NULL, &status), -1);
	assert_int_equal(status, 0);
	rig_done(r);
}

static void an_answer_that_is_no_json_is_no_cluster(void **state)
{
	struct rig *r = *state;
	struct doc *d = NULL;
	int status = 1;

	rig_expect(r, "GET /prefix/x ", 200, "<html>");
	assert_int_equal(ask(r, "GET", "/x", &d, &status), -1);
	assert_int_equal(r->err.kind, ERR_PROTOCOL);
	assert_int_equal(status, 0);
}

static int count(void *ctx, const struct doc *item)
{
	return ++*(int *)ctx == 3 && doc_bool(item, "stop", false);
}

static void a_list_is_read_in_pages(void **state)
{
	struct rig *r = *state;
	int n = 0;

	rig_expect(r, "GET /prefix/pods?limit=100&labelSelector=x ", 200,
		   "{\"metadata\":{\"continue\":\"a/b=\"},\"items\":[{},{}]}");
	rig_expect(r, "GET /prefix/pods?limit=100&labelSelector=x&continue=a%2Fb%3D ", 200,
		   "{\"metadata\":{},\"items\":[{\"stop\":true},{}]}");
	assert_int_equal(
		kube_list(r->k, "/pods", "labelSelector=x", "list", &r->d, count, &n, &r->err), 0);
	assert_int_equal(n, 3);
	rig_expect(r, "GET /prefix/pods?limit=100 ", 403, STATUS("no"));
	assert_int_equal(kube_list(r->k, "/pods", "", "list", &r->d, count, &n, &r->err), -1);
	rig_done(r);
}

static void a_text_is_cut_at_what_is_wanted(void **state)
{
	struct rig *r = *state;
	CLEANUP(buf_release) struct buf out = {0};

	buf_init(&out, 4);
	rig_expect(r, "GET /prefix/log ", 200, "abcdef");
	assert_int_equal(kube_text(r->k, "/log", "log", &r->d, &out, &r->err), 0);
	assert_true(str_is(buf_str(&out), "abcd"));
}

static void a_cluster_that_cannot_be_reached_is_named(void **state)
{
	struct rig *r = *state;
	struct kube_access x = {.server = "http://127.0.0.1:1", .namespace = "d"};
	struct deadline soon = deadline_in(300, NULL);
	struct kube_client *k;
	const struct kube_call c = {
		.method = "GET", .path = "/", .what = "test", .deadline = &soon};

	assert_int_equal(kube_open(&x, &k, &r->err), 0);
	assert_int_equal(kube_ask(k, &c, r->a, NULL, NULL, &r->err), -1);
	assert_non_null(strstr(r->err.msg, "the cluster at http://127.0.0.1:1"));
	kube_free(k);
	x.server = "gopher://x";
	assert_int_equal(kube_open(&x, &k, &r->err), -1);
	x = (struct kube_access){.server = r->access.server, .token_file = "/nowhere/token"};
	soon = deadline_in(5000, NULL);
	assert_int_equal(kube_open(&x, &k, &r->err), 0);
	assert_int_equal(kube_ask(k, &c, r->a, NULL, NULL, &r->err), -1);
	assert_non_null(strstr(r->err.msg, "the token of the service account"));
	kube_free(k);
}

static void paths_are_those_of_the_api_groups(void **state)
{
	struct rig *r = *state;

	assert_string_equal(kube_path(r->a, "v1", "n", "pods", "p"), "/api/v1/namespaces/n/pods/p");
	assert_string_equal(kube_path(r->a, "batch/v1", "n", "jobs", NULL),
			    "/apis/batch/v1/namespaces/n/jobs");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		rig_test(the_token_and_the_path_of_the_server_are_sent),
		rig_test(every_status_has_its_kind),
		cmocka_unit_test(
			a_pause_is_as_long_as_a_server_says_but_not_longer_than_half_a_minute),
		rig_test(a_busy_cluster_is_asked_again_after_the_pause_that_it_names),
		rig_test(only_what_reads_is_sent_again_without_an_answer),
		rig_test(an_answer_that_is_no_json_is_no_cluster),
		rig_test(a_list_is_read_in_pages),
		rig_test(a_text_is_cut_at_what_is_wanted),
		rig_test(a_cluster_that_cannot_be_reached_is_named),
		rig_test(paths_are_those_of_the_api_groups),
	};

	return cmocka_run_group_tests_name("call", tests, NULL, NULL);
}
