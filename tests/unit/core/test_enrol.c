/* Machines that come without a name, and which node each of them gets. */
#include "core_fixture.h"

#include <stdio.h>
#include <string.h>

#include "base/map.h"

/* Three workers, each with a row of its own; asked for in one call. */
static struct fixture *open_batch(const char *toml)
{
	struct fixture *f = run_open(toml);

	core_run_free(f->r);
	for (int i = 0; i < f->plan.nresources; i++)
		f->plan.resources[i].group = 1;
	f->r = core_run_new(&f->plan);
	run_give(f, (struct event){.kind = EV_ACCEPTED, .seed = 1});
	return f;
}

/* The same on one resource that makes its machines by itself. */
static struct fixture *open_carrier(const char *toml)
{
	struct fixture *f = run_open(toml);

	core_run_free(f->r);
	f->plan.resources[0].node = -1;
	f->plan.resources[0].carries_many = true;
	f->plan.nresources = 1;
	for (int i = 0; i < f->plan.crew.n; i++)
		f->plan.resource_of[i] = 0;
	f->r = core_run_new(&f->plan);
	run_give(f, (struct event){.kind = EV_ACCEPTED, .seed = 1});
	return f;
}

#define ELASTIC "command = ['w']\ncount = 2\nmin = 1\nmax = 3\n"

static void set_policy(struct fixture *f, enum on_lost what)
{
	((struct role *)f->plan.crew.roles[0].spec)->policy.on_lost = (int)what;
}

/* What a machine of the batch is told. */
static enum enrolled enrol_of(struct fixture *f, int batch, const char *identity, int place)
{
	struct event ev = {
		.kind = EV_ENROL, .batch = batch, .want = 100, .place = place, .conn = 77};

	snprintf(ev.text, sizeof(ev.text), "%s", identity);
	run_give(f, ev);
	const struct effect *fx = &f->fx.v[f->fx.n - 1];

	assert_int_equal(fx->kind, FX_ENROLLED);
	assert_int_equal(fx->conn, 77);
	return fx->enrolled;
}

static enum enrolled enrol(struct fixture *f, const char *identity, int place)
{
	return enrol_of(f, f->r->resources[0].batch, identity, place);
}

static int told_rank(const struct fixture *f)
{
	return f->fx.v[f->fx.n - 1].index;
}

static int told_incarnation(const struct fixture *f)
{
	return f->fx.v[f->fx.n - 1].incarnation;
}

/* The provider says which machine a row is. */
static void say_id(struct fixture *f, int index, const char *id)
{
	struct event ev = {.kind = EV_RES_ANSWER,
			   .index = index,
			   .attempt = f->r->resources[index].ask_no,
			   .asked = f->r->resources[index].asked,
			   .outcome = OUTCOME_DONE,
			   .identity_checked = true};

	snprintf(ev.text, sizeof(ev.text), "%s", id);
	run_give(f, ev);
}

static void the_machine_of_a_row_gets_the_node_of_that_row(void **state)
{
	struct fixture *f = open_batch(three_workers);

	(void)state;
	say_id(f, 0, "i-a");
	say_id(f, 1, "i-b");
	assert_int_equal(enrol(f, "i-b", 0), ENROLLED_BOUND); /* whatever it says of its place */
	assert_int_equal(told_rank(f), 1);
	assert_int_equal(told_incarnation(f), 1);
	assert_string_equal(f->r->nodes[1].identity, "i-b");
	assert_int_equal(enrol(f, "i-a", -1), ENROLLED_BOUND);
	assert_int_equal(told_rank(f), 0);
	run_close(f);
}

static void before_the_answer_of_the_create_the_place_decides(void **state)
{
	struct fixture *f = open_batch(three_workers);

	(void)state;
	assert_int_equal(enrol(f, "i-c", 2), ENROLLED_BOUND);
	assert_int_equal(told_rank(f), 2);
	assert_string_equal(f->r->resources[2].id, "i-c"); /* the ledger knows it, too */
	assert_int_equal(enrol(f, "i-d", 2), ENROLLED_USED_UP);
	assert_int_equal(told_rank(f), -1);
	assert_int_equal(enrol(f, "i-a", 0), ENROLLED_BOUND);
	assert_int_equal(told_rank(f), 0);
	run_close(f);
}

static void without_a_place_it_is_the_first_that_is_free(void **state)
{
	struct fixture *f = open_batch(three_workers);

	(void)state;
	say_id(f, 0, "i-a"); /* has its machine, though that has not come yet */
	assert_int_equal(enrol(f, "i-x", -1), ENROLLED_BOUND);
	assert_int_equal(told_rank(f), 1);
	assert_int_equal(enrol(f, "i-y", -1), ENROLLED_BOUND);
	assert_int_equal(told_rank(f), 2);
	assert_int_equal(enrol(f, "i-a", -1), ENROLLED_BOUND);
	assert_int_equal(told_rank(f), 0);
	run_close(f);
}

