/* The life of a suite: what starts, in which order, and when it has ended. */
#include "unit.h"

#include <string.h>

#include "core/suite.h"

#define NOW 1000

struct history {
	struct suite plan;
	struct suite_variant variants[4];
	int after[1];
	struct core_suite *s;
	struct suite_effects fx;
	size_t seen; /* effects that a test has looked at */
	int64_t now;
};

static void begin(struct history *h, int variants, int repeats, int parallel)
{
	for (int i = 0; i < variants; i++)
		h->variants[i].name = (const char *[]){"a", "b", "c", "d"}[i];
	h->plan.variants = h->variants;
	h->plan.n = variants;
	h->plan.runs.repeats = repeats;
	h->now = NOW;
	h->s = core_suite_new(&h->plan, parallel);
}

static void step(struct history *h, struct suite_event ev)
{
	suite_step(h->s, &ev, h->now, &h->fx);
}

static void accept_suite(struct history *h)
{
	step(h, (struct suite_event){.kind = SUITE_ACCEPTED});
}

static void end(struct history *h)
{
	core_suite_free(h->s);
	suite_effects_release(&h->fx);
	memset(h, 0, sizeof(*h));
}

/* The next effect that no test has looked at, of this kind; its index. */
static int next(struct history *h, enum suite_effect_kind kind)
{
	assert_true(h->seen < h->fx.v.n);
	assert_int_equal(h->fx.v.v[h->seen].kind, kind);
	return h->fx.v.v[h->seen++].index;
}

static void nothing_more(struct history *h)
{
	assert_int_equal(h->seen, h->fx.v.n);
}

static void started(struct history *h, int i)
{
	step(h, (struct suite_event){
			.kind = SUITE_STARTED, .index = i, .attempt = h->s->entries[i].attempt});
}

static void ended(struct history *h, int i, enum verdict v)
{
	step(h, (struct suite_event){.kind = SUITE_RUN_ENDED,
				     .index = i,
				     .attempt = h->s->entries[i].attempt,
				     .verdict = v,
				     .micro = 1000000,
				     .text = "why"});
}

static void refused(struct history *h, int i, enum err_kind kind)
{
	step(h, (struct suite_event){.kind = SUITE_REFUSED,
				     .index = i,
				     .attempt = h->s->entries[i].attempt,
				     .err_kind = kind,
				     .text = "no"});
}

static void run_next(struct history *h, enum verdict v)
{
	int i = next(h, SUITE_FX_START);

	started(h, i);
	ended(h, i, v);
}

static void repeats_of_all_variants_take_turns(void **state)
{
	struct history h = {0};

	(void)state;
	begin(&h, 2, 2, 1);
	accept_suite(&h);
	for (int i = 0; i < 4; i++) {
		assert_int_equal(next(&h, SUITE_FX_START), i);
		nothing_more(&h);
		assert_int_equal(h.s->entries[i].variant, i % 2);
		assert_int_equal(h.s->entries[i].repeat, i / 2);
		started(&h, i);
		ended(&h, i, VERDICT_SUCCEEDED);
	}
	next(&h, SUITE_FX_ENDED);
	assert_int_equal(h.s->phase, SUITE_SUCCEEDED);
	assert_int_equal(suite_exit_code(h.s), 0);
	end(&h);
}

static void as_written_all_repeats_of_a_variant_come_first(void **state)
{
	struct history h = {0};

	(void)state;
	h.plan.runs.order = ORDER_AS_WRITTEN;
	begin(&h, 2, 3, 1);
	for (int i = 0; i < 6; i++) {
		assert_int_equal(h.s->entries[i].variant, i / 3);
		assert_int_equal(h.s->entries[i].repeat, i % 3);
	}
	end(&h);
}

static void no_more_runs_than_parallel_are_active(void **state)
{
	struct history h = {0};

	(void)state;
	begin(&h, 4, 1, 2);
	accept_suite(&h);
	assert_int_equal(next(&h, SUITE_FX_START), 0);
	assert_int_equal(next(&h, SUITE_FX_START), 1);
	nothing_more(&h);
	started(&h, 0);
	started(&h, 1);
	nothing_more(&h);
	ended(&h, 1, VERDICT_FAILED);
	assert_int_equal(next(&h, SUITE_FX_START), 2);
	nothing_more(&h);
	end(&h);
}

static void a_failed_run_does_not_stop_the_others(void **state)
{
	struct history h = {0};

	(void)state;
	begin(&h, 2, 1, 1);
	accept_suite(&h);
	run_next(&h, VERDICT_FAILED);
	run_next(&h, VERDICT_SUCCEEDED);
	next(&h, SUITE_FX_ENDED);
	assert_int_equal(h.s->phase, SUITE_FAILED);
	assert_int_equal(suite_exit_code(h.s), 1);
	assert_string_equal(h.s->entries[0].cause, "why");
	end(&h);
}

static void an_experiment_waits_for_all_runs_of_the_one_before(void **state)
{
	struct history h = {0};

	(void)state;
	h.after[0] = 1;
	h.variants[0] = (struct suite_variant){.after = h.after, .nafter = 1};
	begin(&h, 2, 2, 4);
	accept_suite(&h);
	assert_int_equal(next(&h, SUITE_FX_START), 1);
	assert_int_equal(next(&h, SUITE_FX_START), 3);
	nothing_more(&h);
	started(&h, 1);
	started(&h, 3);
	ended(&h, 3, VERDICT_SUCCEEDED);
	nothing_more(&h);
	ended(&h, 1, VERDICT_SUCCEEDED);
	assert_int_equal(next(&h, SUITE_FX_START), 0);
	assert_int_equal(next(&h, SUITE_FX_START), 2);
	end(&h);
}

static void an_experiment_is_skipped_when_the_one_before_failed(void **state)
{
	struct history h = {0};

	(void)state;
	h.after[0] = 1;
	h.variants[0] = (struct suite_variant){.after = h.after, .nafter = 1};
	begin(&h, 2, 1, 1);
	accept_suite(&h);
	run_next(&h, VERDICT_FAILED);
	next(&h, SUITE_FX_ENDED);
	assert_int_equal(h.s->entries[0].state, ENTRY_SKIPPED);
	assert_string_equal(h.s->entries[0].cause, "'b' has not succeeded");
	/* It has had no run: when the suite is resumed its first one is made. */
	step(&h, (struct suite_event){.kind = SUITE_AGAIN, .failed = true});
	run_next(&h, VERDICT_SUCCEEDED);
	assert_int_equal(h.s->entries[1].attempt, 2);
	run_next(&h, VERDICT_SUCCEEDED);
	assert_int_equal(h.s->entries[0].attempt, 1);
	end(&h);
}

