/* The end of the machine that a master lives on. */
#include "unit.h"

#include <string.h>

#include "core/machine_end.h"
#include "plan/plan.h"

#define NOW 1000
#define GROUP 1
#define MACHINE 2

/* As the master on the machine has it: the bucket is the install's, the nodes are its own. */
static struct plan_resource resources[] = {
	{.kind = "x.bucket", .name = "bucket", .id = "b-1", .shared = true},
	{.kind = "x.group", .name = "group", .id = "g-1", .shared = true, .expires = true},
	{.kind = "x.master",
	 .name = "master",
	 .id = "i-1",
	 .shared = true,
	 .expires = true,
	 .master = true},
	{.kind = "x.node", .name = "node-0", .expires = true},
};
static const struct plan plan = {.resources = resources, .nresources = 4};
static const struct machine_end_facts done = {.plan = &plan}, busy = {.plan = &plan, .busy = true};

struct ending {
	struct machine_end e;
	int64_t now;
	int index;
};

static struct ending begin(void)
{
	struct ending x = {.now = NOW, .index = -1};

	machine_end_init(&x.e, NOW);
	return x;
}

static enum machine_end_step next(struct ending *x, const struct machine_end_facts *f)
{
	return machine_end_next(&x->e, f, x->now, &x->index);
}

static void answer(struct ending *x, enum outcome outcome)
{
	const struct err err = {ERR_DENIED, 0, "not allowed"};

	machine_end_answered(&x->e, outcome, &err, x->now);
}

/* Its runs are done, and whoever follows them has had time to learn of it. */
static void idle(struct ending *x)
{
	assert_int_equal(next(x, &done), MACHINE_END_WAIT);
	x->now += MACHINE_END_FIRST_MS - 1;
	assert_int_equal(next(x, &done), MACHINE_END_WAIT);
	x->now++;
}

static void results_that_only_the_machine_has_keep_it_for_their_time(void **state)
{
	const struct machine_end_facts kept = {.plan = &plan, .keep_ms = 3600000};
	struct ending x = begin();

	(void)state;
	assert_int_equal(next(&x, &kept), MACHINE_END_WAIT);
	x.now += kept.keep_ms - 1;
	assert_int_equal(next(&x, &kept), MACHINE_END_WAIT);
	x.now++;
	/* Its steps are in their order: the time to give up begins then. */
	assert_int_equal(next(&x, &kept), MACHINE_END_DETACH);
}

static void results_that_go_elsewhere_keep_it_only_if_they_are_not_copied(void **state)
{
	const struct machine_end_facts copied = {.plan = &plan, .keep_ms = 3600000, .copied = true};
	const struct machine_end_facts not_copied = {
		.plan = &plan, .keep_ms = 3600000, .copied = true, .lost = true};
	struct ending x = begin();

	(void)state;
	assert_int_equal(next(&x, &copied), MACHINE_END_WAIT);
	x.now += MACHINE_END_FIRST_MS;
	assert_int_equal(next(&x, &not_copied), MACHINE_END_WAIT);
	assert_int_equal(next(&x, &copied), MACHINE_END_DETACH);
	x = begin();
	assert_int_equal(next(&x, &not_copied), MACHINE_END_WAIT);
	x.now += not_copied.keep_ms - 1;
	assert_int_equal(next(&x, &not_copied), MACHINE_END_WAIT);
	x.now++;
	assert_int_equal(next(&x, &not_copied), MACHINE_END_DETACH);
}

static void the_machine_detaches_itself_then_its_group_goes_then_itself(void **state)
{
	struct ending x = begin();

	(void)state;
	assert_int_equal(next(&x, &busy), MACHINE_END_WAIT);
	idle(&x);
	assert_int_equal(next(&x, &done), MACHINE_END_DETACH);
	answer(&x, OUTCOME_DONE);
	assert_int_equal(next(&x, &done), MACHINE_END_DESTROY);
	assert_int_equal(x.index, GROUP);
	answer(&x, OUTCOME_ABSENT);
	assert_int_equal(next(&x, &done), MACHINE_END_DESTROY);
	assert_int_equal(x.index, MACHINE);
	answer(&x, OUTCOME_HELD);
	assert_int_equal(next(&x, &done), MACHINE_END_WAIT);
}

