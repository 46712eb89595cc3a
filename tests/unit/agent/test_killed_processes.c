/* Agents and shims that are killed: the job goes on, no byte is lost, no exit status is invented. */
#include "unit.h"

#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "agent/agent.h"
#include "base/clock.h"
#include "base/file.h"
#include "agent/agent.h"
#include "fake_master.h"
#include "sys/proctree.h"

static void a_killed_agent_is_replaced_and_the_job_goes_on(void **state)
{
	struct fake *f = *state;

	fake_ready(f);
	pid_t pid = fake_start(
		f, "echo one; while ! [ -e $DIR/go ]; do sleep 0.01; done; echo two; echo "
		   "loss=3; exit 4");

	fake_wait_bytes(f, STREAM_OUT, 4);
	fake_kill(f->agent);
	fake_agent(f);
	const struct doc *h = fake_meet(f);

	assert_string_equal(fake_str(h, "holds"), "started");
	assert_int_equal(fake_int(h, "attempt"), 1);
	assert_null(doc_get(h, "exit"));
	struct proc_info p;

	assert_true(proc_read(pid, &p));
	file_write_atomic(fake_below(f, "go"), STR("x"), 0600, false, NULL);
	const struct doc *e = fake_end(f);

	assert_int_equal(fake_int(e, "code"), 4);
	assert_string_equal(f->out[STREAM_OUT].p, "one\ntwo\nloss=3\n");
	assert_non_null(strstr(f->samples.p, "loss=3@-1;")); /* the patterns were remembered */
	fake_release(f);
}

/* Rule: a node that was replaced begins with a later attempt on its new machine, which has no first one. */
static void the_only_attempt_of_a_node_need_not_be_its_first(void **state)
{
	struct fake *f = *state;

	fake_ready(f);
	char *start =
		xasprintf("{\"attempt\":3,\"argv\":[\"sh\",\"-c\",\"%sexit 7\"],\"env\":{\"PATH\":"
			  "\"/usr/bin:/bin\",\"DIR\":\"%s\"},\"cwd\":\"\",\"grace_ms\":300}",
			  "while ! [ -e $DIR/go ]; do sleep 0.01; done; ", f->dir);

	fake_send(f, FRAME_START, start);
	free(start);
	pid_t pid = (pid_t)fake_int(fake_wait(f, FRAME_STARTED), "pid");

	fake_kill(f->agent);
	fake_agent(f);
	const struct doc *h = fake_meet(f);

	assert_string_equal(fake_str(h, "holds"), "started");
	assert_int_equal(fake_int(h, "attempt"), 3);
	assert_true(fake_alive(pid));
	file_write_atomic(fake_below(f, "go"), STR("x"), 0600, false, NULL);
	assert_int_equal(fake_int(fake_end(f), "code"), 7);
	fake_release(f);
}

static void a_job_that_ends_without_an_agent_is_reported_by_the_next(void **state)
{
	struct fake *f = *state;

	fake_ready(f);
	pid_t pid = fake_start(f, "while ! [ -e $DIR/go ]; do sleep 0.01; done; echo done; exit 6");
	pid_t shim = fake_shim(f);

	fake_kill(f->agent);
	file_write_atomic(fake_below(f, "go"), STR("x"), 0600, false, NULL);
	fake_gone(pid);
	fake_gone(shim);
	fake_agent(f);
	const struct doc *h = fake_meet(f);

	assert_int_equal(fake_int(doc_table(h, "exit"), "code"), 6);
	fake_wait(f, FRAME_COLLECTED);
	assert_string_equal(f->out[STREAM_OUT].p, "done\n");
	assert_int_equal(f->count[FRAME_EXIT], 0); /* HELLO stands for it */
	fake_start(f, "echo again");		   /* ... unless it is asked for */
	assert_int_equal(fake_int(fake_wait(f, FRAME_EXIT), "code"), 6);
}

static void an_agent_that_is_asked_to_stop_says_goodbye_and_leaves_the_job_alone(void **state)
{
	struct fake *f = *state;

	fake_ready(f);
	pid_t pid = fake_start(f, "while ! [ -e $DIR/go ]; do sleep 0.01; done; exit 8");

	kill(f->agent, SIGTERM);
	assert_non_null(strstr(fake_str(fake_wait(f, FRAME_BYE), "reason"), "stop"));
	assert_int_equal(fake_agent_gone(f), 0);
	struct proc_info p;

	assert_true(proc_read(pid, &p) && p.state != 'Z');
	fake_agent(f);
	fake_meet(f);
	file_write_atomic(fake_below(f, "go"), STR("x"), 0600, false, NULL);
	assert_int_equal(fake_int(fake_end(f), "code"), 8);
}

