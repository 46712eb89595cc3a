/* The end of a job step by step, on a clock of the test's own. */
#include "unit.h"

#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "agent/shim/status.h"
#include "agent/shim/supervisor.h"
#include "base/err.h"
#include "base/vec.h"
#include "link/layout.h"
#include "sys/container.h"

struct bench {
	void *dir;
	int writer[2]; /* the job's ends of out and err */
	struct supervisor sv;
	struct proc_list left; /* what `others` shows */
};

static void others(void *ctx, struct proc_list *out)
{
	struct bench *b = ctx;

	for (size_t i = 0; i < b->left.n; i++)
		*vec_push(out) = b->left.v[i];
}

static int setup(void **state)
{
	struct bench *b = xcalloc(1, sizeof(*b));
	struct err err = {0};

	if (unit_make_dir(&b->dir) < 0)
		return -1;
	b->sv = (struct supervisor){
		.dirfd = open(b->dir, O_RDONLY | O_DIRECTORY),
		.attempt = 1,
		.grace_ms = 1000,
		.limits = {.settle_ms = 5000,
			   .unkill_ms = 10000,
			   .full_ms = 30000,
			   .spool_bytes = 1 << 20},
		.others = others,
		.ctx = b,
	};
	if (spool_make(b->sv.dirfd, STREAMS, &err) < 0 ||
	    status_claim(b->sv.dirfd, 1, 1, "boot", false, &b->sv.status_fd, &err) < 0)
		return -1;
	b->writer[0] = openat(b->sv.dirfd, "out.fifo", O_RDWR | O_NONBLOCK);
	b->writer[1] = openat(b->sv.dirfd, "err.fifo", O_RDWR | O_NONBLOCK);
	*state = b;
	return supervisor_open(&b->sv, &err);
}

static void close_output(struct bench *b)
{
	for (int i = 0; i < 2; i++) {
		if (b->writer[i] >= 0)
			close(b->writer[i]);
		b->writer[i] = -1;
	}
}

static int teardown(void **state)
{
	struct bench *b = *state;

	close_output(b);
	supervisor_close(&b->sv);
	close(b->sv.status_fd);
	close(b->sv.dirfd);
	proc_list_release(&b->left);
	unit_remove_dir(&b->dir);
	free(b);
	return 0;
}

/* A process of the job that no signal reaches: the record of one that is not there any more. */
static void add_unkillable(struct bench *b, pid_t pid)
{
	*vec_push(&b->left) = (struct proc_info){.pid = pid, .state = 'D', .start = 1};
}

static void a_job_ends_when_its_output_is_closed(void **state)
{
	struct bench *b = *state;
	struct status st;

	assert_int_equal(supervisor_step(&b->sv, 100), -1); /* only events */
	supervisor_main_ended(&b->sv, W_EXITCODE(7, 0), 200);
	assert_int_equal(supervisor_step(&b->sv, 200), 5000);
	assert_int_equal(b->sv.phase, SUPERVISOR_DRAINING);
	assert_int_equal(write(b->writer[0], "last", 4), 4);
	close_output(b);
	while (b->sv.phase != SUPERVISOR_DONE)
		supervisor_step(&b->sv, 300);
	assert_int_equal(b->sv.exit.code, 7);
	assert_int_equal(b->sv.exit.streams[STREAM_OUT], 4);
	assert_int_equal(status_read(b->sv.dirfd, &st, NULL), 0);
	assert_true(st.ended && st.has_exit);
	assert_int_equal(st.exit.code, 7);
}

static void output_that_stays_open_is_waited_for_five_seconds(void **state)
{
	struct bench *b = *state;

	supervisor_main_ended(&b->sv, W_EXITCODE(0, 0), 1000);
	supervisor_step(&b->sv, 1000);
	supervisor_step(&b->sv, 5999);
	assert_int_equal(b->sv.phase, SUPERVISOR_DRAINING);
	supervisor_step(&b->sv, 6000);
	assert_int_equal(b->sv.phase, SUPERVISOR_DONE);
	assert_string_equal(b->sv.exit.reason, "");
}

static void what_cannot_be_killed_is_named_and_never_called_stopped(void **state)
{
	struct bench *b = *state;

	add_unkillable(b, 4711);
	close_output(b);
	supervisor_main_ended(&b->sv, W_EXITCODE(0, 0), 1000);
	int64_t wait = supervisor_step(&b->sv, 1000);

	assert_int_equal(b->sv.phase, SUPERVISOR_KILLING);
	assert_in_range(wait, 1, 50);
	supervisor_step(&b->sv, 10999);
	assert_int_equal(b->sv.phase, SUPERVISOR_KILLING);
	supervisor_step(&b->sv, 11000);
	assert_int_equal(b->sv.phase, SUPERVISOR_DONE);
	assert_int_equal(b->sv.exit.kind, ERR_UNAVAILABLE);
	assert_string_equal(b->sv.exit.reason, "process 4711 could not be killed");
}

