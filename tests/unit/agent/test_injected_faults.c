/* Trouble that once cost a job, a core or the truth: each of these was a defect. */
#include "unit.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#include "agent/agent.h"
#include "agent/shim/status.h"
#include "agent/shim/supervisor.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "fake_master.h"
#include "link/layout.h"
#include "sys/proctree.h"

#define NEVER_STARTED "the shim was killed before the job had started"
#define BUDGET 1000000
#define FLOOD_MAX 32000000 /* bytes: the budget, what was under way, the pipes */
#define UNTIL(name) "while ! [ -s $DIR/" name " ]; do sleep 0.01; done; "

static bool alive(pid_t pid)
{
	struct proc_info p;

	return proc_read(pid, &p) && p.state != 'Z';
}

static char *in_node(struct fake *f, const char *name)
{
	return arena_printf(f->arena, "%s/%s", f->node, name);
}

static void make_file(const char *path)
{
	assert_int_equal(file_write_atomic(path, STR("x\n"), 0600, false, NULL), 0);
}

static bool says_clean(struct fake *f)
{
	const char *text = fake_file(f, in_node(f, "agent.json"));

	return str_ends(str_from(text), STR("\n" LAYOUT_AGENT_CLEAN));
}

/* Only a job whose program runs can be left by its shim. */
static pid_t start_running(struct fake *f, const char *script)
{
	pid_t pid = fake_start(f, arena_printf(f->arena, "echo x > $DIR/runs; %s", script));

	fake_file(f, fake_below(f, "runs"));
	return pid;
}

/* ---- a copy of a kept file that takes for ever ---- */

/* A file that begins with "slow"; a second one beside it says that its copy has begun. */
int __real_file_copy_content(int from, int to, struct err *err);
int __wrap_file_copy_content(int from, int to, struct err *err);
int __wrap_file_copy_content(int from, int to, struct err *err)
{
	char self[64], path[4096], word[4] = "";
	ssize_t n;

	if (pread(from, word, 4, 0) != 4 || memcmp(word, "slow", 4) != 0)
		return __real_file_copy_content(from, to, err);
	assert_int_equal(write(to, word, 4), 4);
	snprintf(self, sizeof(self), "/proc/self/fd/%d", from);
	n = readlink(self, path, sizeof(path) - 10);
	snprintf(path + n, 10, ".copying");
	make_file(path);
	for (;;)
		pause();
}

/* ---- what seldom happens to a shim: a file in the node directory asks for it ---- */

#define DIE "die"	      /* before the job's record */
#define DIE_BOTH "die-both"   /* the same, and the agent first */
#define DIE_LATER "die-later" /* between the job's record and its program */
#define NO_RECORD "no-record" /* the job's record cannot be written */
#define LINGER "linger"	      /* when everything is told */
#define ENDLESS "endless"     /* there is always more to read */

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

enum spool_state __real_spool_pump(struct spool *sp, int64_t now_ms, uint64_t *ret_moved);
enum spool_state __wrap_spool_pump(struct spool *sp, int64_t now_ms, uint64_t *ret_moved);
enum spool_state __wrap_spool_pump(struct spool *sp, int64_t now_ms, uint64_t *ret_moved)
{
	enum spool_state s = __real_spool_pump(sp, now_ms, ret_moved);

	if (sp->stream != STREAM_OUT || !is_asked(sp->dirfd, ENDLESS))
		return s;
	sp->eof = false;
	return SPOOL_MORE;
}

/* ---- the link ---- */

static void an_agent_sleeps_while_nobody_reads(void **state)
{
	struct fake *f = *state;
	char *spool = in_node(f, "out");
	int64_t until = clock_boot_ms() + FAKE_WAIT_MS;
	struct proc_info before, after;
	struct stat st = {0};

	fake_ready(f);
	fake_start(f, "head -c 20000000 /dev/zero; exec sleep 600");
	while (stat(spool, &st) < 0 || st.st_size < 20000000) {
		assert_true(clock_boot_ms() < until);
		poll(NULL, 0, 5);
	}
	/* What it may send is soon sent; from then on there is nothing to do. */
	for (int i = 0; i < 4; i++) {
		assert_true(proc_read(f->agent, &before));
		poll(NULL, 0, 500);
		assert_true(proc_read(f->agent, &after));
		if (after.cpu_ticks - before.cpu_ticks <= 5)
			return;
	}
	fail_msg("%d ticks in half a second", (int)(after.cpu_ticks - before.cpu_ticks));
}

