/* What a node runs before its job. */
#include "unit.h"

#include <signal.h>
#include <string.h>
#include <unistd.h>

#include "agent/relay.h"
#include "base/buf.h"
#include "base/file.h"
#include "fake_master.h"

#define ENV "\"setup_env\":{\"PATH\":\"/usr/bin:/bin\",\"COLOR\":\"red\"}"

/* Sends INPUTS with these commands (a JSON list) to a new agent. */
static void set_up(struct fake *f, const char *commands, const char *more)
{
	char *json =
		xasprintf("{\"argv0\":\"sh\",\"path\":\"/usr/bin:/bin\",\"setup\":%s," ENV "%s}",
			  commands, more);

	fake_agent(f);
	fake_meet(f);
	fake_send(f, FRAME_INPUTS, json);
	free(json);
}

static void assert_fails(struct fake *f, const char *kind, const char *reason)
{
	const struct doc *r = fake_wait(f, FRAME_READY);

	assert_false(doc_bool(r, "ok", true));
	assert_string_equal(fake_str(r, "kind"), kind);
	assert_string_equal(fake_str(r, "reason"), reason);
}

static void what_setup_prints_comes_before_ready_and_before_the_job(void **state)
{
	struct fake *f = *state;

	set_up(f, "[\"echo $COLOR > f; pwd | sed s,.*/,,\",\"cat f; echo oops >&2\"]", "");
	assert_true(doc_bool(fake_wait(f, FRAME_READY), "ok", false));
	const char *want =
		"+ echo $COLOR > f; pwd | sed s,.*/,,\nwork\n+ cat f; echo oops >&2\nred\n";

	assert_string_equal(f->out[STREAM_OUT].p, want);
	assert_string_equal(f->out[STREAM_ERR].p, "oops\n");
	fake_start(f, "cat work/f 2>/dev/null; echo job");
	fake_end(f);
	char *all = xasprintf("%sjob\n", want);

	assert_string_equal(f->out[STREAM_OUT].p, all);
	free(all);
	fake_release(f);
}

static void ready_waits_until_everything_that_setup_printed_was_sent(void **state)
{
	struct fake *f = *state;
	const size_t all = strlen("+ head -c 5000000 /dev/zero\n") + 5000000;

	f->hold_acks = true;
	set_up(f, "[\"head -c 5000000 /dev/zero\"]", "");
	fake_wait_bytes(f, STREAM_OUT, RELAY_WINDOW);
	while (!strstr(fake_file(f, fake_in_node(f, "setup/status")), "\"exit\""))
		usleep(1000);
	f->hold_acks = false;
	fake_ack(f, STREAM_OUT);
	assert_true(doc_bool(fake_wait(f, FRAME_READY), "ok", false));
	assert_int_equal(f->out[STREAM_OUT].n, all);
	fake_release(f);
}

static void a_command_that_fails_ends_setup(void **state)
{
	struct fake *f = *state;

	set_up(f, "[\"true\",\"exit 7\",\"touch never\"]", "");
	assert_fails(f, "invalid", "setup 'exit 7' failed with exit code 7");
	assert_int_not_equal(access(fake_in_node(f, "work/never"), F_OK), 0);
	fake_release(f);
}

static void the_last_line_of_its_errors_is_the_reason(void **state)
{
	struct fake *f = *state;

	set_up(f, "[\"yes | head -c 9000 >&2; echo E: no such thing >&2; echo; exit 7 # x\"]", "");
	assert_fails(f, "invalid",
		     "setup 'yes | head -c 9000 >&2; echo E: no such thing >&2; echo; exit 7 # x' "
		     "failed with exit code 7: E: no such thing");
	fake_release(f);
}

static void a_command_that_is_killed_is_named_with_its_signal(void **state)
{
	struct fake *f = *state;

	set_up(f, "[\"kill -KILL $$\"]", "");
	assert_fails(f, "invalid", "setup 'kill -KILL $$' was killed by signal 9");
	fake_release(f);
}

static void all_commands_together_have_one_time_limit(void **state)
{
	struct fake *f = *state;

	set_up(f, "[\"sleep 0.6\",\"sleep 600\"]", ",\"setup_ms\":1000");
	assert_fails(f, "timeout", "setup 'sleep 600' was not done within 1.0 s (timeouts.setup)");
	fake_release(f);
}

/* A program of this name in the test's directory that writes its arguments to a file. */
static void fake_program(struct fake *f, const char *name)
{
	char *text = xasprintf(
		"#!/bin/sh\nfor a; do printf '%%s,' \"$a\"; done >> %s/args\necho >> %s/args\n",
		f->dir, f->dir);

	assert_int_equal(file_write(fake_below(f, name), str_from(text), 0700, NULL), 0);
	free(text);
}

static void install(struct fake *f, const char *manager)
{
	char *json = xasprintf(
		"{\"argv0\":\"sh\",\"path\":\"/usr/bin:/bin\",\"packages\":[\"a\",\"b c\"],"
		"\"setup\":[\"echo setup >> %s/args\"],\"setup_env\":{\"PATH\":\"%s\"}}",
		f->dir, f->dir);

	fake_program(f, manager);
	fake_agent(f);
	fake_meet(f);
	fake_send(f, FRAME_INPUTS, json);
	free(json);
	assert_true(doc_bool(fake_wait(f, FRAME_READY), "ok", false));
}

