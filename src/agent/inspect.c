#include "agent/inspect.h"

#include <arpa/inet.h>
#include <dirent.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "agent/forked_task.h"
#include "agent/internal.h"
#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/deadline.h"
#include "base/err.h"
#include "base/file.h"
#include "base/log.h"
#include "base/vec.h"
#include "link/frame.h"
#include "link/layout.h"
#include "link/message.h"
#include "sys/cgroup.h"
#include "sys/child_run.h"
#include "sys/proctree.h"

#define PROCESSES 64	      /* described at most */
#define TRACED 2	      /* of them, the busiest: py-spy or gdb is run */
#define TRACE_MS 5000	      /* for each */
#define TRACE_MAX (12 * 1024) /* of its text is kept */
#define FILE_MAX_BYTES (256 * 1024)
#define SOCKETS 256
#define COMMAND_SHOWN 200

void inspect_line(char state, struct str wchan, struct str syscall, struct buf *out)
{
	static const char *const words[] = {
		['R'] = "runs",	   ['S'] = "sleeps",  ['D'] = "waits for the kernel",
		['T'] = "stopped", ['t'] = "stopped", ['Z'] = "ended",
	};
	size_t i = (size_t)(unsigned char)state;

	buf_printf(out, "%c %s", state,
		   i < sizeof(words) / sizeof(words[0]) && words[i] ? words[i] : "?");
	if (state == 'R')
		return; /* where it runs is different each time */
	if (wchan.n > 0 && !str_is(wchan, "0"))
		buf_printf(out, " in %.*s", STR_ARG(wchan));
	struct str number = str_cut(&syscall, ' ');

	if (number.n > 0 && number.p[0] >= '0' && number.p[0] <= '9')
		buf_printf(out, ", system call %.*s", STR_ARG(number));
}

/* ---- one process ---- */

static struct str proc_file(pid_t pid, const char *name, struct buf *b)
{
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d/%s", (int)pid, name);
	buf_reset(b);
	return file_read(path, b, NULL) < 0 ? STR("") : str_trim(buf_str(b));
}

static void add_line(const struct proc_info *p, struct buf *out)
{
	CLEANUP(buf_release) struct buf wchan = {0}, syscall = {0};

	buf_init(&wchan, FILE_MAX_BYTES);
	buf_init(&syscall, FILE_MAX_BYTES);
	inspect_line(p->state, proc_file(p->pid, "wchan", &wchan),
		     proc_file(p->pid, "syscall", &syscall), out);
}

static void add_command(pid_t pid, struct buf *b, struct buf *out)
{
	struct str text = proc_file(pid, "cmdline", b);

	for (size_t i = 0; i < text.n && i < COMMAND_SHOWN; i++)
		buf_addc(out, text.p[i] == '\0' ? ' ' : text.p[i]);
	buf_addc(out, '\n');
}

static size_t socket_inodes(pid_t pid, unsigned long *v)
{
	char path[64], target[64];
	size_t n = 0;

	snprintf(path, sizeof(path), "/proc/%d/fd", (int)pid);
	DIR *d = opendir(path);

	for (struct dirent *e; d && n < SOCKETS && (e = readdir(d));) {
		ssize_t len = readlinkat(dirfd(d), e->d_name, target, sizeof(target) - 1);

		if (len <= 0)
			continue;
		target[len] = '\0';
		if (sscanf(target, "socket:[%lu]", &v[n]) == 1)
			n++;
	}
	if (d)
		closedir(d);
	return n;
}

static bool is_listed(const unsigned long *v, size_t n, unsigned long x)
{
	for (size_t i = 0; i < n; i++)
		if (v[i] == x)
			return true;
	return false;
}

