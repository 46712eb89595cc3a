/*
 * Event files of TensorBoard: DIR/<run>/<node>/, so that each node is a run of its own there.  A file
 * has always the same name and is replaced as a whole: exporting again adds nothing twice.
 */
#include "cli/command/export.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/arena.h"
#include "base/buf.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "base/file.h"
#include "base/map.h"
#include "base/path.h"
#include "fmt/doc.h"
#include "fmt/tfevents.h"

/* TensorBoard takes files with "tfevents" in their name: one that is not complete has another. */
#define EVENT_FILE "events.out.tfevents.regatta"
#define TEMPORARY ".export.%d"
#define FLUSH_BYTES (64u << 10)
#define OUT_MAX (FLUSH_BYTES + 8192)

struct writer {
	struct export_run *x;
	struct map *nodes; /* name -> path without TEMPORARY, in the arena */
	struct str node;   /* whose file is open */
	int fd;
	struct buf out;
};

static int flush(struct writer *w, struct err *err)
{
	int rc = w->fd < 0 ? 0 : file_write_all(w->fd, w->out.p, w->out.n, err);

	buf_reset(&w->out);
	return rc;
}

/* Of the process, so that two exports do not write into one file. */
static const char *temporary_of(const struct writer *w, const char *path)
{
	return arena_printf(w->x->a, "%.*s/" TEMPORARY, (int)(path_base(path) - path - 1), path,
			    (int)getpid());
}

static int open_node(struct writer *w, struct str node, struct err *err)
{
	struct arena *a = w->x->a;

	if (flush(w, err) < 0)
		return -1;
	if (w->fd >= 0)
		close(w->fd);
	w->node = arena_str(a, node);
	const char *known = map_get(w->nodes, node);
	const char *dir = arena_printf(a, "%s/%s/%s", w->x->dest, w->x->id, w->node.p);
	const char *path = known ? known : arena_printf(a, "%s/" EVENT_FILE, dir);

	if (!known && file_mkdir_p(dir, 0777, err) < 0)
		return -1;
	w->fd = open(temporary_of(w, path),
		     O_WRONLY | O_CREAT | O_CLOEXEC | O_APPEND | (known ? 0 : O_TRUNC), 0666);
	if (w->fd < 0)
		return err_errno(err, errno, "make '%.160s'", path);
	if (!known) {
		map_put(w->nodes, w->node, (void *)(uintptr_t)path);
		tfevents_begin(&w->out, (double)doc_int(w->x->run, "created_ms", 0) / 1000);
	}
	return 0;
}

static int add_sample(void *ctx, const struct export_sample *s, struct err *err)
{
	struct writer *w = ctx;

	if ((w->fd < 0 || !str_eq(w->node, s->node)) && open_node(w, s->node, err) < 0)
		return -1;
	tfevents_scalar(&w->out, (double)s->time_ms / 1000,
			s->step >= 0 ? s->step : (int64_t)s->index, s->name, s->value);
	w->x->samples++;
	return w->out.n >= FLUSH_BYTES ? flush(w, err) : 0;
}

/* The files get their names, or nothing of them stays. */
static int end_files(struct writer *w, int rc, struct err *err)
{
	struct str node;
	void *path;

	for (size_t i = 0; map_at(w->nodes, &i, &node, &path);) {
		const char *temporary = temporary_of(w, path);

		if (rc == 0 && rename(temporary, path) < 0)
			rc = err_errno(err, errno, "make '%.160s'", (const char *)path);
		if (rc < 0)
			unlink(temporary);
	}
	return rc;
}

int export_tensorboard(struct export_run *x, struct err *err)
{
	struct writer w = {.x = x, .nodes = map_new(), .fd = -1};

	buf_init(&w.out, OUT_MAX);
	int rc = export_each(x, add_sample, &w, err);
	if (rc == 0)
		rc = flush(&w, err);
	if (w.fd >= 0)
		close(w.fd);
	rc = end_files(&w, rc, err);
	buf_release(&w.out);
	map_free(w.nodes);
	return rc;
}
