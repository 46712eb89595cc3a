#include "../spec/golden.h"

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

static struct plan plan_of(const char *text)
{
	struct job *job = arena_new_of(arena, struct job);
	struct problems ps = {0};
	struct plan p;

	*job = good_job(arena, text);
	if (!plan_make(job, NULL, arena, &p, &ps))
		fail_msg("%s", ps.v[0].text);
	assert_int_equal(ps.n, 0);
	return p;
}

/* What becomes of lost nodes, and that of the services. */
static void lost_trainers_are_replaced_where_there_are_other_machines(void **state)
{
	static const struct {
		const char *text;
		int trainer;
	} cases[] = {
		{"strategy = 'elastic'\n[roles.trainer]\n", LOST_FAIL},
		{"strategy = 'elastic'\nengine = 'hosts'\n[roles.trainer]\n", LOST_REPLACE},
		{"strategy = 'elastic'\nengine = 'hosts'\n[roles.trainer]\non_lost = 'shrink'\n",
		 LOST_SHRINK},
		{"strategy = 'elastic'\nengine = 'hosts'\n[roles.trainer]\non_lost = 'fail'\n",
		 LOST_FAIL},
		{"strategy = 'torch'\nengine = 'hosts'\n[roles.trainer]\n", LOST_FAIL},
	};
	const struct job_rules rules = plan_job_rules();

	(void)state;
	for (size_t i = 0; i < COUNT(cases); i++) {
		struct job job = good_job_by(
			arena, arena_printf(arena, "command = 't'\n%s", cases[i].text), &rules);

		assert_int_equal(job_role(&job, 0)->policy.on_lost, cases[i].trainer);
		if (job.roles.n > 1)
			assert_int_equal(job_role(&job, 1)->policy.on_lost, LOST_FAIL);
	}
}

static struct problems problems_of(const char *text)
{
	struct job *job = arena_new_of(arena, struct job);
	struct problems ps = {0};
	struct plan p = {.nresources = -7};

	*job = good_job(arena, text);
	assert_false(plan_make(job, NULL, arena, &p, &ps));
	assert_int_equal(p.nresources, -7);
	return ps;
}

static void refused(const char *text, int line, const char *message)
{
	struct problems ps = problems_of(text);

	if (ps.n != 1 || strcmp(ps.v[0].text, message) != 0)
		fail_msg("%zu problems, first: %s\nwanted: %s", ps.n, ps.v[0].text, message);
	assert_int_equal(ps.v[0].pos.line, line);
}

/* Addresses. */

/* The addresses of n nodes when rank 0 has this one. */
static const char **addresses_from(const char *first, int n)
{
	struct doc *facts = doc_new(arena, DOC_TABLE);
	struct job *job = arena_new_of(arena, struct job);
	struct problems ps = {0};
	struct plan p;

	doc_set(arena, facts, STR("first_address"), doc_new_str(arena, str_from(first)));
	*job = good_job(arena, arena_printf(arena, "command = 'x'\ncount = %d\n", n));
	assert_true(plan_make(job, facts, arena, &p, &ps));
	return p.addresses;
}

static void addresses_follow_each_other_and_skip_0_and_255(void **state)
{
	(void)state;
	const char **v = addresses_from("127.1.0.1", 600);
	assert_string_equal(v[0], "127.1.0.1");
	assert_string_equal(v[253], "127.1.0.254");
	assert_string_equal(v[254], "127.1.1.1");
	assert_string_equal(v[508], "127.1.2.1");
	assert_string_equal(addresses_from("127.1.0.255", 1)[0], "127.1.1.1");
	assert_string_equal(addresses_from("127.1.0.0", 1)[0], "127.1.0.1");
	assert_string_equal(addresses_from("127.1.255.254", 2)[1], "127.2.0.1");
}

static void no_two_ranks_share_an_address(void **state)
{
	(void)state;
	for (int base = 1; base < 256; base++) {
		const char **v = addresses_from(arena_printf(arena, "127.1.0.%d", base), 600);
		for (int i = 1; i < 600; i++) {
			unsigned a, b, c, d, last, now;
			assert_int_equal(sscanf(v[i - 1], "%u.%u.%u.%u", &a, &b, &c, &d), 4);
			last = a << 24 | b << 16 | c << 8 | d;
			assert_int_equal(sscanf(v[i], "%u.%u.%u.%u", &a, &b, &c, &d), 4);
			now = a << 24 | b << 16 | c << 8 | d;
			assert_true(now > last && d != 0 && d != 255);
		}
	}
}

