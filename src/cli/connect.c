/*
 * connect - find the user's master, or start one.
 *
 * The master is this same program, started as `regatta master --background`,
 * detached, with its talk in $REGATTA_HOME/master.log.  Two commands that start
 * one at the same moment are harmless: the second master sees that it is the
 * second, leaves with exit code 0, and both commands connect to the first.
 */
#include "cli/api.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/path.h"
#include "net/http_client.h"

#define START_MS 10000	     /* to wait for a master that was started */
#define POLL_MS 1	     /* between two attempts to connect meanwhile */
#define AFTER_FAILURE_MS 300 /* another command's master may still come up after ours has failed */
#define CONNECT_MS 5000
#define MAX_LOG (1 << 20) /* a larger master.log is put aside as master.log.1 */
#define LOG_TAIL 4096

extern char **environ;

int home_find(char **ret_home, struct err *err)
{
	const char *home = getenv("REGATTA_HOME");
	const char *state = getenv("XDG_STATE_HOME");
	const char *user = getenv("HOME");
	CLEANUP(freep) char *path = NULL;

	if (home && *home) {
		CLEANUP(freep) char *cwd = getcwd(NULL, 0);
		if (!cwd && home[0] != '/')
			return err_errno(err, errno, "find the current directory");
		path = path_join(cwd ? cwd : "/", home);
	} else if (state && state[0] == '/') {
		path = path_join(state, "regatta");
	} else if (user && user[0] == '/') {
		path = path_join(user, ".local/state/regatta");
	} else {
		return err_set(
			err, ERR_INVALID,
			"no place for the state: set REGATTA_HOME (or HOME) to an absolute path");
	}
	*ret_home = path_clean(path);
	return 0;
}

/* The state decides which programs are run: it must be the user's own. */
static int check_home(const char *home, struct err *err)
{
	struct stat st;

	if (file_mkdir_p(home, 0700, err) < 0)
		return err_wrap(err, "make the state directory (REGATTA_HOME)");
	if (stat(home, &st) < 0)
		return err_errno(err, errno, "state directory '%s'", home);
	if (st.st_uid != geteuid())
		return err_set(err, ERR_DENIED,
			       "state directory '%s' belongs to another user (uid %u): set "
			       "REGATTA_HOME to your own",
			       home, (unsigned)st.st_uid);
	return 0;
}

static int connect_once(const char *home, struct http_client **ret, struct err *err)
{
	struct http_target t = {.unix_dir = home, .unix_name = API_SOCKET};

	return http_client_open(&t, CONNECT_MS, ret, err);
}

static void last_log_line(const char *home, char *out, size_t size)
{
	CLEANUP(freep) char *path = path_join(home, "master.log");
	CLEANUP(close_fdp) int fd = open(path, O_RDONLY | O_CLOEXEC);
	char text[LOG_TAIL];
	struct err ignored;
	size_t n = 0;

	out[0] = 0;
	off_t end = fd < 0 ? 0 : lseek(fd, 0, SEEK_END);
	off_t from = end > (off_t)sizeof(text) ? end - (off_t)sizeof(text) : 0;
	if (fd < 0 || file_pread_full(fd, text, sizeof(text), from, &n, &ignored) < 0)
		return;
	struct str s = str_trim((struct str){text, n});
	const char *nl = memrchr(s.p, '\n', s.n);
	if (nl)
		s = (struct str){nl + 1, s.n - (size_t)(nl + 1 - s.p)};
	snprintf(out, size, "%.*s", STR_ARG(s));
}

static int open_log(const char *home, struct err *err)
{
	CLEANUP(freep) char *path = path_join(home, "master.log");
	CLEANUP(freep) char *old = path_join(home, "master.log.1");
	struct stat st;

	if (stat(path, &st) == 0 && st.st_size > MAX_LOG)
		(void)rename(path, old); /* a log that cannot be put aside only stays long */
	int fd = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
	if (fd < 0)
		return err_errno(err, errno, "open '%s'", path);
	return fd;
}

