#include "core_fixture.h"

#include <string.h>

#include "base/rand.h"
#include "core/queue.h"

/* Runs that ask for resources: who may start, who waits, and why. */

static struct queue_machine machine = {.name = "this machine",
				       .has = {.cpus = 4, .gpus = 2, .memory = UINT64_C(8) << 30}};
static const struct queue_machines here = {.v = &machine, .n = 1};

static const struct resources_spec one_gpu = {.gpus = 1}, two_gpus = {.gpus = 2},
				   two_cpus = {.cpus = 2};

static struct queue_run waiting(int64_t no, const struct resources_spec *wants)
{
	return (struct queue_run){.no = no, .waits = true, .nodes = wants, .n = 1};
}

static struct queue_run holding(int64_t no, const struct resources_spec *wants)
{
	return (struct queue_run){.no = no, .nodes = wants, .n = 1};
}

static void the_first_that_fits_is_admitted(void **state)
{
	const struct queue_run runs[] = {waiting(2, &one_gpu), waiting(1, &two_gpus)};

	(void)state;
	assert_int_equal(queue_admit(runs, 2, &here), 1);
	assert_int_equal(queue_place(runs, 2, 1), 1);
	assert_int_equal(queue_place(runs, 2, 0), 2);
	assert_int_equal(queue_admit(NULL, 0, &here), -1);
}

static void nobody_overtakes_the_first(void **state)
{
	/* There is a GPU for the second one. */
	const struct queue_run runs[] = {holding(1, &one_gpu), waiting(2, &two_gpus),
					 waiting(3, &one_gpu)};
	char why[QUEUE_WHY];

	(void)state;
	assert_int_equal(queue_admit(runs, 3, &here), -1);
	queue_why(runs, 3, 1, &here, why);
	assert_string_equal(why, "1 node with 2 gpus in all: 1 gpu free on 1 machine");
	queue_why(runs, 3, 2, &here, why);
	assert_string_equal(why, "1 run before it");
}

static void a_higher_priority_comes_first(void **state)
{
	struct queue_run runs[] = {waiting(1, &one_gpu), waiting(2, &one_gpu)};

	(void)state;
	runs[1].priority = 1;
	assert_int_equal(queue_admit(runs, 2, &here), 1);
	assert_int_equal(queue_place(runs, 2, 0), 2);
	runs[0].priority = 2;
	assert_int_equal(queue_admit(runs, 2, &here), 0);
}

static void what_is_held_is_not_given_again(void **state)
{
	const struct queue_run runs[] = {holding(1, &one_gpu), holding(2, &one_gpu),
					 waiting(3, &one_gpu)};
	const struct queue_run others[] = {runs[0], runs[1], waiting(3, &two_cpus)};

	(void)state;
	assert_int_equal(queue_admit(runs, 3, &here), -1);
	assert_int_equal(queue_admit(others, 3, &here), 2);
}

static void memory_counts_and_so_does_every_node_of_a_run(void **state)
{
	const struct resources_spec half = {.memory = UINT64_C(4) << 30},
				    most = {.memory = UINT64_C(5) << 30};
	const struct resources_spec two[] = {{.gpus = 1}, {.gpus = 2}};
	const struct queue_run fits[] = {holding(1, &half), waiting(2, &half)};
	const struct queue_run late[] = {holding(1, &half), waiting(2, &most)};
	char why[QUEUE_WHY];

	(void)state;
	assert_int_equal(queue_admit(fits, 2, &here), 1);
	assert_int_equal(queue_admit(late, 2, &here), -1);
	queue_why(late, 2, 1, &here, why);
	assert_string_equal(why, "1 node with 5.0 GiB in all: 4.0 GiB free on 1 machine");
	/* Each of them alone would fit. */
	assert_false(queue_possible(two, 2, &here, why));
	assert_true(queue_possible(two, 1, &here, why));
	assert_true(queue_possible(two + 1, 1, &here, why));
}