/* `a` comes after `b`, which comes after `c`: each skip makes the one that stands before it vain. */
static void experiments_are_skipped_in_whatever_order_they_stand(void **state)
{
	int after[2] = {1, 2};
	struct history h = {0};

	(void)state;
	h.variants[0] = (struct suite_variant){.after = &after[0], .nafter = 1};
	h.variants[1] = (struct suite_variant){.after = &after[1], .nafter = 1};
	begin(&h, 3, 1, 1);
	accept_suite(&h);
	run_next(&h, VERDICT_FAILED);
	next(&h, SUITE_FX_ENDED);
	assert_int_equal(h.s->count[ENTRY_SKIPPED], 2);
	assert_string_equal(h.s->entries[0].cause, "'b' has not succeeded");
	end(&h);
}

static void only_a_start_that_may_pass_is_tried_again(void **state)
{
	static const enum err_kind pass[] = {ERR_CAPACITY,    ERR_QUOTA, ERR_THROTTLED, ERR_TIMEOUT,
					     ERR_UNAVAILABLE, ERR_IO,	 ERR_PREEMPTED};

	(void)state;
	for (int kind = ERR_NONE; kind < ERR_KINDS; kind++) {
		struct history h = {0};
		bool passes = false;

		for (size_t i = 0; i < sizeof(pass) / sizeof(pass[0]); i++)
			passes = passes || (int)pass[i] == kind;
		begin(&h, 1, 1, 1);
		accept_suite(&h);
		refused(&h, next(&h, SUITE_FX_START), (enum err_kind)kind);
		assert_int_equal(h.s->entries[0].state, passes ? ENTRY_WAITING : ENTRY_FAILED);
		assert_int_equal(h.s->next_ms > 0, passes);
		end(&h);
	}
}

static void a_start_that_may_pass_is_tried_again_later(void **state)
{
	struct history h = {0};

	(void)state;
	begin(&h, 1, 1, 1);
	accept_suite(&h);
	refused(&h, next(&h, SUITE_FX_START), ERR_CAPACITY);
	nothing_more(&h);
	assert_string_equal(h.s->entries[0].cause, "no");
	assert_int_equal(h.s->entries[0].attempt, 1);
	int64_t first = h.s->next_ms - h.now;
	step(&h, (struct suite_event){.kind = SUITE_TICK});
	nothing_more(&h);
	h.now = h.s->next_ms;
	step(&h, (struct suite_event){.kind = SUITE_TICK});
	refused(&h, next(&h, SUITE_FX_START), ERR_IO);
	assert_true(h.s->next_ms - h.now > first);
	end(&h);
}

static void a_start_that_is_invalid_is_a_failed_run(void **state)
{
	struct history h = {0};

	(void)state;
	begin(&h, 1, 1, 1);
	accept_suite(&h);
	refused(&h, next(&h, SUITE_FX_START), ERR_INVALID);
	next(&h, SUITE_FX_ENDED);
	assert_int_equal(h.s->phase, SUITE_FAILED);
	end(&h);
}

static void a_cancel_ends_the_active_runs_and_starts_no_other(void **state)
{
	struct history h = {0};

	(void)state;
	begin(&h, 3, 1, 2);
	accept_suite(&h);
	next(&h, SUITE_FX_START);
	next(&h, SUITE_FX_START);
	started(&h, 0);
	assert_true(suite_goes_on(h.s));
	step(&h, (struct suite_event){.kind = SUITE_CANCEL, .text = "cancelled"});
	assert_false(suite_goes_on(h.s));
	assert_int_equal(next(&h, SUITE_FX_CANCEL), 0);
	nothing_more(&h);
	/* The other one was being made. */
	started(&h, 1);
	assert_int_equal(next(&h, SUITE_FX_CANCEL), 1);
	step(&h, (struct suite_event){.kind = SUITE_CANCEL, .hurry = true});
	next(&h, SUITE_FX_CANCEL);
	assert_true(h.fx.v.v[h.seen - 1].hurry);
	next(&h, SUITE_FX_CANCEL);
	ended(&h, 0, VERDICT_CANCELLED);
	ended(&h, 1, VERDICT_CANCELLED);
	next(&h, SUITE_FX_ENDED);
	nothing_more(&h);
	assert_int_equal(h.s->phase, SUITE_CANCELLED);
	assert_int_equal(suite_exit_code(h.s), 7);
	end(&h);
}

static void a_cancelled_suite_is_resumed_where_it_stood(void **state)
{
	struct history h = {0};

	(void)state;
	begin(&h, 3, 1, 1);
	accept_suite(&h);
	run_next(&h, VERDICT_SUCCEEDED);
	started(&h, next(&h, SUITE_FX_START));
	step(&h, (struct suite_event){.kind = SUITE_CANCEL});
	next(&h, SUITE_FX_CANCEL);
	ended(&h, 1, VERDICT_CANCELLED);
	next(&h, SUITE_FX_ENDED);
	step(&h, (struct suite_event){.kind = SUITE_AGAIN});
	assert_int_equal(h.s->phase, SUITE_RUNNING);
	assert_int_equal(h.s->entries[1].attempt, 2);
	run_next(&h, VERDICT_SUCCEEDED);
	assert_int_equal(h.s->entries[2].attempt, 1);
	run_next(&h, VERDICT_SUCCEEDED);
	next(&h, SUITE_FX_ENDED);
	assert_int_equal(h.s->phase, SUITE_SUCCEEDED);
	assert_int_equal(h.s->entries[0].attempt, 1);
	end(&h);
}

