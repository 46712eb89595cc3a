/* The deltas that a watcher of a run gets. */
#include "unit.h"

#include <string.h>

#include "base/cleanup.h"
#include "master/round.h"
#include "master/run_json.h"
#include "rig.h"

static bool tells_of(struct live_run *lr, uint64_t since, const char *text)
{
	CLEANUP(buf_release) struct buf out = {0};

	buf_init(&out, 1 << 20);
	run_delta_to_json(lr, since, &out);
	assert_true(str_starts(buf_str(&out), STR("{\"delta\":true,\"id\":\"")));
	return strstr(out.p, text) != NULL;
}

static void a_delta_has_the_nodes_that_changed(void **state)
{
	struct rig *r = *state;
	struct live_run *lr = rig_submit(r, RIG_JOB_OF_TWO);

	rig_until(r, lr->core->phase == RUN_GATHERING);
	uint64_t since = ++lr->changes;

	assert_true(tells_of(lr, since, "\"nodes\":[]"));
	assert_true(
		tells_of(lr, since, "\"state\":\"gathering\"")); /* the run itself is all there */
	node_changed(lr, 1);
	assert_true(tells_of(lr, since, "\"rank\":1,"));
	assert_false(tells_of(lr, since, "\"rank\":0,"));
	assert_true(tells_of(lr, lr->changes, "\"nodes\":[]"));
}

static void what_a_node_does_is_a_change(void **state)
{
	struct rig *r = *state;
	struct rig_agent *a = rig_agent(r, 0);

	rig_submit(r, RIG_JOB);
	struct live_run *lr = rig_run(r);
	uint64_t since = ++lr->changes;

	agent_run(a);
	rig_until(r, lr->core->nodes[0].state == NODE_RUNNING);
	rig_until(r, tells_of(lr, since, "\"state\":\"running\",\"attempt\":1"));
	since = ++lr->changes;
	assert_true(tells_of(lr, since, "\"nodes\":[]"));
	agent_data(a, STREAM_OUT, 0, STR("12345"));
	rig_until(r, tells_of(lr, since, "\"log_bytes\":5"));
}

/* Whoever sees the end reads the records or removes the run, also in the same turn of the loop. */
static void the_end_is_told_when_it_is_stored(void **state)
{
	struct rig *r = *state;
	struct live_run *lr = rig_submit(r, RIG_JOB);

	rig_until(r, lr->core->phase == RUN_GATHERING);
	r->work_waits = true;
	rig_cancel(r, true);
	rig_until(r, lr->core->phase == RUN_CLEANING);
	lr->busy++; /* it stays in memory */
	for (int i = lr->plan.nresources - 1; i >= 0; i--)
		run_event(lr, &(struct event){.kind = EV_RES_ANSWER,
					      .index = i,
					      .attempt = lr->core->resources[i].ask_no,
					      .asked = lr->core->resources[i].asked,
					      .outcome = OUTCOME_DONE});
	assert_int_equal(lr->core->phase, RUN_CANCELLED);
	assert_true(tells_of(lr, 0, "\"state\":\"cleaning\""));
	assert_true(tells_of(lr, 0, "\"exit_code\":null"));
	rig_until(r, lr->ended);
	assert_true(tells_of(lr, 0, "\"state\":\"cancelled\""));
	assert_true(tells_of(lr, 0, "\"exit_code\":7"));
	lr->busy--;
}

/* Rule: how long the logs of a node are that has left is known without a look at its files: a run may have ten
 * thousand nodes. */
static void the_length_of_a_log_is_known_without_its_file(void **state)
{
	struct rig *r = *state;
	struct live_run *lr = rig_submit(r, RIG_JOB);
	struct rig_agent *a = rig_agent(r, 0);

	agent_run(a);
	agent_data(a, STREAM_OUT, 0, STR("12345"));
	rig_until(r, (agent_read(a), a->acks[STREAM_OUT].stored == 5));
	agent_hang_up(a);
	rig_until(r, !lr->nodes[0].agent && !lr->nodes[0].streams[STREAM_OUT].file);
	assert_int_equal(unlink(a->log), 0);
	assert_int_equal(run_log_size(lr, 0, STREAM_OUT), 5);
	assert_int_equal(run_log_size(lr, 0, STREAM_ERR), 0);
	assert_int_equal(run_not_stored(lr, 0), 0);
}

int main(void)
{
#define CASE(fn) cmocka_unit_test_setup_teardown(fn, rig_make, rig_drop)
	static const struct CMUnitTest tests[] = {
		CASE(a_delta_has_the_nodes_that_changed),
		CASE(what_a_node_does_is_a_change),
		CASE(the_end_is_told_when_it_is_stored),
		cmocka_unit_test_setup_teardown(the_length_of_a_log_is_known_without_its_file,
						rig_make, rig_drop),
	};

	return cmocka_run_group_tests_name("watch", tests, NULL, NULL);
}
