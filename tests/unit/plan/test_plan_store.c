#include "stored.h"

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

/* One of each strategy, with every key of the job file somewhere. */
static const char *const jobs[] = {
	"command = ['w']\n",
	"name = 'full'\ncommand = 'python3 train.py \"a b\"'\ncount = 3\nsource = './x'\n"
	"env = {A = '1', EMPTY = '', N = 3.10}\nmax_runtime = '2h'\nmax_cost = 20.5\nsample_every = 0\n"
	"metric_prefix = 'M '\n[[data]]\nsrc = './d'\nshard = true\n[metrics.loss]\npattern = 'l=(.*)'\n"
	"better = 'lower'\n[metrics]\nacc = 'a=(.*)'\n[output]\nkeep = ['model/**', '*.json']\n"
	"[timeouts]\nlaunch = '1m'\ngrace = 0\nlease = '90m'\n",
	"command = 'x'\nstrategy = 'roles'\n[roles.store]\nservice = true\nport = 5000\nmemory = '2GiB'\n"
	"[roles.prep]\nready_when = 'finished'\n[roles.w]\ncount = 2\nafter = ['store', 'prep']\n"
	"command = ['a', 'b']\nenv = {B = '2'}\ninstance_type = 'c5'\nspot = true\n",
	("strategy = 'pserver'\n[roles.pserver]\ncount = 2\ncommand = ['p']\n[roles.trainer]\ncount = 3\n"
	 "command = ['t']\n"),
	"strategy = 'elastic'\ncount = 2\nmin = 1\nmax = 3\nprocesses_per_node = 2\ncommand = ['torchrun', 't']\n",
};
#define NJOBS (sizeof(jobs) / sizeof(jobs[0]))

static struct plan plan_of(const char *text)
{
	struct job *job = arena_new_of(arena, struct job);
	struct problems ps = {0};
	struct doc *facts = NULL;
	struct plan p;

	assert_int_equal(
		json_parse(
			STR("{\"first_address\":\"127.7.0.250\",\"home\":\"/h\",\"run_dir\":\"/h/runs/r\",\"base_dir\":\"/job\"}"),
			arena, &facts, NULL),
		0);
	const struct job_rules rules = plan_job_rules();

	*job = good_job_by(arena, text, &rules);
	if (!plan_make(job, facts, arena, &p, &ps))
		fail_msg("%s", ps.v[0].text);
	return p;
}

static const char *as_printed(const struct plan *p)
{
	struct buf out;

	buf_init(&out, 1 << 24);
	plan_to_json(p, "run-abcd", arena, &out);
	const char *z = arena_strndup(arena, buf_str(&out).p, out.n);
	buf_release(&out);
	return z;
}

/* Rule: what was stored is what is restored, of every strategy. */

static void a_stored_plan_comes_back_as_it_was(void **state)
{
	(void)state;
	for (size_t i = 0; i < NJOBS; i++) {
		struct plan p = plan_of(jobs[i]);
		const char *text = stored_text(&p, arena);
		struct plan q = stored_back(text, arena);

		assert_string_equal(stored_text(&q, arena), text);
		assert_string_equal(as_printed(&q), as_printed(&p)); /* with the environments */
		assert_int_equal(q.crew.ncounted, p.crew.ncounted);
		for (int k = 0; k < p.nresources; k++)
			assert_string_equal(q.resources[k].spec, p.resources[k].spec);
		assert_int_equal(q.job->data.n, p.job->data.n);
		assert_int_equal(q.job->sample_ms, p.job->sample_ms);
		assert_string_equal(q.job->data_prefix, p.job->data_prefix);
		assert_int_equal(q.job->timeouts.grace_ms, p.job->timeouts.grace_ms);
	}
}

static void the_stored_form_is_a_promise(void **state)
{
	struct buf all;

	(void)state;
	buf_init(&all, 1 << 20);
	for (size_t i = 0; i < NJOBS; i++) {
		struct plan p = plan_of(jobs[i]);
		buf_addz(&all, stored_text(&p, arena));
		buf_addc(&all, '\n');
	}
	golden_check(golden_path(arena, "golden/plan/stored.jsonl"), buf_str(&all));
	buf_release(&all);
}

