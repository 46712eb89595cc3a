#include "core_fixture.h"

#include <string.h>

/* Machines that are made for the run boot before their agents speak: timeouts.boot. */

#define BOOT_MS 300000
#define GATHER_MS 60000

static struct fixture *booting(void)
{
	struct fixture *f =
		run_open("command = ['w']\ncount = 2\ntimeouts = { boot = '5m', gather = '1m' }\n");

	f->plan.boots = true;
	run_create_all(f);
	assert_int_equal(f->r->phase, RUN_GATHERING);
	return f;
}

static void tick_at(struct fixture *f, int64_t at)
{
	f->now = at;
	run_give(f, (struct event){.kind = EV_TICK});
}

/* Until the boot of its machines is over, which the looks at them do not end. */
static void wait_in_vain(struct fixture *f)
{
	int64_t over = f->r->deadline_ms;

	assert_int_equal(over, f->now + BOOT_MS);
	tick_at(f, over - 1);
	for (int i = 0; i < 2; i++)
		if (f->r->resources[i].asked)
			resource_answer(f, i, OUTCOME_DONE, ERR_NONE);
	assert_int_equal(f->r->verdict, VERDICT_NONE);
	tick_at(f, over);
}

static struct event observation(const struct fixture *f, int index, enum outcome outcome,
				const char *text)
{
	struct event ev = {.kind = EV_RES_ANSWER,
			   .index = index,
			   .attempt = f->r->resources[index].ask_no,
			   .asked = ASKED_OBSERVE,
			   .outcome = outcome,
			   .err_kind = outcome == OUTCOME_DONE ? ERR_NONE : ERR_TIMEOUT,
			   .identity_checked = true};

	snprintf(ev.text, sizeof(ev.text), "%s", text);
	return ev;
}

static void observed(struct fixture *f, int index, enum outcome outcome, const char *text)
{
	run_give(f, observation(f, index, outcome, text));
}

/* A look at a machine that has not had its turn. */
static void queued(struct fixture *f, int index)
{
	struct event ev = observation(f, index, OUTCOME_HELD, "in queue team: no room");

	ev.queued = true;
	run_give(f, ev);
}

static bool is_asked_for_its_console(const struct fixture *f, int index)
{
	for (size_t i = 0; i < f->fx.n; i++)
		if (f->fx.v[i].kind == FX_OBSERVE && f->fx.v[i].index == index)
			return f->fx.v[i].overdue;
	return false;
}

static void gather_counts_from_the_first_word_of_the_last_machine(void **state)
{
	struct fixture *f = booting();

	(void)state;
	int64_t over = f->r->deadline_ms;

	assert_true(over > f->now + GATHER_MS); /* a boot takes longer */
	f->now = over - 2000;
	node_say(f, 0, EV_NODE_HELLO);
	assert_int_equal(f->r->deadline_ms, over);
	f->now = over - 1000;
	node_say(f, 1, EV_NODE_HELLO);
	assert_int_equal(f->r->deadline_ms, f->now + GATHER_MS);
	node_say(f, 0, EV_NODE_READY);
	tick_at(f, f->r->deadline_ms);
	assert_string_equal(
		f->r->cause.text,
		"worker-1 was not ready within 1 min (timeouts.gather): it is still 'here'");
	run_close(f);
}

static void a_machine_that_never_speaks_ends_the_run_with_its_console(void **state)
{
	struct fixture *f = booting();

	(void)state;
	node_say(f, 0, EV_NODE_HELLO);
	snprintf(f->r->resources[1].id, sizeof(f->r->resources[1].id), "i-7");
	wait_in_vain(f);
	assert_int_equal(f->r->verdict, VERDICT_NONE);
	assert_true(is_asked_for_its_console(f, 1));
	observed(f, 1, OUTCOME_HELD, "no route to host");
	assert_int_equal(f->r->verdict, VERDICT_FAILED);
	assert_int_equal(core_exit_code(f->r->verdict, &f->r->cause), 6);
	assert_int_equal(f->r->cause.node, 1);
	assert_string_equal(f->r->cause.text, "worker-1: no word from its machine i-7 within 5 min "
					      "(timeouts.boot); console: no route to host");
	run_close(f);
}