static void a_run_that_is_not_done_keeps_the_machine(void **state)
{
	struct ending x = begin();

	(void)state;
	for (int i = 0; i < 3; i++) {
		x.now += MACHINE_END_GIVE_UP_MS;
		assert_int_equal(next(&x, &busy), MACHINE_END_WAIT);
	}
	idle(&x);
	assert_int_equal(next(&x, &done), MACHINE_END_DETACH);
	answer(&x, OUTCOME_HELD);
	/* Another run came: the time counts from its end. */
	x.now += MACHINE_END_GIVE_UP_MS + 1;
	assert_int_equal(next(&x, &busy), MACHINE_END_WAIT);
	idle(&x);
	assert_int_equal(next(&x, &done), MACHINE_END_DETACH);
}

static void one_step_is_open_at_a_time_and_answers_that_come_twice_are_ignored(void **state)
{
	struct ending x = begin();

	(void)state;
	idle(&x);
	assert_int_equal(next(&x, &done), MACHINE_END_DETACH);
	x.now += MACHINE_END_GIVE_UP_MS + 1;
	assert_int_equal(next(&x, &done), MACHINE_END_WAIT);
	x.now = NOW;
	answer(&x, OUTCOME_HELD);
	answer(&x, OUTCOME_DONE);
	assert_false(x.e.detached);
	assert_string_equal(x.e.why, "not allowed");
}

static void a_step_that_fails_is_told_and_repeated(void **state)
{
	static const enum outcome failures[] = {OUTCOME_HELD, OUTCOME_UNSURE, OUTCOME_REFUSED,
						OUTCOME_BROKEN};
	struct ending x = begin();

	(void)state;
	idle(&x);
	for (int i = 0; i < 4; i++) {
		assert_int_equal(next(&x, &done), MACHINE_END_DETACH);
		answer(&x, failures[i]);
		assert_string_equal(x.e.why, "not allowed");
		assert_int_equal(next(&x, &done), MACHINE_END_WAIT);
		x.now += MACHINE_END_AGAIN_MS;
	}
	assert_int_equal(next(&x, &done), MACHINE_END_DETACH);
	answer(&x, OUTCOME_DONE);
	assert_string_equal(x.e.why, "");
}

static void a_group_that_stays_does_not_keep_a_machine_that_costs(void **state)
{
	struct ending x = begin();

	(void)state;
	idle(&x);
	assert_int_equal(next(&x, &done), MACHINE_END_DETACH);
	answer(&x, OUTCOME_HELD);
	x.now = x.e.idle_ms + MACHINE_END_GIVE_UP_MS;
	assert_int_equal(next(&x, &done), MACHINE_END_DETACH);
	answer(&x, OUTCOME_HELD);
	x.now += MACHINE_END_AGAIN_MS;
	assert_int_equal(next(&x, &done), MACHINE_END_DESTROY);
	assert_int_equal(x.index, MACHINE);
}

static void results_that_were_lost_can_be_asked_for_a_while(void **state)
{
	const struct machine_end_facts lost = {.plan = &plan, .lost = true};
	struct ending x = begin();

	(void)state;
	assert_int_equal(next(&x, &lost), MACHINE_END_WAIT);
	x.now += MACHINE_END_TELL_MS - 1;
	assert_int_equal(next(&x, &lost), MACHINE_END_WAIT);
	x.now++;
	assert_int_equal(next(&x, &lost), MACHINE_END_DETACH);
}

static void a_master_without_a_run_leaves_after_a_while(void **state)
{
	const struct machine_end_facts none = {0};
	struct ending x = begin();

	(void)state;
	x.now += MACHINE_END_UNUSED_MS;
	assert_int_equal(next(&x, &none), MACHINE_END_WAIT);
	x.now++;
	assert_int_equal(next(&x, &none), MACHINE_END_LEAVE);
	assert_int_equal(machine_end_machine(&(struct plan){0}), -1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(results_that_only_the_machine_has_keep_it_for_their_time),
		cmocka_unit_test(results_that_go_elsewhere_keep_it_only_if_they_are_not_copied),
		cmocka_unit_test(the_machine_detaches_itself_then_its_group_goes_then_itself),
		cmocka_unit_test(a_run_that_is_not_done_keeps_the_machine),
		cmocka_unit_test(
			one_step_is_open_at_a_time_and_answers_that_come_twice_are_ignored),
		cmocka_unit_test(a_step_that_fails_is_told_and_repeated),
		cmocka_unit_test(a_group_that_stays_does_not_keep_a_machine_that_costs),
		cmocka_unit_test(results_that_were_lost_can_be_asked_for_a_while),
		cmocka_unit_test(a_master_without_a_run_leaves_after_a_while),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
