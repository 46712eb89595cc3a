/* regatta run stays with its run through everything, and ends as the run ends. */
#include "unit.h"

#include <signal.h>
#include <string.h>
#include <sys/stat.h>

#include "base/cleanup.h"
#include "cli/drive.h"
#include "cli/fake_master.h"

#define NODE(name, out, err)                                                                       \
	"{\"name\":\"" name "\",\"state\":\"running\",\"log_bytes\":" out ",\"err_bytes\":" err    \
	",\"metrics\":{\"loss\":0.5}}"
#define OBJECT(state, verdict, code, rest)                                                         \
	"{\"id\":\"job-abcd\",\"state\":\"" state "\",\"verdict\":" verdict ",\"exit_code\":" code \
	",\"elapsed_ms\":12,\"dir\":\"/runs/"                                                      \
	"job-abcd\",\"strategy\":\"single\",\"engine\":\"local\",\"counts\":{"                     \
	"\"nodes\":2,\"running\":2},\"nodes\":[" NODE("job-0", "0", "0") "," NODE(                 \
		"job-1", "0", "0") "]" rest "}"
#define POSTED "POST /api/v1/runs {\"request_id\":\""
#define ACCEPTED OBJECT("accepted", "null", "null", "")
#define RUNNING OBJECT("running", "null", "null", "")
#define SUCCEEDED                                                                                  \
	OBJECT("succeeded", "\"succeeded\"", "0", ",\"metrics\":{\"loss\":{\"last\":0.25}}")
#define FAILED                                                                                     \
	OBJECT("failed", "\"failed\"", "1",                                                        \
	       ",\"cause\":\"job-1 exited with code "                                              \
	       "3\",\"tail\":{\"node\":\"job-1\",\"lines\":[\"boom \\u001b[2J\"]}")
#define CANCELLED OBJECT("cancelled", "\"cancelled\"", "7", ",\"cause\":\"cancelled by the user\"")

static void put_good_run(void **state)
{
	home_put(state, "watch.jsonl", ACCEPTED "\n" RUNNING "\n" SUCCEEDED "\n");
	home_put(
		state, "metrics.json",
		"{\"metrics\":{\"loss\":{\"all\":{\"last\":0.25},\"nodes\":{\"job-0\":{\"last\":0.25},\"job-1\":{\"last\":0.125}}}}}");
}

static void a_run_ends_with_a_summary_and_its_exit_code(void **state)
{
	put_good_run(state);
	struct ran r = DRIVE(state, "run", "-n", "2", "--", "true");
	assert_int_equal(r.code, 0);
	assert_has(&r.out, "job-abcd succeeded after 12 ms (single on local, 2 nodes)\n");
	assert_has(&r.out, "0.125");
	ran_release(&r);
	home_put(state, "watch.jsonl", RUNNING "\n" FAILED "\n");
	r = DRIVE(state, "run", "--", "false");
	assert_int_equal(r.code, 1);
	assert_has(&r.out, "job-abcd failed");
	assert_has(&r.out, "cause   job-1 exited with code 3\n");
	assert_has(&r.out, "  | boom \\x1b[2J\n");
	ran_release(&r);
}

static void facts_and_credentials_go_with_the_job_where_the_client_finds_them(void **state)
{
	put_good_run(state);
	struct ran r = DRIVE(state, "run", "--set", "engine=aws.ec2", "--", "true");
	assert_int_equal(r.code, 0);
	ran_release(&r);
	CLEANUP(freep) char *log = home_get(state, "requests.log");
	assert_non_null(strstr(log, ",\"facts\":{\"account\":\"1\"},"
				    "\"credentials\":{\"access_key\":\"AK\"}}"));

	home_put(state, "own.csv", "type,usd_per_hour\nt3.micro,0.5\n");
	r = DRIVE(state, "run", "--prices", unit_path(state, "own.csv"), "--set", "engine=aws.ec2",
		  "--", "true");
	assert_int_equal(r.code, 0);
	ran_release(&r);
	CLEANUP(freep) char *priced = home_get(state, "requests.log");
	assert_non_null(
		strstr(priced, "\"prices\":{\"t3.micro\":500000},\"prices_as_of\":\"own.csv\"}"));

	r = DRIVE(state, "run", "--set", "engine=aws.ec2", "--set", "aws.profile=nobody", "--",
		  "true");
	assert_int_equal(r.code, 4);
	assert_has(&r.err, "there are no credentials");
	ran_release(&r);
}