/* Rule: a pod that is evicted has failed, or nobody makes another one; elsewhere a stop is no failure. */
static void the_first_process_of_a_pod_fails_when_it_is_asked_to_stop(void **state)
{
	(void)state;
	assert_int_equal(agent_exit_code(true, 1), 128 + SIGTERM);
	assert_int_equal(agent_exit_code(true, 2), 0);
	assert_int_equal(agent_exit_code(false, 1), 0); /* released, or refused by its master */
}

static void a_second_agent_for_the_same_node_leaves(void **state)
{
	struct fake *f = *state;

	fake_ready(f);
	pid_t first = f->agent;

	fake_agent(f);
	int status = fake_agent_gone(f);

	assert_true(WIFEXITED(status) && WEXITSTATUS(status) != 0);
	f->agent = first;
	fake_release(f);
}

static void an_attempt_of_an_earlier_boot_is_said_to_be_one(void **state)
{
	struct fake *f = *state;

	assert_int_equal(mkfifo(arena_printf(f->arena, "%s/wakeup.fifo", f->node), 0600), 0);
	for (int i = 0; i < 3; i++) {
		static const char *const names[] = {"out", "err", "metrics"};

		file_write_atomic(arena_printf(f->arena, "%s/%s", f->node, names[i]), STR("abc"),
				  0600, false, NULL);
	}
	file_write_atomic(
		arena_printf(f->arena, "%s/status", f->node),
		STR("{\"rec\":\"started\",\"attempt\":1,\"boot_id\":\"other\",\"pid\":1,\"start\":1}\n"),
		0600, false, NULL);
	fake_agent(f);
	const struct doc *h = fake_meet(f);

	assert_string_equal(fake_str(h, "holds"), "other_boot");
	assert_int_equal(fake_int(h, "attempt"), 1);
	assert_null(doc_get(h, "exit"));
	assert_int_equal(doc_array(h, "streams")->array.v[0]->i, 3);
	fake_release(f);
}

static void a_node_of_an_earlier_boot_may_have_lost_its_claim(void **state)
{
	struct fake *f = *state;

	f->config = ",\"boot\":\"other\"";
	fake_ready(f);
	const struct doc *h = f->last[FRAME_HELLO];

	assert_string_equal(fake_str(h, "holds"), "other_boot");
	assert_int_equal(fake_int(h, "attempt"), 0);
	/* If no start was ever sent there the node is as good as any, and from then on it has one. */
	fake_start(f, "while ! [ -e $DIR/go ]; do sleep 0.01; done");
	fake_hang_up(f);
	assert_string_equal(fake_str(fake_meet(f), "holds"), "started");
	file_write_atomic(fake_below(f, "go"), STR("x"), 0600, false, NULL);
	assert_int_equal(fake_int(fake_end(f), "code"), 0);
	fake_release(f);
}

/* ---- killed shims ---- */

static void take_over_case(struct fake *f)
{
	fake_ready(f);
	fake_start(f, FAKE_NAMELESS FAKE_UNTIL_DAEMON
		   "echo one; while ! [ -e $DIR/go ]; do sleep 0.01; done; echo two; exit 9");
	fake_wait_bytes(f, STREAM_OUT, 4);
	fake_kill(fake_shim(f));
	file_write_atomic(fake_below(f, "go"), STR("x"), 0600, false, NULL);
	const struct doc *e = fake_end(f);

	assert_int_equal(fake_int(e, "code"), 9);
	assert_string_equal(fake_str(e, "kind"), "none");
	assert_string_equal(f->out[STREAM_OUT].p, "one\ntwo\n");
	fake_gone(fake_pid_in(f, "daemon"));
	fake_release(f);
}

static void a_killed_shim_is_replaced_by_the_agent_which_learns_the_real_status(void **state)
{
	take_over_case(*state);
}

static void the_same_without_a_cgroup(void **state)
{
	struct fake *f = *state;

	f->no_cgroup = true;
	take_over_case(f);
}

static void a_job_without_a_shim_can_still_be_stopped(void **state)
{
	struct fake *f = *state;

	fake_ready(f);
	fake_start(f, "trap '' TERM; echo armed; while :; do sleep 0.05; done");
	fake_wait_bytes(f, STREAM_OUT, 6);
	fake_kill(fake_shim(f));
	fake_send(f, FRAME_SIGNAL, "{\"hurry\":false}");
	const struct doc *e = fake_end(f);

	assert_int_equal(fake_int(e, "signal"), SIGKILL);
	fake_release(f);
}

