/* What a run has cost, of all and of its parts. */
#include "rig.h"

#include <string.h>

#include "base/alloc.h"
#include "base/arena.h"
#include "base/cleanup.h"
#include "core/suite.h"
#include "fmt/doc.h"
#include "master/clock.h"
#include "master/run_cost.h"
#include "master/suites.h"
#include "plan/plan.h"

/* A run that has been running for 100 s, on a machine for 3.60 USD an hour that was there for 1,000 s. */
static struct live_run *run_with(struct rig *r, const char *samples)
{
	static int64_t price[] = {3600000};
	struct live_run *lr = rig_submit(r, RIG_JOB);
	struct rig_agent *a = rig_agent(r, 0);
	CLEANUP(freep)
	char *frame = xasprintf("{\"from\":0,\"to\":6,\"bad\":0,\"samples\":[%s]}", samples);

	rig_until(r, lr->core->resources[0].state == RES_LIVE);
	agent_hello(a, NULL);
	agent_wait(a, FRAME_INPUTS);
	agent_say(a, FRAME_READY, "{\"ok\":true}");
	agent_wait(a, FRAME_START);
	agent_say(a, FRAME_STARTED, "{\"attempt\":1,\"pid\":7}");
	agent_data(a, STREAM_OUT, 0, STR("hello\n"));
	agent_say(a, FRAME_METRICS, frame);
	rig_until(r, a->acks[STREAM_OUT].scanned == 6);
	lr->plan.prices_as_of = "a list";
	lr->plan.resources[0].prices = (struct ints){.v = price, .n = 1};
	lr->core->resources[0].paid_from_ms = master_now(&r->m) - 1000000;
	lr->core->phase_at_ms[RUN_RUNNING] = master_now(&r->m) - 100000;
	return lr;
}

static const struct doc *cost_of(const struct live_run *lr, struct arena *a)
{
	CLEANUP(buf_release) struct buf text = {0};
	struct doc *d;

	buf_init(&text, 100000);
	run_costs_to_json(lr, &text);
	assert_int_equal(json_parse(arena_str(a, buf_str(&text)), a, &d, NULL), 0);
	return d;
}

static bool about(double a, double b)
{
	return a > 0.99 * b && a < 1.01 * b;
}

static void a_cost_is_shared_among_steps_and_samples(void **state)
{
	CLEANUP(arena_freep) struct arena *a = arena_new();
	struct live_run *lr =
		run_with(*state, "[\"loss\",0.5,50,1000,80],[\"samples_per_s\",20.0,-1,1000],"
				 "[\"samples_per_s\",40.0,-1,1000]");
	const struct doc *cost = cost_of(lr, a);

	assert_true(about(doc_num(cost, "usd", 0), 1.0));
	assert_int_equal(doc_int(cost, "steps", 0), 50);
	assert_true(about(doc_num(cost, "usd_per_step", 0), 0.02));
	/* 30 a second for 100 s */
	assert_true(about(doc_num(cost, "samples", 0), 3000));
	assert_true(about(doc_num(cost, "usd_per_1k_samples", 0), 0.3333));
	const char *text = run_cost_text(lr, a);

	assert_non_null(strstr(text, "USD, 0.02 USD per step, 0.33"));
	assert_non_null(strstr(text, " USD per 1,000 samples"));
}

static void what_is_not_known_is_not_shared(void **state)
{
	CLEANUP(arena_freep) struct arena *a = arena_new();
	struct live_run *lr = run_with(*state, "[\"loss\",0.5,-1,1000]");
	const struct doc *cost = cost_of(lr, a);

	assert_int_equal(doc_get(cost, "usd_per_step")->type, DOC_NULL);
	assert_int_equal(doc_get(cost, "samples")->type, DOC_NULL);
	assert_int_equal(doc_get(cost, "usd_per_1k_samples")->type, DOC_NULL);
	assert_null(strstr(run_cost_text(lr, a), " per "));
	/* On machines without a price. */
	lr->plan.prices_as_of = NULL;
	assert_null(run_cost_text(lr, a));
}

/* ---- suites ---- */

/* Two variants, one after the other. */
static void submit_suite(struct rig *r, const char *name, const char *keys)
{
	CLEANUP(freep)
	char *body = xasprintf(
		"{\"request_id\":\"request-of-suite-%s\",\"suite\":{\"name\":\"%s\",\"suite\":{\"job\":"
		"\"x.toml\"%s},\"matrix\":{\"env.X\":[\"1\",\"2\"]}},\"base_dir\":\"/\",\"of\":[0,0],"
		"\"submissions\":[{\"job\":" RIG_JOB ",\"base_dir\":\"/\",\"client_env\":{}}]}",
		name, name, keys);

	assert_int_equal(rig_http(r, "POST", "/api/v1/suites", body), 201);
}

static const struct core_suite *suite_at(struct rig *r, size_t i)
{
	return suites_at(r->m.suites, i)->core;
}

/* Rule: what runs cost while they go on counts for max_cost, in a master that was just started, too. */
static void a_suite_is_stopped_when_what_runs_gets_too_dear(void **state)
{
	static int64_t price[] = {3600000};
	struct rig *r = *state;

	submit_suite(r, "dear", ",\"max_cost\":0.5");
	rig_until(r, rig_run(r));
	struct live_run *lr = rig_run(r);

	agent_run(rig_agent(r, 0));
	rig_until(r, lr->core->phase == RUN_RUNNING);
	rig_idle(r);
	assert_int_equal(suite_at(r, 0)->phase, SUITE_RUNNING);
	/* 3.60 USD an hour for 1,000 s */
	lr->plan.prices_as_of = "a list";
	lr->plan.resources[0].prices = (struct ints){.v = price, .n = 1};
	lr->core->resources[0].paid_from_ms = master_now(&r->m) - 1000000;
	r->m.clock_base += 60000; /* later something else happens */
	submit_suite(r, "other", "");
	rig_until(r, suite_at(r, 0)->phase == SUITE_STOPPING);
	assert_true(suite_at(r, 0)->too_dear);
	assert_int_equal(suite_at(r, 1)->phase, SUITE_RUNNING);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(a_cost_is_shared_among_steps_and_samples, rig_make,
						rig_drop),
		cmocka_unit_test_setup_teardown(what_is_not_known_is_not_shared, rig_make,
						rig_drop),
		cmocka_unit_test_setup_teardown(a_suite_is_stopped_when_what_runs_gets_too_dear,
						rig_make, rig_drop),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