static void a_main_process_that_does_not_die_is_given_up(void **state)
{
	struct bench *b = *state;

	/* A group that nobody has: the signals go nowhere, and nobody is reaped. */
	b->sv.job = (struct proc_id){0x3ffffff0, 1};
	supervisor_step(&b->sv, 1000);
	supervisor_stop(&b->sv, STOP_ASKED, 1000);
	assert_int_equal(supervisor_step(&b->sv, 1000), 1000); /* the grace */
	supervisor_step(&b->sv, 2000);
	assert_int_equal(b->sv.phase, SUPERVISOR_RUNNING);
	supervisor_step(&b->sv, 11999);
	assert_int_equal(b->sv.phase, SUPERVISOR_RUNNING);
	supervisor_step(&b->sv, 12100);
	assert_int_equal(b->sv.phase, SUPERVISOR_DONE);
	assert_int_equal(b->sv.exit.code, -1);
	assert_int_equal(b->sv.exit.kind, ERR_UNAVAILABLE);
}

static void a_hurry_cuts_the_grace_of_an_earlier_stop_short(void **state)
{
	struct bench *b = *state;

	b->sv.grace_ms = 60000;
	supervisor_stop(&b->sv, STOP_ASKED, 100);
	assert_int_equal(b->sv.kill_at_ms, 60100);
	supervisor_stop(&b->sv, STOP_HURRY, 200);
	assert_int_equal(b->sv.kill_at_ms, 200);
	supervisor_stop(&b->sv, STOP_ASKED, 300); /* and gives none again */
	assert_int_equal(b->sv.kill_at_ms, 200);
}

static void the_first_cause_of_a_stop_is_the_cause(void **state)
{
	static const struct {
		enum stop_cause cause;
		enum err_kind kind;
		const char *says;
	} cases[] = {
		{STOP_DEADLINE, ERR_TIMEOUT, "time limit"},
		{STOP_LEASE, ERR_UNAVAILABLE, "lease"},
		{STOP_ASKED, ERR_NONE, ""},
	};

	for (size_t i = 0; i < COUNT(cases); i++) {
		struct bench *b = *state;

		if (i > 0) {
			teardown(state);
			assert_int_equal(setup(state), 0);
			b = *state;
		}
		supervisor_stop(&b->sv, cases[i].cause, 100);
		supervisor_stop(&b->sv, STOP_ASKED, 200);
		supervisor_main_ended(&b->sv, W_EXITCODE(0, SIGTERM), 300);
		close_output(b);
		supervisor_step(&b->sv, 300);
		assert_int_equal(b->sv.phase, SUPERVISOR_DONE);
		assert_int_equal(b->sv.exit.signal, SIGTERM);
		assert_int_equal(b->sv.exit.kind, cases[i].kind);
		assert_non_null(strstr(b->sv.exit.reason, cases[i].says));
	}
}

static void set_fence(struct bench *b, int64_t at_ms)
{
	struct supervisor_fence at = {at_ms, 15000};
	int fd = openat(b->sv.dirfd, SUPERVISOR_FENCE, O_WRONLY | O_CREAT, 0600);

	assert_int_equal(pwrite(fd, &at, sizeof(at), 0), sizeof(at));
	close(fd);
}

/* Nobody else need be alive: neither the agent that moves the fence on, nor the master. */
static void the_fence_stops_a_job_unless_it_is_moved_on(void **state)
{
	struct bench *b = *state;
	struct err err = {0};

	supervisor_close(&b->sv);
	set_fence(b, 1500);
	assert_int_equal(supervisor_open(&b->sv, &err), 0);
	assert_int_equal(supervisor_step(&b->sv, 1000), 500);
	set_fence(b, 2500);
	assert_int_equal(supervisor_step(&b->sv, 1500), 1000);
	assert_int_equal(b->sv.stop, STOP_NONE);
	supervisor_step(&b->sv, 2500);
	assert_int_equal(b->sv.stop, STOP_LOST);
	assert_int_equal(b->sv.kill_at_ms, 3500);
	assert_int_equal(supervisor_fence_ms(&b->sv), 3500);
	close_output(b);
	supervisor_main_ended(&b->sv, W_EXITCODE(0, 0), 2600);
	while (b->sv.phase != SUPERVISOR_DONE)
		supervisor_step(&b->sv, 2600);
	assert_int_equal(b->sv.exit.kind, ERR_UNAVAILABLE);
	assert_string_equal(b->sv.exit.reason,
			    "no master for 15.0 s: stopped so that another host can go on");
}