static void no_byte_is_lost_when_the_shim_is_killed_in_full_flow(void **state)
{
	struct fake *f = *state;

	fake_ready(f);
	fake_start(f, "head -c 30000000 /dev/urandom > $DIR/copy; echo ready >&2; cat $DIR/copy");
	fake_wait_bytes(f, STREAM_ERR, 6);
	fake_wait_bytes(f, STREAM_OUT, 2000000);
	fake_kill(fake_shim(f));
	assert_int_equal(fake_int(fake_end(f), "code"), 0);
	fake_output_is_copy(f, "copy");
}

static void both_killed_case(struct fake *f)
{
	fake_ready(f);
	pid_t pid = fake_start(
		f, FAKE_DAEMON FAKE_UNTIL_DAEMON
		"echo one; while ! [ -e $DIR/go ]; do sleep 0.01; done; echo two; exit 9");

	fake_wait_bytes(f, STREAM_OUT, 4);
	fake_kill_both(f);
	fake_agent(f);
	const struct doc *h = fake_meet(f);
	struct proc_info p;

	assert_string_equal(fake_str(h, "holds"), "started");
	assert_null(doc_get(h, "exit"));
	assert_true(proc_read(pid, &p) && p.state != 'Z'); /* it goes on */
	file_write_atomic(fake_below(f, "go"), STR("x"), 0600, false, NULL);
	const struct doc *e = fake_end(f);

	assert_int_equal(fake_int(e, "code"), -1);
	assert_string_equal(fake_str(e, "kind"), "unavailable");
	assert_string_equal(fake_str(e, "reason"),
			    "agent and shim were killed; exit status unknown");
	assert_string_equal(f->out[STREAM_OUT].p, "one\ntwo\n");
	fake_gone(fake_pid_in(f, "daemon"));
	/* It is never executed again. */
	fake_start(f, "echo again");
	assert_string_equal(fake_str(fake_wait(f, FRAME_EXIT), "kind"), "unavailable");
	fake_release(f);
}

static void a_job_outlives_agent_and_shim_and_no_status_is_invented(void **state)
{
	both_killed_case(*state);
}

static void the_same_by_the_mark_alone(void **state)
{
	struct fake *f = *state;

	f->no_cgroup = true;
	both_killed_case(f);
}

static void a_job_that_outlived_both_can_be_stopped(void **state)
{
	struct fake *f = *state;

	fake_ready(f);
	pid_t pid = fake_start(f, "trap '' TERM; echo armed; while :; do sleep 0.05; done");

	fake_wait_bytes(f, STREAM_OUT, 6);
	fake_kill_both(f);
	fake_agent(f);
	fake_meet(f);
	fake_send(f, FRAME_SIGNAL, "{\"hurry\":true}");
	assert_string_equal(fake_str(fake_end(f), "kind"), "unavailable");
	fake_gone(pid);
	fake_release(f);
}

static void a_job_that_outlived_both_still_has_its_grace_and_its_time_limit(void **state)
{
	struct fake *f = *state;

	fake_ready(f);
	fake_start_with(f,
			"trap 'echo saved; exit 0' TERM; echo armed; while :; do sleep 0.01; done",
			",\"deadline_ms\":1500");
	fake_wait_bytes(f, STREAM_OUT, 6);
	fake_kill_both(f);
	fake_agent(f);
	fake_meet(f);
	const struct doc *e = fake_end(f); /* nobody asked: the limit did */

	assert_string_equal(f->out[STREAM_OUT].p, "armed\nsaved\n");
	assert_string_equal(fake_str(e, "kind"), "unavailable"); /* its status is still not known */
}

static void the_connection_of_a_killed_agent_closes_though_its_pipe_holder_lives(void **state)
{
	struct fake *f = *state;

	fake_ready(f);
	fake_start(f, "echo one; exec sleep 600");
	fake_wait_bytes(f, STREAM_OUT, 4);
	fake_kill(fake_shim(f));
	/* Whoever takes over announces itself by going on to relay; a PONG proves that its loop has turned. */
	fake_send(f, FRAME_PING, "{}");
	fake_wait(f, FRAME_PONG);
	fake_kill(f->agent);
	fake_wait_close(f);
}

