/* The small commands: what they print, what they ask, how they refuse. */
#include "unit.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/cleanup.h"
#include "cli/drive.h"
#include "cli/fake_master.h"

#define RUN                                                                                        \
	"{\"id\":\"job-abcd\",\"state\":\"running\",\"exit_code\":null,\"elapsed_ms\":5,"          \
	"\"counts\":{\"nodes\":1,"                                                                 \
	"\"running\":1},\"nodes\":[{\"name\":\"job-0\",\"state\":\"running\",\"log_bytes\":3}],"   \
	"\"metrics\":{}}"
#define ENDED                                                                                      \
	"{\"id\":\"job-abcd\",\"state\":\"succeeded\",\"exit_code\":0,\"nodes\":[],\"metrics\":{}" \
	"}"

static void refused(void **state, int code, const char *message, const char *const *argv)
{
	struct ran r = drive(state, argv);

	assert_int_equal(r.code, code);
	assert_has(&r.err, message);
	assert_int_equal(r.out.n, 0);
	/* One line, or the details below it. */
	assert_true(r.err.n > 0 && r.err.p[r.err.n - 1] == '\n');
	ran_release(&r);
}
#define REFUSED(state, code, message, ...)                                                         \
	refused((state), (code), (message), (const char *const[]){__VA_ARGS__, NULL})

static void no_arguments_print_the_usage_on_stderr(void **state)
{
	struct ran r = drive(state, (const char *const[]){NULL});

	assert_int_equal(r.code, 2);
	assert_has(&r.err, "usage: regatta COMMAND");
	assert_int_equal(r.out.n, 0);
	ran_release(&r);
}

static void an_unknown_command_is_refused_with_the_nearest_one(void **state)
{
	REFUSED(state, 2, "regatta: unknown command 'statsu': did you mean 'status'?\n", "statsu");
	REFUSED(state, 2, "regatta: unknown command 'zzzzzzz': 'regatta --help' lists them\n",
		"zzzzzzz");
	REFUSED(state, 2, "regatta: unknown command '\\x1b[2J': 'regatta --help' lists them\n",
		"\x1b[2J");
	REFUSED(state, 2, "regatta: unknown option '--frob' before the command", "--frob", "ps");
	REFUSED(state, 2, "regatta: ps: unknown option '--al': did you mean '--all'?\n", "ps",
		"--al");
}

static void words_of_other_tools_get_a_hint(void **state)
{
	static const char *const cases[][2] = {{"cancel", "kill"}, {"stop", "kill"},
					       {"list", "ps"},	   {"rm", "cleanup"},
					       {"start", "run"},   {"wait", "logs RUN -f"}};
	char want[128];

	for (size_t i = 0; i < COUNT(cases); i++) {
		snprintf(want, sizeof(want), "unknown command '%s': did you mean '%s'?\n",
			 cases[i][0], cases[i][1]);
		REFUSED(state, 2, want, cases[i][0]);
	}
	REFUSED(state, 2, "no command 'cancel' to help with: did you mean 'kill'?", "help",
		"cancel");
}

static void help_and_version_need_nothing(void **state)
{
	static const char *const ways[][3] = {{"--help"}, {"-h"}, {"help"}};

	for (size_t i = 0; i < COUNT(ways); i++) {
		struct ran r = drive(state, ways[i]);
		assert_int_equal(r.code, 0);
		assert_has(&r.out, "usage: regatta COMMAND");
		ran_release(&r);
	}
	struct ran r = DRIVE(state, "help", "run");
	assert_has(&r.out, "usage: regatta run [FILE]");
	ran_release(&r);
	r = DRIVE(state, "run", "--help");
	assert_has(&r.out, "usage: regatta run [FILE]");
	ran_release(&r);
	r = DRIVE(state, "help", "--man");
	assert_has(&r.out, ".TH REGATTA 1");
	ran_release(&r);
	r = DRIVE(state, "help", "--output", "json");
	assert_has(&r.out, "{\"help\":\"Regatta ");
	ran_release(&r);
	r = DRIVE(state, "run", "--help", "--output", "json");
	assert_has(&r.out, "{\"help\":\"usage: regatta run ");
	ran_release(&r);
	r = DRIVE(state, "--version");
	assert_string_equal(r.out.p, "regatta " REGATTA_VERSION "\n");
	ran_release(&r);
	r = DRIVE(state, "version", "--output", "json");
	assert_string_equal(r.out.p, "{\"version\":\"" REGATTA_VERSION "\"}\n");
	ran_release(&r);
	REFUSED(state, 2, "no command 'rnu' to help with: did you mean 'run'?", "help", "rnu");
	REFUSED(state, 2, "no command 'qqqqqqq' to help with", "help", "qqqqqqq");
	assert_false(file_exists(unit_path(state, "master.log")));
}