static void what_has_failed_starts_again_only_when_asked_for(void **state)
{
	struct history h = {0};

	(void)state;
	begin(&h, 1, 1, 1);
	accept_suite(&h);
	run_next(&h, VERDICT_FAILED);
	next(&h, SUITE_FX_ENDED);
	step(&h, (struct suite_event){.kind = SUITE_AGAIN});
	nothing_more(&h);
	step(&h, (struct suite_event){.kind = SUITE_AGAIN, .failed = true});
	run_next(&h, VERDICT_SUCCEEDED);
	next(&h, SUITE_FX_ENDED);
	step(&h, (struct suite_event){.kind = SUITE_AGAIN, .failed = true});
	nothing_more(&h);
	assert_int_equal(h.s->phase, SUITE_SUCCEEDED);
	end(&h);
}

static void an_answer_about_an_earlier_attempt_changes_nothing(void **state)
{
	struct history h = {0};

	(void)state;
	begin(&h, 1, 1, 1);
	accept_suite(&h);
	run_next(&h, VERDICT_FAILED);
	next(&h, SUITE_FX_ENDED);
	step(&h, (struct suite_event){.kind = SUITE_AGAIN, .failed = true});
	next(&h, SUITE_FX_START);
	step(&h, (struct suite_event){
			 .kind = SUITE_RUN_ENDED, .attempt = 1, .verdict = VERDICT_SUCCEEDED});
	assert_int_equal(h.s->entries[0].state, ENTRY_STARTING);
	end(&h);
}

static void a_suite_that_is_too_dear_is_stopped(void **state)
{
	struct history h = {0};

	(void)state;
	h.plan.runs.max_cost = 2.5;
	begin(&h, 4, 1, 1);
	accept_suite(&h);
	run_next(&h, VERDICT_SUCCEEDED);
	started(&h, next(&h, SUITE_FX_START));
	step(&h, (struct suite_event){.kind = SUITE_COST, .micro = 1400000});
	nothing_more(&h);
	step(&h, (struct suite_event){.kind = SUITE_COST, .micro = 1500000});
	next(&h, SUITE_FX_CANCEL);
	ended(&h, 1, VERDICT_CANCELLED);
	next(&h, SUITE_FX_ENDED);
	nothing_more(&h);
	assert_int_equal(h.s->phase, SUITE_FAILED);
	assert_int_equal(suite_exit_code(h.s), 5);
	assert_string_equal(h.s->cause, "its runs have cost 2.50 USD: max_cost is 2.50");
	end(&h);
}

static void a_suite_that_is_too_dear_with_its_last_run_is_not_stopped(void **state)
{
	static const char *command = "x";
	struct history h = {0};

	(void)state;
	h.plan.runs.max_cost = 1.5;
	h.plan.runs.on_exit = (struct strs){&command, 1};
	begin(&h, 2, 1, 1);
	accept_suite(&h);
	run_next(&h, VERDICT_SUCCEEDED);
	run_next(&h, VERDICT_SUCCEEDED);
	next(&h, SUITE_FX_CLOSE);
	step(&h, (struct suite_event){.kind = SUITE_COST, .micro = 1});
	step(&h, (struct suite_event){.kind = SUITE_CLOSED});
	next(&h, SUITE_FX_ENDED);
	assert_int_equal(h.s->phase, SUITE_SUCCEEDED);
	assert_int_equal(suite_exit_code(h.s), 0);
	assert_string_equal(h.s->cause, "");
	end(&h);
}

static void a_suite_that_gets_too_dear_while_it_stops_keeps_its_cause(void **state)
{
	struct history h = {0};

	(void)state;
	h.plan.runs.max_cost = 1.5;
	begin(&h, 2, 1, 1);
	accept_suite(&h);
	started(&h, next(&h, SUITE_FX_START));
	step(&h, (struct suite_event){.kind = SUITE_CANCEL, .text = "me"});
	next(&h, SUITE_FX_CANCEL);
	step(&h, (struct suite_event){.kind = SUITE_COST, .micro = 1500000});
	nothing_more(&h);
	ended(&h, 0, VERDICT_CANCELLED);
	next(&h, SUITE_FX_ENDED);
	assert_string_equal(h.s->cause, "me");
	assert_int_equal(suite_exit_code(h.s), 7);
	end(&h);
}

/* First with the active runs, and then with those that have ended. */
static void a_run_is_paid_for_once(void **state)
{
	struct history h = {0};

	(void)state;
	h.plan.runs.max_cost = 2.5;
	begin(&h, 2, 1, 2);
	accept_suite(&h);
	started(&h, next(&h, SUITE_FX_START));
	started(&h, next(&h, SUITE_FX_START));
	step(&h, (struct suite_event){.kind = SUITE_COST, .micro = 1800000});
	ended(&h, 0, VERDICT_SUCCEEDED);
	assert_int_equal(h.s->spent_micro + h.s->active_micro, 1800000);
	ended(&h, 1, VERDICT_SUCCEEDED);
	assert_int_equal(h.s->spent_micro + h.s->active_micro, 2000000);
	next(&h, SUITE_FX_ENDED);
	assert_int_equal(h.s->phase, SUITE_SUCCEEDED);
	end(&h);
}

static void on_exit_runs_whatever_happened(void **state)
{
	static const char *command = "x";
	struct history h = {0};

	(void)state;
	h.plan.runs.on_exit = (struct strs){&command, 1};
	begin(&h, 1, 1, 1);
	accept_suite(&h);
	run_next(&h, VERDICT_FAILED);
	next(&h, SUITE_FX_CLOSE);
	nothing_more(&h);
	core_suite_restored(h.s);
	step(&h, (struct suite_event){.kind = SUITE_RESUME});
	next(&h, SUITE_FX_CLOSE);
	step(&h, (struct suite_event){.kind = SUITE_CLOSED, .text = "x: exit code 3"});
	next(&h, SUITE_FX_ENDED);
	assert_string_equal(h.s->closed, "x: exit code 3");
	assert_int_equal(h.s->phase, SUITE_FAILED);
	end(&h);
}

static void after_a_restart_the_same_starts_are_asked_for(void **state)
{
	struct history h = {0};

	(void)state;
	begin(&h, 3, 1, 2);
	accept_suite(&h);
	started(&h, next(&h, SUITE_FX_START));
	assert_int_equal(next(&h, SUITE_FX_START), 1);
	core_suite_restored(h.s);
	step(&h, (struct suite_event){.kind = SUITE_RESUME});
	assert_int_equal(next(&h, SUITE_FX_START), 1);
	nothing_more(&h);
	end(&h);
}

