#include "agent/preempt.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "agent/forked_task.h"
#include "agent/internal.h"
#include "agent/notice.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/deadline.h"
#include "base/err.h"
#include "base/file.h"
#include "base/log.h"
#include "base/path.h"
#include "link/frame.h"
#include "link/layout.h"
#include "link/message.h"
#include "sys/loop.h"

#define ASK_EVERY_MS 5000 /* as AWS recommends */
#define ASK_MS 3000

char *preempt_file(const struct agent *a)
{
	return path_join(a->dir, LAYOUT_PREEMPT);
}

bool preempt_is_task(const struct agent *a, pid_t pid)
{
	return forked_task_is(a->preempt.task, pid);
}

void preempt_reaped(struct agent *a, pid_t pid)
{
	forked_task_reaped(a->preempt.task, pid);
}

static void take_notice(struct agent *a, int64_t at_ms)
{
	CLEANUP(freep) char *path = preempt_file(a);
	struct err err = {0};
	char text[32], when[32];

	a->preempt.at_ms = at_ms;
	clock_format(at_ms, when);
	log_warn("this machine will be taken at %s", when);
	snprintf(text, sizeof(text), "%" PRId64 "\n", at_ms / 1000);
	if (file_write_atomic(path, str_from(text), 0644, false, &err) < 0)
		log_warn("%s", err.msg);
	attempt_signal(&a->at, a->inputs.preempt_signal);
	agent_wake(a);
}

static void ask(void *ctx, struct buf *out)
{
	const struct agent *a = ctx;
	struct deadline d = deadline_in(ASK_MS, NULL);
	char text[32];

	snprintf(text, sizeof(text), "%" PRId64, notice_ask(a->cfg.notices, &d));
	buf_addz(out, text);
}

static void answered(void *ctx, struct str text)
{
	struct agent *a = ctx;
	int64_t at_ms = 0;

	a->preempt.task = forked_task_free(a->preempt.task);
	if (str_to_i64(text, &at_ms) && at_ms > 0)
		take_notice(a, at_ms);
	else
		loop_timer_set(a->preempt.timer, ASK_EVERY_MS);
}

static void ask_now(void *ctx)
{
	struct agent *a = ctx;
	struct err err = {0};

	if (forked_task_start(a->loop, ask, answered, a, &a->preempt.task, &err) == 0)
		return;
	log_warn("ask for notices: %s", err.msg);
	loop_timer_set(a->preempt.timer, ASK_EVERY_MS);
}

void preempt_tell(struct agent *a)
{
	struct buf b;

	if (!a->preempt.at_ms || a->told.preempt)
		return;
	buf_init(&b, AGENT_PAYLOAD_MAX);
	message_preempt_put(&(struct message_preempt){a->preempt.at_ms}, &b);
	link_send(a, FRAME_PREEMPT, &b);
	a->told.preempt = true;
	buf_release(&b);
}

void preempt_init(struct agent *a)
{
	CLEANUP(freep) char *path = preempt_file(a);
	CLEANUP(buf_release) struct buf text = {0};
	int64_t at = 0;

	a->preempt.timer = loop_timer_new(a->loop, ask_now, a);
	buf_init(&text, 64);
	if (file_read(path, &text, NULL) == 0 && str_to_i64(str_trim(buf_str(&text)), &at) &&
	    at > 0)
		a->preempt.at_ms = at * 1000; /* an earlier agent has told the job */
	else if (a->cfg.notices)
		loop_timer_set(a->preempt.timer, 0);
}

void preempt_release(struct agent *a)
{
	a->preempt.task = forked_task_free(a->preempt.task);
	a->preempt.timer = loop_timer_free(a->preempt.timer);
}
