/* report.html: verdict and cause, phases, metrics, nodes, machines, events, job file, environment. */
#include <inttypes.h>

#include "base/clock.h"
#include "report/internal.h"

#define BAR_WIDTH 760
#define BAR_HEIGHT 26

static const char head[] =
	"<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\n"
	"<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src "
	"'unsafe-inline'; base-uri 'none'; form-action 'none'\">\n"
	"<meta name=\"viewport\" content=\"width=device-width,initial-scale=1\">\n"
	"<meta name=\"referrer\" content=\"no-referrer\">\n<title>";

static void add_span(struct buf *b, int64_t ms)
{
	char text[32];

	clock_format_span(ms, text);
	html_z(b, text);
}

static void add_time(struct buf *b, int64_t wall_ms)
{
	char text[32];

	clock_format(wall_ms, text);
	html_z(b, text);
}

static const char *tone_of(const char *state)
{
	static const char *const tones[][2] = {
		{"succeeded", "good"}, {"failed", "bad"}, {"lost", "bad"}, {"cancelled", "off"}};

	for (size_t i = 0; i < sizeof(tones) / sizeof(tones[0]); i++)
		if (state && strcmp(state, tones[i][0]) == 0)
			return tones[i][1];
	return "dim";
}

static void page_begin(struct buf *b, const char *id, const char *state)
{
	buf_addz(b, head);
	html_z(b, id);
	buf_addz(b, " – regatta</title>\n<style>");
	buf_addz(b, report_style);
	buf_addz(b, "</style></head>\n<body>\n<header><h1>");
	html_z(b, id);
	buf_printf(b, "<span class=\"badge %s\">", tone_of(state));
	html_z(b, state);
}

void page_open(struct buf *b, const char *id, const char *state)
{
	page_begin(b, id, state);
	buf_addz(b, "</span></h1>\n<p class=\"dim\">");
}

static void page_title(const struct report_run *run, struct buf *b)
{
	page_begin(b, run->id, run->state);
	/* The verdict is known before the clean-up is done: show both. */
	if (run->verdict && run->state && strcmp(run->verdict, run->state) != 0) {
		buf_printf(b, "</span><span class=\"badge %s\">", tone_of(run->verdict));
		html_z(b, run->verdict);
	}
	buf_addz(b, "</span></h1>\n<p class=\"dim\">");
	html_z(b, run->name);
	buf_addz(b, ": ");
	html_z(b, run->strategy);
	buf_addz(b, " on ");
	html_z(b, run->engine);
	buf_printf(b, ", %zu node%s, began ", run->nnodes, run->nnodes == 1 ? "" : "s");
	add_time(b, run->created_ms);
	buf_addz(b, run->ended_ms ? ", took " : ", so far ");
	add_span(b, run->elapsed_ms);
	buf_addz(b, "</p></header>\n");
}

static void page_cause(const struct report_run *run, struct buf *b)
{
	if (run->cause) {
		buf_addz(b, "<p class=\"cause\"><strong>Cause:</strong> ");
		html_z(b, run->cause);
		if (run->cause_node && !strstr(run->cause, run->cause_node)) {
			buf_addz(b, " <span class=\"dim\">(");
			html_z(b, run->cause_node);
			buf_addz(b, ")</span>");
		}
		buf_addz(b, "</p>\n");
	}
	if (run->tail) {
		buf_addz(b, "<h3>Last lines of ");
		html_z(b, run->tail_node);
		buf_addz(b, "</h3>\n<pre>");
		html_lines(b, str_from(run->tail));
		buf_addz(b, "</pre>\n");
	}
}

static void page_phases(const struct report_run *run, struct buf *b)
{
	int64_t all = 0;
	double x = 0;

	for (size_t i = 0; i < run->nphases; i++)
		all += run->phases[i].ms > 0 ? run->phases[i].ms : 0;
	buf_printf(
		b,
		"<h2>Phases</h2>\n<svg viewBox=\"0 0 %d %d\" role=\"img\" aria-label=\"phases of the run, "
		"in order\">",
		BAR_WIDTH, BAR_HEIGHT);
	for (size_t i = 0; i < run->nphases && all; i++) {
		if (run->phases[i].ms <= 0)
			continue;
		double w = (double)run->phases[i].ms / (double)all * BAR_WIDTH;
		buf_printf(
			b,
			"<rect class=\"f%zu\" x=\"%.2f\" y=\"3\" width=\"%.2f\" height=\"20\"><title>",
			i % 6, x, w);
		html_z(b, run->phases[i].name);
		buf_addc(b, ' ');
		add_span(b, run->phases[i].ms);
		buf_addz(b, "</title></rect>");
		x += w;
	}
	buf_addz(b, "</svg>\n<div class=\"scroll\"><table><tr>");
	for (size_t i = 0; i < run->nphases; i++) {
		buf_printf(
			b,
			"<th><svg viewBox=\"0 0 10 10\" width=\"10\" height=\"10\" class=\"swatch\"><rect "
			"class=\"f%zu\" width=\"10\" height=\"10\"/></svg>",
			i % 6);
		html_z(b, run->phases[i].name);
		buf_addz(b, "</th>");
	}
	buf_addz(b, "</tr><tr>");
	for (size_t i = 0; i < run->nphases; i++) {
		buf_addz(b, "<td>");
		if (run->phases[i].ms >= 0)
			add_span(b, run->phases[i].ms);
		else
			buf_addz(b, "–");
		buf_addz(b, "</td>");
	}
	buf_addz(b, "</tr></table></div>\n");
}

