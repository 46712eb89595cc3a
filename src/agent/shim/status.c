#include "agent/shim/status.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/file.h"
#include "fmt/doc.h"
#include "fmt/jsonw.h"
#include "link/layout.h"

#define RECORD_MAX (16 * 1024) /* the sizes of all streams of PROCESSES_MAX processes */
#define FILE_MAX (64 * 1024)

/* ---- writing ---- */

/* One write, so that a reader sees the whole line or nothing.  A torn last line is ended first. */
static int append(int fd, struct str line, struct err *err)
{
	char last = '\n', newline[] = "\n";
	off_t end = lseek(fd, 0, SEEK_END);
	ssize_t done;

	if (end < 0 || (end > 0 && pread(fd, &last, 1, end - 1) != 1))
		return err_errno(err, errno, "read the end of the status file");
	struct iovec parts[] = {{newline, last != '\n'}, {(void *)line.p, line.n}, {newline, 1}};
	size_t want = parts[0].iov_len + line.n + 1;

	do {
		done = writev(fd, parts, 3);
	} while (done < 0 && errno == EINTR);
	if (done != (ssize_t)want) /* a short write: the disk is full */
		return err_errno(err, done < 0 ? errno : ENOSPC, "write the status file");
	return 0;
}

static void open_record(struct jsonw *w, struct buf *b, const char *rec)
{
	buf_init(b, RECORD_MAX);
	jsonw_init(w, b);
	jsonw_open(w, '{');
	jsonw_kz(w, "rec", rec);
}

static int end_record(struct jsonw *w, struct buf *b, int fd, struct err *err)
{
	int rc;

	jsonw_close(w);
	rc = append(fd, buf_str(b), err);
	buf_release(b);
	return rc;
}

static int write_claim(int fd, int attempt, int processes, const char *boot_id, struct err *err)
{
	struct proc_id self = proc_id_of(getpid());
	struct jsonw w;
	struct buf b;

	open_record(&w, &b, "started");
	jsonw_kint(&w, "attempt", attempt);
	jsonw_kz(&w, "boot_id", boot_id);
	jsonw_kint(&w, "pid", self.pid);
	jsonw_kint(&w, "start", (int64_t)self.start);
	jsonw_kint(&w, "time_ms", clock_wall_ms());
	jsonw_kint(&w, "processes", processes);
	return end_record(&w, &b, fd, err);
}

int status_claim(int dirfd, int attempt, int processes, const char *boot_id, bool sync, int *ret_fd,
		 struct err *err)
{
	CLEANUP(close_fdp) int fd = -1;
	char name[32];
	int rc = 0;

	snprintf(name, sizeof(name), LAYOUT_STATUS ".%d", (int)getpid());
	unlinkat(dirfd, name, 0); /* left by a process that had the same pid and died */
	fd = openat(dirfd, name, O_RDWR | O_CREAT | O_EXCL | O_APPEND | O_CLOEXEC | O_NOFOLLOW,
		    0600);
	if (fd < 0)
		return err_errno(err, errno, "make the status file");
	if (write_claim(fd, attempt, processes, boot_id, err) < 0)
		rc = -1;
	else if (linkat(dirfd, name, dirfd, LAYOUT_STATUS, 0) < 0)
		rc = err_errno(err, errno, "claim attempt %d", attempt);
	unlinkat(dirfd, name, 0);
	if (rc < 0)
		return -1;
	/* After the link, so that the name is durable too. */
	if (sync && fsync(fd) < 0)
		return err_errno(err, errno, "store the status file");
	*ret_fd = TAKE_FD(fd);
	return 0;
}

int status_open(int dirfd, int *ret_fd, struct err *err)
{
	int fd = openat(dirfd, LAYOUT_STATUS, O_RDWR | O_APPEND | O_CLOEXEC | O_NOFOLLOW);

	if (fd < 0)
		return err_errno(err, errno, "open the status file");
	*ret_fd = fd;
	return 0;
}

void status_reserve(int fd)
{
	(void)!fallocate(fd, FALLOC_FL_KEEP_SIZE, 0, FILE_MAX);
}

int status_add_limits(int fd, int64_t grace_ms, int64_t deadline_ms, struct err *err)
{
	struct jsonw w;
	struct buf b;

	open_record(&w, &b, "limits");
	jsonw_kint(&w, "grace_ms", grace_ms);
	jsonw_kint(&w, "deadline_ms", deadline_ms);
	return end_record(&w, &b, fd, err);
}

