/* How many driver calls the effects of the core become. */
#include "rig.h"

#include <string.h>

#include "base/clock.h"
#include "fmt/doc.h"
#include "master/handover.h"
#include "master/round.h"
#include "master/runs.h"
#include "spec/job.h"

#define JOB_OF_FIVE "{\"name\":\"t\",\"command\":[\"true\"],\"count\":5}"

static void give_batch(struct live_run *lr, size_t effect, int batch)
{
	lr->fx.v[effect].batch = batch;
	lr->core->resources[lr->fx.v[effect].index].batch = batch;
}

/* As an engine that asks for all of them together would have planned it. */
static void give_batches(struct live_run *lr, const int batches[5])
{
	assert_int_equal(lr->fx.n, 5);
	for (size_t i = 0; i < lr->fx.n; i++)
		give_batch(lr, i, batches[lr->fx.v[i].index]);
}

static void a_batch_is_created_in_one_call_and_answered_row_by_row(void **state)
{
	struct rig *r = *state;

	r->many = true;
	rig_submit(r, JOB_OF_FIVE);
	give_batches(rig_run(r), (int[]){1, 2, 1, 2, 1}); /* not side by side */
	rig_until(r, rig_run(r)->core->res_count[RES_LIVE] == 5);
	assert_int_equal(r->sizes.n, 2);
	assert_int_equal(r->sizes.v[0], 3);
	assert_int_equal(r->sizes.v[1], 2);
	assert_string_equal(rig_run(r)->core->resources[3].id, "id-of-worker-3");
	assert_int_equal(rig_stored(r, "SELECT count(DISTINCT batch) FROM resource"), 2);
}

static void all_of_a_kind_are_deleted_in_one_call(void **state)
{
	struct rig *r = *state;

	r->many = true;
	rig_submit(r, JOB_OF_FIVE);
	rig_until(r, rig_run(r)->core->res_count[RES_LIVE] == 5);
	assert_int_equal(r->sizes.n, 5); /* each a batch of its own */
	rig_cancel(r, false);
	rig_until(r, !rig_run(r));
	assert_int_equal(r->sizes.n, 6);
	assert_int_equal(r->sizes.v[5], 5);
	assert_int_equal(r->exist.n, 0);
}

/* Ten thousand at once would hold up the loop. */
static void many_answers_of_one_call_are_told_in_several_turns(void **state)
{
	struct rig *r = *state;
	int gone = 0, most = 0;

	r->many = true;
	rig_submit(r, "{\"name\":\"t\",\"command\":[\"true\"],\"count\":210}");
	rig_until(r, rig_run(r)->core->res_count[RES_LIVE] == 210);
	rig_run(r)->core->slice = 1000;
	rig_cancel(r, false);
	for (int64_t until = rig_deadline(); rig_run(r); rig_turn(r)) {
		int now = rig_run(r)->core->res_count[RES_GONE];

		most = now - gone > most ? now - gone : most;
		gone = now;
		assert_false(rig_late(until));
	}
	assert_int_equal(r->sizes.v[r->sizes.n - 1], 210);
	assert_int_equal(most, 200);
	assert_int_equal(r->exist.n, 0);
}

static void a_driver_that_takes_one_gets_one(void **state)
{
	struct rig *r = *state;

	rig_submit(r, JOB_OF_FIVE);
	give_batches(rig_run(r), (int[]){1, 1, 1, 1, 1});
	rig_until(r, rig_run(r)->core->res_count[RES_LIVE] == 5);
	assert_int_equal(rig_count(r, "create"), 5);
	assert_int_equal(r->sizes.n, 0);
}