/* A listener that takes nobody; returns who fills its backlog. */
static int listen_but_be_busy(struct fake *f)
{
	struct sockaddr_un sa = {.sun_family = AF_UNIX};
	int filler = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	int next = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);

	snprintf(sa.sun_path, sizeof(sa.sun_path), "%s/link.sock", f->dir);
	close(f->listener);
	assert_int_equal(unlink(sa.sun_path), 0);
	f->listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	assert_int_equal(bind(f->listener, (struct sockaddr *)&sa, sizeof(sa)), 0);
	assert_int_equal(listen(f->listener, 0), 0);
	assert_int_equal(connect(filler, (struct sockaddr *)&sa, sizeof(sa)), 0);
	assert_int_equal(connect(next, (struct sockaddr *)&sa, sizeof(sa)), -1);
	close(next);
	return filler;
}

static void a_busy_master_is_not_replaced_by_another(void **state)
{
	struct fake *f = *state;

	f->config = ",\"revive\":true";
	fake_ready(f);
	int filler = listen_but_be_busy(f);

	fake_hang_up(f);
	int64_t until = clock_boot_ms() + 3500; /* one that is missing is replaced after a second */

	while (clock_boot_ms() < until) {
		assert_false(file_exists(fake_below(f, "revived")));
		poll(NULL, 0, 20);
	}
	close(accept4(f->listener, NULL, NULL, SOCK_CLOEXEC));
	close(filler);
	fake_meet(f);
	fake_release(f);
}

/* ---- space ---- */

static void file_size_limit_case(struct fake *f, bool without_shim)
{
	struct rlimit before, small;

	getrlimit(RLIMIT_FSIZE, &before);
	small = (struct rlimit){1000000, before.rlim_max};
	f->config = ",\"full_ms\":300";
	setrlimit(RLIMIT_FSIZE, &small);
	fake_ready(f);
	setrlimit(RLIMIT_FSIZE, &before);
	start_running(f, UNTIL("go") "head -c 3000000 /dev/zero; echo x > $DIR/written; " UNTIL(
				 "end") "exit 4");
	pid_t shim = fake_shim(f);

	if (without_shim)
		fake_kill(shim);
	make_file(fake_below(f, "go"));
	fake_file(f, fake_below(f, "written"));
	assert_true(without_shim || alive(shim));
	make_file(fake_below(f, "end"));
	const struct doc *e = fake_end(f);
	const struct doc *gaps = doc_array(e, "gaps");
	uint64_t missing = 0;

	assert_int_equal(fake_int(e, "code"), 4);
	assert_string_equal(fake_str(e, "kind"), "none");
	for (size_t i = 0; gaps && i < gaps->array.n; i++)
		missing += (uint64_t)fake_int(gaps->array.v[i], "bytes");
	assert_int_equal(f->out[STREAM_OUT].n, 1000000);
	assert_int_equal(missing, 2000000);
}

static void a_file_size_limit_costs_bytes_not_the_job(void **state)
{
	file_size_limit_case(*state, false);
}

static void a_file_size_limit_does_not_cost_the_agent_that_took_over(void **state)
{
	file_size_limit_case(*state, true);
}

/* Nobody finds these: they have no mark, no parent of ours and no cgroup.  They end by themselves. */
#define FLOODS                                                                                     \
	"for i in 1 2 3 4; do env -i DIR=$DIR setsid timeout 30 sh -c \"echo \\$\\$ > "            \
	"$DIR/flood$i; "                                                                           \
	"while ! [ -e $DIR/go ]; do sleep 0.01; done; exec dd if=/dev/zero bs=1M\" & done; "