static void an_engine_with_other_credentials_gets_those_of_the_store_beside_them(void **state)
{
	put_good_run(state);
	struct ran r =
		DRIVE(state, "run", "--set", "engine=kubernetes", "--set", "kubernetes.image=i",
		      "--set", "master=here", "--set", "output.s3=s3://mine/", "--", "true");

	assert_int_equal(r.code, 0);
	ran_release(&r);
	CLEANUP(freep) char *log = home_get(state, "requests.log");
	assert_non_null(strstr(log, ",\"credentials\":{\"access_key\":\"AK\","
				    "\"store\":{\"access_key\":\"SK\"}}}"));
	r = DRIVE(state, "run", "--set", "engine=kubernetes", "--set", "kubernetes.image=i",
		  "--set", "master=here", "--set", "output.s3=s3://theirs/", "--", "true");
	assert_int_equal(r.code, 4);
	assert_has(&r.err, "output.s3: no credentials");
	ran_release(&r);
}

static void the_bucket_for_results_is_looked_at_before_the_job_is_sent(void **state)
{
	put_good_run(state);
	struct ran r = DRIVE(state, "run", "--set", "output.s3=s3://mine/gone/", "--", "true");

	assert_int_equal(r.code, 3);
	assert_has(&r.err, "output.s3: there is no such bucket");
	ran_release(&r);
	CLEANUP(freep) char *log = home_get(state, "requests.log");
	assert_null(strstr(log, "POST /api/v1/runs"));
	/* The master may reach it. */
	r = DRIVE(state, "run", "--set", "output.s3=s3://mine/far/", "--", "true");
	assert_int_equal(r.code, 0);
	assert_has(&r.err, "warning: output.s3 could not be looked at: nobody answers");
	ran_release(&r);
}

static void the_objects_of_an_input_are_listed_before_the_job_is_sent(void **state)
{
	put_good_run(state);
	struct ran r = DRIVE(state, "run", "--set", "source=https://h/x.tar", "--", "true");

	assert_int_equal(r.code, 0);
	ran_release(&r);
	CLEANUP(freep) char *log = home_get(state, "requests.log");
	assert_non_null(strstr(log, "PUT /api/v1/blobs/"));
	assert_non_null(
		strstr(log, ",\"data\":[{\"from\":\"https://h/x.tar\",\"objects\":1,\"bytes\":30,"
			    "\"list\":\""));
	r = DRIVE(state, "run", "--set", "source=s3://none/x", "--", "true");
	assert_int_equal(r.code, 3);
	assert_has(&r.err, "source 's3://none/x': there is no such object");
	ran_release(&r);
	/* The master could not sign URLs. */
	r = DRIVE(state, "run", "--set", "source=s3://b/x", "--", "true");
	assert_int_equal(r.code, 4);
	assert_has(&r.err, "s3://b/x: no credentials");
	ran_release(&r);
}

static void what_is_not_one_object_is_not_unpacked_nor_sharded(void **state)
{
	static const struct {
		const char *more, *says;
	} bad[] = {
		{"unpack = true\n", "unpack: it is more than one object"},
		{"shard = true\n", "one object cannot be sharded"},
	};

	for (size_t i = 0; i < 2; i++) {
		CLEANUP(freep)
		char *text =
			xasprintf("command = 'x'\n[[data]]\nsrc = 's3://b/x'\n%s", bad[i].more);

		home_put(state, "job.toml", text);
		struct ran r = DRIVE(state, "run", unit_path(state, "job.toml"));
		assert_int_equal(r.code, 2);
		assert_has(&r.err, bad[i].says);
		ran_release(&r);
	}
}

