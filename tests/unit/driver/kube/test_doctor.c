/* Could a run start in this cluster?  What is fine, what is not, and what to do. */
#include "rig.h"

#include "base/err.h"
#include "driver/engine_tools.h"
#include "driver/kube/kube_doctor.h"

#define REVIEW "POST /prefix/apis/authorization.k8s.io/v1/selfsubjectaccessreviews "
#define REVIEWS 41
#define OPERATOR_REVIEWS 4
#define LOG 20 /* of pods/log */
#define PROXY 22
#define YES "{\"status\":{\"allowed\":true}}"
#define NO "{\"status\":{\"allowed\":false}}"
#define QUOTAS "GET /prefix/api/v1/namespaces/team/resourcequotas?"
#define NODES "GET /prefix/api/v1/nodes?"
#define CLASSES "GET /prefix/apis/storage.k8s.io/v1/storageclasses?"
#define EMPTY "{\"items\":[]}"

static struct checkup diagnose(struct rig *r)
{
	struct checkup c = {.a = r->a, .home = "/nowhere"};

	kube_doctor(&c);
	return c;
}

static void assert_check(const struct checkup *d, const char *name, enum check_state state,
			 const char *what)
{
	for (size_t i = 0; i < d->n; i++) {
		const struct engine_check *e = &d->v[i];

		if (strcmp(e->name, name) != 0)
			continue;
		assert_string_equal(e->what, what);
		assert_int_equal(e->state, state);
		assert_true(state == CHECK_FINE || e->todo);
		return;
	}
	fail_msg("there is no check '%s'", name);
}

static void expect_cluster(struct rig *r)
{
	rig_expect(r, "GET /prefix/version ", 200,
		   "{\"major\":\"1\",\"minor\":\"34\",\"gitVersion\":\"v1.34.4\"}");
	rig_expect(r, "GET /prefix/api/v1/namespaces/team ", 200, "{}");
}

/* The answer to each question for a permission; the nth, from 0 on, is no. */
static void expect_reviews(struct rig *r, int no, int other_no)
{
	for (int i = 0; i < REVIEWS; i++)
		rig_expect(r, REVIEW, 201, i == no || i == other_no ? NO : YES);
}

/* no: the permission, from 0 on, that is missing for the first kind of an operator; -1: none */
static void expect_operators(struct rig *r, int no)
{
	rig_expect(r, "GET /prefix/apis/kubeflow.org/v1 ", 200,
		   "{\"resources\":[{\"name\":\"pytorchjobs\",\"kind\":\"PyTorchJob\"},"
		   "{\"name\":\"pytorchjobs/status\",\"kind\":\"PyTorchJob\"},"
		   "{\"name\":\"tfjobs\",\"kind\":\"TFJob\"}]}");
	for (int i = 0; i < 2 * OPERATOR_REVIEWS; i++)
		rig_expect(r, REVIEW, 201, i == no ? NO : YES);
	rig_expect(r, "GET /prefix/apis/kubeflow.org/v2beta1 ", 404, STATUS("none"));
	rig_expect(r, "GET /prefix/apis/jobset.x-k8s.io/v1alpha2 ", 404, STATUS("none"));
	rig_expect(r, "GET /prefix/apis/kueue.x-k8s.io/v1beta1 ", 200,
		   "{\"resources\":[{\"name\":\"localqueues\",\"kind\":\"LocalQueue\"},"
		   "{\"name\":\"workloads\",\"kind\":\"Workload\"}]}");
	for (int i = 0; i < 2; i++) /* list and patch */
		rig_expect(r, REVIEW, 201, no >= 0 ? NO : YES);
}