/* The size once it is at least this, or once the attempt has ended. */
static int64_t wait_size(struct fake *f, int64_t at_least, bool *ret_ended)
{
	char *out = in_node(f, "out"), *status = in_node(f, "status");
	int64_t until = clock_boot_ms() + FAKE_WAIT_MS;
	struct stat st;

	for (;;) {
		*ret_ended = strstr(fake_file(f, status), "\"exit\"") != NULL;
		if (stat(out, &st) < 0)
			st.st_size = 0;
		if (*ret_ended || st.st_size >= at_least)
			return st.st_size;
		if (clock_boot_ms() > until)
			fail_msg("neither %d bytes nor an end", (int)at_least);
		poll(NULL, 0, 5);
	}
}

static void a_flood_after_the_end_is_held_back_by_the_budget(void **state)
{
	struct fake *f = *state;
	pid_t floods[4];
	bool ended;

	f->no_cgroup = true;
	f->config = ",\"settle_ms\":1000,\"spool_bytes\":1000000";
	fake_ready(f);
	pid_t job = fake_start(f, FLOODS UNTIL("end") "exit 9");

	for (int i = 0; i < 4; i++) /* from then on they have no mark */
		floods[i] = fake_pid_in(f, arena_printf(f->arena, "flood%d", i + 1));
	fake_kill_both(f);
	fake_agent(f);
	fake_meet(f);
	make_file(fake_below(f, "go"));
	assert_true(wait_size(f, BUDGET, &ended) >= BUDGET);
	assert_false(ended);
	make_file(fake_below(f, "end"));
	fake_gone(job);
	int64_t size = wait_size(f, FLOOD_MAX, &ended);

	for (int i = 0; i < 4; i++) /* a job's end of a pipe never breaks: they would wait */
		kill(floods[i], SIGKILL);
	assert_true(size < FLOOD_MAX);
	assert_true(ended);
}

static void a_pipe_that_never_runs_dry_does_not_hold_the_end_up(void **state)
{
	struct fake *f = *state;

	f->config = ",\"settle_ms\":100";
	fake_ready(f);
	make_file(in_node(f, ENDLESS));
	fake_start(f, "exit 9");
	assert_int_equal(fake_int(fake_end(f), "code"), 9);
}

/* ---- what is said of the end ---- */

static void removed_case(struct fake *f, const char *name)
{
	f->no_cgroup = true;
	fake_ready(f);
	pid_t pid = start_running(f, "exec sleep 600");
	pid_t shim = fake_shim(f);

	assert_int_equal(unlink(in_node(f, name)), 0);
	fake_kill(shim);
	fake_wait(f, FRAME_EXIT);
	fake_send(f, FRAME_RELEASE, "{}");
	assert_int_equal(fake_agent_gone(f), 0);
	assert_true(alive(pid)); /* the driver must look for it */
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
	make_file(in_node(f, LINGER));
	fake_start(f, "exit 0");
	pid_t shim = fake_shim(f);

	fake_end(f);
	fake_send(f, FRAME_RELEASE, "{}");
	for (int64_t until = clock_boot_ms() + 300; clock_boot_ms() < until; poll(NULL, 0, 5)) {
		assert_true(alive(shim));
		assert_false(says_clean(f));
	}
	assert_int_equal(unlink(in_node(f, LINGER)), 0);
	assert_int_equal(fake_agent_gone(f), 0);
	assert_false(alive(shim));
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
	make_file(in_node(f, DIE));
	fake_start(f, "echo x > $DIR/ran");
	never_ran(f);
}

static void a_job_that_never_ran_is_said_to_be_one_by_a_later_agent(void **state)
{
	struct fake *f = *state;

	fake_ready(f);
	make_file(in_node(f, DIE_BOTH));
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
	make_file(in_node(f, DIE_LATER));
	fake_start(f, "echo x > $DIR/ran");
	assert_int_equal(fake_int(fake_end(f), "signal"), SIGKILL);
	assert_false(file_exists(fake_below(f, "ran")));
}