/* The environment of this process, with REGATTA_HOME as it was resolved.  Only the array and its
 * first word are owned. */
static char **master_environment(const char *home)
{
	size_t n = 0, used = 0;

	while (environ[n])
		n++;
	char **env = xcalloc(n + 2, sizeof(*env));
	env[used++] = xasprintf("REGATTA_HOME=%s", home);
	for (size_t i = 0; i < n; i++)
		if (strncmp(environ[i], "REGATTA_HOME=", 13) != 0)
			env[used++] = environ[i];
	return env;
}

static int spawn_master(const char *home, pid_t *ret_pid, struct err *err)
{
	CLEANUP(close_fdp) int log = open_log(home, err);
	char program[] = "regatta", role[] = "master", background[] = "--background";
	char *argv[] = {program, role, background, NULL};
	posix_spawn_file_actions_t actions;
	posix_spawnattr_t attr;
	sigset_t none, all;

	if (log < 0)
		return -1;
	sigemptyset(&none);
	sigfillset(&all);
	posix_spawnattr_init(&attr);
	posix_spawnattr_setflags(&attr, POSIX_SPAWN_SETSID | POSIX_SPAWN_SETSIGMASK |
						POSIX_SPAWN_SETSIGDEF);
	posix_spawnattr_setsigmask(&attr, &none);
	posix_spawnattr_setsigdefault(&attr, &all);
	posix_spawn_file_actions_init(&actions);
	posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
	posix_spawn_file_actions_adddup2(&actions, log, 1);
	posix_spawn_file_actions_adddup2(&actions, log, 2);
	/* A pipe of our caller that the master held would keep that caller waiting. */
	posix_spawn_file_actions_addclosefrom_np(&actions, 3);
	posix_spawn_file_actions_addchdir_np(&actions, "/");
	char **env = master_environment(home);
	int e = posix_spawn(ret_pid, "/proc/self/exe", &actions, &attr, argv, env);
	free(env[0]);
	free(env);
	posix_spawn_file_actions_destroy(&actions);
	posix_spawnattr_destroy(&attr);
	if (e != 0)
		return err_errno(err, e, "start a master");
	return 0;
}

static int start_failed(const char *home, const char *what, struct err *err)
{
	char line[200];

	last_log_line(home, line, sizeof(line));
	/* Behind the time and the role comes what it said. */
	const char *said = strstr(line, "master: ");
	said = said ? said + strlen("master: ") : line;
	return err_set(err, ERR_UNAVAILABLE, "%s: %s", what, said[0] ? said : "see master.log in its home");
}

/* Wait until somebody listens; pid is the master that was started. */
static int wait_for_master(const char *home, pid_t pid, const volatile int *stop,
			   struct http_client **ret, struct err *err)
{
	int64_t deadline = clock_boot_ms() + START_MS;
	bool failed = false;

	for (;;) {
		if (connect_once(home, ret, err) == 0)
			return 0;
		if (err->kind != ERR_UNAVAILABLE)
			return -1;
		int64_t now = clock_boot_ms();
		if (now >= deadline)
			return start_failed(home,
					    failed ? "the master did not start"
						   : "the master did not answer in 10 s",
					    err);
		if (stop && *stop)
			return err_set(err, ERR_CANCELLED,
				       "interrupted while the master was starting");
		int status;
		if (pid > 0 && waitpid(pid, &status, WNOHANG) == pid) {
			pid = 0;
			if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) {
				failed = true;
				deadline = now + AFTER_FAILURE_MS;
			}
		}
		poll(NULL, 0, POLL_MS);
	}
}

int master_connect(const char *home, bool start, const volatile int *stop, struct http_client **ret,
		   struct err *err)
{
	pid_t pid;

	if (connect_once(home, ret, err) == 0)
		return 0;
	if (err->kind != ERR_UNAVAILABLE || !start)
		return -1;
	if (check_home(home, err) < 0 || spawn_master(home, &pid, err) < 0)
		return -1;
	return wait_for_master(home, pid, stop, ret, err);
}
