#include "../spec/golden.h"

#include "metrics/extract.h"
#include "metrics/stats.h"
#include "spec/secret.h"

/* Defaults. */

static void a_command_is_all_a_job_needs(void **state)
{
	CLEANUP(arena_freep) struct arena *a = arena_new();
	(void)state;

	struct job j = good_job(a, "command = ['true']");
	assert_string_equal(j.name, JOB_DEFAULT_NAME);
	assert_string_equal(j.engine, "local");
	assert_string_equal(j.strategy, "");
	assert_null(j.source);
	assert_int_equal(j.count, 1);
	assert_int_equal(j.command.n, 1);
	assert_string_equal(j.command.v[0], "true");
	assert_int_equal(j.env.n, 0);
	assert_int_equal(j.roles.n, 0);
	assert_int_equal(j.data.n, 0);
	assert_int_equal(j.metrics.n, 0);
	assert_int_equal(j.output.keep.n, 0);
	assert_null(j.output.s3);
	assert_null(j.base_dir);
}

static void limits_that_were_not_written_have_their_defaults(void **state)
{
	CLEANUP(arena_freep) struct arena *a = arena_new();
	(void)state;

	struct job j = good_job(a, "command = ['true']");
	assert_int_equal(j.max_runtime_ms, 0);
	assert_true(j.max_cost == 0.0);
	assert_int_equal(j.sample_ms, 1000);
	assert_string_equal(j.data_prefix, "**metrics_data: ");
	assert_int_equal(j.timeouts.launch_ms, 300000);
	assert_int_equal(j.timeouts.gather_ms, 120000);
	assert_int_equal(j.timeouts.serve_ms, 120000);
	assert_int_equal(j.timeouts.grace_ms, 10000);
	assert_int_equal(j.timeouts.collect_ms, 300000);
	assert_int_equal(j.timeouts.lease_ms, 1800000);
	assert_int_equal(j.timeouts.lost_ms, 15000);
	assert_int_equal(j.policy.retries, 0);
	assert_int_equal(j.policy.retry_on.n, 0);
	assert_int_equal(j.policy.on_lost, LOST_FAIL);
	assert_int_equal(j.policy.min, 1);
	assert_int_equal(j.policy.max, 1);
}

static void what_to_do_about_failed_and_lost_nodes_arrives(void **state)
{
	CLEANUP(arena_freep) struct arena *a = arena_new();
	(void)state;

	struct job j =
		good_job(a, "command = 'x'\ncount = 4\nmin = 2\nmax = 8\nretries = 3\n"
			    "retry_on = [75, 137]\non_lost = 'shrink'\ntimeouts.lost = '1m'\n");
	assert_int_equal(j.policy.min, 2);
	assert_int_equal(j.policy.max, 8);
	assert_int_equal(j.policy.retries, 3);
	assert_int_equal(j.policy.retry_on.n, 2);
	assert_int_equal(j.policy.retry_on.v[1], 137);
	assert_int_equal(j.policy.on_lost, LOST_SHRINK);
	assert_int_equal(j.timeouts.lost_ms, 60000);
	/* One code needs no list; a role has its own; count follows min. */
	j = good_job(a, "command = 'x'\n[roles.a]\nmin = 3\nmax = 5\nretries = 1\nretry_on = 7\n"
			"on_lost = 'replace'\n[roles.b]\ncount = 2\n");
	assert_int_equal(job_role(&j, 0)->count, 3);
	assert_int_equal(job_role(&j, 0)->policy.retry_on.v[0], 7);
	assert_int_equal(job_role(&j, 0)->policy.on_lost, LOST_REPLACE);
	assert_int_equal(job_role(&j, 1)->policy.min, 2);
	assert_int_equal(job_role(&j, 1)->policy.max, 2);
}

static void bounds_that_leave_no_room_are_problems(void **state)
{
	(void)state;
	one_problem("command = 'x'\nmin = 5\nmax = 3\n", 2, 1, "min is 5, but max is only 3");
	one_problem("command = 'x'\ncount = 2\nmin = 3\nmax = 5\n", 2, 1,
		    "count is 2, but min is 3");
	one_problem("command = 'x'\n[roles.a]\ncount = 9\nmax = 5\n", 3, 1,
		    "roles.a.count is 9, but roles.a.max is only 5");
	one_problem("command = 'x'\nretry_on = [1]\n", 2, 1,
		    "retry_on says when to try again, but not how often: add retries = 1, say");
	one_problem("command = 'x'\nretries = 1\nretry_on = [1, 300]\n", 3, 16,
		    "retry_on[1]: expected whole numbers from 1 to 255, got the whole number 300");
	one_problem("command = 'x'\nretries = 1\nretry_on = ['1']\n", 3, 13,
		    "retry_on[0]: expected a whole number, got the string \"1\"");
	one_problem(
		"command = 'x'\nretries = 1\n[roles.a]\n", 2, 1,
		"retries has no effect beside roles: write it in the role, as in roles.a.retries");
}

static void processes_may_be_as_many_as_a_node_has_gpus_or_cpus(void **state)
{
	struct arena *a = arena_new();
	struct job j = good_job(a, "command = 'x'\nprocesses_per_node = 'gpus'\n");

	(void)state;
	assert_int_equal(j.processes, 1); /* the machine tells it later */
	assert_int_equal(j.processes_by, PROCESSES_GPUS);
	j = good_job(a, "command = 'x'\nprocesses_per_node = 'cpus'\nresources = { cpus = 2.5 }\n");
	assert_int_equal(j.processes, 2);
	assert_int_equal(j.processes_by, PROCESSES_NUMBER);
	j = good_job(a, "command = 'x'\nresources = { gpus = 3 }\n[roles.a]\n"
			"processes_per_node = 'gpus'\n");
	assert_int_equal(job_role(&j, 0)->processes, 3);
	assert_int_equal(job_role(&j, 0)->processes_by, PROCESSES_NUMBER);
	one_problem("command = 'x'\nprocesses_per_node = 'gpu'\n", 2, 22,
		    "processes_per_node: expected a whole number, or gpus or cpus, got the string "
		    "\"gpu\"");
	one_problem("command = 'x'\nprocesses_per_node = 'gpus'\nresources = { gpus = 257 }\n", 2,
		    22, "processes_per_node would be 257: 256 are possible");
	arena_free(a);
}