/* What changed of a run, after the run. */
static void a_run_is_its_last_object_and_what_changed_since(void **state)
{
	home_put(
		state, "watch.jsonl",
		RUNNING
		"\n{\"delta\":true,\"state\":\"collecting\",\"nodes\":[]}\n"
		"{\"delta\":true,\"state\":\"succeeded\",\"verdict\":\"succeeded\",\"exit_code\":0,\"elapsed_ms\":13,\"nodes\":[{\"name\":\"job-1\",\"rank\":1,\"state\":\"released\",\"metrics\":{}},{\"rank\":2},{\"rank\":-1}]}\n");
	struct ran r = DRIVE(state, "run", "--output", "json", "--", "true");
	assert_int_equal(r.code, 0);
	assert_has(
		&r.out,
		"\"state\":\"succeeded\",\"verdict\":\"succeeded\",\"exit_code\":0,\"elapsed_ms\":13,");
	assert_has(&r.out, "{\"name\":\"job-0\",\"state\":\"running\",");
	assert_has(&r.out,
		   "{\"name\":\"job-1\",\"rank\":1,\"state\":\"released\",\"metrics\":{}}]");
	assert_null(strstr(r.out.p, "delta"));
	assert_has(&r.err, "job-abcd: collecting");
	ran_release(&r);
}

static void json_is_the_object_as_it_came(void **state)
{
	put_good_run(state);
	struct ran r = DRIVE(state, "run", "--output", "json", "--", "true");
	assert_int_equal(r.code, 0);
	assert_string_equal(r.out.p, SUCCEEDED "\n");
	ran_release(&r);
}

static void detached_prints_the_id_and_leaves(void **state)
{
	home_put(state, "watch.jsonl", ACCEPTED "\n");
	struct ran r = DRIVE(state, "run", "-d", "--", "true");
	assert_int_equal(r.code, 0);
	assert_string_equal(r.out.p, "job-abcd\n");
	ran_release(&r);
	r = DRIVE(state, "run", "-d", "--output", "json", "--", "true");
	assert_string_equal(r.out.p, ACCEPTED "\n");
	ran_release(&r);
	assert_int_equal(home_count(state, "requests.log", "/watch"), 0);
}

static void the_request_carries_the_job_and_the_environment(void **state)
{
	put_good_run(state);
	setenv("LC_NAME", "ann", 1);
	setenv("SECRET_TOKEN", "hunter2", 1);
	setenv("CUDA_PATH", "\xff", 1); /* no text: left out */
	struct ran r = DRIVE(state, "run", "-d", "--name", "demo", "-n", "2", "--set",
			     "env.A=\"b\"", "--", "true", "x y");
	unsetenv("LC_NAME");
	unsetenv("CUDA_PATH");
	assert_int_equal(r.code, 0);
	ran_release(&r);
	CLEANUP(freep) char *log = home_get(state, "requests.log");
	const char *post = strstr(log, POSTED);
	assert_non_null(post);
	assert_int_equal(strspn(post + strlen(POSTED), "0123456789abcdef"), 32);
	assert_non_null(strstr(post, "\"command\":[\"true\",\"x y\"]"));
	assert_non_null(strstr(post, "\"name\":\"demo\""));
	assert_non_null(strstr(post, "\"count\":2"));
	assert_non_null(strstr(post, "\"env\":{\"A\":\"b\"}"));
	assert_non_null(strstr(post, "\"LC_NAME\":\"ann\""));
	assert_non_null(strstr(post, "\"PATH\":"));
	assert_null(strstr(post, "hunter2"));
	assert_null(strstr(post, "CUDA_PATH"));
	assert_null(strstr(post, "source_sha256"));
}

static void bad_jobs_are_refused_before_the_master_is_asked(void **state)
{
	home_put(state, "bad.toml", "comand = \"x\"\n");
	struct ran r = DRIVE(state, "run", unit_path(state, "bad.toml"));
	assert_int_equal(r.code, 2);
	assert_has(&r.err, "bad.toml:1:1: ");
	ran_release(&r);
	r = DRIVE(state, "run", "-d", "-f", "--", "true");
	assert_int_equal(r.code, 2);
	assert_has(&r.err, "--detach and --follow exclude each other");
	ran_release(&r);
	r = DRIVE(state, "run", "--parallel", "2", "--", "true");
	assert_int_equal(r.code, 2);
	assert_has(&r.err, "--parallel goes with --repeat");
	ran_release(&r);
	assert_false(file_exists(unit_path(state, "master.log")));
}

