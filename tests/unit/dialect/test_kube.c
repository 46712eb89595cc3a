/* Manifests of Kubernetes become native jobs. */
#include "unit.h"

#include "base/arena.h"
#include "base/err.h"
#include "dialect/dialect.h"
#include "fmt/doc.h"
#include "fmt/schema.h"

static struct arena *arena;
static struct problems ps;
static bool keep_tokens;

static int setup(void **state)
{
	(void)state;
	arena = arena_new();
	ps = (struct problems){0};
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	arena = arena_free(arena);
	return 0;
}

/* Every pod of a manifest keeps its token, which is looked at once and left out of the others. */
static void drop_tokens(struct doc *d)
{
	for (size_t i = 0; d->type == DOC_ARRAY && i < d->array.n; i++)
		drop_tokens(d->array.v[i]);
	size_t left = 0;

	for (size_t i = 0; d->type == DOC_TABLE && i < d->table.n; i++) {
		drop_tokens(d->table.v[i].value);
		if (!str_is(d->table.v[i].key, "automountServiceAccountToken"))
			d->table.v[left++] = d->table.v[i];
	}
	if (d->type == DOC_TABLE)
		d->table.n = left;
}

static struct doc *native(const char *text)
{
	struct doc *all;
	struct err err;

	ps = (struct problems){0};
	if (yaml_parse_documents(str_from(text), arena, &all, &err) < 0)
		fail_msg("%s", err.msg);
	all = dialect_convert(all->array.n == 1 ? all->array.v[0] : all, arena, &ps);
	if (all && !keep_tokens)
		drop_tokens(all);
	return all;
}

static void assert_native(const char *text, const char *json)
{
	const char *made = doc_json_text(arena, native(text));

	for (size_t i = 0; i < ps.n; i++)
		print_message("%d:%d: %s\n", ps.v[i].pos.line, ps.v[i].pos.col, ps.v[i].text);
	assert_int_equal(ps.n, 0);
	assert_string_equal(made, json);
}

static void refused(const char *text, int line, const char *message)
{
	native(text);
	assert_true(ps.n > 0);
	assert_string_equal(ps.v[0].text, message);
	assert_int_equal(ps.v[0].pos.line, line);
}

#define POD "    spec:\n      containers:\n      - {name: main, image: i, command: [run]}\n"

static void a_job_is_a_job_of_as_many_nodes(void **state)
{
	(void)state;
	assert_native(
		"apiVersion: batch/v1\n"
		"kind: Job\n"
		"metadata: {name: Train_MNIST, namespace: team}\n"
		"spec:\n"
		"  completions: 4\n"
		"  parallelism: 4\n"
		"  completionMode: Indexed\n"
		"  backoffLimit: 2\n"
		"  activeDeadlineSeconds: 3600\n"
		"  ttlSecondsAfterFinished: 60\n"
		"  template:\n"
		"    metadata: {labels: {app: x}}\n"
		"    spec:\n"
		"      restartPolicy: Never\n"
		"      containers:\n"
		"      - name: main\n"
		"        image: repo/train:1\n"
		"        command: [python3, train.py]\n"
		"        args: [--epochs, '3']\n",
		"{\"name\":\"train-mnist\",\"max_runtime\":\"3600s\",\"count\":4,\"retries\":2,"
		"\"command\":[\"python3\",\"train.py\",\"--epochs\",\"3\"],\"engine\":\"kubernetes\","
		"\"kubernetes\":{\"namespace\":\"team\",\"image\":\"repo/train:1\",\"pod\":{\"metadata\":"
		"{\"labels\":{\"app\":\"x\"}},\"spec\":{\"restartPolicy\":\"Never\",\"containers\":"
		"[{\"name\":\"main\"}]}},\"object\":{\"spec\":"
		"{\"ttlSecondsAfterFinished\":60}}}}");
}

