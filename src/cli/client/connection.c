/*
 * connection - find the user's master, or start one.
 *
 * The master is this same program, started as `regatta master --background`,
 * detached, and logs to $REGATTA_HOME/master.log.  Two commands may start
 * one at the same moment: the second master finds the home locked
 * and exits, and both commands connect to the first.  A master that is
 * about to exit is waited for and then replaced.
 */
#include "cli/client/api.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/path.h"
#include "cli/cli.h"
#include "link/layout.h"
#include "master/master.h"
#include "net/http_client.h"

#define START_MS 10000 /* to wait for a master that was started */
#define POLL_MS 1      /* between two attempts to connect to it */
#define AGAIN_MS 10    /* between two attempts to start one, doubled each time */
#define AGAIN_MAX_MS 500
#define MAX_FAILURES 2
#define CONNECT_MS 5000
#define MAX_LOG (1 << 20) /* a larger master.log is put aside as master.log.1 */
#define LOG_TAIL 4096
#define FULL_BYTES (64u << 10) /* with less a disk is full: a database cannot be opened */

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

int home_check_owner(const char *home, struct err *err)
{
	struct stat st;

	if (stat(home, &st) == 0 && st.st_uid != geteuid())
		return err_set(
			err, ERR_DENIED,
			"state directory '%s' belongs to another user (uid %u): set REGATTA_HOME to your own",
			home, (unsigned)st.st_uid);
	return 0;
}

/* The state says which programs are run: the directory must belong to the user. */
static int make_home(const char *home, struct err *err)
{
	if (file_mkdir_p(home, 0700, err) < 0)
		return err_wrap(err, "make the state directory (REGATTA_HOME)");
	return home_check_owner(home, err);
}

static int connect_once(const char *home, struct http_client **ret, struct err *err)
{
	struct http_target t = {.unix_dir = home, .unix_name = LAYOUT_API_SOCKET};

	return http_client_open(&t, CONNECT_MS, ret, err);
}

static void last_log_line(const char *home, char *out, size_t size)
{
	CLEANUP(freep) char *path = path_join(home, LAYOUT_MASTER_LOG);
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
	CLEANUP(freep) char *path = path_join(home, LAYOUT_MASTER_LOG);
	CLEANUP(freep) char *old = path_join(home, LAYOUT_MASTER_LOG ".1");
	struct stat st;

	if (stat(path, &st) == 0 && st.st_size > MAX_LOG)
		(void)rename(path, old); /* on failure the log just stays long */
	int fd = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
	if (fd < 0)
		return err_errno(err, errno, "open '%s'", path);
	return fd;
}

static bool is_among(const char *pair, const char *const *names, size_t n)
{
	struct str rest = str_from(pair), name = str_cut(&rest, '=');

	for (size_t i = 0; i < n; i++)
		if (str_is(name, names[i]))
			return true;
	return false;
}

/* The environment of this process, with REGATTA_HOME as it was resolved and without the variables for
 * other masters.  Only the array and its first string are owned. */
