/* The master and machines that ask which node they are. */
#include "rig.h"

#include <string.h>

#include "link/layout.h"
#include "master/enrol.h"
#include "master/round.h"
#include "master/runs.h"

#define LINE 400

struct ask {
	const char *run, *role, *token, *identity;
	int place, proto;
};

/* The token that the driver got for the row of this rank. */
static void right_token(struct rig *r, int rank, char out[static ENROL_TOKEN_MAX])
{
	enrol_token(rig_run(r), rank, out);
}

static void ask(struct rig_agent *a, const struct ask *q)
{
	char token[ENROL_TOKEN_MAX], text[1024], place[32] = "";

	right_token(a->r, a->rank, token);
	a->identity = q->identity;
	if (q->place > 0)
		snprintf(place, sizeof(place), "\"place\":%d,", q->place - 1);
	snprintf(
		text, sizeof(text),
		"{\"proto\":%d,\"run\":\"%s\",\"role\":\"%s\",\"token\":\"%s\",\"identity\":\"%s\","
		"%s\"version\":\"1\"}",
		q->proto ? q->proto : LINK_PROTO, q->run ? q->run : rig_run(a->r)->row.id,
		q->role ? q->role : "worker", q->token ? q->token : token, q->identity, place);
	agent_dial(a);
	agent_say(a, FRAME_ENROL, text);
}

static void assert_told(struct rig_agent *a, const char *node, int incarnation, const char *more)
{
	char want[RIG_TEXT], token[65];

	agent_wait(a, FRAME_ENROLLED);
	node_token(rig_run(a->r), node, incarnation, token);
	snprintf(want, sizeof(want), "{\"node\":\"%s\",\"token\":\"%s\",\"incarnation\":%d%s}",
		 node, token, incarnation, more);
	assert_string_equal(a->last[FRAME_ENROLLED], want);
}

static void assert_enrolled(struct rig_agent *a, const char *node, int incarnation)
{
	assert_told(a, node, incarnation, "");
}

static void assert_again(struct rig_agent *a, const char *node, int incarnation)
{
	assert_told(a, node, incarnation, ",\"again\":true");
}

static void assert_refused(struct rig_agent *a, const char *kind, const char *words)
{
	agent_wait_closed(a);
	assert_int_equal(a->seen[FRAME_ENROLLED], 0);
	assert_int_equal(a->seen[FRAME_REFUSE], 1);
	assert_non_null(strstr(a->last[FRAME_REFUSE], kind));
	if (!strstr(a->last[FRAME_REFUSE], words))
		fail_msg("%s", a->last[FRAME_REFUSE]);
}

static void a_machine_is_told_its_node_and_says_hello(void **state)
{
	struct rig *r = *state;
	struct rig_agent *a = rig_agent(r, 1);

	rig_submit(r, RIG_JOB_OF_TWO);
	rig_until(r, rig_count(r, "create") == 2);
	char token[ENROL_TOKEN_MAX];

	right_token(r, 1, token);
	/* Drivers get the same, but for the second in which it was made. */
	assert_int_equal(strncmp(rig_last(r, "create")->enrol, token, 8), 0);
	rig_until(r, rig_run(r)->core->res_count[RES_LIVE] == 2);
	ask(a, &(struct ask){.identity = "id-of-worker-1"});
	assert_enrolled(a, "worker-1", 1);
	assert_int_equal(rig_events(r, "enrol"), 1);
	agent_hello(a, NULL); /* with what it was told */
	agent_wait(a, FRAME_WELCOME);
}

static void the_same_machine_is_told_the_same_also_by_the_next_master(void **state)
{
	struct rig *r = *state;
	struct rig_agent *a = rig_agent(r, 0);

	rig_submit(r, RIG_JOB_OF_TWO);
	rig_until(r, rig_run(r)->core->res_count[RES_LIVE] == 2);
	char token[ENROL_TOKEN_MAX];

	right_token(r, 0, token);
	ask(a, &(struct ask){.identity = "id-of-worker-0", .token = token});
	assert_enrolled(a, "worker-0", 1);
	ask(a, &(struct ask){.identity = "id-of-worker-0", .token = token});
	assert_again(a, "worker-0", 1);
	rig_crash(r);
	assert_true(rig_start(r));
	ask(a, &(struct ask){.identity = "id-of-worker-0", .token = token});
	assert_again(a, "worker-0", 1);
	assert_int_equal(rig_events(r, "enrol"), 1); /* which is no news */
	ask(a, &(struct ask){.identity = "id-of-another", .token = token});
	assert_refused(a, "denied", "used up");
}