static void all_pods_that_must_end_well_start_together(void **state)
{
	(void)state;
	const struct doc *d = native("apiVersion: batch/v1\nkind: Job\nspec:\n  parallelism: 2\n"
				     "  completions: 3\n  template:\n" POD);

	assert_int_equal(doc_int(d, "count", 0), 3);
	assert_int_equal(ps.nwarnings, 1);
	assert_string_equal(ps.warnings[0].text,
			    "all 3 pods start together: parallelism is not looked at");
	assert_int_equal(ps.warnings[0].pos.line, 5);
	d = native("apiVersion: batch/v1\nkind: Job\nspec:\n  parallelism: 2\n  template:\n" POD);
	assert_int_equal(doc_int(d, "count", 0), 2);
	assert_int_equal(ps.nwarnings, 0);
}

static void plain_variables_are_env_and_the_others_stay_in_the_pod(void **state)
{
	(void)state;
	const struct doc *d = native(
		"apiVersion: batch/v1\nkind: Job\nspec:\n  template:\n    spec:\n      containers:\n"
		"      - name: main\n        command: [x]\n        env:\n"
		"        - {name: A, value: '1'}\n        - {name: EMPTY}\n"
		"        - {name: KEY, valueFrom: {secretKeyRef: {name: s, key: k}}}\n"
		"        - {name: URL, value: 'http://$(A)'}\n        - {name: a.b, value: c}\n"
		"        envFrom: [{configMapRef: {name: m}}]\n");

	assert_string_equal(doc_json_text(arena, doc_get(d, "env")),
			    "{\"A\":\"1\",\"EMPTY\":\"\"}");
	assert_string_equal(
		doc_json_text(arena, doc_get(doc_get(d, "kubernetes"), "pod")),
		"{\"spec\":{\"containers\":[{\"name\":\"main\",\"env\":[{\"name\":\"KEY\",\"valueFrom\":"
		"{\"secretKeyRef\":{\"name\":\"s\",\"key\":\"k\"}}},{\"name\":\"URL\",\"value\":"
		"\"http://$(A)\"},{\"name\":\"a.b\",\"value\":\"c\"}],\"envFrom\":[{\"configMapRef\":{\"name\":"
		"\"m\"}}]}]}}");
}

static void what_is_asked_for_and_the_limit_of_memory_are_the_roles(void **state)
{
	(void)state;
	const struct doc *d = native(
		"apiVersion: kubeflow.org/v1\nkind: PyTorchJob\nspec:\n  pytorchReplicaSpecs:\n    Worker:\n"
		"      template:\n        spec:\n          containers:\n          - name: pytorch\n"
		"            command: [x]\n            resources:\n"
		"              requests: {cpu: 1500m, memory: 2Gi}\n"
		"              limits: {nvidia.com/gpu: 2, memory: 4G, cpu: 2, rdma/ib: 1}\n");
	const struct doc *worker = doc_get(doc_get(d, "roles"), "worker");

	assert_string_equal(doc_json_text(arena, doc_get(worker, "resources")),
			    "{\"cpus\":1.5,\"memory\":2147483648,\"gpus\":2}");
	assert_int_equal(doc_int(worker, "memory", 0), 4000000000);
	assert_string_equal(
		doc_json_text(arena, doc_get(worker, "pod")),
		"{\"spec\":{\"containers\":[{\"name\":\"pytorch\",\"resources\":{\"limits\":"
		"{\"cpu\":2,\"rdma/ib\":1}}}]}}");
}

static void amounts_that_cannot_be_read_stay_where_they_are(void **state)
{
	(void)state;
	const struct doc *d = native(
		"apiVersion: kubeflow.org/v1\nkind: PyTorchJob\nspec:\n  pytorchReplicaSpecs:\n    Worker:\n"
		"      template:\n        spec:\n          containers:\n          - name: pytorch\n"
		"            resources:\n"
		"              requests: {cpu: xm, memory: 2Zi}\n"
		"              limits: {nvidia.com/gpu: half, memory: -1}\n");
	const struct doc *worker = doc_get(doc_get(d, "roles"), "worker");

	assert_null(doc_get(worker, "resources"));
	assert_null(doc_get(worker, "memory"));
	assert_non_null(strstr(doc_json_text(arena, worker),
			       "\"requests\":{\"cpu\":\"xm\",\"memory\":\"2Zi\"}"));
}

