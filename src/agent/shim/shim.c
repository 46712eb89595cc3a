#include "agent/shim/shim.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <sys/timerfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include "agent/shim/pipe_holder.h"
#include "agent/shim/processes.h"
#include "agent/shim/status.h"
#include "agent/shim/terminal.h"
#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/err.h"
#include "sys/child.h"
#include "sys/title.h"

#define CODE_NOT_FOUND 127
#define CODE_NOT_RUN 126
#define JOB_UMASK 022 /* the inherited 077 is for Regatta's own files */

struct shim {
	const struct shim_start *start;
	int dirfd, status_fd, signals;
	int fence;	   /* timerfd that also counts time in suspend; -1: not needed */
	int64_t fenced_ms; /* boot time to which `fence` is set; 0: not set */
	struct supervisor supervisor;
};

/* The step before exec at which the job's process failed. */
enum stage { STAGE_STREAMS, STAGE_CGROUP, STAGE_ISOLATION, STAGE_CWD, STAGE_RECORD, STAGE_EXEC };

/* The only message from the job's process to the shim.  A successful exec closes the pipe without one. */
struct failure {
	enum stage stage;
	int errnum;
};

/* What the job's process inherits from the shim. */
struct job_start {
	int *streams; /* two for each process */
	int processes;
	int slave;     /* of the job's terminal; -1: it has none */
	int report[2]; /* a pipe for struct failure */
	pid_t shim;
	bool inside; /* it was forked into the v2 group */
};

int shim_failed_code(enum err_kind kind)
{
	return kind == ERR_NOT_FOUND ? CODE_NOT_FOUND : CODE_NOT_RUN;
}

/* Signals that must not end the shim.  With SIGXFSZ ignored, a write beyond the file size limit fails with
 * EFBIG, which is handled like a full disk. */
static void set_ignored(void (*how)(int))
{
	static const int signals[] = {SIGPIPE, SIGHUP, SIGINT, SIGXFSZ};
	struct sigaction sa = {.sa_handler = how};

	for (size_t i = 0; i < sizeof(signals) / sizeof(signals[0]); i++)
		sigaction(signals[i], &sa, NULL);
}

/* ---- the job's own process, up to its exec ---- */

static void __attribute__((noreturn)) give_up(int report, enum stage stage, int errnum)
{
	struct failure f = {stage, errnum};

	(void)!write(report, &f, sizeof(f));
	_exit(CODE_NOT_RUN);
}

static int dup_streams(const struct job_start *b, int local)
{
	if (b->slave >= 0)
		return terminal_attach(b->slave);
	int null = open("/dev/null", O_RDONLY | O_CLOEXEC);

	if (null < 0 || dup2(null, 0) < 0 || dup2(b->streams[2 * local], 1) < 0)
		return -1;
	return dup2(b->streams[2 * local + 1], 2);
}

/* Run a script without "#!" by /bin/sh, as a shell does. */
static void exec_by_shell(const char *file, const char *const *words, const char *const *env)
{
	size_t n = 0;

	while (words[n])
		n++;
	const char **argv = xcalloc(n + 2, sizeof(*argv));

	argv[0] = "/bin/sh";
	argv[1] = file;
	for (size_t i = 1; i < n; i++)
		argv[i + 1] = words[i];
	execve(argv[0], (char *const *)argv, (char *const *)env);
}

/* The job's pid is recorded before its program runs. */
static void record_job(int status_fd, int report)
{
	struct err err = {0};

	if (status_add_job(status_fd, proc_id_of(getpid()), &err) < 0)
		give_up(report, STAGE_RECORD, err.code ? err.code : EIO);
}

/* Replace this process by the program of process `local`. */
static void __attribute__((noreturn))
run_program(const struct shim_start *s, const struct job_start *b, int local)
{
	const char *const *argv = s->argvs[local], *const *env = s->envs[local];
	sigset_t none;

	if (dup_streams(b, local) < 0)
		give_up(b->report[1], STAGE_STREAMS, errno);
	set_ignored(SIG_DFL); /* exec resets handlers, but not ignored signals */
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	umask(JOB_UMASK);
	if (s->cpus)
		cpus_bind(&s->cpus[local]); /* if they were taken away meanwhile it uses all */
	execve(s->file, (char *const *)argv, (char *const *)env);
	if (errno == ENOEXEC)
		exec_by_shell(s->file, argv, env);
	give_up(b->report[1], STAGE_EXEC, errno);
}

struct program {
	const struct shim_start *s;
	const struct job_start *b;
};

static void run_one(void *ctx, int local)
{
	const struct program *p = ctx;

	run_program(p->s, p->b, local);
}

