/* What must survive: killed agents, killed shims, hostile jobs, full disks, lost connections. */
#include "unit.h"

#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/wait.h>

#include "base/clock.h"
#include "base/path.h"
#include "base/rand.h"
#include "fake_master.h"
#include "sys/proctree.h"

/* The job's own copy of what it wrote. */
static void output_equals_copy(struct fake *f, const char *name)
{
	struct buf want;

	buf_init(&want, 256 * 1024 * 1024);
	assert_int_equal(file_read(fake_below(f, name), &want, NULL), 0);
	assert_int_equal(f->out[STREAM_OUT].n, want.n);
	assert_memory_equal(f->out[STREAM_OUT].p, want.p, want.n);
	buf_release(&want);
}

/* ---- hostile jobs ---- */

#define DAEMON "setsid sh -c 'echo $$ > $DIR/daemon; exec sleep 600' >/dev/null 2>&1 & "
#define NAMELESS                                                                                   \
	"env -i DIR=$DIR setsid sh -c 'echo $$ > $DIR/daemon; exec sleep 600' >/dev/null 2>&1 & "
#define UNTIL_DAEMON "while ! [ -s $DIR/daemon ]; do sleep 0.01; done; "

static void a_daemon_does_not_outlive_its_job(void **state)
{
	struct fake *f = *state;

	fake_ready(f);
	fake_start(f, DAEMON UNTIL_DAEMON "exit 3");
	assert_int_equal(fake_int(fake_end(f), "code"), 3);
	struct proc_info p;
	pid_t pid = fake_pid_in(f, "daemon");

	assert_false(proc_read(pid, &p) && p.state != 'Z');
}

static void a_daemon_without_an_environment_is_found_without_a_cgroup(void **state)
{
	struct fake *f = *state;

	f->no_cgroup = true;
	fake_ready(f);
	fake_start(f, NAMELESS UNTIL_DAEMON "exit 3");
	assert_int_equal(fake_int(fake_end(f), "code"), 3);
	struct proc_info p;
	pid_t pid = fake_pid_in(f, "daemon");

	assert_false(proc_read(pid, &p) && p.state != 'Z');
}

static void a_daemon_that_holds_the_output_is_given_a_moment_then_killed(void **state)
{
	struct fake *f = *state;

	f->config = ",\"settle_ms\":300";
	fake_ready(f);
	fake_start(
		f,
		"setsid sh -c 'echo $$ > $DIR/daemon; sleep 0.05; echo late; exec sleep 600' & " UNTIL_DAEMON
		"echo early");
	assert_int_equal(fake_int(fake_end(f), "code"), 0);
	assert_string_equal(f->out[STREAM_OUT].p, "early\nlate\n");
	fake_gone(fake_pid_in(f, "daemon"));
}

static void a_job_that_ignores_sigterm_is_killed_after_its_grace(void **state)
{
	struct fake *f = *state;

	fake_ready(f);
	fake_start(f, "trap '' TERM; echo armed; while :; do sleep 0.05; done");
	fake_wait_bytes(f, STREAM_OUT, 6);
	int64_t before = clock_boot_ms();

	fake_send(f, FRAME_SIGNAL, "{\"hurry\":false}");
	const struct doc *e = fake_end(f);

	assert_int_equal(fake_int(e, "signal"), SIGKILL);
	assert_non_null(strstr(fake_str(e, "reason"), "grace"));
	assert_true(clock_boot_ms() - before >= 300);
}

static void a_job_may_use_its_grace(void **state)
{
	struct fake *f = *state;

	fake_ready(f);
	fake_start(f, "trap 'echo saved; exit 5' TERM; echo armed; while :; do sleep 0.01; done");
	fake_wait_bytes(f, STREAM_OUT, 6);
	fake_send(f, FRAME_SIGNAL, "{\"hurry\":false}");
	const struct doc *e = fake_end(f);

	assert_int_equal(fake_int(e, "code"), 5);
	assert_string_equal(fake_str(e, "reason"), "");
	assert_string_equal(f->out[STREAM_OUT].p, "armed\nsaved\n");
}

static void a_second_signal_hurries(void **state)
{
	struct fake *f = *state;

	fake_ready(f);
	fake_send(
		f, FRAME_START,
		"{\"attempt\":1,\"argv\":[\"/bin/sh\",\"-c\",\"trap '' TERM; echo armed; while :; do sleep "
		"0.05; done\"],\"env\":{},\"grace_ms\":600000}");
	fake_wait_bytes(f, STREAM_OUT, 6);
	fake_send(f, FRAME_SIGNAL, "{\"hurry\":false}");
	fake_send(f, FRAME_SIGNAL, "{\"hurry\":true}");
	assert_int_equal(fake_int(fake_end(f), "signal"), SIGKILL);
}

