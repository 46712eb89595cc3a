/* What machines cost, and the limit. */
#include "core_fixture.h"

#include <string.h>

#define HOUR 3600000LL
#define DOLLAR 1000000LL

static const char *choices[] = {"{\"type\":\"a\"}", "{\"type\":\"b\"}"};
static int64_t prices[] = {DOLLAR, 2 * DOLLAR}; /* an hour of a, of b */

/* Three machines with prices. */
static struct fixture *open_priced(const char *toml, int64_t least_ms)
{
	struct fixture *f = run_open(toml);

	core_run_free(f->r);
	for (int i = 0; i < f->plan.nresources; i++) {
		f->plan.resources[i].choices = choices;
		f->plan.resources[i].nchoices = 2;
		f->plan.resources[i].prices = (struct ints){.v = prices, .n = 2};
		f->plan.resources[i].least_paid_ms = least_ms;
	}
	f->r = core_run_new(&f->plan);
	return f;
}

static void cancel(struct fixture *f)
{
	run_give(f, (struct event){.kind = EV_CANCEL, .text = "x", .hurry = true});
	assert_int_equal(f->r->resources[0].state, RES_DELETING);
}

static void a_machine_costs_from_its_creation_until_its_deletion_was_asked_for(void **state)
{
	struct fixture *f = open_priced(three_workers, 0);

	(void)state;
	run_give(f, (struct event){.kind = EV_ACCEPTED, .seed = 1});
	assert_int_equal(core_cost(f->r, f->now + HOUR), 0); /* asked for, not there */
	for (int i = 0; i < 3; i++)
		resource_answer(f, i, OUTCOME_DONE, ERR_NONE);
	f->now += HOUR;
	assert_int_equal(core_cost(f->r, f->now), 3 * DOLLAR);
	cancel(f);
	f->now += HOUR;
	assert_int_equal(core_cost(f->r, f->now), 3 * DOLLAR);
	run_clean_up(f);
	f->now += HOUR;
	assert_int_equal(core_cost(f->r, f->now), 3 * DOLLAR);
	assert_int_equal(core_paid_ms(f->r, 0, f->now), HOUR);
	run_close(f);
}

static void a_deletion_that_is_refused_does_not_stop_the_costs(void **state)
{
	struct fixture *f = open_priced(three_workers, 0);

	(void)state;
	run_create_all(f);
	cancel(f);
	resource_answer(f, 0, OUTCOME_HELD, ERR_DENIED);
	f->now += HOUR;
	assert_int_equal(core_cost_of(f->r, 0, f->now), DOLLAR);
	assert_int_equal(core_cost_of(f->r, 1, f->now), 0);
	run_close(f);
}

static void a_short_life_costs_the_least_time(void **state)
{
	struct fixture *f = open_priced(three_workers, 60000);

	(void)state;
	run_make_ready(f);
	f->now += 1000;
	assert_in_range(core_cost(f->r, f->now), 3 * DOLLAR / 60, 3 * DOLLAR / 60 + 3);
	f->now += 60000;
	assert_int_equal(core_paid_ms(f->r, 2, f->now), 61000);
	run_close(f);
}

static void the_choice_decides_the_price(void **state)
{
	struct fixture *f = open_priced(three_workers, 0);

	(void)state;
	run_give(f, (struct event){.kind = EV_ACCEPTED, .seed = 1});
	resource_answer(f, 0, OUTCOME_REFUSED, ERR_CAPACITY);
	resource_answer(f, 0, OUTCOME_DONE, ERR_NONE);
	f->now += HOUR;
	assert_int_equal(core_cost(f->r, f->now), 2 * DOLLAR);
	run_close(f);
}

/* The machine that replaces a lost one adds to what the lost one has cost. */
static void the_sum_has_the_machines_of_all_attempts(void **state)
{
	struct fixture *f = open_priced(three_workers, 0);
	struct core_resource *res = &f->r->resources[1];

	(void)state;
	((struct role *)f->plan.crew.roles[0].spec)->policy.on_lost = LOST_REPLACE;
	run_make_ready(f);
	for (int i = 0; i < 3; i++)
		node_say(f, i, EV_NODE_STARTED);
	f->now += HOUR;
	node_say(f, 1, EV_NODE_DROPPED);
	f->now = f->r->nodes[1].observe_at_ms;
	run_give(f, (struct event){.kind = EV_TICK});
	resource_answer(f, 1, OUTCOME_ABSENT, ERR_NONE);
	resource_answer(f, 1, OUTCOME_DONE, ERR_NONE); /* destroyed: nothing is left of it */
	int64_t first = core_cost_of(f->r, 1, f->now);
	assert_true(first >= DOLLAR);
	assert_int_equal(res->asked, ASKED_CREATE);
	resource_answer(f, 1, OUTCOME_DONE, ERR_NONE);
	f->now += HOUR;
	assert_int_equal(core_cost_of(f->r, 1, f->now), first + DOLLAR);
	run_close(f);
}

static void the_run_ends_when_it_has_cost_the_limit(void **state)
{
	struct fixture *f =
		open_priced("command = 'x'\ncount = 3\nmax_cost = 1.5\n", 0); /* half an hour */

	(void)state;
	run_make_ready(f);
	int64_t from = f->now;
	run_give(f, (struct event){.kind = EV_TICK});
	assert_true(f->r->next_ms > 0 && f->r->next_ms <= from + HOUR / 2 + 10);
	f->now = from + HOUR / 2 - 1000;
	run_give(f, (struct event){.kind = EV_TICK});
	assert_int_equal(f->r->phase, RUN_RUNNING);
	assert_true(f->r->next_ms <= from + HOUR / 2 + 10);
	f->now = from + HOUR / 2 + 10;
	run_give(f, (struct event){.kind = EV_TICK});
	assert_int_equal(f->r->verdict, VERDICT_FAILED);
	assert_int_equal(f->r->cause.kind, ERR_QUOTA);
	assert_string_equal(f->r->cause.text,
			    "max_cost of 1.50 USD is reached: the run is stopped");
	run_close(f);
}

static void without_a_price_nothing_costs(void **state)
{
	struct fixture *f = run_open("command = 'x'\ncount = 3\nmax_cost = 1.5\n");

	(void)state;
	run_make_ready(f);
	f->now += 1000 * HOUR;
	run_give(f, (struct event){.kind = EV_TICK});
	assert_int_equal(core_cost(f->r, f->now), 0);
	assert_int_equal(f->r->verdict, VERDICT_NONE);
	run_close(f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(
			a_machine_costs_from_its_creation_until_its_deletion_was_asked_for),
		cmocka_unit_test(a_deletion_that_is_refused_does_not_stop_the_costs),
		cmocka_unit_test(a_short_life_costs_the_least_time),
		cmocka_unit_test(the_choice_decides_the_price),
		cmocka_unit_test(the_sum_has_the_machines_of_all_attempts),
		cmocka_unit_test(the_run_ends_when_it_has_cost_the_limit),
		cmocka_unit_test(without_a_price_nothing_costs),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