static void completion_is_printed_for_the_three_shells(void **state)
{
	struct ran r = DRIVE(state, "completion", "bash");
	assert_has(&r.out, "complete -F _regatta regatta");
	ran_release(&r);
	r = DRIVE(state, "completion", "fish", "--output", "json");
	assert_has(&r.out, "{\"script\":\"# fish");
	ran_release(&r);
}

static void init_writes_a_job_file_that_plan_accepts(void **state)
{
	const char *file = unit_path(state, "job.toml");
	struct ran r = DRIVE(state, "init", "-o", file);
	assert_int_equal(r.code, 0);
	assert_has(&r.err, "wrote ");
	ran_release(&r);
	r = DRIVE(state, "plan", file);
	if (r.code != 0)
		fail_msg("%s", r.err.p);
	assert_true(r.out.n > 0);
	ran_release(&r);
	/* Never overwritten. */
	REFUSED(state, 2, "exists and is not overwritten", "init", "pserver", "-o", file);
	r = DRIVE(state, "init", "pserver", "-o", unit_path(state, "ps.toml"), "--output", "json");
	assert_has(&r.out, "\"strategy\":\"pserver\"}\n");
	ran_release(&r);
	r = DRIVE(state, "init", "pserver", "-o", "-");
	assert_has(&r.out, "pserver");
	ran_release(&r);
	r = DRIVE(state, "init", "pserver", "-o", "-", "--output", "json");
	assert_has(&r.out, "{\"job\":\"");
	ran_release(&r);
	REFUSED(state, 2, "no strategy 'psever': did you mean 'pserver'?", "init", "psever");
	REFUSED(state, 2, "no strategy 'qqqqqqq': choose from single", "init", "qqqqqqq");
	REFUSED(state, 3, "create '", "init", "-o", unit_path(state, "no/such/dir/job.toml"));
}

static void plan_reads_files_and_command_lines(void **state)
{
	struct ran r =
		DRIVE(state, "plan", "-n", "3", "--name", "demo", "--", "python3", "train.py");
	assert_int_equal(r.code, 0);
	assert_has(&r.out, "demo-xxxx");
	ran_release(&r);
	r = DRIVE(state, "plan", "--output", "json", "--", "true");
	assert_int_equal(r.code, 0);
	assert_int_equal(r.out.p[0], '{');
	assert_int_equal(r.out.p[r.out.n - 1], '\n');
	ran_release(&r);
	home_put(state, "bad.toml", "comand = [\"true\"]\ncount = 0\n");
	const char *bad = unit_path(state, "bad.toml");
	r = DRIVE(state, "plan", bad);
	assert_int_equal(r.code, 2);
	assert_has(&r.err, "bad.toml:1:");
	assert_has(&r.err, "did you mean 'command'?");
	assert_has(&r.err, "bad.toml:2:");
	ran_release(&r);
	home_put(state, "engine.toml", "engine = \"moon\"\ncommand = [\"true\"]\n");
	REFUSED(state, 2, "engine.toml:1:", "plan", unit_path(state, "engine.toml"));
	REFUSED(state, 3, "does not exist", "plan", unit_path(state, "none.toml"));
	REFUSED(state, 2, "give one of them", "plan", "x.toml", "--", "true");
	REFUSED(state, 2, "the command after '--' is missing", "plan", "--");
	assert_int_equal(chdir(*state), 0);
	REFUSED(state, 2, "no job: give a FILE", "plan");
	home_put(state, "job.toml", "command = [\"true\"]\n");
	r = DRIVE(state, "plan", "--name", "a-b", "-n", "2");
	if (r.code != 0)
		fail_msg("%s", r.err.p);
	assert_has(&r.out, "a-b-xxxx");
	ran_release(&r);
	/* A name is a text, whatever it looks like. */
	r = DRIVE(state, "plan", "--name", "true");
	if (r.code != 0)
		fail_msg("%s", r.err.p);
	assert_has(&r.out, "true-xxxx");
	ran_release(&r);
	assert_int_equal(chdir("/"), 0);
}