static void simple_volumes_are_volumes_of_the_job(void **state)
{
	(void)state;
	const struct doc *d = native(
		"apiVersion: batch/v1\nkind: Job\nspec:\n  template:\n    spec:\n"
		"      volumes:\n"
		"      - {name: a, hostPath: {path: /efs}}\n"
		"      - {name: b, persistentVolumeClaim: {claimName: c}}\n"
		"      - {name: n, nfs: {server: s, path: /x}}\n"
		"      - {name: e, emptyDir: {}}\n"
		"      - {name: shm, emptyDir: {medium: Memory}}\n"
		"      - {name: two, configMap: {name: m}}\n"
		"      containers:\n      - name: main\n        command: [x]\n        volumeMounts:\n"
		"        - {name: a, mountPath: /a}\n        - {name: b, mountPath: /b, readOnly: true}\n"
		"        - {name: n, mountPath: /n}\n        - {name: e, mountPath: /e}\n"
		"        - {name: shm, mountPath: /dev/shm}\n"
		"        - {name: two, mountPath: /1}\n        - {name: two, mountPath: /2}\n");

	assert_int_equal(ps.n, 0);
	assert_string_equal(
		doc_json_text(arena, doc_get(d, "volumes")),
		"[{\"path\":\"/a\",\"host\":\"/efs\"},{\"path\":\"/b\",\"pvc\":\"c\",\"read_only\":true},"
		"{\"path\":\"/n\",\"nfs\":\"s:/x\"},{\"path\":\"/e\",\"empty\":true}]");
	const char *pod = doc_json_text(arena, doc_get(doc_get(d, "kubernetes"), "pod"));

	assert_non_null(
		strstr(pod, "\"volumes\":[{\"name\":\"shm\",\"emptyDir\":{\"medium\":\"Memory\"}},"
			    "{\"name\":\"two\""));
	assert_null(strstr(pod, "/efs"));
}

static const char paddle[] =
	"apiVersion: batch/v1\nkind: Job\nmetadata:\n  name: paddle-cluster-job\nspec:\n"
	"  parallelism: 3\n  completions: 3\n  template:\n    metadata:\n      name: paddle-cluster-job\n"
	"    spec:\n      volumes:\n      - name: jobpath\n        hostPath:\n          path: /home/admin/efs\n"
	"      containers:\n      - name: trainer\n        image: drinkcode/paddle:k8s-job\n"
	"        command: [\"bin/bash\",  \"-c\", \"/root/start.sh\"]\n        env:\n"
	"        - name: JOB_NAME\n          value: paddle-cluster-job\n"
	"        - name: CONF_PADDLE_PORT\n          value: \"7164\"\n"
	"        volumeMounts:\n        - name: jobpath\n          mountPath: /home/jobpath\n"
	"        ports:\n        - name: jobport\n          hostPort: 30001\n          containerPort: 30001\n"
	"      restartPolicy: Never\n";

static void a_job_with_the_names_of_paddle_is_paddles(void **state)
{
	(void)state;
	assert_native(
		paddle,
		"{\"name\":\"paddle-cluster-job\",\"strategy\":\"paddle\",\"roles\":{\"node\":{\"count\":3,"
		"\"command\":[\"/bin/bash\",\"-c\",\"/root/start.sh\"],\"env\":{\"JOB_NAME\":"
		"\"paddle-cluster-job\",\"CONF_PADDLE_PORT\":\"7164\"},\"pod\":{\"metadata\":{\"name\":"
		"\"paddle-cluster-job\"},\"spec\":{\"containers\":[{\"name\":\"trainer\",\"ports\":[{\"name\":"
		"\"jobport\",\"hostPort\":30001,\"containerPort\":30001}]}],\"restartPolicy\":\"Never\"}}}},"
		"\"volumes\":[{\"path\":\"/home/jobpath\",\"host\":\"/home/admin/efs\"}],\"engine\":"
		"\"kubernetes\",\"kubernetes\":{\"image\":\"drinkcode/paddle:k8s-job\"}}");
}