static void processes_have_limits_and_share_no_terminal(void **state)
{
	(void)state;
	one_problem(
		"command = 'x'\nprocesses_per_node = 0\n", 2, 22,
		"processes_per_node: expected a whole number from 1 to 256, got the whole number 0");
	one_problem(
		"command = 'x'\npty = true\nprocesses_per_node = 2\n", 3, 22,
		"processes_per_node is 2, but pty = true is for one process: leave one of them out");
	one_problem(
		"command = 'x'\npty = true\n[roles.a]\nprocesses_per_node = 2\n", 4, 22,
		"roles.a.processes_per_node is 2, but pty = true is for one process: leave one of "
		"them out");
	one_problem("command = 'x'\nprocesses_per_node = 2\n[roles.a]\n", 2, 1,
		    "processes_per_node has no effect beside roles: write it in the role, as in "
		    "roles.a.processes_per_node");
}

static const char full[] = "name = 'ctr-ps'\n"
			   "engine = 'aws.ec2'\n"
			   "strategy = 'pserver'\n"
			   "source = './ctr'\n"
			   "max_runtime = '2h'\n"
			   "max_cost = 20\n"
			   "sample_every = '5s'\n"
			   "metric_prefix = 'M '\n"
			   "command = 'python3 -c \"a b\"'\n"
			   "env = { BATCH = '512', N = 5, ON = true }\n"
			   "[roles.pserver]\n"
			   "count = 2\n"
			   "port = 5436\n"
			   "service = true\n"
			   "instance_type = ['c5.2xlarge', 'c5a.2xlarge']\n"
			   "[roles.trainer]\n"
			   "count = 4\n"
			   "command = ['python3', 'train.py']\n"
			   "after = 'pserver'\n"
			   "ready_when = 'finished'\n"
			   "image = 'myrepo/ctr:1'\n"
			   "instance_type = 'g5.xlarge'\n"
			   "spot = true\n"
			   "memory = '2GiB'\n"
			   "env = { X = 'y' }\n"
			   "[[data]]\n"
			   "src = 's3://bucket/criteo/'\n"
			   "shard = true\n"
			   "[metrics.loss]\n"
			   "pattern = 'loss=(?<value>[-+.0-9eE]+)'\n"
			   "better = 'lower'\n"
			   "[metrics.'val/acc_1.5-x']\n"
			   "pattern = 'acc=(.*)'\n"
			   "[output]\n"
			   "keep = 'model/**'\n"
			   "s3 = 's3://bucket/results/'\n"
			   "[timeouts]\n"
			   "launch = '1m'\n"
			   "gather = '2m'\n"
			   "serve = '3m'\n"
			   "grace = 0\n"
			   "collect = '5m'\n"
			   "lease = '6m'\n";

static void every_key_of_the_job_arrives(void **state)
{
	CLEANUP(arena_freep) struct arena *a = arena_new();
	(void)state;

	struct job j = good_job(a, full);
	assert_string_equal(j.name, "ctr-ps");
	assert_string_equal(j.engine, "aws.ec2");
	assert_int_equal(j.engine_pos.line, 2);
	assert_string_equal(j.strategy, "pserver");
	assert_int_equal(j.strategy_pos.line, 3);
	assert_string_equal(j.source, "./ctr");
	assert_int_equal(j.source_pos.line, 4);
	assert_int_equal(j.max_runtime_ms, 7200000);
	assert_true(j.max_cost == 20.0);
	assert_int_equal(j.sample_ms, 5000);
	assert_string_equal(j.data_prefix, "M ");
	assert_int_equal(j.command.n, 3);
	assert_string_equal(j.command.v[2], "a b");
	assert_int_equal(j.env.n, 3);
	assert_string_equal(j.env.v[1].value, "5");
	assert_string_equal(j.env.v[2].value, "true");
	assert_string_equal(j.output.keep.v[0], "model/**");
	assert_string_equal(j.output.s3, "s3://bucket/results/");
	assert_int_equal(j.output.s3_pos.line, 36);
	assert_int_equal(j.timeouts.launch_ms, 60000);
	assert_int_equal(j.timeouts.gather_ms, 120000);
	assert_int_equal(j.timeouts.serve_ms, 180000);
	assert_int_equal(j.timeouts.grace_ms, 0);
	assert_int_equal(j.timeouts.collect_ms, 300000);
	assert_int_equal(j.timeouts.lease_ms, 360000);
}

static void every_key_of_a_role_arrives(void **state)
{
	CLEANUP(arena_freep) struct arena *a = arena_new();
	(void)state;

	struct job j = good_job(a, full);
	assert_int_equal(j.roles.n, 2);
	const struct role *ps = job_role(&j, 0), *tr = job_role(&j, 1);
	assert_string_equal(ps->name, "pserver");
	assert_int_equal(ps->count, 2);
	assert_int_equal(ps->port, 5436);
	assert_true(ps->service && ps->service_set);
	assert_int_equal(ps->ready_when, READY_DEFAULT);
	assert_int_equal(ps->machine.instance_type.n, 2);
	assert_false(ps->machine.spot);
	assert_null(ps->image);
	assert_int_equal(ps->memory, 0);
	assert_string_equal(tr->name, "trainer");
	assert_int_equal(tr->pos.line, 16);
	assert_int_equal(tr->count, 4);
	assert_string_equal(tr->after.v[0], "pserver");
	assert_int_equal(tr->ready_when, READY_FINISHED);
	assert_false(tr->service || tr->service_set);
	assert_string_equal(tr->image, "myrepo/ctr:1");
	assert_string_equal(tr->machine.instance_type.v[0], "g5.xlarge");
	assert_true(tr->machine.spot);
	assert_int_equal(tr->memory, 2147483648u);
	assert_string_equal(tr->env.v[0].name, "X");
}

static void every_key_of_data_and_metrics_arrives(void **state)
{
	CLEANUP(arena_freep) struct arena *a = arena_new();
	(void)state;

	struct job j = good_job(a, full);
	const struct data_spec *data = j.data.v;
	const struct metric_spec *metrics = j.metrics.v;
	assert_int_equal(j.data.n, 1);
	assert_string_equal(data[0].src, "s3://bucket/criteo/");
	assert_string_equal(data[0].path, "criteo");
	assert_true(data[0].shard);
	assert_null(data[0].sha256);
	assert_int_equal(j.metrics.n, 2);
	assert_string_equal(metrics[0].name, "loss");
	assert_string_equal(metrics[0].pattern, "loss=(?<value>[-+.0-9eE]+)");
	assert_int_equal(metrics[0].better, BETTER_LOWER);
	assert_string_equal(metrics[1].name, "val/acc_1.5-x");
	assert_int_equal(metrics[1].better, BETTER_UNKNOWN);
}

