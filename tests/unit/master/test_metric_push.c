/* Metrics that are sent away while a run goes on: each sample once, and no failure of a run. */
#include "rig.h"

#include <string.h>

#include "base/arena.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "driver/metric_sink.h"
#include "master/upkeep/metric_push.h"

#define MINUTE_MS 60000

/* The sink. */
static struct {
	int calls;
	enum err_kind fails;
	struct metric_point v[3 * METRIC_BATCH];
	size_t n;
} sink;

int __wrap_metric_sink_put(const struct metric_batch *b, const struct deadline *d, struct err *err);
const char *__wrap_plan_metrics(const struct plan *p, struct arena *a);

int __wrap_metric_sink_put(const struct metric_batch *b, const struct deadline *d, struct err *err)
{
	(void)d;
	assert_string_equal(b->url, "sink://here");
	assert_string_equal(b->job, "t");
	sink.calls++;
	if (sink.fails != ERR_NONE)
		return err_set(err, sink.fails, "the sink says no");
	assert_true(sink.n + b->n <= 3 * METRIC_BATCH);
	for (size_t i = 0; i < b->n; i++) {
		assert_string_equal(b->v[i].name, "loss");
		assert_string_equal(b->v[i].node, "worker-0");
	}
	memcpy(sink.v + sink.n, b->v, b->n * sizeof(b->v[0]));
	sink.n += b->n;
	return 0;
}

const char *__wrap_plan_metrics(const struct plan *p, struct arena *a)
{
	(void)p;
	(void)a;
	return "sink://here";
}

static int make(void **state)
{
	memset(&sink, 0, sizeof(sink));
	return rig_make(state);
}

/* A running node that has sent these samples. */
static struct rig_agent *node_with(struct rig *r, const char *samples)
{
	CLEANUP(freep)
	char *frame = xasprintf("{\"from\":0,\"to\":6,\"bad\":0,\"samples\":[%s]}", samples);
	struct rig_agent *a;

	rig_submit(r, RIG_JOB);
	a = rig_agent(r, 0);
	agent_run(a);
	agent_data(a, STREAM_OUT, 0, STR("hello\n"));
	agent_say(a, FRAME_METRICS, frame);
	rig_until(r, a->acks[STREAM_OUT].scanned == 6);
	return a;
}

static void check(struct rig *r)
{
	metric_push_check(r->m.metric_push);
	rig_until(r, !metric_push_waiting(r->m.metric_push));
}

static void is_point(size_t i, int64_t minute, uint64_t count, double sum, double min, double max)
{
	assert_int_equal(sink.v[i].at_ms, minute * MINUTE_MS);
	assert_int_equal(sink.v[i].count, count);
	assert_true(sink.v[i].sum == sum && sink.v[i].min == min && sink.v[i].max == max);
}

static void minutes_that_are_over_are_sent_once_and_the_rest_at_the_end(void **state)
{
	struct rig *r = *state;
	int64_t later = clock_wall_ms() / MINUTE_MS + 60;
	CLEANUP(freep)
	char *samples =
		xasprintf("[\"loss\",3,-1,60000],[\"loss\",-1,-1,61000],[\"loss\",5,-1,125000],"
			  "[\"host.cpu\",5,-1,60000],[\"loss\",9,-1,%lld]",
			  (long long)later * MINUTE_MS);
	struct rig_agent *a = node_with(r, samples);

	check(r);
	assert_int_equal(sink.n, 2);
	is_point(0, 1, 2, 2, -1, 3);
	is_point(1, 2, 1, 5, 5, 5);
	check(r);
	assert_int_equal(sink.calls, 1);
	agent_finish(a);
	rig_until(r, sink.n == 3);
	is_point(2, later, 1, 9, 9, 9);
	rig_until(r, !rig_run(r));
	assert_int_equal(sink.calls, 2);
}

static void the_next_master_goes_on_where_this_one_was(void **state)
{
	struct rig *r = *state;

	node_with(r, "[\"loss\",1,-1,60000]");
	check(r);
	assert_int_equal(sink.n, 1);
	rig_stop(r);
	assert_true(rig_start(r));
	check(r);
	assert_int_equal(sink.calls, 1);
}

static void a_refusal_is_one_event_and_the_last_call(void **state)
{
	struct rig *r = *state;
	struct rig_agent *a = node_with(r, "[\"loss\",1,-1,60000]");

	sink.fails = ERR_DENIED;
	check(r);
	check(r);
	agent_finish(a);
	rig_until(r, !rig_run(r));
	assert_int_equal(sink.calls, 1);
	assert_int_equal(rig_events(r, "metrics"), 1);
	assert_int_equal(rig_events(r, "succeeded"), 1);
}

static void what_fails_for_a_while_is_sent_later(void **state)
{
	struct rig *r = *state;

	node_with(r, "[\"loss\",1,-1,60000]");
	sink.fails = ERR_UNAVAILABLE;
	check(r);
	assert_int_equal(sink.calls, 1);
	sink.fails = ERR_NONE;
	check(r);
	assert_int_equal(sink.n, 1);
	is_point(0, 1, 1, 1, 1, 1);
	assert_int_equal(rig_events(r, "metrics"), 0);
}

static void an_ended_run_tries_three_times_and_then_says_so(void **state)
{
	struct rig *r = *state;
	struct rig_agent *a = node_with(r, "[\"loss\",1,-1,60000]");

	sink.fails = ERR_THROTTLED;
	agent_finish(a);
	rig_until(r, !rig_run(r));
	assert_int_equal(sink.calls, 3);
	assert_int_equal(rig_events(r, "metrics"), 1);
	assert_int_equal(rig_events(r, "succeeded"), 1);
}

static void more_than_a_call_takes_is_several_calls(void **state)
{
	CLEANUP(buf_release) struct buf samples = {0};
	struct rig *r = *state;

	buf_init(&samples, 1 << 20);
	for (int i = 1; i <= METRIC_BATCH + 7; i++)
		buf_printf(&samples, "%s[\"loss\",%d,-1,%lld]", i == 1 ? "" : ",", i,
			   (long long)i * MINUTE_MS);
	buf_addc(&samples, '\0');
	node_with(r, samples.p);
	check(r);
	assert_int_equal(sink.calls, 2);
	assert_int_equal(sink.n, METRIC_BATCH + 7);
	for (int i = 1; i <= METRIC_BATCH + 7; i++)
		is_point((size_t)i - 1, i, 1, i, i, i);
}

int main(void)
{
#define CASE(fn) cmocka_unit_test_setup_teardown(fn, make, rig_drop)
	static const struct CMUnitTest tests[] = {
		CASE(minutes_that_are_over_are_sent_once_and_the_rest_at_the_end),
		CASE(the_next_master_goes_on_where_this_one_was),
		CASE(a_refusal_is_one_event_and_the_last_call),
		CASE(what_fails_for_a_while_is_sent_later),
		CASE(an_ended_run_tries_three_times_and_then_says_so),
		CASE(more_than_a_call_takes_is_several_calls),
	};

	return cmocka_run_group_tests_name("master: metric_push", tests, NULL, NULL);
}