static void packages_are_installed_before_setup_by_apt(void **state)
{
	struct fake *f = *state;

	install(f, "apt-get");
	assert_string_equal(
		fake_file(f, fake_below(f, "args")),
		"-q,-o,DPkg::Lock::Timeout=300,-o,APT::Update::Error-Mode=any,update,\n-q,-o,DPkg::Lock::Timeout=300,-o,"
		"APT::Get::Assume-Yes=true,-o,APT::Install-Recommends=false,install,--,a,b c,\nsetup\n");
	fake_release(f);
}

/* An apt-get that cannot update, and installs only "old". */
static void install_without_lists(struct fake *f, const char *name)
{
	char *json = xasprintf("{\"argv0\":\"sh\",\"path\":\"/usr/bin:/bin\",\"packages\":[\"%s\"],"
			       "\"setup_env\":{\"PATH\":\"%s\"}}",
			       name, f->dir);

	assert_int_equal(
		file_write(
			fake_below(f, "apt-get"),
			STR("#!/bin/sh\nfor a; do case $a in update) exit 100 ;; old) exit 0 ;; esac; "
			    "done; echo E: no such package >&2; exit 100\n"),
			0700, NULL),
		0);
	fake_agent(f);
	fake_meet(f);
	fake_send(f, FRAME_INPUTS, json);
	free(json);
}

static void lists_that_cannot_be_fetched_are_the_reason(void **state)
{
	struct fake *f = *state;

	install_without_lists(f, "new");
	assert_fails(
		f, "invalid",
		"setup 'install new' failed with exit code 100: apt-get update could not fetch the "
		"lists of packages: does this machine reach its mirror?");
	fake_release(f);
}

static void lists_that_are_old_may_do(void **state)
{
	struct fake *f = *state;

	install_without_lists(f, "old");
	assert_true(doc_bool(fake_wait(f, FRAME_READY), "ok", false));
	fake_release(f);
}

static void packages_are_installed_by_what_the_machine_has(void **state)
{
	struct fake *f = *state;

	install(f, "apk");
	assert_string_equal(fake_file(f, fake_below(f, "args")),
			    "add,--no-cache,--,a,b c,\nsetup\n");
	fake_release(f);
}

static void a_release_stops_setup(void **state)
{
	struct fake *f = *state;
	char *commands = xasprintf(
		"[\"export DIR=%s; " FAKE_DAEMON FAKE_UNTIL_DAEMON "sleep 600\"]", f->dir);

	set_up(f, commands, "");
	free(commands);
	pid_t daemon = fake_pid_in(f, "daemon");

	fake_send(f, FRAME_RELEASE, "{}");
	fake_agent_gone(f);
	fake_gone(daemon);
}

static void setup_outlives_the_agent_and_runs_once(void **state)
{
	struct fake *f = *state;
	char *commands = xasprintf(
		"[\"DIR=%s; echo $$ >> $DIR/began; " FAKE_UNTIL("go") "echo end\"]", f->dir);

	set_up(f, commands, "");
	free(commands);
	fake_file(f, fake_below(f, "began"));
	fake_kill(f->agent);
	fake_hang_up(f);
	buf_reset(&f->out[STREAM_OUT]);
	fake_agent(f);
	fake_meet(f);
	fake_touch(fake_below(f, "go"));
	assert_true(doc_bool(fake_wait(f, FRAME_READY), "ok", false));
	const char *began = fake_file(f, fake_below(f, "began"));

	assert_ptr_equal(strchr(began, '\n'), began + strlen(began) - 1); /* one line */
	assert_non_null(strstr(f->out[STREAM_OUT].p, "\nend\n"));
	fake_release(f);
}

static void a_later_agent_knows_that_setup_is_done(void **state)
{
	struct fake *f = *state;
	char *commands =
		xasprintf("[\"echo x >> %s/count\",\"echo y >> %s/count\"]", f->dir, f->dir);

	set_up(f, commands, "");
	free(commands);
	fake_wait(f, FRAME_READY);
	fake_kill(f->agent);
	fake_hang_up(f);
	fake_agent(f);
	fake_meet(f);
	assert_true(doc_bool(fake_wait(f, FRAME_READY), "ok", false));
	assert_string_equal(fake_file(f, fake_below(f, "count")), "x\ny\n");
	fake_release(f);
}

int main(int argc, char **argv)
{
	int rc = fake_role(argc, argv);
#define CASE(fn) cmocka_unit_test_setup_teardown(fn, fake_setup, fake_teardown)
	static const struct CMUnitTest tests[] = {
		CASE(what_setup_prints_comes_before_ready_and_before_the_job),
		CASE(ready_waits_until_everything_that_setup_printed_was_sent),
		CASE(a_command_that_fails_ends_setup),
		CASE(the_last_line_of_its_errors_is_the_reason),
		CASE(a_command_that_is_killed_is_named_with_its_signal),
		CASE(all_commands_together_have_one_time_limit),
		CASE(packages_are_installed_before_setup_by_apt),
		CASE(lists_that_cannot_be_fetched_are_the_reason),
		CASE(lists_that_are_old_may_do),
		CASE(packages_are_installed_by_what_the_machine_has),
		CASE(a_release_stops_setup),
		CASE(setup_outlives_the_agent_and_runs_once),
		CASE(a_later_agent_knows_that_setup_is_done),
	};

	return rc >= 0 ? rc : cmocka_run_group_tests_name("agent: setup", tests, NULL, NULL);
}