static void hosts_are_taken_whole(void **state)
{
	struct queue_machine free[] = {
		{.name = "a", .has = {.gpus = 1}, .slots = 1},
		{.name = "b", .has = {.gpus = 2}, .slots = 1},
	};
	const struct queue_machines hosts = {.v = free, .n = 2, .whole = true};
	const struct resources_spec both[] = {{.gpus = 1}, {.gpus = 2}}, big[] = {{.gpus = 3}};
	const struct resources_spec many[] = {{.gpus = 1}, {.gpus = 1}, {.gpus = 1}};
	struct queue_run runs[] = {waiting(2, both), holding(1, big)};
	char why[QUEUE_WHY];

	(void)state;
	runs[0].n = 2;
	assert_int_equal(queue_admit(runs, 2, &hosts), 0); /* hosts of others are not in the list */
	runs[1].placing = true;				   /* it may take some of these */
	assert_int_equal(queue_admit(runs, 2, &hosts), -1);
	queue_why(runs, 2, 0, &hosts, why);
	assert_string_equal(why, "it is the next");
	assert_false(queue_possible(big, 1, &hosts, why));
	assert_string_equal(why, "1 node with 3 gpus in all: 3 gpus there on 2 machines");
	assert_false(queue_possible(many, 3, &hosts, why)); /* one slot each */
	free[1].slots = 2;
	assert_true(queue_possible(many, 3, &hosts, why));
}

static void what_is_missing_is_said_in_its_own_unit(void **state)
{
	const struct resources_spec all[] = {{.cpus = 0.5, .gpus = 3, .memory = UINT64_C(3) << 29}};
	const struct queue_machines none = {0};
	char why[QUEUE_WHY];

	(void)state;
	assert_false(queue_possible(all, 1, &here, why));
	assert_string_equal(why,
			    "1 node with 0.5 cpus, 3 gpus, 1.5 GiB in all: 4 cpus, 2 gpus, 8.0 "
			    "GiB there on 1 machine");
	const struct resources_spec gpus[] = {{.cpus = 1, .gpus = 3}};
	struct queue_machine plain = {.has = {.cpus = 4}};

	assert_false(queue_possible(gpus, 1, &(struct queue_machines){.v = &plain, .n = 1}, why));
	assert_string_equal(why,
			    "1 node with 1 cpu, 3 gpus in all: 4 cpus, no gpus there on 1 machine");
	assert_false(queue_possible(all, 1, &none, why));
	assert_non_null(strstr(why, "nothing there on 0 machines"));
}

/* ---- which machine each node gets ---- */

/* Rule: a run whose nodes want different things is not refused for the order in which they stand. */
static void nodes_of_different_sizes_find_their_machines(void **state)
{
	struct queue_machine free[] = {{.has = {.cpus = 32, .gpus = 8}, .slots = 1},
				       {.has = {.cpus = 4, .gpus = 8}, .slots = 1},
				       {.has = {.cpus = 4, .gpus = 2}, .slots = 1}};
	/* The one with fewer GPUs needs the machine with many processors. */
	const struct resources_spec nodes[] = {
		{.gpus = 1}, {.cpus = 16, .gpus = 4}, {.cpus = 4, .gpus = 8}};
	size_t where[3];

	(void)state;
	assert_true(queue_assign(&(struct queue_machines){.v = free, .n = 3}, nodes, 3, where));
	assert_int_equal(where[0], 2);
	assert_int_equal(where[1], 0);
	assert_int_equal(where[2], 1);
	assert_int_equal(free[0].has.gpus, 4); /* what is left */
}

static void fractions_of_processors_add_up(void **state)
{
	static const struct resources_spec nodes[] = {{.cpus = 0.2}, {.cpus = 1.8}};
	struct queue_machine free = {.has = {.cpus = 2}};
	char why[QUEUE_WHY];

	(void)state;
	assert_true(queue_possible(nodes, 2, &(struct queue_machines){.v = &free, .n = 1}, why));
	free.has.cpus = 1.99;
	assert_false(queue_possible(nodes, 2, &(struct queue_machines){.v = &free, .n = 1}, why));
}

static void equal_nodes_and_machines_keep_their_order(void **state)
{
	struct queue_machine free[3] = {{.slots = 2}, {.slots = 2}, {.slots = 2}};
	const struct resources_spec nodes[5] = {0};
	size_t where[5];

	(void)state;
	assert_true(queue_assign(&(struct queue_machines){.v = free, .n = 3}, nodes, 5, where));
	for (size_t i = 0; i < 5; i++)
		assert_int_equal(where[i], i / 2);
}