static void a_cluster_that_has_everything_is_fine(void **state)
{
	struct rig *r = *state;

	expect_cluster(r);
	expect_reviews(r, -1, -1);
	rig_expect(
		r, QUOTAS, 200,
		"{\"items\":[{\"metadata\":{\"name\":\"q\"},\"status\":{\"hard\":{\"pods\":\"9\"},"
		"\"used\":{\"pods\":\"2\"}}}]}");
	rig_expect(r, NODES, 200,
		   "{\"items\":[{\"status\":{\"allocatable\":{\"nvidia.com/gpu\":\"4\"}}},"
		   "{\"status\":{\"allocatable\":{\"cpu\":\"4\"}}},"
		   "{\"status\":{\"allocatable\":{\"nvidia.com/gpu\":\"2\"}}}]}");
	rig_expect(r, CLASSES, 200,
		   "{\"items\":[{\"metadata\":{\"name\":\"a\",\"annotations\":"
		   "{\"storageclass.kubernetes.io/is-default-class\":\"true\"}}},"
		   "{\"metadata\":{\"name\":\"b\"}}]}");
	expect_operators(r, -1);
	struct checkup d = diagnose(r);

	rig_done(r);
	assert_check(&d, "version", CHECK_FINE, "v1.34.4");
	assert_check(&d, "namespace", CHECK_FINE, "team");
	assert_check(&d, "permissions", CHECK_FINE, "all that runs and gc need");
	assert_check(&d, "quota", CHECK_FINE, "q: 2 of 9 pods");
	assert_check(&d, "gpus", CHECK_FINE, "6 nvidia.com/gpu on 3 nodes");
	assert_check(&d, "storage", CHECK_FINE, "a (default), b");
	assert_check(&d, "operators", CHECK_FINE, "PyTorchJob, TFJob, LocalQueue, Workload");
	assert_int_equal(d.n, 8);
	/* the namespace and the verb are what the drivers use */
	assert_non_null(strstr(r->fake.asked[2].body,
			       "{\"namespace\":\"team\",\"group\":\"\",\"resource\":\"configmaps\","
			       "\"subresource\":\"\",\"verb\":\"create\"}"));
}

static void expect_the_rest(struct rig *r, const char *quotas)
{
	rig_expect(r, QUOTAS, 200, quotas);
	rig_expect(r, NODES, 200, EMPTY);
	rig_expect(r, CLASSES, 200, EMPTY);
	expect_operators(r, -1);
}

static void a_permission_that_is_missing_is_named(void **state)
{
	struct rig *r = *state;

	expect_cluster(r);
	expect_reviews(r, 0, LOG);
	expect_the_rest(r, EMPTY);
	struct checkup d = diagnose(r);

	rig_done(r);
	assert_check(&d, "permissions", CHECK_BAD, "missing: create configmaps, get pods/log");
	assert_check(&d, "quota", CHECK_FINE, "none in this namespace");
	assert_check(&d, "gpus", CHECK_FINE, "no nvidia.com/gpu on 0 nodes");
	assert_check(&d, "storage", CHECK_FINE, "no storage class");
}

static void what_only_gc_needs_does_not_stop_a_run(void **state)
{
	struct rig *r = *state;

	expect_cluster(r);
	expect_reviews(r, 3, -1);
	expect_the_rest(r, EMPTY);
	struct checkup d = diagnose(r);

	assert_check(&d, "permissions", CHECK_WARNING,
		     "enough for runs; missing for 'regatta gc': list configmaps");
}

static void what_only_a_master_in_the_cluster_needs_does_not_stop_a_run(void **state)
{
	struct rig *r = *state;

	expect_cluster(r);
	expect_reviews(r, PROXY, REVIEWS - 2);
	expect_the_rest(r, EMPTY);
	struct checkup d = diagnose(r);

	assert_check(
		&d, "permissions", CHECK_WARNING,
		"enough with master = \"here\" or a team's; missing for a master in the cluster: "
		"get services/proxy, delete rolebindings");
}

static void what_only_an_operators_object_needs_does_not_stop_a_run(void **state)
{
	struct rig *r = *state;

	expect_cluster(r);
	expect_reviews(r, -1, -1);
	rig_expect(r, QUOTAS, 200, EMPTY);
	rig_expect(r, NODES, 200, EMPTY);
	rig_expect(r, CLASSES, 200, EMPTY);
	expect_operators(r, 2);
	struct checkup d = diagnose(r);

	rig_done(r);
	assert_check(&d, "permissions", CHECK_FINE, "all that runs and gc need");
	assert_check(&d, "operators", CHECK_WARNING,
		     "PyTorchJob, TFJob, LocalQueue, Workload; missing for runs with these: patch "
		     "pytorchjobs, list workloads, patch workloads");
	assert_non_null(strstr(r->fake.asked[2 + REVIEWS + 4].body,
			       "\"group\":\"kubeflow.org\",\"resource\":\"pytorchjobs\","
			       "\"subresource\":\"\",\"verb\":\"create\"}"));
}

#define QUOTA(more, hard, used)                                                                    \
	"{\"items\":[{\"metadata\":{\"name\":\"q\"}," more "\"status\":{\"hard\":" hard            \
	",\"used\":" used "}}]}"

