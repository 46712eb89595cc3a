/* Which processes are alive, which are descendants, which carry a mark. */
#include "unit.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#include "base/clock.h"
#include "sys/proctree.h"

#define WAIT_MS 10000

static pid_t sleeper(void)
{
	pid_t pid = fork();

	if (pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		for (;;)
			pause();
	}
	return pid;
}

static void end(pid_t pid)
{
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
}

static bool has(const struct proc_list *l, pid_t pid)
{
	for (size_t i = 0; i < l->n; i++)
		if (l->v[i].pid == pid)
			return true;
	return false;
}

static void a_process_is_known_by_pid_and_start(void **state)
{
	struct proc_id self = proc_id_of(getpid());
	struct proc_info p;

	(void)state;
	assert_true(self.start > 0);
	assert_true(proc_alive(self));
	self.start++;
	assert_false(proc_alive(self));
	assert_true(proc_read(getpid(), &p));
	assert_int_equal(p.ppid, getppid());
	assert_int_equal(p.state, 'R');
	assert_true(p.memory_bytes > 100000);
	assert_false(proc_read(0x7ffffff0, &p));
	assert_int_equal(proc_id_of(0x7ffffff0).start, 0);
	assert_false(proc_alive((struct proc_id){0}));
}

static void a_name_with_spaces_and_parentheses_does_not_confuse(void **state)
{
	char before[16];
	struct proc_info a, b;

	(void)state;
	prctl(PR_GET_NAME, before);
	assert_true(proc_read(getpid(), &a));
	prctl(PR_SET_NAME, "x) R 1 (y z");
	assert_true(proc_read(getpid(), &b));
	prctl(PR_SET_NAME, before);
	assert_int_equal(a.start, b.start);
	assert_int_equal(a.ppid, b.ppid);
}

static void a_zombie_is_dead(void **state)
{
	pid_t pid = sleeper();
	struct proc_id id = proc_id_of(pid);
	siginfo_t si;

	(void)state;
	assert_true(proc_alive(id));
	kill(pid, SIGKILL);
	assert_int_equal(waitid(P_PID, (id_t)pid, &si, WEXITED | WNOWAIT), 0);
	assert_false(proc_alive(id));
	errno = 0;
	assert_int_equal(proc_open(id), -1);
	assert_int_equal(errno, ESRCH);
	waitpid(pid, NULL, 0);
}

static void descendants_are_found_at_any_depth(void **state)
{
	struct proc_list l = {0};
	int p[2];
	pid_t grandchild = 0, child;

	(void)state;
	assert_int_equal(pipe(p), 0);
	child = fork();
	if (child == 0) {
		pid_t g = sleeper();

		if (write(p[1], &g, sizeof(g)) != (ssize_t)sizeof(g))
			_exit(1);
		for (;;)
			pause();
	}
	assert_int_equal(read(p[0], &grandchild, sizeof(grandchild)), sizeof(grandchild));
	proc_descendants(getpid(), &l);
	assert_true(has(&l, child));
	assert_true(has(&l, grandchild));
	assert_false(has(&l, getpid()));
	l.n = 0;
	proc_descendants(child, &l);
	assert_int_equal(l.n, 1);
	assert_int_equal(l.v[0].pid, grandchild);
	end(child);
	proc_list_release(&l);
	close(p[0]);
	close(p[1]);
}

static pid_t spawn_with_env(const char *entry)
{
	pid_t pid = fork();

	if (pid == 0) {
		char *const argv[] = {(char *)(uintptr_t) "sleep", (char *)(uintptr_t) "600", NULL};
		char *const env[] = {(char *)(uintptr_t) "A=1", (char *)(uintptr_t)entry, NULL};

		prctl(PR_SET_PDEATHSIG, SIGKILL);
		execve("/bin/sleep", argv, env);
		_exit(127);
	}
	return pid;
}

static void a_mark_in_the_environment_is_found_whole_or_as_a_prefix(void **state)
{
	char mark[64], longer[80];

	(void)state;
	snprintf(mark, sizeof(mark), "UNIT_MARK=%d", (int)getpid());
	snprintf(longer, sizeof(longer), "%s.1", mark);
	pid_t a = spawn_with_env(mark), b = spawn_with_env(longer);
	int64_t until = clock_boot_ms() + WAIT_MS;
	struct proc_list l = {0};

	do { /* until both have done their exec */
		l.n = 0;
		proc_with_env(mark, true, &l);
	} while (l.n < 2 && clock_boot_ms() < until && poll(NULL, 0, 1) == 0);
	assert_true(has(&l, a) && has(&l, b));
	assert_int_equal(l.n, 2);
	l.n = 0;
	proc_with_env(mark, false, &l);
	assert_int_equal(l.n, 1);
	assert_int_equal(l.v[0].pid, a);
	end(a);
	end(b);
	l.n = 0;
	proc_with_env(mark, true, &l);
	assert_int_equal(l.n, 0);
	proc_list_release(&l);
}

static void only_the_listed_process_is_killed_not_one_that_got_its_pid(void **state)
{
	pid_t pid = sleeper();
	struct proc_info p;

	(void)state;
	assert_true(proc_read(pid, &p));
	p.start++;
	struct proc_list l = {&p, 1, 1};

	proc_kill(&l);
	assert_int_equal(waitpid(pid, NULL, WNOHANG), 0);
	p.start--;
	proc_kill(&l);
	int status;

	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(WTERMSIG(status), SIGKILL);
}

static void the_end_of_a_process_can_be_waited_for(void **state)
{
	pid_t pid = sleeper();
	int fd = proc_open(proc_id_of(pid));

	(void)state;
	if (fd < 0 && errno == ENOSYS) {
		end(pid);
		skip();
	}
	assert_true(fd >= 0);
	struct pollfd p = {.fd = fd, .events = POLLIN};

	assert_int_equal(poll(&p, 1, 0), 0);
	kill(pid, SIGKILL);
	assert_int_equal(poll(&p, 1, WAIT_MS), 1);
	waitpid(pid, NULL, 0);
	close(fd);
}

static void the_boot_has_an_id(void **state)
{
	char id[PROC_BOOT_ID];

	(void)state;
	proc_boot_id(id);
	assert_int_equal(strlen(id), 36);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_process_is_known_by_pid_and_start),
		cmocka_unit_test(a_name_with_spaces_and_parentheses_does_not_confuse),
		cmocka_unit_test(a_zombie_is_dead),
		cmocka_unit_test(the_boot_has_an_id),
		cmocka_unit_test(descendants_are_found_at_any_depth),
		cmocka_unit_test(a_mark_in_the_environment_is_found_whole_or_as_a_prefix),
		cmocka_unit_test(only_the_listed_process_is_killed_not_one_that_got_its_pid),
		cmocka_unit_test(the_end_of_a_process_can_be_waited_for),
	};

	return cmocka_run_group_tests_name("proctree", tests, NULL, NULL);
}