static void a_resource_says_what_its_driver_needs(void **state)
{
	struct doc *facts;
	struct job *job = arena_new_of(arena, struct job);
	struct problems ps = {0};
	struct plan p;
	struct err err = {0};

	(void)state;
	assert_int_equal(
		json_parse(
			STR("{\"home\":\"/h \\\"q\",\"run_dir\":\"/h/runs/x\",\"base_dir\":\"/job\"}"),
			arena, &facts, &err),
		0);
	*job = good_job(arena, "command = 'x'\ncount = 2\n");
	assert_true(plan_make(job, facts, arena, &p, &ps));
	assert_string_equal(
		p.resources[1].spec,
		"{\"home\":\"/h \\\"q\",\"run_dir\":\"/h/runs/x\",\"base_dir\":\"/job\"}");
}

/* Plans. */

static void each_node_is_one_resource_with_an_address(void **state)
{
	(void)state;
	struct plan p = plan_of("command = 'x'\n[roles.s]\nservice = true\n[roles.w]\ncount = 2\n");
	static const char *const names[] = {"w-0", "w-1", "s-0"};
	static const char *const addresses[] = {"127.1.0.1", "127.1.0.2", "127.1.0.3"};

	assert_string_equal(p.strategy->name, "roles");
	assert_string_equal(p.iface, "lo");
	assert_int_equal(p.nresources, 3);
	for (int i = 0; i < 3; i++) {
		assert_string_equal(p.resources[i].kind, "local.node");
		assert_string_equal(p.resources[i].name, names[i]);
		assert_int_equal(p.resources[i].node, i);
		assert_int_equal(p.resources[i].nneeds, 0);
		assert_int_equal(p.resource_of[i], i);
		assert_string_equal(p.addresses[i], addresses[i]);
	}
}

static void isolated_nodes_need_a_bridge_that_names_them_all(void **state)
{
	struct doc *facts;
	struct job *job = arena_new_of(arena, struct job);
	struct problems ps = {0};
	struct plan p;

	(void)state;
	assert_int_equal(
		json_parse(
			STR("{\"home\":\"/h\",\"run_dir\":\"/h/x\",\"base_dir\":\"/b\",\"bridge\":"
			    "\"10.3.4.1/24\",\"first_address\":\"10.3.4.2\"}"),
			arena, &facts, NULL),
		0);
	*job = good_job(arena, "command = 'x'\ncount = 2\nisolate = 'netns'\n");
	assert_true(plan_make(job, facts, arena, &p, &ps));
	assert_string_equal(p.iface, "eth0");
	assert_int_equal(p.nresources, 3);
	assert_string_equal(p.resources[0].kind, "local.bridge");
	assert_int_equal(p.resources[0].node, -1);
	assert_string_equal(
		p.resources[0].spec,
		"{\"home\":\"/h\",\"run_dir\":\"/h/x\",\"base_dir\":\"/b\",\"address\":\"10.3.4.1\","
		"\"prefix\":24,\"hosts\":\"10.3.4.2 worker-0\\n10.3.4.3 worker-1\\n\"}");
	for (int i = 0; i < 2; i++) {
		const struct plan_resource *r = &p.resources[p.resource_of[i]];

		assert_string_equal(r->kind, "local.node");
		assert_int_equal(r->node, i);
		assert_int_equal(r->nneeds, 1);
		assert_int_equal(r->needs[0], 0);
	}
	assert_string_equal(
		p.resources[2].spec,
		"{\"home\":\"/h\",\"run_dir\":\"/h/x\",\"base_dir\":\"/b\",\"address\":\"10.3.4.3\","
		"\"prefix\":24}");
	p = plan_of("command = 'x'\nisolate = 'netns'\n");
	assert_string_equal(p.addresses[0], "10.1.0.2");
	refused("command = 'x'\ncount = 1001\nisolate = 'netns'\n", 3,
		"isolate = \"netns\" takes at most 1000 nodes, and this job has 1001: leave out "
		"isolate");
}