static void the_same_machine_gets_the_same_answer_again(void **state)
{
	struct fixture *f = open_batch(three_workers);
	struct core_run *later;

	(void)state;
	assert_int_equal(enrol(f, "i-a", 1), ENROLLED_BOUND);
	assert_int_equal(enrol(f, "i-a", 1), ENROLLED_AGAIN);
	assert_int_equal(told_rank(f), 1);
	assert_int_equal(told_incarnation(f), 1);
	/* Also of the next master, which has nothing but the rows. */
	later = core_run_new(&f->plan);
	memcpy(later->nodes, f->r->nodes, sizeof(*later->nodes) * 3);
	memcpy(later->resources, f->r->resources, sizeof(*later->resources) * 3);
	later->phase = f->r->phase;
	core_run_free(f->r);
	f->r = later;
	core_run_restored(f->r);
	assert_int_equal(f->r->enrolments, 1);
	assert_int_equal(enrol(f, "i-a", 1), ENROLLED_AGAIN);
	assert_int_equal(told_rank(f), 1);
	assert_int_equal(enrol(f, "i-b", 1), ENROLLED_USED_UP);
	run_close(f);
}

static void one_more_than_wanted_is_sent_away(void **state)
{
	struct fixture *f = open_batch(three_workers);

	(void)state;
	for (int i = 0; i < 3; i++)
		enrol(f, (const char *[]){"i-a", "i-b", "i-c"}[i], i);
	assert_int_equal(enrol(f, "i-d", -1), ENROLLED_SURPLUS);
	assert_int_equal(enrol(f, "i-d", 3), ENROLLED_SURPLUS);
	assert_int_equal(told_rank(f), -1);
	run_close(f);
}

static void a_machine_of_another_role_gets_nothing(void **state)
{
	struct fixture *f = run_open(pserver); /* ranks 0,1 trainers; 2,3 pservers */
	struct event ev = {.kind = EV_ENROL, .want = 1, .place = -1, .text = "i-a"};

	(void)state;
	run_give(f, (struct event){.kind = EV_ACCEPTED, .seed = 1});
	ev.index = f->plan.crew.members[2].role;
	ev.batch = f->r->resources[2].batch;
	run_give(f, ev);
	assert_int_equal(f->fx.v[0].enrolled, ENROLLED_BOUND);
	assert_int_equal(told_rank(f), 2);
	ev.index = f->plan.crew.members[0].role;
	ev.batch = f->r->resources[0].batch;
	run_give(f, ev);
	assert_int_equal(f->fx.v[0].enrolled, ENROLLED_PAST);
	assert_int_equal(told_rank(f), -1);
	run_close(f);
}

static void a_lost_node_takes_a_new_machine_as_its_next_incarnation(void **state)
{
	struct fixture *f = open_batch(three_workers);
	int first;

	(void)state;
	set_policy(f, LOST_REPLACE);
	first = f->r->resources[0].batch;
	for (int i = 0; i < 3; i++) {
		enrol(f, (const char *[]){"i-a", "i-b", "i-c"}[i], i);
		say_id(f, i, (const char *[]){"i-a", "i-b", "i-c"}[i]);
		node_say(f, i, EV_NODE_HELLO);
	}
	node_say(f, 1, EV_NODE_DROPPED);
	f->now += 100;
	run_give(f, (struct event){.kind = EV_TICK});
	resource_answer(f, 1, OUTCOME_ABSENT, ERR_NONE);
	assert_int_equal(f->r->nodes[1].incarnation, 2);
	assert_string_equal(f->r->nodes[1].identity, "");
	/* While its row is not asked for anew nobody gets it, and the old machine never does. */
	assert_int_equal(enrol_of(f, first, "i-d", 1), ENROLLED_SURPLUS);
	assert_int_equal(enrol_of(f, first, "i-b", 1), ENROLLED_PAST);
	resource_answer(f, 1, OUTCOME_DONE, ERR_NONE); /* destroyed */
	assert_int_equal(f->r->resources[1].state, RES_SENT);
	assert_true(f->r->resources[1].batch > first);
	assert_int_equal(enrol_of(f, first, "i-b", 0), ENROLLED_USED_UP);
	assert_int_equal(enrol_of(f, f->r->resources[1].batch, "i-d", 0), ENROLLED_BOUND);
	assert_int_equal(told_rank(f), 1);
	assert_int_equal(told_incarnation(f), 2);
	run_close(f);
}

static void a_batch_that_was_given_up_is_past(void **state)
{
	struct fixture *f = open_batch(three_workers);

	(void)state;
	assert_int_equal(enrol_of(f, f->r->resources[0].batch + 1, "i-a", 0), ENROLLED_PAST);
	assert_int_equal(enrol_of(f, 0, "i-a", 0), ENROLLED_PAST);
	run_close(f);
}