static void a_changed_entry_is_listed_once(void **state)
{
	struct history h = {0};

	(void)state;
	begin(&h, 1, 1, 1);
	accept_suite(&h);
	started(&h, 0);
	assert_int_equal(h.fx.entries.n, 1);
	h.s->entries[0].dirty = false;
	ended(&h, 0, VERDICT_SUCCEEDED);
	assert_int_equal(h.fx.entries.n, 2);
	end(&h);
}

#define LAPTOP "laptop"

static void claim(struct history *h, const char *client)
{
	struct suite_event ev = {.kind = SUITE_CLAIM};

	snprintf(ev.client, sizeof(ev.client), "%s", client);
	step(h, ev);
}

static void closed_by(struct history *h, const char *client)
{
	struct suite_event ev = {.kind = SUITE_CLOSED};

	snprintf(ev.client, sizeof(ev.client), "%s", client);
	step(h, ev);
}

/* A suite that a client elsewhere has started: its only run has ended. */
static void begin_closing(struct history *h)
{
	static const char *command = "./publish.sh";

	begin(h, 1, 1, 1);
	h->plan.runs.on_exit = (struct strs){&command, 1};
	snprintf(h->s->client, sizeof(h->s->client), LAPTOP);
	accept_suite(h);
	started(h, next(h, SUITE_FX_START));
	ended(h, 0, VERDICT_SUCCEEDED);
	assert_int_equal(h->s->phase, SUITE_CLOSING);
}

static void the_client_that_stays_runs_on_exit(void **state)
{
	struct history h = {0};

	(void)state;
	begin_closing(&h);
	assert_true(suite_goes_on(h.s)); /* nothing is left to run */
	claim(&h, "somebody else");
	assert_false(suite_is_claimed_by(h.s, "somebody else"));
	claim(&h, LAPTOP);
	assert_true(suite_is_claimed_by(h.s, LAPTOP));
	/* As long as it says that it goes on. */
	for (int i = 0; i < 5; i++) {
		h.now += SUITE_CLAIM_MS - 1;
		step(&h, (struct suite_event){.kind = SUITE_TICK});
		claim(&h, LAPTOP);
	}
	nothing_more(&h);
	closed_by(&h, "somebody else");
	assert_int_equal(h.s->phase, SUITE_CLOSING);
	closed_by(&h, LAPTOP);
	next(&h, SUITE_FX_ENDED);
	assert_int_equal(h.s->phase, SUITE_SUCCEEDED);
	end(&h);
}

static void a_client_that_does_not_come_is_not_waited_for(void **state)
{
	struct history h = {0};

	(void)state;
	begin_closing(&h);
	h.now += SUITE_OFFER_MS - 1;
	step(&h, (struct suite_event){.kind = SUITE_TICK});
	nothing_more(&h);
	h.now++;
	step(&h, (struct suite_event){.kind = SUITE_TICK});
	next(&h, SUITE_FX_CLOSE);
	/* It comes too late. */
	claim(&h, LAPTOP);
	assert_false(suite_is_claimed_by(h.s, LAPTOP));
	closed_by(&h, LAPTOP);
	assert_int_equal(h.s->phase, SUITE_CLOSING);
	closed_by(&h, "");
	next(&h, SUITE_FX_ENDED);
	end(&h);
}

static void after_a_restart_the_client_has_time_again(void **state)
{
	struct history h = {0};

	(void)state;
	begin_closing(&h);
	claim(&h, LAPTOP);
	h.now += 10 * SUITE_CLAIM_MS; /* the master was away */
	step(&h, (struct suite_event){.kind = SUITE_RESUME});
	step(&h, (struct suite_event){.kind = SUITE_TICK});
	nothing_more(&h);
	h.now += SUITE_CLAIM_MS;
	step(&h, (struct suite_event){.kind = SUITE_TICK});
	next(&h, SUITE_FX_CLOSE);
	/* What a master had begun the next one begins again, once. */
	core_suite_restored(h.s);
	step(&h, (struct suite_event){.kind = SUITE_RESUME});
	next(&h, SUITE_FX_CLOSE);
	step(&h, (struct suite_event){.kind = SUITE_RESUME});
	nothing_more(&h);
	end(&h);
}

/* The last run has ended while no master was there: its end is told before SUITE_RESUME. */
static void after_a_restart_on_exit_runs_once(void **state)
{
	static const char *command = "./publish.sh";
	struct history h = {0};

	(void)state;
	begin(&h, 1, 1, 1);
	h.plan.runs.on_exit = (struct strs){&command, 1};
	accept_suite(&h);
	started(&h, next(&h, SUITE_FX_START));
	core_suite_restored(h.s);
	ended(&h, 0, VERDICT_SUCCEEDED);
	next(&h, SUITE_FX_CLOSE);
	step(&h, (struct suite_event){.kind = SUITE_RESUME});
	nothing_more(&h);
	end(&h);
}

static void the_time_left_is_judged_by_the_runs_that_have_ended(void **state)
{
	struct history h = {0};

	(void)state;
	begin(&h, 4, 2, 2); /* 8 runs, 2 at a time */
	accept_suite(&h);
	started(&h, 0);
	started(&h, 1);
	assert_int_equal(suite_left_ms(h.s, h.now), -1);
	h.now += 600;
	ended(&h, 0, VERDICT_SUCCEEDED);
	/* 5 wait for 600 ms each, one starts, one should have ended by now: by two. */
	assert_int_equal(suite_left_ms(h.s, h.now), 6 * 600 / 2);
	started(&h, 2);
	h.now += 200;
	/* The second has gone on for 800 ms: the mean is 700 by now. */
	assert_int_equal(suite_left_ms(h.s, h.now), (5 * 700 + 500) / 2);
	/* One that was cancelled says nothing about the others. */
	ended(&h, 1, VERDICT_CANCELLED);
	assert_int_equal(suite_left_ms(h.s, h.now), (4 * 600 + 600 + 400) / 2);
	step(&h, (struct suite_event){.kind = SUITE_CANCEL});
	assert_int_equal(suite_left_ms(h.s, h.now), -1);
	end(&h);
}

static void the_last_run_is_not_shared_among_many(void **state)
{
	struct history h = {0};

	(void)state;
	begin(&h, 3, 1, 3);
	accept_suite(&h);
	for (int i = 0; i < 3; i++)
		started(&h, i);
	h.now += 300;
	ended(&h, 0, VERDICT_SUCCEEDED);
	h.s->entries[1].since_ms = h.now; /* it has just begun, the other is as good as over */
	assert_int_equal(suite_left_ms(h.s, h.now), 300);
	end(&h);
}

