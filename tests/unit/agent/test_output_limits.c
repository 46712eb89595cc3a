/* Output that reaches a limit: of the window, the size of a file, the spool, the time. */
#include "unit.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include "agent/shim/spool.h"
#include "base/clock.h"
#include "fake_master.h"
#include "sys/proctree.h"

#define BUDGET 1000000
#define FLOOD_MAX 32000000 /* bytes: the budget, what was under way, the pipes */
#define ENDLESS "endless"  /* a file in the node directory: there is always more to read */

enum spool_state __real_spool_pump(struct spool *sp, int64_t now_ms, uint64_t *ret_moved);
enum spool_state __wrap_spool_pump(struct spool *sp, int64_t now_ms, uint64_t *ret_moved);
enum spool_state __wrap_spool_pump(struct spool *sp, int64_t now_ms, uint64_t *ret_moved)
{
	enum spool_state s = __real_spool_pump(sp, now_ms, ret_moved);

	if (sp->stream != STREAM_OUT || faccessat(sp->dirfd, ENDLESS, F_OK, 0) < 0)
		return s;
	sp->eof = false;
	return SPOOL_MORE;
}

static void an_agent_sleeps_while_nobody_reads(void **state)
{
	struct fake *f = *state;
	char *spool = fake_in_node(f, "out");
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

/* Only a job whose program runs can be left by its shim. */
static pid_t start_running(struct fake *f, const char *script)
{
	pid_t pid = fake_start(f, arena_printf(f->arena, "echo x > $DIR/runs; %s", script));

	fake_file(f, fake_below(f, "runs"));
	return pid;
}

static void file_size_limit_case(struct fake *f, bool without_shim)
{
	struct rlimit before, small;

	getrlimit(RLIMIT_FSIZE, &before);
	small = (struct rlimit){1000000, before.rlim_max};
	f->config = ",\"full_ms\":300";
	setrlimit(RLIMIT_FSIZE, &small);
	fake_ready(f);
	setrlimit(RLIMIT_FSIZE, &before);
	start_running(
		f, FAKE_UNTIL("go") "head -c 3000000 /dev/zero; echo x > $DIR/written; " FAKE_UNTIL(
			   "end") "exit 4");
	pid_t shim = fake_shim(f);

	if (without_shim)
		fake_kill(shim);
	fake_touch(fake_below(f, "go"));
	fake_file(f, fake_below(f, "written"));
	assert_true(without_shim || fake_alive(shim));
	fake_touch(fake_below(f, "end"));
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

/* Processes that the agent cannot find: without mark, parent and cgroup.  They end by themselves. */
#define FLOODS                                                                                     \
	"for i in 1 2 3 4; do env -i DIR=$DIR setsid timeout 30 sh -c \"echo \\$\\$ > "            \
	"$DIR/flood$i; "                                                                           \
	"while ! [ -e $DIR/go ]; do sleep 0.01; done; exec dd if=/dev/zero bs=1M\" & done; "

/* The size once it is at least this, or once the attempt has ended. */
static int64_t wait_size(struct fake *f, int64_t at_least, bool *ret_ended)
{
	char *out = fake_in_node(f, "out"), *status = fake_in_node(f, "status");
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
	pid_t job = fake_start(f, FLOODS FAKE_UNTIL("end") "exit 9");

	for (int i = 0; i < 4; i++) /* from then on they have no mark */
		floods[i] = fake_pid_in(f, arena_printf(f->arena, "flood%d", i + 1));
	fake_kill_both(f);
	fake_agent(f);
	fake_meet(f);
	fake_touch(fake_below(f, "go"));
	assert_true(wait_size(f, BUDGET, &ended) >= BUDGET);
	assert_false(ended);
	fake_touch(fake_below(f, "end"));
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
	fake_touch(fake_in_node(f, ENDLESS));
	fake_start(f, "exit 9");
	assert_int_equal(fake_int(fake_end(f), "code"), 9);
}

int main(int argc, char **argv)
{
#define CASE(fn) cmocka_unit_test_setup_teardown(fn, fake_setup, fake_teardown)
	static const struct CMUnitTest tests[] = {
		CASE(an_agent_sleeps_while_nobody_reads),
		CASE(a_file_size_limit_costs_bytes_not_the_job),
		CASE(a_file_size_limit_does_not_cost_the_agent_that_took_over),
		CASE(a_flood_after_the_end_is_held_back_by_the_budget),
		CASE(a_pipe_that_never_runs_dry_does_not_hold_the_end_up),
	};
	int role = fake_role(argc, argv);

	if (role >= 0)
		return role;
	return cmocka_run_group_tests_name("agent: output limits", tests, NULL, NULL);
}
