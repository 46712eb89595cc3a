/* How the processes of a node that has several ended: in memory for the API, and in the store. */
#include "master/streams.h"

#include <stdlib.h>

#include "base/alloc.h"
#include "base/arena.h"
#include "base/buf.h"
#include "base/cleanup.h"
#include "fmt/doc.h"
#include "fmt/jsonw.h"
#include "link/message.h"
#include "master/internal.h"
#include "master/live_run.h"
#include "master/round.h"

#define ENDS_MAX (32 * 1024)

/* [[code, signal], ...] */
static void encode(const struct exit_report *e, struct buf *out)
{
	struct jsonw w;

	jsonw_init(&w, out);
	jsonw_open(&w, '[');
	for (size_t i = 0; i < e->nprocesses; i++) {
		jsonw_open(&w, '[');
		jsonw_int(&w, e->processes[i].code);
		jsonw_int(&w, e->processes[i].signal);
		jsonw_close(&w);
	}
	jsonw_close(&w);
}

static struct process_end *ends_of(struct live_node *n)
{
	if (!n->ends)
		n->ends = xcalloc((size_t)n->processes, sizeof(*n->ends));
	for (int i = 0; i < n->processes; i++)
		n->ends[i] = (struct process_end){.code = -1};
	return n->ends;
}

void streams_ends(struct live_run *lr, int rank, const struct exit_report *e)
{
	CLEANUP(buf_release) struct buf text = {0};
	struct live_node *n = &lr->nodes[rank];
	struct err err = {0};

	if (n->processes == 1 || e->nprocesses != (size_t)n->processes)
		return;
	memcpy(ends_of(n), e->processes, e->nprocesses * sizeof(*n->ends));
	buf_init(&text, ENDS_MAX);
	encode(e, &text);
	store_begin(lr->m->store);
	if (store_ends_save(lr->m->store, lr->row.no, rank, e->attempt, text.p, &err) < 0)
		master_fatal(lr->m, &err);
	else
		round_mark(lr);
}

static void restore_one(void *ctx, int rank, int attempt, const char *ends)
{
	CLEANUP(arena_freep) struct arena *a = arena_new();
	struct live_run *lr = ctx;
	struct doc *d;

	/* Those of an earlier attempt are not those of the node. */
	if (rank < 0 || rank >= lr->plan.crew.n || attempt != lr->core->nodes[rank].attempt ||
	    json_parse(str_from(ends), a, &d, NULL) < 0 || d->type != DOC_ARRAY ||
	    d->array.n != (size_t)lr->nodes[rank].processes)
		return;
	struct process_end *all = ends_of(&lr->nodes[rank]);

	for (size_t i = 0; i < d->array.n; i++) {
		const struct doc *pair = d->array.v[i];

		if (pair->type == DOC_ARRAY && pair->array.n == 2)
			all[i] = (struct process_end){(int)pair->array.v[0]->i,
						      (int)pair->array.v[1]->i};
	}
}

int ends_restore(struct live_run *lr, struct err *err)
{
	return store_ends_each(lr->m->store, lr->row.no, restore_one, lr, err);
}
