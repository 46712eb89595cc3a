/* wait, attach and --exit-code: how a run ends is the exit code of whoever has stayed with it. */
#include "unit.h"

#include <arpa/inet.h>
#include <signal.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "cli/drive.h"
#include "cli/fake_master.h"

#define OBJECT(state, code, rest)                                                                  \
	"{\"id\":\"job-abcd\",\"state\":\"" state "\",\"exit_code\":" code ",\"elapsed_ms\":12,"   \
	"\"strategy\":\"single\",\"engine\":\"local\",\"nodes\":[{\"name\":\"job-0\",\"signal\":"  \
	"15},{\"name\":\"job-1\",\"exit_code\":3}]" rest "}"
#define RUNNING OBJECT("running", "null", "")
#define SUCCEEDED OBJECT("succeeded", "0", "")
#define FAILED OBJECT("failed", "1", ",\"cause\":\"job-1: exit code 3\",\"cause_node\":\"job-1\"")
#define CANCELLED OBJECT("cancelled", "7", ",\"cause\":\"cancelled by the user\"")

static void waiting_ends_as_the_runs_have_ended(void **state)
{
	home_put(state, "watch.jsonl", RUNNING "\n" SUCCEEDED "\n");
	struct ran r = DRIVE(state, "wait", "job", "job-abcd");
	assert_int_equal(r.code, 0);
	assert_string_equal(r.out.p, "job-abcd succeeded after 12 ms\n"
				     "job-abcd succeeded after 12 ms\n");
	ran_release(&r);

	home_put(state, "watch.jsonl", RUNNING "\n" FAILED "\n");
	r = DRIVE(state, "wait", "job");
	assert_int_equal(r.code, 1);
	assert_string_equal(r.out.p, "job-abcd failed after 12 ms: job-1: exit code 3\n");
	ran_release(&r);
	r = DRIVE(state, "wait", "job", "--job-code");
	assert_int_equal(r.code, 3);
	ran_release(&r);
	r = DRIVE(state, "wait", "job", "job", "--output", "json");
	assert_int_equal(r.code, 1);
	assert_string_equal(r.out.p, "[" FAILED ",\n " FAILED "]\n");
	ran_release(&r);
}

static void waiting_survives_its_master(void **state)
{
	home_put(state, "watch.jsonl", RUNNING "\n" SUCCEEDED "\n");
	home_put(state, "fault-die-watch", "xx");
	home_put(state, "runs.json", "{\"runs\":[" RUNNING "]}");
	struct ran r = DRIVE(state, "wait");
	assert_int_equal(r.code, 0);
	assert_string_equal(r.err.p, "regatta: latest run: job-abcd\n");
	ran_release(&r);
	assert_int_equal(home_count(state, "requests.log", "/job-abcd/watch?last=1"), 3);
}

static void a_run_that_does_not_exist_is_said_before_any_waiting(void **state)
{
	home_put(state, "watch.jsonl", RUNNING "\n");
	home_put(state, "cancelled.json", CANCELLED "\n"); /* nothing ends by itself */
	REFUSED(state, 3, "regatta: no run 'nothing'\n", "wait", "job", "nothing");
	REFUSED(state, 2, "the name of a run is empty", "wait", "job", "");
	REFUSED(state, 3, "regatta: no run 'nothing'\n", "attach", "nothing");
	REFUSED(state, 3, "no context 'none'", "wait", "job", "--master", "none");
	REFUSED(state, 3, "no context 'none'", "attach", "job", "--master", "none");
	assert_int_equal(home_count(state, "requests.log", "/watch"), 0);
}

static void what_cannot_be_written_or_watched_is_an_error(void **state)
{
	home_put(state, "watch.jsonl", SUCCEEDED "\n");
	setenv("TEST_STDOUT", "/dev/full", 1);
	struct ran r = DRIVE(state, "wait", "job");
	unsetenv("TEST_STDOUT");
	assert_int_equal(r.code, 5);
	assert_has(&r.err, "write the result");
	ran_release(&r);
	/* Known at first, and gone when it is watched. */
	home_put(state, "run.json", "{\"id\":\"nothing\",\"state\":\"running\"}");
	r = DRIVE(state, "wait", "job", "--output", "json");
	assert_int_equal(r.code, 3);
	assert_string_equal(r.out.p, "[]\n");
	assert_has(&r.err, "no run 'nothing'");
	ran_release(&r);
}

static void attached_is_like_the_terminal_that_started_the_run(void **state)
{
	home_put(state, "watch.jsonl", RUNNING "\n" FAILED "\n");
	home_put(state, "job-0.out", "hello\n");
	struct ran r = DRIVE(state, "attach", "job");
	assert_int_equal(r.code, 1);
	assert_has(&r.out, "job-abcd failed after 12 ms (single on local");
	assert_has_not(&r.out, "hello");
	ran_release(&r);
	r = DRIVE(state, "attach", "job", "-f");
	assert_int_equal(r.code, 1);
	assert_string_equal(r.out.p, "job-0 | hello\n");
	assert_has(&r.err, "job-abcd failed after 12 ms");
	ran_release(&r);
	r = DRIVE(state, "attach", "job", "--output", "json");
	assert_int_equal(r.code, 1);
	assert_string_equal(r.out.p, FAILED "\n");
	ran_release(&r);
}

static void an_interrupt_detaches_and_cancels_nothing(void **state)
{
	static const int numbers[] = {SIGINT, SIGTERM, SIGHUP};

	home_put(state, "watch.jsonl", RUNNING "\n");
	home_put(state, "cancelled.json", CANCELLED "\n");
	for (size_t i = 0; i < COUNT(numbers); i++) {
		struct driven d = DRIVE_BEGIN(state, "attach", "job");
		drive_await(d, "regatta: job-abcd: running\n");
		kill(d.pid, numbers[i]);
		struct ran r = drive_end(d);
		assert_int_equal(r.code, 7);
		assert_has(&r.err, "job-abcd goes on without this terminal");
		ran_release(&r);
	}
	assert_int_equal(home_count(state, "requests.log", "/cancel"), 0);
}

