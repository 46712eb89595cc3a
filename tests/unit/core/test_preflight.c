/* The preflight: nodes try out the network between them before the gang starts. */
#include "core_fixture.h"

#include <string.h>

#include "core/preflight.h"

#define JOB "command = ['true']\ncount = 3\npreflight = true\n"
#define ANSWER_MS (3 * CORE_PREFLIGHT_MS)

static const struct preflight_facts usual = {
	.port = 4000, .mtu = 1500, .shm = 1 << 30, .files = 1024};

static void ready(struct fixture *f, int rank, struct preflight_facts facts)
{
	facts.port += facts.port ? rank : 0;
	run_give(f, (struct event){.kind = EV_NODE_READY, .index = rank, .facts = facts});
}

/* All nodes are ready, and have these facts, or the usual ones. */
static struct fixture *gathered(const char *toml, const struct preflight_facts *facts)
{
	struct fixture *f = run_open(toml);

	run_create_all(f);
	for (int i = 0; i < f->plan.crew.n; i++)
		node_say(f, i, EV_NODE_HELLO);
	for (int i = 0; i < f->plan.crew.n; i++)
		ready(f, i, facts ? facts[i] : usual);
	return f;
}

static struct event answer(const struct fixture *f, int rank)
{
	return (struct event){.kind = EV_NODE_PREFLIGHT,
			      .index = rank,
			      .attempt = f->r->preflight.round,
			      .place = -1};
}

static void reaches_all(struct fixture *f, int rank)
{
	run_give(f, answer(f, rank));
}

static void does_not_reach(struct fixture *f, int rank, int peer, bool reached, const char *why)
{
	struct event ev = answer(f, rank);

	ev.want = 1;
	ev.place = peer;
	ev.reached = reached;
	snprintf(ev.text, sizeof(ev.text), "%s", why);
	run_give(f, ev);
}

static void pass(struct fixture *f, int64_t ms)
{
	f->now += ms;
	run_give(f, (struct event){.kind = EV_TICK});
}

static void fails(struct fixture *f, enum err_kind kind, const char *text)
{
	assert_int_equal(f->r->verdict, VERDICT_FAILED);
	assert_int_equal(f->r->cause.kind, kind);
	assert_string_equal(f->r->cause.text, text);
	for (int i = 0; i < f->plan.crew.n; i++)
		assert_int_equal(f->r->nodes[i].attempt, 0);
	run_close(f);
}

static void the_gang_starts_when_all_reach_all(void **state)
{
	struct fixture *f = gathered(JOB, NULL);

	(void)state;
	assert_int_equal(effects_count(f, FX_PREFLIGHT), 3);
	assert_int_equal(effects_count(f, FX_START), 0);
	reaches_all(f, 0);
	reaches_all(f, 0); /* counts once */
	reaches_all(f, 1);
	assert_int_equal(f->r->phase, RUN_GATHERING);
	reaches_all(f, 2);
	assert_int_equal(f->r->phase, RUN_RUNNING);
	assert_int_equal(effects_count(f, FX_START), 3);
	assert_int_equal(effects_count(f, FX_PREFLIGHT_PASSED), 1);
	assert_string_equal(f->r->preflight.text, "3 nodes reach each other, MTU 1500");
	run_close(f);
}

static void a_pair_that_is_apart_is_named(void **state)
{
	struct fixture *f = gathered(JOB, NULL);

	(void)state;
	reaches_all(f, 0);
	does_not_reach(f, 1, 2, false, "no answer within 5.0 s");
	fails(f, ERR_UNAVAILABLE,
	      "preflight: worker-1 cannot reach worker-2 (127.1.0.3): no answer within 5.0 s");
	f = gathered(JOB, NULL);
	does_not_reach(f, 2, 0, true, "32 KiB are lost");
	fails(f, ERR_UNAVAILABLE,
	      "preflight: worker-2 cannot reach worker-0 (127.1.0.1): 32 KiB are lost (MTU 1500 and 1500)");
}

