/* regatta export - the metrics of a run for other programs. */
#include "cli/command/export.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/arena.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/file.h"
#include "base/path.h"
#include "cli/cli.h"
#include "cli/client/api.h"
#include "cli/client/download.h"
#include "cli/command/commands.h"
#include "fmt/doc.h"

#define COLUMNS 7 /* time,node,role,rank,name,step,value */

static const struct way {
	const char *name;
	int (*fn)(struct export_run *x, struct err *err);
	const char *place; /* what DEST is */
} ways[] = {
	{"csv", export_csv, "a directory"},
	{"tensorboard", export_tensorboard, "a directory"},
	{"mlflow", export_mlflow, "the URL of a server"},
};

/* ---- the samples ---- */

/* Cuts a column off; a text in quotes loses them, in place. */
static struct str cut_column(struct str *line)
{
	if (!line->n || line->p[0] != '"')
		return str_cut(line, ',');
	char *text = (char *)(uintptr_t)line->p, *to = text;
	size_t i = 1;

	for (; i < line->n; i++) {
		if (text[i] == '"' && (i + 1 == line->n || text[++i] != '"'))
			break;
		*to++ = text[i];
	}
	struct str column = {text, (size_t)(to - text)};

	*line = i < line->n ? (struct str){text + i + 1, line->n - i - 1} : (struct str){0};
	return column;
}

static bool read_row(struct str line, struct export_sample *ret)
{
	struct str v[COLUMNS] = {0};

	for (int i = 0; i < COLUMNS && line.p; i++)
		v[i] = cut_column(&line);
	*ret = (struct export_sample){.node = v[1], .name = v[4], .step = -1};
	return v[6].p && clock_parse(v[0], &ret->time_ms) && str_to_double(v[6], &ret->value) &&
	       (!v[5].n || str_to_i64(v[5], &ret->step));
}

struct cursor {
	char *series; /* "node\nname" of the row before */
	uint64_t index;
};

static void number(struct cursor *at, struct export_sample *s)
{
	size_t n = s->node.n + 1 + s->name.n;

	if (at->series && strlen(at->series) == n && !memcmp(at->series, s->node.p, s->node.n) &&
	    at->series[s->node.n] == '\n' &&
	    !memcmp(at->series + s->node.n + 1, s->name.p, s->name.n)) {
		s->index = ++at->index;
		return;
	}
	free(at->series);
	at->series = xasprintf("%.*s\n%.*s", STR_ARG(s->node), STR_ARG(s->name));
	at->index = s->index = 0;
}

static FILE *open_samples(const struct export_run *x)
{
	int fd = dup(x->csv);
	FILE *f = fd < 0 || lseek(fd, 0, SEEK_SET) < 0 ? NULL : fdopen(fd, "r");

	if (!f && fd >= 0)
		close(fd);
	return f;
}

int export_each(const struct export_run *x,
		int (*fn)(void *ctx, const struct export_sample *s, struct err *err), void *ctx,
		struct err *err)
{
	CLEANUP(fclosep) FILE *f = open_samples(x);
	CLEANUP(freep) char *line = NULL;
	struct cursor at = {0};
	size_t cap = 0;
	ssize_t n;
	int rc = 0;

	if (!f)
		return err_errno(err, errno, "read the samples");
	for (bool head = true; rc == 0 && (n = getline(&line, &cap, f)) > 0; head = false) {
		struct export_sample s;

		if (head)
			continue;
		if (!read_row(str_trim((struct str){line, (size_t)n}), &s)) {
			rc = err_set(err, ERR_PROTOCOL, "the master's samples cannot be read");
			break;
		}
		number(&at, &s);
		rc = fn(ctx, &s, err);
	}
	if (rc == 0 && ferror(f))
		rc = err_errno(err, errno, "read the samples");
	free(at.series);
	return rc;
}

/* ---- CSV ---- */

