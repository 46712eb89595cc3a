/* Commands that show runs: what they ask the master for, and what they print. */
#include "unit.h"

#include <fcntl.h>
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

/* As many runs as the master has, whatever it is asked for. */
static void put_runs(void **state, int n)
{
	CLEANUP(buf_release) struct buf runs;

	buf_init(&runs, 1 << 16);
	for (int i = 0; i < n; i++)
		buf_printf(&runs, "%s{\"id\":\"r-%d\"}", i ? "," : "{\"runs\":[", i);
	buf_addz(&runs, "]}");
	home_put(state, "runs.json", runs.p);
}

static void ps_says_when_it_does_not_list_all(void **state)
{
	put_runs(state, 50);
	struct ran r = DRIVE(state, "ps", "-a");
	assert_int_equal(r.err.n, 0);
	ran_release(&r);
	put_runs(state, 51);
	r = DRIVE(state, "ps", "-a");
	assert_string_equal(r.err.p, "regatta: these are the newest 50; add '--limit 0' for all\n");
	assert_has(&r.out, "r-49");
	assert_null(strstr(r.out.p, "r-50"));
	ran_release(&r);
	r = DRIVE(state, "ps", "-a", "--limit", "51");
	assert_int_equal(r.err.n, 0);
	assert_has(&r.out, "r-50");
	ran_release(&r);
}

static void ps_gets_whole_runs_in_pages(void **state)
{
	put_runs(state, 200);
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
	static const char *const ways[] = {NULL, "-f"};

	setenv("TEST_STDOUT", "/dev/full", 1);
	for (size_t i = 0; i < 2; i++) {
		r = DRIVE(state, "events", "job", ways[i]);
		assert_int_equal(r.code, 5);
		assert_has(&r.err, "write the result");
		ran_release(&r);
	}
	unsetenv("TEST_STDOUT");
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
		T(status_shows_the_run_or_the_latest_one),
		T(ps_prints_an_array_or_a_table),
		T(ps_says_when_it_does_not_list_all),
		T(ps_gets_whole_runs_in_pages),
		T(metrics_are_asked_for_as_the_options_say),
		T(events_are_printed_in_order),
		T(following_ends_when_nobody_reads_any_more),
		T(a_report_names_the_whole_run),
		T(the_browser_is_not_waited_for),
		T(outside_text_never_reaches_a_terminal_raw),
	};
	int code;

	if (fake_role(argc, argv, &code))
		return code;
	return cmocka_run_group_tests_name("show runs", tests, NULL, NULL);
}