static void a_limit_of_cost_that_cannot_act_is_warned_of(void **state)
{
	struct job *job = arena_new_of(arena, struct job);
	struct problems ps = {0};
	struct plan p;
	struct buf text;

	(void)state;
	*job = good_job(arena, "command = 'x'\nmax_cost = 20\n");
	assert_true(plan_make(job, NULL, arena, &p, &ps));
	assert_int_equal(ps.n, 0);
	buf_init(&text, 4096);
	problems_print_warnings(&ps, "job.toml", &text);
	assert_string_equal(
		buf_str(&text).p,
		"job.toml:2:12: warning: max_cost stops nothing here: engine local costs nothing; "
		"max_runtime limits the time\n");
	buf_release(&text);
	*job = good_job(arena, "command = 'x'\nmax_cost = 0\n");
	ps = (struct problems){0};
	assert_true(plan_make(job, NULL, arena, &p, &ps));
	assert_int_equal(ps.nwarnings, 0);
}

static void a_secret_that_no_env_sets_is_warned_of(void **state)
{
	struct job *job = arena_new_of(arena, struct job);
	struct problems ps = {0};
	struct plan p;
	struct buf text;

	(void)state;
	*job = good_job(arena, "command = 'x'\nenv = {A = '1'}\nsecrets = ['A', 'LICENCE']\n");
	assert_true(plan_make(job, NULL, arena, &p, &ps));
	buf_init(&text, 4096);
	problems_print_warnings(&ps, "job.toml", &text);
	assert_string_equal(
		buf_str(&text).p,
		"job.toml:3:11: warning: secrets: neither env nor pass of this job has 'LICENCE': "
		"only a variable of the submitting shell could be meant\n");
	buf_release(&text);
	*job = good_job(arena, "command = 'x'\nsecrets = 'A'\n[roles.r]\nenv = {A = '1'}\n");
	ps = (struct problems){0};
	assert_true(plan_make(job, NULL, arena, &p, &ps));
	assert_int_equal(ps.nwarnings, 0);
}

static void an_engine_that_is_not_here_is_refused_in_one_wording(void **state)
{
	(void)state;
	refused("engine = 'aws.batch'\ncommand = 'x'\n", 1,
		"engine 'aws.batch' is not in this version: engines here are local, hosts, aws.ec2, kubernetes");
	refused("engine = 'mainframe'\ncommand = 'x'\n", 1,
		"engine 'mainframe' is not in this version: engines here are local, hosts, aws.ec2, kubernetes");
}

static void the_place_of_the_master_is_one_of_three(void **state)
{
	(void)state;
	refused("command = 'x'\nmaster = 'there'\n", 2,
		"master = \"there\": write \"auto\", \"here\" or \"context:NAME\"");
	refused("command = 'x'\nmaster = 'context:'\n", 2,
		"master = \"context:\": write \"auto\", \"here\" or \"context:NAME\"");
	struct plan p = plan_of("command = 'x'\nmaster = 'here'\n");
	assert_null(plan_context(p.job));
	p = plan_of("command = 'x'\nmaster = 'context:lab'\n");
	assert_string_equal(plan_context(p.job), "lab");
}

static void an_unknown_engine_is_a_problem_with_a_suggestion(void **state)
{
	(void)state;
	refused("command = 'x'\nengine = 'locla'\n", 2,
		"engine 'locla' is not in this version: did you mean 'local'?");
}

