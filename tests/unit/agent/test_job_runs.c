/* The life of a job on a node, without faults: agent_main in its own process, a master made by the test. */
#include "unit.h"

#include <signal.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "base/cleanup.h"
#include "base/path.h"
#include "fake_master.h"

static void a_node_introduces_itself_with_what_it_holds(void **state)
{
	struct fake *f = *state;

	fake_agent(f);
	const struct doc *h = fake_meet(f);

	assert_int_equal(fake_int(h, "proto"), 1);
	assert_string_equal(fake_str(h, "run"), "r");
	assert_string_equal(fake_str(h, "node"), "n-0");
	assert_string_equal(fake_str(h, "token"), "secret");
	assert_string_equal(fake_str(h, "holds"), "nothing");
	assert_int_equal(fake_int(h, "attempt"), 0);
	assert_int_equal(fake_int(h, "pid"), f->agent);
	assert_null(doc_get(h, "exit"));
	assert_true(doc_bool(h, "templates", false));
	fake_release(f);
}

static void a_job_that_succeeds_is_reported_with_its_output(void **state)
{
	struct fake *f = *state;

	fake_ready(f);
	assert_true(fake_start(f, "echo hello; echo oops >&2; echo \"$DIR\"") > 0);
	const struct doc *e = fake_end(f);

	assert_int_equal(fake_int(e, "attempt"), 1);
	assert_int_equal(fake_int(e, "code"), 0);
	assert_int_equal(fake_int(e, "signal"), 0);
	assert_string_equal(fake_str(e, "kind"), "none");
	assert_string_equal(fake_str(e, "reason"), "");
	char *want = xasprintf("hello\n%s\n", f->dir);

	assert_string_equal(f->out[STREAM_OUT].p, want);
	assert_string_equal(f->out[STREAM_ERR].p, "oops\n");
	free(want);
	fake_release(f);
}

static void exit_codes_and_signals_are_the_jobs_own(void **state)
{
	struct fake *f = *state;

	fake_ready(f);
	fake_start(f, "exit 42");
	const struct doc *e = fake_end(f);

	assert_int_equal(fake_int(e, "code"), 42);
	assert_int_equal(fake_int(e, "signal"), 0);
}

static void a_signal_that_killed_the_job_is_named(void **state)
{
	struct fake *f = *state;

	fake_ready(f);
	fake_start(f, "kill -SEGV $$");
	const struct doc *e = fake_end(f);

	assert_int_equal(fake_int(e, "code"), -1);
	assert_int_equal(fake_int(e, "signal"), SIGSEGV);
}

static void binary_output_comes_through_byte_for_byte(void **state)
{
	struct fake *f = *state;

	fake_ready(f);
	fake_start(f, "head -c 3000000 /dev/urandom > $DIR/copy; cat $DIR/copy");
	fake_end(f);
	char *path = path_join(f->dir, "copy");
	struct buf want;

	buf_init(&want, 4000000);
	assert_int_equal(file_read(path, &want, NULL), 0);
	assert_int_equal(f->out[STREAM_OUT].n, want.n);
	assert_memory_equal(f->out[STREAM_OUT].p, want.p, want.n);
	buf_release(&want);
	free(path);
}

static void output_in_single_bytes_is_gathered_and_whole(void **state)
{
	struct fake *f = *state;

	fake_ready(f);
	fake_start(f, "i=0; while [ $i -lt 3000 ]; do printf x; i=$((i+1)); done");
	fake_end(f);
	assert_int_equal(f->out[STREAM_OUT].n, 3000);
	for (size_t i = 0; i < 3000; i++)
		assert_int_equal(f->out[STREAM_OUT].p[i], 'x');
	/* Far fewer frames than writes. */
	assert_true(f->count[FRAME_DATA] < 1500);
}