/* Of a create whose answer is still out. */
static void a_machine_may_come_before_the_answer_of_its_create(void **state)
{
	struct rig *r = *state;
	struct rig_agent *a = rig_agent(r, 0);

	r->work_waits = true;
	rig_submit(r, RIG_JOB);
	rig_until(r, rig_run(r)->core->res_count[RES_SENT] == 1);
	ask(a, &(struct ask){.identity = "id-of-worker-0", .place = 1});
	assert_enrolled(a, "worker-0", 1);
	rig_let_work_go(r);
	rig_until(r, rig_run(r)->core->res_count[RES_LIVE] == 1);
	assert_int_equal(rig_stored(r,
				    "SELECT count(*) FROM resource WHERE id = 'id-of-worker-0' AND "
				    "enrolled = 1"),
			 1);
}

static void a_commit_that_fails_tells_nobody(void **state)
{
	struct rig *r = *state;
	struct rig_agent *a = rig_agent(r, 0);

	rig_submit(r, RIG_JOB);
	rig_until(r, rig_run(r)->core->res_count[RES_LIVE] == 1);
	rig_idle(r);
	r->fail_at = r->commits + 1;
	ask(a, &(struct ask){.identity = "id-of-worker-0"});
	rig_until_it_gives_up(r);
	agent_read(a);
	assert_int_equal(a->seen[FRAME_ENROLLED], 0);
}

static void without_a_token_of_the_run_nobody_learns_anything(void **state)
{
	struct rig *r = *state;
	struct rig_agent *a = rig_agent(r, 0);
	char token[ENROL_TOKEN_MAX], bad[ENROL_TOKEN_MAX];

	rig_submit(r, RIG_JOB);
	rig_until(r, rig_run(r)->core->res_count[RES_LIVE] == 1);
	right_token(r, 0, token);
	const struct ask cases[] = {
		{.identity = "i", .run = "other-run"},
		{.identity = "i", .role = "master"},
		{.identity = "i", .token = ""},
		{.identity = "i", .token = "1.1.99999999999."},
		{.identity = "i", .token = bad},
		{.identity = "id-of-worker-0", .token = bad},
	};

	for (size_t i = 0; i < COUNT(cases); i++) {
		/* More uses than it was given; a later end; a wrong signature. */
		snprintf(bad, sizeof(bad), "%s%s", i % 2 ? "1.100" : "9.1", strstr(token + 2, "."));
		ask(a, &cases[i]);
		assert_refused(a, "denied",
			       "no such run or role here, or not with this enrol token");
	}
	assert_int_equal(rig_stored(r, "SELECT count(*) FROM node WHERE identity != ''"), 0);
	assert_int_equal(rig_events(r, "enrol"), 0);
	token[strlen(token) - 1] ^= 1;
	ask(a, &(struct ask){.identity = "i", .token = token});
	assert_refused(a, "denied", "no such run");
}

static void a_token_of_another_run_is_refused(void **state)
{
	struct rig *r = *state;
	struct rig_agent *a = rig_agent(r, 0);
	char token[ENROL_TOKEN_MAX];
	struct err err = {0};

	struct live_run *first = rig_submit(r, RIG_JOB);
	struct live_run *other = rig_try_submit(r, "request-9876543210", RIG_JOB, &err);

	assert_non_null(other);
	rig_until(r, rig_count(r, "create") == 2);
	enrol_token(other, 0, token);
	ask(a, &(struct ask){.identity = "i", .run = first->row.id, .token = token});
	assert_refused(a, "denied", "no such run");
}

