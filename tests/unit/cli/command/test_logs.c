/* Logs are the job's bytes: all of them, once, and harmless on a terminal. */
#include "unit.h"

#include <fcntl.h>
#include <inttypes.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "cli/drive.h"
#include "cli/fake_master.h"

#define ONE "{\"id\":\"job-abcd\",\"state\":\"succeeded\",\"nodes\":[{\"name\":\"job-0\"}]}"
#define TWO                                                                                        \
	"{\"id\":\"job-abcd\",\"state\":\"succeeded\",\"nodes\":[{\"name\":\"job-0\"},{\"name\":"  \
	"\"job-1\"}]}"

static void bytes_are_printed_as_they_are(void **state)
{
	CLEANUP(buf_release) struct buf all;
	struct err err;

	home_put(state, "run.json", ONE);
	buf_init(&all, 32u << 20);
	for (int i = 0; i < 3000000; i++)
		buf_addc(&all, (char)(i * 7 + i / 1000));
	assert_int_equal(
		file_write_atomic(unit_path(state, "job-0.out"), buf_str(&all), 0600, false, &err),
		0);
	static const char *const ways[][4] = {
		{"logs", "job"}, {"logs", "job", "job-0"}, {"logs", "job", "-f"}};
	for (size_t i = 0; i < COUNT(ways); i++) {
		struct ran r = drive(state, ways[i]);
		assert_int_equal(r.code, 0);
		assert_true(str_eq(buf_str(&r.out), buf_str(&all)));
		assert_int_equal(r.err.n, 0);
		ran_release(&r);
	}
	/* The master dies in the middle: the rest comes from the next one. */
	home_put(state, "fault-die-log", "xxx");
	struct ran r = DRIVE(state, "logs", "job", "-f");
	assert_int_equal(r.code, 0);
	assert_true(str_eq(buf_str(&r.out), buf_str(&all)));
	ran_release(&r);
	assert_true(home_count(state, "requests.log", "&offset=0&err_offset=0&follow=1") >= 2);
	assert_true(home_count(state, "requests.log", "&follow=1") >= 6);
}

static void both_logs_are_printed_in_the_order_of_arrival(void **state)
{
	home_put(state, "run.json", ONE);
	home_put(state, "job-0.out", "one\ntwo\nfour\n");
	home_put(state, "job-0.err", "three\nfive");
	home_put(state, "job-0.order", "o8e6o5");
	static const struct {
		const char *option, *want;
	} cases[] = {{"--raw", "one\ntwo\nthree\nfour\nfive"},
		     {"-f", "one\ntwo\nthree\nfour\nfive"},
		     {"--merge", "job-0 | one\njob-0 | two\njob-0 | three\njob-0 | four\n"
				 "job-0 | five\n"},
		     {"--stdout", "one\ntwo\nfour\n"},
		     {"--stderr", "three\nfive"},
		     {"--err", "three\nfive"}};
	for (size_t i = 0; i < COUNT(cases); i++) {
		struct ran r = DRIVE(state, "logs", "job", cases[i].option);
		assert_int_equal(r.code, 0);
		assert_string_equal(r.out.p, cases[i].want);
		assert_int_equal(r.err.n, 0);
		ran_release(&r);
	}
	struct ran r = DRIVE(state, "logs", "job", "--stdout", "--stderr", "--output", "json");
	assert_has(&r.out, "\"stream\":\"out\",\"line\":\"two\"}\n"
			   "{\"node\":\"job-0\",\"stream\":\"err\",\"line\":\"three\"}\n"
			   "{\"node\":\"job-0\",\"stream\":\"out\",\"line\":\"four\"}\n");
	ran_release(&r);
	/* The master dies in the middle of a piece: each log goes on where it was. */
	home_put(state, "fault-die-log", "xxx");
	r = DRIVE(state, "logs", "job", "-f");
	assert_int_equal(r.code, 0);
	assert_string_equal(r.out.p, "one\ntwo\nthree\nfour\nfive");
	ran_release(&r);
}

