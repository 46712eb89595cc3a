/* The plan of the Kubernetes engine: which objects, and what is in them. */
#include "stored.h"

#include "plan/kubernetes.h"

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

#define APART "engine = 'kubernetes'\ncommand = ['python3', 'train.py']\n"
#define HEAD APART "master = 'here'\n"
#define TABLE "[kubernetes]\nimage = 'img:1'\n"
#define FACTS "{\"namespace\":\"team\",\"binary\":{\"sha256\":\"ab12\",\"size\":9}}"

static struct doc *parse(const char *text)
{
	struct doc *doc;
	struct err err;

	if (json_parse(str_from(text), arena, &doc, &err) < 0)
		fail_msg("%s: %s", text, err.msg);
	return doc;
}

static struct job *job_of(const char *text, struct problems *ps)
{
	const struct job_rules rules = plan_job_rules();
	struct job *job = arena_new_of(arena, struct job);
	struct doc *doc;
	struct err err;

	if (toml_parse(str_from(text), arena, &doc, &err) < 0)
		fail_msg("%s", err.msg);
	job_load(doc, &rules, arena, job, ps);
	return job;
}

static struct plan plan_with(const char *text, const char *facts)
{
	struct problems ps = {0};
	struct plan p;

	if (!plan_make(job_of(text, &ps), parse(facts), arena, &p, &ps))
		fail_msg("%s", ps.n ? ps.v[0].text : "no plan");
	return p;
}

static struct plan plan_of(const char *text)
{
	return plan_with(text, FACTS);
}

static const struct doc *spec_of(const struct plan *p, const char *kind, const char *name)
{
	for (int i = 0; i < p->nresources; i++)
		if (!strcmp(p->resources[i].kind, kind) && !strcmp(p->resources[i].name, name))
			return parse(p->resources[i].spec);
	fail_msg("no %s '%s'", kind, name);
	return NULL;
}

/* The value at "spec.template.spec.containers.0.image" as JSON. */
static const char *at(const struct doc *d, const char *path)
{
	for (struct str rest = str_from(path); rest.p && d;) {
		struct str part = str_cut(&rest, '.');
		int64_t i;

		if (d->type == DOC_ARRAY)
			d = str_to_i64(part, &i) && (size_t)i < d->array.n ? d->array.v[i] : NULL;
		else
			d = doc_get(d, arena_strndup(arena, part.p, part.n));
	}
	return d ? doc_json_text(arena, d) : "";
}

static void expect(const struct doc *d, const char *path, const char *json)
{
	assert_string_equal(at(d, path), json);
}

static void a_job_is_a_root_a_service_and_one_indexed_job_per_role(void **state)
{
	(void)state;
	struct plan p = plan_of(HEAD TABLE "[roles.ps]\ncount = 2\nservice = true\n"
					   "[roles.w]\ncount = 3\n");

	assert_int_equal(p.nresources, 4);
	assert_true(p.boots);
	for (int i = 0; i < p.nresources; i++) {
		const struct plan_resource *r = &p.resources[i];

		assert_int_equal(r->node, -1);
		assert_int_equal(r->carries_many, !strcmp(r->kind, "kube.job"));
	}
	for (int rank = 0; rank < p.crew.n; rank++)
		assert_string_equal(p.resources[p.resource_of[rank]].name,
				    p.crew.roles[p.crew.members[rank].role].name);
	const struct doc *job = spec_of(&p, "kube.job", "w");

	expect(job, "apiVersion", "\"batch/v1\"");
	expect(job, "metadata.name", "\"<run>-w\"");
	expect(job, "metadata.namespace", "\"team\"");
	expect(job, "spec.completions", "3");
	expect(job, "spec.parallelism", "3");
	expect(job, "spec.completionMode", "\"Indexed\"");
	expect(job, "spec.template.spec.restartPolicy", "\"Never\"");
	expect(job, "spec.template.spec.automountServiceAccountToken", "false");
	expect(spec_of(&p, "kube.service", "service"), "spec.clusterIP", "\"None\"");
}

