#include "agent/attempt.h"

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
#include "agent/environ.h"
#include "agent/pipe_holder.h"
#include "agent/prepare.h"
#include "agent/shim.h"
#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/file.h"
#include "base/path.h"
#include "base/vec.h"
#include "link/layout.h"
#include "sys/child.h"
#include "sys/loop.h"

#define JOB_CHECK_MS 20
#define SHIM_CHECK_MS 200
#define ZOMBIE_MS 2000 /* how long its parent has to say how it ended */
#define NEVER_STARTED "the shim was killed before the job had started"

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
		.hold = {-1, -1, -1},
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

static void stop_supervising(struct attempt *at)
{
	for (int s = 0; s < STREAMS; s++)
		at->supervise_io[s] = loop_io_free(at->supervise_io[s]);
	at->supervise_timer = loop_timer_free(at->supervise_timer);
	at->job_timer = loop_timer_free(at->job_timer);
	if (at->supervising) {
		supervisor_close(&at->supervisor);
		close(at->supervisor.status_fd);
	}
	at->supervising = false;
}

static void let_go_of_pipes(struct attempt *at)
{
	for (int s = 0; s < STREAMS; s++)
		close_fd(&at->hold[s]);
}

void attempt_release(struct attempt *at)
{
	struct attempt_events ev = at->ev;

	stop_supervising(at);
	unwatch_shim(at);
	let_go_of_pipes(at);
	at->wakeup_io = loop_io_free(at->wakeup_io);
	close_fd(&at->wakeup);
	close_fd(&at->dirfd);
	free(at->dir);
	free(at->mark);
	attempt_init(at, at->loop, at->cfg, at->boot_id, &ev, at->ctx);
}

bool attempt_is_live(const struct attempt *at)
{
	return at->no > 0 && !at->has_exit && !at->other_boot;
}

void attempt_remove_groups(struct attempt *at)
{
	if (!at->no_groups)
		at->no_groups = cgroup_remove(&at->cfg->cg);
}

void attempt_empty_spools(struct attempt *at)
{
	for (int s = 0; at->dirfd >= 0 && s < STREAMS; s++) {
		char file[16], fifo[16];
		struct stat st;

		spool_names((enum stream)s, file, fifo);
		if (fstatat(at->dirfd, file, &st, AT_SYMLINK_NOFOLLOW) < 0 || st.st_size == 0)
			continue;
		int fd = openat(at->dirfd, file, O_WRONLY | O_TRUNC | O_CLOEXEC | O_NOFOLLOW);

		if (fd >= 0)
			close(fd);
	}
}

static void ended(struct attempt *at, const struct exit_report *e)
{
	if (at->has_exit)
		return;
	at->exit = *e;
	at->has_exit = true;
	let_go_of_pipes(at);
	attempt_remove_groups(at);
	at->ev.changed(at->ctx);
}

/* Read the status again if it grew. */
static void refresh_status(struct attempt *at)
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
		ended(at, &st.exit);
}

/* ---- the agent supervises ---- */

static bool is_helper(const struct attempt *at, const struct proc_info *p)
{
	return at->ev.is_helper(at->ctx, p->pid) || at->ev.is_helper(at->ctx, p->ppid);
}

/*
 * The job's processes.  If the shim was our child, its orphans are ours: everything below us
 * that is not a helper.  Otherwise only the mark in their environment tells, and the main
 * process's pid; there the shim's and the old agent's remains carry the same mark.
 */
static void others(void *ctx, struct proc_list *out)
{
	CLEANUP(proc_list_release) struct proc_list all = {0};
	struct attempt *at = ctx;

	if (at->parent) {
		proc_descendants(getpid(), &all);
	} else {
		CLEANUP(freep) char *entry = xasprintf("%s=%s", PROC_MARK, at->cfg->mark);
		struct proc_info main;

		if (at->cfg->mark[0])
			proc_with_env(entry, true, &all);
		if (proc_alive(at->st.job) && proc_read(at->st.job.pid, &main)) {
			*vec_push(&all) = main;
			proc_descendants(at->st.job.pid, &all);
		}
	}
	for (size_t i = 0; i < all.n; i++)
		if (!is_helper(at, &all.v[i]))
			*vec_push(out) = all.v[i];
}

