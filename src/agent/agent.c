/*
 * The agent's main program: lock the node's directory, go on with the attempt of an earlier agent,
 * serve the link, and leave when it is released or refused, when the lease is over or at a signal.
 */
#include "agent/agent.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "agent/internal.h"
#include "agent/prepare.h"
#include "agent/exec.h"
#include "agent/forked_task.h"
#include "agent/inspect.h"
#include "agent/preempt.h"
#include "base/alloc.h"
#include "base/arena.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "base/file.h"
#include "base/log.h"
#include "base/path.h"
#include "link/layout.h"
#include "sys/child.h"
#include "sys/loop.h"

#define UPDATES 8  /* per round of the loop */
#define BYE_MS 500 /* how long a leaving agent waits until its BYE is sent */

void agent_wake(struct agent *a)
{
	a->awake = true;
}

/* ---- leaving ---- */

/* Remove the directories that may be large; the driver removes the rest of the node. */
static void remove_work(const char *dir)
{
	static const char *const names[] = {LAYOUT_WORK, WORK_NEW_DIR, LAYOUT_OUTPUT, LAYOUT_SETUP};
	struct err err = {0};

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		CLEANUP(freep) char *path = path_join(dir, names[i]);

		if (file_exists(path) && file_remove_tree(path, &err) < 0)
			log_warn("%s", err.msg); /* destroying the node tries again */
	}
}

/* No other process of this node is alive: the driver need not search for any. */
static void say_clean(struct agent *a)
{
	if (!attempt_is_proven(&a->at) || !attempt_is_proven(&a->setup.at))
		return;
	if (lseek(a->lock, 0, SEEK_END) < 0 ||
	    write(a->lock, LAYOUT_AGENT_CLEAN, strlen(LAYOUT_AGENT_CLEAN)) !=
		    (ssize_t)strlen(LAYOUT_AGENT_CLEAN))
		log_warn("cannot mark node '%s' as clean: %s", a->cfg.node, strerror(errno));
}

static void late(void *ctx)
{
	struct agent *a = ctx;

	loop_stop(a->loop);
}

void agent_leave(struct agent *a, enum leave how)
{
	if (a->leave == LEAVE_NOT || how == LEAVE_CLEAN)
		a->leave = how;
	if (how == LEAVE_KEEP || how == LEAVE_CLEAN) {
		attempt_stop(&a->at, how == LEAVE_KEEP ? STOP_LEASE : STOP_HURRY);
		attempt_stop(&a->setup.at, STOP_HURRY);
	}
	agent_wake(a);
}

static bool anything_lives(const struct agent *a)
{
	return attempt_is_live(&a->at) || attempt_is_live(&a->setup.at);
}

static void update_leave(struct agent *a)
{
	switch (a->leave) {
	case LEAVE_NOT:
	case LEAVE_NOW:
		return;
	case LEAVE_KEEP:
		if (anything_lives(a))
			return;
		if (a->conn && a->welcomed) {
			a->leave = LEAVE_NOT; /* a master answered after the lease was over */
			return;
		}
		log_info("the agent leaves; the job's result stays on disk");
		break;
	case LEAVE_CLEAN:
		/* A shim that has written the exit record may still be running. */
		if (anything_lives(a) || a->at.shim > 0 || a->setup.at.shim > 0)
			return;
		a->prepare = forked_task_free(a->prepare);
		job_drop_collect(a);
		attempt_remove_groups(&a->at);
		attempt_empty_spools(&a->at);
		if (a->ahead_fd >= 0)
			spool_empty(a->ahead_fd, STREAMS);
		remove_work(a->dir);
		say_clean(a);
		log_info("released");
		break;
	}
	loop_stop(a->loop);
}

static void again(void *ctx)
{
	agent_wake(ctx);
}

static void after_round(void *ctx)
{
	struct agent *a = ctx;

	/* An update may request another one; the bound lets the loop handle other events. */
	for (int i = 0; a->awake && i < UPDATES; i++) {
		a->awake = false;
		if (a->leave != LEAVE_CLEAN)
			job_update(a);
		update_leave(a);
	}
	if (a->awake)
		loop_soon(a->loop, again, a);
}

/* ---- signals ---- */

static void on_terminate(void *ctx, int signo)
{
	struct agent *a = ctx;

	log_info("signal %d: leaving; the job goes on", signo);
	a->leave = LEAVE_NOW;
	if (!a->conn) {
		loop_stop(a->loop);
		return;
	}
	link_bye(a, "the agent was asked to stop");
	a->bye = loop_timer_free(a->bye);
	a->bye = loop_timer_new(a->loop, late, a);
	loop_timer_set(a->bye, BYE_MS);
}