static void problems_that_the_master_finds_are_all_printed(void **state)
{
	home_put(state, "refuse.json",
		 "{\"error\":{\"kind\":\"invalid\",\"message\":\"the job has 2 "
		 "problems\",\"details\":[\"job:1:1: one\",\"job:2:2: two \\u001b[2J\",7]}}");
	struct ran r = DRIVE(state, "run", "--", "true");
	assert_int_equal(r.code, 2);
	assert_string_equal(
		r.err.p, "regatta: the job has 2 problems\njob:1:1: one\njob:2:2: two \\x1b[2J\n");
	ran_release(&r);
	home_put(state, "refuse.json", "<html>");
	r = DRIVE(state, "run", "--", "true");
	assert_int_equal(r.code, 2);
	assert_has(&r.err, "the master answered with status 400");
	ran_release(&r);
}

static void the_source_is_uploaded_once(void **state)
{
	put_good_run(state);
	home_put(state, "train.py", "print(1)\n");
	home_put(state, "src.toml", "command = [\"true\"]\nsource = \"train.py\"\n");
	for (int i = 0; i < 2; i++) {
		struct ran r = DRIVE(state, "run", "-d", unit_path(state, "src.toml"));
		if (r.code != 0)
			fail_msg("%s", r.err.p);
		ran_release(&r);
	}
	assert_int_equal(home_count(state, "requests.log", "HEAD /api/v1/blobs/"), 2);
	assert_int_equal(home_count(state, "requests.log", "PUT /api/v1/blobs/"), 1);
	assert_int_equal(home_count(state, "requests.log", "\"source_sha256\":\""), 2);
	/* A blob that was cleaned away meanwhile is sent again. */
	home_put(state, "fault-no-blob", "x");
	struct ran r = DRIVE(state, "run", "-d", unit_path(state, "src.toml"));
	assert_int_equal(r.code, 0);
	ran_release(&r);
	home_put(state, "fault-no-blob", "xx");
	r = DRIVE(state, "run", "-d", unit_path(state, "src.toml"));
	assert_int_equal(r.code, 3);
	assert_has(&r.err, "the archive was not uploaded");
	ran_release(&r);
}

static void a_source_that_cannot_be_read_is_one_clear_line(void **state)
{
	home_put(state, "src.toml", "command = [\"true\"]\nsource = \"none.py\"\n");
	struct ran r = DRIVE(state, "run", unit_path(state, "src.toml"));
	assert_int_equal(r.code, 3);
	assert_has(&r.err, "regatta: source '");
	assert_has(&r.err, "none.py'");
	ran_release(&r);
	home_put(state, "http.toml", "command = [\"true\"]\nsource = \"http://host/x\"\n");
	r = DRIVE(state, "run", unit_path(state, "http.toml"));
	assert_int_equal(r.code, 2);
	assert_has(&r.err, "source");
	ran_release(&r);
	assert_int_equal(mkdir(unit_path(state, "tree"), 0700), 0);
	assert_int_equal(symlink("/etc", unit_path(state, "tree/link")), 0);
	home_put(state, "tree.toml", "command = [\"true\"]\nsource = \"tree\"\n");
	r = DRIVE(state, "run", unit_path(state, "tree.toml"));
	assert_true(r.code >= 2 && r.code <= 4);
	assert_has(&r.err, "pack source 'tree'");
	ran_release(&r);
	assert_int_equal(home_count(state, "requests.log", "POST"), 0);
}

/* The same request id, so that the run is the same. */
static void one_request(void **state, int times)
{
	CLEANUP(freep) char *log = home_get(state, "requests.log");
	char id[33] = "";
	int n = 0;

	for (const char *p = log; (p = strstr(p, POSTED)); p += strlen(POSTED)) {
		if (n++ == 0)
			memcpy(id, p + strlen(POSTED), 32);
		assert_memory_equal(p + strlen(POSTED), id, 32);
	}
	assert_int_equal(n, times);
}