static void eight_megabytes_without_a_newline_are_no_problem(void **state)
{
	struct fake *f = *state;

	fake_ready(f);
	fake_start(f, "head -c 8388608 /dev/zero | tr '\\0' z");
	fake_end(f);
	assert_int_equal(f->out[STREAM_OUT].n, 8388608);
	assert_int_equal(f->out[STREAM_OUT].p[8388607], 'z');
}

static void a_job_that_closes_its_output_runs_on(void **state)
{
	struct fake *f = *state;

	fake_ready(f);
	fake_start(f, "echo before; exec >&- 2>&-; sleep 0.2; exit 7");
	const struct doc *e = fake_end(f);

	assert_int_equal(fake_int(e, "code"), 7);
	assert_string_equal(f->out[STREAM_OUT].p, "before\n");
}

static void nobody_on_the_other_side_sends_nothing_beyond_the_window(void **state)
{
	struct fake *f = *state;

	f->hold_acks = true;
	fake_ready(f);
	fake_start(f, "head -c 6291456 /dev/zero");
	fake_wait(f, FRAME_EXIT);
	fake_wait_bytes(f, STREAM_OUT, 4 * 1024 * 1024);
	assert_int_equal(f->out[STREAM_OUT].n, 4 * 1024 * 1024);
	assert_int_equal(f->count[FRAME_COLLECTED], 0);
	f->hold_acks = false;
	fake_ack(f, STREAM_OUT);
	fake_wait(f, FRAME_COLLECTED);
	assert_int_equal(f->out[STREAM_OUT].n, 6291456);
}

static void a_second_start_of_the_same_attempt_is_answered_but_not_executed(void **state)
{
	struct fake *f = *state;

	fake_ready(f);
	fake_start(f, "echo x >> $DIR/ran");
	fake_end(f);
	fake_start(f, "echo y >> $DIR/ran");
	const struct doc *e = fake_end(f);

	assert_int_equal(fake_int(e, "code"), 0);
	char *path = path_join(f->dir, "ran");

	assert_string_equal(fake_file(f, path), "x\n");
	free(path);
}

static void a_second_start_while_the_job_runs_is_answered_with_the_same_process(void **state)
{
	struct fake *f = *state;

	fake_ready(f);
	pid_t pid = fake_start(f, "while ! [ -e $DIR/go ]; do sleep 0.01; done");

	assert_int_equal(fake_start(f, "exit 3"), pid);
	file_write_atomic(fake_below(f, "go"), STR("x"), 0600, false, NULL);
	assert_int_equal(fake_int(fake_end(f), "code"), 0);
}

/* One that leaves a file if it is executed. */
static void send_start(struct fake *f, int attempt, const char *file)
{
	fake_send(f, FRAME_START,
		  arena_printf(f->arena,
			       "{\"attempt\":%d,\"argv\":[\"/bin/sh\",\"-c\",\"echo x > %s/%s\"],"
			       "\"env\":{},\"cwd\":\"\",\"grace_ms\":300}",
			       attempt, f->dir, file));
}

static void another_attempt_while_the_job_runs_is_refused(void **state)
{
	struct fake *f = *state;

	fake_ready(f);
	pid_t pid = fake_start(f, FAKE_UNTIL("go") "exit 4");

	send_start(f, 2, "second");
	assert_non_null(
		strstr(fake_str(fake_wait(f, FRAME_BYE), "reason"), "attempt 1 still runs"));
	fake_wait_close(f);
	fake_hang_up(f);
	assert_int_equal(fake_int(fake_meet(f), "attempt"), 1);
	assert_true(fake_alive(pid));
	fake_touch(fake_below(f, "go"));
	assert_int_equal(fake_int(fake_end(f), "code"), 4);
	assert_false(file_exists(fake_below(f, "second")));
}

