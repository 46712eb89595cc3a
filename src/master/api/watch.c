#include "master/api/watch.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/file.h"
#include "master/internal.h"
#include "master/live_run.h"
#include "master/run_json.h"
#include "master/runs.h"
#include "master/streams.h"
#include "net/http_server.h"
#include "store/log_times.h"
#include "store/logfile.h"
#include "sys/loop.h"

#define OBJECT_MAX_BYTES (64u << 20)
#define LOG_CHUNK (64 * 1024)
#define HEAD_MAX 48 /* "out 12 1731859200123\n" */
#define EVENTS_AT_ONCE 500
#define OBJECT_EVERY_MS 50 /* at most one object per run and watcher in this time ... */
#define NODES_PER_MS 20	   /* ... which is longer for a run of thousands of nodes */
#define FOLLOW_EVERY_MS 50

enum watch_kind { WATCH_OBJECT, WATCH_DELTAS, WATCH_EVENTS, WATCH_LOG, WATCH_PIECES };

struct watch {
	struct loop *loop;
	struct list watchers;
	int n;
};

struct run_watcher {
	struct watch *watch;
	enum watch_kind kind;
	struct live_run *lr;
	struct http_exchange *x;
	struct list in_watchers;
	struct loop_timer *timer;
	int64_t sent_ms;
	bool follow, only_last;
	/* for deltas: a delta was left out, the whole object follows when there is room */
	bool behind;
	struct watch_at at; /* for logs */
	enum stream stream; /* for one log */
	int64_t after;	    /* number of the last event sent */
	int fd;
	uint64_t offset;
	int fds[ORDER_LOGS]; /* for both logs, in pieces */
	struct log_order_reader order;
	struct log_times_reader times[ORDER_LOGS];
};

static void pieces_release(struct run_watcher *wt)
{
	for (int log = 0; log < ORDER_LOGS; log++) {
		if (wt->fds[log] >= 0)
			close(wt->fds[log]);
		wt->fds[log] = -1;
		log_times_reader_release(&wt->times[log]);
	}
	log_order_reader_release(&wt->order);
}

static void watcher_free(struct run_watcher *wt)
{
	struct live_run *lr = wt->lr;

	list_remove(&wt->in_watchers);
	wt->watch->n--;
	loop_timer_free(wt->timer);
	if (wt->fd >= 0)
		close(wt->fd);
	pieces_release(wt);
	free(wt);
	lr->watchers--;
	live_run_done(lr);
}

static void on_gone(void *ctx)
{
	watcher_free(ctx);
}

static void finish(struct run_watcher *wt)
{
	http_stream_end(wt->x);
	watcher_free(wt);
}

/* Sends the current run object, after the client has taken the previous one.  The last object is
 * that of the ended run. */
static void send_object(void *ctx)
{
	struct run_watcher *wt = ctx;
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
	wt->behind = false;
	if (ok && wt->lr->ended)
		finish(wt);
}

/*
 * Sends the changes since the last delta, encoded once for all watchers of the run.  A watcher
 * that began in between gets some changes twice, which is harmless.  One that has not taken its
 * last delta yet gets the whole object when it has.
 */
static void send_deltas(struct watch *w, struct live_run *lr)
{
	CLEANUP(buf_release) struct buf text = {0};
	struct list *pos, *tmp;

	buf_init(&text, OBJECT_MAX_BYTES);
	run_delta_to_json(lr, lr->deltas_upto, &text);
	buf_addc(&text, '\n');
	lr->deltas_upto = lr->changes;
	lr->deltas_ms = clock_boot_ms();
	list_each_safe (pos, tmp, &w->watchers) {
		struct run_watcher *wt = list_item(pos, struct run_watcher, in_watchers);

		if (wt->lr != lr || wt->kind != WATCH_DELTAS)
			continue;
		loop_timer_cancel(wt->timer);
		if (!wt->behind && http_stream_queued(wt->x) > 0) {
			wt->behind = true;
			http_stream_when_empty(wt->x, send_object, wt);
		} else if (!wt->behind) {
			http_stream_write(wt->x, buf_str(&text));
		}
	}
}

struct watch_out {
	struct run_watcher *wt;
	struct buf text;
	int n;
};