static void __attribute__((noreturn)) job_main(const struct shim *sh, const struct job_start *b)
{
	const struct shim_start *s = sh->start;
	int report = b->report[1];

	/* If the shim dies before the exec the program must not run: the agent reports that it did not. */
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != b->shim)
		_exit(CODE_NOT_RUN);
	setsid();
	if ((!b->inside && cgroup_enter_unified(&s->cg) < 0) || cgroup_enter_memory(&s->cg) < 0)
		give_up(report, STAGE_CGROUP, errno);
	if (isolation_enter(&s->isolation) < 0)
		give_up(report, STAGE_ISOLATION, errno);
	if (chdir(s->cwd) < 0)
		give_up(report, STAGE_CWD, errno);
	record_job(sh->status_fd, report);
	prctl(PR_SET_PDEATHSIG, 0);
	if (s->processes > 1)
		processes_main(&(struct processes){.n = s->processes,
						   .status_fd = sh->status_fd,
						   .grace_ms = s->grace_ms,
						   .report = report,
						   .run = run_one,
						   .ctx = &(struct program){s, b}});
	run_program(s, b, 0);
}

/* ---- starting the job ---- */

static size_t total_bytes(const char *const *v)
{
	size_t n = 0;

	for (; *v; v++)
		n += strlen(*v) + 1 + sizeof(char *);
	return n;
}

static void explain_failure(const struct shim_start *s, const struct failure *f, struct err *err)
{
	switch (f->stage) {
	case STAGE_STREAMS:
		err_errno(err, f->errnum, "open the job's output");
		break;
	case STAGE_CGROUP:
		err_set(err, ERR_UNAVAILABLE, "enter the job's cgroup: %s", strerror(f->errnum));
		break;
	case STAGE_ISOLATION:
		err_errno(err, f->errnum, "put the job into the node's namespaces");
		break;
	case STAGE_CWD:
		err_errno(err, f->errnum, "enter the directory '%s'", s->cwd);
		break;
	case STAGE_RECORD:
		err_errno(err, f->errnum, "record the job's start");
		break;
	case STAGE_EXEC:
		if (f->errnum == E2BIG)
			err_set(err, ERR_INVALID,
				"command and environment are too long for this system (%zu bytes)",
				total_bytes(s->argvs[0]) + total_bytes(s->envs[0]));
		else if (f->errnum == ENOENT)
			/* The file exists, so its interpreter (the "#!" line) is missing. */
			err_set(err, ERR_NOT_FOUND,
				"command '%s' cannot be run: its interpreter is missing",
				s->argvs[0][0]);
		else
			err_errno(err, f->errnum, "run '%s'", s->argvs[0][0]);
		break;
	}
}

/* The job has its pipes open for reading too: when the reader is killed the job gets no SIGPIPE, and the
 * bytes stay in the pipe.  Opened before the fork, so that the spools never see a pipe without a writer. */
static int job_start_open(int dirfd, int processes, struct job_start *b)
{
	*b = (struct job_start){.streams = xcalloc(2 * (size_t)processes, sizeof(int)),
				.processes = processes,
				.slave = -1,
				.report = {-1, -1},
				.shim = getpid()};
	memset(b->streams, -1, 2 * (size_t)processes * sizeof(int));
	for (int i = 0; i < 2 * processes; i++) {
		char file[16], fifo[16];

		spool_names(stream_of(i / 2, (enum stream)(i % 2)), file, fifo);
		b->streams[i] = openat(dirfd, fifo, O_RDWR | O_CLOEXEC | O_NOFOLLOW);
		if (b->streams[i] < 0)
			return -1;
	}
	return pipe2(b->report, O_CLOEXEC);
}

static void job_start_close(struct job_start *b)
{
	for (int i = 0; i < 2 * b->processes; i++)
		close_fdp(&b->streams[i]);
	free(b->streams);
	close_fdp(&b->report[0]);
	close_fdp(&b->report[1]);
	close_fdp(&b->slave);
}

/* The terminal's reader is recorded before the job, so that an agent that takes over does not kill it as
 * one of the job's processes. */
static int open_terminal(struct shim *sh, struct job_start *b, struct err *err)
{
	struct proc_id *reader = &sh->supervisor.terminal;

	if (!sh->start->pty)
		return 0;
	if (terminal_start(b->streams[STREAM_OUT], sh->start->envs[0], &b->slave, reader, err) < 0)
		return -1;
	return status_add_terminal(sh->status_fd, *reader, err);
}