/* What the main process left behind is the job, too. */
static void the_fence_ends_what_the_main_process_left(void **state)
{
	struct bench *b = *state;
	struct err err = {0};

	supervisor_close(&b->sv);
	set_fence(b, 1500);
	assert_int_equal(supervisor_open(&b->sv, &err), 0);
	supervisor_main_known(&b->sv, 0, 0, 1400);
	assert_int_equal(supervisor_step(&b->sv, 1400), 100);
	assert_int_equal(b->sv.phase, SUPERVISOR_DRAINING);
	supervisor_step(&b->sv, 1500);
	assert_int_equal(b->sv.kill_at_ms, 2500);
	while (b->sv.phase != SUPERVISOR_DONE)
		supervisor_step(&b->sv, 2500);
	assert_int_equal(b->sv.exit.kind, ERR_NONE); /* it had ended before, by itself */
	assert_int_equal(b->sv.exit.code, 0);
}

static void a_deadline_stops_by_itself(void **state)
{
	struct bench *b = *state;

	b->sv.deadline_ms = 500;
	assert_int_equal(supervisor_step(&b->sv, 100), 400);
	supervisor_step(&b->sv, 499);
	assert_int_equal(b->sv.stop, STOP_NONE);
	supervisor_step(&b->sv, 500);
	assert_int_equal(b->sv.stop, STOP_DEADLINE);
}

static void a_lost_job_has_no_status(void **state)
{
	struct bench *b = *state;

	assert_int_equal(write(b->writer[1], "x", 1), 1);
	close_output(b);
	supervisor_lost(&b->sv, "nobody knows", 100);
	supervisor_step(&b->sv, 100);
	assert_int_equal(b->sv.phase, SUPERVISOR_DONE);
	assert_int_equal(b->sv.exit.code, -1);
	assert_int_equal(b->sv.exit.kind, ERR_UNAVAILABLE);
	assert_string_equal(b->sv.exit.reason, "nobody knows");
	assert_int_equal(b->sv.exit.streams[STREAM_ERR], 1); /* what was in the pipe is kept */
}

static void an_exit_that_cannot_be_recorded_is_tried_for_a_while(void **state)
{
	struct bench *b = *state;
	int fd = b->sv.status_fd;

	b->sv.status_fd = open("/dev/full", O_RDWR);
	close_output(b);
	supervisor_main_ended(&b->sv, W_EXITCODE(3, 0), 1000);
	assert_in_range(supervisor_step(&b->sv, 1000), 1, 100);
	assert_int_equal(b->sv.phase, SUPERVISOR_FLUSHING);
	close(b->sv.status_fd);
	b->sv.status_fd = fd; /* there is room again */
	supervisor_step(&b->sv, 1100);
	assert_int_equal(b->sv.phase, SUPERVISOR_DONE);
	struct status st;

	assert_int_equal(status_read(b->sv.dirfd, &st, NULL), 0);
	assert_true(st.has_exit);
	assert_int_equal(st.exit.code, 3);
}

static void an_exit_that_can_never_be_recorded_does_not_keep_us_for_ever(void **state)
{
	struct bench *b = *state;
	int fd = b->sv.status_fd;

	b->sv.status_fd = open("/dev/full", O_RDWR);
	close_output(b);
	supervisor_main_ended(&b->sv, W_EXITCODE(3, 0), 1000);
	supervisor_step(&b->sv, 1000);
	supervisor_step(&b->sv, 30999);
	assert_int_equal(b->sv.phase, SUPERVISOR_FLUSHING);
	supervisor_step(&b->sv, 31000);
	assert_int_equal(b->sv.phase, SUPERVISOR_DONE);
	close(b->sv.status_fd);
	b->sv.status_fd = fd;
}

/* Its last bytes are in the pipe, and the spool takes none: its name is taken. */
static void end_on_a_full_disk(struct bench *b)
{
	assert_int_equal(mkdirat(b->sv.dirfd, "out", 0700), 0);
	assert_int_equal(write(b->writer[0], "last", 4), 4);
	close_output(b);
	supervisor_main_ended(&b->sv, W_EXITCODE(0, SIGTERM), 1000);
	for (int64_t now = 1000; now < 3000; now += 200)
		supervisor_step(&b->sv, now);
	assert_int_equal(b->sv.phase, SUPERVISOR_DRAINING);
	supervisor_step(&b->sv, 3000);
}

