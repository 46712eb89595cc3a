/* The records of an attempt, and how its end is reported when a part of them is missing. */
#include "unit.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include "agent/shim/status.h"
#include "agent/shim/supervisor.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "fake_master.h"
#include "link/layout.h"
#include "sys/proctree.h"

#define NEVER_STARTED "the shim was killed before the job had started"

/* ---- what seldom happens to a shim: a file in the node directory asks for it ---- */

#define DIE "die"		/* before the job's record */
#define DIE_BOTH "die-both"	/* the same, and the agent first */
#define DIE_LATER "die-later"	/* between the job's record and its program */
#define NO_RECORD "no-record"	/* the job's record cannot be written */
#define STOP_AGENT "stop-agent" /* the agent sees nothing of the attempt until it goes on */
#define LINGER "linger"		/* when everything is told */

static bool is_asked(int dirfd, const char *name)
{
	return faccessat(dirfd, name, F_OK, 0) == 0;
}

/* In the job's process, whose parent is the shim and whose grandparent is the agent. */
static void kill_shim(bool agent_too)
{
	struct proc_info shim;

	if (agent_too && proc_read(getppid(), &shim))
		kill(shim.ppid, SIGKILL);
	kill(getppid(), SIGKILL);
	for (;;)
		pause(); /* it does not outlive the shim */
}

static void stop_agent(void)
{
	struct proc_info shim;

	if (proc_read(getppid(), &shim))
		kill(shim.ppid, SIGSTOP);
}

int __real_status_add_job(int fd, struct proc_id job, struct err *err);
int __wrap_status_add_job(int fd, struct proc_id job, struct err *err);
int __wrap_status_add_job(int fd, struct proc_id job, struct err *err)
{
	CLEANUP(close_fdp) int dirfd = -1;
	char link[64], path[4096];
	ssize_t n;

	snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
	n = readlink(link, path, sizeof(path) - 1);
	path[n < 0 ? 0 : n] = 0;
	*strrchr(path, '/') = 0; /* the status file's directory */
	dirfd = open(path, O_PATH | O_CLOEXEC);
	bool both = is_asked(dirfd, DIE_BOTH);

	if (both || is_asked(dirfd, DIE))
		kill_shim(both);
	if (is_asked(dirfd, STOP_AGENT))
		stop_agent();
	if (is_asked(dirfd, NO_RECORD))
		return err_errno(err, ENOSPC, "write the status file");
	int rc = __real_status_add_job(fd, job, err);

	if (is_asked(dirfd, DIE_LATER))
		kill_shim(false);
	return rc;
}

int64_t __real_supervisor_step(struct supervisor *sv, int64_t now_ms);
int64_t __wrap_supervisor_step(struct supervisor *sv, int64_t now_ms);
int64_t __wrap_supervisor_step(struct supervisor *sv, int64_t now_ms)
{
	int64_t wait = __real_supervisor_step(sv, now_ms), until = clock_boot_ms() + FAKE_WAIT_MS;

	while (sv->phase == SUPERVISOR_DONE && is_asked(sv->dirfd, LINGER) &&
	       clock_boot_ms() < until)
		poll(NULL, 0, 1);
	return wait;
}

/* ---- what is on disk ---- */

/* The status file of an attempt is synced: a file beside it says which of its records were in it. */
static void note_sync(int fd)
{
	char link[64], path[4096], text[4096];
	ssize_t n, length;

	snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
	n = readlink(link, path, sizeof(path) - 20);
	path[n < 0 ? 0 : n] = 0;
	char *name = strrchr(path, '/');

	if (!name || strncmp(name, "/" LAYOUT_STATUS, strlen("/" LAYOUT_STATUS)) != 0)
		return;
	length = pread(fd, text, sizeof(text) - 1, 0);
	text[length < 0 ? 0 : length] = 0;
	snprintf(name, 20, "%s",
		 strstr(text, "\"rec\":\"exit\"") ? "/synced-exit" : "/synced-claim");
	(void)file_write(path, STR("x"), 0600, NULL); /* unless the directory is gone */
}

/* Replaces the function of libc. */
int fsync(int fd)
{
	note_sync(fd);
	return (int)syscall(SYS_fsync, fd);
}

int fdatasync(int fd)
{
	note_sync(fd);
	return (int)syscall(SYS_fdatasync, fd);
}

/* Nobody would notice its loss (docs/adr/0009). */
static void a_claim_without_a_boot_is_on_disk_before_the_job_runs(void **state)
{
	struct fake *f = *state;

	fake_ready(f);
	fake_start(f, "[ -e $DIR/node/synced-claim ] || exit 9");
	assert_int_equal(fake_int(fake_end(f), "code"), 0);
}