static void resources_keep_their_order_and_their_patience(void **state)
{
	(void)state;
	struct plan p = plan_of("command = 'x'\ncount = 2\n");
	struct plan_resource *v = arena_array(arena, struct plan_resource, 3);
	int *needs = arena_array(arena, int, 1);
	static const char *choices[] = {"{\"type\":\"a\"}", "{\"type\":\"b\"}"};

	v[0] = (struct plan_resource){.kind = "ec2.group",
				      .name = "net",
				      .node = -1,
				      .spec = "{\"x\":1}",
				      .late_ms = 77,
				      .group = 2,
				      .settle_ms = 300000,
				      .absent_looks = 5,
				      .choices = choices,
				      .nchoices = 2,
				      .carries_many = true,
				      .shared = true};
	v[1] = p.resources[0];
	v[2] = p.resources[1];
	needs[0] = 0;
	v[1].needs = v[2].needs = needs;
	v[1].nneeds = v[2].nneeds = 1;
	p.resources = v;
	p.nresources = 3;
	p.resource_of[0] = 1;
	p.resource_of[1] = 2;
	struct plan q = stored_back(stored_text(&p, arena), arena);
	assert_int_equal(q.resources[0].late_ms, 77);
	assert_int_equal(q.resources[0].group, 2);
	assert_int_equal(q.resources[0].settle_ms, 300000);
	assert_int_equal(q.resources[0].absent_looks, 5);
	assert_string_equal(plan_choice(&q.resources[0], 3), choices[1]);
	assert_null(plan_choice(&q.resources[1], 3));
	assert_true(q.resources[0].carries_many && q.resources[0].shared);
	assert_false(q.resources[1].carries_many || q.resources[1].shared);
	assert_int_equal(q.resources[0].node, -1);
	assert_int_equal(q.resources[2].nneeds, 1);
	assert_int_equal(q.resources[2].needs[0], 0);
	assert_int_equal(q.resource_of[1], 2);
}

/* Rule: a plan of ten thousand nodes can be stored and read. */
static void the_largest_plan_fits(void **state)
{
	(void)state;
	struct plan p = plan_of("command = 'x'\ncount = 10000\n"),
		    q = stored_back(stored_text(&p, arena), arena);

	assert_int_equal(q.crew.n, 10000);
	assert_string_equal(q.addresses[9999], p.addresses[9999]);
}

/* Rule: what is not understood is refused whole. */

static void refused(const char *from, const char *to, const char *why)
{
	struct plan p = plan_of(jobs[2]), q = {.nresources = -7};
	struct problems ps = {0};
	const char *text = stored_text(&p, arena), *at = strstr(text, from);

	if (!at)
		fail_msg("no %s in %s", from, text);
	text = arena_printf(arena, "%.*s%s%s", (int)(at - text), text, to, at + strlen(from));
	assert_false(plan_from_doc(stored_parsed(text, arena), arena, &q, &ps));
	assert_int_equal(q.nresources, -7);
	if (!strstr(ps.v[0].text, why))
		fail_msg("'%s' does not say '%s'", ps.v[0].text, why);
}

static void what_is_not_understood_is_refused(void **state)
{
	(void)state;
	refused("\"version\":1", "\"version\":2", "version");
	refused("\"version\":1,", "", "missing key 'version'");
	refused("\"version\":1,", "\"version\":1,\"new\":1,", "unknown key 'new'");
	refused("\"strategy\":\"roles\",\"interface\"", "\"strategy\":\"moon\",\"interface\"",
		"no strategy 'moon'");
	refused("\"job\":{", "\"job\":{\"moons\":3,", "unknown key 'moons'");
	refused("\"after\":[\"store\",\"prep\"]}", "\"after\":[\"store\",\"nobody\"]}",
		"no role 'nobody'");
	refused("\"node\":\"w-0\"", "\"node\":\"w-9\"", "no node 'w-9'");
	refused("\"name\":\"w-1\",\"role\"", "\"name\":\"w-0\",\"role\"",
		"two nodes are named 'w-0'");
	refused("\"resource\":\"w-1\"", "\"resource\":\"w-7\"", "no resource 'w-7'");
	refused("\"ready_when\":\"port\"", "\"ready_when\":\"moon\"", "ready_when");
}

#define of(t) cmocka_unit_test_setup_teardown(t, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		of(a_stored_plan_comes_back_as_it_was),
		of(the_stored_form_is_a_promise),
		of(resources_keep_their_order_and_their_patience),
		of(the_largest_plan_fits),
		of(what_is_not_understood_is_refused),
	};

	return cmocka_run_group_tests_name("plan_store", tests, NULL, NULL);
}