static void td(struct buf *b, const char *text)
{
	buf_addz(b, "<td>");
	html_z(b, text);
	buf_addz(b, "</td>");
}

/* A cell of free text, which wraps; other cells do not, and the table scrolls. */
static void td_text(struct buf *b, const char *text)
{
	buf_addz(b, "<td class=\"t\">");
	html_z(b, text);
	buf_addz(b, "</td>");
}

static void page_nodes(struct report *r)
{
	const struct report_run *run = r->run;
	struct buf *b = &r->html.text;

	buf_addz(
		b,
		"<h2>Nodes</h2>\n<div class=\"scroll\"><table><tr><th>node</th><th>role</th><th "
		"class=\"n\">rank</th><th>address</th><th>state</th><th class=\"n\">attempt</th><th "
		"class=\"n\">output</th><th class=\"n\">errors</th><th>end</th></tr>\n");
	for (size_t i = 0; i < run->nnodes && i < PAGE_MAX_NODES; i++) {
		const struct report_node *n = &run->nodes[i];
		buf_addz(b, "<tr>");
		td(b, n->name);
		td(b, n->role);
		buf_printf(b, "<td class=\"n\">%d</td>", n->rank);
		td(b, n->address);
		td(b, n->state);
		buf_printf(b,
			   "<td class=\"n\">%d</td><td class=\"n\">%" PRId64
			   " B</td><td class=\"n\">%" PRId64 " B</td>",
			   n->attempt, n->log_bytes, n->err_bytes);
		td_text(b, n->story);
		buf_addz(b, "</tr>\n");
		out_room(&r->html);
	}
	buf_addz(b, "</table></div>\n");
	if (run->nnodes > PAGE_MAX_NODES)
		buf_printf(b, "<p class=\"dim\">and %zu more: see summary.json</p>\n",
			   run->nnodes - PAGE_MAX_NODES);
	if (run->not_stored)
		buf_printf(b,
			   "<p>%" PRId64 " B of output are not in the logs: output.max_log of the "
			   "job</p>\n",
			   run->not_stored);
}

static void page_events(struct report *r)
{
	const struct report_run *run = r->run;
	struct buf *b = &r->html.text;

	buf_addz(b, "<details><summary>Events</summary>\n<div class=\"scroll\"><table><tr><th "
		    "class=\"n\">after</th><th>what</th><th>node</th><th>text</th></tr>\n");
	for (size_t i = 0; i < run->nevents; i++) {
		const struct report_event *e = &run->events[i];
		buf_printf(b, "<tr><td class=\"n\">%.3f s</td>",
			   (double)(e->time_ms - run->created_ms) / 1000);
		td(b, e->kind);
		td(b, e->node);
		td_text(b, e->text);
		buf_addz(b, "</tr>\n");
		out_room(&r->html);
	}
	buf_addz(b, "</table></div>\n");
	if (run->more_events)
		buf_printf(b, "<p class=\"dim\">and %" PRIu64 " more: see events.jsonl</p>\n",
			   run->more_events);
	buf_addz(b, "</details>\n");
}

static void page_environment(const struct report_run *run, struct buf *b)
{
	buf_addz(b, "<h2>Environment</h2>\n<div class=\"scroll\"><table>\n");
	for (size_t i = 0; i < run->nenvironment; i++) {
		buf_addz(b, "<tr><th>");
		html_z(b, run->environment[i].name);
		buf_addz(b, "</th>");
		td_text(b, run->environment[i].value);
		buf_addz(b, "</tr>\n");
	}
	buf_addz(b, "</table></div>\n");
}

void report_page(struct report *r)
{
	const struct report_run *run = r->run;
	struct buf *b = &r->html.text;

	page_title(run, b);
	page_cause(run, b);
	page_phases(run, b);
	page_metrics(r, false);
	page_nodes(r);
	page_metrics(r, true);
	page_events(r);
	if (run->job) {
		buf_addz(b, "<h2>Job file</h2>\n<pre>");
		html_lines(b, str_from(run->job));
		buf_addz(b, "</pre>\n");
	}
	page_environment(run, b);
	buf_addz(b, "</body></html>\n");
}