static void what_nodes_fetch_is_data_whether_source_or_not(void **state)
{
	CLEANUP(arena_freep) struct arena *a = arena_new();
	const struct data_spec *v;
	struct job j;

	(void)state;
	j = good_job(a, "command = 'x'\nsource = 's3://b/c.tar.zst'\n[[data]]\nsrc = 'd'\n");
	assert_int_equal(job_data(&j, a, &v), 2);
	assert_string_equal(v[0].src, "s3://b/c.tar.zst");
	assert_string_equal(v[0].path, ".");
	assert_true(v[0].unpack);
	assert_string_equal(v[1].src, "d");
	j = good_job(a, "command = 'x'\nsource = 'https://h/train.py?x=.tar'\n");
	assert_int_equal(job_data(&j, a, &v), 1);
	assert_false(v[0].unpack);
	/* Packed by the client. */
	j = good_job(a, "command = 'x'\nsource = 'git+https://h/r@v'\n");
	assert_int_equal(job_data(&j, a, &v), 0);
	j = good_job(a, "command = 'x'\nsource = './s3'\n");
	assert_int_equal(job_data(&j, a, &v), 0);
}

static void the_three_formats_give_the_same_job(void **state)
{
	CLEANUP(arena_freep) struct arena *a = arena_new();
	static const char yaml[] = "name: x\nroles:\n  a:\n    count: 2\n    command: [echo, hi]\n";
	static const char json[] =
		"{\"name\": \"x\", \"roles\": {\"a\": {\"count\": 2, \"command\": "
		"[\"echo\", \"hi\"]}}}";
	struct problems ps = {0};
	struct doc *docs[3];
	(void)state;

	assert_int_equal(yaml_parse(STR(yaml), a, &docs[0], NULL), 0);
	assert_int_equal(json_parse(STR(json), a, &docs[1], NULL), 0);
	assert_int_equal(toml_parse(STR("name='x'\n[roles.a]\ncount=2\ncommand='echo hi'"), a,
				    &docs[2], NULL),
			 0);
	for (size_t i = 0; i < COUNT(docs); i++) {
		struct job j;
		assert_true(job_load(docs[i], NULL, a, &j, &ps));
		assert_string_equal(j.name, "x");
		assert_int_equal(j.roles.n, 1);
		assert_int_equal(job_role(&j, 0)->count, 2);
		assert_string_equal(job_role(&j, 0)->command.v[1], "hi");
	}
}

static void better_has_the_values_of_metrics(void **state)
{
	CLEANUP(arena_freep) struct arena *a = arena_new();
	(void)state;

	struct job j = good_job(
		a, "command = 'x'\n[metrics]\na = { pattern = 'x(.)', better = 'higher' }\n"
		   "b = { pattern = 'x(.)', better = 'lower' }\n"
		   "c = { pattern = 'x(.)', better = 'auto' }\n"
		   "d = { better = 'lower' }\n"); /* of a metric that comes by another way */
	const struct metric_spec *m = j.metrics.v;
	assert_null(m[3].pattern);
	assert_int_equal(m[3].better, BETTER_LOWER);
	assert_int_equal(m[0].better, BETTER_HIGHER);
	assert_int_equal(m[1].better, BETTER_LOWER);
	assert_int_equal(m[2].better, BETTER_UNKNOWN);
}

static void secrets_are_known_by_their_name_or_listed(void **state)
{
	CLEANUP(arena_freep) struct arena *a = arena_new();
	static const char *const secret[] = {"API_KEY",	     "api_key",	    "HF_TOKEN", "PASSWORD",
					     "DB_PASSWORDS", "MY_SECRET_X", "LICENSE"};
	static const char *const plain[] = {"KEY",  "KEYBOARD",	    "TOKENIZERS",
					    "PASS", "LICENSE_FILE", ""};

	(void)state;
	struct job j =
		good_job(a, "command = 'x'\nsecrets = 'LICENSE'\nenv = {A_KEY = 'v', B = 'w'}\n");
	for (size_t i = 0; i < sizeof(secret) / sizeof(secret[0]); i++)
		assert_true(secret_name(&j, str_from(secret[i])));
	for (size_t i = 0; i < sizeof(plain) / sizeof(plain[0]); i++)
		assert_false(secret_name(&j, str_from(plain[i])));
	struct job masked = job_masked(&j, a);
	assert_string_equal(masked.env.v[0].value, SECRET_SHOWN);
	assert_string_equal(masked.env.v[1].value, "w");
	assert_string_equal(j.env.v[0].value, "v");
	assert_false(secrets_put(NULL, &masked, NULL, a)); /* never "***" to the job */
}

static void a_secret_is_named_as_a_variable_is(void **state)
{
	CLEANUP(arena_freep) struct arena *a = arena_new();

	(void)state;
	struct problems ps = {0};
	struct job bad;
	assert_false(load_toml(a, "command = 'x'\nsecrets = ['OK', 'A-B', '', '1X', 'v=w']\n", &bad,
			       &ps));
	assert_int_equal(ps.n, 4);
	assert_string_equal(
		ps.v[0].text,
		"secrets: 'A-B' cannot be the name of a variable: list names of env, not values");
	assert_int_equal(ps.v[0].pos.line, 2);
	assert_int_equal(ps.v[0].pos.col, 18);
	struct job j = good_job(a, "command = 'x'\nsecrets = ['A', 'B', 'C']\nenv = {A = '1'}\n"
				   "[roles.r]\nenv = {B = '2'}\n");
	assert_string_equal(secret_unused(&j), "C");
	j.secrets.n = 2;
	assert_null(secret_unused(&j));
}

static void a_masked_value_is_no_secret(void **state)
{
	CLEANUP(arena_freep) struct arena *a = arena_new();
	struct problems ps = {0};
	struct job bad;

	(void)state;
	assert_false(load_toml(a,
			       "command = 'x'\nsecrets = ['LICENSE']\n"
			       "env = {LICENSE = '***', STARS = '***', A_KEY = '****'}\n"
			       "[roles.r]\nenv = {HF_TOKEN = '***'}\n",
			       &bad, &ps));
	assert_int_equal(ps.n, 2);
	assert_string_equal(
		ps.v[0].text,
		"env.LICENSE: the value was masked when this file was written: set it anew");
	assert_int_equal(ps.v[0].pos.line, 3);
	assert_int_equal(ps.v[0].pos.col, 18);
	assert_string_equal(
		ps.v[1].text,
		"roles.r.env.HF_TOKEN: the value was masked when this file was written: set it anew");
	assert_int_equal(ps.v[1].pos.line, 5);
}

static void a_metric_may_be_just_its_pattern(void **state)
{
	CLEANUP(arena_freep) struct arena *a = arena_new();
	(void)state;

	struct job j = good_job(
		a, "command = 'x'\nmetrics.loss = 'l=(.*)'\nmetrics.acc.pattern = 'a=(.*)'\n");
	const struct metric_spec *m = j.metrics.v;
	assert_int_equal(j.metrics.n, 2);
	assert_string_equal(m[0].name, "loss");
	assert_string_equal(m[0].pattern, "l=(.*)");
	assert_string_equal(m[1].pattern, "a=(.*)");
}