static void a_master_that_dies_in_the_submission_is_replaced(void **state)
{
	put_good_run(state);
	home_put(state, "fault-die-submit", "xx");
	struct ran r = DRIVE(state, "run", "--", "true");
	assert_int_equal(r.code, 0);
	ran_release(&r);
	one_request(state, 3);
}

static void a_master_that_is_leaving_is_replaced(void **state)
{
	put_good_run(state);
	home_put(state, "fault-busy", "xxx");
	struct ran r = DRIVE(state, "run", "--", "true");
	assert_int_equal(r.code, 0);
	ran_release(&r);
	one_request(state, 4);
}

static void a_master_that_dies_in_the_watch_is_replaced(void **state)
{
	put_good_run(state);
	home_put(state, "fault-die-watch", "xxx");
	struct ran r = DRIVE(state, "run", "--", "true");
	assert_int_equal(r.code, 0);
	assert_has(&r.out, "job-abcd succeeded");
	ran_release(&r);
	assert_true(home_count(state, "requests.log", "/watch") >= 4);
	one_request(state, 1);
}

static void a_stream_that_ends_before_the_run_is_opened_again(void **state)
{
	put_good_run(state);
	home_put(state, "fault-end-watch", "xx");
	struct ran r = DRIVE(state, "run", "--", "true");
	assert_int_equal(r.code, 0);
	ran_release(&r);
	assert_int_equal(home_count(state, "requests.log", "/watch"), 3);
}

static void answers_that_make_no_sense_are_errors(void **state)
{
	put_good_run(state);
	home_put(state, "fault-noid", "x");
	struct ran r = DRIVE(state, "run", "--", "true");
	assert_int_equal(r.code, 8);
	assert_has(&r.err, "no run id");
	ran_release(&r);
	home_put(state, "run.json", ACCEPTED);
	home_put(state, "watch.jsonl", "nonsense\n");
	r = DRIVE(state, "run", "--", "true");
	assert_int_equal(r.code, 8);
	assert_has(&r.err, "watch job-abcd: not JSON");
	ran_release(&r);
}

static void a_master_that_cannot_come_back_at_once_is_tried_again(void **state)
{
	home_put(state, "watch.jsonl", RUNNING "\n");
	home_put(state, "cancelled.json", CANCELLED "\n");
	struct driven d = DRIVE_BEGIN(state, "run", "--", "true");
	home_await(state, "requests.log", "/watch", 1);
	put_good_run(state);
	unlink(unit_path(state, "cancelled.json"));
	home_put(state, "fault-start", "xxx");
	CLEANUP(freep) char *pid = home_get(state, "lock");
	int64_t number = 0;
	assert_true(str_to_i64(str_trim(str_from(pid)), &number));
	assert_int_equal(kill((pid_t)number, SIGKILL), 0);
	struct ran r = drive_end(d);
	assert_int_equal(r.code, 0);
	assert_has(&r.err, "the master is gone: starting it again; the run goes on");
	assert_has(&r.out, "job-abcd succeeded");
	ran_release(&r);
	assert_int_equal(home_count(state, "master.log", "version 99"), 3);
}

static void a_run_that_vanishes_is_not_found(void **state)
{
	home_put(state, "run.json", "{\"id\":\"nothing\",\"state\":\"accepted\"}");
	static const char *const ways[][6] = {{"run", "--", "true"},
					      {"run", "--repeat", "2", "--", "true"}};
	for (size_t i = 0; i < COUNT(ways); i++) {
		struct ran r = drive(state, ways[i]);
		assert_int_equal(r.code, 3);
		assert_has(&r.err, "regatta: no run 'nothing'\n");
		ran_release(&r);
	}
	home_put(state, "run.json", "{}");
	struct ran r = DRIVE(state, "run", "--repeat", "2", "--", "true");
	assert_int_equal(r.code, 8);
	assert_has(&r.err, "no run id");
	ran_release(&r);
}