/* Without allocation: the job's process calls it in the shim's memory, and may be killed in it. */
static int add_process(int fd, const char *rec, struct proc_id id, struct err *err)
{
	char line[96];
	int n = snprintf(line, sizeof(line), "{\"rec\":\"%s\",\"pid\":%d,\"start\":%" PRIu64 "}",
			 rec, (int)id.pid, id.start);

	return append(fd, (struct str){line, (size_t)n}, err);
}

int status_add_terminal(int fd, struct proc_id reader, struct err *err)
{
	return add_process(fd, "terminal", reader, err);
}

int status_add_job(int fd, struct proc_id job, struct err *err)
{
	return add_process(fd, "job", job, err);
}

int status_add_process(int fd, int local, int code, int signal, struct err *err)
{
	char line[96];
	int n = snprintf(line, sizeof(line),
			 "{\"rec\":\"process\",\"local\":%d,\"code\":%d,\"signal\":%d}", local,
			 code, signal);

	return append(fd, (struct str){line, (size_t)n}, err);
}

int status_add_gap(int fd, const struct gap *g, const char *reason, struct err *err)
{
	struct jsonw w;
	struct buf b;

	open_record(&w, &b, "gap");
	jsonw_kz(&w, "stream", stream_name(g->stream));
	jsonw_kint(&w, "offset", (int64_t)g->offset);
	jsonw_kint(&w, "bytes", (int64_t)g->bytes);
	jsonw_kz(&w, "reason", reason);
	return end_record(&w, &b, fd, err);
}

int status_add_ended(int fd, int code, int signal, struct err *err)
{
	struct jsonw w;
	struct buf b;

	open_record(&w, &b, "ended");
	jsonw_kint(&w, "code", code);
	jsonw_kint(&w, "signal", signal);
	return end_record(&w, &b, fd, err);
}

int status_add_cut(int fd, struct err *err)
{
	return append(fd, STR("{\"rec\":\"cut\"}"), err);
}

int status_add_metrics_cut(int fd, struct err *err)
{
	return append(fd, STR("{\"rec\":\"metrics_cut\"}"), err);
}

/* Those after the last that is not empty are left out. */
static int streams_used(const struct exit_report *e)
{
	int n = STREAMS_MAX;

	while (n > STREAMS && e->streams[n - 1] == 0)
		n--;
	return n;
}

int status_add_exit(int fd, const struct exit_report *e, struct err *err)
{
	struct jsonw w;
	struct buf b;

	open_record(&w, &b, "exit");
	jsonw_kint(&w, "code", e->code);
	jsonw_kint(&w, "signal", e->signal);
	jsonw_kbool(&w, "oom", e->oom);
	jsonw_kz(&w, "kind", err_kind_name(e->kind));
	jsonw_kz(&w, "reason", e->reason);
	jsonw_key(&w, "streams");
	jsonw_open(&w, '[');
	for (int i = 0; i < streams_used(e); i++)
		jsonw_int(&w, (int64_t)e->streams[i]);
	jsonw_close(&w);
	return end_record(&w, &b, fd, err);
}

/* ---- reading ---- */

static struct proc_id read_proc(const struct doc *d)
{
	int64_t pid = doc_int(d, "pid", 0), start = doc_int(d, "start", 0);

	return (struct proc_id){pid > 0 && pid < INT32_MAX ? (pid_t)pid : 0, (uint64_t)start};
}

static void copy_text(char *out, size_t size, struct str s)
{
	snprintf(out, size, "%.*s", STR_ARG(s));
}

static void set_processes(struct status *st, int64_t n)
{
	st->processes = n > 1 && n <= PROCESSES_MAX ? (int)n : 1;
	st->exit.nprocesses = st->processes > 1 ? (size_t)st->processes : 0;
	for (size_t i = 0; i < st->exit.nprocesses; i++)
		st->exit.processes[i] = (struct process_end){.code = -1};
}

static void read_started(const struct doc *d, struct status *st)
{
	int64_t attempt = doc_int(d, "attempt", 0);

	st->attempt = attempt > 0 && attempt < INT32_MAX ? (int)attempt : 0;
	st->exit.attempt = st->attempt;
	st->shim = read_proc(d);
	st->claimed_ms = doc_int(d, "time_ms", 0);
	set_processes(st, doc_int(d, "processes", 1));
	copy_text(st->boot_id, sizeof(st->boot_id), doc_str(d, "boot_id", STR("")));
}

static void read_limits(const struct doc *d, struct status *st)
{
	int64_t grace = doc_int(d, "grace_ms", 0), deadline = doc_int(d, "deadline_ms", 0);

	st->grace_ms = grace > 0 ? grace : 0;
	st->deadline_ms = deadline > 0 ? deadline : 0;
}