static void an_expired_token_is_refused_and_recorded(void **state)
{
	struct rig *r = *state;
	struct rig_agent *a = rig_agent(r, 0);
	char token[ENROL_TOKEN_MAX];
	struct live_run *lr = rig_submit(r, RIG_JOB);
	struct job *job = (struct job *)(uintptr_t)lr->job;

	rig_until(r, lr->core->res_count[RES_LIVE] == 1);
	job->max_runtime_ms = -2 * 3600 * 1000;
	right_token(r, 0, token);
	job->max_runtime_ms = 0;
	ask(a, &(struct ask){.identity = "id-of-worker-0", .token = token});
	assert_refused(a, "denied", "the enrol token expired");
	assert_int_equal(rig_stored(r, "SELECT count(*) FROM node WHERE identity != ''"), 0);
	rig_until(r, rig_events(r, "enrol") == 1);
}

static void one_more_than_wanted_is_sent_away_and_recorded(void **state)
{
	struct rig *r = *state;
	struct rig_agent *a = rig_agent(r, 0);

	rig_submit(r, RIG_JOB);
	rig_until(r, rig_run(r)->core->res_count[RES_LIVE] == 1);
	ask(a, &(struct ask){.identity = "id-of-worker-0"});
	assert_enrolled(a, "worker-0", 1);
	ask(a, &(struct ask){.identity = "i-stray"});
	assert_refused(a, "denied", "this one is not needed");
	assert_int_equal(rig_events(r, "surplus"), 1);
	assert_int_equal(rig_stored(r, "SELECT count(*) FROM event WHERE kind = 'surplus' AND text "
				       "LIKE 'i-stray: %'"),
			 1);
}

static void after_the_end_nobody_is_taken(void **state)
{
	struct rig *r = *state;
	struct rig_agent *a = rig_agent(r, 0);

	rig_submit(r, RIG_JOB);
	rig_until(r, rig_run(r)->core->res_count[RES_LIVE] == 1);
	r->work_waits = true; /* the destroy */
	rig_cancel(r, false);
	rig_until(r, rig_run(r)->core->phase == RUN_CLEANING);
	ask(a, &(struct ask){.identity = "id-of-worker-0"});
	assert_refused(a, "denied", "the run is over");
	rig_let_work_go(r);
}

static void a_broken_question_is_told_so(void **state)
{
	struct rig *r = *state;
	struct rig_agent *a = rig_agent(r, 0);

	rig_submit(r, RIG_JOB);
	rig_until(r, rig_run(r)->core->res_count[RES_LIVE] == 1);
	ask(a, &(struct ask){.identity = "not an identity"});
	agent_wait_closed(a);
	assert_int_equal(a->seen[FRAME_BYE], 1);
	assert_non_null(strstr(a->last[FRAME_BYE], "identity"));
	ask(a, &(struct ask){.identity = "id-of-worker-0", .proto = 99});
	assert_refused(a, "unavailable", "protocol");
	/* Each connection asks once. */
	ask(a, &(struct ask){.identity = "id-of-worker-0"});
	assert_enrolled(a, "worker-0", 1);
	agent_say(a, FRAME_ENROL, "{}");
	agent_wait_closed(a);
	assert_non_null(strstr(a->last[FRAME_BYE], "sent twice"));
	agent_hello(a, NULL);
	agent_wait(a, FRAME_WELCOME);
	agent_say(a, FRAME_ENROL, "{}"); /* who has said hello has a node */
	agent_wait_closed(a);
	assert_int_equal(a->seen[FRAME_BYE], 1);
}

int main(void)
{
#define CASE(name) cmocka_unit_test_setup_teardown(name, rig_make, rig_drop)
	const struct CMUnitTest tests[] = {
		CASE(a_machine_is_told_its_node_and_says_hello),
		CASE(the_same_machine_is_told_the_same_also_by_the_next_master),
		CASE(a_machine_may_come_before_the_answer_of_its_create),
		CASE(a_commit_that_fails_tells_nobody),
		CASE(without_a_token_of_the_run_nobody_learns_anything),
		CASE(a_token_of_another_run_is_refused),
		CASE(an_expired_token_is_refused_and_recorded),
		CASE(one_more_than_wanted_is_sent_away_and_recorded),
		CASE(after_the_end_nobody_is_taken),
		CASE(a_broken_question_is_told_so),
	};
	return cmocka_run_group_tests_name("master enrol", tests, NULL, NULL);
}