static void the_short_form_of_a_metric_leaves_the_tree_as_it_was(void **state)
{
	CLEANUP(arena_freep) struct arena *a = arena_new();
	CLEANUP(buf_release) struct buf before, after;
	struct problems ps = {0};
	struct doc *doc;
	struct job j;
	(void)state;

	buf_init(&before, 4096);
	buf_init(&after, 4096);
	assert_int_equal(toml_parse(STR("command = 'x'\nmetrics.loss = 'l(.)'\n"), a, &doc, NULL),
			 0);
	doc_to_json(doc, &before);
	assert_true(job_load(doc, NULL, a, &j, &ps));
	doc_to_json(doc, &after);
	assert_string_equal(before.p, after.p);
}

static void a_role_without_a_command_runs_the_jobs(void **state)
{
	CLEANUP(arena_freep) struct arena *a = arena_new();
	(void)state;

	struct job j =
		good_job(a, "command = 'echo a'\n[roles.x]\n[roles.y]\ncommand = 'echo b'\n");
	assert_string_equal(job_role(&j, 0)->command.v[1], "a");
	assert_string_equal(job_role(&j, 1)->command.v[1], "b");
}

static void data_goes_to_the_last_part_of_its_source(void **state)
{
	CLEANUP(arena_freep) struct arena *a = arena_new();
	(void)state;

	struct job j =
		good_job(a, "command = 'x'\n[[data]]\nsrc = '../a/b.csv'\n[[data]]\nsrc = '/c//'\n"
			    "[[data]]\nsrc = 'd'\n[[data]]\nsrc = 'e'\npath = 'f/g'\n");
	const struct data_spec *d = j.data.v;
	assert_string_equal(d[0].path, "b.csv");
	assert_string_equal(d[1].path, "c");
	assert_string_equal(d[2].path, "d");
	assert_string_equal(d[3].path, "f/g");
}

/* Problems: those of the whole pipeline are golden files; here are the rules one by one. */

static void nothing_to_run_is_a_problem(void **state)
{
	CLEANUP(arena_freep) struct arena *a = arena_new();
	struct problems ps;
	struct job j;
	(void)state;

	static const char *const texts[] = {"",
					    "name = 'x'\n",
					    "[roles]\n",
					    "command = []\n",
					    "command = '  '",
					    "command = \"\\\\\\n\"\n"};
	for (size_t i = 0; i < COUNT(texts); i++) {
		assert_false(load_toml(a, texts[i], &j, &ps));
		assert_int_equal(ps.n, 1);
	}
}

static void a_job_that_is_no_table_is_refused(void **state)
{
	CLEANUP(arena_freep) struct arena *a = arena_new();
	struct problems ps = {0};
	struct doc *doc;
	struct job j;
	(void)state;

	assert_int_equal(json_parse(STR("[1]"), a, &doc, NULL), 0);
	assert_false(job_load(doc, NULL, a, &j, &ps));
	assert_string_equal(ps.v[0].text, "a job file is a table of keys, not a list");
}

static void on_problems_the_job_is_not_touched(void **state)
{
	CLEANUP(arena_freep) struct arena *a = arena_new();
	struct job j = {.name = "untouched"};
	struct problems ps;
	(void)state;

	assert_false(load_toml(a, "count = 0", &j, &ps));
	assert_string_equal(j.name, "untouched");
}

/* The table of an engine that only this test has. */

struct fleet {
	struct strs names;
	struct doc_pos pos;
	int64_t slots;
};
static const struct field fleet_fields[] = {
	{.name = "names", .type = FIELD_STRS, .offset = offsetof(struct fleet, names)},
	{.name = "slots",
	 .type = FIELD_INT,
	 .offset = offsetof(struct fleet, slots),
	 .fallback = "1",
	 .min = 1,
	 .max = 9},
	{.name = NULL},
};
static const struct schema fleet_schema = {
	.name = "fleet",
	.size = sizeof(struct fleet),
	.pos_offset = offsetof(struct fleet, pos),
	.fields = fleet_fields,
};
static const struct field fleet_row = {
	.name = "fleet", .type = FIELD_BOX, .sub = &fleet_schema, .help = "Ships."};
static const struct field port_row = {
	.name = "port", .type = FIELD_BOX, .sub = &fleet_schema, .help = "Where they lie."};
static const struct job_rules fleet_rules = {.tables = {&port_row, &fleet_row}};

static bool load_fleet(struct arena *a, const char *text, struct job *ret, struct problems *ps)
{
	struct doc *doc;

	assert_int_equal(toml_parse(str_from(text), a, &doc, NULL), 0);
	*ps = (struct problems){0};
	return job_load(doc, &fleet_rules, a, ret, ps);
}

static void an_engine_has_a_table_of_its_own(void **state)
{
	CLEANUP(arena_freep) struct arena *a = arena_new();
	struct problems ps;
	struct job j;
	(void)state;

	assert_true(load_fleet(a, "command = 'x'\n[fleet]\nnames = ['a', 'b']\n", &j, &ps));
	assert_null(j.engine_tables[0]);
	const struct fleet *fleet = j.engine_tables[1];
	assert_non_null(fleet);
	assert_int_equal(fleet->names.n, 2);
	assert_int_equal(fleet->slots, 1);
	assert_int_equal(fleet->pos.line, 2);

	/* What is stored says the same, and nothing of a table that the file does not have. */
	struct doc *stored = schema_to_doc(job_schema_with(&fleet_rules, a), &j, a);
	assert_null(doc_get(stored, "port"));
	assert_true(job_load(stored, &fleet_rules, a, &j, &ps));
	fleet = j.engine_tables[1];
	assert_string_equal(fleet->names.v[1], "b");
}

static void the_problems_of_an_engines_table_are_those_of_the_file(void **state)
{
	CLEANUP(arena_freep) struct arena *a = arena_new();
	struct problems ps;
	struct job j;
	(void)state;

	assert_false(
		load_fleet(a, "command = 'x'\n[fleet]\nslots = 10\nnmes = 'a'\n[flet]\n", &j, &ps));
	assert_int_equal(ps.n, 3);
	assert_string_equal(ps.v[0].text, "unknown key 'flet': did you mean 'fleet'?");
	assert_string_equal(ps.v[1].text, "unknown key 'nmes' in fleet: did you mean 'names'?");
	assert_string_equal(ps.v[2].text, "fleet.slots: expected a whole number from 1 to 9, got "
					  "the whole number 10");
	assert_false(load_toml(a, "command = 'x'\n[fleet]\n", &j, &ps));
	assert_non_null(schema_find(job_schema_with(&fleet_rules, a), STR("fleet.slots")));
}