static void a_shim_killed_under_a_later_agent_leaves_no_status_either(void **state)
{
	struct fake *f = *state;

	fake_ready(f);
	pid_t pid = fake_start(f, "exec sleep 600");
	pid_t shim = fake_shim(f);

	fake_kill(f->agent);
	fake_agent(f);
	fake_meet(f);
	fake_kill(shim);
	fake_send(f, FRAME_SIGNAL, "{\"hurry\":false}");
	const struct doc *e = fake_end(f);

	assert_string_equal(fake_str(e, "kind"), "unavailable");
	fake_gone(pid);
}

static void a_stop_that_a_killed_shim_never_acted_on_is_made_good(void **state)
{
	struct fake *f = *state;

	fake_ready(f);
	pid_t pid = fake_start(f, "exec sleep 600");
	pid_t shim = fake_shim(f);

	assert_int_equal(kill(shim, SIGSTOP), 0);
	fake_send(f, FRAME_SIGNAL, "{\"hurry\":false}");
	fake_send(f, FRAME_PING, "{}");
	fake_wait(f, FRAME_PONG); /* the shim has been told */
	assert_true(fake_alive(pid));
	fake_kill(shim);
	fake_end(f);
	fake_gone(pid);
}

static void an_exit_that_was_recorded_before_both_died_counts(void **state)
{
	struct fake *f = *state;

	f->config = ",\"settle_ms\":600000";
	fake_ready(f);
	/* The main process ends; a child keeps the output open, so the shim waits. */
	pid_t pid = fake_start(
		f, "sh -c 'echo $$ > $DIR/daemon; exec sleep 600' & " FAKE_UNTIL_DAEMON "exit 5");

	fake_gone(pid);
	pid_t shim = fake_shim(f);
	char *status = arena_printf(f->arena, "%s/status", f->node);

	while (!strstr(fake_file(f, status), "ended"))
		poll(NULL, 0, 1);
	kill(f->agent, SIGSTOP);
	fake_kill(shim);
	fake_kill(f->agent);
	file_remove_tree(arena_printf(f->arena, "%s/agent.json", f->node), NULL);
	f->config = ",\"settle_ms\":100";
	fake_agent(f);
	const struct doc *e = doc_table(fake_meet(f), "exit");

	if (!e)
		e = fake_wait(f, FRAME_EXIT);
	assert_int_equal(fake_int(e, "code"), 5);
	assert_string_equal(fake_str(e, "kind"), "none");
	fake_gone(fake_pid_in(f, "daemon"));
}

/* ---- the bytes that wait in the pipes ---- */

#define CUT "its output may be cut: the processes that held it were killed"
#define UNTIL_GO "while ! [ -e $DIR/go ]; do sleep 0.01; done; "

/* A living pipe holder of this node; 0: there is none. */
static pid_t pipe_holder(struct fake *f)
{
	struct proc_list l = {0};
	pid_t found = 0;

	proc_with_env(arena_printf(f->arena, "%s=%s", PROC_MARK, f->mark), true, &l);
	for (size_t i = 0; i < l.n; i++) {
		char *path = arena_printf(f->arena, "/proc/%d/comm", (int)l.v[i].pid);
		struct buf comm;

		buf_init(&comm, 64);
		if (file_read(path, &comm, NULL) == 0 && str_is(buf_str(&comm), "regatta-pipes\n"))
			found = l.v[i].pid;
		buf_release(&comm);
	}
	proc_list_release(&l);
	return found;
}

/* The job ends, and what its parent, the forkserver, would record is on record. */
static void let_end(struct fake *f, pid_t job)
{
	fake_touch(fake_below(f, "go"));
	fake_gone(job);
	assert_true(agent_orphan_ended(f->node, job, 0));
}

static void wait_for_pipe_holder(struct fake *f)
{
	int64_t until = clock_boot_ms() + FAKE_WAIT_MS;

	while (!pipe_holder(f))
		assert_true(clock_boot_ms() < until);
}

/* The shim is killed, then the agent that has taken over: the pipe holder alone is left. */
static pid_t leave_to_the_pipe_holder(struct fake *f, const char *script)
{
	fake_ready(f);
	pid_t job = fake_start(f, script);

	fake_wait_bytes(f, STREAM_OUT, 4);
	fake_kill(fake_shim(f));
	wait_for_pipe_holder(f);
	fake_kill(f->agent);
	return job;
}

static const struct doc *exit_by_the_next_agent(struct fake *f)
{
	fake_agent(f);
	const struct doc *e = doc_table(fake_meet(f), "exit");

	if (!e)
		e = fake_wait(f, FRAME_EXIT);
	fake_wait(f, FRAME_COLLECTED);
	return e;
}