/* Two of them fit on a machine, but not all of them: there are more ways to try than anybody could wait for. */
static void a_search_without_hope_ends(void **state)
{
	struct queue_machine free[20];
	struct resources_spec nodes[40];

	(void)state;
	for (size_t i = 0; i < 20; i++)
		free[i] = (struct queue_machine){.has = {.cpus = 7 + (double)i / 100}};
	for (size_t i = 0; i < 40; i++)
		nodes[i] = (struct resources_spec){.cpus = 3.3 + (double)i / 50};
	assert_false(queue_assign(&(struct queue_machines){.v = free, .n = 20}, nodes, 40, NULL));
}

/* Rule: that no two machines are quite alike does not make a run wait or refuses it. */
static void large_runs_find_their_machines_whatever_these_have(void **state)
{
	enum { HALF = 200 };
	static struct queue_machine free[2 * HALF];
	static struct resources_spec nodes[2 * HALF];
	static size_t where[2 * HALF];

	(void)state;
	/* Those without much memory come last, and the first nodes would do with them. */
	for (size_t i = 0; i < 2 * HALF; i++) {
		free[i] = (struct queue_machine){
			.has = {.gpus = 1, .memory = (i < HALF ? 64000 : 16000) + i}, .slots = 1};
		nodes[i] = i < HALF ? (struct resources_spec){.gpus = 1}
				    : (struct resources_spec){.memory = 60000};
	}
	assert_true(queue_assign(&(struct queue_machines){.v = free, .n = 2 * HALF}, nodes,
				 2 * HALF, where));
	for (size_t i = 0; i < 2 * HALF; i++) /* nodes that are alike in their order */
		assert_int_equal(where[i], i < HALF ? i + HALF : i - HALF);
	assert_int_equal(free[HALF].has.gpus, 0);
	assert_int_equal(free[0].has.memory, 4000);
	for (size_t i = 0; i < 2 * HALF; i++)
		free[i].has = (struct resources_spec){.gpus = 1, .memory = i < HALF ? 64000 : 0};
	assert_true(queue_assign(&(struct queue_machines){.v = free, .n = 2 * HALF}, nodes,
				 HALF + 1, where));
	for (size_t i = 0; i < HALF; i++) /* also if one of them has made room */
		assert_int_equal(where[i], i + 1);
	for (size_t i = 0; i < HALF; i++)
		free[i].has.memory = 64000;
	free[0].has = (struct resources_spec){.gpus = 1};
	assert_false(queue_assign(&(struct queue_machines){.v = free, .n = 2 * HALF}, nodes,
				  2 * HALF, where));
}

#define MOST 4
static bool fits_somehow(const struct queue_machine *v, const struct resources_spec *nodes,
			 size_t n)
{
	if (n == 0)
		return true;
	for (size_t k = 0; k < MOST; k++) {
		struct queue_machine left[MOST];

		memcpy(left, v, sizeof(left));
		if (left[k].slots-- == 0 || left[k].has.gpus < nodes->gpus ||
		    left[k].has.cpus < nodes->cpus)
			continue;
		left[k].has.gpus -= nodes->gpus;
		left[k].has.cpus -= nodes->cpus;
		if (fits_somehow(left, nodes + 1, n - 1))
			return true;
	}
	return false;
}

