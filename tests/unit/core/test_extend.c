/* The time at which machines end by themselves, moved on while the run goes on. */
#include "core_fixture.h"

#define HOUR 3600000LL
#define DAY (24 * HOUR)

static const char *const limited = "command = ['true']\ncount = 3\nmax_runtime = '2h'\n";

/* Three machines; the last has no end of its own. */
static struct fixture *open_expiring(const char *toml)
{
	struct fixture *f = run_open(toml);

	core_run_free(f->r);
	f->plan.resources[0].expires = f->plan.resources[1].expires = true;
	f->r = core_run_new(&f->plan);
	return f;
}

static void tick(struct fixture *f, int64_t later)
{
	f->now += later;
	run_give(f, (struct event){.kind = EV_TICK});
}

static void every_hour_what_is_live_and_expires_gets_another_day(void **state)
{
	struct fixture *f = open_expiring(three_workers);

	(void)state;
	run_make_ready(f);
	tick(f, HOUR - 1000);
	assert_int_equal(effects_count(f, FX_EXTEND), 0);
	for (int i = 0; i < 3; i++) {
		tick(f, HOUR);
		assert_int_equal(effects_count(f, FX_EXTEND), 2);
		assert_true(effects_have(f, FX_EXTEND, 0) && effects_have(f, FX_EXTEND, 1));
		assert_int_equal(f->fx.v[0].lifetime_ms, DAY);
		resource_answer(f, 0, OUTCOME_DONE, ERR_NONE);
		resource_answer(f, 1, OUTCOME_DONE, ERR_NONE);
		assert_in_range(f->r->next_ms, f->now + 1, f->now + HOUR);
	}
	run_close(f);
}

static void a_run_with_a_limit_is_not_extended(void **state)
{
	struct fixture *f = open_expiring(limited);

	(void)state;
	run_make_ready(f);
	tick(f, HOUR + 1);
	assert_int_equal(effects_count(f, FX_EXTEND), 0);
	run_close(f);
}

static void nobody_knows_when_the_master_before_extended_last(void **state)
{
	struct fixture *f = open_expiring(three_workers);

	(void)state;
	run_make_ready(f);
	core_run_restored(f->r);
	run_give(f, (struct event){.kind = EV_RESUME});
	tick(f, 1);
	assert_int_equal(effects_count(f, FX_EXTEND), 2);
	run_close(f);
}

static void a_slice_is_extended_at_a_time(void **state)
{
	struct fixture *f = open_expiring(three_workers);

	(void)state;
	run_make_ready(f);
	f->r->slice = 1;
	tick(f, HOUR);
	assert_true(effects_count(f, FX_EXTEND) == 1 && effects_have(f, FX_EXTEND, 0));
	tick(f, 0);
	assert_true(effects_count(f, FX_EXTEND) == 1 && effects_have(f, FX_EXTEND, 1));
	tick(f, 0);
	tick(f, 0);
	assert_int_equal(effects_count(f, FX_EXTEND), 0);
	run_close(f);
}

static void what_could_not_be_extended_says_why_and_is_tried_an_hour_later(void **state)
{
	struct fixture *f = open_expiring(three_workers);

	(void)state;
	run_make_ready(f);
	tick(f, HOUR);
	resource_answer(f, 0, OUTCOME_UNSURE, ERR_DENIED);
	resource_answer(f, 1, OUTCOME_ABSENT, ERR_NOT_FOUND);
	assert_int_equal(f->r->resources[0].why_kind, ERR_DENIED);
	assert_int_equal(f->r->resources[1].state, RES_LIVE); /* that is not proof */
	assert_int_equal(f->r->phase, RUN_RUNNING);
	tick(f, HOUR);
	assert_int_equal(effects_count(f, FX_EXTEND), 2);
	resource_answer(f, 0, OUTCOME_DONE, ERR_NONE);
	assert_int_equal(f->r->resources[0].why_kind, ERR_NONE);
	run_close(f);
}

static void the_end_of_the_run_does_not_wait_for_an_extension(void **state)
{
	struct fixture *f = open_expiring(three_workers);

	(void)state;
	run_make_ready(f);
	tick(f, HOUR);
	for (int i = 0; i < 3; i++) {
		node_say(f, i, EV_NODE_STARTED);
		node_exit(f, i, 0, 0);
		node_say(f, i, EV_NODE_DRAINED);
	}
	assert_int_equal(f->r->phase, RUN_CLEANING);
	assert_true(effects_have(f, FX_DESTROY, 2));
	resource_answer(f, 0, OUTCOME_DONE, ERR_NONE);
	assert_true(effects_have(f, FX_DESTROY, 0));
	tick(f, HOUR);
	assert_int_equal(effects_count(f, FX_EXTEND),
			 0); /* what is being deleted may look abandoned */
	run_close(f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_hour_what_is_live_and_expires_gets_another_day),
		cmocka_unit_test(a_run_with_a_limit_is_not_extended),
		cmocka_unit_test(nobody_knows_when_the_master_before_extended_last),
		cmocka_unit_test(a_slice_is_extended_at_a_time),
		cmocka_unit_test(what_could_not_be_extended_says_why_and_is_tried_an_hour_later),
		cmocka_unit_test(the_end_of_the_run_does_not_wait_for_an_extension),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