static void explain_prints_keys_and_refuses_unknown_ones(void **state)
{
	struct ran r = DRIVE(state, "explain");
	assert_int_equal(r.code, 0);
	assert_has(&r.out, "command");
	ran_release(&r);
	r = DRIVE(state, "explain", "--output", "json");
	assert_int_equal(r.out.p[0], '[');
	assert_has(&r.out, "\"key\":\"command\"");
	ran_release(&r);
	r = DRIVE(state, "explain", "roles.trainer.count", "--output", "json");
	assert_has(&r.out, "{\"key\":\"count\",\"type\":\"integer\"");
	ran_release(&r);
	r = DRIVE(state, "explain", "roles", "--output", "json");
	assert_has(&r.out, "\"keys\":[");
	ran_release(&r);
	r = DRIVE(state, "explain", "roles.trainer", "--output", "json");
	assert_int_equal(r.code, 0);
	assert_int_equal(r.out.p[0], '{');
	ran_release(&r);
	r = DRIVE(state, "explain", "comand");
	assert_int_equal(r.code, 3);
	assert_has(&r.err, "command");
	ran_release(&r);
}

static void status_shows_the_run_or_the_latest_one(void **state)
{
	home_put(state, "run.json", RUN "\n");
	home_put(state, "runs.json", "{\"runs\":[" RUN "]}");
	struct ran r = DRIVE(state, "status", "job");
	assert_int_equal(r.code, 0);
	assert_has(&r.out, "job-abcd running, 5 ms");
	assert_int_equal(r.err.n, 0);
	ran_release(&r);
	r = DRIVE(state, "status", "--output", "json");
	assert_string_equal(r.out.p, RUN "\n");
	assert_string_equal(r.err.p, "regatta: latest run: job-abcd\n");
	ran_release(&r);
	assert_int_equal(home_count(state, "requests.log", "GET /api/v1/runs?state=all&limit=1 "),
			 1);
	home_put(state, "runs.json", "{\"runs\":[]}");
	REFUSED(state, 3, "there are no runs yet", "status");
	REFUSED(state, 3, "no run 'nothing'", "status", "nothing");
	REFUSED(state, 2, "the name of a run is empty", "status", "");
	REFUSED(state, 2, "regatta: 'many' is several runs\nmany-aaaa\nmany-\\x1bbbb\n", "status",
		"many");
}

static void ps_prints_an_array_or_a_table(void **state)
{
	home_put(state, "runs.json", "{\"runs\":[" ENDED "]}");
	struct ran r = DRIVE(state, "ps", "-a", "--output", "json");
	assert_string_equal(r.out.p, "[" ENDED "]\n");
	ran_release(&r);
	home_put(state, "runs.json", "{\"runs\":[]}");
	r = DRIVE(state, "ps");
	assert_int_equal(r.code, 0);
	assert_int_equal(r.out.n, 0);
	assert_has(&r.err, "no active runs");
	ran_release(&r);
	r = DRIVE(state, "ps", "-a");
	assert_has(&r.err, "there are no runs yet");
	ran_release(&r);
	r = DRIVE(state, "ps", "--output", "json");
	assert_string_equal(r.out.p, "[]\n");
	ran_release(&r);
	home_put(state, "runs.json", "nonsense");
	REFUSED(state, 8, "not JSON", "ps");
}