static void problems_of_an_earlier_file_do_not_count(void **state)
{
	CLEANUP(arena_freep) struct arena *a = arena_new();
	struct problems ps = {0};
	struct doc *doc;
	struct job j;
	(void)state;

	problems_add(&ps, a, (struct doc_pos){1, 1}, "of another file");
	assert_int_equal(toml_parse(STR("command = 'x'"), a, &doc, NULL), 0);
	assert_true(job_load(doc, NULL, a, &j, &ps));
}

static void a_wrong_type_is_one_problem_not_two(void **state)
{
	CLEANUP(arena_freep) struct arena *a = arena_new();
	struct problems ps;
	struct job j;
	(void)state;

	static const char *const texts[] = {
		"command = 5\n",
		"[roles.a]\ncommand = 5\n",
		"command = 'x'\nroles = 5\n",
		"command = 'x'\n[metrics.loss]\npattern = 5\n",
		"command = 'x'\n[[data]]\nsrc = 5\n",
		"command = 'x'\nenv = 5\n",
		"command = 'x'\noutput = 5\n",
		"command = 'x'\ndata = 5\n",
		"command = 'x'\nmetrics = 5\n",
		"command = 'x'\nmetrics.loss = 5\n",
		"command = 'x'\n[roles]\na = 5\nb = {}\n",
		"[roles.a]\ncommand = 'x'\nready_when = 'port'\nport = 'y'\n",
		"command = \"a 'b\"\n",
		"command = 'x'\nenv = { 'A B' = 1 }\n",
		"command = 'x'\nenv = { 'A=' = 1 }\n",
		"command = 'x'\nenv = { \"A\\u007f\" = 1 }\n",
		"command = 'x'\n[[data]]\nsrc = ''\n",
	};
	for (size_t i = 0; i < COUNT(texts); i++) {
		assert_false(load_toml(a, texts[i], &j, &ps));
		if (ps.n != 1)
			fail_msg("%zu problems, second: %s\n%s", ps.n, ps.v[1].text, texts[i]);
	}
}

static void what_was_written_empty_is_a_problem(void **state)
{
	(void)state;
	one_problem("command = 'x'\nsource = ''\n", 2, 10, "source is empty");
	one_problem("command = 'x'\nmetric_prefix = ''\n", 2, 17, "metric_prefix is empty");
	one_problem("command = 'x'\n[roles.a]\nimage = ''\n", 3, 9, "roles.a.image is empty");
	one_problem("command = 'x'\n[[data]]\nsrc = ''\n", 2, 1, "data: src is empty");
	one_problem("command = ['', 'x']\n", 1, 11,
		    "command: the first word, the program, is empty");
}

static void a_registry_has_a_user_and_a_password(void **state)
{
	struct arena *a = arena_new();
	struct problems ps = {0};
	struct job j;

	(void)state;
	assert_true(load_toml(a,
			      "command = 'x'\n[roles.a]\nimage = 'i'\n[roles.b]\n[registry]\n"
			      "user = 'u'\npassword_env = 'P'\n",
			      &j, &ps));
	assert_string_equal(j.registry.password_env, "P");
	assert_null(job_image(&j, job_role(&j, 1)));
	assert_true(load_toml(a, "command = 'x'\nimage = 'i'\nregistry = 'ecr'\n", &j, &ps));
	assert_string_equal(j.registry.login, "ecr");
	arena_free(a);
	one_problem(
		"command = 'x'\nimage = 'i'\nregistry = 'hub'\n", 3, 12,
		"registry: there is no login 'hub': \"ecr\", or a table with user and password_env");
	one_problem("command = 'x'\nimage = 'i'\nregistry = { login = 'ecr', user = 'u' }\n", 3, 12,
		    "registry: \"ecr\" brings its own user and password: give one of both");
	one_problem("command = 'x'\nregistry = 'ecr'\n", 2, 12,
		    "registry is the login for image, and no image is given");
#define NEEDED "registry needs user and password_env, the name of the variable with the password"
	one_problem("command = 'x'\nimage = 'i'\nregistry = { user = 'u' }\n", 3, 12, NEEDED);
	one_problem(
		"command = 'x'\nimage = 'i'\nregistry = { user = 'u', password_env = 'a b' }\n", 3,
		12,
		"registry: 'a b' cannot be the name of a variable: give the variable's name, not the "
		"password");
	one_problem("command = 'x'\nregistry = { user = 'u', password_env = 'P' }\n", 2, 12,
		    "registry is the login for image, and no image is given");
}

static void the_image_of_a_job_is_that_of_roles_without_one(void **state)
{
	struct arena *a = arena_new();
	struct problems ps = {0};
	struct job j;

	(void)state;
	assert_true(load_toml(
		a, "command = 'x'\nimage = 'of-job'\n[roles.a]\n[roles.b]\nimage = 'own'\n", &j,
		&ps));
	assert_string_equal(job_role(&j, 0)->image, "of-job");
	assert_string_equal(job_role(&j, 1)->image, "own");
	assert_string_equal(job_image(&j, NULL), "of-job");
	arena_free(a);
}

static void waiting_for_an_unknown_role_names_the_nearest(void **state)
{
	(void)state;
	one_problem("command = 'x'\n[roles.store]\n[roles.a]\nafter = ['store', 'stroe']\n", 4, 19,
		    "roles.a.after: there is no role 'stroe': did you mean 'store'?");
	one_problem("command = 'x'\n[roles.a]\nafter = 'zzzzzzzz'\n", 3, 9,
		    "roles.a.after: there is no role 'zzzzzzzz'");
}

static void a_role_cannot_wait_for_itself(void **state)
{
	(void)state;
	one_problem("command = 'x'\n[roles.a]\nafter = 'a'\n", 3, 9,
		    "roles.a.after: a role cannot wait for itself");
}

static void a_circle_is_named(void **state)
{
	(void)state;
	one_problem("command = 'x'\n[roles.a]\nafter = 'b'\n[roles.b]\nafter = 'a'\n", 3, 1,
		    "roles wait for each other in a circle: a -> b -> a: none could ever start");
}

static void roles_behind_a_circle_are_not_part_of_it(void **state)
{
	(void)state;
	one_problem(
		"command = 'x'\n[roles.z]\nafter = ['y']\n[roles.y]\nafter = ['q', 'b']\n[roles.q]\n"
		"[roles.b]\nafter = ['c']\n[roles.c]\nafter = ['q', 'b']\n",
		8, 1, "roles wait for each other in a circle: b -> c -> b: none could ever start");
}