static void a_job_that_cannot_be_recorded_does_not_run(void **state)
{
	struct fake *f = *state;

	fake_ready(f);
	make_file(in_node(f, NO_RECORD));
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
	pid_t pid = start_running(f, UNTIL("go") "exit 3");
	pid_t shim = fake_shim(f);

	/* It ends while nobody is there to see its pipes close. */
	kill(f->agent, SIGSTOP);
	fake_kill(shim);
	make_file(fake_below(f, "go"));
	fake_gone(pid);
	kill(f->agent, SIGCONT);
	const struct doc *e = fake_end(f);

	assert_int_equal(fake_int(e, "code"), 3);
	assert_string_equal(fake_str(e, "kind"), "none");
}

/* ---- what is left of a job ---- */

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
	assert_true(alive(pid));
	make_file(fake_below(f, "go"));
	fake_gone(job);
	fake_wait(f, FRAME_EXIT);
	assert_false(alive(pid));
}

static void a_big_environment_does_not_hide_the_mark(void **state)
{
	struct fake *f = *state;

	give_big_environment(f);
	fake_ready(f);
	pid_t job = fake_start(f, DAEMON UNTIL("daemon") UNTIL("go"));

	daemon_is_found_by_its_mark(f, job);
}

static void a_big_environment_does_not_hide_the_mark_of_an_orphan(void **state)
{
	struct fake *f = *state;
	int64_t until = clock_boot_ms() + FAKE_WAIT_MS;
	struct proc_info p;

	give_big_environment(f);
	fake_ready(f);
	pid_t job = fake_start(f, "( " DAEMON "); " UNTIL("daemon") UNTIL("go"));
	pid_t pid = fake_pid_in(f, "daemon"), shim = fake_shim(f);

	do {
		assert_true(proc_read(pid, &p) && clock_boot_ms() < until);
	} while (p.ppid != shim);
	daemon_is_found_by_its_mark(f, job);
}

/* ---- what is kept ---- */

static void what_to_keep_is_asked_for_again_after_a_crash(void **state)
{
	struct fake *f = *state;
	const char *inputs = arena_printf(
		f->arena,
		"{\"argv0\":\"sh\",\"path\":\"/bin:/usr/bin\",\"cwd\":\"\",\"keep\":[\"model\"],\"output_dir\":\"%s/kept\"}",
		f->dir);

	fake_agent(f);
	fake_meet(f);
	fake_send(f, FRAME_INPUTS, inputs);
	assert_true(doc_bool(fake_wait(f, FRAME_READY), "ok", false));
	pid_t pid = fake_start(f, "echo m > model; " UNTIL("go"));
	pid_t shim = fake_shim(f);

	fake_kill(f->agent);
	make_file(fake_below(f, "go"));
	fake_gone(pid);
	fake_gone(shim);
	/* The next one knows of the end for a while before anybody tells it what to keep. */
	fake_agent(f);
	fake_accept(f);
	for (int i = 0; i < 2; i++) {
		fake_send(f, FRAME_PING, "{}");
		fake_wait(f, FRAME_PONG);
	}
	fake_welcome(f, 60000);
	const struct doc *c = fake_wait(f, FRAME_COLLECTED);

	assert_null(doc_get(c, "error"));
	assert_int_equal(fake_int(c, "files"), 1);
	assert_string_equal(fake_file(f, fake_below(f, "kept/model")), "m\n");
}

/* ---- what a job is born with ---- */

static void a_job_that_removes_its_own_node_directory_is_told_so(void **state)
{
	struct fake *f = *state;

	fake_ready(f);
	/* It removes the directory of this test and nothing else, wherever it runs. */
	assert_non_null(strstr(f->node, "/regatta-unit-"));
	assert_string_equal(f->node, fake_below(f, "node"));
	fake_start(f, "case $DIR in /*/regatta-unit-*) cd / && rm -rf \"$DIR/node\";; esac");
	const struct doc *e = fake_wait(f, FRAME_EXIT);

	assert_string_equal(fake_str(e, "reason"),
			    "the node's directory was removed while the job ran, "
			    "perhaps by the job itself: how it ended is unknown");
}

