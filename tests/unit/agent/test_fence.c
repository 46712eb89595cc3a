/* Nodes that may be replaced (lost_ms of WELCOME): without an answer of the master the job ends in time. */
#include "unit.h"

#include <inttypes.h>
#include <poll.h>
#include <string.h>
#include <sys/stat.h>

#include "agent/shim/supervisor.h"
#include "base/clock.h"
#include "fake_master.h"

#define JOB "exec sleep 600"

/* An agent that was told of `lost_ms` (0: not at all) and is ready for START. */
static void begin(struct fake *f, int64_t lost_ms)
{
	const char *lost = lost_ms ? arena_printf(f->arena, ",\"lost_ms\":%" PRId64, lost_ms) : "";

	fake_agent(f);
	fake_accept(f);
	fake_send(f, FRAME_WELCOME,
		  arena_printf(f->arena,
			       "{\"lease_ms\":60000,\"acks\":[0,0,0],\"scanned\":[0,0,0]%s}",
			       lost));
	fake_send(f, FRAME_INPUTS, "{\"argv0\":\"sh\",\"path\":\"/bin\"}");
	fake_wait(f, FRAME_READY);
}

static const char *record(struct fake *f)
{
	return fake_file(f, fake_in_node(f, "status"));
}

/* The connection lives, and so does the agent: what is missing is the answer. */
static void the_time_counts_from_the_question_and_not_from_its_answer(void **state)
{
	struct fake *f = *state;

	begin(f, 4000);
	pid_t pid = fake_start(f, JOB);

	f->hold_pongs = true;
	f->count[FRAME_PING] = 0;
	fake_wait(f, FRAME_PING);
	int64_t asked = clock_boot_ms();

	while (clock_boot_ms() - asked < 2000) {
		fake_send(f, FRAME_PING, "{}");
		poll(NULL, 0, 100);
	}
	fake_send(f, FRAME_PONG, "{}");
	fake_gone(pid);
	assert_in_range(clock_boot_ms() - asked, 3500, 5500);
	assert_true(fake_alive(f->agent)); /* it keeps the output for the next master */
}

static void an_agent_in_place_of_the_shim_ends_the_job_too(void **state)
{
	struct fake *f = *state;

	begin(f, 2000);
	pid_t pid = fake_start(f, JOB);

	fake_kill(fake_shim(f));
	fake_gone(pid);
	for (int64_t until = clock_boot_ms() + FAKE_WAIT_MS;
	     !strstr(record(f), "\"reason\":\"no master for 2");) {
		if (clock_boot_ms() > until)
			fail_msg("no reason: %s", record(f));
		poll(NULL, 0, 20);
	}
}

static void without_the_limit_the_job_has_the_lease(void **state)
{
	struct fake *f = *state;

	begin(f, 0);
	pid_t pid = fake_start(f, JOB);

	fake_kill(f->agent);
	poll(NULL, 0, 1500);
	assert_true(fake_alive(pid));
	assert_false(file_exists(fake_in_node(f, SUPERVISOR_FENCE)));
}

/* Rule: what could not be stopped in time is not started. */
static void without_its_fence_a_job_does_not_start(void **state)
{
	struct fake *f = *state;

	begin(f, 4000);
	assert_int_equal(mkdir(fake_in_node(f, SUPERVISOR_FENCE), 0700), 0);
	fake_start(f, "touch $DIR/ran");
	assert_non_null(strstr(fake_str(fake_end(f), "reason"), SUPERVISOR_FENCE));
	assert_false(file_exists(fake_below(f, "ran")));
}

int main(int argc, char **argv)
{
	static const struct CMUnitTest tests[] = {
#define CASE(fn) cmocka_unit_test_setup_teardown(fn, fake_setup, fake_teardown)
		CASE(the_time_counts_from_the_question_and_not_from_its_answer),
		CASE(an_agent_in_place_of_the_shim_ends_the_job_too),
		CASE(without_the_limit_the_job_has_the_lease),
		CASE(without_its_fence_a_job_does_not_start),
	};
	int role = fake_role(argc, argv);

	if (role >= 0)
		return role;
	return cmocka_run_group_tests_name("agent: fence", tests, NULL, NULL);
}