static void output_that_cannot_be_written_does_not_stop_the_run(void **state)
{
	put_good_run(state);
	home_put(state, "job-0.out", "text\n");
	setenv("TEST_STDOUT", "/dev/full", 1);
	struct ran r = DRIVE(state, "run", "-f", "--", "true");
	assert_int_equal(r.code, 0);
	assert_has(&r.err, "write the job's output");
	assert_has(&r.err, "job-abcd succeeded");
	ran_release(&r);
	r = DRIVE(state, "run", "--", "true");
	assert_int_equal(r.code, 5);
	assert_has(&r.err, "write the result");
	ran_release(&r);
	r = DRIVE(state, "run", "--repeat", "3", "--", "true");
	unsetenv("TEST_STDOUT");
	assert_int_equal(r.code, 8);
	assert_has(&r.err, "write the result");
	ran_release(&r);
	assert_int_equal(home_count(state, "requests.log", "POST /api/v1/runs "), 5);
}

static void a_log_that_is_refused_does_not_stop_the_run(void **state)
{
	home_put(
		state, "watch.jsonl",
		"{\"id\":\"job-abcd\",\"state\":\"succeeded\",\"exit_code\":0,\"metrics\":{\"m\":{}},\"nodes\":[{\"name\":\"ghost-0\"}]}\n");
	home_put(state, "metrics.json", "nonsense"); /* nor do metrics that cannot be read */
	struct ran r = DRIVE(state, "run", "-f", "--", "true");
	assert_int_equal(r.code, 0);
	assert_has(&r.err, "log of ghost-0: no such node");
	assert_has(&r.err, "job-abcd succeeded");
	ran_release(&r);
}

static void interrupts_cancel_then_hurry_then_leave(void **state)
{
	home_put(state, "watch.jsonl", RUNNING "\n");
	home_put(state, "cancelled.json", CANCELLED "\n");
	struct driven d = DRIVE_BEGIN(state, "run", "--", "sleep", "9");
	drive_await(d, "regatta: job-abcd: running\n");
	kill(d.pid, SIGWINCH); /* another size of the terminal is no interrupt */
	kill(d.pid, SIGINT);
	struct ran r = drive_end(d);
	assert_int_equal(r.code, 7);
	assert_has(&r.err, "cancelling: SIGTERM to the job");
	assert_has(&r.out, "job-abcd cancelled");
	ran_release(&r);
	assert_int_equal(home_count(state, "requests.log", "/cancel {\"hurry\":false}"), 1);

	home_put(state, "cancelled.json", RUNNING "\n"); /* does not end by the cancel */
	home_put(state, "watch.jsonl", RUNNING "\n");
	d = DRIVE_BEGIN(state, "run", "--", "sleep", "9");
	home_await(state, "requests.log", "/watch", 2);
	kill(d.pid, SIGTERM);
	home_await(state, "requests.log", "/cancel {\"hurry\":false}", 2);
	kill(d.pid, SIGINT);
	home_await(state, "requests.log", "/cancel {\"hurry\":true}", 1);
	kill(d.pid, SIGINT);
	r = drive_end(d);
	assert_int_equal(r.code, 7);
	assert_has(&r.err, "killing what is left");
	assert_has(&r.err, "left while job-abcd is being cancelled");
	ran_release(&r);
}

static void a_lost_terminal_leaves_the_run_alone(void **state)
{
	home_put(state, "watch.jsonl", RUNNING "\n");
	home_put(state, "cancelled.json", CANCELLED "\n");
	struct driven d = DRIVE_BEGIN(state, "run", "--", "sleep", "9");
	home_await(state, "requests.log", "/watch", 1);
	kill(d.pid, SIGHUP);
	struct ran r = drive_end(d);
	assert_int_equal(r.code, 0);
	assert_has(&r.err, "job-abcd goes on without this terminal");
	ran_release(&r);
	assert_int_equal(home_count(state, "requests.log", "/cancel"), 0);
}

static void signals_that_the_caller_ignores_stay_ignored(void **state)
{
	home_put(state, "watch.jsonl", RUNNING "\n");
	home_put(state, "cancelled.json", CANCELLED "\n");
	signal(SIGHUP, SIG_IGN);
	struct driven d = DRIVE_BEGIN(state, "run", "--", "sleep", "9");
	signal(SIGHUP, SIG_DFL);
	home_await(state, "requests.log", "/watch", 1);
	kill(d.pid, SIGHUP);
	kill(d.pid, SIGINT);
	struct ran r = drive_end(d);
	assert_int_equal(r.code, 7);
	ran_release(&r);
}