static void a_pair_is_apart_because_a_machine_is_taken(void **state)
{
	(void)state;
	for (int rank = 0; rank < 2; rank++) {
		struct fixture *f = gathered(JOB, NULL);

		run_give(f,
			 (struct event){.kind = EV_NODE_PREEMPT, .index = rank, .at_ms = 120000});
		does_not_reach(f, 1, 0, false, "refused");
		fails(f, ERR_PREEMPTED,
		      "preflight: worker-1 cannot reach worker-0 (127.1.0.1): refused");
	}
}

static void others_are_counted(void **state)
{
	struct fixture *f = gathered(JOB, NULL);
	struct event ev = answer(f, 0);

	(void)state;
	ev.want = 2;
	ev.place = 1;
	snprintf(ev.text, sizeof(ev.text), "refused");
	run_give(f, ev);
	fails(f, ERR_UNAVAILABLE,
	      "preflight: worker-0 cannot reach worker-1 (127.1.0.2), nor another one: refused");
}

static void a_machine_that_has_too_little_is_named(void **state)
{
	struct preflight_facts facts[3] = {usual, usual, usual};

	(void)state;
	facts[1].files = 128;
	fails(gathered(JOB, facts), ERR_CAPACITY,
	      "preflight: worker-1 may open 128 files, and at least 256 are needed: raise the limit "
	      "(ulimit -n) of its agent");
	facts[1] = usual;
	facts[2].shm = 1 << 20;
	fails(gathered(JOB, facts), ERR_CAPACITY,
	      "preflight: /dev/shm of worker-2 has 1024 KiB free, and at least 16 MiB are needed: remove "
	      "what is left there, or mount it larger");
	facts[2].shm = -1; /* there is none: many jobs need none */
	struct fixture *f = gathered(JOB, facts);

	assert_int_equal(effects_count(f, FX_PREFLIGHT), 3);
	run_close(f);
}

static void clocks_that_differ_are_named(void **state)
{
	struct preflight_facts facts[3] = {usual, usual, usual};

	(void)state;
	facts[0].clock_ms = 15000;
	facts[2].clock_ms = -15000;
	struct fixture *f = gathered(JOB, facts);

	assert_int_equal(effects_count(f, FX_PREFLIGHT), 3);
	run_close(f);
	facts[2].clock_ms = -30000;
	fails(gathered(JOB, facts), ERR_UNAVAILABLE,
	      "preflight: the clock of worker-0 is 45.0 s ahead of that of worker-2: set the clocks (NTP)");
}

static void what_stops_nothing_is_said(void **state)
{
	struct preflight_facts facts[3] = {usual, usual, usual};
	struct fixture *f;

	(void)state;
	facts[1].mtu = 9001;
	facts[2].files = 256;
	f = gathered("command = ['true']\ncount = 3\nprocesses_per_node = 100\npreflight = true\n",
		     facts);
	for (int i = 0; i < 3; i++)
		reaches_all(f, i);
	assert_string_equal(
		f->r->preflight.text,
		"3 nodes reach each other; MTU differs: 1500 on worker-0, 9001 on worker-1; worker-2 may "
		"open 256 files, too few for a connection to each of 300 processes");
	run_close(f);
}

static void it_is_only_where_it_is_wanted(void **state)
{
	struct preflight_facts none[3] = {{0}};
	struct fixture *f = run_open("command = ['true']\ncount = 3\n");

	(void)state;
	run_make_ready(f); /* they share this machine's network */
	assert_int_equal(f->r->phase, RUN_RUNNING);
	run_close(f);
	f = run_open("command = ['true']\npreflight = true\n");
	run_make_ready(f); /* it is alone */
	assert_int_equal(f->r->phase, RUN_RUNNING);
	run_close(f);
	f = gathered("command = ['true']\npreflight = true\n", NULL);
	assert_int_equal(effects_count(f, FX_PREFLIGHT), 0);
	assert_int_equal(f->r->phase, RUN_RUNNING);
	run_close(f);
	f = gathered(JOB, none); /* agents of an earlier version */
	assert_int_equal(f->r->phase, RUN_RUNNING);
	run_close(f);
	none[0] = none[2] = usual;
	f = gathered(JOB, none);
	assert_int_equal(effects_count(f, FX_PREFLIGHT), 2);
	int peers[3];

	assert_int_equal(core_preflight_peers(f->r, 0, peers), 1);
	assert_int_equal(peers[0], 2);
	reaches_all(f, 0);
	reaches_all(f, 2);
	assert_int_equal(f->r->phase, RUN_RUNNING);
	run_close(f);
}