static const char *tcp_state(unsigned state)
{
	static const char *const names[] = {
		[1] = "established", [2] = "syn sent",	 [3] = "syn received", [4] = "fin wait 1",
		[5] = "fin wait 2",  [6] = "time wait",	 [7] = "closed",       [8] = "close wait",
		[9] = "last ack",    [10] = "listening", [11] = "closing",
	};

	return state < sizeof(names) / sizeof(names[0]) && names[state] ? names[state] : "?";
}

void inspect_sockets(struct str table, const unsigned long *inodes, size_t n, struct buf *out)
{
	while (table.n > 0) {
		struct str row = str_cut(&table, '\n');
		CLEANUP(freep) char *line = xstrndup(row.p, row.n);
		uint32_t local, remote;
		unsigned lport, rport, state;
		unsigned long tx, rx, inode;
		char from[INET_ADDRSTRLEN], to[INET_ADDRSTRLEN];

		if (sscanf(line,
			   " %*d: %8" SCNx32 ":%4x %8" SCNx32
			   ":%4x %2x %lx:%lx %*s %*s %*s %*s %lu",
			   &local, &lport, &remote, &rport, &state, &tx, &rx, &inode) != 8 ||
		    !is_listed(inodes, n, inode))
			continue;
		inet_ntop(AF_INET, &local, from, sizeof(from));
		inet_ntop(AF_INET, &remote, to, sizeof(to));
		buf_printf(out, "  tcp %s:%u - %s:%u %s, %lu bytes to send, %lu to read\n", from,
			   lport, to, rport, tcp_state(state), tx, rx);
	}
}

static void add_process(const struct proc_info *p, struct buf *b, struct buf *out)
{
	unsigned long inodes[SOCKETS];

	buf_printf(out, "process %d of %d: ", (int)p->pid, (int)p->ppid);
	add_command(p->pid, b, out);
	buf_addz(out, "  ");
	add_line(p, out);
	buf_addc(out, '\n');
	struct str stack = proc_file(p->pid, "stack", b);

	while (stack.n > 0) {
		struct str line = str_cut(&stack, '\n');

		buf_printf(out, "    %.*s\n", STR_ARG(line));
	}
	size_t n = socket_inodes(p->pid, inodes);

	if (n > 0)
		inspect_sockets(proc_file(p->pid, "net/tcp", b), inodes, n, out);
}

/* ---- the program's own stack ---- */

static bool trace_with(const char *tool, const char *const *argv, struct buf *out)
{
	CLEANUP(freep) char *file = NULL;
	CLEANUP(buf_release) struct buf text = {0};
	struct deadline d = deadline_in(TRACE_MS, NULL);
	const char *path = getenv("PATH");
	int status = 0;

	if (child_find_command(tool, path ? path : "", "/", &file, NULL) < 0)
		return false;
	buf_init(&text, FILE_MAX_BYTES);
	struct child_spec spec = {.file = file,
				  .argv = argv,
				  .env = (const char *const *)environ,
				  .in = -1,
				  .out = CHILD_KEPT,
				  .err = -1};
	struct err err = {0};

	if (child_run(spec, &d, &text, &status, &err) < 0)
		buf_printf(out, "  %s: %s\n", tool, err.msg);
	else
		buf_printf(out, "  %s:\n%.*s\n", tool,
			   (int)(text.n < TRACE_MAX ? text.n : TRACE_MAX), buf_str(&text).p);
	return status == 0 && text.n > 0;
}

static void trace(pid_t pid, struct buf *out)
{
	char number[16];

	snprintf(number, sizeof(number), "%d", (int)pid);
	const char *spy[] = {"py-spy", "dump", "--pid", number, NULL};
	const char *gdb[] = {"gdb", "-p", number, "-batch", "-ex", "thread apply all bt", NULL};

	if (!trace_with(spy[0], spy, out))
		trace_with(gdb[0], gdb, out);
}

/* ---- all of them ---- */

