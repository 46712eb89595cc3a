#include "store_fixture.h"

#include <sqlite3.h>

#include "store/internal.h"

static void fill_node(struct core_node *n, int salt)
{
	*n = (struct core_node){
		.state = (enum node_state)(NODE_EXITED - salt),
		.attempt = 3 + salt,
		.start_sent = salt == 0,
		.stop_sent = salt == 1,
		.connected = true,
		.serving = salt == 2,
		.settled = salt != 1,
		.gate_met = salt != 2,
		.exit = {.code = -1,
			 .signal = 9 + salt,
			 .oom = salt != 0,
			 .kind = ERR_TIMEOUT,
			 .reason = "its port did not answer: é \"'"},
		.since_ms = 1700000000000 + salt,
		.serve_by_ms = 21 + salt,
		.lost_at_ms = 31 + salt,
		.observe_at_ms = INT64_MAX - salt,
		.address = "127.1.0.1",
		.incarnation = 2 + salt,
		.identity = "i-0123456789abcdef0/3",
		.retried = 1 + salt,
		.after = (enum node_after)(salt & 1),
		.asleep = salt == 1,
		.by_ms = 51 + salt,
		.shrunk = salt == 1,
		.preempt_at_ms = salt == 1 ? 1700000005555 : 0,
		.job_rank = FIXTURE_NODES - 1 - salt,
		.dirty = true,
	};
}

static void assert_same_node(const struct core_node *a, const struct core_node *b)
{
	assert_int_equal(a->state, b->state);
	assert_int_equal(a->attempt, b->attempt);
	assert_int_equal(a->start_sent, b->start_sent);
	assert_int_equal(a->stop_sent, b->stop_sent);
	assert_int_equal(a->serving, b->serving);
	assert_int_equal(a->settled, b->settled);
	assert_int_equal(a->gate_met, b->gate_met);
	assert_int_equal(a->exit.code, b->exit.code);
	assert_int_equal(a->exit.signal, b->exit.signal);
	assert_int_equal(a->exit.oom, b->exit.oom);
	assert_int_equal(a->exit.kind, b->exit.kind);
	assert_string_equal(a->exit.reason, b->exit.reason);
	assert_int_equal(a->since_ms, b->since_ms);
	assert_int_equal(a->serve_by_ms, b->serve_by_ms);
	assert_int_equal(a->lost_at_ms, b->lost_at_ms);
	assert_int_equal(a->observe_at_ms, b->observe_at_ms);
	assert_string_equal(a->address, b->address);
	assert_int_equal(a->incarnation, b->incarnation);
	assert_string_equal(a->identity, b->identity);
	assert_int_equal(a->retried, b->retried);
	assert_int_equal(a->after, b->after);
	assert_int_equal(a->asleep, b->asleep);
	assert_int_equal(a->by_ms, b->by_ms);
	assert_int_equal(a->shrunk, b->shrunk);
	assert_int_equal(a->preempt_at_ms, b->preempt_at_ms);
	assert_int_equal(a->job_rank, b->job_rank);
	assert_false(a->connected);
	assert_false(a->dirty);
}

static void fill_resource(struct core_resource *res, int salt)
{
	*res = (struct core_resource){
		.state = (enum res_state)(RES_DELETING - salt),
		.attempt = 2 + salt,
		.tries = 7 + salt,
		.asked = true,
		.unsure = salt == 1,
		.since_ms = 1700000000000 + salt,
		.retry_at_ms = 1700000001000 + salt,
		.why_kind = ERR_QUOTA,
		.batch = 7 + salt,
		.batch_place = 3 + salt,
		.choice = 2 + salt,
		.incarnation = 4 + salt,
		.enrolled = 5 + salt,
		.paid_from_ms = 1700000002000 + salt,
		.paid_ms = 60000 + salt,
		.paid_micro = 9000000000 + salt,
		.dirty = true,
	};
	memset(res->why, 'w', sizeof(res->why) - 1); /* of the greatest length */
	memset(res->id, 'i', sizeof(res->id) - 1);
}