static void lines_of_two_logs_do_not_break_each_other(void **state)
{
	home_put(state, "run.json", ONE);
	home_put(state, "job-0.out", "a long line\n10%\r20%\r");
	home_put(state, "job-0.err", "an error\nanother\n");
	/* "a lo", "an er", "ng line\n", "ror\n", "10%\r20", "another\n", "%\r" */
	home_put(state, "job-0.order", "o4e5o8e4o6e8o2");
	struct ran r = DRIVE(state, "logs", "job");
	assert_int_equal(r.code, 0);
	assert_string_equal(r.out.p, "a long line\nan error\n10%\ranother\n20%\r");
	ran_release(&r);
	r = DRIVE(state, "logs", "job", "--merge");
	assert_string_equal(r.out.p, "job-0 | a long line\njob-0 | an error\njob-0 | another\n"
				     "job-0 | 10%\r20%\r\n");
	ran_release(&r);
}

static void an_answer_that_is_no_log_is_refused(void **state)
{
	static const char *const answers[] = {
		"both 3\nabc", "out x\nabc", "out -1\n", "out\n",
		"a very long line that is no head of any piece of a log"};

	home_put(state, "run.json", ONE);
	for (size_t i = 0; i < COUNT(answers); i++) {
		home_put(state, "job-0.both", answers[i]);
		struct ran r = DRIVE(state, "logs", "job");
		assert_int_equal(r.code, 8);
		assert_has(&r.err, "the master's answer is not a log");
		ran_release(&r);
	}
}

static void several_nodes_have_their_names_in_front(void **state)
{
	home_put(state, "run.json", TWO);
	home_put(state, "job-0.out", "a\nb");
	home_put(state, "job-1.out", "\x1b[1mc\n");
	home_put(state, "job-0.err", "e\n");
	struct ran r = DRIVE(state, "logs", "job");
	assert_int_equal(r.code, 0);
	assert_string_equal(r.out.p, "job-0 | a\njob-0 | e\njob-0 | b\njob-1 | \x1b[1mc\n");
	ran_release(&r);
	r = DRIVE(state, "logs", "job", "job-0");
	assert_string_equal(r.out.p, "a\ne\nb");
	ran_release(&r);
	r = DRIVE(state, "logs", "job", "--stderr");
	assert_string_equal(r.out.p, "job-0 | e\n");
	ran_release(&r);
	r = DRIVE(state, "logs", "job", "-f");
	assert_has(&r.out, "job-0 | a\n");
	assert_has(&r.out, "job-0 | b\n");
	assert_has(&r.out, "job-1 | \x1b[1mc\n");
	ran_release(&r);
	r = DRIVE(state, "logs", "job", "--output", "json");
	assert_string_equal(r.out.p,
			    "{\"node\":\"job-0\",\"stream\":\"out\",\"line\":\"a\"}\n"
			    "{\"node\":\"job-0\",\"stream\":\"err\",\"line\":\"e\"}\n"
			    "{\"node\":\"job-0\",\"stream\":\"out\",\"line\":\"b\"}\n"
			    "{\"node\":\"job-1\",\"stream\":\"out\",\"line\":\"\\u001b[1mc\"}\n");
	ran_release(&r);
	home_put(state, "run.json", ONE);
	r = DRIVE(state, "logs", "job", "--merge");
	assert_string_equal(r.out.p, "job-0 | a\njob-0 | e\njob-0 | b\n");
	ran_release(&r);
}

static void the_last_lines_are_asked_for_once(void **state)
{
	home_put(state, "run.json", ONE);
	home_put(state, "job-0.out", "1\n2\n3\n4\n");
	static const struct {
		const char *n, *want;
	} cases[] = {{"0", ""}, {"1", "4\n"}, {"3", "2\n3\n4\n"}, {"9", "1\n2\n3\n4\n"}};
	for (size_t i = 0; i < COUNT(cases); i++) {
		struct ran r = DRIVE(state, "logs", "job", "--tail", cases[i].n);
		assert_int_equal(r.code, 0);
		assert_true(str_is(buf_str(&r.out), cases[i].want));
		ran_release(&r);
	}
	/* Following: after the loss of the master it goes on where it was. */
	home_put(state, "fault-die-log", "x");
	struct ran r = DRIVE(state, "logs", "job", "--tail", "3", "-f");
	assert_int_equal(r.code, 0);
	assert_string_equal(r.out.p, "2\n3\n4\n");
	ran_release(&r);
	assert_int_equal(home_count(state, "requests.log", "tail=3&follow=1"), 1);
	assert_true(home_count(state, "requests.log", "&err_offset=0&follow=1") >= 1);
}