static void a_long_circle_is_cut_short(void **state)
{
	CLEANUP(buf_release) struct buf text;
	(void)state;

	buf_init(&text, 65536);
	buf_addz(&text, "command = 'x'\n");
	for (int i = 0; i < 30; i++)
		buf_printf(&text, "[roles.r%d]\nafter = 'r%d'\n", i, (i + 1) % 30);
	one_problem(
		text.p, 3, 1,
		"roles wait for each other in a circle: r0 -> r1 -> r2 -> r3 -> r4 -> r5 -> r6 -> r7 -> "
		"(22 more) -> r0: none could ever start");
}

static void waiting_twice_for_the_same_role_is_no_circle(void **state)
{
	CLEANUP(arena_freep) struct arena *a = arena_new();
	(void)state;

	struct job j = good_job(
		a, "command = 'x'\n[roles.d]\nafter = ['b', 'c', 'b']\n[roles.b]\nafter = 'a'\n"
		   "[roles.c]\nafter = 'a'\n[roles.a]\n");
	assert_int_equal(j.roles.n, 4);
}

static void the_sum_of_nodes_is_limited(void **state)
{
	CLEANUP(arena_freep) struct arena *a = arena_new();
	(void)state;

	good_job(a, "command = 'x'\n[roles.a]\ncount = 6000\n[roles.b]\ncount = 4000\n");
	good_job(a, "command = 'x'\ncount = 10000\n");
	one_problem("command = 'x'\n[roles.a]\ncount = 6000\n[roles.b]\ncount = 4001\n", 2, 2,
		    "the roles have 10001 nodes together: at most 10000");
}

static void a_count_beside_roles_is_a_problem(void **state)
{
	(void)state;
	one_problem("command = 'x'\ncount = 2\n[roles.a]\n", 2, 1,
		    "count has no effect beside roles: write it in the role, as in roles.a.count");
}

static void reserved_and_bad_names_of_variables_are_refused(void **state)
{
	(void)state;
	one_problem(
		"command = 'x'\nenv.REGATTA_X = 'y'\n", 2, 5,
		"env: 'REGATTA_X': names that start with REGATTA_ are set by regatta itself: choose another");
	one_problem(
		"command = 'x'\n[roles.a.env]\nREGATTA_NODE = 'y'\n", 3, 1,
		"roles.a.env: 'REGATTA_NODE': names that start with REGATTA_ are set by regatta itself: "
		"choose another");
	one_problem(
		"command = 'x'\nenv.9A = 'y'\n", 2, 5,
		"env: '9A' cannot be the name of a variable: use letters, digits and _, and no digit first");
	one_problem(
		"command = 'x'\nenv.A-B = 'y'\n", 2, 5,
		"env: 'A-B' cannot be the name of a variable: use letters, digits and _, and no digit first");
}

static void good_names_of_variables_are_taken(void **state)
{
	CLEANUP(arena_freep) struct arena *a = arena_new();
	(void)state;

	struct job j = good_job(
		a, "command = 'x'\nenv = { _ = '', a9 = '1', REGATTA = 'x', regatta_x = 'y' }\n");
	assert_int_equal(j.env.n, 4);
	assert_string_equal(j.env.v[0].value, "");
}

static void what_linux_cannot_pass_on_is_refused(void **state)
{
	CLEANUP(buf_release) struct buf text;
	(void)state;

	buf_init(&text, 1 << 20);
	buf_addz(&text, "command = 'x'\nenv.A = '");
	for (int i = 0; i < 131070; i++)
		buf_addc(&text, 'y');
	buf_addz(&text, "'\n");
	one_problem(text.p, 2, 9,
		    "env: 'A' is longer than the 131071 bytes that Linux takes: put it in a file");
	buf_reset(&text);
	buf_addz(&text, "command = ['x', '");
	for (int i = 0; i < 131072; i++)
		buf_addc(&text, 'y');
	buf_addz(&text, "']\n");
	one_problem(
		text.p, 1, 11,
		"command: word 2 is longer than the 131071 bytes that Linux takes: put it in a file");
}

static void more_memory_than_there_can_be_is_refused(void **state)
{
	CLEANUP(arena_freep) struct arena *a = arena_new();
	(void)state;

	struct job j = good_job(a, "command = 'x'\n[roles.a]\nmemory = '1PiB'\n");
	assert_int_equal(job_role(&j, 0)->memory, INT64_C(1) << 50);
	one_problem(
		"command = 'x'\n[roles.a]\nmemory = '15EiB'\n", 3, 10,
		"roles.a.memory: expected a size such as \"512MiB\" or \"2GiB\" from 0 to 1PiB, got the "
		"string \"15EiB\"");
}

static void metric_names_are_checked(void **state)
{
	CLEANUP(arena_freep) struct arena *a = arena_new();
	(void)state;

	good_job(a, "command = 'x'\n[metrics]\n'a/b_c.d-E9' = '(x)'\n"
		    "a234567890123456789012345678901234567890123456789012345678901234 = '(x)'\n");
	one_problem(
		"command = 'x'\n[metrics]\n'a b' = '(x)'\n", 3, 1,
		"metrics: 'a b' cannot be the name of a metric: use up to 64 letters, digits and _ . / -");
	one_problem(
		"command = 'x'\n[metrics]\n"
		"a2345678901234567890123456789012345678901234567890123456789012345 = '(x)'\n",
		3, 1,
		"metrics: 'a2345678901234567890123456789012345678901234567890123456789012345' cannot be "
		"the name of a metric: use up to 64 letters, digits and _ . / -");
	one_problem("command = 'x'\n[metrics]\nloss = ''\n", 3, 8,
		    "metrics.loss: the pattern is empty");
}

static void a_pattern_that_cannot_work_is_a_problem_of_the_file(void **state)
{
	CLEANUP(arena_freep) struct arena *a = arena_new();
	struct problems ps;
	struct job j;
	(void)state;

	assert_false(load_toml(a, "command = 'x'\n[metrics]\nloss = 'l=(oops'\n", &j, &ps));
	assert_int_equal(ps.n, 1);
	assert_int_equal(ps.v[0].pos.line, 3);
	assert_non_null(strstr(ps.v[0].text, "loss"));
	assert_false(load_toml(a, "command = 'x'\n[metrics]\nloss = 'no group'\n", &j, &ps));
	assert_int_equal(ps.n, 1);
}

static void there_are_no_more_metrics_than_patterns_can_be_tried(void **state)
{
	CLEANUP(arena_freep) struct arena *a = arena_new();
	CLEANUP(buf_release) struct buf text;
	struct problems ps;
	struct job j;
	(void)state;

	buf_init(&text, 65536);
	buf_addz(&text, "command = 'x'\n[metrics]\n");
	for (int i = 0; i < EXTRACT_MAX_PATTERNS; i++)
		buf_printf(&text, "m%d = '(x)'\n", i);
	assert_int_equal(good_job(a, text.p).metrics.n, EXTRACT_MAX_PATTERNS);
	buf_addz(&text, "more = '(x)'\n");
	assert_false(load_toml(a, text.p, &j, &ps));
	assert_int_equal(ps.n, 1);
}