static void follow_prints_every_line_of_every_node(void **state)
{
	put_good_run(state);
	home_put(state, "job-0.out", "one\ntwo \x1b[2J\nlast without newline");
	home_put(state, "job-1.out", "uno\n");
	home_put(state, "job-1.err", "oops\n");
	home_put(state, "fault-die-log", "xx");
	struct ran r = DRIVE(state, "run", "-f", "--", "true");
	assert_int_equal(r.code, 0);
	assert_has(&r.out, "job-0 | one\n");
	assert_has(&r.out, "job-0 | two \x1b[2J\n");
	assert_has(&r.out, "job-0 | last without newline\n");
	assert_has(&r.out, "job-1 | uno\n");
	assert_has(&r.err, "job-1 | oops\n");
	assert_has(&r.err, "job-abcd succeeded");
	assert_has_not(&r.out, "succeeded");
	ran_release(&r);
	r = DRIVE(state, "run", "-f", "--output", "json", "--", "true");
	assert_int_equal(r.code, 0);
	assert_string_equal(r.out.p, SUCCEEDED "\n");
	assert_has(&r.err, "job-1 | uno\n");
	ran_release(&r);
}

static void the_live_view_shows_and_vanishes(void **state)
{
	put_good_run(state);
	home_put(state, "job-0.out", "step 5/10\n");
	struct ran r = DRIVE_TTY(state, 60, 20, "run", "--", "true");
	assert_int_equal(r.code, 0);
	assert_has(&r.out, "job-abcd");
	assert_has(&r.out, "\x1b[J");
	assert_has(&r.out, "succeeded\x1b[0m after 12 ms");
	assert_has(&r.out, "METRIC");
	ran_release(&r);
	home_put(state, "job-0.out", "\x1b[2J\x1b]0;evil\a\n");
	r = DRIVE_TTY(state, 60, 20, "run", "-f", "--", "true");
	assert_int_equal(r.code, 0);
	assert_has(&r.out, "job-0 | \\x1b[2J\\x1b]0;evil\\x07\r\n");
	assert_has_not(&r.out, "\x1b[2J");
	ran_release(&r);
}

static void repeats_are_runs_of_their_own(void **state)
{
	put_good_run(state);
	struct ran r = DRIVE(state, "run", "--repeat", "20", "--parallel", "4", "--", "true");
	assert_int_equal(r.code, 0);
	assert_has(&r.out, "RUNS  SUCCEEDED  FAILED");
	assert_has(&r.out, "  20         20       0");
	assert_has(&r.out, "loss      20          0.25  0.25  0.25");
	ran_release(&r);
	assert_int_equal(home_count(state, "requests.log", "POST /api/v1/runs "), 20);
	r = DRIVE(state, "run", "--repeat", "2", "--output", "json", "--", "true");
	assert_string_equal(r.out.p, "[" SUCCEEDED ",\n " SUCCEEDED "]\n");
	ran_release(&r);
	home_put(state, "watch.jsonl", RUNNING "\n" FAILED "\n");
	home_put(state, "fault-die-watch", "x");
	r = DRIVE(state, "run", "--repeat", "3", "--", "false");
	assert_int_equal(r.code, 1);
	assert_has(&r.out, "job-abcd failed after 12 ms: job-1 exited with code 3\n");
	ran_release(&r);
}

#define TOOK(ms)                                                                                   \
	"{\"id\":\"job-abcd\",\"state\":\"succeeded\",\"exit_code\":0,\"elapsed_ms\":" ms "}\n"
static void the_median_of_two_lies_between_them(void **state)
{
	put_good_run(state);
	home_put(state, "watch-1.jsonl", TOOK("100"));
	home_put(state, "watch-2.jsonl", TOOK("300"));
	struct ran r = DRIVE(state, "run", "--repeat", "2", "--", "true");
	assert_int_equal(r.code, 0);
	assert_has(&r.out, "100 ms  200 ms  200 ms  300 ms");
	ran_release(&r);
}

