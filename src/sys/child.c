#include "sys/child.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/sched.h>
#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "base/path.h"
#include "base/str.h"

static int add_stdio(posix_spawn_file_actions_t *fa, int fd, int as)
{
	if (fd < 0)
		return posix_spawn_file_actions_addopen(fa, as, "/dev/null",
							as == 0 ? O_RDONLY : O_WRONLY, 0);
	/* Also when fd == as: this clears close-on-exec. */
	return posix_spawn_file_actions_adddup2(fa, fd, as);
}

static int set_attributes(posix_spawnattr_t *attr, const struct child_spec *spec)
{
	short flags = POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF;
	sigset_t none, all;
	int rc;

	sigemptyset(&none);
	sigfillset(&all);
	/* glibc refuses its own two signals, and SIGKILL and SIGSTOP. */
	sigdelset(&all, SIGKILL);
	sigdelset(&all, SIGSTOP);
	if (spec->session)
		flags |= POSIX_SPAWN_SETSID;
	if ((rc = posix_spawnattr_setsigmask(attr, &none)) ||
	    (rc = posix_spawnattr_setsigdefault(attr, &all)) ||
	    (rc = posix_spawnattr_setflags(attr, flags)))
		return rc;
	return 0;
}

int child_spawn(const struct child_spec *spec, pid_t *ret_pid, struct err *err)
{
	posix_spawn_file_actions_t fa;
	posix_spawnattr_t attr;
	pid_t pid;
	int rc;

	if ((rc = posix_spawn_file_actions_init(&fa)))
		return err_errno(err, rc, "start '%s'", spec->file);
	if ((rc = posix_spawnattr_init(&attr))) {
		posix_spawn_file_actions_destroy(&fa);
		return err_errno(err, rc, "start '%s'", spec->file);
	}
	if (!(rc = set_attributes(&attr, spec)) && !(rc = add_stdio(&fa, spec->in, 0)) &&
	    !(rc = add_stdio(&fa, spec->out, 1)) && !(rc = add_stdio(&fa, spec->err, 2)))
		rc = posix_spawn(&pid, spec->file, &fa, &attr, (char *const *)spec->argv,
				 (char *const *)spec->env);
	posix_spawnattr_destroy(&attr);
	posix_spawn_file_actions_destroy(&fa);
	if (rc)
		return err_errno(err, rc, "start '%s'", spec->file);
	*ret_pid = pid;
	return 0;
}

int child_spawn_detached(const struct child_spec *spec, struct err *err)
{
	int reaper = 0, status;
	pid_t mid;

	/* The program's parent is a process that exits at once.  Its orphan goes to the nearest subreaper,
	 * so the caller must not be one meanwhile. */
	prctl(PR_GET_CHILD_SUBREAPER, &reaper);
	mid = fork();
	if (mid < 0)
		return err_errno(err, errno, "fork to start '%s'", spec->file);
	if (mid == 0) {
		struct err e = {0};
		pid_t pid;

		_exit(child_spawn(spec, &pid, &e) == 0 ? 0
		      : e.code > 0 && e.code < 255     ? e.code
						       : 255);
	}
	if (reaper)
		prctl(PR_SET_CHILD_SUBREAPER, 0);
	while (waitpid(mid, &status, 0) < 0 && errno == EINTR)
		;
	if (reaper)
		prctl(PR_SET_CHILD_SUBREAPER, 1);
	if (WIFEXITED(status) && WEXITSTATUS(status) == 0)
		return 0;
	return err_errno(err, WIFEXITED(status) ? WEXITSTATUS(status) : EIO, "start '%s'",
			 spec->file);
}

pid_t child_fork_into(int cgroup_fd, bool *ret_inside)
{
	struct clone_args args = {
		.flags = CLONE_INTO_CGROUP, .exit_signal = SIGCHLD, .cgroup = (unsigned)cgroup_fd};
	long pid;

	if (cgroup_fd >= 0) {
		*ret_inside = true; /* before the fork: the child reads its own copy */
		pid = syscall(SYS_clone3, &args, sizeof(args));
		if (pid >= 0)
			return (pid_t)pid;
	}
	*ret_inside = false;
	return fork();
}

int child_wait_status(const siginfo_t *si)
{
	return si->si_code == CLD_EXITED ? W_EXITCODE(si->si_status, 0)
					 : W_EXITCODE(0, si->si_status);
}

void child_close_from(int first)
{
	if (syscall(SYS_close_range, (unsigned)first, ~0U, 0) == 0)
		return;
	/* Kernels before 5.9. */
	DIR *d = opendir("/proc/self/fd");
	struct dirent *e;

	while (d && (e = readdir(d))) {
		int64_t fd;

		if (str_to_i64(str_from(e->d_name), &fd) && fd >= first && fd != dirfd(d))
			close((int)fd);
	}
	if (d)
		closedir(d);
}

void child_reset_handlers(void)
{
	/* The raw system call, because libc refuses its two internal signals, which posix_spawn ignores. */
	static const struct {
		void *handler, *flags, *restorer;
		uint64_t mask;
	} dfl;

	for (long s = 1; s <= 64; s++)
		syscall(SYS_rt_sigaction, s, &dfl, NULL, sizeof(dfl.mask));
}

void child_reset_signals(void)
{
	sigset_t none;

	child_reset_handlers();
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
}

/* 0: the file may be run.  Else an errno: ENOENT no such file, EACCES not executable. */
static int check_program(const char *file)
{
	struct stat st;

	if (stat(file, &st) < 0)
		return errno == EACCES ? EACCES : ENOENT;
	if (!S_ISREG(st.st_mode) || access(file, X_OK) < 0)
		return EACCES;
	return 0;
}

int child_find_command(const char *command, const char *path, const char *cwd, char **ret_file,
		       struct err *err)
{
	struct str rest = str_from(path);
	bool denied = false;

	if (!*command)
		return err_set(err, ERR_INVALID, "the command is empty");
	if (strchr(command, '/')) {
		CLEANUP(freep) char *file = path_join(cwd, command);
		int rc = check_program(file);

		if (rc == ENOENT)
			return err_set(err, ERR_NOT_FOUND, "command '%s' not found in %s", command,
				       cwd);
		if (rc)
			return err_set(err, ERR_DENIED, "command '%s' may not be executed",
				       command);
		*ret_file = TAKE_PTR(file);
		return 0;
	}
	while (rest.p) {
		struct str part = str_cut(&rest, ':');
		CLEANUP(freep) char *dir = part.n ? xstrndup(part.p, part.n) : xstrdup(".");
		CLEANUP(freep) char *abs = path_join(cwd, dir);
		CLEANUP(freep) char *file = path_join(abs, command);
		int rc = check_program(file);

		if (rc == 0) {
			*ret_file = TAKE_PTR(file);
			return 0;
		}
		denied |= rc == EACCES && file[0] && access(file, F_OK) == 0;
	}
	if (denied)
		return err_set(err, ERR_DENIED,
			       "command '%s' was found in PATH but may not be executed", command);
	return err_set(err, ERR_NOT_FOUND, "command '%s' not found in PATH", command);
}