static void an_exit_is_on_disk_when_the_shim_has_gone(void **state)
{
	struct fake *f = *state;

	fake_ready(f);
	fake_start(f, "exit 3");
	pid_t shim = fake_shim(f);

	assert_int_equal(fake_int(fake_end(f), "code"), 3);
	fake_gone(shim);
	assert_true(file_exists(fake_in_node(f, "synced-exit")));
}

/* ---- what is said of the end ---- */

static bool says_clean(struct fake *f)
{
	const char *text = fake_file(f, fake_in_node(f, "agent.json"));

	return str_ends(str_from(text), STR("\n" LAYOUT_AGENT_CLEAN));
}

/* Only a job whose program runs can be left by its shim. */
static pid_t start_running(struct fake *f, const char *script)
{
	pid_t pid = fake_start(f, arena_printf(f->arena, "echo x > $DIR/runs; %s", script));

	fake_file(f, fake_below(f, "runs"));
	return pid;
}

static void removed_case(struct fake *f, const char *name)
{
	f->no_cgroup = true;
	fake_ready(f);
	pid_t pid = start_running(f, "exec sleep 600");
	pid_t shim = fake_shim(f);

	assert_int_equal(unlink(fake_in_node(f, name)), 0);
	fake_kill(shim);
	fake_wait(f, FRAME_EXIT);
	fake_send(f, FRAME_RELEASE, "{}");
	assert_int_equal(fake_agent_gone(f), 0);
	assert_true(fake_alive(pid)); /* the driver must look for it */
	assert_false(says_clean(f));
}

static void an_attempt_whose_record_was_removed_is_not_called_clean(void **state)
{
	removed_case(*state, "status");
}

static void an_attempt_whose_pipe_was_removed_is_not_called_clean(void **state)
{
	removed_case(*state, "out.fifo");
}

static void a_shim_is_gone_before_clean_is_said(void **state)
{
	struct fake *f = *state;

	fake_ready(f);
	fake_touch(fake_in_node(f, LINGER));
	fake_start(f, "exit 0");
	pid_t shim = fake_shim(f);

	fake_end(f);
	fake_send(f, FRAME_RELEASE, "{}");
	for (int64_t until = clock_boot_ms() + 300; clock_boot_ms() < until; poll(NULL, 0, 5)) {
		assert_true(fake_alive(shim));
		assert_false(says_clean(f));
	}
	assert_int_equal(unlink(fake_in_node(f, LINGER)), 0);
	assert_int_equal(fake_agent_gone(f), 0);
	assert_false(fake_alive(shim));
	assert_true(says_clean(f));
}

static void never_ran(struct fake *f)
{
	const struct doc *e = fake_end(f);

	assert_int_equal(fake_int(e, "code"), -1);
	assert_string_equal(fake_str(e, "kind"), "unavailable");
	assert_string_equal(fake_str(e, "reason"), NEVER_STARTED);
	assert_false(file_exists(fake_below(f, "ran")));
}

static void a_job_that_never_ran_has_no_exit_code(void **state)
{
	struct fake *f = *state;

	fake_ready(f);
	fake_touch(fake_in_node(f, DIE));
	fake_start(f, "echo x > $DIR/ran");
	never_ran(f);
}

static void a_job_that_never_ran_is_said_to_be_one_by_a_later_agent(void **state)
{
	struct fake *f = *state;

	fake_ready(f);
	fake_touch(fake_in_node(f, DIE_BOTH));
	fake_send(f, FRAME_START,
		  arena_printf(f->arena,
			       "{\"attempt\":1,\"argv\":[\"/bin/sh\",\"-c\",\"echo x > "
			       "%s/ran\"],\"env\":{},\"cwd\":\"\",\"grace_ms\":300}",
			       f->dir));
	fake_agent_gone(f);
	fake_gone(fake_shim(f));
	fake_agent(f);
	assert_string_equal(fake_str(fake_meet(f), "holds"), "started");
	never_ran(f);
}

static void a_job_dies_with_its_shim_until_its_program_runs(void **state)
{
	struct fake *f = *state;

	fake_ready(f);
	fake_touch(fake_in_node(f, DIE_LATER));
	fake_start(f, "echo x > $DIR/ran");
	assert_int_equal(fake_int(fake_end(f), "signal"), SIGKILL);
	assert_false(file_exists(fake_below(f, "ran")));
}

static void a_job_that_cannot_be_recorded_does_not_run(void **state)
{
	struct fake *f = *state;

	fake_ready(f);
	fake_touch(fake_in_node(f, NO_RECORD));
	fake_start(f, "echo x > $DIR/ran");
	const struct doc *e = fake_end(f);

	assert_int_equal(fake_int(e, "code"), 126);
	assert_string_equal(fake_str(e, "reason"),
			    "record the job's start: No space left on device");
	assert_false(file_exists(fake_below(f, "ran")));
}

