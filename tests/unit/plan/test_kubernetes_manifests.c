/* A job as objects for kubectl: golden files, one for each kind of object. */
#include "../spec/golden.h"

#include "base/err.h"
#include "dialect/dialect.h"
#include "fmt/doc.h"
#include "plan/plan.h"

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

static struct job *load(struct doc *doc, struct problems *ps)
{
	const struct job_rules rules = plan_job_rules();
	struct job *job = arena_new_of(arena, struct job);

	job_load(doc, &rules, arena, job, ps);
	return job;
}

static struct doc *toml(const char *text)
{
	struct doc *doc;
	struct err err;

	if (toml_parse(str_from(text), arena, &doc, &err) < 0)
		fail_msg("%s", err.msg);
	return doc;
}

static const char *manifests(struct doc *doc)
{
	struct problems ps = {0};
	struct job *job = load(doc, &ps);
	struct buf text;
	struct plan p;

	if (ps.n || !plan_make(job, NULL, arena, &p, &ps))
		fail_msg("%s", ps.v[0].text);
	const struct doc *all = plan_manifests(&p, arena, NULL);

	buf_init(&text, 1 << 20);
	for (size_t i = 0; i < all->array.n; i++) {
		buf_addz(&text, i ? "---\n" : "");
		doc_to_yaml(all->array.v[i], &text);
	}
	const char *z = arena_strndup(arena, buf_str(&text).p, text.n);

	buf_release(&text);
	return z;
}

#define HEAD                                                                                             \
	"name = 'ctr'\nengine = 'kubernetes'\ncommand = ['python3', 'train.py']\nimage = 'repo/ctr:1'\n" \
	"env = { BATCH = '512' }\n"

static const struct {
	const char *as, *text;
} jobs[] = {
	{"job",
	 "resources = { cpus = 0.5, gpus = 1, memory = '1GiB' }\nmax_runtime = '2h'\n"
	 "[roles.ps]\nservice = true\n[roles.worker]\ncount = 2\nmemory = '2GiB'\n"
	 "env = { BATCH = '64', API_TOKEN = 'hush' }\n"
	 "[[volumes]]\npath = '/data'\npvc = 'd'\nread_only = true\n[[volumes]]\npath = '/nfs'\n"
	 "nfs = 'h:/x'\n[kubernetes]\nnode_selector = { disk = 'ssd' }\n"
	 "tolerations = ['gpu=yes:NoSchedule', 'spot']\npriority_class = 'low'\n"
	 "image_pull_secrets = ['r']\nservice_account = 'sa'\n"
	 "pod = { spec = { hostNetwork = true, containers = [{ name = 'log', image = 'l' }] } }\n"},
	{"pytorchjob", "count = 3\nprocesses_per_node = 2\n[kubernetes]\nqueue = 'q'\n"},
	{"tfjob",
	 "[roles.chief]\n[roles.ps]\n[roles.worker]\ncount = 2\n[kubernetes]\nscheduler = 'volcano'\n"},
	{"mpijob", "count = 2\nprocesses_per_node = 4\n[kubernetes]\n"},
	{"mxjob", "count = 2\n[kubernetes]\n"},
	{"paddlejob", "count = 2\n[kubernetes]\n"},
	{"xgboostjob", "count = 3\nretries = 2\n[kubernetes]\n"},
	{"jobset", "[roles.ps]\nservice = true\n[roles.worker]\ncount = 2\n[kubernetes]\n"
		   "object = { spec = { network = { enableDNSHostnames = true } } }\n"},
};

static void check(const char *name, const char *text)
{
	const char *dir = golden_path(arena, "golden/manifests");

	golden_check(arena_printf(arena, "%s/%s.yaml", dir, name), str_from(text));
}

static void each_kind_of_object_is_as_in_its_golden_file(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(jobs) / sizeof(jobs[0]); i++) {
		const char *text =
			arena_printf(arena, "%s%sas = '%s'\n", HEAD, jobs[i].text, jobs[i].as);

		check(jobs[i].as, manifests(toml(text)));
	}
}

static void a_manifest_comes_out_as_it_went_in(void **state)
{
	const char *root = getenv("REGATTA_SOURCE_ROOT");
	CLEANUP(buf_release) struct buf text;
	struct problems ps = {0};
	struct err err;
	struct doc *doc = NULL;
	(void)state;

	assert_non_null(root);
	buf_init(&text, 1 << 20);
	if (file_read(arena_printf(arena, "%s/examples/paddle-kubernetes/job.yaml", root), &text,
		      &err) < 0 ||
	    yaml_parse(buf_str(&text), arena, &doc, &err) < 0)
		fail_msg("%s", err.msg);
	check("paddle-example", manifests(dialect_convert(doc, arena, &ps)));
	assert_int_equal(ps.n + ps.nwarnings, 0);
}