static void a_stopped_job_can_be_killed(void **state)
{
	struct fake *f = *state;

	fake_ready(f);
	pid_t pid = fake_start(f, "sleep 600");

	struct proc_info p;
	int64_t until = clock_boot_ms() + FAKE_WAIT_MS;

	kill(pid, SIGSTOP);
	do { /* until then a SIGTERM would still be taken */
		assert_true(proc_read(pid, &p) && clock_boot_ms() < until);
	} while (p.state != 'T');
	fake_send(f, FRAME_SIGNAL, "{\"hurry\":false}");
	assert_int_equal(fake_int(fake_end(f), "signal"), SIGKILL);
}

static void the_time_limit_holds_without_agent_and_master(void **state)
{
	struct fake *f = *state;

	fake_ready(f);
	fake_start_with(f, "echo $$ > $DIR/pid; exec sleep 600", ",\"deadline_ms\":400");
	pid_t pid = fake_pid_in(f, "pid");

	fake_kill(f->agent);
	fake_gone(pid);
	fake_agent(f);
	const struct doc *h = fake_meet(f);
	const struct doc *e = doc_table(h, "exit");

	if (!e) /* the record may come a moment after the death */
		e = fake_wait(f, FRAME_EXIT);
	assert_string_equal(fake_str(e, "kind"), "timeout");
	assert_int_equal(fake_int(e, "signal"), SIGTERM);
}

static void a_job_over_its_memory_limit_is_an_oom(void **state)
{
	struct fake *f = *state;

	fake_agent(f);
	fake_meet(f);
	fake_send(f, FRAME_INPUTS,
		  "{\"argv0\":\"python3\",\"path\":\"/usr/bin\",\"memory\":50000000}");
	const struct doc *r = fake_wait(f, FRAME_READY);

	if (!doc_bool(r, "ok", false)) {
		/* Without the permission it must be refused, in words. */
		assert_string_equal(fake_str(r, "kind"), "unavailable");
		assert_non_null(strstr(fake_str(r, "reason"), "memory"));
		return;
	}
	fake_start_with(f, "exec python3 -c 'x=bytearray(200000000)'", ",\"memory\":50000000");
	const struct doc *e = fake_end(f);

	assert_true(doc_bool(e, "oom", false));
	assert_non_null(strstr(fake_str(e, "reason"), "memory"));
}

static void memory_cannot_be_limited_without_a_cgroup(void **state)
{
	struct fake *f = *state;

	f->no_cgroup = true;
	fake_agent(f);
	fake_meet(f);
	fake_send(f, FRAME_INPUTS, "{\"argv0\":\"sh\",\"path\":\"/bin\",\"memory\":50000000}");
	const struct doc *r = fake_wait(f, FRAME_READY);

	assert_false(doc_bool(r, "ok", true));
	assert_string_equal(fake_str(r, "kind"), "unavailable");
}

/* ---- killed agents ---- */

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
	fake_start(f, NAMELESS UNTIL_DAEMON
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
	output_equals_copy(f, "copy");
}

