/* Engine kubernetes before a run is planned: the facts, the credentials, and what is refused. */
#include "rig.h"

#include "../other_program.h"

#define VERSION "GET /prefix/version "
#define NAMESPACE "GET /prefix/api/v1/namespaces/team "
#define V34 "{\"major\":\"1\",\"minor\":\"34+\",\"gitVersion\":\"v1.34.4\"}"

static int resolve(struct rig *r, const char *options, struct doc **ret)
{
	struct doc *d = NULL;

	assert_int_equal(json_parse(str_from(options), r->a, &d, NULL), 0);
	return kube_resolver.resolve(&(struct resolve_input){.options = d}, r->a, ret, &r->err);
}

static void the_facts_are_server_namespace_version_and_program(void **state)
{
	struct rig *r = *state;
	struct doc *facts = NULL;

	rig_expect(r, VERSION, 200, V34);
	rig_expect(r, NAMESPACE, 200, "{}");
	assert_int_equal(resolve(r, "{\"master\":\"here\",\"as\":\"job\"}", &facts), 0);
	assert_true(str_is(doc_str(facts, "namespace", STR("")), "team"));
	assert_true(str_is(doc_str(facts, "version", STR("")), "v1.34.4"));
	assert_int_equal(doc_str(doc_table(facts, "binary"), "sha256", STR("")).n, 64);
	rig_done(r);
}

static void for_a_master_in_the_cluster_a_claim_is_made_for_a_trial(void **state)
{
	static const char claims[] =
		"POST /prefix/api/v1/namespaces/team/persistentvolumeclaims?dryRun=All ";
	struct rig *r = *state;
	struct doc *facts = NULL;

	rig_expect(r, VERSION, 200, V34);
	rig_expect(r, NAMESPACE, 200, "{}");
	rig_expect(r, claims, 201, "{\"spec\":{\"storageClassName\":\"fast\"}}");
	assert_int_equal(resolve(r, "{\"master\":\"auto\"}", &facts), 0);
	assert_true(str_is(doc_str(facts, "at", STR("")), "client"));
	assert_true(str_is(doc_str(facts, "storage_class", STR("")), "fast"));
	rig_expect(r, VERSION, 200, V34);
	rig_expect(r, NAMESPACE, 200, "{}");
	rig_expect(r, claims, 403, STATUS("no"));
	assert_int_equal(resolve(r, "{\"master\":\"auto\"}", &facts), 0);
	assert_null(doc_get(facts, "storage_class"));
	rig_done(r);
}

static void pods_on_nodes_of_another_architecture_get_its_program(void **state)
{
	struct rig *r = *state;
	struct doc *facts = NULL;
	const char *arch = strcmp(other_machine(), "arm64") == 0 ? "arm64" : "amd64";
	void *dir = NULL;
	char *options = xasprintf(
		"{\"master\":\"here\",\"node_selector\":{\"kubernetes.io/arch\":\"%s\"}}", arch);

	assert_int_equal(other_programs_make(&dir), 0);
	rig_expect(r, VERSION, 200, V34);
	rig_expect(r, NAMESPACE, 200, "{}");
	assert_int_equal(resolve(r, options, &facts), 0);
	assert_int_equal(doc_int(doc_table(facts, "binary"), "size", 0), sizeof(Elf64_Ehdr) + 100);
	assert_int_equal(other_programs_remove(&dir), 0);
	rig_expect(r, VERSION, 200, V34);
	rig_expect(r, NAMESPACE, 200, "{}");
	assert_int_equal(resolve(r, options, &facts), -1);
	assert_int_equal(r->err.kind, ERR_NOT_FOUND);
	assert_non_null(strstr(r->err.msg, "node_selector: there is no regatta-"));
	free(options);
	/* Nothing is fetched. */
	options = xasprintf(
		"{\"master\":\"here\",\"agent_image\":\"x\",\"node_selector\":{\"kubernetes.io/arch\":\"%s\"}}",
		arch);
	rig_expect(r, VERSION, 200, V34);
	rig_expect(r, NAMESPACE, 200, "{}");
	assert_int_equal(resolve(r, options, &facts), 0);
	rig_done(r);
	free(options);
}

static void whoever_may_not_see_the_namespace_may_use_it(void **state)
{
	struct rig *r = *state;
	struct doc *facts = NULL;

	rig_expect(r, VERSION, 200, V34);
	rig_expect(r, NAMESPACE, 403, STATUS("no"));
	assert_int_equal(resolve(r, "{\"master\":\"here\"}", &facts), 0);
}

static void refused(struct rig *r, const char *options, enum err_kind kind, const char *words)
{
	struct doc *facts = NULL;

	assert_int_equal(resolve(r, options, &facts), -1);
	if (!strstr(r->err.msg, words))
		fail_msg("'%s' is not in '%s'", words, r->err.msg);
	assert_int_equal(r->err.kind, kind);
}

static void what_cannot_work_is_refused_before_anything_is_made(void **state)
{
	struct rig *r = *state;

	refused(r, "{\"master\":\"here\",\"with_agent\":false,\"needs_agent\":\"output.keep\"}",
		ERR_INVALID,
		"agent = false in [kubernetes]: without the agent in the pods there is nothing "
		"for output.keep");
	refused(r, "{\"master\":\"here\",\"context\":\"x\"}", ERR_INVALID, "no context 'x'");
	rig_expect(r, VERSION, 200, "{\"major\":\"1\",\"minor\":\"28\"}");
	refused(r, "{\"master\":\"here\"}", ERR_INVALID, "Kubernetes 1.28");
	rig_expect(r, VERSION, 401, STATUS("Unauthorized"));
	refused(r, "{\"master\":\"here\"}", ERR_DENIED, "expired");
	rig_expect(r, VERSION, 200, V34);
	rig_expect(r, NAMESPACE, 404, STATUS("none"));
	refused(r, "{\"master\":\"here\"}", ERR_NOT_FOUND, "has no namespace 'team'");
	rig_expect(r, VERSION, 200, V34);
	rig_expect(r, NAMESPACE, 401, STATUS("Unauthorized"));
	refused(r, "{\"master\":\"here\"}", ERR_DENIED, "expired");
	rig_done(r);
}