static void on_child(void *ctx, int signo)
{
	struct agent *a = ctx;

	(void)signo;
	for (;;) {
		siginfo_t si = {0};

		/* WNOWAIT: the job's exit status must be in the status file before the kernel forgets it. */
		if (waitid(P_ALL, 0, &si, WEXITED | WNOHANG | WNOWAIT) < 0 || si.si_pid == 0)
			break;
		attempt_child_ended(&a->at, si.si_pid, child_wait_status(&si));
		attempt_child_ended(&a->setup.at, si.si_pid, child_wait_status(&si));
		waitpid(si.si_pid, NULL, 0);
		forked_task_reaped(a->prepare, si.si_pid);
		forked_task_reaped(a->collect, si.si_pid);
		preempt_reaped(a, si.si_pid);
		inspect_reaped(a, si.si_pid);
		if (a->has_host)
			gpu_reaped(a->host.gpu, si.si_pid);
		exec_reaped(a, si.si_pid, child_wait_status(&si));
		attempt_child_reaped(&a->at, si.si_pid, child_wait_status(&si));
		attempt_child_reaped(&a->setup.at, si.si_pid, child_wait_status(&si));
	}
	agent_wake(a);
}

/* ---- starting ---- */

/* A POSIX lock: forked shims do not have it.  It ends when this process closes any descriptor of the
 * file, so the file must not be opened again. */
static int take_lock(const char *dir, int *ret_fd, struct err *err)
{
	CLEANUP(freep) char *path = path_join(dir, LAYOUT_AGENT_CONFIG);
	struct flock whole = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
	CLEANUP(close_fdp) int fd = open(path, O_RDWR | O_CLOEXEC | O_NOFOLLOW);

	if (fd < 0)
		return err_errno(err, errno, "open '%s'", path);
	if (fcntl(fd, F_SETLK, &whole) < 0) {
		if (errno == EAGAIN || errno == EACCES)
			return err_set(err, ERR_CONFLICT, "another agent of this node is running");
		return err_errno(err, errno, "lock '%s'", path);
	}
	*ret_fd = TAKE_FD(fd);
	return 0;
}

/* Remove the line "clean" of an earlier agent. */
static void unsay_clean(struct agent *a)
{
	if (a->cfg.was_clean && ftruncate(a->lock, a->cfg.length) < 0)
		log_warn("cannot write '%s': %s", LAYOUT_AGENT_CONFIG, strerror(errno));
}

/* All agents of a machine have one log. */
static void log_as(const struct agent *a)
{
	char name[LOG_ROLE_MAX];

	snprintf(name, sizeof(name), "agent %s/%s", a->cfg.run, a->cfg.node);
	log_setup(2, name, LOG_INFO);
}

static int begin(struct agent *a, struct err *err)
{
	if (config_load(a->dir, a->arena, &a->cfg, err) < 0 || take_lock(a->dir, &a->lock, err) < 0)
		return -1;
	proc_boot_id(a->boot_id);
	if (!a->boot_id[0])
		return err_set(err, ERR_UNAVAILABLE, "cannot read the kernel's boot id");
	unsay_clean(a);
	log_as(a);
	/* Orphans of a killed shim become children of the agent. */
	if (prctl(PR_SET_CHILD_SUBREAPER, 1) < 0)
		return err_errno(err, errno, "become a subreaper");
	a->loop = loop_new();
	list_init(&a->execs);
	list_init(&a->rsh.calls);
	loop_on_signal(a->loop, SIGTERM, on_terminate, a);
	loop_on_signal(a->loop, SIGINT, on_terminate, a);
	loop_on_signal(a->loop, SIGCHLD, on_child, a);
	loop_after_round(a->loop, after_round, a);
	return job_init(a, err);
}

static void end(struct agent *a)
{
	if (a->loop) {
		a->bye = loop_timer_free(a->bye);
		link_release(a);
		job_release(a);
	}
	a->loop = loop_free(a->loop);
	close_fdp(&a->lock);
	arena_free(a->arena);
	free(a->dir);
}

int agent_exit_code(bool stopped, pid_t self)
{
	return stopped && self == 1 ? 128 + SIGTERM : 0;
}

int agent_main(const char *node_dir)
{
	struct agent a = {.lock = -1, .ahead_fd = -1, .arena = arena_new()};
	struct sigaction ignore = {.sa_handler = SIG_IGN};
	struct err err = {0};
	int rc = 0;

	prctl(PR_SET_NAME, "regatta-agent");
	log_setup(2, "agent", LOG_INFO);
	a.dir = node_dir[0] == '/' ? xstrdup(node_dir) : realpath(node_dir, NULL);
	if (!a.dir) {
		err_errno(&err, errno, "node directory '%s'", node_dir);
		log_error("%s", err.msg);
		arena_free(a.arena);
		return err_exit_code(err.kind);
	}
	sigaction(SIGPIPE, &ignore, NULL);
	sigaction(SIGHUP, &ignore, NULL);
	sigaction(SIGXFSZ, &ignore,
		  NULL); /* a write beyond the file size limit then fails, as on a full disk */
	if (begin(&a, &err) < 0) {
		log_error("%s", err.msg);
		rc = err_exit_code(err.kind);
	} else {
		link_init(&a);
		agent_wake(&a);
		loop_run(a.loop);
		rc = agent_exit_code(a.leave == LEAVE_NOW, getpid());
	}
	end(&a);
	return rc;
}