static void machines_that_nobody_may_look_at_end_the_run_with_what_is_denied(void **state)
{
	struct fixture *f = booting();
	int64_t over = f->r->deadline_ms;
	struct event ev = {.kind = EV_RES_ANSWER,
			   .asked = ASKED_OBSERVE,
			   .outcome = OUTCOME_UNSURE,
			   .err_kind = ERR_DENIED,
			   .text = "list pods: you may not"};

	(void)state;
	tick_at(f, over - 1);
	assert_int_equal(f->r->resources[0].asked, ASKED_OBSERVE);
	ev.attempt = f->r->resources[0].ask_no;
	run_give(f, ev);
	assert_int_equal(f->r->verdict, VERDICT_NONE);
	tick_at(f, over);
	assert_int_equal(f->r->verdict, VERDICT_FAILED);
	assert_int_equal(core_exit_code(f->r->verdict, &f->r->cause), 4);
	assert_string_equal(f->r->cause.text, "worker-0 was not heard within 5 min "
					      "(timeouts.boot): list pods: you may not");
	run_close(f);
}

/* What carries many machines has an id of its own, and words about the one that is missing. */
static void a_machine_of_many_is_named_by_what_is_said_of_it(void **state)
{
	struct fixture *f = booting();

	(void)state;
	f->plan.resources[0].carries_many = true;
	wait_in_vain(f);
	observed(f, 0, OUTCOME_HELD, "pod p: Unschedulable");
	assert_string_equal(f->r->cause.text, "worker-0: no word from its machine within 5 min "
					      "(timeouts.boot): pod p: Unschedulable");
	run_close(f);
}

/* Whoever reads why a run that is cleaned up waits must not read what it waited for in the beginning. */
static void what_machines_have_waited_for_is_forgotten_when_they_go(void **state)
{
	struct fixture *f = booting();

	(void)state;
	f->plan.resources[0].carries_many = true;
	tick_at(f, f->r->deadline_ms - 1);
	observed(f, 0, OUTCOME_HELD, "pod p: FailedMount");
	assert_string_equal(f->r->resources[0].why, "pod p: FailedMount");
	run_give(f, (struct event){.kind = EV_CANCEL});
	tick_at(f, f->now + 1);
	assert_int_equal(f->r->phase, RUN_CLEANING);
	assert_int_equal(f->r->resources[0].state, RES_DELETING);
	assert_string_equal(f->r->resources[0].why, "");
	assert_int_equal(f->r->resources[0].why_kind, ERR_NONE);
	run_close(f);
}

static void a_machine_without_a_console_is_not_waited_for(void **state)
{
	struct fixture *f = booting();

	(void)state;
	wait_in_vain(f);
	observed(f, 0, OUTCOME_DONE, "");
	assert_string_equal(f->r->cause.text,
			    "worker-0: no word from its machine x within 5 min (timeouts.boot)");
	run_close(f);
}

static void a_look_that_was_under_way_is_followed_by_one_for_the_console(void **state)
{
	struct fixture *f = booting();
	int64_t over = f->r->deadline_ms;

	(void)state;
	tick_at(f, over - 1);
	assert_int_equal(f->r->resources[0].asked, ASKED_OBSERVE);
	tick_at(f, over);
	observed(f, 0, OUTCOME_DONE, "");
	assert_int_equal(f->r->verdict, VERDICT_NONE);
	assert_true(is_asked_for_its_console(f, 0));
	observed(f, 0, OUTCOME_HELD, "x");
	assert_int_equal(f->r->verdict, VERDICT_FAILED);
	run_close(f);
}

static void a_console_that_does_not_come_is_given_up(void **state)
{
	struct fixture *f = booting();

	(void)state;
	wait_in_vain(f);
	tick_at(f, f->r->deadline_ms);
	assert_int_equal(f->r->verdict, VERDICT_FAILED);
	assert_int_equal(f->r->cause.kind, ERR_TIMEOUT);
	run_close(f);
}

static void a_machine_that_speaks_while_its_console_is_asked_for_is_taken(void **state)
{
	struct fixture *f = booting();

	(void)state;
	node_say(f, 1, EV_NODE_HELLO);
	wait_in_vain(f);
	node_say(f, 0, EV_NODE_HELLO);
	observed(f, 0, OUTCOME_HELD, "x");
	assert_int_equal(f->r->verdict, VERDICT_NONE);
	assert_int_equal(f->r->deadline_ms, f->now + GATHER_MS);
	run_close(f);
}

