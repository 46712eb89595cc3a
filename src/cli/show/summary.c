/* summary - a run in words, at its end and before. */
#include <inttypes.h>
#include <string.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/escape.h"
#include "cli/show/render.h"
#include "cli/show/terminal.h"
#include "fmt/doc.h"

#define NODES_PER_METRIC 16 /* `regatta metrics` shows them all */
#define MAX_TAIL_LINE 2000  /* bytes of a last line that are shown */
#define LABEL 8		    /* columns of "phases  " */

static enum tint tint_of(const struct doc *run)
{
	struct str state = doc_str(run, "state", STR(""));

	if (str_is(state, "succeeded"))
		return TINT_GOOD;
	if (str_is(state, "failed"))
		return TINT_BAD;
	return str_is(state, "cancelled") ? TINT_WARN : TINT_BOLD;
}

/* Adds a piece of a wrapped line; *column is the current column. */
static void add_wrapped(struct buf *out, struct str piece, bool first, int *column,
			const struct style *st)
{
	int w = text_width(piece);

	if (!first && st->width && *column + 2 + w > st->width - 1) {
		buf_printf(out, ",\n%*s", LABEL, "");
		*column = LABEL;
	} else if (!first) {
		buf_addz(out, ", ");
		*column += 2;
	}
	buf_addstr(out, piece);
	*column += w;
}

static void add_phases(const struct doc *run, const struct style *st, struct buf *out)
{
	const struct doc *phases = doc_table(run, "phases");
	int column = LABEL;
	bool first = true;

	for (size_t i = 0; phases && i < phases->table.n; i++) {
		const struct doc_entry *e = &phases->table.v[i];
		CLEANUP(buf_release) struct buf piece = {0};
		buf_init(&piece, RENDER_MAX_LINE);
		if (e->value->type != DOC_INT)
			continue;
		text_add_escaped(&piece, e->key);
		buf_addc(&piece, ' ');
		text_add_span(&piece, e->value->i);
		if (first)
			buf_addz(out, "phases  ");
		add_wrapped(out, buf_str(&piece), first, &column, st);
		first = false;
	}
	if (!first)
		buf_addc(out, '\n');
}

void params_add(const struct doc *run, const char *between, struct buf *out)
{
	const struct doc *params = doc_table(run, "params");
	CLEANUP(arena_freep) struct arena *a = arena_new();

	for (size_t i = 0; params && i < params->table.n; i++) {
		const struct doc *v = params->table.v[i].value;

		buf_addz(out, i ? between : "");
		text_add_escaped(out, params->table.v[i].key);
		buf_addc(out, '=');
		text_add_escaped(out, v->type == DOC_STRING ? v->s : str_from(doc_json_text(a, v)));
	}
}

void tags_add(const struct doc *run, struct buf *out)
{
	const struct doc *tags = doc_array(run, "tags");

	for (size_t i = 0; tags && i < tags->array.n; i++) {
		if (tags->array.v[i]->type != DOC_STRING)
			continue;
		buf_addz(out, i ? "," : "");
		text_add_escaped(out, tags->array.v[i]->s);
	}
}

/* "note    2026-11-17 20:05:11  text", further lines below the text. */
static void add_notes(const struct doc *run, struct buf *out)
{
	const struct doc *notes = doc_array(run, "notes");

	for (size_t i = 0; notes && i < notes->array.n; i++) {
		struct str rest = doc_str(notes->array.v[i], "text", STR(""));
		char when[32];

		clock_format(doc_int(notes->array.v[i], "time_ms", 0), when);
		buf_printf(out, "note    %.19s  ", when);
		text_add_escaped(out, str_cut(&rest, '\n'));
		buf_addc(out, '\n');
		while (rest.p && rest.n) {
			buf_printf(out, "%*s", LABEL, "");
			text_add_escaped(out, str_cut(&rest, '\n'));
			buf_addc(out, '\n');
		}
	}
}

static void add_tags(const struct doc *run, struct buf *out)
{
	const struct doc *tags = doc_array(run, "tags");

	if (!tags || !tags->array.n)
		return;
	buf_addz(out, "tags    ");
	tags_add(run, out);
	buf_addc(out, '\n');
}

static void add_params(const struct doc *run, struct buf *out)
{
	const struct doc *params = doc_table(run, "params");

	if (!params || !params->table.n)
		return;
	buf_addz(out, "params  ");
	params_add(run, ", ", out);
	buf_addc(out, '\n');
}