static void ps_gets_whole_runs_in_pages(void **state)
{
	struct buf runs;

	buf_init(&runs, 1 << 16);
	buf_addz(&runs, "{\"runs\":[");
	for (int i = 0; i < 200; i++)
		buf_printf(&runs, "%s{\"id\":\"r-%d\"}", i ? "," : "", i);
	buf_addz(&runs, "]}");
	home_put(state, "runs.json", runs.p);
	buf_release(&runs);
	struct ran r = DRIVE(state, "ps", "-a", "--limit", "450", "--output", "json");
	assert_int_equal(r.code, 0);
	ran_release(&r);
	assert_int_equal(
		home_count(state, "requests.log", "GET /api/v1/runs?state=all&limit=200&full=1 "),
		1);
	assert_int_equal(home_count(state, "requests.log",
				    "GET /api/v1/runs?state=all&limit=200&full=1&before=r-199 "),
			 1);
	assert_int_equal(home_count(state, "requests.log",
				    "GET /api/v1/runs?state=all&limit=50&full=1&before=r-199 "),
			 1);
	/* 0 is all of them: as many pages as there are. */
	home_put(state, "requests.log", "");
	home_put(state, "runs.json", "{\"runs\":[{\"id\":\"r-0\"}]}");
	r = DRIVE(state, "ps", "-a", "--limit", "0", "--output", "json");
	assert_int_equal(r.code, 0);
	assert_has(&r.out, "r-0");
	ran_release(&r);
	r = DRIVE(state, "ps", "-a", "--limit", "0");
	assert_int_equal(r.code, 0);
	ran_release(&r);
	assert_int_equal(home_count(state, "requests.log", "state=all&limit=200&full=1 "), 1);
	assert_int_equal(home_count(state, "requests.log", "state=all&limit=10000&full=0 "), 1);
	home_put(state, "requests.log", "");
	/* The table needs no whole ones: one answer is enough. */
	r = DRIVE(state, "ps", "-a", "--limit", "450");
	assert_int_equal(r.code, 0);
	ran_release(&r);
	assert_int_equal(
		home_count(state, "requests.log", "GET /api/v1/runs?state=all&limit=450&full=0 "),
		1);
	assert_int_equal(home_count(state, "requests.log", "GET /api/v1/runs?"), 1);
}

static void metrics_are_asked_for_as_the_options_say(void **state)
{
	home_put(state, "metrics.json",
		 "{\"metrics\":{\"loss\":{\"all\":{\"last\":1},\"nodes\":{}}},\"series\":[]}");
	struct ran r = DRIVE(state, "metrics", "job", "lo/ss", "--node", "job 0");
	assert_int_equal(r.code, 0);
	assert_has(&r.out, "loss");
	ran_release(&r);
	assert_int_equal(
		home_count(state, "requests.log", "/metrics?name=lo%2Fss&node=job%200&host=1 "), 1);
	r = DRIVE(state, "metrics", "job", "--host", "--output", "json");
	assert_has(&r.out, "{\"metrics\":");
	ran_release(&r);
	assert_int_equal(home_count(state, "requests.log", "/metrics?host=1 "), 1);
	home_put(state, "metrics.json", "{\"metrics\":{}}");
	REFUSED(state, 3, "run 'job' has no metric 'x': 'regatta metrics job --host' lists them",
		"metrics", "job", "x");
	r = DRIVE(state, "metrics", "job");
	assert_int_equal(r.code, 0);
	assert_has(&r.err,
		   "run 'job' has no metrics of its own: 'regatta metrics job --host' shows");
	ran_release(&r);
	r = DRIVE(state, "metrics", "job", "--host");
	assert_has(&r.err, "run 'job' has no metrics\n");
	ran_release(&r);
}