static void assert_same_resource(const struct core_resource *a, const struct core_resource *b)
{
	assert_int_equal(a->state, b->state);
	assert_int_equal(a->attempt, b->attempt);
	assert_int_equal(a->tries, b->tries);
	assert_int_equal(a->unsure, b->unsure);
	assert_int_equal(a->since_ms, b->since_ms);
	assert_int_equal(a->retry_at_ms, b->retry_at_ms);
	assert_int_equal(a->why_kind, b->why_kind);
	assert_string_equal(a->why, b->why);
	assert_string_equal(a->id, b->id);
	assert_int_equal(a->batch, b->batch);
	assert_int_equal(a->batch_place, b->batch_place);
	assert_int_equal(a->choice, b->choice);
	assert_int_equal(a->incarnation, b->incarnation);
	assert_int_equal(a->enrolled, b->enrolled);
	assert_int_equal(a->paid_from_ms, b->paid_from_ms);
	assert_int_equal(a->paid_ms, b->paid_ms);
	assert_int_equal(a->paid_micro, b->paid_micro);
	assert_false(a->asked);
	assert_false(a->dirty);
}

static void fill_run(struct core_run *r)
{
	r->phase = RUN_CLEANING;
	r->verdict = VERDICT_FAILED;
	r->cause = (struct cause){
		.kind = ERR_PREEMPTED, .node = -1, .text = "trainer-1 was preempted"};
	r->cancel_asked = r->hurry = true;
	r->deadline_ms = 1700000009999;
	r->slow_ms = 4000;
	r->next_call_ms = 1700000008888;
	for (int i = 0; i < RUN_PHASES; i++)
		r->phase_at_ms[i] = 1000 + i;
	for (int i = 0; i < 4; i++)
		r->rng.s[i] = 0xf000000000000000 + (uint64_t)i;
}

static void assert_same_run(const struct core_run *a, const struct core_run *b)
{
	assert_int_equal(a->phase, b->phase);
	assert_int_equal(a->verdict, b->verdict);
	assert_int_equal(a->cause.kind, b->cause.kind);
	assert_int_equal(a->cause.node, b->cause.node);
	assert_string_equal(a->cause.text, b->cause.text);
	assert_int_equal(a->cancel_asked, b->cancel_asked);
	assert_int_equal(a->hurry, b->hurry);
	assert_int_equal(a->deadline_ms, b->deadline_ms);
	assert_int_equal(a->slow_ms, b->slow_ms);
	assert_int_equal(a->next_call_ms, b->next_call_ms);
	assert_memory_equal(a->phase_at_ms, b->phase_at_ms, sizeof(a->phase_at_ms));
	assert_memory_equal(&a->rng, &b->rng, sizeof(a->rng));
	for (int i = 0; i < FIXTURE_NODES; i++)
		assert_same_node(&a->nodes[i], &b->nodes[i]);
	for (int i = 0; i < FIXTURE_RESOURCES; i++)
		assert_same_resource(&a->resources[i], &b->resources[i]);
}

struct home {
	char *dir;
	struct store *st;
	int64_t no;
	struct core_run *r, *got;
	struct err err;
};

static int set_up(void **state)
{
	struct home *h = xcalloc(1, sizeof(*h));
	void *dir;

	if (unit_make_dir(&dir) < 0)
		return -1;
	h->dir = dir;
	h->st = fixture_open(h->dir);
	h->r = fixture_run();
	h->got = fixture_run();
	store_begin(h->st);
	h->no = fixture_add(h->st, "a");
	*state = h;
	return 0;
}

static int tear_down(void **state)
{
	struct home *h = *state;
	void *dir = h->dir;

	store_close(h->st);
	fixture_run_free(h->r);
	fixture_run_free(h->got);
	free(h);
	return unit_remove_dir(&dir);
}

static void save_all(struct home *h)
{
	const struct plan *p = h->r->plan;

	assert_ok(store_run_save(h->st, h->no, h->r, 1, &h->err), &h->err);
	for (int i = 0; i < FIXTURE_NODES; i++)
		assert_ok(store_node_save(h->st, h->no, i, &h->r->nodes[i], &h->err), &h->err);
	for (int i = 0; i < FIXTURE_RESOURCES; i++)
		assert_ok(store_resource_save(h->st, h->no, i, &p->resources[i],
					      &h->r->resources[i], &h->err),
			  &h->err);
}

