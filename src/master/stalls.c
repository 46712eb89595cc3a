#include "master/stalls.h"

#include <stdio.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/buf.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "base/file.h"
#include "base/log.h"
#include "base/path.h"
#include "link/layout.h"
#include "link/message.h"
#include "master/agents.h"
#include "master/live_run.h"
#include "master/round.h"
#include "master/streams.h"
#include "store/logfile.h"

#define TAIL_LINES 10
#define TAIL_BYTES 4096
#define REPORT_MAX (256 * 1024)

void stall_inspect(struct live_run *lr, int rank)
{
	if (lr->nodes[rank].inspect) /* an agent of an earlier version gives no answer */
		agent_send(lr, rank, FRAME_INSPECT, STR(MESSAGE_EMPTY));
}

static void add_tail(const struct live_run *lr, int rank, enum stream s, struct buf *out)
{
	char base[LOG_NAME_MAX], name[LOG_NAME_MAX + 16], bytes[TAIL_BYTES];
	CLEANUP(close_fdp) int fd = -1;
	uint64_t size, from;

	run_log_base(lr, rank, lr->core->nodes[rank].attempt, base);
	snprintf(name, sizeof(name), "%s%s", base, stream_suffix(s));
	if (logfile_open_read(lr->logs_dir, name, &fd, &size, NULL) < 0 ||
	    logfile_tail_offset(fd, TAIL_LINES, &from, NULL) < 0)
		return;
	if (size - from > sizeof(bytes))
		from = size - sizeof(bytes);
	ssize_t n = pread(fd, bytes, sizeof(bytes), (off_t)from);

	if (n > 0)
		buf_printf(out, "last lines of %s:\n%.*s\n", name, (int)n, bytes);
}

void stall_inspected(struct live_run *lr, int rank, const struct message_inspected *m)
{
	CLEANUP(freep) char *dir = path_join(lr->dir, LAYOUT_STALL);
	CLEANUP(freep) char *path = xasprintf("%s/%s.txt", dir, lr->plan.crew.members[rank].name);
	CLEANUP(buf_release) struct buf text = {0};
	struct event ev = {.kind = EV_NODE_INSPECTED, .index = rank};
	struct err err = {0};

	buf_init(&text, REPORT_MAX);
	buf_printf(&text, "%s\n%s\n", m->line, m->report);
	add_tail(lr, rank, STREAM_OUT, &text);
	add_tail(lr, rank, STREAM_ERR, &text);
	if (file_mkdir_p(dir, 0700, &err) < 0 ||
	    file_write_atomic(path, buf_str(&text), 0600, false, &err) < 0)
		log_warn("run %s: %s", lr->row.id, err.msg);
	snprintf(ev.text, sizeof(ev.text), "%.*s", (int)sizeof(ev.text) - 1, m->line);
	run_event(lr, &ev);
}