static void pods_of_a_manifest_keep_their_token_unless_they_say_otherwise(void **state)
{
	static const char key[] = "automountServiceAccountToken";
	const struct doc *d;
	(void)state;

	keep_tokens = true;
	d = native("apiVersion: batch/v1\nkind: Job\nspec:\n  template:\n" POD);
	assert_true(
		doc_bool(doc_get(doc_get(doc_get(d, "kubernetes"), "pod"), "spec"), key, false));
	d = native("apiVersion: batch/v1\nkind: Job\nspec:\n  template:\n" POD
		   "      automountServiceAccountToken: false\n");
	assert_false(
		doc_bool(doc_get(doc_get(doc_get(d, "kubernetes"), "pod"), "spec"), key, true));
	keep_tokens = false;
}

static void a_program_is_looked_for_from_the_containers_directory(void **state)
{
	const struct doc *d;
	(void)state;

	d = native(
		"apiVersion: batch/v1\nkind: Job\nspec:\n  template:\n    spec:\n      containers:\n"
		"      - {name: m, workingDir: /app, command: [./run, a/b]}\n");
	assert_string_equal(doc_json_text(arena, doc_get(d, "command")),
			    "[\"/app/./run\",\"a/b\"]");
	d = native(
		"apiVersion: batch/v1\nkind: Job\nspec:\n  template:\n    spec:\n      containers:\n"
		"      - {name: m, workingDir: /app, command: [run]}\n");
	assert_string_equal(doc_json_text(arena, doc_get(d, "command")), "[\"run\"]");
}

static void an_annotation_names_the_strategy_of_a_job(void **state)
{
	(void)state;
	const struct doc *d = native("apiVersion: batch/v1\nkind: Job\nmetadata:\n  annotations:\n"
				     "    regatta/strategy: paddle\nspec:\n  template:\n" POD);

	assert_string_equal(doc_str(d, "strategy", STR("")).p, "paddle");
	assert_non_null(doc_get(doc_get(d, "roles"), "node"));
	d = native(
		"apiVersion: batch/v1\nkind: Job\nspec:\n  template:\n    metadata: {annotations: "
		"{regatta/strategy: torch}}\n" POD);
	assert_string_equal(doc_str(d, "strategy", STR("")).p, "torch");
	assert_null(doc_get(d, "roles"));
}

#define REPLICA(type, command)                                                                     \
	"    " type                                                                                \
	":\n      replicas: 2\n      restartPolicy: OnFailure\n      template:\n        "          \
	"spec:\n          containers:\n          - {name: c, image: i, command: [" command "]}\n"

static void replica_types_are_roles_in_the_order_of_ranks(void **state)
{
	(void)state;
	const struct doc *d =
		native("apiVersion: kubeflow.org/v1\nkind: PyTorchJob\nmetadata: {name: p}\nspec:\n"
		       "  nprocPerNode: '4'\n  runPolicy: {cleanPodPolicy: None}\n"
		       "  pytorchReplicaSpecs:\n" REPLICA("Worker", "w") REPLICA("Master", "m"));

	assert_int_equal(ps.n, 0);
	assert_string_equal(
		doc_json_text(arena, d),
		"{\"name\":\"p\",\"strategy\":\"torch\",\"roles\":{\"master\":{\"count\":2,\"command\":[\"m\"],"
		"\"processes_per_node\":4,\"pod\":{\"spec\":{\"containers\":[{\"name\":\"c\"}],\"restartPolicy\":"
		"\"OnFailure\"}}},\"worker\":{\"count\":2,\"command\":[\"w\"],\"processes_per_node\":4,\"pod\":"
		"{\"spec\":{\"containers\":[{\"name\":\"c\"}],\"restartPolicy\":\"OnFailure\"}}}},\"engine\":"
		"\"kubernetes\",\"kubernetes\":{\"as\":\"pytorchjob\",\"image\":\"i\",\"object\":{"
		"\"spec\":{\"runPolicy\":{\"cleanPodPolicy\":\"None\"}}}}}");
}

