#include "master/api/sse.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "fmt/jsonw.h"
#include "master/api/api.h"
#include "master/api/slices.h"
#include "master/live_run.h"
#include "master/run_json.h"
#include "master/runs.h"
#include "sys/loop.h"

#define FLUSH_MS 100
#define BEAT_MS 15000
#define PENDING_MAX (1u << 20) /* above it viewers read the events from the store */
#define CATCH_UP_EVENTS 100    /* per piece: each event may need its run loaded */
#define CATCH_UP_MAX (16u << 20)
#define KNOWN_RUNS 8 /* runs kept loaded while a piece is read */

struct viewer {
	struct sse *sse;
	struct http_exchange *x;
	struct list in_viewers;
	int64_t after; /* number of the last event sent */
	bool live;     /* gets `pending` directly; else it reads the store */
	struct slice_job past;
};

struct sse {
	struct master *m;
	struct list viewers;
	int n;
	struct loop_timer *flush, *beat;
	struct buf pending; /* text of the events after `told` */
	size_t committed_bytes;
	int64_t told, committed;
	int64_t flushed_ms;
	bool flush_set, lost; /* lost: `pending` has a gap: viewers must read the store */
};

static void event_json(const struct live_run *lr, int64_t n, const struct event_row *row,
		       struct buf *out)
{
	struct jsonw w;

	buf_printf(out, "id: %lld\ndata: ", (long long)n);
	jsonw_init(&w, out);
	jsonw_open(&w, '{');
	jsonw_kz(&w, "run", lr->row.id);
	event_members(lr, row, &w);
	jsonw_kz(&w, "state", run_phase_name(lr->core->phase));
	jsonw_close(&w);
	buf_addz(out, "\n\n");
}

/* ---- viewers that catch up from the store ---- */

struct known_run {
	int64_t no;
	struct live_run *lr;
};

struct catch_up {
	struct viewer *v;
	struct buf text;
	int n;
	struct known_run known[KNOWN_RUNS];
	int nknown;
};

static void forget(struct known_run *k)
{
	if (k->lr)
		live_run_done(k->lr);
	*k = (struct known_run){0};
}

static struct live_run *run_of(struct catch_up *cu, int64_t no)
{
	struct str id;
	void *value;

	for (int i = 0; i < KNOWN_RUNS; i++)
		if (cu->known[i].no == no)
			return cu->known[i].lr;
	struct known_run *k = &cu->known[cu->nknown++ % KNOWN_RUNS];
	forget(k);
	k->no = no;
	for (size_t i = 0; map_at(cu->v->sse->m->runs, &i, &id, &value);)
		if (((struct live_run *)value)->row.no == no)
			return k->lr = value;
	return k->lr = live_run_load(cu->v->sse->m, no, NULL);
}

static bool put_past(void *ctx, int64_t n, int64_t no, const struct event_row *row)
{
	struct catch_up *cu = ctx;

	if (n > cu->v->sse->committed)
		return false;
	struct live_run *lr = run_of(cu, no);
	if (lr)
		event_json(lr, n, row, &cu->text);
	cu->v->after = n;
	cu->n++;
	return !cu->text.overflow;
}

static void queue_past(void *ctx)
{
	struct viewer *v = ctx;

	slices_add(v->sse->m->slices, auth_client(v->x), &v->past);
}

/* Sends one piece; the next one follows when the client has taken it. */
static bool send_past(void *ctx)
{
	struct viewer *v = ctx;
	struct sse *s = v->sse;
	struct catch_up cu = {.v = v};

	buf_init(&cu.text, CATCH_UP_MAX);
	store_all_events_each(s->m->store, v->after, CATCH_UP_EVENTS, put_past, &cu, NULL);
	for (int i = 0; i < KNOWN_RUNS; i++)
		forget(&cu.known[i]);
	if (cu.n < CATCH_UP_EVENTS && v->after < s->told)
		v->after = s->told; /* the other events were removed with their runs */
	bool ok = http_stream_write(v->x, buf_str(&cu.text));
	buf_release(&cu.text);
	if (!ok)
		return false;
	/* flush() sends `pending`, which begins after `told`, to all viewers that are live. */
	if (v->after >= s->told)
		v->live = true;
	else
		http_stream_when_empty(v->x, queue_past, v);
	return false;
}

/* ---- viewers that are up to date ---- */

static void reset_pending(struct sse *s)
{
	buf_reset(&s->pending);
	s->committed_bytes = 0;
	s->lost = false;
}