static void a_terminal_gets_no_control_bytes_unless_asked_for(void **state)
{
	home_put(state, "run.json", ONE);
	home_put(state, "job-0.out", "x\x1b[2J\xff\n");
	struct ran r = DRIVE_TTY(state, 80, 24, "logs", "job");
	assert_int_equal(r.code, 0);
	assert_string_equal(r.out.p, "x\\x1b[2J\\xff\r\n");
	ran_release(&r);
	r = DRIVE_TTY(state, 80, 24, "logs", "job", "--raw");
	assert_string_equal(r.out.p, "x\x1b[2J\xff\r\n");
	ran_release(&r);
}

static void a_line_without_end_is_given_in_pieces(void **state)
{
	size_t n = 1 << 20;
	char *text = xcalloc(1, n + 1);

	memset(text, 'x', n);
	home_put(state, "run.json", ONE);
	home_put(state, "job-0.out", text);
	free(text);
	struct ran r = DRIVE(state, "logs", "job", "--merge");
	assert_int_equal(r.code, 0);
	size_t lines = 0, xs = 0;
	for (size_t i = 0; i < r.out.n; i++) {
		lines += r.out.p[i] == '\n';
		xs += r.out.p[i] == 'x';
	}
	assert_int_equal(xs, n);
	assert_int_equal(lines, 16);
	ran_release(&r);
}

static void only_lines_that_match_and_nodes_that_are_named_are_printed(void **state)
{
	home_put(state, "run.json", TWO);
	home_put(state, "job-0.out", "loss 1\nother\n\nloss 2");
	home_put(state, "job-1.out", "Loss 3\n");
	static const struct {
		const char *args[5], *want;
	} cases[] = {
		{{"--grep", "^loss"}, "job-0 | loss 1\njob-0 | loss 2\n"},
		{{"--grep", "(?i)LOSS [23]$"}, "job-0 | loss 2\njob-1 | Loss 3\n"},
		{{"--grep", "^$"}, "job-0 | \n"},
		{{"--grep", "nowhere"}, ""},
		{{"--node", "*-1"}, "Loss 3\n"},
		{{"--node", "job-*", "--grep", "3"}, "job-1 | Loss 3\n"},
		{{"--node", "job-0", "--grep", "loss", "-f"}, "loss 1\nloss 2\n"},
	};
	for (size_t i = 0; i < COUNT(cases); i++) {
		const char *argv[8] = {"logs", "job"};
		memcpy(argv + 2, cases[i].args, sizeof(cases[i].args));
		struct ran r = drive(state, argv);
		assert_int_equal(r.code, 0);
		assert_true(str_eq(buf_str(&r.out), str_from(cases[i].want)));
		ran_release(&r);
	}
	struct ran r = DRIVE(state, "logs", "job", "--grep", "3", "--output", "json");
	assert_string_equal(r.out.p,
			    "{\"node\":\"job-1\",\"stream\":\"out\",\"line\":\"Loss 3\"}\n");
	ran_release(&r);
	REFUSED(state, 2, "not a regular expression: '(a': ", "logs", "job", "--grep", "(a");
	REFUSED(state, 2, "both NODE and --node", "logs", "job", "job-0", "--node", "x");
	REFUSED(state, 3, "has no node 'x*'", "logs", "job", "--node", "x*");
	home_put(state, "job-0.out", "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa!\n");
	REFUSED(state, 5, "takes too many steps", "logs", "job", "--grep", "^(a|a)*$");
}

static void what_is_not_there_is_not_found(void **state)
{
	home_put(state, "run.json", ONE);
	struct ran r = DRIVE(state, "logs", "job", "job-7");
	assert_int_equal(r.code, 3);
	assert_has(&r.err, "has no node 'job-7': 'regatta status");
	ran_release(&r);
	r = DRIVE(state, "logs", "nothing");
	assert_int_equal(r.code, 3);
	ran_release(&r);
	home_put(state, "runs.json", "{\"runs\":[]}");
	r = DRIVE(state, "logs");
	assert_int_equal(r.code, 3);
	ran_release(&r);
	r = DRIVE(state, "logs", "job", "job-0", "--merge");
	assert_int_equal(r.code, 2);
	ran_release(&r);
	home_put(state, "run.json", "{\"id\":\"job-abcd\",\"nodes\":[{\"name\":\"ghost-0\"}]}");
	r = DRIVE(state, "logs", "job");
	assert_int_equal(r.code, 3);
	assert_has(&r.err, "log of ghost-0: no such node");
	ran_release(&r);
	home_put(state, "run.json", "{}");
	r = DRIVE(state, "logs", "job");
	assert_int_equal(r.code, 8);
	ran_release(&r);
}

