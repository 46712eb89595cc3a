/* What the hang watchdog sees of a job. */
#include "unit.h"

#include "fake_master.h"

#include <string.h>

#include "agent/inspect.h"
#include "base/buf.h"

static void a_line_can_be_compared(void **state)
{
	static const struct {
		char state;
		const char *wchan, *syscall, *line;
	} cases[] = {
		{'S', "futex_wait_queue", "202 0x1 0x2",
		 "S sleeps in futex_wait_queue, system call 202"},
		{'S', "0", "7 0x1", "S sleeps, system call 7"},
		{'T', "do_signal_stop", "", "T stopped in do_signal_stop"},
		{'R', "0", "running", "R runs"},
		{'R', "somewhere", "5 0x1", "R runs"},
		{'D', "", "-1 0x7ffc", "D waits for the kernel"},
		{'?', "", "", "? ?"},
	};
	struct buf out;

	(void)state;
	buf_init(&out, 1024);
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		buf_reset(&out);
		inspect_line(cases[i].state, str_from(cases[i].wchan), str_from(cases[i].syscall),
			     &out);
		assert_string_equal(buf_str(&out).p, cases[i].line);
	}
	buf_release(&out);
}

static void only_sockets_of_the_process_are_shown(void **state)
{
	static const char table[] =
		"  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n"
		"   0: 0100007F:1388 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 77 1 0 1\n"
		"   1: 0200000A:C350 0100000A:1388 01 00000010:00000020 00:00000000 00000000     0        0 78 1 0 1\n"
		"   2: 0200000A:C351 0100000A:1388 01 00000000:00000000 00:00000000 00000000     0        0 79 1 0 1\n"
		"garbage\n";
	static const unsigned long inodes[] = {77, 78};
	struct buf out;

	(void)state;
	buf_init(&out, 4096);
	inspect_sockets(STR(table), inodes, 2, &out);
	assert_string_equal(
		buf_str(&out).p,
		"  tcp 127.0.0.1:5000 - 0.0.0.0:0 listening, 0 bytes to send, 0 to read\n"
		"  tcp 10.0.0.2:50000 - 10.0.0.1:5000 established, 16 bytes to send, 32 to read\n");
	buf_release(&out);
}

static void a_stopped_job_is_seen_as_such(void **state)
{
	struct fake *f = *state;

	fake_ready(f);
	fake_start(f, "echo 1 > $DIR/up; kill -STOP $$; sleep 600");
	fake_file(f, fake_below(f, "up"));
	const char *line = "";

	for (int i = 0; i < 100 && line[0] != 'T'; i++) { /* it may not have stopped yet */
		fake_send(f, FRAME_INSPECT, "{}");
		line = fake_str(fake_wait(f, FRAME_INSPECTED), "line");
	}
	assert_int_equal(strncmp(line, "T stopped", 9), 0);
	assert_non_null(strstr(fake_str(f->last[FRAME_INSPECTED], "report"), "kill -STOP"));
	fake_release(f);
}

/* Rule: the first line is that of the process which holds up the others. */
static void a_stopped_process_comes_first(void **state)
{
	struct fake *f = *state;
	const char *line = "";

	fake_ready(f);
	fake_start(f, "sh -c 'echo 1 > $DIR/one; kill -STOP $$; :' & " FAKE_UNTIL(
			      "one") "sleep 600 & echo 1 > $DIR/up; wait");
	fake_file(f, fake_below(f, "up"));
	for (int i = 0; i < 100 && line[0] != 'T'; i++) { /* it may not have stopped yet */
		fake_send(f, FRAME_INSPECT, "{}");
		line = fake_str(fake_wait(f, FRAME_INSPECTED), "line");
	}
	assert_int_equal(strncmp(line, "T stopped", 9), 0);
	fake_release(f);
}

/* Rule: the report is plain text, whether a char of the processor is signed or not. */
static void a_name_that_is_no_text_is_shown(void **state)
{
	struct fake *f = *state;

	fake_ready(f);
	fake_start(f,
		   "exec sh -c 'echo 1 > $DIR/up; sleep 600; :' \"$(printf 'a\\377\\001\\177b')\"");
	fake_file(f, fake_below(f, "up"));
	fake_send(f, FRAME_INSPECT, "{}");
	fake_wait(f, FRAME_INSPECTED);
	assert_non_null(strstr(fake_str(f->last[FRAME_INSPECTED], "report"), " a???b"));
	fake_release(f);
}

/* The process beside a rank (rank_tee.h) waits in every run: it would be taken for the rank. */
static void a_process_that_copies_output_is_not_shown(void **state)
{
	struct fake *f = *state;

	fake_ready(f);
	fake_start(f,
		   "ln -s $(command -v sleep) $DIR/regatta-tee; sleep 601 & $DIR/regatta-tee 602 & "
		   "echo 1 > $DIR/up; sleep 603");
	fake_file(f, fake_below(f, "up"));
	const char *report = "", *tee = fake_below(f, "regatta-tee");

	/* one that is in its exec while it is looked at is still shown */
	for (int i = 0; i < 100 && (!strstr(report, "sleep 603") || strstr(report, tee)); i++) {
		fake_send(f, FRAME_INSPECT, "{}");
		fake_wait(f, FRAME_INSPECTED);
		report = fake_str(f->last[FRAME_INSPECTED], "report");
	}
	assert_non_null(strstr(report, "sleep 601"));
	assert_null(strstr(report, tee));
	fake_release(f);
}

static void a_job_that_was_not_started_has_no_process(void **state)
{
	struct fake *f = *state;

	fake_ready(f);
	fake_send(f, FRAME_INSPECT, "{}");
	assert_string_equal(fake_str(fake_wait(f, FRAME_INSPECTED), "line"),
			    "its job has no process");
	fake_release(f);
}

int main(int argc, char **argv)
{
	int rc = fake_role(argc, argv);
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_line_can_be_compared),
		cmocka_unit_test(only_sockets_of_the_process_are_shown),
		cmocka_unit_test_setup_teardown(a_name_that_is_no_text_is_shown, fake_setup,
						fake_teardown),
		cmocka_unit_test_setup_teardown(a_stopped_process_comes_first, fake_setup,
						fake_teardown),
		cmocka_unit_test_setup_teardown(a_stopped_job_is_seen_as_such, fake_setup,
						fake_teardown),
		cmocka_unit_test_setup_teardown(a_process_that_copies_output_is_not_shown,
						fake_setup, fake_teardown),
		cmocka_unit_test_setup_teardown(a_job_that_was_not_started_has_no_process,
						fake_setup, fake_teardown),
	};

	return rc >= 0 ? rc : cmocka_run_group_tests(tests, NULL, NULL);
}
