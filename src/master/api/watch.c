/*
 * Streams to clients: a run's object on each change, its events, a log as it grows.
 *
 * Each watcher belongs to one run and keeps it in memory.  Nothing is added to what a
 * client has not taken yet: a slow one gets fewer objects, and events and logs at its own
 * pace.  One that takes nothing at all is cut by the server.
 */
#include "master/internal.h"

#include <stdlib.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/file.h"
#include "fmt/jsonw.h"
#include "net/http_server.h"
#include "store/logfile.h"
#include "sys/loop.h"

#define OBJECT_MAX_BYTES (64u << 20)
#define LOG_CHUNK (64 * 1024)
#define EVENTS_AT_ONCE 500
#define FOLLOW_EVERY_MS 50

enum watch_kind { WATCH_OBJECT, WATCH_EVENTS, WATCH_LOG };

struct watcher {
	enum watch_kind kind;
	struct live_run *lr;
	struct http_exchange *x;
	struct list in_watchers;
	struct loop_timer *timer;
	int64_t sent_ms;
	bool follow, only_last;
	int64_t after; /* event number */
	int rank;
	enum stream stream;
	int fd;
	uint64_t offset;
};

static void watcher_free(struct watcher *wt)
{
	struct live_run *lr = wt->lr;

	list_remove(&wt->in_watchers);
	loop_timer_free(wt->timer);
	if (wt->fd >= 0)
		close(wt->fd);
	free(wt);
	lr->watchers--;
	live_run_done(lr);
}

static void on_gone(void *ctx)
{
	watcher_free(ctx);
}

static void finish(struct watcher *wt)
{
	http_stream_end(wt->x);
	watcher_free(wt);
}

/* The run as it is when the client can take it; the last one is that of the end. */
static void send_object(void *ctx)
{
	struct watcher *wt = ctx;
	struct buf text;

	if (http_stream_queued(wt->x) > 0) {
		http_stream_when_empty(wt->x, send_object, wt);
		return;
	}
	loop_timer_cancel(wt->timer);
	buf_init(&text, OBJECT_MAX_BYTES);
	run_to_json(wt->lr, true, &text);
	buf_addc(&text, '\n');
	bool ok = http_stream_write(wt->x, buf_str(&text));
	buf_release(&text);
	wt->sent_ms = clock_boot_ms();
	if (ok && wt->lr->ended)
		finish(wt);
}

void event_to_json(const struct live_run *lr, const struct event_row *row, struct buf *out)
{
	struct jsonw w;

	jsonw_init(&w, out);
	jsonw_open(&w, '{');
	jsonw_kint(&w, "seq", row->seq);
	jsonw_kint(&w, "time_ms", row->time_ms);
	jsonw_kz(&w, "kind", row->kind);
	if (row->node >= 0 && row->node < lr->plan.crew.n)
		jsonw_kz(&w, "node", lr->plan.crew.members[row->node].name);
	if (row->text && row->text[0])
		jsonw_kz(&w, "text", row->text);
	jsonw_close(&w);
	buf_addc(out, '\n');
}

struct events_out {
	struct watcher *wt;
	struct buf text;
	int n;
};

static bool put_event(void *ctx, const struct event_row *row)
{
	struct events_out *eo = ctx;

	event_to_json(eo->wt->lr, row, &eo->text);
	eo->wt->after = row->seq;
	eo->n++;
	return true;
}

/* One piece; the next one when the client has taken it. */
static void send_events(void *ctx)
{
	struct watcher *wt = ctx;
	struct events_out eo = {.wt = wt};

	if (http_stream_queued(wt->x) > 0) {
		http_stream_when_empty(wt->x, send_events, wt);
		return;
	}
	buf_init(&eo.text, OBJECT_MAX_BYTES);
	store_events_each(wt->lr->m->store, wt->lr->row.no, wt->after, EVENTS_AT_ONCE, put_event,
			  &eo, NULL);
	bool ok = eo.n == 0 || http_stream_write(wt->x, buf_str(&eo.text));
	buf_release(&eo.text);
	if (!ok)
		return;
	if (eo.n == EVENTS_AT_ONCE)
		http_stream_when_empty(wt->x, send_events, wt);
	else if (!wt->follow || wt->lr->ended)
		finish(wt);
}