/* All that can be worked out from the rows is worked out again. */
static void restart(struct history *h)
{
	core_suite_restored(h->s);
	step(h, (struct suite_event){.kind = SUITE_RESUME});
}

static void after_a_restart_it_is_known_what_succeeded_failed_and_was_spent(void **state)
{
	for (int failed = 0; failed < 2; failed++) {
		struct history h = {0};

		(void)state;
		h.plan.runs.max_cost = 2;
		h.after[0] = 1;
		h.variants[0] = (struct suite_variant){.after = h.after, .nafter = 1};
		begin(&h, 2, 1, 1);
		accept_suite(&h);
		started(&h, next(&h, SUITE_FX_START));
		/* The end is stored, and nothing that follows from it. */
		h.s->entries[1].state = failed ? ENTRY_FAILED : ENTRY_SUCCEEDED;
		h.s->entries[1].cost_micro = 1000000;
		restart(&h);
		if (failed) {
			assert_int_equal(h.s->entries[0].state, ENTRY_SKIPPED);
		} else {
			assert_int_equal(next(&h, SUITE_FX_START), 0);
			started(&h, 0);
			step(&h, (struct suite_event){.kind = SUITE_COST, .micro = 1000000});
			assert_int_equal(next(&h, SUITE_FX_CANCEL), 0);
		}
		end(&h);
	}
}

static void a_restart_while_it_stops_cancels_what_runs(void **state)
{
	struct history h = {0};

	(void)state;
	begin(&h, 2, 1, 2);
	accept_suite(&h);
	started(&h, next(&h, SUITE_FX_START));
	next(&h, SUITE_FX_START);
	step(&h, (struct suite_event){.kind = SUITE_CANCEL});
	next(&h, SUITE_FX_CANCEL);
	restart(&h);
	assert_int_equal(next(&h, SUITE_FX_CANCEL), 0);
	assert_int_equal(next(&h, SUITE_FX_START), 1); /* it may be there: then it is cancelled */
	/* It was not, and is not wanted any more. */
	refused(&h, 1, ERR_CAPACITY);
	assert_int_equal(h.s->entries[1].state, ENTRY_CANCELLED);
	/* The same again asks for nothing, and is no other cause. */
	step(&h, (struct suite_event){.kind = SUITE_CANCEL, .text = "other"});
	nothing_more(&h);
	assert_string_equal(h.s->cause, "");
	end(&h);
}

static void a_suite_that_waits_to_try_again_and_is_cancelled_waits_for_nothing(void **state)
{
	struct history h = {0};

	(void)state;
	begin(&h, 2, 1, 2);
	accept_suite(&h);
	started(&h, next(&h, SUITE_FX_START));
	for (int i = 0; i < 12; i++) {
		refused(&h, next(&h, SUITE_FX_START), ERR_PREEMPTED);
		assert_true(h.s->next_ms > h.now && h.s->next_ms - h.now <= 30000);
		h.now = h.s->next_ms;
		step(&h, (struct suite_event){.kind = SUITE_TICK});
	}
	/* A start that succeeds ends the long pauses. */
	assert_int_equal(h.s->next_ms, 0);
	started(&h, next(&h, SUITE_FX_START));
	ended(&h, 1, VERDICT_CANCELLED);
	step(&h, (struct suite_event){.kind = SUITE_CANCEL});
	next(&h, SUITE_FX_CANCEL);
	ended(&h, 0, VERDICT_CANCELLED);
	next(&h, SUITE_FX_ENDED);
	step(&h, (struct suite_event){.kind = SUITE_AGAIN});
	next(&h, SUITE_FX_START);
	refused(&h, next(&h, SUITE_FX_START), ERR_IO);
	assert_true(h.s->next_ms - h.now < 1000);
	started(&h, 0);
	step(&h, (struct suite_event){.kind = SUITE_CANCEL});
	assert_int_equal(h.s->next_ms, 0);
	end(&h);
}

/* Stopped by max_cost while `b` runs; `a` comes after it, and is skipped. */
static void stop_by_cost(struct history *h)
{
	static const char *command = "x";

	h->plan.runs.on_exit = (struct strs){&command, 1};
	h->plan.runs.max_cost = 1.5;
	h->after[0] = 1;
	h->variants[0] = (struct suite_variant){.after = h->after, .nafter = 1};
	begin(h, 2, 1, 1);
	snprintf(h->s->client, sizeof(h->s->client), "laptop");
	accept_suite(h);
	started(h, next(h, SUITE_FX_START));
	step(h, (struct suite_event){.kind = SUITE_COST, .micro = 1500000});
	next(h, SUITE_FX_CANCEL);
	step(h, (struct suite_event){.kind = SUITE_CANCEL, .hurry = true, .text = "me"});
	next(h, SUITE_FX_CANCEL);
	assert_string_equal(h->s->cause, "its runs have cost 1.50 USD: max_cost is 1.50");
	ended(h, 1, VERDICT_CANCELLED);
	assert_int_equal(h->s->phase, SUITE_CLOSING);
	h->now = h->s->next_ms;
	step(h, (struct suite_event){.kind = SUITE_TICK});
	next(h, SUITE_FX_CLOSE);
	step(h, (struct suite_event){.kind = SUITE_CLOSED, .text = "x: exit code 3"});
	next(h, SUITE_FX_ENDED);
	assert_int_equal(h->s->phase, SUITE_CANCELLED);
	assert_int_equal(suite_exit_code(h->s), 7);
}