static void assert_restored(struct home *h)
{
	assert_ok(store_run_restore(h->st, h->no, h->got, &h->err), &h->err);
	assert_same_run(h->got, h->r);
}

static void reopen(struct home *h)
{
	fixture_commit(h->st);
	store_close(h->st);
	h->st = fixture_open(h->dir);
	store_begin(h->st);
}

/* Rule: the state comes back as it was saved. */

static void every_field_of_the_state_survives_a_restart(void **state)
{
	struct home *h = *state;

	fill_run(h->r);
	for (int i = 0; i < FIXTURE_NODES; i++)
		fill_node(&h->r->nodes[i], i);
	for (int i = 0; i < FIXTURE_RESOURCES; i++)
		fill_resource(&h->r->resources[i], i);
	save_all(h);
	reopen(h);
	assert_restored(h);
}

/*
 * If this fails, core.h has a new field: store it (with a new version of the
 * schema once one is released) or know that a restart makes it anew; then
 * compare it above and put the new size here.
 */
static void a_new_field_of_the_core_is_noticed(void **state)
{
	(void)state;
#ifdef __x86_64__
	assert_int_equal(sizeof(struct core_node), 536);
	assert_int_equal(sizeof(struct core_resource), 552);
	assert_int_equal(offsetof(struct core_run, node_count), 384);
#else
	skip();
#endif
}

static void a_later_save_replaces_the_earlier_one(void **state)
{
	struct home *h = *state;

	fill_run(h->r);
	for (int i = 0; i < FIXTURE_NODES; i++)
		fill_node(&h->r->nodes[i], i);
	save_all(h);
	reopen(h);
	h->r->phase = RUN_FAILED;
	h->r->hurry = h->r->cancel_asked = false;
	h->r->deadline_ms = 0;
	memset(&h->r->nodes[1], 0, sizeof(h->r->nodes[1]));
	h->r->nodes[1].state = NODE_LOST;
	save_all(h);
	reopen(h);
	assert_restored(h);
}

static void every_legal_state_can_be_saved(void **state)
{
	struct home *h = *state;

	for (int i = 0; i < RUN_PHASES; i++) {
		h->r->phase = (enum run_phase)i;
		h->r->verdict = (enum verdict)(i % 4);
		h->r->nodes[0].state = (enum node_state)(i % NODE_STATES);
		h->r->resources[0].state = (enum res_state)(i % RES_STATES);
		save_all(h);
		assert_restored(h);
	}
	for (int i = 0; i < ERR_KINDS; i++) {
		h->r->cause.kind = h->r->nodes[0].exit.kind = (enum err_kind)i;
		h->r->resources[0].why_kind = (enum err_kind)i;
		save_all(h);
		assert_restored(h);
	}
}

static void rows_that_were_never_saved_stay_as_they_were_made(void **state)
{
	struct home *h = *state;

	fill_node(&h->r->nodes[2], 0);
	assert_ok(store_node_save(h->st, h->no, 2, &h->r->nodes[2], &h->err), &h->err);
	snprintf(h->got->nodes[0].address, sizeof(h->got->nodes[0].address), "from the plan");
	assert_ok(store_run_restore(h->st, h->no, h->got, &h->err), &h->err);
	assert_string_equal(h->got->nodes[0].address, "from the plan");
	assert_int_equal(h->got->nodes[0].state, NODE_WANTED);
	assert_int_equal(h->got->nodes[2].state, NODE_EXITED);
	assert_int_equal(h->got->resources[0].state, RES_INTENT);
}

/* Rule: what cannot be, is not stored; and the store is not used after that. */

static void an_impossible_state_poisons(void **state)
{
	struct home *h = *state;
	struct err again;

	h->r->nodes[0].state = (enum node_state)NODE_STATES;
	assert_fails(store_node_save(h->st, h->no, 0, &h->r->nodes[0], &h->err), &h->err,
		     ERR_INVALID, "save node");
	assert_fails(store_run_save(h->st, h->no, h->r, 1, &again), &again, ERR_INVALID,
		     h->err.msg);
	assert_fails(store_commit(h->st, &again), &again, ERR_INVALID, h->err.msg);
	assert_false(fixture_dirty(h->st));
}