static void a_driver_is_told_which_choice_is_asked_for(void **state)
{
	static const char *choices[] = {"{\"type\":\"a\"}", "{\"type\":\"b\"}"};
	struct rig *r = *state;
	struct live_run *lr = rig_submit(r, RIG_JOB);

	lr->plan.resources[0].choices = choices;
	lr->plan.resources[0].nchoices = 2;
	r->creating = OUTCOME_REFUSED; /* no capacity */
	rig_until(r, rig_count(r, "create") == 2);
	assert_string_equal(r->choice, choices[1]);
	assert_int_equal(rig_stored(r, "SELECT choice FROM resource"), 1);
	assert_int_equal(
		rig_stored(r,
			   "SELECT count(*) FROM resource WHERE choice_spec = '{\"type\":\"b\"}'"),
		1);
	r->creating = OUTCOME_DONE;
	rig_until(r, rig_run(r)->core->res_count[RES_LIVE] == 1);
}

static void a_machine_that_its_resource_has_no_longer_is_a_lost_node(void **state)
{
	struct rig *r = *state;
	struct live_run *lr = rig_submit(r, RIG_JOB);
	struct rig_agent *a = rig_agent(r, 0);

	lr->plan.resources[0].carries_many = true;
	lr->plan.resources[0].node = -1;
	agent_run(a);
	snprintf(lr->core->nodes[0].identity, sizeof(lr->core->nodes[0].identity), "i-1");
	r->gone_member = "i-1";
	agent_hang_up(a);
	rig_until(r, rig_events(r, "member_gone") == 1);
	rig_until(r, !rig_run(r));
	assert_int_equal(rig_stored(r, "SELECT state FROM node"), NODE_LOST);
}

/* ---- the machine of a node that was taken back ---- */

static void assert_call(const struct rig_call *c, const struct live_run *lr, int incarnation)
{
	char token[65];

	assert_non_null(c);
	node_token(lr, c->name, incarnation, token);
	assert_int_equal(c->incarnation, incarnation);
	assert_string_equal(c->token, token);
}

/* A node runs and falls silent; its machine answers no look, and it is to be replaced. */
static void lose_node_that_is_replaced(struct rig *r)
{
	struct live_run *lr = rig_submit(r, RIG_JOB);
	struct rig_agent *a = rig_agent(r, 0);

	/* Engine local, which makes the plan, has no other to choose. */
	((struct role *)lr->plan.crew.roles[0].spec)->policy.on_lost = LOST_REPLACE;
	agent_run(a);
	assert_call(rig_last(r, "create"), lr, 1);
	r->hidden = true;
	agent_hang_up(a);
	rig_until(r, lr->core->nodes[0].incarnation == 2);
}

static void the_machine_of_a_replaced_node_is_destroyed_and_not_the_next_one(void **state)
{
	struct rig *r = *state;

	lose_node_that_is_replaced(r);
	rig_until(r, rig_count(r, "create") == 2);
	assert_int_equal(rig_count(r, "destroy"), 1);
	assert_call(rig_last(r, "observe"), rig_run(r), 1);
	assert_call(rig_last(r, "destroy"), rig_run(r), 1);
	assert_call(rig_last(r, "create"), rig_run(r), 2);
	assert_int_equal(rig_stored(r, "SELECT incarnation FROM resource"), 2);
}

static void after_a_restart_it_is_still_that_one(void **state)
{
	struct rig *r = *state;

	lose_node_that_is_replaced(r);
	rig_crash(r);
	assert_int_equal(rig_stored(r, "SELECT incarnation FROM resource WHERE state = 3"), 1);
	assert_int_equal(rig_stored(r, "SELECT incarnation FROM node"), 2);
	r->calls.n = 0;
	assert_true(rig_start(r));
	rig_until(r, rig_count(r, "create") == 1);
	assert_call(rig_last(r, "destroy"), rig_run(r), 1);
	assert_call(rig_last(r, "create"), rig_run(r), 2);
}

/* ---- the bytes of a request ---- */

/* The rows are committed, and the master dies before it can send anything. */
static void die_before_sending(struct rig *r)
{
	r->fail_at = r->commits + 1;
	r->how = COMMIT_LOST;
	rig_submit(r, RIG_JOB);
	rig_until_it_gives_up(r);
	assert_int_equal(rig_count(r, "create"), 0);
	r->fail_at = 0;
	rig_crash(r);
}