/* 0: the program runs. */
static int start_job(struct shim *sh, struct err *err)
{
	CLEANUP(close_fdp) int cgroup_fd = cgroup_open(&sh->start->cg);
	CLEANUP(job_start_close) struct job_start b;
	struct failure f;

	if (job_start_open(sh->dirfd, sh->start->processes, &b) < 0)
		return err_errno(err, errno, "open the job's pipes");
	if (open_terminal(sh, &b, err) < 0)
		return -1;
	pid_t pid = child_fork_into(cgroup_fd, &b.inside);

	if (pid < 0)
		return err_errno(err, errno, "fork the job");
	if (pid == 0)
		job_main(sh, &b);
	sh->supervisor.job = proc_id_of(pid);
	close_fdp(&b.report[1]);
	b.report[1] = -1;
	if (read(b.report[0], &f, sizeof(f)) == (ssize_t)sizeof(f))
		explain_failure(sh->start, &f, err);
	supervisor_wake_agent(&sh->supervisor);
	return err->kind == ERR_NONE ? 0 : -1;
}

/* ---- while the job runs ---- */

static bool have_children(void)
{
	siginfo_t si;

	return waitid(P_ALL, 0, &si, WEXITED | WNOHANG | WNOWAIT) == 0;
}

/* All processes of the job are descendants of the shim, a subreaper. */
static void others(void *ctx, struct proc_list *out)
{
	(void)ctx;
	if (have_children())
		proc_descendants(getpid(), out);
}

/* The program could not be started: the reason becomes the job's exit report. */
static void not_run(struct shim *sh, const struct err *why)
{
	sh->supervisor.exit.kind = why->kind;
	exit_add_reason(&sh->supervisor.exit, why->msg);
	sh->supervisor.limits.settle_ms = 0; /* nobody has its output open */
	supervisor_main_known(&sh->supervisor, shim_failed_code(why->kind), 0, clock_boot_ms());
}

static void reap(struct shim *sh)
{
	for (;;) {
		siginfo_t si = {0};

		/* WNOWAIT: the exit status must be in the status file before the kernel forgets it. */
		if (waitid(P_ALL, 0, &si, WEXITED | WNOHANG | WNOWAIT) < 0 || si.si_pid == 0)
			return;
		if (si.si_pid == sh->supervisor.job.pid && !sh->supervisor.exited)
			supervisor_main_ended(&sh->supervisor, child_wait_status(&si),
					      clock_boot_ms());
		if (si.si_pid == sh->supervisor.remover)
			supervisor_remover_ended(&sh->supervisor, child_wait_status(&si),
						 clock_boot_ms());
		waitpid(si.si_pid, NULL, 0);
	}
}

/* The agent is dead and the shim the only reader: fork a pipe holder. */
static void hold_pipes(const struct shim *sh)
{
	int pipes[STREAMS_MAX];

	for (int s = 0; s < sh->supervisor.nspools; s++)
		pipes[s] = sh->supervisor.spools[s].fifo;
	pipe_holder_fork(sh->dirfd, pipes, sh->supervisor.nspools);
}

static void take_signals(struct shim *sh)
{
	struct signalfd_siginfo si;

	while (read(sh->signals, &si, sizeof(si)) == (ssize_t)sizeof(si)) {
		switch (si.ssi_signo) {
		case SHIM_STOP:
			supervisor_stop(&sh->supervisor, STOP_ASKED, clock_boot_ms());
			break;
		case SHIM_HURRY:
			supervisor_stop(&sh->supervisor, STOP_HURRY, clock_boot_ms());
			break;
		case SHIM_LEASE:
			supervisor_stop(&sh->supervisor, STOP_LEASE, clock_boot_ms());
			break;
		case SHIM_ORPHAN:
			hold_pipes(sh);
			break;
		default: /* SIGCHLD: reap() follows */
			break;
		}
	}
	reap(sh);
}

/* A timerfd, because the timeout of poll() does not count time in suspend, which passes for the master. */
static void set_fence(struct shim *sh, int64_t at_ms)
{
	struct itimerspec at = {
		.it_value = {.tv_sec = at_ms / 1000, .tv_nsec = at_ms % 1000 * 1000000}};

	if (at_ms == sh->fenced_ms)
		return;
	if (sh->fence < 0)
		sh->fence = timerfd_create(CLOCK_BOOTTIME, TFD_NONBLOCK | TFD_CLOEXEC);
	sh->fenced_ms = at_ms;
	timerfd_settime(sh->fence, TFD_TIMER_ABSTIME, &at, NULL);
}

