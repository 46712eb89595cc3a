#include "agent/attempt/attempt.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "agent/agent.h"
#include "agent/attempt/internal.h"
#include "agent/shim/pipe_holder.h"
#include "agent/shim/shim.h"
#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/dir.h"
#include "base/err.h"
#include "base/file.h"
#include "base/log.h"
#include "base/path.h"
#include "base/vec.h"
#include "link/layout.h"
#include "sys/child.h"
#include "sys/loop.h"

#define SHIM_CHECK_MS 200

void attempt_init(struct attempt *at, struct loop *l, const struct agent_config *cfg,
		  const char *boot_id, const struct attempt_events *ev, void *ctx)
{
	*at = (struct attempt){
		.loop = l,
		.cfg = cfg,
		.boot_id = boot_id,
		.dirfd = -1,
		.wakeup = -1,
		.shim_fd = -1,
		.processes = 1,
		.ev = *ev,
		.ctx = ctx,
	};
}

static void close_fd(int *fd)
{
	close_fdp(fd);
	*fd = -1;
}

static void unwatch_shim(struct attempt *at)
{
	at->shim_io = loop_io_free(at->shim_io);
	at->shim_timer = loop_timer_free(at->shim_timer);
	close_fd(&at->shim_fd);
}

static void let_go_of_pipes(struct attempt *at)
{
	for (int s = 0; at->hold && s < streams_count(at->processes); s++)
		close_fd(&at->hold[s]);
	free(at->hold);
	at->hold = NULL;
}

void attempt_release(struct attempt *at)
{
	struct attempt_events ev = at->ev;
	struct supervisor_fence fence = at->fence;

	attempt_stop_supervising(at);
	unwatch_shim(at);
	let_go_of_pipes(at);
	at->wakeup_io = loop_io_free(at->wakeup_io);
	close_fd(&at->wakeup);
	close_fd(&at->dirfd);
	free(at->dir);
	free(at->mark);
	attempt_init(at, at->loop, at->cfg, at->boot_id, &ev, at->ctx);
	at->fence = fence;
}

bool attempt_is_live(const struct attempt *at)
{
	return at->no > 0 && !at->has_exit && !at->other_boot;
}

bool attempt_is_proven(const struct attempt *at)
{
	/* Unavailable: a process could not be killed. */
	return at->exit.kind != ERR_UNAVAILABLE && !at->unproven;
}

void attempt_remove_groups(struct attempt *at)
{
	if (!at->no_groups)
		at->no_groups = cgroup_remove(&at->cfg->cg);
}

void attempt_empty_spools(struct attempt *at)
{
	if (at->dirfd >= 0)
		spool_empty(at->dirfd, streams_count(at->processes));
}

void attempt_ended(struct attempt *at, const struct exit_report *e)
{
	if (at->has_exit)
		return;
	at->exit = *e;
	at->has_exit = true;
	let_go_of_pipes(at);
	attempt_remove_groups(at);
	at->ev.changed(at->ctx);
}

void attempt_refresh(struct attempt *at)
{
	struct status st;
	struct stat fs;

	if (at->dirfd < 0 || fstatat(at->dirfd, LAYOUT_STATUS, &fs, AT_SYMLINK_NOFOLLOW) < 0 ||
	    fs.st_size == at->status_size)
		return;
	if (status_read(at->dirfd, &st, NULL) < 0)
		return;
	at->status_size = fs.st_size;
	at->st = st;
	if (st.has_exit)
		attempt_ended(at, &st.exit);
}

void attempt_give_up(struct attempt *at, const struct err *why)
{
	struct exit_report e = {.attempt = at->no, .code = -1, .kind = why->kind};

	exit_add_reason(&e, why->msg);
	attempt_ended(at, &e);
}

/* ---- watching the shim ---- */

static void shim_gone(struct attempt *at)
{
	unwatch_shim(at);
	attempt_refresh(at);
	if (at->has_exit || at->supervising)
		return;
	if (at->hold) /* the agent is the only reader now */
		pipe_holder_fork(at->dirfd, at->hold, streams_count(at->processes));
	attempt_take_over(at);
}

/* The shim was a child of this agent and has ended. */
static void shim_left(struct attempt *at)
{
	at->shim = 0;
	at->parent = true;
	shim_gone(at);
	at->ev.changed(at->ctx);
}