/* One that is stopped comes first, then the busiest; of equals the one that was started last. */
static int by_interest(const void *a, const void *b)
{
	const struct proc_info *x = a, *y = b;
	int still = (strchr("TtD", y->state) != NULL) - (strchr("TtD", x->state) != NULL);

	if (still)
		return still;
	if (x->cpu_ticks != y->cpu_ticks)
		return x->cpu_ticks < y->cpu_ticks ? 1 : -1;
	return x->start < y->start ? 1 : x->start > y->start ? -1 : 0;
}

/* Beside a rank that hangs there is one of this program that waits for its output (rank_tee.h): that says nothing. */
static void drop_tees(struct proc_list *l)
{
	CLEANUP(buf_release) struct buf name = {0};
	size_t n = 0;

	buf_init(&name, FILE_MAX_BYTES);
	for (size_t i = 0; i < l->n; i++)
		if (!str_is(proc_file(l->v[i].pid, "comm", &name), LAYOUT_TEE))
			l->v[n++] = l->v[i];
	l->n = n;
}

static void job_processes(const struct attempt *at, struct proc_list *l)
{
	struct proc_info main_process;

	if (!attempt_is_live(at) || at->st.job.pid <= 0)
		return;
	cgroup_procs(&at->cg, l);
	if (l->n > 0)
		return;
	proc_descendants(at->st.job.pid, l);
	if (proc_read(at->st.job.pid, &main_process))
		*vec_push(l) = main_process;
}

/* Only text goes into a message: other bytes may be in the name of a program.  A char may be signed or not. */
static void make_text(struct buf *b)
{
	for (size_t i = 0; i < b->n; i++)
		if ((b->p[i] < ' ' || b->p[i] > '~') && b->p[i] != '\n')
			b->p[i] = '?';
}

/* The first line is the one that is compared. */
static void gather(void *ctx, struct buf *out)
{
	const struct agent *a = ctx;
	CLEANUP(proc_list_release) struct proc_list l = {0};
	CLEANUP(buf_release) struct buf file = {0};
	char when[32];

	buf_init(&file, FILE_MAX_BYTES);
	job_processes(&a->at, &l);
	drop_tees(&l);
	if (l.n == 0) {
		buf_addz(out, "its job has no process\n");
		return;
	}
	qsort(l.v, l.n, sizeof(*l.v), by_interest);
	add_line(&l.v[0], out);
	clock_format(clock_wall_ms(), when);
	buf_printf(out, "\n%s, %zu processes\n", when, l.n);
	for (size_t i = 0; i < l.n && i < PROCESSES; i++)
		add_process(&l.v[i], &file, out);
	for (size_t i = 0; i < l.n && i < TRACED; i++)
		if (l.v[i].state != 'T')
			trace(l.v[i].pid, out);
	make_text(out);
}

static void gathered(void *ctx, struct str text)
{
	struct agent *a = ctx;
	struct str first = str_cut(&text, '\n');
	CLEANUP(freep) char *line = xstrndup(first.p ? first.p : "", first.n);
	CLEANUP(freep) char *report = xstrndup(text.p ? text.p : "", text.n);
	CLEANUP(buf_release) struct buf b = {0};

	a->inspect = forked_task_free(a->inspect);
	buf_init(&b, AGENT_PAYLOAD_MAX);
	message_inspected_put(
		&(struct message_inspected){*line ? line : "its agent could not look", report}, &b);
	if (a->conn)
		link_send(a, FRAME_INSPECTED, &b);
}

void inspect_start(struct agent *a)
{
	struct err err = {0};

	if (!a->inspect && forked_task_start(a->loop, gather, gathered, a, &a->inspect, &err) < 0)
		log_warn("inspect the job: %s", err.msg);
}

void inspect_release(struct agent *a)
{
	a->inspect = forked_task_free(a->inspect);
}

bool inspect_is_task(const struct agent *a, pid_t pid)
{
	return forked_task_is(a->inspect, pid);
}

void inspect_reaped(struct agent *a, pid_t pid)
{
	forked_task_reaped(a->inspect, pid);
}