static void supervise_now(void *ctx)
{
	struct attempt *at = ctx;
	struct pollfd p[STREAMS];
	int64_t wait = supervisor_step(&at->supervisor, clock_boot_ms());

	if (at->supervisor.phase == SUPERVISOR_DONE) {
		struct exit_report e = at->supervisor.exit;

		stop_supervising(at);
		ended(at, &e);
		return;
	}
	size_t n = supervisor_poll(&at->supervisor, p);

	for (int s = 0; s < STREAMS; s++) {
		bool wanted = false;

		for (size_t i = 0; i < n; i++)
			wanted |= p[i].fd == at->supervisor.spools[s].fifo;
		loop_io_set(at->supervise_io[s], wanted ? LOOP_READ : 0);
	}
	if (wait >= 0)
		loop_timer_set(at->supervise_timer, wait);
	else
		loop_timer_cancel(at->supervise_timer);
}

static void supervise_ready(void *ctx, int fd, int events)
{
	(void)fd;
	(void)events;
	supervise_now(ctx);
}

/* Nothing can be done about the attempt: say so, without a record. */
static void give_up(struct attempt *at, const struct err *why)
{
	struct exit_report e = {.attempt = at->no, .code = -1, .kind = why->kind};

	exit_add_reason(&e, why->msg);
	ended(at, &e);
}

static bool is_zombie(struct proc_id id)
{
	struct proc_info p;

	return proc_read(id.pid, &p) && p.start == id.start && p.state == 'Z';
}

/*
 * Not our child: we see that it ended, but not how.  Its parent may be the forkserver, which writes that down before it reaps;
 * another one, init for example, only reaps.
 */
static void check_job(void *ctx)
{
	struct attempt *at = ctx;
	int64_t now = clock_boot_ms();

	if (proc_alive(at->st.job)) {
		loop_timer_set(at->job_timer, JOB_CHECK_MS);
		return;
	}
	bool waits = is_zombie(at->st.job);

	refresh_status(at);
	if (waits && !at->st.ended && (!at->zombie_ms || now - at->zombie_ms < ZOMBIE_MS)) {
		if (!at->zombie_ms)
			at->zombie_ms = now;
		loop_timer_set(at->job_timer, JOB_CHECK_MS);
		return;
	}
	if (at->st.ended)
		supervisor_main_known(&at->supervisor, at->st.code, at->st.signal, now);
	else
		supervisor_main_unknown(&at->supervisor,
					"agent and shim were killed; exit status unknown", now);
	loop_timer_set(at->supervise_timer, 0);
}

/* The shim is dead and there is no exit record. */
static void take_over(struct attempt *at)
{
	struct err err = {0};
	siginfo_t si;

	at->supervisor = (struct supervisor){
		.dirfd = at->dirfd,
		.status_fd = -1,
		.attempt = at->no,
		.job = at->st.job,
		.cg = at->cg,
		.grace_ms = at->st.grace_ms,
		.deadline_ms = at->st.deadline_ms,
		.limits = at->cfg->limits,
		.others = others,
		.ctx = at,
	};
	if (status_open(at->dirfd, &at->supervisor.status_fd, &err) < 0) {
		at->unproven = true;
		give_up(at, &err);
		return;
	}
	at->supervising = true;
	if (supervisor_open(&at->supervisor, &err) < 0) {
		stop_supervising(at);
		at->unproven = true;
		give_up(at, &err);
		return;
	}
	for (int s = 0; s < STREAMS; s++)
		spool_check_left(&at->supervisor.spools[s]);
	at->supervisor.exit.ngaps = at->st.exit.ngaps;
	memcpy(at->supervisor.exit.gaps, at->st.exit.gaps, sizeof(at->st.exit.gaps));
	for (int s = 0; s < STREAMS; s++)
		at->supervise_io[s] = loop_io_new(at->loop, at->supervisor.spools[s].fifo, 0,
						  supervise_ready, at);
	at->supervise_timer = loop_timer_new(at->loop, supervise_now, at);
	int64_t now = clock_boot_ms();

	if (at->st.ended)
		supervisor_main_known(&at->supervisor, at->st.code, at->st.signal, now);
	else if (at->st.job.pid == 0)
		supervisor_lost(&at->supervisor, NEVER_STARTED, now);
	else if (!at->parent ||
		 waitid(P_PID, (id_t)at->st.job.pid, &si, WEXITED | WNOHANG | WNOWAIT) < 0)
		at->job_timer = loop_timer_new(at->loop, check_job, at);
	if (at->stop != STOP_NONE)
		supervisor_stop(&at->supervisor, at->stop, now);
	loop_timer_set(at->supervise_timer, 0);
	if (at->job_timer)
		loop_timer_set(at->job_timer, 0);
}