#define TFJOB                                                                                       \
	"{\"master\":\"here\",\"as\":\"tfjob\",\"kind\":\"TFJob\",\"version\":\"kubeflow.org/v1\"," \
	"\"install\":\"the operator\"}"
#define KINDS "GET /prefix/apis/kubeflow.org/v1 "

static void an_operator_that_is_missing_is_named_before_anything_is_made(void **state)
{
	struct rig *r = *state;
	struct doc *facts = NULL;

	for (int i = 0; i < 3; i++) {
		rig_expect(r, VERSION, 200, V34);
		rig_expect(r, NAMESPACE, 200, "{}");
		rig_expect(
			r, KINDS, i == 0 ? 404 : 200,
			i == 1 ? "{\"resources\":[{\"kind\":\"PyTorchJob\"}]}"
			: i == 2
				? "{\"resources\":[{\"kind\":\"PyTorchJob\"},{\"kind\":\"TFJob\"}]}"
				: STATUS("none"));
		if (i < 2)
			refused(r, TFJOB, ERR_NOT_FOUND,
				"the cluster has no TFJob: install the operator");
		else
			assert_int_equal(resolve(r, TFJOB, &facts), 0);
	}
	rig_done(r);
}

#define QUEUE "{\"master\":\"here\",\"queue\":\"team\"}"
#define KUEUE "GET /prefix/apis/kueue.x-k8s.io "
#define MAY "POST /prefix/apis/authorization.k8s.io/v1/selfsubjectaccessreviews "

static void a_queue_needs_kueue_and_what_may_be_seen_of_it_is_a_fact(void **state)
{
	struct rig *r = *state;
	struct doc *facts = NULL;

	rig_expect(r, VERSION, 200, V34);
	rig_expect(r, NAMESPACE, 200, "{}");
	rig_expect(r, KUEUE, 404, STATUS("none"));
	refused(r, QUEUE, ERR_NOT_FOUND, "the cluster has no Kueue, in whose queue 'team' the run");
	for (int i = 0; i < 2; i++) {
		rig_expect(r, VERSION, 200, V34);
		rig_expect(r, NAMESPACE, 200, "{}");
		rig_expect(r, KUEUE, 200, "{}");
		rig_expect(r, MAY, 201, i ? "{\"status\":{\"allowed\":true}}" : "{\"status\":{}}");
		rig_expect(r, MAY, 201, "{\"status\":{}}");
		assert_int_equal(resolve(r, QUEUE, &facts), 0);
		const struct doc *may = doc_array(facts, "workloads");

		assert_int_equal(may ? may->array.n : 0, i);
		if (i)
			assert_true(str_is(may->array.v[0]->s, "list"));
	}
	rig_done(r);
}

static void an_operators_object_may_have_its_master_in_the_cluster(void **state)
{
	struct rig *r = *state;
	struct doc *facts = NULL;

	rig_expect(r, VERSION, 200, V34);
	rig_expect(r, NAMESPACE, 200, "{}");
	rig_expect(r, KINDS, 200, "{\"resources\":[{\"kind\":\"TFJob\"}]}");
	rig_expect(r, "POST /prefix/api/v1/namespaces/team/persistentvolumeclaims?dryRun=All ", 403,
		   STATUS("no"));
	assert_int_equal(resolve(r,
				 "{\"master\":\"auto\",\"as\":\"tfjob\",\"kind\":\"TFJob\","
				 "\"version\":\"kubeflow.org/v1\"}",
				 &facts),
			 0);
	assert_true(str_is(doc_str(facts, "at", STR("")), "client"));
	rig_done(r);
}

static void the_credentials_are_those_of_the_caller(void **state)
{
	struct rig *r = *state;
	struct doc *all = NULL;

	assert_int_equal(kube_resolver.credentials(&(struct resolve_input){0}, r->a, &all, &r->err),
			 0);
	assert_true(str_is(doc_str(all, "token", STR("")), "tok"));
	setenv("KUBECONFIG", "/nowhere", 1);
	assert_int_equal(kube_resolver.credentials(&(struct resolve_input){0}, r->a, &all, &r->err),
			 -1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		rig_config_test(the_facts_are_server_namespace_version_and_program),
		rig_config_test(for_a_master_in_the_cluster_a_claim_is_made_for_a_trial),
		rig_config_test(pods_on_nodes_of_another_architecture_get_its_program),
		rig_config_test(whoever_may_not_see_the_namespace_may_use_it),
		rig_config_test(what_cannot_work_is_refused_before_anything_is_made),
		rig_config_test(an_operator_that_is_missing_is_named_before_anything_is_made),
		rig_config_test(a_queue_needs_kueue_and_what_may_be_seen_of_it_is_a_fact),
		rig_config_test(an_operators_object_may_have_its_master_in_the_cluster),
		rig_config_test(the_credentials_are_those_of_the_caller),
	};

	return cmocka_run_group_tests_name("resolve", tests, NULL, NULL);
}
