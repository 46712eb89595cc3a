/* words - small pieces of a run or node in words. */
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/escape.h"
#include "cli/show/render.h"
#include "fmt/doc.h"

static const struct {
	const char *state;
	int exit_code;
} final_states[] = {{"succeeded", 0}, {"failed", 1}, {"cancelled", 7}};

bool run_ended(const struct doc *run)
{
	struct str state = doc_str(run, "state", STR(""));

	for (size_t i = 0; i < sizeof(final_states) / sizeof(final_states[0]); i++)
		if (str_is(state, final_states[i].state))
			return true;
	return false;
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

static void signal_name(int64_t number, char out[static 32])
{
	const char *name = number > 0 && number < NSIG ? sigabbrev_np((int)number) : NULL;

	if (name)
		snprintf(out, 32, "SIG%s", name);
	else
		snprintf(out, 32, "signal %" PRId64, number);
}

void node_describe_end(const struct doc *node, struct buf *out)
{
	int64_t sig = doc_int(node, "signal", 0), code = doc_int(node, "exit_code", -1);
	struct str reason = doc_str(node, "reason", STR(""));
	size_t start = out->n;
	char name[32];

	if (sig > 0) {
		signal_name(sig, name);
		buf_printf(out, "killed by %s", name);
	} else if (code >= 0) {
		buf_printf(out, "exit code %" PRId64, code);
	} else if (str_is(doc_str(node, "state", STR("")), "lost")) {
		buf_addz(out, "lost");
	}
	if (doc_bool(node, "oom", false))
		buf_addz(out, out->n > start ? ", out of memory" : "out of memory");
	if (reason.n == 0)
		return;
	buf_addz(out, out->n > start ? ": " : "");
	text_add_escaped(out, reason);
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
