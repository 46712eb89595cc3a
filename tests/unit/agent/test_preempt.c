/* The end of a machine that was made for the run: the notice that it will be taken, from a metadata
 * service that the test plays, and the timer that switches it off; a real agent. */
#include "unit.h"

#include <arpa/inet.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "fake_master.h"

#define NOTICE "{\"action\":\"terminate\",\"time\":\"2026-11-16T20:00:00Z\"}"
#define NOTICE_MS INT64_C(1794859200000)

/* Answers until it is killed: a token, then the notice, if its file is there. */
static void serve(int listener, const char *file)
{
	for (;;) {
		CLEANUP(close_fdp) int fd = accept(listener, NULL, NULL);
		char asked[2048] = "", said[512];
		const char *text = "t-1";
		int status = 200;

		if (read(fd, asked, sizeof(asked) - 1) <= 0)
			continue;
		if (strncmp(asked, "PUT ", 4) != 0) {
			status = strstr(asked, "/spot/instance-action ") && !access(file, F_OK)
					 ? 200
					 : 404;
			text = NOTICE;
		}
		int n = snprintf(
			said, sizeof(said),
			"HTTP/1.1 %d X\r\nContent-Length: %zu\r\nConnection: close\r\n\r\n%s",
			status, strlen(text), text);
		if (write(fd, said, (size_t)n) < 0)
			continue;
	}
}

static pid_t metadata(struct fake *f)
{
	struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t len = sizeof(at);
	char *file = fake_below(f, "announced");
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	assert_int_equal(bind(fd, (struct sockaddr *)&at, sizeof(at)), 0);
	assert_int_equal(listen(fd, 8), 0);
	assert_int_equal(getsockname(fd, (struct sockaddr *)&at, &len), 0);
	f->agent_env =
		arena_printf(f->arena, "AWS_EC2_METADATA_SERVICE_ENDPOINT=http://127.0.0.1:%d",
			     ntohs(at.sin_port));
	pid_t pid = fork();

	if (pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		serve(fd, file);
	}
	close(fd);
	return pid;
}

static void end_metadata(pid_t pid)
{
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
}

static void a_notice_reaches_the_job_and_the_master(void **state)
{
	struct fake *f = *state;
	pid_t service = metadata(f);

	f->config = ",\"notices\":\"imds\"";
	fake_touch(fake_below(f, "announced"));
	f->inputs = "{\"argv0\":\"sh\",\"path\":\"/bin\",\"preempt_signal\":10}";
	fake_agent(f);
	fake_meet(f);
	fake_wait(f, FRAME_READY);
	/* It may be asked for before the job runs: the file is there then. */
	assert_true(fake_int(fake_wait(f, FRAME_PREEMPT), "time_ms") == NOTICE_MS);
	fake_start(f, "cat $REGATTA_PREEMPT_FILE");
	fake_end(f);
	assert_string_equal(f->out[STREAM_OUT].p, "1794859200\n");
	fake_release(f);
	end_metadata(service);
}

static void a_running_job_gets_the_signal_that_it_chose(void **state)
{
	struct fake *f = *state;
	pid_t service = metadata(f);

	f->config = ",\"notices\":\"imds\"";
	f->inputs = "{\"argv0\":\"sh\",\"path\":\"/bin\",\"preempt_signal\":10}";
	fake_agent(f);
	fake_meet(f);
	fake_wait(f, FRAME_READY);
	fake_start(f, "trap 'cat $REGATTA_PREEMPT_FILE; exit 0' USR1; touch $DIR/announced; "
		      "while :; do sleep 0.05; done");
	fake_wait(f, FRAME_PREEMPT);
	fake_end(f);
	assert_string_equal(f->out[STREAM_OUT].p, "1794859200\n");
	fake_release(f);
	end_metadata(service);
}

static void the_next_agent_says_it_again(void **state)
{
	struct fake *f = *state;

	fake_ready(f);
	fake_start(f, "echo 1794859200 > $REGATTA_PREEMPT_FILE; echo 1 > $DIR/said; sleep 600");
	fake_file(f, fake_below(f, "said"));
	fake_kill(f->agent);
	fake_hang_up(f);
	fake_agent(f);
	fake_meet(f);
	assert_true(fake_int(fake_wait(f, FRAME_PREEMPT), "time_ms") == NOTICE_MS);
	fake_release(f);
}

/* ---- the timer ---- */

/* `shutdown` writes down how it was called. */
static void fake_shutdown(struct fake *f)
{
	char *path = fake_below(f, "shutdown");
	FILE *out = fopen(path, "w");

	assert_non_null(out);
	fprintf(out, "#!/bin/sh\necho \"$@\" >%s.new && mv %s.new %s\n", path, path,
		fake_below(f, "called"));
	fclose(out);
	assert_int_equal(chmod(path, 0755), 0);
	setenv("PATH", arena_printf(f->arena, "%s:/usr/bin:/bin", fake_below(f, "")), 1);
}

static void the_timer_of_the_machine_is_moved_on_and_outlives_a_boot(void **state)
{
	struct fake *f = *state;

	fake_shutdown(f);
	f->config = arena_printf(f->arena, ",\"expires_file\":\"%s\"", fake_below(f, "expires"));
	fake_ready(f);
	fake_send(f, FRAME_EXTEND, "{\"expires_ms\":1800000000123}");
	assert_memory_equal(fake_file(f, fake_below(f, "called")), "-h +", 4);
	assert_string_equal(fake_file(f, fake_below(f, "expires")), "1800000000\n");
	fake_release(f);
}

static void a_machine_of_ones_own_has_no_timer(void **state)
{
	struct fake *f = *state;

	fake_shutdown(f);
	fake_ready(f);
	fake_send(f, FRAME_EXTEND, "{\"expires_ms\":1800000000123}");
	fake_send(f, FRAME_PING, "{}");
	fake_wait(f, FRAME_PONG);
	assert_int_equal(access(fake_below(f, "called"), F_OK), -1);
	fake_release(f);
}

/* It is switched off at the time that it had; the job goes on. */
static void a_timer_that_cannot_be_moved_on_hurts_nobody(void **state)
{
	struct fake *f = *state;

	fake_shutdown(f);
	f->config = arena_printf(f->arena, ",\"expires_file\":\"%s\"", fake_below(f, "no/file"));
	fake_ready(f);
	fake_send(f, FRAME_EXTEND, "{\"expires_ms\":1800000000123}");
	fake_start(f, "true");
	fake_end(f);
	assert_int_equal(access(fake_below(f, "called"), F_OK), -1);
	fake_release(f);
}

int main(int argc, char **argv)
{
	int rc = fake_role(argc, argv);
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(a_notice_reaches_the_job_and_the_master, fake_setup,
						fake_teardown),
		cmocka_unit_test_setup_teardown(a_running_job_gets_the_signal_that_it_chose,
						fake_setup, fake_teardown),
		cmocka_unit_test_setup_teardown(the_next_agent_says_it_again, fake_setup,
						fake_teardown),
		cmocka_unit_test_setup_teardown(
			the_timer_of_the_machine_is_moved_on_and_outlives_a_boot, fake_setup,
			fake_teardown),
		cmocka_unit_test_setup_teardown(a_machine_of_ones_own_has_no_timer, fake_setup,
						fake_teardown),
		cmocka_unit_test_setup_teardown(a_timer_that_cannot_be_moved_on_hurts_nobody,
						fake_setup, fake_teardown),
	};

	return rc >= 0 ? rc : cmocka_run_group_tests_name("preempt", tests, NULL, NULL);
}