/* As much as there is and the client takes; more when its queue is empty. */
static void send_log(void *ctx)
{
	struct watcher *wt = ctx;
	char chunk[LOG_CHUNK];
	size_t n;

	while (http_stream_queued(wt->x) < LOG_CHUNK) {
		if (file_pread_full(wt->fd, chunk, sizeof(chunk), (int64_t)wt->offset, &n, NULL) <
		    0)
			n = 0;
		if (n == 0) {
			const struct core_node *node = &wt->lr->core->nodes[wt->rank];
			if (wt->lr->ended || node->settled) {
				finish(wt);
				return;
			}
			loop_timer_set(wt->timer, FOLLOW_EVERY_MS);
			return;
		}
		wt->offset += n;
		if (!http_stream_write(wt->x, (struct str){chunk, n}))
			return;
	}
	http_stream_when_empty(wt->x, send_log, wt);
}

static void on_timer(void *ctx)
{
	struct watcher *wt = ctx;

	switch (wt->kind) {
	case WATCH_OBJECT:
		send_object(wt);
		return;
	case WATCH_EVENTS:
		send_events(wt);
		return;
	case WATCH_LOG:
		send_log(wt);
		return;
	}
}

static struct watcher *watcher_new(struct live_run *lr, struct http_exchange *x,
				   enum watch_kind kind, const char *type)
{
	struct watcher *wt = xcalloc(1, sizeof(*wt));

	wt->kind = kind;
	wt->lr = lr;
	wt->x = x;
	wt->fd = -1;
	wt->timer = loop_timer_new(lr->m->loop, on_timer, wt);
	list_append(&lr->m->watchers, &wt->in_watchers);
	lr->watchers++;
	http_stream_begin(x, 200, type, on_gone, wt);
	return wt;
}

void watch_begin(struct live_run *lr, struct http_exchange *x, bool only_last)
{
	struct watcher *wt = watcher_new(lr, x, WATCH_OBJECT, "application/x-ndjson");

	wt->only_last = only_last;
	if (!only_last || lr->ended)
		send_object(wt);
}

void events_begin(struct live_run *lr, struct http_exchange *x, int64_t after, bool follow)
{
	struct watcher *wt = watcher_new(lr, x, WATCH_EVENTS, "application/x-ndjson");

	wt->after = after;
	wt->follow = follow;
	send_events(wt);
}

void log_follow_begin(struct live_run *lr, struct http_exchange *x, int rank, enum stream st,
		      int fd, uint64_t offset)
{
	struct watcher *wt = watcher_new(lr, x, WATCH_LOG, "application/octet-stream");

	wt->rank = rank;
	wt->stream = st;
	wt->fd = fd;
	wt->offset = offset;
	send_log(wt);
}

/* An ended run may be in memory more than once: each reader has its own. */
bool run_watched(const struct master *m, int64_t no)
{
	const struct list *pos;

	list_each (pos, &m->watchers)
		if (list_item(pos, struct watcher, in_watchers)->lr->row.no == no)
			return true;
	return false;
}

/* After a commit: at once for the end, otherwise not more often than WATCH_EVERY_MS. */
void watch_changed(struct live_run *lr)
{
	struct list *pos, *tmp;
	int64_t now = clock_boot_ms();

	if (!lr->watchers)
		return;
	list_each_safe (pos, tmp, &lr->m->watchers) {
		struct watcher *wt = list_item(pos, struct watcher, in_watchers);
		if (wt->lr != lr || wt->kind == WATCH_LOG)
			continue;
		int64_t wait = wt->sent_ms + WATCH_EVERY_MS - now;
		if (wt->kind == WATCH_EVENTS)
			send_events(wt);
		else if (lr->ended || (wait <= 0 && !wt->only_last))
			send_object(wt);
		else if (!wt->only_last)
			loop_timer_set(wt->timer, wait);
	}
}

void watch_free(struct master *m)
{
	struct list *pos, *tmp;

	list_each_safe (pos, tmp, &m->watchers) {
		struct watcher *wt = list_item(pos, struct watcher, in_watchers);
		loop_timer_cancel(wt->timer);
		finish(wt);
	}
}