/* ---- watching the shim ---- */

static void shim_gone(struct attempt *at)
{
	unwatch_shim(at);
	refresh_status(at);
	if (at->has_exit || at->supervising)
		return;
	pipe_holder_fork(at->dirfd); /* we are the only reader now */
	take_over(at);
}

/* The shim that was our child has ended. */
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
	refresh_status(at);
	at->ev.changed(at->ctx);
}

/* A FIFO and not inotify: it costs less per wakeup, and to close an inotify descriptor costs a
 * grace period of the kernel (15 ms measured) at the end of every job. */
static int watch_wakeup(struct attempt *at, struct err *err)
{
	at->wakeup =
		openat(at->dirfd, SUPERVISOR_WAKEUP, O_RDWR | O_NONBLOCK | O_CLOEXEC | O_NOFOLLOW);
	if (at->wakeup < 0)
		return err_errno(err, errno, "open '%s'", SUPERVISOR_WAKEUP);
	at->wakeup_io = loop_io_new(at->loop, at->wakeup, LOOP_READ, woken, at);
	return 0;
}

static void hold_pipes(struct attempt *at)
{
	for (int s = 0; s < STREAMS; s++) {
		char file[16], fifo[16];

		spool_names((enum stream)s, file, fifo);
		at->hold[s] =
			openat(at->dirfd, fifo, O_RDONLY | O_NONBLOCK | O_CLOEXEC | O_NOFOLLOW);
	}
}

/* The first one, mostly the only one, is in the node's directory itself. */
static char *dir_of(const char *node_dir, int no)
{
	return no > 1 ? xasprintf("%s/" LAYOUT_ATTEMPT, node_dir, no) : xstrdup(node_dir);
}