/* The other master's machine is removed at the end: who waits there loses the run. */
static void the_end_of_a_run_that_was_handed_over_is_asked_of_the_own_master(void **state)
{
	struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
	CLEANUP(close_fdp)
	int other = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	socklen_t n = sizeof(at);
	char context[256];

	assert_int_equal(bind(other, (struct sockaddr *)&at, n), 0);
	assert_int_equal(listen(other, 8), 0);
	assert_int_equal(getsockname(other, (struct sockaddr *)&at, &n), 0);
	snprintf(context, sizeof(context),
		 "{\"url\":\"https://127.0.0.1:%d\",\"pin\":\"sha256//"
		 "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=\",\"token\":\"t\"}",
		 ntohs(at.sin_port));
	assert_int_equal(mkdir(unit_path(state, "contexts"), 0700), 0);
	home_put(state, "contexts/job-abcd.json", context);
	home_put(state, "run.json",
		 OBJECT("running", "null", ",\"master_url\":\"https://127.0.0.1:1\""));
	home_put(state, "watch.jsonl", RUNNING "\n" SUCCEEDED "\n");
	struct ran r = DRIVE(state, "wait", "job");
	assert_int_equal(r.code, 0);
	ran_release(&r);
	assert_int_equal(accept(other, NULL, NULL), -1);
}

static void commands_that_show_a_run_end_with_its_exit_code_if_asked(void **state)
{
	static const char *const ways[][5] = {{"status", "job", "--exit-code"},
					      {"logs", "job", "--exit-code"},
					      {"logs", "job", "-f", "--exit-code"},
					      {"events", "job", "--exit-code"},
					      {"events", "job", "-f", "--exit-code"}};

	home_put(state, "events.jsonl", "{\"seq\":1,\"kind\":\"run\"}\n");
	home_put(state, "watch.jsonl", FAILED "\n");
	for (size_t i = 0; i < COUNT(ways); i++) {
		struct ran r = drive(state, ways[i]);
		assert_int_equal(r.code, 1);
		assert_int_equal(r.err.n, 0);
		ran_release(&r);
		r = drive(state, (const char *const[]){ways[i][0], "job", NULL});
		assert_int_equal(r.code, 0);
		ran_release(&r);
	}
}

static void a_run_that_goes_on_has_no_exit_code_yet(void **state)
{
	home_put(state, "events.jsonl", "{\"seq\":1,\"kind\":\"run\"}\n");
	home_put(state, "watch.jsonl", RUNNING "\n" FAILED "\n");
	static const char *const names[] = {"status", "logs", "events"};
	for (size_t i = 0; i < COUNT(names); i++) {
		struct ran r = DRIVE(state, names[i], "job", "--exit-code");
		assert_int_equal(r.code, 8);
		assert_has(&r.err, "job-abcd has not ended: it has no exit code yet");
		ran_release(&r);
	}
	/* The output of the nodes ends before the run does. */
	struct ran r = DRIVE(state, "logs", "job", "-f", "--exit-code");
	assert_int_equal(r.code, 1);
	ran_release(&r);
}

static void without_a_reader_the_end_of_the_run_is_not_waited_for(void **state)
{
	home_put(state, "events.jsonl", "{\"seq\":1,\"time_ms\":1000,\"kind\":\"accepted\"}\n");
	home_put(state, "watch.jsonl", RUNNING "\n");
	home_put(state, "cancelled.json", CANCELLED "\n"); /* it does not end by itself */
	drive_short_reader(state);
	struct ran r = DRIVE(state, "events", "job", "-f", "--exit-code");
	unsetenv("TEST_STDOUT");
	assert_int_equal(r.code, 8);
	ran_release(&r);
}

static void a_dry_run_is_a_plan(void **state)
{
	struct ran plan = DRIVE(state, "plan", "-n", "2", "--", "true");
	struct ran r = DRIVE(state, "run", "--dry-run", "-n", "2", "--", "true");
	assert_int_equal(r.code, 0);
	assert_string_equal(r.out.p, plan.out.p);
	assert_true(r.out.n > 0);
	ran_release(&plan);
	ran_release(&r);
	REFUSED(state, 2, "--parallel goes with --repeat", "run", "--dry-run", "--parallel", "2",
		"--", "true");
	assert_false(file_exists(unit_path(state, "master.log")));
}

int main(int argc, char **argv)
{
#define T(fn) cmocka_unit_test_setup_teardown(fn, drive_setup, drive_teardown)
	const struct CMUnitTest tests[] = {
		T(waiting_ends_as_the_runs_have_ended),
		T(waiting_survives_its_master),
		T(a_run_that_does_not_exist_is_said_before_any_waiting),
		T(what_cannot_be_written_or_watched_is_an_error),
		T(attached_is_like_the_terminal_that_started_the_run),
		T(an_interrupt_detaches_and_cancels_nothing),
		T(the_end_of_a_run_that_was_handed_over_is_asked_of_the_own_master),
		T(commands_that_show_a_run_end_with_its_exit_code_if_asked),
		T(a_run_that_goes_on_has_no_exit_code_yet),
		T(without_a_reader_the_end_of_the_run_is_not_waited_for),
		T(a_dry_run_is_a_plan),
	};
	int code;

	if (fake_role(argc, argv, &code))
		return code;
	return cmocka_run_group_tests_name("stay", tests, NULL, NULL);
}