static void a_missing_name_poisons(void **state)
{
	struct home *h = *state;

	assert_fails(
		store_resource_save(h->st, h->no, 0,
				    &(struct plan_resource){.kind = NULL, .name = "x", .node = -1},
				    &h->r->resources[0], &h->err),
		&h->err, ERR_INVALID, "save resource");
}

static void rows_of_a_run_that_is_not_there_are_refused(void **state)
{
	struct home *h = *state;

	fixture_commit(h->st);
	store_begin(h->st);
	assert_fails(store_run_save(h->st, 99, h->r, 1, &h->err), &h->err, ERR_NOT_FOUND,
		     "no run 99");
	assert_fails(store_node_save(h->st, 99, 0, &h->r->nodes[0], &h->err), &h->err,
		     ERR_NOT_FOUND, "no such run");
	assert_fails(
		store_resource_save(h->st, 99, 0,
				    &(struct plan_resource){.kind = "k", .name = "n", .node = -1},
				    &h->r->resources[0], &h->err),
		&h->err, ERR_NOT_FOUND, "no such run");
	assert_fails(store_run_restore(h->st, 99, h->got, &h->err), &h->err, ERR_NOT_FOUND,
		     "no run 99");
	assert_false(fixture_dirty(h->st));
	fixture_commit(h->st);
}

static void a_write_outside_a_transaction_is_refused(void **state)
{
	struct home *h = *state;

	fixture_commit(h->st);
	assert_fails(store_run_save(h->st, h->no, h->r, 1, &h->err), &h->err, ERR_INVALID,
		     "outside a transaction");
	store_begin(h->st);
	assert_ok(store_run_save(h->st, h->no, h->r, 1, &h->err), &h->err);
}

/* Rule: a plan that does not fit the rows is not followed. */

static void a_node_beyond_the_plan_is_refused(void **state)
{
	struct home *h = *state;

	assert_ok(store_node_save(h->st, h->no, FIXTURE_NODES, &h->r->nodes[0], &h->err), &h->err);
	assert_fails(store_run_restore(h->st, h->no, h->got, &h->err), &h->err, ERR_CONFLICT,
		     "rank 3, but its plan makes 3 nodes");
}

static void a_resource_that_the_plan_calls_otherwise_is_refused(void **state)
{
	struct home *h = *state;

	assert_ok(store_resource_save(h->st, h->no, 1,
				      &(struct plan_resource){
					      .kind = "local.node", .name = "gamma", .node = -1},
				      &h->r->resources[0], &h->err),
		  &h->err);
	assert_fails(
		store_run_restore(h->st, h->no, h->got, &h->err), &h->err, ERR_CONFLICT,
		"the ledger has local.node 'gamma' in place 1, its plan has local.node 'beta'");
	assert_ok(store_resource_save(
			  h->st, h->no, 1,
			  &(struct plan_resource){.kind = "ec2.subnet", .name = "beta", .node = -1},
			  &h->r->resources[0], &h->err),
		  &h->err);
	assert_fails(store_run_restore(h->st, h->no, h->got, &h->err), &h->err, ERR_CONFLICT,
		     "ec2.subnet 'beta'");
	assert_ok(store_resource_save(
			  h->st, h->no, 1,
			  &(struct plan_resource){.kind = "local.node", .name = "beta", .node = -1},
			  &h->r->resources[0], &h->err),
		  &h->err);
	assert_ok(store_resource_save(h->st, h->no, 2,
				      &(struct plan_resource){
					      .kind = "local.node", .name = "delta", .node = -1},
				      &h->r->resources[0], &h->err),
		  &h->err);
	assert_fails(store_run_restore(h->st, h->no, h->got, &h->err), &h->err, ERR_CONFLICT,
		     "'delta' in place 2, its plan has nothing");
}