static void the_pipe_holder_keeps_the_last_bytes_of_a_job(void **state)
{
	struct fake *f = *state;
	pid_t job = leave_to_the_pipe_holder(f, "echo one; " UNTIL_GO "echo two");

	let_end(f, job);
	const struct doc *e = exit_by_the_next_agent(f);

	assert_int_equal(fake_int(e, "code"), 0);
	assert_string_equal(fake_str(e, "kind"), "none");
	assert_string_equal(f->out[STREAM_OUT].p, "one\ntwo\n");
	fake_release(f);
	assert_int_equal(pipe_holder(f), 0);
}

static void the_pipe_holder_stays_until_the_end_is_on_record(void **state)
{
	struct fake *f = *state;
	pid_t job = leave_to_the_pipe_holder(f, "echo one; " UNTIL_GO);

	let_end(f, job);
	poll(NULL, 0, 1000); /* it looks every 400 ms */
	const struct doc *e = exit_by_the_next_agent(f);

	assert_int_equal(fake_int(e, "code"), 0);
	assert_string_equal(fake_str(e, "kind"), "none");
}

static void a_job_whose_last_bytes_may_be_lost_has_not_succeeded(void **state)
{
	struct fake *f = *state;
	pid_t job = leave_to_the_pipe_holder(f, "echo one; " UNTIL_GO "echo two");

	let_end(f, job);
	for (pid_t pid; (pid = pipe_holder(f)) > 0;)
		fake_kill(pid);
	const struct doc *e = exit_by_the_next_agent(f);

	assert_int_equal(fake_int(e, "code"), 0);
	assert_string_equal(fake_str(e, "kind"), "unavailable");
	assert_string_equal(fake_str(e, "reason"), CUT);
	assert_string_equal(f->out[STREAM_OUT].p, "one\n");
	fake_release(f);
}

static void the_same_when_agent_and_shim_die_at_once(void **state)
{
	struct fake *f = *state;

	fake_ready(f);
	pid_t job = fake_start(f, "echo one; " UNTIL_GO "echo two");

	fake_wait_bytes(f, STREAM_OUT, 4);
	fake_kill_both(f);
	let_end(f, job);
	const struct doc *e = exit_by_the_next_agent(f);

	assert_string_equal(fake_str(e, "kind"), "unavailable");
	assert_string_equal(fake_str(e, "reason"), CUT);
}

/* The second agent finds that nobody held the pipes; the third one finds the second one's pipe holder. */
static void lost_bytes_are_not_forgotten_by_the_agent_after_the_next(void **state)
{
	struct fake *f = *state;

	fake_ready(f);
	pid_t job = fake_start(f, "echo one; exec >&- 2>&-; echo x > $DIR/closed; " UNTIL_GO);

	fake_wait_bytes(f, STREAM_OUT, 4);
	fake_file(f, fake_below(f, "closed"));
	fake_kill_both(f);
	fake_agent(f);
	fake_meet(f);
	wait_for_pipe_holder(f);
	fake_kill(f->agent);
	let_end(f, job);
	const struct doc *e = exit_by_the_next_agent(f);

	assert_string_equal(fake_str(e, "kind"), "unavailable");
	assert_string_equal(fake_str(e, "reason"), CUT);
}

static void metrics_that_waited_for_both_are_said_to_be_lost(void **state)
{
	struct fake *f = *state;

	fake_ready(f);
	pid_t job = fake_start(f, "echo one; echo '{\"loss\": 1}' > $REGATTA_METRICS; " UNTIL_GO
				  "echo two");

	fake_wait_bytes(f, STREAM_OUT, 4);
	fake_wait_bytes(f, STREAM_METRICS, 12);
	fake_kill_both(f);
	fake_agent(f);
	fake_meet(f);
	let_end(f, job);
	const struct doc *e = fake_end(f);

	/* The job held its output, and has succeeded. */
	assert_int_equal(fake_int(e, "code"), 0);
	assert_string_equal(fake_str(e, "kind"), "none");
	assert_string_equal(fake_str(e, "reason"),
			    "some of its metrics may be lost: the processes that "
			    "held their FIFO were killed");
	assert_string_equal(f->out[STREAM_OUT].p, "one\ntwo\n");
	fake_release(f);
}