static void events_are_printed_in_order(void **state)
{
	home_put(state, "run.json", ENDED);
	home_put(
		state, "events.jsonl",
		"{\"seq\":1,\"time_ms\":1000,\"kind\":\"accepted\"}\n{\"seq\":2,\"time_ms\":2000,\"kind\":\"ended\"}\n");
	struct ran r = DRIVE(state, "events", "job");
	assert_int_equal(r.code, 0);
	assert_string_equal(r.out.p,
			    "     1  00:00:01.000  accepted\n     2  00:00:02.000  ended\n");
	ran_release(&r);
	r = DRIVE(state, "events", "job", "-f", "--output", "json");
	assert_int_equal(r.code, 0);
	assert_string_equal(r.out.p, "{\"seq\":1,\"time_ms\":1000,\"kind\":\"accepted\"}\n"
				     "{\"seq\":2,\"time_ms\":2000,\"kind\":\"ended\"}\n");
	ran_release(&r);
	assert_int_equal(home_count(state, "requests.log", "/events?after=0&follow=1 "), 1);
	/* The master dies behind the first event: the second comes from the next one. */
	home_put(state, "fault-die-watch", "x");
	r = DRIVE(state, "events", "job", "-f");
	assert_int_equal(r.code, 0);
	assert_has(&r.out, "     2  00:00:02.000  ended\n");
	ran_release(&r);
	assert_int_equal(home_count(state, "requests.log", "/events?after=1&follow=1 "), 1);
	REFUSED(state, 3, "no run 'nothing'", "events", "nothing");
	home_put(state, "events.jsonl", "nonsense\n");
	REFUSED(state, 8, "not JSON", "events", "job");
}

static void following_ends_when_nobody_reads_any_more(void **state)
{
	home_put(state, "run.json", RUN);
	home_put(state, "events.jsonl", "{\"seq\":1,\"time_ms\":1000,\"kind\":\"accepted\"}\n");
	drive_short_reader(state);
	struct ran r = DRIVE(state, "events", "job", "-f");
	unsetenv("TEST_STDOUT");
	assert_int_equal(r.code, 0);
	assert_int_equal(r.err.n, 0);
	ran_release(&r);
}

static void a_report_names_the_whole_run(void **state)
{
	home_put(state, "run.json", ENDED);
	struct ran r = DRIVE(state, "report", "jo", "--output", "json");
	assert_int_equal(r.code, 0);
	assert_has(&r.out, "{\"id\":\"job-abcd\",\"dir\":\"/runs/job-abcd\",");
	ran_release(&r);
	r = DRIVE(state, "report", "jo", "-o", unit_path(state, "to"));
	assert_int_equal(r.code, 0);
	ran_release(&r);
	assert_int_equal(home_count(state, "requests.log", "/runs/job-abcd/metrics.csv "), 1);
	char *summary = home_get(state, "to/summary.json");
	assert_string_equal(summary, ENDED);
	free(summary);
	REFUSED(state, 3, "no run 'nothing'", "report", "nothing");
}

/* Some openers are the browser itself. */
static void the_browser_is_not_waited_for(void **state)
{
	CLEANUP(freep) char *fifo = xstrdup(unit_path(state, "go"));
	CLEANUP(freep) char *old = xstrdup(getenv("PATH"));
	CLEANUP(freep) char *path = xasprintf("%s:%s", (const char *)*state, old);

	assert_int_equal(mkfifo(fifo, 0600), 0);
	home_put(state, "xdg-open",
		 "#!/bin/sh\ngrep SigIgn /proc/$$/status > ${0%/*}/signals\nread x < ${0%/*}/go\n");
	assert_int_equal(chmod(unit_path(state, "xdg-open"), 0700), 0);
	setenv("DISPLAY", ":9", 1);
	setenv("PATH", path, 1);
	struct ran r = DRIVE_TTY(state, 80, 24, "ui");
	setenv("PATH", old, 1);
	unsetenv("DISPLAY");
	assert_int_equal(r.code, 0);
	assert_has(&r.out, "http://here/login\r\n");
	ran_release(&r);
	home_await(state, "signals", "0000\n", 1); /* SIGPIPE and the like are its own again */
	close(open(fifo, O_WRONLY | O_CLOEXEC));   /* it may go */
}