static void both_killed_case(struct fake *f)
{
	fake_ready(f);
	pid_t pid = fake_start(
		f, DAEMON UNTIL_DAEMON
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

static void an_exit_that_was_recorded_before_both_died_counts(void **state)
{
	struct fake *f = *state;

	f->config = ",\"settle_ms\":600000";
	fake_ready(f);
	/* The main process ends; a child keeps the output open, so the shim waits. */
	pid_t pid = fake_start(f, "sh -c 'echo $$ > $DIR/daemon; exec sleep 600' & " UNTIL_DAEMON
				  "exit 5");

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

/* ---- the connection ---- */

static void a_lost_connection_is_resumed_where_it_was(void **state)
{
	struct fake *f = *state;

	fake_ready(f);
	fake_start(
		f,
		"head -c 20000000 /dev/urandom > $DIR/copy; echo ready >&2; cat $DIR/copy; exit 2");
	for (size_t i = 1; i <= 10; i++) {
		fake_wait_bytes(f, STREAM_OUT, i * 1500000);
		fake_hang_up(f);
		assert_string_equal(fake_str(fake_meet(f), "holds"), "started");
	}
	while (f->out[STREAM_OUT].n < 20000000)
		fake_wait_bytes(f, STREAM_OUT, 20000000);
	fake_wait(f, FRAME_COLLECTED);
	output_equals_copy(f, "copy");
	assert_int_equal(f->scanned[STREAM_OUT], 20000000);
}

static void killed_agents_and_lost_connections_never_cost_a_byte_or_a_second_run(void **state)
{
	struct fake *f = *state;
	struct rng rng;
	uint64_t seed = rand_u64();

	print_message("# seed %" PRIu64 "\n", seed);
	rng_seed(&rng, seed);
	fake_ready(f);
	fake_start(
		f,
		"echo x >> $DIR/ran; i=0; while [ $i -lt 400 ]; do i=$((i+1)); echo line $i loss=$i | "
		"tee -a $DIR/copy; [ $((i % 8)) = 0 ] && sleep 0.01; done; exit 11");
	for (int i = 0; i < 25; i++) {
		size_t more = f->out[STREAM_OUT].n + rng_below(&rng, 300);

		if (f->last[FRAME_COLLECTED])
			break;
		if (more < 4000)
			fake_wait_bytes(f, STREAM_OUT, more);
		if (rng_below(&rng, 2)) {
			fake_kill(f->agent);
			fake_agent(f);
		} else {
			fake_hang_up(f);
		}
		fake_meet(f);
	}
	const struct doc *h = f->last[FRAME_HELLO];
	const struct doc *e = doc_table(h, "exit");

	if (!f->last[FRAME_COLLECTED])
		fake_wait(f, FRAME_COLLECTED);
	if (!e)
		e = f->last[FRAME_EXIT];
	assert_non_null(e);
	assert_int_equal(fake_int(e, "code"), 11);
	output_equals_copy(f, "copy");
	assert_string_equal(fake_file(f, fake_below(f, "ran")), "x\n");
	/* Each line gave one sample, once. */
	size_t n = 0;

	for (const char *p = f->samples.p; (p = strstr(p, "loss=")); p++)
		n++;
	assert_int_equal(n, 400);
}

static void the_lease_ends_a_job_that_nobody_asks_for(void **state)
{
	struct fake *f = *state;

	fake_agent(f);
	fake_accept(f);
	fake_welcome(f, 300);
	fake_send(f, FRAME_INPUTS, "{\"argv0\":\"sh\",\"path\":\"/bin\"}");
	fake_wait(f, FRAME_READY);
	pid_t pid = fake_start(f, "echo $$; exec sleep 600");

	fake_wait_bytes(f, STREAM_OUT, 2);
	close(f->listener); /* nobody answers any more */
	fake_hang_up(f);
	assert_int_equal(fake_agent_gone(f), 0);
	fake_gone(pid);
	/* The result waits for the next master. */
	struct fake *g = f;
	char *status = arena_printf(f->arena, "%s/status", g->node);

	assert_non_null(strstr(fake_file(f, status), "\"reason\":\"lease\""));
	f->listener = -1;
}

static void a_refused_node_cleans_up_and_leaves(void **state)
{
	struct fake *f = *state;

	fake_ready(f);
	pid_t pid = fake_start(f, "exec sleep 600");

	fake_hang_up(f);
	fake_accept(f);
	fake_send(f, FRAME_REFUSE, "{\"kind\":\"not_found\",\"reason\":\"no such run\"}");
	assert_int_equal(fake_agent_gone(f), 0);
	fake_gone(pid);
	assert_false(file_exists(arena_printf(f->arena, "%s/work", f->node)));
}

static void a_node_refused_for_now_comes_again(void **state)
{
	struct fake *f = *state;

	fake_agent(f);
	fake_accept(f);
	fake_send(f, FRAME_REFUSE, "{\"kind\":\"throttled\",\"reason\":\"later\"}");
	fake_wait_close(f);
	fake_meet(f);
	fake_release(f);
}

/* A master that knows the run and cannot serve it yet says "unavailable". */
static void a_job_goes_on_while_its_node_is_told_to_come_later(void **state)
{
	static const char *const kinds[] = {"unavailable", "a kind of later versions"};
	struct fake *f = *state;

	fake_ready(f);
	pid_t pid = fake_start(f, "exec sleep 600");

	for (int i = 0; i < 4; i++) {
		fake_hang_up(f);
		fake_accept(f);
		fake_send(f, FRAME_REFUSE,
			  arena_printf(f->arena, "{\"kind\":\"%s\",\"reason\":\"later\"}",
				       kinds[i % 2]));
		fake_wait_close(f);
		assert_int_equal(kill(pid, 0), 0);
	}
	assert_string_equal(fake_str(fake_meet(f), "holds"), "started");
	fake_send(f, FRAME_SIGNAL, "{\"hurry\":true}");
	fake_end(f);
	fake_release(f);
}

static void a_message_that_cannot_be_used_ends_the_connection_with_the_reason(void **state)
{
	static const struct {
		enum frame_type type;
		const char *json, *reason;
	} bad[] = {
		{FRAME_START, "{\"attempt\":0}", "attempt"},
		{FRAME_INPUTS, "nonsense", "JSON"},
		{FRAME_SIGNAL, "{\"hurry\":7}", "hurry"},
		{FRAME_ACK, "{}", "offset"},
		{FRAME_EXIT, "{}", "not expected"},
		{FRAME_WELCOME, "{\"lease_ms\":1,\"acks\":[1],\"scanned\":[0,0,0]}", "acks"},
		{FRAME_REFUSE, "{}", "kind"},
	};
	struct fake *f = *state;

	fake_agent(f);
	for (size_t i = 0; i < COUNT(bad); i++) {
		fake_meet(f);
		fake_send(f, bad[i].type, bad[i].json);
		const char *reason = fake_str(fake_wait(f, FRAME_BYE), "reason");

		if (!strstr(reason, bad[i].reason))
			fail_msg("'%s' does not say '%s'", reason, bad[i].reason);
		fake_wait_close(f);
	}
	fake_meet(f);
	fake_release(f);
}

static void a_start_before_the_welcome_is_not_acted_on(void **state)
{
	struct fake *f = *state;

	fake_agent(f);
	fake_accept(f);
	fake_send(f, FRAME_START,
		  "{\"attempt\":1,\"argv\":[\"/bin/true\"],\"env\":{},\"grace_ms\":1}");
	fake_wait(f, FRAME_BYE);
	fake_wait_close(f);
	assert_string_equal(fake_str(fake_meet(f), "holds"), "nothing");
}

static void a_ping_is_answered(void **state)
{
	struct fake *f = *state;

	fake_ready(f);
	fake_send(f, FRAME_PING, "{}");
	fake_wait(f, FRAME_PONG);
}

static void when_nobody_listens_a_master_is_started(void **state)
{
	struct fake *f = *state;

	f->config = ",\"revive\":true";
	fake_ready(f);
	close(f->listener);
	f->listener = -1;
	unlink(fake_below(f, "link.sock"));
	fake_hang_up(f);
	/* Not as a part of this node: it has no mark. */
	assert_string_equal(fake_file(f, fake_below(f, "revived")), "--background");
}

/* ---- space ---- */

static void output_that_nobody_stores_blocks_the_job_at_the_budget(void **state)
{
	struct fake *f = *state;
	char *spool = arena_printf(f->arena, "%s/out", f->node);
	struct stat st;

	f->config = ",\"spool_bytes\":1000000";
	f->hold_acks = true;
	fake_ready(f);
	fake_start(f, "head -c 5000000 /dev/zero; echo $? > $DIR/written");
	fake_wait_bytes(f, STREAM_OUT, 1000000);
	assert_int_equal(stat(spool, &st), 0);
	assert_true(st.st_size <
		    3500000); /* the budget, and what was under way when it was looked at */
	assert_false(file_exists(fake_below(f, "written")));
	f->hold_acks = false;
	fake_hang_up(f);
	fake_meet(f);
	fake_wait(f, FRAME_COLLECTED);
	assert_int_equal(f->out[STREAM_OUT].n, 5000000);
}

static void what_is_stored_is_freed_on_the_node(void **state)
{
	struct fake *f = *state;
	char *spool = arena_printf(f->arena, "%s/out", f->node);
	struct stat st;

	fake_ready(f);
	fake_start(f, "head -c 100000000 /dev/zero; sleep 600");
	fake_wait_bytes(f, STREAM_OUT, 100000000);
	fake_send(f, FRAME_SIGNAL, "{\"hurry\":true}");
	fake_end(f);
	assert_int_equal(stat(spool, &st), 0);
	assert_int_equal(st.st_size, 100000000);
	assert_true(st.st_blocks * 512 <= 64 * 1024 * 1024);
}

/* A node directory of 1 MiB; false (and a skipped test) where mounting is not allowed. */
static bool small_disk(struct fake *f)
{
	if (mount("tmpfs", f->node, "tmpfs", 0, "size=1m") == 0)
		return true;
	print_message("# skipped: a tmpfs cannot be mounted here\n");
	return false;
}

static void until_full(struct fake *f)
{
	int64_t until = clock_boot_ms() + FAKE_WAIT_MS;
	struct statvfs vfs;

	do {
		assert_true(clock_boot_ms() < until);
		poll(NULL, 0, 1);
		assert_int_equal(statvfs(f->node, &vfs), 0);
	} while (vfs.f_bavail > 0);
}

static int unmount_teardown(void **state)
{
	struct fake *f = *state;

	umount2(f->node, MNT_DETACH);
	return fake_teardown(state);
}

static void a_full_disk_blocks_the_job_until_there_is_room(void **state)
{
	struct fake *f = *state;

	if (!small_disk(f))
		skip();
	f->hold_acks = true;
	f->config = ",\"full_ms\":600000";
	fake_ready(f);
	/* What goes to stderr has its place before stdout takes the rest. */
	fake_start(
		f,
		"head -c 3000000 /dev/urandom > $DIR/copy; echo started >&2; while ! [ -e $DIR/go ]; "
		"do sleep 0.01; done; cat $DIR/copy; exit 3");
	fake_wait_bytes(f, STREAM_ERR, 8);
	file_write_atomic(fake_below(f, "go"), STR("x"), 0600, false, NULL);
	until_full(f);
	/* Nothing is lost while it is full; then the disk grows. */
	assert_int_equal(mount("tmpfs", f->node, "tmpfs", MS_REMOUNT, "size=16m"), 0);
	const struct doc *e = fake_end(f);

	assert_int_equal(fake_int(e, "code"), 3);
	assert_null(doc_get(e, "gaps"));
	output_equals_copy(f, "copy");
}

static void a_disk_that_stays_full_costs_bytes_that_are_counted_not_the_job(void **state)
{
	struct fake *f = *state;

	if (!small_disk(f))
		skip();
	f->config = ",\"full_ms\":200";
	fake_ready(f);
	fake_start(f, "head -c 3000000 /dev/urandom > $DIR/copy; cat $DIR/copy; exit 3");
	const struct doc *e = fake_wait(f, FRAME_EXIT);
	const struct doc *gaps = doc_array(e, "gaps");
	uint64_t missing = 0;

	fake_wait(f, FRAME_COLLECTED);
	assert_int_equal(fake_int(e, "code"), 3);
	assert_non_null(gaps);
	for (size_t i = 0; i < gaps->array.n; i++) {
		assert_string_equal(fake_str(gaps->array.v[i], "stream"), "out");
		missing += (uint64_t)fake_int(gaps->array.v[i], "bytes");
	}
	assert_int_equal(f->out[STREAM_OUT].n + missing, 3000000);
	assert_non_null(strstr(fake_str(e, "reason"), "could not be kept"));
}

int main(int argc, char **argv)
{
	static const struct CMUnitTest tests[] = {
#define CASE(fn) cmocka_unit_test_setup_teardown(fn, fake_setup, fake_teardown)
#define DISK_CASE(fn) cmocka_unit_test_setup_teardown(fn, fake_setup, unmount_teardown)
		CASE(a_daemon_does_not_outlive_its_job),
		CASE(a_daemon_without_an_environment_is_found_without_a_cgroup),
		CASE(a_daemon_that_holds_the_output_is_given_a_moment_then_killed),
		CASE(a_job_that_ignores_sigterm_is_killed_after_its_grace),
		CASE(a_job_may_use_its_grace),
		CASE(a_second_signal_hurries),
		CASE(a_stopped_job_can_be_killed),
		CASE(the_time_limit_holds_without_agent_and_master),
		CASE(a_job_over_its_memory_limit_is_an_oom),
		CASE(memory_cannot_be_limited_without_a_cgroup),
		CASE(a_killed_agent_is_replaced_and_the_job_goes_on),
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
		CASE(an_exit_that_was_recorded_before_both_died_counts),
		CASE(a_lost_connection_is_resumed_where_it_was),
		CASE(killed_agents_and_lost_connections_never_cost_a_byte_or_a_second_run),
		CASE(the_lease_ends_a_job_that_nobody_asks_for),
		CASE(a_refused_node_cleans_up_and_leaves),
		CASE(a_node_refused_for_now_comes_again),
		CASE(a_job_goes_on_while_its_node_is_told_to_come_later),
		CASE(a_message_that_cannot_be_used_ends_the_connection_with_the_reason),
		CASE(a_start_before_the_welcome_is_not_acted_on),
		CASE(a_ping_is_answered),
		CASE(when_nobody_listens_a_master_is_started),
		CASE(output_that_nobody_stores_blocks_the_job_at_the_budget),
		CASE(what_is_stored_is_freed_on_the_node),
		DISK_CASE(a_full_disk_blocks_the_job_until_there_is_room),
		DISK_CASE(a_disk_that_stays_full_costs_bytes_that_are_counted_not_the_job),
	};
	int role = fake_role(argc, argv);

	if (role >= 0)
		return role;
	return cmocka_run_group_tests_name("agent: kills and losses", tests, NULL, NULL);
}