int export_csv(struct export_run *x, struct err *err)
{
	CLEANUP(freep) char *path = xasprintf("%s/%s.csv", x->dest, x->id);
	CLEANUP(freep) char *temporary = xasprintf("%s/.%s.csv.%d", x->dest, x->id, (int)getpid());
	CLEANUP(fclosep) FILE *f = NULL;

	if (file_mkdir_p(x->dest, 0777, err) < 0)
		return -1;
	f = fopen(temporary, "we");
	if (!f)
		return err_errno(err, errno, "make '%.160s'", path);
	if (file_copy_content(x->csv, fileno(f), err) < 0 || rename(temporary, path) < 0) {
		unlink(temporary);
		return err->kind == ERR_NONE ? err_errno(err, errno, "make '%.160s'", path)
					     : err_wrap(err, "write '%.120s'", path);
	}
	return 0;
}

/* ---- the command ---- */

static int count_one(void *ctx, const struct export_sample *s, struct err *err)
{
	(void)s;
	(void)err;
	++*(uint64_t *)ctx;
	return 0;
}

static int read_run(struct api *api, const char *word, struct export_run *x, struct err *err)
{
	CLEANUP(freep) char *id = NULL;
	const char *tmp = getenv("TMPDIR");
	struct download d = {0};
	struct doc *run;

	if (api_pick_run(api, word, &id, err) < 0)
		return -1;
	CLEANUP(freep) char *path = api_run_path(id, "");
	if (api_get_doc(api, path, x->a, &run, err) < 0)
		return -1;
	x->run = run;
	x->id = arena_str(x->a, doc_str(run, "id", str_from(id))).p;
	CLEANUP(freep) char *csv = api_run_path(x->id, "/metrics.csv");
	x->csv = file_temporary(tmp ? tmp : "/tmp", err);
	return x->csv < 0 ? -1 : download_to(api, csv, x->csv, &d, err);
}

static int export_run(const struct cli_call *c, struct api *api, const struct way *w,
		      struct err *err)
{
	CLEANUP(arena_freep) struct arena *a = arena_new();
	struct export_run x = {
		.a = a, .csv = -1, .dest = call_arg(c, 1), .name = call_text(c, "experiment")};
	uint64_t all = 0;

	int rc = read_run(api, call_arg(c, 0), &x, err);
	if (rc == 0)
		rc = export_each(&x, count_one, &all, err);
	if (rc == 0 && all == 0)
		rc = err_set(err, ERR_NOT_FOUND,
			     "run '%.60s' has no metrics: there is nothing to export", x.id);
	if (rc == 0 && (rc = w->fn(&x, err)) < 0)
		err_wrap(err, "export to %s", w->name);
	if (rc == 0 && x.there)
		cli_say("%s: %" PRIu64 " samples exported to %s, %" PRIu64 " were there already",
			x.id, all - x.there, x.dest, x.there);
	else if (rc == 0)
		cli_say("%s: %" PRIu64 " sample%s exported to %s", x.id, all, all == 1 ? "" : "s",
			x.dest);
	if (x.csv >= 0)
		close(x.csv);
	return rc;
}

int command_export(const struct cli_call *c)
{
	CLEANUP(api_release) struct api api = {0};
	const char *to = call_text(c, "to");
	const struct way *w = NULL;
	struct err err = {0};

	for (size_t i = 0; to && i < sizeof(ways) / sizeof(ways[0]); i++)
		if (!strcmp(ways[i].name, to))
			w = &ways[i];
	if (!w) {
		cli_say("export: give --to csv, tensorboard or mlflow");
		return 2;
	}
	if (!call_arg(c, 1)) {
		cli_say("export: --to %s needs %s after the run", w->name, w->place);
		return 2;
	}
	if (call_text(c, "experiment") && w->fn != export_mlflow) {
		cli_say("export: --experiment is for --to mlflow");
		return 2;
	}
	if (api_open_named(&api, c, true, &err) < 0)
		return cli_fail(&err);
	return export_run(c, &api, w, &err) < 0 ? api_fail(&api, &err) : 0;
}