static void kill_cancels_each_run_it_is_given(void **state)
{
	home_put(state, "run.json", RUN);
	struct ran r = DRIVE(state, "kill", "job");
	assert_int_equal(r.code, 0);
	assert_string_equal(r.out.p, "job-abcd is being cancelled\n");
	ran_release(&r);
	r = DRIVE(state, "kill", "nothing", "job", "", "--now");
	assert_int_equal(r.code, 3);
	assert_string_equal(r.out.p, "job-abcd is being killed\n");
	assert_has(&r.err, "no run 'nothing'");
	assert_has(&r.err, "the name of a run is empty");
	ran_release(&r);
	assert_int_equal(home_count(state, "requests.log", "/job/cancel {\"hurry\":false}"), 1);
	assert_int_equal(home_count(state, "requests.log", "/job/cancel {\"hurry\":true}"), 1);
	r = DRIVE(state, "kill", "job", "job", "--output", "json");
	assert_string_equal(r.out.p, "[" RUN ",\n " RUN "]\n");
	ran_release(&r);
	home_put(state, "run.json", ENDED);
	r = DRIVE(state, "kill", "job");
	assert_int_equal(r.code, 0);
	assert_string_equal(r.out.p, "job-abcd had ended: succeeded\n");
	ran_release(&r);
}

static void cleanup_ends_the_run_first(void **state)
{
	home_put(state, "run.json", ENDED);
	home_put(state, "fault-watched", "xx");
	struct ran r = DRIVE(state, "cleanup", "job");
	assert_int_equal(r.code, 0);
	assert_string_equal(r.out.p, "removed /runs/gone\n");
	assert_int_equal(r.err.n, 0);
	ran_release(&r);
	assert_int_equal(home_count(state, "requests.log", "POST /api/v1/runs/job-abcd/cleanup"),
			 3);
	assert_int_equal(home_count(state, "requests.log", "/cancel"), 0);
	home_put(state, "run.json", RUN);
	home_put(state, "watch.jsonl", RUN "\n" ENDED "\n");
	r = DRIVE(state, "cleanup", "job", "--output", "json");
	assert_int_equal(r.code, 0);
	assert_string_equal(r.out.p, "[{\"removed\":true,\"dir\":\"/runs/gone\"}]\n");
	assert_has(&r.err, "cancelling job-abcd");
	ran_release(&r);
	assert_int_equal(home_count(state, "requests.log", "/job-abcd/cancel"), 1);
	r = DRIVE(state, "cleanup", "many", "--output", "json");
	assert_int_equal(r.code, 2);
	assert_string_equal(r.out.p, "[]\n");
	assert_has(&r.err, "many-aaaa");
	ran_release(&r);
}

static void more_runs_than_a_request_holds_are_refused(void **state)
{
	CLEANUP(freep) char *long_name = xasprintf("%020000d", 1);

	REFUSED(state, 2, "compare: too many names for one request", "compare", "job", long_name);
	assert_false(file_exists(unit_path(state, "master.log")));
}

static void options_of_new_tokens_are_refused_elsewhere(void **state)
{
	REFUSED(state, 2, "token list: --scope goes with new\n", "token", "list", "--scope",
		"read");
	REFUSED(state, 2, "token revoke: --name goes with new\n", "token", "revoke", "abc",
		"--name", "x");
	assert_false(file_exists(unit_path(state, "master.log")));
}

static void roles_get_their_options(void **state)
{
	struct ran r = DRIVE(state, "sim", "--seeds", "5", "--nodes", "2", "--seed", "9", "-vv",
			     "--output", "json");
	assert_string_equal(r.out.p, "sim first=9 seeds=5 nodes=2 verbose=2 json=1\n");
	ran_release(&r);
	r = DRIVE(state, "sim");
	assert_string_equal(r.out.p, "sim first=1 seeds=100 nodes=3 verbose=0 json=0\n");
	ran_release(&r);
	r = DRIVE(state, "agent", "/node/dir");
	assert_string_equal(r.out.p, "agent /node/dir\n");
	ran_release(&r);
}