static bool put_event(void *ctx, const struct event_row *row)
{
	struct watch_out *eo = ctx;

	event_to_json(eo->wt->lr, row, &eo->text);
	eo->wt->after = row->seq;
	eo->n++;
	return true;
}

/* Sends one piece; the next one follows when the client has taken it. */
static void send_events(void *ctx)
{
	struct run_watcher *wt = ctx;
	struct watch_out eo = {.wt = wt};

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

static void piece_log_name(const struct run_watcher *wt, int log, char out[static LOG_NAME_MAX])
{
	run_log_name(wt->lr, wt->at.rank, wt->at.attempt,
		     stream_of(wt->at.process, (enum stream)log), out);
}

/* Order and times of the logs in wt->fds. */
static void readers_init(struct run_watcher *wt, const uint64_t from[static ORDER_LOGS])
{
	char name[LOG_NAME_MAX];

	process_log_base(wt->lr, wt->at.rank, wt->at.process, wt->at.attempt, name);
	log_order_reader_init(&wt->order, wt->lr->logs_dir, name, from);
	for (int log = 0; log < ORDER_LOGS && wt->at.times; log++) {
		piece_log_name(wt, log, name);
		log_times_reader_init(&wt->times[log], wt->lr->logs_dir, name, from[log]);
	}
}

static void open_pieces(struct run_watcher *wt)
{
	static const uint64_t start[ORDER_LOGS];
	char name[LOG_NAME_MAX];
	uint64_t size;

	pieces_release(wt);
	for (int log = 0; log < ORDER_LOGS; log++) {
		piece_log_name(wt, log, name);
		if (!wt->at.skip[log])
			logfile_open_read(wt->lr->logs_dir, name, &wt->fds[log], &size, NULL);
	}
	readers_init(wt, start);
}

/* Goes on to the log of the next attempt, if there is one; the current log does not grow any
 * more. */
static bool next_attempt(struct run_watcher *wt)
{
	char name[LOG_NAME_MAX];
	uint64_t size;

	if (!wt->at.all || wt->at.attempt >= run_attempts(wt->lr, wt->at.rank))
		return false;
	run_log_name(wt->lr, wt->at.rank, wt->at.attempt + 1, stream_of(wt->at.process, STREAM_OUT),
		     name);
	if (!wt->lr->ended && !logfile_exists(wt->lr->logs_dir, name, &size))
		return false; /* it will exist soon */
	wt->at.attempt++;
	if (wt->kind == WATCH_PIECES) {
		open_pieces(wt);
		return true;
	}
	close(wt->fd);
	wt->fd = -1;
	wt->offset = 0;
	run_log_name(wt->lr, wt->at.rank, wt->at.attempt, wt->stream, name);
	logfile_open_read(wt->lr->logs_dir, name, &wt->fd, &size, NULL);
	return true;
}

static void at_end_of_log(struct run_watcher *wt)
{
	bool over = !wt->at.all && wt->at.attempt < run_attempts(wt->lr, wt->at.rank);

	if (next_attempt(wt))
		loop_timer_set(wt->timer, 0);
	else if (!wt->at.follow || over || wt->lr->ended ||
		 wt->lr->core->nodes[wt->at.rank].settled)
		finish(wt);
	else
		loop_timer_set(wt->timer, FOLLOW_EVERY_MS);
}

/* Sends as much as there is and the client takes; more when its queue is empty. */
static void send_log(void *ctx)
{
	struct run_watcher *wt = ctx;
	char chunk[LOG_CHUNK];
	size_t n;

	while (http_stream_queued(wt->x) < LOG_CHUNK) {
		if (file_pread_full(wt->fd, chunk, sizeof(chunk), (int64_t)wt->offset, &n, NULL) <
		    0)
			n = 0;
		if (n == 0) {
			at_end_of_log(wt);
			return;
		}
		wt->offset += n;
		if (!http_stream_write(wt->x, (struct str){chunk, n}))
			return;
	}
	http_stream_when_empty(wt->x, send_log, wt);
}

/* Writes the head line of a piece of n bytes. */
static size_t put_head(char head[static HEAD_MAX], int log, size_t n, bool times, int64_t ms)
{
	const char *name = stream_name((enum stream)log);
	int len;

	if (!times)
		len = snprintf(head, HEAD_MAX, "%s %zu\n", name, n);
	else if (ms == LOG_TIME_UNKNOWN)
		len = snprintf(head, HEAD_MAX, "%s %zu -\n", name, n);
	else
		len = snprintf(head, HEAD_MAX, "%s %zu %" PRId64 "\n", name, n, ms);
	return (size_t)len;
}

/* When the byte of the log where the reader stands arrived; *end is lowered to where the time
 * changes. */
static int64_t time_of_piece(struct run_watcher *wt, int log, uint64_t *end)
{
	char name[LOG_NAME_MAX];
	uint64_t until;

	piece_log_name(wt, log, name);
	int64_t ms =
		log_times_at(&wt->times[log], wt->lr->logs_dir, name, wt->order.pos[log], &until);
	*end = until < *end ? until : *end;
	return ms;
}

/* Reads the next piece of one of the two logs, after a head line.  Returns its length, 0 at the
 * end. */
static size_t next_piece(struct run_watcher *wt, char chunk[static LOG_CHUNK])
{
	uint64_t sizes[ORDER_LOGS], end;
	char head[HEAD_MAX];
	size_t n;

	for (int log = 0; log < ORDER_LOGS; log++) {
		struct stat st;
		bool known = wt->fds[log] >= 0 && fstat(wt->fds[log], &st) == 0;
		sizes[log] = known ? (uint64_t)st.st_size : 0;
	}
	char base[LOG_NAME_MAX];

	process_log_base(wt->lr, wt->at.rank, wt->at.process, wt->at.attempt, base);
	int log = log_order_next(&wt->order, wt->lr->logs_dir, base, sizes, &end);
	if (log < 0)
		return 0;
	int64_t ms = wt->at.times ? time_of_piece(wt, log, &end) : LOG_TIME_UNKNOWN;
	uint64_t from = wt->order.pos[log], want = end - from;
	want = want < LOG_CHUNK - sizeof(head) ? want : LOG_CHUNK - sizeof(head);
	want = want < wt->at.left ? want : wt->at.left;
	if (file_pread_full(wt->fds[log], chunk + sizeof(head), (size_t)want, (int64_t)from, &n,
			    NULL) < 0 ||
	    n == 0)
		return 0;
	wt->order.pos[log] += n;
	wt->at.left -= n;
	size_t len = put_head(head, log, n, wt->at.times, ms);
	memcpy(chunk, head, len);
	memmove(chunk + len, chunk + sizeof(head), n);
	return len + n;
}

static void send_pieces(void *ctx)
{
	struct run_watcher *wt = ctx;
	char chunk[LOG_CHUNK];

	while (http_stream_queued(wt->x) < LOG_CHUNK) {
		if (!wt->at.left) {
			finish(wt);
			return;
		}
		size_t n = next_piece(wt, chunk);
		if (n == 0) {
			at_end_of_log(wt);
			return;
		}
		if (!http_stream_write(wt->x, (struct str){chunk, n}))
			return;
	}
	http_stream_when_empty(wt->x, send_pieces, wt);
}

static void on_timer(void *ctx)
{
	struct run_watcher *wt = ctx;

	switch (wt->kind) {
	case WATCH_OBJECT:
		send_object(wt);
		return;
	case WATCH_DELTAS:
		send_deltas(wt->watch, wt->lr);
		return;
	case WATCH_EVENTS:
		send_events(wt);
		return;
	case WATCH_LOG:
		send_log(wt);
		return;
	case WATCH_PIECES:
		send_pieces(wt);
		return;
	}
}

static struct run_watcher *watcher_new(struct watch *w, struct live_run *lr,
				       struct http_exchange *x, enum watch_kind kind,
				       const char *type)
{
	struct run_watcher *wt = xcalloc(1, sizeof(*wt));

	wt->watch = w;
	wt->kind = kind;
	wt->lr = lr;
	wt->x = x;
	wt->fd = wt->order.fd = -1;
	for (int log = 0; log < ORDER_LOGS; log++)
		wt->fds[log] = wt->times[log].fd = -1;
	wt->timer = loop_timer_new(w->loop, on_timer, wt);
	list_append(&w->watchers, &wt->in_watchers);
	w->n++;
	lr->watchers++;
	http_stream_begin(x, 200, type, on_gone, wt);
	return wt;
}

void watch_object(struct watch *w, struct live_run *lr, struct http_exchange *x, bool only_last)
{
	struct run_watcher *wt = watcher_new(w, lr, x, WATCH_OBJECT, "application/x-ndjson");

	wt->only_last = only_last;
	if (!only_last || lr->ended)
		send_object(wt);
}

void watch_deltas(struct watch *w, struct live_run *lr, struct http_exchange *x)
{
	/* The whole object that the first watcher gets contains all earlier changes. */
	if (!lr->deltas_upto)
		lr->deltas_upto = ++lr->changes;
	send_object(watcher_new(w, lr, x, WATCH_DELTAS, "application/x-ndjson"));
}

void watch_events(struct watch *w, struct live_run *lr, struct http_exchange *x, int64_t after,
		  bool follow)
{
	struct run_watcher *wt = watcher_new(w, lr, x, WATCH_EVENTS, "application/x-ndjson");

	wt->after = after;
	wt->follow = follow;
	send_events(wt);
}

void watch_log(struct watch *w, struct live_run *lr, struct http_exchange *x,
	       const struct watch_at *at, enum stream s, int fd, uint64_t offset)
{
	struct run_watcher *wt = watcher_new(w, lr, x, WATCH_LOG, "application/octet-stream");

	wt->at = *at;
	wt->stream = s;
	wt->fd = fd;
	wt->offset = offset;
	send_log(wt);
}

void watch_pieces(struct watch *w, struct live_run *lr, struct http_exchange *x,
		  const struct watch_at *at, const int fds[static ORDER_LOGS],
		  const uint64_t from[static ORDER_LOGS])
{
	struct run_watcher *wt = watcher_new(w, lr, x, WATCH_PIECES, "application/vnd.regatta.log");

	wt->at = *at;
	memcpy(wt->fds, fds, sizeof(wt->fds));
	readers_init(wt, from);
	send_pieces(wt);
}

/* An ended run may be in memory more than once, once per reader: so compare the number. */
bool watch_has_run(const struct watch *w, int64_t no)
{
	const struct list *pos;

	list_each (pos, &w->watchers)
		if (list_item(pos, struct run_watcher, in_watchers)->lr->row.no == no)
			return true;
	return false;
}

static int64_t every_ms(const struct live_run *lr)
{
	return OBJECT_EVERY_MS + lr->plan.crew.n / NODES_PER_MS;
}

/* Called after a commit.  The end of a run is sent at once, other changes at most every
 * every_ms(). */
void watch_changed(struct watch *w, struct live_run *lr)
{
	struct list *pos, *tmp;
	int64_t now = clock_boot_ms();

	if (!lr->watchers)
		return;
	list_each_safe (pos, tmp, &w->watchers) {
		struct run_watcher *wt = list_item(pos, struct run_watcher, in_watchers);
		if (wt->lr != lr || wt->kind == WATCH_LOG || wt->kind == WATCH_PIECES)
			continue;
		bool deltas = wt->kind == WATCH_DELTAS;
		int64_t wait = (deltas ? lr->deltas_ms : wt->sent_ms) + every_ms(lr) - now;
		if (wt->kind == WATCH_EVENTS)
			send_events(wt);
		else if (lr->ended || (wait <= 0 && !wt->only_last && !deltas))
			send_object(wt);
		else if (!wt->only_last)
			loop_timer_set(wt->timer, wait > 0 ? wait : 0);
	}
}

int watch_streams(const struct watch *w)
{
	return w->n;
}

struct watch *watch_new(struct loop *l)
{
	struct watch *w = xcalloc(1, sizeof(*w));

	w->loop = l;
	list_init(&w->watchers);
	return w;
}

struct watch *watch_free(struct watch *w)
{
	struct list *pos, *tmp;

	if (!w)
		return NULL;
	list_each_safe (pos, tmp, &w->watchers) {
		struct run_watcher *wt = list_item(pos, struct run_watcher, in_watchers);
		loop_timer_cancel(wt->timer);
		finish(wt);
	}
	free(w);
	return NULL;
}