static void every_operators_kind_has_its_strategy(void **state)
{
	static const struct {
		const char *head, *as, *strategy, *roles;
	} cases[] = {
		{"kubeflow.org/v1\nkind: TFJob\nspec:\n  tfReplicaSpecs:\n" REPLICA("PS", "x")
			 REPLICA("Chief", "x") REPLICA("Evaluator", "x"),
		 "tfjob", "tf", "chief ps evaluator "},
		{"kubeflow.org/v1\nkind: TFJob\nspec:\n  tfReplicaSpecs:\n" REPLICA("Master", "x"),
		 "tfjob", "tf", "chief "},
		{"kubeflow.org/v2beta1\nkind: MPIJob\nspec:\n  slotsPerWorker: 2\n  mpiReplicaSpecs:\n" REPLICA(
			 "Launcher", "mpirun") REPLICA("Worker", "x"),
		 "mpijob", "mpi", "launcher worker "},
		{"kubeflow.org/v1\nkind: MPIJob\nspec:\n  mpiReplicaSpecs:\n" REPLICA("Launcher",
										      "mpirun"),
		 "mpijob", "mpi", "launcher "},
		{"kubeflow.org/v1\nkind: MXJob\nspec:\n  mxReplicaSpecs:\n" REPLICA("Worker", "x")
			 REPLICA("Scheduler", "x") REPLICA("Server", "x"),
		 "mxjob", "mxnet", "scheduler server worker "},
		{"kubeflow.org/v1\nkind: PaddleJob\nspec:\n  paddleReplicaSpecs:\n" REPLICA(
			 "Worker", "x"),
		 "paddlejob", "roles", "worker "},
		{"kubeflow.org/v1\nkind: XGBoostJob\nspec:\n  xgbReplicaSpecs:\n" REPLICA(
			 "Worker", "x") REPLICA("Master", "x"),
		 "xgboostjob", "roles", "master worker "},
	};
	(void)state;

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		const struct doc *d = native(arena_printf(arena, "apiVersion: %s", cases[i].head));
		const struct doc *roles = doc_table(d, "roles");
		const char *names = "";

		assert_int_equal(ps.n, 0);
		for (size_t k = 0; k < roles->table.n; k++)
			names = arena_printf(arena, "%s%s ", names, roles->table.v[k].key.p);
		assert_string_equal(doc_str(doc_get(d, "kubernetes"), "as", STR("")).p,
				    cases[i].as);
		assert_string_equal(doc_str(d, "strategy", STR("")).p, cases[i].strategy);
		assert_string_equal(names, cases[i].roles);
	}
}

static void slots_are_processes_of_the_workers(void **state)
{
	(void)state;
	const struct doc *d =
		native("apiVersion: kubeflow.org/v1\nkind: MPIJob\nspec:\n  slotsPerWorker: 2\n"
		       "  mpiReplicaSpecs:\n" REPLICA("Launcher", "mpirun") REPLICA("Worker", "x"));
	const struct doc *roles = doc_get(d, "roles");

	assert_int_equal(doc_int(doc_get(roles, "worker"), "processes_per_node", 0), 2);
	assert_null(doc_get(doc_get(roles, "launcher"), "processes_per_node"));
	assert_string_equal(
		doc_str(doc_get(doc_get(d, "kubernetes"), "object"), "apiVersion", STR("")).p,
		"kubeflow.org/v1");
}