static void a_resumed_suite_begins_anew_but_for_what_it_has_spent(void **state)
{
	struct history h = {0};

	(void)state;
	stop_by_cost(&h);
	step(&h, (struct suite_event){.kind = SUITE_AGAIN});
	assert_int_equal(h.s->phase, SUITE_RUNNING);
	assert_false(h.s->cancel_asked || h.s->hurry || h.s->too_dear);
	assert_string_equal(h.s->cause, "");
	assert_string_equal(h.s->closed, "");
	assert_string_equal(h.s->client, ""); /* the master runs on_exit of who resumes */
	assert_int_equal(h.s->closer, CLOSER_NONE);
	assert_int_equal(next(&h, SUITE_FX_START), 1);
	assert_int_equal(h.s->entries[1].attempt, 2);
	assert_int_equal(h.s->entries[0].attempt, 1); /* it has had no run */
	started(&h, 1);
	/* The second attempt is paid for beside the first: it is too dear at once. */
	ended(&h, 1, VERDICT_SUCCEEDED);
	assert_int_equal(h.s->entries[1].cost_micro, 2000000);
	assert_int_equal(h.s->phase, SUITE_CLOSING);
	next(&h, SUITE_FX_CLOSE);
	step(&h, (struct suite_event){.kind = SUITE_CLOSED});
	next(&h, SUITE_FX_ENDED);
	/* Only `a` is left, which waits: it may be resumed, and is stopped before it starts. */
	assert_int_equal(h.s->entries[0].state, ENTRY_WAITING);
	step(&h, (struct suite_event){.kind = SUITE_AGAIN});
	next(&h, SUITE_FX_CLOSE);
	nothing_more(&h);
	assert_true(h.s->too_dear);
	end(&h);
}

static void what_does_not_fit_the_state_changes_nothing(void **state)
{
	static const char *command = "x";
	struct history h = {0};

	(void)state;
	h.plan.runs.on_exit = (struct strs){&command, 1};
	begin(&h, 1, 1, 1);
	snprintf(h.s->client, sizeof(h.s->client), "laptop");
	accept_suite(&h);
	step(&h, (struct suite_event){.kind = SUITE_STARTED, .index = 1, .attempt = 1});
	step(&h, (struct suite_event){.kind = SUITE_STARTED, .index = -1, .attempt = 1});
	next(&h, SUITE_FX_START);
	h.s->entries[0].state = ENTRY_CANCELLED;
	step(&h, (struct suite_event){.kind = SUITE_AGAIN, .failed = true});
	assert_int_equal(h.s->entries[0].attempt, 1); /* it has not ended */
	h.s->entries[0].state = ENTRY_STARTING;
	started(&h, 0);
	ended(&h, 0, VERDICT_SUCCEEDED);
	uint64_t changes = h.fx.changes;
	step(&h, (struct suite_event){.kind = SUITE_CLAIM, .client = "another"});
	assert_int_equal(h.s->closer, CLOSER_OFFERED);
	step(&h, (struct suite_event){.kind = SUITE_CANCEL, .text = "too late"});
	assert_int_equal(h.fx.changes, changes);
	step(&h, (struct suite_event){.kind = SUITE_CLAIM, .client = "laptop"});
	/* After a restart the client that has it is given the time of a claim. */
	restart(&h);
	assert_int_equal(h.s->next_ms, h.now + SUITE_CLAIM_MS);
	step(&h, (struct suite_event){.kind = SUITE_CLOSED, .client = "laptop"});
	next(&h, SUITE_FX_ENDED);
	changes = h.fx.changes;
	h.s->closer = CLOSER_MASTER;
	step(&h, (struct suite_event){.kind = SUITE_CLOSED});
	step(&h, (struct suite_event){.kind = SUITE_RESUME});
	step(&h, (struct suite_event){.kind = SUITE_CANCEL});
	assert_int_equal(h.fx.changes, changes);
	nothing_more(&h);
	end(&h);
}

/* ---- away ---- */

static struct suite_event seen(int i, enum entry_state state)
{
	return (struct suite_event){
		.kind = SUITE_SEEN, .index = i, .state = state, .attempt = 1, .micro = 500};
}

static void begin_away(struct history *h)
{
	static const char *command = "x";

	begin(h, 2, 1, 2);
	h->plan.runs.on_exit = (struct strs){&command, 1};
	h->s->away = true;
	accept_suite(h);
}

static void a_suite_that_is_away_starts_nothing_and_takes_over_what_is_told(void **state)
{
	struct history h = {0};

	(void)state;
	begin_away(&h);
	step(&h, (struct suite_event){.kind = SUITE_TICK});
	step(&h, (struct suite_event){.kind = SUITE_RESUME});
	nothing_more(&h);
	step(&h, seen(0, ENTRY_RUNNING));
	step(&h, seen(0, ENTRY_SUCCEEDED));
	step(&h, seen(1, ENTRY_SUCCEEDED));
	uint64_t changes = h.fx.changes;

	step(&h, seen(1, ENTRY_SUCCEEDED));
	assert_int_equal(h.fx.changes, changes);
	nothing_more(&h);
	assert_int_equal(h.s->phase, SUITE_RUNNING); /* its results are not here */
	assert_int_equal(h.s->spent_micro, 1000);
	/* The other master has run on_exit. */
	step(&h, (struct suite_event){.kind = SUITE_SEEN_END, .closed = true});
	step(&h, (struct suite_event){.kind = SUITE_BACK, .verdict = VERDICT_SUCCEEDED});
	next(&h, SUITE_FX_ENDED);
	nothing_more(&h);
	assert_int_equal(h.s->phase, SUITE_SUCCEEDED);
	assert_int_equal(suite_exit_code(h.s), 0);
	end(&h);
}

static void a_cancel_of_a_suite_that_is_away_goes_to_its_carrier(void **state)
{
	struct history h = {0};

	(void)state;
	begin_away(&h);
	step(&h, seen(0, ENTRY_RUNNING));
	step(&h, (struct suite_event){.kind = SUITE_CANCEL, .text = "cancelled"});
	assert_int_equal(next(&h, SUITE_FX_CANCEL), -1);
	nothing_more(&h);
	step(&h, (struct suite_event){.kind = SUITE_RESUME});
	assert_int_equal(next(&h, SUITE_FX_CANCEL), -1);
	step(&h, seen(0, ENTRY_CANCELLED));
	nothing_more(&h);
	step(&h, (struct suite_event){.kind = SUITE_SEEN_END, .closed = true});
	step(&h, (struct suite_event){.kind = SUITE_BACK,
				      .err_kind = ERR_CANCELLED,
				      .verdict = VERDICT_CANCELLED});
	next(&h, SUITE_FX_ENDED);
	assert_int_equal(h.s->phase, SUITE_CANCELLED);
	assert_int_equal(h.s->entries[1].state, ENTRY_WAITING);
	end(&h);
}