static void the_pods_of_a_job_get_the_environment_of_the_strategy(void **state)
{
	(void)state;
	const char *text = manifests(toml(HEAD "strategy = 'torch'\ncount = 12\n"));

	assert_non_null(strstr(text, "- name: RANK\n          value: \"$(REGATTA_INDEX)\"\n"));
	assert_non_null(strstr(text, "- name: WORLD_SIZE\n          value: \"12\"\n"));
	assert_non_null(strstr(text, "- name: MASTER_ADDR\n          value: ctr-worker-0.ctr\n"));
	assert_non_null(strstr(
		text, "- name: REGATTA_NODE\n          value: \"worker-$(REGATTA_INDEX)\"\n"));
	assert_non_null(strstr(text, "\\\"index\\\":$(REGATTA_INDEX)"));
	/* RANK of the second role is not its index: it is left out. */
	text = manifests(toml(HEAD "[roles.a]\ncount = 2\n[roles.b]\ncount = 2\n"));
	text = strstr(text, "name: ctr-b\n");
	assert_null(strstr(text, "- name: RANK\n"));
	assert_non_null(strstr(text, "- name: WORLD_SIZE\n"));
}

static void no_secret_is_printed(void **state)
{
	(void)state;
	const char *text =
		manifests(toml(HEAD "secrets = ['LICENSE']\n[roles.a]\nenv = { LICENSE = 'hush', "
				    "DB_PASSWORD = 'hush' }\n"));

	assert_null(strstr(text, "hush"));
	assert_non_null(strstr(text,
			       "- name: LICENSE\n          valueFrom:\n            secretKeyRef:\n"
			       "              name: ctr-secrets\n              key: LICENSE\n"));
}

static void the_strategy_follows_from_the_kind_of_object(void **state)
{
	static const struct {
		const char *as, *strategy;
	} cases[] = {
		{"job", "single"},	 {"jobset", "single"},	   {"pytorchjob", "torch"},
		{"tfjob", "tf"},	 {"mpijob", "mpi"},	   {"mxjob", "mxnet"},
		{"paddlejob", "paddle"}, {"xgboostjob", "single"},
	};
	(void)state;

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct problems ps = {0};
		struct plan p;
		struct job *job = load(
			toml(arena_printf(arena, HEAD "[kubernetes]\nas = '%s'\n", cases[i].as)),
			&ps);

		assert_int_equal(ps.n, 0);
		assert_true(plan_make(job, NULL, arena, &p, &ps));
		assert_string_equal(p.strategy->name, cases[i].strategy);
	}
	struct problems ps = {0};
	struct job *job =
		load(toml(HEAD "strategy = 'single'\n[kubernetes]\nas = 'pytorchjob'\n"), &ps);

	assert_string_equal(job->strategy, "single");
}

static void a_strategy_that_needs_the_agent_is_refused(void **state)
{
	struct problems ps = {0};
	struct job *job = load(toml(HEAD "strategy = 'mpi'\ncount = 2\n"), &ps);
	struct err err = {0};
	struct plan p;
	(void)state;

	assert_true(plan_make(job, NULL, arena, &p, &ps));
	assert_null(plan_manifests(&p, arena, &err));
	assert_string_equal(err.msg,
			    "strategy 'mpi' starts processes through Regatta's agents, which the "
			    "pods of a manifest do not have: set as = \"mpijob\" in [kubernetes]");
}

static void refused(const char *text, const char *message)
{
	struct problems ps = {0};
	struct job *job = load(toml(text), &ps);
	struct plan p;

	assert_int_equal(ps.n, 0);
	assert_false(plan_make(job, NULL, arena, &p, &ps));
	assert_string_equal(ps.v[0].text, message);
}

static void what_an_operator_cannot_do_is_a_problem(void **state)
{
	(void)state;
	refused(HEAD "[roles.trainer]\n[kubernetes]\nas = 'tfjob'\n",
		"roles.trainer: the roles of a TFJob are chief, worker, ps, evaluator");
	refused(HEAD "[kubernetes]\nas = 'tfjob'\nagent = true\n",
		"kubernetes.agent: the pods of a TFJob run without the agent: leave it out");
	refused(HEAD "[kubernetes]\ntolerations = ['a:Never']\n",
		"kubernetes.tolerations: 'a:Never': write key=value:Effect, key:Effect or key; effects are "
		"NoSchedule, PreferNoSchedule and NoExecute");
	refused(HEAD "[kubernetes]\ntolerations = '=b'\n",
		"kubernetes.tolerations: '=b': write key=value:Effect, key:Effect or key; effects are "
		"NoSchedule, PreferNoSchedule and NoExecute");
}

#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(each_kind_of_object_is_as_in_its_golden_file),
		T(a_manifest_comes_out_as_it_went_in),
		T(the_pods_of_a_job_get_the_environment_of_the_strategy),
		T(no_secret_is_printed),
		T(the_strategy_follows_from_the_kind_of_object),
		T(a_strategy_that_needs_the_agent_is_refused),
		T(what_an_operator_cannot_do_is_a_problem),
	};

	return cmocka_run_group_tests_name("kubernetes_manifests", tests, NULL, NULL);
}