static void images_that_differ_stay_in_the_pods(void **state)
{
	(void)state;
	const struct doc *d = native(
		"apiVersion: kubeflow.org/v1\nkind: PyTorchJob\nspec:\n  pytorchReplicaSpecs:\n"
		"    Master:\n      template:\n        spec:\n          containers:\n"
		"          - {name: log, image: l}\n          - {name: pytorch, image: a, command: [x]}\n"
		"    Worker:\n      replicas: 0\n      template:\n" REPLICA("Evaluator", "x"));
	assert_int_equal(ps.n, 1);
	assert_string_equal(ps.v[0].text, "pytorchReplicaSpecs: a PyTorchJob has no 'Evaluator'");
	d = native(
		"apiVersion: kubeflow.org/v1\nkind: PyTorchJob\nspec:\n  pytorchReplicaSpecs:\n"
		"    Master:\n      template:\n        spec:\n          containers:\n"
		"          - {name: log, image: l}\n          - {name: pytorch, image: a, command: [x]}\n"
		"    Worker:\n      template:\n        spec:\n          containers:\n"
		"          - {name: pytorch, image: b, command: [y]}\n");
	const struct doc *roles = doc_get(d, "roles");

	assert_int_equal(ps.n, 0);
	assert_null(doc_get(doc_get(d, "kubernetes"), "image"));
	assert_string_equal(
		doc_json_text(arena, doc_get(roles, "master")),
		"{\"command\":[\"x\"],\"pod\":{\"spec\":{\"containers\":[{\"name\":\"log\",\"image\":\"l\"},"
		"{\"name\":\"pytorch\",\"image\":\"a\"}]},\"metadata\":{\"annotations\":"
		"{\"kubectl.kubernetes.io/default-container\":\"pytorch\"}}}}");
	assert_string_equal(
		doc_json_text(arena, doc_get(roles, "worker")),
		"{\"command\":[\"y\"],\"pod\":{\"spec\":{\"containers\":[{\"name\":\"pytorch\","
		"\"image\":\"b\"}]},\"metadata\":{\"annotations\":"
		"{\"kubectl.kubernetes.io/default-container\":\"pytorch\"}}}}");
}

static void the_jobs_of_a_jobset_are_roles(void **state)
{
	(void)state;
	assert_native(
		"apiVersion: jobset.x-k8s.io/v1alpha2\nkind: JobSet\nmetadata: {name: s, labels: "
		"{kueue.x-k8s.io/queue-name: q}}\nspec:\n"
		"  successPolicy: {operator: All}\n  replicatedJobs:\n"
		"  - name: leader\n    template:\n      spec:\n        template:\n          spec:\n"
		"            containers: [{name: m, image: i, command: [l]}]\n"
		"  - name: workers\n    replicas: 2\n    template:\n      spec:\n        parallelism: 3\n"
		"        completions: 3\n        template:\n          spec:\n"
		"            containers: [{name: m, image: i, command: [w]}]\n",
		"{\"name\":\"s\",\"strategy\":\"roles\",\"roles\":{\"leader\":{\"command\":[\"l\"],\"pod\":"
		"{\"spec\":{\"containers\":[{\"name\":\"m\"}]}}},\"workers\":{\"count\":6,\"command\":[\"w\"],"
		"\"pod\":{\"spec\":{\"containers\":[{\"name\":\"m\"}]}}}},\"engine\":\"kubernetes\","
		"\"kubernetes\":{\"queue\":\"q\",\"as\":\"jobset\",\"image\":\"i\",\"object\":{"
		"\"spec\":{\"successPolicy\":{\"operator\":\"All\"},\"replicatedJobs\":[{\"name\":\"workers\","
		"\"replicas\":2,\"template\":{\"spec\":{\"parallelism\":3,\"completions\":3}}}]}}}}");
}

static void other_objects_of_the_file_are_warned_of(void **state)
{
	(void)state;
	native("apiVersion: v1\nkind: Service\nmetadata: {name: svc}\n---\napiVersion: batch/v1\nkind: Job\n"
	       "spec:\n  completions: 3\n  template:\n" POD);
	assert_int_equal(ps.n, 0);
	assert_int_equal(ps.nwarnings, 2);
	assert_string_equal(ps.warnings[0].text,
			    "Service 'svc' is not made: `kubectl apply` it before the run");
	assert_int_equal(ps.warnings[0].pos.line, 1);
	assert_string_equal(ps.warnings[1].text,
			    "all 3 pods start together: parallelism is not looked at");
	assert_int_equal(ps.warnings[1].pos.line, 8);
	native("apiVersion: v1\nkind: List\nitems:\n- apiVersion: batch/v1\n  kind: Job\n  spec:\n"
	       "    template:\n      spec:\n        containers: [{name: m, command: [x]}]\n");
	assert_int_equal(ps.n, 0);
}

