/*
 * kube_log - follows the log of a container.  Each answer goes on until the container ends or the
 * connection is cut; the next begins where that one ended (log_position.h).
 */
#include "driver/kube/kube_log.h"

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/arena.h"
#include "base/buf.h"
#include "base/deadline.h"
#include "base/err.h"
#include "driver/kube/kube_kind.h"
#include "driver/kube/log_position.h"

#define PIECE (64u << 10)
#define MORE_MS 20 /* so long more is waited for, once something came */

struct driver_log {
	struct arena *a;
	struct driver_row row; /* a copy, whose strings are of a */
	struct kube_work w;
	bool ready; /* w is open */
	char *pod, *container;
	struct log_reader r;
	bool open; /* an answer is being read */
	char piece[PIECE];
};

/* The row of the caller ends before the log does. */
static void keep_row(struct driver_log *l, const struct driver_row *row)
{
	struct arena *a = l->a = arena_new();

	l->row = (struct driver_row){
		.kind = arena_strdup(a, row->kind),
		.name = arena_strdup(a, row->name),
		.run = arena_strdup(a, row->run),
		.install = arena_strdup(a, row->install),
		.spec = arena_strdup(a, row->spec),
		.credentials = row->credentials ? arena_strdup(a, row->credentials) : NULL,
	};
}

/* By the thread that reads: a program of the user may have to make new credentials. */
static int get_ready(struct driver_log *l, const struct deadline *d, struct err *err)
{
	if (l->ready)
		return 0;
	l->row.deadline = d;
	if (kube_work_open(&l->row, &l->w, err) < 0)
		return -1;
	l->ready = true;
	return 0;
}

struct driver_log *kube_log_open(const struct driver_row *row, const char *log, const char *at)
{
	struct driver_log *l = xcalloc(1, sizeof(*l));
	struct str container = str_from(log), pod = str_cut(&container, '/');

	l->pod = xstrndup(pod.p, pod.n);
	l->container = xstrndup(container.p ? container.p : "", container.n);
	(void)log_position_get(at, &l->r.at);
	keep_row(l, row);
	return l;
}

struct driver_log *kube_log_free(struct driver_log *l)
{
	if (!l)
		return NULL;
	if (l->ready)
		kube_work_close(&l->w);
	arena_free(l->a);
	free(l->pod);
	free(l->container);
	free(l);
	return NULL;
}

void kube_log_at(const struct driver_log *l, char at[static DRIVER_LOG_AT])
{
	log_position_put(&l->r.at, at, DRIVER_LOG_AT);
}

bool kube_log_gap(struct driver_log *l)
{
	bool gap = l->r.gap;

	l->r.gap = false;
	return gap;
}

static int begin(struct driver_log *l, const struct deadline *d, struct err *err)
{
	struct arena *a = arena_new();
	char since[32];
	int status;

	log_reader_since(&l->r, since);
	const char *path = arena_printf(a, "%s/log?container=%s&follow=true&timestamps=true%s%s",
					kube_path(a, "v1", l->w.namespace, "pods", l->pod),
					l->container, since[0] ? "&sinceTime=" : "", since);
	int rc = kube_stream_open(l->w.k, path, "follow a log", d, &status, err);

	arena_free(a);
	if (rc < 0)
		return -1;
	log_reader_begin(&l->r);
	l->open = true;
	return 0;
}

/* 1: bytes came, or may come; 0: the answer has ended, and was a log to its end. */
static int read_piece(struct driver_log *l, int wait_ms, const struct deadline *d, struct buf *out,
		      struct err *err)
{
	size_t n = 0;

	if (kube_stream_read(l->w.k, l->piece, sizeof(l->piece), wait_ms, d, &n, err) < 0) {
		if (err->kind == ERR_TIMEOUT)
			return 1;
		l->open = false;
		return err_wrap(err, "follow a log");
	}
	if (n > 0 && log_reader_take(&l->r, (struct str){l->piece, n}, out))
		return 1;
	l->open = false;
	/* The page of a proxy, or the node's own words: nobody knows what came after them. */
	if (l->r.said[0])
		return err_set(err, ERR_PROTOCOL, "follow a log: %s", l->r.said);
	return 0;
}

int kube_log_read(struct driver_log *l, int wait_ms, const struct deadline *d, struct buf *out,
		  struct err *err)
{
	if (get_ready(l, d, err) < 0 || (!l->open && begin(l, d, err) < 0))
		return -1;
	for (int wait = wait_ms;; wait = MORE_MS) {
		size_t before = out->n;
		int rc = read_piece(l, wait, d, out, err);

		if (rc <= 0)
			return rc;
		/* What comes in one piece must fit as a whole. */
		if (out->n == before || out->max - out->n < sizeof(l->piece))
			return 1;
	}
}