static void what_is_sent_is_stored_before(void **state)
{
	struct rig *r = *state;

	r->renders = "make";
	rig_submit(r, JOB_OF_FIVE);
	rig_until(r, rig_run(r)->core->res_count[RES_LIVE] == 5);
	assert_string_equal(r->request, "make worker-4/0");
	assert_int_equal(rig_stored(r, "SELECT count(*) FROM request WHERE length(sha256) = 64"),
			 5);
	assert_int_equal(
		rig_stored(r, "SELECT count(*) FROM request WHERE bytes = 'make worker-2/0'"), 1);
}

static void a_replay_sends_the_stored_bytes_whatever_would_be_rendered_now(void **state)
{
	struct rig *r = *state;

	r->renders = "old";
	die_before_sending(r);
	r->renders = "new";
	assert_true(rig_start(r));
	rig_until(r, rig_run(r)->core->res_count[RES_LIVE] == 1);
	assert_int_equal(rig_count(r, "create"), 1);
	assert_string_equal(r->request, "old worker-0/0");
}

static void look_for_it_then_send_anew(struct rig *r, const char *damage)
{
	r->renders = "old";
	die_before_sending(r);
	rig_damage(r, damage);
	r->renders = "new";
	assert_true(rig_start(r));
	rig_until(r, rig_count(r, "find") == 1);
	assert_int_equal(rig_count(r, "create"), 0);
	rig_until(r, rig_run(r)->core->res_count[RES_LIVE] == 1);
	assert_string_equal(r->request, "new worker-0/0"); /* with another token */
	assert_int_equal(rig_stored(r, "SELECT batch FROM resource"), 2);
}

static void damaged_bytes_are_never_sent(void **state)
{
	look_for_it_then_send_anew(*state, "UPDATE request SET bytes = 'old worker-1/0'");
}

static void lost_bytes_are_not_rendered_again_for_the_same_token(void **state)
{
	look_for_it_then_send_anew(*state, "DELETE FROM request");
}

#define JOB_ELSEWHERE                                                                              \
	"{\"name\":\"t\",\"command\":[\"true\"],\"engine\":\"aws.ec2\",\"master\":\"here\"}"       \
	",\"facts\":{\"account\":\"1\",\"subnets\":[{\"zone\":\"z\",\"id\":\"s\"}]}"               \
	",\"credentials\":{\"access_key\":\"AK\"}"

static void a_driver_gets_the_callers_credentials_and_what_its_resource_needs(void **state)
{
	struct rig *r = *state;
	struct live_run *lr = rig_submit(r, JOB_ELSEWHERE);

	assert_string_equal(lr->row.facts,
			    "{\"account\":\"1\",\"subnets\":[{\"zone\":\"z\",\"id\":\"s\"}]}");
	rig_until(r, rig_last(r, "create") && !strcmp(rig_last(r, "create")->name, "worker-0"));
	assert_string_equal(r->needs, "group=id-of-group program=id-of-program ");
	assert_string_equal(r->credentials, "{\"access_key\":\"AK\"}");
	/* and so does the next master's; the rows do not have them */
	rig_crash(r);
	assert_true(rig_start(r));
	assert_string_equal(rig_run(r)->credentials, "{\"access_key\":\"AK\"}");
	assert_int_equal(
		rig_stored(r, "SELECT count(*) FROM job WHERE json || facts LIKE '%access_key%'"),
		0);
}

static void what_is_handed_over_is_kept_as_it_came_but_without_the_credentials(void **state)
{
	struct rig *r = *state;
	struct live_run *lr = rig_submit(r, RIG_JOB);
	struct doc *body = NULL;

	assert_int_equal(json_parse(STR("{\"job\":{\"env\":{\"A_KEY\":\"x\"}},\"base_dir\":\"/b\","
					"\"credentials\":{\"secret_key\":\"s\"},\"facts\":{}}"),
				    lr->arena, &body, NULL),
			 0);
	handover_keep(lr, body);
	assert_string_equal(doc_json_text(lr->arena, doc_table(lr->secrets, "submission")),
			    "{\"job\":{\"env\":{\"A_KEY\":\"x\"}},\"base_dir\":\"/b\"}");
	assert_false(handover_owes_results(lr));
}

