#include "master/upkeep/finish.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "base/file.h"
#include "base/log.h"
#include "base/path.h"
#include "fmt/jsonw.h"
#include "master/internal.h"
#include "master/live_run.h"
#include "master/round.h"
#include "master/secrets.h"
#include "master/run_json.h"
#include "master/upkeep/exports.h"
#include "master/upkeep/hooks.h"
#include "master/upkeep/metric_push.h"
#include "master/upkeep/output_list.h"
#include "master/upkeep/reports.h"

#define SUMMARY_MAX_BYTES (64u << 20)
#define SLICE 1000 /* events that are written at once ... */
#define SLICES 4   /* ... and how many times in a turn of the loop, while the run is not over */
#define SLICE_MAX_BYTES (16u << 20)
#define EVENTS "events.jsonl"
#define EVENTS_PART "." EVENTS ".part" /* until it has all of them */

struct events_out {
	struct live_run *lr;
	struct buf *text;
	int64_t last_seq;
};

static bool put_event(void *ctx, const struct event_row *row)
{
	struct events_out *eo = ctx;

	event_to_json(eo->lr, row, eo->text);
	eo->last_seq = row->seq;
	return true;
}

/* The first slice replaces what another master may have written. */
static int append(const struct live_run *lr, const struct buf *text, struct err *err)
{
	CLEANUP(freep) char *path = path_join(lr->dir, EVENTS_PART);
	int how = lr->events_kept ? O_APPEND : O_TRUNC;
	CLEANUP(close_fdp)
	int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC | O_NOFOLLOW | how, 0600);

	if (fd < 0)
		return err_errno(err, errno, "create '%s'", path);
	return file_write_all(fd, text->p, text->n, err) < 0 ? err_wrap(err, "'%s'", path) : 0;
}

/* Up to `slices` of the events that the part does not have.  After an error it is begun anew. */
static int append_events(struct live_run *lr, int64_t slices, struct err *err)
{
	CLEANUP(buf_release) struct buf text = {0};
	struct events_out eo = {.lr = lr, .text = &text};
	int rc = 0;

	buf_init(&text, SLICE_MAX_BYTES);
	for (int64_t i = 0; i < slices && rc == 0; i++) {
		buf_reset(&text);
		eo.last_seq = lr->events_kept;
		rc = store_events_each(lr->m->store, lr->row.no, lr->events_kept, SLICE, put_event,
				       &eo, err);
		if (rc < 0 || eo.last_seq == lr->events_kept)
			break;
		rc = append(lr, &text, err);
		lr->events_kept = eo.last_seq;
	}
	if (rc < 0)
		lr->events_kept = 0;
	return rc;
}

/* Whole or not at all: a run that has ended gets its records again with a tag or a note. */
static int write_events(struct live_run *lr, struct err *err)
{
	CLEANUP(freep)
	char *part = path_join(lr->dir, EVENTS_PART), *path = path_join(lr->dir, EVENTS);

	if (append_events(lr, INT64_MAX, err) == 0) {
		if (rename(part, path) == 0)
			return 0;
		err_errno(err, errno, "make '%s'", path);
	}
	(void)unlink(part); /* on a full disk it would be in the way */
	return -1;
}

void run_keep_events(struct live_run *lr)
{
	if (lr->last_seq - lr->events_kept >= SLICE && !lr->ended)
		append_events(lr, SLICES, NULL); /* what fails now is told at the end */
}

static void note_failed(struct live_run *lr, const struct err *err)
{
	log_warn("run %s: %s", lr->row.id, err->msg);
	run_note(lr, "files", -1, "%s", err->msg);
}

/* The summary is written last: records.c takes a run that has it for complete. */
static void write_records(struct live_run *lr)
{
	CLEANUP(freep) char *path = path_join(lr->dir, "summary.json");
	CLEANUP(buf_release) struct buf text = {0};
	struct err err = {0};

	run_secrets_finish(lr);
	if (write_events(lr, &err) < 0)
		note_failed(lr, &err);
	buf_init(&text, SUMMARY_MAX_BYTES);
	run_to_json(lr, true, &text);
	buf_addc(&text, '\n');
	if (file_write_atomic(path, buf_str(&text), 0600, false, &err) < 0)
		note_failed(lr, &err);
}

void run_write_records(struct live_run *lr)
{
	lr->events_kept = 0;
	exports_run_changed(lr->m->exports, lr); /* before they change */
	write_records(lr);
}

void run_write_files(struct live_run *lr)
{
	hooks_note_owed(lr);
	metric_push_run_ended(lr->m->metric_push, lr);
	write_records(lr);
	output_list_run_ended(lr);
	reports_run_ended(lr->m->reports, lr);
	hooks_run_ended(lr->m->hooks, lr);
	exports_run_ended(lr->m->exports, lr, NULL, NULL);
}