/* The nodes of a run that was handed over are taken in with its results. */
static void logs_that_are_not_here_yet_are_said_with_what_to_do(void **state)
{
#define HANDED(state, running, more)                                                               \
	"{\"id\":\"job-abcd\",\"state\":\"" state                                                  \
	"\",\"phases\":{\"accepted\":1,\"running\":" running "},\"nodes\":[]" more "}"
	static const struct {
		const char *run;
		int code; /* if a node is named */
		const char *says;
	} cases[] = {
		{HANDED("running", "5", ""), 8,
		 "regatta: run 'job-abcd' has no logs here yet: they come with its results after its "
		 "end, for which 'regatta wait job-abcd' waits\n"},
		{HANDED("succeeded", "5", ",\"results\":\"coming\""), 8,
		 "regatta: the logs of run 'job-abcd' are on their way here with its results: try "
		 "again in a moment\n"},
		{HANDED("succeeded", "5", ",\"results\":\"missing\""), 3,
		 "regatta: the logs of run 'job-abcd' are not here: they come with its results, and "
		 "'regatta events job-abcd' says when these are taken in\n"},
		{HANDED("failed", "null", ""), 3,
		 "regatta: run 'job-abcd' has no logs: none of its nodes was started; 'regatta status "
		 "job-abcd' says why\n"},
	};

	for (size_t i = 0; i < COUNT(cases); i++) {
		home_put(state, "run.json", cases[i].run);
		struct ran r = DRIVE(state, "logs", "job");
		assert_int_equal(r.code, 0);
		assert_int_equal(r.out.n, 0);
		assert_string_equal(r.err.p, cases[i].says);
		ran_release(&r);
		REFUSED(state, cases[i].code, cases[i].says, "logs", "job", "worker-0");
		/* Its nodes do not come any more: nothing is waited for. */
		r = DRIVE(state, "logs", "job", "-f");
		assert_int_equal(r.code, 0);
		assert_string_equal(r.err.p, cases[i].says);
		ran_release(&r);
	}
}

static void who_follows_a_run_that_is_handed_over_waits_for_its_nodes(void **state)
{
	home_put(state, "run.json",
		 "{\"id\":\"job-abcd\",\"state\":\"provisioning\",\"phases\":{\"accepted\":1,"
		 "\"running\":null},\"nodes\":[]}");
	home_put(state, "job-0.out", "some text\n");
	struct driven d = DRIVE_BEGIN(state, "logs", "job", "-f");

	drive_await(d, "run 'job' has no nodes yet: its logs follow when it has");
	home_put(state, "run.json", ONE);
	struct ran r = drive_end(d);

	assert_int_equal(r.code, 0);
	assert_string_equal(r.out.p, "some text\n");
	ran_release(&r);
}

static void a_full_disk_is_an_error_and_a_closed_pipe_is_not(void **state)
{
	home_put(state, "run.json", ONE);
	home_put(state, "job-0.out", "some text\n");
	setenv("TEST_STDOUT", "/dev/full", 1);
	struct ran r = DRIVE(state, "logs", "job");
	unsetenv("TEST_STDOUT");
	assert_int_equal(r.code, 5);
	assert_has(&r.err, "write the log");
	ran_release(&r);
	CLEANUP(buf_release) struct buf all;
	buf_init(&all, 4u << 20);
	for (int i = 0; i < 1 << 20; i++) /* more than a pipe takes */
		buf_addc(&all, i % 64 ? 'x' : '\n');
	home_put(state, "job-0.out", all.p);
	drive_short_reader(state);
	r = DRIVE(state, "logs", "job");
	unsetenv("TEST_STDOUT");
	assert_int_equal(r.code, 0);
	assert_int_equal(r.err.n, 0);
	ran_release(&r);
}