static void an_attempt_older_than_the_last_is_never_executed(void **state)
{
	struct fake *f = *state;

	fake_ready(f);
	send_start(f, 2, "second");
	fake_end(f);
	assert_true(file_exists(fake_below(f, "second")));
	send_start(f, 1, "first");
	for (int i = 0; i < 20; i++) { /* it has its time */
		fake_send(f, FRAME_PING, "{}");
		fake_wait(f, FRAME_PONG);
		usleep(10000);
	}
	assert_false(file_exists(fake_below(f, "first")));
	fake_release(f);
}

static void the_environment_is_what_the_master_sent_and_little_more(void **state)
{
	struct fake *f = *state;

	fake_ready(f);
	fake_start(f, "env | sed 's/=.*//' | sort | tr '\\n' ' '; test -p $REGATTA_METRICS && pwd");
	fake_end(f);
	char *want =
		xasprintf("DIR HOME PATH PWD PYTHONUNBUFFERED REGATTA_METRICS REGATTA_NODE_TOKEN "
			  "REGATTA_PREEMPT_FILE %s/work\n",
			  f->node);

	assert_string_equal(f->out[STREAM_OUT].p, want);
	free(want);
}

static void a_command_that_does_not_exist_is_127_and_says_so(void **state)
{
	struct fake *f = *state;

	f->config = ",\"settle_ms\":600000"; /* at once: nobody can have its output open */
	fake_ready(f);
	fake_send(
		f, FRAME_START,
		"{\"attempt\":1,\"argv\":[\"pyhton3\",\"x\"],\"env\":{\"PATH\":\"/usr/bin:/bin\"},\"grace_ms\":100}");
	fake_wait(f, FRAME_STARTED);
	const struct doc *e = fake_end(f);

	assert_int_equal(fake_int(e, "code"), 127);
	assert_string_equal(fake_str(e, "kind"), "not_found");
	assert_string_equal(fake_str(e, "reason"), "command 'pyhton3' not found in PATH");
}

static void a_directory_that_does_not_exist_is_named(void **state)
{
	struct fake *f = *state;

	fake_ready(f);
	fake_send(
		f, FRAME_START,
		"{\"attempt\":1,\"argv\":[\"/bin/sh\"],\"env\":{},\"cwd\":\"/no/such/place\",\"grace_ms\":100}");
	const struct doc *e = fake_end(f);

	assert_string_equal(fake_str(e, "kind"), "not_found");
	assert_non_null(strstr(fake_str(e, "reason"), "/no/such/place"));
}

static void a_script_without_a_first_line_is_run_by_the_shell(void **state)
{
	struct fake *f = *state;

	fake_ready(f);
	char *path = path_join(f->dir, "tool");
	char *json = xasprintf(
		"{\"attempt\":1,\"argv\":[\"%s\",\"arg\"],\"env\":{},\"grace_ms\":100}", path);

	assert_int_equal(file_write_atomic(path, STR("echo shell $1\n"), 0700, false, NULL), 0);
	fake_send(f, FRAME_START, json);
	const struct doc *e = fake_end(f);

	assert_int_equal(fake_int(e, "code"), 0);
	assert_string_equal(f->out[STREAM_OUT].p, "shell arg\n");
	free(json);
	free(path);
}

static void a_missing_interpreter_is_not_a_missing_command(void **state)
{
	struct fake *f = *state;

	fake_ready(f);
	char *path = path_join(f->dir, "tool");
	char *json =
		xasprintf("{\"attempt\":1,\"argv\":[\"%s\"],\"env\":{},\"grace_ms\":100}", path);

	assert_int_equal(file_write_atomic(path, STR("#!/no/interpreter\n"), 0700, false, NULL), 0);
	fake_send(f, FRAME_START, json);
	const struct doc *e = fake_end(f);

	assert_int_equal(fake_int(e, "code"), 127);
	assert_non_null(strstr(fake_str(e, "reason"), "interpreter is missing"));
	free(json);
	free(path);
}