static void every_object_and_pod_carries_the_labels_of_run_role_and_install(void **state)
{
	(void)state;
	struct plan p = plan_of(HEAD TABLE "labels = { team = 'ads' }\n[roles.w]\ncount = 1\n");

	for (int i = 0; i < p.nresources; i++) {
		const char *labels = at(parse(p.resources[i].spec), "metadata.labels");

		assert_non_null(strstr(labels, "\"regatta/run\":\"<run>\""));
		assert_non_null(strstr(labels, "\"regatta/install\":\"<install>\""));
		assert_non_null(strstr(labels, "\"regatta/role\":"));
		assert_non_null(strstr(labels, "\"team\":\"ads\""));
	}
	assert_non_null(strstr(at(spec_of(&p, "kube.job", "w"), "spec.template.metadata.labels"),
			       "\"regatta/role\":\"w\""));
}

static void a_pod_that_ended_is_made_anew_only_where_lost_nodes_are_replaced(void **state)
{
	(void)state;
	struct plan p = plan_of(HEAD TABLE "[roles.a]\n[roles.b]\non_lost = 'replace'\n");

	expect(spec_of(&p, "kube.job", "a"), "spec.backoffLimitPerIndex", "0");
	expect(spec_of(&p, "kube.job", "b"), "spec.backoffLimitPerIndex", "100");
	expect(spec_of(&p, "kube.job", "b"), "spec.podReplacementPolicy", "\"Failed\"");
}

static void what_nobody_deletes_ends_by_itself(void **state)
{
	(void)state;
	struct plan p = plan_of("max_runtime = '2h'\n" HEAD TABLE "[roles.w]\n");
	const struct doc *job = spec_of(&p, "kube.job", "w");

	expect(job, "spec.activeDeadlineSeconds", "10800");
	expect(job, "spec.ttlSecondsAfterFinished", "86400");
}

static void the_agent_is_fetched_by_the_image_or_brought_by_an_init_container(void **state)
{
	(void)state;
	struct plan p = plan_of(HEAD TABLE "[roles.w]\n");
	const struct doc *job = spec_of(&p, "kube.job", "w");

	expect(job, "spec.template.spec.containers.0.command",
	       "[\"/bin/sh\",\"/var/run/regatta/start\"]");
	expect(job, "spec.template.spec.initContainers", "");
	expect(job, "spec.template.spec.volumes.1.secret.secretName", "\"<run>-w\"");
	expect(job, "metadata.annotations.regatta/program", "\"ab12\"");
	p = plan_of(HEAD TABLE "agent_image = 'agent:1'\n[roles.w]\n");
	job = spec_of(&p, "kube.job", "w");
	expect(job, "spec.template.spec.initContainers.0.image", "\"agent:1\"");
	expect(job, "spec.template.spec.containers.0.command",
	       "[\"/var/lib/regatta/regatta\",\"node-agent\",\"--enrol\",\"/var/run/regatta/enrol.json\"]");
}