static void a_silent_job_ends_at_once_after_its_shim_was_killed(void **state)
{
	struct fake *f = *state;

	f->config = ",\"settle_ms\":600000";
	fake_ready(f);
	pid_t pid = start_running(f, FAKE_UNTIL("go") "exit 3");
	pid_t shim = fake_shim(f);

	/* It ends while nobody is there to see its pipes close. */
	kill(f->agent, SIGSTOP);
	fake_kill(shim);
	fake_touch(fake_below(f, "go"));
	fake_gone(pid);
	kill(f->agent, SIGCONT);
	const struct doc *e = fake_end(f);

	assert_int_equal(fake_int(e, "code"), 3);
	assert_string_equal(fake_str(e, "kind"), "none");
}

/* It removes the directory of this test and nothing else, wherever it runs; then it does more. */
static void start_removing(struct fake *f, const char *more)
{
	assert_non_null(strstr(f->node, "/regatta-unit-"));
	assert_string_equal(f->node, fake_below(f, "node"));
	fake_send(f, FRAME_START,
		  arena_printf(f->arena,
			       "{\"attempt\":1,\"argv\":[\"/bin/sh\",\"-c\",\"case $DIR in "
			       "/*/regatta-unit-*) cd / && rm -rf \\\"$DIR/node\\\";; esac; %s\"],"
			       "\"env\":{\"DIR\":\"%s\"},\"cwd\":\"\",\"grace_ms\":300}",
			       more, f->dir));
}

static void is_told_that_its_directory_is_gone(struct fake *f)
{
	assert_string_equal(fake_str(fake_wait(f, FRAME_EXIT), "reason"),
			    "the node's directory was removed while the job ran, "
			    "perhaps by the job itself: how it ended is unknown");
}

static void a_job_that_removes_its_own_node_directory_is_told_so(void **state)
{
	struct fake *f = *state;

	fake_ready(f);
	start_removing(f, "true");
	is_told_that_its_directory_is_gone(f);
}

static void a_job_whose_claim_the_agent_never_saw_is_not_said_never_to_have_started(void **state)
{
	struct fake *f = *state;

	fake_ready(f);
	fake_touch(fake_in_node(f, STOP_AGENT));
	start_removing(f, "echo x > $DIR/removed");
	fake_file(f, fake_below(f, "removed"));
	kill(f->agent, SIGCONT);
	is_told_that_its_directory_is_gone(f);
}

static void a_shim_that_is_killed_without_its_directory_may_have_run_the_job(void **state)
{
	struct fake *f = *state;

	fake_ready(f);
	fake_touch(fake_in_node(f, STOP_AGENT));
	start_removing(f, "kill -9 $PPID; echo x > $DIR/removed");
	fake_file(f, fake_below(f, "removed"));
	kill(f->agent, SIGCONT);
	is_told_that_its_directory_is_gone(f);
}

static void output_without_a_directory_does_not_keep_the_job(void **state)
{
	struct fake *f = *state;

	f->config = ",\"full_ms\":600000";
	fake_ready(f);
	start_removing(f, "echo late");
	is_told_that_its_directory_is_gone(f);
}

int main(int argc, char **argv)
{
#define CASE(fn) cmocka_unit_test_setup_teardown(fn, fake_setup, fake_teardown)
	static const struct CMUnitTest tests[] = {
		CASE(a_claim_without_a_boot_is_on_disk_before_the_job_runs),
		CASE(an_exit_is_on_disk_when_the_shim_has_gone),
		CASE(an_attempt_whose_record_was_removed_is_not_called_clean),
		CASE(an_attempt_whose_pipe_was_removed_is_not_called_clean),
		CASE(a_shim_is_gone_before_clean_is_said),
		CASE(a_job_that_never_ran_has_no_exit_code),
		CASE(a_job_that_never_ran_is_said_to_be_one_by_a_later_agent),
		CASE(a_job_dies_with_its_shim_until_its_program_runs),
		CASE(a_job_that_cannot_be_recorded_does_not_run),
		CASE(a_silent_job_ends_at_once_after_its_shim_was_killed),
		CASE(a_job_that_removes_its_own_node_directory_is_told_so),
		CASE(a_job_whose_claim_the_agent_never_saw_is_not_said_never_to_have_started),
		CASE(a_shim_that_is_killed_without_its_directory_may_have_run_the_job),
		CASE(output_without_a_directory_does_not_keep_the_job),
	};
	int role = fake_role(argc, argv);

	if (role >= 0)
		return role;
	return cmocka_run_group_tests_name("agent: attempt records", tests, NULL, NULL);
}