static void a_master_that_was_restarted_asks_for_the_console_again(void **state)
{
	struct fixture *f = booting();

	(void)state;
	wait_in_vain(f);
	f->r->silent_ms = 0; /* it is not stored */
	run_give(f, (struct event){.kind = EV_RESUME});
	tick_at(f, f->r->deadline_ms);
	assert_int_equal(f->r->verdict, VERDICT_NONE);
	tick_at(f, f->r->deadline_ms);
	assert_int_equal(f->r->verdict, VERDICT_FAILED);
	run_close(f);
}

static void a_gang_that_waits_for_its_turn_has_all_its_time_afterwards(void **state)
{
	struct fixture *f = booting();

	(void)state;
	for (int day = 0; day < 3; day++) {
		wait_in_vain(f);
		queued(f, 0);
		assert_int_equal(f->r->verdict, VERDICT_NONE);
		assert_string_equal(f->r->resources[0].why, "in queue team: no room");
	}
	assert_int_equal(f->r->deadline_ms, f->now + BOOT_MS);
	node_say(f, 0, EV_NODE_HELLO);
	node_say(f, 1, EV_NODE_HELLO);
	assert_int_equal(f->r->deadline_ms, f->now + GATHER_MS);
	run_close(f);
}

/* Rule: what changes nothing is not recorded, and a run may wait for days. */
static void a_wait_that_goes_on_is_recorded_once(void **state)
{
	struct fixture *f = booting();

	(void)state;
	for (int look = 0; look < 50; look++) {
		while (!f->r->resources[0].asked)
			tick_at(f, f->r->next_ms);
		uint64_t changes = f->fx.changes;

		queued(f, 0);
		assert_int_equal(f->fx.changes > changes, look == 0);
	}
	int64_t last = f->now;

	tick_at(f, f->r->deadline_ms);
	assert_int_equal(f->r->deadline_ms, last + BOOT_MS);
	tick_at(f, f->r->deadline_ms);
	assert_int_equal(f->r->silent_ms, f->now); /* it had its turn, and is late */
	run_close(f);
}

/* It holds what others wait for. */
static void a_part_of_a_gang_does_not_wait_without_end_for_the_turn_of_the_rest(void **state)
{
	struct fixture *f = booting();

	(void)state;
	node_say(f, 0, EV_NODE_HELLO);
	wait_in_vain(f);
	queued(f, 1);
	assert_int_equal(f->r->verdict, VERDICT_FAILED);
	assert_non_null(strstr(f->r->cause.text, "in queue team: no room"));
	run_close(f);
}

static void other_engines_have_only_their_gather_time(void **state)
{
	struct fixture *f =
		run_open("command = ['w']\ntimeouts = { boot = '5m', gather = '1m' }\n");

	(void)state;
	run_create_all(f);
	assert_int_equal(f->r->deadline_ms, f->now + GATHER_MS);
	run_close(f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(gather_counts_from_the_first_word_of_the_last_machine),
		cmocka_unit_test(a_machine_that_never_speaks_ends_the_run_with_its_console),
		cmocka_unit_test(machines_that_nobody_may_look_at_end_the_run_with_what_is_denied),
		cmocka_unit_test(a_machine_of_many_is_named_by_what_is_said_of_it),
		cmocka_unit_test(what_machines_have_waited_for_is_forgotten_when_they_go),
		cmocka_unit_test(a_machine_without_a_console_is_not_waited_for),
		cmocka_unit_test(a_look_that_was_under_way_is_followed_by_one_for_the_console),
		cmocka_unit_test(a_console_that_does_not_come_is_given_up),
		cmocka_unit_test(a_machine_that_speaks_while_its_console_is_asked_for_is_taken),
		cmocka_unit_test(a_master_that_was_restarted_asks_for_the_console_again),
		cmocka_unit_test(a_gang_that_waits_for_its_turn_has_all_its_time_afterwards),
		cmocka_unit_test(a_wait_that_goes_on_is_recorded_once),
		cmocka_unit_test(
			a_part_of_a_gang_does_not_wait_without_end_for_the_turn_of_the_rest),
		cmocka_unit_test(other_engines_have_only_their_gather_time),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
