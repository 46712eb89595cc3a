#include "core_fixture.h"

/* A run that stands for a suite, on the master that both were handed to. */

static struct fixture *carrier(void)
{
	static const struct plan_resource resources[] = {
		{.kind = "x.group", .name = "group", .node = -1, .shared = true, .id = "g"},
		{.kind = "x.master",
		 .name = "master",
		 .node = -1,
		 .master = true,
		 .shared = true,
		 .id = "i"},
	};
	struct fixture *f = run_open(three_workers);

	core_run_free(f->r);
	f->plan.resources = arena_array(f->a, struct plan_resource, 2);
	memcpy(f->plan.resources, resources, sizeof(resources));
	f->plan.nresources = 2;
	f->plan.crew.n = f->plan.crew.ncounted = 0;
	f->plan.carries = true;
	f->r = core_run_new(&f->plan);
	run_give(f, (struct event){.kind = EV_ACCEPTED, .seed = 1});
	return f;
}

static void carried(struct fixture *f, enum verdict v, enum err_kind kind)
{
	run_give(f,
		 (struct event){.kind = EV_CARRIED, .verdict = v, .err_kind = kind, .text = "why"});
}

static void it_runs_until_its_suite_has_ended(void **state)
{
	struct fixture *f = carrier();

	(void)state;
	assert_int_equal(f->r->phase, RUN_RUNNING);
	f->now += 1000LL * 60 * 60 * 24 * 365;
	run_give(f, (struct event){.kind = EV_TICK});
	assert_int_equal(f->r->phase, RUN_RUNNING);
	carried(f, VERDICT_SUCCEEDED, ERR_NONE);
	assert_int_equal(f->r->phase, RUN_SUCCEEDED);
	assert_true(effects_have(f, FX_ENDED, 0));
	/* The machine is not its own to delete. */
	assert_false(effects_have(f, FX_DESTROY, 0) || effects_have(f, FX_DESTROY, 1));
	run_close(f);
}

static void a_cancel_goes_to_the_suite_and_is_not_lost_by_a_restart(void **state)
{
	struct fixture *f = carrier();

	(void)state;
	run_give(f, (struct event){.kind = EV_CANCEL, .hurry = true});
	assert_true(effects_have(f, FX_CANCEL_CARRIED, 0));
	assert_int_equal(f->r->phase, RUN_RUNNING);
	core_run_restored(f->r);
	run_give(f, (struct event){.kind = EV_RESUME});
	assert_true(effects_have(f, FX_CANCEL_CARRIED, 0));
	carried(f, VERDICT_CANCELLED, ERR_CANCELLED);
	assert_int_equal(f->r->phase, RUN_CANCELLED);
	carried(f, VERDICT_SUCCEEDED, ERR_NONE);
	assert_int_equal(f->r->verdict, VERDICT_CANCELLED);
	run_close(f);
}

static void the_end_of_a_suite_is_nothing_to_other_runs(void **state)
{
	struct fixture *f = run_open(three_workers);

	(void)state;
	run_give(f, (struct event){.kind = EV_ACCEPTED, .seed = 1});
	carried(f, VERDICT_SUCCEEDED, ERR_NONE);
	assert_int_equal(f->r->phase, RUN_PROVISIONING);
	run_close(f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(it_runs_until_its_suite_has_ended),
		cmocka_unit_test(a_cancel_goes_to_the_suite_and_is_not_lost_by_a_restart),
		cmocka_unit_test(the_end_of_a_suite_is_nothing_to_other_runs),
	};

	return cmocka_run_group_tests_name("carrier", tests, NULL, NULL);
}