static void a_node_that_comes_back_begins_it_anew(void **state)
{
	struct fixture *f = gathered(JOB, NULL);
	struct event old = answer(f, 2);

	(void)state;
	reaches_all(f, 0);
	node_say(f, 1, EV_NODE_DROPPED);
	does_not_reach(f, 2, 1, false, "refused"); /* it has left: no reason to fail */
	assert_int_equal(f->r->phase, RUN_GATHERING);
	pass(f, ANSWER_MS); /* its lease decides */
	assert_int_equal(f->r->phase, RUN_GATHERING);
	node_say(f, 1, EV_NODE_HELLO);
	ready(f, 1, usual);
	assert_int_equal(effects_count(f, FX_PREFLIGHT), 3);
	run_give(f, old); /* of the round before */
	reaches_all(f, 0);
	reaches_all(f, 1);
	assert_int_equal(f->r->phase, RUN_GATHERING);
	reaches_all(f, 2);
	assert_int_equal(f->r->phase, RUN_RUNNING);
	run_close(f);
}

/* Rule: what a node has said before its agent was ready anew does not count. */
static void a_node_that_is_ready_anew_is_asked_again(void **state)
{
	struct fixture *f = gathered(JOB, NULL);

	(void)state;
	reaches_all(f, 0);
	reaches_all(f, 1);
	node_say(f, 1, EV_NODE_HELLO);
	ready(f, 1, usual);
	reaches_all(f, 2);
	assert_int_equal(f->r->phase, RUN_GATHERING);
	reaches_all(f, 0);
	reaches_all(f, 1);
	assert_int_equal(f->r->phase, RUN_RUNNING);
	run_close(f);
}

/* Rule: an agent that is started again listens on another port, which its READY says. */
static void nobody_is_asked_before_all_are_ready_anew(void **state)
{
	struct fixture *f = gathered(JOB, NULL);

	(void)state;
	node_say(f, 1, EV_NODE_HELLO);
	node_say(f, 2, EV_NODE_HELLO);
	ready(f, 2, usual);
	assert_int_equal(effects_count(f, FX_PREFLIGHT), 0);
	ready(f, 1, usual);
	assert_int_equal(effects_count(f, FX_PREFLIGHT), 3);
	run_close(f);
}

/* Rule: a node that is not wanted any more is neither asked nor awaited. */
static void a_node_that_is_not_wanted_meanwhile_takes_no_part(void **state)
{
	struct fixture *f =
		gathered("command = ['true']\ncount = 3\nmin = 2\npreflight = true\n", NULL);

	(void)state;
	reaches_all(f, 0);
	run_give(f, (struct event){.kind = EV_RESIZE, .index = 0, .want = 2});
	pass(f, 1);
	for (int i = 0; i < 2; i++)
		reaches_all(f, i);
	assert_int_equal(f->r->phase, RUN_RUNNING);
	assert_string_equal(f->r->preflight.text, "2 nodes reach each other, MTU 1500");
	run_close(f);
}

static void a_node_that_is_lost_meanwhile_ends_the_run(void **state)
{
	struct fixture *f = gathered(JOB, NULL);

	(void)state;
	node_say(f, 1, EV_NODE_DROPPED);
	resource_answer(f, 1, OUTCOME_ABSENT, ERR_NONE); /* nobody has asked */
	pass(f, f->job.timeouts.lease_ms);
	assert_int_equal(f->r->verdict, VERDICT_FAILED);
	assert_int_equal(f->r->cause.node, 1);
	run_close(f);
}

static void a_node_that_does_not_answer_is_named(void **state)
{
	struct fixture *f = gathered(JOB, NULL);

	(void)state;
	reaches_all(f, 0);
	reaches_all(f, 2);
	pass(f, ANSWER_MS - 1);
	assert_int_equal(f->r->phase, RUN_GATHERING);
	pass(f, 1);
	fails(f, ERR_TIMEOUT,
	      "preflight: worker-1 has not said within 15.0 s whether it reaches the other nodes");
}