static void sampling_is_off_or_not_too_fast(void **state)
{
	CLEANUP(arena_freep) struct arena *a = arena_new();
	(void)state;

	assert_int_equal(good_job(a, "command = 'x'\nsample_every = 0\n").sample_ms, 0);
	assert_int_equal(good_job(a, "command = 'x'\nsample_every = '100ms'\n").sample_ms, 100);
	one_problem("command = 'x'\nsample_every = '99ms'\n", 2, 16,
		    "sample_every is below 100ms: write 100ms or more, or 0 for never");
}

static void paths_stay_below_the_work_directory(void **state)
{
	(void)state;
	one_problem("command = 'x'\n[[data]]\nsrc = 'a'\npath = '../b'\n", 2, 1,
		    "data: path '../b' must be a place below the work directory, as in \"data\"");
	one_problem("command = 'x'\n[[data]]\nsrc = 'a'\npath = '/../b'\n", 2, 1,
		    "data: path '/../b' must be a place below the work directory, as in \"data\"");
	one_problem("command = 'x'\n[[data]]\nsrc = 'a'\npath = '/'\n", 2, 1,
		    "data: path '/' must be a place below the work directory, as in \"data\"");
	one_problem("command = 'x'\n[[data]]\nsrc = '/'\n", 2, 1,
		    "data: src '/' has no name of its own: give a path");
	one_problem("command = 'x'\n[[data]]\nsrc = 'a'\n[[data]]\nsrc = 'b/a'\n", 4, 1,
		    "data: path 'a' is used twice");
	one_problem(
		"command = 'x'\n[output]\nkeep = ['ok', '../x']\n", 3, 15,
		"output.keep: '../x' must be a glob below the work directory; a whole directory is \"model/**\"");
}

static void a_url_is_one_and_tells_no_password(void **state)
{
	static const struct {
		const char *url, *why;
	} hooks[] = {
		{"ftp://x", "the URL 'ftp://x' does not begin with http:// or https://"},
		{"https:///runs", "the URL 'https:///runs' has no proper host and port"},
		{"http://h:65536/", "the URL 'http://h:65536/' has no proper host and port"},
		{"http://[::1", "the URL 'http://[::1' has no proper host and port"},
		{"http://h/a b", "the URL 'http://h/a b' has a path with bad characters"},
		{"http://h/a\\r\\nX: y",
		 "the URL 'http://h/a\\x0d\\x0aX: y' has a path with bad characters"},
		{"http://me:pass@no host/", "the URL '***@no host/' has no proper host and port"},
		{"http://me:pass@h/",
		 "a user or password in a URL would be shown with the job: write it without"},
	};
	static const char *const places[] = {
		"source = \"https://h/a b\"",
		"source = \"s3://b/a\\u0001\"",
		"source = \"git+https://me:token@h/r@v1\"",
		"source = \"git+ssh://git@h/r r\"",
		"data = [{ src = \"https://h/a\\nb\" }]",
		"data = [{ src = \"https://[::1/a\" }]",
		"data = [{ src = \"s3://b/a\\u007f\" }]",
		"output = { s3 = \"s3://b/a\\t\" }",
	};
	CLEANUP(arena_freep) struct arena *a = arena_new();

	(void)state;
	for (size_t i = 0; i < COUNT(hooks); i++)
		one_problem(arena_printf(a, "command = 'x'\non_finish = { url = \"%s\" }\n",
					 hooks[i].url),
			    2, 21, arena_printf(a, "on_finish.url: %s", hooks[i].why));
	for (size_t i = 0; i < COUNT(places); i++) {
		struct problems ps = {0};
		struct job job;

		load_toml(a, arena_printf(a, "command = 'x'\n%s\n", places[i]), &job, &ps);
		if (ps.n != 1 || !strstr(ps.v[0].text, "URL"))
			fail_msg("%s: %zu problems", places[i], ps.n);
	}
	(void)good_job(a, "command = 'x'\nsource = 'git+ssh://git@h/r@v1'\n"
			  "data = [{ src = 's3://b/a b' }, { src = './c d' }]\n"
			  "on_finish = { url = 'http://[::1]:8080/x?y' }\n");
}

static void a_volume_has_one_source_and_an_absolute_path(void **state)
{
	CLEANUP(arena_freep) struct arena *a = arena_new();
	(void)state;

	struct job j = good_job(a, "command = 'x'\n[[volumes]]\npath = '/a'\nnfs = 'h:/x'\n"
				   "[[volumes]]\npath = '/b'\nempty = true\nread_only = true\n");
	const struct volume_spec *v = j.volumes.v;

	assert_int_equal(j.volumes.n, 2);
	assert_string_equal(v[0].nfs, "h:/x");
	assert_true(v[1].empty && v[1].read_only);
	one_problem(
		"command = 'x'\n[[volumes]]\npath = '/a'\n", 2, 1,
		"volumes: '/a' needs exactly one of pvc, nfs, efs, host, config_map, secret and empty");
	one_problem(
		"command = 'x'\n[[volumes]]\npath = '/a'\npvc = 'p'\nempty = true\n", 2, 1,
		"volumes: '/a' needs exactly one of pvc, nfs, efs, host, config_map, secret and empty");
	one_problem("command = 'x'\n[[volumes]]\npath = 'a'\npvc = 'p'\n", 2, 1,
		    "volumes: path 'a' must be absolute");
	one_problem("command = 'x'\n[[volumes]]\npath = '/a'\nnfs = 'host'\n", 2, 1,
		    "volumes: nfs = \"host\": write server:/path");
	one_problem("command = 'x'\n[[volumes]]\npath = '/a'\npvc = 'p'\n[[volumes]]\npath = '/a'\n"
		    "host = '/h'\n",
		    5, 1, "volumes: path '/a' is used twice");
}

static void a_role_without_resources_has_those_of_the_job(void **state)
{
	CLEANUP(arena_freep) struct arena *a = arena_new();
	(void)state;

	struct job j = good_job(a, "command = 'x'\nresources = { cpus = 2, memory = '1GiB' }\n"
				   "[roles.a]\n[roles.b]\nresources = { gpus = 1 }\n");

	assert_true(job_role(&j, 0)->resources->cpus == 2);
	assert_int_equal(job_role(&j, 0)->resources->memory, 1 << 30);
	assert_true(job_role(&j, 1)->resources->cpus == 0);
	assert_int_equal(job_role(&j, 1)->resources->gpus, 1);
}

