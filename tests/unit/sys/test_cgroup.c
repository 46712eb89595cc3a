/* Where control groups are made, and what they do where they are permitted. */
#include "unit.h"

#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "base/clock.h"
#include "base/err.h"
#include "sys/cgroup.h"
#include "sys/child.h"
#include "sys/proctree.h"

#define WAIT_MS 10000

static void places_follow_from_mounts_and_our_own_group(void **state)
{
	static const struct {
		const char *mounts, *groups, *unified, *memory;
	} cases[] = {
		{"30 1 0:26 / /sys/fs/cgroup rw,nosuid shared:4 - cgroup2 cgroup2 rw,nsdelegate\n",
		 "0::/user.slice/session.scope\n", "/sys/fs/cgroup/user.slice/session.scope/x", ""},
		{"30 1 0:26 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n"
		 "31 1 0:27 / /sys/fs/cgroup/cpu,memory rw - cgroup cgroup rw,cpu,memory\n",
		 "4:cpu,memory:/slice\n0::/\n", "/sys/fs/cgroup/unified/x",
		 "/sys/fs/cgroup/cpu,memory/slice/x"},
		/* A container sees only a part of the hierarchy. */
		{"30 1 0:26 /docker/abc /sys/fs/cgroup rw - cgroup2 cgroup rw\n",
		 "0::/docker/abc/job\n", "/sys/fs/cgroup/job/x", ""},
		{"30 1 0:26 /docker/abc /sys/fs/cgroup rw - cgroup2 cgroup rw\n", "0::/elsewhere\n",
		 "", ""},
		/* Only v1, and not the memory controller. */
		{"30 1 0:26 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu\n", "1:cpu:/\n", "", ""},
		{"", "", "", ""},
		{"not a mount\n30 1 0:26\n30 1 0:26 / /x rw\n", "nonsense\n0\n0:\n", "", ""},
	};

	(void)state;
	for (size_t i = 0; i < COUNT(cases); i++) {
		struct cgroup cg;

		cgroup_place_from(cases[i].mounts, cases[i].groups, "x", &cg);
		assert_string_equal(cg.unified, cases[i].unified);
		assert_string_equal(cg.memory, cases[i].memory);
	}
}

static void a_path_that_is_too_long_is_no_place(void **state)
{
	char name[CGROUP_PATH_MAX + 1];
	struct cgroup cg;

	(void)state;
	memset(name, 'n', sizeof(name) - 1);
	name[sizeof(name) - 1] = '\0';
	cgroup_place_from("30 1 0:26 / /c rw - cgroup2 cgroup2 rw\n", "0::/\n", name, &cg);
	assert_string_equal(cg.unified, "");
}

static void without_a_group_nothing_is_there_and_nothing_fails(void **state)
{
	struct cgroup cg = {0};
	struct err err = {0};
	struct proc_list l = {0};
	uint64_t v;

	(void)state;
	cgroup_make(&cg, true);
	cgroup_kill(&cg);
	assert_false(cgroup_populated(&cg));
	cgroup_procs(&cg, &l);
	assert_int_equal(l.n, 0);
	assert_true(cgroup_remove(&cg));
	assert_int_equal(cgroup_open(&cg), -1);
	assert_int_equal(cgroup_enter_memory(&cg), 0);
	assert_int_equal(cgroup_enter_unified(&cg), 0);
	assert_int_equal(cgroup_oom_kills(&cg), 0);
	assert_false(cgroup_cpu_us(&cg, &v));
	assert_false(cgroup_memory_bytes(&cg, &v));
	assert_int_equal(cgroup_limit_memory(&cg, 1 << 20, &err), -1);
	assert_int_equal(err.kind, ERR_UNAVAILABLE);
	assert_non_null(strstr(err.msg, "memory cannot be limited"));
}

static void a_group_that_cannot_be_made_becomes_none(void **state)
{
	struct cgroup cg = {"/proc/no/such", "/proc/no/such"};

	(void)state;
	cgroup_make(&cg, true);
	assert_string_equal(cg.unified, "");
	assert_string_equal(cg.memory, "");
}

static void a_group_that_was_not_made_is_not_found(void **state)
{
	struct cgroup cg = {"/proc/self", "/proc/no/such"}, other = {"/proc/no/such", "/proc/self"};

	(void)state;
	cgroup_find(&cg);
	assert_string_equal(cg.unified, "/proc/self");
	assert_string_equal(cg.memory, "");
	cgroup_find(&other);
	assert_string_equal(other.unified, "");
	assert_string_equal(other.memory, "/proc/self");
}

/* A group of our own, or a skipped test. */
static bool make(struct cgroup *cg, const char *what)
{
	char name[64];

	snprintf(name, sizeof(name), "regatta.unit.%s.%d", what, (int)getpid());
	cgroup_place(name, cg);
	cgroup_make(cg, true);
	if (cg->unified[0] || cg->memory[0])
		return true;
	print_message("# skipped: no cgroup can be made here\n");
	return false;
}