static void what_a_lost_master_ran_has_failed_and_on_exit_runs_here(void **state)
{
	struct history h = {0};

	(void)state;
	begin_away(&h);
	step(&h, seen(0, ENTRY_RUNNING));
	step(&h, (struct suite_event){.kind = SUITE_BACK,
				      .verdict = VERDICT_FAILED,
				      .err_kind = ERR_UNAVAILABLE,
				      .text = "it is gone"});
	next(&h, SUITE_FX_CLOSE);
	assert_int_equal(h.s->phase, SUITE_CLOSING);
	assert_int_equal(h.s->entries[0].state, ENTRY_FAILED);
	assert_string_equal(h.s->entries[0].cause, "it is gone");
	assert_int_equal(h.s->entries[1].state, ENTRY_WAITING);
	assert_string_equal(h.s->cause, "it is gone");
	step(&h, (struct suite_event){.kind = SUITE_CLOSED});
	next(&h, SUITE_FX_ENDED);
	assert_int_equal(h.s->phase, SUITE_FAILED);
	/* A suite that is here takes nothing over. */
	uint64_t changes = h.fx.changes;

	step(&h, seen(0, ENTRY_SUCCEEDED));
	step(&h, (struct suite_event){.kind = SUITE_BACK});
	assert_int_equal(h.fx.changes, changes);
	end(&h);
}

static void a_suite_that_was_too_dear_elsewhere_is_so_here(void **state)
{
	struct history h = {0};

	(void)state;
	begin_away(&h);
	h.plan.runs.max_cost = 0.0001;
	step(&h, seen(0, ENTRY_RUNNING));
	step(&h, (struct suite_event){.kind = SUITE_COST, .micro = 1000000});
	nothing_more(&h); /* the other master counts */
	step(&h, (struct suite_event){.kind = SUITE_SEEN_END, .closed = true});
	step(&h, (struct suite_event){.kind = SUITE_BACK,
				      .verdict = VERDICT_FAILED,
				      .err_kind = ERR_QUOTA,
				      .text = "too dear"});
	next(&h, SUITE_FX_ENDED);
	assert_int_equal(suite_exit_code(h.s), 5);
	assert_string_equal(h.s->cause, "too dear");
	end(&h);
}

static struct suite_event not_back(enum err_kind kind)
{
	return (struct suite_event){.kind = SUITE_NOT_BACK, .err_kind = kind};
}

static void results_that_cannot_be_taken_in_now_are_taken_in_later(void **state)
{
	struct history h = {0};

	(void)state;
	begin_away(&h);
	/* Twice as long each time, up to about a minute, and for about an hour. */
	for (int i = 0; i < 60; i++) {
		int64_t pause_ms = 1000LL << (i < 6 ? i : 6);

		step(&h, not_back(i % 2 ? ERR_UNAVAILABLE : ERR_IO));
		assert_true(suite_returns_later(h.s));
		assert_int_equal(h.s->next_ms, h.now + pause_ms);
		if (i == 3) { /* Rule: a cancel does not keep it away for ever. */
			step(&h, (struct suite_event){.kind = SUITE_CANCEL});
			next(&h, SUITE_FX_CANCEL);
		}
		h.now += pause_ms - 1;
		step(&h, (struct suite_event){.kind = SUITE_TICK});
		nothing_more(&h);
		h.now += 1;
		step(&h, (struct suite_event){.kind = SUITE_TICK});
		next(&h, SUITE_FX_RETURN);
		nothing_more(&h);
		assert_false(suite_returns_later(h.s));
	}
	step(&h, not_back(ERR_UNAVAILABLE));
	assert_false(suite_returns_later(h.s));
	end(&h);
}

static void results_that_never_will_be_there_are_not_waited_for(void **state)
{
	static const enum err_kind kinds[] = {ERR_NONE, ERR_NOT_FOUND, ERR_DENIED, ERR_CANCELLED};
	struct history h = {0};

	(void)state;
	begin_away(&h);
	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
		step(&h, not_back(kinds[i]));
		assert_false(suite_returns_later(h.s));
	}
	end(&h);
}

/* Rule: on_exit that has run at the other master does not run again, whatever is lost afterwards. */
static void a_suite_that_was_seen_to_have_ended_is_not_closed_again(void **state)
{
	struct history h = {0};

	(void)state;
	begin_away(&h);
	step(&h, seen(0, ENTRY_SUCCEEDED));
	step(&h, seen(1, ENTRY_FAILED));
	h.s->dirty = false;
	step(&h, (struct suite_event){.kind = SUITE_SEEN_END, .closed = true});
	assert_true(h.s->closed_there && h.s->dirty); /* it is stored */
	step(&h, (struct suite_event){.kind = SUITE_BACK,
				      .verdict = VERDICT_FAILED,
				      .err_kind = ERR_UNAVAILABLE,
				      .text = "it is gone"});
	next(&h, SUITE_FX_ENDED);
	nothing_more(&h);
	assert_int_equal(h.s->phase, SUITE_FAILED);
	/* It is resumed here, and here on_exit runs. */
	step(&h, (struct suite_event){.kind = SUITE_AGAIN, .failed = true});
	next(&h, SUITE_FX_START);
	assert_false(h.s->closed_there);
	end(&h);
}

/* Rule: what has succeeded at a lost master, with results that are here, never runs again. */
static void results_tell_the_end_of_a_run_that_was_not_seen_to_end(void **state)
{
	struct history h = {0};

	(void)state;
	begin_away(&h);
	step(&h, seen(0, ENTRY_RUNNING)); /* the other started after the last look */
	ended(&h, 0, VERDICT_SUCCEEDED);
	ended(&h, 1, VERDICT_SUCCEEDED);
	nothing_more(&h); /* it is still away */
	step(&h, (struct suite_event){.kind = SUITE_BACK,
				      .verdict = VERDICT_FAILED,
				      .err_kind = ERR_UNAVAILABLE});
	next(&h, SUITE_FX_CLOSE);
	step(&h, (struct suite_event){.kind = SUITE_CLOSED});
	next(&h, SUITE_FX_ENDED);
	assert_true(suite_is_done(h.s));
	step(&h, (struct suite_event){.kind = SUITE_AGAIN, .failed = true});
	nothing_more(&h);
	end(&h);
}