static void add_headline(const struct doc *run, const struct style *st, struct buf *out)
{
	int64_t nodes = doc_int(doc_table(run, "counts"), "nodes", 0);
	double cost = doc_num(run, "cost_usd", 0);
	bool ended = run_ended(run);

	tint_on(out, st, tint_of(run));
	text_add_escaped(out, doc_str(run, "id", STR("?")));
	buf_addc(out, ' ');
	text_add_escaped(out, doc_str(run, "state", STR("?")));
	tint_off(out, st, tint_of(run));
	buf_addz(out, ended ? " after " : ", ");
	text_add_span(out, doc_int(run, "elapsed_ms", 0));
	buf_addz(out, " (");
	text_add_escaped(out, doc_str(run, "strategy", STR("?")));
	buf_addz(out, " on ");
	text_add_escaped(out, doc_str(run, "engine", STR("?")));
	buf_printf(out, ", %" PRId64 " node%s", nodes, nodes == 1 ? "" : "s");
	if (cost > 0)
		buf_printf(out, ", %.2f USD", cost);
	buf_addz(out, ")\n");
}

/* Lines are not cut to the width: their end may be the important part. */
static void add_tail(const struct doc *tail, struct buf *out)
{
	const struct doc *lines = doc_array(tail, "lines");

	if (!lines || lines->array.n == 0)
		return;
	buf_addz(out, "last lines of ");
	text_add_escaped(out, doc_str(tail, "node", STR("?")));
	buf_addz(out, ":\n");
	for (size_t i = 0; i < lines->array.n; i++) {
		if (lines->array.v[i]->type != DOC_STRING)
			continue;
		struct str text = lines->array.v[i]->s;
		if (text.n > MAX_TAIL_LINE)
			text.n = MAX_TAIL_LINE;
		buf_addz(out, "  | ");
		text_add_escaped(out, text);
		buf_addc(out, '\n');
	}
}

static bool holds(struct str text, struct str part)
{
	return memmem(text.p, text.n, part.p, part.n) != NULL;
}

/* Why the run did not succeed: the cause, how the node ended unless the cause says that, the node's last lines. */
static void add_cause(const struct doc *run, struct buf *out)
{
	const struct doc *tail = doc_table(run, "tail");
	const struct doc *node =
		run_find_node(run, doc_str(run, "cause_node", doc_str(tail, "node", STR(""))));
	struct str cause = doc_str(run, "cause", STR(""));

	if (cause.n) {
		buf_addz(out, "cause   ");
		text_add_escaped(out, cause);
		buf_addc(out, '\n');
	}
	CLEANUP(buf_release) struct buf story = {0};
	buf_init(&story, RENDER_MAX_LINE);
	struct str name = doc_str(node, "name", STR("?"));
	if (node)
		node_describe_end(node, &story);
	if (story.n && !(holds(cause, name) && holds(cause, buf_str(&story)))) {
		buf_addz(out, "node    ");
		text_add_escaped(out, name);
		buf_printf(out, ": %.*s\n", STR_ARG(buf_str(&story)));
	}
	add_tail(tail, out);
}

/* What the run still waits for. */
static void add_waiting(const struct doc *run, struct buf *out)
{
	const struct doc *waiting = doc_array(run, "waiting");

	for (size_t i = 0; waiting && i < waiting->array.n; i++) {
		const struct doc *w = waiting->array.v[i];
		buf_addz(out, "waiting ");
		text_add_escaped(out, doc_str(w, "kind", STR("")));
		buf_addc(out, ' ');
		text_add_escaped(out, doc_str(w, "name", STR("")));
		buf_addc(out, ' ');
		text_add_escaped(out, doc_str(w, "state", STR("")));
		buf_addz(out, ": ");
		text_add_escaped(out, doc_str(w, "why", STR("")));
		buf_addc(out, '\n');
	}
}

/* The commit that the source was at. */
static void add_revision(const struct doc *run, struct buf *out)
{
	const struct doc *source = doc_table(run, "source");
	struct str revision = doc_str(source, "revision", STR(""));
	struct str branch = doc_str(source, "branch", STR(""));

	if (!revision.n)
		return;
	buf_addz(out, "git     ");
	text_add_escaped(out, (struct str){revision.p, revision.n < 12 ? revision.n : 12});
	if (branch.n) {
		buf_addz(out, " on ");
		text_add_escaped(out, branch);
	}
	if (doc_bool(source, "dirty", false))
		buf_addz(out, ", with changes that are not committed: source.diff");
	buf_addc(out, '\n');
}