static void words_for_completion_never_start_a_master(void **state)
{
	struct ran r = DRIVE(state, "words", "runs");
	assert_int_equal(r.code, 0);
	assert_int_equal(r.out.n, 0);
	assert_int_equal(r.err.n, 0);
	ran_release(&r);
	assert_false(file_exists(unit_path(state, "master.log")));
	r = DRIVE(state, "words", "keys");
	assert_has(&r.out, "command\n");
	assert_has(&r.out, "timeouts.");
	ran_release(&r);
	r = DRIVE(state, "words", "strategies");
	assert_has(&r.out, "pserver\n");
	ran_release(&r);
	home_put(state, "runs.json", "{\"runs\":[" ENDED ",{}]}");
	home_put(state, "run.json", RUN);
	r = DRIVE(state, "ps");
	ran_release(&r);
	r = DRIVE(state, "words", "runs");
	assert_string_equal(r.out.p, "job-abcd\n");
	ran_release(&r);
	r = DRIVE(state, "words", "nodes", "job");
	assert_string_equal(r.out.p, "job-0\n");
	ran_release(&r);
	r = DRIVE(state, "words", "nodes");
	assert_int_equal(r.out.n, 0);
	ran_release(&r);
}

static void output_that_cannot_be_written_is_an_error(void **state)
{
	setenv("TEST_STDOUT", "/dev/full", 1);
	struct ran r = DRIVE(state, "help");
	unsetenv("TEST_STDOUT");
	assert_int_equal(r.code, 5);
	assert_has(&r.err, "write the result");
	ran_release(&r);
}

static void outside_text_never_reaches_a_terminal_raw(void **state)
{
	home_put(
		state, "runs.json",
		"{\"runs\":[{\"id\":\"x\\u001b[2J\",\"state\":\"failed\",\"cause\":\"\\u001b]0;t\\u0007\"}]}");
	struct ran r = DRIVE_TTY(state, 120, 24, "ps");
	assert_int_equal(r.code, 0);
	assert_has(&r.out, "x\\x1b[2J");
	assert_has_not(&r.out, "\x1b[2J");
	assert_has_not(&r.out, "\x1b]0");
	assert_has(&r.out, "\x1b[31mfailed\x1b[0m");
	ran_release(&r);
	setenv("NO_COLOR", "1", 1);
	r = DRIVE_TTY(state, 120, 24, "ps");
	unsetenv("NO_COLOR");
	assert_has_not(&r.out, "\x1b");
	ran_release(&r);
}

int main(int argc, char **argv)
{
#define T(fn) cmocka_unit_test_setup_teardown(fn, drive_setup, drive_teardown)
	const struct CMUnitTest tests[] = {
		T(no_arguments_print_the_usage_on_stderr),
		T(an_unknown_command_is_refused_with_the_nearest_one),
		T(words_of_other_tools_get_a_hint),
		T(help_and_version_need_nothing),
		T(completion_is_printed_for_the_three_shells),
		T(init_writes_a_job_file_that_plan_accepts),
		T(plan_reads_files_and_command_lines),
		T(explain_prints_keys_and_refuses_unknown_ones),
		T(status_shows_the_run_or_the_latest_one),
		T(ps_prints_an_array_or_a_table),
		T(ps_gets_whole_runs_in_pages),
		T(metrics_are_asked_for_as_the_options_say),
		T(events_are_printed_in_order),
		T(following_ends_when_nobody_reads_any_more),
		T(a_report_names_the_whole_run),
		T(the_browser_is_not_waited_for),
		T(kill_cancels_each_run_it_is_given),
		T(cleanup_ends_the_run_first),
		T(more_runs_than_a_request_holds_are_refused),
		T(options_of_new_tokens_are_refused_elsewhere),
		T(roles_get_their_options),
		T(words_for_completion_never_start_a_master),
		T(output_that_cannot_be_written_is_an_error),
		T(outside_text_never_reaches_a_terminal_raw),
	};
	int code;

	if (fake_role(argc, argv, &code))
		return code;
	return cmocka_run_group_tests_name("commands", tests, NULL, NULL);
}