static void what_needs_the_agent_is_named(void **state)
{
	static const struct {
		const char *role, *what;
	} cases[] = {
		{"", NULL},
		{"min = 1\nmax = 3\n", "min and max"},
		{"on_lost = 'replace'\n", "on_lost other than fail"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct problems ps = {0};
		struct job *job =
			job_of(arena_printf(arena, HEAD TABLE "agent = false\n[roles.w]\n%s",
					    cases[i].role),
			       &ps);
		const char *what = kube_needs_agent(job, kube_table_of(job, arena), arena);

		assert_int_equal(ps.n, 0);
		assert_int_equal(what != NULL, cases[i].what != NULL);
		if (what)
			assert_non_null(strstr(what, cases[i].what));
	}
}

static void without_an_agent_the_pods_run_the_command_itself(void **state)
{
	(void)state;
	struct plan p = plan_of("env = { A = '1' }\n" HEAD TABLE
				"agent = false\n[roles.w]\nenv = { B = '2' }\n");
	const struct doc *job = spec_of(&p, "kube.job", "w");

	expect(job, "spec.template.spec.containers.0.command", "[\"python3\",\"train.py\"]");
	const char *env = at(job, "spec.template.spec.containers.0.env");

	/* The strategy's, with the names of the pods, and then those of the file. */
	assert_non_null(strstr(
		env, "{\"name\":\"MASTER_ADDR\",\"value\":\"\\u0001-w\\u0002-0.\\u0001\\u0002\"}"));
	assert_non_null(
		strstr(env, ",{\"name\":\"A\",\"value\":\"1\"},{\"name\":\"B\",\"value\":\"2\"}]"));
	expect(job, "spec.template.spec.volumes", "");
	expect(job, "metadata.annotations", "");
	expect(job, "spec.template.metadata.annotations",
	       "{\"kubectl.kubernetes.io/default-container\":\"main\"}");
	assert_true(p.agentless);
	assert_false(plan_of(HEAD TABLE).agentless);
}

static void an_operators_object_carries_all_nodes(void **state)
{
	(void)state;
	struct plan p = plan_of(HEAD TABLE
				"as = 'pytorchjob'\n"
				"object = { spec = { runPolicy = { cleanPodPolicy = 'All' } } }\n");
	const struct doc *job = spec_of(&p, "kube.operator_job", "job");

	assert_int_equal(p.nresources, 2);
	assert_true(p.agentless && p.resources[1].carries_many && p.resources[1].expires);
	for (int i = 0; i < p.crew.n; i++)
		assert_int_equal(p.resource_of[i], 1);
	/* Its pods are read before they are deleted, whatever the file says. */
	expect(job, "spec.runPolicy.cleanPodPolicy", "\"None\"");
	expect(job, "metadata.name", "\"<run>\"");
	p = plan_of(HEAD TABLE "as = 'jobset'\n");
	assert_false(p.resources[1].expires); /* its Jobs cannot be changed */
}

static void the_keys_of_the_table_are_in_the_pods(void **state)
{
	(void)state;
	struct plan p =
		plan_of(HEAD TABLE "node_selector = { zone = 'a' }\nannotations = { x = 'y' }\n"
				   "priority_class = 'low'\nscheduler = 'volcano'\n"
				   "service_account = 'sa'\nqueue = 'research'\n"
				   "image_pull_secrets = ['login']\n"
				   "tolerations = ['gpu:NoSchedule', 'k=v']\n"
				   "[roles.w]\nmemory = '1GiB'\n"
				   "resources = { cpus = 1.5, gpus = 2, memory = '512MiB' }\n");
	const struct doc *job = spec_of(&p, "kube.job", "w");

	expect(job, "spec.template.spec.nodeSelector", "{\"zone\":\"a\"}");
	expect(job, "spec.template.metadata.annotations", "{\"x\":\"y\"}");
	expect(job, "spec.template.spec.priorityClassName", "\"low\"");
	expect(job, "spec.template.spec.schedulerName", "\"volcano\"");
	expect(job, "spec.template.spec.serviceAccountName", "\"sa\"");
	expect(job, "spec.template.spec.automountServiceAccountToken", "true");
	expect(job, "spec.template.spec.imagePullSecrets", "[{\"name\":\"login\"}]");
	expect(job, "spec.template.spec.tolerations",
	       "[{\"key\":\"gpu\",\"operator\":\"Exists\",\"effect\":\"NoSchedule\"},"
	       "{\"key\":\"k\",\"operator\":\"Equal\",\"value\":\"v\"}]");
	expect(job, "spec.template.spec.containers.0.resources",
	       "{\"requests\":{\"cpu\":\"1500m\",\"memory\":\"536870912\"},"
	       "\"limits\":{\"nvidia.com/gpu\":\"2\",\"memory\":\"1073741824\"}}");
	expect(job, "spec.suspend", "true");
	assert_non_null(
		strstr(at(job, "metadata.labels"), "\"kueue.x-k8s.io/queue-name\":\"research\""));
}

static void volumes_are_mounted_into_the_container_of_the_job(void **state)
{
	(void)state;
	struct plan p =
		plan_of(HEAD "[[volumes]]\npath = '/data'\npvc = 'claim'\nread_only = true\n"
			     "[[volumes]]\npath = '/nfs'\nnfs = 'server:/export'\n"
			     "[[volumes]]\npath = '/e'\nempty = true\n"
			     "[[volumes]]\npath = '/h'\nhost = '/mnt'\n"
			     "[[volumes]]\npath = '/c'\nconfig_map = 'cm'\n"
			     "[[volumes]]\npath = '/s'\nsecret = 'se'\n" TABLE "[roles.w]\n");
	const struct doc *job = spec_of(&p, "kube.job", "w");

	expect(job, "spec.template.spec.volumes.2",
	       "{\"name\":\"volume-0\",\"persistentVolumeClaim\":{\"claimName\":\"claim\"}}");
	expect(job, "spec.template.spec.volumes.3.nfs",
	       "{\"server\":\"server\",\"path\":\"/export\"}");
	expect(job, "spec.template.spec.volumes.4.emptyDir", "{}");
	expect(job, "spec.template.spec.volumes.5.hostPath.path", "\"/mnt\"");
	expect(job, "spec.template.spec.volumes.6.configMap.name", "\"cm\"");
	expect(job, "spec.template.spec.volumes.7.secret.secretName", "\"se\"");
	expect(job, "spec.template.spec.containers.0.volumeMounts.2",
	       "{\"name\":\"volume-0\",\"mountPath\":\"/data\",\"readOnly\":true}");
}

static void the_pod_patch_is_merged_lists_by_name(void **state)
{
	(void)state;
	struct plan p = plan_of(HEAD TABLE "[kubernetes.pod.spec]\nhostIPC = true\n"
					   "[[kubernetes.pod.spec.containers]]\nname = 'main'\n"
					   "imagePullPolicy = 'Never'\n"
					   "[[kubernetes.pod.spec.containers]]\nname = 'side'\n"
					   "image = 'side:1'\n"
					   "[roles.w]\n");
	const struct doc *job = spec_of(&p, "kube.job", "w");

	expect(job, "spec.template.spec.hostIPC", "true");
	expect(job, "spec.template.spec.containers.0.imagePullPolicy", "\"Never\"");
	expect(job, "spec.template.spec.containers.0.image", "\"img:1\"");
	expect(job, "spec.template.spec.containers.1.image", "\"side:1\"");
}

static void a_job_without_an_image_is_refused(void **state)
{
	struct problems ps = {0};
	struct plan p;

	(void)state;
	assert_false(plan_make(job_of(HEAD "[roles.w]\n", &ps), NULL, arena, &p, &ps));
	assert_non_null(strstr(ps.v[0].text, "needs a container image"));
	ps = (struct problems){0};
	assert_false(plan_make(job_of(HEAD "[roles.a]\nimage = 'x'\n[roles.w]\n", &ps), NULL, arena,
			       &p, &ps));
	ps = (struct problems){0};
	assert_true(plan_make(job_of(HEAD "[roles.w]\nimage = 'x'\n", &ps), NULL, arena, &p, &ps));
}

static void a_pod_patch_that_is_no_table_is_a_problem(void **state)
{
	struct problems ps = {0};

	(void)state;
	job_of(HEAD TABLE "pod = 'x'\n", &ps);
	assert_int_equal(ps.n, 1);
	assert_non_null(strstr(ps.v[0].text, "expected a table"));
}

static void the_patch_is_kept_with_the_stored_plan(void **state)
{
	struct plan p = plan_of(HEAD TABLE "[kubernetes.pod.spec]\nhostIPC = true\n[roles.w]\n");
	struct plan q = stored_back(stored_text(&p, arena), arena);

	(void)state;
	assert_string_equal(doc_json_text(arena, kube_table_of(q.job, arena)->pod),
			    "{\"spec\":{\"hostIPC\":true}}");
}

/* ---- a master in the cluster ---- */

#define BINARY "\"namespace\":\"team\",\"binary\":{\"sha256\":\"ab12\",\"size\":2000001}"
#define CLIENT "{\"at\":\"client\"," BINARY "}"
#define THERE                                                                                      \
	"{" BINARY ",\"adopted\":[{\"name\":\"root\",\"id\":\"u-root\",\"age_ms\":0},"             \
	"{\"name\":\"master\",\"id\":\"u-master\",\"age_ms\":7}]}"

static int index_of(const struct plan *p, const char *name)
{
	for (int i = 0; i < p->nresources; i++)
		if (!strcmp(p->resources[i].name, name))
			return i;
	return -1;
}

static void the_client_makes_a_master_and_hands_the_run_over(void **state)
{
	static const char *const names[] = {"root",    "account", "role",
					    "binding", "program", "master"};
	struct plan p = plan_with(APART "count = 3\n" TABLE, CLIENT);
	const struct plan_resource *master = &p.resources[p.nresources - 1];

	(void)state;
	assert_true(p.hands_over);
	assert_int_equal(p.crew.n, 0);
	assert_int_equal(p.nresources, 6);
	for (int i = 0; i < p.nresources; i++) {
		assert_string_equal(p.resources[i].name, names[i]);
		assert_int_equal(p.resources[i].master, i == 5);
		assert_int_equal(p.resources[i].expires, i == 5);
	}
	assert_int_equal(master->nneeds, 5);
	assert_true(plan_keeps_results(&p));
	assert_int_equal(plan_results(&p, arena).there_ms, p.job->output.retention_ms);
	/* Those that cannot be copied are kept in the same way. */
	p = plan_with(APART TABLE "[output]\ns3 = \"s3://b/x\"\n", THERE);
	assert_string_equal(plan_results(&p, arena).url, "s3://b/x/");
	assert_int_equal(plan_results(&p, arena).there_ms, p.job->output.retention_ms);
	p = plan_of(HEAD TABLE);
	assert_false(plan_keeps_results(&p));
}

static void the_master_finds_what_the_client_made_and_makes_the_rest(void **state)
{
	struct plan p = plan_with(APART "count = 2\n" TABLE, THERE);

	(void)state;
	assert_false(p.hands_over);
	assert_int_equal(p.crew.n, 2);
	assert_string_equal(p.resources[index_of(&p, "root")].id, "u-root");
	assert_true(p.resources[index_of(&p, "root")].shared);
	assert_string_equal(p.resources[index_of(&p, "master")].id, "u-master");
	assert_null(p.resources[index_of(&p, "service")].id);
	assert_true(p.resources[p.nresources - 1].carries_many);
	assert_true(plan_keeps_results(&p));
}

static void a_role_may_have_the_name_of_what_every_run_has(void **state)
{
	static const char *const roles =
		"[roles.root]\n[roles.service]\n[roles.master]\n[roles.account]\n[roles.job-master]\n";
	struct plan p = plan_with(arena_printf(arena, APART TABLE "%s", roles), THERE), q;

	(void)state;
	assert_int_equal(p.crew.n, 5);
	for (int rank = 0; rank < p.crew.n; rank++) {
		const struct plan_resource *job = &p.resources[p.resource_of[rank]];
		const char *role = p.crew.roles[p.crew.members[rank].role].name;

		assert_string_equal(job->kind, "kube.job");
		assert_null(job->id);
		assert_string_equal(
			at(spec_of(&p, "kube.job", job->name), "metadata.labels.regatta/role"),
			arena_printf(arena, "\"%s\"", role));
	}
	assert_string_equal(p.resources[index_of(&p, "root")].kind, "kube.root");
	assert_string_equal(p.resources[index_of(&p, "master")].id, "u-master");
	/* The plan of a master that is started again is the same. */
	q = stored_back(stored_text(&p, arena), arena);
	for (int rank = 0; rank < p.crew.n; rank++)
		assert_int_equal(q.resource_of[rank], p.resource_of[rank]);
}

static void the_masters_account_reaches_no_secret_of_others(void **state)
{
	struct plan p = plan_with(APART TABLE "[roles.ps]\n[roles.w]\n", CLIENT);
	const struct doc *rules = doc_array(spec_of(&p, "kube.role", "role"), "rules");
	const struct doc *account = spec_of(&p, "kube.account", "account");
	int named = 0;

	(void)state;
	expect(account, "automountServiceAccountToken", "false");
	expect(spec_of(&p, "kube.binding", "binding"), "subjects.0.name",
	       at(account, "metadata.name"));
	for (size_t i = 0; i < rules->array.n; i++) {
		const struct doc *rule = rules->array.v[i];

		if (strcmp(at(rule, "resources.0"), "\"secrets\"") != 0)
			continue;
		if (strcmp(at(rule, "verbs"), "[\"create\"]") == 0)
			continue;
		named++;
		expect(rule, "resourceNames", "[\"<run>-ps\",\"<run>-w\"]");
	}
	assert_int_equal(named, 1);
}

static const struct doc *rule_for(const struct doc *rules, const char *resource, const char *verb)
{
	for (size_t i = 0; i < rules->array.n; i++)
		if (!strcmp(at(rules->array.v[i], "resources.0"), resource) &&
		    strstr(at(rules->array.v[i], "verbs"), verb))
			return rules->array.v[i];
	return NULL;
}

static void the_masters_account_has_what_an_operators_object_needs_and_no_more(void **state)
{
	static const char *const none[] = {"\"secrets\"", "\"services\""};
	struct plan p = plan_with(APART TABLE "as = 'tfjob'\n", CLIENT);
	const struct doc *rules = doc_array(spec_of(&p, "kube.role", "role"), "rules");
	const struct doc *made = rule_for(rules, "\"tfjobs\"", "create");

	(void)state;
	expect(made, "apiGroups", "[\"kubeflow.org\"]");
	expect(made, "verbs", "[\"create\"]"); /* which no name can limit */
	expect(rule_for(rules, "\"tfjobs\"", "patch"), "resourceNames", "[\"<run>\"]");
	expect(rule_for(rules, "\"tfjobs\"", "patch"), "verbs", "[\"get\",\"patch\",\"delete\"]");
	expect(rule_for(rules, "\"jobs\"", "get"), "resourceNames", "[\"<run>-regatta\"]");
	assert_null(rule_for(rules, "\"jobs\"", "create"));
	for (size_t i = 0; i < 2; i++)
		assert_null(rule_for(rules, none[i], ""));
	p = plan_with(APART TABLE, CLIENT);
	assert_null(
		rule_for(doc_array(spec_of(&p, "kube.role", "role"), "rules"), "\"tfjobs\"", ""));
	/* there */
	p = plan_with(APART TABLE "as = 'tfjob'\n", THERE);
	assert_non_null(p.resources[index_of(&p, "root")].id);
	assert_string_equal(p.resources[index_of(&p, "root")].id, "u-root");
	assert_true(p.resources[index_of(&p, "master")].shared);
	assert_null(p.resources[index_of(&p, "job")].id);
	assert_int_equal(p.crew.n, 1);
}

/* ---- one that serves a suite ---- */

#define CARRIES "\"carries\":true,\"runs\":2,"

static const struct doc *role_rules(const struct plan *p)
{
	return doc_array(spec_of(p, "kube.role", "role"), "rules");
}

/* Rule: the account of a master that serves a suite reaches what its runs make, by their names, and no more. */
static void the_account_of_a_suites_master_reaches_what_its_runs_make(void **state)
{
	struct plan p = plan_with(APART TABLE "[roles.ps]\n[roles.w]\n",
				  "{\"at\":\"client\"," CARRIES BINARY "}");

	(void)state;
	assert_true(p.hands_over && p.carries);
	expect(rule_for(role_rules(&p), "\"secrets\"", "patch"), "resourceNames",
	       "[\"<run>-1-ps\",\"<run>-2-ps\",\"<run>-1-w\",\"<run>-2-w\"]");
	expect(rule_for(role_rules(&p), "\"configmaps\"", "delete"), "resourceNames",
	       "[\"<run>\"]");
	p = plan_with(APART TABLE "as = 'tfjob'\n", "{\"at\":\"client\"," CARRIES BINARY "}");
	expect(rule_for(role_rules(&p), "\"tfjobs\"", "patch"), "resourceNames",
	       "[\"<run>-1\",\"<run>-2\"]");
}

static void a_suites_master_finds_what_was_made_for_it(void **state)
{
	struct plan p =
		plan_with(APART TABLE,
			  "{" CARRIES BINARY ",\"adopted\":[{\"name\":\"root\",\"id\":\"u-root\"},"
			  "{\"name\":\"master\",\"id\":\"u-master\"}]}");

	(void)state;
	assert_true(p.carries && !p.hands_over);
	assert_int_equal(p.crew.n, 0);
	assert_string_equal(p.resources[index_of(&p, "root")].id, "u-root");
	assert_string_equal(p.resources[index_of(&p, "master")].id, "u-master");
	assert_int_equal(index_of(&p, "service"), -1);
}

/* Rule: the master and what it needs are those of the run that carries the suite; its other runs have its root. */
static void a_run_of_a_suite_has_only_the_root_of_its_carrier(void **state)
{
	struct plan p = plan_with(APART TABLE "[roles.master]\n",
				  "{\"carried\":true," BINARY
				  ",\"adopted\":[{\"name\":\"root\",\"id\":\"u-root\"},"
				  "{\"name\":\"master\",\"id\":\"u-master\"}]}");

	(void)state;
	assert_false(p.carries || p.hands_over);
	assert_int_equal(p.crew.n, 1);
	assert_int_equal(p.nresources, 3);
	assert_string_equal(p.resources[0].id, "u-root");
	assert_true(p.resources[0].shared);
	assert_string_equal(p.resources[1].kind, "kube.service");
	assert_string_equal(p.resources[2].kind, "kube.job");
	assert_null(p.resources[2].id); /* that role is not the master of the carrier */
	assert_true(plan_keeps_results(&p));
}

static bool share(const char *x, const char *y)
{
	struct plan p = plan_with(x, CLIENT), q = plan_with(y, CLIENT);

	return plan_same_master(&p, &q, arena);
}

static void runs_that_need_the_same_of_a_cluster_may_share_a_master(void **state)
{
	(void)state;
	assert_true(share(APART TABLE, APART "count = 7\nenv = { A = '1' }\n" TABLE));
	assert_true(share(APART TABLE, APART "[kubernetes]\nimage = 'other:1'\n"));
	assert_false(share(APART TABLE, APART TABLE "agent_image = 'agent:1'\n"));
	assert_false(share(APART TABLE, APART TABLE "as = 'tfjob'\n"));
	assert_false(share(APART TABLE, APART TABLE "[roles.ps]\n"));
	assert_false(share(APART TABLE, APART TABLE "[output]\nretention = '2d'\n"));
	assert_false(share(APART TABLE, APART TABLE "[output]\ns3 = 's3://b/x'\n"));
	assert_false(share(HEAD TABLE, HEAD TABLE));
}

static void the_masters_account_sees_of_its_queue_what_its_user_sees(void **state)
{
	static const char *const jobs[] = {APART TABLE "queue = 'team'\n",
					   APART TABLE "queue = 'team'\nas = 'tfjob'\n"};
	const char *facts = "{\"at\":\"client\",\"workloads\":[\"list\"]," BINARY "}";

	(void)state;
	for (size_t i = 0; i < sizeof(jobs) / sizeof(jobs[0]); i++) {
		struct plan p = plan_with(jobs[i], facts);
		const struct doc *rule =
			rule_for(doc_array(spec_of(&p, "kube.role", "role"), "rules"),
				 "\"workloads\"", "list");

		expect(rule, "apiGroups", "[\"kueue.x-k8s.io\"]");
		expect(rule, "verbs", "[\"list\"]");
		p = plan_with(jobs[i], CLIENT);
		assert_null(rule_for(doc_array(spec_of(&p, "kube.role", "role"), "rules"),
				     "\"workloads\"", ""));
	}
	struct plan p = plan_with(APART TABLE, facts);

	assert_null(rule_for(doc_array(spec_of(&p, "kube.role", "role"), "rules"), "\"workloads\"",
			     ""));
}

static void the_masters_pod_has_the_program_in_parts_or_from_an_image(void **state)
{
	struct plan p = plan_with(APART TABLE, CLIENT);
	const struct doc *job = spec_of(&p, "kube.master", "master");
	const struct doc *pod = doc_table(doc_table(doc_table(job, "spec"), "template"), "spec");

	(void)state;
	expect(pod, "containers.0.image", "\"img:1\"");
	expect(pod, "containers.0.command.0", "\"/bin/sh\"");
	expect(pod, "volumes.2.projected.sources.2.configMap.name", "\"<run>-regatta-program-02\"");
	expect(pod, "volumes.2.projected.sources.3", "");
	expect(pod, "volumes.0.emptyDir", "{}");
	expect(pod, "serviceAccountName", "\"<run>-regatta\"");
	expect(pod, "automountServiceAccountToken", "true");
	expect(spec_of(&p, "kube.program", "program"), "data.size", "\"2000001\"");
	p = plan_with(APART TABLE "agent_image = 'regatta:1'\n", CLIENT);
	job = spec_of(&p, "kube.master", "master");
	assert_int_equal(index_of(&p, "program"), -1);
	expect(job, "spec.template.spec.containers.0.image", "\"regatta:1\"");
	expect(job, "spec.template.spec.containers.0.command.0", "\"/regatta\"");
	expect(job, "spec.template.spec.volumes.2", "");
}

static void the_master_has_a_disk_of_its_own_where_the_cluster_makes_one(void **state)
{
	struct plan p =
		plan_with(APART TABLE, "{\"at\":\"client\",\"storage_class\":\"fast\"," BINARY "}");

	(void)state;
	expect(spec_of(&p, "kube.claim", "claim"), "spec.storageClassName", "\"fast\"");
	expect(spec_of(&p, "kube.master", "master"),
	       "spec.template.spec.volumes.0.persistentVolumeClaim.claimName",
	       at(spec_of(&p, "kube.claim", "claim"), "metadata.name"));
}

static void a_master_that_nobody_deletes_ends_after_its_results_were_kept(void **state)
{
	struct plan p = plan_with(APART "max_runtime = '1h'\n" TABLE "[output]\nretention = '2d'\n",
				  CLIENT);
	const struct doc *job = spec_of(&p, "kube.master", "master");

	(void)state;
	/* max_runtime, an hour, and the time that results are kept */
	expect(job, "spec.activeDeadlineSeconds", "180000");
	expect(job, "metadata.annotations.regatta/kept", "\"172800\"");
	expect(job, "spec.podReplacementPolicy", "\"Failed\"");
}

static void what_a_master_in_the_cluster_cannot_do_is_a_problem(void **state)
{
	static const struct {
		const char *job, *words;
	} bad[] = {
		{APART TABLE "[roles.regatta]\n", "uses this name for itself"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		struct problems ps = {0};
		struct plan p;

		assert_false(plan_make(job_of(bad[i].job, &ps), parse(CLIENT), arena, &p, &ps));
		if (!strstr(ps.v[ps.n - 1].text, bad[i].words))
			fail_msg("'%s' is not in '%s'", bad[i].words, ps.v[ps.n - 1].text);
	}
}

#define T(fn) cmocka_unit_test_setup_teardown(fn, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(a_job_is_a_root_a_service_and_one_indexed_job_per_role),
		T(every_object_and_pod_carries_the_labels_of_run_role_and_install),
		T(a_pod_that_ended_is_made_anew_only_where_lost_nodes_are_replaced),
		T(what_nobody_deletes_ends_by_itself),
		T(the_agent_is_fetched_by_the_image_or_brought_by_an_init_container),
		T(what_needs_the_agent_is_named),
		T(without_an_agent_the_pods_run_the_command_itself),
		T(an_operators_object_carries_all_nodes),
		T(the_keys_of_the_table_are_in_the_pods),
		T(volumes_are_mounted_into_the_container_of_the_job),
		T(the_pod_patch_is_merged_lists_by_name),
		T(a_job_without_an_image_is_refused),
		T(a_pod_patch_that_is_no_table_is_a_problem),
		T(the_patch_is_kept_with_the_stored_plan),
		T(the_client_makes_a_master_and_hands_the_run_over),
		T(the_master_finds_what_the_client_made_and_makes_the_rest),
		T(a_role_may_have_the_name_of_what_every_run_has),
		T(the_masters_account_reaches_no_secret_of_others),
		T(the_masters_account_has_what_an_operators_object_needs_and_no_more),
		T(the_masters_account_sees_of_its_queue_what_its_user_sees),
		T(the_account_of_a_suites_master_reaches_what_its_runs_make),
		T(a_suites_master_finds_what_was_made_for_it),
		T(a_run_of_a_suite_has_only_the_root_of_its_carrier),
		T(runs_that_need_the_same_of_a_cluster_may_share_a_master),
		T(the_masters_pod_has_the_program_in_parts_or_from_an_image),
		T(the_master_has_a_disk_of_its_own_where_the_cluster_makes_one),
		T(a_master_that_nobody_deletes_ends_after_its_results_were_kept),
		T(what_a_master_in_the_cluster_cannot_do_is_a_problem),
	};

	return cmocka_run_group_tests_name("kubernetes", tests, NULL, NULL);
}