static void copying_for_ever(struct fake *f)
{
	fake_agent(f);
	fake_meet(f);
	fake_send(f, FRAME_INPUTS,
		  arena_printf(f->arena,
			       "{\"argv0\":\"sh\",\"path\":\"/bin:/usr/bin\",\"cwd\":\"\","
			       "\"keep\":[\"big\"],\"output_dir\":\"%s/kept\"}",
			       f->dir));
	fake_wait(f, FRAME_READY);
	fake_start(f, "echo slow > big; pwd > $DIR/where");
	fake_wait(f, FRAME_EXIT);
	const char *where = fake_file(f, fake_below(f, "where"));

	fake_file(f, arena_printf(f->arena, "%.*s/big.copying", (int)strcspn(where, "\n"), where));
}

static bool is_empty(struct fake *f, const char *name)
{
	char **names;
	size_t n;

	assert_int_equal(file_list_tree(fake_below(f, name), 10, &names, &n, NULL), 0);
	file_list_free(names, n);
	return n == 0;
}

static void a_signal_stops_the_copying_of_kept_files(void **state)
{
	for (int hurry = 0; hurry < 2; hurry++) {
		struct fake *f = *state;

		if (hurry == 1) {
			fake_teardown(state);
			assert_int_equal(fake_setup(state), 0);
			f = *state;
		}
		copying_for_ever(f);
		fake_send(f, FRAME_SIGNAL,
			  hurry ? "{\"sig\":\"KILL\",\"hurry\":true}"
				: "{\"sig\":\"TERM\",\"hurry\":false}");
		assert_string_equal(fake_str(fake_wait(f, FRAME_COLLECTED), "error"),
				    "keeping files was stopped");
		assert_true(is_empty(f, "kept"));
		fake_release(f);
	}
}

static void a_release_stops_the_copying_of_kept_files(void **state)
{
	struct fake *f = *state;

	copying_for_ever(f);
	fake_release(f);
	assert_true(is_empty(f, "kept"));
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
		CASE(an_agent_sleeps_while_nobody_reads),
		CASE(a_busy_master_is_not_replaced_by_another),
		CASE(a_file_size_limit_costs_bytes_not_the_job),
		CASE(a_file_size_limit_does_not_cost_the_agent_that_took_over),
		CASE(a_flood_after_the_end_is_held_back_by_the_budget),
		CASE(a_pipe_that_never_runs_dry_does_not_hold_the_end_up),
		CASE(an_attempt_whose_record_was_removed_is_not_called_clean),
		CASE(an_attempt_whose_pipe_was_removed_is_not_called_clean),
		CASE(a_shim_is_gone_before_clean_is_said),
		CASE(a_job_that_never_ran_has_no_exit_code),
		CASE(a_job_that_never_ran_is_said_to_be_one_by_a_later_agent),
		CASE(a_job_dies_with_its_shim_until_its_program_runs),
		CASE(a_job_that_cannot_be_recorded_does_not_run),
		CASE(a_silent_job_ends_at_once_after_its_shim_was_killed),
		CASE(a_big_environment_does_not_hide_the_mark),
		CASE(a_big_environment_does_not_hide_the_mark_of_an_orphan),
		CASE(what_to_keep_is_asked_for_again_after_a_crash),
		CASE(a_job_that_removes_its_own_node_directory_is_told_so),
		CASE(a_signal_stops_the_copying_of_kept_files),
		CASE(a_release_stops_the_copying_of_kept_files),
		CASE(the_jobs_umask_is_022_whatever_ours_is),
		CASE(the_job_has_no_ignored_signals),
		CASE(the_job_has_no_blocked_signals),
	};
	int role = fake_role(argc, argv);

	if (role >= 0)
		return role;
	return cmocka_run_group_tests_name("agent: injected faults", tests, NULL, NULL);
}
