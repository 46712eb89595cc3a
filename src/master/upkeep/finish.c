#include "master/upkeep/finish.h"

#include <stdlib.h>

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

#define EVENTS_MAX_BYTES (64u << 20)

struct events_out {
	struct live_run *lr;
	struct buf *text;
};

static bool put_event(void *ctx, const struct event_row *row)
{
	struct events_out *eo = ctx;
	event_to_json(eo->lr, row, eo->text);
	return !eo->text->overflow;
}

/* Whole or not at all: a run that has ended gets them again when it gets a tag or a note. */
static void write_text(struct live_run *lr, const char *name, const struct buf *text)
{
	CLEANUP(freep) char *path = path_join(lr->dir, name);
	struct err err = {0};

	if (file_write_atomic(path, buf_str(text), 0600, false, &err) < 0) {
		log_warn("run %s: %s", lr->row.id, err.msg);
		run_note(lr, "files", -1, "%s", err.msg);
	}
}

/* The summary is written last: records.c takes a run that has it for complete. */
void run_write_records(struct live_run *lr)
{
	struct buf text;
	struct events_out eo = {.lr = lr, .text = &text};

	run_secrets_finish(lr);
	buf_init(&text, EVENTS_MAX_BYTES);
	store_events_each(lr->m->store, lr->row.no, 0, 0, put_event, &eo, NULL);
	write_text(lr, "events.jsonl", &text);
	buf_reset(&text);
	run_to_json(lr, true, &text);
	buf_addc(&text, '\n');
	write_text(lr, "summary.json", &text);
	buf_release(&text);
}

void run_write_files(struct live_run *lr)
{
	hooks_note_owed(lr);
	metric_push_run_ended(lr->m->metric_push, lr);
	run_write_records(lr);
	output_list_run_ended(lr);
	reports_run_ended(lr->m->reports, lr);
	hooks_run_ended(lr->m->hooks, lr);
	exports_run_ended(lr->m->exports, lr, NULL, NULL);
}
