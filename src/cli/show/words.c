/* words - small pieces of a run or node in words. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/escape.h"
#include "base/exit_text.h"
#include "cli/show/render.h"
#include "fmt/doc.h"

#define JOB_FAILED 1

static const struct {
	const char *state;
	int exit_code;
} final_states[] = {{"succeeded", 0}, {"failed", JOB_FAILED}, {"cancelled", 7}};

bool run_ended(const struct doc *run)
{
	struct str state = doc_str(run, "state", STR(""));

	for (size_t i = 0; i < sizeof(final_states) / sizeof(final_states[0]); i++)
		if (str_is(state, final_states[i].state))
			return true;
	return false;
}

bool run_is_whole(const struct doc *run)
{
	return run_ended(run) && !str_is(doc_str(run, "results", STR("")), "coming");
}

struct str run_waits_for(const struct doc *run)
{
	const struct doc *waiting = doc_array(run, "waiting");

	if (run_ended(run) || !waiting || waiting->array.n == 0)
		return STR("");
	return doc_str(waiting->array.v[0], "why", STR(""));
}

int run_exit_code(const struct doc *run)
{
	struct str state = doc_str(run, "state", STR(""));
	int64_t code = doc_int(run, "exit_code", -1);

	if (code >= 0 && code <= 255)
		return (int)code;
	for (size_t i = 0; i < sizeof(final_states) / sizeof(final_states[0]); i++)
		if (str_is(state, final_states[i].state))
			return final_states[i].exit_code;
	return 8;
}

const struct doc *run_find_node(const struct doc *run, struct str name)
{
	const struct doc *nodes = doc_array(run, "nodes");

	for (size_t i = 0; nodes && i < nodes->array.n; i++)
		if (str_eq(doc_str(nodes->array.v[i], "name", STR("")), name))
			return nodes->array.v[i];
	return NULL;
}

int run_job_code(const struct doc *run)
{
	const struct doc *node = run_find_node(run, doc_str(run, "cause_node", STR("")));
	int own = run_exit_code(run);
	int64_t code = doc_int(node, "exit_code", 0), signo = doc_int(node, "signal", 0);

	if (own != JOB_FAILED || !node)
		return own;
	return code > 0 && code <= 255	  ? (int)code
	       : signo > 0 && signo < 128 ? 128 + (int)signo
					  : own;
}

void text_add_escaped(struct buf *out, struct str text)
{
	escape_terminal(out, text);
}

void text_add_span(struct buf *out, int64_t ms)
{
	char text[32];

	clock_format_span(ms, text);
	buf_addz(out, text);
}

void node_describe_end(const struct doc *node, struct buf *out)
{
	CLEANUP(buf_release) struct buf text = {0};
	int64_t sig = doc_int(node, "signal", 0), code = doc_int(node, "exit_code", -1);
	bool lost = sig <= 0 && code < 0 && str_is(doc_str(node, "state", STR("")), "lost");

	buf_init(&text, DOC_MAX_BYTES);
	exit_describe(&text, (int)code, (int)sig, doc_bool(node, "oom", false),
		      doc_str(node, "reason", STR("")));
	if (lost)
		buf_addz(out, text.n ? "lost: " : "lost");
	text_add_escaped(out, buf_str(&text));
}

void run_describe_nodes(const struct doc *run, struct buf *out)
{
	const struct doc *counts = doc_table(run, "counts");
	bool first = true;

	for (size_t i = 0; counts && i < counts->table.n; i++) {
		const struct doc_entry *e = &counts->table.v[i];
		if (str_is(e->key, "nodes") || e->value->type != DOC_INT || e->value->i <= 0)
			continue;
		buf_printf(out, "%s%" PRId64 " ", first ? "" : ", ", e->value->i);
		text_add_escaped(out, e->key);
		first = false;
	}
}