static void a_stopped_job_does_not_wait_long_for_room(void **state)
{
	struct bench *b = *state;

	b->sv.grace_ms = 60000;
	supervisor_stop(&b->sv, STOP_ASKED, 900);
	end_on_a_full_disk(b);
	assert_int_equal(b->sv.phase, SUPERVISOR_DONE);
	assert_int_equal(b->sv.exit.ngaps, 1);
	assert_int_equal(b->sv.exit.gaps[0].bytes, 4);
}

static void a_job_that_nobody_stopped_waits_for_room(void **state)
{
	struct bench *b = *state;

	end_on_a_full_disk(b);
	assert_int_equal(b->sv.phase, SUPERVISOR_DRAINING);
	assert_int_equal(unlinkat(b->sv.dirfd, "out", AT_REMOVEDIR), 0);
	supervisor_step(&b->sv, 9000);
	assert_int_equal(b->sv.phase, SUPERVISOR_DONE);
	assert_int_equal(b->sv.exit.streams[STREAM_OUT], 4);
}

static void a_trickle_is_gathered_for_a_moment(void **state)
{
	struct bench *b = *state;
	struct pollfd p[STREAMS];

	supervisor_step(&b->sv, 100);
	assert_int_equal(supervisor_poll(&b->sv, p), STREAMS);
	assert_int_equal(write(b->writer[0], "x", 1), 1);
	assert_int_equal(supervisor_step(&b->sv, 100), 1);
	assert_int_equal(supervisor_poll(&b->sv, p), 0); /* no wake-up for the next byte */
	supervisor_step(&b->sv, 101);
	assert_int_equal(supervisor_poll(&b->sv, p), STREAMS);
}

/* A process that the test can kill, and its place in the list of `others`. */
static struct proc_id add_sleeper(struct bench *b)
{
	int closed[2];
	char none;

	assert_int_equal(pipe(closed), 0);
	pid_t pid = fork();

	if (pid == 0) {
		close_output(b);
		close(closed[0]);
		close(closed[1]);
		pause();
		_exit(0);
	}
	close(closed[1]);
	assert_int_equal(read(closed[0], &none, 1), 0); /* the job's pipes are ours alone again */
	close(closed[0]);
	struct proc_id id = proc_id_of(pid);

	*vec_push(&b->left) = (struct proc_info){.pid = pid, .state = 'S', .start = id.start};
	return id;
}

static void the_reader_of_a_terminal_has_time_to_copy_what_the_dead_wrote(void **state)
{
	struct bench *b = *state;

	b->sv.terminal = add_sleeper(b);
	supervisor_main_ended(&b->sv, W_EXITCODE(0, 0), 1000);
	supervisor_step(&b->sv,
			6000); /* the output stays open: everything is killed but the reader */
	assert_int_equal(b->sv.phase, SUPERVISOR_FLUSHING);
	assert_true(proc_alive(b->sv.terminal));
	assert_int_equal(write(b->writer[0], "last", 4), 4);
	close_output(b);
	supervisor_step(&b->sv, 6001);
	assert_int_equal(b->sv.phase, SUPERVISOR_DONE);
	assert_int_equal(b->sv.exit.streams[STREAM_OUT], 4);
	kill(b->sv.terminal.pid, SIGKILL);
	waitpid(b->sv.terminal.pid, NULL, 0);
}

static void a_reader_that_never_ends_is_killed(void **state)
{
	struct bench *b = *state;
	int status;

	b->sv.terminal = add_sleeper(b);
	supervisor_main_ended(&b->sv, W_EXITCODE(0, 0), 1000);
	supervisor_step(&b->sv, 6000);
	supervisor_step(&b->sv, 7999);
	assert_int_equal(b->sv.phase, SUPERVISOR_FLUSHING);
	supervisor_step(&b->sv, 8000);
	assert_int_equal(b->sv.phase, SUPERVISOR_DONE);
	assert_int_equal(waitpid(b->sv.terminal.pid, &status, 0), b->sv.terminal.pid);
	assert_true(WIFSIGNALED(status));
}

/* A program that lists one container until the file `gone` is there. */
static void record_container(struct bench *b, const char *body)
{
	struct container_record r = {.tool = {.kind = CONTAINER_DOCKER}, .label = "x"};
	char *script = xasprintf("#!/bin/sh\ncd '%s'\n%s\n", (char *)b->dir, body);

	snprintf(r.tool.program, sizeof(r.tool.program), "%s/docker", (char *)b->dir);
	assert_int_equal(file_write(r.tool.program, str_from(script), 0700, NULL), 0);
	assert_int_equal(container_record_write(b->sv.dirfd, LAYOUT_CONTAINER, &r, NULL), 0);
	free(script);
}