static char **master_environment(const char *home)
{
	static const char *const own[] = {"REGATTA_HOME", "REGATTA_MASTER", "REGATTA_PIN",
					  "REGATTA_TOKEN"};
	size_t n = 0, used = 0;

	while (environ[n])
		n++;
	char **env = xcalloc(n + 2, sizeof(*env));
	env[used++] = xasprintf("REGATTA_HOME=%s", home);
	for (size_t i = 0; i < n; i++)
		if (!is_among(environ[i], own, sizeof(own) / sizeof(own[0])))
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
	/* The master must not inherit a pipe: a reader of this command's output would wait for its end. */
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

static bool disk_is_full(const char *home)
{
	struct statvfs fs;

	return statvfs(home, &fs) == 0 && (uint64_t)fs.f_bavail * fs.f_frsize < FULL_BYTES;
}

static int start_failed(const char *home, const char *what, struct err *err)
{
	char line[200];

	last_log_line(home, line, sizeof(line));
	/* The message follows the time and the role in a line of the log. */
	const char *said = strstr(line, "master: ");
	said = said ? said + strlen("master: ") : line;
	/* Then the log may have no room for its last line. */
	if (!strstr(said, "the disk is full") && disk_is_full(home))
		said = "the disk is full: free some space and start again";
	return err_set(err, ERR_UNAVAILABLE, "%s: %s", what,
		       said[0] ? said : "see master.log in its home");
}

/* Does a process hold this home, by the pid in its lock?  True in doubt: then a failed start is tried
 * again until START_MS is over.  (A lock without a pid was taken just now, or by a master that died
 * before it wrote its pid.) */
static bool is_held(const char *home)
{
	CLEANUP(freep) char *path = path_join(home, LAYOUT_LOCK);
	CLEANUP(buf_release) struct buf text;
	char stat_path[64];
	int64_t pid;

	buf_init(&text, 4096);
	if (file_read(path, &text, NULL) < 0)
		return false;
	if (!str_to_i64(str_trim(buf_str(&text)), &pid) || pid <= 0)
		return true;
	snprintf(stat_path, sizeof(stat_path), "/proc/%" PRId64 "/stat", pid);
	buf_reset(&text);
	if (file_read(stat_path, &text, NULL) < 0)
		return false;
	/* "pid (name) state ...": a zombie holds nothing. */
	const char *end = memrchr(text.p, ')', text.n);
	return !end || end[1] != ' ' || (end[2] != 'Z' && end[2] != 'X');
}

/* The masters that this command starts, one after the other, until one listens. */
struct starting {
	const char *home;
	pid_t pid; /* 0: none is being started */
	int64_t spawn_at;
	int pause_ms;
	bool contested; /* another process held the home when this master was started */
	int failures;	/* starts that failed in a row while no other process held the home */
};

static int spawn_next(struct starting *s, int64_t now, struct err *err)
{
	if (s->pid > 0 || now < s->spawn_at)
		return 0;
	s->contested = is_held(s->home);
	s->spawn_at = now + s->pause_ms;
	s->pause_ms = 2 * s->pause_ms < AGAIN_MAX_MS ? 2 * s->pause_ms : AGAIN_MAX_MS;
	return spawn_master(s->home, &s->pid, err);
}

/* -1 when it is clear that no master can start here. */
static int check_child(struct starting *s, struct err *err)
{
	int status;

	if (s->pid <= 0 || waitpid(s->pid, &status, WNOHANG) != s->pid)
		return 0;
	s->pid = 0;
	bool failed = !WIFEXITED(status) || WEXITSTATUS(status) != 0;
	s->failures = failed && !s->contested && !is_held(s->home) ? s->failures + 1 : 0;
	return s->failures < MAX_FAILURES ? 0
					  : start_failed(s->home, "the master did not start", err);
}

/* The master logs to a file: a bad value is reported here, where the user sees it. */
static void check_idle_time(void)
{
	const char *text = getenv("REGATTA_IDLE");
	int64_t ms;

	if (text && *text && !master_idle_time(text, &ms))
		cli_say("REGATTA_IDLE is '%.40s' and is ignored: expected a duration such as 90s or 10m",
			text);
}

static int start_master(const char *home, const volatile int *stop, struct http_client **ret,
			struct err *err)
{
	struct starting s = {.home = home, .pause_ms = AGAIN_MS};
	int64_t now = clock_boot_ms(), deadline = now + START_MS;

	check_idle_time();
	for (;; now = clock_boot_ms()) {
		if (spawn_next(&s, now, err) < 0)
			return -1;
		if (connect_once(home, ret, err) == 0)
			return 0;
		if (err->kind != ERR_UNAVAILABLE)
			return -1;
		if (now >= deadline)
			return start_failed(home, "no master has answered for 10 s", err);
		if (stop && *stop)
			return err_set(err, ERR_CANCELLED,
				       "interrupted while the master was starting");
		if (check_child(&s, err) < 0)
			return -1;
		poll(NULL, 0, POLL_MS);
	}
}

int master_connect(const char *home, bool start, const volatile int *stop, struct http_client **ret,
		   struct err *err)
{
	if (connect_once(home, ret, err) == 0)
		return 0;
	if (err->kind != ERR_UNAVAILABLE || !start)
		return -1;
	return make_home(home, err) < 0 ? -1 : start_master(home, stop, ret, err);
}