static void expect_quota(struct rig *r, const char *quotas, enum check_state state,
			 const char *what)
{
	rig_forget(r);
	expect_cluster(r);
	expect_reviews(r, -1, -1);
	expect_the_rest(r, quotas);
	struct checkup d = diagnose(r);

	assert_check(&d, "quota", state, what);
}

static void a_quota_that_is_used_up_stops_a_run_that_needs_it(void **state)
{
	struct rig *r = *state;

	expect_quota(r, QUOTA("", "{\"pods\":\"2\"}", "{\"pods\":\"2\"}"), CHECK_BAD,
		     "q: 2 of 2 pods");
	expect_quota(r, QUOTA("", "{\"limits.memory\":\"2Gi\"}", "{\"limits.memory\":\"2Gi\"}"),
		     CHECK_WARNING, "q: 2Gi of 2Gi limits.memory");
	expect_quota(r,
		     QUOTA("\"spec\":{\"scopes\":[\"BestEffort\"]},", "{\"pods\":\"0\"}",
			   "{\"pods\":\"0\"}"),
		     CHECK_WARNING, "q: 0 of 0 pods");
}

static void what_may_not_be_looked_at_is_a_warning(void **state)
{
	struct rig *r = *state;

	expect_cluster(r);
	rig_expect(r, REVIEW, 403, STATUS("no reviews"));
	rig_expect(r, QUOTAS, 403, STATUS("no quotas"));
	rig_expect(r, NODES, 403, STATUS("no nodes"));
	rig_expect(r, CLASSES, 403, STATUS("no classes"));
	rig_expect(r, "GET /prefix/apis/kubeflow.org/v1 ", 403, STATUS("no groups"));
	struct checkup d = diagnose(r);

	rig_done(r);
	assert_check(&d, "permissions", CHECK_WARNING, "ask for permissions: no reviews");
	assert_check(&d, "quota", CHECK_WARNING, "list quotas: no quotas");
	assert_check(&d, "gpus", CHECK_WARNING, "list nodes: no nodes");
	assert_check(&d, "storage", CHECK_WARNING, "list storage classes: no classes");
	assert_check(&d, "operators", CHECK_WARNING, "look for operators: no groups");
}

static void a_cluster_that_cannot_be_used_ends_the_checks(void **state)
{
	struct rig *r = *state;
	struct checkup d;

	rig_expect(r, "GET /prefix/version ", 200, "{\"major\":\"1\",\"minor\":\"28\"}");
	d = diagnose(r);
	assert_check(&d, "version", CHECK_BAD,
		     "the cluster has Kubernetes 1.28: 1.29 or later is needed");
	assert_int_equal(d.n, 2);
	rig_forget(r);
	rig_expect(r, "GET /prefix/version ", 401, STATUS("Unauthorized"));
	d = diagnose(r);
	assert_int_equal(d.v[1].state, CHECK_BAD);
	assert_string_equal(
		d.v[1].todo,
		"renew the context's credentials, or its cluster's certificate-authority");
	rig_forget(r);
	rig_expect(r, "GET /prefix/version ", 200, "{\"major\":\"1\",\"minor\":\"34\"}");
	rig_expect(r, "GET /prefix/api/v1/namespaces/team ", 404, STATUS("none"));
	d = diagnose(r);
	assert_int_equal(d.v[2].state, CHECK_BAD);
	assert_string_equal(d.v[2].name, "namespace");
	assert_int_equal(d.n, 3);
	setenv("KUBECONFIG", "/nowhere", 1);
	d = diagnose(r);
	assert_int_equal(d.n, 1);
	assert_string_equal(d.v[0].name, "context");
	assert_int_equal(d.v[0].state, CHECK_BAD);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		rig_config_test(a_cluster_that_has_everything_is_fine),
		rig_config_test(a_permission_that_is_missing_is_named),
		rig_config_test(what_only_a_master_in_the_cluster_needs_does_not_stop_a_run),
		rig_config_test(what_only_gc_needs_does_not_stop_a_run),
		rig_config_test(what_only_an_operators_object_needs_does_not_stop_a_run),
		rig_config_test(a_quota_that_is_used_up_stops_a_run_that_needs_it),
		rig_config_test(what_may_not_be_looked_at_is_a_warning),
		rig_config_test(a_cluster_that_cannot_be_used_ends_the_checks),
	};

	return cmocka_run_group_tests_name("doctor", tests, NULL, NULL);
}