static void live(struct shim *sh)
{
	struct supervisor *sv = &sh->supervisor;

	while (sv->phase != SUPERVISOR_DONE) {
		int64_t wait = supervisor_step(sv, clock_boot_ms());

		if (sv->phase == SUPERVISOR_DONE)
			break;
		set_fence(sh, supervisor_fence_ms(sv));
		struct pollfd p[2 + STREAMS_MAX] = {{.fd = sh->signals, .events = POLLIN},
						    {.fd = sh->fence, .events = POLLIN}};
		nfds_t n = 2 + supervisor_poll(sv, p + 2);

		poll(p, n, wait < 0 || wait > 60000 ? 60000 : (int)wait);
		if (p[0].revents)
			take_signals(sh);
	}
}

/* The spools cannot be opened: the job is not started, and the exit record says why. */
static void no_streams(struct shim *sh, const struct err *why)
{
	struct exit_report e = {.attempt = sh->start->attempt, .code = -1, .kind = why->kind};

	exit_add_reason(&e, why->msg);
	if (status_add_exit(sh->status_fd, &e, NULL) == 0)
		fdatasync(sh->status_fd);
}

/* ---- the shim's process ---- */

static void take_own_signals(struct shim *sh)
{
	sigset_t set;

	/* All signals are blocked since before the fork; those sent meanwhile are read from the signalfd. */
	child_reset_handlers();
	set_ignored(SIG_IGN);
	sigemptyset(&set);
	sigaddset(&set, SIGCHLD);
	sigaddset(&set, SHIM_STOP);
	sigaddset(&set, SHIM_HURRY);
	sigaddset(&set, SHIM_LEASE);
	sigaddset(&set, SHIM_ORPHAN);
	sigprocmask(SIG_SETMASK, &set, NULL);
	sh->signals = signalfd(-1, &set, SFD_NONBLOCK | SFD_CLOEXEC);
}

/* keep[i] is at least 3 + i, and those after it are higher: none is overwritten before it is moved. */
static void close_others(const struct shim_start *s)
{
	int next = 3;

	for (size_t i = 0; i < s->nkeep; i++, next++)
		if (s->keep[i] != next)
			dup3(s->keep[i], next, O_CLOEXEC);
	child_close_from(next);
}

static void __attribute__((noreturn)) shim_main(const struct shim_start *s)
{
	struct shim sh = {.start = s, .dirfd = -1, .status_fd = -1, .fence = -1};
	struct err err = {0};

	setsid();
	prctl(PR_SET_CHILD_SUBREAPER, 1);
	prctl(PR_SET_NAME, "regatta-shim");
	title_role("shim");
	prctl(PR_SET_PDEATHSIG, SHIM_ORPHAN);
	close_others(s);
	take_own_signals(&sh);
	sh.dirfd = open(s->dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (sh.dirfd < 0 || sh.signals < 0)
		_exit(errno);
	if (status_claim(sh.dirfd, s->attempt, s->processes, s->boot_id, s->sync, &sh.status_fd,
			 &err) < 0)
		_exit(err.code ? err.code : EIO);
	sh.supervisor = (struct supervisor){
		.dirfd = sh.dirfd,
		.status_fd = sh.status_fd,
		.attempt = s->attempt,
		.processes = s->processes,
		.cg = s->cg,
		.oom_before = cgroup_oom_kills(&s->cg),
		.grace_ms = s->grace_ms,
		.deadline_ms = s->deadline_ms ? clock_boot_ms() + s->deadline_ms : 0,
		.limits = s->limits,
		.others = others,
	};
	/* Without this record an agent that takes over has no grace period and no time limit. */
	status_add_limits(sh.status_fd, s->grace_ms, sh.supervisor.deadline_ms, NULL);
	if (s->processes > 1)
		status_reserve(sh.status_fd);
	if (supervisor_open(&sh.supervisor, &err) < 0) {
		no_streams(&sh, &err);
		_exit(0);
	}
	if (!s->file)
		not_run(&sh, &s->unfit);
	else if (start_job(&sh, &err) < 0)
		not_run(&sh, &err);
	live(&sh);
	_exit(0);
}

int shim_fork(const struct shim_start *s, pid_t *ret_pid, struct err *err)
{
	sigset_t all, before;
	pid_t pid;

	/* The event loop's handlers must not run in the child. */
	sigfillset(&all);
	sigprocmask(SIG_SETMASK, &all, &before);
	pid = fork();
	if (pid == 0)
		shim_main(s);
	sigprocmask(SIG_SETMASK, &before, NULL);
	if (pid < 0)
		return err_errno(err, errno, "fork the shim");
	*ret_pid = pid;
	return 0;
}
