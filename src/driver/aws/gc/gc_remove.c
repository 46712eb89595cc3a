/* gc_remove - deletes of what is in the scope: by the kind's driver where there is more to it than one call. */
#include <stdlib.h>
#include <string.h>

#include "driver/aws/aws_kind.h"
#include "driver/aws/gc/gc.h"
#include "driver/driver.h"

#define AT_ONCE 500 /* instances in one call */
#define CALL_MS 60000

static const struct gc_region *region_of(const struct gc *g, const char *name)
{
	for (size_t i = 0; i < g->regions.n; i++)
		if (strcmp(g->regions.v[i].name, name) == 0)
			return &g->regions.v[i];
	return &g->regions.v[0];
}

/* A row as the ledger of the run that made it would have it. */
struct driver_row gc_row(struct gc *g, const struct gc_item *item)
{
	struct driver_row row = {
		.deadline = &g->d,
		.kind = item->is.kind,
		.name = item->is.id,
		.install = item->is.install,
		.run = item->is.run,
		.credentials = g->in->credentials,
		.spec = arena_printf(g->a, "{\"account\":\"%s\",\"region\":\"%s\"}", g->account,
				     *item->is.region ? item->is.region : g->regions.v[0].name),
	};

	aws_take_id(&row, item->is.id);
	return row;
}

void gc_note(struct gc *g, struct gc_item *item, enum outcome outcome, const struct err *err)
{
	if (err->kind == ERR_CANCELLED)
		return; /* what was known before says more */
	item->is.why = NULL;
	item->denied = false;
	item->accepted = outcome == OUTCOME_DONE || outcome == OUTCOME_ABSENT;
	if (item->accepted)
		return;
	item->is.why = arena_strdup(g->a, err->msg);
	item->denied = err->kind == ERR_DENIED;
}

static void remove_by_call(struct gc *g, struct gc_item *item)
{
	struct deadline d = deadline_within(&g->d, CALL_MS);
	struct aws_answer ans = {0};
	struct aws_request r;
	struct err err = {0};
	int rc;

	aws_request_init(&r, "ec2", item->kind->remove);
	aws_param(&r, item->is.id, "%s", item->kind->param);
	rc = aws_query(region_of(g, item->is.region)->s, &r, &d, &ans, &err);
	aws_request_release(&r);
	gc_note(g, item,
		rc == 0			    ? OUTCOME_DONE
		: err.kind == ERR_NOT_FOUND ? OUTCOME_ABSENT
					    : OUTCOME_HELD,
		&err);
	aws_answer_release(&ans);
}

static void remove_group(struct gc *g, struct gc_item *item)
{
	struct driver_row row = gc_row(g, item);

	gc_note(g, item, ec2_security_group_driver.destroy(&row), &row.err);
}

/* Instances of one install and one region, in one call. */
static void end_instances(struct gc *g, struct gc_item *const *items, size_t n)
{
	struct driver_row *rows = arena_array(g->a, struct driver_row, n);

	for (size_t i = 0; i < n; i++)
		rows[i] = gc_row(g, items[i]);
	ec2_instance_driver.destroy_many(rows, n);
	for (size_t i = 0; i < n; i++) {
		gc_note(g, items[i], rows[i].outcome, &rows[i].err);
		/* held because it shuts down: that is no reason that a person must know */
		if (rows[i].outcome == OUTCOME_HELD && rows[i].err.kind == ERR_UNAVAILABLE)
			items[i]->ending = true;
	}
}

static bool is_due(const struct gc_item *item, const struct gc_kind *kind)
{
	return item->kind == kind && item->seen && item->is.state == LEFTOVER_FOUND &&
	       !item->ending;
}

static void remove_instances(struct gc *g, const struct gc_kind *kind)
{
	struct gc_item **some = arena_array(g->a, struct gc_item *, AT_ONCE);

	for (size_t r = 0; r < g->regions.n; r++) {
		size_t n = 0;

		for (size_t i = 0; i < g->items.n; i++) {
			struct gc_item *item = g->items.v[i];

			if (is_due(item, kind) &&
			    strcmp(item->is.region, g->regions.v[r].name) == 0)
				some[n++] = item;
			if (n > 0 && (n == AT_ONCE || i + 1 == g->items.n)) {
				end_instances(g, some, n);
				n = 0;
			}
		}
	}
}

static void remove_one(struct gc *g, struct gc_item *item)
{
	if (item->kind->ready && strcmp(item->status, item->kind->ready) != 0)
		item->is.why = arena_printf(g->a, "it is %s", item->status);
	else if (item->kind->remove)
		remove_by_call(g, item);
	else
		remove_group(g, item);
}

void gc_remove(struct gc *g)
{
	for (const struct gc_kind *k = gc_kinds; k->name; k++) {
		if (k == gc_kinds) {
			remove_instances(g, k);
			continue;
		}
		for (size_t i = 0; i < g->items.n && deadline_left_ms(&g->d) > 0; i++)
			if (is_due(g->items.v[i], k))
				remove_one(g, g->items.v[i]);
	}
}