static void what_this_machine_cannot_do_is_refused(void **state)
{
	(void)state;
	refused("command = 'x'\nisolate = 'netns'\n[roles.a]\nimage = 'busybox'\n", 2,
		"isolate = \"netns\" does not go with image: containers have the machine's network");
	refused("command = 'x'\nsource = 'docker:///b'\n", 2,
		"source 'docker:///b' is a path in an image: set image for every role");
	refused("source = 'docker:///b'\n[roles.a]\nimage = 'i'\ncommand = 'x'\n[roles.b]\ncommand = 'x'\n",
		1, "source 'docker:///b' is a path in an image: set image for every role");
	refused("command = 'x'\nimage = 'i'\nsource = 'docker://b/c'\n", 3,
		"source 'docker://b/c': write docker:// and the absolute path in the image, \"docker:///b/c\"");
	refused("command = 'x'\nengine = 'hosts'\nsource = 'http://h/c'\n", 3,
		"engine hosts takes no source 'http://h/c': it takes a file, a directory, s3://, https://, "
		"git+https://...@REVISION and docker:///PATH");
	refused("command = 'x'\n[[data]]\nsrc = 'git+https://h/r@v'\n", 2,
		"engine local takes no data from 'git+https://h/r@v': it takes a file, a directory, s3:// and "
		"https://");
	refused("command = 'x'\n[[data]]\nsrc = 'd'\npath = '/data'\n", 2,
		"data: path '/data' must be a place below the work directory, because engine local does not make "
		"machines for the run");
	refused("command = 'x'\nengine = 'hosts'\n[[data]]\nsrc = 'https://h/c'\nshard = true\n", 3,
		"data: 'https://h/c' is one file and cannot be sharded");
}

static void results_go_where_the_job_says(void **state)
{
	struct plan p;

	(void)state;
	p = plan_of("command = 'x'\n");
	assert_null(plan_results(&p, arena).url);
	p = plan_of("command = 'x'\noutput.s3 = 's3://b/c'\n");
	assert_string_equal(plan_results(&p, arena).url, "s3://b/c/");
	p = plan_of("command = 'x'\noutput.s3 = 's3://b/'\n");
	assert_string_equal(plan_results(&p, arena).url, "s3://b/");
	assert_int_equal(plan_results(&p, arena).keep_days, 0);
}

static void keys_of_other_engines_do_no_harm_here(void **state)
{
	(void)state;
	plan_of("command = 'x'\nengine = 'hosts'\n[[data]]\nsrc = 'https://h/c'\n");
	plan_of("command = 'x'\nsource = 's3://b/c'\n[[data]]\nsrc = 's3://b/d/'\nshard = true\n");
	plan_of("command = 'x'\nsource = 'git+https://h/r@v'\n");
	plan_of("command = 'x'\nengine = 'aws.ec2'\n[[data]]\nsrc = 's3://b/d/'\npath = '/data'\n");
	plan_of("command = 'x'\nmax_cost = 3\nsource = './s3'\n[roles.a]\ninstance_type = 'c5.large'\nspot = true\n");
}

/* Rule: two runs that need all hosts never hold half each.  Those of the queue begin one after the other. */
static void nodes_on_hosts_are_created_part_by_part_only_after_a_queue(void **state)
{
	(void)state;
	struct plan p = plan_of("command = 'x'\nengine = 'hosts'\ncount = 450\n"
				"resources = { cpus = 1 }\n");

	for (int i = 0; i < 450; i++)
		assert_int_equal(p.resources[i].group, i < 200 ? 1 : i < 400 ? 2 : 3);
	p = plan_of("command = 'x'\nengine = 'hosts'\ncount = 450\n");
	for (int i = 0; i < 450; i++)
		assert_int_equal(p.resources[i].group, 1);
}

/* The first could take the hosts that only the last would fit on. */
static void nodes_on_hosts_that_want_different_things_are_created_together(void **state)
{
	(void)state;
	struct plan p = plan_of("command = 'x'\nengine = 'hosts'\n[roles.a]\ncount = 300\n"
				"[roles.b]\ncount = 2\nresources = { gpus = 8 }\n");

	for (int i = 0; i < 302; i++)
		assert_int_equal(p.resources[i].group, 1);
}

static void only_a_job_without_files_of_its_own_runs_where_its_file_is(void **state)
{
	static const struct {
		const char *text;
		bool in_place;
	} cases[] = {
		{"command = 'x'\n", true},
		{"command = 'x'\nsource = '.'\n", false},
		{"command = 'x'\n[[data]]\nsrc = 'd'\n", false},
		{"command = 'x'\nengine = 'elsewhere'\n", false},
	};
	(void)state;

	for (size_t i = 0; i < COUNT(cases); i++) {
		struct job job = good_job(arena, cases[i].text);

		assert_int_equal(plan_runs_in_place(&job), cases[i].in_place);
	}
}