static void many_nodes_are_followed_with_few_descriptors(void **state)
{
	CLEANUP(buf_release) struct buf run;
	struct rlimit few, before;

	buf_init(&run, 64 * 1024);
	buf_addz(&run, "{\"id\":\"job-abcd\",\"state\":\"running\",\"nodes\":[");
	for (int i = 0; i < 40; i++)
		buf_printf(&run, "%s{\"name\":\"job-%d\"}", i ? "," : "", i);
	buf_addz(&run, "]}");
	home_put(state, "run.json", run.p);
	home_put(state, "runs.json", "{\"runs\":[]}");
	home_put(state, "job-39.out", "here\n");
	struct ran r = DRIVE(state, "ps"); /* the master has descriptors enough */
	ran_release(&r);
	getrlimit(RLIMIT_NOFILE, &before);
	few = before;
	few.rlim_cur = 24;
	setrlimit(RLIMIT_NOFILE, &few);
	struct driven d = DRIVE_BEGIN(state, "logs", "job", "-f");
	setrlimit(RLIMIT_NOFILE, &before);
	r = drive_end(d);
	assert_int_equal(r.code, 0);
	assert_string_equal(r.out.p, "job-39 | here\n");
	ran_release(&r);
}

/* A process that counts the lines of a pipe into a file. */
static void count_lines(void **state, const char *fifo)
{
	static char chunk[1 << 20];
	uint64_t lines = 0;
	ssize_t n;

	fflush(NULL);
	if (fork() != 0)
		return;
	int fd = open(fifo, O_RDONLY);
	while ((n = read(fd, chunk, sizeof(chunk))) > 0)
		for (ssize_t i = 0; i < n; i++)
			lines += chunk[i] == '\n';
	snprintf(chunk, sizeof(chunk), "%" PRIu64 " lines", lines);
	home_put(state, "counted", chunk);
	_exit(0);
}

/* Over a hundred bytes of output for each byte of the logs, all there at once. */
static void no_line_is_lost_however_many_come_together(void **state)
{
	enum { NODES = 40, LINES = 60000 };
	CLEANUP(buf_release) struct buf run, log;
	CLEANUP(freep) char *fifo = xstrdup(unit_path(state, "fifo"));
	char name[128];

	buf_init(&run, 64 * 1024);
	buf_init(&log, LINES);
	buf_addz(&run, "{\"id\":\"job-abcd\",\"state\":\"succeeded\",\"nodes\":[");
	for (int i = 0; i < LINES; i++)
		buf_addc(&log, '\n');
	for (int i = 0; i < NODES; i++) {
		buf_printf(&run, "%s{\"name\":\"%090d\"}", i ? "," : "", i);
		snprintf(name, sizeof(name), "%090d.out", i);
		home_put(state, name, log.p);
	}
	buf_addz(&run, "]}");
	home_put(state, "run.json", run.p);
	assert_int_equal(mkfifo(fifo, 0600), 0);
	count_lines(state, fifo);
	setenv("TEST_STDOUT", fifo, 1);
	struct ran r = DRIVE(state, "logs", "job", "-f", "--output", "json");
	unsetenv("TEST_STDOUT");
	assert_int_equal(r.code, 0);
	ran_release(&r);
	snprintf(name, sizeof(name), "%d lines", NODES * LINES);
	home_await(state, "counted", name, 1);
}

int main(int argc, char **argv)
{
#define T(fn) cmocka_unit_test_setup_teardown(fn, drive_setup, drive_teardown)
	const struct CMUnitTest tests[] = {
		T(bytes_are_printed_as_they_are),
		T(both_logs_are_printed_in_the_order_of_arrival),
		T(lines_of_two_logs_do_not_break_each_other),
		T(an_answer_that_is_no_log_is_refused),
		T(several_nodes_have_their_names_in_front),
		T(the_last_lines_are_asked_for_once),
		T(a_terminal_gets_no_control_bytes_unless_asked_for),
		T(a_line_without_end_is_given_in_pieces),
		T(only_lines_that_match_and_nodes_that_are_named_are_printed),
		T(what_is_not_there_is_not_found),
		T(logs_that_are_not_here_yet_are_said_with_what_to_do),
		T(who_follows_a_run_that_is_handed_over_waits_for_its_nodes),
		T(a_full_disk_is_an_error_and_a_closed_pipe_is_not),
		T(many_nodes_are_followed_with_few_descriptors),
		T(no_line_is_lost_however_many_come_together),
	};
	int code;

	if (fake_role(argc, argv, &code))
		return code;
	return cmocka_run_group_tests_name("logs", tests, NULL, NULL);
}