static void a_run_that_ends_takes_nobody(void **state)
{
	struct fixture *f = open_batch(three_workers);

	(void)state;
	run_give(f, (struct event){.kind = EV_CANCEL});
	assert_int_equal(enrol(f, "i-a", 0), ENROLLED_OVER);
	run_close(f);
}

/* The provider names the rows of a batch in another order than the machines came in. */
static void rows_exchange_the_machines_of_their_batch(void **state)
{
	struct fixture *f = open_batch(three_workers);

	(void)state;
	enrol(f, "i-b", -1); /* rank 0 */
	enrol(f, "i-c", -1); /* rank 1 */
	say_id(f, 0, "i-a");
	assert_string_equal(f->r->resources[0].id, "i-b"); /* its machine stays ... */
	assert_string_equal(f->r->resources[2].id,
			    "i-a"); /* ... and the other has the row that is left */
	say_id(f, 1, "i-b");
	say_id(f, 2, "i-c");
	assert_string_equal(f->r->resources[0].id, "i-b");
	assert_string_equal(f->r->resources[1].id, "i-c");
	assert_string_equal(f->r->resources[2].id, "i-a");
	assert_int_equal(enrol(f, "i-a", -1), ENROLLED_BOUND);
	assert_int_equal(told_rank(f), 2);
	assert_int_equal(f->r->res_count[RES_LIVE], 3);
	run_close(f);
}

static void rows_exchange_them_in_any_order_of_the_answers(void **state)
{
	struct fixture *f = open_batch(three_workers);

	(void)state;
	enrol(f, "i-c", -1); /* rank 0 */
	say_id(f, 2, "i-c");
	assert_string_equal(f->r->resources[2].id,
			    ""); /* not known before the row of i-c has its answer */
	say_id(f, 1, "i-b");
	say_id(f, 0, "i-a");
	assert_string_equal(f->r->resources[0].id, "i-c");
	assert_string_equal(f->r->resources[1].id, "i-b");
	assert_string_equal(f->r->resources[2].id, "i-a");
	run_close(f);
}

static void a_machine_that_the_provider_does_not_have_ends_the_run(void **state)
{
	struct fixture *f = open_batch(three_workers);

	(void)state;
	for (int i = 0; i < 3; i++)
		enrol(f, (const char *[]){"i-x", "i-b", "i-c"}[i], i);
	say_id(f, 0, "i-a");
	assert_int_equal(f->r->verdict, VERDICT_FAILED);
	assert_int_equal(f->r->cause.kind, ERR_PROTOCOL);
	assert_string_equal(f->r->resources[0].id, "i-a"); /* that is what has to be deleted */
	run_close(f);
}

/* It enrolled and was gone before the create was answered: another gets another incarnation. */
static void a_row_that_was_never_made_forgets_its_machine(void **state)
{
	struct fixture *f = open_batch(three_workers);

	(void)state;
	enrol(f, "i-a", 0);
	resource_answer(f, 0, OUTCOME_REFUSED, ERR_CAPACITY);
	assert_string_equal(f->r->nodes[0].identity, "");
	assert_string_equal(f->r->resources[0].id, "");
	assert_int_equal(f->r->nodes[0].incarnation, 2);
	assert_int_equal(f->r->verdict, VERDICT_NONE);
	run_close(f);
}

/* ---- one resource that carries many ---- */

static void machines_of_a_group_get_the_first_nodes_that_are_free(void **state)
{
	struct fixture *f = open_carrier(three_workers);

	(void)state;
	assert_int_equal(enrol(f, "i-a", 0),
			 ENROLLED_BOUND); /* the place of a group's machine says nothing */
	assert_int_equal(told_rank(f), 0);
	assert_int_equal(enrol(f, "i-b", 0), ENROLLED_BOUND);
	assert_int_equal(told_rank(f), 1);
	assert_string_equal(f->r->resources[0].id, ""); /* the group's own is another */
	assert_int_equal(enrol(f, "i-c", 0), ENROLLED_BOUND);
	for (int i = 0; i < 3; i++)
		node_say(f, i, EV_NODE_HELLO);
	assert_int_equal(enrol(f, "i-d", 0), ENROLLED_SURPLUS);
	run_close(f);
}

static void one_that_may_replace_a_silent_machine_is_to_come_again(void **state)
{
	struct fixture *f = open_carrier(three_workers);
	struct event gone = {.kind = EV_RES_MEMBER, .text = "i-b"};

	(void)state;
	set_policy(f, LOST_REPLACE);
	say_id(f, 0, "asg-1");
	for (int i = 0; i < 3; i++) {
		enrol(f, (const char *[]){"i-a", "i-b", "i-c"}[i], -1);
		node_say(f, i, EV_NODE_HELLO);
	}
	node_say(f, 1, EV_NODE_DROPPED);
	assert_int_equal(enrol(f, "i-d", -1), ENROLLED_LATER);
	run_give(f, gone);
	assert_int_equal(enrol(f, "i-d", -1), ENROLLED_BOUND);
	assert_int_equal(told_rank(f), 1);
	assert_int_equal(told_incarnation(f), 2);
	run_close(f);
}