static void shim_readable(void *ctx, int fd, int events)
{
	(void)fd;
	(void)events;
	shim_gone(ctx);
}

static void check_shim(void *ctx)
{
	struct attempt *at = ctx;

	if (proc_alive(at->st.shim))
		loop_timer_set(at->shim_timer, SHIM_CHECK_MS);
	else
		shim_gone(at);
}

static void watch_stranger(struct attempt *at)
{
	at->shim_fd = proc_open(at->st.shim);
	if (at->shim_fd >= 0) {
		at->shim_io = loop_io_new(at->loop, at->shim_fd, LOOP_READ, shim_readable, at);
		return;
	}
	at->shim_timer = loop_timer_new(at->loop, check_shim, at);
	loop_timer_set(at->shim_timer, 0);
}

static void woken(void *ctx, int fd, int events)
{
	struct attempt *at = ctx;
	char bytes[256];

	(void)events;
	while (read(fd, bytes, sizeof(bytes)) == (ssize_t)sizeof(bytes))
		;
	attempt_refresh(at);
	at->ev.changed(at->ctx);
}

/* A FIFO and not inotify: it costs less per wakeup, and closing an inotify descriptor waits for an RCU
 * grace period (15 ms measured) at the end of every job. */
int attempt_watch_wakeup(struct attempt *at, struct err *err)
{
	at->wakeup =
		openat(at->dirfd, SUPERVISOR_WAKEUP, O_RDWR | O_NONBLOCK | O_CLOEXEC | O_NOFOLLOW);
	if (at->wakeup < 0)
		return err_errno(err, errno, "open '%s'", SUPERVISOR_WAKEUP);
	at->wakeup_io = loop_io_new(at->loop, at->wakeup, LOOP_READ, woken, at);
	return 0;
}

void attempt_hold_pipes(struct attempt *at)
{
	int n = streams_count(at->processes);

	at->hold = xcalloc((size_t)n, sizeof(int));
	for (int s = 0; s < n; s++) {
		char file[16], fifo[16];

		spool_names((enum stream)s, file, fifo);
		at->hold[s] =
			openat(at->dirfd, fifo, O_RDONLY | O_NONBLOCK | O_CLOEXEC | O_NOFOLLOW);
	}
}

/* Recorded before this agent holds the pipes: a later agent would find them held and see no cut. */
static void remember_cut(struct attempt *at)
{
	CLEANUP(close_fdp) int fd = -1;
	struct err err = {0};

	at->cut = true;
	if (!at->st.cut && (status_open(at->dirfd, &fd, &err) < 0 || status_add_cut(fd, &err) < 0))
		log_warn("attempt %d: %s", at->no, err.msg);
}

/*
 * The job does not hold the metrics FIFO as it holds its output: it opens it when it writes.  A FIFO without a
 * reader has lost what was in it; a job that has never written to it has lost nothing that is known.
 */
static void check_metrics(struct attempt *at)
{
	CLEANUP(close_fdp) int status = -1;
	char file[16], fifo[16];
	struct err err = {0};

	spool_names(STREAM_METRICS, file, fifo);
	CLEANUP(close_fdp)
	int writer = openat(at->dirfd, fifo, O_WRONLY | O_NONBLOCK | O_CLOEXEC | O_NOFOLLOW);

	if (writer >= 0 || errno != ENXIO || faccessat(at->dirfd, file, F_OK, 0) < 0)
		return;
	at->metrics_cut = true;
	if (!at->st.metrics_cut &&
	    (status_open(at->dirfd, &status, &err) < 0 || status_add_metrics_cut(status, &err) < 0))
		log_warn("attempt %d: %s", at->no, err.msg);
}

/*
 * Hold the pipes of a job that was started under another agent.  If no process had a pipe open, its
 * bytes are lost, which must be reported.  Opening a FIFO for writing fails with ENXIO if no process
 * reads it; while it is open for writing, its bytes stay.
 */