static void an_environment_that_is_too_long_is_said_in_plain_words(void **state)
{
	struct fake *f = *state;
	struct buf b;

	fake_ready(f);
	buf_init(&b, FRAME_MAX_PAYLOAD);
	buf_addz(&b, "{\"attempt\":1,\"argv\":[\"/bin/true\"],\"env\":{\"A\":\"");
	for (int i = 0; i < 200000; i++) /* one value may have 128 KiB */
		buf_addc(&b, 'a');
	buf_addz(&b, "\"},\"grace_ms\":100}");
	fake_send(f, FRAME_START, b.p);
	const struct doc *e = fake_end(f);

	assert_string_equal(fake_str(e, "kind"), "invalid");
	assert_non_null(strstr(fake_str(e, "reason"), "too long"));
	buf_release(&b);
}

static void samples_are_found_once_and_with_their_steps(void **state)
{
	struct fake *f = *state;

	fake_ready(f);
	fake_start(
		f,
		"echo loss=0.5; echo '**metrics_data: acc=0.75,step=3'; printf 'loss=0.25' >&2; echo "
		"'{\"speed\": 12, \"step\": 4}' > $REGATTA_METRICS");
	fake_end(f);
	assert_non_null(strstr(f->samples.p, "loss=0.5@-1;"));
	assert_non_null(strstr(f->samples.p, "acc=0.75@"));
	assert_non_null(strstr(f->samples.p, "loss=0.25@-1;")); /* no newline at the end */
	assert_non_null(strstr(f->samples.p, "speed=12@4;"));
	assert_string_equal(f->out[STREAM_METRICS].p, "{\"speed\": 12, \"step\": 4}\n");
}

static void samples_come_while_the_job_runs(void **state)
{
	struct fake *f = *state;

	fake_ready(f);
	fake_start(f, "echo loss=1; sleep 60");
	fake_wait_samples(f, "loss=1@-1;");
	fake_send(f, FRAME_SIGNAL, "{\"hurry\":true}");
	assert_int_equal(fake_int(fake_end(f), "signal"), SIGKILL);
}

static void a_port_that_answers_is_announced(void **state)
{
	struct fake *f = *state;

	fake_ready(f);
	fake_start_with(f,
			"exec python3 -c 'import socket,time\ns=socket.socket(); "
			"s.bind((\"127.77.1.9\",5999)); s.listen(); time.sleep(60)'",
			",\"port\":5999,\"address\":\"127.77.1.9\"");
	assert_int_equal(fake_int(fake_wait(f, FRAME_SERVING), "attempt"), 1);
	/* A new connection hears it again. */
	fake_hang_up(f);
	assert_string_equal(fake_str(fake_meet(f), "holds"), "started");
	fake_wait(f, FRAME_SERVING);
	fake_send(f, FRAME_SIGNAL, "{\"hurry\":false}");
	assert_int_equal(fake_int(fake_end(f), "signal"), SIGTERM);
}

static void the_machine_and_the_job_are_sampled(void **state)
{
	struct fake *f = *state;

	fake_agent(f);
	fake_meet(f);
	fake_send(f, FRAME_INPUTS, "{\"argv0\":\"sh\",\"path\":\"/bin\",\"sample_ms\":100}");
	fake_wait(f, FRAME_READY);
	fake_start(f, "sleep 60");
	fake_wait(f, FRAME_SAMPLE);
	const struct doc *v = doc_table(fake_wait(f, FRAME_SAMPLE), "values");

	assert_true(doc_num(v, "host.memory", -1) > 0);
	assert_true(doc_num(v, "job.memory", -1) > 0);
	assert_true(doc_num(v, "job.cpu", -1) >= 0);
	assert_in_range((long)doc_num(v, "host.cpu", -1), 0, 100);
	fake_send(f, FRAME_SIGNAL, "{\"hurry\":true}");
	fake_end(f);
}