/* Its mark is the last entry, behind everything else. */
#define DAEMON                                                                                     \
	"setsid sh -c 'echo $$ > $DIR/daemon; exec env -u " PROC_MARK " " PROC_MARK "=$" PROC_MARK \
	" sleep 600' >/dev/null 2>&1 & "

static void give_big_environment(struct fake *f)
{
	char *big = arena_alloc(f->arena, 100001);

	memset(big, 'x', 100000);
	big[100000] = '\0';
	f->env = arena_printf(f->arena, ",\"A\":\"%s\",\"B\":\"%s\",\"C\":\"%s\"", big, big, big);
	f->no_cgroup = true;
}

static void daemon_is_found_by_its_mark(struct fake *f, pid_t job)
{
	pid_t pid = fake_pid_in(f, "daemon");

	fake_kill_both(f);
	fake_agent(f);
	fake_meet(f);
	assert_true(fake_alive(pid));
	fake_touch(fake_below(f, "go"));
	fake_gone(job);
	fake_wait(f, FRAME_EXIT);
	assert_false(fake_alive(pid));
}

static void a_big_environment_does_not_hide_the_mark(void **state)
{
	struct fake *f = *state;

	give_big_environment(f);
	fake_ready(f);
	pid_t job = fake_start(f, DAEMON FAKE_UNTIL("daemon") FAKE_UNTIL("go"));

	daemon_is_found_by_its_mark(f, job);
}

static void a_big_environment_does_not_hide_the_mark_of_an_orphan(void **state)
{
	struct fake *f = *state;
	int64_t until = clock_boot_ms() + FAKE_WAIT_MS;
	struct proc_info p;

	give_big_environment(f);
	fake_ready(f);
	pid_t job = fake_start(f, "( " DAEMON "); " FAKE_UNTIL("daemon") FAKE_UNTIL("go"));
	pid_t pid = fake_pid_in(f, "daemon"), shim = fake_shim(f);

	do {
		assert_true(proc_read(pid, &p) && clock_boot_ms() < until);
	} while (p.ppid != shim);
	daemon_is_found_by_its_mark(f, job);
}

int main(int argc, char **argv)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_first_process_of_a_pod_fails_when_it_is_asked_to_stop),
#define CASE(fn) cmocka_unit_test_setup_teardown(fn, fake_setup, fake_teardown)
		CASE(a_killed_agent_is_replaced_and_the_job_goes_on),
		CASE(the_only_attempt_of_a_node_need_not_be_its_first),
		CASE(a_job_that_ends_without_an_agent_is_reported_by_the_next),
		CASE(an_agent_that_is_asked_to_stop_says_goodbye_and_leaves_the_job_alone),
		CASE(a_second_agent_for_the_same_node_leaves),
		CASE(an_attempt_of_an_earlier_boot_is_said_to_be_one),
		CASE(a_node_of_an_earlier_boot_may_have_lost_its_claim),
		CASE(a_killed_shim_is_replaced_by_the_agent_which_learns_the_real_status),
		CASE(the_same_without_a_cgroup),
		CASE(a_job_without_a_shim_can_still_be_stopped),
		CASE(no_byte_is_lost_when_the_shim_is_killed_in_full_flow),
		CASE(a_job_outlives_agent_and_shim_and_no_status_is_invented),
		CASE(the_same_by_the_mark_alone),
		CASE(a_job_that_outlived_both_can_be_stopped),
		CASE(a_job_that_outlived_both_still_has_its_grace_and_its_time_limit),
		CASE(the_connection_of_a_killed_agent_closes_though_its_pipe_holder_lives),
		CASE(a_shim_killed_under_a_later_agent_leaves_no_status_either),
		CASE(a_stop_that_a_killed_shim_never_acted_on_is_made_good),
		CASE(an_exit_that_was_recorded_before_both_died_counts),
		CASE(the_pipe_holder_keeps_the_last_bytes_of_a_job),
		CASE(the_pipe_holder_stays_until_the_end_is_on_record),
		CASE(a_job_whose_last_bytes_may_be_lost_has_not_succeeded),
		CASE(the_same_when_agent_and_shim_die_at_once),
		CASE(metrics_that_waited_for_both_are_said_to_be_lost),
		CASE(lost_bytes_are_not_forgotten_by_the_agent_after_the_next),
		CASE(a_big_environment_does_not_hide_the_mark),
		CASE(a_big_environment_does_not_hide_the_mark_of_an_orphan),
	};
	int role = fake_role(argc, argv);

	if (role >= 0)
		return role;
	return cmocka_run_group_tests_name("agent: killed processes", tests, NULL, NULL);
}