static void a_token_of_a_group_is_used_up_some_day(void **state)
{
	struct fixture *f = open_carrier(three_workers);
	struct event ev = {
		.kind = EV_ENROL, .batch = 1, .want = 2, .place = -1, .text = "i-a", .conn = 77};

	(void)state;
	assert_int_equal(core_enrol_uses(f->r, 0), 300);
	run_give(f, ev);
	ev.text[2] = 'b';
	run_give(f, ev);
	ev.text[2] = 'c';
	run_give(f, ev);
	assert_int_equal(f->fx.v[0].enrolled, ENROLLED_USED_UP);
	ev.text[2] = 'b'; /* which counts only those that are new */
	run_give(f, ev);
	assert_int_equal(f->fx.v[0].enrolled, ENROLLED_AGAIN);
	run_close(f);
}

static struct fixture *shrunk_group(void)
{
	struct fixture *f = open_carrier(ELASTIC);
	struct event gone = {.kind = EV_RES_MEMBER, .text = "i-b"};

	set_policy(f, LOST_SHRINK);
	say_id(f, 0, "asg-1");
	for (int i = 0; i < 2; i++) {
		enrol(f, (const char *[]){"i-a", "i-b"}[i], -1);
		node_say(f, i, EV_NODE_HELLO);
	}
	for (int i = 0; i < 2; i++)
		node_say(f, i, EV_NODE_READY);
	assert_int_equal(f->r->phase, RUN_RUNNING);
	run_give(f, gone);
	assert_int_equal(f->r->role_awake[0], 1);
	return f;
}

static void a_node_that_sleeps_because_its_machine_was_lost_is_woken(void **state)
{
	struct fixture *f = shrunk_group();

	(void)state;
	assert_int_equal(enrol(f, "i-c", -1), ENROLLED_BOUND);
	assert_int_equal(told_rank(f), 1);
	assert_int_equal(told_incarnation(f), 2);
	assert_int_equal(f->r->role_awake[0], 2);
	assert_int_equal(f->r->nodes[1].state, NODE_LAUNCHING);
	/* The third sleeps because nobody wants it. */
	assert_int_equal(enrol(f, "i-d", -1), ENROLLED_LATER); /* i-c has not said hello */
	node_say(f, 1, EV_NODE_HELLO);
	assert_int_equal(enrol(f, "i-d", -1), ENROLLED_SURPLUS);
	run_close(f);
}

static void a_node_that_was_sent_to_sleep_is_not(void **state)
{
	struct fixture *f = shrunk_group();

	(void)state;
	run_give(f, (struct event){.kind = EV_RESIZE, .index = 0, .want = 1});
	assert_int_equal(enrol(f, "i-c", -1), ENROLLED_SURPLUS);
	assert_int_equal(f->r->role_awake[0], 1);
	run_close(f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_machine_of_a_row_gets_the_node_of_that_row),
		cmocka_unit_test(before_the_answer_of_the_create_the_place_decides),
		cmocka_unit_test(without_a_place_it_is_the_first_that_is_free),
		cmocka_unit_test(the_same_machine_gets_the_same_answer_again),
		cmocka_unit_test(one_more_than_wanted_is_sent_away),
		cmocka_unit_test(a_machine_of_another_role_gets_nothing),
		cmocka_unit_test(a_lost_node_takes_a_new_machine_as_its_next_incarnation),
		cmocka_unit_test(a_batch_that_was_given_up_is_past),
		cmocka_unit_test(a_run_that_ends_takes_nobody),
		cmocka_unit_test(rows_exchange_the_machines_of_their_batch),
		cmocka_unit_test(rows_exchange_them_in_any_order_of_the_answers),
		cmocka_unit_test(a_machine_that_the_provider_does_not_have_ends_the_run),
		cmocka_unit_test(a_row_that_was_never_made_forgets_its_machine),
		cmocka_unit_test(machines_of_a_group_get_the_first_nodes_that_are_free),
		cmocka_unit_test(one_that_may_replace_a_silent_machine_is_to_come_again),
		cmocka_unit_test(a_token_of_a_group_is_used_up_some_day),
		cmocka_unit_test(a_node_that_sleeps_because_its_machine_was_lost_is_woken),
		cmocka_unit_test(a_node_that_was_sent_to_sleep_is_not),
	};
	return cmocka_run_group_tests_name("core enrol", tests, NULL, NULL);
}