static pid_t child_inside(const struct cgroup *cg)
{
	int fd = cgroup_open(cg);
	bool inside;
	pid_t pid = child_fork_into(fd, &inside);

	if (pid == 0) {
		if (!inside)
			cgroup_enter_unified(cg);
		cgroup_enter_memory(cg);
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		if (fork() == 0)
			setsid();
		for (;;)
			pause();
	}
	if (fd >= 0)
		close(fd);
	return pid;
}

static void everything_inside_dies_at_once(void **state)
{
	int64_t until = clock_boot_ms() + WAIT_MS;
	struct proc_list l = {0};
	struct cgroup cg;

	(void)state;
	if (!make(&cg, "kill"))
		skip();
	prctl(PR_SET_CHILD_SUBREAPER, 1);
	pid_t pid = child_inside(&cg);

	while (l.n < 2 && clock_boot_ms() < until) {
		l.n = 0;
		cgroup_procs(&cg, &l);
		poll(NULL, 0, 1);
	}
	assert_int_equal(l.n, 2);
	assert_true(cgroup_populated(&cg));
	assert_false(cgroup_remove(&cg));
	do {
		cgroup_kill(&cg);
		while (waitpid(-1, NULL, WNOHANG) > 0)
			;
		poll(NULL, 0, 1);
	} while (cgroup_populated(&cg) && clock_boot_ms() < until);
	assert_false(cgroup_populated(&cg));
	assert_false(proc_alive(proc_id_of(pid)));
	while (waitpid(-1, NULL, 0) > 0)
		;
	assert_true(cgroup_remove(&cg));
	assert_true(cgroup_remove(&cg)); /* gone is gone */
	proc_list_release(&l);
}

/* As of an attempt that starts while the last process of the one before is still dying. */
static void what_enters_a_group_that_was_killed_lives(void **state)
{
	struct cgroup cg;
	int status;

	(void)state;
	if (!make(&cg, "again"))
		skip();
	if (!cg.unified[0]) {
		cgroup_remove(&cg);
		skip();
	}
	assert_false(cg.used);
	cgroup_kill(&cg);
	cgroup_make(&cg, true);
	assert_true(cg.used);
	assert_int_equal(cgroup_open(&cg), -1);
	pid_t pid = child_inside(&cg);

	poll(NULL, 0, 50);
	assert_int_equal(waitpid(pid, &status, WNOHANG), 0);
	for (int64_t until = clock_boot_ms() + WAIT_MS;
	     !cgroup_remove(&cg) && clock_boot_ms() < until;) {
		cgroup_kill(&cg);
		while (waitpid(-1, NULL, WNOHANG) > 0)
			;
		poll(NULL, 0, 1);
	}
	assert_true(cgroup_remove(&cg));
}

static void groups_that_the_job_made_inside_go_too(void **state)
{
	char below[CGROUP_PATH_MAX + 16];
	struct cgroup cg;

	(void)state;
	if (!make(&cg, "nested"))
		skip();
	snprintf(below, sizeof(below), "%s/inner", cg.unified[0] ? cg.unified : cg.memory);
	assert_int_equal(mkdir(below, 0755), 0);
	assert_true(cgroup_remove(&cg));
	assert_false(file_exists(below));
}

static void a_limit_is_set_and_figures_are_read(void **state)
{
	struct err err = {0};
	struct cgroup cg;
	uint64_t v;

	(void)state;
	if (!make(&cg, "limit"))
		skip();
	if (cgroup_limit_memory(&cg, 64 << 20, &err) < 0) {
		print_message("# skipped: %s\n", err.msg);
		cgroup_remove(&cg);
		skip();
	}
	assert_true(cgroup_memory_bytes(&cg, &v));
	assert_int_equal(cgroup_oom_kills(&cg), 0);
	if (cg.unified[0])
		assert_true(cgroup_cpu_us(&cg, &v));
	assert_true(cgroup_remove(&cg));
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(places_follow_from_mounts_and_our_own_group),
		cmocka_unit_test(a_path_that_is_too_long_is_no_place),
		cmocka_unit_test(without_a_group_nothing_is_there_and_nothing_fails),
		cmocka_unit_test(a_group_that_cannot_be_made_becomes_none),
		cmocka_unit_test(a_group_that_was_not_made_is_not_found),
		cmocka_unit_test(everything_inside_dies_at_once),
		cmocka_unit_test(what_enters_a_group_that_was_killed_lives),
		cmocka_unit_test(groups_that_the_job_made_inside_go_too),
		cmocka_unit_test(a_limit_is_set_and_figures_are_read),
	};

	return cmocka_run_group_tests_name("cgroup", tests, NULL, NULL);
}