static void what_is_no_job_is_refused_at_its_line(void **state)
{
	(void)state;
	refused("apiVersion: batch/v1\nkind: CronJob\n", 2,
		"kind 'CronJob' is no job that Regatta runs: it runs a Job, JobSet, PyTorchJob, TFJob, "
		"MPIJob, MXJob, PaddleJob or XGBoostJob");
	refused("apiVersion: batch/v1beta1\nkind: Job\nspec:\n  template:\n" POD, 1,
		"apiVersion 'batch/v1beta1' of a Job: expected batch/v1");
	refused("apiVersion: kubeflow.org/v1alpha2\nkind: MPIJob\n", 1,
		"apiVersion 'kubeflow.org/v1alpha2' of a MPIJob: expected kubeflow.org/v2beta1 or "
		"kubeflow.org/v1");
	refused("apiVersion: batch/v1\nkind: Job\nspec:\n  template:\n" POD
		"---\napiVersion: batch/v1\nkind: Job\nspec:\n  template:\n" POD,
		9, "a second job in the file: run each from a file of its own");
	refused("apiVersion: batch/v1\nkind: Job\n", 1, "a Job needs the table spec");
	refused("apiVersion: batch/v1\nkind: Job\nspec:\n  template: x\n", 4,
		"it needs a pod template");
	refused("apiVersion: batch/v1\nkind: Job\nspec: {}\n", 1, "it needs a pod template");
	refused("apiVersion: batch/v1\nkind: Job\nspec:\n  template:\n    spec: {containers: []}\n",
		5, "the pod template has no containers: spec.containers needs one");
	refused("apiVersion: batch/v1\nkind: Job\nspec:\n  template:\n    spec: {containers: [x]}\n",
		5, "a container is a table, not a string");
	refused("apiVersion: kubeflow.org/v1\nkind: TFJob\nspec: {}\n", 1,
		"a TFJob needs the table spec.tfReplicaSpecs");
	refused("apiVersion: kubeflow.org/v1\nkind: TFJob\nspec:\n  tfReplicaSpecs:\n    Wroker: {}\n",
		5, "tfReplicaSpecs: a TFJob has no 'Wroker': did you mean 'Worker'?");
	refused("apiVersion: kubeflow.org/v1\nkind: TFJob\nspec:\n  tfReplicaSpecs:\n    Worker: 2\n",
		5, "tfReplicaSpecs.Worker is a table, not a whole number");
	refused("apiVersion: kubeflow.org/v1\nkind: TFJob\nspec:\n  tfReplicaSpecs:\n    Worker: {}\n",
		5, "it needs a pod template");
	refused("apiVersion: jobset.x-k8s.io/v1alpha2\nkind: JobSet\nspec: {}\n", 1,
		"a JobSet needs the list spec.replicatedJobs");
	refused("apiVersion: jobset.x-k8s.io/v1alpha2\nkind: JobSet\nspec:\n  replicatedJobs:\n  - {}\n",
		5, "an item of replicatedJobs needs a name and template.spec, that of a Job");
}

static void a_native_file_is_left_alone(void **state)
{
	(void)state;
	assert_native("command: [x]\nkind: y\n", "{\"command\":[\"x\"],\"kind\":\"y\"}");
}

#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(a_job_is_a_job_of_as_many_nodes),
		T(all_pods_that_must_end_well_start_together),
		T(plain_variables_are_env_and_the_others_stay_in_the_pod),
		T(what_is_asked_for_and_the_limit_of_memory_are_the_roles),
		T(amounts_that_cannot_be_read_stay_where_they_are),
		T(simple_volumes_are_volumes_of_the_job),
		T(a_job_with_the_names_of_paddle_is_paddles),
		T(pods_of_a_manifest_keep_their_token_unless_they_say_otherwise),
		T(a_program_is_looked_for_from_the_containers_directory),
		T(an_annotation_names_the_strategy_of_a_job),
		T(replica_types_are_roles_in_the_order_of_ranks),
		T(every_operators_kind_has_its_strategy),
		T(slots_are_processes_of_the_workers),
		T(images_that_differ_stay_in_the_pods),
		T(the_jobs_of_a_jobset_are_roles),
		T(other_objects_of_the_file_are_warned_of),
		T(what_is_no_job_is_refused_at_its_line),
		T(a_native_file_is_left_alone),
	};

	return cmocka_run_group_tests_name("kube", tests, NULL, NULL);
}