static void the_patch_of_a_pod_is_any_table(void **state)
{
	CLEANUP(arena_freep) struct arena *a = arena_new();
	(void)state;

	struct job j =
		good_job(a, "command = 'x'\n[roles.a]\npod = { spec = { any = [1, {}] } }\n");
	struct doc *stored = schema_to_doc(&job_schema, &j, a);
	const struct doc *pod = doc_table(doc_table(doc_table(stored, "roles"), "a"), "pod");

	assert_string_equal(doc_json_text(a, job_role(&j, 0)->pod), "{\"spec\":{\"any\":[1,{}]}}");
	assert_string_equal(doc_json_text(a, pod), "{\"spec\":{\"any\":[1,{}]}}");
	one_problem("command = 'x'\n[roles.a]\npod = ['spec']\n", 3, 7,
		    "roles.a.pod: expected a table, got a list");
}

static void a_port_to_wait_for_must_be_there(void **state)
{
	(void)state;
	one_problem("command = 'x'\n[roles.a]\nready_when = 'port'\n", 3, 14,
		    "roles.a.ready_when = \"port\" needs a port: write port = 5436, say");
}

static void a_bad_name_of_one_role_does_not_confuse_the_others(void **state)
{
	CLEANUP(arena_freep) struct arena *a = arena_new();
	struct problems ps;
	struct job j;
	(void)state;

	assert_false(load_toml(
		a, "[roles.\"a\\u0000b\"]\ncommand = 'x'\n[roles.c]\ncommand = 'x'\nafter = 'd'\n",
		&j, &ps));
	assert_int_equal(ps.n, 2);
	assert_string_equal(ps.v[1].text, "roles.c.after: there is no role 'd'");
}

static void a_very_bad_file_costs_little(void **state)
{
	CLEANUP(arena_freep) struct arena *a = arena_new();
	CLEANUP(buf_release) struct buf text;
	struct problems ps;
	struct job j;
	(void)state;

	/* 4000 roles that each wait for 10 unknown ones: the search for near names must not be done for all. */
	buf_init(&text, 1 << 20);
	buf_addz(&text, "command = 'x'\n[roles]\n");
	for (int i = 0; i < 4000; i++)
		buf_printf(
			&text,
			"r%d = { after = ['q0','q1','q2','q3','q4','q5','q6','q7','q8','q9'] }\n",
			i);
	assert_false(load_toml(a, text.p, &j, &ps));
	assert_int_equal(ps.n, PROBLEMS_MAX);
	assert_int_equal(ps.n + ps.more, 40000);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_command_is_all_a_job_needs),
		cmocka_unit_test(limits_that_were_not_written_have_their_defaults),
		cmocka_unit_test(what_to_do_about_failed_and_lost_nodes_arrives),
		cmocka_unit_test(bounds_that_leave_no_room_are_problems),
		cmocka_unit_test(every_key_of_the_job_arrives),
		cmocka_unit_test(every_key_of_a_role_arrives),
		cmocka_unit_test(every_key_of_data_and_metrics_arrives),
		cmocka_unit_test(what_nodes_fetch_is_data_whether_source_or_not),
		cmocka_unit_test(what_nodes_fetch_is_data_whether_source_or_not),
		cmocka_unit_test(the_three_formats_give_the_same_job),
		cmocka_unit_test(better_has_the_values_of_metrics),
		cmocka_unit_test(a_metric_may_be_just_its_pattern),
		cmocka_unit_test(secrets_are_known_by_their_name_or_listed),
		cmocka_unit_test(a_secret_is_named_as_a_variable_is),
		cmocka_unit_test(a_masked_value_is_no_secret),
		cmocka_unit_test(the_short_form_of_a_metric_leaves_the_tree_as_it_was),
		cmocka_unit_test(a_role_without_a_command_runs_the_jobs),
		cmocka_unit_test(data_goes_to_the_last_part_of_its_source),
		cmocka_unit_test(nothing_to_run_is_a_problem),
		cmocka_unit_test(a_job_that_is_no_table_is_refused),
		cmocka_unit_test(on_problems_the_job_is_not_touched),
		cmocka_unit_test(an_engine_has_a_table_of_its_own),
		cmocka_unit_test(the_problems_of_an_engines_table_are_those_of_the_file),
		cmocka_unit_test(problems_of_an_earlier_file_do_not_count),
		cmocka_unit_test(a_wrong_type_is_one_problem_not_two),
		cmocka_unit_test(what_was_written_empty_is_a_problem),
		cmocka_unit_test(processes_have_limits_and_share_no_terminal),
		cmocka_unit_test(processes_may_be_as_many_as_a_node_has_gpus_or_cpus),
		cmocka_unit_test(a_registry_has_a_user_and_a_password),
		cmocka_unit_test(the_image_of_a_job_is_that_of_roles_without_one),
		cmocka_unit_test(waiting_for_an_unknown_role_names_the_nearest),
		cmocka_unit_test(a_role_cannot_wait_for_itself),
		cmocka_unit_test(a_circle_is_named),
		cmocka_unit_test(roles_behind_a_circle_are_not_part_of_it),
		cmocka_unit_test(a_long_circle_is_cut_short),
		cmocka_unit_test(waiting_twice_for_the_same_role_is_no_circle),
		cmocka_unit_test(the_sum_of_nodes_is_limited),
		cmocka_unit_test(a_count_beside_roles_is_a_problem),
		cmocka_unit_test(reserved_and_bad_names_of_variables_are_refused),
		cmocka_unit_test(good_names_of_variables_are_taken),
		cmocka_unit_test(what_linux_cannot_pass_on_is_refused),
		cmocka_unit_test(more_memory_than_there_can_be_is_refused),
		cmocka_unit_test(metric_names_are_checked),
		cmocka_unit_test(a_pattern_that_cannot_work_is_a_problem_of_the_file),
		cmocka_unit_test(there_are_no_more_metrics_than_patterns_can_be_tried),
		cmocka_unit_test(sampling_is_off_or_not_too_fast),
		cmocka_unit_test(paths_stay_below_the_work_directory),
		cmocka_unit_test(a_port_to_wait_for_must_be_there),
		cmocka_unit_test(a_url_is_one_and_tells_no_password),
		cmocka_unit_test(a_volume_has_one_source_and_an_absolute_path),
		cmocka_unit_test(a_role_without_resources_has_those_of_the_job),
		cmocka_unit_test(the_patch_of_a_pod_is_any_table),
		cmocka_unit_test(a_bad_name_of_one_role_does_not_confuse_the_others),
		cmocka_unit_test(a_very_bad_file_costs_little),
	};

	return cmocka_run_group_tests_name("job", tests, NULL, NULL);
}