static void after_a_restart_of_the_master_it_begins_anew(void **state)
{
	struct fixture *f = gathered(JOB, NULL);

	(void)state;
	reaches_all(f, 0);
	memset(&f->r->preflight, 0, sizeof(f->r->preflight));
	core_run_restored(f->r);
	run_give(f, (struct event){.kind = EV_RESUME});
	pass(f, f->job.timeouts.gather_ms);
	assert_int_equal(f->r->phase, RUN_GATHERING);
	for (int i = 0; i < 3; i++)
		node_say(f, i, EV_NODE_HELLO);
	for (int i = 0; i < 3; i++)
		ready(f, i, usual);
	assert_int_equal(effects_count(f, FX_PREFLIGHT), 3);
	for (int i = 0; i < 3; i++)
		reaches_all(f, i);
	assert_int_equal(f->r->phase, RUN_RUNNING);
	run_close(f);
}

static void of_many_nodes_each_reaches_some(void **state)
{
	static const int want[] = {260, 261, 263, 267, 275, 291, 23, 87, 215};
	struct fixture *f = gathered("command = ['true']\ncount = 300\npreflight = true\n", NULL);
	int peers[300];

	(void)state;
	assert_int_equal(core_preflight_peers(f->r, 259, peers), 9);
	for (int i = 0; i < 9; i++)
		assert_int_equal(peers[i], want[i]);
	/* They are asked slice by slice. */
	assert_int_equal(effects_count(f, FX_PREFLIGHT), CORE_SLICE);
	for (int i = 0; i < CORE_SLICE; i++)
		reaches_all(f, i);
	assert_int_equal(f->r->phase, RUN_GATHERING);
	pass(f, 1);
	for (int i = CORE_SLICE; i < 300; i++)
		reaches_all(f, i);
	assert_int_equal(f->r->phase, RUN_RUNNING);
	assert_string_equal(f->r->preflight.text,
			    "each of 300 nodes reaches some others, MTU 1500");
	run_close(f);
	f = gathered("command = ['true']\ncount = 64\npreflight = true\n", NULL);
	assert_int_equal(core_preflight_peers(f->r, 63, peers), 63);
	run_close(f);
}

static void namespaces_of_one_machine_share_its_neighbours(void **state)
{
	static const struct {
		const char *toml;
		int peers;
	} cases[] = {
		{"command = ['true']\ncount = 23\nisolate = 'netns'\n", 22},
		{"command = ['true']\ncount = 24\nisolate = 'netns'\n", 5}, /* 1, 2, 4, 8, 16 */
		{"command = ['true']\ncount = 64\nisolate = 'netns'\n", 4},
		{"command = ['true']\ncount = 256\nisolate = 'netns'\n", 1},
		{"command = ['true']\ncount = 257\nisolate = 'netns'\n", 0},
	};
	int peers[300];

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct fixture *f = gathered(cases[i].toml, NULL);

		assert_int_equal(core_preflight_peers(f->r, 0, peers), cases[i].peers);
		assert_int_equal(f->r->phase, cases[i].peers ? RUN_GATHERING : RUN_RUNNING);
		run_close(f);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_gang_starts_when_all_reach_all),
		cmocka_unit_test(a_pair_that_is_apart_is_named),
		cmocka_unit_test(a_pair_is_apart_because_a_machine_is_taken),
		cmocka_unit_test(others_are_counted),
		cmocka_unit_test(a_machine_that_has_too_little_is_named),
		cmocka_unit_test(clocks_that_differ_are_named),
		cmocka_unit_test(what_stops_nothing_is_said),
		cmocka_unit_test(it_is_only_where_it_is_wanted),
		cmocka_unit_test(a_node_that_comes_back_begins_it_anew),
		cmocka_unit_test(a_node_that_is_ready_anew_is_asked_again),
		cmocka_unit_test(nobody_is_asked_before_all_are_ready_anew),
		cmocka_unit_test(a_node_that_is_not_wanted_meanwhile_takes_no_part),
		cmocka_unit_test(a_node_that_is_lost_meanwhile_ends_the_run),
		cmocka_unit_test(a_node_that_does_not_answer_is_named),
		cmocka_unit_test(after_a_restart_of_the_master_it_begins_anew),
		cmocka_unit_test(of_many_nodes_each_reaches_some),
		cmocka_unit_test(namespaces_of_one_machine_share_its_neighbours),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