static void interrupted_repeats_cancel_what_is_active(void **state)
{
	home_put(state, "watch.jsonl", RUNNING "\n");
	home_put(state, "cancelled.json", CANCELLED "\n");
	struct driven d =
		DRIVE_BEGIN(state, "run", "--repeat", "100", "--parallel", "3", "--", "sleep", "9");
	home_await(state, "requests.log", "/watch", 3);
	kill(d.pid, SIGINT);
	struct ran r = drive_end(d);
	assert_int_equal(r.code, 7);
	assert_has(&r.err, "cancelling the active runs");
	ran_release(&r);
	assert_int_equal(home_count(state, "requests.log", "POST /api/v1/runs "), 3);
	/* The first cancel ends them all here: the others may be over before they are asked. */
	assert_true(home_count(state, "requests.log", "/cancel") >= 1);

	home_put(state, "cancelled.json", RUNNING "\n");
	home_put(state, "requests.log", "");
	d = DRIVE_BEGIN(state, "run", "--repeat", "9", "--output", "json", "--", "sleep", "9");
	home_await(state, "requests.log", "/watch", 1);
	kill(d.pid, SIGHUP);
	r = drive_end(d);
	assert_int_equal(r.code, 0);
	assert_has(&r.err, "left: the active runs go on");
	assert_string_equal(r.out.p, "[]\n");
	ran_release(&r);
	assert_int_equal(home_count(state, "requests.log", "/cancel"), 0);
}

static void a_refused_repeat_ends_all(void **state)
{
	home_put(state, "refuse.json", "{\"error\":{\"kind\":\"capacity\",\"message\":\"full\"}}");
	struct ran r = DRIVE(state, "run", "--repeat", "50", "--parallel", "5", "--", "true");
	assert_int_equal(r.code, 5);
	assert_has(&r.err, "regatta: full\n");
	ran_release(&r);
	assert_true(home_count(state, "requests.log", "POST /api/v1/runs ") <= 5);
}

int main(int argc, char **argv)
{
#define T(fn) cmocka_unit_test_setup_teardown(fn, drive_setup, drive_teardown)
	const struct CMUnitTest tests[] = {
		T(a_run_ends_with_a_summary_and_its_exit_code),
		T(facts_and_credentials_go_with_the_job_where_the_client_finds_them),
		T(an_engine_with_other_credentials_gets_those_of_the_store_beside_them),
		T(the_bucket_for_results_is_looked_at_before_the_job_is_sent),
		T(the_objects_of_an_input_are_listed_before_the_job_is_sent),
		T(what_is_not_one_object_is_not_unpacked_nor_sharded),
		T(a_run_is_its_last_object_and_what_changed_since),
		T(json_is_the_object_as_it_came),
		T(detached_prints_the_id_and_leaves),
		T(the_request_carries_the_job_and_the_environment),
		T(bad_jobs_are_refused_before_the_master_is_asked),
		T(problems_that_the_master_finds_are_all_printed),
		T(the_source_is_uploaded_once),
		T(a_source_that_cannot_be_read_is_one_clear_line),
		T(a_master_that_dies_in_the_submission_is_replaced),
		T(a_master_that_is_leaving_is_replaced),
		T(a_master_that_dies_in_the_watch_is_replaced),
		T(a_stream_that_ends_before_the_run_is_opened_again),
		T(answers_that_make_no_sense_are_errors),
		T(a_master_that_cannot_come_back_at_once_is_tried_again),
		T(a_run_that_vanishes_is_not_found),
		T(output_that_cannot_be_written_does_not_stop_the_run),
		T(a_log_that_is_refused_does_not_stop_the_run),
		T(interrupts_cancel_then_hurry_then_leave),
		T(a_lost_terminal_leaves_the_run_alone),
		T(signals_that_the_caller_ignores_stay_ignored),
		T(follow_prints_every_line_of_every_node),
		T(the_live_view_shows_and_vanishes),
		T(repeats_are_runs_of_their_own),
		T(the_median_of_two_lies_between_them),
		T(interrupted_repeats_cancel_what_is_active),
		T(a_refused_repeat_ends_all),
	};
	int code;

	if (fake_role(argc, argv, &code))
		return code;
	return cmocka_run_group_tests_name("run", tests, NULL, NULL);
}