static void take_up_pipes(struct attempt *at)
{
	int writers[STREAMS_MAX], n = streams_count(at->processes);
	bool held = true;

	for (int s = 0; s < n; s++) {
		char file[16], fifo[16];

		writers[s] = -1;
		/* A job with a terminal has no writer of standard error. */
		if (s == STREAM_METRICS || (s == STREAM_ERR && at->st.terminal.pid > 0))
			continue;
		spool_names((enum stream)s, file, fifo);
		writers[s] =
			openat(at->dirfd, fifo, O_WRONLY | O_NONBLOCK | O_CLOEXEC | O_NOFOLLOW);
		held &= writers[s] >= 0 || errno != ENXIO;
	}
	if (!held && at->st.job.pid > 0)
		remember_cut(at);
	if (at->st.job.pid > 0)
		check_metrics(at);
	attempt_hold_pipes(at);
	for (int s = 0; s < n; s++)
		close_fd(&writers[s]);
}

char *attempt_dir(const char *node_dir, int no)
{
	return no > 1 ? xasprintf("%s/" LAYOUT_ATTEMPT, node_dir, no) : xstrdup(node_dir);
}

int attempt_open_dir(struct attempt *at, const char *node_dir, int no, struct err *err)
{
	at->no = no;
	at->dir = attempt_dir(node_dir, no);
	at->cg = at->cfg->cg;
	at->cg.used = true; /* unless cgroup_make() finds that it is new */
	at->mark = at->cfg->mark[0] ? xasprintf("%s.%d", at->cfg->mark, no) : xstrdup("");
	at->dirfd = open(at->dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
	return at->dirfd < 0 ? err_errno(err, errno, "open '%s'", at->dir) : 0;
}

/* ---- finding an earlier attempt ---- */

static bool is_claimed(const char *node_dir, int no)
{
	CLEANUP(freep) char *dir = attempt_dir(node_dir, no);
	CLEANUP(freep) char *status = path_join(dir, LAYOUT_STATUS);

	return file_exists(status);
}

/* The number of the newest claimed attempt; 0: none; -1: the directory cannot be read. */
static int newest_attempt(const char *node_dir, struct err *err)
{
	CLEANUP(closedirp) DIR *d = opendir(node_dir);
	int newest = is_claimed(node_dir, 1);
	const struct dirent *e;

	if (!d && errno != ENOENT)
		return err_errno(err, errno, "open '%s'", node_dir);
	while (d && (e = readdir(d))) {
		int no = layout_attempt_no(e->d_name);

		if (no > newest && is_claimed(node_dir, no))
			newest = no;
	}
	return newest;
}

static bool orphan_of(const char *node_dir, pid_t pid, int wait_status)
{
	CLEANUP(freep) char *dir = attempt_dir(node_dir, newest_attempt(node_dir, NULL));
	CLEANUP(close_fdp) int dirfd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
	CLEANUP(close_fdp) int fd = -1;
	struct status st;

	if (dirfd < 0 || status_read(dirfd, &st, NULL) < 0 || st.job.pid != pid || st.ended ||
	    st.has_exit)
		return false;
	if (status_open(dirfd, &fd, NULL) == 0 &&
	    status_add_ended(fd, WIFEXITED(wait_status) ? WEXITSTATUS(wait_status) : 0,
			     WIFSIGNALED(wait_status) ? WTERMSIG(wait_status) : 0, NULL) == 0)
		fdatasync(fd);
	return true;
}

bool agent_orphan_ended(const char *node_dir, pid_t pid, int wait_status)
{
	CLEANUP(freep) char *setup = path_join(node_dir, LAYOUT_SETUP);

	return orphan_of(node_dir, pid, wait_status) || orphan_of(setup, pid, wait_status);
}

int attempt_find(struct attempt *at, const char *node_dir, struct err *err)
{
	int no = newest_attempt(node_dir, err);

	if (no < 0)
		return -1;
	/* After a crash of the machine a claim that was not on disk yet may be lost. */
	if (no == 0) {
		at->other_boot = at->cfg->boot[0] && strcmp(at->cfg->boot, at->boot_id) != 0;
		return 0;
	}
	if (attempt_open_dir(at, node_dir, no, err) < 0 || attempt_watch_wakeup(at, err) < 0)
		return err_wrap(err, "take over attempt %d", no);
	cgroup_find(&at->cg);
	attempt_refresh(at);
	at->processes = at->st.processes;
	if (at->has_exit)
		return 0;
	/* An unreadable claim counts as a claim: the attempt is not executed again. */
	at->other_boot = at->st.boot_id[0] && strcmp(at->st.boot_id, at->boot_id) != 0;
	if (at->other_boot)
		return 0;
	take_up_pipes(at);
	if (proc_alive(at->st.shim))
		watch_stranger(at);
	else
		shim_gone(at);
	return 0;
}

/* ---- stopping and reaping ---- */

void attempt_stop(struct attempt *at, enum stop_cause cause)
{
	static const int signals[] = {
		[STOP_ASKED] = SHIM_STOP,
		[STOP_HURRY] = SHIM_HURRY,
		[STOP_LEASE] = SHIM_LEASE,
		[STOP_DEADLINE] = SHIM_STOP,
	};

	if (!attempt_is_live(at))
		return;
	/* Remembered for a takeover: a shim that is being killed does not handle the signal. */
	if (at->stop == STOP_NONE || cause == STOP_HURRY)
		at->stop = cause;
	if (at->supervising) {
		supervisor_stop(&at->supervisor, cause, clock_boot_ms());
		loop_timer_set(at->supervise_timer, 0);
	} else if (at->shim > 0) {
		kill(at->shim, signals[cause]);
	} else if (proc_alive(at->st.shim)) {
		kill(at->st.shim.pid, signals[cause]);
	}
}

void attempt_signal(const struct attempt *at, int signo)
{
	pid_t pid = at->st.job.pid;

	if (signo > 0 && attempt_is_live(at) && pid > 0 && proc_alive(at->st.job) &&
	    kill(-pid, signo) < 0)
		kill(pid, signo);
}

int attempt_write_fence(const struct attempt *at, struct err *err)
{
	const struct supervisor_fence *f = &at->fence;

	if (!f->at_ms)
		return 0;
	CLEANUP(close_fdp)
	int fd = openat(at->dirfd, SUPERVISOR_FENCE, O_WRONLY | O_CREAT | O_CLOEXEC | O_NOFOLLOW,
			0600);

	if (fd < 0 || pwrite(fd, f, sizeof(*f), 0) < 0)
		return err_errno(err, errno, "write '%s' of attempt %d", SUPERVISOR_FENCE, at->no);
	return 0;
}

void attempt_fence(struct attempt *at, struct supervisor_fence fence)
{
	struct err err = {0};

	at->fence = fence;
	/* If the file cannot be written the job is stopped too early, but not too late. */
	if (at->dirfd >= 0 && attempt_write_fence(at, &err) < 0)
		log_warn("%s", err.msg);
}

void attempt_child_ended(struct attempt *at, pid_t pid, int wait_status)
{
	if (!at->supervising)
		return;
	if (pid == at->supervisor.remover)
		supervisor_remover_ended(&at->supervisor, wait_status, clock_boot_ms());
	else if (pid == at->supervisor.job.pid && !at->supervisor.exited)
		supervisor_main_ended(&at->supervisor, wait_status, clock_boot_ms());
}

/*
 * Was the attempt claimed by a shim that left no status file?  A shim that cannot claim exits with an
 * errno; one that exits with 0 has claimed, so the file was removed.  If the shim was killed and the
 * directory is gone, the job may have run.
 */
static bool was_claimed(const struct attempt *at, int wait_status)
{
	return WIFEXITED(wait_status) ? WEXITSTATUS(wait_status) == 0 : !file_exists(at->dir);
}

static void never_claimed(struct attempt *at, int wait_status)
{
	struct err err = {0};

	if (WIFEXITED(wait_status))
		err_errno(&err, WEXITSTATUS(wait_status), "start attempt %d", at->no);
	else
		err_set(&err, ERR_UNAVAILABLE, NEVER_STARTED);
	attempt_give_up(at, &err);
}

void attempt_child_reaped(struct attempt *at, pid_t pid, int wait_status)
{
	if (at->supervising) {
		loop_timer_set(at->supervise_timer, 0);
		return;
	}
	if (pid != at->shim || at->shim == 0)
		return;
	attempt_refresh(at);
	bool no_record = at->st.attempt == 0 && !at->has_exit;

	if (no_record && !was_claimed(at, wait_status)) {
		at->shim = 0;
		never_claimed(at, wait_status);
	} else if (!no_record && at->st.shim.pid != pid && !at->has_exit) {
		/* The shim of an earlier agent has claimed the attempt. */
		at->shim = 0;
		watch_stranger(at);
	} else {
		shim_left(at);
	}
}