static void nodes_that_share_a_directory_keep_no_files_of_it(void **state)
{
	(void)state;
	refused("command = 'x'\ncount = 2\n[output]\nkeep = ['*.json']\n", 4,
		"output.keep: the 2 nodes would share the directory of the job file, so that no file is "
		"one node's: write source = \".\", or have the job write to $REGATTA_OUTPUT");
	plan_of("command = 'x'\n[output]\nkeep = ['*.json']\n");
	plan_of("command = 'x'\ncount = 2\nsource = '.'\n[output]\nkeep = ['*.json']\n");
}

static void strategy_and_engine_report_together(void **state)
{
	(void)state;
	struct problems ps =
		problems_of("engine = 'mainframe'\nstrategy = 'astrology'\ncommand = 'x'\n");
	assert_int_equal(ps.n, 2);
	ps = problems_of(
		"strategy = 'single'\ncommand = 'x'\nsource = 'http://x'\nisolate = 'netns'\n"
		"[roles.a]\nimage = 'y'\n");
	assert_int_equal(ps.n, 3);
}

static void the_same_job_gives_the_same_plan_byte_for_byte(void **state)
{
	CLEANUP(buf_release) struct buf x, y;
	(void)state;

	buf_init(&x, GOLDEN_MAX);
	buf_init(&y, GOLDEN_MAX);
	struct plan p = plan_of(job_template("pserver")), q = plan_of(job_template("pserver"));
	plan_to_json(&p, "r", arena, &x);
	plan_to_json(&q, "r", arena, &y);
	assert_true(str_eq(buf_str(&x), buf_str(&y)));
}

static void ten_thousand_nodes_are_planned(void **state)
{
	(void)state;
	struct plan p =
		plan_of("strategy = 'pserver'\ncommand = 'x'\n[roles.pserver]\ncount = 5000\n"
			"[roles.trainer]\ncount = 5000\n");
	assert_int_equal(p.crew.n, JOB_MAX_NODES);
	assert_int_equal(p.nresources, JOB_MAX_NODES);
	assert_string_equal(p.addresses[JOB_MAX_NODES - 1], "127.1.39.94");
	assert_string_equal(p.crew.members[JOB_MAX_NODES - 1].name, "pserver-4999");
}

static void a_job_of_four_thousand_roles_is_planned(void **state)
{
	CLEANUP(buf_release) struct buf text;
	(void)state;

	buf_init(&text, 1 << 20);
	buf_addz(&text, "command = 'x'\n");
	for (int i = 0; i < 4000; i++)
		buf_printf(&text, "[roles.r%d]\nafter = ['r%d']\n", i, i == 3999 ? 4000 : i + 1);
	buf_addz(&text, "[roles.r4000]\n");
	struct plan p = plan_of(text.p);
	assert_int_equal(p.crew.n, 4001);
	assert_int_equal(p.crew.roles[0].after[0], 1);
}

#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(addresses_follow_each_other_and_skip_0_and_255),
		T(no_two_ranks_share_an_address),
		T(a_resource_says_what_its_driver_needs),
		T(each_node_is_one_resource_with_an_address),
		T(isolated_nodes_need_a_bridge_that_names_them_all),
		T(a_limit_of_cost_that_cannot_act_is_warned_of),
		T(a_secret_that_no_env_sets_is_warned_of),
		T(an_engine_that_is_not_here_is_refused_in_one_wording),
		T(the_place_of_the_master_is_one_of_three),
		T(an_unknown_engine_is_a_problem_with_a_suggestion),
		T(what_this_machine_cannot_do_is_refused),
		T(results_go_where_the_job_says),
		T(keys_of_other_engines_do_no_harm_here),
		T(nodes_on_hosts_are_created_part_by_part_only_after_a_queue),
		T(nodes_on_hosts_that_want_different_things_are_created_together),
		T(only_a_job_without_files_of_its_own_runs_where_its_file_is),
		T(nodes_that_share_a_directory_keep_no_files_of_it),
		T(strategy_and_engine_report_together),
		T(lost_trainers_are_replaced_where_there_are_other_machines),
		T(the_same_job_gives_the_same_plan_byte_for_byte),
		T(ten_thousand_nodes_are_planned),
		T(a_job_of_four_thousand_roles_is_planned),
	};

	return cmocka_run_group_tests_name("plan", tests, NULL, NULL);
}