static void what_fits_somehow_is_placed(void **state)
{
	struct rng rng;
	int yes = 0;

	(void)state;
	rng_seed(&rng, 11);
	for (int i = 0; i < 3000; i++) {
		struct queue_machine v[MOST], kept[MOST];
		struct resources_spec nodes[MOST + 1];
		size_t where[MOST + 1], n = 1 + rng_below(&rng, MOST + 1);

		for (size_t k = 0; k < MOST; k++)
			v[k] = (struct queue_machine){
				.has = {.cpus = (double)rng_below(&rng, 5),
					.gpus = (int64_t)rng_below(&rng, 5)},
				.slots = i % 2 ? 1 : 1 + (int64_t)rng_below(&rng, 3)};
		for (size_t k = 0; k < n; k++)
			nodes[k] = (struct resources_spec){.cpus = (double)rng_below(&rng, 4),
							   .gpus = (int64_t)rng_below(&rng, 4)};
		memcpy(kept, v, sizeof(v));
		bool can = fits_somehow(v, nodes, n);

		yes += can;
		assert_int_equal(
			queue_assign(&(struct queue_machines){.v = v, .n = MOST}, nodes, n, where),
			can);
		for (size_t k = 0; can && k < n; k++) {
			struct queue_machine *m = &kept[where[k]];

			assert_true((m->has.cpus -= nodes[k].cpus) >= 0);
			assert_true((m->has.gpus -= nodes[k].gpus) >= 0);
			assert_true(m->slots-- > 0);
		}
	}
	assert_in_range(yes, 500, 2500);
}

/* ---- the run itself ---- */

static const char queued[] = "command = ['w']\nmin = 1\nmax = 2\nresources = { cpus = 1 }\n";

static void a_run_with_resources_waits_until_it_is_admitted(void **state)
{
	struct fixture *f = run_open(queued);
	struct err err = {0};

	(void)state;
	run_give(f, (struct event){.kind = EV_ACCEPTED});
	assert_int_equal(f->r->phase, RUN_ACCEPTED);
	assert_int_equal(f->r->deadline_ms, 0);
	f->now += 1000LL * 3600 * 24;
	run_give(f, (struct event){.kind = EV_TICK});
	run_give(f, (struct event){.kind = EV_RESUME});
	run_give(f, (struct event){.kind = EV_CAPACITY});
	run_give(f, (struct event){.kind = EV_RESIZE, .index = 0, .want = 2});
	assert_int_equal(effects_count(f, FX_CREATE), 0);
	assert_int_equal(f->r->phase, RUN_ACCEPTED);
	assert_int_equal(core_resize_check(f->r, 0, 2, &err), -1);
	assert_non_null(strstr(err.msg, "waits in the queue"));
	run_give(f, (struct event){.kind = EV_ADMIT});
	assert_int_equal(f->r->phase, RUN_PROVISIONING);
	assert_int_equal(effects_count(f, FX_CREATE), 1);
	run_give(f, (struct event){.kind = EV_ADMIT}); /* twice is once */
	assert_int_equal(f->r->phase, RUN_PROVISIONING);
	run_close(f);
}

static void a_run_that_waits_can_be_cancelled(void **state)
{
	struct fixture *f = run_open(queued);

	(void)state;
	run_give(f, (struct event){.kind = EV_ACCEPTED});
	run_give(f, (struct event){.kind = EV_CANCEL, .text = "cancelled"});
	for (int i = 0; i < 5 && !run_phase_is_final(f->r->phase); i++)
		run_give(f, (struct event){.kind = EV_TICK});
	assert_int_equal(f->r->phase, RUN_CANCELLED);
	run_give(f, (struct event){.kind = EV_ADMIT});
	assert_int_equal(f->r->phase, RUN_CANCELLED);
	run_close(f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_first_that_fits_is_admitted),
		cmocka_unit_test(nobody_overtakes_the_first),
		cmocka_unit_test(a_higher_priority_comes_first),
		cmocka_unit_test(what_is_held_is_not_given_again),
		cmocka_unit_test(memory_counts_and_so_does_every_node_of_a_run),
		cmocka_unit_test(hosts_are_taken_whole),
		cmocka_unit_test(what_is_missing_is_said_in_its_own_unit),
		cmocka_unit_test(nodes_of_different_sizes_find_their_machines),
		cmocka_unit_test(fractions_of_processors_add_up),
		cmocka_unit_test(equal_nodes_and_machines_keep_their_order),
		cmocka_unit_test(a_search_without_hope_ends),
		cmocka_unit_test(large_runs_find_their_machines_whatever_these_have),
		cmocka_unit_test(what_fits_somehow_is_placed),
		cmocka_unit_test(a_run_with_resources_waits_until_it_is_admitted),
		cmocka_unit_test(a_run_that_waits_can_be_cancelled),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