static void the_id_of_a_run_that_was_handed_over_must_be_free_and_of_its_job(void **state)
{
	static const char *const job = "{\"command\":[\"true\"],\"name\":\"a\"},\"run\":\"a-bcde\"";
	struct rig *r = *state;
	struct err err = {0};
	struct live_run *lr = rig_try_submit(r, "request-0123456789", job, &err);

	assert_non_null(lr);
	assert_string_equal(lr->row.id, "a-bcde");
	assert_null(rig_try_submit(r, "request-1123456789", job, &err));
	assert_int_equal(err.kind, ERR_CONFLICT);
	assert_null(rig_try_submit(r, "request-2123456789",
				   "{\"command\":[\"true\"],\"name\":\"a\"},\"run\":\"b-bcde\"",
				   &err));
	assert_int_equal(err.kind, ERR_INVALID);
}

static void facts_of_a_client_are_taken_only_where_it_finds_them(void **state)
{
	struct rig *r = *state;
	struct live_run *lr = rig_submit(r, RIG_JOB ",\"facts\":{\"first_address\":\"10.9.9.9\"}");

	assert_null(strstr(lr->row.facts, "10.9.9.9"));
}

static void an_extension_goes_to_the_provider_and_to_the_machine(void **state)
{
	struct rig *r = *state;
	struct live_run *lr = rig_submit(r, RIG_JOB);
	struct rig_agent *a = rig_agent(r, 0);
	int64_t expires_ms = 0, now = clock_wall_ms();

	agent_run(a);
	/* Engine local, which makes the plan, has nothing that expires. */
	lr->plan.resources[0].expires = true;
	lr->core->extend_at_ms = lr->core->next_ms = 1;
	run_event(lr, &(struct event){.kind = EV_TICK});
	rig_until(r, rig_count(r, "extend") == 1);
	agent_wait(a, FRAME_EXTEND);
	assert_true(
		str_to_i64(str_trim((struct str){a->last[FRAME_EXTEND] + 14, 13}), &expires_ms));
	assert_in_range(expires_ms - now, 24 * 3600000LL, 24 * 3600000LL + RIG_WAIT_MS);
	assert_int_equal(rig_events(r, "extended"), 0); /* nobody wants to read that every hour */
}

int main(void)
{
#define CASE(fn) cmocka_unit_test_setup_teardown(fn, rig_make, rig_drop)
	const struct CMUnitTest tests[] = {
		CASE(a_driver_gets_the_callers_credentials_and_what_its_resource_needs),
		CASE(what_is_handed_over_is_kept_as_it_came_but_without_the_credentials),
		CASE(the_id_of_a_run_that_was_handed_over_must_be_free_and_of_its_job),
		CASE(facts_of_a_client_are_taken_only_where_it_finds_them),
		CASE(a_batch_is_created_in_one_call_and_answered_row_by_row),
		CASE(all_of_a_kind_are_deleted_in_one_call),
		CASE(many_answers_of_one_call_are_told_in_several_turns),
		CASE(a_driver_that_takes_one_gets_one),
		CASE(an_extension_goes_to_the_provider_and_to_the_machine),
		CASE(a_driver_is_told_which_choice_is_asked_for),
		CASE(a_machine_that_its_resource_has_no_longer_is_a_lost_node),
		CASE(the_machine_of_a_replaced_node_is_destroyed_and_not_the_next_one),
		CASE(after_a_restart_it_is_still_that_one),
		CASE(what_is_sent_is_stored_before),
		CASE(a_replay_sends_the_stored_bytes_whatever_would_be_rendered_now),
		CASE(damaged_bytes_are_never_sent),
		CASE(lost_bytes_are_not_rendered_again_for_the_same_token),
	};
	return cmocka_run_group_tests_name("master effects", tests, NULL, NULL);
}
