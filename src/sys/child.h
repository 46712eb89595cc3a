#pragma once
/*
 * child - start other programs.
 *
 * child_spawn() is for helpers: it uses posix_spawn, so it is cheap and safe in
 * a process with threads.  child_fork_into() is for the job: only single-threaded
 * roles may use it.
 */
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct err;

struct child_spec {
	const char *file;	 /* path of the program, not searched */
	const char *const *argv; /* NULL-terminated */
	const char *const *env;	 /* NULL-terminated */
	int in, out, err;	 /* descriptors for 0, 1, 2; -1: /dev/null */
	bool session;		 /* a session of its own */
};
/* Signals are reset, descriptors above 2 must be close-on-exec already. */
int child_spawn(const struct child_spec *spec, pid_t *ret_pid, struct err *err);
/* The same, but the program does not become a descendant of the caller, even if that is a subreaper. */
int child_spawn_detached(const struct child_spec *spec, struct err *err);

/* fork().  If cgroup_fd is >= 0 and the kernel supports it, the child starts inside that cgroup;
 * *ret_inside is set accordingly, in the parent and in the child. */
pid_t child_fork_into(int cgroup_fd, bool *ret_inside);
/* The wait() status of the child that waitid() described. */
int child_wait_status(const siginfo_t *si);
/* Close every descriptor from `first` on. */
void child_close_from(int first);
/* Default dispositions; the mask stays. */
void child_reset_handlers(void);
/* Default dispositions, empty mask. */
void child_reset_signals(void);

/* The path of `command`: with a slash it is relative to cwd, else it is searched in `path` (separated by
 * colons; relative parts from cwd).  The caller frees it.  ERR_NOT_FOUND "command 'x' not found in PATH",
 * ERR_DENIED when the file is not executable. */
int child_find_command(const char *command, const char *path, const char *cwd, char **ret_file,
		       struct err *err);