static void read_job(const struct doc *d, struct status *st)
{
	st->job = read_proc(d);
}

static void read_terminal(const struct doc *d, struct status *st)
{
	st->terminal = read_proc(d);
}

static void read_gap(const struct doc *d, struct status *st)
{
	struct str name = doc_str(d, "stream", STR(""));
	int64_t offset = doc_int(d, "offset", -1), bytes = doc_int(d, "bytes", 0);

	for (int s = 0; s < STREAMS; s++)
		if (str_is(name, stream_name((enum stream)s)) && offset >= 0 && bytes > 0 &&
		    st->exit.ngaps < MESSAGE_MAX_GAPS)
			st->exit.gaps[st->exit.ngaps++] =
				(struct gap){(enum stream)s, (uint64_t)offset, (uint64_t)bytes};
}

static void read_process(const struct doc *d, struct status *st)
{
	int64_t local = doc_int(d, "local", -1);
	int code = (int)doc_int(d, "code", -1), sig = (int)doc_int(d, "signal", 0);

	if (local < 0 || local >= (int64_t)st->exit.nprocesses)
		return;
	st->exit.processes[local] = (struct process_end){code, sig};
	if (code != 0 && st->failed < 0)
		st->failed = (int)local;
	if (code == 0 && st->failed < 0 && st->early < 0)
		st->early = (int)local;
}

static void read_ended(const struct doc *d, struct status *st)
{
	st->ended = true;
	st->code = (int)doc_int(d, "code", -1);
	st->signal = (int)doc_int(d, "signal", 0);
}

static void read_cut(const struct doc *d, struct status *st)
{
	(void)d;
	st->cut = true;
}

static void read_metrics_cut(const struct doc *d, struct status *st)
{
	(void)d;
	st->metrics_cut = true;
}

static void read_exit(const struct doc *d, struct status *st)
{
	const struct doc *sizes = doc_array(d, "streams");
	char kind[32];

	if (!sizes || sizes->array.n < STREAMS || sizes->array.n > STREAMS_MAX || st->has_exit)
		return;
	for (size_t i = 0; i < sizes->array.n; i++) {
		const struct doc *v = sizes->array.v[i];

		if (v->type != DOC_INT || v->i < 0)
			return;
		st->exit.streams[i] = (uint64_t)v->i;
	}
	st->exit.code = (int)doc_int(d, "code", -1);
	st->exit.signal = (int)doc_int(d, "signal", 0);
	st->exit.oom = doc_bool(d, "oom", false);
	copy_text(kind, sizeof(kind), doc_str(d, "kind", STR("none")));
	st->exit.kind = err_kind_from_name(kind);
	copy_text(st->exit.reason, sizeof(st->exit.reason), doc_str(d, "reason", STR("")));
	st->has_exit = true;
}

static const struct {
	const char *name;
	void (*read)(const struct doc *d, struct status *st);
} records[] = {
	{"started", read_started}, {"limits", read_limits}, {"terminal", read_terminal},
	{"job", read_job},	   {"gap", read_gap},	    {"ended", read_ended},
	{"cut", read_cut},	   {"exit", read_exit},	    {"metrics_cut", read_metrics_cut},
	{"process", read_process},
};

static void read_line(struct str line, struct status *st)
{
	CLEANUP(arena_freep) struct arena *a = arena_new();
	struct doc *d;

	if (json_parse(line, a, &d, NULL) < 0)
		return; /* a torn line, ended by the next writer */
	struct str rec = doc_str(d, "rec", STR(""));

	for (size_t i = 0; i < sizeof(records) / sizeof(records[0]); i++)
		if (str_is(rec, records[i].name))
			records[i].read(d, st);
}

void status_parse(struct str text, struct status *ret)
{
	*ret = (struct status){0};
	ret->exit.code = ret->failed = ret->early = -1;
	ret->processes = 1;
	while (text.p) {
		struct str line = str_cut(&text, '\n');

		if (text.p && line.n > 0) /* a last line without newline does not count */
			read_line(line, ret);
	}
}

int status_read(int dirfd, struct status *ret, struct err *err)
{
	struct err e = {0};
	struct buf text;

	buf_init(&text, FILE_MAX);
	if (file_read_at(dirfd, LAYOUT_STATUS, &text, &e) < 0 && e.kind != ERR_NOT_FOUND) {
		buf_release(&text);
		return err_set(err, e.kind, "read the status file: %s", e.msg);
	}
	status_parse(buf_str(&text), ret);
	buf_release(&text);
	return 0;
}