/* Rule: a suite that is resumed may go to another master again.  It has what succeeded, but not on_exit. */
static void a_resumed_suite_goes_away_again_and_on_exit_runs_here(void **state)
{
	struct history h = {0};

	(void)state;
	begin_away(&h);
	step(&h, seen(0, ENTRY_SUCCEEDED));
	step(&h, seen(1, ENTRY_RUNNING));
	step(&h, (struct suite_event){.kind = SUITE_BACK, .err_kind = ERR_UNAVAILABLE});
	next(&h, SUITE_FX_CLOSE);
	step(&h, (struct suite_event){.kind = SUITE_CLOSED});
	next(&h, SUITE_FX_ENDED);
	step(&h, (struct suite_event){.kind = SUITE_AGAIN, .failed = true, .away = true});
	nothing_more(&h);
	assert_true(h.s->away);
	assert_int_equal(h.s->carrier, 2);
	assert_int_equal(h.s->entries[0].state, ENTRY_SUCCEEDED);
	assert_int_equal(h.s->entries[1].attempt, 2);
	step(&h, (struct suite_event){.kind = SUITE_CANCEL});
	assert_int_equal(next(&h, SUITE_FX_CANCEL), -1);
	assert_int_equal(h.fx.v.v[h.seen - 1].attempt, 2); /* the second carrier */
	step(&h, (struct suite_event){.kind = SUITE_SEEN_END, .closed = true});
	step(&h, (struct suite_event){.kind = SUITE_BACK, .verdict = VERDICT_CANCELLED});
	next(&h, SUITE_FX_CLOSE);
	step(&h, (struct suite_event){.kind = SUITE_CLOSED});
	next(&h, SUITE_FX_ENDED);
	assert_int_equal(h.s->phase, SUITE_CANCELLED);
	end(&h);
}

/* Rule: no machine is made for a suite that has nothing to run. */
static void a_resumed_suite_that_starts_nothing_does_not_go_away(void **state)
{
	struct history h = {0};

	(void)state;
	h.after[0] = 1;
	h.variants[0] = (struct suite_variant){.after = h.after, .nafter = 1};
	begin(&h, 2, 1, 1);
	accept_suite(&h);
	run_next(&h, VERDICT_FAILED);
	next(&h, SUITE_FX_ENDED);
	step(&h, (struct suite_event){.kind = SUITE_AGAIN, .away = true});
	next(&h, SUITE_FX_ENDED);
	assert_false(h.s->away);
	h.plan.runs.max_cost = 0.5; /* spent */
	step(&h, (struct suite_event){.kind = SUITE_AGAIN, .failed = true, .away = true});
	next(&h, SUITE_FX_ENDED);
	assert_false(h.s->away);
	assert_int_equal(h.s->carrier, 1);
	end(&h);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(repeats_of_all_variants_take_turns),
		cmocka_unit_test(as_written_all_repeats_of_a_variant_come_first),
		cmocka_unit_test(no_more_runs_than_parallel_are_active),
		cmocka_unit_test(a_failed_run_does_not_stop_the_others),
		cmocka_unit_test(an_experiment_waits_for_all_runs_of_the_one_before),
		cmocka_unit_test(an_experiment_is_skipped_when_the_one_before_failed),
		cmocka_unit_test(experiments_are_skipped_in_whatever_order_they_stand),
		cmocka_unit_test(only_a_start_that_may_pass_is_tried_again),
		cmocka_unit_test(a_start_that_may_pass_is_tried_again_later),
		cmocka_unit_test(a_start_that_is_invalid_is_a_failed_run),
		cmocka_unit_test(a_cancel_ends_the_active_runs_and_starts_no_other),
		cmocka_unit_test(a_cancelled_suite_is_resumed_where_it_stood),
		cmocka_unit_test(what_has_failed_starts_again_only_when_asked_for),
		cmocka_unit_test(an_answer_about_an_earlier_attempt_changes_nothing),
		cmocka_unit_test(a_suite_that_is_too_dear_is_stopped),
		cmocka_unit_test(a_suite_that_is_too_dear_with_its_last_run_is_not_stopped),
		cmocka_unit_test(a_suite_that_gets_too_dear_while_it_stops_keeps_its_cause),
		cmocka_unit_test(a_run_is_paid_for_once),
		cmocka_unit_test(on_exit_runs_whatever_happened),
		cmocka_unit_test(after_a_restart_the_same_starts_are_asked_for),
		cmocka_unit_test(a_changed_entry_is_listed_once),
		cmocka_unit_test(the_client_that_stays_runs_on_exit),
		cmocka_unit_test(a_client_that_does_not_come_is_not_waited_for),
		cmocka_unit_test(after_a_restart_the_client_has_time_again),
		cmocka_unit_test(after_a_restart_on_exit_runs_once),
		cmocka_unit_test(the_time_left_is_judged_by_the_runs_that_have_ended),
		cmocka_unit_test(the_last_run_is_not_shared_among_many),
		cmocka_unit_test(after_a_restart_it_is_known_what_succeeded_failed_and_was_spent),
		cmocka_unit_test(a_restart_while_it_stops_cancels_what_runs),
		cmocka_unit_test(
			a_suite_that_waits_to_try_again_and_is_cancelled_waits_for_nothing),
		cmocka_unit_test(a_resumed_suite_begins_anew_but_for_what_it_has_spent),
		cmocka_unit_test(what_does_not_fit_the_state_changes_nothing),
		cmocka_unit_test(a_suite_that_is_away_starts_nothing_and_takes_over_what_is_told),
		cmocka_unit_test(a_cancel_of_a_suite_that_is_away_goes_to_its_carrier),
		cmocka_unit_test(what_a_lost_master_ran_has_failed_and_on_exit_runs_here),
		cmocka_unit_test(a_suite_that_was_too_dear_elsewhere_is_so_here),
		cmocka_unit_test(results_that_cannot_be_taken_in_now_are_taken_in_later),
		cmocka_unit_test(results_that_never_will_be_there_are_not_waited_for),
		cmocka_unit_test(a_suite_that_was_seen_to_have_ended_is_not_closed_again),
		cmocka_unit_test(results_tell_the_end_of_a_run_that_was_not_seen_to_end),
		cmocka_unit_test(a_resumed_suite_goes_away_again_and_on_exit_runs_here),
		cmocka_unit_test(a_resumed_suite_that_starts_nothing_does_not_go_away),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