static void what_is_to_be_kept_is_collected(void **state)
{
	struct fake *f = *state;

	f->config = arena_printf(f->arena, ",\"output_dir\":\"%s/kept\"", f->dir);
	fake_agent(f);
	fake_meet(f);
	fake_send(f, FRAME_INPUTS,
		  "{\"argv0\":\"sh\",\"path\":\"/bin\",\"keep\":[\"model/**\",\"*.txt\",\"one\"]}");
	fake_wait(f, FRAME_READY);
	fake_start(
		f,
		"mkdir -p model/deep; echo a > model/deep/a; echo b > b.txt; echo c > c.log; echo 1 > "
		"one; ln -s /etc/passwd model/link");
	fake_wait(f, FRAME_EXIT);
	const struct doc *c = fake_wait(f, FRAME_COLLECTED);

	assert_int_equal(fake_int(c, "files"), 3);
	assert_int_equal(fake_int(c, "bytes"), 6);
	assert_non_null(strstr(fake_str(c, "error"), "not kept: model/link"));
	assert_null(doc_get(c, "kind")); /* that is no loss */
	char *a = path_join(f->dir, "kept/model/deep/a"), *log = path_join(f->dir, "kept/c.log"),
	     *link = path_join(f->dir, "kept/model/link");

	assert_string_equal(fake_file(f, a), "a\n");
	assert_false(file_exists(log));
	assert_false(file_exists(link));
	free(a);
	free(log);
	free(link);
	fake_release(f);
}

static void files_that_cannot_be_kept_are_lost(void **state)
{
	struct fake *f = *state;

	f->config = arena_printf(f->arena, ",\"output_dir\":\"%s/file/kept\"", f->dir);
	fake_agent(f);
	fake_meet(f);
	fake_send(f, FRAME_INPUTS, "{\"argv0\":\"sh\",\"path\":\"/bin\",\"keep\":[\"a\"]}");
	fake_wait(f, FRAME_READY);
	fake_start(f, "echo a > a; rm -r $DIR/file; echo in the way > $DIR/file");
	fake_wait(f, FRAME_EXIT);
	const struct doc *c = fake_wait(f, FRAME_COLLECTED);

	assert_true(fake_str(c, "error")[0] && fake_str(c, "kind")[0]);
	fake_release(f);
}

static void a_hostfile_is_beside_the_work_directory(void **state)
{
	struct fake *f = *state;

	fake_ready(f);
	fake_start_with(f, "cat ../hostfile", ",\"hostfile\":\"127.0.0.1 slots=1\\n\"");
	fake_end(f);
	assert_string_equal(f->out[STREAM_OUT].p, "127.0.0.1 slots=1\n");
}

static void a_machinefile_is_beside_the_hostfile(void **state)
{
	struct fake *f = *state;

	fake_ready(f);
	fake_start_with(f, "cat ../hostfile ../machinefile",
			",\"hostfile\":\"h slots=1\\n\",\"machinefile\":\"h:1\\n\"");
	fake_end(f);
	assert_string_equal(f->out[STREAM_OUT].p, "h slots=1\nh:1\n");
}

#define TABLE_HEAD(first)                                                                          \
	"{\"first\":" #first                                                                       \
	",\"total\":3,\"roles\":[{\"name\":\"t\",\"first\":0,\"count\":2,\"counted\":true},{\"name\":\"ps\",\"first\":2,\"count\":1,\"port\":5}],\"addresses\":"