static int open_dir(struct attempt *at, const char *node_dir, int no, struct err *err)
{
	at->no = no;
	at->dir = dir_of(node_dir, no);
	at->cg = at->cfg->cg;
	at->mark = at->cfg->mark[0] ? xasprintf("%s.%d", at->cfg->mark, no) : xstrdup("");
	at->dirfd = open(at->dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
	return at->dirfd < 0 ? err_errno(err, errno, "open '%s'", at->dir) : 0;
}

/* ---- finding an earlier one ---- */

/* 0: none.  Each follows the one before. */
static int newest_attempt(const char *node_dir)
{
	for (int no = 1;; no++) {
		CLEANUP(freep) char *dir = dir_of(node_dir, no);
		CLEANUP(freep) char *status = path_join(dir, LAYOUT_STATUS);

		if (!file_exists(status))
			return no - 1;
	}
}

bool agent_orphan_ended(const char *node_dir, pid_t pid, int wait_status)
{
	CLEANUP(freep) char *dir = dir_of(node_dir, newest_attempt(node_dir));
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

int attempt_find(struct attempt *at, const char *node_dir, struct err *err)
{
	int no = newest_attempt(node_dir);

	/* In a directory of another boot a claim may have been lost with what was not yet on disk. */
	if (no == 0) {
		at->other_boot = at->cfg->boot[0] && strcmp(at->cfg->boot, at->boot_id) != 0;
		return 0;
	}
	if (open_dir(at, node_dir, no, err) < 0 || watch_wakeup(at, err) < 0)
		return err_wrap(err, "take up attempt %d", no);
	hold_pipes(at);
	refresh_status(at);
	if (at->has_exit)
		return 0;
	/* A claim that cannot be read is a claim all the same: it is never executed again. */
	at->other_boot = at->st.boot_id[0] && strcmp(at->st.boot_id, at->boot_id) != 0;
	if (at->other_boot)
		let_go_of_pipes(at);
	else if (proc_alive(at->st.shim))
		watch_stranger(at);
	else
		take_over(at);
	return 0;
}

/* ---- starting ---- */

static int make_wakeup(int dirfd, struct err *err)
{
	if (mkfifoat(dirfd, SUPERVISOR_WAKEUP, 0600) < 0 && errno != EEXIST)
		return err_errno(err, errno, "make '%s'", SUPERVISOR_WAKEUP);
	return 0;
}

static int make_dir(struct attempt *at, const char *node_dir, int no, struct err *err)
{
	CLEANUP(freep) char *dir = dir_of(node_dir, no);

	if (no > 1 && mkdir(dir, 0700) < 0 && errno != EEXIST)
		return err_errno(err, errno, "make '%s'", dir);
	if (open_dir(at, node_dir, no, err) < 0 || spool_make(at->dirfd, err) < 0 ||
	    make_wakeup(at->dirfd, err) < 0)
		return -1;
	return watch_wakeup(at, err);
}

static int make_groups(struct attempt *at, uint64_t memory, struct err *err)
{
	at->no_groups = false;
	cgroup_make(&at->cg, memory > 0);
	return memory > 0 ? cgroup_limit_memory(&at->cg, memory, err) : 0;
}

static int launch(struct attempt *at, const char *node_dir, const struct message_start *m,
		  struct err *err)
{
	CLEANUP(freep) char *cwd = prepare_cwd(node_dir, m->cwd);
	CLEANUP(freep) char *file = NULL;
	CLEANUP(freep) char *fifo = path_join(at->dir, LAYOUT_METRICS_FIFO);
	CLEANUP(environ_freep) const char **env = environ_make(m, at->mark, fifo);
	struct shim_start s = {
		.dir = at->dir,
		.attempt = m->attempt,
		.boot_id = at->boot_id,
		.sync = !at->cfg->boot[0], /* otherwise its loss is noticed: see attempt_find */
		.argv = m->argv,
		.env = env,
		.cwd = cwd,
		.cg = at->cg,
		.grace_ms = m->grace_ms,
		.deadline_ms = m->deadline_ms,
		.limits = at->cfg->limits,
	};

	if (child_find_command(m->argv[0], environ_get(env, "PATH"), cwd, &file, &s.unfit) == 0)
		s.file = file;
	return shim_fork(&s, &at->shim, err);
}

static int write_hosts(const char *node_dir, const char *name, const char *text, struct err *err)
{
	CLEANUP(freep) char *path = path_join(node_dir, name);

	if (!text[0])
		return 0;
	return file_write(path, str_from(text), 0600, err);
}

void attempt_start(struct attempt *at, const char *node_dir, const struct message_start *m)
{
	struct err err = {0};

	attempt_release(at);
	at->no = m->attempt;
	if (make_dir(at, node_dir, m->attempt, &err) < 0 ||
	    write_hosts(node_dir, LAYOUT_HOSTFILE, m->hostfile, &err) < 0 ||
	    write_hosts(node_dir, LAYOUT_MACHINEFILE, m->machinefile, &err) < 0 ||
	    make_groups(at, m->memory, &err) < 0) {
		give_up(at, &err);
		return;
	}
	hold_pipes(at);
	if (launch(at, node_dir, m, &err) < 0)
		give_up(at, &err);
}

/* ---- stopping, and children ---- */

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
	/* Remembered, because a shim that is being killed does not act on it any more. */
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

void attempt_child_ended(struct attempt *at, pid_t pid, int wait_status)
{
	if (!at->supervising || pid != at->supervisor.job.pid || at->supervisor.exited)
		return;
	supervisor_main_ended(&at->supervisor, wait_status, clock_boot_ms());
}

/* The shim exits with an errno when it could not claim the attempt. */
static void never_claimed(struct attempt *at, int wait_status)
{
	struct err err = {0};

	if (WIFEXITED(wait_status) && WEXITSTATUS(wait_status) != 0)
		err_errno(&err, WEXITSTATUS(wait_status), "start attempt %d", at->no);
	else
		err_set(&err, ERR_UNAVAILABLE, NEVER_STARTED);
	give_up(at, &err);
}

void attempt_child_reaped(struct attempt *at, pid_t pid, int wait_status)
{
	if (at->supervising) {
		loop_timer_set(at->supervise_timer, 0);
		return;
	}
	if (pid != at->shim || at->shim == 0)
		return;
	refresh_status(at);
	if (at->st.attempt == 0 && !at->has_exit) {
		at->shim = 0;
		never_claimed(at, wait_status);
	} else if (at->st.shim.pid != pid && !at->has_exit) {
		/* Another shim, of an agent that was killed, had the attempt already. */
		at->shim = 0;
		watch_stranger(at);
	} else {
		shim_left(at);
	}
}