/* As the owner does it when the child has ended. */
static void wait_for_remover(struct bench *b, int64_t now_ms)
{
	int status;

	assert_true(b->sv.remover > 0);
	assert_int_equal(waitpid(b->sv.remover, &status, 0), b->sv.remover);
	supervisor_remover_ended(&b->sv, status, now_ms);
}

static void a_job_has_not_ended_before_its_container_is_gone(void **state)
{
	struct bench *b = *state;

	record_container(b, "[ $1 != ps ] || [ -e gone ] || { echo no answer; exit 1; }");
	close_output(b);
	supervisor_main_ended(&b->sv, W_EXITCODE(3, 0), 1000);
	supervisor_step(&b->sv, 1000);
	assert_int_equal(b->sv.phase, SUPERVISOR_REMOVING);
	wait_for_remover(b, 1100);
	assert_int_equal(supervisor_step(&b->sv, 1100), 500);
	assert_int_equal(b->sv.phase, SUPERVISOR_REMOVING);
	assert_int_equal(file_write(unit_path(&b->dir, "gone"), STR(""), 0600, NULL), 0);
	supervisor_step(&b->sv, 1600);
	wait_for_remover(b, 1700);
	supervisor_step(&b->sv, 1700);
	assert_int_equal(b->sv.phase, SUPERVISOR_DONE);
	assert_int_equal(b->sv.exit.code, 3);
	assert_int_equal(b->sv.exit.kind, ERR_NONE);
}

static void a_container_that_cannot_be_removed_is_never_called_stopped(void **state)
{
	struct bench *b = *state;

	record_container(b, "exit 1");
	close_output(b);
	supervisor_main_ended(&b->sv, W_EXITCODE(0, 0), 1000);
	supervisor_step(&b->sv, 1000);
	wait_for_remover(b, 1100);
	supervisor_step(&b->sv, 60999);
	assert_int_equal(b->sv.phase, SUPERVISOR_REMOVING);
	wait_for_remover(b, 60999);
	supervisor_step(&b->sv, 61000);
	assert_int_equal(b->sv.phase, SUPERVISOR_DONE);
	assert_int_equal(b->sv.exit.kind, ERR_UNAVAILABLE);
	assert_string_equal(b->sv.exit.reason, "its container could not be removed");
}

static void a_limited_container_that_was_killed_is_out_of_memory(void **state)
{
	struct bench *b = *state;

	record_container(b, "");
	close_output(b);
	supervisor_main_ended(&b->sv, W_EXITCODE(137, 0), 1000);
	supervisor_step(&b->sv, 1000);
	wait_for_remover(b, 1100);
	b->sv.limited = true;
	supervisor_step(&b->sv, 1100);
	assert_true(b->sv.exit.oom);
	assert_string_equal(b->sv.exit.reason,
			    "probably out of memory: it was killed, and has a memory limit");
}

int main(void)
{
#define CASE(fn) cmocka_unit_test_setup_teardown(fn, setup, teardown)
	static const struct CMUnitTest tests[] = {
		CASE(a_job_ends_when_its_output_is_closed),
		CASE(output_that_stays_open_is_waited_for_five_seconds),
		CASE(what_cannot_be_killed_is_named_and_never_called_stopped),
		CASE(a_main_process_that_does_not_die_is_given_up),
		CASE(a_hurry_cuts_the_grace_of_an_earlier_stop_short),
		CASE(the_first_cause_of_a_stop_is_the_cause),
		CASE(the_fence_stops_a_job_unless_it_is_moved_on),
		CASE(the_fence_ends_what_the_main_process_left),
		CASE(a_deadline_stops_by_itself),
		CASE(a_lost_job_has_no_status),
		CASE(an_exit_that_cannot_be_recorded_is_tried_for_a_while),
		CASE(an_exit_that_can_never_be_recorded_does_not_keep_us_for_ever),
		CASE(a_stopped_job_does_not_wait_long_for_room),
		CASE(a_job_that_nobody_stopped_waits_for_room),
		CASE(a_trickle_is_gathered_for_a_moment),
		CASE(the_reader_of_a_terminal_has_time_to_copy_what_the_dead_wrote),
		CASE(a_reader_that_never_ends_is_killed),
		CASE(a_job_has_not_ended_before_its_container_is_gone),
		CASE(a_container_that_cannot_be_removed_is_never_called_stopped),
		CASE(a_limited_container_that_was_killed_is_out_of_memory),
	};

	return cmocka_run_group_tests_name("agent: supervisor", tests, NULL, NULL);
}