static void templates_are_expanded_with_the_table_that_came_in_parts(void **state)
{
	struct fake *f = *state;

	f->env =
		",\"R\":\"{rank} {name} {attempt} {interface}\",\"L\":\"{list:*|,|{name}={address}{:port}}\",\"OUT\":\"{output}\",\"Q\":\"{{x}\"";
	fake_ready(f);
	fake_send(f, FRAME_MEMBERS, TABLE_HEAD(0) "\"10.0.0.1 -\"}");
	fake_send(f, FRAME_MEMBERS, TABLE_HEAD(2) "\"10.0.0.3\"}");
	fake_start_with(
		f, "echo \"$R|$L|${OUT##*/}|$Q\"; cat ../hostfile",
		",\"rank\":1,\"interface\":\"eth7\",\"hostfile\":\"{list:+||{address} slots=1\\n}\"");
	fake_end(f);
	assert_string_equal(
		f->out[STREAM_OUT].p,
		"1 t-1 1 eth7|t-0=10.0.0.1,t-1=t-1,ps-0=10.0.0.3:5|output|{x}\n10.0.0.1 slots=1\nt-1 slots=1\n");
	fake_release(f);
}

static void nodes_are_called_as_the_table_names_them(void **state)
{
	struct fake *f = *state;

	f->env = ",\"R\":\"{rank} {name}\",\"L\":\"{list:*|,|{name}={address}}\"";
	fake_ready(f);
	fake_send(f, FRAME_MEMBERS, TABLE_HEAD(0) "\"10.0.0.1 -\",\"names\":\"t-1 t-0\"}");
	fake_send(f, FRAME_MEMBERS, TABLE_HEAD(2) "\"10.0.0.3\",\"names\":\"ps-0\"}");
	fake_start_with(f, "echo \"$R|$L\"", ",\"rank\":1");
	fake_end(f);
	assert_string_equal(f->out[STREAM_OUT].p, "1 t-0|t-1=10.0.0.1,t-0=t-0,ps-0=10.0.0.3\n");
	fake_release(f);
}

static void a_value_too_long_for_an_exec_is_in_a_file(void **state)
{
	struct fake *f = *state;
	CLEANUP(freep) char *item = xcalloc(1, 60001);
	CLEANUP(freep) char *env = NULL;

	memset(item, 'x', 60000);
	env = xasprintf(",\"LONG\":\"{list:*|,|%s}\",\"SHORT\":\"{list:*|,|y}\"", item);
	f->env = env;
	fake_ready(f);
	fake_send(f, FRAME_MEMBERS, TABLE_HEAD(0) "\"10.0.0.1 - -\"}");
	fake_start_with(f, "echo ${LONG-unset} ${SHORT_FILE-unset} $SHORT; wc -c < $LONG_FILE",
			",\"rank\":0");
	fake_end(f);
	assert_string_equal(f->out[STREAM_OUT].p, "unset unset y,y,y\n180002\n");
	fake_release(f);
}

/* Nothing is started with half of a table. */
static void a_start_without_its_table_is_refused(void **state)
{
	static const char *const tables[][2] = {
		{NULL, NULL},
		{TABLE_HEAD(0) "\"10.0.0.1 -\"}", NULL},
		{TABLE_HEAD(0) "\"10.0.0.1 -\"}", TABLE_HEAD(1) "\"10.0.0.1\"}"},
		{TABLE_HEAD(2) "\"10.0.0.1\"}", NULL},
		{TABLE_HEAD(0) "\"10.0.0.1 - - -\"}", NULL},
		{TABLE_HEAD(0) "\"10.0.0.1 - -\",\"names\":\"t-0 t-1\"}", NULL},
		{TABLE_HEAD(0) "\"10.0.0.1 - -\",\"names\":\"t-0 t-1 ps-0 x\"}", NULL},
		{TABLE_HEAD(0) "\"10.0.0.1 -\",\"names\":\"t-0 t-1\"}", TABLE_HEAD(2) "\"-\"}"},
	};
	struct fake *f = *state;

	fake_ready(f);
	for (size_t i = 0; i < COUNT(tables); i++) {
		for (int k = 0; k < 2 && tables[i][k]; k++)
			fake_send(f, FRAME_MEMBERS, tables[i][k]);
		fake_send(
			f, FRAME_START,
			"{\"attempt\":1,\"rank\":0,\"argv\":[\"true\"],\"env\":{},\"grace_ms\":1}");
		fake_wait_close(f);
		fake_hang_up(f);
		const struct doc *h = fake_meet(f);
		assert_string_equal(fake_str(h, "holds"), "nothing");
	}
}