static void numbers_that_no_row_can_hold_are_damage(void **state)
{
	static const char *const damages[] = {
		"UPDATE run SET phase = 9",	  "UPDATE run SET verdict = -1",
		"UPDATE run SET cause_kind = 14", "UPDATE node SET state = 8",
		"UPDATE node SET exit_kind = 99", "UPDATE node SET rank = -1",
		"UPDATE resource SET state = 5",  "UPDATE resource SET why_kind = -1",
		"UPDATE resource SET place = -1",
	};
	struct home *h = *state;

	assert_ok(store_node_save(h->st, h->no, 0, &h->r->nodes[0], &h->err), &h->err);
	assert_ok(store_resource_save(h->st, h->no, 0,
				      &(struct plan_resource){
					      .kind = "local.node", .name = "alpha", .node = -1},
				      &h->r->resources[0], &h->err),
		  &h->err);
	for (size_t i = 0; i < COUNT(damages); i++) {
		reopen(h);
		/* Inside a transaction that is never committed. */
		assert_int_equal(sqlite3_exec(h->st->db,
					      "BEGIN; PRAGMA ignore_check_constraints = ON", NULL,
					      NULL, NULL),
				 SQLITE_OK);
		assert_int_equal(sqlite3_exec(h->st->db, damages[i], NULL, NULL, NULL), SQLITE_OK);
		assert_fails(store_run_restore(h->st, h->no, h->got, &h->err), &h->err,
			     ERR_UNAVAILABLE, "damaged");
		assert_fails(store_commit(h->st, &h->err), &h->err, ERR_UNAVAILABLE, "damaged");
		store_close(h->st);
		h->st = fixture_open(h->dir);
	}
}

/* Rule: a transaction is whole or not at all. */

static void what_was_not_committed_is_not_there(void **state)
{
	struct home *h = *state;

	assert_true(fixture_dirty(h->st));
	fixture_commit(h->st);
	assert_false(fixture_dirty(h->st));
	store_begin(h->st);
	h->r->phase = RUN_RUNNING;
	assert_ok(store_run_save(h->st, h->no, h->r, 1, &h->err), &h->err);
	store_close(h->st);
	h->st = fixture_open(h->dir);
	assert_ok(store_run_restore(h->st, h->no, h->got, &h->err), &h->err);
	assert_int_equal(h->got->phase, RUN_ACCEPTED);
}

static void begin_inside_a_transaction_changes_nothing(void **state)
{
	struct home *h = *state;

	store_begin(h->st);
	assert_true(fixture_dirty(h->st));
	fixture_commit(h->st);
	fixture_commit(h->st); /* nothing to do is fine */
	store_begin(h->st);
	assert_false(fixture_dirty(h->st));
	fixture_commit(h->st);
	assert_ok(store_run_restore(h->st, h->no, h->got, &h->err), &h->err);
}

static void an_answer_that_wrote_nothing_leaves_a_clean_transaction(void **state)
{
	struct home *h = *state;
	struct run_row row = {
		.id = "a", .name = "n", .job_json = "{}", .engine = "e", .strategy = "s"};

	fixture_commit(h->st);
	store_begin(h->st);
	assert_fails(store_run_add(h->st, &row, &h->err), &h->err, ERR_CONFLICT, "exists");
	assert_false(fixture_dirty(h->st));
	fixture_commit(h->st);
	assert_int_not_equal(sqlite3_get_autocommit(h->st->db), 0);
}

#define on_home(t) cmocka_unit_test_setup_teardown(t, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		on_home(every_field_of_the_state_survives_a_restart),
		cmocka_unit_test(a_new_field_of_the_core_is_noticed),
		on_home(a_later_save_replaces_the_earlier_one),
		on_home(every_legal_state_can_be_saved),
		on_home(rows_that_were_never_saved_stay_as_they_were_made),
		on_home(an_impossible_state_poisons),
		on_home(a_missing_name_poisons),
		on_home(rows_of_a_run_that_is_not_there_are_refused),
		on_home(a_write_outside_a_transaction_is_refused),
		on_home(a_node_beyond_the_plan_is_refused),
		on_home(a_resource_that_the_plan_calls_otherwise_is_refused),
		on_home(numbers_that_no_row_can_hold_are_damage),
		on_home(what_was_not_committed_is_not_there),
		on_home(begin_inside_a_transaction_changes_nothing),
		on_home(an_answer_that_wrote_nothing_leaves_a_clean_transaction),
	};

	return cmocka_run_group_tests_name("store_state", tests, NULL, NULL);
}