static void flush(void *ctx)
{
	struct sse *s = ctx;
	struct str text = {s->pending.p, s->committed_bytes};
	struct list *pos, *tmp;

	s->flush_set = false;
	s->flushed_ms = clock_boot_ms();
	if (s->committed == s->told)
		return;
	list_each_safe (pos, tmp, &s->viewers) {
		struct viewer *v = list_item(pos, struct viewer, in_viewers);
		if (!v->live)
			continue;
		if (v->after == s->told && !s->lost) {
			v->after = s->committed;
			http_stream_write(v->x, text);
		} else if (v->after < s->committed) {
			v->live =
				/* It has a part of `pending` already, or `pending` has a gap. */
				false;
			http_stream_when_empty(v->x, queue_past, v);
		}
	}
	s->told = s->committed;
	if (s->lost)
		reset_pending(s);
	else
		buf_drop_front(&s->pending, s->committed_bytes);
	s->committed_bytes = 0;
}

void sse_event(struct sse *s, struct live_run *lr, int64_t n, const struct event_row *row)
{
	if (!s || !s->n)
		return;
	event_json(lr, n, row, &s->pending);
	s->lost = s->lost || s->pending.overflow;
}

void sse_committed(struct sse *s)
{
	if (!s || store_last_event(s->m->store) == s->committed)
		return;
	s->committed = store_last_event(s->m->store);
	s->committed_bytes = s->pending.n;
	if (!s->n) {
		s->told = s->committed;
		reset_pending(s);
		return;
	}
	if (s->flush_set)
		return;
	int64_t wait = s->flushed_ms + FLUSH_MS - clock_boot_ms();
	s->flush_set = true;
	loop_timer_set(s->flush, wait > 0 ? wait : 0);
}

static void beat(void *ctx)
{
	struct sse *s = ctx;
	struct list *pos, *tmp;

	list_each_safe (pos, tmp, &s->viewers)
		http_stream_write(list_item(pos, struct viewer, in_viewers)->x,
				  STR(": keep-alive\n\n"));
	if (s->n)
		loop_timer_set(s->beat, BEAT_MS);
}

static void viewer_free(struct viewer *v)
{
	list_remove(&v->in_viewers);
	slice_job_remove(&v->past);
	v->sse->n--;
	free(v);
}

static void on_gone(void *ctx)
{
	viewer_free(ctx);
}

static int start_number(const struct api_call *c, int64_t *ret, struct err *err)
{
	struct str after = query_get(&c->req->query, "after", STR(""));
	struct str last = http_header(c->x, "last-event-id");
	const struct sse *s = c->m->sse;

	*ret = s->committed;
	/* a browser that reconnects repeats its query, but the header is current */
	if (last.p && last.n)
		after = last;
	if (!after.n)
		return 0;
	if (!str_to_i64(after, ret) || *ret < 0)
		return err_set(err, ERR_INVALID,
			       "'after' and Last-Event-ID must be the number of an event");
	if (*ret > s->committed)
		*ret = s->committed;
	return 0;
}

int api_events(struct api_call *c, struct err *err)
{
	struct sse *s = c->m->sse;
	char hello[96];
	int64_t after;

	if (start_number(c, &after, err) < 0 || api_stream_allowed(c, err) < 0)
		return -1;
	struct viewer *v = xcalloc(1, sizeof(*v));
	*v = (struct viewer){.sse = s, .x = c->x, .after = after};
	slice_job_init(&v->past, send_past, NULL, v);
	if (!s->n++) {
		s->told = s->committed;
		reset_pending(s);
		s->lost = store_last_event(c->m->store) !=
			  s->committed; /* events were added while nobody watched */
		loop_timer_set(s->beat, BEAT_MS);
	}
	list_append(&s->viewers, &v->in_viewers);
	http_stream_begin(v->x, 200, "text/event-stream; charset=utf-8", on_gone, v);
	snprintf(hello, sizeof(hello), "retry: 2000\nid: %lld\n\n", (long long)after);
	if (!http_stream_write(v->x, str_from(hello)))
		return 0;
	v->live = v->after >= s->told;
	if (!v->live)
		queue_past(v);
	return 0;
}

int sse_viewers(const struct sse *s)
{
	return s->n;
}

struct sse *sse_new(struct master *m)
{
	struct sse *s = xcalloc(1, sizeof(*s));

	s->m = m;
	list_init(&s->viewers);
	buf_init(&s->pending, PENDING_MAX);
	s->flush = loop_timer_new(m->loop, flush, s);
	s->beat = loop_timer_new(m->loop, beat, s);
	s->told = s->committed = store_last_event(m->store);
	return s;
}

struct sse *sse_free(struct sse *s)
{
	struct list *pos, *tmp;

	if (!s)
		return NULL;
	list_each_safe (pos, tmp, &s->viewers) {
		struct viewer *v = list_item(pos, struct viewer, in_viewers);
		http_stream_end(v->x);
		viewer_free(v);
	}
	loop_timer_free(s->flush);
	loop_timer_free(s->beat);
	buf_release(&s->pending);
	free(s);
	return NULL;
}