static void the_jobs_umask_is_022_whatever_ours_is(void **state)
{
	struct fake *f = *state;
	mode_t before = umask(077);

	fake_ready(f);
	umask(before);
	fake_start(f, "umask");
	fake_end(f);
	assert_string_equal(f->out[STREAM_OUT].p, "0022\n");
}

/* Also not 32 and 33, which libc keeps for itself: posix_spawn leaves them ignored. */
static void the_job_has_no_ignored_signals(void **state)
{
	struct fake *f = *state;

	fake_ready(f);
	fake_start(f, "exec grep SigIgn: /proc/self/status");
	fake_end(f);
	assert_string_equal(f->out[STREAM_OUT].p, "SigIgn:\t0000000000000000\n");
}

static void the_job_has_no_blocked_signals(void **state)
{
	struct fake *f = *state;

	fake_ready(f);
	fake_start(f, "exec grep SigBlk: /proc/self/status");
	fake_end(f);
	assert_string_equal(f->out[STREAM_OUT].p, "SigBlk:\t0000000000000000\n");
}

int main(int argc, char **argv)
{
	static const struct CMUnitTest tests[] = {
#define CASE(fn) cmocka_unit_test_setup_teardown(fn, fake_setup, fake_teardown)
		CASE(a_node_introduces_itself_with_what_it_holds),
		CASE(a_job_that_succeeds_is_reported_with_its_output),
		CASE(exit_codes_and_signals_are_the_jobs_own),
		CASE(a_signal_that_killed_the_job_is_named),
		CASE(binary_output_comes_through_byte_for_byte),
		CASE(output_in_single_bytes_is_gathered_and_whole),
		CASE(eight_megabytes_without_a_newline_are_no_problem),
		CASE(a_job_that_closes_its_output_runs_on),
		CASE(nobody_on_the_other_side_sends_nothing_beyond_the_window),
		CASE(a_second_start_of_the_same_attempt_is_answered_but_not_executed),
		CASE(a_second_start_while_the_job_runs_is_answered_with_the_same_process),
		CASE(another_attempt_while_the_job_runs_is_refused),
		CASE(an_attempt_older_than_the_last_is_never_executed),
		CASE(the_environment_is_what_the_master_sent_and_little_more),
		CASE(a_command_that_does_not_exist_is_127_and_says_so),
		CASE(a_directory_that_does_not_exist_is_named),
		CASE(a_script_without_a_first_line_is_run_by_the_shell),
		CASE(a_missing_interpreter_is_not_a_missing_command),
		CASE(an_environment_that_is_too_long_is_said_in_plain_words),
		CASE(samples_are_found_once_and_with_their_steps),
		CASE(samples_come_while_the_job_runs),
		CASE(a_port_that_answers_is_announced),
		CASE(the_machine_and_the_job_are_sampled),
		CASE(what_is_to_be_kept_is_collected),
		CASE(files_that_cannot_be_kept_are_lost),
		CASE(a_hostfile_is_beside_the_work_directory),
		CASE(a_machinefile_is_beside_the_hostfile),
		CASE(templates_are_expanded_with_the_table_that_came_in_parts),
		CASE(nodes_are_called_as_the_table_names_them),
		CASE(a_value_too_long_for_an_exec_is_in_a_file),
		CASE(the_jobs_umask_is_022_whatever_ours_is),
		CASE(the_job_has_no_ignored_signals),
		CASE(the_job_has_no_blocked_signals),
		CASE(a_start_without_its_table_is_refused),
	};
	int role = fake_role(argc, argv);

	if (role >= 0)
		return role;
	return cmocka_run_group_tests_name("agent: job runs", tests, NULL, NULL);
}