/* The job has set a limit for its logs, and reached it. */
static void add_not_stored(const struct doc *run, struct buf *out)
{
	const struct doc *nodes = doc_array(run, "nodes");
	int64_t sum = 0;
	char text[32];

	for (size_t i = 0; nodes && i < nodes->array.n; i++)
		sum += doc_int(nodes->array.v[i], "not_stored", 0);
	if (sum <= 0)
		return;
	bytes_format(sum, text);
	buf_printf(out, "note    %s of output not stored: output.max_log of the job\n", text);
}

static void add_unmatched(const struct doc *run, struct buf *out)
{
	const struct doc *names = doc_array(run, "unmatched");

	if (!names || !names->array.n)
		return;
	buf_addz(out, names->array.n == 1 ? "note    metric " : "note    metrics ");
	for (size_t i = 0; i < names->array.n; i++) {
		buf_addz(out, i ? ", " : "");
		if (names->array.v[i]->type == DOC_STRING)
			text_add_escaped(out, names->array.v[i]->s);
	}
	buf_addz(out, names->array.n == 1 ? ": no line matched its pattern\n"
					  : ": no line matched their patterns\n");
}

static void add_places(const struct doc *run, struct buf *out)
{
	struct str dir = doc_str(run, "dir", STR("")), master = doc_str(run, "master", STR(""));

	if (dir.n == 0)
		return;
	if (master.n) {
		buf_addz(out, "files   ");
		text_add_escaped(out, dir);
		buf_addz(out, " on the machine of master '");
		text_add_escaped(out, master);
		buf_addz(out, "'\n");
		return;
	}
	buf_addz(out, "logs    ");
	text_add_escaped(out, dir);
	buf_addz(out, "/logs\nfiles   ");
	text_add_escaped(out, dir);
	buf_addc(out, '\n');
}

void run_set_master(struct doc *run, const char *master, struct arena *a)
{
	if (master && run->type == DOC_TABLE)
		doc_set(a, run, STR("master"), doc_new_str(a, str_from(master)));
}

void summary_render(const struct doc *run, const struct doc *metrics, const struct style *st,
		    struct buf *out)
{
	add_headline(run, st, out);
	add_cause(run, out);
	add_phases(run, st, out);
	metrics_table_render(run, metrics, NODES_PER_METRIC, st, out);
	add_unmatched(run, out);
	add_not_stored(run, out);
	add_revision(run, out);
	add_places(run, out);
}

/* A run of another version, which this one cannot read: what can still be done with it. */
static void add_unreadable(const struct doc *run, struct buf *out)
{
	struct str why = doc_str(run, "unreadable", STR("")), id = doc_str(run, "id", STR(""));

	if (!why.n)
		return;
	buf_addz(out, "note    this regatta cannot read the run: ");
	escape_terminal(out, why);
	buf_printf(
		out,
		"\n        it goes on with the regatta that started it; 'regatta kill %.*s' takes it down\n",
		STR_ARG(id));
}

void status_render(const struct doc *run, const struct style *st, struct buf *out)
{
	CLEANUP(buf_release) struct buf counts = {0};

	buf_init(&counts, RENDER_MAX_LINE);
	run_describe_nodes(run, &counts);
	add_headline(run, st, out);
	if (doc_bool(run, "cancel_asked", false) && !run_ended(run))
		buf_addz(out, "cancel  asked for\n");
	if (doc_bool(run, "disk_full", false))
		buf_printf(
			out,
			"disk    full where the master keeps its files: output waits until there is "
			"room, or end the run with 'regatta kill %.*s'\n",
			STR_ARG(doc_str(run, "id", STR(""))));
	add_tags(run, out);
	add_params(run, out);
	add_notes(run, out);
	add_cause(run, out);
	add_unreadable(run, out);
	add_waiting(run, out);
	if (counts.n)
		buf_printf(out, "nodes   %.*s\n", STR_ARG(buf_str(&counts)));
	add_phases(run, st, out);
	nodes_table_render(run, st, out);
	metrics_table_render(run, NULL, NODES_PER_METRIC, st, out);
	add_unmatched(run, out);
	add_not_stored(run, out);
	add_revision(run, out);
	add_places(run, out);
}

void run_line_render(const struct doc *run, const struct style *st, struct buf *out)
{
	struct str cause = doc_str(run, "cause", STR(""));
	struct str state = doc_str(run, "state", STR("?"));

	text_add_escaped(out, doc_str(run, "id", STR("?")));
	buf_addc(out, ' ');
	text_add_tinted(out, st, str_is(state, "succeeded") ? TINT_GOOD : TINT_BAD, state);
	buf_addz(out, " after ");
	text_add_span(out, doc_int(run, "elapsed_ms", 0));
	if (cause.n) {
		buf_addz(out, ": ");
		text_add_escaped(out, cause);
	}
	buf_addc(out, '\n');
}
